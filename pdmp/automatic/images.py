"""Modes that are images of a known one under symmetries of the likelihood.

Of a change T of the coordinates that keeps volumes and the likelihood, the mass of the image of a mode is that of the
mode itself times the mean of exp(U(x) - U(Tx)) over its draws x, and its shape is known. No path has to find it.

Of a model that does not tell its symmetries the commonest ones are tried. Other signs of some variables, as of loadings
and factors together, are a symmetry where U is the same at several draws. Signs and exchanges of single coordinates are
tried at the mean: where U is hardly higher a path begins.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from pdmp.automatic.metric import Metric
from pdmp.automatic.start import Evaluations, Gaussian
from pdmp.models.regressions.moved_coordinates import natural_of

MOST = 7  #: images that are looked at
FEW, LOWEST = 10, 4  #: dimensions up to which two coordinates are changed; points where paths begin, at most
PLACES = 16  #: draws of a mode that are moved
RARE = 0.25  #: part of the visits that its mass would give it, from which on a mode is one where chains are
EVEN = 0.25  #: of their weights, (Σ w)² / Σ w² over their number, from which on these say what the image's mass is
#: Variables up to which signs of any of them are changed, and up to which of each two; draws where U is to be the same,
#: to rounding and at most so many nats; and columns of matrices whose signs are changed, at most.
ANY, PAIRS, SAME_AT, SAME, ALIKE, COLUMNS = 5, 12, 3, 1e-9, 0.01, 20
STEP = 1e-4  #: of the differences by which a change is made linear, in standard deviations


class Image(NamedTuple):
    """What a symmetry makes of the mode where chains are."""

    gaussian: Gaussian
    behind: float  #: minus the logarithm of its mass, that of the mode being 1
    #: Of the other places of chains, how many are nearer to images of draws than to these: 0 if no chain is there.
    share: float
    is_known: bool = True  #: whether the model tells of the symmetry; else it was tried

    @property
    def is_rare(self) -> bool:
        """Whether a quarter or less of what it would be if chains were there as often as its mass says."""
        there = 1.0 / (1.0 + math.exp(min(self.behind, 700.0)))
        return self.share < RARE * 2.0 * there * (1.0 - there)


def images_of(model: Any, target: Evaluations, learnt: Metric) -> list[Image]:
    """Images of what was learnt: by the model's symmetries, one or several one after the other, or else by signs."""
    from scipy.spatial import cKDTree

    here, found = learnt.gaussian, []
    chosen = np.linspace(0, len(learnt.visited) - 1, PLACES).astype(int)
    places = learnt.visited[chosen]
    words = words_of(model, places[0])  # the mean may be between two modes
    moves = [functools.partial(moved, model, word=word) for word in words] or [
        functools.partial(np.multiply, signs) for signs in symmetric_signs(model, target, places[:SAME_AT])
    ]
    if not moves:
        return []
    others = here.standardised(np.delete(np.concatenate([learnt.visited, learnt.points]), chosen, axis=0))
    from_places = cKDTree(here.standardised(places)).query(others)[0]
    potentials = np.array([target.potential(x) if words else 0.0 for x in places])  # signs leave U as it is
    for move in moves:
        centre, images = move(here.centre), np.array([move(x) for x in places])
        if here.root.ndim == 1:
            root = images.std(axis=0)
        else:
            columns = STEP * here.root.T
            root = np.array([(move(here.centre + c) - centre) / STEP for c in columns]).T
        gains = potentials - [target.potential(x) if words else 0.0 for x in images]
        if np.all(np.isfinite(root)) and np.all(np.isfinite(images)):
            nearer = cKDTree(here.standardised(images)).query(others)[0] < from_places
            found.append(Image(Gaussian(centre, root), behind(gains), float(nearer.mean()), bool(words)))
    return found


def symmetric_signs(model: Any, target: Evaluations, places: np.ndarray) -> list[np.ndarray]:
    """Signs (d,) that leave U as it is at all places (n, d): the first `MOST` of `sign_changes`."""
    potentials = [target.potential(x) for x in places]
    found = (
        signs
        for signs in sign_changes(model.variables)
        if all(
            abs(target.potential(signs * x) - u) <= min(SAME * max(1.0, abs(u)), ALIKE)
            for x, u in zip(places, potentials, strict=True)
        )
    )
    return list(itertools.islice(found, MOST))


