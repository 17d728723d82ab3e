"""Modes that are narrower than others: places on lines outward from the widest ones where U is lower than expected.

Around a mode that is narrower than another one by a factor r lies a ball, which from there is seen at an angle of
about sin⁻¹ r however far it is. Outside of it U is that of the wide mode alone: no path that begins there,
no rung of a ladder and no diagnostic of its draws knows of the narrow one. So lines are looked along, in directions
that are far from each other, at places in equal ratios of the distance. Where U is lower than by all Gaussians that are
known, and mostly than nearer on the line, a Newton path begins.

In few dimensions that finds what is a few times narrower. In many the ball is seen at so small an angle that no number
of lines meets it; `narrowest` says from which ratio on.
"""

from __future__ import annotations

import math

import numpy as np

from pdmp.automatic.modes import DIP
from pdmp.automatic.start import Evaluations, Gaussian, Path, find_path
from pdmp.automatic.tempering.references import BEHIND

#: Lines: so many times d², where they would be close to each other, and so many in all their dimensions together.
DENSITY, TOGETHER = 100, 6_000
EVALUATIONS = 10_000  #: from which on no other line begins
NEAREST, REACH, RATIO = 2.0, 20.0, 1.5  #: standard deviations where a line begins and ends; of one place to the next
TURN = 0.5 * (math.sqrt(5.0) - 1.0)  #: by which the first place of a line moves: neighbours look at other places
DIRECTIONS = 32  #: of which that which is farthest from earlier ones is the next
#: Nats by which U is lower than expected; paths in a row that led to nothing new until it must have fallen as well, as
#: in heavy tails U is low everywhere.
LOWER, WASTED = 1.0, 8
SEEN = 0.95  #: probability with which a mode is met that is said to be seen


def number(dim: int) -> int:
    """How many lines there are."""
    return min(DENSITY * dim**2, math.ceil(TOGETHER / dim))


def narrowest(dim: int, lines: int) -> float:
    """The ratio of a mode's width to that of a wider one from which on so many lines meet it, by `SEEN`; 1 for none.

    Of a line at an angle θ < sin⁻¹ r to the other one, the logarithm of the distance is in the ball for a length of
    2 artanh(√(r² - sin²θ) / cos θ), and places on it are log `RATIO` apart.
    """
    ratio = np.linspace(0.01, 0.99, 99)[:, None]
    angle = np.arcsin(ratio) * (np.arange(100) + 0.5) / 100.0 if dim > 1 else 0.0 * ratio
    length = 2.0 * np.arctanh(np.sqrt(ratio**2 - np.sin(angle) ** 2) / np.cos(angle))
    met = np.minimum(1.0, length / math.log(RATIO))
    if dim > 1:
        whole = math.sqrt(math.pi) * math.exp(math.lgamma(0.5 * dim - 0.5) - math.lgamma(0.5 * dim))
        met = (met * np.sin(angle) ** (dim - 2)).sum(axis=1, keepdims=True) * np.arcsin(ratio) / 100.0 / whole
    else:
        met = 0.5 * met
    enough = ratio[-np.expm1(lines * np.log1p(-met)) >= SEEN]
    return float(enough[0]) if len(enough) else 1.0


class Known:
    """The Gaussians that distinct paths have found."""

    def __init__(self, paths: tuple[Path, ...]) -> None:
        best = max(path.elbo for path in paths)
        gaussians = {id(g): (g, path.elbo) for path in paths for g in (path.mode, path.gaussian) if g is not None}
        elbos = np.array([elbo for _, elbo in gaussians.values()])
        self.gaussians = [g for g, _ in gaussians.values()]
        self.centres = np.array([g.centre for g in self.gaussians])
        self.inverses = np.linalg.inv(np.array([g.root for g in self.gaussians]))
        self.volumes = np.array([g.log_volume() for g in self.gaussians])
        self.heights = self.volumes - elbos
        self.volumes[elbos < best - BEHIND] = -math.inf

    def expected(self, x: np.ndarray) -> float:
        """The least potential at x (d,) by one of them."""
        z = np.einsum("kij,kj->ki", self.inverses, x - self.centres)
        return float((0.5 * (z**2).sum(axis=1) + self.heights).min())

    def widest(self) -> list[Gaussian]:
        """Those of mass that are at least half as wide as the widest."""
        least = self.volumes.max() - len(self.centres[0]) * math.log(2.0)
        return [g for g, volume in zip(self.gaussians, self.volumes, strict=True) if volume >= least]


def spread(earlier: list[np.ndarray], dim: int, rng: np.random.Generator) -> np.ndarray:
    """A direction far from earlier ones, (d,), which is added to them."""
    z = rng.standard_normal((DIRECTIONS, dim))
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    near = (z @ np.array(earlier).T).max(axis=1) if earlier else np.zeros(DIRECTIONS)
    earlier.append(z[np.argmin(near)])
    return earlier[-1]


def along_lines(
    target: Evaluations, paths: tuple[Path, ...], begun: np.ndarray, rng: np.random.Generator
) -> tuple[tuple[Path, ...], int]:
    """The paths, each with a Gaussian, and further ones; and how many lines were looked along.

    Lines reach at least twice as far as the known modes and the point `begun` (d,) are, around which paths have begun.
    """
    known, looked, wasted = Known(paths), {}, 0
    lines = number(len(begun))
    for k in range(lines):
        if target.count > EVALUATIONS:
            return paths, k
        widest = known.widest()
        origin = widest[k % len(widest)]
        direction = spread(looked.setdefault(id(origin), []), len(begun), rng)
        far = np.linalg.norm(origin.standardised(np.vstack([begun, known.centres])), axis=1).max()
        t, top = NEAREST * RATIO ** (k * TURN % 1.0), -math.inf
        while t < REACH + 2.0 * far:
            x = origin.at(t * direction)
            potential = target.potential(x)
            fell = potential < top - DIP
            if (fell or wasted < WASTED) and potential < known.expected(x) - LOWER:
                path = find_path(target, x, rng, paths, True)
                wasted += 1
                if path.mode is not None and not any(path is other for other in paths):
                    paths, wasted = (*paths, path), 0
                    known = Known(paths)
                    break
            top, t = potential if fell else max(top, potential), RATIO * t
    return paths, lines
