"""Groups of coordinates that enter and leave together: balance of their jumps, what is accumulated, laws."""

import functools
import itertools
import math

import numpy as np
import pytest
from scipy import special, stats

import pdmp
from pdmp.engine.chain import rows_per_event
from pdmp.models import LinearGaussian, LogisticRegression
from pdmp.models.priors import BetaBernoulli, HalfNormal, HalfStudentT, Normal
from pdmp.models.regressions.group_intercepts import GroupIntercepts
from pdmp.models.regressions.likelihoods import NormalLaw, PoissonLaw
from pdmp.models.regressions.mixed import GroupColumn, MixedRegression
from pdmp.processes import sticky, sticky_groups
from pdmp.processes.regression_boomerang import RegressionBoomerang
from pdmp.processes.regression_bps import RegressionBPS
from pdmp.processes.regression_zigzag import RegressionZigZag
from pdmp.processes.sticky import KEPT_VELOCITY
from pdmp.processes.sticky_groups import StickyGroups
from tests.checks import assert_unbiased, in_ci, plain_only

pytestmark = [pytest.mark.exact, pytest.mark.usefixtures("few_radii")]

RNG = np.random.default_rng(5)
LEVELS = RNG.integers(0, 3, 24)
#: A category of three levels as two columns, a pair of correlated columns with one between, and single columns.
X = np.column_stack([LEVELS == 1, LEVELS == 2, RNG.standard_normal((24, 5))]).astype(float)
X[:, 5] += 0.6 * X[:, 3]
GROUPS, SINGLE = [[0, 1], [3, 5, 6]], [2, 4]
Y = X @ [0.4, -0.3, 0.1, 0.2, 0.0, 0.1, 0.2] + RNG.standard_normal(24)
INCLUSION = np.array([0.3, 0.3, 0.6, 0.4, 0.5, 0.4, 0.4])
SCALE = 1.3
LINEAR = LinearGaussian(X, Y, prior_scale=SCALE)
LOGISTIC = LogisticRegression(X, (Y > 0.3).astype(float), prior_scale=SCALE)
#: Of a group with a column of nearly no information, so flat that its curvature is raised.
FLAT = LinearGaussian(X * [1e-7, 2.0, *[1.0] * 5], Y, prior_scale=3e3)


def counts(n=24, **options):
    rng = np.random.default_rng(8)
    level = rng.integers(0, 3, n)
    columns = np.column_stack([np.ones(n), level == 1, level == 2, rng.standard_normal(n)]).astype(float)
    y = rng.poisson(np.exp(0.5 + columns @ [0.0, 0.5, -0.2, 0.1]))
    priors = [Normal(0.0, 2.0), Normal(0.0, 0.8), Normal(0.0, 0.6), Normal(0.1, 0.5)]
    options = {"inclusion": [1.0, 0.4, 0.4, 0.3], "together": {"level": [1, 2]}} | options
    return MixedRegression(columns, y, PoissonLaw(), ["Intercept", "b", "c", "x"], priors, intercept=0, **options)


def normal(n=400, **options):
    rng = np.random.default_rng(9)
    columns = np.column_stack([np.ones(n), rng.standard_normal((n, 3))])
    columns[:, 2] += 0.7 * columns[:, 1]
    y = columns @ [0.05, 0.07, -0.05, 0.03] + 0.8 * rng.standard_normal(n)
    priors = [Normal(0.0, 2.0), Normal(0.0, 0.8), Normal(0.0, 0.6), Normal(0.1, 0.5)]
    options = {"inclusion": [1.0, 0.4, 0.4, 0.3], "together": {"level": [1, 2]}} | options
    options |= {"dispersion_priors": [HalfStudentT(4.0, 1.0)], "weights": 0.5 + rng.random(n)}
    return MixedRegression(columns, y, NormalLaw(), ["Intercept", "b", "c", "x"], priors, intercept=0, **options)


