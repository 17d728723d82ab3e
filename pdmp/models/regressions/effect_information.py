"""What the data say of effects of groups and of coefficients, by normal approximations."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pdmp.models.base import Model
from pdmp.models.priors import second_derivatives
from pdmp.models.regressions.spread_coordinate import LARGEST, middle_of
from pdmp.models.regressions.standardised_effects import (
    Blocks,
    Coupling,
    EffectSet,
    StandardisedEffects,
    cholesky_factors,
    partial_correlations,
)
from pdmp.models.sums_of_terms import SumOfTerms
from pdmp.native.threads import one_thread

INVERTED = 250  #: coordinates up to which one matrix of all is made
TOGETHER = 32  #: coordinates of a block: a gradient costs about three multiplications for each triple of them
STEPS, LAST_STEPS = 60, 10  #: most Newton steps, and those that are left for the last law of effects
MOMENTS = 20  #: and EM steps for the law of effects
POINTS = 2  #: pairs of points around, over which densities are averaged
FARTHEST = 0.5  #: their largest standard deviation, of coordinates that are standardised
FOLLOWS = 0.01  #: square of a correlation with an effect, from which on a coefficient follows it
HALVED = 20  #: how often a step is halved at most
DECREMENT = 0.02  #: of a Newton step that is the last, in posterior standard deviations
RELATIVE = 0.1  #: changes of standard deviations by less than this share are the last
LEAST_WIDTH = 1e-5  #: of effects of a Gaussian process, where all but its first functions are 0
FLAT_SHARE = 1e-6  #: of its curvature by the data that a coordinate has by its prior, at least


class Known(NamedTuple):
    """What is known of the coordinates."""

    at: np.ndarray  #: (dim,) where
    blocks: list[Blocks]
    coupling: Coupling | None
    information: list[np.ndarray]  #: of each set (groups, d): precision of each effect by the data, all others known

    def shares(self, sets: Sequence[EffectSet]) -> list[np.ndarray]:
        """Of each set (groups, d): how much of the precision of an effect is that of the data."""
        precision = [np.exp(-2.0 * self.at[one.spreads]) / _widths(one, self.at)[:, None] ** 2 for one in sets]
        return [known / (known + own) for known, own in zip(self.information, precision, strict=True)]

    def middle(self, sets: Sequence[EffectSet]) -> list[np.ndarray]:
        """Of each set (d,): what t is, but for g(θ)."""
        return [
            np.array(
                [
                    middle_of(t, part * _widths(one, self.at) ** 2)
                    for t, part in zip(self.at[one.spreads], known.T, strict=True)
                ]
            )
            for one, known in zip(sets, self.information, strict=True)
        ]


def standardised(base: Model, sets: Sequence[EffectSet], known: Known) -> StandardisedEffects:
    """The model in coordinates that are about standard normal."""
    medians = [float(np.median(share)) for share in known.shares(sets)]
    words = [f"partly centred, half of them by {100.0 * share:.0f} % or more" for share in medians]
    return StandardisedEffects(base, sets, known.blocks, known.coupling, known.at, known.middle(sets), words)


@one_thread()
def effect_information(
    base: SumOfTerms, sets: Sequence[EffectSet], start: np.ndarray, fixed: Sequence[int]
) -> Known | None:
    """At about the mean of all others given the law of effects, which EM steps find; None where that was not found.

    It is the mode of the expected density, with coefficients and effects that vary as they do in the posterior: at the
    mode of the density itself, which effects of few rows each fit too well, the noise would be too small. `base` is
    without the law of effects; `fixed` are coordinates of coefficients.
    """
    if base.dim > INVERTED:
        return None
    y, free = start.copy(), np.ones(base.dim, bool)
    for one in sets:
        free[one.spreads], free[one.partials] = False, False
        free[one.lengths] = False
    moving = np.flatnonzero(free)
    steps, around = STEPS, np.zeros((1, base.dim))
    varying = np.searchsorted(moving, np.unique(np.concatenate([fixed, *(one.effects.reshape(-1) for one in sets)])))
    normal = np.random.default_rng(0).standard_normal((POINTS, len(varying)))
    normal = np.concatenate([normal, -normal])
    for turn in range(MOMENTS):
        if turn == 0:
            precision = _precision(base, sets, [_law(one, y) for one in sets], y, moving)[0]
        if precision is None:
            return None
        around = _around(np.linalg.inv(precision), varying, normal, moving, base.dim)
        laws = [_law(one, y) for one in sets]
        steps, precision, data = _newton(base, sets, laws, y, moving, steps, around)
        if precision is None:
            return None
        inverse = np.linalg.inv(precision)
        change = 0.0
        for one in sets:
            change = max(change, _moments(one, y, inverse, np.searchsorted(moving, one.effects)))
        if change < RELATIVE or steps <= 0:
            break
    laws = [_law(one, y) for one in sets]
    _, precision, data = _newton(base, sets, laws, y, moving, max(steps, LAST_STEPS), around)
    if precision is None:
        return None
    return known_of(sets, laws, y, moving, precision, data)


def _widths(one, y):
    """What standard deviations are multiplied by, (groups,), such that their squares can be inverted."""
    return np.maximum(one.widths(y), LEAST_WIDTH)


def _law(one, y):
    """Precision of the effects of each group by their law, (groups, d, d)."""
    a = cholesky_factors(y[one.spreads], y[one.partials])
    law = np.linalg.inv(a @ a.T + 1e-12 * np.diag(np.diag(a @ a.T)))
    return law / _widths(one, y)[:, None, None] ** 2


def _around(covariance, varying, normal, moving, dim):
    """Points around 0 with this covariance, of what varies; at most as far as standard deviations of `FARTHEST`."""
    part = covariance[np.ix_(varying, varying)]
    values, vectors = np.linalg.eigh(part)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    sd = np.sqrt(np.maximum(np.diag(part), 1e-300))
    found = np.zeros((len(normal), dim))
    found[:, moving[varying]] = normal @ root.T * np.minimum(1.0, FARTHEST / sd)
    return found


def _precision(base, sets, laws, y, moving):
    """The precision at y, and the part of it that is the data's; None where it is not finite."""
    data = _positive(base.data_sums(y)[1][np.ix_(moving, moving)])
    if data is None:
        return None, None
    own = second_derivatives(base.kinds, base.numbers, y)[moving]
    own = np.maximum(np.maximum(own, 0.0), FLAT_SHARE * np.maximum(np.diag(data), 1e-12))
    precision = data + np.diag(own)
    for one, law in zip(sets, laws, strict=True):
        for row, own_law in zip(np.searchsorted(moving, one.effects), law, strict=True):
            precision[np.ix_(row, row)] += own_law
            precision[row, row] -= own[row]
    return precision, data


