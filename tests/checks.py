"""Statistical assertions that state what they can see, chains to apply them to, and laws computed another way.

A test of an average compares independent replicates with the truth, at a false-alarm probability so small that seeds
need no care, and also asserts that it *could have failed*: that a bias of the stated `resolution` would have been seen
with a probability of at least 99.9 %.
"""

import itertools
from typing import NamedTuple

import numba
import numpy as np
import pytest
from scipy import special, stats

from pdmp.engine.chain import NEVER, Budget, Chain
from pdmp.gradients import Minibatch

#: For tests of single steps with states and random streams of their own making.
plain_only = pytest.mark.skipif(not numba.config.DISABLE_JIT, reason="in plain Python; compiled with other parts")


def in_ci(values, *shown):
    """The values of a parameter, for `parametrize`; those that are not in `shown` are for releases."""
    assert set(shown) <= set(values)
    return [value if value in shown else pytest.param(value, marks=pytest.mark.release) for value in values]


def in_quick(values, *shown):
    """The same of the quick tier: those that are not in `shown` are for `pytest --full`."""
    assert set(shown) <= set(values)
    return [value if value in shown else pytest.param(value, marks=pytest.mark.slow) for value in values]


def plain(function):
    """The Python function behind a compiled helper."""
    return getattr(function, "py_func", function)


# ---------------------------------------------------------------------------------------------------------------
# Assertions


def assert_unbiased(estimates, truth, *, resolution, alpha=1e-6):
    """Independent replicates (R,) or (R, m) estimate `truth`, and would have shown a bias of `resolution`.

    `truth` and `resolution` are numbers or of shape (m,); `alpha` is the false-alarm probability of the whole test.
    """
    estimates = np.asarray(estimates, dtype=float)
    estimates = estimates.reshape(len(estimates), -1)
    replicates, m = estimates.shape
    error = estimates.mean(axis=0) - np.ravel(truth)
    se = estimates.std(axis=0, ddof=1) / np.sqrt(replicates)
    critical = stats.t.isf(alpha / (2.0 * m), df=replicates - 1)
    seen = (critical + 3.0) * se
    wanted = np.ravel(resolution)
    assert np.all(seen < wanted), f"cannot see a bias of {wanted}, only of {seen}"
    assert np.all(np.abs(error) < critical * se), f"z = {error / se}, |z| < {critical:.2f}; error = {error}"


def assert_exponential(gaps, *, resolution, alpha=1e-6):
    """Integrated rates over the gaps between events (n,) are Exp(1), and a rate off by `resolution` would have shown.

    Mean and second moment with their exact variances 1/n and 20/n, and the Kolmogorov-Smirnov distance.
    """
    gaps = np.asarray(gaps, dtype=float)
    n = len(gaps)
    critical = stats.norm.isf(alpha / 6.0)
    seen = (critical + 3.0) / np.sqrt(n)
    assert seen < resolution, f"{n} gaps cannot show a rate off by {resolution}, only by {seen:.3g}"
    assert np.all(gaps >= 0.0), f"a rate integrates to {gaps.min()} over a gap"
    z = np.sqrt(n) * (gaps.mean() - 1.0), np.sqrt(n / 20.0) * ((gaps**2).mean() - 2.0)
    assert max(map(abs, z)) < critical, f"z = {z} of mean and second moment, |z| < {critical:.2f}; n = {n}"
    p = stats.kstest(gaps, "expon").pvalue
    assert p > alpha / 3.0, f"Kolmogorov-Smirnov p = {p:.3g}; n = {n}, mean = {gaps.mean():.5f}"


# ---------------------------------------------------------------------------------------------------------------
# Chains


def new_chain(process, initial, seed, *, warmup=0.0, store="skeleton", covariance=False, **budget):
    """A `Chain` at its start. Budgets as in `pdmp.sample`; `seed` is an int or a SeedSequence."""
    x = np.asarray(initial, dtype=float)
    steps = budget.pop("steps", None)
    if steps is not None:
        budget["events"] = min(steps * process.ticks, budget.get("events", NEVER))
    seed = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    budget = Budget(**budget, step=max(process.ticks, 1))
    return Chain(process.resolve(x), 0, x, seed, budget=budget, warmup=warmup, store=store, covariance=covariance)


def run_chain(process, initial, seed, **options):
    """A `Chain` that has used up its budget; one that failed raises."""
    chain = new_chain(process, initial, seed, **options).advance()
    assert chain.failure is None, chain.failure
    return chain


class Moments(NamedTuple):
    """Time averages of each replicate; extrapolated where a process holds coupled copies."""

    mean: np.ndarray  #: (R, d)
    var: np.ndarray  #: (R, d), about the replicate's own mean
    cov: np.ndarray | None  #: (R, d, d), for processes that are not local


