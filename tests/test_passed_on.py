"""What `compare`, `sample` and `tune` pass on, by spies, and numbers of a comparison that were computed by hand."""

import concurrent.futures
import math
import types

import matplotlib
import numpy as np
import pytest
from sklearn.metrics import log_loss

import discrete
import pdmp
from pdmp import cli, comparison, errors, plots, tuning
from pdmp.comparison import Comparison, Reference
from pdmp.native.messages import announce
from pdmp.plots import comparisons
from tests.checks import minibatch_law, plain_only
from tests.commands import Spy, command, here, small, spies  # noqa: F401
from tests.registry import declared, installed  # noqa: F401

pytestmark = [pytest.mark.exact, plain_only]


class Seen(Exception):
    """Raised by a spy that has seen enough."""


# -- the command -------------------------------------------------------------------------------------------------

CALL = "small.csv --target label --seed 7 "


def check_model(model):
    """It has the training rows of the table, and no others, and independent priors N(0, 1)."""
    found = pdmp.data.read("small.csv", "label")
    assert np.array_equal(model.X, found.train.X) and np.array_equal(model.y, found.train.y)
    assert model.n_data == 96 and np.array_equal(model.precision, np.ones(3))
    assert list(model.variables) == ["intercept", "a", "b"]


def check_mode(mode, model):
    assert np.abs(model.gradient(mode)).max() < 1e-6


@pytest.mark.parametrize(("quick", "ess", "passes"), [("", 3_000, 10_000), ("--quick", 1_000, 1_000)])
def test_compare_passes_on(quick, ess, passes, small, command, spies):  # noqa: F811
    code, out, err = command(f"compare {CALL} --samplers BPS --out there {quick}")
    assert (code, err) == (2, "pdmp: seen\n")
    (model, mode, classes), rest = spies["configured"].last
    check_model(model)
    check_mode(mode, model)
    assert rest == {} and classes == {"BPS": pdmp.BPS}
    (processes,), told = spies["compare"].only
    assert processes is spies["configured"].result or processes == spies["configured"].result
    X, y = told.pop("test")
    found = pdmp.data.read("small.csv", "label")
    assert np.array_equal(X, found.test.X) and np.array_equal(y, found.test.y) and len(y) == 24
    rows = {tuple(x) for x in model.X}
    assert len(rows) == 96 and not any(tuple(x) in rows for x in X)  # what is held out was not seen
    assert told.pop("say") is cli._say
    assert told == {
        "data_passes": passes,
        "reference": ess,
        "seed": 7,
        "names": ("intercept", "a", "b"),
        "title": f"small, {passes:,} data passes a chain",
        "executor": None,
    }
    assert (small / "there").is_dir()


def test_compare_keeps_the_rows_that_were_asked_for(small, command, spies):  # noqa: F811
    rows = dict.fromkeys(["SGBD vanilla", "SGBD corrected", "SGBD extreme"], types.SimpleNamespace())
    spies["configured"].result = rows
    command(f"compare {CALL} --samplers 'SGBD corrected, auto' --data-passes 12.5")
    ((processes,), told) = spies["compare"].only
    assert list(processes) == ["SGBD corrected", "auto"] and told["data_passes"] == 12.5
    assert processes["auto"] is spies["configured"].last[0][0]


BUDGETS = {
    "": {"data_passes": 10_000.0},
    "--data-passes 30": {"data_passes": 30.0},
    "--gradients 40 --ess 50": {"gradients": 40.0, "ess": 50.0},
    "--ess 60 --rhat 1.1": {"ess": 60.0, "rhat": 1.1},
}


@pytest.mark.parametrize("given", BUDGETS)
def test_sample_passes_on(given, small, command, spies):  # noqa: F811
    spies["configured"].result = rows = {"BPS": object()}
    assert command(f"sample BPS {CALL} --chains 3 {given}")[0] == 2
    (model, mode, classes), _ = spies["configured"].last
    check_model(model)
    assert classes == {"BPS": pdmp.BPS}
    (process,), told = spies["sample"].only
    assert process is rows["BPS"] and told.pop("initial") is mode
    check_mode(mode, model)
    asked = {name: value for name, value in told.items() if value is not None}
    assert asked == BUDGETS[given] | {"chains": 3, "seed": 7, "warmup": 0.1}


