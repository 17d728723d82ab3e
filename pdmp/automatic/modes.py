"""Modes that no chain is in: where further paths end, apart from where the chains have been and of about their mass.

Chains that start in one of two modes agree with each other whatever the other one holds. So up to `PATHS` points, in
pairs on either side of the chains' centre, half of them as near as the chains' own and half far out, descend by L-BFGS
in the metric that was learnt, as long as this takes little beside a run. Others, of Newton's steps, begin where U falls
on the way out from the mean that was learnt, along coordinates and principal directions: a mode narrower than the
others draws few paths from far away, and none from among the others' mass. Where a likelihood is known to have
symmetries images of what chains have visited are modes as well, and paths begin at likely ones (see
`pdmp.automatic.images`). A path that enters a known Gaussian ends there. Of an end that is new a Newton path finds the
Gaussian of best ELBO. It is a mode of its own

- if its ELBO is at most `TIE` below the best one: a basin farther below holds too little to be missed, and so does the
  end of a path that came through where the chains have been, if the Gaussian there is;
- if no chain has been in it;
- if a barrier lies between it and every Gaussian in which chains have been, on the straight line: a ridge has none;
- if no chain that starts there comes to where the others have been, within a first window: a curved ridge leads there.

Where chains were there, but hardly, the barrier is low (as that of a wide mode is in many dimensions), or chains come
from there, those of the run may yet stay on their side: one of several starts in that mode, so that they disagree in
the end or their averages have both.

A mode that is so narrow, or so far away, that no path ends in it is not found. From a wide mode around a narrow one
paths go on down to that, so the mass beyond the chains' draws is estimated too, by importance sampling. The entropy of
their law is at most that of a Gaussian of its covariance, so that its own mass is at most what is compared with.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pdmp.automatic.images import RARE, images_of, is_near, lookalikes
from pdmp.automatic.metric import FIRST_WINDOW, Metric, hamiltonian
from pdmp.automatic.start import (
    CONVERGED,
    DENSE,
    WIDTH,
    Evaluations,
    Gaussian,
    Path,
    Starts,
    backtrack,
    dispersed,
    draw_by_importance,
    elbo,
    entered,
    find_path,
    is_typical,
    remembered,
    two_loops,
)
from pdmp.automatic.windows import gradients_of, run_window
from pdmp.engine.result import Run
from pdmp.metric import from_root, lower
from pdmp.models.base import Model
from pdmp.native.threads import one_thread

PATHS = 16  #: further paths, at most
#: Evaluations from which on no other one begins: a tenth of a short run, or of what the warm-up has taken.
EVALUATIONS, SHARE = 300, 0.1
#: Far out is within ± the largest of so much, so many standard deviations, and so many distances to the mean.
FAR_OUT, REACH, BEYOND = 3.0 * WIDTH, 20.0, 2.0
#: Standard deviations from the mean between which U is compared along a direction, and by how much it falls at least.
OUT, DIP = (2.0, 4.0, 5.5, 7.5), 0.5
DIPS = 4  #: paths from there, at most
LONGEST = 50  #: steps of one
TIE = 3.0  #: nats of ELBO by which a mode that is worth a word is behind, at most: a twentieth of the mass
BARRIER = 4.0  #: nats above the higher of two modes that part them; lower ones are crossed every few paths
VISITED = 50  #: places of a chain that are compared with those of the others
NEAR = 3  #: of them where it comes to those, at least: one is passed on a path with too large a step
PLACES = 16  #: of a straight line, where that is looked at
NAMED = 3  #: coordinates that a warning names
#: Scales of Gaussians around the chains, each by this factor wider than the last; draws of each of them, and places of
#: the chains where U is averaged.
SCALES, FACTOR, DRAWS = 8, 1.5, 32
GAP = 2.0  #: nats by which the density of the radius falls before it, at least: power tails have no gap


LOW = 0.1  #: nats of a barrier, of a mode in which one chain starts, at least


class Hidden(NamedTuple):
    """A mode that no chain is in."""

    gaussian: Gaussian
    behind: float  #: the best ELBO less its own; negative where it is the best
    times: float = 0.0  #: how many times as wide it is as what the chains are in, if it lies around that
    is_image: bool = False  #: whether a symmetry makes it of that


class Sought(NamedTuple):
    """What further paths have found."""

    hidden: list[Hidden]  #: modes apart from where the chains have been, that of most mass first
    #: Where there are some that chains have hardly been in, or from which they come to the others: those that they have
    #: been in, and from the second on these, as above.
    near: tuple[Hidden, ...]
    evaluations: int


def hidden_modes(model: Model, starts: Starts, learnt: Metric, seed: np.random.SeedSequence) -> Sought:
    """Modes in which no chain has been, and the evaluations that this took.

    `starts` has the paths so far, `learnt` the points that chains visited.
    """
    target, dense, rng = Evaluations(model), model.dim <= DENSE, np.random.Generator(np.random.PCG64(seed))
    most, spent = max(EVALUATIONS, SHARE * (starts.evaluations + learnt.gradients)), 0
    draws = rng.standard_normal((8, model.dim))
    here = Path(learnt.gaussian, elbo(target, learnt.gaussian, draws), True)
    known = (here, *(path for path in starts.paths if path.gaussian is not None))
    seen = np.concatenate([learnt.visited, learnt.points, starts.points])
    best = max(path.elbo for path in known if path.neck is None)
    distinct = list({id(path): path for path in known[1:]}.values())
    used = [path for path in distinct if path.elbo >= best - TIE and is_visited(path.gaussian, seen)]
    ends, found, near = [path for path in distinct if path.mode is not None], [], []
    further = lookalikes(target, learnt.gaussian, TIE, 0.25 * most) if dense else []
    further += dips(target, learnt.gaussian, 0.5 * most) if dense else []
    for image in images_of(model, target, learnt):
        if image.behind > TIE:  # no symmetry of the priors, or one of a part of the likelihood alone
            further.insert(0, image.gaussian.centre)
            continue
        between = barrier(target, image.gaussian.centre, learnt.gaussian.centre) if image.is_rare else 0.0
        if between > LOW:
            hides = between > BARRIER and image.share == 0.0
            if hides and dense and not image.is_known:  # it may be the other side of a ring
                points = np.array([draw_by_importance(target, image.gaussian, rng) for _ in learnt.points])
                run = sent(model, image.gaussian.root, points, learnt, seed.spawn(1)[0])
                spent, hides = spent + gradients_of(run), not comes_to(run, learnt.gaussian, seen)
            (found if hides else near).append(Hidden(image.gaussian, image.behind, is_image=True))
    begin = origins(target, starts.centre, learnt.gaussian, rng)
    for k in range(-len(ends) - len(further), PATHS):
        if k < -len(further):
            path = ends[k + len(further)]
        else:
            if target.count > most:
                break
            if k < 0:
                end = further[k]
            else:
                end = descend(target, next(begin), learnt.gaussian, known)
            if end is None:
                continue
            path = find_path(target, end, rng, known, dense)
            if any(path is other for other in known) or path.mode is None:
                continue
            known = (*known, path)
        others = [one for one in used if one is not path] or [here]  # which of several modes may be between them
        if path.elbo < best - TIE:
            path = no_wider(target, path, learnt.gaussian, draws)
        visited = is_visited(path.mode, seen)
        if path.elbo < best - TIE or (visited and not is_rare(path, others, learnt.visited)):
            continue
        if is_visited(path.gaussian, seen) and elbo(target, path.mode, draws) < best - TIE:
            continue  # what has the mass is on the way to the end, as beside a neck
        if any(is_typical(one.gaussian.standardised(path.mode.centre)) for one in (*found, *near)):
            continue  # another end on the same flat top
        between = min(barrier(target, path.mode.centre, one.gaussian.centre) for one in others)
        mode = Hidden(path.mode, best - path.elbo)
        if between > BARRIER and not visited:
            points = np.array([draw_by_importance(target, path.mode, rng) for _ in learnt.points])
            run = sent(model, path.mode.root, points, learnt, seed.spawn(1)[0])
            spent += gradients_of(run)
            if not comes_to(run, learnt.gaussian, seen):
                found.append(mode)
                known = (*known, Path(path.mode, path.elbo, True))
                continue
        if between > LOW:
            near.append(mode)
    if dense and not found:
        wider, draws = beyond(target, learnt, seen, rng)
        if wider is not None and not any(is_visited(mode.gaussian, draws) for mode in near):
            run = sent(model, wider.times * learnt.gaussian.root, draws, learnt, seed.spawn(1)[0])
            spent += gradients_of(run)
            (near if comes_to(run, learnt.gaussian, seen) else found).append(wider)
    found, near = (sorted(some, key=lambda mode: mode.behind) for some in (found, near))
    been = [path for path in used if all(path.mode is not mode.gaussian for mode in near)]
    first = max(been or [here], key=lambda path: path.elbo)
    return Sought(found, (Hidden(first.gaussian, best - first.elbo), *near) if near else (), target.count + spent)


def sent(model: Model, root: np.ndarray, points: np.ndarray, learnt: Metric, seed: np.random.SeedSequence) -> Run:
    """A window of chains that start at points (n, d), in the metric of a root, as long as a first one."""
    process = hamiltonian(model, from_root(lower(root) if root.ndim == 2 else root), learnt.far)
    return run_window(process, points, seed, max(FIRST_WINDOW, 10 * model.dim))


def no_wider(target: Evaluations, path: Path, metric: Gaussian, draws: np.ndarray) -> Path:
    """The path, with its Gaussian at the end no wider than the metric along any direction if its ELBO is larger so.

    Where a density is flat on top its second derivatives give widths far beyond that.
    """
    if metric.root.ndim == 1:
        root = np.minimum(path.mode.root, metric.root)
    else:
        with one_thread():
            axes, widths, _ = np.linalg.svd(np.linalg.solve(metric.root, path.mode.root))
        root = metric.root @ (axes * np.minimum(widths, 1.0))
    gaussian = Gaussian(path.mode.centre, root)
    value = elbo(target, gaussian, draws)
    return path._replace(gaussian=gaussian, mode=gaussian, elbo=value) if value > path.elbo else path


def beyond(
    target: Evaluations, learnt: Metric, seen: np.ndarray, rng: np.random.Generator
) -> tuple[Hidden | None, np.ndarray]:
    """What has more mass than a mode that is `TIE` behind, farther out than all of `seen` (n, d), and points in it.

    The balance heuristic weighs draws of all scales together; first one point of each scale tells whether that pays.
    """
    gaussian, d = learnt.gaussian, len(learnt.mean)
    places = learnt.visited[np.linspace(0, len(learnt.visited) - 1, DRAWS).astype(int)]
    core = gaussian.log_volume() + 0.5 * d - np.mean([target.potential(x) for x in places])
    radius = math.sqrt((gaussian.standardised(seen) ** 2).sum(axis=1).max())
    scales = radius / math.sqrt(d) * FACTOR ** np.arange(SCALES)

    def logs(z: np.ndarray) -> np.ndarray:
        """log p / q of points (n, d), q the mixture of all scales, less `core`; none of what is not beyond."""
        square = (z**2).sum(axis=1)
        q = np.logaddexp.reduce(-0.5 * square[:, None] / scales**2 - d * np.log(scales), axis=1) - math.log(SCALES)
        u = np.array([target.potential(gaussian.at(one)) for one in z])
        return np.where(square > radius**2, gaussian.log_volume() - u - q - core, -math.inf)

    z = rng.standard_normal((SCALES - 1, d))
    z *= (scales[1:] * math.sqrt(d) / np.sqrt((z**2).sum(axis=1)))[:, None]
    if not math.isfinite(core) or logs(z).max() - math.log(SCALES) < -2.0 * TIE:
        return None, seen[:0]
    z = (scales[:, None, None] * rng.standard_normal((SCALES, DRAWS, d))).reshape(-1, d)
    found = logs(z)
    mass = np.logaddexp.reduce(found) - math.log(len(z))
    if mass < -TIE:
        return None, seen[:0]
    weights = np.exp(found - np.logaddexp.reduce(found))
    times = math.sqrt(weights @ (z**2).sum(axis=1) / d)
    apart = [k for k in rng.choice(len(z), 2 * len(learnt.points), p=weights) if gap(target, gaussian, z[k]) > GAP]
    if len(set(apart)) < 2 or len(apart) < len(learnt.points):
        return None, seen[:0]
    points = np.array([gaussian.at(z[k]) for k in apart[: len(learnt.points)]])
    return Hidden(Gaussian(gaussian.at(weights @ z), times * gaussian.root), -float(mass), times), points


def gap(target: Evaluations, gaussian: Gaussian, z: np.ndarray) -> float:
    """By how much the density of the radius falls between a Gaussian's mass and the point z of it, on the ray to that.

    Tails that fall off like a power or an exponential have none; the mouth of a funnel may have one.
    """
    d = len(z)
    radii = np.geomspace(0.3 * math.sqrt(d / (z @ z)), 1.0, 2 * PLACES)
    logs = [d * math.log(r) - target.potential(gaussian.at(r * z)) for r in radii]
    return max(min(max(logs[:k]), max(logs[k + 1 :])) - logs[k] for k in range(1, len(logs) - 1))


def origins(
    target: Evaluations, centre: np.ndarray, metric: Gaussian, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Points (d,) where paths begin, two by two on either side of the centre, near it and far out in turn."""
    far = np.maximum(REACH * metric.widths(), BEYOND * np.abs(metric.centre - centre))
    for width in itertools.cycle((WIDTH, np.maximum(FAR_OUT, far))):
        x = dispersed(target, centre, rng, width)
        yield x
        other = 2.0 * centre - x
        yield other if target.potential(other) < math.inf else dispersed(target, centre, rng, width)


