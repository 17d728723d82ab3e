"""Targets of other packages: JAX, PyTorch, PyMC, and Stan through a library in C with BridgeStan's interface."""

import concurrent.futures
import importlib.util
import math
import os
import pathlib
import pickle
import shutil
import subprocess

import numpy as np
import pytest
from scipy import stats

import pdmp
from pdmp.automatic.start import find_starts
from pdmp.models import EightSchools, from_jax, from_stan, from_torch
from pdmp.models.transforms import Interval, Log, Simplex, Upper
from tests.checks import plain_only
from tests.models.helpers_models import compiled_both

pytestmark = [pytest.mark.exact, pytest.mark.compiled]

JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def needs(package):
    missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(missing, reason=f"{package} is not installed: pip install 'pdmp[{package}]'")


def schools_log_density(x, np=np):
    """Eight schools, not centred, in the functions of any package that has numpy's names."""
    model, tau = EightSchools(), np.exp(x[1])
    r = (x[0] + tau * x[2:] - np.asarray(model.y)) / np.asarray(model.sigma)
    prior = -0.5 * (x[0] / 5.0) ** 2 - np.log1p((tau / 5.0) ** 2) + x[1] - 0.5 * (x[2:] ** 2).sum()
    return prior - 0.5 * (r**2).sum()


# ---------------------------------------------------------------------------------------------------------------
# Stan


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """Paths of the library built with and without threads."""
    if COMPILER is None:
        pytest.skip("there is no C compiler")
    folder, source = tmp_path_factory.mktemp("stan"), pathlib.Path(__file__).with_name("bridgestan_model.c")
    for name, flags in (("threads", ["-DSTAN_THREADS"]), ("single", [])):
        out = folder / f"{name}.so"
        command = [COMPILER, "-O1", "-ffp-contract=off", "-shared", "-fPIC", *flags, str(source), "-o", str(out), "-lm"]
        subprocess.run(command, check=True)
    return folder


@pytest.fixture(scope="module", params=["threads", "single"])
def stan(request, libraries):
    return from_stan(libraries / f"{request.param}.so", {"scale": np.float64(2.0)})


def stan_potential(x):
    density = stats.norm.logpdf(x[0], 1.0, 2.0) + stats.lognorm.logpdf(math.exp(x[1]), 1.0) + x[1]
    w = Interval().constrain(x[6])
    density += stats.norm.logpdf(x[2:6], x[0]).sum() + stats.beta.logpdf(w, 2.0, 2.0) + Interval().log_jacobian(x[6])
    return -float(density)


def test_stan_density_and_gradient(stan):
    xs = np.random.default_rng(0).standard_normal((4, 7))
    gaps = [stan.potential(x) - stan_potential(x) for x in xs]
    assert np.allclose(gaps, gaps[0], rtol=1e-12)
    for x in xs:
        steps = 1e-6 * np.eye(7)
        numeric = [(stan_potential(x + h) - stan_potential(x - h)) / 2e-6 for h in steps]
        assert np.allclose(stan.gradient(x), numeric, atol=1e-7)
        potential, gradient = compiled_both(stan, x)  # from compiled code
        assert potential == stan.potential(x) and np.array_equal(gradient, stan.gradient(x))


@pytest.mark.parametrize(
    ("right", "wrong", "name"),
    [
        ("gradient[6] = share * (1.0 - 2.0 * w);", "gradient[6] = 1.1 * share * (1.0 - 2.0 * w);", r"w_unc\[0\]"),
        ("gradient[0] = -precision * r;", "gradient[0] = -precision * r + 0.3;", "mu"),
    ],
)
def test_a_library_whose_gradient_is_not_that_of_its_density_is_warned_of(right, wrong, name, tmp_path):
    if COMPILER is None:
        pytest.skip("there is no C compiler")
    text = pathlib.Path(__file__).with_name("bridgestan_model.c").read_text()
    assert text.count(right) == 1
    (tmp_path / "wrong.c").write_text(text.replace(right, wrong))
    command = [COMPILER, "-O1", "-shared", "-fPIC", str(tmp_path / "wrong.c"), "-o", str(tmp_path / "wrong.so"), "-lm"]
    subprocess.run(command, check=True)
    with pytest.warns(
        UserWarning, match=f"the gradient of the Stan program is not the slope of its .* coordinate {name}"
    ):
        from_stan(tmp_path / "wrong.so", {"scale": 2.0})


def test_stan_runs_without_python_where_it_may(stan):
    assert stan.callback.compiled is (JIT and stan.callback.arguments[0].endswith("threads.so"))


