r"""Preconditioners P of Langevin dynamics: dθ = (-P ∇U + T Γ) dt + √(2T) P^½ dB, Γᵢ = Σⱼ ∂Pᵢⱼ/∂θⱼ.

A number, a vector (the diagonal) or a symmetric positive definite matrix is a constant P, for which Γ = 0. `RMSprop`
adapts a diagonal P to the gradients: Pᵢ = 1 / (ε + √Vᵢ), where V is the running average of their squares. This P
depends on θ.

**Without Γ the law of RMSprop is wrong at every step.** As γ → 0 the average V follows θ and becomes E[ĝᵢ²] at θ, and
the dynamics without Γ have the density ∝ exp(-U/T) / P. On N(0, 1) with exact gradients and ε = 1 its variance is
1.444.

**Γ as it was published** has the derivative of V at the present state only, multiplied by c = 1 - decay. In the limit
of small steps that is too small by the factor c: the density becomes exp(-U/T) P^(c-1), which is almost that without Γ.
The derivative of a running average is the running average of the derivatives, and this is what is used here:

    D ← decay D + (1 - decay) 2 ĝᵢ Ĥᵢᵢ,   Γᵢ = -Pᵢ² Dᵢ / (2 √Vᵢ).

The diagonal of the batch's Hessian is estimated from the gradient at θ + z with the same batch. Each zᵢ is δ or -δ,
at random: Ĥᵢᵢ ≈ (ĝ(θ + z) - ĝ(θ))ᵢ / zᵢ. This costs a second gradient in each step.

Noisy gradients cause another error, with Γ or without it: P contains the newest ĝ, which it multiplies, so that P ĝ is
not an unbiased estimate of P ∇U. The error of the drift is of order 1 - decay at every step, and zero for exact
gradients.

References
----------
Li, Chen, Carlson & Carin (2016), Preconditioned stochastic gradient Langevin dynamics for deep neural networks, AAAI,
eqs 4 and 5 (with the mean gradient where this has the sum); Girolami & Calderhead (2011), Riemann manifold Langevin and
Hamiltonian Monte Carlo methods, JRSS B 73 (Γ).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pdmp.native.classes import Compiled, compiled

__all__ = ["RMSprop"]

#: δ, relative to the coordinate or to 1, whichever is larger.
PROBE = 1e-6


class Preconditioner(Compiled):
    """No preconditioner, and the base of the others.

    ``memory`` is the sampler's. It holds the last estimate of ∇U in ``gradient`` and, for preconditioners that are
    `adaptive`, the arrays ``squares``, ``square_derivatives``, ``probe_point`` and ``probe_gradient``.
    """

    #: Whether P changes from step to step.
    adaptive = False
    #: P as an array of shape (d, d) or (d,); None if it is adaptive or the identity.
    matrix = None
    #: Whether P is diagonal.
    diagonal = True

    @compiled
    def update(self, x, memory, provider, rng, counts):
        """Take the new gradient into account; returns False if something is not finite."""
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
    """A constant diagonal P."""

    entries: np.ndarray  #: (d,) the diagonal of P
    roots: np.ndarray  #: (d,) its square roots

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
    """A constant matrix P."""

    full: np.ndarray  #: (d, d) P
    root: np.ndarray  #: (d, d) the lower triangular Cholesky factor L of P = LLᵀ

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
    """The preconditioner Pᵢ = 1 / (ε + √Vᵢ), V the running average of the squared gradients (Li et al., 2016, eq. 5).

    The average starts at the first squared gradient.

    Parameters
    ----------
    decay : float, default 0.99
        Weight of the old value in the averages, in [0, 1).
    eps : float, default 1e-5
        ε > 0, in units of the gradient of the full sum. The largest possible entry of P is 1/ε.
    include_gamma : bool, default False
        Whether to add the drift Γ, at the price of a second gradient in each step. Without it the law is wrong at every
        step; see the text of `discrete.preconditioners`.

    Raises
    ------
    TypeError
        If `include_gamma` is not True or False.
    ValueError
        For a decay outside [0, 1), or ε that is not a positive number.

    Examples
    --------
    >>> import discrete, pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 100.0])
    >>> P = discrete.preconditioners.RMSprop(eps=1.0, include_gamma=True)
    >>> discrete.SGLD(model, step=0.01, preconditioner=P).preconditioner.eps
    1.0
    """

    decay: float
    eps: float
    include_gamma: bool

    adaptive = True

    def __init__(self, decay: float = 0.99, eps: float = 1e-5, include_gamma: bool = False):
        if not 0.0 <= decay < 1.0:
            raise ValueError(f"`decay` of RMSprop must lie in [0, 1), got {decay!r}.")
        if not 0.0 < eps < math.inf:
            raise ValueError(f"`eps` of RMSprop must be a positive number, got {eps!r}.")
        if not isinstance(include_gamma, (bool, np.bool_)):
            raise TypeError(f"`include_gamma` of RMSprop must be True or False, got {include_gamma!r}.")
        self.decay, self.eps, self.include_gamma = float(decay), float(eps), bool(include_gamma)

    @compiled
    def update(self, x, memory, provider, rng, counts):
        gradient, squares, derivatives, point = (
            memory.gradient,
            memory.squares,
            memory.square_derivatives,
            memory.probe_point,
        )
        weight = 1.0 if memory.taken[0] == 0 else 1.0 - self.decay
        if self.include_gamma:
            for j in range(x.shape[0]):
                z = PROBE * max(1.0, abs(x[j]))
                point[j] = x[j] + (z if rng.random() < 0.5 else -z)
            provider.gradient_again(point, memory.provider, memory.probe_gradient, counts)
            for j in range(x.shape[0]):
                curvature = (memory.probe_gradient[j] - gradient[j]) / (point[j] - x[j])
                if not math.isfinite(curvature):
                    return False
                derivatives[j] += weight * (2.0 * gradient[j] * curvature - derivatives[j])
        for j in range(x.shape[0]):
            squares[j] += weight * (gradient[j] * gradient[j] - squares[j])
        return True

    @compiled
    def drift(self, j, temperature, memory):
        root = math.sqrt(memory.squares[j])
        p = 1.0 / (self.eps + root)
        if self.include_gamma and root > 0.0:
            return p * memory.gradient[j] + temperature * p * p * memory.square_derivatives[j] / (2.0 * root)
        return p * memory.gradient[j]

    @compiled
    def noise(self, j, z, memory):
        return math.sqrt(self.entry(j, memory)) * z[j]

    @compiled
    def entry(self, j, memory):
        return 1.0 / (self.eps + math.sqrt(memory.squares[j]))


def as_preconditioner(value: ArrayLike | Preconditioner | None, dim: int) -> Preconditioner:
    """The `Preconditioner` that None, a number, a vector, a matrix or one of these classes stands for."""
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