def dips(target: Evaluations, metric: Gaussian, most: float) -> list[np.ndarray]:
    """Points (d,) where U has fallen on the way out, the lowest first, by at most so many evaluations."""
    found: list[tuple[float, int, np.ndarray]] = []
    for v in along(metric)[: int(most / (2 * len(OUT)))]:
        for side in (1.0, -1.0):
            points = [metric.centre + side * t * v for t in OUT]
            potentials = np.array([target.potential(x) for x in points])
            k = 1 + int(np.argmin(potentials[1:]))
            if potentials[k] < potentials[:k].max() - DIP:
                found.append((float(potentials[k]), len(found), points[k]))
    return [x for _, _, x in sorted(found, key=lambda f: f[:2])[:DIPS]]


def along(metric: Gaussian) -> np.ndarray:
    """Coordinates and principal directions, (2d, d), each of a standard deviation on the line through the mean."""
    d = len(metric.centre)
    with one_thread():
        inverse = np.linalg.inv(metric.root)
        left, values, _ = np.linalg.svd(metric.root)
    rows = np.empty((2 * d, d))
    rows[0::2], rows[1::2] = np.diag(1.0 / np.sqrt((inverse**2).sum(axis=0))), (left * values).T
    return rows


def descend(target: Evaluations, x: np.ndarray, metric: Gaussian, known: tuple[Path, ...]) -> np.ndarray | None:
    """Where L-BFGS in a metric ends, (d,); None where it enters a known Gaussian, or comes to no end."""
    potential, last, pairs = target.potential(x), None, []
    for _ in range(LONGEST):
        if entered(known, x, potential) is not None or is_near(metric, x):
            return None
        gradient = target.gradient(x)
        if not np.all(np.isfinite(gradient)):
            return None
        pairs = remembered(pairs, last, x, gradient)
        last = x, gradient
        with np.errstate(over="ignore", invalid="ignore"):
            step = two_loops(pairs, gradient, metric.times_covariance)
            promised = float(gradient @ step)
        if not math.isfinite(promised):  # too steep for floats
            return None
        if promised < CONVERGED:
            return x
        moved = None if pairs else first_valley(target, x, potential, step, math.sqrt(promised))
        moved = moved or backtrack(target, x, potential, gradient, step)
        if moved is None:
            return None
        x, potential = moved
    return None


