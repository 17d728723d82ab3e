"""`laplace` of crossed intercepts: the effects of different groupings have a sparse border, of an entry a row.

The equations of the effects are solved by conjugate gradients, whose condition depends on how groups are crossed, but
not on how many there are: the gauges of `CrossedIntercepts` leave no direction in which all of them are loose.
"""

from __future__ import annotations

import math

import numpy as np

from pdmp.models.priors import second_derivative_bound
from pdmp.models.regressions.crossed_intercepts import CrossedIntercepts
from pdmp.models.regressions.design import gram
from pdmp.models.regressions.laplace import (
    DECREMENT,
    DIFFERENCE,
    HALVINGS,
    LONGEST,
    STEPS,
    Laplace,
    _definite,
    _log_spread,
    _Rows,
    row_curvatures,
)

ACCURACY = 1e-5  #: of conjugate gradients, relative to the right-hand side
ROUNDS = 200  #: most of them


def laplace_crossed(model: CrossedIntercepts) -> Laplace | None:
    """The approximation at the mode, or None where it was not found.

    As `laplace` of `GroupIntercepts`: the mode of all others given τ, and τ by EM steps. But of the dispersions it is
    the mode with the effects integrated out, by half the logarithm of the determinant of their Hessian, of which the
    diagonal is used: at the joint mode σ is too small by the share of the coefficients in the number of rows, which is
    many posterior standard deviations. The variances of effects are those given the means and all effects that share no
    row with them, and what the uncertainty of the others adds; exact sub-sampling needs no more than their size.
    """
    p, K = model.n_fixed, model.n_groups
    first, stop = int(model.first[0]), int(model.first[-1])
    effects, laws = np.arange(first, stop), np.arange(model.dim - model.n_dispersions, model.dim)
    dense = np.r_[np.arange(p), model.means[1:], laws]
    x = model.initial.copy()
    for _ in range(STEPS):
        gradient, curvature = model.gradient(x), _Curvature(model, x, dense)
        gradient[laws] += curvature.spread_slopes(laws)
        border = curvature.border[:, effects]
        solved = curvature.solve(np.vstack([gradient[effects], border]))
        share = solved[1:]
        schur = curvature.border[:, dense] - share @ border.T
        schur = 0.5 * (schur + schur.T)
        step = np.zeros(model.dim)
        step[dense] = np.linalg.solve(_definite(schur), gradient[dense] - share @ gradient[effects])
        step[effects] = solved[0] - step[dense] @ share
        decrement = math.sqrt(max(gradient @ step, 0.0))
        step *= min(1.0, LONGEST / max(np.abs(step).max(), 1e-300))
        now = model.potential(x) + curvature.spread(x[laws])
        for _ in range(HALVINGS):
            there = model.potential(x - step) + curvature.spread(x[laws] - step[laws])
            if there <= now + 1e-9 * (1.0 + abs(now)):
                break
            step *= 0.5
        else:
            return None
        x -= step
        moved, variances = 0.0, curvature.variances()
        for k in range(K):
            own = slice(model.first[k], model.first[k + 1])
            square = np.sum((x[own] - x[model.means[k]]) ** 2 + variances[own.start - first : own.stop - first])
            wider = _log_spread(model, k, float(square))
            moved = max(moved, abs(wider - x[p + k]) * math.sqrt(2.0 * (own.stop - own.start)))
            x[p + k] = wider
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
    sd[effects] = np.sqrt(variances + np.einsum("ig,ij,jg->g", share, covariance, share))
    for k in range(K):  # the information on log τ, without that in the effects which the rows leave open
        own = variances[model.first[k] - first : model.first[k + 1] - first] * math.exp(-2.0 * x[p + k])
        sd[p + k] = 1.0 / math.sqrt(2.0 * np.sum(np.maximum(1.0 - own, 0.1) ** 2))
    return Laplace(x, sd, dense, covariance)


