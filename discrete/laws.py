r"""The stationary law of a fixed-step sampler, predicted for a target that is Gaussian near its mode.

H is the Hessian of U at the mode and V the covariance of the gradient noise there. One step changes a deviation x from
the mode to x' = (I - K) x + noise, so that the stationary covariance solves a linear equation. From it follows the
automatic step: the largest one at which no marginal variance is off by more than a given fraction.
"""

from __future__ import annotations

import math

import numpy as np

from discrete.barker import SPREAD, C
from pdmp.errors import silenced

APART = 1e-4  #: eigenvalues of a step that are closer, relative to their distance from 1, count as equal


def langevin_covariance(hessian, noise, step, injected=None, preconditioner=None):
    """Stationary covariance of SGLD, that is of x' = (I - γPH) x + N(0, Q + γ²PVP); None if it is unstable.

    H is the Hessian, V the covariance of the noise and γ the step. The covariance Q of what is injected is 2γP and the
    preconditioner P the identity when omitted.
    """
    from scipy import linalg

    p = np.eye(len(hessian)) if preconditioner is None else preconditioner
    a = np.eye(len(hessian)) - step * p @ hessian
    if np.abs(np.linalg.eigvals(a)).max() >= 1.0:
        return None
    injected = 2.0 * step * p if injected is None else injected
    with silenced(RuntimeWarning):  # scipy warns of tiny steps, for which the solution is accurate
        return linalg.solve_discrete_lyapunov(a, injected + step**2 * p @ noise @ p.T)


def kinetic_covariance(hessian, noise, linear):
    """Stationary covariance of θ in a sampler with a momentum p; None if the step is unstable.

    ``linear(curvatures)`` is the step along each eigenvector of H as `discrete.kinetic.Underdamped.linear_step` gives
    it: the transition matrices Mᵢ, the effect k of a unit of gradient noise, and the covariance B of injected noise.

    In the eigenvectors of H, each pair i, j of coordinates has the equation S_ij = Mᵢ S_ij Mⱼᵀ + V_ij k kᵀ + δ_ij B. In
    the eigenvectors of Mᵢ and Mⱼ, with eigenvalues μᵢₐ and μⱼᵦ, its solution is a division by 1 - μᵢₐ μⱼᵦ. In a
    critically damped direction the eigenvectors coincide. Close to it rounding errors grow by the square of
    (1 - max |μᵢ|) / |μᵢ₁ - μᵢ₂|; from 1 / `APART` on the four linear equations of S_ij are solved instead.
    """
    curvature, axes = np.linalg.eigh(hessian)
    d = len(curvature)
    m, kick, injected = linear(curvature)
    if not np.all(np.isfinite(m)):
        return None
    values, vectors = np.linalg.eig(m)  # (d, 2), (d, 2, 2)
    if np.abs(values).max() >= 1.0:
        return None
    critical = np.abs(values[:, 0] - values[:, 1]) <= APART * (1.0 - np.abs(values).max(axis=1))
    vectors[critical] = np.eye(2)  # what follows from these is replaced below
    inverse = np.linalg.inv(vectors)
    of_noise = vectors[:, 0] * (inverse @ kick)  # (d, 2): θ-component of each eigenvector times its part of the noise
    sums = 1.0 / (1.0 - np.multiply.outer(values, values))  # (d, 2, d, 2)
    v = axes.T @ noise @ axes
    s = v * np.einsum("ia,iajb,jb->ij", of_noise, sums, of_noise)
    here = np.arange(d)
    own = inverse @ injected @ np.swapaxes(inverse, 1, 2) * sums[here, :, here, :]
    s[here, here] += np.einsum("ia,iab,ib->i", vectors[:, 0], own, vectors[:, 0])
    for i in np.flatnonzero(critical):
        known = v[i, :, None] * np.outer(kick, kick).ravel()  # (d, 4)
        known[i] += np.broadcast_to(injected, (d, 2, 2))[i].ravel()
        products = np.einsum("ab,jce->jacbe", m[i], m).reshape(d, 4, 4)  # Mᵢ ⊗ Mⱼ
        s[i] = s[:, i] = np.linalg.solve(np.eye(4) - products, known[..., None])[:, 0, 0]
    return axes @ s.real @ axes.T