@pytest.mark.parametrize(("given", "budget", "metric"), [("", 1_000, "ksd"), ("--budget 30 --metric fssd", 30, "fssd")])
def test_tune_passes_on(given, budget, metric, small, command, spies):  # noqa: F811
    assert command(f"tune SGLD {CALL} --out there {given}")[2].endswith("pdmp: seen\n")
    (make, arms, spent), told = spies["mamba"].only
    assert spent == budget and told.pop("executor") is None
    model = make(**arms[0]).model
    check_model(model)
    check_mode(told.pop("initial"), model)
    told.pop("say")("1 of 2")
    assert told == {"metric": metric, "clock": "data", "seed": 7}
    steps = {arm["size"]: [a["step"] for a in arms if a["size"] == arm["size"]] for arm in arms}
    assert sorted(steps) == [2, 9]  # a hundredth and a tenth of 96, at least 2
    for arm in arms:
        process = make(**arm)
        assert isinstance(process, discrete.SGLD) and process.provider.size == arm["size"]
        assert process.schedule.step(0) == arm["step"]
    for each in steps.values():
        np.testing.assert_allclose(np.divide(each, each[3]), [0.125, 0.25, 0.5, 1.0, 2.0, 4.0])


@pytest.mark.parametrize(
    ("name", "spy"), [("compare --samplers BPS", "compare"), ("sample BPS", "sample"), ("tune SGLD", "mamba")]
)
def test_without_a_seed_it_is_0(name, spy, small, command, spies):  # noqa: F811
    command(f"{name} small.csv --target label")
    assert spies[spy].only[1]["seed"] == 0


# -- samplers of a comparison --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "size"), [(15, 15), (40, 20), (150, 20), (1_000, 100), (9_000, 500)])
def test_the_size_of_mini_batches(n, size):
    """A tenth of the data, from 20 to 500, and never more than there are."""
    model = pdmp.models.LogisticRegression(np.linspace(-1.0, 1.0, n)[:, None], np.arange(n) % 2)
    seen = {}

    class Kept(pdmp.interfaces.Recipe):
        def processes(self, sampler, target, batch, mode, error):
            seen.update(sampler=sampler, model=target, batch=batch, mode=mode, error=error)
            return {"kept": discrete.SGLD(batch, step=1e-3)}

    cls, mode = types.SimpleNamespace(recipe=Kept()), np.array([0.25])
    found = comparison.configured(model, mode, {"kept": cls})
    assert list(found) == ["kept"] and seen["sampler"] is cls and seen["model"] is model and seen["mode"] is mode
    assert (seen["batch"].size, seen["batch"].draw, seen["batch"].model) == (size, "distinct", model)
    assert seen["error"] == 0.1
    comparison.configured(model, mode, {"kept": cls}, size=3)
    assert seen["batch"].size == 3


def test_the_step_of_a_comparison_makes_a_variance_wrong_by_a_tenth():
    """By the closed law of SGLD with batches without replacement in one dimension."""
    rng = np.random.default_rng(4)
    a = rng.standard_normal((60, 1))
    model = pdmp.models.LinearGaussian(a, a[:, 0] + rng.standard_normal(60), prior_scale=2.0)
    mode = model.mode()
    process = comparison.configured(model, mode, {"SGLD": discrete.SGLD})["SGLD"]
    _, variance = minibatch_law(model, 20, True, process.schedule.step(0))
    assert variance * model.hessian(mode)[0, 0] - 1.0 == pytest.approx(0.1, rel=0.02)  # the noise is taken at the mode


# -- the reference -------------------------------------------------------------------------------------------------


