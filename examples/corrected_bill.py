"""Bills that were estimated, corrected, credited and billed again.

python examples/corrected_bill.py

Meters are read by registers: what an estimate got wrong, the next actual reading makes up for. One
customer also has a bill over two months of which one was read as well, and one a credit. Writes
corrected_bill.png.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import unsum
from unsum.experiments.town import simulate_town

truth = simulate_town(100, seed=9, n_days=300).truth
readings = unsum.aggregate(truth, unsum.Periodic(30, offset=0, ends=True))
table = readings.to_frame("pandas").assign(quality="actual")
rng = np.random.default_rng(3)
for _, bills in table.groupby("series"):
    rows = bills.index.to_numpy()
    for row, following in zip(rows[1:-1:3], rows[2::3], strict=False):
        wrong = 0.3 * rng.standard_normal() * table.loc[row, "total"]
        table.loc[row, "total"] = max(table.loc[row, "total"] + wrong, 0.0)
        table.loc[following, "total"] -= table.loc[row, "total"] - bills.loc[row, "total"]
        table.loc[row, "quality"] = "estimated"

# The first customer was also read in the middle of a bill; the second got credit for a bill.
first, second = readings.names.to_pylist()[:2]
day = truth.calendar.label_edges(slice(None)).to_pylist()
more = pd.DataFrame(
    [
        (first, day[0], day[45], truth.values[0, :45].sum(), "actual"),
        (second, day[0], day[30], -table.loc[table["series"] == second, "total"].iloc[0], "actual"),
        (second, day[0], day[30], truth.values[1, :30].sum(), "actual"),
    ],
    columns=table.columns,
)
table = pd.concat([table, more], ignore_index=True)

options = {"overlaps": "solve", "negatives": "net"}
pairs = unsum.Readings.from_frame(table, true_up=True, **options)
for finding in pairs.findings:
    print(f"{finding.code}: {finding.sentence}")
recovery = unsum.recover(pairs)
naive = unsum.recover(unsum.Readings.from_frame(table.drop(columns="quality"), **options))


def error(values):
    level = truth.values.mean(axis=1, keepdims=True)
    return np.linalg.norm((values - truth.values) / level) / np.linalg.norm(truth.values / level)


print(f"every bill taken at its word: error {error(naive.values):.3f}")
print(f"estimates made up for:        error {error(recovery.values):.3f}")

n = 4
figure, axes = plt.subplots(figsize=(9, 3.4), layout="constrained")
axes.plot(day[:-1], truth.values[n], color="0.75", lw=0.8, label="hidden truth")
axes.plot(day[:-1], naive.values[n], color="tab:orange", label="every bill taken at its word")
axes.plot(day[:-1], recovery.values[n], color="tab:blue", label="estimates made up for")
for row in table[(table["series"] == readings.names[n].as_py())].itertuples():
    if row.quality == "estimated":
        axes.axvspan(row.start, row.end, color="tab:orange", alpha=0.12, lw=0)
axes.set(ylabel="kWh per day", title="a customer whose shaded bills were estimated")
axes.legend(frameon=False, ncols=3)
figure.savefig("corrected_bill.png", dpi=110)
