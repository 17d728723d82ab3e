r"""UBU: underdamped Langevin dynamics with an exact solution of its linear part.

dθ = p dt, dp = -∇U dt - D p dt + √(2D) dB

=====  =========================================================================================================
flow   none
clock  ticks of ε
rate   none: every tick is an event
jump   U  for half a step, the exact solution without ∇U:  θ += (1 - e) p / D + A,  p = e p + C,  e = e^(-Dε/2)
       B  p -= ε ∇Û(θ)
       U  for the other half
=====  =========================================================================================================

A and C are jointly normal with, for u = Dε/2,

    Var C = 1 - e²,   Cov(A, C) = (1 - e)² / D,   Var A = (2u - 3 + 4e - e²) / D²,

so that A, given C, is tanh(u/2) C / D + N(0, 2 (u - 2 tanh(u/2)) / D²). The two halves have four normal numbers for
each coordinate. Only three combinations of them matter, in θ where the gradient is taken, in θ at the end, and in p at
the end; so three normals are drawn.

A step needs one gradient. The bias is of order ε² and so is, for smooth U, the strong error, one order higher than
for integrators that add noise to p alone. Gradient noise of standard deviation τ raises the temperature, and with it
the variance of θ by the factor 1 + ετ²/(2D), to leading order. On U = λθ²/2 the step is stable for
ελ tanh(Dε/2) < 2D.

References
----------
Zapatero (2017), Word series for the numerical integration of stochastic differential equations, PhD thesis, Valladolid;
Sanz-Serna & Zygalakis (2021), Wasserstein distance estimates for the distributions of numerical approximations to
ergodic stochastic differential equations, JMLR 22; Paulin, Whalley, Chada & Leimkuhler (2025), Sampling from
Bayesian neural network posteriors with symmetric minibatch splitting Langevin dynamics, AISTATS (mini-batches).
"""

from __future__ import annotations

import math

import numpy as np

from discrete.kinetic import Underdamped, count_temperature
from discrete.tick import finite
from pdmp.gradients import Provider
from pdmp.models import Model
from pdmp.native.arguments import positive
from pdmp.native.classes import compiled, inlined


@inlined
def remainder(u):
    """u - 2 tanh(u/2) for u > 0; for small u by its series, since digits would cancel in the difference."""
    if u > 0.03:
        return u - 2.0 * math.tanh(0.5 * u)
    s = u * u
    return u * s * (1.0 / 12.0 - s * (1.0 / 120.0 - s * 17.0 / 20160.0))


class UBU(Underdamped):
    """Underdamped Langevin dynamics on exp(-U), integrated by UBU.

    Parameters
    ----------
    provider : pdmp.Model or any of `pdmp.gradients`
        Estimates of ∇U, one in each step.
    step : float, schedule or "auto", default "auto"
        ε, the integrator's step, a time, for the momentum p ~ N(0, I); `from_c` is for another momentum. "auto": see
        `discrete.schedules.automatic`.
    friction, metric
        As for `SGHMC`.

    Raises
    ------
    ValueError
        For a step or friction that is not positive, or a metric of another shape or not positive definite.

    Examples
    --------
    >>> import discrete, pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> sampler = discrete.UBU.from_c(model, h=0.2, gamma=2.0, c=0.25)
    >>> sampler.schedule.step(0), sampler.friction
    (0.1, 4.0)
    """

    normals = 3
    second_order = True

    @classmethod
    def from_c(cls, provider: Provider | Model, h: float, gamma: float = 2.0, c: float = 1.0) -> UBU:
        """From the convention dθ = v dt, dv = -γv dt - c∇U dt + √(2γc) dW with steps h.

        In it v = √c p, so that ε = √c h and D = γ/√c. Papers on rates of convergence take γ = 2 and c = 1/L, where L is
        the largest curvature of U.

        Parameters
        ----------
        provider : pdmp.Model or any of `pdmp.gradients`
        h : float
            The step of that convention.
        gamma : float, default 2
            γ.
        c : float, default 1
            c, the variance of a component of v.

        Returns
        -------
        UBU

        Raises
        ------
        ValueError
            For a number that is not positive.
        """
        root = math.sqrt(positive("c", c))
        return cls(provider, step=root * positive("h", h), friction=positive("gamma", gamma) / root)

    @compiled
    def move(self, x, v, memory, z, rng, counts):
        gradient, D, d = memory.gradient, self.friction, x.shape[0]
        eps = self.schedule.step(memory.taken[0])
        u = 0.5 * D * eps
        e, b = math.exp(-u), math.tanh(0.5 * u) / D
        ahead = -math.expm1(-u) / D
        # C₁, r₁ and C₂, r₂ are the noises of the two halves. That of p is e C₁ + C₂ = c z₀, which leaves a part W of C₁
        # undetermined. Those of θ are b C₁ + r₁ up to the kick, and (ahead) C₁ + b C₂ + r₂ after it; in both, W has the
        # factor b.
        c, both = math.sqrt(-math.expm1(-4.0 * u)), 1.0 + e * e
        x0, y0 = b * e / both * c, b * (both + e) / both * c
        shared = b * b * -math.expm1(-2.0 * u) / both  # Var bW
        own = 2.0 * remainder(u) / (D * D)  # Var r
        x1 = math.sqrt(shared + own)
        y1, y2 = shared / x1, math.sqrt(own * (2.0 * shared + own)) / x1
        for j in range(d):
            x[j] += ahead * v[j] + x0 * z[j] + x1 * z[d + j]
        self.provider.gradient(x, memory.provider, rng, gradient, counts)
        if not finite(gradient):
            return False
        for j in range(d):
            p = e * v[j] - eps * gradient[j]
            x[j] += ahead * p + y0 * z[j] + y1 * z[d + j] + y2 * z[2 * d + j]
            v[j] = e * p + c * z[j]
        count_temperature(memory, v, counts)
        return True

    @staticmethod
    def linear_step(step: float, friction: float, curvature: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """See `Underdamped.linear_step`: half a U, the kick, half a U."""
        u = 0.5 * friction * step
        e, b = math.exp(-u), math.tanh(0.5 * u) / friction
        half = np.array([[1.0, -math.expm1(-u) / friction], [0.0, e]])
        variance = -math.expm1(-2.0 * u)
        free = variance * np.outer([b, 1.0], [b, 1.0])
        free[0, 0] += 2.0 * remainder(u) / friction**2
        kick = np.zeros((len(curvature), 2, 2)) + np.eye(2)
        kick[:, 1, 0] = -step * curvature
        # The noise of the first half passes through the kick.
        return half @ kick @ half, step * half[:, 1], free + half @ (kick @ free @ np.swapaxes(kick, 1, 2)) @ half.T

    def stability_limit(self, curvature: float) -> float | None:
        """The root of ελ tanh(Dε/2) = 2D."""
        if not curvature > 0.0:
            return None
        D = self.friction
        low, high = 0.0, 2.0 / math.sqrt(curvature)
        while high * curvature * math.tanh(0.5 * D * high) < 2.0 * D:
            low, high = high, 2.0 * high
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if middle * curvature * math.tanh(0.5 * D * middle) >= 2.0 * D else (middle, high)
        return high
