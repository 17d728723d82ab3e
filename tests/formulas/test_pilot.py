"""The short run before a regression with dispersions: what it changes, and what it leaves as it is."""

from types import SimpleNamespace

import numpy as np
import pytest

from pdmp.errors import SamplingError
from pdmp.formulas import pilot
from pdmp.models.priors import HalfNormal, Normal
from pdmp.models.regressions.group_intercepts import GroupIntercepts
from pdmp.models.regressions.likelihoods import NegativeBinomialLaw, PoissonLaw
from pdmp.models.regressions.mixed import GroupColumn, MixedRegression
from pdmp.processes.regression_zigzag import RegressionZigZag
from tests.checks import plain_only

pytestmark = [pytest.mark.exact, plain_only, pytest.mark.usefixtures("few_radii")]

GROUPS, N = 4, 24


def process(groups=True, law=NegativeBinomialLaw):
    rng = np.random.default_rng(2)
    g = np.arange(N) % GROUPS
    column = GroupColumn("1|g", "g", tuple(range(GROUPS)), g, np.ones(N), HalfNormal(1.0))
    model = (GroupIntercepts if groups else MixedRegression)(
        np.column_stack([np.ones(N), rng.standard_normal(N)]),
        rng.poisson(2.0, N),
        law(),
        ["Intercept", "x"],
        [Normal(0.0, 1.0)] * 2,
        [column] if groups else [],
        [HalfNormal(1.0)] if law is NegativeBinomialLaw else [],
        intercept=0,
    )
    return RegressionZigZag(model)


def starts(n, rng):
    return rng.standard_normal((n, 9))


def run_with(monkeypatch, first, results):
    """What `with_pilot` makes of pilot runs with these means and standard deviations, in speeds from the anchor."""
    asked = []

    def sample(process, **options):
        shift, width = results[len(asked)]
        asked.append((process, options))
        mean, sd = first.anchor + np.asarray(shift) * first.speed, np.asarray(width) * first.speed
        return SimpleNamespace(mean=lambda: mean, var=lambda: sd**2, stats={"data_passes": 2.5})

    monkeypatch.setattr(pilot, "sample", sample)
    return (*pilot.with_pilot(first, starts, 5), asked)


def test_anchor_and_speeds_of_dispersions_are_those_of_the_pilot(monkeypatch):
    first = process()
    few = np.r_[first.spread, first.dim - 1]
    shift, width = np.full(first.dim, 0.2), np.full(first.dim, 0.9)
    shift[first.dim - 1] = -1.5
    found, passes, asked = run_with(monkeypatch, first, [(shift, width)])
    anchor, speed = first.anchor.copy(), first.speed
    anchor[few] += (shift * first.speed)[few]
    np.testing.assert_allclose(found.anchor, anchor, rtol=1e-12)
    np.testing.assert_allclose(found.speed, speed, rtol=1e-12)  # none is made smaller
    assert passes == 3.5 and len(asked) == 1 and found.model is first.model
    pull = found.model.gradient(anchor)
    prior = np.zeros(first.dim)
    found.model.native.add_prior_gradient(anchor, prior)
    np.testing.assert_allclose(found.pull, pull - prior, rtol=1e-8, atol=1e-9)


def test_a_speed_that_is_too_small_is_looked_at_again(monkeypatch):
    first = process()
    wide = np.ones(first.dim)
    wide[first.spread] = 4.0
    found, passes, asked = run_with(monkeypatch, first, [(0.0, wide), (0.0, 1.1 * wide)])
    assert found.speed[first.spread] == pytest.approx(4.0 * first.speed[first.spread])
    assert len(asked) == 2 and asked[1][0] is found and passes == 6.0
    assert asked[0][1]["seed"] != asked[1][1]["seed"]
    wide[first.spread] = 3.0
    found, _, asked = run_with(monkeypatch, first, [(0.0, k * wide) for k in (1.0, 2.5, 6.25)])
    assert len(asked) == pilot.ROUNDS


def test_what_is_good_enough_is_left(monkeypatch):
    first = process()
    near = run_with(monkeypatch, first, [(0.9, np.full(first.dim, 1.4))])
    assert near[0] is first and near[1] == 2.5
    others = np.full(first.dim, 5.0)
    others[first.dim - 1] = 0.0  # no row's remainder depends on log τ
    wide = np.full(first.dim, 3.0)
    wide[[first.spread, first.dim - 1]] = 1.0
    assert run_with(monkeypatch, first, [(others, wide)])[0] is first


@pytest.mark.parametrize(
    ("shift", "width", "is_left"), [(0.99, 1.0, True), (1.01, 1.0, False), (0.0, 1.49, True), (0.0, 1.51, False)]
)
def test_what_a_pilot_may_be_off_by(shift, width, is_left, monkeypatch):
    """One standard deviation of the last coordinate, a dispersion; and half as wide again."""
    first = process()
    shifts, widths = np.zeros(first.dim), np.ones(first.dim)
    shifts[-1], widths[first.spread] = shift, width
    found, passes, asked = run_with(monkeypatch, first, [(shifts, widths), (0.0, widths)])
    assert (found is first) == is_left and passes == (2.5 if is_left else 3.5 if width == 1.0 else 6.0)
    options = asked[0][1]
    assert options.pop("initial").shape == (9,) and isinstance(options.pop("seed"), int) and asked[0][0] is first
    wanted = {"time": 100.0, "warmup": 0.2, "store": "moments", "covariance": False, "progress": False}
    assert options == wanted


def test_coefficients_alone_need_no_pilot_and_failures_are_left_to_the_run(monkeypatch):
    for first in (process(groups=False, law=PoissonLaw),):
        assert run_with(monkeypatch, first, [])[:2] == (first, 0.0)
    first = process()

    def fails(*_, **__):
        raise SamplingError("no")

    monkeypatch.setattr(pilot, "sample", fails)
    assert pilot.with_pilot(first, starts, 5) == (first, 0.0)


def test_the_pilot_is_a_function_of_the_seed(monkeypatch):
    monkeypatch.setattr(pilot, "LENGTH", 1.0)
    monkeypatch.setattr(pilot, "FAR", 0.0)
    monkeypatch.setattr(pilot, "ROUNDS", 1)
    first = process()
    found = [pilot.with_pilot(first, lambda n, rng: first.anchor[None], seed)[0] for seed in (3, 3, 4)]
    np.testing.assert_array_equal(found[0].anchor, found[1].anchor)
    np.testing.assert_array_equal(found[0].speed, found[1].speed)
    assert found[0] is not first and not np.array_equal(found[0].anchor, found[2].anchor)
