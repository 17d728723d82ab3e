"""Tempered runs of many rows: turns in charts, swaps, what is prepared, and what is said where nothing is."""

import math
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import special, stats

import pdmp
from pdmp.automatic.tempering import preparing, rows
from pdmp.automatic.tempering.references import Mixture
from pdmp.automatic.tempering.rows import QUARTER, TemperedRows, by_rows
from pdmp.models.priors import Normal
from pdmp.models.sums_of_terms import SumOfTerms
from pdmp.process import DATA, THINNED, VIOLATIONS
from pdmp.processes.regression_boomerang import RegressionBoomerang
from tests.checks import plain_only

RNG = np.random.default_rng(0)
Y = 1.0 + RNG.standard_normal(30)
GRID = np.linspace(-4.0, 4.0, 4_001)
CENTRES = np.array([-1.0, 1.0]) * math.sqrt(Y.mean())


def double(n=30, noise=1.0, mean=0.3):
    """y ~ N(θ², noise²), so that θ and -θ differ by the prior alone; and its log density on the grid."""
    p, y = pdmp.Parameters(theta=1), np.resize(Y, n)
    terms = pdmp.terms(lambda y, z: 0.5 * ((y - z * z) / noise) ** 2, [y], [p.theta])
    model = pdmp.models.sum_of_terms(p, [terms], priors={"theta": Normal(mean, 1.0)})
    return model, -0.5 * (GRID - mean) ** 2 - 0.5 * (((y - GRID[:, None] ** 2) / noise) ** 2).sum(axis=1)


def process_of(model, weights=(0.5, 0.4, 0.1), sd=0.2):
    samplers = [RegressionBoomerang(model, np.array([c]), 1.0) for c in CENTRES]
    means, roots = [[-1.0], [1.0], [0.0]], [[[sd]], [[sd]], [[2.0]]]
    return TemperedRows(model, Mixture(weights, means, roots, [5.0] * 3), samplers, np.zeros((1, 2, 1)))


def at(process, x, seed=0):
    """The memory of a chain whose upper replica is at x, with its counts."""
    memory, counts = process.memory(np.array([x]), np.random.default_rng(seed)), np.zeros(9, np.int64)
    process.move(memory.positions, 1, memory.x)
    process.evaluate(memory, counts, 1)
    counts[:] = 0
    return memory, counts


@plain_only
@pytest.mark.exact
def test_a_quarter_of_a_turn_of_a_normal_law_ends_at_an_independent_draw():
    """Of rows that are quadratic nothing is proposed, and the end is x̂ + v, wherever the path began."""
    p = pdmp.Parameters(a=2)
    X = np.column_stack([np.ones(9), np.arange(9.0)])
    model = pdmp.models.sum_of_terms(
        p, [pdmp.terms(lambda y, z: 0.5 * (y - z) ** 2, [Y[:9]], [X @ p.a])], priors={"a": Normal(0.0, 1.0)}
    )
    sampler = RegressionBoomerang(model, model.mode(), 1.0)
    reference = Mixture([1.0, 0.1], np.zeros((2, 2)), np.array([np.eye(2), 2.0 * np.eye(2)]), [5.0, 5.0])
    process = TemperedRows(model, reference, [sampler], np.zeros((1, 2, 2)))
    path, counts, v = process.memory(np.zeros(2), np.random.default_rng(0)).within, np.zeros(9, np.int64), np.zeros(2)
    for start in ([0.0, 0.0], [3.0, -1.0]):
        path.x[:] = start
        assert process.turn(path, counts, 0, np.random.default_rng(1))
        sampler.reference.draw(np.random.default_rng(1), v)
        np.testing.assert_allclose(path.x, sampler.anchor + v, atol=1e-12)
        assert path.moved[0] == QUARTER and counts[DATA] == 0


@plain_only
@pytest.mark.exact
def test_the_chart_is_that_of_the_component_of_most_density_but_the_wide_one():
    process = process_of(double()[0])
    memory = process.memory(np.zeros(1), np.random.default_rng(0))
    for x, expected in ((-1.3, 0), (0.4, 1), (30.0, 1), (-30.0, 0), (1e-3, 0)):  # the first one has more weight
        memory.x[0] = x
        chart, height = process.chart(memory)
        assert chart == expected
        terms = process.reference.log_terms(np.array([[x]]))
        assert height == pytest.approx(-np.logaddexp.reduce(terms[0]), rel=1e-12)


