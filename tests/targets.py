"""Targets for tests, beside those of the package."""

from __future__ import annotations

import math

import numpy as np
from scipy import integrate

import pdmp
from pdmp.models.transforms import Log

#: A normal law of three coordinates.
PRECISION = np.array([[2.0, 0.8, 0.0], [0.8, 1.5, 0.3], [0.0, 0.3, 1.0]])
MEAN = np.array([1.0, -2.0, 0.5])
MODEL = pdmp.models.Gaussian(MEAN, PRECISION)


def data(n_data=6, d=2, seed=4):
    """A linear regression."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n_data, d))
    y = A @ np.ones(d) + rng.standard_normal(n_data)
    return pdmp.models.LinearGaussian(A, y, noise_scale=0.8, prior_scale=2.0)


class Quartic(pdmp.Model):
    """Independent coordinates with U = x⁴/4 to the right of a wall, at which the density ends."""

    wall: float

    def __init__(self, dim=1, wall=-math.inf):
        super().__init__(dim=dim, initial=np.full(dim, 0.5))
        self.wall = float(wall)

    @pdmp.compiled
    def potential(self, x):
        total = 0.0
        for j in range(self.dim):
            if x[j] < self.wall:
                return math.inf
            square = x[j] * x[j]
            total += 0.25 * square * square
        return total

    @pdmp.compiled
    def add_gradient(self, x, out):
        for j in range(self.dim):
            out[j] += x[j] * x[j] * x[j] if x[j] >= self.wall else math.nan

    # What the bounds of `pdmp.thinning` may ask for. The rate of coordinate j is vⱼ yⱼ³, y = x + sv.

    @pdmp.compiled
    def add_prior_parts(self, x, v, out):
        for j in range(self.dim):
            row = j if out.shape[0] > 1 else 0
            cube = v[j] * x[j] * x[j] * x[j]
            if v[j] * x[j] > 0.0:  # convex where it is positive
                out[row, 0] += cube
            else:
                out[row, 1] += cube
                out[row, 2] += 3.0 * v[j] * v[j] * x[j] * x[j]

    @pdmp.compiled
    def add_prior_coefficients(self, x, v, out):
        for j in range(self.dim):
            row = j if out.shape[0] > 1 else 0
            out[row, 0] += v[j] * x[j] * x[j] * x[j]
            out[row, 1] += 3.0 * v[j] * v[j] * x[j] * x[j]
            out[row, 2] += 3.0 * v[j] * v[j] * v[j] * x[j]
            out[row, 3] += v[j] * v[j] * v[j] * v[j]

    @pdmp.compiled
    def curvature_bound_within(self, x, v, s):
        total = 0.0
        for j in range(self.dim):
            y = max(abs(x[j]), abs(x[j] + s * v[j]))
            total += 3.0 * y * y * v[j] * v[j]
        return total

    @pdmp.compiled
    def partial_curvature_bounds_within(self, x, v, s, out):
        for j in range(self.dim):
            y = max(abs(x[j]), abs(x[j] + s * v[j]))
            out[j] = 3.0 * y * y * v[j] * v[j]

    def moments(self):
        """Mean and variance of a coordinate."""
        low = max(self.wall, -8.0)
        mass, first, second = (
            integrate.quad(lambda x, k=k: x**k * math.exp(-0.25 * x**4), low, 8.0)[0] for k in range(3)
        )
        return first / mass, second / mass - (first / mass) ** 2


class Cone(pdmp.Model):
    """U = Σⱼ √(1 + xⱼ²): gradients below 1 and a Hessian below the identity; `scale` falsifies what it says of them."""

    scale: float

    def __init__(self, dim=2, scale=1.0):
        super().__init__(dim=dim)
        self.scale = float(scale)

    @pdmp.compiled
    def potential(self, x):
        total = 0.0
        for j in range(self.dim):
            total += math.sqrt(1.0 + x[j] * x[j])
        return total

    @pdmp.compiled
    def add_gradient(self, x, out):
        for j in range(self.dim):
            out[j] += x[j] / math.sqrt(1.0 + x[j] * x[j])

    @pdmp.compiled
    def directional_derivative_bound(self, v):
        total = 0.0
        for j in range(self.dim):
            total += abs(v[j])
        return self.scale * total

    @pdmp.compiled
    def partial_derivative_bounds(self, v, out):
        for j in range(self.dim):
            out[j] = self.scale * abs(v[j])

    @pdmp.compiled
    def curvature_bound(self, v):
        total = 0.0
        for j in range(self.dim):
            total += v[j] * v[j]
        return self.scale * total

    @pdmp.compiled
    def partial_curvature_bounds(self, v, out):
        for j in range(self.dim):
            out[j] = self.scale * v[j] * v[j]


CORRELATED, BANANA, FUNNEL, MIXTURE, KINK, BARRIER, HEAVY, LOGISTIC = range(8)
KINDS = ("correlated", "banana", "funnel", "mixture", "kink", "barrier", "heavy", "logistic")


class Plane(pdmp.Model):
    """Targets in the plane, one class for all of them, so that each process compiles once. Nothing is known of bounds.

    correlated  normal, standard deviations 1 and 2, correlation 0.9
    banana      x normal, y - x² normal of standard deviation 0.5
    funnel      x normal of standard deviation 1 within a potential that confines it to |x| < 2, y normal of standard
                deviation exp(x / 2) given x
    mixture     two normals of standard deviations 0.7 at (-1.2, 0) and (1.2, 0), weights 0.3 and 0.7
    kink        |x| + y²/2 + |x - y|
    barrier     Gamma(2) in x > 0 and Beta(3, 2) in 0 < y < 1: the gradient grows without bound at the walls
    heavy       Student's t with 5 degrees of freedom, bivariate
    logistic    eight data (cos i, sin 2.3 i), three of four with label 1, prior standard deviation 2
    """

    which: int

    def __init__(self, which):
        start = np.array([1.0, 0.5]) if KINDS[which] == "barrier" else np.array([0.3, 0.2])
        super().__init__(dim=2, initial=start)
        self.which = which

    @pdmp.compiled
    def potential(self, x):
        a, b = x[0], x[1]
        if self.which == CORRELATED:
            return (a * a - 0.9 * a * b + 0.25 * b * b) / 0.38
        if self.which == BANANA:
            r = b - a * a
            return 0.5 * a * a + 2.0 * r * r
        if self.which == FUNNEL:
            if abs(a) >= 2.0:
                return math.inf
            return 0.5 * a * a - 2.0 * math.log(1.0 - 0.25 * a * a) + 0.5 * a + 0.5 * b * b * math.exp(-a)
        if self.which == MIXTURE:
            left = math.log(0.3) - ((a + 1.2) * (a + 1.2) + b * b) / 0.98
            right = math.log(0.7) - ((a - 1.2) * (a - 1.2) + b * b) / 0.98
            top = max(left, right)
            return -(top + math.log(math.exp(left - top) + math.exp(right - top)))
        if self.which == KINK:
            return abs(a) + 0.5 * b * b + abs(a - b)
        if self.which == BARRIER:
            if a <= 0.0 or b <= 0.0 or b >= 1.0:
                return math.inf
            return a - math.log(a) - 2.0 * math.log(b) - math.log(1.0 - b)
        if self.which == LOGISTIC:
            total = 0.125 * (a * a + b * b)
            for i in range(8):
                z = math.cos(i) * a + math.sin(2.3 * i) * b
                total += math.log(1.0 + math.exp(z if i % 4 == 0 else -z))
            return total
        return 3.5 * math.log(1.0 + (a * a + b * b) / 5.0)

    @pdmp.compiled
    def add_gradient(self, x, out):
        a, b = x[0], x[1]
        if self.which == CORRELATED:
            out[0] += (2.0 * a - 0.9 * b) / 0.38
            out[1] += (0.5 * b - 0.9 * a) / 0.38
        elif self.which == BANANA:
            r = b - a * a
            out[0] += a - 8.0 * a * r
            out[1] += 4.0 * r
        elif self.which == FUNNEL:
            if abs(a) >= 2.0:
                out[0] = out[1] = math.nan
            else:
                e = math.exp(-a)
                out[0] += a + a / (1.0 - 0.25 * a * a) + 0.5 - 0.5 * b * b * e
                out[1] += b * e
        elif self.which == MIXTURE:
            # P(left | x)
            p = 1.0 / (1.0 + math.exp(math.log(0.7 / 0.3) + 2.4 * a / 0.49))
            out[0] += (a + 1.2 * (2.0 * p - 1.0)) / 0.49
            out[1] += b / 0.49
        elif self.which == KINK:
            side = 1.0 if a > b else -1.0
            out[0] += (1.0 if a > 0.0 else -1.0) + side
            out[1] += b - side
        elif self.which == BARRIER:
            if a <= 0.0 or b <= 0.0 or b >= 1.0:
                out[0] = out[1] = math.nan
            else:
                out[0] += 1.0 - 1.0 / a
                out[1] += -2.0 / b + 1.0 / (1.0 - b)
        elif self.which == LOGISTIC:
            out[0] += 0.25 * a
            out[1] += 0.25 * b
            for i in range(8):
                s = 1.0 if i % 4 == 0 else -1.0
                z = math.cos(i) * a + math.sin(2.3 * i) * b
                weight = s / (1.0 + math.exp(-s * z))
                out[0] += weight * math.cos(i)
                out[1] += weight * math.sin(2.3 * i)
        else:
            t = 7.0 / (5.0 + a * a + b * b)
            out[0] += t * a
            out[1] += t * b

    @pdmp.compiled
    def add_factor_gradient(self, x, f, out):
        """Of two factors: the square root of 1 + x² of the first coordinate alone, and what it leaves of the target."""
        alone = x[0] / math.sqrt(1.0 + x[0] * x[0])
        if f == 0:
            out[0] += alone
        else:
            self.add_gradient(x, out)
            out[0] -= alone

    def factors(self):
        return [[0], [0, 1]]

    def moments(self, n=1_601):
        """Mean (2,) and variance (2,), by the trapezium rule on a grid that holds all but 1e-8 of the mass."""
        name = KINDS[self.which]
        if name == "heavy":
            return np.zeros(2), np.full(2, 5.0 / 3.0)
        if name == "barrier":  # Gamma(2) and Beta(3, 2)
            return np.array([2.0, 0.6]), np.array([2.0, 0.04])
        if name == "correlated":
            return np.zeros(2), np.array([1.0, 4.0])
        if name == "banana":
            return np.array([0.0, 1.0]), np.array([1.0, 2.25])
        if name == "mixture":
            return np.array([0.48, 0.0]), np.array([0.49 + 1.44 * (1.0 - 0.16), 0.49])
        if name == "funnel":  # given x, y is normal of variance eˣ
            x = np.linspace(-2.0, 2.0, n)
            weight = np.exp(-0.5 * x * x) * (1.0 - 0.25 * x * x) ** 2
            weight /= weight.sum()
            mean = weight @ x
            return np.array([mean, 0.0]), np.array([weight @ (x - mean) ** 2, weight @ np.exp(x)])
        g = np.linspace(-12.0, 12.0, n)
        x, y = np.meshgrid(g, g, indexing="ij")
        potential = np.abs(x) + 0.5 * y * y + np.abs(x - y)
        if name == "logistic":
            potential = 0.125 * (x * x + y * y)
            for i in range(8):
                z = np.cos(i) * x + np.sin(2.3 * i) * y
                potential += np.logaddexp(0.0, z if i % 4 == 0 else -z)
        density = np.exp(-potential)
        density /= density.sum()
        mean = np.array([(density * x).sum(), (density * y).sum()])
        return mean, np.array([(density * (x - mean[0]) ** 2).sum(), (density * (y - mean[1]) ** 2).sum()])


class Schools(pdmp.Model):
    """y_j ~ N(μ + τ z_j, s_j), z ~ N(0, 1), μ ~ N(0, 5), τ ~ half-Cauchy(5); x = (z, μ, log τ).

    Centred: x = (θ, μ, log τ) with θ_j ~ N(μ, τ) and y_j ~ N(θ_j, s_j).
    """

    y: np.ndarray
    s: np.ndarray
    centred: bool

    def __init__(self, y, s, centred=False):
        name = "theta" if centred else "theta_trans"
        super().__init__(dim=len(y) + 2, variables={name: (len(y),), "mu": (), "tau": ()}, transforms={"tau": Log()})
        self.y, self.s, self.centred = np.array(y, float), np.array(s, float), centred

    @pdmp.compiled
    def potential(self, x):
        n = self.y.shape[0]
        mu, tau = x[n], math.exp(x[n + 1])
        total = 0.02 * mu * mu + math.log(1.0 + tau * tau / 25.0) - x[n + 1]
        for j in range(n):
            if self.centred:
                r, z = (self.y[j] - x[j]) / self.s[j], (x[j] - mu) / tau
                total += x[n + 1]
            else:
                r, z = (self.y[j] - mu - tau * x[j]) / self.s[j], x[j]
            total += 0.5 * (r * r + z * z)
        return total

    @pdmp.compiled
    def add_gradient(self, x, out):
        self.potential_and_gradient(x, out)

    @pdmp.compiled
    def potential_and_gradient(self, x, out):
        n = self.y.shape[0]
        mu, tau = x[n], math.exp(x[n + 1])
        out[n] += 0.04 * mu
        out[n + 1] += 2.0 * tau * tau / (25.0 + tau * tau) - 1.0
        total = 0.02 * mu * mu + math.log(1.0 + tau * tau / 25.0) - x[n + 1]
        for j in range(n):
            if self.centred:
                r, z = (self.y[j] - x[j]) / self.s[j], (x[j] - mu) / tau
                total += x[n + 1] + 0.5 * (r * r + z * z)
                out[j] += z / tau - r / self.s[j]
                out[n] -= z / tau
                out[n + 1] += 1.0 - z * z
            else:
                r, z = (self.y[j] - mu - tau * x[j]) / self.s[j], x[j]
                total += 0.5 * (r * r + z * z)
                out[j] += z - r / self.s[j] * tau
                out[n] -= r / self.s[j]
                out[n + 1] -= r / self.s[j] * tau * z
        return total
