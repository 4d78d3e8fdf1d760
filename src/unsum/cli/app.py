"""The command line application: what its exit codes mean, and how it ends."""

from __future__ import annotations

import os
import sys
from enum import IntEnum
from typing import Annotated

import typer

from unsum.errors import ParameterError, ReadingsError, UnsumError

app = typer.Typer(
    help="unsum undoes sums: fine nonnegative series from totals over time intervals, exactly.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Exit(IntEnum):
    """What the exit codes mean."""

    OK = 0
    BAD_INPUT = 1
    USAGE = 2
    BUG = 70
    INTERRUPTED = 130


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from unsum import __version__

        typer.echo(f"unsum {__version__}")
        raise typer.Exit


def main() -> None:
    """Run a command. Whatever goes wrong ends in a sentence and an exit code, not a traceback."""
    for stream in (sys.stdout, sys.stderr):  # names may have letters that the terminal lacks
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        app()
    except KeyboardInterrupt:
        typer.echo("interrupted; nothing was left half written.", err=True)
        code = Exit.INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = Exit.OK
    except UnsumError as error:
        code = Exit.USAGE if isinstance(error, ParameterError) else Exit.BAD_INPUT
        _report(error)
    except OSError as error:
        code = Exit.BAD_INPUT
        _report(error)
    except MemoryError as error:
        code = Exit.BAD_INPUT
        more = f" ({error})" if str(error) else ""
        _report(
            UnsumError(
                f"there is not enough memory{more}; nothing was written. Give less at a time with "
                "--memory, or spread the work over machines with --dask."
            )
        )
    except Exception as error:
        if os.environ.get("UNSUM_TRACEBACK"):
            raise
        code = Exit.BUG
        typer.echo(
            f"unsum met a bug ({type(error).__name__}: {error}). Please report it with the output "
            "of the same command run with UNSUM_TRACEBACK=1 in the environment.",
            err=True,
        )
    sys.exit(code)


def _report(error: BaseException) -> None:
    if "--json" in sys.argv:
        import json

        found = error.findings.to_dict() if isinstance(error, ReadingsError) else {}
        typer.echo(json.dumps({"error": str(error)} | found))
    typer.echo(f"unsum: {error}", err=True)
    if isinstance(error, ReadingsError):
        remedy = "`unsum check` names every row"
        if sys.argv[1:2] in (["recover"], ["apply"]):
            remedy += "; --drop-bad sets bad rows aside"
        typer.echo(f"Nothing was written. {remedy}.", err=True)