@plain_only
def test_stan_names_and_natural_parameters(stan):
    assert stan.variables == {"mu": (), "tau": (), "B": (4,), "w_unc": (1,)} and stan.transforms == {"tau": Log()}
    x = np.random.default_rng(1).standard_normal((3, 2, 7))
    natural = stan.constrain(x)
    assert {k: a.shape for k, a in natural.items()} == {
        "mu": (3, 2),
        "tau": (3, 2),
        "B": (3, 2, 2, 2),
        "w": (3, 2, 2),
        "total": (3, 2),
    }
    assert np.allclose(natural["tau"], np.exp(x[..., 1])) and np.allclose(natural["total"], x[..., 0] + natural["tau"])
    assert np.array_equal(natural["B"][1, 1], x[1, 1, 2:6].reshape(2, 2).T)  # Stan goes down the columns
    assert np.allclose(natural["w"][..., 0], Interval().constrain(x[..., 6]))


@plain_only
def test_stan_generated_quantities(libraries):
    path, x = libraries / "threads.so", np.random.default_rng(1).standard_normal((3, 2, 7))
    plain, more = from_stan(path, {"scale": 2.0}), from_stan(path, {"scale": 2.0}, seed=5, generated_quantities=True)
    assert list(plain.constrain(x)) == ["mu", "tau", "B", "w", "total"]
    assert list(more.constrain(x)) == ["mu", "tau", "B", "w", "total", "noise"]
    noise = more.constrain(x)["noise"]
    assert noise.shape == (3, 2) and len(np.unique(noise)) == 6 and np.array_equal(noise, more.constrain(x)["noise"])
    other = from_stan(path, {"scale": 2.0}, seed=6, generated_quantities=True)
    assert not np.any(other.constrain(x)["noise"] == noise) and other.identity() != more.identity()
    for model in (plain, more):
        assert model.log_likelihood_size == 2
        assert np.array_equal(model.log_likelihoods(x)["log_lik"], x[..., :1] * np.array([1.0, 2.0]))
    named = from_stan(path, {"scale": 2.0}, generated_quantities=True, log_likelihood="noise")
    assert list(named.constrain(x))[-1] == "log_lik" and named.log_likelihoods(x)["noise"].shape == (3, 2)
    with pytest.raises(ValueError, match="`log_likelihood` must be a generated quantity of the program, got 'tou'"):
        from_stan(path, {"scale": 2.0}, log_likelihood="tou")


def test_stan_refuses_a_point_in_its_own_words(stan):
    x = np.full(7, 51.0)
    for _ in range(2):
        potential, gradient = compiled_both(stan, x)
        assert potential == math.inf and np.all(np.isnan(gradient))
        assert "mu is too large" in stan.said and stan.failure is None
    assert stan.potential(x) == math.inf
    stan.failure = None
    assert stan.said is None and math.isfinite(compiled_both(stan, np.zeros(7))[0])
    with pytest.raises(ValueError, match=r"not near any point of positive density \(.*mu is too large.*\); give"):
        find_starts(stan, 2, np.random.default_rng(0), initial=np.full(7, 1e3))
    stan.failure = None


@plain_only
def test_stan_data(libraries, tmp_path):
    path, x = libraries / "threads.so", np.ones(7) * 0.3
    (tmp_path / "data.json").write_text('{"scale": 3.0}')
    expected = from_stan(path, {"scale": 3.0}).potential(x)
    assert from_stan(path, '{"scale": 3.0}').potential(x) == expected
    assert (
        from_stan(path, tmp_path / "data.json").potential(x) == expected != from_stan(path, {"scale": 2.0}).potential(x)
    )
    with pytest.raises(ValueError, match="`program` refuses the data: variable does not exist; variable name=scale"):
        from_stan(path)
    with pytest.raises(ValueError, match="`program` refuses the data: scale is not positive"):
        from_stan(path, {"scale": -1.0})


@plain_only
def test_stan_needs_a_library(libraries, tmp_path):
    with pytest.raises(ValueError, match="`program` cannot be loaded as a library"):
        from_stan(tmp_path / "nothing.so")
    (tmp_path / "other.c").write_text("int bs_model_construct(void) { return 0; }")
    subprocess.run([COMPILER, "-shared", "-fPIC", "other.c", "-o", "other.so"], check=True, cwd=tmp_path)
    with pytest.raises(ValueError, match="is not a library of BridgeStan's: it has no function `bs_model_destruct`"):
        from_stan(tmp_path / "other.so")


@plain_only
def test_stan_can_be_pickled_and_told_apart(stan, libraries):
    other = pickle.loads(pickle.dumps(stan))
    assert other.potential(np.ones(7)) == stan.potential(np.ones(7)) and other.identity() == stan.identity()
    path = stan.callback.arguments[0]
    assert from_stan(path, {"scale": 2.5}).identity() != stan.identity()


