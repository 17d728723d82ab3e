r"""Where chains start: a Newton path from each of several dispersed points, and the best Gaussian along it.

At a point x of a path, with gradient g and Hessian H, the Gaussian N(x - \|H\|⁻¹g, \|H\|⁻¹) is judged by its evidence
lower bound, ELBO = E[log p - log q] with p = exp(-U): of a Gaussian target it is log ∫ p, of any other at most that. So
not the mode is looked for, but the place where the mass is. A mode of no mass, where the density has no bound (the
spread of a hierarchy at 0), is passed by: the Gaussians there are too narrow.

\|H\| has the absolute eigenvalues of H, in coordinates in which its diagonal is ±1: the step -\|H\|⁻¹g descends
at a saddle as well. Above 200 dimensions, where a Hessian by differences costs too much, steps are those of L-BFGS
and Gaussians have a diagonal from differences along random directions.

References
----------
Zhang, Carpenter, Gelman & Vehtari (2022), Pathfinder: parallel quasi-Newton variational inference, JMLR 23 (the ELBO
along an optimisation path, algorithm 1; several paths and resampling by importance, algorithm 2). Dauphin et al.
(2014), Identifying and attacking the saddle point problem in high-dimensional non-convex optimization, NeurIPS (|H|).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.base import Model

DENSE = 200  #: largest dimension with full Hessians, and with a full covariance in the warm-up
WIDTH = 2.0  #: dispersed starts are within ± this of the model's own, in the coordinates of x
#: Largest number of steps of a path; ten times as many of L-BFGS. Once a path has converged, later ones have at most
#: three times as many as that, and 20.
STEPS = 100
PATIENCE = 10  #: a path ends when its best ELBO has not grown for so many steps
DRAWS = 8  #: draws that an ELBO is the mean of
FAR = 20.0  #: no ELBO is computed where twice the decrease that the next step promises is above this for a dimension
CONVERGED = 1e-2  #: a path ends when twice the decrease that the next step promises is below this
NATS = 5.0  #: paths whose ELBO is lower than the best by more than this are not used
CANDIDATES = 4  #: draws among which one, by importance, is the start of a chain
REMEMBERED = 10  #: steps that L-BFGS remembers
PROBES = 16  #: random directions for the diagonal of a large Hessian


class Gaussian(NamedTuple):
    """N(centre, L Lᵀ)."""

    centre: np.ndarray  #: (d,)
    root: np.ndarray  #: L: (d, d), or its diagonal (d,)

    def at(self, z):
        """The point centre + L z."""
        return self.centre + (self.root * z if self.root.ndim == 1 else self.root @ z)

    def standardised(self, x):
        """z with at(z) = x, of a point (d,) or of points (n, d)."""
        offset = x - self.centre
        return offset / self.root if self.root.ndim == 1 else np.linalg.solve(self.root, offset.T).T

    def log_volume(self):
        """log det L + d/2 log 2π; the log density at `at(z)` is minus that, and minus |z|²/2."""
        logs = np.log(self.root).sum() if self.root.ndim == 1 else np.linalg.slogdet(self.root)[1]
        return float(logs) + 0.5 * len(self.centre) * math.log(math.tau)


class Path(NamedTuple):
    """Where a path led: the Gaussian of best ELBO along it; `gaussian` is None where no ELBO was finite."""

    gaussian: Gaussian | None
    elbo: float
    converged: bool  #: whether it ended in a minimum, and not where steps cease to help
    steps: int = 0


class Evaluations:
    """Potential and gradient of a model, counted; a point at which they cannot be computed has zero density.

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
        except Exception:  # noqa: BLE001 - a function of the user's, outside of where it is defined
            return math.inf
        return u if math.isfinite(u) else math.inf

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """∇U(x), NaN where it cannot be computed."""
        self.count += 1
        try:
            with np.errstate(all="ignore"):
                return self.model.gradient(x)
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
    target: Evaluations, x: np.ndarray, rng: np.random.Generator, earlier: tuple[Path, ...] = (), dense: bool = True
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
    """
    d = len(x)
    z = rng.standard_normal((DRAWS, d))
    walk = _Newton(target, x) if dense else _LimitedMemory(target, x, rng)
    best, best_at, potential = Path(None, -math.inf, False), 0, target.potential(x)
    known = [path.steps for path in earlier if path.converged]
    longest = STEPS if dense else 10 * STEPS
    for k in range(min(longest, 3 * max(known) + 20) if known else longest):
        met = _entered(earlier, x, potential)
        if met is not None:
            return met
        found = walk.look(x)
        if found is None:
            break
        gradient, step, gaussian, convex = found
        if gaussian is not None and gradient @ step < FAR * d:
            value = elbo(target, gaussian, z)
            if value > best.elbo:
                best, best_at = Path(gaussian, value, False), k
        if convex and gradient @ step < CONVERGED:
            return best._replace(converged=True, steps=k)
        if best.gaussian is not None and k - best_at > (PATIENCE if dense else 10 * PATIENCE):
            break
        moved = _backtrack(target, x, potential, gradient, step)
        if moved is None:
            break
        x, potential = moved
    return best


def _entered(earlier, x, potential):
    """The path whose Gaussian x is within, where it describes the density as well as on average; else None."""
    for path in earlier:
        if path.gaussian is None:
            continue
        z = path.gaussian.standardised(x)
        ratio = 0.5 * (z @ z) - potential + path.gaussian.log_volume()  # log p / q
        if _is_typical(z) and abs(ratio - path.elbo) <= NATS:
            return path
    return None


def _backtrack(target, x, potential, gradient, step):
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
        hessian = self.hessian(x, gradient)
        if not np.all(np.isfinite(hessian)):
            return None
        scale = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(hessian)), 1e-12))
        values, vectors = np.linalg.eigh(hessian * scale[:, None] * scale)
        root = scale[:, None] * vectors / np.sqrt(np.maximum(np.abs(values), 1e-8))
        # Differences over a small part of the width of the density, and of what x can resolve.
        size = np.maximum(1.0, np.abs(x))
        self.step = np.clip(1e-4 * scale, 1e-7 * size, 1e-4 * size)
        whitened, concave = root.T @ gradient, values < -1e-3  # above that it may be the differences' error
        gaussian = Gaussian(x - root @ whitened, root)
        whitened = np.where(concave & (np.abs(whitened) < 1.0), np.where(whitened < 0.0, -1.0, 1.0), whitened)
        return gradient, root @ whitened, gaussian, not concave.any()

    def hessian(self, x, gradient):
        columns = np.empty((len(x), len(x)))
        for j in range(len(x)):
            y = x.copy()
            y[j] += self.step[j]
            columns[j] = (self.target.gradient(y) - gradient) / (y[j] - x[j])
        return 0.5 * (columns + columns.T)


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
        if self.last is not None:
            s, y = x - self.last[0], gradient - self.last[1]
            if s @ y > 1e-10 * math.sqrt((s @ s) * (y @ y)):
                self.pairs = [*self.pairs[1 - REMEMBERED :], (s, y, 1.0 / (s @ y))]
        self.last = x, gradient
        gaussian = None
        if self.looks % 10 == 0:
            self.diagonal = self.inverse_diagonal(x, gradient)
        step = self.direction(gradient)
        if self.looks % 10 == 0 or gradient @ step < CONVERGED:
            gaussian = Gaussian(x - step, np.sqrt(self.diagonal))
        self.looks += 1
        return gradient, step, gaussian, True

    def direction(self, gradient):
        """The product of the inverse Hessian and the gradient, by the two loops over the remembered steps."""
        q, weights = gradient.copy(), []
        for s, y, inverse in reversed(self.pairs):
            weights.append(inverse * (s @ q))
            q -= weights[-1] * y
        q *= self.diagonal
        for (s, y, inverse), weight in zip(self.pairs, reversed(weights), strict=True):
            q += (weight - inverse * (y @ q)) * s
        return q

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
    elbos: np.ndarray  #: of all paths, that of the model's initial point first
    apart: np.ndarray  #: which of them ended elsewhere than the best, too low to start chains
    evaluations: int

    def warning(self) -> str | None:
        """What to say of paths that ended apart, or None."""
        if not self.apart.any():
            return None
        behind = self.elbos.max() - self.elbos[self.apart]
        amount = f", {behind.min():.3g} nats or more behind by their ELBO," if np.any(np.isfinite(behind)) else ""
        return (
            f"{int(self.apart.sum())} of {len(self.elbos)} paths to a start ended elsewhere than the best{amount} and "
            "are not used: there may be other modes, or the posterior is hard to find; compare runs of several "
            "seeds, or give `initial=`."
        )


def find_starts(model: Model, chains: int, rng: np.random.Generator, initial: ArrayLike | None = None) -> Starts:
    """Starts of chains, by a path from the model's initial point and one from a dispersed point for each chain.

    Each chain starts from the Gaussian of its own path, or, where that path's ELBO is behind the best by more than
    `NATS`, from that of another, drawn with probability proportional to exp(ELBO). If a path converges elsewhere, or
    most lead nowhere, there are as many again.

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
    given = np.array(model.initial if initial is None else initial, dtype=float)
    paths: tuple[Path, ...] = ()
    if given.shape == (chains, model.dim):
        origins, centre = list(given), given.mean(axis=0)
    else:
        centre = model.check(given, "initial")
        origins = [centre] if target.potential(centre) < math.inf else []
        origins += [_dispersed(target, centre, rng) for _ in range(chains)]
    for origin in origins:
        paths += (find_path(target, origin, rng, paths, dense),)
    behind = _behind(paths)
    elsewhere = [low and path.converged for low, path in zip(behind, paths, strict=True)]
    if any(elsewhere) or 2 * behind.sum() > len(paths):
        for _ in range(chains):
            paths += (find_path(target, _dispersed(target, centre, rng), rng, paths, dense),)
    elbos = np.array([path.elbo for path in paths])
    if not np.any(np.isfinite(elbos)):
        raise ValueError(
            f"no path from around `initial` of {type(model).__name__} leads to a place where it looks like a density: "
            "give `initial=` another point, or U has the wrong sign: it is minus the log density. For parameters with "
            "bounds use `transforms=`, or pdmp.Bounded."
        )
    behind = _behind(paths)
    weights = np.where(behind, 0.0, np.exp(elbos - elbos.max()))
    points = []
    for own in range(len(origins) - chains, len(origins)):
        path = paths[rng.choice(len(paths), p=weights / weights.sum())] if behind[own] else paths[own]
        points.append(draw_by_importance(target, path.gaussian, rng))
    best = paths[int(np.argmax(elbos))].gaussian
    apart = [
        low and path.converged and not _within(best, path.gaussian) for low, path in zip(behind, paths, strict=True)
    ]
    return Starts(np.array(points), best, elbos, np.array(apart), target.count)


def _behind(paths):
    """Which paths are not used, (n,)."""
    elbos = np.array([path.elbo for path in paths])
    return ~(elbos >= elbos.max() - NATS)


def _within(best, gaussian):
    """Whether the centre of a Gaussian, which may be None, is where the best one has its mass."""
    return gaussian is not None and _is_typical(best.standardised(gaussian.centre))


def _is_typical(z):
    """Whether |z|² is not above what a standard normal vector has, by three of its standard deviations."""
    return z @ z <= len(z) + 3.0 * math.sqrt(2.0 * len(z))


def _dispersed(target, centre, rng, tries=100):
    """A point of positive density around `centre`, uniform in a cube that shrinks after every tenth attempt."""
    for k in range(tries):
        x = centre + WIDTH * 0.5 ** (k // 10) * rng.uniform(-1.0, 1.0, len(centre))
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
