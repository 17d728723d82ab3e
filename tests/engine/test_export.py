"""What a run gives to others: draws for ArviZ, tables for pandas, quantiles, intervals and named parameters."""

import importlib.util
import sys
import types
import warnings
from importlib import metadata

import numpy as np
import pytest

import pdmp
from pdmp.diagnostics.effective_size import draws_ess
from pdmp.diagnostics.pooled import quantiles
from pdmp.diagnostics.summary import ENDS
from pdmp.engine import export
from pdmp.engine import result as result_module
from pdmp.models.derived import Derived
from tests.toys import Coupled, Ticks, Walls

pytestmark = pytest.mark.exact

needs_arviz = pytest.mark.skipif(importlib.util.find_spec("arviz") is None, reason="without ArviZ")
needs_pandas = pytest.mark.skipif(importlib.util.find_spec("pandas") is None, reason="without pandas")


def regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 2))
    return pdmp.models.PoissonRegression(X, rng.poisson(np.exp(X[:, 0])).astype(float))


def positive():
    """A model whose coordinate is a logarithm: tau = exp(x₀) with x ~ N(0, I)."""
    return pdmp.models.from_function(
        lambda x: (0.5 * x @ x, x),
        3,
        variables={"tau": (), "beta": (2,)},
        transforms={"tau": pdmp.models.transforms.Log()},
    )


def groups(data):
    """Names of an InferenceData's groups, or of the children of the tree that ArviZ 1.x has in its place."""
    return set(data.children if hasattr(data, "children") else data.groups())


# -- ArviZ ------------------------------------------------------------------------------------------------------------


@needs_arviz
@pytest.mark.slow
def test_groups_of_a_model_with_terms():
    import arviz

    model = regression()
    run = pdmp.sample(pdmp.ZigZag(model), events=300, chains=2, seed=1, warmup=0.1)
    data = run.to_arviz(50)
    assert {"posterior", "sample_stats", "observed_data", "log_likelihood"} <= groups(data)
    draws = run.draws(50)
    np.testing.assert_array_equal(data.posterior["coefficients"], draws)
    np.testing.assert_array_equal(data.observed_data["y"], model.y)
    likelihood = data.log_likelihood["y"].to_numpy()
    assert likelihood.shape == (2, 50, 25)
    np.testing.assert_allclose(likelihood[1, 7], model.log_likelihood(draws[1, 7], pointwise=True), rtol=1e-12)
    assert data.sample_stats["lp"][1, 7] == pytest.approx(-model.potential(draws[1, 7]), rel=1e-12)
    times = data.sample_stats["time"].to_numpy()
    for path, t, x in zip(run.trajectories, times, draws, strict=True):
        assert t[-1] == pytest.approx(path.end) and t[0] > path.warmup
        np.testing.assert_allclose(path.at(np.minimum(t, path.end)), x, atol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that so few draws determine little
        loo = arviz.loo(data)
    assert np.isfinite(loo.elpd if hasattr(loo, "elpd") else loo.elpd_loo)  # of ArviZ 1.x, and of 0.2x
    np.testing.assert_allclose(data.posterior.attrs["spacing"], (run.end - run.warmup) / 50)
    assert data.posterior.attrs["sampling_time"] == run.info["wall_seconds"] != run.stats["seconds"]
    assert (
        "ess_ratio" not in data.posterior.attrs
        and "pdmp.diagnostics.effective_draws(run)" in data.posterior.attrs["ess_note"]
    )
    assert "log_likelihood" not in groups(run.to_arviz(50, log_likelihood=False))


@needs_arviz
def test_large_log_likelihoods_only_if_asked_for(monkeypatch):
    run = pdmp.sample(pdmp.ZigZag(regression()), events=200, seed=1)
    monkeypatch.setattr(export, "NUMBERS", 20 * 25 - 1)
    data = run.to_arviz(20)
    assert "log_likelihood" not in groups(data) and "lp" not in data.sample_stats and "observed_data" in groups(data)
    assert run.to_arviz(20, log_likelihood=True).log_likelihood["y"].shape == (1, 20, 25)
    monkeypatch.setattr(export, "NUMBERS", 20 * 25)
    assert "log_likelihood" in groups(run.to_arviz(20))
    monkeypatch.setattr(type(run.process.model), "log_likelihood_size", 26, raising=False)
    assert "log_likelihood" not in groups(run.to_arviz(20))


@needs_arviz
def test_a_loaded_run_and_the_grid(tmp_path):
    model = regression()
    run = pdmp.sample(pdmp.ZigZag(model), events=500, chains=2, seed=1, store="grid", draws=30)
    used = min(int(r.grid.used[0]) for r in run.records)
    run.save(tmp_path / "run.npz")
    loaded = pdmp.load(tmp_path / "run.npz")
    assert groups(loaded.to_arviz(20)) == {"posterior", "sample_stats"}
    assert "log_likelihood" in groups(loaded.to_arviz(20, model=model))
    assert run.to_arviz().posterior.sizes["draw"] == used  # too few to choose among
    times = pdmp.diagnostics.draw_times(run, used)
    for i, r in enumerate(run.records):
        rows = np.rint((times[i] - r.warmup) / r.grid.spacing[0]).astype(int) - 1
        np.testing.assert_array_equal(r.grid.rows[rows], run.draws(used)[i])
        np.testing.assert_allclose(times[i], r.warmup + (rows + 1) * r.grid.spacing[0])


def test_arviz_from_version_one(monkeypatch):
    calls = []

    def from_dict(data, *, dims, coords):
        calls.append((data, dims, coords))
        return {name: types.SimpleNamespace(attrs={}) for name in data}

    monkeypatch.setitem(sys.modules, "arviz", types.SimpleNamespace(__version__="1.0.0", from_dict=from_dict))
    data = pdmp.sample(pdmp.ZigZag(regression()), events=300, seed=1).to_arviz(40)
    (groups, dims, coords) = calls[0]
    assert set(groups) == {"posterior", "sample_stats", "observed_data", "log_likelihood"} and dims == coords == {}
    attrs = data["posterior"].attrs
    assert attrs["inference_library"] == "pdmp" and attrs["inference_library_version"] == metadata.version("pdmp")
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match="`to_arviz` needs ArviZ: pip install"):
        pdmp.sample(Ticks(), steps=40, seed=1).to_arviz(10)


