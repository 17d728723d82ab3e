"""Whether a posterior of many rows is sampled at one row a proposal, exactly, and by which process.

Each candidate says whether it applies and what a unit of time costs, in rows looked at; of those that apply the least
is taken. `pdmp.sample` asks so for sums of terms, and `pdmp.regression` for regressions.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pdmp.automatic.sparse_anchor import sparse_anchor
from pdmp.metric import Metric
from pdmp.models.base import Model
from pdmp.models.regressions.blocks import is_crossed
from pdmp.models.regressions.group_intercepts import GroupIntercepts
from pdmp.models.regressions.laplace import Laplace, laplace
from pdmp.models.regressions.likelihoods import FAMILIES
from pdmp.models.regressions.mixed import MixedRegression
from pdmp.processes import ZigZag
from pdmp.processes.regression_boomerang import RegressionBoomerang
from pdmp.processes.regression_bps import RegressionBPS
from pdmp.processes.regression_zigzag import RegressionZigZag
from pdmp.processes.sticky import Sticky, thawing_rates
from pdmp.processes.sticky_groups import StickyGroups

FEWEST_ROWS = 1_000  #: of a sum of terms: below, all rows are looked at in a few microseconds
LARGEST_DIM = 1_000  #: a bounce multiplies a vector with the matrix of the reference
#: Rows of a unit of time, over all rows, up to which sub-sampling a sum of terms takes less: a row drawn at random
#: costs about five times as much as one of a pass, and HMC takes about five passes where the process takes two units.
SHARE = 0.3
#: Bounds must be finite so much farther from the mode than a usual distance there, in posterior standard deviations.
ROOM = 6.0
#: Condition number of the posterior's correlations up to which an effective draw of the Zig-Zag process is a unit of
#: time; beyond it is more in proportion. The Boomerang, whose reference has them, refreshes so often that means and
#: standard deviations are known about equally well.
CORRELATED, REFRESH_RATE = 10.0, math.sqrt(2.0)
#: Share of the posterior variance in the prior's up to which effects of groups are sub-sampled, the median: where rows
#: are many and say little, the standard deviation of effects waits for all of them to move. A gradient waits for all
#: rows: beyond that share they are sub-sampled too where a group has so many rows, on average, for each unit of that
#: time.
UNKNOWN_SHARE, WAITING_ROWS = 0.8, 4.0
NO_MODE = "the mode was not found, give proper priors"
SUBSAMPLED_GROUPS = (
    "effects of one grouping, (1 | g) where half of the groups have at least 10 rows, or (1 + x || g) with x among the "
    "fixed columns where they have at least 50"
)
CROSSED_GROUPS = (
    ", or, in memory and without `select`, intercepts of crossed groupings, (1 | g) + (1 | h), where half of the "
    "groups of each have at least 10 rows"
)
#: Crossed intercepts are sub-sampled where rows looked at in a unit of time are at most this share of all rows.
CROSSED_SHARE = 0.1
#: Effects of one grouping, of families whose bounds may grow fast with the distance, where they are at most this share.
GROUPED_SHARE = 0.06
SUBSAMPLED_ROWS = 50_000  #: from so many rows on rows of a regression are sub-sampled, where that is exact
#: Passes over the rows in a unit of time, from which on selection takes all rows for each gradient instead: below
#: `SUBSAMPLED_ROWS` rows, and from there on, where a unit of time of that process is itself hundreds of passes.
FEW_ROWS_PASSES, MANY_ROWS_PASSES = 1.0, 100.0
#: Each coefficient that may be 0 is proposed to enter or leave once in a unit of time; where that looks at all rows, in
#: that of `JUMP_ROWS` rows; and in that of `SPARE_ROWS` a dimension where coefficients cross 0 so often that times the
#: rows it is above `FEW_CROSSINGS` a dimension: a unit of time costs about as much as a pass over 100 rows a dimension.
FEW_CROSSINGS, SPARE_ROWS = 50.0, 3.0
JUMP_ROWS = 100_000
MANY_COLUMNS = 50  #: of so many coefficients that may be 0 bounds on single rows count those that are not
EXACT = "exact: one row a proposal, drawn in proportion to its bound, beyond the expansion at the mode"
STARTING = 20  #: of the coefficients that are 0 in the anchor, how many are not where a chain starts, about


class Subsampled(NamedTuple):
    """What was decided."""

    process: Any  #: None where all rows are looked at for each gradient
    starts: Any  #: of n chains, ``starts(n, rng)``
    said: str  #: of the process, or why there is none


def known_until(reach: float) -> str:
    """Why rows are not sub-sampled where bounds end too early."""
    return (
        f"bounds on single rows are finite up to {reach:.3g} standard deviations from the mode only, and paths go "
        "farther"
    )


class Candidate(NamedTuple):
    """A process that could sample a posterior, and what it costs."""

    #: The process, the same each time; None: the model's whole gradients. A `ValueError` says why it does not apply.
    make: Callable[[], Any]
    #: Looked at for an effective draw, or what says it of the process; infinite where it is for who asks for it.
    rows: float | Callable[[Any], float]
    said: str  #: in notes, with {} for the bound; without a process why rows are not sub-sampled
    starts: Callable[[int, np.random.Generator], np.ndarray] | None

    def cost(self) -> float:
        """The rows, about: in a unit of time a coefficient moves by its standard deviation."""
        return self.rows(self.make()) if callable(self.rows) else self.rows


def subsampled(
    model: Model, selects: bool = False, sampler: str = "auto", mode: np.ndarray | None = None
) -> Subsampled:
    """The candidate that costs least of those that apply, or the one of the name `sampler`.

    `selects`: whether coefficients of a regression may be 0; `mode`: where a sum of terms is expanded, by default where
    the search for a mode ends.
    """
    costs, why = {}, ""
    try:
        offers = candidates(model, selects, sampler == "auto", mode)
    except ValueError as error:
        return Subsampled(None, None, str(error).rstrip("."))
    for name, one in offers.items():
        if sampler in ("auto", name):
            try:
                costs[name] = one.cost()
            except ValueError as error:
                why = str(error).rstrip(".")
    if not costs:
        return Subsampled(None, None, why)
    chosen = offers[min(costs, key=costs.__getitem__)]
    process = chosen.make()
    if process is None:
        return Subsampled(None, None, why or chosen.said)
    said = chosen.said.format(process.describe_bound())
    if sampler == "auto" and callable(chosen.rows):
        rows = f"about {chosen.cost():.2g} of {model.n_data:,}"
        said += f"; of the processes that apply it looks at the fewest rows for an effective draw, {rows}"
    return Subsampled(process, chosen.starts, said)


def candidates(
    model: Any, selects: bool = False, free: bool = True, mode: np.ndarray | None = None
) -> dict[str, Candidate]:
    """The processes for a model, by what `sampler` calls them; the least cost is taken if the choice is `free`.

    They are for rows that are expanded. A `ValueError` says why none applies.
    """
    if not model.has("remainder_along"):
        return {}
    return of_sum(model, mode) if model.has("data_sums") else of_regression(model, selects, free)


def of_sum(model: Any, mode: np.ndarray | None) -> dict[str, Candidate]:
    """Those for a sum of terms, at a mode."""
    n, summed = model.n_data, model.rows_summed
    if n < FEWEST_ROWS:
        raise ValueError(f"there are {n:,} rows, which are few")
    if summed < FEWEST_ROWS:
        raise ValueError(f"{summed:,} rows have the same sum as all {n:,}")
    if model.dim > LARGEST_DIM:
        raise ValueError(f"{model.dim:,} dimensions are many for an expansion")
    mode = model.mode() if mode is None else mode
    if mode is None:
        raise ValueError(NO_MODE)
    process = RegressionBoomerang(model, mode, REFRESH_RATE)
    reach, rows = float(process.growth.radii[-1]), process.expected_data
    if reach < math.sqrt(model.dim) + ROOM:
        raise ValueError(known_until(reach))
    dear = f"in a unit of time single rows would be looked at {rows / n:.2g} times as often as there are rows"
    if summed < n:
        dear = f"in a unit of time {rows:,.0f} single rows would be looked at, and {summed:,} have the same sum as all"
    said = (
        f"the Boomerang sampler, exact at one row a proposal: about {rows:.2g} of {n:,} rows are looked at in a unit "
        "of time, by bounds derived from the expression beyond its expansion at the mode"
    )

    def starts(chains, rng):
        return mode + rng.standard_normal((chains, model.dim)) @ process.reference.root.T

    return {
        "all rows": Candidate(lambda: None, SHARE * summed, f"{dear}, above {SHARE}", starts),
        "boomerang": Candidate(lambda: process, rows, said, starts),
    }


def of_regression(model: Any, selects: bool, free: bool) -> dict[str, Candidate]:
    """Those for a regression."""
    if not model.has_linear_rows:
        raise ValueError(f"that is for {SUBSAMPLED_GROUPS}{CROSSED_GROUPS}")
    found = laplace(model)
    if found is None:
        raise ValueError(NO_MODE)
    if free and not selects and model.coded is None and (said := little_known(model, found)):
        raise ValueError(said)
    offers, n, scales = {}, float(model.n_data), Metric(scales=found.sd)
    zigzag = functools.partial(RegressionZigZag, model, found.mean, metric=scales)

    def offer(name, make, rows, said, starts=found.draws):
        offers[name] = Candidate(functools.cache(make), rows, said, starts)

    if not selects:
        few, times = "they say too little for the bounds on single rows", 1.0
        grows = model.n_groups > 0 and model.likelihood not in FAMILIES.values()
        if is_crossed(model):
            few, n = "there are too few for the number of groups", CROSSED_SHARE * n
        elif grows:
            few, n = "they say too little for the number of groups", GROUPED_SHARE * n
        # Correlated coefficients, of which the Boomerang's reference knows, take the Zig-Zag process longer.
        if free and not model.n_groups:
            times = max(condition(found.covariance) / CORRELATED, 1.0)
        offer("all rows", lambda: None, n, few)

        def looked_at(process):
            far = float(process.growth.radii[-1])
            if free and model.n_groups and far < process.typical_distance + ROOM:
                raise ValueError(known_until(far))
            return times * (process.expected_data_far_out() if grows else process.expected_data)

        offer("zigzag", zigzag, looked_at, f"the Zig-Zag process, {EXACT}")
        turning = functools.partial(RegressionBoomerang, model, found.mean, REFRESH_RATE)
        said = "the Boomerang sampler" + ", as coefficients are correlated" * free
        rows = (lambda process: process.expected_data) if times > 1.0 else math.inf
        offer("boomerang", turning, rows, f"{said}, {EXACT}")
        offer("bps", lambda: RegressionBPS(model, found.mean), math.inf, f"the Bouncy Particle Sampler, {EXACT}")
        return offers
    dear = n * (FEW_ROWS_PASSES if n < SUBSAMPLED_ROWS else MANY_ROWS_PASSES)
    if not model.n_groups:
        anchor, starts, many, said = sparse(model, found)
        jumps = functools.partial(with_jumps, model=model, sd=np.sqrt(np.diag(found.covariance)))
        moving = int(np.sum(anchor != 0.0))  # the other coefficients are 0 most of the time
        bps = functools.partial(RegressionBPS, model, anchor, few_move=many)
        expected, said = (
            lambda process: process.inner.expected_data_of(moving),
            f"with reversible jumps, {EXACT} {said}",
        )
        offer("bps", lambda: jumps(bps()), expected, f"the sticky Bouncy Particle Sampler {said}", starts)
        turning = functools.partial(RegressionBoomerang, model, anchor, metric="diagonal")
        offer("boomerang", lambda: jumps(turning()), math.inf, f"the sticky Boomerang sampler {said}", starts)
    alone, said = not (model.together or model.n_groups), "the sticky Zig-Zag process"
    jumping = functools.partial(with_jumps, model=model, sd=found.sd)
    offer("zigzag", lambda: jumping(zigzag()), math.inf if alone else dear, f"{said} with reversible jumps, {EXACT}")
    said += ", with gradients from all rows, as they say too little for bounds on single rows; bounds by {}"
    whole = functools.partial(ZigZag, model, metric=scales)
    offer("all rows", lambda: Sticky(whole(), model.model_prior), dear if alone else math.inf, said)
    return offers


def condition(covariance: np.ndarray) -> float:
    """Condition number of the correlation matrix."""
    scale = 1.0 / np.sqrt(np.diag(covariance))
    values = np.linalg.eigvalsh(covariance * np.outer(scale, scale))
    return float(values[-1] / max(values[0], 1e-300))


def sparse(model: MixedRegression, found: Laplace) -> tuple[np.ndarray, Any, bool, str]:
    """An anchor of which most coefficients are 0; starts near it; whether most stay 0; and what is said of it."""
    kappa = thawing_rates(model, model.dim, model.model_prior, None, None, "regression")
    anchor = sparse_anchor(found.mean, found.covariance, kappa, model.model_prior)
    others, free = (kappa > 0.0) & (anchor == 0.0), int(np.sum(kappa > 0.0))
    share = min(0.5, STARTING / max(int(np.sum(others)), 1))

    def starts(n, rng):
        """Some of the coefficients that are 0 in the anchor are not: they leave soon, and enter late."""
        x = found.draws(n, rng)
        out = others & (rng.random(x.shape) >= share)
        for places in model.together.values():
            out[:, places] = out[:, places].all(axis=1, keepdims=True)
        x[out] = 0.0
        return x

    said = f"with {free - int(np.sum(others)):,} of {free:,} coefficients not 0"
    return anchor, starts, free >= MANY_COLUMNS, said


def with_jumps(process: Any, model: MixedRegression, sd: np.ndarray) -> StickyGroups:
    """A sticky process whose coefficients enter and leave by jumps besides: all those that may be 0, or terms of them.

    Where a coefficient that is in hardly reaches 0, one that sticks alone may stay in for good. One of which data leave
    open whether it is 0 reaches it in a unit of time about κ sd times, `sd` being the posterior's: where that is often,
    passes over all rows would cost more than they are worth, and jumps are few.
    """
    whole = [list(places) for places in model.together.values()]
    free = np.flatnonzero(model.inclusion < 1.0)
    single = [[j] for j in np.setdiff1d(free, np.concatenate([*whole, np.zeros(0, np.int64)])).tolist()]
    rate = 1.0
    if not model.likelihood.is_quadratic:  # else proposals cost no data
        n, law = model.n_data, model.model_prior
        count = np.sum(process.anchor[free] != 0.0)
        odds = (law.a + count) / (law.b + max(len(free) - 1 - count, 0)) if law else 1.0
        kappa = thawing_rates(model, model.dim, law, None, None, "regression")
        crossing = 0.0 if whole else float(np.median((kappa * sd)[free])) * odds
        rate = min(1.0, (JUMP_ROWS if crossing * n <= FEW_CROSSINGS * model.dim else SPARE_ROWS * model.dim) / n)
    return StickyGroups(process, [*whole, *single], model.model_prior, rate=rate)


def little_known(model: GroupIntercepts, found: Laplace) -> str:
    """What is said where the data know so little of the effects of a group column that rows are not sub-sampled."""
    for k, g in enumerate(model.groups):
        variances = found.sd[model.first[k] : model.first[k + 1]] ** 2
        share = float(np.median(variances)) * model.effect_precision(found.mean, k)
        # The variance of log τ in that which it has while no effect moves: so many units of time it takes to move.
        time = 2.0 * len(g.levels) * found.sd[model.n_fixed + k] ** 2
        # Of correlated effects there is another model, in coordinates where what is not known is no matter.
        if share > UNKNOWN_SHARE and (model.lean >= 0 or time * WAITING_ROWS > model.n_data / len(g.levels)):
            return f"they say too little of the effects {g.name}"
    return ""
