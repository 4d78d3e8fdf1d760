"""What readings show and what they hide, in six pictures.

python examples/ideas.py

A made-up panel of customers who share weather and a week, read in different ways. Writes
ideas_dates.png, ideas_weeks.png, ideas_scale.png, ideas_uncovered.png, ideas_bound.png and
ideas_sums.png.
"""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

import unsum
from unsum.experiments.picture import EVEN, RECOVERED, TRUTH

plt.rcParams.update(
    {"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "font.size": 12}
)
N, DAYS = 60, 140
DAY = np.arange(DAYS)


def simulate(week=0.5, cold=0.5, noise=0.08, n=N, seed=4):
    """Days of customers of many sizes: cold spells and weekends that all have, more or less."""
    rng = np.random.default_rng(seed)
    spells = sum(np.exp(-(((DAY - at) / width) ** 2)) for at, width in ((24, 5), (63, 4), (106, 6)))
    weekend = np.where(DAY % 7 >= 5, -1.0, 0.4)
    shares = 1 + 0.25 * rng.standard_normal((2, n, 1))
    shape = 1 + cold * shares[0] * spells + week * shares[1] * weekend
    level = 10 * rng.lognormal(0, 0.5, (n, 1))
    return level * np.maximum(shape, 0.05) * (1 + noise * rng.standard_normal((n, DAYS)))


def read(values, shortest, longest, *, same=False, seed=1):
    """Bills of `shortest` to `longest` days, at the same dates or at each customer's own."""
    rng, rows = np.random.default_rng(seed), []
    for n in range(len(values)):
        if same:
            rng = np.random.default_rng(seed)
        edges = [int(rng.integers(0, longest))]
        while edges[-1] < DAYS:
            edges.append(min(edges[-1] + int(rng.integers(shortest, longest + 1)), DAYS))
        edges = [0, *edges] if edges[0] else edges
        rows += [(n, begin, until) for begin, until in pairwise(edges)]
    series, start, stop = np.array(rows).T
    total = [values[n, begin:until].sum() for n, begin, until in rows]
    return unsum.Readings.from_arrays(
        series, start, stop, total, n_series=len(values), n_periods=DAYS
    )


def strip(axes, readings, title):
    """The bills of the first customers, as bars from date to date."""
    for n in range(6):
        own = slice(readings.indptr[n], readings.indptr[n + 1])
        edges = [*readings.start[own], readings.stop[own][-1]]
        axes.hlines(-n, edges[0], edges[-1], color="0.6", lw=1)
        axes.plot(edges, [-n] * len(edges), "|", color="0.25", ms=7, mew=1.3)
    axes.set(yticks=[], title=title)
    axes.spines[:].set_visible(False)
    axes.tick_params(bottom=False, labelbottom=False)


def compare_dates():
    """The same customers with bills of a month: at the same dates, and at dates of their own."""
    values = simulate(week=0)
    figure, axes = plt.subplots(
        2, 2, figsize=(10, 4), sharex=True, sharey="row", layout="constrained",
        height_ratios=(1, 2.6),
    )  # fmt: skip
    for k, same in enumerate((True, False)):
        readings = read(values, 24, 34, same=same)
        recovered = unsum.recover(readings, "panel").values.sum(axis=0)
        strip(axes[0, k], readings, "everyone is read on the same days" if same
              else "everyone is read on days of their own")  # fmt: skip
        lower = axes[1, k]
        lower.fill_between(DAY, values.sum(axis=0), color=TRUTH, alpha=0.6, lw=0, label="truth")
        lower.plot(DAY, recovered, color=RECOVERED, lw=2, label="recovered")
        lower.set(xlabel="day", ylim=(0, None), xlim=(0, DAYS))
        missed = np.abs(recovered - values.sum(axis=0)).sum() / values.sum()
        print(f"{axes[0, k].get_title()}: the sum of all is missed by {missed:.1%}")
    axes[0, 0].set_ylabel("bills of\nsix of them", rotation=0, ha="right", va="center")
    axes[1, 0].set_ylabel("all customers")
    axes[1, 0].legend(loc="lower left", ncols=2)
    figure.savefig("ideas_dates.png", dpi=110)


def compare_weeks():
    """Bills of whole weeks and bills of 5 to 9 days: only the latter show the week."""
    values = simulate(cold=0.15)
    figure, axes = plt.subplots(1, 2, figsize=(10, 3), sharey=True, layout="constrained")
    some, n = slice(70, 98), 7
    for axis, (shortest, longest, title) in zip(
        axes, ((7, 7, "bills of exactly 7 days"), (5, 9, "bills of 5 to 9 days")), strict=True
    ):
        recovery = unsum.recover(read(values, shortest, longest), "panel")
        axis.stairs(values[n, some], np.arange(70, 99), fill=True, color=TRUTH, alpha=0.6,
                    label="truth")  # fmt: skip
        axis.stairs(recovery.values[n, some], np.arange(70, 99), color=RECOVERED, lw=2,
                    baseline=None, label="recovered")  # fmt: skip
        axis.set(title=title, xlabel="day", ylim=(0, None), xlim=(70, 98), xticks=range(70, 99, 7))
        gap = np.linalg.norm(recovery.values - values) / np.linalg.norm(values)
        print(f"{title}: error {gap:.1%}")
    axes[0].set_ylabel("one customer")
    axes[0].legend(loc="lower left", ncols=2)
    figure.savefig("ideas_weeks.png", dpi=110)


def weigh_sizes():
    """A factory among households: one profile for all, of raw series and of scaled ones."""
    values = simulate(week=0.3)
    rng = np.random.default_rng(0)
    wave = 1 + 0.6 * np.sin(2 * np.pi * DAY / 11) + 0.3 * rng.standard_normal(DAYS)
    values[0] = 1000 * np.maximum(wave, 0.05)
    readings = read(values, 5, 9)
    shares = {
        "customers": 1 / N,
        "their sum": values[0].sum() / values.sum(),
        "their squares": (values[0] ** 2).sum() / (values**2).sum(),
    }
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10, 3), layout="constrained", width_ratios=(1, 2)
    )
    left.barh(list(shares), list(shares.values()), color=EVEN)
    left.barh(list(shares), [1 - x for x in shares.values()], left=list(shares.values()),
              color=TRUTH, alpha=0.6)  # fmt: skip
    for k, share in enumerate(shares.values()):
        left.text(0.97, k, f"{share:.0%}", ha="right", va="center")
    left.set(title="the factory's share of", xticks=[])
    left.invert_yaxis()
    left.spines[:].set_visible(False)
    left.tick_params(left=False)
    n, some = 9, slice(0, 70)
    right.plot(DAY[some], values[n, some], color="0.7", lw=1.2, label="truth")
    for scale, colour, label in (
        (False, EVEN, "from raw series"), (True, RECOVERED, "from scaled series")
    ):  # fmt: skip
        found = unsum.recover(readings, "nmf", rank=1, scale=scale).values
        right.plot(DAY[some], found[n, some], color=colour, lw=1.8, label=label)
        errors = np.linalg.norm(found - values, axis=1) / np.linalg.norm(values, axis=1)
        whole = np.linalg.norm(found - values) / np.linalg.norm(values)
        print(f"{label}: error of the panel {whole:.1%}, of the median customer "
              f"{np.median(errors):.1%}")  # fmt: skip
    top = 1.35 * values[n, some].max()
    right.set(title="a household beside it", xlabel="day", xlim=(0, 70), ylim=(0, top))
    right.legend(loc="upper left", ncols=3)
    figure.savefig("ideas_scale.png", dpi=110)


