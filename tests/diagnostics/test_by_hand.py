"""Diagnostics against numbers computed by hand: effective sizes, R-hat, marks that are thinned, F tests, p values."""

import dataclasses
import math
import types
import warnings

import numpy as np
import pytest
from scipy import linalg, stats

import pdmp
from pdmp.diagnostics import averages
from pdmp.diagnostics.effective_size import batch_ess, batch_rhat
from pdmp.diagnostics.monte_carlo_error import asymptotic_variance, efficiency, standard_error
from pdmp.engine import recording
from pdmp.flow import Linear, Still
from pdmp.validation import clocks
from tests.checks import plain, plain_only
from tests.toys import Coupled, Telegraph, Ticks, Walls

pytestmark = pytest.mark.exact


# -- from stretches -------------------------------------------------------------------------------------------------


def test_batch_ess_by_hand():
    """Stretches of length 2 with means 1, 3, 2, 4 have the variance 5/3, so that σ² = 10/3; 8 of time, variance 5."""
    sums = np.array([[2.0, 6.0, 4.0, 8.0]])
    found = batch_ess(np.array([5.0]), [8.0], [sums], [2.0], [np.array([2.5])])
    assert found == pytest.approx(8.0 * 5.0 / (10.0 / 3.0))
    # Sums that were begun and not ended do not count; of a chain that has not begun nothing does.
    more = np.array([[2.0, 6.0, 4.0, 8.0, 99.0]])
    assert batch_ess(np.array([5.0]), [8.5], [more], [2.0], [np.array([2.5])]) == pytest.approx(8.5 * 1.5)
    assert batch_ess(np.array([5.0]), [8.0, 0.0], [sums, sums], [2.0, 2.0], [np.array([2.5])]) == pytest.approx(12.0)
    assert np.isnan(batch_ess(np.array([5.0]), [6.0], [sums], [2.0], [np.array([2.5])]))  # three of them
    # What three stretches of one chain say of its error is unknown, and so is the error of all.
    assert np.isnan(batch_ess(np.array([5.0]), [8.0, 3.5], [sums, sums[:, :3]], [2.0, 1.0], [np.array([2.5])] * 2))
    # A chain that has no stretch yet counts neither.
    assert batch_ess(np.array([5.0]), [8.0, 3.0], [sums, sums], [2.0, 0.0], [np.array([2.5])]) == pytest.approx(12.0)


def test_batch_ess_of_chains_by_hand():
    """Chains add up, unless their means differ by more than that: then 3 var / Var(means) for each, at least 1."""
    sums, variance = np.array([[2.0, 6.0, 4.0, 8.0]]), np.array([5.0])
    call = variance, [8.0, 8.0], [sums, sums], [2.0, 2.0]
    assert batch_ess(*call, [np.array([2.5]), np.array([2.6])]) == pytest.approx(24.0)
    # A chain of 8 of time with σ² = 10/3, and a narrow one of 4: 12² 5 / Σ Tσ².
    narrow = np.array([[0.2, 0.25, 0.2, 0.25]]) * 0.5
    assert batch_ess(variance, [8.0, 4.0], [sums, narrow], [2.0, 1.0], [np.array([2.5]), np.array([2.6])]) == (
        pytest.approx(144.0 * 5.0 / (8.0 * 10.0 / 3.0 + 4.0 * np.var(narrow, ddof=1)))
    )
    # Means 2 and 4: their variance is 2, and 15 / 2 for each of two chains is less than 24.
    assert batch_ess(*call, [np.array([2.0]), np.array([4.0])]) == pytest.approx(15.0)
    assert batch_ess(*call, [np.array([-50.0]), np.array([50.0])]) == pytest.approx(2.0)


def test_batch_rhat_by_hand():
    """Variances 4 and 6, and halves with means 1, 2, 3, 6, whose variance is 14/3: √(1 + 14/15)."""
    found = batch_rhat([np.array([4.0]), np.array([6.0])], np.array([[1.0], [2.0], [3.0], [6.0]]))
    assert found == pytest.approx(math.sqrt(1.0 + 14.0 / 15.0))