def gaussian_runs():
    target = pdmp.models.Gaussian(np.zeros(5), np.eye(5))
    return {
        "BPS": pdmp.BPS(target, refresh_rate=1.0),
        "Boomerang": pdmp.Boomerang(target, np.full(5, 0.2), metric=pdmp.Metric(covariance=1.2 * np.eye(5))),
        "local": Walls(5),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["BPS", "Boomerang", "local"])
def test_arviz_finds_about_the_effective_draws_of_the_path(name):
    run = pdmp.sample(gaussian_runs()[name], events=2_500, chains=4, seed=1, warmup=0.1)
    n, ratio = export.choose_draws(run)
    ratios = draws_ess(run.draws(n), "bulk") / pdmp.diagnostics.effective_draws(run)["mean"]
    assert ratio == pytest.approx(np.median(ratios))
    assert np.all((ratios > 0.5) & (ratios < 2.0)), ratios
    if importlib.util.find_spec("arviz") is not None:
        posterior = run.to_arviz().posterior
        assert posterior.sizes["draw"] == n and posterior.attrs["ess_ratio"] == ratio


def test_the_number_of_draws_is_limited_by_the_events():
    short, long = (pdmp.sample(Ticks(), steps=steps, seed=1) for steps in (60, 3_000))
    assert export.choose_draws(short)[0] == 60
    assert export.choose_draws(pdmp.Run(long.info, [*long.records, *short.records]))[0] <= 60
    n, ratio = export.choose_draws(long)
    # x ← 0.9 x + …: at most every 19th state is an independent draw.
    assert 100 <= n <= 3_000 and 0.5 < ratio < 2.0


@pytest.mark.parametrize("unknown", ["mean", "sd"])
def test_the_number_of_draws_is_that_of_coordinates_whose_effective_draws_are_known(unknown, monkeypatch):
    target = pdmp.models.Gaussian([0.0, 1.0, 2.0, -1.0], [1.0, 4.0, 0.5, 2.0])
    run = pdmp.sample(pdmp.BPS(target, refresh_rate=1.0), events=600, seed=1)
    path = pdmp.diagnostics.effective_draws(run)
    path = path | {unknown: np.where(np.arange(4) < 3, path[unknown], np.nan)}
    monkeypatch.setattr(export, "effective_draws", lambda run: path)
    n, ratio = export.choose_draws(run)
    ratios = draws_ess(run.draws(n), "bulk")[:3] / path["mean"][:3]
    assert ratio == pytest.approx(np.median(ratios)) and len(set(ratios)) == 3


# -- log-likelihoods --------------------------------------------------------------------------------------------------


