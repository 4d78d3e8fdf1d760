"""A new customer with one bill, on profiles that were learned from others and shared without them.

python examples/new_customer.py

Writes profiles.unsum, which holds nothing of a single customer, and new_customer.png.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

import unsum
from unsum.experiments.town import simulate_town

town = simulate_town(300, seed=7).truth
others = unsum.Panel(town.names[:200], town.calendar, town.values[:200])
unsum.recover(unsum.aggregate(others, unsum.Periodic(30, seed=2)), interval=0.9).save(
    "profiles.unsum", profiles_only=True
)

model = unsum.load("profiles.unsum")
print(model)
days = model.calendar.label_edges(slice(None)).to_pylist()
newcomers = unsum.Panel(town.names[200:], town.calendar, town.values[200:])
one_bill = {
    "series": newcomers.names,
    "start": [days[100]] * 100,
    "end": [days[160]] * 100,
    "total": newcomers.values[:, 100:160].sum(axis=1),
}
table = model.apply(one_bill, interval=0.9).to_arrow()
value, lower, upper = (
    np.asarray(table[name]).reshape(100, -1) for name in ("value", "lower", "upper")
)
inside = np.mean((newcomers.values >= lower) & (newcomers.values <= upper))
print(f"100 newcomers: {inside:.0%} of their days lie within intervals of nine in ten")

alone = {name: column[:1] for name, column in one_bill.items()}
begun = time.perf_counter()
model.apply(alone, interval=0.9).to_arrow()
taken = 1000 * (time.perf_counter() - begun)
print(f"one of them: a bill of 60 days to {len(days) - 1} days with intervals in {taken:.0f} ms")

n = 2
figure, axes = plt.subplots(figsize=(9, 3.4), layout="constrained")
axes.fill_between(
    days[:-1], lower[n], upper[n], color="tab:blue", alpha=0.2, lw=0, label="nine in ten"
)
axes.plot(days[:-1], newcomers.values[n], color="0.6", lw=0.8, label="hidden truth")
axes.plot(days[:-1], value[n], color="tab:blue", label="recovered")
axes.axvspan(days[100], days[160], color="tab:orange", alpha=0.15, lw=0, label="the one bill")
axes.set(ylabel="kWh per day", title="a new customer")
axes.legend(frameon=False, ncols=4)
figure.savefig("new_customer.png", dpi=110)
