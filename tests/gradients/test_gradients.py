"""Gradient providers and logistic regression: unbiased, with the variances they claim, visiting what they should."""

import itertools
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

import pdmp
from pdmp.gradients import LEAST_VARIANCE, ControlVariate, Full, Minibatch, Noisy, as_provider
from pdmp.models.base import Model
from pdmp.models.regressions.logistic import LogisticRegression
from pdmp.native.classes import entry
from pdmp.process import DATA, KINDS, MAX_KINDS
from tests.checks import in_ci
from tests.gradients.helpers_gradients import Bowl, calls, quartic, repeat

DRAWS = ("iid", "distinct", "reshuffle", "epoch")


class Slope(Model):
    """Without a minimum."""

    def __init__(self):
        super().__init__(dim=1, n_data=5)

    @pdmp.compiled
    def term_potential(self, x, i):
        return x[0]

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        out[0] += 1.0


def logistic(n, d, seed=0, **options):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.linspace(0.5, 2.0, d) + 0.3
    y = np.arange(n) % 2
    return LogisticRegression(X, rng.permutation(y), **options)


MAKERS = {"logistic": logistic, "quartic": quartic}


class Script:
    """A generator whose `random` says what it is told."""

    def __init__(self, values):
        self.values = iter(values)

    def random(self):
        return next(self.values)


def scripted(provider, method, x, v, values):
    """One call in Python, with the random numbers given."""
    function = getattr(repeat, "py_func", repeat)
    return calls(provider, method, x, v, seed=Script(values), function=function)


def data_gradient(model, x):
    return model.term_gradients(x, np.arange(model.n_data)).sum(axis=0)


def prior_gradient(model, x):
    return model.gradient(x) - data_gradient(model, x)


# ---------------------------------------------------------------------------------------------------------------
# Unbiased, over everything that can be drawn


@pytest.mark.exact
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("draw", ["iid", "distinct"])
def test_every_batch_of_two_of_six(maker, draw):
    model = MAKERS[maker](6, 3)
    x, v = np.array([0.3, -0.4, 0.2]), np.array([1.0, 0.5, -2.0])
    if draw == "iid":
        outcomes = [((i + 0.5) / 6, (j + 0.5) / 6) for i, j in itertools.product(range(6), range(6))]
    else:
        outcomes = [((i + 0.5) / 6, (j + 0.5) / 5) for i, j in itertools.product(range(6), range(5))]
    provider = Minibatch(model, 2, draw)
    gradients = np.array([scripted(provider, "gradient", x, v, values)[0][0] for values in outcomes])
    projected = [scripted(provider, "gradient_and_projection", x, v, values) for values in outcomes]
    spreads = [scripted(provider, "gradient_and_sd", x, v, values) for values in outcomes]
    assert_allclose(gradients.mean(axis=0), model.gradient(x), atol=1e-12)
    assert_allclose(np.array([p[0][0] for p in projected]), gradients, atol=1e-12)
    assert_allclose(np.array([s[0][0] for s in spreads]), gradients, atol=1e-12)

    terms = model.term_gradients(x, np.arange(6))
    projections = terms @ v
    if draw == "iid":
        variance, variances = 36 / 2 * projections.var(), 36 / 2 * terms.var(axis=0)
    else:
        variance = 36 / 2 * (1 - 2 / 6) * projections.var(ddof=1)
        variances = 36 / 2 * (1 - 2 / 6) * terms.var(axis=0, ddof=1)
    g, c2 = np.array([p[1][0] for p in projected]).T
    assert_allclose(g, gradients @ v, atol=1e-12)
    assert_allclose(g.var(), variance, rtol=1e-12)
    assert_allclose(c2.mean(), variance, rtol=1e-9)  # the floor is 1e-12 of G²
    assert_allclose(gradients.var(axis=0), variances, rtol=1e-12)
    assert_allclose(np.mean([s[1][0] ** 2 for s in spreads], axis=0), variances, rtol=1e-12)


