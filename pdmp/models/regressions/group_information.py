"""What the data say of each group's effect, beside what the prior of the effects says: by a normal approximation."""

from __future__ import annotations

import copy
import math

import numpy as np

from pdmp.models.regressions.design import pieces
from pdmp.models.regressions.effect_information import Known, known_of, standardised
from pdmp.models.regressions.laplace import _log_spread
from pdmp.models.regressions.mixed import LAW_ELSEWHERE, MixedRegression
from pdmp.models.regressions.standardised_effects import Blocks, Coupling, EffectSet, StandardisedEffects
from pdmp.native.threads import one_thread

STEPS = 100  #: most steps of Newton's method, and of EM for the standard deviations of effects
DECREMENT = 0.05  #: steps by less, in posterior standard deviations, are the last
RELATIVE = 0.05  #: and of the standard deviations of effects by less than this share of them
SLOWEST = 0.9  #: EM is taken to leave so much of the way in each step, at most, and goes that way at once
LONGEST = 1.0  #: largest change of a coordinate in a step; all are standardised
DIFFERENCE = 1e-3  #: of linear predictors and log-dispersions, for derivatives of the log-likelihood
#: Directions of these, of the predictor and two dispersions: nowhere, then to both sides of each.
AROUND = ((0, 0, 0), (-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1))
#: Coefficients and effects up to which the information on one is what the others leave; beyond, it is that with all
#: others known, as their matrix is not inverted.
INVERTED = 800


def in_their_coordinates(model: MixedRegression) -> MixedRegression | StandardisedEffects:
    """A regression with effects of groups in coordinates that are about standard normal; as it is if none are found."""
    known = group_information(model)
    if known is None:
        return model
    base = copy.copy(model)
    base.centred = np.full_like(model.centred, LAW_ELSEWHERE)
    return standardised(base, effect_sets(base), known)


def effect_sets(model: MixedRegression) -> list[EffectSet]:
    """Coordinates of the effects of each group column."""
    ends, none = zip(model.first[:-1], model.first[1:], strict=True), np.zeros(0, np.int64)
    return [EffectSet(np.array([model.n_fixed + k]), none, np.arange(*part)[:, None]) for k, part in enumerate(ends)]


@one_thread()
def group_information(model: MixedRegression) -> Known | None:
    """The information at the mode of all others given τ, with τ by EM steps; None where that was not found."""
    p, first, stop = model.n_fixed, int(model.first[0]), int(model.first[-1])
    effects, laws = np.arange(first, stop), np.arange(model.dim - model.n_dispersions, model.dim)
    sizes, moving = np.diff(model.first), np.r_[np.arange(p), effects]
    x = model.initial.copy()
    changes, moves = np.zeros((2, model.n_groups))
    for _ in range(STEPS):
        slope, curvature, of_laws = _sums(model, x)
        prior = np.exp(-2.0 * np.repeat(x[p:first], sizes))
        slope[p:] -= prior * x[effects]
        own = np.r_[np.zeros(p), prior]
        rises, bends, bounds = model.prior_derivatives(np.arange(len(model.kinds)), np.r_[x[:first], x[laws]])
        slope[:p] -= rises[:p]
        own[:p] = bounds[:p]
        step, variances = _solved(curvature, own, slope)
        if step is None or not np.all(np.isfinite(step)):
            return None
        left = math.sqrt(max(float(slope @ step), 0.0))
        step *= min(1.0, LONGEST / max(np.abs(step).max(), 1e-300))
        x[moving] += step
        degrees = float(np.sum(1.0 - np.minimum(own * variances, 1.0)))
        for q, j in enumerate(laws):
            pull, bend = of_laws[q, 0] - rises[first + q], of_laws[q, 1] + bends[first + q]
            if q == 0 and model.likelihood.with_unit:  # at the joint mode it would be too small
                pull += degrees
            change = float(np.clip(pull / bend if bend > 0.0 else math.copysign(0.5, pull), -LONGEST, LONGEST))
            left = max(left, abs(change) * math.sqrt(max(bend, 0.0)))
            x[j] += change
        before = changes.copy()
        for k in range(model.n_groups):
            part = slice(model.first[k] - first, model.first[k + 1] - first)
            square = float(np.sum(x[first:stop][part] ** 2 + variances[p:][part]))
            changes[k] = _log_spread(model, k, square) - x[p + k]
            left_over = changes[k] / before[k] if before[k] else 0.0
            moves[k] = np.clip(changes[k] / (1.0 - np.clip(left_over, 0.0, SLOWEST)), -LONGEST, LONGEST)
        x[p:first] += moves
        if left < DECREMENT * math.sqrt(model.dim) and np.abs(moves).max() < RELATIVE:
            break
    else:
        return None
    return _information(model, x, curvature, own)


