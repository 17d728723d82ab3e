"""Normal approximations of the posterior of a regression: where exact sub-sampling has its anchor, and its speeds."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pdmp.expressions.tape import CURVATURE, LANES
from pdmp.models.priors import derivative, second_derivative_bound
from pdmp.models.regressions.blocks import DIFFERENCE, Chunks
from pdmp.models.regressions.design import gram
from pdmp.models.regressions.group_intercepts import GroupIntercepts
from pdmp.models.regressions.mixed import MixedRegression
from pdmp.native.classes import entry

STEPS = 100  #: most steps of Newton's method
DECREMENT = 1e-3  #: a step by less, in posterior standard deviations, is the last
HALVINGS = 30
LONGEST = 2.0  #: largest change of a coordinate in a step; all are standardised


class Laplace(NamedTuple):
    """A normal approximation."""

    mean: np.ndarray  #: (d,)
    sd: np.ndarray  #: (d,) marginal standard deviations
    dense: np.ndarray  #: coordinates other than the groups' coefficients and log τ
    covariance: np.ndarray  #: (m, m) of these

    def draws(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Starts, (n, d): as far apart as the posterior is wide; groups independent."""
        x = self.mean + self.sd * rng.standard_normal((n, len(self.mean)))
        root = np.linalg.cholesky(self.covariance)
        x[:, self.dense] = self.mean[self.dense] + rng.standard_normal((n, len(self.dense))) @ root.T
        return x


def laplace(model: MixedRegression) -> Laplace | None:
    """The approximation at the mode, or None where it was not found.

    Of `GroupIntercepts` the mode is that of all others given τ, and τ the one whose square is the mean square of the
    effects with the variances that the approximation gives them (an EM step): the joint density has no mode, as it
    grows without bound where all effects are equal and τ is 0.
    """
    grouped, rows = isinstance(model, GroupIntercepts), _rows_of(model)
    first, stop = int(model.first[0]), int(model.first[-1])
    effects = np.arange(first, stop)
    dense = np.setdiff1d(np.arange(model.dim), np.r_[effects, np.arange(model.n_fixed, first)])
    x, spread = model.initial.copy(), model.n_fixed
    for _ in range(STEPS):
        gradient = rows.gradient(x)
        inverse, border, schur = _curvature(model, rows, x, dense, effects)
        share = _times_blocks(border, inverse)
        step = np.zeros(model.dim)
        step[dense] = np.linalg.solve(_definite(schur), gradient[dense] - share @ gradient[effects])
        step[effects] = _times_blocks((gradient[effects] - border.T @ step[dense])[None], inverse)[0]
        decrement = math.sqrt(max(gradient @ step, 0.0))
        step *= min(1.0, LONGEST / max(np.abs(step).max(), 1e-300))
        now = rows.potential(x)
        for _ in range(HALVINGS):
            there = rows.potential(x - step)
            if there <= now + 1e-9 * (1.0 + abs(now)):
                break
            step *= 0.5
        else:
            return None
        x -= step
        moved = 0.0
        if grouped:
            own = x[effects].reshape(model.n_groups, -1) - x[model.means, None]
            among = np.einsum("kl,glm,km->gk", model.mixing, inverse, model.mixing)  # variances of the effects
            squares = ((model.mixing @ own) ** 2 + among.T).sum(axis=1)
            for k, square in enumerate(squares):
                wider = _log_spread(model, k, float(square))
                moved = max(moved, abs(wider - x[spread + k]) * math.sqrt(2.0 * len(inverse)))
                x[spread + k] = wider
        if not np.all(np.isfinite(x)):
            return None
        if decrement < DECREMENT * math.sqrt(model.dim) and moved < 0.1:
            break
    else:
        return None
    if np.linalg.eigvalsh(schur)[0] <= 0.0:
        return None
    covariance = np.linalg.inv(schur)
    sd = np.zeros(model.dim)
    sd[dense] = np.sqrt(np.diag(covariance))
    if grouped:
        own = np.einsum("gkk->kg", inverse).ravel()
        sd[effects] = np.sqrt(own + np.einsum("ig,ij,jg->g", share, covariance, share))
        sd[spread:first] = 1.0 / math.sqrt(2.0 * len(inverse))
    return Laplace(x, sd, dense, covariance)


def _rows_of(model):
    """What is asked of the rows: in files, in memory on threads, or in memory."""
    if model.blocks is not None:
        return model.blocks
    return Chunks(model) if len(model.row_chunks()) > 1 else _Rows(model)