@plain_only
@pytest.mark.exact
def test_a_path_is_kept_if_it_ends_in_its_chart(monkeypatch):
    """Where it does U and U₀ are those at its end, for one pass; else the replica is as it was, for none."""
    model = double()[0]
    process, rng = process_of(model), np.random.default_rng(0)
    for end, kept in ((0.8, True), (-0.9, False)):
        memory, counts = at(process, 1.1)
        before = [a.copy() for a in (memory.positions, memory.potentials, memory.heights)]

        def turn(self, path, counts, k, rng, end=end):
            assert k == 1 and path.x[0] == 1.1
            path.x[0] = end
            return True

        monkeypatch.setattr(TemperedRows, "turn", turn)
        assert process.explore(memory, counts, 1, rng) == float(kept)
        if kept:
            assert memory.positions[1, 0] == end and counts[DATA] == 30
            assert memory.potentials[1] == pytest.approx(model.potential(np.array([end])), rel=1e-12)
            terms = process.reference.log_terms(np.array([[end]]))
            assert memory.heights[1] == pytest.approx(-np.logaddexp.reduce(terms[0]), rel=1e-12)
        else:
            assert counts[DATA] == 0
            for a, b in zip(before, (memory.positions, memory.potentials, memory.heights), strict=True):
                assert np.array_equal(a, b)
    memory, counts = at(process, 1.1)
    monkeypatch.setattr(TemperedRows, "both", lambda *_: math.inf)
    monkeypatch.setattr(TemperedRows, "turn", lambda *_: True)
    assert process.explore(memory, counts, 1, rng) == 0.0 and math.isfinite(memory.potentials[1])
    monkeypatch.setattr(TemperedRows, "turn", lambda *_: False)
    assert process.explore(memory, counts, 1, rng) == 0.0 and memory.positions[1, 0] == 1.1


@plain_only
@pytest.mark.exact
def test_a_path_ends_where_bounds_are_too_large():
    """By the bound on its ellipse, a quarter of a turn long; at n rows' proposals and beyond the last shell."""
    process = process_of(double()[0])
    assert process.most == 30
    path, chart = process.memory(np.zeros(1), np.random.default_rng(0)).within, process.samplers[1]
    path.x[0], counts, process.most = 1.05, np.zeros(9, np.int64), math.inf
    rng = np.random.default_rng(2)
    for _ in range(100):
        path.x[0] = 1.05
        assert process.turn(path, counts, 1, rng)
    assert counts[THINNED] >= 1 and counts[VIOLATIONS] == 0 and counts[DATA] <= counts[THINNED]
    state = SimpleNamespace(
        x=np.array([1.05]), v=np.zeros(1), moved=np.zeros(1), memory=chart.memory(np.zeros(1), np.random.default_rng(0))
    )
    chart.reference.draw(np.random.default_rng(2), state.v)
    bound = chart.bound_rows(state)
    for factor, moves in ((0.99, False), (1.01, True)):
        path.x[0], process.most = 1.05, factor * bound * QUARTER
        monkey = np.random.default_rng(2)
        found = process.turn(path, counts, 1, monkey)
        assert found is False if not moves else found in (True, False)
        if not moves:
            assert path.x[0] == 1.05
    path.x[0], process.most = 60.0, math.inf
    assert not process.turn(path, counts, 1, np.random.default_rng(2))


