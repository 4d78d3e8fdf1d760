"""Judging methods without the truth: merge neighbouring readings, recover, score the split."""

from unsum.selection.merging import Merged, merge_neighbours

__all__ = ["Merged", "merge_neighbours"]
