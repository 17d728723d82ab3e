r"""References of a tempered path: mixtures of multivariate t distributions, which are normalised and can be drawn from.

The first one is a single wide t around everything that is known. Later ones are fitted to draws of the target, each
component a mode or a part of one, as a path from there is much shorter. A fitted mixture is *defended*: it has also
every mode that was found otherwise and that no component is near, and a tenth of the wide t. What a short round has not
visited would else be lost for good, as the short path from the new reference never leads there.

References
----------
Surjanovic, Syed, Bouchard-Côté & Campbell (2022), Parallel tempering with a variational reference, NeurIPS (a reference
that is fitted to draws, and a fixed one beside it). Hesterberg (1995), Weighted average importance sampling and
defensive mixture distributions, Technometrics 37. Dempster, Laird & Rubin (1977), Maximum likelihood from incomplete
data via the EM algorithm; Schwarz (1978), Estimating the dimension of a model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pdmp.native.classes import Compiled, compiled

#: ν of the wide t, and of fitted components at least; above as many dimensions theirs is d, as |x| of a t varies by
#: about 1 / √ν of itself, and of a normal by 1 / √(2d).
FREEDOM = 5.0
WIDENED = 1.2  #: variances of a component are so many times those of the draws it is fitted to
MOST = 8  #: components that are fitted, at most
USED = 2_000  #: draws that they are fitted to, at most
ITERATIONS, ATTEMPTS = 100, 6  #: of EM; beginnings of it for each number of components
KEPT = 0.1  #: weight of the wide t in a fitted reference
LEAST, BEHIND = 0.05, 8.0  #: weight of a mode that is added, at least; nats below log Z from which on it is not
FLOOR = 1e-6  #: variance of a component, at least, relative to that of the draws


class MixtureMemory(NamedTuple):
    """Work arrays."""

    terms: np.ndarray  #: (K,) logarithms of weight times density, and then their shares
    z: np.ndarray  #: (K, d) A (x - m)


class Mixture(Compiled):
    """Σₖ wₖ t(x; νₖ, mₖ, Lₖ Lₖᵀ), with weights (K,) in any unit, means (K, d), roots Lₖ (K, d, d) and freedoms νₖ (K,).

    Each Lₖ is lower triangular with a positive diagonal.
    """

    weights: np.ndarray
    means: np.ndarray
    roots: np.ndarray
    inverses: np.ndarray  #: (K, d, d) Lₖ⁻¹
    constants: np.ndarray  #: (K,) log of weight times the constant of the density
    freedoms: np.ndarray

    def __init__(self, weights: ArrayLike, means: ArrayLike, roots: ArrayLike, freedoms: ArrayLike) -> None:
        weights = np.array(weights, dtype=float)
        self.weights, self.means = weights / weights.sum(), np.ascontiguousarray(means, dtype=float)
        self.roots, self.freedoms = np.ascontiguousarray(roots, dtype=float), np.array(freedoms, dtype=float)
        d = self.means.shape[1]
        self.inverses = np.ascontiguousarray(np.linalg.solve(self.roots, np.broadcast_to(np.eye(d), self.roots.shape)))
        constant = np.array(
            [math.lgamma(0.5 * (n + d)) - math.lgamma(0.5 * n) - 0.5 * d * math.log(n * math.pi) for n in self.freedoms]
        )
        logs = np.log(np.diagonal(self.roots, axis1=1, axis2=2)).sum(axis=1)
        self.constants = np.log(self.weights) + constant - logs

    def memory(self) -> MixtureMemory:
        """Arrays for `potential_and_gradient`."""
        return MixtureMemory(np.zeros(len(self.weights)), np.zeros(self.means.shape))

    @compiled
    def potential_and_gradient(self, x, memory, out):
        """Minus the log density at x; its gradient into `out`."""
        components, d = self.means.shape
        terms, z, top = memory.terms, memory.z, -math.inf
        for k in range(components):
            square = 0.0
            for i in range(d):
                total = 0.0
                for j in range(i + 1):
                    total += self.inverses[k, i, j] * (x[j] - self.means[k, j])
                z[k, i] = total
                square += total * total
            freedom = self.freedoms[k]
            terms[k] = self.constants[k] - 0.5 * (freedom + d) * math.log1p(square / freedom)
            top = max(top, terms[k])
            slope = (freedom + d) / (freedom + square)
            for i in range(d):
                z[k, i] *= slope
        total = 0.0
        for k in range(components):
            terms[k] = math.exp(terms[k] - top)
            total += terms[k]
        for j in range(d):
            out[j] = 0.0
        for k in range(components):
            share = terms[k] / total
            for i in range(d):
                for j in range(i + 1):
                    out[j] += share * self.inverses[k, i, j] * z[k, i]
        return -top - math.log(total)

    @compiled
    def draw(self, rng, z, out):
        """An independent draw into `out`; `z` (d,) is overwritten."""
        k, left = 0, rng.random()
        while k < self.weights.shape[0] - 1 and left >= self.weights[k]:
            left -= self.weights[k]
            k += 1
        scale = math.sqrt(self.freedoms[k] / (2.0 * rng.standard_gamma(0.5 * self.freedoms[k])))
        for i in range(z.shape[0]):
            z[i] = scale * rng.standard_normal()
        for i in range(z.shape[0]):
            total = self.means[k, i]
            for j in range(i + 1):
                total += self.roots[k, i, j] * z[j]
            out[i] = total

    def log_terms(self, x: np.ndarray) -> np.ndarray:
        """Logarithms of weight times density of each component, (n, K), at points x (n, d)."""
        z = np.einsum("kij,nkj->nki", self.inverses, x[:, None] - self.means)
        half = 0.5 * (self.freedoms + x.shape[1])
        return self.constants - half * np.log1p((z**2).sum(axis=-1) / self.freedoms)

    def precision(self) -> np.ndarray:
        """The mean of (Lₖ Lₖᵀ)⁻¹, (d, d): near E ∇U∇Uᵀ where components do not overlap."""
        return np.einsum("k,kij,kil->jl", self.weights, self.inverses, self.inverses)


def wide(centres: np.ndarray, covariances: np.ndarray, begun: np.ndarray, times: float = 2.0) -> Mixture:
    """One t around all of several Gaussians, of centres (n, d) and covariances (n, d, d), and where paths have begun.

    Its scale is `times` that of their mixture of equal weights: the covariance within, and that between. The point
    `begun` (d,) is one of the centres: a mode is often balanced by another one on the opposite side of it.
    """
    centres = np.vstack([centres, begun])
    mean = centres.mean(axis=0)
    total = covariances.mean(axis=0) + (centres - mean).T @ (centres - mean) / len(centres)
    return Mixture([1.0], mean[None], times * np.linalg.cholesky(total)[None], [FREEDOM])


def fitted(x: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A mixture of normals by EM, as many as the BIC prefers: weights (K,), means (K, d) and covariances (K, d, d).

    Draws x (n, d) farther than 50 widths from the median, of which a heavy tail has some, are left out.
    """
    centre = np.median(x, axis=0)
    width = 0.5 * np.subtract(*np.quantile(x, [0.84, 0.16], axis=0)) + 1e-12 * (1.0 + np.abs(centre))
    y = (x - centre) / width
    y = y[np.abs(y).max(axis=1) < 50.0]
    n, d = y.shape
    best, found = -math.inf, None
    for components in range(1, MOST + 1):
        if components > 1 and n < 3 * components * (d + 2):
            break
        numbers = components * (d + 1) + components * d * (d + 1) / 2
        improved = False
        for _ in range(1 if components == 1 else ATTEMPTS):
            *parts, likelihood = _em(y, _apart(y, components, rng))
            if likelihood - 0.5 * math.log(n) * numbers > best:
                best, found, improved = likelihood - 0.5 * math.log(n) * numbers, parts, True
        if not improved and components > 2:
            break
    weights, means, covariances = found
    return weights, centre + means * width, covariances * np.outer(width, width)