@pytest.mark.parametrize("process", [Telegraph, Walls, Ticks], ids=["global", "local", "ticks"])
def test_effective_draws_without_a_path_are_those_of_its_stretches(process):
    """`store="moments"` against the same formula on integrals of the skeleton."""
    call = {"events": 3_000, "chains": 2, "seed": 11, "warmup": 0.1}
    whole, moments = (pdmp.sample(process(), store=store, **call) for store in ("skeleton", "moments"))
    variance = np.average(
        [p.var() for p in whole.trajectories], axis=0, weights=[p.end - p.warmup for p in whole.trajectories]
    )
    lengths, batches, stretches, means = [], [], [], []
    for path, record in zip(whole.trajectories, moments.records, strict=True):
        stretch, n = float(record.integrals.stretch[0]), int(record.integrals.marked[0])
        ends = path.warmup + stretch * np.arange(n + 1)
        assert 32 <= n <= 64 and ends[-1] <= path.end < ends[-1] + stretch * (1.0 + 1e-9)
        batches.append(np.array([path.integral(None, a, b) for a, b in zip(ends, ends[1:], strict=False)]).T)
        lengths.append(path.end - path.warmup)
        stretches.append(stretch)
        means.append(path.mean())
    expected = batch_ess(variance, lengths, batches, stretches, means)
    np.testing.assert_allclose(moments.ess(), expected, rtol=1e-6)
    # And of these stretches the variance of the means, by its definition.
    spread = 0.0
    for length, sums, stretch in zip(lengths, batches, stretches, strict=True):
        spread = spread + length * stretch * np.var(sums / stretch, axis=1, ddof=1)
    total = sum(lengths) ** 2 * variance / spread
    limit = 2.0 * np.maximum(3.0 * variance / np.var(means, axis=0, ddof=1), 1.0)
    np.testing.assert_allclose(moments.ess(), np.minimum(total, limit), rtol=1e-6)


# -- marks and grids that are thinned ---------------------------------------------------------------------------------


@plain_only
@pytest.mark.parametrize("kind", ["line", "steps"])
def test_marks_and_grid_rows_when_they_double(kind):
    """One coordinate from time 0: x = t, or x = k on [k, k + 1); rows at 1, 2, 3, 4, then at 2, 4, 6, 8, and so on."""
    flow = (Linear() if kind == "line" else Still()).native
    made = recording.new_recording(
        np.zeros(1), moving=True, local=False, covariance=False, batches=2, skeleton=0, grid=2, stretch=1.0, spacing=1.0
    )
    integrals, grid = made.integrals, made.grid
    x, v, moved = np.zeros(1), np.full(1, float(kind == "line")), np.zeros(1)

    def integral(t):
        if kind == "line":
            return t * t / 2.0
        whole = math.floor(t)
        return whole * (whole - 1) / 2.0 + whole * (t - whole)

    def square(t):
        if kind == "line":
            return t**3 / 3.0
        whole = math.floor(t)
        return whole * (whole - 1) * (2 * whole - 1) / 6.0 + whole * whole * (t - whole)

    for now in range(1, 38):
        plain(recording.fill_grid)(grid, flow, 0.0, x, v, moved, float(now))
        plain(recording.mark)(integrals, flow, x, v, moved, float(now))
        plain(recording.integrate_all)(integrals, flow, x, v, moved[0], float(now))
        x[0], moved[0] = float(now), float(now)
        stretch, n = integrals.stretch[0], int(integrals.marked[0])
        expected = 1.0
        while now // expected > 4:
            expected *= 2.0
        assert stretch == grid.spacing[0] == expected and n == grid.used[0] == now // expected
        times = stretch * np.arange(1, n + 1)
        np.testing.assert_allclose(integrals.marks[:n], [[integral(t), square(t)] for t in times], rtol=1e-12)
        # At an event, the position before it.
        before = times if kind == "line" else times - 1.0
        np.testing.assert_allclose(grid.rows[:n, 0], before, rtol=1e-12)


