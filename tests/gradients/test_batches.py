"""A mini-batch that is used again: the same terms at another point, copied or not, until the next one is drawn."""

from types import SimpleNamespace

import numpy as np
import pytest
from numba.core import config
from numpy.testing import assert_allclose

from pdmp.gradients import ControlVariate, Minibatch
from pdmp.gradients.provider import sample_variance
from pdmp.models import LinearGaussian, LogisticRegression, from_function
from pdmp.native.classes import entry
from pdmp.process import DATA, KINDS
from tests.checks import plain_only

pytestmark = pytest.mark.exact

N = 200
RNG = np.random.default_rng(12)
X = RNG.standard_normal((N, 3))
LOGISTIC = LogisticRegression(X, np.arange(N) % 2)
MODELS = {"logistic": LOGISTIC}
DRAWS = ["iid", "reshuffle", "control variate"]
if config.DISABLE_JIT:  # compiled, each takes some seconds
    MODELS |= {
        "float32": LogisticRegression(X.astype(np.float32), np.arange(N) % 2, dtype=np.float32),
        "too large to copy": LogisticRegression(X, np.arange(N) % 2),
        "linear": LinearGaussian(X, X @ np.ones(3)),
    }
    MODELS["too large to copy"].batch_room = lambda size: np.zeros((0, 3, 64))
    DRAWS += ["distinct", "epoch"]
HERE, THERE, ANCHOR = np.array([0.3, -0.2, 0.5]), np.array([-0.6, 0.4, 1.0]), np.array([0.1, 0.1, -0.1])


@entry
def draw_anew(provider, x, memory, rng, out, counts):
    provider.gradient(x, memory, rng, out, counts)


@entry
def use_again(provider, x, memory, out, counts):
    provider.gradient_again(x, memory, out, counts)


@pytest.mark.parametrize(
    ("name", "draw", "size"),
    [(name, draw, (3, 64, 150)[(i + k) % 3]) for i, name in enumerate(MODELS) for k, draw in enumerate(DRAWS)],
)
def test_a_batch_used_again_is_the_one_drawn_last(name, draw, size):
    model = MODELS[name]
    provider = ControlVariate(model, size, ANCHOR) if "control" in draw else Minibatch(model, size, draw=draw)
    blocks = draw in ("epoch", "reshuffle")
    weight = float(provider.blocks) if blocks else N / size
    memory, rng, counts, seen = provider.memory(None), np.random.default_rng(3), np.zeros(KINDS + 1, np.int64), 0
    everything, found = np.arange(N), np.full(3, 7.0)

    def expected(x, rows):
        data = model.term_gradients(x, everything).sum(axis=0)
        total = weight * model.term_gradients(x, rows).sum(axis=0)
        if "control" in draw:
            total -= weight * model.term_gradients(ANCHOR, rows).sum(axis=0)
            total += model.term_gradients(ANCHOR, everything).sum(axis=0)
        return total + model.gradient(x) - data

    for _ in range(3):
        draw_anew(provider.native, HERE, memory, rng, found, counts)
        first, last = (memory.first[0], memory.stop[0]) if blocks else (0, size)
        rows = memory.rows[: last - first].copy()
        if draw == "reshuffle":  # the data lie in this order
            rows = np.random.default_rng(0).permutation(N)[first:last]
        assert_allclose(found, expected(HERE, rows), rtol=1e-9, atol=1e-9)
        for x in (THERE, HERE, ANCHOR):
            use_again(provider.native, x, memory, found, counts)
            assert_allclose(found, expected(x, rows), rtol=1e-9, atol=1e-9)
        seen += 4 * len(rows)
        assert counts[DATA] == seen


def test_only_batches_that_are_not_contiguous_are_copied():
    assert Minibatch(LOGISTIC, 70).memory(None).copied.shape == (2, 3, 64)
    assert Minibatch(LOGISTIC, 70, draw="reshuffle").memory(None).copied.size == 0
    assert Minibatch(LogisticRegression(np.ones((2, 2**15)), [0, 1]), 64).memory(None).copied.size == 0


def test_a_function_of_python_cannot_be_sub_sampled():
    model = from_function(lambda x: (0.5 * x @ x, x), dim=2, n_data=10)
    with pytest.raises(ValueError, match="cannot be sub-sampled"):
        Minibatch(model, 2)


@pytest.mark.parametrize("seed", [None, -1, "a"])
def test_the_seed_of_a_layout(seed):
    a = np.random.default_rng(1).standard_normal((12, 1))
    with pytest.raises(ValueError, match="`seed` must be a whole number"):
        Minibatch(LinearGaussian(a, a[:, 0]), 3, draw="reshuffle", seed=seed)


def test_a_variance_from_sums_is_never_negative():
    assert sample_variance(2.0, 2.0 - 1e-9, 2) == 0.0 and sample_variance(3.0, 5.0, 2) == 0.5


@plain_only
@pytest.mark.parametrize("draw", ["iid", "distinct", "importance"])
def test_rows_that_are_drawn_ahead_have_the_weight_of_each(draw):
    """1 / (n pᵢ), of a size that does not divide N."""
    model = LogisticRegression(X[:7], np.arange(7) % 2)
    memory = SimpleNamespace(order=np.arange(7), rows=np.zeros(4, np.int64))
    alone = Minibatch(model, 4, draw=draw) if draw != "importance" else ControlVariate(model, 4, ANCHOR, draw=draw)
    drawing = alone.native.drawing
    rows, weights, prepared = np.zeros((3, 4), np.int64), np.zeros((3, 4)), np.zeros((3, 4), np.int64)
    drawing.prepare(prepared, 1, memory, np.random.default_rng(3))
    drawing.complete(prepared, 1, rows, weights, np.random.default_rng(4))
    if draw == "importance":
        p = alone.drawing.alias.probabilities()
        assert_allclose(weights[1], 1.0 / (4.0 * p[rows[1]]), rtol=1e-12)
    else:
        assert_allclose(weights[1], 7.0 / 4.0, rtol=1e-15)
    assert not np.any(weights[[0, 2]]) and np.all((rows >= 0) & (rows < 7))