@plain_only
def test_stan_run(libraries):
    runs = []
    for name in ("threads", "single"):
        model = from_stan(libraries / f"{name}.so", {"scale": 2.0})
        runs.append(pdmp.sample(pdmp.BPS(model), events=60, chains=2, seed=3))
    assert np.array_equal(runs[0].draws(50), runs[1].draws(50))
    natural = runs[0].constrain(runs[0].draws(50))
    posterior = runs[0].to_arviz(50).posterior
    assert all(np.array_equal(posterior[name].values, values) for name, values in natural.items())
    assert runs[0].names() == ["mu", "log(tau)", "B[0]", "B[1]", "B[2]", "B[3]", "w_unc[0]"]


def test_stan_in_threads(stan):
    xs = np.random.default_rng(2).standard_normal((200, 7))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda x: compiled_both(stan, x)[0], xs))
    assert answers == [stan.potential(x) for x in xs]


# ---------------------------------------------------------------------------------------------------------------
# PyMC


@pytest.fixture(scope="module")
def pymc_model():
    pymc = pytest.importorskip("pymc", reason="pymc is not installed: pip install 'pdmp[pymc]'")
    schools = EightSchools()
    with pymc.Model() as model:
        data = pymc.Data("data", schools.y)
        mu, tau = pymc.Normal("mu", 0.0, 5.0), pymc.HalfCauchy("tau", 5.0)
        z = pymc.Normal("z", 0.0, 1.0, shape=8)
        theta = pymc.Deterministic("theta", mu + tau * z)
        pymc.Normal("y", theta, schools.sigma, observed=data)
        pymc.Uniform("u", -1.0, 3.0)
        pymc.Dirichlet("w", np.ones(3))
        pymc.Beta("b", 2.0, 3.0)
        pymc.TruncatedNormal("above", 0.0, 1.0, lower=-1.0)
        pymc.TruncatedNormal("below", 0.0, 1.0, upper=2.0)
    return model, pdmp.models.from_pymc(model)


@needs("pymc")
def test_pymc_density_is_that_of_the_package(pymc_model):
    source, model = pymc_model
    assert model.callback.compiled is JIT
    xs = np.random.default_rng(0).standard_normal((3, model.dim))
    function = source.logp_dlogp_function(ravel_inputs=True)
    function.set_extra_values({})
    for x in xs:
        value, gradient = function(x)
        potential, found = compiled_both(model, x)
        assert math.isclose(potential, -float(value), rel_tol=1e-12)
        assert np.allclose(found, -gradient, rtol=1e-11, atol=1e-12)
    # and of this one: what else is in the model does not change
    schools = EightSchools()
    change = [model.potential(np.concatenate([x[:10], xs[0, 10:]])) - schools.potential(x[:10]) for x in xs]
    assert np.allclose(change, change[0], rtol=1e-11)


@needs("pymc")
def test_pymc_names_transforms_and_natural_parameters(pymc_model):
    _, model = pymc_model
    assert list(model.variables) == ["mu", "tau", "z", "u", "w", "b", "above", "below"]
    expected = {"tau": Log(), "u": Interval(-1.0, 3.0), "w": Simplex(), "b": Interval()}
    assert model.transforms == {**expected, "above": Log(-1.0), "below": Upper(2.0)}
    x = np.random.default_rng(1).standard_normal((2, 3, model.dim))
    natural, own = model.constrain(x), pdmp.Model.constrain(model, x)
    assert set(natural) == {*own, "theta"} and list(natural)[-1] == "theta"
    for name, values in own.items():
        assert np.allclose(natural[name], values, rtol=1e-12)
    assert np.allclose(natural["theta"], EightSchools().constrain(x[..., :10])["theta"], rtol=1e-12)


@needs("pymc")
def test_pymc_refuses():
    import pymc

    with pymc.Model() as counts:
        pymc.Poisson("n", 3.0)
    with pymc.Model() as empty:
        pymc.Normal("y", 0.0, 1.0, observed=1.0)
    with pytest.raises(TypeError, match=r"`model` has variables of whole numbers \(n\), which have"):
        pdmp.models.from_pymc(counts)
    with pytest.raises(ValueError, match="`model` has no variables that are not observed"):
        pdmp.models.from_pymc(empty)
    with pytest.raises(TypeError, match="`model` must be a pymc.Model, got a float"):
        pdmp.models.from_pymc(1.0)


# ---------------------------------------------------------------------------------------------------------------
# JAX and PyTorch


@pytest.fixture
def double_precision():
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield jax
    jax.config.update("jax_enable_x64", before)


