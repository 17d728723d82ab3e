"""Sub-sampled Boomerang of regressions with dispersions: its rates, bounds, bounces and laws."""

import functools
import math
import re

import numpy as np
import pytest

import pdmp
from pdmp.models.priors import HalfNormal, Normal
from pdmp.models.regressions.laplace import laplace
from pdmp.models.regressions.likelihoods import (
    LogitLaw,
    NegativeBinomialLaw,
    NormalLaw,
    PoissonLaw,
    ProbitLaw,
    StudentTLaw,
)
from pdmp.models.regressions.mixed import MixedRegression
from pdmp.processes import regression_boomerang, regression_zigzag
from pdmp.processes.regression_boomerang import BOUNCE, KNOWN, REFRESHMENT, ROW, RegressionBoomerang
from pdmp.processes.regression_bps import RegressionBPS
from pdmp.processes.regression_zigzag import RegressionZigZag
from tests.checks import assert_unbiased, in_ci
from tests.oracles import likelihoods
from tests.oracles.likelihoods import symmetric
from tests.processes.helpers_regression_boomerang import along, remainders, state_at
from tests.processes.helpers_regression_zigzag import LAWS, crossed, moments_on_a_grid, regression

pytestmark = [pytest.mark.exact, pytest.mark.usefixtures("few_radii")]

usual = functools.cache(lambda law: RegressionBoomerang(regression(law)))
EVERY = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)


def somewhere(process, rng, far=1.0):
    """A position and a velocity, `far` times as far from the anchor and as fast as the reference has them."""
    y, w = far * rng.standard_normal((2, process.dim))
    return process.anchor + process.reference.root @ y, process.reference.root @ w


@EVERY
def test_rates_balance_the_flow(law):
    """Rows and K sum up to ∇U - Σ⁻¹ (x - x̂), of any anchor, and each is a factor with the rate (v·g)₊."""
    model = regression(law)
    rng, found = np.random.default_rng(0), laplace(model)
    for shift in (0.0, 0.3):
        process = usual(law) if shift == 0.0 else RegressionBoomerang(model, found.mean + shift * found.sd)
        x, v = somewhere(process, rng)
        rows, known = remainders(process, x)
        reference = process.reference.precision @ (x - process.anchor)
        total = rows.sum(axis=0) + known
        np.testing.assert_allclose(total, model.gradient(x) - reference, rtol=1e-8, atol=1e-8 * np.abs(rows).max())
        np.testing.assert_allclose(
            process.reference.covariance @ process.reference.precision, np.eye(model.dim), atol=1e-8
        )
        loss, rates = np.zeros(3), np.zeros((2, 3))
        for i, row in enumerate(rows):
            assert along(process, x, v, i, loss) == pytest.approx(v @ row, rel=1e-9, abs=1e-12)
        process.native.true_rates(x, v, np.zeros(model.dim), rates[0])
        process.native.true_rates(x, -v, np.zeros(model.dim), rates[1])
        assert rates[0, ROW] == pytest.approx(np.maximum(rows @ v, 0.0).sum(), rel=1e-9)
        assert rates[0, KNOWN] == pytest.approx(max(known @ v, 0.0), rel=1e-9)
        assert rates[0, REFRESHMENT] == process.refresh_rate
        assert (rates[0] - rates[1]).sum() == pytest.approx(v @ total, rel=1e-9, abs=1e-9 * rates.max())
        if shift == 0.0:
            np.testing.assert_allclose(known * found.sd, process.at_anchor * found.sd, atol=0.4)  # of two priors, not 0
            hessian = model.hessian(process.anchor)
            np.testing.assert_allclose(
                process.reference.precision, hessian, rtol=1e-4, atol=1e-4 * np.abs(hessian).max()
            )