@plain_only
@pytest.mark.exact
def test_a_turn_leaves_the_law_of_its_chart_and_is_reversible():
    """Of a law of one mode, from its own draws: E f(end) = E f, and E f(start) g(end) = E g(start) f(end)."""
    model, logs = double(noise=0.5)
    weight = np.exp(logs - logs.max()) * (GRID > 0.0)
    process, rng = process_of(model), np.random.default_rng(1)
    process.most = math.inf
    path, counts, n = process.memory(np.zeros(1), rng).within, np.zeros(9, np.int64), 3_000
    starts = rng.choice(GRID, size=n, p=weight / weight.sum())
    ends = np.empty(n)
    for k, x in enumerate(starts):
        path.x[0] = x
        ends[k] = path.x[0] if process.turn(path, counts, 1, rng) and path.x[0] > 0.0 else x
    mean, sd = starts.mean(), starts.std()
    z, w = (starts - mean) / sd, (ends - mean) / sd
    assert abs((w - z).mean()) < 4.0 * (w - z).std() / math.sqrt(n)
    assert abs((w**2 - z**2).mean()) < 4.0 * (w**2 - z**2).std() / math.sqrt(n)
    flux = z * w**2 - w * z**2
    assert abs(flux.mean()) < 4.0 * flux.std() / math.sqrt(n)
    assert counts[VIOLATIONS] == 0 and abs((z * w).mean()) < 0.3


@plain_only
@pytest.mark.exact
def test_two_rungs_are_swapped_at_every_scan():
    process = process_of(double()[0])
    for scan in (0, 1):
        memory = process.memory(np.zeros(1), np.random.default_rng(0))
        memory.potentials[:], memory.scans[0] = [0.0, 1.0], scan
        process.swap(memory, np.random.default_rng(0), False)
        assert memory.at.tolist() == [1, 0]


@pytest.mark.exact
def test_rates_above_their_bounds_are_said():
    stats = {"restarts": 100.0, "undefined": 0.0, "bound_violations": 3}
    assert any("above its bound 3 times" in said for said in TemperedRows.report.warnings(None, stats))
    assert TemperedRows.report.warnings(None, stats | {"bound_violations": 0}) == []


@plain_only
@pytest.mark.exact
def test_rates_above_their_bounds_are_counted(monkeypatch):
    process = process_of(double()[0])
    path, counts = process.memory(np.zeros(1), np.random.default_rng(0)).within, np.zeros(9, np.int64)
    path.x[0], process.most = 1.05, math.inf
    sampler = type(process.samplers[1].native)
    monkeypatch.setattr(sampler, "rate", lambda self, state, i, now, rng: 1e6 if rng.random() < 0.5 else 0.0)
    rng = np.random.default_rng(2)
    for _ in range(50):
        process.turn(path, counts, 1, rng)
    assert counts[VIOLATIONS] > 0


def many(monkeypatch, rows_from=30):
    monkeypatch.setattr(preparing, "MANY_ROWS", rows_from)


@plain_only
@pytest.mark.exact
def test_what_is_prepared(monkeypatch):
    """Two charts at both modes, a component of the reference for each, and weights near their shares."""
    many(monkeypatch)
    monkeypatch.setattr(rows, "PILOT", 20.0)
    monkeypatch.setattr(rows, "SET_UP", 10_000)
    model, logs = double(noise=0.4, mean=2.0)
    process = pdmp.auto(model, tempered=True, seed=1)
    share = np.exp(logs - logs.max())[GRID > 0.0].sum() / np.exp(logs - logs.max()).sum()
    assert type(process) is TemperedRows and process.modes.tolist() in ([0, 1], [1, 0])
    anchors = np.array([one.anchor[0] for one in process.samplers])
    assert anchors[0] > 0.9 and anchors[1] < -0.9 and np.all(np.abs(np.abs(anchors) - math.sqrt(Y.mean())) < 0.05)
    sd = 0.4 / math.sqrt(30.0) / (2.0 * anchors[0])
    weights, reference = process.reference.weights, process.reference
    assert 0.95 < share < 0.99 and weights[2] == pytest.approx(0.1)
    assert weights[0] == pytest.approx(0.9 * share / (share + rows.LEAST), abs=0.005)
    np.testing.assert_allclose(reference.roots[:2, 0, 0], math.sqrt(1.2) * sd, rtol=0.3)
    np.testing.assert_allclose(reference.means[:2, 0], anchors, atol=sd)
    assert np.all(np.abs(process.prepared.starts[:, 0] - anchors[0]) < 5.0 * sd)  # all four in the larger mode
    assert "in 2 charts of 2 modes" in process.prepared.choice and "left out" not in process.prepared.choice
    assert 20_100 < process.prepared.gradients < 21_000 and math.isnan(process.narrowest)