class Told:
    """A run that says what it is told to; one coordinate is an array of length one."""

    def __init__(self, mean=0.0, var=1.0, ess=1_000.0, sd_ess=None, rhat=1.0, cov=None, violations=0):
        self._mean, self._var, self._cov = np.atleast_1d(mean), np.atleast_1d(var), cov
        self._ess, self._sd_ess, self._rhat = ess, ess if sd_ess is None else sd_ess, rhat
        self.stats = {"data_passes": 600.0, "bound_violations": violations}
        self.asked = []

    def mean(self):
        return self._mean

    def var(self):
        return self._var

    def cov(self):
        return np.diag(self._var) if self._cov is None else self._cov

    def ess(self, method="mean"):
        return np.broadcast_to(self._ess if method == "mean" else self._sd_ess, self._mean.shape)

    def rhat(self):
        return np.full(self._mean.shape, self._rhat)

    def draws(self, n):
        self.asked.append(n)
        return np.arange(3.0 * n * len(self._mean)).reshape(3, n, -1)


def test_the_two_runs_of_a_reference(monkeypatch):
    covariance = np.array([[1.0, 0.6], [0.6, 4.0]])
    model = pdmp.models.Gaussian([3.0, -1.0], np.linalg.inv(covariance))
    one = Told([3.0, -1.0], [1.0, 4.0], 400.0, rhat=1.004, cov=covariance)
    two = Told([3.1, -0.6], [1.0, 4.0], np.array([100.0, 100.0]), violations=2)
    runs, seen = [one, two], []

    def long_enough(*args):
        seen.append(args)
        return runs.pop(0)

    pool = __import__("concurrent.futures").futures.ThreadPoolExecutor(1)
    monkeypatch.setattr(comparison, "_long_enough", long_enough)
    found = pdmp.reference(model, ess=900, seed=5, chains=3, executor=pool)
    # Starts are over-dispersed: twice the standard deviation of the posterior around its mode.
    z = np.random.default_rng(5).standard_normal((3, 2))
    starts = [3.0, -1.0] + 2.0 * z @ np.linalg.cholesky(covariance).T
    (first, at, ess, seed, where, _, _), (second, same, less, other, there, _, _) = seen
    assert type(first) is pdmp.HMC and type(second) is pdmp.BPS
    np.testing.assert_allclose(first.metric.root @ first.metric.root.T, covariance)
    assert first.model is model and second.model is model
    np.testing.assert_allclose(at, starts, rtol=1e-9)
    assert same is at and (ess, less) == (900, 225) and (seed, other) == (5, 6) and where is there is pool
    # By hand: standard errors are √(1/400 + 1/100) and √(4/400 + 4/100).
    assert found.max_z == pytest.approx(max(0.1 / math.sqrt(0.0125), 0.4 / math.sqrt(0.05)))
    assert found.ess == 400.0 and found.rhat == 1.004
    np.testing.assert_allclose(found.sd, [1.0, 2.0])
    np.testing.assert_allclose(found.cov, covariance)
    assert one.asked == [300] and found.draws.shape == (900, 2)  # `ess` in all, of three chains
    assert found.text == (
        "HMC in 3 chains of 200 data passes, R-hat 1.004, min ESS 400; "
        "BPS agrees: max |z| = 1.8; 2 bound violations of BPS"
    )
    runs[:] = [Told([3.0, -1.0], [1.0, 4.0], 400.0), Told([3.0, 0.6], [1.0, 4.0], 100.0)]
    with pytest.raises(pdmp.SamplingError, match=r"disagree: max \|z\| = 7.2"):
        pdmp.reference(model, seed=5, chains=3, mode=np.array([3.0, -1.0]))


#: (R-hat, ESS of the means, of the sds), and whether that is enough for `ess` = 400
DEMANDS = [((1.0101, 1e4, 1e4), False), ((1.0099, 400, 100), True), ((1.0, 399, 1e4), False), ((1.0, 1e4, 99), False)]


