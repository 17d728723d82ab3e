r"""Preconditioners P of Langevin dynamics: dθ = (-P ∇U + T Γ) dt + √(2T) P^½ dB, Γᵢ = Σⱼ ∂Pᵢⱼ/∂θⱼ.

A constant metric M gives P = M⁻¹, for which Γ = 0. The two classes here are given as a metric too, and are another
thing: they are P, and it changes in the run. `RMSprop` adapts a diagonal P to the gradients: Pᵢ = 1 / (ε + √Vᵢ), where
V is the running average of their squares. This P depends on θ.

`Scheduled` is a P that changes at given steps: Pₖ of step k. As it does not depend on θ, Γ = 0, and exp(-U/T) is the
law of the dynamics with every Pₖ. What is stationary:

- with constant steps, the law of SGLD with the last P, with its bias. What comes before the last change belongs in the
  warm-up, or averages mix the biases of all Pₖ;
- with decreasing steps γₖ, weighted by them, averages converge to those of exp(-U/T), whatever the schedule, as long
  as it is fixed before the run and the eigenvalues of all Pₖ lie between two positive bounds. A P chosen from the path
  is another matter.

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

import copy
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from pdmp.metric import Metric, check_metric, covariance_of
from pdmp.native.arguments import fraction, positive
from pdmp.native.classes import Compiled, compiled

__all__ = ["RMSprop", "Scheduled"]

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
    #: Whether P changes at given steps.
    scheduled = False

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
    >>> discrete.SGLD(model, step=0.01, metric=P).preconditioner.eps
    1.0
    """

    decay: float
    eps: float
    include_gamma: bool

    adaptive = True

    def __init__(self, decay: float = 0.99, eps: float = 1e-5, include_gamma: bool = False):
        self.decay, self.eps = fraction("decay", decay), positive("eps", eps)
        self.include_gamma = bool(include_gamma)

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


class Scheduled(Preconditioner):
    """A preconditioner that changes at given steps: P is covariances[i] from step steps[i] on.

    What is stationary then is in the text of `discrete.preconditioners`.

    Parameters
    ----------
    covariances : callable or sequence of array_like
        The P = M⁻¹: numbers, diagonals of shape (d,), or matrices of shape (d, d), one for each of `steps`, such as
        an array of shape (n, d). A function of the number of the step is called at each of `steps`, before the run.
    steps : sequence of int, shape (n,)
        Numbers of the steps at which P changes, increasing; the first is 0.

    Raises
    ------
    ValueError
        If `steps` does not increase from 0, or there are not as many values.

    Examples
    --------
    >>> import discrete, pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 100.0])
    >>> P = discrete.preconditioners.Scheduled([[1.0, 1.0], [1.0, 0.01]], steps=[0, 500])
    >>> discrete.SGLD(model, step=0.01, metric=P).preconditioner.entries[1]
    array([1.  , 0.01])
    >>> P = discrete.preconditioners.Scheduled(lambda k: 1.0 / (1.0 + k), steps=range(0, 1_000, 10))
    """

    steps: np.ndarray  #: (n,) at which P changes
    entries: np.ndarray  #: (n, d) diagonals of P
    full: np.ndarray  #: (n, d, d) P; empty if it is diagonal
    roots: np.ndarray  #: (n, d) or (n, d, d): P^½, or its lower triangular Cholesky factor
    diagonal: bool

    scheduled = True

    def __init__(self, covariances: Callable[[int], ArrayLike] | Sequence[ArrayLike], steps: Sequence[int]):
        array = np.array(steps)
        if array.ndim != 1 or array.dtype.kind not in "iu" or array[:1] != 0 or np.any(np.diff(array) <= 0):
            raise ValueError(f"`steps` must be whole numbers that increase from 0, got {steps!r}.")
        self.steps = array.astype(np.int64)
        self.covariances = [covariances(int(k)) for k in array] if callable(covariances) else list(covariances)
        if len(self.covariances) != len(array):
            raise ValueError(
                f"`covariances` must have one entry for each of `steps`, {len(array)}; got {len(self.covariances)}."
            )
        self.entries = self.full = self.roots = np.zeros((0, 0))
        self.diagonal = True

    def of_dimension(self, dim: int) -> Scheduled:
        """The same with its arrays, for this dimension."""
        each = [Metric(covariance=value).covariance(dim) for value in self.covariances]
        other = copy.copy(self)
        other.diagonal = all(p.ndim == 1 for p in each)
        other.entries = np.array([p if p.ndim == 1 else np.diag(p) for p in each])
        other.full = np.zeros((0, 0, 0))
        if not other.diagonal:
            other.full = np.array([p if p.ndim == 2 else np.diag(p) for p in each])
        other.roots = np.sqrt(other.entries)[:, :, None] if other.diagonal else np.linalg.cholesky(other.full)
        return other

    def repeated(self) -> Scheduled:
        """The same with every step twice, for a chain with half the step."""
        other = copy.copy(self)
        other.steps = 2 * self.steps
        return other

    @compiled
    def period(self, memory):
        """The number of the present P."""
        k, first, last = memory.taken[0], 0, self.steps.shape[0]
        while last - first > 1:
            middle = (first + last) // 2
            if self.steps[middle] <= k:
                first = middle
            else:
                last = middle
        return first

    @compiled
    def drift(self, j, temperature, memory):
        i, total = self.period(memory), 0.0
        if self.diagonal:
            return self.entries[i, j] * memory.gradient[j]
        for k in range(self.full.shape[1]):
            total += self.full[i, j, k] * memory.gradient[k]
        return total

    @compiled
    def noise(self, j, z, memory):
        i, total = self.period(memory), 0.0
        if self.diagonal:
            return self.roots[i, j, 0] * z[j]
        for k in range(j + 1):
            total += self.roots[i, j, k] * z[k]
        return total

    @compiled
    def entry(self, j, memory):
        return self.entries[self.period(memory), j]


def as_preconditioner(metric: ArrayLike | Metric | Preconditioner | None, dim: int, name: str) -> Preconditioner:
    """The `Preconditioner` P = M⁻¹ that a metric stands for, which may be one of these classes itself."""
    if isinstance(metric, Scheduled):
        return metric.of_dimension(dim)
    if isinstance(metric, Preconditioner):
        return metric
    made = check_metric(metric, dim, f"discrete.{name}")
    if made is None:
        return Preconditioner()
    p = metric.covariance(dim) if isinstance(metric, Metric) else covariance_of(made)
    constant = Scheduled([p], steps=[0]).of_dimension(dim)
    constant.matrix, constant.scheduled = p, False
    return constant