def _newton(base, sets, laws, y, moving, steps, around):
    """Move y to the mode of the density that is expected around it; steps left, and the precision as above."""

    def expected(at):
        value = np.mean([base.potential(at + part) for part in around])
        for one, law in zip(sets, laws, strict=True):
            value += 0.5 * float(np.einsum("gi,gij,gj", at[one.effects], law, at[one.effects]))
        return value

    value = expected(y)
    while True:
        precision, data = _precision(base, sets, laws, y, moving)
        gradient = np.mean([base.gradient(y + part) for part in around], axis=0)
        for one, law in zip(sets, laws, strict=True):
            gradient[one.effects] += np.einsum("gi,gij->gj", y[one.effects], law)
        if precision is None or not np.all(np.isfinite(gradient)):
            return 0, None, None
        step = np.linalg.solve(precision, gradient[moving])
        decrement, size = float(step @ gradient[moving]), 1.0
        if decrement < DECREMENT**2 or steps <= 0:
            return steps, precision, data
        steps -= 1
        for _ in range(HALVED):
            other = y.copy()
            other[moving] -= size * step
            with np.errstate(all="ignore"):
                now = expected(other)
            if now < value - 1e-4 * size * decrement:
                break
            size *= 0.5
        else:
            return 0, precision, data
        y[:], value = other, now


def _positive(matrix):
    """The matrix without its negative eigenvalues, those of data far from their mode."""
    if not np.all(np.isfinite(matrix)):
        return None
    scale = np.sqrt(np.maximum(np.abs(np.diag(matrix)), 1e-12))
    with contextlib.suppress(np.linalg.LinAlgError):
        np.linalg.cholesky(matrix / np.outer(scale, scale))
        return matrix
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    if values[0] >= 0.0:
        return matrix
    return (vectors * np.maximum(values, 0.0)) @ vectors.T * np.outer(scale, scale)


def _moments(one, y, inverse, place):
    """One EM step for the law of a set; the largest change of the logarithm of a standard deviation."""
    widths, d = _widths(one, y), one.width
    u = y[one.effects] / widths[:, None]
    square = u.T @ u + sum(inverse[np.ix_(row, row)] / w**2 for row, w in zip(place, widths, strict=True))
    sd = np.sqrt(np.diag(square) / len(u))
    before = y[one.spreads].copy()
    y[one.spreads] = np.clip(np.log(np.maximum(sd, 1e-300)), -LARGEST, LARGEST)
    if d > 1:
        known = len(u) / (len(u) + 2.0 * d)
        correlation = known * square / np.sqrt(np.outer(np.diag(square), np.diag(square)))
        np.fill_diagonal(correlation, 1.0)
        y[one.partials] = partial_correlations(correlation)
    return float(np.abs(y[one.spreads] - before).max())


