"""The comparison against what its parts say one by one, its reference against known laws, and the pictures."""

import math

import numpy as np
import pytest

import discrete
import pdmp
from pdmp import comparison, plots
from pdmp.plots.style import apart


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(200), rng.standard_normal((200, 2)) @ [[1.0, 0.8], [0.0, 0.6]]])
    y = rng.random(200) < 1.0 / (1.0 + np.exp(-X @ [0.3, 1.0, -0.5]))
    return pdmp.models.LogisticRegression(X, y, prior_scale=1.5)


@pytest.fixture(scope="module")
def reference(model):
    return pdmp.reference(model, ess=2_000, seed=5)


@pytest.fixture(scope="module")
def processes(model):
    batch = pdmp.gradients.Minibatch(model, size=20, draw="distinct")
    return {
        "Zig-Zag": pdmp.ZigZag(model),
        "stochastic": pdmp.SBPS(batch),
        "Langevin": discrete.SGLD(batch, step=2e-3),
        "extrapolated": discrete.SGRRLD(batch, step=4e-3),
    }


@pytest.fixture(scope="module")
def held_out(model):
    return model.X[::3], model.y[::3]


@pytest.fixture(scope="module")
def table(model, processes, reference, held_out):
    return pdmp.compare(processes, data_passes=400, reference=reference, seed=1, chains=2, test=held_out, title="here")


# -- the reference ---------------------------------------------------------------------------------------------


@pytest.mark.exact
@pytest.mark.parametrize("prior_scale", [1.5, [0.5, 2.0, 7.0], np.inf])
def test_whitening_keeps_the_posterior(model, prior_scale):
    model = pdmp.models.LogisticRegression(model.X, model.y, prior_scale=prior_scale)
    mode = model.mode()
    target, V = comparison._whitened(model, model.hessian(mode))
    z = np.linalg.solve(V, mode)
    assert np.allclose(target.hessian(z), np.eye(3), atol=1e-8)
    for shift in np.random.default_rng(1).standard_normal((5, 3)):
        assert target.potential(z + shift) == pytest.approx(model.potential(V @ (z + shift)), rel=1e-12)


def test_reference_of_a_known_law():
    """Means, sds and the correlation of a Gaussian, in standard errors of independent draws as many as its ESS."""
    covariance = np.array([[1.0, 0.6], [0.6, 4.0]])
    truth = pdmp.reference(pdmp.models.Gaussian([3.0, -1.0], np.linalg.inv(covariance)), ess=2_000, seed=2)
    assert truth.rhat < 1.01 and truth.ess >= 2_000 and truth.max_z < comparison.LARGEST_Z
    sd = np.sqrt(np.diag(covariance))
    assert np.all(np.abs(truth.mean - [3.0, -1.0]) < 5.0 * sd / math.sqrt(truth.ess))
    assert np.all(np.abs(truth.sd / sd - 1.0) < 5.0 / math.sqrt(2.0 * truth.ess / 4.0))
    assert truth.cov[0, 1] == pytest.approx(0.6, abs=0.3)
    assert truth.draws.shape[1] == 2 and "R-hat" in truth.text and "BPS agrees" in truth.text


def test_reference_of_a_logistic_regression(model, reference):
    """By importance sampling from the normal approximation, which is close to this posterior."""
    rng = np.random.default_rng(3)
    mode, n = model.mode(), 40_000
    root = np.linalg.cholesky(np.linalg.inv(model.hessian(mode)))
    z = rng.standard_normal((n, 3))
    x = mode + 1.1 * z @ root.T
    prior = 0.5 * np.sum((x / 1.5) ** 2, axis=1)
    margin = (2.0 * model.y - 1.0) * (x @ model.X.T)
    log_weight = -prior - np.logaddexp(0.0, -margin).sum(axis=1) + 0.5 * np.sum(z**2, axis=1)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    assert 1.0 / np.sum(weight**2) > 0.5 * n
    mean = weight @ x
    sd = np.sqrt(weight @ (x - mean) ** 2)
    assert np.all(np.abs(reference.mean - mean) < 5.0 * sd / math.sqrt(reference.ess))
    assert np.all(np.abs(reference.sd / sd - 1.0) < 0.08)
    assert np.all(np.abs(reference.draws.mean(axis=0) - mean) < 0.2 * sd)