def models():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(12, 2)), np.arange(12) % 2
    m = pdmp.models
    return {
        "LogisticRegression": m.LogisticRegression(X, labels.astype(float)),
        "PoissonRegression": regression(),
        "LinearGaussian": m.LinearGaussian(X, X[:, 0] + 0.3, noise_scale=0.5),
        "NormalInverseGammaRegression": m.NormalInverseGammaRegression(X, X[:, 0] + 0.3),
        "EightSchools": m.EightSchools(),
        "ICA": m.ICA(X),
        "BayesianNN": m.BayesianNN(X, labels, hidden=2),
        "MatrixFactorization": m.MatrixFactorization([0, 1, 2, 0], [0, 1, 1, 1], [1.0, 2.0, 3.0, 4.0], rank=1),
    }


@pytest.mark.parametrize("name", list(models()))
def test_log_likelihoods_are_terms_up_to_constants(name):
    model = models()[name]
    x = 0.3 * np.random.default_rng(1).normal(size=(2, 3, model.dim))
    (key, found), observed = next(iter(model.log_likelihoods(x).items())), model.observed_data()
    assert found.shape == (2, 3, model.n_data)
    assert name == "ICA" or len(observed[key]) == model.n_data
    terms = Derived.pointwise_log_likelihood(model, x)
    for i in (0, model.n_data - 1):
        assert terms[1, 2, i] == pytest.approx(-model.term_potential(x[1, 2], i), rel=1e-12)
    constant = (found - terms).reshape(-1, model.n_data)
    np.testing.assert_allclose(constant, np.broadcast_to(constant[0], constant.shape), atol=1e-11)


def test_constants_of_a_normal_observation():
    model = models()["LinearGaussian"]
    x = np.array([0.2, -0.1])
    expected = -0.5 * ((model.y - model.A @ x) / 0.5) ** 2 - np.log(0.5 * np.sqrt(2.0 * np.pi))
    np.testing.assert_allclose(model.log_likelihoods(x)["x"], expected, rtol=1e-12)
    with pytest.raises(ValueError, match=r"`draws` must have shape \(..., 2\), got \(3,\)"):
        model.pointwise_log_likelihood(np.zeros(3))


def test_models_without_terms_have_none():
    assert pdmp.models.Gaussian([0.0], [1.0]).log_likelihoods(np.zeros(1)) == {}
    assert positive().log_likelihoods(np.zeros(3)) == {} == positive().observed_data()


# -- tables, quantiles, intervals -------------------------------------------------------------------------------------


def test_named_parameters():
    run = pdmp.sample(pdmp.ZigZag(positive()), events=600, chains=2, seed=1)
    draws = run.draws(1_000)
    np.testing.assert_array_equal(run["tau"], np.exp(draws[..., 0]))
    np.testing.assert_array_equal(run["beta"], draws[..., 1:])
    np.testing.assert_array_equal(run["log(tau)"], draws[..., 0])
    np.testing.assert_array_equal(run["beta[1]"], draws[..., 2])
    with pytest.raises(KeyError, match=r"no parameter 'sigma'; the run has tau, beta, log\(tau\)"):
        run["sigma"]


@needs_pandas
def test_data_frames(monkeypatch):
    run = pdmp.sample(pdmp.ZigZag(positive()), events=600, chains=2, seed=1)
    frame = run.to_dataframe(30)
    assert list(frame.columns) == ["chain", "draw", "tau", "beta[0]", "beta[1]"] and len(frame) == 60
    row = frame[(frame["chain"] == 1) & (frame["draw"] == 4)]
    assert row["tau"].item() == np.exp(run.draws(30)[1, 4, 0]) and row["beta[1]"].item() == run.draws(30)[1, 4, 2]
    assert len(run.to_dataframe()) == 2_000
    with pytest.raises(ValueError, match=r"^`n` must be a whole number, at least 1, got 0\.$"):
        run.to_dataframe(0)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="`to_dataframe` needs pandas: pip install pandas"):
        run.to_dataframe()


def with_draws(draws, lengths=(1.0, 1.0)):
    """A run of two chains whose draws are these, (2, n, d)."""
    run = pdmp.sample(Ticks(), steps=8, chains=2, seed=1)
    run.dim, run.variables = draws.shape[2], {"x": (draws.shape[2],)}
    run.draws = lambda n: draws
    run.records = tuple(types.SimpleNamespace(length=length) for length in lengths)
    return run


