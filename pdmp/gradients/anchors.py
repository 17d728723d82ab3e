r"""Where control variates know the gradient of all the data: an anchor, several, or anchors that move in the warm-up.

Every anchor gives an unbiased estimate, and valid bounds: only the noise depends on where it is. With several anchors
a₁, …, a_K the one used at x is the nearest in units of `scale`. It is a function of x alone, so that the rates of a
process balance its flow as with one; and as the distance to the nearest changes no faster than x moves, the bounds on
what the data contribute are those of one anchor. That of the part that is known is the largest over all anchors.

In the warm-up each anchor can move to the mean of the path since the last time, of the part of it that was nearest to
it: Lloyd's algorithm for K means. It is examined when the chain has evaluated as many data since then as there are,
then twice as many, and so on; so a pass over all the data for a new anchor never costs more than the evaluations
before it. Examining is cheap, and an anchor moves only where that pays:

    |m - a|² > POOR (mean of |x - a|² - |m - a|²),     m the mean of the path, distances in units of `scale`.

While an anchor is farther from m than the path, that is while the path is still on its way, the count is not doubled.
Each chain has its own anchors in its memory, and after the warm-up they stay where they are.

References
----------
Baker, Fearnhead, Fox & Nemeth (2019), Control variates for stochastic gradient MCMC. Stat. Comput. 29. Bierkens,
Fearnhead & Roberts (2019), The Zig-Zag process and super-efficient sampling, Ann. Statist. 47, section 5. Lloyd (1982),
Least squares quantization in PCM. IEEE Trans. Inf. Theory 28.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pdmp.native.classes import Compiled, compiled, larger, positive_part
from pdmp.native.records import Count, Number, Vector, zeros
from pdmp.process import ADAPTING, DATA

#: An anchor moves if its squared distance from the path's mean is more than this share of the path's mean squared
#: distance from that mean: else that would make distances smaller by less than 5 %.
POOR = 0.1


class Point(NamedTuple):
    """An anchor that stays where it is."""

    anchor: np.ndarray  #: (d,)
    anchor_gradient: np.ndarray  #: (d,) Σᵢ ∇Uᵢ there


class Bank(NamedTuple):
    """The anchors of one chain, and the part of its path near each since they were examined."""

    anchor: np.ndarray  #: (d,) the nearest one
    anchor_gradient: np.ndarray  #: (d,) Σᵢ ∇Uᵢ there
    nearest: Count  #: its number
    points: np.ndarray  #: (K, d) all
    gradients: np.ndarray  #: (K, d) Σᵢ ∇Uᵢ there
    weights: np.ndarray  #: (K,) time, or number of points, that was nearest to each
    sums: np.ndarray  #: (K, d) of x - a over these
    squares: np.ndarray  #: (K,) of the squared distance
    last: Vector  #: position at the end of the path so far
    at: Number  #: that time; NaN before the first
    evaluated: Count  #: data since the anchors were examined
    due: np.ndarray  #: (1,) and after how many they are examined; 0 where they do not move
    renewals: Count  #: how often an anchor has moved


class Anchor(Compiled):
    """One that stays where it is: `points` (1, d), and Σᵢ ∇Uᵢ there, `gradients`."""

    points: np.ndarray
    gradients: np.ndarray

    def __init__(self, points, gradients):
        self.points, self.gradients = points, gradients

    @compiled
    def choose(self, bank, x):
        """Use the anchor that is nearest to x."""

    @compiled
    def visit(self, model, bank, x, n, counts):
        """The same, where n data are evaluated next; in the warm-up, move anchors that have become poor."""

    @compiled
    def follow(self, model, bank, x, now, counts):
        """The same on a straight path, which is at x now; `evaluated` tells of the data."""

    @compiled
    def evaluated(self, bank, n):
        """Count data for `follow`."""

    @compiled
    def largest(self, bank, j, v, partial):
        """The largest (v [partial + Σᵢ ∂ⱼUᵢ])₊ over all anchors."""
        return positive_part(v * (partial + bank.anchor_gradient[j]))

    @compiled
    def closest(self, points, x):
        """The number of the nearest of these anchors."""
        return 0

    def memory(self):
        """What one chain keeps."""
        return Point(self.points[0].copy(), self.gradients[0].copy())


class Anchors(Anchor):
    """Several, (K, d), or some that move in the warm-up, if `renew`; distances are in units of `scale`, (d,)."""

    scale: np.ndarray
    due: int  #: data after which the anchors are examined first

    def __init__(self, points, gradients, scale, n_data, renew):
        super().__init__(points, gradients)
        self.scale = scale
        self.due = n_data if renew else 0

    @compiled
    def square(self, points, k, x):
        """The squared distance of x from anchor k."""
        total = 0.0
        for j in range(x.shape[0]):
            z = (x[j] - points[k, j]) / self.scale[j]
            total += z * z
        return total

    @compiled
    def closest(self, points, x):
        found = 0
        if points.shape[0] > 1:
            least = self.square(points, 0, x)
            for k in range(1, points.shape[0]):
                square = self.square(points, k, x)
                if square < least:
                    found, least = k, square
        return found

    @compiled
    def take(self, bank, k):
        """Make anchor k the one in use."""
        bank.nearest[0] = k
        for j in range(bank.anchor.shape[0]):
            bank.anchor[j] = bank.points[k, j]
            bank.anchor_gradient[j] = bank.gradients[k, j]

    @compiled
    def choose(self, bank, x):
        k = self.closest(bank.points, x)
        if k != bank.nearest[0]:
            self.take(bank, k)

    @compiled
    def visit(self, model, bank, x, n, counts):
        self.choose(bank, x)
        if self.due > 0 and counts[ADAPTING] == 1:
            k = bank.nearest[0]
            bank.weights[k] += 1.0
            for j in range(x.shape[0]):
                bank.sums[k, j] += x[j] - bank.points[k, j]
            bank.squares[k] += self.square(bank.points, k, x)
            if bank.evaluated[0] >= bank.due[0]:
                self.examine(model, bank, counts)
                self.choose(bank, x)
            bank.evaluated[0] += n

    @compiled
    def follow(self, model, bank, x, now, counts):
        self.choose(bank, x)
        if self.due > 0 and counts[ADAPTING] == 1:
            if bank.at[0] < now:  # NaN before the first
                self.integrate(bank, x, now - bank.at[0])
            for j in range(x.shape[0]):
                bank.last[j] = x[j]
            bank.at[0] = now
            if bank.evaluated[0] >= bank.due[0]:
                self.examine(model, bank, counts)
                self.choose(bank, x)

    @compiled
    def evaluated(self, bank, n):
        bank.evaluated[0] += n

    @compiled
    def integrate(self, bank, x, s):
        """Add the straight piece of length s from the last position to x, which counts as near to the anchor of x."""
        k, square = bank.nearest[0], 0.0
        for j in range(x.shape[0]):
            a, b = bank.last[j] - bank.points[k, j], x[j] - bank.points[k, j]
            bank.sums[k, j] += 0.5 * s * (a + b)
            square += (a * a + a * b + b * b) / (self.scale[j] * self.scale[j])
        bank.squares[k] += s * square / 3.0
        bank.weights[k] += s

    @compiled(inline=False)
    def examine(self, model, bank, counts):
        """Move each anchor to the mean of the path near it, where that pays; one pass over the data for each."""
        far = False
        for k in range(bank.points.shape[0]):
            weight, away = bank.weights[k], 0.0
            if weight > 0.0:
                for j in range(bank.last.shape[0]):
                    z = bank.sums[k, j] / (weight * self.scale[j])
                    away += z * z
                spread = positive_part(bank.squares[k] / weight - away)
                if away > POOR * spread:
                    self.move(model, bank, k, weight, counts)
                    far = far or away > spread
            bank.weights[k], bank.squares[k] = 0.0, 0.0
            for j in range(bank.last.shape[0]):
                bank.sums[k, j] = 0.0
        bank.due[0] = self.due if far else 2 * bank.due[0]
        bank.evaluated[0] = 0
        self.take(bank, bank.nearest[0])

    @compiled
    def move(self, model, bank, k, weight, counts):
        """Move anchor k to the mean of the path near it, unless the gradient is not finite there."""
        for j in range(bank.last.shape[0]):
            bank.anchor[j] = bank.points[k, j] + bank.sums[k, j] / weight
            bank.anchor_gradient[j] = 0.0
        model.add_block_gradient(bank.anchor, 0, model.n_data, bank.anchor_gradient)
        counts[DATA] += model.n_data
        finite = True
        for j in range(bank.last.shape[0]):
            finite = finite and math.isfinite(bank.anchor_gradient[j])
        if finite:
            bank.renewals[0] += 1
            for j in range(bank.last.shape[0]):
                bank.points[k, j] = bank.anchor[j]
                bank.gradients[k, j] = bank.anchor_gradient[j]

    @compiled
    def largest(self, bank, j, v, partial):
        found = 0.0
        for k in range(bank.points.shape[0]):
            found = larger(found, positive_part(v * (partial + bank.gradients[k, j])))
        return found

    def memory(self):
        K, d = self.points.shape
        return zeros(
            Bank,
            d,
            anchor=self.points[0].copy(),
            anchor_gradient=self.gradients[0].copy(),
            points=self.points.copy(),
            gradients=self.gradients.copy(),
            weights=np.zeros(K),
            sums=np.zeros((K, d)),
            squares=np.zeros(K),
            at=np.full(1, math.nan),
            due=np.full(1, self.due),
        )