@EVERY
def test_no_rate_is_above_its_bound_along_a_path(law):
    """Each row, and K, at all times of a turn after an event, near the anchor and far from it."""
    model = regression(law, n=12)
    rng, loss, found = np.random.default_rng(1), np.zeros(3), laplace(model)
    for far, shift in ((0.3, 0.3), (1.0, 0.0), (2.0, 0.0)):
        process = RegressionBoomerang(model, found.mean + shift * found.sd)
        share = process.total / process.weights
        x, v = somewhere(process, rng, far)
        state = state_at(process, x, v)
        process.native.clock(state, ROW, 0.0, np.random.default_rng(0))
        bounds = state.memory.bounds
        if far == 2.0 and law is StudentTLaw:  # of few rows shells do not reach far
            assert math.isinf(bounds[ROW])
            continue
        assert np.all(np.isfinite(bounds)) and np.all(bounds >= 0.0)
        for t in np.linspace(0.0, 2.0 * math.pi, 9):
            y, w = x - process.anchor, v
            there = process.anchor + y * math.cos(t) + w * math.sin(t)
            velocity = w * math.cos(t) - y * math.sin(t)
            for i in range(model.n_data):
                assert abs(along(process, there, velocity, i, loss)) * share[i] <= bounds[ROW] * (1.0 + 1e-9)
            _, known = remainders(process, there)
            assert abs(velocity @ known) <= bounds[KNOWN] * (1.0 + 1e-9)


def test_the_bound_of_rows_is_the_maximum_over_a_turn():
    """|w| φ(|y|) along the path, of one shell: attained."""
    rng = np.random.default_rng(2)
    t = np.linspace(0.0, math.pi, 4_001)[:, None]
    for law, most in ((ProbitLaw, 1.0 + 1e-5), (PoissonLaw, 1.0 + 1e-5)):
        process = RegressionBoomerang(regression(law))
        for far in (0.2, 1.0):
            for _ in range(5):
                x, v = somewhere(process, rng, far)
                if rng.random() < 0.5:
                    v *= 0.1  # the middle of the range of |y|² is not in reach
                y, w = (np.linalg.solve(process.reference.root, a) for a in (x - process.anchor, v))
                r = np.linalg.norm(y * np.cos(t) + w * np.sin(t), axis=1)
                phi = process.growth.share(r.max(), 0) * 0.5 * r**2
                exact = process.total * np.max(np.linalg.norm(w * np.cos(t) - y * np.sin(t), axis=1) * phi)
                found = process.native.bound_rows(state_at(process, x, v))
                assert exact * (1.0 - 1e-9) <= found <= exact * most


@EVERY
def test_weights_of_rows_by_matrices(law):
    """S, from all entries of B, and Λᵢ beside the bounds that were worked out by hand: nearly always smaller."""
    process = usual(law)
    model = process.model
    native, n = model.native, 1 + model.n_dispersions
    a, c = (*process.anchor[model.dim - model.n_dispersions :], 0.0, 0.0)[:2]
    rows = model.row_block(0, 0, model.n_data, process.anchor, process.reference.root)
    g, r, by_hand = np.array(likelihoods.growth(law, a, c))[:n], math.sqrt(model.dim), 0.0
    for i in range(model.n_data):
        B = np.zeros((model.dim, n))
        B[: model.n_fixed, 0] = [model.design.feature(i, j) for j in range(model.n_fixed)]
        B[model.n_fixed :, 1:] = np.eye(n - 1)
        S = B.T @ process.reference.covariance @ B
        np.testing.assert_allclose(rows.square[..., i], S, rtol=1e-9, atol=1e-12)
        T = symmetric(likelihoods.third_bounds(law, native.margin(process.anchor, i), model.target[i], a, c), 3)
        T, S = T[:n, :n, :n] * model.weight[i], np.abs(S)
        m, growth = np.sqrt([np.trace(part @ S @ part @ S) for part in T]), r * math.sqrt(g @ S @ g)
        factor = 2.0 * (math.expm1(growth) - growth) / growth**2 if growth > 0.0 else 1.0
        by_hand += math.sqrt(m @ S @ m) * factor
    assert process.tables.totals[0] == pytest.approx(process.weights.sum(), rel=1e-12)
    assert process.total <= (1.3 if law not in (StudentTLaw, NegativeBinomialLaw) else math.inf) * by_hand


