r"""Stein discrepancies: how far draws are from a target of which only the score ∇log π is known.

With a kernel k(x, y) = φ(ρ), ρ = (x - y)ᵀ Γ⁻¹ (x - y), and the scores s, s' at x and y, the Stein kernel is

    k_π(x, y) = s·s' φ - 2 φ' (s - s')·Γ⁻¹(x - y) - 2 φ' tr Γ⁻¹ - 4 φ'' |Γ⁻¹(x - y)|²

whose mean over y ~ π is zero for every x. Its double sum over draws is the kernelised Stein discrepancy `ksd`; features
of it at a few locations make the finite-set one, `fssd`; one-dimensional slices `sliced_ksd`; and adding the draw that
makes the discrepancy of the chosen ones least, one at a time, `stein_thin`.

None of them sees a mode that no draw has been near, and none is unchanged when a coordinate changes its unit: give a
`preconditioner` where scales differ.

Stochastic scores. Where the data are many, s may be an unbiased estimate from a mini-batch drawn anew for each draw:
``ksd(x, scores(Minibatch(model, 100), x), statistic="u")``. The noise of two draws is independent and k_π is linear in
each of the two scores, so that pairs of different draws keep their mean, and with them the U-statistic; its spread
grows with the noise. The V-statistic does not: its diagonal has s·s, and KSD² is larger by E[φ(0) tr Cov(s)] / P.
Between settings whose noise is alike it still ranks as exact scores do. FSSD is linear in each score as well, and its
U-statistic unbiased. Control variates have less noise, and none at their anchor.

References
----------
Gorham & Mackey (2017), Measuring sample quality with kernels, ICML (the inverse multiquadric); Liu, Lee & Jordan
(2016), A kernelized Stein discrepancy for goodness-of-fit tests, ICML (U-statistic); Jitkrittum, Xu, Szabó, Fukumizu &
Gretton (2017), A linear-time kernel goodness-of-fit test, NeurIPS (FSSD); Gong, Li & Hernández-Lobato (2021), Sliced
kernelized Stein discrepancy, ICLR; Riabiz et al. (2022), Optimal thinning of MCMC output, JRSS B 84.
"""

from __future__ import annotations

import concurrent.futures
import math
import os
import warnings

import numba
import numpy as np

from pdmp.gradients import as_provider
from pdmp.native.classes import Compiled, by_name, compiled, entry, vectorised
from pdmp.native.vectors import exp as _exp
from pdmp.process import KINDS

#: Draws handled together, an even number: their sums stay in the fastest cache. Plain Python only fills it in vain.
TILE = 4 if numba.config.DISABLE_JIT else 256
SLICE_DRAWS = 200  #: on which the slices of the sliced discrepancy are turned
MEDIAN_DRAWS = 1_000  #: of which all distances are taken for a median
FARTHEST = 1e60  #: where draws or scores are larger, a discrepancy is infinite: their fourth powers would soon overflow


# ---------------------------------------------------------------------------------------------------------------
# Kernels


class SteinKernel(Compiled):
    """Base of the kernels φ(ρ): ``profile(rho)`` returns φ, φ' and φ''."""

    @compiled
    def profile(self, rho):
        return 1.0, 0.0, 0.0


class RootIMQ(SteinKernel):
    """(c² + ρ)^-½, without a power in it."""

    square: float

    def __init__(self, c=1.0):
        self.square = float(c) ** 2

    @compiled
    def profile(self, rho):
        root = 1.0 / math.sqrt(self.square + rho)
        inverse = root * root
        cube = root * inverse
        return root, -0.5 * cube, 0.75 * cube * inverse


class PowerIMQ(SteinKernel):
    """(c² + ρ)^β."""

    square: float
    beta: float

    def __init__(self, c=1.0, beta=-0.5):
        self.square, self.beta = float(c) ** 2, float(beta)

    @compiled
    def profile(self, rho):
        b = self.square + rho
        power = math.pow(b, self.beta)
        first = self.beta * power / b
        return power, first, (self.beta - 1.0) * first / b


class GaussianKernel(SteinKernel):
    """exp(-ρ / (2 h²))."""

    rate: float

    def __init__(self, bandwidth):
        self.rate = 0.5 / float(bandwidth) ** 2

    @compiled
    def profile(self, rho):
        value = _exp(-self.rate * rho)
        return value, -self.rate * value, self.rate * self.rate * value


