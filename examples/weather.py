"""Temperatures and tariffs beside the bills: what they add, and customers without any bill.

python examples/weather.py

Sixty made-up customers over six months, a third of whom heat with electricity. Writes weather.png.
"""

from datetime import date, timedelta
from itertools import pairwise

import matplotlib.dates as mdates
import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa

import unsum
from unsum.experiments.errors import measure
from unsum.experiments.picture import EVEN, RECOVERED

N, DAYS, UNREAD = 60, 182, 3
rng = np.random.default_rng(7)
names = [f"customer {n:02}" for n in range(N)]
day = [date(2023, 10, 1) + timedelta(days=t) for t in range(DAYS + 1)]

# Cold spells come and go; who heats with electricity follows them, the others hardly.
spell = np.zeros(DAYS)
for t in range(1, DAYS):
    spell[t] = 0.85 * spell[t - 1] + rng.normal(0, 2.0)
temperature = 10 - 6 * np.sin(np.pi * np.arange(DAYS) / DAYS) + spell
electric = np.arange(N) % 3 == 0
response = np.where(electric, 0.30, 0.01)[:, None] * rng.lognormal(0, 0.2, (N, 1))
level = np.where(electric, 6, 8)[:, None] * rng.lognormal(0, 0.3, (N, 1))
weekend = np.array([1.1 if when.weekday() >= 5 else 1.0 for when in day[:-1]])
cold = np.maximum(16 - temperature, 0)
truth = level * (1 + response * cold) * weekend * rng.gamma(150, 1 / 150, (N, DAYS))

table = []
for n in range(N - UNREAD):  # the last three have not been billed yet
    edges = [0, *np.arange(rng.integers(5, 30), DAYS - 10, 30), DAYS]
    table += [(names[n], day[a], day[b], truth[n, a:b].sum()) for a, b in pairwise(edges)]
bills = dict(zip(["series", "start", "end", "total"], zip(*table, strict=True), strict=True))
readings = unsum.Readings.from_frame(bills)
weather = pa.table({"time": day[:-1], "temperature": temperature})
homes = pa.table({"series": names, "heating": np.where(electric, "electric", "gas")})

alone = unsum.recover(readings, "panel")
warm = unsum.recover(readings, "panel", indicators=weather)
told = unsum.recover(readings, "panel", indicators=weather, traits=homes, interval=0.9)
billed = truth[: N - UNREAD]
for label, result in (("bills alone", alone), ("and the temperature", warm), ("and homes", told)):
    error = measure(billed, result.values, np.ones_like(billed, dtype=bool)).normalised
    print(f"{label:<20} error {error:.1%}")

new = np.asarray(told.predict("pyarrow")["value"]).reshape(UNREAD, DAYS)
for n in range(UNREAD):
    print(f"{names[n - UNREAD]}, never billed: {new[n].sum():,.0f} predicted, "
          f"{truth[n - UNREAD].sum():,.0f} true")  # fmt: skip

n, some = 9, slice(45, 150)
figure, (upper, lower) = plt.subplots(
    2, 1, figsize=(9, 4.2), sharex=True, layout="constrained", height_ratios=(1, 2.4)
)
upper.plot(day[some], temperature[some], color="0.3", lw=1)
upper.set(ylabel="°C", title="temperature, and a customer who heats with electricity")
lower.plot(day[some], truth[n, some], color="0.7", lw=1.2, label="hidden truth")
lower.plot(day[some], alone.values[n, some], color=EVEN, label="from bills alone")
lower.plot(day[some], told.values[n, some], color=RECOVERED, lw=1.8,
           label="with the temperature and the heating")  # fmt: skip
lower.set(ylabel="kWh per day", ylim=(0, None))
lower.xaxis.set_major_formatter(mdates.DateFormatter("%d %b"))
lower.legend(frameon=False, ncols=3, loc="lower left")
for axes in (upper, lower):
    axes.spines[["top", "right"]].set_visible(False)
figure.savefig("weather.png", dpi=110)
