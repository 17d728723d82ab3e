"""Errors against a reference: by hand, and their own standard errors against independent replicates."""

import numpy as np
import pytest

from pdmp.diagnostics import (
    jackknife,
    mean_error,
    mmd,
    report,
    sd_error,
    sliced_wasserstein,
    variance_error,
    wasserstein,
)

pytestmark = pytest.mark.exact

X = np.array([[0.0, 2.0], [2.0, 4.0], [4.0, 6.0], [2.0, 4.0]])  # means 2 and 4, variances 2


def test_errors_of_moments_by_hand():
    assert mean_error(X, [1.0, 4.0], [2.0, 1.0], 2).value == pytest.approx(0.25)
    assert variance_error(X, [2.0, 1.0], stretches=2).value == pytest.approx((2.0 / 2.0 + 1.0) / 2.0)
    assert variance_error(X, [2.0, 1.0], relative=True, stretches=2).value == pytest.approx((2.0 / 4.0 + 1.0) / 2.0)
    root = np.sqrt(2.0)
    assert sd_error(X, [2.0, 1.0], 2).value == pytest.approx(np.hypot(2.0 - root, 1.0 - root) / np.sqrt(5.0))


def test_distances_by_hand():
    reference = X + [1.0, -3.0]
    np.testing.assert_allclose(wasserstein(X, reference, 2).value, [1.0, 3.0])
    assert sliced_wasserstein(X[:, :1], reference[:, :1], stretches=2).value == pytest.approx(1.0)
    k = np.exp(-((X[:, None, 0] - X[:, 0]) ** 2) / 2.0)
    off = (k.sum() - 4.0) / 12.0
    other = np.exp(-((X[:, None, 0] - reference[:, 0]) ** 2) / 2.0).mean()
    assert mmd(X[:, :1], reference[:, :1], 1.0, 2).value == pytest.approx(2.0 * off - 2.0 * other)


def test_distances_of_many_draws_are_those_of_some_of_all_chains(monkeypatch):
    monkeypatch.setattr("pdmp.diagnostics.distances.MMD_DRAWS", 50)
    x, reference = (np.random.default_rng(k).standard_normal((3, 40, 2)) for k in (1, 2))
    found, fewer = mmd(x, reference, stretches=2), mmd(x[:, ::3], reference.reshape(-1, 2)[::3], stretches=2)
    assert found == fewer


def test_projections_are_on_directions_of_unit_length():
    """Whose means are far apart: along each the distance is that of the means; directions are those of the seed."""
    x = np.random.default_rng(3).standard_normal((30, 3))
    shift = np.array([40.0, -10.0, 5.0])
    for seed in (0, 4):
        u = np.random.default_rng(seed).standard_normal((7, 3))
        expected = np.mean([abs(one @ shift) / np.linalg.norm(one) for one in u])
        assert sliced_wasserstein(x, x + shift, 7, seed, 2).value == pytest.approx(expected, rel=1e-9)
    units = np.array([2.0, 5.0, 0.5])
    assert wasserstein(x, x + shift, 2, units).value == pytest.approx(np.mean(np.abs(shift) / units))
    reference = np.stack([x[:9], x[9:18] + 1.0])  # as draws of two chains
    for function in (wasserstein, sliced_wasserstein, mmd):
        found, flat = (function(x, r, stretches=2) for r in (reference, reference.reshape(-1, 3)))
        np.testing.assert_array_equal(found.value, flat.value)


def test_stretches_of_unequal_chains_and_of_several_measures():
    """Of each chain as many as give so many of all together, or a few more: the values without each, by hand."""
    x = np.random.default_rng(6).standard_normal((3, 29, 2)) * [1.0, 7.0]
    pieces = [part for chain in x for part in np.array_split(chain, 4)]  # 4 of each of 3 chains are 12, 3 would be 9
    without = np.array([np.concatenate([*pieces[:k], *pieces[k + 1 :]]).mean(axis=0) for k in range(12)])
    found = jackknife(lambda x: x.mean(axis=0), x, stretches=10)
    np.testing.assert_allclose(found.value, x.mean(axis=(0, 1)))
    np.testing.assert_allclose(found.error, np.sqrt(11.0) * without.std(axis=0))


def test_stretches_have_two_draws():
    """Of nine draws of a chain four, which its draws that are left over lengthen."""
    x = np.random.default_rng(8).standard_normal((2, 9, 1))
    assert jackknife(lambda x: x.mean(), x, 8).error > 0.0
    for each in (5, 9):
        with pytest.raises(ValueError, match=f"^9 draws of a chain are too few for {each} stretches"):
            jackknife(lambda x: x.mean(), x, 2 * each)


MEASURES = {
    "mean": lambda x, r: mean_error(x, [0.3, 0.0], 1.0),
    "variance": lambda x, r: variance_error(x, [1.2, 1.2]),
    "sd": lambda x, r: sd_error(x, [1.2, 1.2]),
    "Wasserstein": lambda x, r: wasserstein(x, r),
    "sliced": lambda x, r: sliced_wasserstein(x, r, slices=10),
    "mmd": lambda x, r: mmd(x, r, 1.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MEASURES)
def test_the_errors_are_those_of_replicates(name):
    """The spread over 100 data sets of correlated draws, and the mean of the errors given for them, within a third."""
    rng = np.random.default_rng(2)
    reference = rng.standard_normal((300, 2)) * [1.0, 1.0] + [0.5, 0.0]
    values, errors = [], []
    for _ in range(60):
        z = rng.standard_normal((2, 330, 2))
        for k in range(1, 330):  # AR(1)
            z[:, k] = 0.5 * z[:, k - 1] + np.sqrt(0.75) * z[:, k]
        found = MEASURES[name](z[:, 10:], reference)
        values.append(found.value)
        errors.append(found.error)
    ratio = np.sqrt(np.mean(np.square(errors), axis=0)) / np.std(values, axis=0, ddof=1)
    assert np.all((0.67 < ratio) & (ratio < 1.5)), ratio


CASES = {
    "nan": (lambda: mean_error(np.full((8, 1), np.nan), 0.0, 1.0, 2), "`draws` must be finite"),
    "shape": (lambda: mean_error([1.0, 2.0], 0.0, 1.0), "`draws` must have shape"),
    "sd": (lambda: sd_error(X, [1.0, 0.0], 2), "`sd` positive"),
    "stretches": (lambda: sd_error(X, 1.0, 1), "`stretches`"),
    "too many": (lambda: sd_error(X, 1.0, 16), "too few"),
    "reference": (lambda: wasserstein(X, X[:, :1], 2), r"`reference` must be finite draws of shape \(P, 2\)"),
    "bandwidth": (lambda: mmd(X, X, 0.0, 2), "`bandwidth`"),
    "no sampler": (lambda: report({}, X), "`draws` must have at least one"),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_one_line(name):
    make, message = CASES[name]
    with pytest.raises(ValueError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
