"""Successive halving on synthetic scores, and tuning of real chains with a clock that can be repeated."""

import math
import sys
import time

import numpy as np
import pytest
from numba.core.config import DISABLE_JIT

import discrete
import pdmp
from pdmp import tuning
from pdmp.engine.chain import Chain
from pdmp.gradients import Noisy
from pdmp.models import Gaussian
from pdmp.tuning import competition
from tests.checks import run_chain

pytestmark = [
    pytest.mark.exact,
    pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning"),  # of plain Python's numbers, where arms diverge
    pytest.mark.filterwarnings("ignore:invalid:RuntimeWarning"),
]

#: Arms, budget 1: arms and length of each round by hand, (R M / Σ ηⁱ) / |Sᵢ|, and how many are left.
SCHEDULES = {
    56: ([56, 18, 6], [1 / 13, 56 / (13 * 18), 56 / (13 * 6)], 2),
    112: ([112, 37, 12, 4], [1 / 40, 112 / (40 * 37), 112 / (40 * 12), 112 / (40 * 4)], 1),
    243: ([243, 81, 27, 9, 3], [1 / 121, 3 / 121, 9 / 121, 27 / 121, 81 / 121], 1),
    27: ([27, 9, 3], [1 / 13, 3 / 13, 9 / 13], 1),
    2: ([2], [1.0], 2),
    1: ([1], [1.0], 1),
}


@pytest.mark.parametrize("arms", SCHEDULES)
def test_the_rounds(arms):
    counts, lengths, left = SCHEDULES[arms]
    rounds = tuning.schedule(arms, 1.0)
    assert [r.arms for r in rounds] == counts
    np.testing.assert_allclose([r.each for r in rounds], lengths, rtol=1e-12)
    assert [r.kept for r in rounds] == [*counts[1:], left]
    if arms in (27, 243):  # η divides every count: the winner spends exactly the budget
        assert sum(r.each for r in rounds) == pytest.approx(1.0)
    shares = [r.arms * r.each for r in rounds]
    np.testing.assert_allclose(shares, shares[0])  # every round costs the same


