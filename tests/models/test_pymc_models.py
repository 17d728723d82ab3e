"""PyMC models: Potentials, coordinates and what is refused; `pdmp.sample` on them."""

import importlib.util
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats

import pdmp
from pdmp.models import from_pymc
from tests.checks import plain_only

pytestmark = [
    pytest.mark.exact,
    pytest.mark.skipif(
        importlib.util.find_spec("pymc") is None, reason="pymc is not installed: pip install 'pdmp[pymc]'"
    ),
]

X = np.array([[1.0, 0.2], [-0.5, 1.0], [0.3, -1.2], [1.5, 0.4]])
Y = np.array([0.7, -1.0, 1.1, 0.9])


def regression():
    """y ~ N(Xβ, 1) with named coefficients, β ~ N(0, 1), and a Potential -Σβ²/2: β has the precision 2 + XᵀX."""
    import pymc

    with pymc.Model(coords={"feature": ["age", "dose"], "case": list("abcd")}) as model:
        beta = pymc.Normal("beta", 0.0, 1.0, dims="feature")
        pymc.Potential("ridge", -0.5 * (beta**2).sum())
        mean = pymc.Deterministic("mean", pymc.math.dot(X, beta), dims="case")
        pymc.Normal("y", mean, 1.0, observed=Y, dims="case")
    return model


def test_potentials_are_part_of_the_density():
    model = from_pymc(regression())
    precision = 2.0 * np.eye(2) + X.T @ X
    for x in np.random.default_rng(0).standard_normal((3, 2)):
        assert np.allclose(model.gradient(x), precision @ x - X.T @ Y, rtol=1e-12)


def test_names_dims_and_coords_come_back():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = pdmp.sample(regression(), ess=100, gradients=3_000, chains=2, seed=1)
        data = run.to_arviz(50)
    assert run.names() == ["beta[0]", "beta[1]"]
    posterior = data.posterior
    assert posterior["beta"].dims == ("chain", "draw", "feature") and posterior["mean"].dims[2:] == ("case",)
    assert list(posterior["feature"].values) == ["age", "dose"] and list(posterior["case"].values) == list("abcd")
    assert np.allclose(posterior["mean"].values, posterior["beta"].values @ X.T, rtol=1e-12)
    assert data.observed_data["y"].dims == ("case",) and np.array_equal(data.observed_data["y"].values, Y)
    found = data.log_likelihood["y"]
    assert found.dims[2:] == ("case",)
    assert np.allclose(found.values, stats.norm.logpdf(Y, posterior["mean"].values), rtol=1e-12)


def test_mini_batches_are_refused_by_name():
    import pymc

    with pymc.Model() as model:
        rows, labels = pymc.Minibatch(X, Y, batch_size=2)
        beta = pymc.Normal("beta", 0.0, 1.0, shape=2)
        pymc.Normal("labels", pymc.math.dot(rows, beta), 1.0, observed=labels, total_size=4)
        pymc.Normal("others", beta.sum(), 1.0, observed=1.0)
    with pytest.raises(TypeError, match=r"`model` draws mini-batches by pymc.Minibatch \(labels\), of which one would"):
        from_pymc(model)
    with pymc.Model() as model:
        beta = pymc.Normal("beta", 0.0, 1.0)
        pymc.Potential("labels", -((pymc.Minibatch(Y, batch_size=2) - beta) ** 2).sum())
    with pytest.raises(TypeError, match=r"by pymc.Minibatch \(labels\)"):
        pdmp.sample(model)
    with pymc.Model() as model:  # a scaled density of all the data is a density
        beta = pymc.Normal("beta", 0.0, 1.0)
        pymc.Normal("labels", beta, 1.0, observed=Y, total_size=8)
    assert np.allclose(from_pymc(model).gradient([0.5]), 0.5 + 2.0 * (0.5 - Y).sum())


def test_a_checkpoint_knows_the_data(tmp_path):
    import pymc

    def process(shift):
        with pymc.Model() as model:
            pymc.Normal("y", pymc.Normal("mu"), 1.0, observed=Y + shift)
        return pdmp.ZigZag(from_pymc(model))

    pdmp.sample(process(0.0), events=20, seed=1, checkpoint=tmp_path / "run.npz")
    pdmp.sample(process(0.0), events=30, seed=1, checkpoint=tmp_path / "run.npz")
    with pytest.raises(ValueError, match="checkpoint"):
        pdmp.sample(process(1.0), events=40, seed=1, checkpoint=tmp_path / "run.npz")


@plain_only
def test_two_threads_get_their_own_gradients():
    """Without machine code a function of PyTensor is called through Python, which two chains must not do at once."""
    model = from_pymc(regression())
    assert not model.callback.compiled
    xs = np.random.default_rng(1).standard_normal((4_000, 2))
    expected = 2.0 * xs + xs @ X.T @ X - X.T @ Y
    with ThreadPoolExecutor(4) as pool:
        found = np.array(list(pool.map(model.gradient, xs)))
    assert np.allclose(found, expected, rtol=1e-9, atol=1e-9)
