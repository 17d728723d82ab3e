r"""Samplers with a momentum in other coordinates: what a preconditioner P, the inverse of a mass matrix, is to them.

With P = L Lᵀ they run in the coordinates y, θ = L y, as if y were the parameter:

    dy = p dt, dp = -Lᵀ∇U dt - D p dt + √(2D) dB,  p ~ N(0, I).

That is dθ = M⁻¹ r dt with the momentum r = L⁻ᵀp ~ N(0, M) and the mass M = P⁻¹. Good is a P near the target's
covariance: the sampler then sees curvatures of about 1 in all directions, and its step and its friction are for these.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from discrete.preconditioners import as_preconditioner
from pdmp.gradients import Provider
from pdmp.native.classes import Compiled, compiled
from pdmp.native.velocities import finite
from pdmp.processes.mass import Dense, Diagonal


class PreconditionedMemory(NamedTuple):
    """What `Preconditioned` keeps."""

    mass: tuple  #: that of the mass; its `u` is y
    point: np.ndarray  #: (d,) θ
    full: np.ndarray  #: (d,) the estimate of ∇U there
    inner: tuple


class Natural(Compiled):
    """The coordinates of θ itself."""

    @compiled
    def move(self, process, state, rng):
        """One step; returns False if something is not finite."""
        x, memory = state.x, state.memory
        return process.move(x, state.v, memory, memory.normals, rng, state.counts) and finite(x)


class Transformed(Compiled):
    """The coordinates y, θ = L y."""

    mass: object  #: one of `pdmp.processes.mass`

    def __init__(self, mass):
        self.mass = mass

    @compiled
    def move(self, process, state, rng):
        memory = state.memory
        y = memory.provider.mass.u
        if not (process.move(y, state.v, memory, memory.normals, rng, state.counts) and finite(y)):
            return False
        self.mass.push(memory.provider.mass, state.x)
        return True


class Preconditioned(Provider):
    """Estimates of Lᵀ∇U(L y) at y, from those of ∇U that another provider makes."""

    inner: object
    mass: object

    has_variance = False

    def __init__(self, inner: Provider, mass: Any) -> None:
        super().__init__(inner.model)
        self.inner, self.mass = inner, mass
        self.exact, self.independent, self.anchor = inner.exact, inner.independent, inner.anchor
        self.waits_for_warmup = inner.waits_for_warmup

    @property
    def terms_per_call(self) -> int:
        return self.inner.terms_per_call

    @compiled
    def go(self, y, memory):
        """θ = L y."""
        for j in range(y.shape[0]):
            memory.mass.u[j] = y[j]
        self.mass.push(memory.mass, memory.point)

    @compiled
    def pull(self, memory, out):
        """Lᵀ of the estimate."""
        self.mass.pull(memory.mass, memory.full)
        for j in range(out.shape[0]):
            out[j] = memory.mass.pulled[j]

    @compiled
    def gradient(self, x, memory, rng, out, counts):
        self.go(x, memory)
        self.inner.gradient(memory.point, memory.inner, rng, memory.full, counts)
        self.pull(memory, out)

    @compiled
    def gradient_again(self, x, memory, out, counts):
        self.go(x, memory)
        self.inner.gradient_again(memory.point, memory.inner, memory.full, counts)
        self.pull(memory, out)

    def memory(self, rng):
        d = self.dim
        return PreconditionedMemory(self.mass.memory(np.zeros(d)), np.zeros(d), np.zeros(d), self.inner.memory(rng))


def mass_from(preconditioner: Any, dim: int, name: str) -> Compiled | None:
    """The mass, of `pdmp.processes.mass`, whose inverse is what a user gave as `preconditioner`; None for None.

    Raises
    ------
    TypeError
        If it is not constant.
    ValueError
        If it is of another shape or not positive definite.
    """
    if preconditioner is None:
        return None
    given = as_preconditioner(preconditioner, dim)
    if given.matrix is None:
        raise TypeError(
            f"`preconditioner` of {name} must be constant, a number or an array, got a {type(given).__name__}."
        )
    return Diagonal(np.sqrt(given.matrix)) if given.matrix.ndim == 1 else Dense(np.linalg.cholesky(given.matrix))


def pulled_back(mass: Any, matrix: np.ndarray) -> np.ndarray:
    """Lᵀ A L of a symmetric A: second derivatives, or the covariance of a gradient, in the coordinates y."""
    half = np.array([mass.transposed(row) for row in matrix])
    return np.array([mass.transposed(column) for column in half.T])