def leave_uncovered():
    """A customer who is read in the first weeks alone; the others are read throughout."""
    values = simulate(week=0.2, n=N)
    season = 1 + 0.6 * np.cos(np.pi * DAY / DAYS)
    values *= season
    readings = read(values, 20, 34)
    kept = np.ones(readings.n_readings, dtype=bool)
    kept[readings.indptr[0] + 2 : readings.indptr[1]] = False
    readings = readings.keep(kept)
    until = int(readings.stop[readings.indptr[1] - 1])
    recovery = unsum.recover(readings, "panel", interval=0.9)
    table = recovery.to_arrow().slice(0, DAYS)
    lower, upper = (np.asarray(table[name]) for name in ("lower", "upper"))
    figure, axis = plt.subplots(figsize=(10, 3.2), layout="constrained")
    axis.axvspan(0, until, color="0.93", lw=0)
    axis.text(until / 2, values[0].max() * 1.13, "two bills", ha="center", color="0.35")
    axis.text((until + DAYS) / 2, values[0].max() * 1.13, "nothing was read", ha="center",
              color="0.35")  # fmt: skip
    axis.fill_between(DAY, lower, upper, step="mid", color=RECOVERED, alpha=0.2, lw=0,
                      label="nine in ten")  # fmt: skip
    axis.plot(DAY, values[0], color="0.55", lw=1, label="truth")
    axis.plot(DAY, unsum.recover(readings, "even").values[0], color=EVEN, label="mean rate (even)")
    axis.plot(DAY, recovery.values[0], color=RECOVERED, lw=2, label="as the others go on (panel)")
    axis.set(xlabel="day", ylabel="one customer", xlim=(0, DAYS), ylim=(0, values[0].max() * 1.25))
    figure.legend(loc="outside upper center", ncols=4)
    figure.savefig("ideas_uncovered.png", dpi=110)
    print(f"without readings from day {until}")


