r"""log Z from the rungs of a ladder: Bennett's estimate between neighbours, and stepping stones to compare it with.

On the path U_β = U₀ + βW, with W = U - U₀ and a normalised reference exp(-U₀), log Z is the sum over pairs of
neighbours of log Z_j / Z_i. Bennett's estimate ℓ of it is the root of

    Σ over draws at i of f(ΔβW + ℓ)  =  Σ over draws at j of f(-ΔβW - ℓ),        f(a) = 1 / (1 + eᵃ).

A stepping stone uses the draws of one side: forward log mean exp(-ΔβW) at i, backward -log mean exp(ΔβW) at j. It sees
what the other side has not seen as a difference between both.

The standard error is that of a time average: to first order ℓ errs by the mean of its terms over minus the mean of
their derivative (the delta method), so the terms of all pairs are added scan by scan, and the error of the mean of this
one series has what is correlated in time, and between pairs, and what chains differ by.

References
----------
Bennett (1976), Efficient estimation of free energy differences from Monte Carlo data, J. Comput. Phys. 22, equation
(12); Shirts & Chodera (2008), Statistically optimal analysis of samples from multiple equilibrium states, J. Chem.
Phys. 129; Xie, Lewis, Fan, Kuo & Chen (2011), Improving marginal likelihood estimation for Bayesian phylogenetic model
selection, Syst. Biol. 60 (stepping stones).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pdmp.diagnostics.monte_carlo_error import standard_error


def in_digits(value: float, error: float) -> str:
    """A number with at least four digits, and up to the second one of its error: logs of many rows are large."""
    known = value != 0.0 and error > 0.0 and math.isfinite(value) and math.isfinite(error)
    digits = math.floor(math.log10(abs(value))) - math.floor(math.log10(error)) + 2 if known else 4
    return f"{value:.{max(digits, 4)}g}"


class LogEvidence(NamedTuple):
    """log Z of a tempered run, with its standard error, and a second estimate."""

    value: float  #: by Bennett's estimate
    error: float  #: its standard error
    second: float  #: by stepping stones, the mean of both directions
    gap: float  #: forward minus backward
    gap_error: float  #: standard error of that

    def __repr__(self) -> str:
        return (
            f"log Z = {in_digits(self.value, self.error)} ± {self.error:.2g} (stepping stones "
            f"{in_digits(self.second, self.error)}, forward less backward {self.gap:.2g} ± {self.gap_error:.2g})"
        )


def fermi(a: np.ndarray) -> np.ndarray:
    """1 / (1 + eᵃ)."""
    return 0.5 * (1.0 - np.tanh(0.5 * a))


def bennett(lower: np.ndarray, upper: np.ndarray) -> float:
    """log Z_j / Z_i, from ΔβW at draws of the lower rung i and of the upper rung j."""

    def excess(ratio):
        return fermi(lower + ratio).sum() - fermi(-upper - ratio).sum()

    middle, step = -float(np.median(upper)), 1.0  # W may be huge or infinite at some draws: no bracket from extremes
    low = high = middle
    while excess(low) < 0.0 and step < 1e15:
        low, step = low - step, 2.0 * step
    step = 1.0
    while excess(high) > 0.0 and step < 1e15:
        high, step = high + step, 2.0 * step
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
    return 0.5 * (low + high)


def log_mean_exp(a: np.ndarray) -> float:
    """log of the mean of eᵃ."""
    top = float(a.max())
    return top + math.log(float(np.exp(a - top).mean())) if math.isfinite(top) else top


def bridged(
    draws: np.ndarray, effective: float, potential: Callable[[np.ndarray], float], points: int, rng: np.random.Generator
) -> LogEvidence:
    """log of the integral of exp(-U), between a normal law and draws of a run: two rungs, by the same estimates.

    The law has mean and covariance of the first half of each chain; the `draws` (chains, n, d) are of the second. The
    first halves come to `effective` independent draws, about: correlations that so many do not show are made less
    (Schäfer & Strimmer 2005, Stat. Appl. Genet. Mol. Biol. 4, section 2.4). U, the `potential`, is computed at `points`
    draws of each chain, at most, and at as many of the law.
    """
    chains, n, d = draws.shape
    half = n // 2
    first, places = draws[:, :half].reshape(-1, d), np.linspace(half, n - 1, min(points, n - half)).astype(int)
    mean, sd = first.mean(axis=0), first.std(axis=0)
    correlation = np.atleast_2d(np.corrcoef(first.T))
    known = float(np.sum(correlation**2)) - d
    noise = float(np.sum((1.0 - correlation**2) ** 2)) / effective
    root = np.linalg.cholesky(np.eye(d) + max(1.0 - noise / max(known, 1e-300), 0.0) * (correlation - np.eye(d)))
    normal = rng.standard_normal((chains, len(places), d))
    there = np.linalg.solve(root, ((draws[:, places] - mean) / sd)[..., None])[..., 0]
    of_law = mean + sd * (normal @ root.T)
    constant = float(np.log(sd * np.diag(root)).sum()) + 0.5 * d * math.log(math.tau)
    works = []
    for z, x in ((normal, of_law), (there, draws[:, places])):
        known_there = 0.5 * np.sum(z**2, axis=-1) + constant
        works.append(np.array([[potential(point) for point in chain] for chain in x]) - known_there)
    return log_evidence(list(np.stack(works, axis=-1)), np.array([0.0, 1.0]))


def log_evidence(works: Sequence[np.ndarray], betas: np.ndarray) -> LogEvidence:
    """The estimates from W (n, N) of each chain, scan by scan; +inf is allowed, where the density is zero."""
    whole = np.concatenate(works)
    n = len(whole)
    value = forward = backward = 0.0
    terms, apart = np.zeros(n), np.zeros(n)
    for i, step in enumerate(np.diff(betas)):
        lower, upper = step * whole[:, i], step * whole[:, i + 1]
        ratio = bennett(lower, upper)
        a, b = fermi(lower + ratio), fermi(-upper - ratio)
        slope = float((a * (1.0 - a) + b * (1.0 - b)).mean())
        terms += (a - b) / max(slope, 1e-300)
        value += ratio
        stones = log_mean_exp(-lower), -log_mean_exp(upper)
        forward, backward = forward + stones[0], backward + stones[1]
        with np.errstate(over="ignore", invalid="ignore"):
            apart += np.exp(-lower - stones[0]) + np.exp(upper + stones[1]) - 2.0
    ends = np.cumsum([len(w) for w in works])[:-1]
    each = [float(len(w)) for w in works]

    def error(series):
        if not np.all(np.isfinite(series)):
            return math.inf
        return float(standard_error(np.split(series[:, None], ends), [1.0] * len(each), each)[0])

    return LogEvidence(value, error(terms), 0.5 * (forward + backward), forward - backward, error(apart))