def replicate(process, initial, replicates, seed, warmup=0.01, **budget):
    """`Moments` of independent chains from the seeds that `seed` spawns; `initial` (d,) or (replicates, d)."""
    initial = np.broadcast_to(np.asarray(initial, dtype=float), (replicates, process.model.dim))
    options = {"warmup": warmup, "store": "moments", "covariance": not process.local, **budget}
    found = []
    for x, child in zip(initial, np.random.SeedSequence(seed).spawn(replicates), strict=True):
        chain = run_chain(process, x, child, **options)
        found.append(_averages(chain.finish(), process.copies))
    mean, var, cov = zip(*found, strict=True)
    return Moments(np.array(mean), np.array(var), None if process.local else np.array(cov))


def _averages(record, copies):
    integrals, length = record.integrals, record.length
    d = len(integrals.first) // len(copies)
    blocks = [(weight, slice(k * d, (k + 1) * d)) for k, weight in enumerate(copies)]
    first, second, centre = integrals.first / length, integrals.second / length, integrals.centre
    mean = sum(weight * (centre + first)[b] for weight, b in blocks)
    shift = centre - np.tile(mean, len(copies))
    var = sum(weight * (second + shift * (2.0 * first + shift))[b] for weight, b in blocks)
    cov = None
    if integrals.cross.size:
        cross = np.tril(integrals.cross) / length
        cross = cross + np.tril(cross, -1).T + np.outer(shift, first) + np.outer(first, shift) + np.outer(shift, shift)
        cov = sum(weight * cross[b, b] for weight, b in blocks)
    return mean, var, cov


# ---------------------------------------------------------------------------------------------------------------
# Laws of fixed-step samplers, computed another way than the package does


def linear_terms(model):
    """Of a `LinearGaussian` in one dimension: uᵢ, wᵢ with ∇Uᵢ(θ) = uᵢ θ - wᵢ, and the prior's precision."""
    a, y = model.A[:, 0], model.y
    return model.noise_precision * a * a, model.noise_precision * a * y, model.prior_precision


def sorted_blocks(model, size):
    """Reshuffled blocks of a `LinearGaussian` in one dimension, each of data with similar uᵢ: as unlike as can be.

    Rows are permuted once, by the provider's seed, which is looked for.
    """
    wanted = np.sort(linear_terms(model)[0]).reshape(-1, size).tolist()
    for seed in range(10_000):
        provider = Minibatch(model, size, draw="reshuffle", seed=seed)
        found = np.sort(linear_terms(provider.packed)[0].reshape(-1, size), axis=1).tolist()
        if sorted(found) == wanted:
            return provider
    raise AssertionError("no seed gives these blocks")


def minibatch_law(model, size, distinct, step):
    """Stationary mean and variance of SGLD on a `LinearGaussian` in one dimension with independent mini-batches.

    θ' = θ - γ (Aθ - b) + √(2γ) ξ with random A, b: the first two moments close, and are solved for.
    """
    u, w, prior = linear_terms(model)
    n_data = len(u)
    factor = n_data**2 / size
    if distinct:  # variances over a finite population
        factor *= (n_data - size) / (n_data - 1)
    covariance = factor * np.cov(u, w, ddof=0)
    precision, force = prior + u.sum(), w.sum()
    mean = force / precision
    # E[(1 - γA)²], E[(1 - γA) b] and E[b²]
    aa = (1.0 - step * precision) ** 2 + step**2 * covariance[0, 0]
    ab = (1.0 - step * precision) * force - step * covariance[0, 1]
    bb = force**2 + covariance[1, 1]
    square = (2.0 * step * ab * mean + step**2 * bb + 2.0 * step) / (1.0 - aa)
    return mean, square - mean**2


def epoch_law(blocks, prior, step):
    """Time-averaged E θ and E θ² of SGLD in one dimension that visits the blocks in a new random order in each epoch.

    `blocks` holds (A, b) of each block's unbiased estimate A θ - b of the data's gradient. All orders are enumerated.
    """
    maps = [(1.0 - step * (prior + a), step * b) for a, b in blocks]  # θ' = p θ + q + noise
    n, orders = len(maps), list(itertools.permutations(range(len(maps))))
    # (1, E θ, E θ²) at each place of an epoch is linear in that at its start; averaged over the orders.
    places, whole = np.zeros((n, 3, 3)), np.zeros((3, 3))
    for order in orders:
        so_far = np.eye(3)
        for place, block in enumerate(order):
            places[place] += so_far / len(orders)
            p, q = maps[block]
            so_far = np.array([[1.0, 0.0, 0.0], [q, p, 0.0], [q * q + 2.0 * step, 2.0 * p * q, p * p]]) @ so_far
        whole += so_far / len(orders)
    start = np.concatenate([[1.0], np.linalg.solve(np.eye(2) - whole[1:, 1:], whole[1:, 0])])
    average = np.mean(places @ start, axis=0)
    return average[1], average[2]


C = 1.702