def bound_errors():
    """The stronger the week, the larger the error; bills of whole weeks cannot say so."""
    strengths = np.array([0.0, 0.2, 0.4, 0.6])
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.2), sharey=True, layout="constrained")
    for axis, (shortest, longest, title) in zip(
        axes, ((7, 7, "bills of exactly 7 days"), (5, 9, "bills of 5 to 9 days")), strict=True
    ):
        true, expected = [], []
        for strength in strengths:
            values = simulate(week=strength)
            recovery = unsum.recover(read(values, shortest, longest))
            level = values.mean(axis=1, keepdims=True)
            gap = np.linalg.norm((recovery.values - values) / level)
            true.append(gap / np.linalg.norm(values / level))
            expected.append(recovery.expected_error)
        axis.plot(strengths, true, "o-", color="0.4", label="true error")
        axis.plot(strengths, expected, "o-", color=RECOVERED, label="expected error")
        axis.set(title=title, xlabel="strength of the weekly rhythm")
        print(f"{title}, the strongest week: error {true[-1]:.1%}, expected {expected[-1]:.1%}")
    axes[0].set(ylim=(0, None), ylabel="error")
    axes[0].yaxis.set_major_formatter("{x:.0%}")
    axes[0].legend(loc="upper left")
    figure.savefig("ideas_bound.png", dpi=110)


def add_up():
    """Intervals of days, of a month, and of everyone."""
    values = simulate(week=0.2, noise=0.25)
    readings = read(values, 24, 34)
    recovery = unsum.recover(readings, "panel", interval=0.9)
    table = recovery.to_arrow()
    half = (np.asarray(table["upper"]) - np.asarray(table["lower"])).reshape(N, DAYS) / 2
    month = slice(40, 70)
    one = recovery.totals([0, 40, 70, DAYS], backend="pyarrow").slice(1, 1).to_pylist()[0]
    day = 64
    everyone = recovery.totals([0, day, day + 1, DAYS], by="all", backend="pyarrow")
    everyone = everyone.slice(1, 1).to_pylist()[0]
    rows = (
        (
            "one customer, one month",
            values[0, month].sum(),
            (
                ("daily intervals added up", one["total"], half[0, month].sum(), EVEN),
                ("interval of the month", one["total"], (one["upper"] - one["lower"]) / 2,
                 RECOVERED),
            ),
        ),
        (
            "one day, all customers",
            values[:, day].sum(),
            (
                ("intervals added up", everyone["total"], half[:, day].sum(), EVEN),
                ("as if independent", everyone["total"], np.sqrt((half[:, day] ** 2).sum()), EVEN),
                ("interval of the sum", everyone["total"],
                 (everyone["upper"] - everyone["lower"]) / 2, RECOVERED),
            ),
        ),
    )  # fmt: skip
    figure, axes = plt.subplots(1, 2, figsize=(10, 2.4), layout="constrained")
    for axis, (title, truth, bars) in zip(axes, rows, strict=True):
        for k, (label, middle, width, colour) in enumerate(bars):
            axis.errorbar(
                middle, -k, xerr=width, color=colour, lw=3, capsize=6, capthick=2, fmt="o"
            )
            print(f"{title}: {label} {middle:.0f} +- {width:.0f}, truth {truth:.0f}")
        axis.axvline(truth, color="0.4", lw=1, ls="--")
        axis.annotate("truth", (truth, 0.55), color="0.4", ha="center")
        axis.set(title=title, yticks=[-k for k in range(len(bars))], ylim=(-len(bars) + 0.4, 0.9))
        axis.set_yticklabels([label for label, *_ in bars])
    figure.savefig("ideas_sums.png", dpi=110)


compare_dates()
compare_weeks()
weigh_sizes()
leave_uncovered()
bound_errors()
add_up()
