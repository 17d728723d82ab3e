r"""Coordinates in which tails like those of Student's t are like those of a normal law.

Hamiltonian paths do not come far out on a tail that falls like a power: forces vanish there, and a Cauchy law needs
distances of a hundred widths. Of a group of m coordinates that share a tail of index α, p(x) ~ |x|^-(α + m), paths
move in z with

    x = c + L y,    y = z exp(hψ(|z|²) / 2),    ψ(q) = q - m log(1 + q / m),    h = 1 / α.

Far out log |y| is |z|² / 2α, so that P(|y| > r) = r^-α is the law of a normal z; at the centre y is z, and of a
multivariate t with m up to about ten z is nearly normal everywhere. The Jacobian

    log |dy/dz| = ½ m h ψ(q) + log(1 + h q² / (m + q)),    q = |z|²,

is exact, and so is the law of x for all c, L and h: these decide how hard it is to sample. Coordinates that are
independent are groups of one, others stay what they are. Where |y| is above e³⁰⁰ the density is taken to be zero.

References
----------
Johnson & Geyer (2012), Variable transformation to obtain geometric ergodicity in the random-walk Metropolis algorithm,
Ann. Statist. 40 (radial maps, whose tails are exponential). Goerg (2015), The Lambert way to Gaussianize heavy-tailed
data, Sci. World J. (y = z exp(h z² / 2)).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pdmp.models.base import Model
from pdmp.models.moved_coordinates import MovedCoordinates
from pdmp.native.classes import compiled

LARGEST = 300.0  #: log |y| / |z| from which on the density is taken to be zero


class Tail(NamedTuple):
    """A group of coordinates that share a tail."""

    members: np.ndarray  #: (m,) which they are
    index: float  #: α
    centre: np.ndarray  #: (m,) c
    root: np.ndarray  #: L, lower triangular (m, m)


class LightTailed(MovedCoordinates):
    """A model in the coordinates z, each in the place of its x; members of the tails differ."""

    places: np.ndarray  #: members of all groups, one group after the other
    start: np.ndarray  #: (groups + 1,) where each begins
    rates: np.ndarray  #: (groups,) h
    centre: np.ndarray  #: of all members
    roots: np.ndarray  #: L of all groups, row by row
    root_start: np.ndarray  #: (groups,) where each begins

    def __init__(self, model: Model, tails: list[Tail]) -> None:
        sizes = np.array([len(tail.members) for tail in tails])
        self.places = np.concatenate([tail.members for tail in tails]).astype(np.int64)
        self.start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.rates = np.array([1.0 / tail.index for tail in tails])
        self.centre = np.concatenate([tail.centre for tail in tails])
        self.roots = np.concatenate([tail.root.ravel() for tail in tails])
        self.root_start = np.concatenate([[0], np.cumsum(sizes**2)[:-1]]).astype(np.int64)
        super().__init__(model)

    # -- compiled: there and back -------------------------------------------------------------------------------------

    @compiled(inline=False)
    def square(self, z, g):
        """q = |z|² of group g."""
        total = 0.0
        for k in range(self.start[g], self.start[g + 1]):
            total += z[self.places[k]] * z[self.places[k]]
        return total

    @compiled(inline=False)
    def log_stretch(self, q, g):
        """hψ(q) / 2, the logarithm of |y| / |z|."""
        m = float(self.start[g + 1] - self.start[g])
        return 0.5 * self.rates[g] * (q - m * math.log1p(q / m))

    @compiled(inline=False)
    def natural(self, z, x):
        """Write x at z."""
        for j in range(self.dim):
            x[j] = z[j]
        for g in range(self.rates.shape[0]):
            first, m = self.start[g], self.start[g + 1] - self.start[g]
            stretch = math.exp(min(self.log_stretch(self.square(z, g), g), LARGEST))
            for i in range(m):
                total = 0.0
                for k in range(i + 1):
                    total += self.roots[self.root_start[g] + i * m + k] * z[self.places[first + k]]
                x[self.places[first + i]] = self.centre[first + i] + stretch * total

    @compiled(inline=False)
    def standardise(self, x, z):
        """Write z at x."""
        for j in range(self.dim):
            z[j] = x[j]
        for g in range(self.rates.shape[0]):
            first, m = self.start[g], self.start[g + 1] - self.start[g]
            for i in range(m):  # y = L⁻¹(x - c)
                total = x[self.places[first + i]] - self.centre[first + i]
                for k in range(i):
                    total -= self.roots[self.root_start[g] + i * m + k] * z[self.places[first + k]]
                z[self.places[first + i]] = total / self.roots[self.root_start[g] + i * m + i]
            size = math.sqrt(self.square(z, g))
            if 0.0 < size < math.inf:
                shrink = math.exp(self.log_size(math.log(size), g)) / size
                for k in range(m):
                    z[self.places[first + k]] *= shrink

    @compiled(inline=False)
    def log_size(self, log_y, g):
        """s = log |z| of log |y| = s + hψ(e^2s) / 2, by Newton's method from above: both sides are convex in s."""
        m, h = float(self.start[g + 1] - self.start[g]), self.rates[g]
        # As ψ(q) ≥ q / 2 - 0.2 m.
        s = min(log_y, 0.5 * math.log(max(1.0, 4.0 * max(log_y, 0.0) / h + 0.4 * m)))
        for _ in range(100):
            q = math.exp(2.0 * s)
            step = (s + self.log_stretch(q, g) - log_y) / (1.0 + h * q * q / (m + q))
            s -= step
            if abs(step) <= 1e-15 * max(1.0, abs(s)):
                break
        return s

    # -- compiled: the potential and its gradient ---------------------------------------------------------------------

    @compiled(inline=False)
    def move(self, z, x):
        total = 0.0
        for g in range(self.rates.shape[0]):
            q, m = self.square(z, g), float(self.start[g + 1] - self.start[g])
            log_stretch = self.log_stretch(q, g)
            if not log_stretch < LARGEST:
                return math.inf, ()
            total += m * log_stretch + math.log1p(self.rates[g] * q * q / (m + q))
        self.natural(z, x)
        return -total, ()

    @compiled(inline=False)
    def pull_back(self, z, x, kept, slope, out):
        for g in range(self.rates.shape[0]):
            first, m, h = self.start[g], self.start[g + 1] - self.start[g], self.rates[g]
            q = self.square(z, g)
            stretch, along = math.exp(self.log_stretch(q, g)), 0.0
            for k in range(m):  # by y: Lᵀ times `slope`
                total = 0.0
                for i in range(k, m):
                    total += self.roots[self.root_start[g] + i * m + k] * slope[self.places[first + i]]
                slope[self.places[first + k]] = stretch * total
                along += stretch * total * z[self.places[first + k]]
            bend = h * q / (m + q)  # hψ'
            volume = m * bend + 2.0 * h * q * (q + 2.0 * m) / ((m + q) * (m + q)) / (1.0 + bend * q)
            for k in range(m):
                slope[self.places[first + k]] += (bend * along - volume) * z[self.places[first + k]]
        for j in range(self.dim):
            out[j] += slope[j]
