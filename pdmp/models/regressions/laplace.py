"""Normal approximations of the posterior of a regression: where exact sub-sampling has its anchor, and its speeds."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pdmp.models.regressions.blocks import DIFFERENCE, Chunks
from pdmp.models.regressions.mixed import MixedRegression
from pdmp.native.classes import entry
from pdmp.native.threads import one_thread

STEPS = 100  #: most steps of Newton's method
DECREMENT = 1e-3  #: a step by less, in posterior standard deviations, is the last
HALVINGS = 30
LONGEST = 2.0  #: largest change of a coordinate in a step; all are standardised
ACCURACY = 1e-5  #: of conjugate gradients, relative to the right-hand side
ROUNDS = 200  #: most of them


class Laplace(NamedTuple):
    """A normal approximation."""

    mean: np.ndarray  #: (d,)
    sd: np.ndarray  #: (d,) marginal standard deviations
    dense: np.ndarray  #: coordinates other than the groups' coefficients, log τ and φ
    covariance: np.ndarray  #: (m, m) of these

    def draws(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Starts, (n, d): as far apart as the posterior is wide; groups independent."""
        x = self.mean + self.sd * rng.standard_normal((n, len(self.mean)))
        root = np.linalg.cholesky(self.covariance)
        x[:, self.dense] = self.mean[self.dense] + rng.standard_normal((n, len(self.dense))) @ root.T
        return x


@one_thread()
def laplace(model: MixedRegression) -> Laplace | None:
    """The approximation at the mode, or None where it was not found.

    Of `GroupIntercepts` the mode is that of all others given τ, and τ the one whose square is the mean square of the
    effects with the variances that the approximation gives them (an EM step): the joint density has no mode, as it
    grows without bound where all effects are equal and τ is 0. Likewise φ of correlated effects.

    Of several groupings the border of their coefficients is sparse, with an entry a row. The equations are solved by
    conjugate gradients, whose condition depends on how groups are crossed, but not on how many there are: the gauges
    leave no direction in which all of them are loose. The variances of coefficients are those given the means and all
    groups that share no row with theirs, and what the uncertainty of the others adds; exact sub-sampling needs no more
    than their size. And of the dispersions it is the mode with the coefficients integrated out, by half the logarithm
    of the determinant of their Hessian without the border: at the joint mode σ is too small by the share of the
    coefficients in the number of rows, which with crossed groups is many posterior standard deviations.
    """
    rows, first, stop = model.blocks or Chunks(model), int(model.first[0]), int(model.first[-1])
    effects, laws = np.arange(first, stop), np.arange(model.dim - model.n_dispersions, model.dim)
    lean = getattr(model, "lean", -1)
    dense = np.setdiff1d(np.arange(model.dim), np.r_[effects, np.arange(model.n_fixed, first), lean])
    x, spread, grouped = model.initial.copy(), model.n_fixed, model.n_groups > 0
    sizes = np.diff(model.first)
    share = np.zeros((len(dense), len(effects)))
    for _ in range(STEPS):
        gradient, here = rows.gradient(x), _Curvature(model, rows, x, dense)
        volume = here.volume_slopes()
        gradient[laws] += volume
        border = here.border[:, effects]
        # What is solved for the border is nearly the same as in the step before.
        solved = here.solve(np.vstack([gradient[effects], border]), np.vstack([np.zeros(len(effects)), share]))
        share = solved[1:]
        schur = here.border[:, dense] - share @ border.T
        schur = 0.5 * (schur + schur.T)
        step = np.zeros(model.dim)
        step[dense] = np.linalg.solve(_definite(schur), gradient[dense] - share @ gradient[effects])
        step[effects] = solved[0] - step[dense] @ share
        decrement = math.sqrt(max(gradient @ step, 0.0))
        step *= min(1.0, LONGEST / max(np.abs(step).max(), 1e-300))
        now = rows.potential(x)
        for _ in range(HALVINGS):
            there = rows.potential(x - step) - volume @ step[laws]
            if there <= now + 1e-9 * (1.0 + abs(now)):
                break
            step *= 0.5
        else:
            return None
        x -= step
        moved = 0.0
        if grouped:
            variances, of_effects = here.variances()
            mixing, effects_now = model.mixing_at(x), []
            for k, part in enumerate(of_effects):
                own = [x[model.first[q] : model.first[q + 1]] - x[model.means[q]] for q in range(k, model.end[k])]
                effects_now.append(mixing[k, k : model.end[k]] @ np.stack(own))
                wider = _log_spread(model, k, float(np.sum(effects_now[k] ** 2 + part)))
                moved = max(moved, abs(wider - x[spread + k]) * math.sqrt(2.0 * sizes[k]))
                x[spread + k] = wider
            if lean >= 0:
                information = float(np.sum(effects_now[1] ** 2 + of_effects[1]))
                change = float(effects_now[0] @ effects_now[1] + here.covariances().sum()) / information
                moved = max(moved, abs(change) * math.sqrt(information) * math.exp(-x[spread]))
                x[lean] += change
        if not np.all(np.isfinite(x)):
            return None
        if decrement < DECREMENT * math.sqrt(model.dim) and moved < 0.1:
            break
    else:
        return None
    if np.linalg.eigvalsh(schur)[0] <= 0.0:
        return None
    covariance, sd = np.linalg.inv(schur), np.zeros(model.dim)
    sd[dense] = np.sqrt(np.diag(covariance))
    if grouped:
        sd[effects] = np.sqrt(variances + np.einsum("ig,ij,jg->g", share, covariance, share))
        # The information on log τ, and φ, without that which the rows leave open.
        known = [np.maximum(1.0 - part * math.exp(-2.0 * x[spread + k]), 0.1) for k, part in enumerate(of_effects)]
        for k, one in enumerate(known):
            sd[spread + k] = 1.0 / math.sqrt(2.0 * np.sum(one**2))
        if lean >= 0:
            sd[lean] = math.exp(x[spread] - x[spread + 1]) / math.sqrt(np.sum(known[0] * known[1]))
    return Laplace(x, sd, dense, covariance)