def first_valley(
    target: Evaluations, x: np.ndarray, potential: float, step: np.ndarray, length: float
) -> tuple[np.ndarray, float] | None:
    """(x, U) where U has fallen last on the way along -`step`, from a standard deviation on; None where it rises.

    The whole step, in a metric learnt elsewhere, leaps over a narrow mode.
    """
    t, found = 1.0 / max(length, 1.0), None
    while (value := target.potential(x - t * step)) < potential:
        found, potential = (x - t * step, value), value
        if t == 1.0:
            break
        t = min(4.0 * t, 1.0)
    return found


def is_visited(mode: Gaussian, seen: np.ndarray) -> bool:
    """Whether any of the points (n, d) is where the Gaussian has its mass."""
    return any(is_typical(z) for z in mode.standardised(seen))


def is_rare(path: Path, others: list[Path], visited: np.ndarray) -> bool:
    """Whether fewer of the points (n, d) are of its mode than of others, by `RARE` times what the ELBOs say."""
    logs = [path.elbo - path.mode.log_volume() - 0.5 * (path.mode.standardised(visited) ** 2).sum(axis=1)]
    for one in others:
        z = one.gaussian.standardised(visited)
        logs.append(one.elbo - one.gaussian.log_volume() - 0.5 * (z**2).sum(axis=1))
    elbos = np.array([path.elbo, *(one.elbo for one in others)])
    return np.mean(np.argmax(logs, axis=0) == 0) < RARE * math.exp(path.elbo - np.logaddexp.reduce(elbos))


