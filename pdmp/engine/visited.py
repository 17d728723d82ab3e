"""After a run: the gradient of a user's model against its potential, jumps of that, and the law of a user's process.

The comparison before a run (`pdmp.engine.preflight.check_target`) is made near `initial`. What is wrong elsewhere only,
or little of what the gradient is out there, shows at positions of the run: steps are in units of its spread, and the
partial derivatives of the data and of the prior nearly cancel. A quarter of the positions is equally spaced, the others
are where coordinates were largest or smallest. At each the slope is compared along one direction of all coordinates.

A jump of the potential, as of a step in it, shows in no gradient. Lines between positions are bisected where U differs
between their ends by something else than their slopes say: that goes to 0 with the length, but for jumps.

Whether a process of the user's has the law of its target is told by means that partial integration gives (Stein's
identities): with a density exp(-U) on all of space E ∂U/∂xⱼ = 0, and E (xᵢ - m) ∂U/∂xⱼ = 1 if i = j, else 0. Those of
i = j tell as well whether the step of a fixed-step sampler of the package is several times too large.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math

import numpy as np

from pdmp.diagnostics.averages import draw_times, effective_draws, grid_size, variance
from pdmp.diagnostics.monte_carlo_error import standard_error
from pdmp.engine.preflight import is_users, users_parts
from pdmp.flow import Elliptic
from pdmp.models.adapters.function import FunctionModel
from pdmp.models.base import Model
from pdmp.models.numerical import prior_gradient
from pdmp.models.verification import evaluated, shown, wrong_slope
from pdmp.process import KINDS, Process

POSITIONS, EACH = 32, 5  #: that are compared, at most; and gradients and potentials at each
DRAWS, NUMBERS = 512, 2_000_000  #: positions of each chain among which extremes are looked for, and numbers in them
SHARE = 20  #: of the gradients of a run one in so many is spent on this, potentials counted alike
TERMS = 20_000  #: and terms of a model whose gradient is compiled
TERMS_OF_USERS = (
    100_000_000  #: the same where a process of the user's is looked at, which a share of few passes forbids
)
#: Lines on which jumps are looked for, and potentials on them, at most; how often a line is halved; the least jump, and
#: digits that rounding leaves of one.
LINES, BISECTIONS, HALVINGS, JUMP, DIGITS = 16, 200, 30, 0.1, 1e4
#: Draws of each chain, at most and at least, of which means are compared with those of the law, and at least of a
#: fixed-step sampler of the package. A prime number does not keep step with a path that goes to and fro.
MEANS, FEWEST, FEW = 397, 64, 32
MANY = 3_989  #: at most, likewise, of a process of the user's without a step, which has no bias that is expected
#: Effective draws of a coordinate from which on it is judged, as a path that is too short has another law; and of a
#: process of the package, of which that is said.
SETTLED, SHOWN = 100.0, 20.0
PAIRS = 12  #: dimensions up to which those of (xᵢ - m) ∂U/∂xⱼ are compared for all pairs of coordinates
#: By how much, of a process with and without a step, and by how many Monte Carlo errors such a mean must be off to be
#: mentioned.
WRONG, WRONG_EXACT, ERRORS = 0.35, 0.1, 5.0
MOVING = 0.5  #: share of the draws in which all coordinates must move, of those some of which may rest
COORDINATES = 32  #: whose effective draws are counted for that, at most, those that are off most
FACTOR = 2.0  #: by which the variance of a fixed-step sampler of the package must be off, as it has a bias at any step


def gradient_warning(run):
    """A sentence if the gradient of a user's model is wrong at a position of the run; deterministic."""
    model = run.process.model
    if not is_users(model) or model.dim != run.dim or not any(r.length > 0.0 for r in run.records):
        return []
    most = _affordable(run)
    own = isinstance(model, FunctionModel)
    changed = model.changed() if own and most > 0 else None
    if changed is not None:
        return [changed]
    find, rng = model.wrong_slope if own else functools.partial(wrong_slope, model), np.random.default_rng(0)
    for x, scale, chain, event in positions(run, max(0, min(POSITIONS, (most - own) // EACH))):
        found = find(x, rng, 1, scale=scale)
        if found is not None:
            j, slope, quotient = found
            where = f" of chain {chain}" if run.chains > 1 else ""
            return [
                f"the gradient of {type(model).__name__} is not that of its potential where the run went, so without a "
                f"Metropolis test its draws have another law: {run.names()[j]} of it, after event {event:,}{where}, at "
                f"x = {shown(x)}, is {slope:.6g}, a difference quotient of the potential {quotient:.6g}."
            ]
    return []


def jump_warning(run):
    """A sentence if the potential of a user's model jumps where a run went that follows its gradient alone."""
    model = run.process.model
    if not is_users(model) or model.dim != run.dim or "mean_acceptance" in run.stats:  # of a Metropolis test
        return []
    if not any(r.length > 0.0 for r in run.records):
        return []
    most = min(BISECTIONS, _affordable(run) // 2)
    places = [x for x, *_ in positions(run, LINES + 1)] if most > HALVINGS else []
    own = isinstance(model, FunctionModel)
    found = jump_between(model._evaluated if own else functools.partial(evaluated, model), places, most, model)
    if found is None:
        return []
    x, size = found
    return [
        f"the potential of {type(model).__name__} jumps by {size:.3g} at x = {shown(x)}, which its gradient does not "
        f"say: {type(run.process).__name__} follows the gradient alone and passes there as if it did not jump, so its "
        "draws have another law. With a Metropolis test, as of pdmp.sample(model), they have the right one."
    ]


def jump_between(values, places, most, model):
    """Where U jumps on lines between neighbours among places, as (x, by how much); None if it is not seen to.

    `values(x)` is (U, ∇U), which is asked for at most `most` times.
    """
    ends = [(x, *values(x)) for x in places[:most]]
    lines, number, left = [], itertools.count(), most - len(ends)

    def add(a, b, halved):  # smooth lines come last: their excess falls by 8 with each halving
        rise, slopes = b[1] - a[1], (a[2] @ (b[0] - a[0]), b[2] @ (b[0] - a[0]))
        excess = abs(rise - 0.5 * sum(slopes))
        if excess > max(JUMP, DIGITS * model.resolution * max(abs(a[1]), abs(b[1]))):
            heapq.heappush(lines, (-excess * 4.0**halved, next(number), a, b, halved, rise, max(map(abs, slopes))))

    with np.errstate(all="ignore"):
        for a, b in itertools.pairwise(ends):
            add(a, b, 0)
        while lines and left > 0:
            _, _, a, b, halved, rise, slope = heapq.heappop(lines)
            if not math.isfinite(rise):
                continue  # a wall
            if halved == HALVINGS:
                if slope < 0.01 * abs(rise):  # and no pole
                    return b[0], abs(rise)
                continue
            x = 0.5 * (a[0] + b[0])
            middle, left = (x, *values(x)), left - 1
            add(a, middle, halved + 1)
            add(middle, b, halved + 1)
    return None


def _affordable(run):
    """How many gradients and potentials may be evaluated after a run."""
    model = run.process.model
    return int(run.stats["data_passes"]) // SHARE + (TERMS // max(model.n_data, 1) if model.divisible else 0)


def law_warning(run):
    """A sentence if the draws of a user's process, gradient estimator or bound have not the law of the target.

    Nor those of a path around the centre of a reference, which hardly leaves it if that is given and far too narrow.
    Within walls it is judged if the path met none, and with coordinates that rest at 0 where all of them move.
    """
    process = run.process
    ours = not users_parts(process)
    if ours and (process.rests or not isinstance(process.flow, Elliptic)) or _met_walls(run):
        return []
    stepless = not ours and not process.ticks
    found = _gradients(run, FEWEST, most=MANY if stepless else MEANS)
    if found is None:
        return []
    (x, gradients), d = found, run.dim
    n, moving = x.shape[1], np.all(x != 0.0, axis=2) if process.rests else np.ones(x.shape[:2], bool)
    if moving.mean() < MOVING:
        return []
    low, high = np.quantile(x[moving], (0.25, 0.75), axis=0)
    if not np.all(high > low) or not np.all(np.isfinite(gradients)):
        return []
    draws = np.min([*effective_draws(run).values()], axis=0)
    pairs = [(i, j) for i in range(d) for j in range(d) if i == j or d <= PAIRS]
    first, second = np.array(pairs).T
    away, slopes = (x - x[moving].mean(axis=0)) / (high - low), gradients * (high - low) / 1.35
    values = np.concatenate([slopes, 1.35 * away[..., first] * slopes[..., second]], axis=2)
    right = np.concatenate([np.zeros(d), (first == second).astype(float)])
    # A mean where all move is that of all draws, with weight 0 where one rests.
    values = right + (values - right) * (moving / moving.mean())[..., None]
    draws = np.minimum(np.concatenate([draws, np.minimum(draws[first], draws[second])]), len(x) * n) * moving.mean()
    with np.errstate(all="ignore"):
        means, errors = values.mean(axis=(0, 1)), standard_error(list(values), [1.0] * len(x), [float(n)] * len(x))
        errors = np.maximum(errors, values.std(axis=(0, 1)) / np.sqrt(draws))
        judged = (draws > (SHOWN if ours else SETTLED)) & (np.abs(means - right) > (WRONG_EXACT if stepless else WRONG))
        # Errors of what is too small are too small as well: of its logarithm they are not.
        small = (right == 1.0) & (means > 0.0) & (means < 1.0)
        off = np.where(small, -np.log(means) * means, np.abs(means - right)) / errors
        off = np.where(judged, off, 0.0)
    k = int(np.argmax(np.nan_to_num(off, posinf=0.0)))
    if not off[k] > ERRORS:
        return []
    names = run.names()
    i, j = (k, k) if k < d else pairs[k - d]
    what = f"∂U/∂x times the spread of {names[k]}" if k < d else f"(x - mean) ∂U/∂x of {names[i]}"
    what += "" if i == j else f" and {names[j]}, in units of their spreads,"
    cause = "Its update may lack a factor, or its step be too large"
    if ours:
        cause = "Its reference may be far narrower than the target, or wider, and need long: give another metric"
    elif not process.ticks:
        cause = (
            "Its rate or its jump may lack a factor (`pdmp.validation.check_clocks(process)` compares clocks and rates)"
        )
    return [_another_law(run, what, means[k], errors[k], right[k], cause)]


def _met_walls(run):
    """Whether a path has met a wall, or nothing counts that."""
    kinds = [KINDS + k for k, name in enumerate(run.process.events) if name == "wall"]
    return run.process.walled and (not kinds or any(record.counts[kinds].any() for record in run.records))


def _another_law(run, what, mean, error, right, cause):
    users = (part for part in users_parts(run.process) if isinstance(part, Process))
    name = type(next(users, run.process)).__name__
    return (
        f"the draws of {name} have not the law of {type(run.process.model).__name__}: the mean "
        f"of {what} is {mean:.2g}, with an error of {error:.1g}, and {right:g} for a density without walls. {cause}, "
        "or the warm-up is too short."
    )


def large_step_warning(run):
    """A sentence if the variance of a fixed-step sampler of the package is off by more than a usual step explains."""
    process = run.process
    if users_parts(process) or not process.ticks or process.smaller_step(FACTOR) is None:
        return []
    found = _gradients(run, FEW, of_batches=True)
    if found is None:
        return []
    x, gradients = found
    with np.errstate(all="ignore"):
        products = (x - x.mean(axis=(0, 1))) * gradients
        means = products.mean(axis=(0, 1))
        size = np.nan_to_num(np.abs(np.log(means)), posinf=0.0)  # of what never moved nothing is said here
    worst = np.argsort(-size)[:COORDINATES]
    for k in worst[size[worst] > math.log(FACTOR)].tolist():
        draws = {name: float(each[0]) for name, each in effective_draws(run, slice(k, k + 1)).items()}
        if not draws["mean"] > SETTLED:  # those of the sd are few where a path swings further and further
            continue
        value, each = products[..., k], float(x.shape[1])
        error = float(standard_error(list(value[..., None]), [1.0] * len(x), [each] * len(x))[0])
        error = max(error, float(value.std()) / math.sqrt(min(draws["mean"], draws["sd"], value.size)))
        if size[k] * means[k] > ERRORS * error:
            what, cause = f"(x - mean) ∂U/∂x of {run.names()[k]}", process.smaller_step(float(means[k]))
            return [_another_law(run, what, means[k], error, 1, cause)]
    return []


def _gradients(run, fewest, of_batches=False, most=MEANS):
    """Draws, (chains, n, d), and ∇U there, of a chain `most` at most, fewer if these are very many numbers.

    None of a run without draws of its model, if fewer than `fewest` of a chain can be afforded, or if the model fails.

    With `of_batches` ∇U may be unbiased estimates of it, from as many data as a step of the run takes: means of
    products with what does not depend on the batch are the same.
    """
    process, model, d = run.process, run.process.model, run.dim
    if not isinstance(model, Model) or model.dim != d or len(run.copies) > 1 or run.store == "moments":
        return None
    if any(r.length <= 0.0 for r in run.records):
        return None
    room = min(max(MEANS, min(most, NUMBERS // (run.chains * max(d, 1)))), int(run.events.min()))
    room = min(room, grid_size(run) or room)
    if of_batches:  # of networks, too
        room = min(room, NUMBERS // (run.chains * d))
    n, rows = min(room, _affordable(run) // run.chains), None
    if n < fewest <= room and not of_batches and users_parts(process) and model.divisible:
        n = fewest if fewest * run.chains * model.n_data <= TERMS_OF_USERS else n
    if n < fewest and of_batches and model.divisible and not process.provider.exact:
        size = process.provider.terms_per_call
        n = min(room, int(run.stats["data_passes"] * model.n_data) // (SHARE * size * run.chains))
        rows = np.random.default_rng(0).integers(model.n_data, size=(run.chains * n, size))
    if n < fewest:
        return None
    x = run.draws(n)
    points = x.reshape(-1, d)
    try:
        if rows is None:
            found = [model.gradient(row) for row in points]
        else:
            scale = model.n_data / rows.shape[1]
            found = [
                prior_gradient(model, row) + scale * model.term_gradients(row, batch).sum(axis=0)
                for row, batch in zip(points, rows, strict=True)
            ]
    except Exception:  # noqa: BLE001 - of a function of the user's, at a point between those where it was asked
        return None
    return x, np.array(found).reshape(x.shape)


def positions(run, n):
    """At most n positions of a run, as (x, spreads of the coordinates, chain, events before it)."""
    chains, d = run.chains, run.dim
    room = min(DRAWS, NUMBERS // (chains * d), int(run.events.min()), grid_size(run) or DRAWS)
    if run.store == "moments" or room < 1 or any(r.length <= 0.0 for r in run.records):
        with np.errstate(invalid="ignore"):
            scale = np.sqrt(variance(run))
        ends = [chain.position(record.end)[:d] for chain, record in zip(run._chains, run.records, strict=True)]
        return [(x, _positive(scale, x), i, int(run.events[i])) for i, x in enumerate(ends[:n])]
    draws, times = run.draws(room).reshape(-1, d), draw_times(run, room).ravel()
    low, middle, high = np.quantile(draws, (0.25, 0.5, 0.75), axis=0)
    with np.errstate(all="ignore"):
        far = np.nan_to_num((draws - middle) / (high - low), posinf=0.0, neginf=0.0)
    widest = np.argsort(-np.ptp(far, axis=0), kind="stable")[: 3 * n // 8]
    places = [k for j in widest for k in (int(np.argmax(far[:, j])), int(np.argmin(far[:, j])))]
    places += np.linspace(len(draws) - 1, 0, n - len(places)).astype(int).tolist()
    found = []
    for k in dict.fromkeys(places):
        i, time = k // room, times[k]
        event = int(time / run.end[i] * run.events[i])  # of a grid about
        if run.store == "skeleton":
            event = int(np.searchsorted(run.trajectories[i].times[1:], time, side="right"))
        found.append((draws[k], _positive((high - low) / 1.35, draws[k]), i, event))
    return found


def _positive(scale, x):
    """`scale` where it is one, else the size of the coordinate."""
    return np.where(scale > 0.0, scale, np.maximum(1.0, np.abs(x)))
