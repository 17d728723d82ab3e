r"""UBU: underdamped Langevin dynamics with an exact solution of its linear part.

dθ = p dt, dp = -∇U dt - D p dt + √(2D) dB

=====  =========================================================================================================
flow   none
clock  ticks of ε
rate   none
jump   U  for half a step, the exact solution without ∇U:  θ += (1 - e) p / D + A,  p = e p + C,  e = e^(-Dε/2)
       B  p -= ε ∇Û(θ)
       U  for the other half
=====  =========================================================================================================

A and C are jointly normal with, for u = Dε/2,

    Var C = 1 - e²,   Cov(A, C) = (1 - e)² / D,   Var A = (2u - 3 + 4e - e²) / D²,

so C, and A given C, which is tanh(u/2) C / D + N(0, 2 (u - 2 tanh(u/2)) / D²). The two halves have four normals, of
which only three combinations matter: those of θ where the gradient is taken, of θ and of p at the end. Three are drawn.

One gradient a step. The bias is of order ε² and so, for smooth U, is the strong error: one order more than where only
p has normals. Gradient noise of standard deviation τ raises the temperature and with it the
variance of θ by the factor 1 + ετ²/(2D), to leading order. The step is stable on U = λθ²/2 for ελ tanh(Dε/2) < 2D.

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

from discrete.kinetic import Underdamped, check_friction, count_temperature
from discrete.tick import finite
from pdmp.native.classes import compiled, inlined


@inlined
def remainder(u):
    """u - 2 tanh(u/2), for u > 0: by its series where the difference would cancel."""
    if u > 0.03:
        return u - 2.0 * math.tanh(0.5 * u)
    s = u * u
    return u * s * (1.0 / 12.0 - s * (1.0 / 120.0 - s * 17.0 / 20160.0))


class UBU(Underdamped):
    """Underdamped Langevin dynamics on exp(-U), integrated by UBU.

    Parameters
    ----------
    provider : any of `pdmp.gradients`, or Model
        Estimates of ∇U; one a step.
    step : float, schedule or "auto", default "auto"
        ε, the integrator's step for the momentum p ~ N(0, I). See `from_c` for another momentum. "auto": see
        `discrete.schedules.automatic`.
    friction : float, optional
        D of dp = … - D p dt + √(2D) dB, an inverse time: the square root of a typical curvature of U mixes well, and
        more of it stands more gradient noise. 1 when omitted; with
        an automatic step, the one of several that forgets the start fastest.

    Raises
    ------
    ValueError
        For a step or friction that is not positive.
    """

    normals = 3

    def __init__(self, provider, step="auto", friction=None):
        super().__init__(provider, step, friction)

    @classmethod
    def from_c(cls, provider, h, gamma=2.0, c=1.0):
        """From dθ = v dt, dv = -γv dt - c∇U dt + √(2γc) dW with steps h: v = √c p, ε = √c h, D = γ/√c.

        Papers on the convergence rate take γ = 2 and c = 1/L, L the largest curvature.
        """
        root = math.sqrt(check_friction("c", c))
        return cls(provider, step=root * check_friction("h", h), friction=check_friction("gamma", gamma) / root)

    @property
    def bias_order(self):
        """2 in the step; gradient noise has an effect of first order."""
        return 2 if self.provider.exact else 1

    @compiled
    def move(self, x, v, memory, z, rng, counts):
        gradient, D, d = memory.gradient, self.friction, x.shape[0]
        eps = self.schedule.step(memory.taken[0])
        u = 0.5 * D * eps
        e, b = math.exp(-u), math.tanh(0.5 * u) / D
        ahead = -math.expm1(-u) / D
        # With C₁, C₂ and r₁, r₂ the normals of the halves: p's is e C₁ + C₂ = `c` z₀, given which C₁ has a part W left
        # over; θ's are b C₁ + r₁ up to the kick and (ahead) C₁ + b C₂ + r₂ after it, in which W again has the factor b.
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
    def linear_step(step, friction, curvature):
        """Half a U, the kick, half a U."""
        u = 0.5 * friction * step
        e, b = math.exp(-u), math.tanh(0.5 * u) / friction
        half = np.array([[1.0, -math.expm1(-u) / friction], [0.0, e]])
        variance = -math.expm1(-2.0 * u)
        free = variance * np.outer([b, 1.0], [b, 1.0])
        free[0, 0] += 2.0 * remainder(u) / friction**2
        kick = np.zeros((len(curvature), 2, 2)) + np.eye(2)
        kick[:, 1, 0] = -step * curvature
        # The first half's noise passes through the kick, whose part in λ is of higher order; it is kept exactly.
        return half @ kick @ half, step * half[:, 1], free + half @ (kick @ free @ np.swapaxes(kick, 1, 2)) @ half.T

    def stability_limit(self, curvature):
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
