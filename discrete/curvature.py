"""What a target is like around its mode: the Hessian of U there, and the covariance of the gradient's noise."""

from __future__ import annotations

import math

import numpy as np

from pdmp.gradients import Noisy

#: Largest dimension in which all directions are looked at.
DENSE = 500


def noise_covariance(provider, x):
    """Covariance of the provider's estimate of ∇U at `x`, shape (d, d), for batches drawn independently.

    Cov(∇Uᵢ/pᵢ)/n for terms i drawn with probabilities pᵢ, (N²/n) Cov(∇Uᵢ) when all are alike, of which without
    replacement a share 1 - n/N is left; zero for an exact gradient.
    """
    d, n_data = provider.dim, provider.n_data
    if provider.exact:
        return np.zeros((d, d))
    if isinstance(provider, Noisy):
        return np.diag(provider.scale**2)
    inverse = _inverse_probabilities(provider)
    total, square = np.zeros(d), np.zeros((d, d))
    for rows in np.array_split(np.arange(n_data), max(1, n_data // 20_000)):
        terms = _centred(provider, x, rows)
        total += terms.sum(axis=0)
        square += terms.T @ (inverse[rows, None] * terms)
    return _share_left(provider) / provider.size * (square - np.outer(total, total))


def _inverse_probabilities(provider):
    """1 / pᵢ of each term, (N,)."""
    if getattr(provider, "draw", "iid") != "importance":
        return np.full(provider.n_data, float(provider.n_data))
    contributions = provider.contributions()
    return contributions.sum() / np.where(contributions > 0.0, contributions, np.inf)


def _centred(provider, x, rows):
    """Gradients of these terms at `x`, less those at the anchor of control variates, (len(rows), d)."""
    terms = provider.model.term_gradients(x, rows)
    return terms if provider.anchor is None else terms - provider.model.term_gradients(provider.anchor, rows)


def _share_left(provider):
    """The share of the variance that is left when batches are drawn without replacement."""
    n, n_data = provider.size, provider.n_data
    if getattr(provider, "draw", "iid") not in ("distinct", "reshuffle", "epoch"):
        return 1.0
    return (n_data - n) / max(n_data - 1, 1)


def local_law(provider, x):
    """Hessian of U at its mode and covariance of the gradient's noise there: what an automatic step is chosen from.

    Up to `DENSE` dimensions both are (d, d). Above, they are (1, 1), those along the direction of largest curvature.

    Parameters
    ----------
    provider : any of `pdmp.gradients`
    x : ndarray, shape (d,)
        Where to look for the mode from; it stands for the mode where that is not found.
    """
    model = provider.model
    found = provider.anchor if provider.anchor is not None else model.mode(x)
    mode = np.asarray(x if found is None else found, dtype=float)
    if model.dim > DENSE:
        hessian, noise = _stiffest(provider, mode)
    else:
        hessian, noise = model.hessian(mode), noise_covariance(provider, mode)
    if not (np.all(np.isfinite(hessian)) and np.all(np.isfinite(noise))):
        raise ValueError(
            "an automatic step needs a finite Hessian and gradient where the run starts; give a step, or another "
            "`initial`."
        )
    curvature, axes = np.linalg.eigh(hessian)
    if curvature[0] <= 0.0:  # not at a mode: what curves downwards is taken to curve upwards
        if not np.abs(curvature).max() > 0.0:
            raise ValueError("an automatic step needs a potential that is curved where the run starts; give a step.")
        curvature = np.maximum(np.abs(curvature), 1e-6 * np.abs(curvature).max())
        hessian = axes * curvature @ axes.T
    return hessian, noise


def _stiffest(provider, x, iterations=50, rows=2_000):
    """`local_law` along the direction of largest curvature, found by power iteration of differences of gradients."""
    model, rng = provider.model, np.random.default_rng(0)
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
    noise, n_data = 0.0, provider.n_data
    if isinstance(provider, Noisy):
        noise = float(np.sum((u * provider.scale) ** 2))
    elif not provider.exact:
        some = np.sort(rng.choice(n_data, min(rows, n_data), replace=False))
        p = np.concatenate([_centred(provider, x, part) @ u for part in np.array_split(some, len(some) // 20 + 1)])
        variance = n_data * np.mean(_inverse_probabilities(provider)[some] * p**2) - (n_data * np.mean(p)) ** 2
        noise = _share_left(provider) / provider.size * max(float(variance), 0.0)
    return np.array([[curvature]]), np.array([[noise]])