@EVERY
def test_proposals_have_the_true_rates(law):
    """Over all rows, chance times rate adds up to the true rate, below the bound; at once and later in the turn."""
    process, rng = usual(law), np.random.default_rng(3)
    model = process.model
    for now in (0.0, 0.8):
        x, v = somewhere(process, rng)
        state, rates = state_at(process, x, v), np.zeros(3)
        for i in (ROW, KNOWN):
            time, bound = process.native.clock(state, i, 0.0, np.random.default_rng(0))
            assert bound == state.memory.bounds[i] and time > 0.0
        there = process.anchor + (x - process.anchor) * math.cos(now) + v * math.sin(now)
        process.native.true_rates(
            there, v * math.cos(now) - (x - process.anchor) * math.sin(now), np.zeros(model.dim), rates
        )
        total = 0.0
        for i in range(model.n_data):
            state.memory.row[0] = i
            rate = process.native.rate(state, ROW, now, None)
            assert rate <= state.memory.bounds[ROW]
            total += process.weights[i] / process.total * rate
        assert total == pytest.approx(rates[ROW], rel=1e-9)
        assert process.native.rate(state, KNOWN, now, None) == pytest.approx(rates[KNOWN], rel=1e-7)


@EVERY
def test_bounces(law):
    """Off the factor that was evaluated, in the metric of the reference: v·g changes its sign, vᵀΣ⁻¹v is kept."""
    process, rng, seen = usual(law), np.random.default_rng(4), set()
    precision = process.reference.precision
    for clock in (ROW, KNOWN):
        x, v = somewhere(process, rng)
        rows, known = remainders(process, x)
        for i in range(5):
            state = state_at(process, x, v)
            state.memory.row[0] = i
            state.memory.gradient[:] = 1.0  # of the last bounce
            process.native.rate(state, clock, 0.0, None)
            assert process.native.jump(state, clock, 0.0, None) == BOUNCE
            g = rows[i] if clock == ROW else known
            assert state.v @ g == pytest.approx(-(v @ g), rel=1e-8)
            assert state.v @ precision @ state.v == pytest.approx(v @ precision @ v, rel=1e-8)
            raised = process.reference.covariance @ g
            np.testing.assert_allclose(
                np.outer(state.v - v, raised), np.outer(raised, state.v - v), atol=1e-9 * np.abs(raised).max()
            )
            seen.add(clock)
    assert seen == {ROW, KNOWN}


def test_bounds_belong_to_the_last_event():
    """They are computed anew after a refreshment, and not after a rejection."""
    process = RegressionBoomerang(regression(PoissonLaw))
    rng = np.random.default_rng(5)
    x, v = somewhere(process, rng)
    state = state_at(process, x, v)
    _, first = process.native.clock(state, ROW, 0.0, rng)
    assert process.native.clock(state, ROW, 0.3, rng)[1] == first
    state.v[:] *= 2.0
    state.moved[0] = 0.5
    _, later = process.native.clock(state, ROW, 0.5, rng)
    assert later == process.native.bound_rows(state) > 1.2 * first


#: Rows of each law: as few as keep the rows that are looked at, in plain Python, below some hundreds a turn.
SIZES = {NormalLaw: 120, StudentTLaw: 1_500, LogitLaw: 60, ProbitLaw: 30, PoissonLaw: 20, NegativeBinomialLaw: 250}


