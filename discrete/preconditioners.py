r"""Preconditioners P of Langevin dynamics: dθ = (-P ∇U + T Γ) dt + √(2T) P^½ dB, Γᵢ = Σⱼ ∂Pᵢⱼ/∂θⱼ.

A number, a vector (the diagonal) or a symmetric positive definite matrix is constant, so that Γ = 0. `RMSprop` adapts
the diagonal to the gradients, Pᵢ = 1 / (ε + √Vᵢ) with the running average V of their squares: it depends on θ.

**Without Γ the law of RMSprop is wrong at every step.** As γ → 0 the average V follows θ and becomes E[ĝᵢ²] at θ, and
the dynamics without Γ have the density ∝ exp(-U/T) / P. On N(0, 1) with exact gradients and ε = 1 that has variance
1.444.

**Γ as it was published** has the derivative of V at the present state only, multiplied by 1 - decay. In the limit of
small steps that is too little by this factor c = 1 - decay: the density becomes exp(-U/T) P^(c-1), almost that without
Γ. The derivative of a running average is the running average of derivatives, which is what is used here:

    D ← decay D + (1 - decay) 2 ĝᵢ Ĥᵢᵢ,   Γᵢ = -Pᵢ² Dᵢ / (2 √Vᵢ).

The diagonal of the batch's Hessian is estimated by one random probe z = ±δ with the same batch, at the price of a
second gradient: Ĥᵢᵢ ≈ (ĝ(θ + z) - ĝ(θ))ᵢ / zᵢ.

Noisy gradients leave an error of another kind, with Γ or without: the newest ĝ is in the P that multiplies it, so that
P ĝ is not unbiased for P ∇U. It is of order 1 - decay in the drift, whatever the step, and zero for exact gradients.

References
----------
Li, Chen, Carlson & Carin (2016), Preconditioned stochastic gradient Langevin dynamics for deep neural networks, AAAI,
eqs 4 and 5 (with the mean gradient where this has the sum); Girolami & Calderhead (2011), Riemann manifold Langevin and
Hamiltonian Monte Carlo methods, JRSS B 73 (Γ).
"""

from __future__ import annotations

import math

import numpy as np

from pdmp.native.classes import Compiled, compiled

#: Length of the probe of the Hessian's diagonal, relative to a coordinate or to 1.
PROBE = 1e-6


class Preconditioner(Compiled):
    """No preconditioner, and the base of the others.

    ``memory`` is that of the sampler: it has the last estimate of ∇U in ``gradient`` and, for preconditioners that are
    `adaptive`, the arrays ``squares``, ``slopes``, ``probe`` and ``there``.
    """

    #: Whether P changes from step to step.
    adaptive = False
    #: P as an array of shape (d, d) or (d,), None if it is adaptive or the identity.
    matrix = None
    #: Whether P is diagonal.
    diagonal = True

    @compiled
    def update(self, x, memory, provider, rng, counts):
        """Look at the new gradient, and return whether all is finite."""
        return True

    @compiled
    def drift(self, j, temperature, memory):
        """(P ∇Û - T Γ)ⱼ."""
        return memory.gradient[j]

    @compiled
    def noise(self, j, z, memory):
        """(P^½ z)ⱼ."""
        return z[j]

    @compiled
    def entry(self, j, memory):
        """Pⱼⱼ."""
        return 1.0


class Diagonal(Preconditioner):
    """A constant diagonal."""

    entries: np.ndarray
    roots: np.ndarray

    def __init__(self, entries):
        self.entries, self.roots = entries, np.sqrt(entries)
        self.matrix = entries

    @compiled
    def drift(self, j, temperature, memory):
        return self.entries[j] * memory.gradient[j]

    @compiled
    def noise(self, j, z, memory):
        return self.roots[j] * z[j]

    @compiled
    def entry(self, j, memory):
        return self.entries[j]


class Dense(Preconditioner):
    """A constant matrix; its root is Cholesky's factor."""

    full: np.ndarray
    root: np.ndarray

    diagonal = False

    def __init__(self, full):
        self.full, self.root = full, np.linalg.cholesky(full)
        self.matrix = full

    @compiled
    def drift(self, j, temperature, memory):
        total = 0.0
        for k in range(self.full.shape[0]):
            total += self.full[j, k] * memory.gradient[k]
        return total

    @compiled
    def noise(self, j, z, memory):
        total = 0.0
        for k in range(j + 1):
            total += self.root[j, k] * z[k]
        return total

    @compiled
    def entry(self, j, memory):
        return self.full[j, j]


