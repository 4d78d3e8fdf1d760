"""Green Button files: links, directions, units, local time, and files that mean harm."""

import numpy as np
import pytest

from tests.tables.importers.feeds import (
    HEAD,
    block,
    entry,
    interval,
    local_time,
    meter_reading,
    reading_type,
    usage_point,
    write_feed,
)
from tests.tables.importers.helpers import found, load, rows
from unsum.errors import ParameterError, ReadingsError, TableError
from unsum.tables.importers import espi

NOON = 1_704_110_400  # 2024-01-01T12:00Z


def test_a_feed_with_two_directions_and_a_day_of_23_hours():
    imported = load("green-button", "green_button.xml", to="kWh")
    table = imported.table.to_pylist()
    delivered = [row for row in table if row["series"] == "48/delivered"]
    received = [row for row in table if row["series"] == "48/received"]
    assert len(delivered) == 23 + 24
    assert [row["total"] for row in delivered[:2]] == [0.45, 0.451]
    assert [row["quality"] for row in delivered[2:5]] == ["actual", "estimated", "actual"]
    assert max(row["total"] for row in received) == 0.8  # 8 hundreds of Wh
    assert [row["start"] for row in delivered[:3]] == [
        "2024-03-10T00:00:00-05:00", "2024-03-10T01:00:00-05:00", "2024-03-10T03:00:00-04:00",
    ]  # fmt: skip
    assert delivered[22]["end"] == "2024-03-11T00:00:00-04:00"
    assert imported.recover_options == " --freq h --tz ZONE"
    days = imported.readings(freq="h", tz="America/New_York").calendar
    assert days.n_periods == 47


def test_the_zone_that_is_asked_for_wins():
    imported = load("green-button", "green_button.xml", tz="America/New_York")
    assert rows(imported)[2][1] == "2024-03-10 03:00:00-04:00"
    assert imported.recover_options == " --freq h --tz America/New_York"


def test_a_file_without_links_that_holds_one_of_each(tmp_path):
    values = [interval(NOON + 900 * i, 10 + i, 900) for i in range(4)]
    path = write_feed(tmp_path, usage_point(title="Front meter"), meter_reading(),
                      block(*values), reading_type(uom=169, power=-3))  # fmt: skip
    imported = load("green-button", path)
    assert rows(imported)[0][0] == "Front meter"
    assert imported.table["total"].to_pylist() == [0.01, 0.011, 0.012, 0.013]
    assert imported.table["unit"].unique().to_pylist() == ["therm"]
    assert imported.tz == "UTC"
    assert any("do not tell local time" in note for note in imported.notes)


def test_blocks_alone_are_enough(tmp_path):
    path = write_feed(tmp_path, block(interval(NOON, 7)), name="alone.xml")
    imported = load("green-button", path, unit="kWh")
    assert rows(imported) == [
        ("alone", "2024-01-01 12:00:00+00:00", "2024-01-01 13:00:00+00:00", 7.0)
    ]


def test_resources_without_entries(tmp_path):
    path = tmp_path / "bare.xml"
    path.write_text(
        "<data><UsagePoint/><ReadingType><uom>42</uom></ReadingType><IntervalBlock>"
        f"{interval(NOON, 3)}</IntervalBlock></data>"
    )
    assert rows(load("green-button", path))[0][0] == "bare"
    assert load("green-button", path).table["unit"].to_pylist() == ["m3"]


@pytest.mark.parametrize("style", ["collections", "parents", "paths"])
def test_two_usage_points_are_told_apart_by_links(tmp_path, style):
    """Three ways in which files say what belongs to what."""
    entries = [reading_type("/type/1"), reading_type("/type/2", power=3)]
    for number in (1, 2):
        point, meter = f"/point/{number}", f"/point/{number}/meter/9"
        below = {"collections": f"{point}/meter", "parents": point, "paths": ""}[style]
        blocks = {"collections": f"{meter}/block", "parents": meter, "paths": ""}[style]
        related = [f"/type/{number}"] + ([blocks] if style == "collections" else [])
        entries += [
            block(interval(NOON, number), own=f"{meter}/block/1", up=blocks),
            meter_reading(meter, below, related),
            usage_point(point, related=[below] if style == "collections" else []),
        ]
    imported = load("green-button", write_feed(tmp_path, *entries))
    assert [row[0::3] for row in rows(imported)] == [("1", 1.0), ("2", 2000.0)]