def test_batches_of_stretches_by_hand():
    """Of 11 stretches three batches of three: the first two, which fill none, are left out."""
    x = np.random.default_rng(3).standard_normal((11, 2))
    means = [x[k : k + 3].mean(axis=0) for k in (2, 5, 8)]
    np.testing.assert_allclose(asymptotic_variance(x, 0.5, "batch"), 1.5 * np.var(means, axis=0, ddof=1), rtol=1e-12)


def test_autoregressions_by_hand():
    """Yule and Walker's equations solved for each order, of which Akaike's criterion takes one for each column."""
    x, n, taken = np.random.default_rng(0).standard_normal((60, 3)), 60, []
    for k in range(2, n):
        x[k] += [0.0, 0.8, 0.0] * x[k - 1] + [0.0, 0.0, -0.6] * x[k - 2]
    for j, found in enumerate(asymptotic_variance(x, 0.5)):
        y = x[:, j] - x[:, j].mean()
        c = np.array([y[: n - k] @ y[k:] / n for k in range(16)])
        fits = [(n * math.log(c[0]), c[0] * n / (n - 1), 0)]
        for p in range(1, 16):
            weights = linalg.solve_toeplitz(c[:p], c[1 : p + 1])
            noise = c[0] - weights @ c[1 : p + 1]
            fits.append((n * math.log(noise) + 2 * p, noise * n / (n - p - 1) / (1.0 - weights.sum()) ** 2, p))
        assert found == pytest.approx(0.5 * min(fits)[1], rel=1e-9)
        taken.append(min(fits)[2])
    assert taken == [0, 1, 2]


# -- errors of means ------------------------------------------------------------------------------------------------


def test_chains_differ_by_an_f_test():
    """At 0.001, with one degree of freedom for two chains and 32 for the error within them."""
    rng = np.random.default_rng(0)
    one = rng.standard_normal((400, 1))
    one -= one.mean()
    sigma = asymptotic_variance(one, 1.0)[0]
    within = sigma / 800.0  # of the mean of both chains, 400 long each
    critical = stats.f.isf(1e-3, 1, 32)
    for factor, differ in ((0.999, False), (1.001, True)):
        # Means ±a: of two chains with equal weights, `between` is a² · (1/2) / (1/2) = a².
        a = math.sqrt(factor * critical * within)
        found = standard_error([one + a, one - a], [1.0, 1.0], [400.0, 400.0])[0]
        assert found == pytest.approx(a if differ else math.sqrt(within), rel=1e-9)
    # Three chains of unequal lengths: weights 1/2, 1/4, 1/4; with means 4, 0, 0 the mean is 2.
    flat = [np.full((8, 1), 4.0), np.zeros((8, 1)), np.zeros((8, 1))]
    found = standard_error(flat, [2.0, 1.0, 1.0], [16.0, 8.0, 8.0])[0]
    assert found == pytest.approx(math.sqrt(4.0 * 0.375 / 0.625))


# -- costs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "terms", "passes", "thinned", "horizons", "gradients"),
    [(7, 70, 3.5, 90, 40, 10.0), (0, 70, 3.5, 90, 40, 3.5), (7, 0, 0.0, 90, 40, 130.0), (0, 0, 0.0, 0, 0, 25.0)],
)
def test_what_a_gradient_costs(size, terms, passes, thinned, horizons, gradients):
    """One mini-batch, one pass, one evaluation of a rate or of a bound, or one event; NaN where nothing was spent."""
    stats_of = {"data_terms": terms, "data_passes": passes, "thinned": thinned, "horizons": horizons}
    stats_of |= {"seconds": 5.0, "total_events": 25}
    run = types.SimpleNamespace(
        stats=stats_of, process=types.SimpleNamespace(provider=types.SimpleNamespace(size=size))
    )
    found = efficiency(run, ess=np.array([60.0, np.nan, 20.0, np.inf, 21.0]))
    assert found.pop("per_data_pass") == pytest.approx(20.0 / passes if passes else math.nan, nan_ok=True)
    assert found == pytest.approx(
        {"ess_min": 20.0, "ess_median": 21.0, "per_second": 4.0, "per_event": 0.8, "per_gradient": 20.0 / gradients}
    )
    assert all(math.isnan(value) for value in efficiency(run, ess=np.array([np.nan, np.inf])).values())