def sign_changes(variables: dict[str, tuple[int, ...]]) -> Iterator[np.ndarray]:
    """Signs (d,) of all coordinates; of each variable, of each two or any; and of a column or row of all matrices."""
    shapes, ends = list(variables.values()), np.cumsum([math.prod(shape) for shape in variables.values()])
    owner = np.repeat(np.arange(len(shapes)), np.diff(ends, prepend=0))
    yield -np.ones(len(owner))
    most = len(shapes) - 1 if len(shapes) <= ANY else 2 if len(shapes) <= PAIRS else 1
    for size in range(1, most + 1):
        for chosen in itertools.combinations(range(len(shapes)), size):
            yield np.where(np.isin(owner, chosen), -1.0, 1.0)
    matrices = [(k, shape) for k, shape in enumerate(shapes) if len(shape) == 2]
    for axis in (1, 0):
        for j in range(min(max((shape[axis] for _, shape in matrices), default=0), COLUMNS)):
            signs = np.ones(len(owner))
            for k, shape in matrices:
                place = np.arange(math.prod(shape)).reshape(shape)
                signs[np.flatnonzero(owner == k)[np.take(place, j, axis).ravel() if j < shape[axis] else []]] = -1.0
            yield signs


def lookalikes(target: Evaluations, here: Gaussian, rise: float, most: float) -> list[np.ndarray]:
    """Points with other signs than the mean, or two coordinates exchanged, where U is higher by less than `rise`.

    Of one coordinate, of all of them and, in few dimensions, of each two; away from the Gaussian itself, and the lowest
    `LOWEST` of them. At most `most` potentials are evaluated.
    """
    x, d = here.centre, len(here.centre)
    signs = np.ones((d + 1, d)) - 2.0 * np.vstack([np.eye(d), np.ones(d)])
    points = list(x * signs)
    for i, j in itertools.combinations(range(d), 2) if d <= FEW else ():
        points.append(x * signs[i] * signs[j])
        order = np.arange(d)
        order[[i, j]] = j, i
        points.append(x[order])
    away = [y for y in points if not is_near(here, y)][: max(int(most) - 1, 0)]
    if not away:
        return []
    top = target.potential(x) + rise
    found = [(u, k) for k, y in enumerate(away) if (u := target.potential(y)) < top]
    return [away[k] for _, k in sorted(found)[:LOWEST]]


def is_near(metric: Gaussian, x: np.ndarray) -> bool:
    """Whether x is within three standard deviations of the mean that was learnt, in every direction together."""
    z = metric.standardised(x)
    return bool(z @ z <= 9.0)


def behind(gains: np.ndarray) -> float:
    """Minus the logarithm of the mean of exp(gains); infinite where few of them make it, as of what is no symmetry."""
    with np.errstate(invalid="ignore"):
        total, square = np.logaddexp.reduce(gains), np.logaddexp.reduce(2.0 * gains)
        is_even = 2.0 * total - square > math.log(EVEN * len(gains))
    return math.log(len(gains)) - float(total) if is_even else math.inf


def words_of(model: Any, x: np.ndarray) -> list[tuple[int, ...]]:
    """Numbers of symmetries, one after the other, that make each another point of x (d,)."""
    if not hasattr(model, "images"):
        return []
    found: list[tuple[int, ...]] = [()]
    points, natural = [x], [natural_of(model, x)]  # as coordinates of steps have a scale that says nothing
    for word, point in zip(found, points, strict=True):  # both of which grow meanwhile
        for k, other in enumerate(model.images(point)):
            there = natural_of(model, other)
            if len(found) <= MOST and not any(np.allclose(there, known) for known in natural):
                found.append((*word, k))
                points.append(other)
                natural.append(there)
    return found[1:]


def moved(model: Any, x: np.ndarray, word: tuple[int, ...]) -> np.ndarray:
    """The image of x (d,) by symmetries one after the other."""
    for k in word:
        x = model.images(x)[k]
    return x
