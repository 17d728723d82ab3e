"""Formulas of the documentation of brms and Bambi: each runs, or is refused with what to write, as a page says."""

import numpy as np
import pytest

import pdmp
from tests.formulas.helpers_others import BAMBI, BRMS, PAGE, error_of, page, table

pytestmark = pytest.mark.exact


@pytest.mark.slow
def test_the_page_says_what_is_found():
    """`python -m tests.formulas.helpers_others` writes it anew."""
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.slow
def test_what_is_refused_has_something_that_runs():
    data = table()
    for one in BRMS + BAMBI:
        refused = error_of(one.here, data, one.family, **one.options)
        assert bool(refused) == (one.instead is not None), (one.here, refused)
        if one.instead:
            assert error_of(one.instead[0], data, *one.instead[1:]) == "", one.instead
    assert len(BRMS) >= 40 and len(BAMBI) >= 20


@pytest.mark.parametrize(
    ("there", "here", "options"),
    [
        ("weighted(y, w1) ~ x", "y | weights(w1) ~ x", {}),
        ("truncated(time, lb=0.001, ub=99) ~ x", "time | trunc(0.001, 99) ~ x", {}),
        ("constrained(time, ub=np.inf, lb=t0) ~ x", "time | trunc(lb=t0) ~ x", {"family": "lognormal"}),
        ("y ~ (x + z)^2 + I(x1^3)", "y ~ x * z + I(x1**3)", {}),
    ],
)
def test_other_words_are_the_same_model(there, here, options):
    data = table().assign(t0=lambda d: 0.5 * d.time)
    one, other = (pdmp.regression(text, data, sample=False, **options) for text in (there, here))
    assert {name: str(law) for name, law in one.priors.items()} == {n: str(law) for n, law in other.priors.items()}
    at = one.model.initial + np.linspace(0.1, 0.3, one.model.dim)
    assert one.model.potential(at) == other.model.potential(at)
