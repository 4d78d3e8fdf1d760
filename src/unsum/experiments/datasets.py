"""The panels of the paper's experiments, or what stands in for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from unsum.errors import ParameterError
from unsum.experiments.synthetic import LENGTH_SCALE, N_PERIODS, SMOOTHNESS, simulate_mixtures
from unsum.panel import Panel
from unsum.tables.cer import read_cer
from unsum.tables.panels import read_panel
from unsum.tables.uci import first_use, read_uci

NAMES = ("synthetic", "portugal", "regions", "households")
GROUP = 5


@dataclass(frozen=True)
class Dataset:
    """A panel to hide and recover, and the periods left out of it, for autocorrelations."""

    name: str
    title: str
    truth: Panel
    history: Panel | None

    def __str__(self) -> str:
        history = self.history.n_periods if self.history is not None else 0
        return (
            f"{self.title}: {self.truth.n_series} series, {self.truth.n_periods} periods, and "
            f"{history} left out for autocorrelations"
        )


def load_datasets(
    names: Sequence[str],
    folder: Path | None,
    *,
    smoothness: float = SMOOTHNESS,
    length_scale: float = LENGTH_SCALE,
) -> list[Dataset]:
    """The named datasets: `synthetic` is simulated, the others are looked for in a folder.

    A name like `mine=daily.parquet` takes any wide or long table.
    """
    found = []
    for name in names:
        if name == "synthetic":
            found.append(_synthetic(smoothness, length_scale))
        elif "=" in name:
            label, _, path = name.partition("=")
            found.append(_table(label, Path(path)))
        elif name in NAMES:
            if folder is None:
                raise ParameterError(f"say with --data which folder has the dataset {name!r}.")
            found.append({"portugal": _portugal, "regions": _regions}.get(name, _irish)(folder))
        else:
            raise ParameterError(
                f"there is no dataset {name!r}: choose from {', '.join(NAMES)}, or give a table "
                "as name=file."
            )
    return found


def split_window(panel: Panel, first: int, n_periods: int) -> tuple[Panel, Panel]:
    """A window of a panel, and what is left out: the longer side of it."""
    low, high = first, first + n_periods
    before = low >= panel.n_periods - high
    return _window(panel, low, high), _window(panel, *((0, low) if before else (high, None)))


def _window(panel: Panel, low: int, high: int | None) -> Panel:
    last = None if high is None else high + 1
    calendar = replace(panel.calendar, edges=panel.calendar.edges[low:last])
    return Panel.from_values(panel.values[:, low:high], panel.names, calendar)


def group_series(panel: Panel, size: int) -> Panel:
    """Sums of `size` neighbouring series; the last group may be smaller."""
    starts = np.arange(0, panel.n_series, size)
    values = np.add.reduceat(panel.values, starts, axis=0)
    names = [f"group {number + 1}" for number in range(len(starts))]
    return Panel(pa.array(names), panel.calendar, values)


def _synthetic(smoothness: float, length_scale: float) -> Dataset:
    """The same processes go on after the window: what follows is history."""
    both = simulate_mixtures(
        n_periods=2 * N_PERIODS, smoothness=smoothness, length_scale=length_scale
    )
    truth, history = split_window(both, 0, N_PERIODS)
    return Dataset("synthetic", "Synthetic", truth, history)


def _portugal(folder: Path) -> Dataset:
    """UCI's own table if it is there (2014, days before for history), else its first 365 days."""
    original = folder / "LD2011_2014.txt"
    if original.exists():
        panel = read_uci(original)
        begins = panel.n_periods - 365
        early = first_use(panel) < begins - 7  # clients need some history
        kept = Panel(panel.names.filter(pa.array(early)), panel.calendar, panel.values[early])
        return Dataset("portugal", "Portugal 2014", *split_window(kept, begins, 365))
    panel = read_panel(_existing(folder / "portugal_daily.parquet", "LD2011_2014.txt"))
    return Dataset("portugal", "Portugal 2012", *split_window(panel, 0, 365))


def _regions(folder: Path) -> Dataset:
    panel = read_panel(_existing(folder / "us_regions_daily.parquet"))
    return Dataset("regions", "US regions (for France)", *split_window(panel, 366, 365))


def _irish(folder: Path) -> Dataset:
    """CER's own files if they are there (200 days of 2010), else Australian weeks."""
    original = sorted(folder.glob("File*.txt"))
    if original:
        panel, _ = read_cer(original)
        first = max(0, min(366, panel.n_periods - 200))
        return Dataset(
            "households", "Ireland", *split_window(group_series(panel, GROUP), first, 200)
        )
    panel = read_panel(_existing(folder / "ausgrid_weekly.parquet", "File1.txt"))
    grouped = group_series(panel, GROUP)
    return Dataset(
        "households", "Australian households (for Ireland)", *split_window(grouped, 0, 104)
    )


def _table(label: str, path: Path) -> Dataset:
    """Any table: the first two thirds, at most 365 periods, are hidden; the rest is history."""
    panel = read_panel(path)
    n_periods = min(365, panel.n_periods * 2 // 3)
    if n_periods < 60:
        raise ParameterError(f"{path} has {panel.n_periods} periods; experiments need 90.")
    return Dataset(label, label, *split_window(panel, 0, n_periods))


def _existing(path: Path, original: str | None = None) -> Path:
    if not path.exists():
        either = f"{original} or {path.name}" if original else path.name
        raise ParameterError(f"the folder {path.parent} has no {either}.")
    return path