@pytest.mark.parametrize(("says", "enough"), DEMANDS)
def test_what_a_reference_demands(says, enough, monkeypatch):
    rhat, ess, sd_ess = says
    first, good = Told(ess=ess, sd_ess=sd_ess, rhat=rhat), Told(ess=1e5)
    sampled, extended, said = Spy(first), Spy(good), []
    monkeypatch.setattr(comparison, "sample", sampled)
    monkeypatch.setattr(comparison, "extend", extended)
    monkeypatch.setattr(comparison, "_prepare", Spy())
    starts = np.zeros((4, 1))
    process = pdmp.ZigZag(pdmp.models.Gaussian([0.0], [1.0]))
    found = comparison._long_enough(process, starts, 400, 9, "pool", said.append)
    args, told = sampled.only
    assert args == (process,) and told.pop("initial") is starts
    assert told == {
        **{"proposals": 2_000, "warmup": 0.2, "chains": 4, "seed": 9, "progress": False, "executor": "pool"}
    }
    assert found is (first if enough else good) and len(said) == 2 - enough
    if not enough:
        assert extended.only == ((first,), {"proposals": 4_000, "executor": "pool"})
        extended.calls.clear()
        extended.result = first
        with pytest.raises(pdmp.SamplingError, match=r"after 4,096,000 proposals of ZigZag in each chain"):
            comparison._long_enough(process, starts, 400, 9, None, said.append)
        assert [told["proposals"] for _, told in extended.calls] == [2_000 * 2**k for k in range(1, 12)]


def test_a_run_as_the_reference():
    """Its own moments, of all chains; draws as many of each as of the one with the fewest events."""
    law = pdmp.models.Gaussian([1.0, -1.0], [[1.0, 0.3], [0.3, 4.0]])
    run = pdmp.sample(pdmp.BPS(law, thinning="affine"), time=60.0, chains=2, seed=3)
    found = comparison.as_reference(run, 2)
    for name in ("mean", "sd", "cov"):
        np.testing.assert_array_equal(getattr(found, name), getattr(run, name)())
    n = int(run.events.min())
    np.testing.assert_array_equal(found.draws, run.draws(n).reshape(-1, 2))
    assert len(set(run.events)) == 2 and n < comparison.DRAWS
    ess, rhat = run.ess(), run.rhat()
    assert (found.ess, found.rhat) == (ess.min(), rhat.max()) and math.isnan(found.max_z)
    assert len(set(ess)) == len(set(rhat)) == 2
    assert found.text == f"the run given, R-hat {rhat.max():.3f}, min ESS {ess.min():,.0f}"
    with pytest.raises(ValueError, match="`reference` has dimension 2, the target 3"):
        comparison.as_reference(run, 3)
    with pytest.raises(ValueError, match="`reference` has dimension 2, the target 1"):
        comparison.as_reference(found, 1)
    with pytest.raises(TypeError, match="`reference` must be what pdmp.reference"):
        comparison.as_reference(3, 2)


# -- the comparison ------------------------------------------------------------------------------------------------

LAW = pdmp.models.Gaussian([1.0, -1.0], [[1.0, 0.3], [0.3, 4.0]])
COVARIANCE = np.linalg.inv([[1.0, 0.3], [0.3, 4.0]])
TRUTH = Reference(
    np.array([1.0, -1.0]), np.sqrt(np.diag(COVARIANCE)), COVARIANCE, np.zeros((10, 2)), 1.0, 2_000.0, text="known"
)


