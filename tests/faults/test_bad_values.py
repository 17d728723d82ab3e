"""Values that a conversion would change in silence, options that would do nothing, and words that say too much."""

from __future__ import annotations

import numpy as np
import pytest

import discrete
import pdmp
from pdmp.data.dataset import standardised
from pdmp.diagnostics.summary import _path_distance

pytestmark = pytest.mark.exact

X = np.random.default_rng(0).standard_normal((12, 2))
Y = (X[:, 0] > 0.0).astype(float)
MASKED, COMPLEX = np.ma.masked_greater(X, 1.0), X + 1j
GAUSSIAN = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda bad: pdmp.models.LogisticRegression(bad, Y), "X"),
        (lambda bad: pdmp.models.LinearGaussian(A=bad, x=Y), "A"),
        (lambda bad: pdmp.models.PoissonRegression(X, bad[:, 0]), "y"),
        (lambda bad: pdmp.models.ICA(bad), "X"),
        (lambda bad: pdmp.models.Gaussian(bad[:2, 0], [1.0, 4.0]), "mean"),
        (lambda bad: pdmp.ZigZag(GAUSSIAN, speed=bad[:2, 0]), "speed"),
        (lambda bad: pdmp.BPS(GAUSSIAN, mass=bad[:2]), "mass"),
        (lambda bad: discrete.SGLD(GAUSSIAN, 0.1, preconditioner=bad[:2]), "preconditioner"),
        (lambda bad: pdmp.sample(pdmp.ZigZag(GAUSSIAN), initial=bad[0], events=5, seed=1), "initial"),
        (lambda bad: GAUSSIAN.potential(bad[0]), "x"),
    ],
)
def test_masked_entries_and_complex_numbers_are_errors(call, name):
    masked = np.ma.masked_array(X, mask=np.ones(X.shape, bool))
    with pytest.raises(ValueError, match=rf"`{name}` has \d+ masked entries"):
        call(masked)
    with pytest.raises(ValueError, match=f"`{name}` must be real, got complex numbers"):
        call(COMPLEX)


def test_an_array_that_masks_nothing_is_taken():
    model = pdmp.models.LogisticRegression(np.ma.masked_array(X), Y)
    assert model.potential(np.ones(2)) == pdmp.models.LogisticRegression(X, Y).potential(np.ones(2))


def test_complex_entries_of_lists_and_columns():
    with pytest.raises(ValueError, match="`mean` must be real"):
        pdmp.models.Gaussian([1.0, 1j], [1.0, 4.0])
    table = pytest.importorskip("pandas").DataFrame({"a": X[:, 0], "b": COMPLEX[:, 1]})
    with pytest.raises(ValueError, match="`X` must be real, its column 'b' holds complex numbers"):
        pdmp.models.LogisticRegression(table, Y)


def test_underscores_in_a_file_are_no_numbers(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,y\n1_0,0\n2,1\n3,0\n4,1\n")
    with pytest.raises(ValueError, match="column 'a' of table.csv holds '1_0'; if it is a number, write '10'"):
        pdmp.data.read(path, target="y")


def test_a_column_whose_variance_overflows_is_an_error():
    table = np.column_stack([X[:, 0], 1e307 * X[:, 1]])
    with pytest.raises(ValueError, match="column 'b' cannot be standardised: .*as large as .*e.30[67]"):
        standardised(table, np.arange(12), ("a", "b"))
    np.testing.assert_allclose(standardised(X, np.arange(12), ("a", "b")).std(axis=0), 1.0)


@pytest.mark.parametrize(
    "make, option",
    [
        (lambda: pdmp.BPS(GAUSSIAN, mass="adaptive", refresh_rate=1.0), 'mass="adaptive"'),
        (lambda: pdmp.BPS(GAUSSIAN, mass="adaptive dense", refresh_rate=1.0), 'mass="adaptive dense"'),
        (lambda: pdmp.SBPS(pdmp.gradients.Noisy(GAUSSIAN, 1.0), precondition="adapt"), 'precondition="adapt"'),
    ],
)
def test_what_adapts_in_the_warm_up_says_so_without_one(make, option):
    with pytest.warns(UserWarning, match=f"`warmup` is 0: {option} adapts in the warm-up only"):
        pdmp.sample(make(), events=10, seed=1)
    pdmp.sample(make(), events=10, warmup=0.5, seed=1)


def test_the_distance_of_a_path_is_stated_where_it_says_something():
    assert _path_distance(0.002) == ", and the law of a chain's path is off by at most 0.002 in total variation."
    assert "at most 0.4 in total variation; use" in _path_distance(0.4)
    assert "total variation" not in _path_distance(0.5) and "Grid(safety=20)" in _path_distance(0.5)