def comes_to(run: Run, metric: Gaussian, seen: np.ndarray) -> bool:
    """Whether a chain comes as near to one of the points (n, d) as these are to each other, in nine of ten cases."""
    from scipy.spatial import cKDTree

    moved = [path for path, record in zip(run.trajectories, run.records, strict=True) if record.length > 0.0]
    if not moved:
        return False
    z = metric.standardised(seen)
    tree = cKDTree(z)
    among = np.quantile(tree.query(z, k=2)[0][:, 1], 0.9)
    x = [metric.standardised(path.discretise(VISITED)) for path in moved]
    return any(np.count_nonzero(tree.query(one)[0] <= among) >= NEAR for one in x)


def barrier(target: Evaluations, x: np.ndarray, y: np.ndarray) -> float:
    """By how much U on the straight line from x to y exceeds the larger of its values at both ends."""
    along = [target.potential(x + t * (y - x)) for t in np.linspace(0.0, 1.0, PLACES + 2)]
    return max(along) - max(along[0], along[-1])


def warning(found: list[Hidden], here: Gaussian, names: list[str]) -> str | None:
    """What to say of hidden modes, apart from where chains are, or None."""
    if not found:
        return None
    mode = found[0]
    offset = np.abs(mode.gaussian.centre - here.centre) / here.widths()
    places = np.sort(np.argsort(-offset)[:NAMED])
    where = ", ".join(f"{names[j]} = {mode.gaussian.centre[j]:.3g}" for j in places)
    share = math.exp(-np.clip(mode.behind, -20.0, 20.0))
    where += " …" if len(offset) > NAMED else ""
    lies = f"further paths end at {where}, apart from where the chains are,"
    if mode.is_image:
        lies = f"the image of the one where they are, by other signs or in another order, at {where},"
    if mode.times:
        lies = f"around the one where they are lies another, some {mode.times:.2g} times as wide,"
    return (
        f"a mode that no chain is in: {lies} with about {share:.2g} times their mass"
        + (f"; and {len(found) - 1} more" if len(found) > 1 else "")
        + ". Averages leave it out, and no longer run mends that. `pdmp.sample(model, tempered=True)` goes from mode "
        "to mode, and gives the share of each; or, where labels of a mixture can be exchanged, order what tells them "
        "apart (pdmp.models.transforms.Ordered), and where signs can be changed, as of loadings and factors, let one "
        "be positive (Log)."
    )


def told(hidden: int | None, near: int = 0) -> str:
    """What a note says of so many hidden modes, None if they were not sought, and of so many near ones."""
    if hidden is None:
        return "other modes of what is improper were not sought"
    if near > 0 and not hidden:
        which = "is another mode" if near == 1 else f"are {near} other modes"
        return f"there {which}, in which chains had hardly been"
    if not hidden:
        return "no other mode was found (paths miss a mode that is narrow or far)"
    return f"there {'is a mode' if hidden == 1 else f'are {hidden} modes'} that no chain is in"
