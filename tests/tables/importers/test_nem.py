"""NEM12 and NEM13: days of intervals, their qualities, and accumulated reads."""

import numpy as np
import pytest

from tests.tables.importers.helpers import SAMPLES, found, load, rows
from unsum.errors import ParameterError, ReadingsError, TableError

HEAD = "100,NEM12,202403021200,MDPX,RETAILY\n"
STREAM = "200,NMI1,E1,1,E1,N1,S1,{unit},{minutes},20240401\n"


def nem12(tmp_path, *records, unit="kWh", minutes=360, head=HEAD, tail="900\n", name="nem12.csv"):
    """A file of one stream; records are lines."""
    path = tmp_path / name
    stream = STREAM.format(unit=unit, minutes=minutes)
    path.write_text(head + stream + "".join(f"{each}\n" for each in records) + tail)
    return path


def test_a_file_with_two_streams_and_all_qualities():
    imported = load("nem12", "nem12.csv")
    table = imported.table.to_pylist()
    assert len(table) == 48 + 40 + 48
    export = [row for row in table if row["series"] == "4102000001/B1"]
    assert {row["quality"] for row in export} == {"estimated"}
    second = [row for row in table if row["series"] == "4102000001/E1"][48:]
    assert [row["quality"] for row in second] == ["actual"] * 20 + ["estimated"] * 20
    assert second[0]["start"].isoformat() == "2024-03-02T00:00:00+10:00"
    assert second[0]["end"].isoformat() == "2024-03-02T00:30:00+10:00"
    assert found(imported) == {"no-value": [4]}
    assert imported.findings.rows_read == 3
    assert imported.recover_options == " --freq 30min --tz +10:00"


def test_a_round_trip(tmp_path):
    values = np.random.default_rng(2).uniform(0, 5, (3, 96)).round(3)
    days = [f"300,2024022{8 + i}," + ",".join(map(str, day)) + ",A,,,," for i, day in
            enumerate(values[:2])]  # fmt: skip
    days.append("300,20240301," + ",".join(map(str, values[2])) + ",A,,,,")
    imported = load("nem12", nem12(tmp_path, *days, minutes=15))
    np.testing.assert_array_equal(imported.table["total"].to_numpy(), values.ravel())
    readings = imported.readings()
    assert readings.n_periods == 288  # 28 and 29 February, 1 March
    np.testing.assert_array_equal(readings.total, values.ravel())


def test_accumulated_reads():
    imported = load("nem13", "nem13.csv", to="MWh")
    assert rows(imported) == [
        ("4103000007/11", "2024-01-03 00:00:00+10:00", "2024-04-03 00:00:00+10:00", 0.31),
        ("4103000007/41", "2024-01-03 00:00:00+10:00", "2024-04-03 00:00:00+10:00", 0.095),
    ]
    assert imported.table["quality"].to_pylist() == ["actual", "estimated"]
    assert imported.recover_options == " --tz +10:00"


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ("300,20240301,1,2,3,A", "3 values and a quality, not 4"),
        ("300,20240231,1,2,3,4,A", "'20240231' is no date"),
        ("300,20240301,1,2,x,4,A", "'x' is no value"),
        ("300,20240301,1,2,inf,4,A", "'inf' is no value"),
        ("300,20240301,1,2,3,4,Q", "'Q' is no quality"),
        ("300,20240301,1,2,3,4,V\n400,1,9,A", "the 400 record after it cannot be read"),
        ("300,20240301,1,2,3,4,V\n400,one,2,A", "the 400 record after it cannot be read"),
        ("777,what", "'777' is no record of NEM12"),
        (STREAM.format(unit="kWh", minutes=360) + "400,1,2,S", "'400' is .* out of place"),
        ("200,NMI1\n300,20240301,1,2,3,4,A", "has 2 fields, not 9"),
        ("200,N,E1,1,E1,N1,S1,kWh,7,\n300,20240301,1,2,3,4,A", "intervals of '7' minutes"),
        ("200,,E1,1,E1,N1,S1,kWh,30,\n300,20240301,1,2,3,4,A", "has no NMI"),
    ],
)
def test_bad_records_are_named_and_can_be_set_aside(tmp_path, record, problem):
    path = nem12(tmp_path, "300,20240229,1,2,3,4,A,,,,", record)
    with pytest.raises(ReadingsError, match=problem) as caught:
        load("nem12", path)
    assert "row 4" in str(caught.value) or "row 5" in str(caught.value)
    imported = load("nem12", path, drop_bad=True)
    assert imported.table["total"].to_pylist() == [1.0, 2.0, 3.0, 4.0]
    assert imported.findings.rows_set_aside == 1