def grouped(law, n=60, crossed=False):
    """With intercepts of groups, of one grouping or of two that cross, besides columns that are left out."""
    rng, dispersions = np.random.default_rng(10), [HalfStudentT(4.0, 1.0)] * len(law.dispersions)
    columns, level = np.column_stack([np.ones(n), rng.standard_normal((n, 3))]), rng.integers(0, 4, n)
    z = columns @ [0.2, 0.3, -0.2, 0.1] + 0.5 * level
    y = z + 0.8 * rng.standard_normal(n) if dispersions else rng.poisson(np.exp(z))
    of_groups = [GroupColumn("1|g", "g", tuple("abcd"), level, np.ones(n), HalfNormal(1.0))]
    if crossed:
        of_groups.append(GroupColumn("1|h", "h", tuple("abc"), rng.integers(0, 3, n), np.ones(n), HalfNormal(1.0)))
    names, priors = ["Intercept", "b", "c", "x"], [Normal(0.0, sd) for sd in (2.0, 0.8, 0.6, 0.5)]
    options = {"intercept": 0, "inclusion": [1.0, 0.4, 0.4, 0.3], "together": {"level": [1, 2]}}
    return GroupIntercepts(columns, y, law, names, priors, of_groups, dispersions, **options)


def one_row(model):
    return pdmp.ZigZag(pdmp.gradients.ControlVariate(model, size=1))


CASES = {
    "linear": lambda: StickyGroups(pdmp.ZigZag(LINEAR), GROUPS, INCLUSION, always=[4]),
    "linear, one clock": lambda: StickyGroups(pdmp.ZigZag(LINEAR, thinning="affine"), GROUPS, INCLUSION, rate=2.5),
    "linear, no single": lambda: StickyGroups(pdmp.ZigZag(LINEAR), GROUPS, INCLUSION, always=SINGLE),
    "logistic": lambda: StickyGroups(one_row(LOGISTIC), GROUPS, BetaBernoulli(2.0, 0.7)),
    "logistic, beside the mode": lambda: StickyGroups(
        one_row(LOGISTIC), GROUPS, BetaBernoulli(2.0, 0.7), anchor=LOGISTIC.mode() + 0.3
    ),
    "counts": lambda: StickyGroups(RegressionZigZag(counts()), [[1, 2]]),
    "linear, each by itself": lambda: StickyGroups(pdmp.ZigZag(LINEAR), [[2], *GROUPS, [4]], INCLUSION),
    "logistic, some by itself": lambda: StickyGroups(
        one_row(LOGISTIC), [[4], *GROUPS], BetaBernoulli(2.0, 0.7), rate=1.5
    ),
    "counts, bouncing": lambda: StickyGroups(RegressionBPS(counts()), [[1, 2], [3]]),
    "normal": lambda: StickyGroups(RegressionZigZag(normal()), [[1, 2], [3]]),
    "normal, bouncing": lambda: StickyGroups(RegressionBPS(normal(), [0.05, 0.07, 0.0, 0.0, -0.2]), [[3], [1, 2]]),
    "normal, turning": lambda: StickyGroups(
        RegressionBoomerang(normal(inclusion=[1.0, 0.4, 0.4, 0.4]), metric="diagonal"),
        [[1], [3]],
        BetaBernoulli(2.0, 0.7),
    ),
}
#: Of cases that differ in little, the longer ones wait for the full tier where whole paths are read.
LONGER = ("logistic", "logistic, some by itself", "normal", "linear, no single", "linear, each by itself")
LONGER += ("counts, bouncing", "normal, bouncing", "logistic, beside the mode")
QUICKEST = [pytest.param(name, marks=pytest.mark.slow) if name in LONGER else name for name in CASES]
#: Of which the balance alone is looked at.
FURTHER = {
    "normal, beside the anchor": lambda: StickyGroups(
        RegressionBPS(normal(60)), [[1, 2], [3]], anchor=[0.1, 0.2, -0.1, 0.1, -0.4]
    ),
    "normal, intercepts of groups": lambda: StickyGroups(RegressionZigZag(grouped(NormalLaw())), [[1, 2], [3]]),
    "counts, crossed groups": lambda: StickyGroups(
        RegressionZigZag(grouped(PoissonLaw(), crossed=True)), [[1, 2], [3]]
    ),
    "flat": lambda: StickyGroups(pdmp.ZigZag(FLAT), GROUPS, INCLUSION),
}


#: Processes are not changed by what is done with them, and take a second to set up in plain Python.
made = functools.cache(lambda name: (CASES | FURTHER)[name]())


class Fixed:
    """A generator whose numbers are given in advance."""

    def __init__(self, uniform, normal=()):
        self.uniform, self.normal = list(uniform), list(normal)

    def random(self):
        return self.uniform.pop(0)

    def standard_normal(self):
        return self.normal.pop(0)

    def standard_exponential(self):
        return 0.25


def far(process, rng):
    return process.expanded_at + rng.standard_normal(process.dim) * 0.7