@needs("jax")
def test_jax_in_a_run(double_precision):
    import jax
    import jax.numpy as jnp

    model = from_jax(lambda x: schools_log_density(x, jnp), 10, variables={"x": (10,)}, n_data=8)
    x = np.random.default_rng(4).standard_normal(10)
    assert compiled_both(model, x)[0] == model.potential(x) and model.n_data == 8
    assert math.isclose(model.potential(x), -schools_log_density(x), rel_tol=1e-12)
    run = pdmp.sample(pdmp.BPS(model), events=60, chains=2, seed=3)
    exact = pdmp.sample(pdmp.BPS(EightSchools()), events=60, chains=2, seed=3, initial=run.at(0.0))
    assert np.allclose(run.at(1.0), exact.at(1.0), rtol=1e-6)
    with pytest.raises(ValueError, match="the derivative of `log_density` is not that of its values: .* coordinate x"):
        from_jax(lambda x: -(jax.lax.stop_gradient(x) * x).sum(), 2)


@needs("jax")
@pytest.mark.parametrize("single", [False, True])
def test_arrays_that_a_log_density_names_must_stay(single, double_precision):
    """As machine code has them as constants; where they are as they were again nothing is said."""
    y = np.zeros(2)  # `at` is of arrays of JAX alone
    model = from_jax(lambda x: -0.5 * ((x.at[0].multiply(1.0) - y) ** 2).sum(), 2, single_precision=single)
    pdmp.sample(pdmp.ZigZag(model), events=20, seed=1)
    y[1] = 5.0
    with pytest.raises(TypeError, match="data perhaps, has changed since it was made.* Make the model anew"):
        pdmp.sample(pdmp.ZigZag(model), events=20, seed=1)
    y[1] = 0.0
    pdmp.sample(pdmp.ZigZag(model), events=20, seed=1)


@needs("jax")
def test_jax_refuses():
    import jax
    import jax.numpy as jnp

    assert not jax.config.jax_enable_x64
    with pytest.raises(ValueError, match=r"JAX computes in single precision: say jax.config.update\('jax_enable_x64'"):
        from_jax(lambda x: -(x**2).sum(), 2)
    single = from_jax(lambda x: -0.5 * (x**2).sum(), 2, single_precision=True)
    assert np.array_equal(single.gradient([1.0, 2.0]), [1.0, 2.0])
    with pytest.raises(ValueError, match="`log_density` must return one number, got"):
        from_jax(lambda x: -(x**2), 2, single_precision=True)
    with pytest.raises(TypeError, match="`log_density` must be a function"):
        from_jax(jnp.zeros(2), 2)


@needs("torch")
def test_torch():
    import torch

    schools = EightSchools()
    y, sigma = torch.tensor(schools.y), torch.tensor(schools.sigma)

    def log_density(x):
        tau = x[1].exp()
        r = (x[0] + tau * x[2:] - y) / sigma
        prior = -0.5 * (x[0] / 5.0) ** 2 - torch.log1p((tau / 5.0) ** 2) + x[1] - 0.5 * (x[2:] ** 2).sum()
        return prior - 0.5 * (r**2).sum()

    model = from_torch(log_density, 10, transforms={"x": Log()})
    assert model.transforms == {"x": Log()}
    for x in np.random.default_rng(5).standard_normal((3, 10)):
        potential, gradient = compiled_both(model, x)
        assert potential == model.potential(x) and math.isclose(potential, -schools_log_density(x), rel_tol=1e-12)
        assert np.allclose(gradient, schools.gradient(x), rtol=1e-11, atol=1e-12)
    with pytest.raises(ValueError, match=r"must return a tensor with one number, got \(2,\)"):
        from_torch(lambda x: -(x**2), 2)
    with pytest.raises(ValueError, match="must return a tensor with one number, got float"):
        from_torch(lambda x: 0.0, 2)
    with pytest.raises(ValueError, match="it has no gradient"):
        from_torch(lambda x: -(x.detach() ** 2).sum(), 2)
    with pytest.raises(ValueError, match="the derivative of `log_density` is not that of its values: .* coordinate x"):
        from_torch(lambda x: -(x.detach() * x).sum(), 2)
    with pytest.raises(ValueError, match="`log_density` returns another U when it is called again"):
        from_torch(lambda x: -((x - torch.rand(2)) ** 2).sum(), 2)
    with pytest.raises(TypeError, match="`log_density` must be a function"):
        from_torch("x", 2)


@plain_only
@pytest.mark.parametrize("package", ["jax", "torch", "pymc"])
def test_missing_packages_are_named(monkeypatch, package):
    import sys

    monkeypatch.setitem(sys.modules, package, None)
    make = getattr(pdmp.models, f"from_{package}")
    arguments = (lambda x: x, 2) if package != "pymc" else (None,)
    with pytest.raises(ImportError, match=rf"needs .*: pip install 'pdmp\[{package}\]'"):
        make(*arguments)