class _Rows:
    """What `laplace` asks of the rows of a model in memory; of others `blocks.Blocks` tells."""

    def __init__(self, model):
        self.model, self.potential, self.gradient = model, model.potential, model.gradient

    def curvature(self, x):
        """Σ of ℓ'' times products of the fixed columns (p, p), of those of a group (G, K, K), of both (p, K G)."""
        model, rows = self.model, row_curvatures(self.model, x)
        p, K = model.n_fixed, model.n_groups
        if not K:
            return gram(model.X, rows), np.zeros((0, 0, 0)), np.zeros((p, 0))
        G, level = int(model.first[1] - model.first[0]), model.level[:, 0] - model.first[0]
        own, border = np.zeros((G, K, K)), np.zeros((p, K * G))
        for k in range(K):
            for q in range(K):
                own[:, k, q] = np.bincount(level, rows * model.value[:, k] * model.value[:, q], G)
            for j in range(p):
                column = np.asarray(model.X[:, j], float) * model.value[:, k]
                border[j, k * G : (k + 1) * G] = np.bincount(level, rows * column, G)
        return gram(model.X, rows), own, border

    def differences(self, x, step):
        """Of each dispersion the central difference of ∇U along it, (d,)."""
        for j in range(self.model.dim - self.model.n_dispersions, self.model.dim):
            e = np.zeros(self.model.dim)
            e[j] = step
            yield (self.model.gradient(x + e) - self.model.gradient(x - e)) / (2.0 * step)


def _curvature(model, rows, x, dense, effects):
    """Blocks of the Hessian: inverses (G, K, K) of the groups' own, their border with the others, Schur complement."""
    p, hessian = model.n_fixed, np.zeros((len(dense), model.dim))
    hessian[:p, :p], blocks, hessian[:p, effects] = rows.curvature(x)
    for j in range(p):
        hessian[j, j] += second_derivative_bound(model.kinds[j], *model.numbers[j])
    if len(effects):
        K, G = model.n_groups, len(effects) // model.n_groups
        precision = (model.mixing.T * np.exp(-2.0 * x[p : p + K])) @ model.mixing
        for k in range(K):
            own = slice(effects[0] + k * G, effects[0] + (k + 1) * G)
            for q, j in enumerate(model.means):
                hessian[j, own] -= precision[k, q]
                hessian[j, model.means[k]] += precision[k, q] * G
        # Rows of a Student-t law that are far off are concave.
        values, vectors = np.linalg.eigh(blocks)
        blocks = (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1) + precision
        blocks = np.linalg.inv(blocks)
    for k, difference in enumerate(rows.differences(x, DIFFERENCE), p):
        hessian[k] = difference
        hessian[:p, dense[k]] = hessian[k, :p]
    border = hessian[:, effects]
    schur = hessian[:, dense] - _times_blocks(border, blocks) @ border.T
    return blocks, border, 0.5 * (schur + schur.T)


def _times_blocks(rows, blocks):
    """The product of rows (m, K G) with the block matrix of (G, K, K), coordinates ordered by column, then group."""
    if not len(blocks):
        return rows
    G, K, _ = blocks.shape
    return np.einsum("ikg,gkl->ilg", rows.reshape(-1, K, G), blocks).reshape(len(rows), -1)


def _definite(matrix):
    """With the absolute values of its eigenvalues: far from the mode a dispersion may have a negative one."""
    try:
        np.linalg.cholesky(matrix)
        return matrix
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(matrix)
        values = np.maximum(np.abs(values), 1e-10 * np.abs(values).max())
        return (vectors * values) @ vectors.T


def row_curvatures(model, x: np.ndarray) -> np.ndarray:
    """ℓ'' of each row by its linear predictor, times its weight, (N,)."""
    out = np.zeros(model.n_data)
    _row_curvatures(model.native, x, out, *model.scratch(LANES))
    return out


@entry
def _row_curvatures(model, x, out, eta, there, data, room):
    i, law = 0, model.likelihood
    while i < model.n_data:
        n = min(LANES, model.n_data - i)
        second = law.results[model.run_rows(CURVATURE, x, i, n, eta, data, room) + law.count]
        for lane in range(n):
            out[i + lane] = model.weight_of(i + lane) * room[second, lane]
        i += n


def _log_spread(model, column, square):
    """log τ of a group column at which the derivative of prior + G log τ + square / (2τ²) is 0, by bisection."""
    return _bisected(model.native, column, float(square))


@entry
def _bisected(model, column, square):
    place, count = model.n_fixed + column, model.first[column + 1] - model.first[column]
    kind, n = model.kinds[place], model.numbers
    low, high = -30.0, 30.0
    while high - low > 1e-9:
        s = 0.5 * (low + high)
        if derivative(kind, n[place, 0], n[place, 1], n[place, 2], s) + count - square * math.exp(-2.0 * s) > 0.0:
            high = s
        else:
            low = s
    return 0.5 * (low + high)