def test_a_round_trip_of_a_year_with_its_summer(tmp_path):
    rng = np.random.default_rng(4)
    values = rng.integers(0, 4000, 366 * 24)
    first = 1_704_085_200  # midnight in New York
    readings = [interval(first + 3600 * i, value) for i, value in enumerate(values)]
    path = write_feed(tmp_path, usage_point("/p/1"), local_time(), reading_type(), block(*readings))
    imported = load("green-button", path)
    readings = imported.readings(freq="h", tz="America/New_York")
    np.testing.assert_array_equal(readings.total, values)
    assert readings.n_periods == 366 * 24
    by_zone = load("green-button", path, tz="America/New_York").table["start"].to_pylist()
    by_rule = imported.table["start"].to_pylist()
    # texts of local time sort otherwise where clocks go back
    assert sorted(by_rule) == sorted(moment.isoformat() for moment in by_zone)


def test_rules_of_the_south_and_fixed_offsets(tmp_path):
    # first Sunday of October to first Sunday of April, at 2 and 3 o'clock
    south = local_time(36000, 3600, begin="A40E2000", end="440E3000")
    january = load("green-button", write_feed(tmp_path, south, block(interval(NOON, 1))))
    assert january.tz == "+11:00"
    july = write_feed(tmp_path, south, block(interval(NOON + 182 * 86400, 1)))
    assert load("green-button", july).tz == "+10:00"
    fixed = write_feed(tmp_path, local_time(3600, 0, "0", "0"), block(interval(NOON, 1)))
    assert load("green-button", fixed).tz == "+01:00"
    odd = write_feed(tmp_path, local_time(10**9), block(interval(NOON, 1)))
    with pytest.raises(ReadingsError, match="local time cannot be read"):
        load("green-button", odd)


def test_what_is_no_total_is_set_aside(tmp_path):
    entries = [reading_type("/type/1"), reading_type("/type/2", uom=38),
               reading_type("/type/3", behaviour=3)]  # fmt: skip
    for number in (1, 2, 3):
        entries.append(meter_reading(f"/m/{number}", related=[f"/type/{number}"]))
        entries.append(block(interval(NOON, number), own=f"/m/{number}/block"))
    imported = load("green-button", write_feed(tmp_path, *entries))
    assert imported.table["total"].to_pylist() == [1.0]
    assert found(imported) == {"not-a-total": [2, 3]}
    assert "power, register reads" in imported.findings.items[0].sentence


def test_several_files_and_names_after_them(tmp_path):
    paths = [
        write_feed(tmp_path, usage_point("/User/1/UsagePoint/01"),
                   block(interval(NOON + 3600 * i, i)), name=f"{name}.xml")
        for i, name in enumerate(("ada", "bob"))
    ]  # fmt: skip
    together = load("green-button", paths)
    assert together.table["series"].to_pylist() == ["01", "01"]
    assert any("--by-file" in note for note in together.notes)
    apart = load("green-button", paths, by_file=True)
    assert apart.table["series"].to_pylist() == ["ada", "bob"]
    assert apart.findings.rows_read == 2


def test_usage_points_with_the_same_last_name_keep_their_addresses(tmp_path):
    entries = []
    for user in (1, 2):
        point = f"https://utility.example/User/{user}/UsagePoint/01"
        entries += [usage_point(point), block(interval(NOON, user), own=f"{point}/block/1")]
    imported = load("green-button", write_feed(tmp_path, *entries))
    names = imported.table["series"].to_pylist()
    assert names == [f"utility.example/User/{user}/UsagePoint/01" for user in (1, 2)]


@pytest.mark.parametrize(
    ("reading", "message"),
    [
        (interval(NOON, "many"), "with a value that is no number(?s:.)*row 1: 'many'"),
        (interval(NOON, ""), "without a value"),
        (interval("soon", 1), "with a start that is no number"),
        (interval(NOON + 0.5, 1), "with a start that is no number"),
        (interval("", 1), "without a start"),
        (interval(NOON, 1, 0), "without a duration"),
        (interval(NOON, 1, -3600), "without a duration"),
        (interval(10**11, 1), "outside the years"),
        (interval(NOON, "1e999"), "with a value that is no number"),
        (interval(NOON, "9" * 5000), "no number|no usable"),
        (interval(NOON, 1) + interval(NOON, 2), r"1 \(row 1\), 2 \(row 2\)"),
    ],
)
def test_readings_that_make_no_sense(tmp_path, reading, message):
    with pytest.raises(ReadingsError, match=message):
        load("green-button", write_feed(tmp_path, block(reading)))


