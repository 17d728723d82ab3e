r"""Samplers with a momentum in other coordinates: what a metric M, their mass matrix, is to them.

With M⁻¹ = L Lᵀ they run in the coordinates y, θ = L y, as if y were the parameter:

    dy = p dt, dp = -Lᵀ∇U dt - D p dt + √(2D) dB,  p ~ N(0, I).

That is dθ = M⁻¹ r dt with the momentum r = L⁻ᵀp ~ N(0, M) . Good is an M near the target's
precision: the sampler then sees curvatures of about 1 in all directions, and its step and its friction are for these.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pdmp.gradients import Provider
from pdmp.native.classes import Compiled, compiled
from pdmp.native.velocities import finite


class PreconditionedMemory(NamedTuple):
    """What `Preconditioned` keeps."""

    metric: tuple  #: that of the metric; its `u` is y
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

    metric: object  #: one of `pdmp.metric`

    def __init__(self, metric):
        self.metric = metric

    @compiled
    def move(self, process, state, rng):
        memory = state.memory
        y = memory.provider.metric.u
        if not (process.move(y, state.v, memory, memory.normals, rng, state.counts) and finite(y)):
            return False
        self.metric.push(memory.provider.metric, state.x)
        return True


class Preconditioned(Provider):
    """Estimates of Lᵀ∇U(L y) at y, from those of ∇U that another provider makes."""

    inner: object
    metric: object

    has_variance = False

    def __init__(self, inner: Provider, metric: Any) -> None:
        super().__init__(inner.model)
        self.inner, self.metric = inner, metric
        self.exact, self.independent, self.anchor = inner.exact, inner.independent, inner.anchor
        self.waits_for_warmup = inner.waits_for_warmup

    @property
    def terms_per_call(self) -> int:
        return self.inner.terms_per_call

    @compiled
    def go(self, y, memory):
        """θ = L y."""
        for j in range(y.shape[0]):
            memory.metric.u[j] = y[j]
        self.metric.push(memory.metric, memory.point)

    @compiled
    def pull(self, memory, out):
        """Lᵀ of the estimate."""
        self.metric.pull(memory.metric, memory.full)
        for j in range(out.shape[0]):
            out[j] = memory.metric.pulled[j]

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
        return PreconditionedMemory(self.metric.memory(np.zeros(d)), np.zeros(d), np.zeros(d), self.inner.memory(rng))


def pulled_back(metric: Any, matrix: np.ndarray) -> np.ndarray:
    """Lᵀ A L of a symmetric A: second derivatives, or the covariance of a gradient, in the coordinates y."""
    half = np.array([metric.transposed(row) for row in matrix])
    return np.array([metric.transposed(column) for column in half.T])