class _Curvature:
    """The Hessian at a point, of rows that are not concave: those of a Student-t law that are far off are left out."""

    def __init__(self, model, x, dense):
        from scipy import sparse

        p, K, first = model.n_fixed, model.n_groups, int(model.first[0])
        groups, rows = np.diff(model.first), _rows(model, x)
        self.model, self.x, precision = model, x, np.exp(-2.0 * x[p : p + K])
        self.parts = [slice(a - first, b - first) for a, b in zip(model.first[:-1], model.first[1:], strict=True)]
        level = model.level - model.first[:-1]
        self.level, self.prior = level, np.repeat(precision, groups)
        self.diagonal = self.of_groups(rows) + self.prior
        self.crossed = {
            (k, q): sparse.csr_matrix((rows, (level[:, k], level[:, q])), shape=(groups[k], groups[q]))
            for k in range(K)
            for q in range(k + 1, K)
        }
        self.gauges = np.zeros((K, len(self.diagonal)))
        for k, own in enumerate(self.parts):
            self.gauges[k, own] = math.sqrt(model.stiffness[k]) * model.share[own]

        self.border = hessian = np.zeros((len(dense), model.dim))
        hessian[:p, :p] = gram(model.X, rows)
        for j in range(p):
            if j != model.intercept:
                hessian[j, j] += second_derivative_bound(model.kinds[j], *model.numbers[j])
                column = rows * np.asarray(model.X[:, j], float)
                for k in range(K):
                    hessian[j, model.first[k] : model.first[k + 1]] = np.bincount(level[:, k], column, groups[k])
        bound = second_derivative_bound(model.kinds[model.intercept], *model.numbers[model.intercept])
        for k, j in enumerate(model.means):
            n = model.intercept if k == 0 else p + k - 1  # its place in `dense`
            hessian[n, model.means] += bound
            hessian[n, j] += precision[k] * groups[k]
            hessian[n, model.first[k] : model.first[k + 1]] = -precision[k]
        for n, difference in enumerate(_Rows(model).differences(x, DIFFERENCE), p + K - 1):
            hessian[n] = difference
            hessian[: p + K - 1, dense[n]] = difference[dense[: p + K - 1]]

    def of_groups(self, rows):
        """Sums over the rows of each group of each grouping, (groups of all,)."""
        return np.concatenate(
            [np.bincount(g, rows, s.stop - s.start) for g, s in zip(self.level.T, self.parts, strict=True)]
        )

    def spread(self, laws):
        """½ Σ log Dₑ with other dispersions, which is ½ log det of the effects' Hessian but for their crossing."""
        if not len(laws):
            return 0.0
        x = self.x.copy()
        x[len(x) - len(laws) :] = laws
        return 0.5 * float(np.sum(np.log(self.of_groups(_rows(self.model, x)) + self.prior)))

    def spread_slopes(self, laws):
        """Its derivatives by the dispersions."""
        found = []
        for k in range(len(laws)):
            step = DIFFERENCE * (np.arange(len(laws)) == k)
            found.append((self.spread(self.x[laws] + step) - self.spread(self.x[laws] - step)) / (2.0 * DIFFERENCE))
        return np.array(found)

    def product(self, y):
        """The Hessian of the effects times the rows of y (n, groups of all)."""
        out = y * self.diagonal + (y @ self.gauges.T) @ self.gauges
        for (k, q), border in self.crossed.items():
            out[:, self.parts[k]] += (border @ y[:, self.parts[q]].T).T
            out[:, self.parts[q]] += (border.T @ y[:, self.parts[k]].T).T
        return out

    def solve(self, b):
        """Conjugate gradients of each row of b, preconditioned by the diagonal."""
        y, left = np.zeros_like(b), b.copy()
        size = (left**2 / self.diagonal).sum(axis=1)
        enough, way, now = ACCURACY**2 * size, left / self.diagonal, size
        for _ in range(ROUNDS):
            if np.all(now <= enough):
                break
            there = self.product(way)
            far = np.divide(now, (way * there).sum(axis=1), out=np.zeros(len(b)), where=now > enough)[:, None]
            y += far * way
            left -= far * there
            before, now = now, (left**2 / self.diagonal).sum(axis=1)
            way = left / self.diagonal + np.divide(now, before, out=np.zeros(len(b)), where=before > 0.0)[:, None] * way
        return y

    def variances(self):
        """1 / (Dₑ - Σₕ Hₑₕ² / Dₕ) of each effect, h those of other groupings that share rows with it."""
        known = np.zeros(len(self.diagonal))
        for (k, q), border in self.crossed.items():
            squares = border.power(2)
            known[self.parts[k]] += squares @ (1.0 / self.diagonal[self.parts[q]])
            known[self.parts[q]] += squares.T @ (1.0 / self.diagonal[self.parts[k]])
        return 1.0 / np.maximum(self.diagonal - known, 0.1 * self.diagonal)


def _rows(model, x):
    """ℓ'' of the rows, 0 where it is negative."""
    return np.maximum(row_curvatures(model, x), 0.0)