def test_qualities_that_are_not_told_count_as_actual(tmp_path):
    path = nem12(tmp_path, "300,20240301,1,2,,4,V,,,,", "400,1,2,F64,,")
    imported = load("nem12", path)
    assert imported.table["quality"].to_pylist() == ["estimated", "estimated", "actual"]
    assert found(imported) == {"no-value": [3], "unknown-quality": [3]}


def test_a_day_sent_again_counts_once_and_a_corrected_one_is_a_conflict(tmp_path):
    first = nem12(tmp_path, "300,20240301,1,2,3,4,A,,,,", name="first.csv")
    again = nem12(tmp_path, "300,20240301,1,2,3,4,A,,,,", name="again.csv")
    assert len(load("nem12", [first, again]).table) == 4
    other = nem12(tmp_path, "300,20240301,1,2,3,5,A,,,,", name="other.csv")
    with pytest.raises(ReadingsError, match=r"4 \(row 3 of first.csv\), 5 \(row 3 of other.csv\)"):
        load("nem12", [first, other])


def test_power_and_other_units(tmp_path):
    imported = load("nem12", nem12(tmp_path, "300,20240301,1,2,3,4,A", unit="KW"))
    assert imported.table["total"].to_pylist() == [6.0, 12.0, 18.0, 24.0]  # six hours each
    assert imported.table["unit"].unique().to_pylist() == ["kWh"]
    reactive = STREAM.format(unit="KVARH", minutes=360).replace(",E1,N1", ",Q1,N1")
    path = nem12(tmp_path, "300,20240301,1,2,3,4,A", reactive + "300,20240301,9,9,9,9,A")
    with pytest.raises(ReadingsError, match=r"2 units: kWh, KVARH; .*--to kWh"):
        load("nem12", path)
    imported = load("nem12", path, to="kWh", drop_bad=True)
    assert imported.n_series == 1
    assert found(imported) == {"unknown-unit": [5]}


def test_files_that_are_cut_off_or_of_another_kind(tmp_path):
    cut = nem12(tmp_path, "300,20240301,1,2,3,4,A", tail="")
    assert "cut-off" in found(load("nem12", cut))
    with pytest.raises(TableError, match="is a NEM13 file: import it as nem13"):
        load("nem12", "nem13.csv")
    with pytest.raises(TableError, match=r"line 1 begins with 'Meter ID"):
        load("nem12", "registers.csv")
    headless = nem12(tmp_path, "300,20240301,1,2,3,4,A", head="")
    assert "nem12.csv has no head record (100)." in load("nem12", headless).notes
    binary = tmp_path / "binary.csv"
    for content, message in (
        (b"", "is empty"), (b"100,NEM12\0", "not text"), (b"\xff\xfe1\x000", "not UTF-8"),
        (b"1" * (1 << 21), "not text in lines"),
    ):  # fmt: skip
        binary.write_bytes(content)
        with pytest.raises(TableError, match=message):
            load("nem12", binary)
    with pytest.raises(TableError, match="does not exist"):
        load("nem12", tmp_path / "absent.csv")
    with pytest.raises(ParameterError, match="read from files"):
        load("nem12", {"a": [1]})
    with pytest.raises(ParameterError, match="columns has no meaning"):
        load("nem12", SAMPLES / "nem12.csv", columns={"series": "a"})


@pytest.mark.parametrize(
    ("place", "text", "problem"),
    [
        (9, "20240103", "'20240103' is no time"),
        (14, "soon", "'soon' is no time"),
        (14, "20230403000000", "are not in order"),
        (18, "lots", "'lots' is no quantity"),
        (1, " ", "it has no NMI"),
        (19, None, "19 fields, not 20"),
    ],
)
def test_bad_reads_are_named(tmp_path, place, text, problem):
    lines = (SAMPLES / "nem13.csv").read_text().splitlines()
    fields = lines[1].split(",")
    lines[1] = ",".join(fields[:place] + ([text, *fields[place + 1 :]] if text else []))
    path = tmp_path / "nem13.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(ReadingsError, match=problem):
        load("nem13", path)
    assert load("nem13", path, drop_bad=True).findings.set_aside_rows.tolist() == [2]


def test_reads_without_a_value_and_quoted_fields(tmp_path):
    path = tmp_path / "nem13.csv"
    text = (SAMPLES / "nem13.csv").read_text()
    path.write_text(text.replace("S,64,", 'N,64,"no, access"').replace(",,95,", ",95,"))
    assert found(load("nem13", path)) == {"no-value": [3]}
