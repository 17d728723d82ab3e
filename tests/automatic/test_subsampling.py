"""Whether `pdmp.sample(model)` looks at single rows of a sum of terms, and what it says of that."""

import math
import re

import numpy as np
import pytest

import pdmp
from pdmp.automatic import subsampling
from pdmp.automatic.subsampling import subsampled
from pdmp.models.priors import Flat, Normal

pytestmark = pytest.mark.exact
RNG = np.random.default_rng(0)
X = np.column_stack([np.ones(60), RNG.standard_normal(60)])
COUNTS = RNG.poisson(np.exp(X @ [3.0, 0.2])).astype(float)


def counts(prior=Normal(0.0, 2.5)):  # noqa: B008 - a value
    """Sixty counts of about twenty each, which say much."""
    p = pdmp.Parameters(rate=2)
    rows = pdmp.terms(lambda y, z: np.exp(z) - y * z, [COUNTS], [X @ p.rate])
    return pdmp.models.sum_of_terms(p, [rows], priors={"rate": prior})


def decided(model, chains=3):
    return subsampled(model, chains, np.random.default_rng(1))


def test_rows_that_say_much_are_looked_at_one_by_one(monkeypatch):
    monkeypatch.setattr(subsampling, "FEWEST_ROWS", 60)
    monkeypatch.setattr(subsampling, "SHARE", math.inf)
    model = counts()
    process, said = decided(model)
    assert said == process.prepared.choice and "exact at one row a proposal" in said and "of 60 rows" in said
    mode, root = model.mode(), process.reference.root
    draws = mode + np.random.default_rng(1).standard_normal((3, 2)) @ root.T
    np.testing.assert_array_equal(process.prepared.starts, draws)
    np.testing.assert_allclose(root @ root.T, np.linalg.inv(model.hessian(mode)), rtol=1e-6)
    assert process.prepared.gradients == 30 and process.refresh_rate == math.sqrt(2.0)
    assert process.growth.radii[-1] >= math.sqrt(2.0) + 6.0


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"FEWEST_ROWS": 61}, "each gradient is from all 60 rows, which are few"),
        ({"LARGEST_DIM": 1}, "each gradient is from all rows, as 2 dimensions are many for an expansion"),
        (
            {"ROOM": 1e3},
            "bounds on single rows are finite up to [0-9.]+ standard deviations from the mode only, and paths",
        ),
        ({"SHARE": 1e-9}, r"single rows would be looked at [0-9.e-]+ times as often as there are rows, above 1e-09$"),
    ],
)
def test_why_all_rows_are_looked_at(setting, said, monkeypatch):
    for name, value in ({"FEWEST_ROWS": 1, "SHARE": math.inf} | setting).items():
        monkeypatch.setattr(subsampling, name, value)
    process, text = decided(counts())
    assert process is None and re.search(said, text)


@pytest.mark.filterwarnings("ignore:the loss `<lambda>` does not use")
def test_without_a_mode_or_of_another_model(monkeypatch):
    monkeypatch.setattr(subsampling, "FEWEST_ROWS", 1)
    p = pdmp.Parameters(z=1)
    rows = pdmp.terms(lambda y, z: np.exp(-z) + 0.0 * y, [np.ones(5)], [np.ones((5, 1)) @ p.z])
    process, said = decided(pdmp.models.sum_of_terms(p, [rows], priors={"z": Flat()}))
    assert process is None and said == "each gradient is from all rows, as the mode was not found: give proper priors"
    assert decided(pdmp.models.Gaussian(0.0, [1.0])) == (None, "")


def test_a_row_without_a_bound_is_named(monkeypatch):
    monkeypatch.setattr(subsampling, "FEWEST_ROWS", 1)
    p = pdmp.Parameters(z=1)
    rows = pdmp.terms(lambda y, z: 0.5 * (z - y) ** 2 + 1e-9 / (z - 0.7), [np.ones(5)], [np.ones((5, 1)) @ p.z])
    process, said = decided(pdmp.models.sum_of_terms(p, [rows], priors={"z": Normal(0.0, 1.0)}, initial={"z": 1.0}))
    assert process is None and said.startswith(
        "each gradient is from all rows: no finite bound for row 0 of <lambda> within"
    )
