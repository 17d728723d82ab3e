"""Kernels k(x, y) = φ(ρ) of the squared distance ρ = (x - y)ᵀ Γ⁻¹ (x - y), with the derivatives of φ."""

from __future__ import annotations

import math

import numpy as np

from pdmp.native.arguments import positive
from pdmp.native.classes import Compiled, compiled
from pdmp.native.vectors import exp as _exp

MEDIAN_DRAWS = 1_000  #: number of equally spaced draws, about, that the median distance is taken of


class SteinKernel(Compiled):
    """Base of the kernels φ(ρ): ``profile(rho)`` returns φ, φ' and φ''."""

    @compiled
    def profile(self, rho):
        return 1.0, 0.0, 0.0


class RootIMQ(SteinKernel):
    """(c² + ρ)^-½, which needs no power function."""

    square: float

    beta = -0.5

    def __init__(self, c):
        self.square = float(c) ** 2

    @compiled
    def profile(self, rho):
        root = 1.0 / math.sqrt(self.square + rho)
        inverse = root * root
        cube = root * inverse
        return root, -0.5 * cube, 0.75 * cube * inverse


class PowerIMQ(SteinKernel):
    """(c² + ρ)^β."""

    square: float
    beta: float

    def __init__(self, c=1.0, beta=-0.5):
        self.square, self.beta = float(c) ** 2, float(beta)

    @compiled
    def profile(self, rho):
        b = self.square + rho
        power = math.pow(b, self.beta)
        first = self.beta * power / b
        return power, first, (self.beta - 1.0) * first / b


class GaussianKernel(SteinKernel):
    """exp(-ρ / (2 h²))."""

    rate: float

    def __init__(self, bandwidth):
        self.rate = 0.5 / float(bandwidth) ** 2

    @compiled
    def profile(self, rho):
        value = _exp(-self.rate * rho)
        return value, -self.rate * value, self.rate * self.rate * value


def imq(c: float = 1.0, beta: float = -0.5) -> SteinKernel:
    """The inverse multiquadric kernel (c² + ρ)^β, whose discrepancy detects non-convergence for β in (-1, 0).

    Parameters
    ----------
    c : float, default 1.0
        Positive, in units of the distance √ρ.
    beta : float, default -0.5
        In (-1, 0).

    Returns
    -------
    SteinKernel

    Raises
    ------
    ValueError
        If `c` or `beta` is out of its range.
    """
    positive("c", c)
    if not -1.0 < beta < 0.0:
        raise ValueError(f"`beta` must lie in (-1, 0), got {beta!r}.")
    return RootIMQ(c) if beta == -0.5 else PowerIMQ(c, beta)


def gaussian(bandwidth: float) -> SteinKernel:
    """The kernel exp(-ρ / (2 h²)). Above two dimensions its discrepancy can tend to 0 for draws that diverge.

    Parameters
    ----------
    bandwidth : float
        h, positive, in units of the distance √ρ.

    Returns
    -------
    SteinKernel

    Raises
    ------
    ValueError
        If the bandwidth is not positive.
    """
    return GaussianKernel(positive("bandwidth", bandwidth))


def as_kernel(kernel, y):
    """The kernel that `kernel` is or names; the Gaussian's bandwidth is the median distance of the rows of `y`."""
    if isinstance(kernel, SteinKernel):
        return kernel
    if kernel == "imq":
        return imq()
    if kernel == "gaussian":
        return gaussian(median_distance(y))
    raise ValueError(f'`kernel` must be "imq", "gaussian" or one of pdmp.diagnostics.stein, got {kernel!r}.')


def median_distance(y):
    """Median distance of the rows of `y`, or 1 if it is 0."""
    from scipy.spatial.distance import pdist

    some = y[:: max(len(y) // MEDIAN_DRAWS, 1)]
    median = float(np.median(pdist(some))) if len(some) > 1 else 0.0
    return median if median > 0.0 else 1.0


def array_profile(kernel, rho):
    """φ and its first three derivatives, of an array of ρ."""
    if isinstance(kernel, GaussianKernel):
        value = np.exp(-kernel.rate * rho)
        second = kernel.rate**2 * value
        return value, -kernel.rate * value, second, -kernel.rate * second
    b = kernel.square + rho
    value = b**kernel.beta
    second = kernel.beta * (kernel.beta - 1.0) * value / b**2
    return value, kernel.beta * value / b, second, (kernel.beta - 2.0) * second / b
