"""Peak and off-peak registers to hourly load: a few smart meters show the shape of a day.

python examples/registers.py

Forty customers over two weeks. Ten have smart meters; the others have two registers, peak from 7 to
22 and off-peak at night, read once a week. Writes registers.png.
"""

import matplotlib.pyplot as plt
import numpy as np

import unsum

N, DAYS, SMART = 40, 14, 10
rng = np.random.default_rng(1)
hour = np.arange(24 * DAYS) % 24
peak = (hour >= 7) & (hour < 22)

# Everyone has some of a morning, an evening and a night heater, and days of their own.
shapes = np.stack([np.exp(-(((hour - at + 12) % 24 - 12) ** 2) / width) for at, width in
                   ((7.5, 4), (19.5, 9), (2, 12))])  # fmt: skip
weights = rng.dirichlet([2, 3, 1], N) * rng.lognormal(0, 0.6, (N, 1))
truth = (0.15 * weights.sum(axis=1, keepdims=True) + weights @ shapes) * rng.gamma(
    12, 1 / 12, (N, 24 * DAYS)
)
names = [f"customer {n:02}" for n in range(N)]


def read(which, window, every):
    """The readings of one register of some customers."""
    panel = unsum.Panel.from_values(truth[which] * window, [names[n] for n in which])
    return unsum.aggregate(panel, unsum.Periodic(every, offset=0, ends=True))


smart, billed = np.arange(SMART), np.arange(SMART, N)
linear = unsum.LinearReadings.from_registers(
    {
        "smart": read(smart, np.ones_like(peak), 1),
        "peak": read(billed, peak, 24 * 7),
        "off-peak": read(billed, ~peak, 24 * 7),
    },
    {"smart": np.ones_like(peak), "peak": peak, "off-peak": ~peak},
)
recovery = unsum.recover(linear)
even = unsum.recover(linear, "even")


def error(values):
    level = truth[billed].mean(axis=1, keepdims=True)
    gap, size = (values - truth)[billed] / level, truth[billed] / level
    return np.linalg.norm(gap) / np.linalg.norm(size)


for label, result in (("even in each register", even), ("auto", recovery)):
    print(f"{label:<22} error {error(result.values):.3f} on customers with registers")
print(f"all {len(linear):,} readings are met, {len(recovery.readings.further):,} of registers")

one, some = 32, slice(24 * 7, 24 * 10)
figure, axes = plt.subplots(figsize=(9, 3.4), layout="constrained")
days = np.arange(24 * 7, 24 * 10) / 24
axes.plot(days, truth[one, some], color="0.7", label="hidden truth")
axes.plot(days, even.values[one, some], color="tab:orange", label="even in each register")
axes.plot(days, recovery.values[one, some], color="tab:blue", label="recovered")
axes.set(xlabel="day", ylabel="kWh per hour", title=f"{names[one]}, from two registers a week")
axes.legend(frameon=False)
figure.savefig("registers.png", dpi=110)