def test_compare_runs_all_with_the_same_arguments(monkeypatch):
    seen, asked = [], Spy(TRUTH)
    real = comparison.sample

    def spy(process, **options):
        if options["progress"] is False and "events" in options:  # compiles
            return None
        seen.append((process, options))
        return real(process, **options)

    monkeypatch.setattr(comparison, "sample", spy)
    monkeypatch.setattr(comparison, "_reference", asked)
    processes = {"BPS": pdmp.BPS(LAW, thinning="affine"), "SGLD": discrete.SGLD(LAW, step=0.1)}
    said = []
    table = pdmp.compare(processes, data_passes=30, seed=11, chains=3, warmup=0.25, say=said.append)
    ((model, ess, first, chains, mode, executor, _, begin), _) = asked.only
    assert model is LAW and (ess, first, chains, executor) == (3_000, 0, 4, None) and begin.__name__ == "begin"
    np.testing.assert_allclose(mode, [1.0, -1.0], atol=1e-8)
    initial = [1.0, -1.0] + np.random.default_rng([11, 1]).standard_normal((3, 2)) @ np.linalg.cholesky(COVARIANCE).T
    assert [process for process, _ in seen] == list(processes.values())
    for _, options in seen:
        np.testing.assert_allclose(options.pop("initial"), initial, rtol=1e-7)
        assert options == {
            **{"data_passes": 30, "warmup": 0.25, "chains": 3, "seed": 11},
            **{"covariance": False, "progress": False, "executor": None},
        }
    assert said == [f"{label}: 30 data passes in 3 chains" for label in processes]
    # What is counted as left out, and where the curves begin: at one and a half times the warm-up.
    assert any("averages over 3, 25 % of each left out as warm-up" in note for note in table.notes)
    assert table.notes[0] == f"reference: known; mean err {math.sqrt(2.0 / math.pi / 2_000.0):.3f}"
    for label, row in zip(processes, table.rows, strict=True):
        passes, _ = table.errors_by_pass[label]
        np.testing.assert_allclose(passes / row["data_passes"], np.geomspace(0.375, 1.0, 14))
        assert table.draws[label].shape == (3, 1_000, 2)
    table = pdmp.compare(processes, data_passes=30, reference=TRUTH, seed=11, initial=[2.0, 2.0])
    assert np.array_equal(seen[-1][1]["initial"], [2.0, 2.0]) and seen[-1][1]["warmup"] == 0.02
    assert seen[-1][1]["chains"] == 4 and len(asked.calls) == 1
    # A number is the effective draws of the reference, which then has the seed of the comparison and chains of its own.
    # Where the rows run, the reference runs too, and both say what they do.
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        where = {"initial": [2.0, 2.0], "executor": pool, "say": said.append}
        pdmp.compare(processes, data_passes=30, reference=np.int64(700), seed=11, chains=3, **where)
    assert asked.last[0][:4] == (LAW, 700.0, 11, 4) and asked.last[0][5] is seen[-1][1]["executor"] is pool
    assert asked.last[0][6] == where["say"]
    np.testing.assert_allclose(asked.last[0][4], [1.0, -1.0], atol=1e-8)


def test_what_other_processes_are_given_to_compile(monkeypatch):
    """Each process from where it starts, once something has begun to compile; and this one waits for each."""
    made, said = [], []

    class Others:
        def __init__(self, function, calls):
            self.calls = calls
            made.append(self)
            assert function is comparison._prepare

        def __enter__(self):
            return self

        def __exit__(self, *_):
            said.append("end")

        def begin(self):
            said.append("begin")

        def wait(self, label, say):
            said.append(f"wait {label}")
            say("waited")

    def sampled(process, **options):
        if "events" in options:
            announce(None)
        return real(process, **options)

    real = comparison.sample
    monkeypatch.setattr(comparison, "Ahead", Others)
    monkeypatch.setattr(comparison, "sample", sampled)
    processes = {
        "auto": LAW,
        "ZigZag": pdmp.ZigZag(LAW, thinning="affine"),
        "BPS": pdmp.BPS(LAW, thinning="affine"),
        "SGLD": discrete.SGLD(LAW, step=0.1),
    }
    told = []
    call = {"data_passes": 4_000, "reference": 50, "seed": 11, "chains": 1, "initial": [[2.0, 3.0]]}
    pdmp.compare(processes, **call, say=told.append)
    (others,) = made
    # Of what comes last here first, but BPS is what the reference needs second, and a model's sampler what it begins
    # with.
    assert list(others.calls) == ["BPS", "SGLD", "ZigZag", "auto"]
    for label, (process, start) in others.calls.items():
        assert process is processes[label] and np.array_equal(start, [2.0, 3.0])
    # The two samplers of the reference, then each row.
    expected = ["begin", "begin", "wait auto", "begin", "wait ZigZag", "begin", "wait BPS", "begin", "wait SGLD"]
    assert said == [*expected, "begin", "end"]
    assert [text for text in told if text.endswith("waited")] == [f"{label}: waited" for label in processes]
    which = ["reference, HMC", "reference, BPS", *processes]
    compiling = "compiling (once; the machine code is kept on disk)"
    assert [text for text in told if "compiling" in text] == [f"{what}: {compiling}" for what in which]
    del said[:], made[:]
    with pytest.raises(ZeroDivisionError):
        pdmp.compare(processes, data_passes=30, reference=TRUTH, seed=11, initial=[2.0, 3.0], say=lambda _: 1 / 0)
    assert said[-1] == "end" and np.array_equal(made[0].calls["BPS"][1], [2.0, 3.0])