def proposal(process, x, g, normal=(), early=0.0):
    """The state at x, and the probability that a change of group g is accepted after the early rejection."""
    state = process.begin(x, np.random.default_rng(1))
    rate = process.native.rate(
        state, process.clocks - 1, 0.0, Fixed([(g + 0.5) / len(groups_of(process)), early], normal)
    )
    return state, rate / process.total_rate


def groups_of(process):
    return [process.grouped[a:b] for a, b in itertools.pairwise(process.begin_group)]


@pytest.mark.parametrize("law", ["counts", "normal", pytest.param("counts, intercepts of groups", marks=plain_only)])
def test_a_rise_of_the_potential(law):
    """Where only columns whose coefficients are not 0 are read; with weights, offsets and dispersions."""
    rng = np.random.default_rng(3)
    options = {"offset": rng.normal(0.0, 0.5, 24), "weights": 0.5 + rng.random(24)}
    if "groups" in law:
        model = grouped(PoissonLaw(), 24)
    else:
        model = counts(**options) if law == "counts" else normal(24, offset=options["offset"])
    x = 0.3 * rng.standard_normal(model.dim)
    x[[1, 3]] = 0.0
    y = x.copy()
    y[1], y[2] = 0.4, 0.0
    rise = model.potential(y) - model.potential(x)
    assert abs(rise) > 0.1 and model.native.total_rise(x, y) == pytest.approx(rise, rel=1e-9)
    assert LOGISTIC.native.total_rise(np.ones(7), np.zeros(7)) == pytest.approx(
        LOGISTIC.potential(np.zeros(7)) - LOGISTIC.potential(np.ones(7))
    )


def alone(process):
    """Coordinates that stick and are in no group."""
    return np.setdiff1d(process.sticking, process.grouped)


@pytest.mark.parametrize("name", [*CASES, *(pytest.param(name, marks=plain_only) for name in FURTHER)])
def test_births_and_deaths_balance(name):
    """q(x_g) α(birth) = ω Πs(0) exp(U(out) - U(in)) α(death), q by an independent formula."""
    process, rng = made(name), np.random.default_rng(2)
    model, native = process.model, process.native
    hessian, gradient = model.hessian(process.expanded_at), model.gradient(process.expanded_at)
    slab, given = model.slab_density(), model.prior_inclusion()
    inclusion, law = given if given is not None else INCLUSION, process.shape > 0.0
    partly = 0
    for trial in range(2):
        for g, group in enumerate(groups_of(process)):
            inside = far(process, rng)
            others = [h for k, h in enumerate(groups_of(process)) if k != g and trial % 2]
            inside[np.concatenate([np.zeros(0, int), *others])] = 0.0
            inside[alone(process)[: trial % 3]] = 0.0
            outside = inside.copy()
            outside[group] = 0.0

            away = outside - process.expanded_at
            rest = np.setdiff1d(np.arange(model.dim), group)
            values, vectors = np.linalg.eigh(hessian[np.ix_(group, group)])
            covariance = vectors / np.maximum(values, 1e-8 * values.max()) @ vectors.T
            mean = process.expanded_at[group] - covariance @ (
                gradient[group] + hessian[np.ix_(group, rest)] @ away[rest]
            )
            normal = rng.standard_normal(len(group))
            state, after = proposal(process, outside, g, normal)
            assert state.memory.chosen[0] == g and not native.is_in(state, g)
            drawn = state.memory.drawn[: len(group)].copy()
            np.testing.assert_allclose(drawn, mean + np.linalg.cholesky(covariance) @ normal, rtol=1e-5, atol=1e-6)
            log_q = stats.multivariate_normal(mean, covariance).logpdf(drawn)
            state.memory.here[:] = outside
            log_a = native.approximate_odds(state, g)
            log_birth = min(log_a, 0.0) + math.log(after)

            inside[group] = drawn
            state, after = proposal(process, inside, g)
            np.testing.assert_array_equal(state.memory.drawn[: len(group)], drawn)
            assert native.is_in(state, g)
            state.memory.here[:] = inside
            assert native.approximate_odds(state, g) == pytest.approx(log_a, rel=1e-10, abs=1e-10)
            log_death = min(-log_a, 0.0) + math.log(after)
            partly += after < 1.0

            w = inclusion[group[0]]
            odds = w / (1.0 - w)
            if law:  # Beta(2, 0.7): p(γ) = B(a + k, b + m - k) / B(a, b), of m units of which k others are in
                m = process.units
                k = sum(inside[h[0]] != 0.0 for h in groups_of(process)) - 1 + np.sum(inside[alone(process)] != 0.0)
                odds = special.beta(2.0 + k + 1, 0.7 + m - k - 1) / special.beta(2.0 + k, 0.7 + m - k)
            expected = math.log(odds) + np.log(slab[group]).sum() + model.potential(outside) - model.potential(inside)
            assert log_birth - log_death + log_q == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert process.units == len(groups_of(process)) + len(alone(process))
    assert name.startswith("linear") or partly > 0  # of a Gaussian the expansion is exact


