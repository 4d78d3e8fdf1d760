"""Compiled loops. They take plain arrays and import nothing of ours.

Readings of a partition arrive as `indptr, start, stop, total`: series n owns the readings
`indptr[n]` to `indptr[n + 1]`, each the total over the periods `start` to `stop` (excluded),
disjoint and in order of time.
"""
