"""A page about a recovery: data, then a template, then one HTML file for a browser or a mail."""

from unsum.report.page import make_report, write_report

__all__ = ["make_report", "write_report"]
