"""NumPyro models by `pdmp.models.from_numpyro`."""

import importlib.util
import math
import pickle
import sys
import warnings

import numpy as np
import pytest
from scipy import stats

import pdmp
from pdmp.models import EightSchools, from_numpyro
from pdmp.models.transforms import Interval, Log

needs_numpyro = pytest.mark.skipif(
    importlib.util.find_spec("numpyro") is None, reason="numpyro is not installed: pip install 'pdmp[numpyro]'"
)
pytestmark = pytest.mark.exact


@pytest.fixture(autouse=True)
def double_precision():
    if importlib.util.find_spec("jax") is None:
        yield
        return
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield
    jax.config.update("jax_enable_x64", before)


def schools(sigma, y=None):
    import numpyro
    import numpyro.distributions as dist

    mu, tau = numpyro.sample("mu", dist.Normal(0.0, 5.0)), numpyro.sample("tau", dist.HalfCauchy(5.0))
    with numpyro.plate("school", 8):
        z = numpyro.sample("z", dist.Normal(0.0, 1.0))
        theta = numpyro.deterministic("theta", mu + tau * z)
        numpyro.sample("y", dist.Normal(theta, sigma), obs=y)


def coin(heads):
    import numpyro
    import numpyro.distributions as dist

    p = numpyro.sample("p", dist.Beta(1.0, 1.0))
    numpyro.sample("heads", dist.Binomial(10, p), obs=heads)


def kinds():
    import numpyro
    import numpyro.distributions as dist

    low = numpyro.sample("low", dist.Uniform(-2.0, 3.0))
    numpyro.sample("above", dist.TruncatedNormal(0.0, 1.0, low=low))
    numpyro.sample("weights", dist.Dirichlet(np.ones(3)))
    numpyro.sample("matrix", dist.Normal(0.0, 1.0).expand([2, 3]).to_event(2))


@needs_numpyro
def test_density_is_that_of_the_package():
    own = EightSchools()
    model = from_numpyro(schools, own.sigma, y=own.y)
    xs = np.random.default_rng(0).standard_normal((4, 10))
    gaps = [model.potential(x) - own.potential(x) for x in xs]
    assert np.allclose(gaps, gaps[0], rtol=1e-11)
    for x in xs:
        assert np.allclose(model.gradient(x), own.gradient(x), rtol=1e-11, atol=1e-12)
    assert model.variables == {"mu": (), "tau": (), "z": (8,)} and model.transforms == {"tau": Log()}


@needs_numpyro
def test_natural_parameters_and_data():
    own = EightSchools()
    model = from_numpyro(schools, own.sigma, y=own.y)
    x = np.random.default_rng(1).standard_normal((2, 700, 10))  # more than one block
    natural = model.constrain(x)
    assert list(natural) == ["mu", "tau", "z", "theta"]
    assert np.allclose(natural["theta"], own.constrain(x)["theta"], rtol=1e-12)
    assert np.array_equal(model.observed_data()["y"], own.y)
    expected = stats.norm.logpdf(own.y, natural["theta"], own.sigma)
    assert np.allclose(model.log_likelihoods(x)["y"], expected, rtol=1e-11)
    run = pdmp.sample(pdmp.BPS(model), events=60, chains=2, seed=3)
    data = run.to_arviz(20)
    assert data.posterior["z"].dims == ("chain", "draw", "school") and data.observed_data["y"].dims == ("school",)
    assert data.log_likelihood["y"].shape == (2, 20, 8) and run["tau"].shape == (2, 1_000)


@needs_numpyro
def test_transforms_and_names():
    model = from_numpyro(kinds)
    assert model.variables == {"low": (), "above_unc": (), "weights_unc": (2,), "matrix": (2, 3)}
    assert model.transforms == {"low": Interval(-2.0, 3.0)}
    natural = model.constrain(np.random.default_rng(2).standard_normal((5, model.dim)))
    assert np.allclose(natural["weights"].sum(axis=-1), 1.0) and np.all(natural["above"] > natural["low"])


