"""Nonnegative matrix factorization from readings: the loop, its parts, and where it begins.

Letters follow the paper: V is `W H`, with profiles W (T x K) and weights H; here H is kept series
by series (N x K). Everything per series happens in `Chunk`, everything shared in `loop`.
"""