# -- draws and averages of runs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", ["skeleton", "grid"])
def test_a_function_that_changes_its_argument_changes_no_run(store):
    """It gets a copy of a position, and of many positions at once."""
    run = pdmp.sample(Ticks(), steps=60, seed=1, store=store, draws=30 if store == "grid" else None)

    def spoils(x):
        found = x[0] * x[1]
        x[:] = 7.0
        return found

    def of_one(x):
        return float(spoils(x))

    before = run.draws(20)
    for f in (spoils, of_one):
        same = run.expectation(lambda x: x[0] * x[1]), averages.running_mean(run, lambda x: x[0] * x[1], 10)
        assert run.expectation(f) == pytest.approx(same[0])
        np.testing.assert_allclose(averages.running_mean(run, f, 10), same[1])
        np.testing.assert_array_equal(run.draws(20), before)
    x = np.random.default_rng(1).standard_normal((2, 30))
    for f in (spoils, of_one):
        given = x.copy()
        np.testing.assert_array_equal(averages.apply(f, given), x[0] * x[1])
        np.testing.assert_array_equal(given, x)


def test_many_positions_at_once_only_where_that_gives_the_same(monkeypatch):
    """Of what works for one position alone, whose shape would fit, or that warns or fails beyond one."""
    monkeypatch.setattr(averages, "SINGLES", 7)
    x = np.random.default_rng(2).standard_normal((2, 40))
    x[0, [0, 17]], calls = np.nan, []

    def together(x):
        calls.append(x.ndim)
        return np.stack([x[0] + x[1], np.maximum(x[0], 0.0)])

    np.testing.assert_array_equal(averages.apply(together, x), [x.sum(axis=0), np.maximum(x[0], 0.0)])
    assert calls.count(2) == 8 and len(calls) < 40
    place = np.arange(40)
    many = {
        "warns": lambda x: warnings.warn("many", stacklevel=2) or x[0],
        "fails": lambda x: {}[x.shape],
        "other values": lambda x: x[0] - np.nanmean(x[0]),
        "the first": lambda x: np.where(place[: len(x[0])] == 0, 9.0, x[0]),
        "one between": lambda x: np.where(place[: len(x[0])] == len(x[0]) // 2, 9.0, x[0]),
        "the last": lambda x: np.where(place[: len(x[0])] == len(x[0]) - 1, 9.0, x[0]),
        "a little": lambda x: x[0] * (1.0 + 1e-7),
    }
    for name, f in many.items():
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = averages.apply(lambda x, f=f: f(x) if x.ndim > 1 else x[0], x)
        assert said == []
        np.testing.assert_array_equal(found, x[0], err_msg=name)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.where(x[0] > 2.2, np.linalg.norm(x), 0.0),
        lambda x: np.where(np.abs(x[0]) < 0.02, 0.5 * np.max(x), x[0]),  # neither the smallest nor the largest values
        lambda x: np.where(x[0] > 2.2, x.ndim, 0.0),  # in every part of the columns the same
        lambda x: np.where(x[0] < -2.2, -1.0 * x.ndim, 0.0),
    ],
    ids=["norm", "maximum", "dimensions", "the smallest"],
)
def test_what_many_positions_at_once_change_in_a_few_is_seen(f, monkeypatch):
    monkeypatch.setattr(averages, "SINGLES", 7)
    x = np.random.default_rng(4).standard_normal((2, 300))
    single = np.array([f(one) for one in x.T])
    differ = np.flatnonzero(np.asarray(f(x)) != single)
    assert 1 < len(differ) < 12 and not {*differ} & {*np.linspace(0, 299, 7).astype(int)}
    np.testing.assert_array_equal(averages.apply(f, x), single)


@pytest.mark.parametrize(
    "f, at_least, at_most",
    [
        (lambda x: 1.0 * (x[0] == x.max()), 20, 200),
        (lambda x: 1.0 * (x[0] - 1.5 > x[1:].max()), 2, 12),
        (lambda x: np.where(x[0] * x[1] > 0.0, 1.0 * (x[2] > np.median(x)), 0.0), 20, 1_000),
    ],
    ids=["which is the largest", "by far", "the median"],
)
def test_coordinates_that_are_compared_with_those_of_other_positions(f, at_least, at_most):
    """Of an event that many positions at once have hardly ever: no value is among the largest."""
    x = np.random.default_rng(6).standard_normal((9, 1_000))
    single = np.array([f(one) for one in x.T])
    assert at_least <= np.sum(np.asarray(f(x)) != single) <= at_most
    np.testing.assert_array_equal(averages.apply(f, x), single)


