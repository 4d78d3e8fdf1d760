"""Bills and the daily load of their feeders: what the sum of all tells about each.

python examples/feeder.py

The households of a simulated town have monthly bills, and are on six feeders whose daily load is
metered and includes three per cent of losses. Writes feeder.png.
"""

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa

import unsum
from unsum.experiments.town import simulate_town

LOSSES, FEEDERS = 1.03, 6
town = simulate_town(200, seed=5, n_days=240).truth
small = np.flatnonzero(town.values.mean(axis=1) < 25)[:120]
truth = unsum.Panel(town.names.take(pa.array(small)), town.calendar, town.values[small])
readings = unsum.aggregate(truth, unsum.Periodic(30, seed=1, ends=True))
names = truth.names.to_pylist()
feeders = {f"feeder {k + 1}": names[k::FEEDERS] for k in range(FEEDERS)}
days = truth.calendar.label_edges(slice(None)).to_pylist()
loads = pa.concat_tables(
    [
        pa.table(
            {
                "group": [feeder] * truth.n_periods,
                "start": days[:-1],
                "end": days[1:],
                "total": LOSSES * truth.values[k::FEEDERS].sum(axis=0),
            }
        )
        for k, feeder in enumerate(feeders)
    ]
)

alone = unsum.recover(readings)
together = unsum.recover(readings, groups=feeders, group_totals=loads)


def errors(values):
    """Of the median customer, and of the daily sum of all."""
    each = np.linalg.norm(values - truth.values, axis=1) / np.linalg.norm(truth.values, axis=1)
    everyone = truth.values.sum(axis=0)
    gap = np.linalg.norm(values.sum(axis=0) - everyone)
    return np.median(each), gap / np.linalg.norm(everyone)


for label, result in (("bills alone", alone), ("bills and feeders", together)):
    customer, everyone = errors(result.values)
    print(
        f"{label:<18} error of the median customer {customer:.1%}, of the daily sum {everyone:.2%}"
    )
gaps = together.gaps("pyarrow")
missed = np.sum(gaps["gap"]) / np.sum(gaps["total"])
print(f"losses found: loads exceed what the bills allow by {missed:.2%}")
print(*(finding.sentence for finding in together.findings if finding.code == "total-gap"))

when = slice(0, 90)  # a winter of the customer that depends most on it
n = int(np.argmax(truth.values[:, :60].sum(axis=1) / truth.values[:, 150:210].sum(axis=1)))
figure, axes = plt.subplots(figsize=(9, 3.4), layout="constrained")
axes.plot(days[when], truth.values[n, when], color="0.7", label="hidden truth")
axes.plot(days[when], alone.values[n, when], color="tab:orange", label="from bills alone")
axes.plot(days[when], together.values[n, when], color="tab:blue", label="with the feeder's load")
axes.set(ylabel="kWh per day", title=f"{names[n]}, billed every 30 days")
axes.legend(frameon=False)
figure.savefig("feeder.png", dpi=110)