def test_reference_that_does_not_converge(model, monkeypatch):
    monkeypatch.setattr(comparison, "LARGEST_RHAT", 0.5)
    monkeypatch.setattr(comparison, "range", lambda n: [0], raising=False)
    with pytest.raises(pdmp.SamplingError, match="did not converge: R-hat"):
        pdmp.reference(model)


def test_arguments_of_a_reference_and_starts_of_a_comparison(model, processes):
    with pytest.raises(TypeError, match="^`model` must be a model, got 'text'; of a function, `pdmp.models.from_func"):
        pdmp.reference("text")
    for options, name in [({"ess": -1}, "ess"), ({"ess": True}, "ess"), ({"chains": 0}, "chains")]:
        with pytest.raises(ValueError, match=f"^`{name}` must be a "):
            pdmp.reference(model, **options)
    for wrong in (0.5, np.zeros((3, 1)), [1j] * model.dim):
        with pytest.raises(ValueError, match="^`initial` must "):
            pdmp.compare(processes, initial=wrong, data_passes=1)
    with pytest.raises(ValueError, match="^`initial` must "):
        pdmp.auto(model, initial=[1j] * model.dim)


def test_references_that_disagree(model, monkeypatch):
    monkeypatch.setattr(comparison, "LARGEST_Z", 0.0)
    with pytest.raises(pdmp.SamplingError, match=r"disagree: max \|z\|"):
        pdmp.reference(model, ess=200)


# -- the numbers -----------------------------------------------------------------------------------------------


def test_extrapolated_row(model, processes, reference, table):
    row = next(r for r in table.rows if r["sampler"] == "extrapolated")
    mode = model.mode()
    root = np.linalg.cholesky(np.linalg.inv(model.hessian(mode)))
    initial = mode + np.random.default_rng([1, 1]).standard_normal((2, 3)) @ root.T
    told = {"data_passes": 400, "warmup": comparison.WARMUP, "chains": 2, "seed": 1}
    run = pdmp.sample(processes["extrapolated"], initial=initial, **told)
    error = []
    for path in (p.whole for p in run.trajectories):
        means = path.mean()
        error.append(np.abs(2.0 * means[:3] - means[3:] - reference.mean) / reference.sd)
    assert row["mean_error"] == pytest.approx(np.mean(error), rel=1e-9)
    assert table.errors_by_pass["extrapolated"][1][-1] == pytest.approx(row["mean_error"], rel=1e-9)


@pytest.mark.exact
def test_draws_of_a_whitened_reference_have_its_mean_and_covariance(monkeypatch):
    def short(process, starts, ess, seed, *_):
        return pdmp.sample(process, initial=starts, chains=len(starts), events=80, warmup=0.2, seed=seed)

    monkeypatch.setattr(comparison, "_long_enough", short)
    rng = np.random.default_rng(2)
    X = np.column_stack([np.ones(12), rng.standard_normal((12, 2)) @ [[1.0, 0.9], [0.0, 0.3]]])
    truth = pdmp.reference(pdmp.models.LogisticRegression(X, np.arange(12) % 2, prior_scale=1.5), ess=60, seed=2)
    z = np.linalg.solve(np.linalg.cholesky(truth.cov), (truth.draws - truth.mean).T)
    assert np.abs(z.mean(axis=1)).max() < 0.2 and np.abs(np.cov(z) - np.eye(3)).max() < 0.25