def cut(run, k):
    """The run with a chain that ended where its warm-up did."""
    records = [dataclasses.replace(r, warmup=r.end) if i == k else r for i, r in enumerate(run.records)]
    return pdmp.Run(run.info, records, process=run.process)


def test_chains_without_a_path_are_named():
    run = cut(pdmp.sample(Telegraph(), events=30, chains=3, seed=1), 1)
    with pytest.raises(ValueError, match="^chain 1 has no path after its warm-up"):
        averages.running_mean(run)
    assert averages.diagnostic_draws(run) is None and averages.with_path(run) == [run.records[0], run.records[2]]
    with pytest.raises(ValueError, match="^there is no path after the warm-up"):
        averages.with_path(cut(cut(run, 0), 2))


@pytest.mark.parametrize("store", ["grid", "moments"])
def test_a_chain_without_stretches_has_no_averages_over_them(store):
    """It has a path, of which no stretch has ended."""
    run = pdmp.sample(Ticks(), steps=300, chains=2, seed=1, store=store, draws=20 if store == "grid" else None)
    none = run.records[1].integrals._replace(stretch=np.zeros(1), marked=np.zeros(1, int))
    of = pdmp.Run(run.info, [run.records[0], dataclasses.replace(run.records[1], integrals=none)], process=run.process)
    series, each, lengths = averages.stretches(of)
    assert [one.shape for one in series] == [averages.stretches(run)[0][0].shape, (0, 3)]
    assert each[1] == 0.0 and lengths == [r.length for r in run.records]


@pytest.mark.parametrize("store", ["skeleton", "grid"])
def test_how_many_draws_are_for_diagnostics(store, monkeypatch):
    """As many as the shortest chain has events, four or more; of many numbers fewer, but 50."""
    for steps, shape in ((3, None), (4, (2, 4, 3)), (90, (2, 90, 3))):
        run = pdmp.sample(Ticks(), steps=steps, chains=2, seed=1, store=store, draws=steps if store == "grid" else None)
        found = averages.diagnostic_draws(run)
        assert (None if found is None else found.shape) == shape
    for numbers, n in ((480, 80), (300, 50), (60, 50)):
        monkeypatch.setattr(averages, "DIAGNOSTIC_NUMBERS", numbers)
        assert averages.diagnostic_draws(run).shape == (2, n, 3)