@pytest.mark.slow
@pytest.mark.parametrize(
    "law",  # in plain Python the bounds of a Student-t response take minutes, and of negative binomial counts one
    in_ci(list(LAWS.values()), LogitLaw, PoissonLaw),
    ids=LAWS,
)
def test_laws_of_every_family(law):
    """Of an intercept and its dispersions, or a slope, against quadrature."""
    model = regression(law, n=SIZES[law], columns=1 if law.dispersions else 2)
    found = laplace(model)
    points = 57 if model.dim < 3 else 25
    axes = [np.linspace(m - 7.0 * s, m + 7.0 * s, points) for m, s in zip(found.mean, found.sd, strict=True)]

    def log_density(*x):
        prior = np.vectorize(lambda *one: model.native.prior_potential(np.array(one)))(*x)
        return model.pointwise_log_likelihood(np.stack(x, axis=-1)).sum(axis=-1) - prior

    mean, variance = moments_on_a_grid(log_density, axes)
    process, means, variances = RegressionBoomerang(model), [], []
    time = 400.0 if law in (ProbitLaw, PoissonLaw) else 100.0  # shorter ones say that they need long
    for seed in range(16):
        start = found.draws(1, np.random.default_rng(100 + seed))[0]
        run = pdmp.sample(process, initial=start, time=time, seed=seed, warmup=0.05, progress=False)
        assert run.stats["bound_violations"] == 0
        means.append(run.mean())
        variances.append(run.var())
    assert_unbiased(np.array(means), mean, resolution=0.75 * np.sqrt(variance))
    assert_unbiased(np.array(variances), variance, resolution=1.3 * variance)