def imq(c=1.0, beta=-0.5):
    """The inverse multiquadric kernel (c² + ρ)^β, which detects non-convergence for β in (-1, 0)."""
    if not 0.0 < c < math.inf:
        raise ValueError(f"`c` must be a positive number, got {c!r}.")
    if not -1.0 < beta < 0.0:
        raise ValueError(f"`beta` must lie in (-1, 0), got {beta!r}.")
    return RootIMQ(c) if beta == -0.5 else PowerIMQ(c, beta)


def gaussian(bandwidth):
    """The kernel exp(-ρ / (2 h²)). Above two dimensions its discrepancy can vanish for draws that run away."""
    if not 0.0 < bandwidth < math.inf:
        raise ValueError(f"`bandwidth` must be a positive number, got {bandwidth!r}.")
    return GaussianKernel(bandwidth)


def _as_kernel(kernel, y):
    """The kernel that `kernel` is or names; the Gaussian's bandwidth is the median distance of the rows of `y`."""
    if isinstance(kernel, SteinKernel):
        return kernel
    if kernel == "imq":
        return imq()
    if kernel == "gaussian":
        return gaussian(_median_distance(y))
    raise ValueError(f'`kernel` must be "imq", "gaussian" or one of pdmp.diagnostics.stein, got {kernel!r}.')


