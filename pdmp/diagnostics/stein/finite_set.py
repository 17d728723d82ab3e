"""The finite-set Stein discrepancy."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pdmp.diagnostics.stein.adam import maximise
from pdmp.diagnostics.stein.inputs import check_draws, overflows
from pdmp.diagnostics.stein.kernels import SteinKernel, as_kernel
from pdmp.diagnostics.stein.pairs import TILE, tiled
from pdmp.native.arguments import count, one_of
from pdmp.native.classes import entry, vectorised


def fssd(
    x: ArrayLike,
    scores: ArrayLike,
    locations: int | ArrayLike = 10,
    optimise: bool = True,
    seed: int = 0,
    *,
    kernel: str | SteinKernel = "gaussian",
    statistic: str = "v",
    criterion: str = "fssd",
    iterations: int = 100,
    rate: float = 1e-3,
) -> float:
    """Finite-set Stein discrepancy: the Stein witness function at a few locations, in time linear in the draws.

    Parameters
    ----------
    x, scores : array_like, shape (P, d)
        As of `ksd`.
    locations : int or array_like of shape (J, d), default 10
        Where the witness is evaluated; a number J of them is drawn from the normal law with the draws' mean and
        covariance.
    optimise : bool, default True
        FSSD-opt: maximise `criterion` over the locations by Adam first. The result is then larger than at random
        locations, and no longer unbiased.
    seed : int, default 0
        Seed of the locations.
    kernel : "gaussian", "imq", or one of `imq` and `gaussian`
    statistic : {"v", "u"}
        "v": FSSD, the root mean square of the witness, never negative. "u": FSSD², unbiased at fixed locations,
        so it can be negative.
    criterion : {"fssd", "power"}
        What the locations maximise: FSSD², or FSSD² over its standard deviation (the test's power).
    iterations, rate : int, float, default 100 and 0.001
        Number of iterations and step of Adam.

    Returns
    -------
    float
        Infinite for fewer than three draws, which can lie at zeros of the witness, and for draws or scores beyond
        1e60, those of a chain that diverged.

    Raises
    ------
    ValueError
        For shapes that do not fit, draws, scores or locations that are not finite, and unknown options.

    Notes
    -----
    Jitkrittum et al. (2017), eqs 3 and 5; O(P J d) an iteration.

    Examples
    --------
    >>> import numpy as np
    >>> from pdmp.diagnostics import fssd, stein
    >>> x = np.array([[-1.0], [0.0], [1.0]])
    >>> options = {"locations": [[0.5]], "optimise": False, "kernel": stein.gaussian(1.0)}
    >>> fssd(x + 2.0, -(x + 2.0), **options) > fssd(x, -x, **options)  # off by two sd, and not
    True
    """
    x, scores = check_draws(x, scores)
    n, d = x.shape
    one_of("statistic", statistic, ("v", "u"))
    one_of("criterion", criterion, ("fssd", "power"))
    if n < 3 or overflows(x, scores):
        return math.inf
    if np.ndim(locations) == 0:
        spread = np.atleast_2d(np.cov(x.T)) + 1e-10 * np.eye(d)
        rng = np.random.default_rng(seed)
        size = count("locations", locations)
        v = rng.multivariate_normal(x.mean(axis=0), spread, size=size, method="eigh", check_valid="ignore")
    else:
        v = np.array(locations, dtype=float)
        if v.ndim != 2 or v.shape[1] != d or not np.all(np.isfinite(v)):
            raise ValueError(f"`locations` must be finite and of shape (J, {d}), got shape {v.shape}.")
    witness = Witness(x, scores, as_kernel(kernel, x))
    if optimise:
        v = maximise(lambda v: witness.gradient(v, criterion), v, iterations, rate)
    squared, biased = witness.squares(v)
    return math.sqrt(biased) if statistic == "v" else squared


@vectorised
def _distances(kernel, x, v, p, j, buffer):
    """φ, φ' and φ'' between the draws of tile p and location j, in the rows 0, 1 and 2 of `buffer`."""
    for i in range(TILE):
        buffer[0, i] = 0.0
    for k in range(x.shape[1]):
        vk = v[j, k]
        for i in range(TILE):
            difference = x[p, k, i] - vk
            buffer[0, i] += difference * difference
    for i in range(TILE):
        buffer[0, i], buffer[1, i], buffer[2, i] = kernel.profile(buffer[0, i])


@vectorised
def _add_means(x, s, v, weights, p, j, buffer, out):
    """out[j] += Σᵢ wᵢ ξ(xᵢ, vⱼ), over tile p."""
    for k in range(x.shape[1]):
        vk, total = v[j, k], 0.0
        for i in range(TILE):
            total += weights[p, i] * (s[p, k, i] * buffer[0, i] + 2.0 * buffer[1, i] * (x[p, k, i] - vk))
        out[j, k] += total


@vectorised
def _add_projections(x, s, v, u, p, j, buffer, along, square):
    """along[p, i] += ξ(xᵢ, vⱼ)·uⱼ and square[p, i] += |ξ(xᵢ, vⱼ)|²."""
    for k in range(x.shape[1]):
        vk, uk = v[j, k], u[j, k]
        for i in range(TILE):
            feature = s[p, k, i] * buffer[0, i] + 2.0 * buffer[1, i] * (x[p, k, i] - vk)
            along[p, i] += feature * uk
            square[p, i] += feature * feature


@vectorised
def _add_jacobian_products(x, s, v, weights, alpha, u, c, beta, p, j, buffer, out):
    """out[j] += Σᵢ wᵢ aᵢᵀ ∂ξ(xᵢ, vⱼ)/∂vⱼ with aᵢ = αᵢ uⱼ + cⱼ - β ξ(xᵢ, vⱼ), over tile p."""
    for i in range(TILE):
        buffer[3, i] = 0.0
        buffer[4, i] = 0.0
    for k in range(x.shape[1]):
        vk, uk, ck = v[j, k], u[j, k], c[j, k]
        for i in range(TILE):
            difference = x[p, k, i] - vk
            a = alpha[p, i] * uk + ck - beta * (s[p, k, i] * buffer[0, i] + 2.0 * buffer[1, i] * difference)
            buffer[3, i] += a * s[p, k, i]
            buffer[4, i] += a * difference
    for i in range(TILE):
        buffer[3, i] = buffer[1, i] * buffer[3, i] + 2.0 * buffer[2, i] * buffer[4, i]
    for k in range(x.shape[1]):
        vk, uk, ck, total = v[j, k], u[j, k], c[j, k], 0.0
        for i in range(TILE):
            difference = x[p, k, i] - vk
            a = alpha[p, i] * uk + ck - beta * (s[p, k, i] * buffer[0, i] + 2.0 * buffer[1, i] * difference)
            total += weights[p, i] * (buffer[3, i] * difference + buffer[1, i] * a)
        out[j, k] -= 2.0 * total


@entry
def _means(kernel, x, s, v, weights, out, buffer):
    for p in range(x.shape[0]):
        for j in range(v.shape[0]):
            _distances(kernel, x, v, p, j, buffer)
            _add_means(x, s, v, weights, p, j, buffer, out)


@entry
def _projections(kernel, x, s, v, u, along, square, buffer):
    for p in range(x.shape[0]):
        for j in range(v.shape[0]):
            _distances(kernel, x, v, p, j, buffer)
            _add_projections(x, s, v, u, p, j, buffer, along, square)


@entry
def _jacobian_products(kernel, x, s, v, weights, alpha, u, c, beta, out, buffer):
    for p in range(x.shape[0]):
        for j in range(v.shape[0]):
            _distances(kernel, x, v, p, j, buffer)
            _add_jacobian_products(x, s, v, weights, alpha, u, c, beta, p, j, buffer, out)


class Witness:
    """The features ξ(xᵢ, vⱼ) = s φ + 2 φ' (x - v) of draws at locations v (J, d), computed tile by tile."""

    def __init__(self, x, scores, kernel):
        self.n = len(x)
        self.centre = x.mean(axis=0)
        self.x, self.s = tiled((x - self.centre).T), tiled(scores.T)
        self.native = kernel.native
        self.is_draw = tiled(np.ones((1, self.n)))[:, 0]  # 1, and 0 for the zeros that fill the last tile
        self.buffer = np.empty((5, TILE))

    def means(self, v, weights):
        """Σᵢ wᵢ ξ(xᵢ, vⱼ), shape (J, d)."""
        out = np.zeros(v.shape)
        _means(self.native, self.x, self.s, v - self.centre, weights, out, self.buffer)
        return out

    def projections(self, v, u):
        """Σⱼ ξ(xᵢ, vⱼ)·uⱼ and Σⱼ |ξ(xᵢ, vⱼ)|², in tiles."""
        along, square = np.zeros(self.is_draw.shape), np.zeros(self.is_draw.shape)
        _projections(self.native, self.x, self.s, v - self.centre, u, along, square, self.buffer)
        return along * self.is_draw, square * self.is_draw

    def jacobian_products(self, v, alpha, u, c, beta):
        """Σᵢ aᵢⱼᵀ ∂ξᵢⱼ/∂vⱼ with aᵢⱼ = αᵢ uⱼ + cⱼ - β ξᵢⱼ, shape (J, d)."""
        out = np.zeros(v.shape)
        arguments = self.x, self.s, v - self.centre, self.is_draw, alpha, u, c, float(beta)
        _jacobian_products(self.native, *arguments, out, self.buffer)
        return out

    def squares(self, v):
        """The unbiased FSSD² and the square of FSSD."""
        n, mean = self.n, self.means(v, self.is_draw / self.n)
        biased = float(np.sum(mean * mean)) / v.size
        diagonal = float(self.projections(v, mean)[1].sum()) / (n * v.size)
        return (n * biased - diagonal) / (n - 1), biased

    def gradient(self, v, criterion):
        """Gradient (J, d) of the criterion in the locations."""
        n, size, nothing = self.n, v.size, np.zeros_like(v)
        mean = self.means(v, self.is_draw / n)
        ascent = 2.0 * self.jacobian_products(v, 0.0 * self.is_draw, nothing, n * mean, 1.0) / (n * (n - 1) * size)
        if criterion == "fssd":
            return ascent
        # The variance is 4 mean(qᵢ²) - 4 |m|⁴ with qᵢ = ξᵢ·m / size and the mean m. Its gradient has two parts: with m
        # held fixed, and that of m.
        norm = float(np.sum(mean * mean)) / size
        along, square = self.projections(v, mean / size)
        squared = (n * norm - float(square.sum()) / (n * size)) / (n - 1)
        variance = 4.0 * float(np.sum(along**2)) / n - 4.0 * norm**2
        through_mean = 8.0 / (n * size) * self.means(v, along / n) - 16.0 / (n * size) * norm * mean
        variance_ascent = self.jacobian_products(v, 8.0 / (n * size) * along, mean, through_mean, 0.0)
        spread = math.sqrt(max(variance, 0.0) + 1e-6)
        return ascent / spread - 0.5 * squared * variance_ascent / spread**3
