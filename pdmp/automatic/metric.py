r"""The metric: the Gaussian that fits the target best, learnt in windows of all chains.

A window is a piece of Hamiltonian Monte Carlo in the metric of the window before; the first metric is that of the
Gaussian that the starts are from. At equally spaced points of all chains the gradient is evaluated, and a Gaussian is
fitted to points and gradients together: of a near normal target it is accurate from far fewer points than their
covariance is. Windows are twice as long each time until it has settled. Then it is frozen, and the step with it: what
is sampled with them is the target's law, however good they are.

References
----------
Tran & Kleppe (2024), Tuning diagonal scale matrices for HMC, arXiv:2403.07495, and the sampler nutpie (Seyboldt) for
the Fisher divergence: variances, and covariances, as geometric means.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import NamedTuple

import numpy as np
import scipy.sparse

from pdmp.automatic.start import DENSE, Gaussian, Starts
from pdmp.automatic.tails import light_tailed
from pdmp.automatic.windows import LATER, WARMUP, ends, gradients_of, run_window
from pdmp.engine.result import Run
from pdmp.errors import SamplingError
from pdmp.metric import Diagonal, LowRank, Sparse, from_root, lower
from pdmp.models.base import Model
from pdmp.models.light_tails import LightTailed
from pdmp.models.noncentred import NonCentred, noncentred, scaled_rows
from pdmp.models.propriety import in_words, largest_first
from pdmp.models.transforms import coordinate_names
from pdmp.native.classes import Compiled
from pdmp.native.threads import one_thread
from pdmp.processes.hmc import HMC

#: Gradients of each chain in the first window, at least: ten for each dimension where a covariance is learnt, twice as
#: many as this where variances are.
FIRST_WINDOW = 120
WINDOWS = 5  #: largest number of windows
#: The covariance has settled when it changes by less, see `distance`; and far from normal, where curvature changes by
#: more from place to place, by less than the second: a window twice as long would then cost more than it saves.
TOLERANCE, FAR_TOLERANCE = 0.5, 0.7
#: Above `DENSE` dimensions variances of starts stay where those of the first window are no farther from them.
CLOSE = 0.1
OTHER = 3.0  #: up to here the step of the next window begins at that of this one, if paths are of the same kind
#: Points of each window, all chains together, at which gradients are evaluated; at least four a dimension, and up to
#: `DENSE` dimensions one for so many gradients of the window.
POINTS, EACH = 100, 32
#: A chain whose step adapts to less than this part of the median of all is where the density is narrow; in the first
#: windows it is moved, if it started there: the first metric may be the neck's own, and its step there a usual one.
NARROW, MOVES = 0.3, 2
FEW = 10  #: different ones among them that variances are learnt from, at least, above `DENSE` dimensions
RIDGE = 1e-3  #: variance that is added in all directions where few of many are looked for
CUTOFF = 2.0  #: factor between a variance along a direction and what the coordinates' variances say, to be looked at
RANK, LOOKED_AT = 50, 200  #: largest number of such directions, and of those that are looked at
#: Of a model with a sparse Hessian: points that its mean is taken over, entries of its Cholesky factor for a dimension
#: up to which it is the metric, and random directions in which its change is measured.
HESSIANS, ENTRIES, DIRECTIONS = 50, 100, 16
LARGEST_VALUE = 1e6  #: how far the covariance of the gradients may be from the inverse of that of the points
FAR = 0.3  #: residual gradient above which a target is far from normal
ESCAPED = 1e4  #: how many times further out than starts points are that a ridge without an end has taken there
#: Mean duration of the Hamiltonian paths, and the acceptance that their steps aim at. Near normal steps are around the
#: Gaussian that was learnt, and a quarter of its period, the longest path, is an independent draw of it. Far from
#: normal longer ones serve means and standard deviations, and smaller steps reach more of it.
DURATION, ACCEPTANCE = 0.25 * math.pi, 0.8
FAR_DURATION, FAR_ACCEPTANCE = 2.0, 0.9
#: There the metric is between spread and curvature: along a bend the largest standard deviation w in it is several, and
#: a run's paths, of which about w² are a walk from end to end, are this times w² long, where that is more; at most so.
BENT, LONGEST = 0.55, 4.0
#: Of a model whose terms show a scale: how often its coordinates are learnt after windows; by which factor the variance
#: of a scale that a Gaussian can follow must grow in them; over which difference a curvature is looked at.
FITS, GAIN, DIFFERENCE = 2, 2.0, 1e-3
Coordinates = NonCentred | LightTailed
FIRST_SCALE = 0.3  #: standard deviation of a scale, a logarithm, before a window has shown it
#: Share of the variance of log |∂ᵢU| that a neck explains, on average over other coordinates i, of so many.
EXPLAINED, OTHERS = 0.2, 200


class Metric(NamedTuple):
    """What the windows learnt."""

    gaussian: Gaussian  #: mean, and a root of the covariance
    residual: float  #: how far the target is from that Gaussian, see `residual_gradient`
    points: np.ndarray  #: (chains, d) where the chains are
    step: float | None  #: to which the chains of the last window have adapted, their geometric mean; None: not known
    far: bool  #: whether it was run as for a target that is far from normal
    #: Of that Gaussian; where only variances were learnt, with the few directions that they miss, or the mean Hessian
    #: of a model whose Hessian is sparse.
    mass: Compiled
    change: float  #: of the covariance in the last window, see `distance`
    windows: int
    gradients: int  #: of all windows, all chains
    visited: np.ndarray  #: (n, d) equally spaced points of the last window
    target_acceptance: float | None = None  #: in place of `ACCEPTANCE` or `FAR_ACCEPTANCE`, if given
    around: np.ndarray | None = None  #: (d,) mean of the Gaussian, of that mass, that steps are around; None: far
    #: In which mass, step and `around` are, where they are not the target's own.
    coordinates: Coordinates | None = None
    neck: int | None = None  #: a coordinate with which the widths of the others change, see `neck_of`
    widest: float = 1.0  #: largest standard deviation of the points, in the metric

    @property
    def settled(self) -> bool:
        """Whether the last two windows agree."""
        return self.change <= (FAR_TOLERANCE if self.far else TOLERANCE)

    @property
    def mean(self) -> np.ndarray:
        """m of N(m, L Lᵀ), (d,)."""
        return self.gaussian.centre

    @property
    def root(self) -> np.ndarray:
        """L, lower triangular (d, d); or (d,), its diagonal, where only variances were learnt."""
        return self.gaussian.root if self.gaussian.root.ndim == 1 else self.mass.root  # type: ignore[attr-defined]

    @property
    def covariance(self) -> np.ndarray:
        """L Lᵀ, (d, d); or its diagonal (d,)."""
        return self.root**2 if self.root.ndim == 1 else self.root @ self.root.T

    @property
    def variances(self) -> np.ndarray:
        """The diagonal of a diagonal covariance that is near L Lᵀ, (d,).

        The geometric means of the variances and of those with all other coordinates given: as `fitted_gaussian`.
        """
        if self.root.ndim == 1:
            return self.root**2
        inverse = np.linalg.solve(self.root, np.eye(len(self.root)))
        return np.sqrt((self.root**2).sum(axis=1) / (inverse**2).sum(axis=0))

    def diagonal(self) -> Metric:
        """The same with these variances alone, and without a step, which was for the covariance."""
        sd = np.sqrt(self.variances)
        return self._replace(
            gaussian=Gaussian(self.gaussian.centre, sd), mass=Diagonal(sd), step=None, around=None, coordinates=None
        )

    @property
    def duration(self) -> float:
        """Mean duration of Hamiltonian paths."""
        return max(FAR_DURATION, min(BENT * self.widest**2, LONGEST)) if self.far else DURATION

    @property
    def acceptance(self) -> float:
        """The acceptance that their steps aim at."""
        return acceptance(self.far, self.target_acceptance)


def acceptance(far: bool, given: float | None) -> float:
    """The acceptance that steps aim at: the one that is given, else by whether the target is far from normal."""
    return given if given is not None else FAR_ACCEPTANCE if far else ACCEPTANCE


def hamiltonian(
    model: Model,
    mass: Compiled,
    far: bool,
    step: float | None = None,
    target_acceptance: float | None = None,
    around: np.ndarray | None = None,
    coordinates: Coordinates | None = None,
) -> HMC:
    """Hamiltonian Monte Carlo with a metric of `pdmp.metric`, of the coordinates if there are any.

    A step that is given is kept; else it is adapted in the warm-up. `far`: the target is far from normal.
    """
    process = HMC(
        model,
        step="auto" if step is None else step,
        duration=FAR_DURATION if far else DURATION,
        metric=mass,
        target_acceptance=acceptance(far, target_acceptance),
        around=around,
    )
    process.coordinates = coordinates
    return process


def coordinates_from(model: Model, moved: Coordinates | None, x: np.ndarray) -> tuple[Coordinates | None, int]:
    """Coordinates in which paths cost less, learnt from points x (n, d), or None; and the gradients that this took.

    Where paths run in such coordinates already, `moved`, they stay, learnt anew.
    """
    parts, some = scaled_rows(model), some_of(x)
    if not parts:
        found, cost = light_tailed(model, x) if model.dim <= DENSE else (None, 0)
        return found or moved, cost
    # What rows with a scale say of it where all else is known: without a gain they say as much where it is not.
    known = np.zeros(model.dim)
    for part in parts:
        known[list(part.scales)] += 0.5 * len(part.rows) * np.square(part.powers)
    if moved is None and np.all(known * x.var(axis=0) <= GAIN):
        return None, 0
    found = noncentred(model, parts, some)  # type: ignore[arg-type]
    if found is None:
        return moved, 2 * len(some)
    if moved is not None:
        return found, 2 * len(some)
    return found if gains(model, found, x) else None, 5 * len(some)


def gains(model: Model, coordinates: NonCentred, x: np.ndarray) -> bool:
    """Whether paths in these coordinates cost less, from points x (n, d) about where the target's mass is.

    Of each scale t, v = (M⁻¹)ₜₜ with the mean Hessian M is the variance that a Gaussian can follow. It is at least
    1 / Mₜₜ, and at most Var t, the bound of Cramér and Rao, which it is where the target is normal. Paths take as many
    steps as the smallest v / Var t asks for.
    """
    mass = mean_hessian(model, x)
    if mass is None:
        return False
    scales = np.unique(coordinates.scales)
    units = np.zeros((len(scales), model.dim))
    units[np.arange(len(scales)), scales] = 1.0
    before = (mass.transposed(units) ** 2).sum(axis=1)
    rng, curvatures = np.random.default_rng(0), []
    for z in coordinates.standardised(some_of(x)):
        signs = rng.choice([-1.0, 1.0], len(scales))
        moved = z.copy(), z.copy()
        for point, side in zip(moved, (1.0, -1.0), strict=True):
            point[scales] += side * DIFFERENCE * signs
        slopes = [coordinates.gradient(point)[scales] for point in moved]
        curvatures.append(signs * (slopes[0] - slopes[1]) / (2.0 * DIFFERENCE))
    curvature, variances = np.mean(curvatures, axis=0), x[:, scales].var(axis=0)
    with np.errstate(all="ignore"):  # of starts that agree on a scale
        after = 1.0 / np.maximum(curvature, 1.0 / variances)
        return bool(np.min(after / variances) > GAIN * np.min(np.minimum(before / variances, 1.0)))


def some_of(x: np.ndarray) -> np.ndarray:
    """At most `HESSIANS` of the points x (n, d), equally spaced."""
    return x[np.unique(np.linspace(0, len(x) - 1, min(len(x), HESSIANS)).astype(int))]


@one_thread()
def fitted_gaussian(x: np.ndarray, gradients: np.ndarray, dense: bool = True) -> Gaussian:
    """The Gaussian whose gradient is nearest, over points x (n, d), to the target's, `gradients` (n, d).

    Σ = S # G⁻¹, the geometric mean of the covariance S of the points and the inverse of that of the gradients, and
    m = mean of x - Σ mean of ∇U. Among Gaussians this minimises the mean of |Lᵀ∇U(x) - L⁻¹(x - m)|², the Fisher
    divergence in their own metric. Of a normal target both are exact once the points span the space, wherever they are.
    """
    mean, slope = x.mean(axis=0), gradients.mean(axis=0)
    x, gradients = (x - mean) / math.sqrt(len(x)), (gradients - slope) / math.sqrt(len(x))
    if not dense:
        sd, steepness = np.sqrt((x**2).sum(axis=0)), np.sqrt((gradients**2).sum(axis=0))
        root = sd * _limited(sd * steepness) ** -0.5
        return Gaussian(mean - root**2 * slope, root)
    scale = np.sqrt((x**2).sum(axis=0))
    spread = scale[:, None] * np.linalg.qr(x / scale, mode="r").T  # S = spread spreadᵀ
    _, values, vectors = np.linalg.svd(gradients @ spread, full_matrices=False)
    root = lower(spread @ vectors.T * _limited(values) ** -0.5)
    return Gaussian(mean - root @ (root.T @ slope), root)


def low_rank(root: np.ndarray, x: np.ndarray, gradients: np.ndarray) -> LowRank | Diagonal:
    """A mass with the directions that variances miss, from points x (n, d) and the gradients there (n, d).

    In coordinates z with the standard deviations `root` (d,) a target that is normal with a variance of 1 has the
    gradient z. Within the span of few points and gradients, or of many within the `LOOKED_AT` directions in which
    gradients are farthest from z, Σ is the geometric mean of `fitted_gaussian`, of covariances to which `RIDGE` is
    added in all directions. The eigenvectors whose eigenvalues are above `CUTOFF`, or below 1 / `CUTOFF`, are kept, the
    farthest `RANK` of them.
    """
    n, d = x.shape
    x = (x - x.mean(axis=0)) / root / math.sqrt(n)
    gradients = (gradients - gradients.mean(axis=0)) * root / math.sqrt(n)
    basis = np.eye(d)
    if min(2 * n, LOOKED_AT) < d:
        spanned = np.concatenate([x, gradients])
        if 2 * n > LOOKED_AT:
            apart = gradients - x
            spanned = np.linalg.eigh(apart @ apart.T)[1][:, -LOOKED_AT:].T @ apart
        basis = np.linalg.qr(spanned.T)[0].T
        x, gradients = x @ basis.T, gradients @ basis.T
    spread, slopes = (part.T @ part + RIDGE * np.eye(len(basis)) for part in (x, gradients))
    half = np.linalg.cholesky(spread)
    values, vectors = np.linalg.eigh(half.T @ slopes @ half)
    values, vectors = np.linalg.eigh((half @ vectors) * _limited(values) ** -0.5 @ (half @ vectors).T)
    farthest = np.argsort(-np.abs(np.log(values)))[:RANK]
    kept = farthest[np.abs(np.log(values[farthest])) > math.log(CUTOFF)]
    if len(kept) == 0:
        return Diagonal(root)
    return LowRank(root, vectors[:, kept].T @ basis, np.sqrt(values[kept]) - 1.0)


def mean_hessian(model: Model, x: np.ndarray) -> Sparse | None:
    """The metric M = mean of H over points x (n, d), of a model whose Hessian is sparse; None if its factor is not.

    The mean of H over the target is that of ∇U∇Uᵀ, so it is positive definite. Over few points it may not be: then the
    least multiple of its diagonal, of 0.001, 0.002, 0.004, …, that makes it so is added.
    """
    some = some_of(x)
    total = functools.reduce(operator.add, (model.sparse_hessian(point) for point in some)) / len(some)  # type: ignore
    diagonal, ridge = scipy.sparse.diags_array(np.abs(total.diagonal()), format="csc"), 0.0
    while ridge < 2.0:
        found = Sparse.of(total + ridge * diagonal)
        if found is not None:
            return found if len(found.values) <= ENTRIES * model.dim else None
        ridge = 2.0 * ridge or RIDGE
    return None


def change_of(old: Compiled, new: Sparse) -> float:
    """√(mean over k of (λₖ - 1)²), λₖ the eigenvalues of M_old⁻¹ M_new, in random directions: `distance`, if small."""
    z = np.random.default_rng(0).choice([-1.0, 1.0], (DIRECTIONS, len(new.order)))
    there = old.transform(z)
    product = old.transposed(new.product(there))
    return float(np.sqrt(np.mean((product - z) ** 2)))


def combined(mass: LowRank | Diagonal, further: LowRank | Diagonal) -> LowRank | Diagonal:
    """A mass with the directions of `mass` and of `further`, which was found where `mass` is the identity."""
    if isinstance(further, Diagonal):
        return mass
    if isinstance(mass, Diagonal):
        return LowRank(mass.root, further.vectors, further.gains)
    basis = np.linalg.qr(np.concatenate([mass.vectors, further.vectors]).T)[0]
    root = np.eye(basis.shape[1])
    for part in (further, mass):
        vectors = part.vectors @ basis
        root = root + vectors.T @ (part.gains[:, None] * (vectors @ root))
    values, vectors = np.linalg.eigh(root @ root.T)
    kept = np.argsort(-np.abs(np.log(values)))[:RANK]
    return LowRank(mass.scale, vectors[:, kept].T @ basis.T, np.sqrt(values[kept]) - 1.0)


def _limited(values):
    """Singular values without extreme ones."""
    return np.clip(values, 1.0 / LARGEST_VALUE, LARGEST_VALUE)


def distance(old: np.ndarray, new: np.ndarray) -> float:
    """√(mean over k of log² λₖ), λₖ the eigenvalues of Σ_old⁻¹ Σ_new, of roots (d, d) or (d,) of both.

    It does not depend on the coordinates. Estimates from n and m independent normal draws are about
    √((d + 1) (1/n + 1/m)) apart.
    """
    if old.ndim == 1:
        logs = 2.0 * (np.log(new) - np.log(old))
    else:
        logs = 2.0 * np.log(np.linalg.svd(np.linalg.solve(old, new), compute_uv=False))
    return float(np.sqrt(np.mean(logs**2)))


def residual_gradient(gaussian: Gaussian, x: np.ndarray, gradients: np.ndarray) -> float:
    """√(mean of |Lᵀ∇U(x) - z|² / d) over points x = m + L z, (n, d): 0 of a normal target.

    It is about how many events the Boomerang has for one of a process that does not know the Gaussian.
    """
    root = gaussian.root
    pulled = gradients * root if root.ndim == 1 else gradients @ root
    return float(np.sqrt(np.mean((pulled - gaussian.standardised(x)) ** 2)))


def neck_of(x: np.ndarray, gradients: np.ndarray) -> int | None:
    """The coordinate with which widths of the others change most, from points x and gradients (n, d); None: none does.

    Where the width of the others is s, gradients are about 1 / s large: of each coordinate that is the share that it
    explains of the variance of log |∂ᵢU|, on average over i.
    """
    d = x.shape[1]
    some = np.unique(np.linspace(0, d - 1, min(d, OTHERS)).astype(int))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.abs(gradients[:, some]))
        parts = [(part - part.mean(axis=0)) / part.std(axis=0) for part in (logs, x)]
        shares = (parts[0].T @ parts[1] / len(x)) ** 2
    shares[np.arange(len(some)), some] = np.nan
    known = np.isfinite(shares)
    means = np.where(known, shares, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    neck = int(np.argmax(means))
    return neck if means[neck] > EXPLAINED else None


def spaced_points(
    model: Model, run: Run, moved: Coordinates | None = None, but: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Equally spaced points of all chains, (n, d), and the gradients there, in the coordinates if there are any.

    `but`: (chains,) those that are left out.
    """
    number = max(POINTS, 4 * min(model.dim, DENSE), gradients_of(run) // EACH if model.dim <= DENSE else 0)
    each, out = -(-number // run.chains), np.zeros(run.chains, bool) if but is None else but
    some = zip(run.trajectories, run.records, out, strict=True)
    x = np.concatenate([path.discretise(each) for path, record, left in some if record.length > 0.0 and not left])
    return with_gradients(model, x) if moved is None else with_gradients(moved, moved.standardised(x))


def step_of(run: Run) -> float:
    """The step to which chains have adapted, their geometric mean."""
    return math.exp(np.mean([math.log(record.statistics["mean_step"]) for record in run.records]))


def astray(run: Run, starts: Starts) -> np.ndarray:
    """Which chains of one of the first windows started where the density is narrow and has no mode, (chains,).

    That is in a neck or a tail: where a path went on and its Gaussian was best on the way, by an ELBO that is right for
    a normal density. The metric would be learnt there, and the chain may not come out in it. A narrow mode is a
    minimum, in which a path converges, and a chain that meets a narrow place in a later window tells of its mass: these
    stay.
    """
    steps = np.array([record.statistics["mean_step"] for record in run.records])
    return (steps < NARROW * np.median(steps)) & ~starts.converged


def beside(run: Run, points: np.ndarray, out: np.ndarray) -> np.ndarray:
    """The points (chains, d); of the chains `out` those halfway along the paths of others in turn."""
    moved = np.array([record.length > 0.0 for record in run.records])
    points, others = points.copy(), np.flatnonzero(~out & moved)
    for k, chain in enumerate(np.flatnonzero(out)):
        path = run.trajectories[others[k % len(others)]]
        points[chain] = path.at(0.5 * (path.times[0] + path.end))
    return points


def with_gradients(model: Model, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points x (n, d) and the gradients there; without those that are not finite."""
    gradients = np.array([model.gradient(point) for point in x])
    finite = np.isfinite(gradients).all(axis=1)
    return x[finite], gradients[finite]


def _failure(model, window, run, why):
    return SamplingError(
        f"the warm-up of {type(model).__name__} failed in window {window + 1}: {why}. For parameters with bounds use "
        "`transforms=`, or pdmp.Bounded; else give proper priors, `initial=`, or a process of your choice.",
        run=run,
    )


def escaped(model: Model, x: np.ndarray, starts: np.ndarray) -> str:
    """`along_ridge` of points (chains, d) that are further out than starts by far, or ""."""
    is_far = np.all(np.isfinite(x)) and np.ptp(x, axis=0).max() > ESCAPED * max(1.0, np.abs(starts).max())
    return along_ridge(model, x) if is_far else ""


def along_ridge(model: Model, x: np.ndarray) -> str:
    """What is said of points (n, d) that are further apart in one direction than floats tell of the others."""
    z = x / np.abs(x).max()
    v = np.linalg.svd(z - z.mean(axis=0))[2][0]
    where = in_words(v / v[largest_first(v)[0]], coordinate_names(model.variables, model.transforms))
    return f"its points go ever further along {where}: the density is improper along that combination"


def learn_metric(
    model: Model,
    starts: Starts,
    seed: np.random.SeedSequence,
    target_acceptance: float | None = None,
    reparametrise: bool = False,
) -> Metric:
    """Run the windows; `reparametrise`: in other coordinates where these have a scale and cost less.

    A `SamplingError` if all chains of a window fail, or do not move.
    """
    gaussian, points, change, residual = starts.gaussian, starts.points, math.inf, math.inf
    dense = model.dim <= DENSE
    root = lower(gaussian.root) if dense else gaussian.root
    length, spent = max(FIRST_WINDOW, 10 * model.dim) if dense else 2 * FIRST_WINDOW, 0
    far, mass, ones, around = False, from_root(root), np.ones(model.dim), gaussian.centre
    graph = None if dense or not model.has("sparse_hessian") else mean_hessian(model, points)
    if graph is not None:
        mass, length = graph, 2 * length
    step: float | None = None
    moved, known, fits = None, True, 0 if reparametrise else FITS  # `known`: steps are around the Gaussian
    before: Coordinates | None = None
    earlier: tuple[np.ndarray, np.ndarray] | None = None  # points and gradients of the window before
    if reparametrise and scaled_rows(model):  # of tails a few points say nothing
        moved, spent = coordinates_from(model, None, points)
    if isinstance(moved, NonCentred):
        z = moved.standardised(points)
        sd = np.where(np.isin(np.arange(model.dim), moved.scales), FIRST_SCALE, 1.0)
        graph, known, root = None, False, np.diag(sd) if dense else sd
        mass, around = from_root(root), z.mean(axis=0)
    for k, child in enumerate(seed.spawn(WINDOWS)):
        process = hamiltonian(
            model, mass, far, target_acceptance=target_acceptance, around=around if known else None, coordinates=moved
        )
        if step is not None:
            process.step = step  # and adapts from there
        run = run_window(process, points, child, length, WARMUP if step is None else LATER)
        was_far, was_known = far, known
        if all(record.stopped == "failed" or record.length <= 0.0 for record in run.records):
            why = escaped(model, ends(run, points), starts.points)
            raise _failure(model, k, run, why or "its gradient is not finite where the chains went")
        out = astray(run, starts) if k < MOVES else np.zeros(run.chains, bool)
        x, gradients = spaced_points(model, run, moved, out)
        spent += gradients_of(run) + len(x)
        points, turned, adapted = beside(run, ends(run, points), out), False, False
        visited = x if moved is None else moved.natural_points(x)
        # Where hardly anything was accepted the points say nothing of the target, and the step adapts.
        if len(np.unique(x, axis=0)) > (model.dim if dense else min(model.dim, FEW)):
            with np.errstate(over="ignore", invalid="ignore"):
                spread = x.std(axis=0)
            for j in np.flatnonzero(~((spread > 0.0) & (spread < np.inf)))[:1]:
                name = coordinate_names(model.variables, model.transforms)[j]
                why = "as of an improper posterior" + ", or one too narrow for floats" * bool(spread[j] == 0.0)
                raise _failure(model, k, run, f"{name} has a spread of {spread[j]:g}, {why}")
            with one_thread():
                if fits < FITS and k < WINDOWS - 1:
                    before, (moved, cost) = moved, coordinates_from(model, moved, visited)
                    spent += cost
                    turned, fits = moved is not before, fits + (moved is not None)
                if turned:
                    graph, x, gradients = None, *with_gradients(moved, moved.standardised(visited))
                    spent, earlier = spent + len(visited), None
                own = x, gradients
                if earlier is not None:
                    x, gradients = (np.concatenate(both) for both in zip(earlier, own, strict=True))
                earlier = own if dense and k > 0 else None  # the first window goes from the starts to the mass
                gaussian = fitted_gaussian(x, gradients, dense)
                change = math.inf if turned else distance(root, gaussian.root)
                # Variances of starts are cruder than those of the first window.
                coarse = change > (TOLERANCE if k else CLOSE)
                root = gaussian.root if dense or coarse else root
                try:
                    residual = residual_gradient(gaussian, x, gradients)
                except np.linalg.LinAlgError:
                    raise _failure(model, k, run, along_ridge(model, x)) from None
                far = dense and residual > FAR
                settled = change <= (FAR_TOLERANCE if far else TOLERANCE)
                found = None if graph is None else mean_hessian(model, x)
                if dense:
                    mass = from_root(root)
                elif found is not None:
                    change = change_of(mass, found)
                    settled, mass = change <= TOLERANCE, found
                    spent += min(len(x), HESSIANS)
                elif settled and not coarse:
                    further = low_rank(ones, mass.inverse(x), mass.transposed(gradients))
                    settled, mass = isinstance(further, Diagonal), combined(mass, further)
                else:
                    settled, mass = False, low_rank(root, x, gradients)
                around = x.mean(axis=0) - mass.transform(mass.transposed(gradients.mean(axis=0)))
                # Until a window has been in the coordinates, chains may be in the neck that they were learnt in.
                known = not far and not (turned and before is None)
            if settled and far == was_far:
                break
            adapted = change <= OTHER and (far, known) == (was_far, was_known)
        step = step_of(run) if adapted else None
        length *= 2
    step = step_of(run)
    around = around if was_known else None
    with one_thread():
        neck, z = neck_of(x, gradients), gaussian.standardised(x)
        widest = float(np.linalg.norm(z - z.mean(axis=0), 2)) / math.sqrt(len(z)) if was_far else 1.0
    if moved is not None:  # all but mass, step and `around` is of the target's own coordinates
        visited, gradients = with_gradients(model, visited)
        gaussian, spent = fitted_gaussian(visited, gradients, dense), spent + len(visited)
    return Metric(
        gaussian,
        residual,
        points,
        step,
        was_far,
        mass,
        change,
        k + 1,
        spent,
        visited,
        target_acceptance,
        around,
        moved,
        neck,
        widest,
    )