def known_of(
    sets: Sequence[EffectSet],
    laws: Sequence[np.ndarray],
    y: np.ndarray,
    moving: np.ndarray,
    precision: np.ndarray,
    data: np.ndarray,
) -> Known:
    """Blocks and how they depend on others, from the precision (n, n) of (β, u, …) and the data's part of it.

    `laws` are the precisions (groups, d, d) of the effects of each set by their law, y (dim,) is the mean, and
    `moving` (n,) are the coordinates of (β, u, …).
    """
    n, effects = len(moving), np.zeros(len(moving), bool)
    places = [np.searchsorted(moving, one.effects) for one in sets]
    for place in places:
        effects[place] = True
    others = np.flatnonzero(~effects)
    kept: list[int] = []
    for k in np.argsort([place.size for place in places], kind="stable"):
        if sum(places[q].size for q in kept) + places[k].size <= TOGETHER:
            kept.append(int(k))
    members = np.concatenate([np.zeros(0, np.int64), *(places[k].reshape(-1) for k in kept)])
    inside = _followers(precision, members, others)
    outside, apart = np.setdiff1d(others, inside), np.flatnonzero(effects)
    if len(inside):
        members, apart = np.concatenate([members, inside]), np.setdiff1d(apart, members)
    which, column = np.full(n, -1), np.zeros(n, np.int64)
    prior = np.zeros((n, n))
    for k, (place, law) in enumerate(zip(places, laws, strict=True)):
        which[place], column[place] = k, np.arange(sets[k].width)
        for row, own_law in zip(place, law, strict=True):
            prior[np.ix_(row, row)] = own_law
    own = np.diag(precision) - np.diag(data)
    prior[others, others] = own[others]
    coupled, columns = np.zeros((n, len(others))), np.arange(len(others))
    # Effects apart are known given all others, those in a block with others given the ones outside of it.
    alone, together = (np.setdiff1d(np.arange(n), known) for known in (others, outside))
    given = {False: np.linalg.inv(precision[np.ix_(together, together)])}
    given[True] = np.linalg.inv(precision[np.ix_(alone, alone)]) if len(outside) < len(others) else given[False]

    def block(rows):
        is_apart = np.all(np.isin(rows, apart))
        free, known = (alone, others) if is_apart else (together, outside)
        at, left = np.searchsorted(free, rows), prior[np.ix_(rows, rows)]
        information = _positive(_symmetric(np.linalg.inv(given[is_apart][np.ix_(at, at)])) - left)
        scale = np.where(effects[rows], 1.0, 1.0 / np.sqrt(np.maximum(np.diag(left), 1e-300)))
        score = (information + left) @ np.where(effects[rows], y[moving[rows]], 0.0)
        falls = given[is_apart][at] @ precision[np.ix_(free, known)]  # the mean, with the known ones
        coupled[rows[:, None], columns[np.isin(others, known)]] = (information + left) @ falls
        return scale, np.where(effects[rows], 0.0, y[moving[rows]]), _symmetric(information), score

    def blocks_of(rows):
        """Of each row a block."""
        scale, at, *found = zip(*map(block, rows), strict=True)
        return Blocks(moving[rows], which[rows[0]], column[rows[0]], scale[0], at[0], *map(np.array, found))

    blocks = [blocks_of(members[None])] if len(members) else []
    blocks += [blocks_of(place) for k, place in enumerate(places) if k not in kept]
    depends = np.concatenate([members, np.setdiff1d(apart, members)])
    coupling = Coupling(moving[others], y[moving[others]], moving[depends], coupled[depends])
    return Known(y, blocks, coupling, [np.diag(data)[place] for place in places])


def _followers(precision, members, others):
    """Others that go into the block of some effects: all if there is room, else those that follow the effects most."""
    room = TOGETHER - len(members)
    if not len(members) or len(others) <= room:
        return others if len(members) else others[:0]
    diagonal = np.diag(precision)
    shares = precision[np.ix_(members, others)] ** 2 / np.outer(diagonal[members], diagonal[others])
    most = shares.max(axis=0)
    first = np.argsort(-most, kind="stable")[:room]
    return np.sort(others[first[most[first] > FOLLOWS]])


def _symmetric(matrix):
    return 0.5 * (matrix + matrix.T)


def of_rows(
    sets: Sequence[EffectSet],
    at: np.ndarray,
    informations: Sequence[np.ndarray],
    scores: Sequence[np.ndarray],
    coupling: Coupling | None,
    least: float,
) -> Known:
    """From what rows say of each group at effects 0, of each with the others as they are there; of any number of them.

    Informations (groups, d, d) and scores (groups, d) are those of each set. With the score g and the information λ on
    an effect, Var g = λ + λ² τ², which has an estimate of τ²; it is at least `least` times the variance of what the
    data say of a usual group.
    """
    at, blocks, known = at.copy(), [], []
    for k, (one, information, score) in enumerate(zip(sets, informations, scores, strict=True)):
        d = one.width
        own, widths = np.diagonal(information, axis1=1, axis2=2), _widths(one, at)
        for q in range(d):
            said, slope = own[:, q] * widths**2, score[:, q] * widths
            positive = said[said > 0.0]
            if len(positive):
                variance = np.sum(slope**2 - said) / np.sum(said**2)
                variance = max(float(variance), least / float(np.median(positive)))
                at[one.spreads[q]] = np.clip(0.5 * math.log(variance), -LARGEST, LARGEST)
        known.append(own)
        blocks.append(Blocks.of_set(k, one, information, score))
    return Known(at, blocks, coupling, known)
