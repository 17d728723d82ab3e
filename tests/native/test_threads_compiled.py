"""What only compilation can break of passes on threads: several in one function at a time, and a call of the system."""

import mmap

import numpy as np
import pytest

import pdmp
from pdmp.gradients import ControlVariate
from pdmp.models.regressions.laplace import laplace
from pdmp.models.regressions.likelihoods import PoissonLaw
from pdmp.native.classes import entry
from pdmp.native.prefetch import ask
from tests.native.helpers_threads import on, regression, same_on_any  # noqa: F401 - a fixture

N = 20_000


@entry
def ask_for(data, rows):
    """The last answer of the system that is not 0, or 0."""
    answer = 0
    for k in range(rows.shape[0]):
        found = ask(data, rows[k])
        answer = answer if found == 0 else found
    return answer


@pytest.mark.quick
def test_the_system_takes_what_it_is_asked_for(tmp_path):
    """The range of a row begins with a page and lies in the file, at its begin, across pages and at its end."""
    rng = np.random.default_rng(1)
    for shape, dtype in (((5_000, 7), np.float32), ((5_000,), np.float64)):
        np.save(tmp_path / "X.npy", rng.standard_normal(shape).astype(dtype))
        X = np.load(tmp_path / "X.npy", mmap_mode="r")
        rows = np.r_[0, mmap.PAGESIZE // X.strides[0] + np.arange(-6, 2), rng.integers(0, 5_000, 100), 4_999]
        assert ask_for(np.asarray(X), rows.astype(np.int64)) == 0
        assert np.array_equal(X, np.load(tmp_path / "X.npy"))


def test_sums_do_not_depend_on_the_number_of_threads(tmp_path, on):  # noqa: F811
    rng = np.random.default_rng(2)
    X = rng.standard_normal((N, 5)).astype(np.float32)
    y = (rng.random(N) < 1.0 / (1.0 + np.exp(-X[:, 0]))).astype(float)
    np.save(tmp_path / "X.npy", X)
    x = np.array([0.9, 0.1, 0.0, -0.1, 0.2])

    def compute():
        model = pdmp.models.LogisticRegression(np.load(tmp_path / "X.npy", mmap_mode="r"), y)
        provider = ControlVariate(model, 1, anchor=x, draw="importance")
        kept = model.gram, provider.anchor_gradient, provider.contributions(), provider.drawing.alias.total
        return *kept, model.potential(x), model.gradient(x), *model.gradient_and_hessian(x)

    same_on_any(on, compute, rtol=1e-9)


@pytest.mark.release
def test_sums_of_a_regression_do_not_depend_on_the_number_of_threads(on):  # noqa: F811
    on(0)
    model = regression(PoissonLaw, N)
    same_on_any(on, lambda: laplace(model), rtol=1e-7)
