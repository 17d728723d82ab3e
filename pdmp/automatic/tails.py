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

from pdmp.automatic.start import Evaluations
from pdmp.diagnostics.tails import AGREEMENT, TAILS, power
from pdmp.metric import lower
from pdmp.models.base import Model
from pdmp.models.light_tails import LightTailed, Tail

#: Largest index of a tail that is made light; and how far from the median, in units of the median distance, a point is
#: where a coordinate is asked: of a normal law one of 20,000.
HEAVY, REMOTE = 8.0, 6.0
SMALLEST = 0.2  #: index of a tail that is made light: of a smaller one hardly a point is where floats are
FITTING = 50  #: steps of the fit of a multivariate t
RAYS = 4  #: rays in a group, to both sides


def light_tailed(model: Model, x: np.ndarray) -> tuple[LightTailed | None, int]:
    """Coordinates in which the heavy tails of a model are light, from points x (n, d); None without; the gradients."""
    target, centre = Evaluations(model), np.median(x, axis=0)
    target.count = 0
    distances = np.abs(x - centre)
    scale = np.median(distances, axis=0)
    if not np.all(scale > 0.0):
        return None, 0
    far = (distances / scale).max(axis=0)
    asked = np.argsort(-far, kind="stable")[:TAILS]
    own = _own(target, centre, scale, asked[far[asked] > REMOTE])
    if own:
        own = _own(target, centre, scale, np.arange(model.dim))
    tails = []
    for group in _groups(target, centre, scale, own):
        along = _along(target, centre, scale, group, RAYS)
        if abs(along - own[group[0]]) <= AGREEMENT * along and SMALLEST <= along - len(group) <= HEAVY:
            tails.append(_fitted(x, np.array(group), along - len(group)))
    return LightTailed(model, tails) if tails else None, target.count


def _own(target, centre, scale, places):
    """r ∂U/∂r along each of the coordinates that is a power, {place: power}; the smaller of both sides."""
    found = {}
    for j in places:
        value = _along(target, centre, scale, [j])
        if value < math.inf:
            found[int(j)] = value
    return found


def _along(target, centre, scale, group, rays=0):
    """The smallest power on rays along which a group of coordinates grows, to both sides; infinite if one is none."""
    signs = np.ones((1, len(group))) if not rays else np.random.default_rng(0).choice([-1.0, 1.0], (rays, len(group)))
    found = math.inf
    for sign in (*signs, *-signs):
        ray = np.zeros(len(centre))
        ray[group] = sign * scale[group]
        value = power(target, centre, ray)
        if rays and not value < math.inf:
            return math.inf
        found = min(found, value)
    return found


def _groups(target, centre, scale, own):
    """Coordinates that share a tail, together."""
    rest, groups = list(own), []
    while rest:
        first, *others = rest
        together = [first]
        if len(rest) > 1 and abs(_along(target, centre, scale, rest) - own[first]) <= AGREEMENT * own[first]:
            return [*groups, rest]
        if len(own) <= TAILS:
            for j in others:
                both = _along(target, centre, scale, [first, j])
                if abs(both - own[first] - own[j]) > AGREEMENT * both:
                    together.append(j)
        groups.append(together)
        rest = [j for j in rest if j not in together]
    return groups


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
    stretch = (q - m * math.log1p(q / m)) / index
    return Tail(members, index, centre, math.sqrt(radius / q) * math.exp(-0.5 * stretch) * lower(np.linalg.cholesky(shape)))