def test_what_a_sampler_warns_of_is_a_note_and_where_it_ran_an_error(monkeypatch):
    real, failing = comparison.sample, []

    def loud(process, **options):
        if "events" in options:
            return None
        if failing:
            raise failing[0]
        errors.warn("it is odd")
        return real(process, **options)

    monkeypatch.setattr(comparison, "sample", loud)
    call = {"data_passes": 20, "reference": TRUTH, "chains": 2, "seed": 1, "initial": [2.0, 2.0]}
    processes = {name: pdmp.BPS(LAW, 1.0 + k, thinning="affine") for k, name in enumerate(("one", "other"))}
    notes = pdmp.compare(processes, **call).notes
    assert [note for note in notes if "odd" in note] == ["one: it is odd", "other: it is odd"]
    failing.append(pdmp.SamplingError("it diverged", run="what there was", chain=1))
    table = pdmp.compare(processes, **call)
    assert all(math.isnan(row["mean_error"]) for row in table.rows) and "one failed: it diverged" in table.notes
    failing[0] = pdmp.SamplingError("the cluster was lost", run="what there was")
    with pytest.raises(pdmp.SamplingError, match="the cluster was lost"):
        pdmp.compare(processes, **call)


def test_what_the_automatic_sampler_has_prepared_counts(monkeypatch):
    """Its gradients are off the budget of each chain, and no warm-up follows; its seconds are added."""
    process, real, seen = pdmp.BPS(LAW, thinning="affine"), comparison.sample, []
    process.prepared = process.prepared._replace(gradients=60)

    def spy(process, **options):
        if "events" not in options:
            seen.append((options["initial"], options["data_passes"], options["warmup"]))
        return real(process, **options)

    times = iter([10.0, 13.5])
    monkeypatch.setattr(comparison, "auto", lambda model, **options: process)
    monkeypatch.setattr(comparison, "sample", spy)
    monkeypatch.setattr(comparison, "perf_counter", lambda: next(times))
    monkeypatch.setattr(comparison, "_row", lambda *given: seen.append(given[-2:]) or {"sampler": given[0]})
    pdmp.compare({"auto": LAW}, data_passes=80, reference=TRUTH, chains=2, seed=1, initial=[2.0, 2.0])
    assert seen == [(None, 50.0, 0.0), (30.0, 3.5)]


def test_the_loss_is_that_of_the_rows_held_out():
    """The posterior mean of the predicted probability, for each chain, from the path after the warm-up."""
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((50, 2)), (np.arange(50) % 2).astype(float)
    model = pdmp.models.LogisticRegression(X, y, prior_scale=1.0)
    test = rng.standard_normal((9, 2)), np.array([1.0, 0, 0, 1, 1, 0, 1, 0, 0])
    truth = Reference(*TRUTH.__dict__.values())
    call = {"data_passes": 60, "reference": truth, "seed": 1, "chains": 2, "initial": [0.0, 0.0]}
    table = pdmp.compare({"BPS": pdmp.BPS(model)}, test=test, **call)
    run = pdmp.sample(pdmp.BPS(model), data_passes=60, warmup=0.02, seed=1, chains=2, initial=[0.0, 0.0])
    losses = []
    for x in run.draws(500):
        p = (1.0 / (1.0 + np.exp(-(x @ test[0].T)))).mean(axis=0)
        losses.append(log_loss(test[1], p))
    assert table.rows[0]["log_loss"] == pytest.approx(np.mean(losses), rel=1e-9)
    assert math.isnan(pdmp.compare({"BPS": pdmp.BPS(model)}, **call).rows[0]["log_loss"])
    # With so many rows that fewer draws are evaluated: 2,000,000 predictions of a chain, at least 50 draws.
    seen = []

    class Counted(pdmp.models.LogisticRegression):
        def predict(self, x, X):
            seen.append(len(x))
            return np.full((len(x), len(X)), 0.5)

    counted = Counted(X, y, prior_scale=1.0)
    for rows, draws in ((100, 500), (10_000, 200), (80_000, 50)):
        assert comparison._log_loss(run, counted, (np.zeros((rows, 2)), np.ones(rows))) == pytest.approx(math.log(2.0))
        assert seen[-1] == draws


