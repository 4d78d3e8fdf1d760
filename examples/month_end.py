"""What a month comes to before its last bills are in.

python examples/month_end.py

A simulated town at the end of June: bills are on twenty routes, so most of June is not yet billed.
Writes month_end.png.
"""

from itertools import pairwise

import matplotlib.dates as mdates
import matplotlib.pyplot as plt
import numpy as np
import pyarrow.compute as pc

import unsum
from unsum.experiments.picture import RECOVERED, TRUTH
from unsum.experiments.town import simulate_town

town = simulate_town(150, seed=2)
known = town.bills.filter(pc.field("end") <= pc.scalar("2023-07-01").cast("date32"))
readings = unsum.Readings.from_frame(
    known, range_start="2023-01-01", range_end="2023-07-01", drop_bad=True
)
recovery = unsum.recover(readings, interval=0.9)
months = recovery.totals("MS", by="all", backend="pyarrow").to_pylist()

truth = town.truth.values[:, : readings.n_periods]
true = [
    truth[:, begin:until].sum()
    for begin, until in pairwise([0, 31, 59, 90, 120, 151, 181])  # January to June
]
for row, actual in zip(months, true, strict=True):
    print(
        f"{row['start']:%B}: {row['total']:,.0f} kWh, {row['lower']:,.0f} to {row['upper']:,.0f}, "
        f"{row['covered']:.0%} of it read; true {actual:,.0f}"
    )
open_ = recovery.unbilled(by="all", backend="pyarrow").to_pylist()[0]
print(f"not yet billed: {open_['total']:,.0f} kWh, {open_['lower']:,.0f} to {open_['upper']:,.0f}")

values, covered = recovery.values, readings.covered()
day = np.arange(np.datetime64("2023-01-01"), np.datetime64("2023-07-01"))
billed = (values * covered).sum(axis=0)
figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 3.4), layout="constrained", width_ratios=(1.7, 1)
)
left.fill_between(day, billed, color=TRUTH, lw=0, label="in bills")
left.fill_between(
    day, billed, values.sum(axis=0), color=RECOVERED, alpha=0.75, lw=0, label="not billed"
)
left.set(title="all customers, kWh per day", ylim=(0, None), xlim=(day[0], day[-1]))
left.legend(frameon=False, loc="upper right")
label = [f"{row['start']:%b}" for row in months]
middle = np.array([row["total"] for row in months])
ends = np.array([[row["total"] - row["lower"], row["upper"] - row["total"]] for row in months]).T
right.errorbar(label, middle, ends, fmt="o", color=RECOVERED, capsize=4, label="recovered")
right.plot(label, true, "x", color="0.3", label="true")
right.set(title="months, kWh")
right.legend(frameon=False)
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
    axes.yaxis.set_major_formatter("{x:,.0f}")
left.xaxis.set_major_formatter(mdates.DateFormatter("%b"))
figure.savefig("month_end.png", dpi=110)