@plain_only
def test_a_change_is_rejected_early_with_the_probability_of_the_approximation():
    process, rng = made("logistic"), np.random.default_rng(3)
    seen = set()
    for trial in range(12):
        x = far(process, rng)
        if trial % 2:
            x[GROUPS[1]] = 0.0
        state, _ = proposal(process, x, 1, [0.1, 0.2, 0.3])
        state.memory.here[:] = x
        sign = 1.0 if trial % 2 else -1.0
        chance = math.exp(min(sign * process.native.approximate_odds(state, 1), 0.0))
        if chance < 1.0:
            seen.add(sign)
            state, none = proposal(process, x, 1, [0.1, 0.2, 0.3], early=chance * (1.0 + 1e-9))
            assert none == 0.0 and state.counts[6] == 0  # no data are looked at
            state, some = proposal(process, x, 1, [0.1, 0.2, 0.3], early=chance * (1.0 - 1e-9))
            assert some > 0.0 and state.counts[6] == 2 * len(X)
    assert seen == {1.0, -1.0}


@pytest.mark.parametrize("name", CASES)
def test_changes_are_proposed_at_a_constant_rate(name):
    process = made(name)
    state, i = process.begin(np.ones(process.dim), np.random.default_rng(0)), process.clocks - 1
    rate = 2.5 if "one clock" in name else 1.5 if "some" in name else 1.0
    time, bound = process.native.clock(state, i, 3.0, Fixed([]))
    assert bound == pytest.approx(rate * len(groups_of(process))) and time == pytest.approx(3.0 + 0.25 / bound)
    # A birth and a death redraw every clock, and so does the start of a run.
    assert sorted(process.order[process.start[i] : process.start[i + 1]]) == list(range(process.clocks))
    assert sorted(process.order[process.start[-1] :]) == list(range(process.clocks))


def frozen(path):
    return (path.positions == 0.0) & (path.velocities == 0.0)


@plain_only
@pytest.mark.parametrize("name", QUICKEST)
def test_groups_enter_and_leave_as_a_whole_and_go_on_as_they_came(name):
    process = made(name)
    path = pdmp.sample(process, events=400, seed=3).trajectories[0]
    kinds, still, turns = [path.events[k] for k in path.kinds], frozen(path), "turning" in name
    if process.local:  # an event of a group is a row for each of its coordinates, at one time
        last = np.append(np.diff(path.times) > 0.0, True)
    else:
        last = np.ones(len(path.times), bool)
    for group in groups_of(process):
        assert np.all(still[last][:, group] == still[last][:, group[:1]])
        kept = np.full(len(group), np.nan)
        for k in range(1, len(last)):
            if not last[k]:
                continue
            before = k - 1
            while before > 0 and not last[before]:
                before -= 1
            if still[k, group[0]] and not still[before, group[0]]:
                kept = path.velocities[before, group]
                assert kinds[k - 1] == "death" or len(group) == 1 and kinds[k - 1] == "freeze"
            elif not still[k, group[0]] and still[before, group[0]]:
                assert kinds[k - 1] == "birth" or len(group) == 1 and kinds[k - 1] == "thaw"
                assert np.isnan(kept[0]) or turns or np.array_equal(path.velocities[k, group], kept)
    assert min(kinds.count(kind) for kind in ("birth", "death")) >= 3


@pytest.mark.parametrize("name", QUICKEST)
def test_what_is_accumulated_is_what_the_path_says(name):
    process, options = made(name), {"events": 80, "warmup": 0.3, "chains": 2, "seed": 4}
    run = pdmp.sample(process, **options)
    included, models, length = np.zeros(process.dim), {}, 0.0
    for path in run.trajectories:
        knots = np.concatenate([path.times, [path.end]])
        h = np.diff(np.maximum(knots, path.warmup))
        moving = ~frozen(path)
        included += h @ moving
        length += h.sum()
        for row, time in zip(moving[:, process.members], h, strict=True):
            key = tuple(sorted(process.members[row].tolist()))
            models[key] = models.get(key, 0.0) + time
    np.testing.assert_allclose(pdmp.diagnostics.inclusion(run), included / length, rtol=1e-10)
    probabilities = {tuple(sorted(key)): p for key, p in pdmp.diagnostics.sparsity(run).items()}
    for key, time in models.items():
        assert probabilities.get(key, 0.0) == pytest.approx(time / length, rel=1e-9, abs=1e-11)
    assert sum(probabilities.values()) == pytest.approx(1.0, rel=1e-10)
    assert {"birth", "death"} <= {k for k, n in run.stats["events"].items() if n > 0}


