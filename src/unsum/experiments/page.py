"""A page of headings, paragraphs, tables and pictures, as Markdown or as one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 74rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; font-size: 0.85rem; display: block; overflow-x: auto; }
th, td { padding: 0.2rem 0.6rem; border-bottom: 1px solid #8884; text-align: right; }
th:first-child, td:first-child { text-align: left; }
figure { margin: 1rem 0; background: white; }
svg { max-width: 100%; height: auto; }
"""


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 2


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Table:
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    file: str
    caption: str
    svg: str  # the same picture, to be put into the page


@dataclass
class Page:
    """What is to be said, in order."""

    title: str
    parts: list[Heading | Text | Table | Picture] = field(default_factory=list)

    def add(self, *parts: Heading | Text | Table | Picture) -> None:
        self.parts += parts

    def markdown(self) -> str:
        blocks = [f"# {self.title}"]
        for part in self.parts:
            match part:
                case Heading(text, level):
                    blocks.append(f"{'#' * level} {text}")
                case Text(text):
                    blocks.append(text)
                case Table(head, rows):
                    lines = [head, ["---"] * len(head), *rows]
                    blocks.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
                case Picture(file, caption, _):
                    blocks.append(f"![{caption}]({file})")
        return "\n\n".join(blocks) + "\n"

    def html(self) -> str:
        blocks = []
        for part in self.parts:
            match part:
                case Heading(text, level):
                    blocks.append(f"<h{level}>{escape(text)}</h{level}>")
                case Text(text):
                    blocks.append(f"<p>{escape(text)}</p>")
                case Table(head, rows):
                    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
                    body = "".join(
                        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
                        for row in rows
                    )
                    blocks.append(f"<table><tr>{top}</tr>{body}</table>")
                case Picture(_, caption, svg):
                    drawing = svg[svg.index("<svg") :]
                    blocks.append(
                        f"<figure>{drawing}<figcaption>{escape(caption)}</figcaption></figure>"
                    )
        head = (
            '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
            f"<title>{escape(self.title)}</title><style>{STYLE}</style>"
        )
        content = "\n".join(blocks)
        return (
            f'<!doctype html><html lang="en"><head>{head}</head><body><h1>{escape(self.title)}</h1>'
            f"\n{content}\n</body></html>\n"
        )