@entry
def sums(model, x, v, rows, n, scratch, gradient, projected, squared, squares):
    model.add_batch_gradient(x, rows, n, gradient)
    model.add_batch_squares(x, rows, n, scratch, squared, squares)
    return model.add_batch_projection(x, v, rows, n, scratch, projected)


def batch_sums(model, x, v, rows):
    gradient, projected, squared, squares, scratch = np.zeros((5, model.dim))
    first, second = sums(model.native, x, v, rows, len(rows), scratch, gradient, projected, squared, squares)
    return gradient, projected, first, second, squared, squares


@pytest.mark.exact
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("draw", ["reshuffle", "epoch"])
@pytest.mark.parametrize("n, size", [(6, 2), (7, 3), (11, 4), (200, 70), (7, 7), (7, 1)])
def test_an_epoch_is_the_full_gradient(maker, draw, n, size):
    model = MAKERS[maker](n, 3)
    x = np.array([0.3, -0.4, 0.2])
    provider = Minibatch(model, size, draw)
    blocks = -(-n // size)
    assert provider.blocks == blocks
    gradients, _, counted = calls(provider, "gradient", x, times=4 * blocks, seed=3)
    assert counted == 4 * n
    epochs = gradients.reshape(4, blocks, 3)
    scale = blocks * np.abs(model.term_gradients(x, np.arange(n))).sum(axis=0)
    assert np.all(np.abs(epochs.mean(axis=1) - model.gradient(x)) < 1e-14 * scale)

    sorted_blocks = np.sort(epochs[:, :, 0], axis=1)
    if draw == "reshuffle" and blocks > 1:  # always the same blocks, in another order
        assert_allclose(sorted_blocks, np.tile(sorted_blocks[:1], (4, 1)), atol=1e-12 * scale[0])
        assert not np.allclose(epochs, epochs[:1])
    elif 1 < size < n:
        assert not np.allclose(sorted_blocks, sorted_blocks[:1])


@pytest.mark.slow
@pytest.mark.exact
@pytest.mark.parametrize("draw", ["reshuffle", "epoch"])
def test_every_order_of_an_epoch_is_as_likely(draw):
    provider = Minibatch(quartic(6, 2), 2, draw)
    rng = np.random.default_rng(6)
    memory, places = provider.memory(rng), np.zeros((3, 6))
    for _ in range(2000):
        for place in range(3):
            calls(provider, "gradient", np.ones(2), seed=rng, memory=memory)
            places[place, memory.rows] += 1
    # Each datum comes at each place in a third of 2000 epochs, sd 21; 18 deviations, as above.
    assert np.all(np.abs(places - 2000 / 3) <= 4.5 * np.sqrt(2000 * 2 / 9))


# ---------------------------------------------------------------------------------------------------------------
# Variances


@pytest.mark.slow
@pytest.mark.exact
@pytest.mark.parametrize("draw", in_ci(DRAWS, "iid", "epoch"))
def test_variance_estimate_is_unbiased(draw):
    model = logistic(60, 3)
    x, v = np.array([0.3, -0.4, 0.2]), np.array([1.0, 0.5, -2.0])
    terms = model.term_gradients(x, np.arange(60))
    iid = draw == "iid"
    factor = 360 if iid else 360 * (1 - 10 / 60)
    times = 10_000
    if draw == "reshuffle":  # its permutation is drawn once: average over permutations
        times, results = 6, []
        for seed in range(1_000):
            batch = Minibatch(model, 10, draw, seed=seed)
            results.append(calls(batch, "gradient_and_projection", x, v, times=times, seed=seed)[1])
        g, c2 = np.concatenate(results).T
    else:
        g, c2 = calls(Minibatch(model, 10, draw), "gradient_and_projection", x, v, times=times, seed=1)[1].T
    variance = factor * (terms @ v).var(ddof=0 if iid else 1)
    # sd of one c² is 0.47 of it, so the mean of 10⁴ has 0.5 %: 3 % is six of them; of an empirical variance 1.4 %.
    assert_allclose(c2.mean(), variance, rtol=0.03)
    if draw != "reshuffle":
        assert_allclose(g.var(), variance, rtol=0.08)
        spread = calls(Minibatch(model, 10, draw), "gradient_and_sd", x, times=times, seed=2)[1]
        assert_allclose((spread**2).mean(axis=0), factor * terms.var(axis=0, ddof=0 if iid else 1), rtol=0.03)


@pytest.mark.exact
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("draw", ["distinct", "reshuffle", "epoch"])
def test_all_data_without_replacement_is_exact(maker, draw):
    model = MAKERS[maker](9, 3)
    x, v = np.array([0.3, -0.4, 0.2]), np.array([1.0, 0.5, -2.0])
    provider = Minibatch(model, 9, draw)
    out, told, _ = calls(provider, "gradient_and_projection", x, v, times=3)
    assert_allclose(out, np.tile(model.gradient(x), (3, 1)), rtol=1e-12, atol=1e-12)
    assert_array_equal(told[:, 1], LEAST_VARIANCE * (1.0 + told[:, 0] ** 2))
    out, sd, _ = calls(provider, "gradient_and_sd", x)
    assert_allclose(out[0], model.gradient(x), rtol=1e-12, atol=1e-12)
    assert_array_equal(sd, 0.0)


@pytest.mark.exact
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("draw", [*DRAWS, "control"])
def test_agrees_with_numpy_on_the_batch_it_drew(maker, draw):
    model = MAKERS[maker](23, 3)
    x, v = np.array([0.3, -0.4, 0.2]), np.array([1.0, 0.5, -2.0])
    anchor = np.array([0.1, 0.2, 0.0])
    control = draw == "control"
    provider = ControlVariate(model, 6, anchor) if control else Minibatch(model, 6, draw)
    rng = np.random.default_rng(4)
    memory = provider.memory(rng)
    order = np.arange(23)
    if draw == "reshuffle" and maker == "logistic":  # rows are those of the rearranged data
        order = np.random.default_rng(0).permutation(23)
    for method in ("gradient", "gradient_and_projection", "gradient_and_sd") * 3:
        out, told, n = calls(provider, method, x, v, seed=rng, memory=memory)
        rows = order[memory.rows[:n]]
        if draw == "reshuffle" and method == "gradient":
            rows = np.random.default_rng(0).permutation(23)[memory.first[0] : memory.stop[0]]
        terms = model.term_gradients(x, rows)
        weight, rest = (23 / 6, 1.0 - 6 / 23) if draw not in ("reshuffle", "epoch") else (4.0, 1.0 - n / 23)
        expected = prior_gradient(model, x)
        if control:
            terms = terms - model.term_gradients(anchor, rows)
            expected = expected + data_gradient(model, anchor)
        if draw in ("iid", "control"):
            rest = 1.0
        assert_allclose(out[0], expected + weight * terms.sum(axis=0), rtol=1e-10, atol=1e-10)
        if method == "gradient_and_projection":
            assert_allclose(told[0, 0], v @ out[0], rtol=1e-12)
            assert_allclose(told[0, 1], weight**2 * n * rest * (terms @ v).var(ddof=1), rtol=1e-9)
        if method == "gradient_and_sd":
            assert_allclose(told[0], weight * np.sqrt(n * rest * terms.var(axis=0, ddof=1)), rtol=1e-9)


@pytest.mark.exact
@pytest.mark.parametrize("maker", MAKERS)
def test_control_variate_has_no_noise_at_its_anchor(maker):
    model = MAKERS[maker](40, 3)
    anchor = np.array([0.3, -0.1, 0.2])
    provider = ControlVariate(model, 5, anchor)
    assert_array_equal(provider.anchor, anchor)
    for method in ("gradient", "gradient_and_projection", "gradient_and_sd"):
        out, told, counted = calls(provider, method, anchor, times=4)
        assert_allclose(out, np.tile(model.gradient(anchor), (4, 1)), rtol=1e-13, atol=1e-13)
        assert_array_equal(out, out[:1].repeat(4, axis=0))
        assert counted == 20
        if method == "gradient_and_projection":
            assert_array_equal(told[:, 1], LEAST_VARIANCE * (1.0 + told[:, 0] ** 2))
        elif method == "gradient_and_sd":
            assert_array_equal(told, 0.0)


@pytest.mark.exact
@pytest.mark.parametrize("method", ["gradient", "gradient_and_projection", "gradient_and_sd"])
def test_noisy_adds_normal_numbers_of_its_scale(method):
    model, scale = logistic(20, 3), np.array([0.5, 0.0, 2.0])
    provider = Noisy(model, scale)
    x, v = np.array([0.3, -0.4, 0.2]), np.array([1.0, 0.5, -2.0])
    memory, again, counts = provider.memory(None), np.zeros(3), np.zeros(KINDS + MAX_KINDS, np.int64)
    out, told, counted = calls(provider, method, x, v, times=5, seed=3, memory=memory)
    assert counted == 5 * 20
    provider.native.gradient_again(x, memory, again, counts)
    assert_allclose(again, out[-1], rtol=1e-14)
    assert counts[DATA] == 20
    assert_allclose(out, model.gradient(x) + scale * np.random.default_rng(3).standard_normal((5, 3)), rtol=1e-12)
    if method == "gradient_and_projection":
        assert_allclose(told, np.column_stack([out @ v, np.full(5, 0.25 + 16.0)]), rtol=1e-12)
    if method == "gradient_and_sd":
        assert_array_equal(told, np.tile(scale, (5, 1)))


# ---------------------------------------------------------------------------------------------------------------
# One and the same, however it is run


@pytest.mark.exact
def test_chains_do_not_share_memory_and_providers_can_be_sent():
    model = logistic(50, 3)
    x = np.array([0.3, -0.4, 0.2])
    for draw in DRAWS:
        provider = Minibatch(model, 7, draw)
        alone = calls(provider, "gradient", x, times=12, seed=1)[0]
        rngs = [np.random.default_rng(s) for s in (1, 2)]
        memories = [provider.memory(rng) for rng in rngs]
        mixed = [
            [calls(provider, "gradient", x, seed=rng, memory=m)[0][0] for rng, m in zip(rngs, memories, strict=True)]
            for _ in range(12)
        ]
        assert_array_equal(alone, [one for one, other in mixed])
        assert_array_equal(alone, calls(pickle.loads(pickle.dumps(provider)), "gradient", x, times=12, seed=1)[0])
        assert provider.packed is provider.packed
    sent = pickle.loads(pickle.dumps(logistic(100_000, 3)))
    assert sent.design.data.ctypes.data % 64 == 0


# ---------------------------------------------------------------------------------------------------------------
# Logistic regression


@entry
def block(model, x, first, last, out):
    model.add_block_gradient(x, first, last, out)


@pytest.mark.exact
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("d", [1, 7, 8, 11, 17])
def test_logistic_batches_and_blocks(dtype, d):
    model = logistic(150, d, dtype=dtype)
    rng = np.random.default_rng(1)
    x, v = rng.standard_normal(d), rng.standard_normal(d)
    X = model.X.astype(dtype).astype(float)
    terms = X * (expit(X @ x) - model.y)[:, None]
    assert_allclose(model.term_gradients(x, np.arange(150)), terms, rtol=1e-12, atol=1e-13)
    assert_allclose(model.gradient(x), terms.sum(axis=0) + x, rtol=1e-11, atol=1e-11)
    order = rng.permutation(150)
    tiled = model.rearranged(order)
    assert_allclose(tiled.potential(x), model.potential(x), rtol=1e-12)
    assert_allclose(tiled.hessian(x), model.hessian(x), rtol=1e-12)
    assert model.design.data.ctypes.data % 64 == tiled.design.data.ctypes.data % 64 == 0
    for which, of in ((model, terms), (tiled, terms[order])):
        for first, last in ((0, 150), (0, 64), (64, 128), (3, 9), (60, 70), (100, 150), (20, 149), (5, 5)):
            out = np.ones(d)
            block(which.native, x, first, last, out)
            assert_allclose(out, 1.0 + of[first:last].sum(axis=0), rtol=1e-11, atol=1e-11)
        for n in (1, 63, 64, 65, 200):
            rows = rng.integers(0, 150, n)
            gradient, projected, first, second, squared, squares = batch_sums(which, x, v, rows)
            for total in (gradient, projected, squared):
                assert_allclose(total, of[rows].sum(axis=0), rtol=1e-11, atol=1e-11)
            assert_allclose([first, second], [(of[rows] @ v).sum(), ((of[rows] @ v) ** 2).sum()], rtol=1e-10)
            assert_allclose(squares, (of[rows] ** 2).sum(axis=0), rtol=1e-11)
            y, out, weights = np.zeros(d), np.ones(d), rng.random(n)
            other = (which.term_gradients(x, rows) - which.term_gradients(y, rows)).astype(float)
            which.batch_difference(x, y, rows, n, np.zeros(d), out)
            assert_allclose(out, other.sum(axis=0), rtol=1e-10, atol=1e-11)
            which.weighted_difference(x, y, rows, weights, n, np.zeros(d), out)
            assert_allclose(out, weights @ other, rtol=1e-10, atol=1e-11)


@pytest.mark.exact
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_logistic_far_out(dtype):
    z = np.concatenate([[-1e3, 1e3, -710.0, 710.0, 0.0], np.linspace(-700.0, 700.0, 2_001), np.linspace(-3, 3, 301)])
    X = np.ones((len(z), 1))
    X[:, 0] = z
    y = np.ones(len(z))
    model = LogisticRegression(np.vstack([X, [[1.0]]]), [*y, 0], dtype=dtype)
    one, rows = np.ones(1), np.arange(len(z))
    z = z.astype(dtype).astype(float)
    expected = -z * expit(-z)
    assert_allclose(model.term_gradients(one, rows)[:, 0], expected, rtol=1e-13, atol=1e-300)
    for which in (model, model.rearranged(np.arange(len(z) + 1))):
        for i in range(8):  # sums of one, through the vectorised paths
            assert_allclose(batch_sums(which, one, one, rows[i : i + 1])[0], expected[i], rtol=1e-13, atol=1e-300)
            out = np.zeros(1)
            block(which.native, one, i, i + 1, out)
            assert_allclose(out[0], expected[i], rtol=1e-13, atol=1e-300)
        assert np.isfinite(which.potential(one)) and np.isfinite(which.potential(-one))
        assert_allclose(which.gradient(one)[0], expected.sum() + expit(1.0) + 1.0, rtol=1e-11)


@pytest.mark.exact
def test_no_tile_is_read_beyond_one_that_is_full():
    model = logistic(128, 3)
    x, tiled = np.array([0.3, -0.2, 0.5]), model.rearranged(np.arange(128))
    for first, last in ((0, 128), (64, 128), (100, 128), (128, 128)):
        out = np.ones(3)
        block(tiled.native, x, first, last, out)
        terms = model.term_gradients(x, np.arange(first, last))
        assert_allclose(out, 1.0 + terms.sum(axis=0), rtol=1e-11, atol=1e-11)


@pytest.mark.exact
def test_logistic_keeps_nan():
    model = logistic(70, 3)
    x = np.array([0.1, np.nan, 0.2])
    for which in (model, model.rearranged(np.arange(70))):
        assert np.all(np.isnan(which.gradient(x))) and np.isnan(which.potential(x))
        assert np.all(np.isnan(batch_sums(which, x, np.ones(3), np.arange(70))[0]))


@entry
def slopes(model, v, out):
    model.partial_curvature_bounds(v, out)
    return model.curvature_bound(v)


def bounds(model, v):
    out = np.full(model.dim, 9.0)
    return slopes(model.native, v, out), out


@pytest.mark.exact
@pytest.mark.parametrize("n, d", [(30, 4), (3, 6)])
@pytest.mark.parametrize("prior_scale", [1.5, np.inf])
def test_slope_bounds_are_reached(n, d, prior_scale):
    rng = np.random.default_rng(4)
    X, v = rng.uniform(0.1, 1.0, (n, d)), rng.uniform(0.5, 1.0, d)
    model = LogisticRegression(X, np.arange(n) % 2, prior_scale=prior_scale)
    directional, partial = bounds(model, v)
    slope = v * (model.hessian(np.zeros(d)) @ v)  # every probability is ½, every product positive
    assert_allclose(partial, slope, rtol=1e-12)
    assert_allclose(directional, slope.sum(), rtol=1e-12)


@pytest.mark.exact
def test_labels_are_recoded(caplog):
    X, y = np.arange(6.0).reshape(3, 2), np.array([-1, 1, 1])
    with caplog.at_level("INFO", "pdmp"):
        model = LogisticRegression(X, y)
    assert "-1 and +1" in caplog.text
    assert_array_equal(model.y, [0.0, 1.0, 1.0])
    other = LogisticRegression(X, np.array([False, True, True]))
    assert_array_equal(model.gradient([0.1, 0.2]), other.gradient([0.1, 0.2]))


# ---------------------------------------------------------------------------------------------------------------
# What does not fit


def nine():
    return logistic(9, 2)


@pytest.mark.exact
@pytest.mark.parametrize(
    "make, error, message",
    [
        (lambda: Minibatch(nine(), 0), ValueError, "`size` must be a whole number, at least 1, got 0"),
        (lambda: Minibatch(nine(), 2.5), ValueError, "`size` must be a whole number, at least 1, got 2.5"),
        (
            lambda: Minibatch(nine(), 10, "distinct"),
            ValueError,
            "`size` must be at most the 9 data .*distinct.*got 10",
        ),
        (lambda: Minibatch(nine(), 10, "reshuffle"), ValueError, "`size` must be at most the 9 data"),
        (lambda: Minibatch(nine(), 10, "epoch"), ValueError, "`size` must be at most the 9 data"),
        (lambda: Minibatch(nine(), 2, "idd"), ValueError, "`draw` must be one of 'iid', 'distinct'.*got 'idd'"),
        (lambda: Minibatch(Bowl(), 2), ValueError, "`model` .*Bowl has no terms"),
        (lambda: Minibatch(Full(nine()), 2), TypeError, "`model` must be a pdmp.Model, got Full"),
        (lambda: ControlVariate(nine(), 0), ValueError, "`size` must be a whole number, at least 1"),
        (lambda: ControlVariate(nine(), 1, draw="iid"), ValueError, "`draw` must be one of 'uniform', 'importance'"),
        (
            lambda: ControlVariate(quartic(9, 2), 1, draw="importance"),
            ValueError,
            '`draw="importance"` needs Lipschitz constants of single terms: Quartic has no `term_lipschitz`',
        ),
        (lambda: ControlVariate(nine(), 1, scale=[1.0, 0.0]), ValueError, "`scale` must be finite and positive"),
        (lambda: ControlVariate(nine(), 1, scale=np.ones(3)), ValueError, r"`scale` must .* of shape \(2,\)"),
        (lambda: ControlVariate(nine(), 1, np.zeros(3)), ValueError, r"`anchor` must have shape \(2,\), got \(3,\)"),
        (lambda: ControlVariate(nine(), 1, [np.nan, 0.0]), ValueError, "`anchor` must be finite"),
        (lambda: ControlVariate(Slope(), 1), ValueError, r"U of Slope falls without end along x\[0\] → -∞"),
        (lambda: ControlVariate(Bowl(), 1), ValueError, "Bowl has no terms"),
        (lambda: Full(3.0), TypeError, "`model` must be a pdmp.Model, got float"),
        (lambda: Noisy(nine(), -1.0), ValueError, "`scale` must be finite and at least 0"),
        (lambda: Noisy(nine(), np.inf), ValueError, "`scale` must be finite"),
        (
            lambda: Noisy(nine(), np.ones(3)),
            ValueError,
            r"`scale` must be finite and at least 0, a number or of shape \(2,\)",
        ),
        (lambda: as_provider("model"), TypeError, "`target` must be a pdmp.Model or one of pdmp.gradients, got str"),
    ],
)
def test_bad_providers(make, error, message):
    with pytest.raises(error, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