def test_what_is_refused():
    with pytest.raises(TypeError, match="takes a SumOfTerms, or a MixedRegression without groups, got a Gaussian"):
        RegressionBoomerang(pdmp.models.Gaussian(0.0, [1.0]))
    with pytest.raises(TypeError, match="without groups, got a GroupIntercepts with groups"):
        RegressionBoomerang(regression(PoissonLaw, 3))
    model = regression(StudentTLaw)
    with pytest.raises(ValueError, match="`refresh_rate` must be"):
        RegressionBoomerang(model, refresh_rate=-1.0)
    with pytest.raises(ValueError, match="`anchor` must"):
        RegressionBoomerang(model, [0.0])
    with pytest.raises(ValueError, match="`anchor`: the Hessian of data and prior is not positive definite there"):
        RegressionBoomerang(model, laplace(model).mean + [30.0, 0.0, 0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="`anchor`: the Hessian of the data is not finite there"):
        with np.errstate(all="ignore"):
            RegressionBoomerang(regression(PoissonLaw), [800.0, 0.0, 0.0])
    for model in (regression(PoissonLaw), crossed(PoissonLaw)):
        with pytest.raises(ValueError, match="`anchor`: the bounds of single rows are not finite there"):
            with np.errstate(all="ignore"):
                RegressionZigZag(model, np.full(model.dim, 800.0), metric=None)
    p = pdmp.Parameters(x=1)
    terms = pdmp.models.sum_of_terms(
        p, [pdmp.terms(lambda y, z: (y - z) ** 2, [np.arange(3.0)], [p.x])], {"x": Normal(0.0, 1.0)}
    )
    with pytest.raises(TypeError, match="`few_move` is for a MixedRegression, got a SumOfTerms"):
        RegressionBPS(terms, few_move=True)


@pytest.mark.parametrize("sampler", [RegressionBoomerang, RegressionBPS, RegressionZigZag])
def test_an_anchor_is_asked_for_where_there_is_no_mode(sampler, monkeypatch):
    for module in (regression_boomerang, regression_zigzag):
        monkeypatch.setattr(module, "laplace", lambda model: None)
    model = regression(PoissonLaw)
    with pytest.raises(ValueError, match="must be given: the posterior's mode was not found"):
        sampler(model)
    if sampler is RegressionZigZag:  # both, or the approximation is asked for the other
        for known in ("anchor", "metric"):
            with pytest.raises(ValueError, match="`anchor` and `metric` must be given"):
                sampler(model, **{known: np.full(model.dim, 0.1)})


def test_a_path_that_is_lost_is_an_error():
    """Where the bound overflows there is no rate to compare."""
    process = RegressionBoomerang(regression(PoissonLaw))
    far = process.anchor - [2_000.0, 0.0, 0.0]
    with pytest.raises(RuntimeError, match="RegressionBoomerang has left the ball"):
        pdmp.sample(process, initial=far, events=5, seed=1, progress=False)
    state = state_at(process, far, np.zeros(3))
    assert process.native.bound_rows(state) == math.inf


@pytest.mark.parametrize("how", [RegressionBoomerang, RegressionBPS, RegressionZigZag, "sticky", "groups"])
def test_a_path_that_leaves_the_ball_of_the_bounds_says_so(how):
    model = regression(NegativeBinomialLaw, 4 if how == "groups" else 0)
    process = inner = {"sticky": RegressionBPS, "groups": RegressionZigZag}.get(how, how)(model)
    if how == "sticky":
        process = pdmp.Sticky(inner, kappa=1.0, always=[0])
    far, last = inner.anchor.copy(), inner.growth.radii[-1]
    far[-1] += 1.2 * last * (inner.scale[-1] if hasattr(inner, "scale") else inner.hessian[-1, -1] ** -0.5)
    with pytest.raises(pdmp.SamplingError, match="has left the ball around its anchor .* process") as caught:
        pdmp.sample(process, initial=far, events=5, seed=1, progress=False)
    said = re.search(
        rf"^{type(inner).__name__} has .* gets to (\S+) standard .* end at (\S+); start", str(caught.value)
    )
    assert float(said[2]) == pytest.approx(last, rel=5e-3) and last < float(said[1]) < 3.0 * last
    assert inner.report.lost(inner, inner.begin(inner.anchor, np.random.default_rng(0))) is None


def test_rows_without_weight():
    """All data of weight 0: the prior alone, without a proposal of a row."""
    n = 5
    model = MixedRegression(
        np.ones((n, 1)), np.arange(n), PoissonLaw(), ["Intercept"], [Normal(0.5, 2.0)], intercept=0, weights=np.zeros(n)
    )
    process = RegressionBoomerang(model)
    run = pdmp.sample(process, events=50, seed=1, progress=False)
    assert run.stats["data_terms"] == 0 and process.total == 0.0 and process.expected_data == 0.0
    assert process.reference.sd[0] == pytest.approx(2.0) and process.anchor[0] == pytest.approx(0.5, abs=1e-2)


@pytest.mark.parametrize("metric", ["dense", pdmp.Metric(scales=[0.5, 1.0])], ids=["dense", "sd"])
def test_a_prior_that_grows_is_bounded_where_the_path_is_farthest(metric):
    """Of a coordinate that data hardly inform, with a half-normal law, from the anchor with a large velocity."""
    p = pdmp.Parameters(x=1, s=1)
    rows = pdmp.terms(lambda y, m, s: 0.5 * (y - m) ** 2 + 0.01 * s * s, [np.arange(5.0) / 5.0], [p.x, p.s])
    model = pdmp.models.sum_of_terms(p, [rows], {"x": Normal(0.0, 1.0), "s": HalfNormal(1.0)})
    process = RegressionBoomerang(model, metric=metric)
    out = np.empty(2)
    for v in ([0.5, 4.0], [-0.5, -3.0]):
        state = state_at(process, process.anchor.copy(), np.array(v))
        process.native.clock(state, KNOWN, 0.0, np.random.default_rng(0))
        rates = []
        for t in np.linspace(0.0, 2.0 * math.pi, 60):
            x = process.anchor + np.array(v) * math.sin(t)
            process.native.known(x, out)
            rates.append(abs(np.array(v) * math.cos(t) @ out))
        assert max(rates) <= state.memory.bounds[KNOWN] * (1.0 + 1e-9) and max(rates) > 10.0