@pytest.mark.exact
@pytest.mark.slow
def test_a_comparison_in_other_processes_is_the_same():
    from tests.engine.helpers_executors import Elsewhere

    model, pool = pdmp.models.Gaussian([1.0, -1.0], [1.0, 4.0]), Elsewhere()
    call = {"data_passes": 60.0, "chains": 2, "seed": 1}
    truth = pdmp.reference(model, ess=40, seed=2, chains=2, executor=pool)
    assert pool.tasks >= 4  # of two samplers
    assert np.array_equal(truth.cov, pdmp.reference(model, ess=40, seed=2, chains=2).cov)
    here = pdmp.compare({"BPS": pdmp.BPS(model)}, reference=truth, **call)
    tasks = pool.tasks
    there = pdmp.compare({"BPS": pdmp.BPS(model)}, reference=truth, executor=pool, **call)
    assert pool.tasks >= tasks + 2
    for one, other in zip(here.rows, there.rows, strict=True):
        assert one | {"seconds": 0, "log_loss": 0} == other | {"seconds": 0, "log_loss": 0}
    with pytest.raises(TypeError, match="`executor` must be"):
        pdmp.compare({"BPS": pdmp.BPS(model)}, reference=truth, executor=4, **call)


def test_where_every_sampler_fails_nothing_is_drawn(reference, processes):
    broken = discrete.SGLD(processes["Langevin"].provider, step=1e300)
    nothing = pdmp.compare({"broken": broken}, data_passes=50, reference=reference, seed=1)
    with pytest.raises(ValueError, match="every sampler of this comparison failed"):
        plots.compare(nothing)


# -- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"processes": {}}, TypeError, "`processes` must be a dict of label to process"),
        ({"processes": ["BPS"]}, TypeError, "`processes` must be a dict"),
        ({"processes": {"a": pdmp.BPS}}, TypeError, "'a' must be a process such as .* got the class BPS"),
        ({"processes": {"a": 3}}, TypeError, "'a' must be a process such as .* got int"),
        ({"data_passes": 0}, ValueError, "`data_passes` must be positive and finite, got 0"),
        ({"data_passes": math.inf}, ValueError, "`data_passes` must be positive"),
        ({"names": ["a"]}, ValueError, "`names` must be 3 names"),
        ({"reference": "3"}, TypeError, "`reference` must be what pdmp.reference"),
        ({"reference": 0}, ValueError, "`reference` must be a positive number, got 0"),
        ({"reference": np.nan}, ValueError, "`reference` must be a positive number, got nan"),
        ({"test": (np.ones((4, 2)), np.ones(4))}, ValueError, r"`test` must be features \(n, 3\)"),
    ],
)
def test_bad_arguments(change, error, says, processes, reference):
    arguments = {"processes": processes, "data_passes": 10, "reference": reference, "seed": 1} | change
    with pytest.raises(error, match=says):
        pdmp.compare(arguments.pop("processes"), **arguments)


def test_bad_targets(model, reference):
    gaussian = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    with pytest.raises(ValueError, match="'b' has another one than 'a'"):
        pdmp.compare({"a": pdmp.BPS(model), "b": pdmp.BPS(gaussian)}, data_passes=10)
    with pytest.raises(ValueError, match="`reference` has dimension 3, the target 2"):
        pdmp.compare({"b": pdmp.BPS(gaussian)}, data_passes=10, reference=reference)
    with pytest.raises(TypeError, match="needs a model with `predict`; Gaussian has none"):
        pdmp.compare({"b": pdmp.BPS(gaussian)}, data_passes=10, test=(np.ones((4, 2)), np.ones(4)))


# -- pictures ----------------------------------------------------------------------------------------------------


def test_coordinates_that_a_picture_cannot_have(table):
    for wrong in ((0,), (0, 3), (0, 1, 2, 0)):
        with pytest.raises(ValueError, match="`coordinates` must be 2 or 3 of 0 … 2"):
            plots.compare(table, coordinates=wrong)