def test_how_many_stretches_a_path_has(monkeypatch):
    """Half as many as events after the warm-up; at most 1,024, of many numbers in all copies fewer, but 64."""
    run = pdmp.sample(Coupled(), events=600, chains=2, warmup=0.5, seed=1)
    after = [int(np.sum(one.whole.times > one.warmup)) for one in run.trajectories]
    assert [len(one) for one in averages.stretches(run)[0]] == [n // 2 for n in after] and min(after) > 256
    size = len(run.copies) * run.dim * 2
    for numbers, n in ((100 * size, 100), (70 * size + 1, 70), (64 * size, 64), (size, 64)):
        monkeypatch.setattr(averages, "DIAGNOSTIC_NUMBERS", numbers)
        assert [len(one) for one in averages.stretches(run)[0]] == [n, n]
        assert [len(one) for one in averages.square_stretches(run, np.tile(run.mean(), len(run.copies)))[0]] == [n, n]


def test_a_run_of_moments_is_looked_at_by_the_grid_of_its_checks():
    run = pdmp.sample(Ticks(), steps=300, chains=2, seed=1, store="moments")
    seen = averages.looked_at(run)
    assert (seen.store, seen.aside, run.store) == ("grid", True, "moments")
    none = run.records[0].grid._replace(used=np.zeros(1, int))
    records = [run.records[1], dataclasses.replace(run.records[0], grid=none)]
    for without in (records, records[::-1]):  # one chain has no grid
        of = pdmp.Run(run.info, without, process=run.process)
        assert averages.looked_at(of) is of
    path = pdmp.sample(Ticks(), steps=30, seed=1)
    assert averages.looked_at(path) is path


@pytest.mark.parametrize(("dim", "widths"), [(1, [1]), (32, [32]), (70, [32, 32, 6]), (1_030, [33] * 31 + [7])])
def test_portions_of_coordinates(dim, widths):
    """32 coordinates or more in each, and at most 32 portions."""
    found = averages.portions(types.SimpleNamespace(dim=dim))
    ends = np.cumsum(widths)
    assert found == [slice(end - width, end) for end, width in zip(ends, widths, strict=True)]


# -- p values of clocks -----------------------------------------------------------------------------------------------


def reported(gaps, **counts):
    """What `check_clocks` reports of these integrated rates between events of one clock."""
    n = len(gaps)
    work = types.SimpleNamespace(
        gaps=np.asarray(gaps),
        gap_channel=np.zeros(n, int),
        clock=np.zeros(1, int),
        error=np.full(1, 1e-3 * n),
        done=np.full(1, n),
        **{name: np.full(1, counts.get(name, 0)) for name in ("thinned", "accepted", "violated")},
    )
    return clocks._report(Telegraph(), work, ["one"])


def test_p_values_of_simulated_exponentials_are_uniform():
    """500 clocks of 200 gaps."""
    rng = np.random.default_rng(5)
    found = [reported(rng.standard_exponential(200)).clocks[0] for _ in range(500)]
    for name in ("p_mean", "p_ks"):
        p = [getattr(clock, name) for clock in found]
        # The distance of 500 uniform numbers from their law is below 0.12 but once in a million times; the normal
        # approximation of the mean adds 0.01.
        assert stats.kstest(p, "uniform").statistic < 0.13
    assert all(0.0 <= clock.p <= 1.0 for clock in found)


def test_p_values_by_hand():
    gaps = np.array([0.2, 1.5, 0.7, 2.2, 0.9, 1.1])
    clock = reported(gaps, thinned=8, accepted=6, violated=2).clocks[0]
    assert (clock.n, clock.violations, clock.acceptance) == (6, 2, 0.75)
    assert clock.mean == pytest.approx(1.1) and clock.second == pytest.approx(np.mean(gaps**2))
    assert clock.se == pytest.approx(1.0 / math.sqrt(6.0)) and clock.error == pytest.approx(1e-3)
    # Of Exp(1): variance 1, and E x⁴ - (E x²)² = 24 - 4.
    assert clock.p_mean == pytest.approx(2.0 * stats.norm.sf(0.1 * math.sqrt(6.0)))
    z = (2.0 - np.mean(gaps**2)) / math.sqrt(20.0 / 6.0)
    assert clock.p_second == pytest.approx(2.0 * stats.norm.sf(abs(z)))
    steps = np.arange(7) / 6.0
    below = -np.expm1(-np.sort(gaps))
    distance = max(np.max(steps[1:] - below), np.max(below - steps[:-1]))
    assert clock.p_ks == pytest.approx(stats.kstwo.sf(distance, 6))
    assert clock.p == pytest.approx(min(1.0, 3.0 * min(clock.p_mean, clock.p_second, clock.p_ks)))
    both = clocks.ClockCheck("two", 12, (clock, reported(0.1 * gaps).clocks[0]), ())
    assert both.p == pytest.approx(min(1.0, 2.0 * both.clocks[1].p)) and both.clocks[1].p < clock.p


def test_a_rate_that_is_off_shows_as_often_as_it_says():
    """`resolution`: p < 0.003 with a probability of 95 % at least, since three tests are made."""
    rng = np.random.default_rng(6)
    n = 2_500
    bias = 4.95 / math.sqrt(n)
    assert reported(rng.standard_exponential(n)).clocks[0].resolution == pytest.approx(bias)
    seen = [reported((1.0 + bias) * rng.standard_exponential(n)).clocks[0].p < 3e-3 for _ in range(100)]
    assert np.mean(seen) > 0.82  # six standard errors below
