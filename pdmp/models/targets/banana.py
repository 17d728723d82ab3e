"""The banana: a normal distribution bent along a parabola."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.base import Model
from pdmp.native.arguments import count, number, positive
from pdmp.native.classes import compiled


class Banana(Model):
    r"""x₀ ~ N(0, scale²), x₁ given x₀ ~ N(bend x₀², noise²), further coordinates standard normal.

    U(x) = x₀²/(2 scale²) + r²/(2 noise²) + Σₖ xₖ²/2 with r = x₁ - bend x₀². Haario's twisted normal distribution [1]_
    is that of ``scale=10, bend=-0.03, noise=1``, up to a shift of x₁. Along a straight line the derivatives of U are
    polynomials of degree three in time, which `pdmp.thinning.Polynomial` bounds exactly.

    Parameters
    ----------
    dim : int, default 2
    scale : float, default 1.0
        Standard deviation of x₀.
    bend : float, default 1.0
        Of either sign; zero is a normal distribution.
    noise : float, default 0.5
        Standard deviation of x₁ given x₀.

    Raises
    ------
    ValueError
        If `dim` is less than 2, a standard deviation is not positive, or a number is not finite.

    References
    ----------
    .. [1] Haario, Saksman & Tamminen (1999), Adaptive proposal distribution for random walk Metropolis algorithm,
       Computational Statistics 14, section 5.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.Banana(bend=0.5)
    >>> model.moments()[0]
    array([0. , 0.5])
    """

    scale: float
    bend: float
    noise: float

    def __init__(self, dim: int = 2, scale: float = 1.0, bend: float = 1.0, noise: float = 0.5) -> None:
        dim = count("dim", dim, least=2)
        super().__init__(dim=dim)
        self.scale, self.bend, self.noise = positive("scale", scale), number("bend", bend), positive("noise", noise)

    @compiled
    def potential(self, x):
        z = x[0] / self.scale
        r = (x[1] - self.bend * (x[0] * x[0])) / self.noise
        total = z * z + r * r
        for j in range(2, self.dim):
            total += x[j] * x[j]
        return 0.5 * total

    @compiled
    def add_gradient(self, x, out):
        pull = (x[1] - self.bend * (x[0] * x[0])) / (self.noise * self.noise)
        out[0] += x[0] / (self.scale * self.scale) - 2.0 * self.bend * x[0] * pull
        out[1] += pull
        for j in range(2, self.dim):
            out[j] += x[j]

    @compiled
    def add_factor_gradient(self, x, f, out):
        """Of x₀ alone, of x₁ given x₀, or of the coordinate f."""
        if f == 0:
            out[0] += x[0] / (self.scale * self.scale)
        elif f == 1:
            pull = (x[1] - self.bend * (x[0] * x[0])) / (self.noise * self.noise)
            out[0] -= 2.0 * self.bend * x[0] * pull
            out[1] += pull
        else:
            out[f] += x[f]

    @compiled
    def add_prior_coefficients(self, x, v, out):
        # r(t) = r₀ + r₁ t + r₂ t² over noise²; ∂₁U = r and ∂₀U = x₀/scale² - 2 bend x₀ r.
        q = 1.0 / (self.noise * self.noise)
        r0 = q * (x[1] - self.bend * (x[0] * x[0]))
        r1 = q * (v[1] - 2.0 * self.bend * x[0] * v[0])
        r2 = -q * self.bend * (v[0] * v[0])
        c, p = -2.0 * self.bend * v[0], v[0] / (self.scale * self.scale)
        out[0, 0] += p * x[0] + c * x[0] * r0
        out[0, 1] += p * v[0] + c * (v[0] * r0 + x[0] * r1)
        out[0, 2] += c * (v[0] * r1 + x[0] * r2)
        out[0, 3] += c * v[0] * r2
        for j in range(1, self.dim):
            row = j if out.shape[0] > 1 else 0
            if j == 1:
                out[row, 0] += v[1] * r0
                out[row, 1] += v[1] * r1
                out[row, 2] += v[1] * r2
            else:
                out[row, 0] += v[j] * x[j]
                out[row, 1] += v[j] * v[j]

    def factors(self) -> list | tuple | None:
        """A factor for x₀, one for x₁ given x₀, one for each further coordinate."""
        return [[0], [0, 1], *([j] for j in range(2, self.dim))]

    def hessian(self, x: ArrayLike) -> np.ndarray:
        x, q = self.check(x), 1.0 / self.noise**2
        hessian = np.eye(self.dim)
        hessian[0, 0] = 1.0 / self.scale**2 - 2.0 * self.bend * q * (x[1] - 3.0 * self.bend * x[0] ** 2)
        hessian[0, 1] = hessian[1, 0] = -2.0 * self.bend * q * x[0]
        hessian[1, 1] = q
        return hessian

    def mode(self, initial: ArrayLike | None = None) -> np.ndarray | None:
        """Zeros, (dim,)."""
        return np.zeros(self.dim)

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean (dim,) and covariance (dim, dim), in closed form."""
        mean, covariance = np.zeros(self.dim), np.eye(self.dim)
        mean[1] = self.bend * self.scale**2
        covariance[0, 0] = self.scale**2
        covariance[1, 1] = self.noise**2 + 2.0 * self.bend**2 * self.scale**4
        return mean, covariance

    def exact_draws(self, n: int, seed: int | None = None) -> np.ndarray:
        """Independent draws from the distribution, (n, dim)."""
        x = np.random.default_rng(seed).standard_normal((n, self.dim))
        x[:, 0] *= self.scale
        x[:, 1] = self.bend * x[:, 0] ** 2 + self.noise * x[:, 1]
        return x
