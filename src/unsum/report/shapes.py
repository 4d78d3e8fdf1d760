"""Shapes that series share: profiles with their calendar shape, and groups of similar series."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unsum.draws import sample_series
from unsum.report.survey import Rhythm, Survey, range_bins, rhythms_of

MOST_GROUPS = 5
MOST_LEARNED = 5_000  # series that the groups are formed from
MOST_COMPONENTS = 3  # ways in which series of a population differ
MOST_PROFILES = 12
MOST_NAMED = 5
MOST_TOLD = 3.0  # times its mean: what is higher tells no more of the shape of a series


@dataclass(frozen=True)
class Shape:
    """A profile: its curve over the range, its rhythms, and the series that have most of it."""

    title: str
    note: str
    curve: np.ndarray
    rhythms: tuple[tuple[Rhythm, np.ndarray], ...]
    members: tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """Series of similar shape: how many, how much of all, and what they look like."""

    title: str
    n_series: int
    share: float
    curve: np.ndarray
    rhythm: tuple[Rhythm, np.ndarray] | None
    members: tuple[str, ...]


def describe_profiles(survey: Survey) -> list[Shape]:
    """The profiles that were learned: those of a factorisation, or a population's usual course."""
    recovery = survey.recovery
    if recovery.profiles is not None and recovery.weights is not None:
        return _factors(survey, recovery.profiles, recovery.weights)
    if recovery.population is not None:
        return _population(survey)
    return []


def _factors(survey: Survey, profiles: np.ndarray, weights: np.ndarray) -> list[Shape]:
    amounts = weights * profiles.sum(axis=0)
    whole = max(float(amounts.sum()), np.finfo(float).tiny)
    shares = amounts / np.maximum(amounts.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    found: list[Shape] = []
    for k in np.argsort(-amounts.sum(axis=0), kind="stable")[:MOST_PROFILES]:
        part = float(amounts[:, k].sum()) / whole
        curve = profiles[:, k] / max(float(profiles[:, k].mean()), np.finfo(float).tiny)
        members = _names(survey, shares[:, k])
        title = f"Profile {len(found) + 1}"
        found.append(_shape(survey, title, f"{part:.0%} of the total", curve, members))
    return found


def _population(survey: Survey) -> list[Shape]:
    """The mean course, and the directions in which series differ most from it."""
    population = survey.recovery.population
    assert population is not None
    mean = population.mean / max(float(population.mean.mean()), np.finfo(float).tiny)
    note = "the course of a series of average level, before its own readings"
    found = [_shape(survey, "The usual course", note, mean, ())]
    size, directions = np.linalg.eigh(population.covariance)
    whole = max(float(size[size > 0].sum()), np.finfo(float).tiny)
    cuts = range_bins(len(mean))
    for k in range(min(MOST_COMPONENTS, len(size))):
        variance, direction = float(size[-1 - k]), directions[:, -1 - k]
        if variance <= 0.02 * whole:
            break
        direction = direction * (1.0 if direction[np.argmax(np.abs(direction))] > 0 else -1.0)
        means = np.add.reduceat(direction, cuts[:-1]) / np.diff(cuts)
        scores = survey.shapes[:, : len(means)] @ (means * np.diff(cuts))
        note = f"{variance / whole:.0%} of how series differ: one that has much of it"
        curve = mean + 2 * np.sqrt(variance) * direction
        found.append(_shape(survey, f"Difference {k + 1}", note, curve, _names(survey, scores)))
    return found


def _shape(
    survey: Survey, title: str, note: str, curve: np.ndarray, members: tuple[str, ...]
) -> Shape:
    rhythms = rhythms_of(survey.recovery.readings.calendar)
    means = tuple((rhythm, rhythm.means(curve[None, :])[0]) for rhythm in rhythms)
    return Shape(title, note, curve, means, members)


def _names(survey: Survey, scores: np.ndarray) -> tuple[str, ...]:
    """The series with the largest scores, of those that are not zero."""
    scores = np.where(survey.level[: len(scores)] > 0, scores, -np.inf)
    names = survey.recovery.readings.names
    best = np.argsort(-scores, kind="stable")[:MOST_NAMED]
    return tuple(str(names[int(n)].as_py()) for n in best if np.isfinite(scores[n]))


def group_series(survey: Survey) -> list[Group]:
    """Groups of similar series, the largest first: k-means of their shapes."""
    from scipy.cluster.vq import kmeans2, vq

    useful = np.flatnonzero(survey.level > 0)
    count = min(MOST_GROUPS, len(useful) // 6)
    if count < 2:
        return []
    readings = survey.recovery.readings
    shapes = survey.shapes[useful]
    spread = np.sqrt(np.clip(shapes, 0.0, MOST_TOLD))  # a few spikes should not make a group
    sample = spread
    if len(useful) > MOST_LEARNED:
        sample = spread[sample_series(readings.names.take(useful), MOST_LEARNED, 0)]
    centres, _ = kmeans2(sample, count, minit="++", rng=np.random.default_rng(0), missing="warn")
    belongs, far = vq(spread, centres)
    n_bins = len(range_bins(readings.n_periods)) - 1
    rhythms = rhythms_of(readings.calendar)[:1]
    whole = float(survey.level.sum())
    groups: list[Group] = []
    for which in np.argsort(-np.bincount(belongs, minlength=count), kind="stable"):
        own = np.flatnonzero(belongs == which)
        if not len(own):
            continue
        middle = shapes[own].mean(axis=0)
        nearest = useful[own[np.argsort(far[own], kind="stable")[:MOST_NAMED]]]
        share = float(survey.level[useful[own]].sum()) / whole
        rhythm = (rhythms[0], middle[n_bins:]) if rhythms else None
        names = tuple(str(readings.names[int(n)].as_py()) for n in nearest)
        title = f"Group {len(groups) + 1}"
        groups.append(Group(title, len(own), share, middle[:n_bins], rhythm, names))
    return groups
