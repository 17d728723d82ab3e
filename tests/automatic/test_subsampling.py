"""Whether `pdmp.sample(model)` looks at single rows of a sum of terms, and what it says of that."""

import math
import re
import types

import numpy as np
import pytest

import pdmp
from pdmp.automatic import modes, subsampling
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


def decided(model):
    process, _, said = subsampled(model)
    return process, said


def test_rows_that_say_much_are_looked_at_one_by_one(monkeypatch):
    monkeypatch.setattr(subsampling, "FEWEST_ROWS", 60)
    monkeypatch.setattr(subsampling, "SHARE", math.inf)
    model = counts()
    process, starts, said = subsampled(model)
    assert "exact at one row a proposal" in said and "of 60 rows" in said
    ready = pdmp.auto(model, chains=3, seed=1).prepared
    assert ready.choice == f"{said}; {modes.told(0)}" and ready.starts.shape == (3, 2) and ready.gradients >= 30
    mode, root = model.mode(), process.reference.root
    draws = mode + np.random.default_rng(1).standard_normal((3, 2)) @ root.T
    np.testing.assert_array_equal(starts(3, np.random.default_rng(1)), draws)
    np.testing.assert_allclose(root @ root.T, np.linalg.inv(model.hessian(mode)), rtol=1e-6)
    assert process.refresh_rate == math.sqrt(2.0)
    assert process.growth.radii[-1] >= math.sqrt(2.0) + 6.0


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"FEWEST_ROWS": 61}, "there are 60 rows, which are few"),
        ({"LARGEST_DIM": 1}, "2 dimensions are many for an expansion"),
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
    assert process is None and said == "the mode was not found, give proper priors"
    assert decided(pdmp.models.Gaussian(0.0, [1.0])) == (None, "")


@pytest.mark.parametrize("costs", [(3.0, 2.0, 9.0), (3.0, 4.0, 9.0), (3.0, None, 9.0)])
def test_the_least_cost_of_those_that_apply_is_taken(costs, monkeypatch):
    """And why one does not apply is said where none does but all rows, or where it was asked for."""
    process = pdmp.ZigZag(pdmp.models.Gaussian(0.0, [1.0]))

    def make(cost):
        if cost is None:
            raise ValueError("rows have no bound.")
        return process

    offers = {
        name: subsampling.Candidate(lambda cost=cost: make(cost), lambda _, cost=cost: cost, f"{name} by {{}}", None)
        for name, cost in zip(("slow", "quick", "dear"), costs, strict=True)
    }
    monkeypatch.setattr(subsampling, "candidates", lambda *_: offers)
    best, rows = ("quick", 2) if costs[1] == 2.0 else ("slow", 3)
    model, bound = types.SimpleNamespace(n_data=12_000), process.describe_bound()
    why = f"of the processes that apply it looks at the fewest rows for an effective draw, about {rows} of 12,000"
    assert subsampled(model) == (process, None, f"{best} by {bound}; {why}")
    assert subsampled(model, sampler="dear") == (process, None, f"dear by {bound}")
    if costs[1] is None:
        assert subsampled(model, sampler="quick") == (None, None, "rows have no bound")
        del offers["dear"]
        offers["slow"] = offers["slow"]._replace(make=lambda: None, rows=5.0)
        assert subsampled(model) == (None, None, "rows have no bound")


def test_a_row_without_a_bound_is_named(monkeypatch):
    monkeypatch.setattr(subsampling, "FEWEST_ROWS", 1)
    p = pdmp.Parameters(z=1)
    rows = pdmp.terms(lambda y, z: 0.5 * (z - y) ** 2 + 1e-9 / (z - 0.7), [np.ones(5)], [np.ones((5, 1)) @ p.z])
    process, said = decided(pdmp.models.sum_of_terms(p, [rows], priors={"z": Normal(0.0, 1.0)}, initial={"z": 1.0}))
    assert process is None and said.startswith("no finite bound for row 0 of <lambda> within")


def test_rows_that_have_the_sum_of_all_are_what_a_gradient_costs(monkeypatch):
    """Of 600 normal responses in 5 groups: 8 rows, which are few, or are compared with single rows."""
    rng, p = np.random.default_rng(3), pdmp.Parameters(beta=2, u=5, log_sigma=1)
    X, level, y = (
        np.column_stack([np.ones(600), rng.standard_normal(600)]),
        np.arange(600) % 5,
        rng.standard_normal(600),
    )
    rows = pdmp.families.gaussian.rows(y, mu=X @ p.beta + p.u[level], sigma=p.log_sigma)
    model = pdmp.models.sum_of_terms(p, [rows], {name: Normal(0.0, 1.0) for name in p.sizes})
    monkeypatch.setattr(subsampling, "FEWEST_ROWS", 500)
    with pytest.raises(ValueError, match="^8 rows have the same sum as all 600$"):
        subsampling.of_sum(model, model.mode())
    monkeypatch.setattr(subsampling, "FEWEST_ROWS", 8)
    offers = subsampling.of_sum(model, model.mode())
    assert (
        offers["all rows"].rows == subsampling.SHARE * 8 and "and 8 have the same sum as all" in offers["all rows"].said
    )
