"""The lattice on which paths of the Zig-Zag splitting scheme stay."""

import re
import warnings

import numpy as np
import pytest

import discrete
import pdmp
from discrete import splitting

pytestmark = pytest.mark.exact


@pytest.mark.parametrize(
    ("covariance", "step"),
    [([[1.0]], 1.5), ([[4.0]], 4.0), ([[0.61, -0.366], [-0.366, 1.22]], 1.5), ([[1.0, 0.9], [0.9, 1.0]], 0.8)],
)
def test_how_far_off_a_lattice_is(covariance, step):
    """Against sums over its points, to the next waves, whose share is the square of what is found and less."""
    covariance = np.array(covariance)
    n = int(40.0 * np.sqrt(covariance.max()) / step)
    points = np.stack(np.meshgrid(*[step * np.arange(-n, n + 1)] * len(covariance), indexing="ij"), -1)
    weight = np.exp(-0.5 * np.einsum("...i,ij,...j", points, np.linalg.inv(covariance), points))
    variance = (weight[..., None] * points**2).reshape(-1, len(covariance)).sum(axis=0) / weight.sum()
    worst = np.abs(variance / np.diag(covariance) - 1.0).max()
    found = splitting.off_on_lattice(covariance / step**2)
    assert found.shape == covariance.shape
    assert 0.6 * worst < found.max() < 1.1 * worst


@pytest.mark.parametrize("adjusted", [True, False])
def test_a_lattice_that_is_too_wide_is_told(adjusted):
    """By the coordinate, and not of steps of a standard deviation, nor of those that decrease."""
    model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 1.0 / 9.0])

    def run(step):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            pdmp.sample(discrete.ZigZagSplitting(model, step, adjusted), steps=600, seed=1, progress=False)
        return [str(one.message) for one in told if "stays on points" in str(one.message)]

    (said,) = run(2.5)
    assert said.startswith(
        "the path stays on points that are ε = 2.5 apart along each coordinate, which is wide for x[0]:"
    )
    assert run(1.0) == []
    assert run(discrete.schedules.polynomial(5.0, 10.0, 0.3)) == []


@pytest.mark.parametrize(
    ("precision", "step", "named"),
    [
        ([[0.04, 0.0], [0.0, 1.0]], 2.2, "x[1]:"),
        ([[100.0 / 19.0, -90.0 / 19.0], [-90.0 / 19.0, 100.0 / 19.0]], 1.2, "x[0] and x[1]:"),
    ],
)
def test_what_a_lattice_is_wide_for_is_named(precision, step, named):
    """The second coordinate; and the difference of two, each of which alone is wide enough."""
    model = pdmp.models.Gaussian([0.0, 0.0], np.array(precision))
    with pytest.warns(UserWarning, match="stays on points") as told:
        run = pdmp.sample(discrete.ZigZagSplitting(model, step, True), steps=3_000, seed=1, progress=False)
    (said,) = [str(one.message) for one in told if "stays on points" in str(one.message)]
    assert f"which is wide for {named} the variance" in said
    share = float(re.search(r"is off by some ([\d.e-]+) of itself", said).group(1))
    assert share == pytest.approx(splitting.off_on_lattice(run.cov() / step**2).max(), rel=0.5)


def test_a_setting_says_whether_steps_are_adjusted():
    words = [
        splitting.SplittingRecipe().setting(discrete.ZigZagSplitting(pdmp.models.Gaussian([0.0], [1.0]), 0.1, adjusted))
        for adjusted in (True, False)
    ]
    assert words[0] == f"{words[1]}, adjusted" and "adjusted" not in words[1]