@plain_only
@pytest.mark.exact
def test_modes_that_hold_nothing_are_left_out_and_said(monkeypatch):
    monkeypatch.setattr(rows, "PILOT", 2.0)
    seeds = np.random.SeedSequence(1).spawn(3)
    process, _ = by_rows(double(noise=0.3, mean=5.0)[0], 2, seeds, None)
    assert len(process.samplers) == 1 and process.samplers[0].anchor[0] > 0.0
    assert "1 chart of 1 mode; 1 with less than e^-8 of the mass left out" in process.prepared.choice


@plain_only
@pytest.mark.exact
@pytest.mark.parametrize(
    "change, words",
    [
        ({"ROOM": 1e9}, "bounds on single rows are finite up to .* from the mode only, and paths go farther"),
        ({"MOST": 1e-9}, "rows say too little for the bounds on single rows"),
        ({"modes_of_rows": lambda *_, **__: ([], 1)}, "no path ended in a mode"),
        ({"mode": None}, "the mode was not found, give proper priors"),
        ({"acceptance": 0.9}, "`target_acceptance` is of Hamiltonian paths"),
    ],
)
def test_why_all_rows_are_looked_at_is_said_beforehand(monkeypatch, change, words):
    many(monkeypatch)

    class Stop(Exception):
        pass

    def stop(*_):
        raise Stop

    for name, value in change.items():
        if name == "mode":
            monkeypatch.setattr(SumOfTerms, "mode", lambda *_: None)
        elif name != "acceptance":
            monkeypatch.setattr(rows, name, value)
    monkeypatch.setattr(preparing, "find_starts", stop)
    with warnings.catch_warnings(), pytest.raises(Stop):
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", f"the tempered run does not sub-sample, as {words}: each gradient is a pass")
        pdmp.auto(double()[0], tempered=True, seed=1, target_acceptance=change.get("acceptance"))
    with pytest.warns(UserWarning, match=words), pytest.raises(Stop):
        pdmp.auto(double()[0], tempered=True, seed=1, target_acceptance=change.get("acceptance"))


@pytest.mark.exact
def test_models_without_bounds_on_rows():
    seeds = np.random.SeedSequence(1).spawn(3)
    model = pdmp.models.Gaussian([0.0], [1.0])
    assert by_rows(model, 2, seeds, None) == (None, "its terms have no bounds on single rows")


@plain_only
@pytest.mark.exact
def test_a_pilot_that_fails_leaves_the_normal_approximation(monkeypatch):
    sampler = process_of(double()[0]).samplers[0]
    failed = SimpleNamespace(records=[SimpleNamespace(stopped="failed", counts=np.zeros(9, int))], info={"n_data": 30})
    monkeypatch.setattr(rows, "run_window", lambda *_, **__: failed)
    mean, covariance, ends, _ = rows._pilot(sampler, 3, np.random.SeedSequence(1))
    assert np.array_equal(mean, sampler.anchor) and np.array_equal(covariance, sampler.reference.covariance)
    assert ends.shape == (3, 1)


def compared(run, logs, right, omitted):
    """Share of θ > 0, log Z, mean: how many errors from those on the grid."""
    weight = np.exp(logs - logs.max())
    share, step = weight[right].sum() / weight.sum(), GRID[1] - GRID[0]
    log_z = math.log(weight.sum() * step) + logs.max() + omitted
    found, mean = run.log_evidence, run.mean(error=True)
    at = [mode for mode in run.modes() if mode.mean[0] > 0.0]
    z = [(found.value - log_z) / found.error, (mean.value[0] - weight @ GRID / weight.sum()) / mean.error[0]]
    return share, at, np.array(z)