@pytest.mark.parametrize("eta, arms", [(2, 16), (3, 27), (4, 64)])
def test_the_winner_spends_the_budget_whatever_the_share_that_is_kept(eta, arms):
    rounds = tuning.schedule(arms, 5.0, eta)
    n = len(rounds)
    assert [(r.arms, r.kept) for r in rounds] == [(arms // eta**k, arms // eta ** (k + 1)) for k in range(n)]
    assert rounds[-1].kept == 1 and sum(r.each for r in rounds) == pytest.approx(5.0)
    np.testing.assert_allclose([r.arms * r.each for r in rounds], arms * rounds[0].each)
    total = n * rounds[0].each * arms
    gaps, sigma = np.linspace(1.5, 2.5, arms - 1), 0.3  # H₂ is M / 2.5² or 2 / 1.5²
    hardness = max(s / gap**2 for s, gap in zip(range(2, arms + 1), gaps, strict=True))
    exponent = total / (4.0 * eta * sigma**2 * hardness * (n + 1.0))
    bound = min(1.0, (2 * eta - 1) * n * math.exp(-exponent))
    assert tuning.failure_bound(gaps[::-1], sigma, 5.0, eta) == pytest.approx(bound, rel=1e-9)
    bound = (2 * eta - 1) * n * math.exp(-10 * exponent)
    for given in (gaps, gaps[::-1], np.roll(gaps, 1)):
        assert tuning.failure_bound(given, sigma, 50.0, eta) == pytest.approx(bound, rel=1e-9) and bound < 1.0


@pytest.mark.parametrize("arms, rounds", [(242, 4), (243, 5), (3**10, 10), (3**10 - 1, 9)])
def test_the_number_of_rounds_is_exact(arms, rounds):
    assert len(tuning.schedule(arms, 1.0)) == rounds


def test_certain_scores_leave_the_best_arm():
    scores = np.random.default_rng(1).permutation(30).astype(float)
    spent = {}

    def play(arm, total):
        spent.setdefault(arm, []).append(total)
        return scores[arm]

    best, played = tuning.successive_halving(30, play, 10.0)
    assert best == int(np.argmin(scores))
    first = [p for p in played if p.round == 0]
    assert {p.arm for p in first if p.kept} == set(np.argsort(scores)[:10].tolist())
    lengths = np.cumsum([r.each for r in tuning.schedule(30, 10.0)])
    np.testing.assert_allclose(spent[best], lengths)
    assert len(spent[int(np.argmax(scores))]) == 1


def noisy_trial(rng, gaps, sigma, budget):
    """Whether the arm 0 wins, scores being means of noise over what a round lasts."""
    means = np.concatenate([[0.0], gaps])
    before = {}

    def play(arm, spent):
        each = spent - before.get(arm, 0.0)
        before[arm] = spent
        return means[arm] + sigma / math.sqrt(each) * rng.standard_normal()

    return tuning.successive_halving(len(means), play, budget)[0] == 0


def test_the_best_arm_wins_in_every_trial_at_a_gap_of_three_standard_deviations():
    """Of the difference of two scores of the first round; hundred trials, scores shuffled among 27 arms."""
    rng = np.random.default_rng(2)
    budget = 13.0  # the first round lasts 1
    gaps = np.linspace(1.0, 3.0, 26) * 3.0 * math.sqrt(2.0)
    assert sum(noisy_trial(rng, gaps, 1.0, budget) for _ in range(100)) == 100


def test_the_failure_bound_holds():
    """26 of 27 arms at one gap: frequencies of failure over 1,000 trials, and the bound by hand."""
    rng = np.random.default_rng(3)
    gaps, bounds, found = np.ones(26), [], []
    for budget in (2.0, 20.0, 800.0):
        failures = np.mean([not noisy_trial(rng, gaps, 1.0, budget) for _ in range(1_000)])
        bound = tuning.failure_bound(gaps, 1.0, budget)
        total = 3 * 27 * tuning.schedule(27, budget)[0].each
        assert bound == pytest.approx(min(1.0, 15.0 * math.exp(-total / (4.0 * 3.0 * 27.0 * 4.0))))
        assert failures - 5.0 * math.sqrt(failures * (1.0 - failures) / 1_000) <= bound
        bounds.append(bound)
        found.append(failures)
    assert found[0] > 0.1 > found[-1]  # there was something to bound
    assert bounds[-1] < 0.5


# ---------------------------------------------------------------------------------------------------------------
# Chains

MODEL = Gaussian([1.0, -1.0], [1.0, 4.0])
NOISY = Noisy(MODEL, 1.0)


def langevin(step):
    return discrete.SGLD(NOISY, step)


ARMS = tuning.grid(step=[1e-4, 1e-3, 1e-2, 0.1, 0.4, 3.0])


def error_of_the_mean(x, model):
    return float(np.abs(x.mean(axis=0) - model.mean).max())


def test_a_chain_goes_on_from_round_to_round():
    """The winner's path is that of one uninterrupted run with its stream."""
    found = tuning.mamba(langevin, ARMS, budget=400, metric=error_of_the_mean, clock="steps", seed=4)
    seeds = [int(c.generate_state(1, np.uint64)[0]) for c in np.random.SeedSequence(4).spawn(len(ARMS))]
    winner = ARMS.index(found.best)
    steps = int(found.run.events[0])
    assert steps == 400
    whole = run_chain(
        langevin(**found.best), MODEL.mode(), np.random.SeedSequence(seeds[winner]).spawn(1)[0], steps=steps
    )
    np.testing.assert_array_equal(found.run.trajectories[0].positions[1:], whole.finish().xs)


def test_scores_are_of_the_draws_of_their_round():
    seen = []

    def metric(x, model):
        seen.append(x)
        return error_of_the_mean(x, model)

    arms = tuning.grid(step=[0.1] * 9)
    found = tuning.mamba(langevin, arms, budget=120, metric=metric, clock="steps", seed=5, thin=5, workers=1)
    rows = [(row["round"], row["draws"], row["spent"]) for row in found.table]
    assert [r for r, *_ in rows] == [0] * 9 + [1] * 3
    path = found.run.trajectories[0]
    last = seen[-3:]
    t = path.times[rows[0][1] * 5]
    assert rows[0][1:] == (6, 30.0) and rows[-1][1:] == (18, 120.0)
    times = t + (path.end - t) * np.arange(1, 19) / 18
    assert any(np.array_equal(x, path.at(times)) for x in last)


def test_the_same_seed_gives_the_same_table_on_any_number_of_workers():
    tables = [tuning.mamba(langevin, ARMS, 300, clock="steps", seed=6, workers=workers).table for workers in (1, 1, 3)]
    assert tables[0] == tables[1] == tables[2]
    assert tables[0] != tuning.mamba(langevin, ARMS, 300, clock="steps", seed=7).table


@pytest.mark.parametrize("metric", ["ksd"] + ["fssd"] * (not DISABLE_JIT))  # in plain Python it takes a minute
def test_a_sensible_step_wins(metric):
    found = tuning.mamba(langevin, ARMS, budget=3_000, metric=metric, clock="steps", seed=8)
    assert found.best["step"] in (1e-2, 0.1)


@pytest.mark.parametrize("metric", ["ksd", "fssd"])
def test_what_has_run_away_and_is_still_a_number_diverged_as_well(metric):
    """After 100 steps of 3 it is at 1e100, and would be scored."""
    with pytest.raises(pdmp.SamplingError, match="All 2 arms failed: diverged"):
        tuning.mamba(langevin, tuning.grid(step=[3.0, 4.0]), 100, metric=metric, clock="steps", seed=9)
    found = tuning.mamba(langevin, tuning.grid(step=[3.0, 0.1]), 100, metric="ksd", clock="steps", seed=9)
    assert found.best == {"step": 0.1} and [row["why"] for row in found.table] == ["diverged", ""]
    function, _ = sys.modules["pdmp.tuning.competition"]._metric(metric)
    assert function(np.full((5, 2), 1e308), MODEL) == math.inf  # the scores overflow


class Failing:
    """½ x² in two dimensions, but for the call in which it raises."""

    def __init__(self, error, call):
        self.error, self.left = error, call

    def __call__(self, x):
        self.left -= 1
        if self.left == 0:
            raise self.error
        return 0.5 * float(x @ x), x.copy()


@pytest.mark.parametrize("call", [240, 460], ids=["a step", "a score"])  # of 466, the last 15 for scores
@pytest.mark.parametrize(
    "error", [ConnectionError("lost"), MemoryError("full"), OverflowError("far"), ValueError("far")]
)
@pytest.mark.parametrize("search", [tuning.mamba, tuning.grid_search], ids=lambda search: search.__name__)
def test_what_a_function_needs_and_has_not_is_no_reason_against_a_step(search, error, call):
    """It ends the search by its name; where arithmetic fails the step may be the reason, and is said to be."""

    def make(step):
        return discrete.SGLD(model, step=step)

    failing = Failing(None, 0)
    model = pdmp.models.from_function(failing, 2)
    failing.error, failing.left = error, call
    options = {"budget": 150, "clock": "steps", "seed": 1, "workers": 1}
    if isinstance(error, (OverflowError, ValueError)):
        found = search(make, tuning.grid(step=[0.3, 0.25]), **options)
        assert failing.left <= 0
        assert {row["why"] for row in found.table} == {
            "",
            f"diverged ({type(error).__name__})" if call == 240 else "diverged",
        }
        return
    with pytest.raises((pdmp.SamplingError, type(error))) as caught:
        search(make, tuning.grid(step=[0.3, 0.25]), **options)
    assert error in (caught.value, caught.value.__cause__)


def test_a_score_reads_no_further_than_the_path():
    """The last draw is the end of the path; a sum of parts misses it by rounding, after 307 steps of 0.1 it does."""
    steps, step = 307, 0.1
    assert (steps * step * np.arange(1, steps + 1) / steps)[-1] > steps * step
    seen = []

    def metric(x, model):
        seen.append(x)
        return error_of_the_mean(x, model)

    found = tuning.mamba(langevin, [{"step": step}], steps, metric=metric, clock="steps", seed=1, thin=1)
    path = found.run.trajectories[0]
    assert len(seen) == 1 and len(seen[0]) == steps
    np.testing.assert_array_equal(seen[0][-1], path.at(path.end))


def test_settings_with_other_targets_are_compared_by_losses_only():
    """The discrepancy of each to a posterior of its own says nothing of the others."""

    def make(precision, dim=2):
        return pdmp.ZigZag(pdmp.models.Gaussian(np.zeros(dim), np.full(dim, precision)))

    for search in (tuning.mamba, tuning.grid_search):
        for other in ({"precision": 2.0}, {"precision": 1.0, "dim": 3}):
            with pytest.raises(
                ValueError, match=r"'dim': 3}|'precision': 2.0} has another target than {'precision': 1"
            ):
                search(make, [{"precision": 1.0}, other], budget=200, clock="steps", metric="ksd")
        search(make, [{"precision": 1.0}] * 2, budget=200, clock="steps", metric="ksd")
        search(
            make, [{"precision": 1.0}, {"precision": 2.0}], 200, clock="steps", metric=lambda x, model: np.mean(x**2)
        )


@pytest.mark.parametrize("search", [pdmp.tuning.mamba, pdmp.tuning.grid_search])
def test_a_hyper_parameter_that_is_ignored_is_named(search):
    """The better of two settings would be chance; what cannot be compared, and settings that are the same, may be."""
    arms = pdmp.tuning.grid(step=[0.1, 0.2], size=[1, 2])
    with pytest.raises(ValueError, match="`make` returns the same process for size=1 and size=2: it must use what"):
        search(lambda step, size: langevin(step), arms, 100, clock="steps", seed=1)
    with pytest.raises(ValueError, match="`make` returns the same process for step=0.1 and step=0.2"):
        search(lambda step: langevin(0.1), [{"step": 0.1}, {"step": 0.2}], 100, clock="steps", seed=1)
    assert search(langevin, [{"step": 0.1}, {"step": 0.1}], 400, clock="steps", seed=1).best == {"step": 0.1}


# ---------------------------------------------------------------------------------------------------------------
# As published: held-out loss, from a noisy start near the mode

LABELS = (np.random.default_rng(3).standard_normal((60, 2)), np.random.default_rng(4).integers(0, 2, 60))
REGRESSION = pdmp.models.LogisticRegression(LABELS[0][:40], LABELS[1][:40])


def test_the_held_out_loss_is_that_of_the_mean_prediction():
    X, y = LABELS[0][40:], LABELS[1][40:]
    draws = np.random.default_rng(5).standard_normal((7, 2))
    p = (1.0 / (1.0 + np.exp(-X @ draws.T))).mean(axis=1)
    loss = -np.mean(np.where(y == 1, np.log(p), np.log(1.0 - p)))
    assert tuning.held_out(y, X)(draws, REGRESSION) == pytest.approx(loss, rel=1e-12)
    assert tuning.held_out(y, X, loss="error")(draws, REGRESSION) == pytest.approx(np.mean((p > 0.5) != y))
    network = pdmp.models.BayesianNN(X, y, hidden=2)
    draws = np.random.default_rng(6).standard_normal((5, network.dim))
    p = network.predict(draws, X).mean(axis=0)
    assert tuning.held_out(y, X)(draws, network) == pytest.approx(-np.mean(np.log(p[np.arange(20), y])), rel=1e-12)
    assert tuning.held_out(y, X)(np.full((5, 2), np.nan), REGRESSION) == math.inf


def test_the_held_out_error_of_ratings():
    users, items = np.array([0, 1, 2]), np.array([1, 0, 1])
    model = pdmp.models.MatrixFactorization([0, 1, 2], [0, 1, 0], [1.0, 2.0, 5.0], 2)
    draws = 3.0 * np.random.default_rng(7).standard_normal((6, model.dim))
    of_users, of_items = draws[:, :6].reshape(6, 3, 2), draws[:, 6:].reshape(6, 2, 2)
    mean = np.einsum("rnk,rnk->n", of_users[:, users], of_items[:, items]) / 6
    low, high = 0.5 * (np.sort(mean)[:2] + np.sort(mean)[1:])  # so that each limit clips one of the three
    for limits, clipped in (({}, mean), ({"lowest": low, "highest": high}, np.clip(mean, low, high))):
        metric = tuning.held_out([3.0, 4.0, 1.0], users, items, loss="rmse", **limits)
        assert metric(draws, model) == pytest.approx(np.sqrt(np.mean((clipped - [3.0, 4.0, 1.0]) ** 2)), rel=1e-12)


def test_a_grid_search_from_a_noisy_start():
    """All arms start at the same point, `initial` or the mode with normal noise; the best held-out loss is taken."""
    starts, metric = [], tuning.held_out(LABELS[1][40:], LABELS[0][40:])
    batch = pdmp.gradients.Minibatch(REGRESSION, 4)

    def watched(x, model):
        starts.append(x[0])
        return metric(x, model)

    def search(metric=metric, seed=12, make=lambda step: discrete.SGLD(batch, step), **options):
        arms = tuning.grid(step=[1e-12, 1e-10, 1e-3])
        return tuning.grid_search(make, arms, 60, metric, "steps", seed, workers=1, thin=1, **options)

    found = search(start_noise=0.7)
    noise = 0.7 * np.random.default_rng(12).standard_normal(2)
    for initial, start in ((None, REGRESSION.mode()), ([3.0, -1.0], np.array([3.0, -1.0]))):
        starts.clear()
        search(watched, start_noise=0.7, initial=initial)
        np.testing.assert_allclose(starts[0], start + noise, atol=1e-4)
        np.testing.assert_allclose(starts[1], start + noise, atol=1e-3)
    starts.clear()
    anchored = pdmp.gradients.ControlVariate(REGRESSION, 4, anchor=[2.0, 2.0])
    for initial in ([-1.0, 1.0], None):  # what is given comes before an anchor
        starts.clear()
        search(watched, make=lambda step: discrete.SGLD(anchored, step), start_noise=0.7, initial=initial)
        np.testing.assert_allclose(starts[0], np.array(initial or [2.0, 2.0]) + noise, atol=1e-4)
    starts.clear()
    search(watched, make=lambda step: discrete.SGLD(anchored, step), start_noise=0.7)
    np.testing.assert_allclose(starts[0], 2.0 + noise, atol=1e-4)
    starts.clear()
    search(watched)
    np.testing.assert_allclose(starts[0], REGRESSION.mode(), atol=1e-4)
    assert found.metric == "held-out log_loss" and found.score == min(row["score"] for row in found.table)
    assert found.table == search(start_noise=0.7).table != search(start_noise=0.7, seed=13).table


def counting():
    """A metric that is worse each time, and the draws that it was given."""
    seen = []

    def metric(x, model):
        seen.append(x.copy())
        return float(len(seen))

    return metric, seen


def test_the_window_that_is_all_begins_at_the_start():
    metric, seen = counting()
    arms = tuning.grid(step=[0.1] * 9)
    found = tuning.mamba(
        langevin, arms, 120, metric, clock="steps", seed=5, thin=1, draws=10**6, window="all", workers=1
    )
    path, n = found.run.trajectories[0], len(seen[9])
    np.testing.assert_array_equal(seen[9], path.at(path.end * np.arange(1, n + 1) / n))
    assert found.score >= 10.0  # of the last round


@pytest.mark.exact
def test_arms_in_other_processes_are_the_same():
    from tests.engine.helpers_executors import Elsewhere

    arms, score = tuning.grid(step=list(np.linspace(0.05, 0.4, 9))), lambda x, m: float(np.sum(x**2))
    call = {"clock": "steps", "seed": 1, "thin": 5, "workers": 1}
    pool = Elsewhere()
    here, there = (tuning.mamba(langevin, arms, 120, score, **call, executor=e) for e in (None, pool))
    assert here.best == there.best and here.table == there.table
    assert pool.tasks >= 12  # nine arms, then three


def test_one_arm_at_a_time_where_seconds_count(monkeypatch):
    module = sys.modules["pdmp.tuning.competition"]
    monkeypatch.setattr(module, "cpu_count", lambda: 7)
    for clock, workers in (("seconds", 1), ("steps", 7)):
        with module._pool(None, clock) as pool:
            assert pool._max_workers == workers


def test_compilation_costs_no_budget(monkeypatch):
    """It is done before each arm's seconds begin to count, and takes longer than they do."""
    begun, compile_now = [], Chain.compile

    def slowly(chain):
        begun.append(chain.seconds)
        time.sleep(0.3)
        compile_now(chain)

    monkeypatch.setattr(Chain, "compile", slowly)
    found = tuning.mamba(langevin, tuning.grid(step=[0.1, 0.2]), 0.05, metric=error_of_the_mean, seed=1)
    assert begun == [0.0, 0.0]
    assert found.clock == "seconds" and all(row["draws"] >= 3 for row in found.table)
    assert found.run.info["wall_seconds"] >= found.run.stats["seconds"] + 0.3


#: It has no mode.
FLAT = pdmp.models.from_function(lambda x: (float(-x[0]), np.array([-1.0])), 1)
CASES = {
    "no arms": (lambda: tuning.mamba(langevin, [], 10.0), ValueError, "`arms`.*empty"),
    "no arms to halve": (lambda: tuning.schedule(0, 10.0), ValueError, "`arms` must hold at least one"),
    "empty grid": (lambda: tuning.grid(step=[]), ValueError, "`step` is empty"),
    "budget": (lambda: tuning.mamba(langevin, ARMS, 0.0), ValueError, "`budget`"),
    "a small budget": (lambda: tuning.mamba(langevin, ARMS, 20, clock="steps"), ValueError, "at least 30 are"),
    "a small budget of passes": (
        lambda: tuning.mamba(langevin, ARMS[:2], 5.0, clock="data", seed=1),
        ValueError,
        "`budget` is too small for one round: no arm took enough steps in 5 data",
    ),
    "a small budget of a grid search": (
        lambda: tuning.grid_search(langevin, ARMS[:2], 5, clock="steps", seed=1),
        ValueError,
        "`budget` is too small",
    ),
    "no grid": (lambda: tuning.grid_search(langevin, [], 10.0), ValueError, "`arms`.*empty"),
    "a budget without end": (lambda: tuning.schedule(9, math.inf), ValueError, "`budget` must be a positive number"),
    "a share of an arm": (lambda: tuning.schedule(4.5, 10.0), ValueError, "`arms` must be a whole number"),
    "eta": (lambda: tuning.mamba(langevin, ARMS, 10.0, eta=1), ValueError, "`eta`"),
    "clock": (lambda: tuning.mamba(langevin, ARMS, 10.0, clock="hours"), ValueError, "`clock`.*'hours'"),
    "metric": (lambda: tuning.mamba(langevin, ARMS, 10.0, metric="best"), ValueError, "`metric`.*'best'"),
    "window": (lambda: tuning.mamba(langevin, ARMS, 10.0, window="last"), ValueError, "`window`"),
    "thin": (lambda: tuning.mamba(langevin, ARMS, 10.0, thin=0), ValueError, "`thin`"),
    "nan": (
        lambda: tuning.mamba(langevin, ARMS[:2], 100, metric=lambda x, model: math.nan, clock="steps", seed=1),
        pdmp.SamplingError,
        "All 2 arms failed: the metric is NaN",
    ),
    "noise": (lambda: tuning.grid_search(langevin, ARMS, 50, start_noise=-1.0), ValueError, "`start_noise`.*-1.0"),
    "noise off nothing": (
        lambda: tuning.grid_search(lambda: discrete.SGLD(FLAT, 0.1), [{}], 50, clock="steps", start_noise=1.0),
        ValueError,
        "`initial` must be given",
    ),
    "loss": (lambda: tuning.held_out([0, 1], [[1.0], [2.0]], loss="hinge"), ValueError, "`loss`.*'hinge'"),
    "gaps": (lambda: tuning.failure_bound([0.0], 1.0, 1.0), ValueError, "`gaps`"),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_one_line(name):
    make, kind, message = CASES[name]
    with pytest.raises(kind, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.exact
def test_a_setting_begins_where_it_is_told():
    """Not at the initial point of the model."""
    law, start = Gaussian([0.0, 0.0], np.eye(2)), np.array([8.0, -4.0])
    options = ("data", "ksd", 10, 1, "all", None)
    arm = competition._Arm(lambda step: discrete.SGD(law, step=step), {"step": 0.5}, 0, start, options)
    arm._go_on({"steps": 3})
    assert np.array_equal(arm.run.records[0].x[:2], start)