def test_a_reading_may_have_several_qualities(tmp_path):
    codes = "</quality><quality>".join(["17", "8", *["0"] * 1000])
    path = write_feed(tmp_path, block(interval(NOON, 1, quality=codes)))
    assert load("green-button", path).table["quality"].to_pylist() == ["estimated"]


def test_durations_that_the_type_tells(tmp_path):
    reading = f"<IntervalReading><timePeriod><start>{NOON}</start></timePeriod><value>1</value>"
    path = write_feed(tmp_path, reading_type(length=900), block(reading + "</IntervalReading>"))
    assert load("green-button", path).freq == "15min"


def test_links_that_lead_nowhere(tmp_path):
    entries = [meter_reading("/m/1"), meter_reading("/m/2"), block(interval(NOON, 1), own="/b/1")]
    with pytest.raises(ReadingsError, match="belong to no MeterReading"):
        load("green-button", write_feed(tmp_path, *entries))
    types = [reading_type("/t/1"), reading_type("/t/2"), block(interval(NOON, 1))]
    with pytest.raises(ReadingsError, match="related to no ReadingType"):
        load("green-button", write_feed(tmp_path, *types))
    stray = [entry(f"<MeterReading>{interval(NOON, 1)}</MeterReading>"), block(interval(NOON, 2))]
    with pytest.raises(ReadingsError, match="1 reading of no IntervalBlock"):
        load("green-button", write_feed(tmp_path, *stray))
    assert len(load("green-button", write_feed(tmp_path, *stray), drop_bad=True).table) == 1
    many = [reading_type(power="many"), block(interval(NOON, 1))]
    with pytest.raises(ReadingsError, match="multiplier or interval length"):
        load("green-button", write_feed(tmp_path, *many))
    odd = [reading_type(power=999), block(interval(NOON, 1))]
    with pytest.raises(ReadingsError, match="multiplier or interval length"):
        load("green-button", write_feed(tmp_path, *odd))


BOMB = """<?xml version="1.0"?>
<!DOCTYPE feed [
 <!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
 <!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;"><!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;">
]>
<feed><title>&d;</title></feed>"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, "declares a document type"),
        ('<!DOCTYPE feed SYSTEM "http://example.org/evil.dtd"><feed/>', "declares a document type"),
        ('<!DOCTYPE f [<!ENTITY x SYSTEM "file:///etc/passwd">]><f>&x;</f>', "document type"),
        ("<feed><unknown>&undefined;</unknown></feed>", "not well-formed XML"),
        ("<feed><entry>", "is cut off"),
        ("", "not well-formed XML"),
        ("meter,date,index\n", "not well-formed XML"),
        ("<html><body/></html>", "no IntervalBlock.*'html'"),
        ('<?xml version="1.0" encoding="klingon"?><feed/>', "not well-formed XML"),
        ("<a>" * 2000, "nested too deeply"),
        (HEAD + block() + "</feed>", "no usable reading"),
    ],
)
def test_files_that_are_harmful_or_something_else(tmp_path, text, message):
    path = tmp_path / "usage.xml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises((TableError, ReadingsError), match=message):
        load("green-button", path)


def test_files_that_are_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(espi, "MOST_BYTES", 1 << 20)
    path = tmp_path / "usage.xml"
    path.write_bytes(b"<feed>" + b" " * (1 << 20) + b"</feed>")
    with pytest.raises(TableError, match="larger than 1 MB; split it"):
        load("green-button", path)


def test_long_texts_are_not_kept(tmp_path):
    long = entry("<UsagePoint>" + "x" * 100_000 + "</UsagePoint>", title="y" * 100_000)
    path = write_feed(tmp_path, long, block(interval(NOON, 1)))
    assert len(rows(load("green-button", path))[0][0]) < 5000


def test_options_that_make_no_sense():
    with pytest.raises(ParameterError, match="date_format has no meaning"):
        load("green-button", "green_button.xml", date_format="%d/%m/%Y")