def _information(model, x, curvature, own):
    """From the curvature of the data (n, n), sparse, and the diagonal of that of the priors, of (β, u)."""
    p, first, sets = model.n_fixed, int(model.first[0]), effect_sets(model)
    n, fixed = len(own), np.arange(model.n_fixed)
    effects = np.arange(first, first + n - p)
    laws = [np.full((len(one.effects), 1, 1), math.exp(-2.0 * x[p + k])) for k, one in enumerate(sets)]
    if n <= INVERTED:
        data = curvature.toarray()
        return known_of(sets, laws, x, np.r_[fixed, effects], data + np.diag(own), data)
    by = curvature[p:, :p].toarray()
    score = (curvature.diagonal() + own)[p:] * x[effects]
    places = [one.effects[:, 0] - first for one in sets]
    known = [np.maximum(curvature.diagonal()[p:][place], 0.0)[:, None] for place in places]
    blocks = [
        Blocks.of_set(k, one, known[k][:, :, None], score[place][:, None])
        for k, (one, place) in enumerate(zip(sets, places, strict=True))
    ]
    return Known(x, blocks, Coupling(fixed, x[fixed], effects, by), known)


def _solved(curvature, own, slope):
    """The Newton step, and variances of all coefficients: with the others left open, or, of many, given them."""
    from scipy import linalg, sparse

    if len(own) > INVERTED:
        matrix = (curvature + sparse.diags(own)).tocsc()
        with np.errstate(all="ignore"):
            return sparse.linalg.spsolve(matrix, slope), 1.0 / matrix.diagonal()
    try:
        inverse = linalg.inv(curvature.toarray() + np.diag(own), check_finite=False)
    except np.linalg.LinAlgError:
        return None, None
    return inverse @ slope, np.maximum(np.diag(inverse), 0.0)


def _sums(model, x):
    """Of the log-likelihood at x: its slope by (β, u), minus its second derivatives, and both by the dispersions."""
    from scipy import sparse

    p, first, law = model.n_fixed, int(model.first[0]), model.likelihood
    n = p + int(model.first[-1]) - first
    a, c = (*x[model.dim - model.n_dispersions :], 0.0, 0.0)[:2]
    slope, curvature, of_laws, h = np.zeros(n), sparse.csr_matrix((n, n)), np.zeros((2, 2)), DIFFERENCE
    for s in pieces(model.X):
        X, y, value = np.asarray(model.X[s], float), np.asarray(model.target[s]), np.asarray(model.value[s])
        rows, level = len(y), np.asarray(model.level[s]) - first + p
        z = X @ x[:p] + np.sum(value * np.r_[x[:p], x[first : first + n - p]][level], axis=1)
        if len(model.offset):
            z += model.offset[s]
        weight = np.asarray(model.weight[s]) if len(model.weight) else np.ones(rows)
        given = [values[s] for values in model.given]
        with np.errstate(all="ignore"):
            here, low, high, *by_law = (
                law.log_likelihood(z + h * dz, y, a + h * da, c + h * dc, given)
                for dz, da, dc in AROUND[: 3 + 2 * model.n_dispersions]
            )
        bend = weight * np.maximum(2.0 * here - low - high, 0.0) / h**2
        places = np.hstack([np.tile(np.arange(p), (rows, 1)), level])
        parts = np.hstack([X, value])
        design = sparse.csr_matrix((parts.ravel(), places.ravel(), np.arange(rows + 1) * places.shape[1]), (rows, n))
        slope += design.T @ (weight * (high - low) / (2.0 * h))
        curvature = curvature + design.T @ sparse.diags(bend) @ design
        for q, (below, above) in enumerate(zip(by_law[::2], by_law[1::2], strict=True)):
            of_laws[q] += weight @ (above - below) / (2.0 * h), weight @ (2.0 * here - below - above) / h**2
    return slope, curvature, of_laws