@pytest.mark.exact
def test_labels_are_moved_apart():
    rng = np.random.default_rng(0)
    for n in (1, 3, 8, 14):
        for wanted in (np.sort(rng.random(n)), np.full(n, 0.5), np.zeros(n)):
            places = np.array(apart(wanted, 0.06))
            assert np.all(np.diff(places) > 0.06 - 1e-9)
    assert apart(np.array([0.2, 0.8]), 0.06) == [0.2, 0.8]


@pytest.mark.parametrize(("passes", "warmup", "without"), [(4, 0.02, "HMC"), (40, 0.9, None), (30, 0.99, "HMC")])
def test_a_sampler_without_a_path_does_not_stop_the_others(passes, warmup, without, model, reference, processes):
    """A warm-up may leave nothing of few passes; errors are drawn of what it leaves, however little."""
    some = {"HMC": pdmp.HMC(model, step=0.1, duration=1.0), "Langevin": processes["Langevin"]}
    table = pdmp.compare(some, data_passes=passes, warmup=warmup, reference=reference, seed=1, chains=2)
    by_label = {row["sampler"]: row for row in table.rows}
    assert by_label.keys() == some.keys() == table.verdicts.keys()
    for label in some:
        assert math.isnan(by_label[label]["mean_error"]) == (label == without) == (label not in table.errors_by_pass)
    if without is not None:
        assert table.verdicts[without] == ("too short", "there is no path after the warm-up; give it more data passes")
    at, curve = table.errors_by_pass["Langevin"]
    assert np.all(np.diff(at) > 0.0) and np.all(np.isfinite(curve)) and at[-1] == pytest.approx(passes, rel=0.1)
    assert warmup * passes < at[0] < passes


@pytest.mark.parametrize(("when", "kept"), [("in it", 2), ("before it", 1), ("at once", 0)])
def test_ctrl_c_ends_a_comparison_with_what_was_measured(when, kept, model, reference, processes, monkeypatch):
    """And does not end one sampler only, so that each would need another."""
    sample, calls = comparison.sample, []

    def interrupted(process, **options):
        if "data_passes" not in options:  # for its compilation
            return sample(process, **options)
        calls.append(process)
        if when == "at once" or when == "before it" and len(calls) == 2:
            raise KeyboardInterrupt
        run = sample(process, **options)
        if len(calls) == 2:
            run.stopped = "interrupted"
        return run

    monkeypatch.setattr(comparison, "sample", interrupted)
    some = {name: processes[name] for name in ("Langevin", "stochastic", "Zig-Zag")}
    call = {"data_passes": 60, "reference": reference, "seed": 1, "chains": 2}
    if kept == 0:
        with pytest.raises(KeyboardInterrupt):
            pdmp.compare(some, **call)
        return
    table = pdmp.compare(some, **call)
    names = list(some)
    assert sorted(row["sampler"] for row in table.rows) == sorted(names[:kept]) == sorted(table.verdicts)
    assert any(text == f"The comparison was interrupted; left out: {', '.join(names[kept:])}." for text in table.notes)
    assert str(table) and sorted(table.paths) == sorted(table.draws) == sorted(names[:kept])


def test_a_failing_sampler_does_not_stop_the_others(model, reference, processes):
    broken = discrete.SGLD(processes["Langevin"].provider, step=1e300)
    made = pdmp.compare({"broken": broken, "Zig-Zag": pdmp.ZigZag(model)}, data_passes=50, reference=reference, seed=1)
    assert math.isnan(made.rows[0]["mean_error"]) and made.rows[1]["mean_error"] > 0.0
    assert list(made.errors_by_pass) == ["Zig-Zag"] and any(n.startswith("broken failed: ") for n in made.notes)
    assert " - " in repr(made)
    plots.compare(made)
    nothing = pdmp.compare({"broken": broken}, data_passes=50, reference=reference, seed=1)
    with pytest.raises(ValueError, match="every sampler of this comparison failed"):
        plots.compare(nothing)