@plain_only
@pytest.mark.exact
def test_shares_and_evidence_in_plain_python(monkeypatch):
    """Through `pdmp.sample`; priors tell the modes apart."""
    many(monkeypatch)
    monkeypatch.setattr(rows, "PILOT", 20.0)
    model, logs = double(noise=0.6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        run = pdmp.sample(model, tempered=True, seed=2, events=250, progress=False)
    share, at, z = compared(run, logs, GRID > 0.0, model.omitted())
    assert len(run.modes()) == 2 and abs(at[0].share - share) < 4.0 * at[0].error and at[0].error < 0.03
    assert np.all(np.abs(z) < 4.0) and run.log_evidence.error < 0.05
    assert run.info["choice"].startswith("two rungs, the upper one explored at one row a proposal")
    assert run.stats["data_passes"] < 3.0 * 4 * 250 and run.stats["bound_violations"] == 0


@pytest.mark.compiled
@pytest.mark.parametrize("noise", [0.6, 2.5])
def test_shares_and_evidence(noise):
    """Against quadrature, of modes that are apart, and of two charts that paths cross at will."""
    model, logs = double(noise=noise)
    process = process_of(model, sd=0.1 if noise < 1.0 else 0.4)
    run = pdmp.sample(process, events=20_000, chains=4, seed=1, initial=np.tile(CENTRES, 2)[:, None], progress=False)
    draws, weight = run.draws(5_000).reshape(-1), np.exp(logs - logs.max())
    share = weight[GRID > 0.0].sum() / weight.sum()
    _, _, z = compared(run, logs, GRID > 0.0, model.omitted())
    assert abs((draws > 0.0).mean() - share) < 0.02 and np.all(np.abs(z) < 4.0) and run.log_evidence.error < 0.02
    assert run.stats["bound_violations"] == 0


@plain_only
@pytest.mark.exact
def test_both_clocks_are_drawn_anew_at_an_event_and_one_at_a_proposal(monkeypatch):
    process = process_of(double()[0])
    sampler, seen, every = type(process.samplers[1].native), [], (0.5, 0.7)
    process.most = math.inf

    def clock(self, state, i, now, rng):
        seen.append((i, round(now, 9)))
        return now + every[i], 1.0

    monkeypatch.setattr(sampler, "clock", clock)
    monkeypatch.setattr(sampler, "jump", lambda self, state, i, now, rng: 0)
    path, counts = process.memory(np.zeros(1), np.random.default_rng(0)).within, np.zeros(9, np.int64)
    for rate, times in (
        (1.0, [(0, 0), (1, 0), (0, 0.5), (1, 0.5), (0, 1.0), (1, 1.0), (0, 1.5), (1, 1.5)]),
        (0.0, [(0, 0), (1, 0), (0, 0.5), (1, 0.7), (0, 1.0), (1, 1.4), (0, 1.5)]),
    ):
        monkeypatch.setattr(sampler, "rate", lambda self, state, i, now, rng, rate=rate: rate)
        path.x[0] = 0.9
        seen.clear()
        assert process.turn(path, counts, 1, np.random.default_rng(2)) and seen == times


@plain_only
@pytest.mark.exact
def test_a_regression_by_formula(monkeypatch):
    """Of counts, whose mode is one; log Z is that by quadrature over both coefficients."""
    many(monkeypatch, 40)
    monkeypatch.setattr(rows, "PILOT", 20.0)
    rng = np.random.default_rng(3)
    x = rng.standard_normal(40)
    table = {"x": x, "y": rng.poisson(np.exp(2.0 + 0.3 * x))}
    priors = {"Intercept": Normal(2.0, 1.0), "x": Normal(0.0, 1.0)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fit = pdmp.regression("y ~ x", table, "poisson", priors, seed=1, tempered=True, events=100, progress=False)
    a, b = np.meshgrid(np.linspace(1.5, 2.5, 201), np.linspace(-0.3, 0.9, 201))
    z = a[..., None] + b[..., None] * (x - x.mean())
    logs = (z * table["y"] - np.exp(z) - special.gammaln(table["y"] + 1.0)).sum(axis=-1)
    logs += stats.norm.logpdf(a, 2.0) + stats.norm.logpdf(b)
    log_z = special.logsumexp(logs) + math.log((a[0, 1] - a[0, 0]) * (b[1, 0] - b[0, 0]))
    found = fit.log_evidence
    assert abs(found.value - log_z) < 4.0 * found.error < 0.3
    assert fit.notes[-1].startswith("two rungs, the upper one explored at one row a proposal")