def test_scores_by_hand():
    means, sds = np.array([[1.5, -1.0], [1.0, -3.0]]), np.array([[1.0, 0.5], [2.0, 1.0]])
    truth = Reference(np.array([1.0, -1.0]), np.array([1.0, 0.5]), np.eye(2), np.zeros((1, 2)), 1.0, 1.0)
    assert comparison._scores(means, sds, np.array([30.0, 50.0]), 60.0, truth) == {
        "min_ess": 30.0,
        "median_ess": 40.0,
        "ess_per_pass": 0.5,
        "mean_error": (0.5 + 0.0 + 0.0 + 4.0) / 4.0,
        "max_mean_error": (0.5 + 4.0) / 2.0,
        "sd_error": (0.0 + 0.0 + 1.0 + 1.0) / 4.0,
    }


def test_passes_seconds_and_effective_draws_are_those_of_one_chain():
    run = pdmp.sample(pdmp.BPS(LAW, thinning="affine"), data_passes=80, warmup=0.1, chains=2, seed=3)
    row = comparison._row("BPS", run.process, run, TRUTH, LAW, None, 5.0, 0.25)
    assert row["data_passes"] == run.stats["data_passes"] / 2 + 5.0
    assert row["seconds"] == run.stats["seconds"] / 2 + 0.25
    assert row["events"] == run.events.mean() and row["bound_violations"] == 0.0
    assert row["min_ess"] == run.ess().min() / 2 and row["ess_per_pass"] == row["min_ess"] / row["data_passes"]
    path = comparison._stretch(run, rows=7)
    times = run.trajectories[0].times[:8]
    assert np.array_equal(path.positions, run.trajectories[0].at(times)) and path.kind == "linear"
    rate = run.records[0].counts[pdmp.process.DATA] / run.end[0]  # no sum over data: a gradient is one pass
    np.testing.assert_allclose(path.passes, rate * times)
    np.testing.assert_allclose(path.events, rate * times)


# -- the picture ---------------------------------------------------------------------------------------------------


def written():
    """A comparison that was written down, not run."""
    rng = np.random.default_rng(0)
    truth = Reference(
        np.array([1.0, -2.0]), np.array([0.5, 2.0]), np.diag([0.25, 4.0]), rng.standard_normal((50, 2)), 1.0, 800.0
    )
    curves = {
        "moving": (np.array([1.0, 10.0, 80.0]), np.array([0.5, 0.2, 0.07])),
        "ticking": (np.array([1.0, 10.0, 100.0]), np.array([0.6, 0.4, 0.3])),
    }
    paths = {}
    for name, kind, n in (("moving", "linear", 400), ("ticking", "constant", 900)):
        x = rng.standard_normal((n, 2))
        paths[name] = comparison.Path(x, 0.1 * np.arange(n), 0.1 * np.arange(n), kind)
    draws = {name: rng.standard_normal((2, 30, 2)) for name in paths}
    return Comparison([], curves, truth, ["a", "b"], draws, paths)


@pytest.fixture(scope="module")
def picture():
    """That comparison and its picture."""
    table = written()
    return table, plots.compare(table)