def _barker_response(sigma, tau, estimator):
    """κ, shape (d,): the derivative at g = 0 of the mean increment E[±z] by the gradient g, with noise sd `tau`.

    It is 2 E[z² s expit'(s z η)] over z and the noise η, where s = 1 for the vanilla estimator and the stretch
    C/√(C² - τ² z²) for the corrected one. For the extreme estimator it is E|z| √(2/π) / τ.
    """
    from scipy import special

    nodes, weights = np.polynomial.hermite_e.hermegauss(7)
    z = sigma[:, None] * (1.0 + SPREAD * nodes)
    weights = weights / weights.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        extreme = np.sum(weights * z * math.sqrt(2.0 / math.pi) / tau[:, None], axis=1)
        if estimator == "extreme":
            return extreme
        stretch = np.ones_like(z)
        if estimator == "corrected":
            stretch = C / np.sqrt(C**2 - (tau[:, None] * z) ** 2)
    noise = np.linspace(-8.0, 8.0, 321)  # Gauss-Hermite quadrature fails for steep logistic functions
    density = np.exp(-0.5 * noise**2)
    p = special.expit(
        np.where(np.isfinite(stretch), stretch, 0.0)[..., None] * z[..., None] * tau[:, None, None] * noise
    )
    slope = (p * (1.0 - p)) @ (density / density.sum())
    beyond = z * math.sqrt(2.0 / math.pi) / np.where(tau > 0.0, tau, 1.0)[:, None]
    return np.sum(weights * np.where(np.isfinite(stretch), 2.0 * z**2 * stretch * slope, beyond), axis=1)


def barker_covariance(hessian, noise, scale, estimator):
    """Stationary covariance of SGBD with the scale σ, to leading order in the deviation x from the mode.

    Coordinate j moves by ±zⱼ. So E[xⱼ' - xⱼ] = -κⱼ (Hx)ⱼ, with κⱼ of `_barker_response`, while the mean square of the
    increment is always E[z²]. None if the linearised step is unstable, or has no finite response.
    """
    from scipy import linalg

    d = len(hessian)
    sigma = np.array(np.broadcast_to(np.asarray(scale, dtype=float), (d,)))
    square = sigma**2 * (1.0 + SPREAD**2)
    response = _barker_response(sigma, np.sqrt(np.diag(noise)), estimator)
    if not np.all(np.isfinite(response)):
        return None
    # K = diag(κ) H is T Λ T⁻¹ with T = √κ Q, where Q has the eigenvectors of √κ H √κ: the Lyapunov equation
    # K S + S Kᵀ = D is a division by λᵢ + λⱼ in them.
    root = np.sqrt(response)
    # SciPy's BLAS starts no threads for matrices as small as these: with NumPy's, waiting for them takes far longer.
    values, vectors = linalg.eigh(root[:, None] * hessian * root, driver="evd")
    if np.abs(1.0 - values).max() >= 1.0:
        return None
    k = response[:, None] * hessian
    there, back = root[:, None] * vectors, vectors.T / root
    sums = np.add.outer(values, values)
    shared = response[:, None] * noise * response if estimator != "extreme" else np.zeros((d, d))
    s = np.zeros((d, d))
    for _ in range(60):  # a fixed-point iteration: off the diagonal the product of two mean increments enters
        drift = k @ s @ k.T + shared
        np.fill_diagonal(drift, square)
        new = there @ ((back @ drift @ back.T) / sums) @ there.T
        if not np.all(np.isfinite(new)) or np.abs(new).max() > 1e12 * np.abs(np.diag(square)).max():
            return None
        if np.allclose(new, s, rtol=1e-6, atol=0.0):
            return new
        s = new
    return s


def largest_step(covariance_at, target, largest, error=0.1, points=241):
    """The largest step at which every marginal variance is within the fraction `error` of the target's, and its error.

    ``covariance_at(step)`` is the predicted stationary covariance, or None where the sampler is unstable. The search
    goes down from `largest` by five decades. If no step is within `error`, as for an estimator that is biased at every
    step, it is the one that comes closest. A `ValueError` if the sampler is unstable at all of them.
    """
    truth = np.diag(target)
    best = (math.inf, None)
    for step in largest * np.logspace(0.0, -5.0, points):
        covariance = covariance_at(step)
        if covariance is None:
            continue
        worst = float(np.abs(np.diag(covariance) / truth - 1.0).max())
        if worst <= error:
            return float(step), worst
        if worst < best[0]:
            best = worst, float(step)
    if best[1] is None:
        raise ValueError("no stable step was found within five decades of the largest curvature's limit.")
    return best[1], best[0]
