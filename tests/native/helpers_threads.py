"""Passes over rows on so many threads, whose numbers must not depend on how many there are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pdmp.gradients import alias
from pdmp.models.priors import Gamma, HalfStudentT, Normal
from pdmp.models.regressions.likelihoods import PoissonLaw, StudentTLaw
from pdmp.models.regressions.mixed import MixedRegression
from pdmp.native import threads


@pytest.fixture
def on(monkeypatch):
    """``on(k)``: chunks of 64 rows on k threads; ``on(0)``: all rows in one."""
    monkeypatch.setattr(threads, "FEWEST", 1)

    def set_threads(k):
        monkeypatch.setattr(threads, "CHUNK", 10 if k else 10**9)
        monkeypatch.setattr(alias, "PART", 64 if k else 10**9)
        monkeypatch.setattr(threads, "threads", lambda: max(k, 1))

    return set_threads


def same_on_any(on, compute, rtol=1e-10):
    """Arrays of `compute()`: bitwise the same for 1, 2 and 8 threads, and about those of one pass over all rows."""
    found = {}
    for k in (0, 1, 2, 8):
        on(k)
        found[k] = [np.asarray(a, float) for a in compute()]
    for one, two, eight, whole in zip(found[1], found[2], found[8], found[0], strict=True):
        assert_array_equal(one, two)
        assert_array_equal(one, eight)
        assert_allclose(one, whole, rtol=rtol, atol=1e-12 * np.abs(whole).max(initial=0.0))
    return found[8]


def regression(law, n):
    rng = np.random.default_rng(9)
    X = np.column_stack([np.ones(n), rng.standard_normal((n, 2))])
    z = X @ [0.3, 0.5, -0.4]
    y = rng.poisson(np.exp(z)) if law is PoissonLaw else z + rng.standard_t(4.0, n)
    spreads = [HalfStudentT(4.0, 2.0), Gamma(2.0, 10.0)] if law is StudentTLaw else []
    priors = [Normal(0.0, 2.5)] * 3
    return MixedRegression(X, y, law(), ["1", "a", "b"], priors, [], spreads, intercept=0, weights=rng.uniform(1, 2, n))