@needs_numpyro
def test_one_call():
    """p ~ Beta(8, 4)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = pdmp.sample(from_numpyro(coin, heads=7.0), ess=200, gradients=20_000, seed=1)
    p = run["p"]
    assert abs(p.mean() - 2.0 / 3.0) < 0.04 and abs(p.std() / math.sqrt(2.0 / 9.0 / 13.0) - 1.0) < 0.25


@needs_numpyro
def test_pickled_and_told_apart(tmp_path):
    model = from_numpyro(coin, heads=7.0)
    other = pickle.loads(pickle.dumps(model))
    different = from_numpyro(coin, heads=6.0)
    assert other.identity() == model.identity() != different.identity()
    assert other.potential([0.3]) == model.potential([0.3])
    pdmp.sample(pdmp.ZigZag(model), events=30, seed=1, checkpoint=tmp_path / "run.npz")
    pdmp.sample(pdmp.ZigZag(other), events=40, seed=1, checkpoint=tmp_path / "run.npz")
    with pytest.raises(ValueError, match="checkpoint"):
        pdmp.sample(pdmp.ZigZag(different), events=50, seed=1, checkpoint=tmp_path / "run.npz")


@needs_numpyro
def test_data_that_change_later():
    """Arguments are as they were, for densities, likelihoods and what is observed; what the model names is refused."""
    import numpyro
    import numpyro.distributions as dist

    y, named = np.zeros(3), np.ones(3)

    def normal(y):
        a = numpyro.sample("a", dist.Normal(0.0, 10.0)).at[()].multiply(1.0)  # which arrays of JAX alone have
        numpyro.sample("y", dist.Normal(a, 1.0), obs=y)
        numpyro.sample("z", dist.Normal(a, 1.0), obs=named)

    model, x = from_numpyro(normal, y), np.array([0.2])
    before, likely = model.potential(x), model.log_likelihoods(x[None])["y"]
    y[:] = 5.0
    assert model.potential(x) == before and np.array_equal(model.log_likelihoods(x[None])["y"], likely)
    assert np.array_equal(model.observed_data()["y"], np.zeros(3))
    pdmp.sample(pdmp.ZigZag(model), events=20, seed=1)
    named[:] = 4.0
    with pytest.raises(TypeError, match="what the model reads, data perhaps, has changed since it was made"):
        pdmp.sample(pdmp.ZigZag(model), events=20, seed=1)


@needs_numpyro
def test_laws_that_nothing_can_be_drawn_from():
    """ImproperUniform of a positive vector with e^(-x₀ - x₁), in logarithms: U = Σ (eˣ - x)."""
    import numpyro
    import numpyro.distributions as dist

    def improper():
        x = numpyro.sample("x", dist.ImproperUniform(dist.constraints.positive, (), (2,)))
        numpyro.factor("prior", -x.sum())

    model, x = from_numpyro(improper), np.array([0.3, -1.2])
    assert model.dim == 2 and model.variables == {"x": (2,)}
    assert model.potential(x) == pytest.approx(np.sum(np.exp(x) - x))
    assert model.gradient(x) == pytest.approx(np.exp(x) - 1.0)


@needs_numpyro
def test_refused_by_name():
    import jax
    import numpyro
    import numpyro.distributions as dist

    def whole():
        numpyro.sample("x", dist.Normal(numpyro.sample("kind", dist.Bernoulli(0.5)), 1.0))

    def batches():
        mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))
        with numpyro.plate("rows", 10, subsample_size=2):
            numpyro.sample("y", dist.Normal(mu, 1.0), obs=numpyro.subsample(np.zeros(10), 0))

    def empty():
        numpyro.sample("y", dist.Normal(0.0, 1.0), obs=1.0)

    with pytest.raises(TypeError, match=r"`model` has variables of whole numbers \(kind\), which have no gradient"):
        from_numpyro(whole)
    with pytest.raises(TypeError, match=r"`model` draws mini-batches in a plate \(rows\), of which one would"):
        from_numpyro(batches)
    with pytest.raises(ValueError, match="`model` has no variables that are not observed"):
        from_numpyro(empty)
    with pytest.raises(TypeError, match="`model` must be a NumPyro model, a function, got a float"):
        from_numpyro(1.0)
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(ValueError, match=r"JAX computes in single precision: say numpyro.enable_x64\(\)"):
        from_numpyro(coin, heads=7.0)


def test_missing_numpyro_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpyro", None)
    with pytest.raises(ImportError, match=r"`from_numpyro` needs NumPyro: pip install 'pdmp\[numpyro\]'"):
        from_numpyro(coin, heads=7.0)
