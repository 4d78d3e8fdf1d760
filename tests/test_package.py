"""The package itself: public names, and imports that stay cheap."""

import subprocess
import sys

import pytest

import unsum

HEAVY = ("numpy", "scipy", "numba", "pyarrow", "matplotlib", "pandas", "narwhals", "rich")


def loaded_by(code):
    """The heavy modules that a fresh interpreter has loaded after some code."""
    script = f"{code}\nimport sys\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return run.stdout.splitlines()[-1]


def test_importing_the_package_loads_nothing_heavy():
    assert loaded_by("import unsum") == "[]"


@pytest.mark.parametrize("arguments", [["--help"], ["recover", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(arguments):
    code = (
        "import sys\nfrom unsum.cli import app\n"
        f"try:\n    app({arguments!r})\nexcept SystemExit:\n    pass"
    )
    assert loaded_by(code) == "[]"


def test_checking_a_table_does_not_load_the_compiler(tmp_path):
    path = tmp_path / "bills.csv"
    path.write_text("series,start,end,total\na,2024-01-01,2024-01-03,2\n")
    loaded = loaded_by(f"import unsum\nunsum.check({str(path)!r})")
    assert "numba" not in loaded
    assert "matplotlib" not in loaded


def test_public_names_exist_and_are_listed():
    for name in unsum.__all__:
        assert getattr(unsum, name) is not None, name
    assert set(dir(unsum)) == set(unsum.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = unsum.nonsense


def test_verbs_are_functions_whatever_was_imported_before():
    code = (
        "import unsum.aggregation, unsum.recovering, unsum.experiments.compare, unsum\n"
        "assert callable(unsum.recover) and callable(unsum.aggregate) and callable(unsum.check)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
