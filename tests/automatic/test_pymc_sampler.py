"""`pdmp.automatic.PyMCSampler`, by a stand-in for the interface where PyMC does not have it yet."""

import abc
import importlib.util
import sys
import types
import warnings

import numpy as np
import pytest

import pdmp
from pdmp.automatic import PyMCSampler
from pdmp.automatic.pymc_sampler import seed_of, starts

needs_pymc = pytest.mark.skipif(
    importlib.util.find_spec("pymc") is None, reason="pymc is not installed: pip install 'pdmp[pymc]'"
)
pytestmark = pytest.mark.exact


@pytest.fixture
def interface(monkeypatch):
    """`pymc.sample(sampler=...)` as it is in PyMC, or else as it is to be."""
    import pymc

    if importlib.util.find_spec("pymc.sampling.samplers"):
        return pymc

    class Sampler(abc.ABC):
        @abc.abstractmethod
        def sample_from_init(self, *, model=None):
            """What is to be written."""

    def sample(*, sampler=None, model=None, **options):
        assert isinstance(sampler, Sampler)
        return sampler.sample_from_init(model=pymc.modelcontext(model), **options)

    monkeypatch.setitem(sys.modules, "pymc.sampling.samplers", types.ModuleType("pymc.sampling.samplers"))
    base = types.ModuleType("pymc.sampling.samplers.base")
    base.Sampler = Sampler
    monkeypatch.setitem(sys.modules, "pymc.sampling.samplers.base", base)
    monkeypatch.setattr(pymc, "sample", sample)
    return pymc


def coin(pymc):
    """p ~ Beta(8, 4) given seven heads of ten; odds = p / (1 - p)."""
    with pymc.Model(coords={"toss": range(10)}) as model:
        p = pymc.Beta("p", 1.0, 1.0)
        pymc.Deterministic("odds", p / (1.0 - p))
        pymc.Bernoulli("heads", p, observed=np.repeat([1, 0], [7, 3]), dims="toss")
    return model


@needs_pymc
def test_sampling_by_pymc(interface):
    with coin(interface), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler = PyMCSampler(ess=300, gradients=20_000)
        options = {"draws": 500, "chains": 2, "random_seed": 3, "progressbar": False}
        data = interface.sample(sampler=sampler, idata_kwargs={"log_likelihood": True}, **options)
        again = interface.sample(sampler=sampler, var_names=["p"], cores=1, **options)
    p = data.posterior["p"].values
    assert p.shape == (2, 500) and abs(p.mean() - 2.0 / 3.0) < 0.03 and 0.09 < p.std() < 0.17  # the truth: 0.131
    assert data.log_likelihood["heads"].dims[2:] == ("toss",)
    assert np.allclose(data.posterior["odds"].values, p / (1.0 - p))
    assert np.array_equal(again.posterior["p"].values, p) and list(again.posterior.data_vars) == ["p"]
    assert "log_likelihood" not in again


@needs_pymc
def test_what_is_passed_on(interface, monkeypatch):
    calls = []

    class Run:
        def to_arviz(self, n, log_likelihood):
            return n, log_likelihood

    def spy(model, **options):
        calls.append((model, options))
        return Run()

    sampler = PyMCSampler(ess=77.0, store="grid")
    monkeypatch.setattr("pdmp.automatic.pymc_sampler.sample", spy)
    model = coin(interface)
    found = sampler.sample_from_init(model=model, draws=12, initvals={"p": 0.9}, random_seed=5, quiet=True)
    assert found == (12, False) and calls[0][0].variables == {"p": ()}
    options = calls[0][1]
    assert options.pop("initial").tolist() == [[np.log(9.0)]] * 4
    expected = {"chains": 4, "seed": 5, "progress": False, "executor": None, "ess": 77.0, "store": "grid"}
    assert options == expected
    sampler.sample_from_init(model=model, chains=3, cores=2)
    options = calls[1][1]
    assert options["chains"] == 3 and options["executor"]._max_workers == 2 and options["progress"] is True
    assert options["initial"] is None and options["seed"] is None
    for name, value in (("tune", 50), ("discard_tuned_samples", False), ("keep_warning_stat", True)):
        with pytest.warns(UserWarning, match=f"`{name}` is not used: pdmp warms up"):
            sampler.sample_from_init(model=model, **{name: value})
    with pytest.warns(UserWarning, match="`compile_kwargs` is not used"):
        sampler.sample_from_init(model=model, compile_kwargs={"mode": "JAX"})
    with pytest.raises(TypeError, match="`idata_kwargs` may have the entry 'log_likelihood' only, got dims"):
        sampler.sample_from_init(model=model, idata_kwargs={"dims": {}})
    with pytest.raises(ValueError, match="`var_names` names 'q', which is not a variable of the model"):
        sampler.sample_from_init(model=model, var_names=["q"])
    assert len(calls) == 6


@needs_pymc
def test_starts_of_each_chain():
    import pymc

    model = coin(pymc)
    target = pdmp.models.from_pymc(model)
    found = starts(model, target, [{"p": 0.5}, {"p": 0.9}], 2)
    assert np.allclose(found, [[0.0], [np.log(9.0)]])


@needs_pymc
def test_options_of_the_sampler(interface):
    for name in ("essay", "seed", "initial"):
        with pytest.raises(TypeError, match=f"`{name}` is not a budget or an option of pdmp.sample"):
            PyMCSampler(**{name: 1})


@needs_pymc
def test_versions_without_the_interface(monkeypatch):
    import pymc

    monkeypatch.setitem(sys.modules, "pymc.sampling.samplers.base", None)
    with pytest.raises(ImportError, match=rf"a PyMC whose `sample` has .*, this is {pymc.__version__}: pdmp.sample"):
        PyMCSampler()


def test_pymc_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymc", None)
    with pytest.raises(ImportError, match=r"`PyMCSampler` needs PyMC: pip install 'pdmp\[pymc\]'"):
        PyMCSampler()


def test_seeds_of_pymc():
    assert seed_of(None) is None and seed_of(np.int64(3)) == 3 and type(seed_of(np.int64(3))) is int
    assert seed_of([1, 2]) == seed_of(np.array([1, 2])) != seed_of([2, 1])
    assert seed_of(np.random.default_rng(1)) == seed_of(np.random.default_rng(1)) != seed_of(np.random.default_rng(2))