logistic_run = functools.cache(lambda: pdmp.sample(made("logistic"), events=150, seed=6))


def test_with_many_units_models_are_read_from_the_skeleton(monkeypatch):
    listed = pdmp.diagnostics.sparsity(logistic_run())
    for module in (sticky, sticky_groups):
        monkeypatch.setattr(module, "LISTED", 2)
    read = pdmp.diagnostics.sparsity(pdmp.sample(CASES["logistic"](), events=150, seed=6))
    assert listed.keys() == read.keys()
    for name, probability in listed.items():
        assert read[name] == pytest.approx(probability, rel=1e-9)


def test_inclusion_survives_a_file(tmp_path):
    run = logistic_run()
    run.save(tmp_path / "run.npz")
    loaded = pdmp.load(tmp_path / "run.npz")
    np.testing.assert_array_equal(pdmp.diagnostics.inclusion(loaded), pdmp.diagnostics.inclusion(run))
    assert pdmp.diagnostics.sparsity(loaded) == pdmp.diagnostics.sparsity(run)


def test_there_is_room_for_the_largest_group_in_the_skeleton():
    """Groups of two and of three: a change of one writes as many rows."""
    process = CASES["linear"]()
    assert process.local and process.scope[process.first_in_scope :].tolist() == [0, 1, 3, 5, 6]
    assert np.diff(process.scope_start)[-1] == rows_per_event(process)[1] == 3


def test_groups_that_start_at_zero_are_out():
    process = CASES["linear"]()
    x = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    state = process.begin(x, np.random.default_rng(0))
    assert [process.native.is_in(state, g) for g in (0, 1)] == [False, True] and state.memory.included[0] == 1
    np.testing.assert_array_equal(state.v == 0.0, [True, True, True, False, False, False, False])
    assert state.memory.model[0] == 0b100 and np.all(np.abs(state.memory.coordinates[:, KEPT_VELOCITY]) == 1.0)


def test_single_coordinates_count_groups_as_one():
    """κ sᵢ(0) p(γ ∪ i) / p(γ) of one of four units."""
    process = CASES["logistic"]()
    for x, k in ((np.array([1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0]), 2), (np.array([1.0, 1.0, 0, 1, 1, 1, 1.0]), 3)):
        state = process.begin(x, np.random.default_rng(0))
        ratio = special.beta(3.0 + k, 0.7 + 3 - k) / special.beta(2.0 + k, 0.7 + 4 - k)
        speed = abs(state.memory.coordinates[2, KEPT_VELOCITY])
        assert process.native.thawing(state, 2) == pytest.approx(stats.norm.pdf(0.0, scale=SCALE) * ratio * speed)


@pytest.mark.parametrize(
    "groups, options, message",
    [
        ([], {}, "`groups` must be one or more sets"),
        ([[0, 1], [1, 2]], {}, "without one in common"),
        ([[0, 1], []], {}, "none empty"),
        ([[0, 9]], {}, "`groups` must name coordinates 0 … 6"),
        ([[0, 1]], {"always": [1]}, "`always` names a coordinate that is in one of the `groups`"),
        ([[0, 2]], {"inclusion": INCLUSION}, r"the coordinates \[0, 2\] of a group need one `inclusion`"),
        ([[0, 1]], {"rate": 0.0}, "`rate` must be a positive number"),
        ([[0, 1]], {"anchor": [0.0]}, r"`anchor` must have shape \(7,\)"),
    ],
)
def test_groups_that_make_no_sense_are_refused(groups, options, message):
    with pytest.raises(ValueError, match=message):
        StickyGroups(pdmp.ZigZag(LINEAR), groups, **options)


@pytest.mark.parametrize(
    "make",
    [
        lambda: pdmp.BPS(LINEAR),
        lambda: pdmp.ZigZag(LINEAR, thinning="grid"),
        lambda: pdmp.ZigZag(LINEAR, metric=np.eye(7) + 0.1),
    ],
)
def test_processes_that_remember_positions_are_refused(make):
    with pytest.raises(TypeError, match="groups of coordinates need .* RegressionBPS, .* without a metric"):
        StickyGroups(make(), GROUPS)