def _median_distance(y):
    from scipy.spatial.distance import pdist

    some = y[:: max(len(y) // MEDIAN_DRAWS, 1)]
    median = float(np.median(pdist(some))) if len(some) > 1 else 0.0
    return median if median > 0.0 else 1.0


# ---------------------------------------------------------------------------------------------------------------
# Checks


def _check(x, scores, name="scores"):
    """`x` and `scores` as float arrays (P, d), or an error; warnings for draws that cannot tell anything."""
    x, scores = np.asarray(x, dtype=float), np.asarray(scores, dtype=float)
    if x.ndim == 1 and scores.ndim == 1:
        x, scores = x[:, None], scores[:, None]
    if x.ndim != 2 or x.size == 0:
        raise ValueError(f"`x` must have shape (draws, d), got {x.shape}.")
    if scores.shape != x.shape:
        raise ValueError(
            f"`{name}` must have the shape of `x`, {x.shape}, got {scores.shape}: one score ∇log π a draw."
        )
    for what, array in (("x", x), (name, scores)):
        bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
        if len(bad):
            raise ValueError(
                f"`{what}` must be finite; {len(bad)} of {len(array)} draws are not, the first is {bad[0]}."
            )
    n, d = x.shape
    if 1 < n < d:
        warnings.warn(f"{n} draws in {d} dimensions: a Stein discrepancy of so few says little.", stacklevel=3)
    if n > 1:
        constant = np.flatnonzero(np.ptp(x, axis=0) == 0.0)
        if len(constant):
            warnings.warn(f"coordinates {constant.tolist()} of `x` are constant: they never moved.", stacklevel=3)
    return x, scores


def _overflows(x, scores):
    """Whether draws or scores are so large that a discrepancy of them overflows."""
    return max(np.abs(x).max(), np.abs(scores).max()) > FARTHEST


def _check_weights(weights, n):
    if weights is None:
        return np.full(n, 1.0 / n)
    weights = np.asarray(weights, dtype=float)
    if weights.shape != (n,):
        raise ValueError(f"`weights` must have shape ({n},), one for each draw, got {weights.shape}.")
    total = weights.sum()
    if not abs(total - 1.0) < 1e-6:
        raise ValueError(f"`weights` must sum to 1, they sum to {total:.6g}.")
    return weights


def _cholesky(preconditioner, x):
    """L of Γ = LLᵀ; None for the identity."""
    if preconditioner is None:
        return None
    d, what, least = x.shape[1], "`preconditioner` must be positive definite.", 0.0
    if isinstance(preconditioner, str):
        if preconditioner != "covariance":
            raise ValueError(f'`preconditioner` must be None, "covariance" or an array, got {preconditioner!r}.')
        preconditioner = np.cov(x.T) if len(x) > 1 else np.zeros((d, d))
        least = 1e-10  # of a coordinate's variance, what the ones before it leave unexplained
        what = (
            f"the covariance of the {len(x)} draws is not positive definite: there are too few, or a coordinate does "
            "not move by itself; give another `preconditioner`, or None."
        )
    gamma = np.array(preconditioner, dtype=float)
    gamma = np.diag(np.broadcast_to(gamma, (d,))) if gamma.ndim < 2 else gamma
    if gamma.shape != (d, d):
        raise ValueError(f"`preconditioner` must be a number or of shape ({d},) or ({d}, {d}), got {gamma.shape}.")
    try:
        factor = np.linalg.cholesky(gamma)
    except np.linalg.LinAlgError:
        raise ValueError(what) from None
    if np.any(np.diag(factor) ** 2 < least * np.diag(gamma)):
        raise ValueError(what)
    return factor


# ---------------------------------------------------------------------------------------------------------------
# Sums of the Stein kernel over pairs of draws
#
# Draws lie in tiles: an array (tiles, d, TILE) of each coordinate of TILE of them, so that every inner loop is over
# TILE neighbours in memory, a number that the compiler knows.


def _tiled(a):
    """(d, n) as tiles, (tiles, d, TILE), zeros at the end."""
    d, n = a.shape
    tiles = -(-n // TILE)
    out = np.zeros((d, tiles * TILE))
    out[:, :n] = a
    return np.ascontiguousarray(out.reshape(d, tiles, TILE).transpose(1, 0, 2))


@vectorised
def _two_rows(kernel, y, t, weights, trace, q, i, p, after, buffer):
    """Σⱼ wⱼ k of draws i and i + 1 of tile q, and those of tile p after place `after`, or `after` + 1; Γ = I.

    The number of coordinates is even; two rows share what they read.
    """
    for k in range(0, y.shape[1], 2):
        a, b, c, e = y[q, k, i], y[q, k + 1, i], y[q, k, i + 1], y[q, k + 1, i + 1]
        ta, tb, tc, te = t[q, k, i], t[q, k + 1, i], t[q, k, i + 1], t[q, k + 1, i + 1]
        for j in range(TILE):
            y0, y1, t0, t1 = y[p, k, j], y[p, k + 1, j], t[p, k, j], t[p, k + 1, j]
            d0, d1, d2, d3 = a - y0, b - y1, c - y0, e - y1
            buffer[0, j] = (buffer[0, j] if k > 0 else 0.0) + (d0 * d0 + d1 * d1)
            buffer[1, j] = (buffer[1, j] if k > 0 else 0.0) + (d0 * (ta - t0) + d1 * (tb - t1))
            buffer[2, j] = (buffer[2, j] if k > 0 else 0.0) + (ta * t0 + tb * t1)
            buffer[3, j] = (buffer[3, j] if k > 0 else 0.0) + (d2 * d2 + d3 * d3)
            buffer[4, j] = (buffer[4, j] if k > 0 else 0.0) + (d2 * (tc - t0) + d3 * (te - t1))
            buffer[5, j] = (buffer[5, j] if k > 0 else 0.0) + (tc * t0 + te * t1)
    one, two = 0.0, 0.0
    for j in range(TILE):
        p0, p1, p2 = kernel.profile(buffer[0, j])
        value = buffer[2, j] * p0 - 2.0 * p1 * (buffer[1, j] + trace) - 4.0 * p2 * buffer[0, j]
        one += (weights[p, j] if j > after else 0.0) * value
        p0, p1, p2 = kernel.profile(buffer[3, j])
        value = buffer[5, j] * p0 - 2.0 * p1 * (buffer[4, j] + trace) - 4.0 * p2 * buffer[3, j]
        two += (weights[p, j] if j > after + 1 else 0.0) * value
    return one, two


@vectorised
def _row(kernel, y, t, s, w, trace, q, i, p, buffer):
    """buffer[0, j] = k of draw i of tile q and draw j of tile p, for any Γ."""
    for r in range(4):
        for j in range(TILE):
            buffer[r, j] = 0.0
    for k in range(y.shape[1]):
        yi, ti, si, wi = y[q, k, i], t[q, k, i], s[q, k, i], w[q, k, i]
        for j in range(TILE):
            difference, other = yi - y[p, k, j], wi - w[p, k, j]
            buffer[0, j] += difference * difference
            buffer[1, j] += difference * (ti - t[p, k, j])
            buffer[2, j] += si * s[p, k, j]
            buffer[3, j] += other * other
    for j in range(TILE):
        p0, p1, p2 = kernel.profile(buffer[0, j])
        buffer[0, j] = buffer[2, j] * p0 - 2.0 * p1 * (buffer[1, j] + trace) - 4.0 * p2 * buffer[3, j]


@vectorised
def _weighted(weights, p, after, buffer):
    """Σⱼ wⱼ buffer[0, j] over the draws of tile p after place `after`."""
    total = 0.0
    for j in range(TILE):
        total += (weights[p, j] if j > after else 0.0) * buffer[0, j]
    return total


@entry
def _row_sums(kernel, y, t, weights, trace, q, out, buffer):
    """out[q, i] = Σ_{j > i} wⱼ k_π(xᵢ, xⱼ) for the draws of tile q, with Γ = I; the number of coordinates is even."""
    for p in range(q, y.shape[0]):
        for i in range(0, TILE, 2):
            one, two = _two_rows(kernel, y, t, weights, trace, q, i, p, i if p == q else -2, buffer)
            out[q, i] += one
            out[q, i + 1] += two


@entry
def _row_sums_preconditioned(kernel, y, t, s, w, weights, trace, q, out, buffer):
    """The same for any Γ and any number of coordinates."""
    for p in range(q, y.shape[0]):
        for i in range(TILE):
            _row(kernel, y, t, s, w, trace, q, i, p, buffer)
            out[q, i] += _weighted(weights, p, i if p == q else -1, buffer)


@entry
def _add_row(kernel, y, t, s, w, trace, i, factor, out, buffer):
    """out[j] += factor k_π(xᵢ, xⱼ) for all j."""
    for p in range(y.shape[0]):
        _row(kernel, y, t, s, w, trace, i // TILE, i % TILE, p, buffer)
        begin = p * TILE
        for j in range(min(TILE, out.shape[0] - begin)):
            out[begin + j] += factor * buffer[0, j]


class _Pairs:
    """Draws and scores laid out for the sums, in tiles."""

    def __init__(self, x, scores, kernel, preconditioner):
        from scipy.linalg import solve_triangular

        self.n, d = x.shape
        factor = _cholesky(preconditioner, x)
        self.plain = factor is None
        x = x - x.mean(axis=0)  # differences of large numbers lose digits
        if factor is None:
            self.trace = float(d)
            y, t, w = x, scores, x
        else:
            inverse = solve_triangular(factor, np.eye(d), lower=True)
            self.trace = float(np.sum(inverse**2))
            y, t = x @ inverse.T, scores @ inverse.T
            w = y @ inverse
        self.native = _as_kernel(kernel, y)
        phi, first, _ = self.native.native.profile(0.0)
        self.diagonal = phi * np.einsum("ij,ij->i", scores, scores) - 2.0 * first * self.trace
        even = self.plain and d % 2 == 1  # two coordinates at a time
        self.y, self.t = (_tiled(np.pad(a.T, ((0, int(even)), (0, 0)))) for a in (y, t))
        self.s, self.w = (self.t, self.y) if self.plain else (_tiled(scores.T), _tiled(w.T))

    def row_sums(self, weights, threads):
        """Σ_{j > i} wⱼ k_π(xᵢ, xⱼ) for each i. No thread has a part in another's sums: they do not depend on them."""
        kernel, weights = self.native.native, _tiled(weights[None])[:, 0]
        out = np.zeros(weights.shape)

        def work(q):
            if self.plain:
                _row_sums(kernel, self.y, self.t, weights, self.trace, q, out, np.empty((6, TILE)))
            else:
                arrays = self.y, self.t, self.s, self.w, weights
                _row_sums_preconditioned(kernel, *arrays, self.trace, q, out, np.empty((4, TILE)))

        if threads == 1:
            list(map(work, range(len(out))))
        else:
            with concurrent.futures.ThreadPoolExecutor(threads) as pool:
                list(pool.map(work, range(len(out))))
        return out.ravel()[: self.n]

    def add_row(self, i, out, factor=1.0):
        """out[j] += factor k_π(xᵢ, xⱼ)."""
        arrays = self.y, self.t, self.s, self.w
        _add_row(self.native.native, *arrays, self.trace, i, factor, out, np.empty((4, TILE)))


def _threads(threads):
    if threads is None:
        try:
            return len(os.sched_getaffinity(0))
        except AttributeError:
            return os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or threads < 1:
        raise ValueError(f"`threads` must be a whole number, at least 1, got {threads!r}.")
    return int(threads)


# ---------------------------------------------------------------------------------------------------------------
# Scores


@entry
def _scores(provider, x, memory, rng, out, counts):
    for i in range(x.shape[0]):
        provider.gradient(x[i], memory, rng, out[i], counts)
        for j in range(out.shape[1]):
            out[i, j] = -out[i, j]


def scores(target, x, seed=0):
    """Scores ∇log π = -∇U at draws.

    Parameters
    ----------
    target : Model, or any of `pdmp.gradients`
        A model gives the exact scores; mini-batches noisy ones, of which the U-statistic is still unbiased.
    x : array_like, shape (P, d)
    seed : int
        For mini-batches.

    Returns
    -------
    ndarray, shape (P, d)
    """
    provider = as_provider(target)
    x = np.ascontiguousarray(x, dtype=float)
    if x.ndim != 2 or x.shape[1] != provider.dim:
        raise ValueError(f"`x` must have shape (draws, {provider.dim}), got {x.shape}.")
    rng = np.random.Generator(np.random.PCG64(seed))
    out = np.zeros(x.shape)
    _scores(provider.native, x, by_name(provider.memory(rng)), rng, out, np.zeros(KINDS, np.int64))
    return out


# ---------------------------------------------------------------------------------------------------------------
# Kernelised Stein discrepancy


def ksd(x, scores, kernel="imq", statistic="v", weights=None, *, preconditioner=None, threads=None):
    r"""Kernelised Stein discrepancy of draws from the target with the given scores.

    Parameters
    ----------
    x : array_like, shape (P, d)
        Draws.
    scores : array_like, shape (P, d)
        ∇log π at each of them, exact or unbiased estimates (see `scores`).
    kernel : "imq", "gaussian", or one of `imq` and `gaussian`
        By default (1 + ρ)^-½. The Gaussian's bandwidth is the median distance.
    statistic : {"v", "u"}
        "v": KSD = (Σᵢⱼ wᵢ wⱼ k_π(xᵢ, xⱼ))^½, never negative; for P independent draws from the target its square has
        the mean E[k_π(x, x)] / P. "u": KSD² without the terms i = j, unbiased, so it can be negative.
    weights : array_like, shape (P,), optional
        Of the draws, with sum 1; they may be signed. Equal by default.
    preconditioner : array_like or "covariance", optional
        Γ, by which distances are measured: a number, (d,), (d, d) or the draws' covariance; the identity by default.
    threads : int, optional
        All processors by default. The result does not depend on it.

    Returns
    -------
    float
        Infinite for draws or scores beyond 1e60: of a chain that ran away.

    Raises
    ------
    ValueError
        For shapes that do not fit, draws or scores that are not finite, weights that do not sum to 1, a preconditioner
        that is not positive definite.

    Warns
    -----
    UserWarning
        For fewer draws than dimensions and for constant coordinates.

    Notes
    -----
    O(P² d) operations, O(P d) memory. Gorham & Mackey (2017), eq. 6 and section 4; Liu, Lee & Jordan (2016), eq. 14.
    """
    x, scores = _check(x, scores)
    n = len(x)
    weights = _check_weights(weights, n)
    if statistic not in ("v", "u"):
        raise ValueError(f'`statistic` must be "v" or "u", got {statistic!r}.')
    if statistic == "u" and n < 2:
        raise ValueError('`statistic="u"` needs at least two draws.')
    if _overflows(x, scores):
        return math.inf
    pairs = _Pairs(x, scores, kernel, preconditioner)
    off = 2.0 * float(np.dot(weights, pairs.row_sums(weights, _threads(threads))))
    if statistic == "v":
        return math.sqrt(max(off + float(np.dot(weights**2, pairs.diagonal)), 0.0))
    return off / float(weights.sum() ** 2 - np.dot(weights, weights))


def stein_matrix(x, scores, kernel="imq", *, preconditioner=None):
    """All k_π(xᵢ, xⱼ), shape (P, P); parameters as of `ksd`."""
    x, scores = _check(x, scores)
    pairs = _Pairs(x, scores, kernel, preconditioner)
    out = np.zeros((len(x), len(x)))
    for i in range(len(x)):
        pairs.add_row(i, out[i])
    return out


def stein_thin(x, scores, size, kernel="imq", *, preconditioner="covariance"):
    """Stein thinning: the draws that represent the target best, chosen one at a time.

    Parameters
    ----------
    x, scores, kernel
        As of `ksd`.
    size : int
        How many to choose. A draw can be chosen more than once.
    preconditioner
        As of `ksd`; by default the draws' covariance, so that units do not matter.

    Returns
    -------
    ndarray of int, shape (size,)
        Their places in `x`, in the order in which they were chosen.

    Notes
    -----
    Each choice minimises k_π(xᵢ, xᵢ) / 2 + Σ k_π(xᵢ, chosen): O(size P d). Riabiz et al. (2022), algorithm 1.
    """
    x, scores = _check(x, scores)
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
        raise ValueError(f"`size` must be a whole number, at least 1, got {size!r}.")
    if _overflows(x, scores):
        raise ValueError(f"`x` and `scores` must lie within ±{FARTHEST:g}: leave out the draws that have run away.")
    pairs = _Pairs(x, scores, kernel, preconditioner)
    objective, chosen = 0.5 * pairs.diagonal, np.zeros(size, np.int64)
    for k in range(size):
        chosen[k] = int(np.argmin(objective))
        pairs.add_row(chosen[k], objective)
    return chosen


# ---------------------------------------------------------------------------------------------------------------
# Finite sets of locations


def fssd(
    x,
    scores,
    locations=10,
    optimise=True,
    seed=0,
    *,
    kernel="gaussian",
    statistic="v",
    criterion="fssd",
    iterations=100,
    rate=1e-3,
):
    """Finite-set Stein discrepancy: the Stein witness function at a few locations, in time linear in the draws.

    Parameters
    ----------
    x, scores : array_like, shape (P, d)
        As of `ksd`.
    locations : int or array_like of shape (J, d), default 10
        Where the witness is looked at; a number of them is drawn from the normal law with the draws' mean and
        covariance.
    optimise : bool, default True
        FSSD-opt: move them uphill on `criterion` by Adam first. What comes out is then larger than at random
        locations, and no longer unbiased.
    seed : int
        Of the locations.
    kernel : "gaussian", "imq", or one of `imq` and `gaussian`
    statistic : {"v", "u"}
        "v": FSSD, the root mean square of the witness, never negative. "u": FSSD², unbiased at fixed locations,
        so it can be negative.
    criterion : {"fssd", "power"}
        What the locations maximise: FSSD², or FSSD² over its standard deviation (the test's power).
    iterations, rate : int, float
        Of Adam.

    Returns
    -------
    float
        Infinite for fewer than three draws, which can be at a zero of the witness, and for draws or scores beyond 1e60:
        of a chain that ran away.

    Notes
    -----
    Jitkrittum et al. (2017), eqs 3 and 5; O(P J d) an iteration.
    """
    x, scores = _check(x, scores)
    n, d = x.shape
    if statistic not in ("v", "u"):
        raise ValueError(f'`statistic` must be "v" or "u", got {statistic!r}.')
    if criterion not in ("fssd", "power"):
        raise ValueError(f'`criterion` must be "fssd" or "power", got {criterion!r}.')
    if n < 3 or _overflows(x, scores):
        return math.inf
    if np.ndim(locations) == 0:
        if isinstance(locations, bool) or int(locations) != locations or locations < 1:
            raise ValueError(f"`locations` must be a number of them or an array (J, {d}), got {locations!r}.")
        spread = np.atleast_2d(np.cov(x.T)) + 1e-10 * np.eye(d)
        rng = np.random.default_rng(seed)
        v = rng.multivariate_normal(x.mean(axis=0), spread, size=int(locations), method="eigh", check_valid="ignore")
    else:
        v = np.array(locations, dtype=float)
        if v.ndim != 2 or v.shape[1] != d or not np.all(np.isfinite(v)):
            raise ValueError(f"`locations` must be finite and of shape (J, {d}), got shape {v.shape}.")
    witness = _Witness(x, scores, _as_kernel(kernel, x))
    if optimise:
        v = _climb(lambda v: witness.gradient(v, criterion), v, iterations, rate)
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
def _add_pull(x, s, v, weights, alpha, u, c, beta, p, j, buffer, out):
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
def _pull(kernel, x, s, v, weights, alpha, u, c, beta, out, buffer):
    for p in range(x.shape[0]):
        for j in range(v.shape[0]):
            _distances(kernel, x, v, p, j, buffer)
            _add_pull(x, s, v, weights, alpha, u, c, beta, p, j, buffer, out)


class _Witness:
    """The features ξ(xᵢ, vⱼ) = s φ + 2 φ' (x - v) of draws at locations v (J, d), never all of them at once."""

    def __init__(self, x, scores, kernel):
        self.n = len(x)
        self.centre = x.mean(axis=0)
        self.x, self.s = _tiled((x - self.centre).T), _tiled(scores.T)
        self.native = kernel.native
        self.even = _tiled(np.ones((1, self.n)))[:, 0]
        self.buffer = np.empty((5, TILE))

    def means(self, v, weights):
        """Σᵢ wᵢ ξ(xᵢ, vⱼ), shape (J, d)."""
        out = np.zeros(v.shape)
        _means(self.native, self.x, self.s, v - self.centre, weights, out, self.buffer)
        return out

    def projections(self, v, u):
        """Σⱼ ξ(xᵢ, vⱼ)·uⱼ and Σⱼ |ξ(xᵢ, vⱼ)|², in tiles."""
        along, square = np.zeros(self.even.shape), np.zeros(self.even.shape)
        _projections(self.native, self.x, self.s, v - self.centre, u, along, square, self.buffer)
        return along * self.even, square * self.even

    def pull(self, v, alpha, u, c, beta):
        """Σᵢ aᵢⱼᵀ ∂ξᵢⱼ/∂vⱼ with aᵢⱼ = αᵢ uⱼ + cⱼ - β ξᵢⱼ, shape (J, d)."""
        out = np.zeros(v.shape)
        arguments = self.x, self.s, v - self.centre, self.even, alpha, u, c, float(beta)
        _pull(self.native, *arguments, out, self.buffer)
        return out

    def squares(self, v):
        """The unbiased FSSD² and the square of FSSD."""
        n, mean = self.n, self.means(v, self.even / self.n)
        biased = float(np.sum(mean * mean)) / v.size
        diagonal = float(self.projections(v, mean)[1].sum()) / (n * v.size)
        return (n * biased - diagonal) / (n - 1), biased

    def gradient(self, v, criterion):
        """Gradient (J, d) of the criterion in the locations."""
        n, size, nothing = self.n, v.size, np.zeros_like(v)
        mean = self.means(v, self.even / n)
        slope = 2.0 * self.pull(v, 0.0 * self.even, nothing, n * mean, 1.0) / (n * (n - 1) * size)
        if criterion == "fssd":
            return slope
        # The variance 4 mean(qᵢ²) - 4 |m|⁴, q = ξ·m / size, m the mean: through each feature, and through the mean.
        norm = float(np.sum(mean * mean)) / size
        along, square = self.projections(v, mean / size)
        squared = (n * norm - float(square.sum()) / (n * size)) / (n - 1)
        variance = 4.0 * float(np.sum(along**2)) / n - 4.0 * norm**2
        through_mean = 8.0 / (n * size) * self.means(v, along / n) - 16.0 / (n * size) * norm * mean
        tilt = self.pull(v, 8.0 / (n * size) * along, mean, through_mean, 0.0)
        spread = math.sqrt(max(variance, 0.0) + 1e-6)
        return slope / spread - 0.5 * squared * tilt / spread**3


def _climb(gradient, v, iterations, rate):
    """Adam, uphill."""
    first, second, v = np.zeros_like(v), np.zeros_like(v), v.copy()
    for k in range(1, iterations + 1):
        g = gradient(v)
        first = 0.9 * first + 0.1 * g
        second = 0.999 * second + 0.001 * g * g
        v += rate * (first / (1.0 - 0.9**k)) / (np.sqrt(second / (1.0 - 0.999**k)) + 1e-8)
    return v


# ---------------------------------------------------------------------------------------------------------------
# Slices


def sliced_ksd(x, scores, slices=None, optimise=True, *, kernel="imq", statistic="v", iterations=50, rate=0.05):
    r"""Sliced kernelised Stein discrepancy, for dimensions in which `ksd` no longer tells draws apart.

    For each coordinate direction r = eⱼ the score is projected on r, and the draws on a direction gᵣ of unit length::

        ξ(x, y) = sʳ s'ʳ k + (r·g) s'ʳ ∂₁k + (r·g) sʳ ∂₂k + (r·g)² ∂₁∂₂k,    k of x·g and y·g

    and the discrepancy is the sum over r of the double sums of ξ.

    Parameters
    ----------
    x, scores : array_like, shape (P, d)
        As of `ksd`.
    slices : array_like, shape (d, d), optional
        Row j is gᵣ for r = eⱼ; by default eⱼ itself.
    optimise : bool, default True
        Turn the slices uphill on every second draw by Adam, and evaluate on the other draws (maxSKSD-g), so that what
        comes out is not large only because of the search.
    kernel, statistic
        As of `ksd`; the kernel of draws on a line, in units of their median distance there.
    iterations, rate : int, float
        Of Adam.

    Returns
    -------
    float
        Infinite for draws or scores beyond 1e60.

    Notes
    -----
    Gong, Li & Hernández-Lobato (2021), eqs 9 and 13. O(P² d) operations, blocked.
    """
    x, scores = _check(x, scores)
    n, d = x.shape
    if statistic not in ("v", "u"):
        raise ValueError(f'`statistic` must be "v" or "u", got {statistic!r}.')
    g = np.eye(d) if slices is None else np.array(slices, dtype=float)
    if g.shape != (d, d) or not np.all(np.isfinite(g)) or np.any(np.linalg.norm(g, axis=1) == 0.0):
        raise ValueError(f"`slices` must be of shape ({d}, {d}) with rows that are not zero, got shape {g.shape}.")
    g /= np.linalg.norm(g, axis=1, keepdims=True)
    if optimise and n < 4:
        raise ValueError("`optimise` needs at least four draws: it searches on a half of them.")
    if _overflows(x, scores):
        return math.inf
    if optimise:
        g = _turn(x[::2], scores[::2], g, kernel, iterations, rate)
        x, scores = x[1::2], scores[1::2]
    total = sum(_slice(x @ g[j], scores[:, j], g[j, j], kernel, statistic) for j in range(d))
    return math.sqrt(max(total, 0.0)) if statistic == "v" else total


def _on_a_line(kernel, u):
    """The kernel for draws `u` on a line, and their median distance, its unit."""
    width = _median_distance(u[:, None])
    return _as_kernel(kernel, u[:, None] / width), width


def _slice(u, s, aligned, kernel, statistic):
    """The mean of ξ over pairs, for draws `u` on a line and scores `s` along r, with r·g = `aligned`."""
    n = len(u)
    kernel, width = _on_a_line(kernel, u)
    a = aligned / width
    y, t, weights = _tiled(((u - u.mean()) / width)[None]), _tiled(s[None]), _tiled(np.full((1, n), 1.0 / n))[:, 0]
    out, buffer = np.zeros(weights.shape), np.empty((4, TILE))
    for q in range(len(out)):
        _row_sums_preconditioned(kernel.native, y, a * t, t, a * y, weights, a * a, q, out, buffer)
    off = 2.0 * float(out.ravel()[:n].mean())
    if statistic == "u":
        return off * n / (n - 1)
    phi, first, _ = kernel.native.profile(0.0)
    return off + float(np.mean(phi * s * s - 2.0 * first * a * a)) / n


def _turn(x, scores, g, kernel, iterations, rate):
    """The slices turned uphill on the double sums of at most `SLICE_DRAWS` draws."""
    every = max(len(x) // SLICE_DRAWS, 1)
    x, scores = x[::every], scores[::every]
    turned = np.empty_like(g)
    for j in range(len(g)):
        on_line, width = _on_a_line(kernel, x @ g[j])

        def gradient(direction, j=j, on_line=on_line, width=width):
            return _slice_gradient(direction, x, scores[:, j], j, on_line, width)

        turned[j] = _climb(gradient, g[j], iterations, rate)
    return turned / np.linalg.norm(turned, axis=1, keepdims=True)


def _profile(kernel):
    """φ, φ' and φ'' of arrays."""
    if isinstance(kernel, GaussianKernel):

        def profile(rho):
            value = np.exp(-kernel.rate * rho)
            return value, -kernel.rate * value, kernel.rate**2 * value
    else:

        def profile(rho):
            beta = getattr(kernel, "beta", -0.5)
            b = kernel.square + rho
            value = b**beta
            return value, beta * value / b, beta * (beta - 1.0) * value / b**2

    return profile


def _slice_gradient(direction, x, s, j, kernel, width):
    """Gradient in g of Σ ξ over pairs of different draws; of the direction of g alone."""
    length = np.linalg.norm(direction)
    unit = direction / length
    u, a = x @ unit / width, unit[j] / width
    delta, apart = u[:, None] - u, s[:, None] - s
    rho = delta * delta
    _, first, second = _profile(kernel)(rho)
    third = _third(kernel, rho, second)
    by_delta = 2.0 * delta * first * np.outer(s, s) - 2.0 * a * apart * (first + 2.0 * rho * second)
    by_delta -= a * a * delta * (12.0 * second + 8.0 * rho * third)
    by_a = -2.0 * first * delta * apart - 4.0 * a * first - 8.0 * a * second * rho
    np.fill_diagonal(by_a, 0.0)
    slope = 2.0 * by_delta.sum(axis=1) @ x / width
    slope[j] += by_a.sum() / width
    return (slope - (slope @ unit) * unit) / length


def _third(kernel, rho, second):
    """The third derivative of φ, from its second."""
    if isinstance(kernel, GaussianKernel):
        return -kernel.rate * second
    return (getattr(kernel, "beta", -0.5) - 2.0) * second / (kernel.square + rho)
