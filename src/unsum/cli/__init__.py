"""The command line: thin commands over the library. Heavy imports live inside the commands."""

from unsum.cli import files, importing, measuring, models, serving
from unsum.cli.app import app, main

__all__ = ["app", "files", "importing", "main", "measuring", "models", "serving"]
