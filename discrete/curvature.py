"""The Hessian of U at the mode, and the covariance of the gradient's noise there: what automatic steps depend on."""

from __future__ import annotations

import math

import numpy as np

from pdmp.gradients import Noisy

#: Largest dimension in which Hessian and covariance are whole matrices.
DENSE_DIMENSIONS = 500
PIECE = 20_000  #: data at a time
POINTS = 8  #: at which curvatures are looked at beside the mode


def noise_covariance(provider, x):
    """Covariance of the provider's estimate of ∇U at `x`, for batches drawn independently.

    For n terms drawn with probabilities pᵢ it is Cov(∇Uᵢ/pᵢ)/n, for equal probabilities (N²/n) Cov(∇Uᵢ). Without
    replacement that is multiplied by the finite-population factor (N - n)/(N - 1). It is zero for an exact gradient.
    """
    d, n_data = provider.dim, provider.n_data
    if provider.exact:
        return np.zeros((d, d))
    if isinstance(provider, Noisy):
        return np.diag(provider.scale**2)
    inverse = _inverse_probabilities(provider)
    total, square = np.zeros(d), np.zeros((d, d))
    for rows in np.array_split(np.arange(n_data), max(1, n_data // PIECE)):
        terms = _centred(provider, x, rows)
        total += terms.sum(axis=0)
        square += terms.T @ (inverse[rows, None] * terms)
    return _finite_population_factor(provider) / provider.size * (square - np.outer(total, total))


def _inverse_probabilities(provider):
    """1 / pᵢ of each term, (N,)."""
    if getattr(provider, "draw", "iid") != "importance":
        return np.full(provider.n_data, float(provider.n_data))
    contributions = provider.contributions()
    return contributions.sum() / np.where(contributions > 0.0, contributions, np.inf)


def _centred(provider, x, rows):
    """Gradients of these terms at `x`, minus those at the anchor of control variates, (len(rows), d)."""
    terms = provider.model.term_gradients(x, rows)
    return terms if provider.anchor is None else terms - provider.model.term_gradients(provider.anchor, rows)


def _finite_population_factor(provider):
    """Variance of a batch drawn without replacement, relative to one drawn with it; 1 for one drawn with it."""
    n, n_data = provider.size, provider.n_data
    if getattr(provider, "draw", "iid") not in ("distinct", "reshuffle", "epoch"):
        return 1.0
    return (n_data - n) / max(n_data - 1, 1)


def local_law(provider, x):
    """Hessian of U at the mode, and covariance of the gradient's noise there.

    The search for the mode begins at `x`, which is taken in its place where none is found; negative curvatures are then
    replaced by their absolute values. Above `DENSE_DIMENSIONS` dimensions both are of shape (1, 1), along the direction
    of the largest curvature. A `ValueError` if one of them is not finite, or the Hessian is zero.
    """
    model, mode = provider.model, mode_near(provider, x)
    if model.dim > DENSE_DIMENSIONS:
        hessian, noise = _along_largest_curvature(provider, mode)
    else:
        hessian, noise = model.hessian(mode), noise_covariance(provider, mode)
    if not (np.all(np.isfinite(hessian)) and np.all(np.isfinite(noise))):
        raise ValueError(
            "an automatic step needs a finite Hessian and gradient where the run starts; give a step, or another "
            "`initial`."
        )
    curvature, axes = np.linalg.eigh(hessian)
    if curvature[0] <= 0.0:  # not at a mode
        if not np.abs(curvature).max() > 0.0:
            raise ValueError("an automatic step needs a potential that is curved where the run starts; give a step.")
        curvature = np.maximum(np.abs(curvature), 1e-6 * np.abs(curvature).max())
        hessian = axes * curvature @ axes.T
    return hessian, noise


def mode_near(provider, x):
    """The provider's anchor, or the mode that is found from `x`, or `x`."""
    found = provider.anchor if provider.anchor is not None else provider.model.mode(x)
    return np.asarray(x if found is None else found, dtype=float)


def largest_curvature(provider, mode, hessian, own=lambda hessian: hessian):
    """The largest curvature of U at the mode and where the normal law with this Hessian at the mode is likely to be.

    At `POINTS` points drawn from it, fewer above 50 dimensions and none above `DENSE_DIMENSIONS`. `own` takes a Hessian
    to the coordinates in which curvatures are asked for.
    """
    curvature, axes = np.linalg.eigh(hessian)
    largest, d = float(np.linalg.eigvalsh(own(hessian))[-1]), len(mode)
    if len(hessian) != d or provider.model.has("affine_partial"):
        return largest
    rng = np.random.default_rng(0)
    for _ in range(max(2, min(POINTS, 400 // d))):
        x = mode + axes @ (rng.standard_normal(d) / np.sqrt(curvature))
        with np.errstate(all="ignore"):
            there = provider.model.hessian(x)
        if np.all(np.isfinite(there)):  # else outside the support
            largest = max(largest, float(np.linalg.eigvalsh(own(there))[-1]))
    return largest


def curvature_along(model, x, iterations, rng=None):
    """The largest curvature of U at `x` and its direction (d,), by power iteration with differences of gradients."""
    rng = np.random.default_rng(0) if rng is None else rng
    u, curvature = rng.standard_normal(model.dim), 0.0
    u /= np.linalg.norm(u)
    h = 1e-5 * max(1.0, float(np.linalg.norm(x)) / math.sqrt(model.dim))
    for _ in range(iterations):
        w = (model.gradient(x + h * u) - model.gradient(x - h * u)) / (2.0 * h)
        before, curvature = curvature, float(np.linalg.norm(w))
        if not 0.0 < curvature < math.inf:
            break
        u = w / curvature
        if abs(curvature - before) < 1e-3 * curvature:
            break
    return curvature, u


def _along_largest_curvature(provider, x, rows=2_000):
    """Curvature and variance of the noise along the direction of largest curvature, (1, 1) each.

    The variance is estimated from at most `rows` terms.
    """
    rng = np.random.default_rng(0)
    curvature, u = curvature_along(provider.model, x, 50, rng)
    noise, n_data = 0.0, provider.n_data
    if isinstance(provider, Noisy):
        noise = float(np.sum((u * provider.scale) ** 2))
    elif not provider.exact:
        some = np.sort(rng.choice(n_data, min(rows, n_data), replace=False))
        p = np.concatenate([_centred(provider, x, part) @ u for part in np.array_split(some, len(some) // 20 + 1)])
        variance = n_data * np.mean(_inverse_probabilities(provider)[some] * p**2) - (n_data * np.mean(p)) ** 2
        noise = _finite_population_factor(provider) / provider.size * max(float(variance), 0.0)
    return np.array([[curvature]]), np.array([[noise]])