def test_an_anchor_is_asked_for_where_there_is_no_mode(monkeypatch):
    monkeypatch.setattr(LinearGaussian, "mode", lambda model: None)
    with pytest.raises(ValueError, match="`anchor` must be given: the posterior's mode was not found"):
        StickyGroups(pdmp.ZigZag(LINEAR), GROUPS)


# ---------------------------------------------------------------------------------------------------------------
# Laws


def linear_inclusion(prior):
    """Of each coordinate, from the marginal likelihoods N(0, I + s² X_m X_mᵀ) of all sets of units."""
    units, logs, rows = [*GROUPS, *([j] for j in SINGLE)], [], []
    for chosen in itertools.product([False, True], repeat=len(units)):
        columns = [j for unit, c in zip(units, chosen, strict=True) if c for j in unit]
        marginal = stats.multivariate_normal(np.zeros(24), np.eye(24) + SCALE**2 * X[:, columns] @ X[:, columns].T)
        logs.append(marginal.logpdf(Y) + prior(chosen, [INCLUSION[unit[0]] for unit in units]))
        rows.append(np.isin(np.arange(7), columns))
    weights = np.exp(np.array(logs) - max(logs))
    return weights @ np.array(rows) / weights.sum()


def independent(chosen, w):
    return sum(math.log(p if c else 1.0 - p) for c, p in zip(chosen, w, strict=True))


def beta_bernoulli(chosen, w):
    return special.betaln(2.0 + sum(chosen), 0.7 + len(w) - sum(chosen))


def inclusions(process, time, runs=24, warmup=0.05):
    found = []
    for seed in range(runs):
        start = np.ones(process.dim) * 0.3
        run = pdmp.sample(process, initial=start, time=time, seed=seed, warmup=warmup, progress=False, store="moments")
        assert run.stats["bound_violations"] == 0
        found.append(pdmp.diagnostics.inclusion(run))
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    "inner, law",
    [("inversion", independent), ("affine", beta_bernoulli)],
)
def test_inclusion_in_a_linear_regression(inner, law):
    """Against the enumeration of all models: a category of three levels, a group of three, and two single columns."""
    inclusion = INCLUSION if law is independent else BetaBernoulli(2.0, 0.7)
    process = StickyGroups(pdmp.ZigZag(LINEAR, thinning=inner), GROUPS, inclusion)
    found = inclusions(process, 60.0)
    np.testing.assert_array_equal(found[:, [0, 3, 3]], found[:, [1, 5, 6]])
    keep = [0, 2, 3, 4]
    assert_unbiased(found[:, keep], linear_inclusion(law)[keep], resolution=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("family", in_ci(["logistic", "counts"], "logistic"))
def test_inclusion_of_a_category(family):
    """Two columns of a category in a regression whose expansion is not exact, by quadrature over both models."""
    if family == "counts":
        model = counts(inclusion=[1.0, 0.4, 0.4, 1.0])
        process, group, always, w = StickyGroups(RegressionZigZag(model), [[1, 2]]), [1, 2], [0, 3], 0.4
    else:
        model = LogisticRegression(X[:10, [0, 1, 2]], (Y[:10] > 0.0).astype(float), prior_scale=SCALE)
        process = StickyGroups(one_row(model), [[0, 1]], 0.4, always=[2])
        group, always, w = [0, 1], [2], 0.4
    nodes, weights = np.polynomial.legendre.leggauss(14 if len(always) == 2 else 20)
    mode = model.mode()
    sd = np.sqrt(np.diag(np.linalg.inv(model.hessian(mode))))

    def mass(free):
        """∫ exp(-U) over the free coordinates, the others 0."""
        total, x = 0.0, np.zeros(model.dim)
        widths = np.array([7.0 * sd[j] for j in free])
        for place in itertools.product(range(len(nodes)), repeat=len(free)):
            place = list(place)
            x[free] = mode[free] + widths * nodes[place]
            total += math.exp(-model.potential(x)) * np.prod(weights[place] * widths)
        return total

    density = float(np.prod(model.slab_density()[group]))
    inside, outside = w * density * mass(sorted(group + always)), (1.0 - w) * mass(always)
    truth = inside / (inside + outside)
    assert 0.05 < truth < 0.95
    assert_unbiased(inclusions(process, 100.0)[:, group[:1]], [truth], resolution=0.25)