class RMSprop(Preconditioner):
    """Pᵢ = 1 / (ε + √Vᵢ), V the running average of the squared gradients, which starts at the first of them.

    Parameters
    ----------
    decay : float, default 0.99
        Weight of the old value in the averages, in [0, 1).
    eps : float, default 1e-5
        ε > 0, in units of the gradient of the full sum: the largest entry of P is 1/ε.
    include_gamma : bool, default False
        Add the drift Γ, without which the law is wrong at every step, at the price of a second gradient a step; see
        the module's text.
    """

    decay: float
    eps: float
    include_gamma: bool

    adaptive = True

    def __init__(self, decay=0.99, eps=1e-5, include_gamma=False):
        if not 0.0 <= decay < 1.0:
            raise ValueError(f"`decay` of RMSprop must lie in [0, 1), got {decay!r}.")
        if not 0.0 < eps < math.inf:
            raise ValueError(f"`eps` of RMSprop must be a positive number, got {eps!r}.")
        if not isinstance(include_gamma, (bool, np.bool_)):
            raise TypeError(f"`include_gamma` of RMSprop must be True or False, got {include_gamma!r}.")
        self.decay, self.eps, self.include_gamma = float(decay), float(eps), bool(include_gamma)

    @compiled
    def update(self, x, memory, provider, rng, counts):
        gradient, squares, slopes, there = memory.gradient, memory.squares, memory.slopes, memory.there
        weight = 1.0 if memory.taken[0] == 0 else 1.0 - self.decay
        if self.include_gamma:
            for j in range(x.shape[0]):
                z = PROBE * max(1.0, abs(x[j]))
                there[j] = x[j] + (z if rng.random() < 0.5 else -z)
            provider.gradient_again(there, memory.provider, memory.probe, counts)
            for j in range(x.shape[0]):
                curvature = (memory.probe[j] - gradient[j]) / (there[j] - x[j])
                if not math.isfinite(curvature):
                    return False
                slopes[j] += weight * (2.0 * gradient[j] * curvature - slopes[j])
        for j in range(x.shape[0]):
            squares[j] += weight * (gradient[j] * gradient[j] - squares[j])
        return True

    @compiled
    def drift(self, j, temperature, memory):
        root = math.sqrt(memory.squares[j])
        p = 1.0 / (self.eps + root)
        if self.include_gamma and root > 0.0:
            return p * memory.gradient[j] + temperature * p * p * memory.slopes[j] / (2.0 * root)
        return p * memory.gradient[j]

    @compiled
    def noise(self, j, z, memory):
        return math.sqrt(self.entry(j, memory)) * z[j]

    @compiled
    def entry(self, j, memory):
        return 1.0 / (self.eps + math.sqrt(memory.squares[j]))


def as_preconditioner(value, dim):
    """A `Preconditioner` from what users give: None, a number, a vector, a matrix, or one of these classes."""
    if value is None:
        return Preconditioner()
    if isinstance(value, Preconditioner):
        return value
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(
            f"`preconditioner` must be a number, an array or discrete.preconditioners.RMSprop, got {value!r}."
        ) from None
    if array.shape not in ((), (dim,), (dim, dim)):
        raise ValueError(
            f"`preconditioner` must be a number or have shape ({dim},) or ({dim}, {dim}), got {array.shape}."
        )
    if not np.all(np.isfinite(array)):
        raise ValueError("`preconditioner` must be finite.")
    if array.ndim < 2:
        if not np.all(array > 0.0):
            raise ValueError(f"`preconditioner` must be positive, got {array.min():g}.")
        return Diagonal(np.broadcast_to(array, (dim,)).copy())
    if np.abs(array - array.T).max() > 1e-8 * np.abs(array).max():
        raise ValueError("`preconditioner` must be symmetric.")
    array = 0.5 * (array + array.T)
    smallest = np.linalg.eigvalsh(array)[0]
    if not smallest > 1e-14 * np.abs(array).max():
        raise ValueError(f"`preconditioner` must be positive definite; its smallest eigenvalue is {smallest:.3g}.")
    return Dense(array)