class _Curvature:
    """The Hessian at a point: the border of the `dense` coordinates (m, d), and the blocks of groups' coefficients."""

    def __init__(self, model, rows, x, dense):
        self.model, self.rows, self.x = model, rows, x
        p, K, first, means = model.n_fixed, model.n_groups, int(model.first[0]), len(dense) - model.n_dispersions
        self.border = hessian = np.zeros((len(dense), model.dim))
        hessian[:p, :p], blocks, hessian[:p, first : int(model.first[-1])], self.crossed = rows.curvature(x)
        bounds = model.prior_derivatives(np.arange(p), x[:p])[2]
        hessian[np.arange(p), np.arange(p)] += bounds
        self.parts, self.priors, self.inverses, self.gauges = [], [], [], np.zeros((0, model.first[-1] - first))
        if blocks:
            precision, heads = np.exp(-2.0 * x[p : p + K]), model.means[model.head == np.arange(K)]
            others = np.searchsorted(dense, heads[1:])
            hessian[np.ix_(others, heads)] = hessian[heads[0], heads[1:]] = bounds[heads[0]]
            place = np.searchsorted(dense, model.means)
            for columns, block in zip(model.groupings(), blocks, strict=True):
                part = list(columns)
                M = model.mixing_at(x)[np.ix_(part, part)]
                prior = (M.T * precision[part]) @ M
                for a, k in enumerate(columns):
                    for b, q in enumerate(columns):
                        hessian[place[k], model.first[q] : model.first[q + 1]] -= prior[a, b]
                        hessian[place[k], model.means[q]] += prior[a, b] * len(block)
                self.parts.append(slice(model.first[columns[0]] - first, model.first[columns[-1] + 1] - first))
                self.priors.append(prior)
                # Rows of a Student-t law that are far off are concave.
                values, vectors = np.linalg.eigh(block)
                block = (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1) + prior
                self.inverses.append(np.linalg.inv(block))
            stiff = np.flatnonzero(model.stiffness)
            self.gauges = np.zeros((len(stiff), model.first[-1] - first))
            for n, k in enumerate(stiff):
                self.gauges[n, model.of_column(k)] = math.sqrt(model.stiffness[k]) * model.share[model.of_column(k)]
        for k, difference in enumerate(rows.differences(x, DIFFERENCE), means):
            hessian[k] = difference
            hessian[:means, dense[k]] = difference[dense[:means]]

    def volume_slopes(self):
        """Derivatives by the dispersions of ½ log det of the blocks, of crossed groups."""
        found = np.zeros(self.model.n_dispersions)
        if self.crossed is not None:
            for q, changes in enumerate(self.rows.changes_of_blocks(self.x)):
                pairs = zip(self.inverses, changes, strict=True)
                found[q] = 0.5 * sum(float(np.einsum("gkl,glk", inverse, change)) for inverse, change in pairs)
        return found

    def by_blocks(self, y, blocks):
        """The product of the rows of y (n, E) with a block matrix; coordinates are ordered by column, then group."""
        out = np.empty_like(y)
        for part, block in zip(self.parts, blocks, strict=True):
            G, K, _ = block.shape
            out[:, part] = np.einsum("ikg,gkl->ilg", y[:, part].reshape(-1, K, G), block).reshape(len(y), -1)
        return out

    def solve(self, b, start):
        """The inverse of the coefficients' Hessian times the rows of b, preconditioned by its blocks."""
        if self.crossed is None:
            return self.by_blocks(b, self.inverses)
        blocks, across = [np.linalg.inv(inverse) for inverse in self.inverses], self.crossed

        def times(y):
            mixed = (across @ y.T + across.T @ y.T).T
            return self.by_blocks(y, blocks) + (y @ self.gauges.T) @ self.gauges + mixed

        enough = ACCURACY**2 * (b * self.by_blocks(b, self.inverses)).sum(axis=1)
        y, left = start.copy(), b - times(start)
        way = ready = self.by_blocks(left, self.inverses)
        now = (left * ready).sum(axis=1)
        for _ in range(ROUNDS):
            if np.all(now <= enough):
                break
            there = times(way)
            far = np.divide(now, (way * there).sum(axis=1), out=np.zeros(len(b)), where=now > enough)[:, None]
            y += far * way
            left -= far * there
            ready = self.by_blocks(left, self.inverses)
            before, now = now, (left * ready).sum(axis=1)
            way = ready + np.divide(now, before, out=np.zeros(len(b)), where=before > 0.0)[:, None] * way
        return y

    def variances(self):
        """Of the coefficients given the dense coordinates, (E,), and of the effects of each group column, (G,).

        1 / (D - Σₕ H² / Dₕ) of each coefficient, 1 / D its variance given all other groups, h those that share rows.
        """
        given = np.concatenate([np.einsum("gkk->kg", inverse).ravel() for inverse in self.inverses])
        found = given
        if self.crossed is not None:
            squares = self.crossed.power(2)
            found = 1.0 / np.maximum(1.0 / given - (squares @ given + squares.T @ given), 0.1 / given)
        wider, of_effects = np.sqrt(found / given), []
        for part, inverse, columns in zip(self.parts, self.inverses, self.model.groupings(), strict=True):
            G, K, _ = inverse.shape
            M = self.model.mixing_at(self.x)[np.ix_(list(columns), list(columns))]
            turned = np.einsum("kl,lg->gkl", M, wider[part].reshape(K, G))
            of_effects += list(np.einsum("gkl,glm,gkm->kg", turned, inverse, turned))
        return found, of_effects

    def covariances(self):
        """Of both parts of correlated effects given the dense coordinates, (G,)."""
        M = self.model.mixing_at(self.x)
        return np.einsum("l,glm,m->g", M[0], self.inverses[0], M[1])


def _definite(matrix):
    """With the absolute values of its eigenvalues: far from the mode a dispersion may have a negative one."""
    try:
        np.linalg.cholesky(matrix)
        return matrix
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(matrix)
        values = np.maximum(np.abs(values), 1e-10 * np.abs(values).max())
        return (vectors * values) @ vectors.T


def _log_spread(model, column, square):
    """log τ of a group column at which the derivative of prior + G log τ + square / (2τ²) is 0, by bisection."""
    return _bisected(model.native, column, float(square))


@entry
def _bisected(model, column, square):
    place, count = model.n_fixed + column, model.first[column + 1] - model.first[column]
    low, high = -30.0, 30.0
    while high - low > 1e-9:
        s = 0.5 * (low + high)
        if model.derivative_of_prior(place, s) + count - square * math.exp(-2.0 * s) > 0.0:
            high = s
        else:
            low = s
    return 0.5 * (low + high)
