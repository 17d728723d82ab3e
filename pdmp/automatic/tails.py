"""Which coordinates have tails that Hamiltonian paths do not come far out on, and coordinates in which they are light.

A tail that falls like a power shows in the gradient far out, whether or not a chain has come there: see
`pdmp.diagnostics.tails`. Coordinates are asked one by one, if a point is as far out as hardly any of a normal law; if
one is heavy all are. Of a law that coordinates share the power is the same along each of them and on rays on which
they grow together; of independent ones it is a sum. A group that is neither is left as it is. Centre and shape are
those of the multivariate t, of the index that was found, which fits the points best.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from pdmp.diagnostics.tails import AGREEMENT, TAILS, power
from pdmp.models.base import Model
from pdmp.models.light_tails import LightTailed, Tail

#: Largest index of a tail that is made light; and how far from the median, in units of the median distance, a point is
#: where a coordinate is asked: of a normal law one of 140, so that no heavy tail is passed by whose points are few.
HEAVY, REMOTE = 8.0, 4.0
SMALLEST = 0.2  #: index of a tail that is made light: of a smaller one hardly a point is where floats are
FITTING = 50  #: steps of the fit of a multivariate t
RAYS = 4  #: rays in a group, to both sides


def light_tailed(model: Model, x: np.ndarray) -> tuple[LightTailed | None, int]:
    """Coordinates in which the heavy tails of a model are light, from points x (n, d); None without; the gradients."""
    centre = np.median(x, axis=0)
    distances = np.abs(x - centre)
    scale = np.median(distances, axis=0)
    if not np.all(scale > 0.0):
        return None, 0
    out, reach = _Out(model, centre, scale), (distances / scale).max(axis=0)
    asked = np.argsort(-reach, kind="stable")[:TAILS]
    if not out.heavy(asked[reach[asked] > REMOTE]):
        return None, out.gradients
    tails = []
    for group, power_of_one in _groups(out, out.heavy(range(model.dim))):
        together = out.power(group, RAYS) if len(group) > 1 else power_of_one
        index = together - len(group)
        if SMALLEST <= index <= HEAVY and _same(together, power_of_one):
            tails.append(_fitted(x, group, index))
    return LightTailed(model, tails) if tails else None, out.gradients


class _Out:
    """Powers r ∂U/∂r far out from a centre (d,), in units `scale` (d,); infinite where it is none on one ray."""

    def __init__(self, model, centre, scale):
        self.model, self.centre, self.scale, self.gradients = model, centre, scale, 0

    def power(self, group, rays=0):
        """The power where a group of coordinates grows, to both sides, the smaller; of so many rays, all of them."""
        rng, found = np.random.default_rng(0), []
        signs = rng.choice([-1.0, 1.0], (rays, len(group))) if rays else np.ones((1, len(group)))
        for sign in (*signs, *-signs):
            ray = np.zeros(len(self.centre))
            ray[group] = sign * self.scale[group]
            # Independent tails add up, and those of a law that is shared are lower.
            found.append(power(self, self.centre, ray, (HEAVY + 1.0) * len(ray)))
        return max(found) if rays and math.inf in found else min(found)

    def gradient(self, x):
        """∇U(x), counted."""
        self.gradients += 1
        return self.model.gradient(x)

    def potential(self, x):
        """U(x)."""
        return self.model.potential(x)

    def heavy(self, places):
        """Those of the coordinates along which it is finite, {place: power}."""
        return {int(j): value for j in places if (value := self.power([j])) < math.inf}


def _same(a, b):
    return abs(a - b) <= AGREEMENT * b


def _groups(out, own):
    """Coordinates that share a tail, together, and the power along one of them."""
    rest = list(own)
    together = out.power(rest)
    if _same(together, own[rest[0]]):
        yield np.array(rest), own[rest[0]]
        return
    if _same(together, sum(own.values())):
        yield from ((np.array([j]), own[j]) for j in rest)
        return
    while rest and len(own) <= TAILS:
        first = rest[0]
        group = [j for j in rest if j == first or not _same(out.power([first, j]), own[first] + own[j])]
        yield np.array(group), own[first]
        rest = [j for j in rest if j not in group]


def _fitted(x, members, index):
    """The group with centre and shape of the multivariate t of this index that fits points x (n, d) best.

    The shape is scaled so that medians of |z| are those of a normal law.
    """
    m, part = len(members), x[:, members]
    centre = np.median(part, axis=0)
    shape = np.diag(np.median(np.abs(part - centre), axis=0) ** 2)
    for _ in range(FITTING):
        root = np.linalg.cholesky(shape)
        z = np.linalg.solve(root, (part - centre).T).T
        weights = (index + m) / (index + (z**2).sum(axis=1))
        centre = weights @ part / weights.sum()
        away = (part - centre) * np.sqrt(weights)[:, None]
        before, shape = shape, away.T @ away / len(x)
        if np.abs(shape - before).max() <= 1e-3 * np.abs(shape).max():
            break
    q = 2.0 * special.gammaincinv(0.5 * m, 0.5)
    radius = m * special.fdtri(m, index, 0.5)
    scale = math.sqrt(radius / q) * math.exp(-0.5 * (q - m * math.log1p(q / m)) / index)
    return Tail(members, index, centre, scale * np.linalg.cholesky(shape))