def _apart(y, components, rng):
    """Of each of the points the nearest of so many that are drawn far from each other (k-means++), (n,)."""
    centres = y[[rng.integers(len(y))]]
    while len(centres) < components:
        square = ((y[:, None] - centres) ** 2).sum(axis=-1).min(axis=1)
        total = square.sum()
        chosen = rng.choice(len(y), p=square / total if total > 0.0 else None)
        centres = np.vstack([centres, y[chosen]])
    return ((y[:, None] - centres) ** 2).sum(axis=-1).argmin(axis=1)


def _em(y, labels):
    """Weights, means, covariances and the log likelihood, from a first labelling of the points y (n, d)."""
    n, d = y.shape
    share, old = np.eye(labels.max() + 1)[labels], -math.inf
    for _ in range(ITERATIONS):
        sums = share.sum(axis=0) + 1e-10
        means, logs, covariances = (share.T @ y) / sums[:, None], [], []
        for k, total in enumerate(sums):
            offset = y - means[k]
            cross = (share[:, k, None] * offset).T @ offset
            # d + 2 draws that know the variances only: of few draws a covariance is singular.
            prior = (d + 2) * (np.diag(np.diag(cross)) / total + FLOOR * np.eye(d))
            covariances.append((cross + prior) / (total + d + 2))
            root = np.linalg.cholesky(covariances[k])
            z = np.linalg.solve(root, offset.T)
            logs.append(math.log(total / n) - np.log(np.diag(root)).sum() - 0.5 * (z**2).sum(axis=0))
        logs = np.stack(logs, axis=1)
        top = logs.max(axis=1, keepdims=True)
        share = np.exp(logs - top)
        likelihood = float((top[:, 0] + np.log(share.sum(axis=1))).sum())
        share /= share.sum(axis=1, keepdims=True)
        if likelihood - old < 1e-5 * n:
            break
        old = likelihood
    return sums / sums.sum(), means, np.array(covariances), likelihood