def test_the_paths_in_the_picture(picture):
    table, figure = picture
    moving, ticking = figure.axes[:2]
    # As far as the path with the most frequent events in continuous time has gone after 150 of them: 15 passes.
    (line, start), inside = moving.lines, table.paths["moving"].positions
    assert np.array_equal(line.get_xydata()[:-1], inside[:151])
    np.testing.assert_allclose(line.get_xydata()[-1], inside[150], atol=1e-9)
    assert np.array_equal(start.get_xydata()[0], inside[0])
    assert np.array_equal(ticking.lines[0].get_xydata(), table.paths["ticking"].positions[:151])
    assert moving.get_xlim() == pytest.approx((1.0 - 4.2 * 0.5, 1.0 + 4.2 * 0.5))
    assert moving.get_ylim() == pytest.approx((-2.0 - 4.2 * 2.0, -2.0 + 4.2 * 2.0))
    assert any("Paths over 15 data passes" in text.get_text() for text in figure.texts)
    # A fixed-step path that is stored for 4 passes only: all paths are shown so far.
    table, other = written(), matplotlib.pyplot.figure()
    table.paths["ticking"] = comparison.Path(inside[:41], 0.1 * np.arange(41), 0.1 * np.arange(41), "constant")
    colours = dict.fromkeys(table.paths, "black")
    grid = other.add_gridspec(1, 4)
    assert comparisons._show_paths(other, grid, table, list(colours), colours, [0, 1]) == pytest.approx(4)
    # Of two in continuous time as far as the one with the most frequent events has gone, in part of a segment.
    table = written()
    table.paths |= {"rare": comparison.Path(inside, 0.7 * np.arange(400), 0.7 * np.arange(400), "linear")}
    colours["rare"] = "black"
    assert comparisons._show_paths(other, grid, table, list(colours), colours, [1, 0]) == pytest.approx(15)
    drawn = other.axes[-1].lines[0].get_xdata()
    assert len(drawn) == 23 and np.array_equal(drawn[:22], inside[:22, 1])
    assert drawn[22] == pytest.approx(inside[21, 1] + (15 - 14.7) / 0.7 * (inside[22, 1] - inside[21, 1]))


def test_the_coordinates_in_the_picture():
    """The two most correlated, of either sign, and the most skewed of the others."""
    cov = np.diag([1.0, 4.0, 9.0, 1.0])
    cov[1, 3] = cov[3, 1] = -0.9 * 2.0
    cov[0, 2] = cov[2, 0] = 0.8 * 3.0
    draws = np.random.default_rng(0).standard_normal((400, 4))
    draws[:, 2] = 3.0 * (draws[:, 2] ** 2 - 1.0) / math.sqrt(2.0)
    draws[:, 3] = -np.exp(2.0 * draws[:, 3])  # more skewed, but chosen already
    truth = Reference(np.zeros(4), np.sqrt(np.diag(cov)), cov, draws, 1.0, 1.0)
    assert comparisons._telling_coordinates(truth) == [1, 3, 2]


# -- tuning --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("clock", "budget"), [("data", {"data_passes": 7.5}), ("seconds", {"seconds": 7.5})])
def test_the_unit_of_a_budget(clock, budget, monkeypatch):
    module = __import__("sys").modules["pdmp.tuning.competition"]
    told = Spy(Seen())
    monkeypatch.setattr(module, "sample", told)
    with pytest.raises(Seen):
        tuning.grid_search(lambda step: discrete.SGLD(LAW, step), [{"step": 0.1}], 7.5, clock=clock, seed=1, workers=1)
    assert {name: told.only[1][name] for name in budget} == budget


@pytest.mark.parametrize("metric", ["ksd", pytest.param("fssd", marks=pytest.mark.slow)])
def test_the_metrics_are_the_discrepancies(metric):
    module = __import__("sys").modules["pdmp.tuning.competition"]
    x = np.random.default_rng(0).standard_normal((40, 2))
    s = -(x - [1.0, -1.0]) @ np.array([[1.0, 0.3], [0.3, 4.0]])
    function, name = module._metric(metric)
    assert name == metric
    assert function(x, LAW) == pytest.approx(getattr(pdmp.diagnostics, metric)(x, s), rel=1e-12)