def barker_sign(estimator, z, gradient, tau):
    """E of the probability of +z over normal gradient noise of sd `tau`; z (m, 1), gradient of log π (1, n)."""
    if estimator == "corrected" and tau > 0.0:
        inside = tau * z < C
        room = np.sqrt(np.where(inside, C**2 - tau**2 * z**2, 1.0))
        return np.where(inside, _expected_expit(z * C / room, gradient, tau), barker_sign("extreme", z, gradient, tau))
    if estimator == "extreme":
        if tau == 0.0:
            return 0.5 + 0.5 * np.sign(gradient) + 0.0 * z
        return special.ndtr(gradient / tau) + 0.0 * z
    return _expected_expit(z, gradient, tau)


def _expected_expit(z, gradient, tau):
    if tau == 0.0:
        return special.expit(z * gradient)
    noise = np.linspace(-9.0, 9.0, 721)  # a uniform grid: Gauss-Hermite is wrong for steep logistic functions
    weights = stats.norm.pdf(noise)
    weights /= weights.sum()
    return sum(w * special.expit(z * (gradient + tau * e)) for e, w in zip(noise, weights, strict=True))


def barker_steps(sigma, spread=0.1):
    """The lattice of increments z ~ N(σ, (spread σ)²): whole multiples of the lattice's width, and their weights.

    A lattice as fine as one standard deviation integrates a normal density to eight digits.
    """
    width = spread * sigma
    multiples = np.arange(-7, 8) + round(1.0 / spread)
    weights = stats.norm.pdf(multiples * width, sigma, spread * sigma)
    return width, multiples, weights / weights.sum()


def barker_law(estimator, sigma, precision, tau, reach=8.0):
    """Stationary covariance (d, d) of SGBD on N(0, precision⁻¹), d = 1 or 2, by power iteration on a lattice."""
    precision = np.atleast_2d(precision)
    d = len(precision)
    width, multiples, weights = barker_steps(sigma)
    half = int(reach / width)
    x = width * np.arange(-half, half + 1)
    points = np.array(np.meshgrid(*[x] * d, indexing="ij"))
    gradient = -np.tensordot(precision, points, 1)
    # Probability of each signed increment, (increments, *lattice), for each coordinate.
    signed = np.concatenate([multiples, -multiples])
    moves = []
    for g in gradient:
        up = barker_sign(estimator, width * multiples[:, None], g.reshape(1, -1), tau)
        both = np.concatenate([up * weights[:, None], (1.0 - up) * weights[:, None]])
        moves.append(both.reshape(-1, *g.shape))
    density = np.exp(0.5 * np.sum(points * gradient, axis=0))
    if d == 2:  # given where they are, the coordinates move independently: the second by a matrix for each x₁
        second = np.zeros((len(x), len(x), len(x)))
        for m, p in zip(signed, moves[1], strict=True):
            i = np.arange(max(-m, 0), len(x) - max(m, 0))
            second[:, i, i + m] += p[:, i]
    for _ in range(2_000):
        parts = density * moves[0]
        if d == 2:
            parts = np.swapaxes(np.swapaxes(parts, 0, 1) @ second, 0, 1)
        new = np.zeros_like(density)
        for m, part in zip(signed, parts, strict=True):
            new[max(m, 0) : len(x) + min(m, 0)] += part[max(-m, 0) : len(x) - max(m, 0)]
        new /= new.sum()
        density, change = new, np.abs(new - density).sum()
        if change < 1e-9:
            break
    flat = points.reshape(d, -1)
    return (flat * density.ravel()) @ flat.T


def barker_lattice(up, sigma, low, high, fine=1):
    """SGBD in one dimension on a lattice from `low` to `high`: the points (n,), and the transition matrix (n, n).

    ``up(z, x)`` is the probability of +z, on z of shape (m, 1) and x of shape (1, n). The lattice is `fine` times as
    fine as the standard deviation of z, which is enough for smooth probabilities at 1; what leaves it stays at its end.
    """
    width = 0.1 * sigma / fine
    x = np.arange(low, high, width)
    n = len(x)
    multiples = np.arange(3 * fine, 17 * fine + 1)  # seven standard deviations
    weights = stats.norm.pdf(multiples * width, sigma, 0.1 * sigma)
    weights /= weights.sum()
    plus = np.broadcast_to(up(width * multiples[:, None], x[None, :]), (len(multiples), n))
    kernel, here = np.zeros((n, n)), np.arange(n)
    for m, weight, p in zip(multiples, weights, plus, strict=True):
        np.add.at(kernel, (here, np.minimum(here + m, n - 1)), weight * p)
        np.add.at(kernel, (here, np.maximum(here - m, 0)), weight * (1.0 - p))
    return x, kernel


def stationary(kernel):
    """The law (n,) that a transition matrix (n, n) leaves alone."""
    n = len(kernel)
    equations = np.vstack([kernel.T - np.eye(n), np.ones(n)])
    equations = np.delete(equations, n // 2, axis=0)  # they are dependent
    return np.linalg.solve(equations, np.append(np.zeros(n - 1), 1.0))


def lattice_moments(x, law):
    """Mean and variance."""
    mean = law @ x
    return mean, law @ (x - mean) ** 2