def defended(
    parts: tuple[np.ndarray, np.ndarray, np.ndarray],
    far: Mixture,
    modes: Sequence[tuple[np.ndarray, np.ndarray, float]],
    log_evidence: float,
) -> Mixture:
    """What was `fitted`, with modes (centre, root, log mass) that it lacks, and a part of the wide t, the last one.

    The modes were found otherwise, their masses by Laplace's approximation; `log_evidence` is as far as it is known.
    """
    weights, means, covariances = (list(part) for part in parts)
    roots = [math.sqrt(WIDENED) * np.linalg.cholesky(c) for c in covariances]
    reach = (2.0 + math.sqrt(far.means.shape[1])) ** 2
    for centre, root, mass in modes:
        z = [np.linalg.solve(L, centre - m) for m, L in zip(means, roots, strict=True)]
        # A component that reaches over a much narrower mode does not serve it.
        near = [
            v @ v <= reach and np.log(np.diag(L) / np.diag(root)).mean() < 1.0 for v, L in zip(z, roots, strict=True)
        ]
        if not any(near) and mass > log_evidence - BEHIND:
            weights.append(max(LEAST, math.exp(min(0.0, mass - log_evidence))))
            means.append(centre)
            roots.append(math.sqrt(WIDENED) * root)
    total = sum(weights)
    weights = [w / total * (1.0 - KEPT) for w in weights] + list(KEPT * far.weights)
    freedoms = [max(FREEDOM, float(far.means.shape[1]))] * len(means) + list(far.freedoms)
    return Mixture(weights, means + list(far.means), roots + list(far.roots), freedoms)
