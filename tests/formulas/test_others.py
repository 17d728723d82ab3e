"""Formulas of the documentation of brms and Bambi: each runs, or is refused with what to write, as a page says."""

import pytest

from tests.formulas.helpers_others import BAMBI, BRMS, PAGE, error_of, page, table

pytestmark = pytest.mark.exact


def test_the_page_says_what_is_found():
    """`python -m tests.formulas.helpers_others` writes it anew."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_what_is_refused_has_something_that_runs():
    data, nothing = table(), []
    for one in BRMS + BAMBI:
        refused = error_of(one.here, data, one.family, **one.options)
        assert bool(refused) == (one.instead is not None), (one.here, refused)
        if one.instead:
            assert error_of(one.instead[0], data, *one.instead[1:]) == "", one.instead
        nothing += [one.here] if one.instead == () else []
    assert len(nothing) == 1 and len(BRMS) >= 40 and len(BAMBI) >= 20, nothing