def test_quantiles_by_hand():
    draws = np.array([[[1.0], [2.0]], [[3.0], [4.0]]])
    run = with_draws(draws)
    # The middles of the draws' shares are 1/8, 3/8, 5/8, 7/8.
    np.testing.assert_allclose(run.quantile([0.0, 0.125, 0.25, 0.5, 1.0]), [[1.0], [1.0], [1.5], [2.5], [4.0]])
    assert run.quantile(0.5).shape == (1,)
    # A chain of three times the length: shares 3/8, 3/8, 1/8, 1/8.
    np.testing.assert_allclose(with_draws(draws, (3.0, 1.0)).quantile([3 / 16, 9 / 16, 13 / 16]), [[1.0], [2.0], [3.0]])
    for q in (-0.1, 1.1, np.nan, [], [[0.5]]):
        with pytest.raises(ValueError, match="`q` must be one or several probabilities"):
            run.quantile(q)


@pytest.mark.parametrize(("numbers", "dim", "draws"), [(10**9, 1, 8_000), (2_400, 4, 300), (100, 4, 50)])
def test_quantiles_are_of_so_many_draws(numbers, dim, draws, monkeypatch):
    """16,000 of all chains; of many coordinates fewer, and of each chain 50 at least."""
    monkeypatch.setattr(result_module, "DIAGNOSTIC_NUMBERS", numbers)
    run, asked = with_draws(np.zeros((2, 3, dim))), []
    run.draws = lambda n: asked.append(n) or np.zeros((2, n, dim))
    run.quantile(0.5)
    assert asked == [draws]


def test_intervals_by_hand():
    draws = np.array([[[0.0], [1.0], [1.1], [1.2], [1.3]], [[1.4], [5.0], [6.0], [7.0], [9.0]]])
    np.testing.assert_allclose(with_draws(draws).hdi(0.5), [[1.0, 1.4]])  # five of ten draws
    np.testing.assert_allclose(with_draws(draws).hdi(0.9), [[0.0, 7.0]])
    np.testing.assert_allclose(with_draws(draws, (1.0, 9.0)).hdi(0.5), [[5.0, 7.0]])  # 0.18 each, of the second chain
    for prob in (0.0, 1.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="`prob` must lie between 0 and 1"):
            with_draws(draws).hdi(prob)


@pytest.mark.filterwarnings("ignore:the extrapolated variance")
def test_copies_and_stores():
    run = pdmp.sample(Coupled(), steps=200, seed=1)
    assert run.quantile(0.5).shape == (3,) and run["sigma"].shape == (1, 1_000)
    grid = pdmp.sample(Ticks(), steps=200, seed=1, store="grid", draws=20)
    np.testing.assert_array_equal(grid["sigma"], grid.draws(20)[:, :, 2])
    moments = pdmp.sample(Ticks(), steps=200, seed=1, store="moments")
    for ask in (lambda: moments.quantile(0.5), lambda: moments["sigma"], moments.to_dataframe, moments.to_arviz):
        with pytest.raises(ValueError, match='keeps none; use `store="skeleton"` or `store="grid"`.$'):
            ask()
    for run in (grid, moments):
        with pytest.raises(ValueError, match='keeps none; use `store="skeleton"`.$'):
            run.at(0.5)


def test_intervals_pool_chains_by_their_lengths():
    draws = np.stack([np.full((50, 1), 1.0), np.full((50, 1), 2.0), np.full((50, 1), 3.0)])
    parts = draws, [1.0, 1.0, 8.0]
    assert quantiles(0.5, *parts) == 3.0 and quantiles(np.array([0.05, 0.15]), *parts)[:, 0].tolist() == [1.0, 2.0]
    out = np.where(np.arange(1_000) % 100 == 0, 1.0, 0.0).reshape(2, 500, 1)  # a coefficient that is nearly always out
    assert quantiles(np.array(ENDS), out, [1.0, 1.0])[:, 0].tolist() == [0.0, 0.0]


def test_tables_of_html():
    run = pdmp.sample(pdmp.ZigZag(positive()), events=300, seed=1)
    run.variables = {"<b>": (3,)}
    run.transforms = {}
    run.info["constrains"] = False
    text = run._repr_html_()
    assert text.startswith("<p>&lt;Run: ZigZag on FunctionModel") and text.count("<tr>") == 4
    assert "&lt;b&gt;[0]" in text and "<b>" not in text and "<pre>" in text
    row = run.summary().rows[0]
    assert f"<td>{row['mean']:.4g}</td><td>{row['sd']:.4g}</td><td>{row['2.5%']:.4g}</td>" in text
    failed = pdmp.sample(Ticks(), steps=1, seed=1, warmup=0.99)
    assert failed._repr_html_().startswith("<p>") and "<table>" not in failed._repr_html_()
