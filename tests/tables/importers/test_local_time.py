"""Rules of daylight saving, against the zones that have them."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from unsum.tables.importers.local_time import LocalTime, moment_of_rule


def rule(month, operator, day, weekday, hour, seconds=0):
    return month << 28 | operator << 25 | day << 20 | weekday << 17 | hour << 12 | seconds


@pytest.mark.parametrize(
    ("zone", "offset", "begin", "end"),
    [
        ("America/New_York", -18000, 0x360E2000, 0xB40E2000),
        ("Europe/Berlin", 3600, rule(3, 7, 0, 7, 2), rule(10, 7, 0, 7, 3)),
        ("Australia/Sydney", 36000, rule(10, 2, 0, 7, 2), rule(4, 2, 0, 7, 3)),
        ("America/New_York", -18000, rule(3, 1, 8, 7, 2), rule(11, 1, 1, 7, 2)),
    ],
)
def test_offsets_are_those_of_the_zone(zone, offset, begin, end):
    local = LocalTime(offset, 3600, begin, end)
    hours = np.datetime64("2021-01-01T00", "us") + np.timedelta64(1, "h") * np.arange(3 * 8766)
    offsets = local.offsets(hours.astype(np.int64))
    for i in range(0, len(hours), 7):
        moment = hours[i].astype(datetime).replace(tzinfo=ZoneInfo("UTC"))
        expected = moment.astimezone(ZoneInfo(zone)).utcoffset()
        assert timedelta(seconds=int(offsets[i])) == expected, moment


def test_rules_of_single_days_and_of_no_sense():
    when = moment_of_rule(rule(2, 0, 29, 0, 5, 90), 2024)
    assert str(np.datetime64(when, "us")) == "2024-02-29T05:01:30.000000"
    fifth = moment_of_rule(rule(2, 6, 0, 1, 0), 2023)  # there are four Mondays
    assert str(np.datetime64(fifth, "us"))[:10] == "2023-02-27"
    for bad in (rule(13, 7, 0, 7, 2), rule(3, 7, 0, 0, 2), rule(3, 7, 0, 7, 24)):
        with pytest.raises(ValueError, match="the rule"):
            moment_of_rule(bad, 2024)
    with pytest.raises(ValueError, match="day"):
        LocalTime(0, 3600, rule(2, 0, 31, 0, 2), rule(10, 7, 0, 7, 2))
    assert not LocalTime(3600, 3600, 0xFFFFFFFF, 0xFFFFFFFF).has_summer
