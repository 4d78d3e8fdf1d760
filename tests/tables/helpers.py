"""What the tests of tables share."""

import numpy as np

HEADER = "series,start,end,total\n"


def write(tmp_path, text, name="bills.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def found(findings):
    return {finding.code: finding.rows.tolist() for finding in findings}


def assert_accounted(findings):
    assert findings.rows_used + findings.rows_set_aside == findings.rows_read
    assert len(np.unique(findings.set_aside_rows)) == findings.rows_set_aside
