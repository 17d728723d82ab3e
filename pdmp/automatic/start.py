r"""Where chains start: a Newton path from each of several dispersed points, and the best Gaussian along it.

At a point x of a path, with gradient g and Hessian H, the Gaussian N(x - \|H\|⁻¹g, \|H\|⁻¹) is judged by its evidence
lower bound, ELBO = E[log p - log q] with p = exp(-U): of a Gaussian target it is log ∫ p, of any other at most that. So
not the mode is looked for, but the place where the mass is. A mode of no mass, where the density has no bound (the
spread of a hierarchy at 0), is passed by: the Gaussians there are too narrow. In many dimensions an ELBO, of a
Gaussian without correlations, is off by more than tells the two apart; so where U falls without end while widths
shrink, down a neck, nothing starts as long as another path led elsewhere.

\|H\| has the absolute eigenvalues of H, in coordinates in which its diagonal is ±1: the step -\|H\|⁻¹g descends
at a saddle as well. Above 200 dimensions, where a Hessian by differences costs too much, steps are those of L-BFGS
and Gaussians have a diagonal from differences along random directions.

Where U is flat, or has kinks and is straight between them, its second derivatives say nothing. If no path leads
anywhere, others are tried with derivatives over the width of the density, or as far as to the next kink.

References
----------
Zhang, Carpenter, Gelman & Vehtari (2022), Pathfinder: parallel quasi-Newton variational inference, JMLR 23 (the ELBO
along an optimisation path, algorithm 1; several paths and resampling by importance, algorithm 2). Dauphin et al.
(2014), Identifying and attacking the saddle point problem in high-dimensional non-convex optimization, NeurIPS (|H|).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.base import Model
from pdmp.native.arguments import refuse_unreal
from pdmp.native.threads import one_thread

DENSE = 200  #: largest dimension with full Hessians, and with a full covariance in the warm-up
NO_WALL = (MemoryError, OSError)  #: errors that say nothing of the point at which they come
WIDTH = 2.0  #: dispersed starts are within ± this of the model's own, in the coordinates of x
#: Largest number of steps of a path; ten times as many of L-BFGS. Once a path has converged, later ones have at most
#: three times as many as that, and 20.
STEPS = 100
PATIENCE = 10  #: a path ends when its best ELBO has not grown for so many steps
DRAWS = 8  #: draws that an ELBO is the mean of
#: Nats for a dimension that the ELBO is below what the middle of the Gaussian promises, above which U is flat there:
#: its second derivatives, about 0, say nothing of the width of the density.
FLAT = 1e3
FAR = 20.0  #: no ELBO is computed where twice the decrease that the next step promises is above this for a dimension
CONVERGED = 1e-2  #: a path ends when twice the decrease that the next step promises is below this
NATS = 5.0  #: paths whose ELBO is lower than the best by more than this are not used
CANDIDATES = 4  #: draws among which one, by importance, is the start of a chain
FALL = 20.0  #: nats that U falls by down a neck, at least
SHRINKAGE = 1e3  #: and how much narrower it gets
REMEMBERED = 10  #: steps that L-BFGS remembers
PROBES = 16  #: random directions for the diagonal of a large Hessian


@dataclass(frozen=True, eq=False)
class Gaussian:
    """N(centre, L Lᵀ)."""

    centre: np.ndarray  #: (d,)
    root: np.ndarray  #: L: (d, d), or its diagonal (d,)

    @functools.cached_property
    def _factors(self):
        """Triangular factors of L, as many points are standardised, and where its rows went; and 0 if none is 0."""
        from scipy.linalg import lapack

        with one_thread():
            return lapack.dgetrf(self.root)

    def at(self, z):
        """The point centre + L z."""
        return self.centre + (self.root * z if self.root.ndim == 1 else self.root @ z)

    def standardised(self, x):
        """z with at(z) = x, of a point (d,) or of points (n, d)."""
        offset = x - self.centre
        if self.root.ndim == 1:
            return offset / self.root
        from scipy.linalg import lapack

        factors, rows, singular = self._factors
        if singular:
            raise np.linalg.LinAlgError("Singular matrix")
        return lapack.dgetrs(factors, rows, offset.T)[0].T

    def widths(self):
        """Standard deviations of the coordinates, (d,)."""
        return self.root if self.root.ndim == 1 else np.sqrt((self.root**2).sum(axis=1))

    def times_covariance(self, vector):
        """L Lᵀ times a vector (d,)."""
        return self.root**2 * vector if self.root.ndim == 1 else self.root @ (self.root.T @ vector)

    def log_volume(self):
        """log det L + d/2 log 2π; the log density at `at(z)` is minus that, and minus |z|²/2."""
        diagonal = self.root if self.root.ndim == 1 else np.abs(np.diag(self._factors[0]))
        return float(np.log(diagonal).sum()) + 0.5 * len(self.centre) * math.log(math.tau)


class Neck(NamedTuple):
    """What a path met where the density grows without end as it gets narrower."""

    coordinate: int  #: that moved most
    value: float  #: where it is at the Gaussian of best ELBO
    fall: float  #: by how much U fell up to there
    shrinkage: float  #: by what factor the width that shrank most did


class Path(NamedTuple):
    """Where a path led: the Gaussian of best ELBO along it; `gaussian` is None where no ELBO was finite."""

    gaussian: Gaussian | None
    elbo: float
    converged: bool  #: whether it ended in a minimum, and not where steps cease to help
    steps: int = 0
    mode: Gaussian | None = None  #: that of the minimum, where it ended in one
    neck: Neck | None = None  #: where it ended in none, and led down a neck


class Evaluations:
    """Potential and gradient of a model, counted; a point at which they cannot be computed has zero density.

    Where a function runs out of memory, or loses a file or a connection, that error ends the search, as no other point
    would help.

    Attributes
    ----------
    count : int
        Evaluations so far, of potentials and of gradients.
    """

    def __init__(self, model: Model) -> None:
        self.model, self.count = model, 2
        model.potential(model.initial)  # outside of `try`: an error here is a mistake in the model, not a wall
        model.gradient(model.initial)

    def potential(self, x: np.ndarray) -> float:
        """U(x), infinite where it is not a number."""
        self.count += 1
        try:
            with np.errstate(all="ignore"):
                u = self.model.potential(x)
        except NO_WALL:
            raise
        except Exception:  # noqa: BLE001 - a function of the user's, outside of where it is defined
            return math.inf
        return u if math.isfinite(u) else math.inf

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """∇U(x), NaN where it cannot be computed."""
        self.count += 1
        try:
            with np.errstate(all="ignore"):
                return self.model.gradient(x)
        except NO_WALL:
            raise
        except Exception:  # noqa: BLE001
            return np.full(len(x), np.nan)


def elbo(target: Evaluations, gaussian: Gaussian, draws: np.ndarray) -> float:
    """Mean of log p - log q at the points of `gaussian` with the standard normal coordinates `draws` (n, d).

    Less twice its standard error: of many Gaussians that fit badly one would else be taken for its lucky draws.
    """
    ratios = np.empty(len(draws))
    for k, z in enumerate(draws):
        potential = target.potential(gaussian.at(z))
        if potential == math.inf:
            return -math.inf
        ratios[k] = 0.5 * (z @ z) - potential
    with np.errstate(over="ignore"):
        error = ratios.std(ddof=1) / math.sqrt(len(draws))
    return float(ratios.mean()) - 2.0 * float(error) + gaussian.log_volume()


def find_path(
    target: Evaluations,
    x: np.ndarray,
    rng: np.random.Generator,
    earlier: tuple[Path, ...] = (),
    dense: bool = True,
    wide: bool = False,
) -> Path:
    """The path from x (d,), which ends where it enters the Gaussian of an earlier path, and is then that one.

    Parameters
    ----------
    target : Evaluations
    x : ndarray, shape (d,)
        A point of positive density.
    rng : numpy.random.Generator
        Of the ELBOs' draws, the same along a path, and of the random directions.
    earlier : tuple of Path, optional
    dense : bool, default True
        By Newton steps; else by L-BFGS.
    wide : bool, default False
        With derivatives over the width of the density.
    """
    d = len(x)
    z = rng.standard_normal((DRAWS, d))
    walk = _Wide(target, x) if wide else _Newton(target, x) if dense else _LimitedMemory(target, x, rng)
    best, best_at, potential = Path(None, -math.inf, False), 0, target.potential(x)
    first = None  # Gaussian and potential where one was looked at first
    known = [path.steps for path in earlier if path.converged]
    longest = STEPS if dense else 10 * STEPS
    for k in range(min(longest, 3 * max(known) + 20) if known else longest):
        met = entered(earlier, x, potential)
        if met is not None:
            return met
        found = walk.look(x)
        if found is None:
            break
        gradient, step, gaussian, convex = found
        if gaussian is not None:
            first = first or (x, gaussian, potential)
            if gradient @ step < FAR * d:
                value = elbo(target, gaussian, z)
                if gradient @ step < CONVERGED and -math.inf < value < gaussian.log_volume() - potential - FLAT * d:
                    return Path(None, -math.inf, False)
                if value > best.elbo:
                    best, best_at = Path(gaussian, value, False, neck=_neck(first, x, gaussian, potential)), k
        if convex and gradient @ step < CONVERGED:
            return best._replace(converged=True, steps=k, mode=gaussian, neck=None)
        if best.gaussian is not None and k - best_at > (PATIENCE if dense else 10 * PATIENCE):
            break
        moved = backtrack(target, x, potential, gradient, step)
        if moved is None:
            break
        x, potential = moved
    return best


def _neck(first, x, gaussian, potential):
    """The `Neck` that leads from where a path began to x, None if it does not seem to be one.

    Down a neck the volume of the Gaussian shrinks about as fast as the density grows; down to a mode of many data the
    density grows much faster.
    """
    before, wide, above = first
    fall, lost = above - potential, wide.log_volume() - gaussian.log_volume()
    shrinkage = float(np.max(wide.widths() / gaussian.widths()))
    if not (fall > FALL and lost > 0.5 * fall and shrinkage > SHRINKAGE):
        return None
    j = int(np.argmax(np.abs(x - before)))
    return Neck(j, float(x[j]), float(fall), shrinkage)


def entered(earlier, x, potential):
    """The path whose Gaussian x is within, where it describes the density as well as on average; else None."""
    for path in earlier:
        if path.gaussian is None:
            continue
        z = path.gaussian.standardised(x)
        ratio = 0.5 * (z @ z) - potential + path.gaussian.log_volume()  # log p / q
        if is_typical(z) and abs(ratio - path.elbo) <= NATS:
            return path
    return None


def backtrack(target, x, potential, gradient, step):
    """(x, U) after the first of the steps -t `step`, t = 1, 1/2, …, that decreases U in proportion; None without."""
    t, promised = 1.0, gradient @ step
    while t > 1e-10:
        there = x - t * step
        value = target.potential(there)
        if value <= potential - 1e-4 * t * promised:
            return there, value
        t *= 0.5 if value < math.inf else 0.1
    return None


class _Newton:
    """Steps |H|⁻¹g, with H by forward differences of the gradient.

    In directions of negative curvature they have at least the length 1 / √|λ|, so that they leave a saddle.
    """

    def __init__(self, target, x):
        self.target, self.step = target, 1e-5 * np.maximum(1.0, np.abs(x))

    def look(self, x):
        """Gradient, step, Gaussian at x, and whether U is convex there; None where they are not finite."""
        gradient = self.target.gradient(x)
        if not np.all(np.isfinite(gradient)):
            return None
        gradient, hessian = self.derivatives(x, gradient)
        if not np.all(np.isfinite(hessian)):
            return None
        scale = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(hessian)), 1e-12))
        with one_thread():
            values, vectors = np.linalg.eigh(hessian * scale[:, None] * scale)
        root = scale[:, None] * vectors / np.sqrt(np.maximum(np.abs(values), 1e-8))
        # Differences over a small part of the width of the density, and of what x can resolve.
        size = np.maximum(1.0, np.abs(x))
        self.step = np.clip(1e-4 * scale, 1e-7 * size, 1e-4 * size)
        whitened, concave = root.T @ gradient, values < -1e-3  # above that it may be the differences' error
        gaussian = Gaussian(x - root @ whitened, root)
        whitened = np.where(concave & (np.abs(whitened) < 1.0), np.where(whitened < 0.0, -1.0, 1.0), whitened)
        return gradient, root @ whitened, gaussian, not concave.any()

    def derivatives(self, x, gradient):
        """The gradient and the Hessian."""
        columns = np.empty((len(x), len(x)))
        for j in range(len(x)):
            y = x.copy()
            y[j] += self.step[j]
            columns[j] = (self.target.gradient(y) - gradient) / (y[j] - x[j])
        return gradient, 0.5 * (columns + columns.T)


class _Wide(_Newton):
    """The same with both derivatives over x ± w, where ∂ⱼU changes by 2 / w: of a Gaussian w is its width."""

    def __init__(self, target, x):
        super().__init__(target, x)
        self.width = np.maximum(1.0, np.abs(x))

    def derivatives(self, x, gradient):
        mean, columns = np.empty(len(x)), np.empty((len(x), len(x)))
        for j in range(len(x)):
            w = self.widen(x, j)
            low, high = self.around(x, j, w)
            columns[j], self.width[j] = (high - low) / (2.0 * w), w
            # Near a kink that is further than the width of the density the mean of both sides points nowhere.
            mean[j] = 0.5 * (low[j] + high[j]) if w * (high[j] - low[j]) <= 8.0 else gradient[j]
        return mean, 0.5 * (columns + columns.T)

    def around(self, x, j, w):
        e = w * (np.arange(len(x)) == j)
        return self.target.gradient(x - e), self.target.gradient(x + e)

    def widen(self, x, j):
        """The width of coordinate j, by halves; where a kink makes it jump past all that would do, the larger one."""
        w, straight, bent = self.width[j], 0.0, math.inf
        while 1e-150 < w < 1e150 and not bent <= 2.0 * straight:
            low, high = self.around(x, j, w)
            change = 0.5 * w * (high[j] - low[j])
            if 0.5 <= change <= 4.0:
                return w
            if change < 0.5:
                straight = w
            else:  # or not a number, beyond a wall
                bent = w
            w = 4.0 * w if bent == math.inf else 0.25 * w if straight == 0.0 else math.sqrt(bent * straight)
        return bent if bent < math.inf else w


def remembered(pairs, last, x, gradient):
    """The pairs that L-BFGS remembers after a step to x from the point and gradient `last`."""
    if last is None:
        return pairs
    s, y = x - last[0], gradient - last[1]
    if not s @ y > 1e-10 * math.sqrt((s @ s) * (y @ y)):
        return pairs
    return [*pairs[1 - REMEMBERED :], (s, y, 1.0 / (s @ y))]


def two_loops(pairs, gradient, scaled):
    """The product of the inverse Hessian and the gradient, by the two loops over the remembered steps."""
    q, weights = gradient.copy(), []
    for s, y, inverse in reversed(pairs):
        weights.append(inverse * (s @ q))
        q -= weights[-1] * y
    q = scaled(q)
    for (s, y, inverse), weight in zip(pairs, reversed(weights), strict=True):
        q += (weight - inverse * (y @ q)) * s
    return q


class _LimitedMemory:
    """Steps of L-BFGS; at every tenth point a Gaussian with a diagonal."""

    def __init__(self, target, x, rng):
        self.target, self.rng = target, rng
        self.last, self.pairs, self.looks = None, [], 0
        self.diagonal = np.full(len(x), np.nan)  # of the inverse Hessian

    def look(self, x):
        """As of `_Newton`; a Gaussian now and then, else None, and nothing is known of convexity."""
        gradient = self.target.gradient(x)
        if not np.all(np.isfinite(gradient)):
            return None
        self.pairs = remembered(self.pairs, self.last, x, gradient)
        self.last = x, gradient
        gaussian = None
        if self.looks % 10 == 0:
            self.diagonal = self.inverse_diagonal(x, gradient)
        step = two_loops(self.pairs, gradient, lambda q: self.diagonal * q)
        if self.looks % 10 == 0 or gradient @ step < CONVERGED:
            gaussian = Gaussian(x - step, np.sqrt(self.diagonal))
        self.looks += 1
        return gradient, step, gaussian, True

    def inverse_diagonal(self, x, gradient):
        """1 / |Hⱼⱼ|, with Hⱼⱼ the mean of rⱼ (Hr)ⱼ over random signs r."""
        total, size = np.zeros(len(x)), 1e-5 * np.maximum(1.0, np.abs(x))
        for _ in range(PROBES):
            r = self.rng.choice([-1.0, 1.0], len(x)) * size
            total += r * (self.target.gradient(x + r) - gradient) / size**2
        diagonal = np.abs(total) / PROBES
        floor = 1e-3 * np.nanmedian(diagonal)
        diagonal = np.maximum(np.where(np.isfinite(diagonal), diagonal, 1.0), floor if floor > 0.0 else 1.0)
        return 1.0 / diagonal


# ---------------------------------------------------------------------------------------------------------------
# Several paths


class Starts(NamedTuple):
    """What the paths found."""

    points: np.ndarray  #: (chains, d)
    gaussian: Gaussian  #: that of best ELBO
    paths: tuple[Path, ...]  #: that from the model's initial point first
    centre: np.ndarray  #: (d,) around which they began
    evaluations: int
    converged: np.ndarray  #: (chains,) whether the path that a chain starts from ended in a minimum

    @property
    def elbos(self) -> np.ndarray:
        """ELBOs of all paths, (n,)."""
        return np.array([path.elbo for path in self.paths])

    def warning(self, names: list[str]) -> str | None:
        """What to say of the neck of best ELBO, if that is no lower than where chains start, or None."""
        path = self.paths[int(np.argmax(self.elbos))]
        neck = path.neck
        if neck is None:
            return None
        away = path.gaussian is not self.gaussian
        return (
            f"the density has a neck: along {names[neck.coordinate]}, down to {neck.value:.3g}, log p grew by "
            f"{neck.fall:,.3g} while widths shrank {neck.shrinkage:,.2g} times, and no path found an end. "
            + (
                "Chains start elsewhere and do not visit it, so that its mass is left out. A sure cure is "
                if away
                else "Chains that start there do not leave it: give `initial=` elsewhere, "
            )
            + "a prior that keeps the scale from 0, or a parametrisation without that scale (non-centred)."
        )


def find_starts(model: Model, chains: int, rng: np.random.Generator, initial: ArrayLike | None = None) -> Starts:
    """Starts of chains, by a path from the model's initial point and one from a dispersed point for each chain.

    Each chain starts from the Gaussian of its own path, or, where that path's ELBO is behind the best by more than
    `NATS`, from that of another, drawn with probability proportional to exp(ELBO). If a path converges elsewhere, or
    most lead nowhere, there are as many again. A path that led down a neck counts only where all did.

    Parameters
    ----------
    model : Model
    chains : int
    rng : numpy.random.Generator
    initial : array_like, shape (d,) or (chains, d), optional
        In place of the model's initial point; or where the path of each chain begins.

    Raises
    ------
    ValueError
        If no point of positive density is found, or no path leads anywhere.
    """
    target, dense = Evaluations(model), model.dim <= DENSE
    refuse_unreal("initial", initial)
    given = np.array(model.initial if initial is None else initial, dtype=float)
    if given.shape == (chains, model.dim):
        origins, centre = list(given), given.mean(axis=0)
    else:
        centre = model.check(given, "initial")
        origins = [centre] if target.potential(centre) < math.inf else []
        origins += [dispersed(target, centre, rng) for _ in range(chains)]
    for wide in (False, True) if dense else (False,):
        paths: tuple[Path, ...] = ()
        for origin in origins:
            paths += (find_path(target, origin, rng, paths, dense, wide),)
        if any(path.gaussian is not None for path in paths):
            break
    behind = _behind(paths)
    elsewhere = [low and path.converged for low, path in zip(behind, paths, strict=True)]
    if any(elsewhere) or 2 * behind.sum() > len(paths):
        for _ in range(chains):
            paths += (find_path(target, dispersed(target, centre, rng), rng, paths, dense, wide),)
    elbos = np.array([path.elbo for path in paths])
    if not np.any(np.isfinite(elbos)):
        raise ValueError(
            f"no path from around `initial` of {type(model).__name__} leads to a place where it looks like a density: "
            "give `initial=` another point. For parameters with bounds use `transforms=`, or pdmp.Bounded."
        )
    behind, usable = _behind(paths), _usable(paths)
    weights = np.where(behind, 0.0, np.exp(usable - usable.max()))
    points, converged = [], []
    for own in range(len(origins) - chains, len(origins)):
        path = paths[rng.choice(len(paths), p=weights / weights.sum())] if behind[own] else paths[own]
        points.append(draw_by_importance(target, path.gaussian, rng))
        converged.append(path.converged)
    best = paths[int(np.argmax(usable))].gaussian
    return Starts(np.array(points), best, paths, centre, target.count, np.array(converged))


def _behind(paths):
    """Which paths are not used, (n,)."""
    elbos = _usable(paths)
    return ~(elbos >= elbos.max() - NATS)


def _usable(paths):
    """ELBOs of all paths, (n,); that of a path down a neck is -inf, unless no other led anywhere."""
    elbos = np.array([path.elbo for path in paths])
    wide = np.array([path.elbo if path.neck is None else -math.inf for path in paths])
    return wide if np.any(wide > -math.inf) else elbos


def is_typical(z):
    """Whether |z|² is not above what a standard normal vector has, by three of its standard deviations."""
    return z @ z <= len(z) + 3.0 * math.sqrt(2.0 * len(z))


def dispersed(target, centre, rng, width=WIDTH):
    """A point of positive density around `centre`, uniform in a cube that shrinks after every tenth attempt."""
    for k in range(100):
        x = centre + width * 0.5 ** (k // 10) * rng.uniform(-1.0, 1.0, len(centre))
        if target.potential(x) < math.inf:
            return x
    name, said = type(target.model).__name__, getattr(target.model, "said", None)
    raise ValueError(
        f"`initial` of {name} is not near any point of positive density{f' ({said})' if said else ''}; give `initial=` "
        "one that is."
    )


def draw_by_importance(target: Evaluations, gaussian: Gaussian, rng: np.random.Generator) -> np.ndarray:
    """One of a few draws of the Gaussian, taken with probability proportional to p / q, (d,).

    Raises
    ------
    ValueError
        If a hundred draws have zero density.
    """
    for _ in range(100 // CANDIDATES):
        draws = rng.standard_normal((CANDIDATES, len(gaussian.centre)))
        points = [gaussian.at(z) for z in draws]
        logs = np.array([0.5 * (z @ z) - target.potential(x) for z, x in zip(draws, points, strict=True)])
        if np.any(np.isfinite(logs)):
            weights = np.exp(logs - logs.max())
            return points[rng.choice(CANDIDATES, p=weights / weights.sum())]
    raise ValueError(
        f"the draws around the best point of {type(target.model).__name__} have zero density; give `initial=` points."
    )
