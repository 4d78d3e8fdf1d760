"""Compiled kernels never outlive the source they were made from."""

import os

from unsum.kernels import drop_stale_cache


def test_kernels_older_than_any_source_are_compiled_anew(tmp_path):
    cache = tmp_path / "__pycache__"
    cache.mkdir()
    for name, age in (("a.py", 100), ("b.py", 50), ("__pycache__/a.f.nbi", 40),
                      ("__pycache__/a.f.1.nbc", 60)):  # fmt: skip
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    assert drop_stale_cache(tmp_path)
    assert list(cache.iterdir()) == []
    (cache / "a.f.nbi").touch()
    assert not drop_stale_cache(tmp_path)
    assert len(list(cache.iterdir())) == 1
