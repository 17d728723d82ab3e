"""How models and processes are printed."""

import inspect
import math
import pickle

import numpy as np
import pytest
from scipy import sparse

import discrete
import pdmp
from pdmp.native.representation import _kept, call_text, short

pytestmark = pytest.mark.exact

TARGET = pdmp.models.Gaussian([0.0, 1.5], [1.0, 4.0])
TEXT = "Gaussian(mean=[0, 1.5], precision=[1, 4])"


def test_the_class_and_what_differs_from_its_defaults():
    assert repr(TARGET) == TEXT
    assert repr(pdmp.BPS(TARGET)) == f"BPS({TEXT})"
    assert repr(pdmp.BPS(TARGET, refresh_rate="auto")) == f"BPS({TEXT})"
    assert repr(pdmp.BPS(TARGET, refresh_rate=1.25)) == f"BPS({TEXT}, refresh_rate=1.25)"
    assert repr(pdmp.ZigZag(TARGET, thinning="grid")) == f"ZigZag({TEXT}, thinning='grid')"
    assert repr(discrete.SGLD(TARGET, step=1e-3)) == f"SGLD({TEXT}, step=0.001)"
    assert repr(pdmp.models.from_function(quadratic, 2)) == "FunctionModel(potential_and_gradient=quadratic, dim=2)"


def quadratic(x):
    return 0.5 * x @ x, x


def test_it_survives_what_a_run_does_with_it():
    process = pdmp.BPS(TARGET, refresh_rate=2.0)
    assert repr(pickle.loads(pickle.dumps(process))) == repr(process)
    assert repr(process.resolve(np.zeros(2))) == repr(process)
    run = pdmp.sample(process, events=20, seed=1)
    assert repr(run.process) == repr(process)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.arange(7), "array of shape (7,)"),
        (np.eye(2), "[[1, 0], [0, 1]]"),
        ([1, 2.5], "[1, 2.5]"),
        (np.float64(0.1), "0.1"),
        (np.ones((1, 1, 1)), "array of shape (1, 1, 1)"),
        (sparse.csr_array(np.eye(3)), "csr_array of shape (3, 3)"),
        (True, "True"),
        (None, "None"),
        (quadratic, "quadratic"),
        ("a" * 70, "'" + "a" * 58 + "…"),
        (1 / 3, "0.333333"),
    ],
)
def test_values(value, text):
    assert short(value) == text


def test_a_class_of_ones_own():
    class Mine(pdmp.Model):
        scale: float

        def __init__(self, scale, *rest, name="a", **more):
            super().__init__(dim=1)
            self.scale = scale

        @pdmp.compiled
        def potential(self, x):
            return 0.5 * x[0] * x[0]

        @pdmp.compiled
        def add_gradient(self, x, out):
            out[0] += x[0]

    assert repr(Mine(2.0)) == "Mine(scale=2)"
    assert repr(Mine(2.0, 3, name="b", other=np.zeros(2))) == "Mine(scale=2, 3, name='b', other=[0, 0])"
    assert repr(Mine.__new__(Mine)).startswith("<")  # not by a call
    ragged = Mine([[1.0], [2.0, 3.0]])  # what cannot be printed is not refused for that
    assert repr(ragged).startswith("<") and ragged.scale == [[1.0], [2.0, 3.0]]


def test_what_equals_its_default():
    """What is the default itself, though it does not equal itself; an array is not the number that its entries are."""

    class Mine(pdmp.Model):
        def __init__(self, scale=math.nan, points=None, widths=1.0):
            super().__init__(dim=1)

        @pdmp.compiled
        def potential(self, x):
            return 0.5 * x[0] * x[0]

        @pdmp.compiled
        def add_gradient(self, x, out):
            out[0] += x[0]

    assert repr(Mine()) == repr(Mine(math.nan, None, 1)) == "Mine()"
    assert repr(Mine(2.0, np.zeros(2), [1.0, 1.0])) == "Mine(scale=2, points=[0, 0], widths=[1, 1])"
    assert repr(Mine(widths=np.ones(2))) == "Mine(widths=[1, 1])"


def test_what_is_kept_of_a_call_for_messages():
    """Numbers and objects that keep theirs, those of options too; and no truth values."""
    given = {"self": TARGET, "a": 2.0, "b": True, "c": "auto", "options": {"d": 3, "e": False}, "target": TARGET}
    assert _kept(given) == {"a": 2.0, "d": 3, "target": TARGET}


def test_what_is_short_and_what_is_named():
    def f(self, target, *, metric):
        """As a constructor."""

    assert short(np.arange(6.0)) == "[0, 1, 2, 3, 4, 5]" and short(np.arange(7.0)) == "array of shape (7,)"
    assert [len(short(lambda: None)), len(short("x" * 58)), len(short("x" * 59))] == [8, 60, 60]
    large = pdmp.models.Gaussian(np.arange(6.0), 2.0 + np.arange(6.0))
    assert short(large) == repr(large) and len(repr(large)) > 60
    assert call_text("F", inspect.signature(f), (TARGET,), {"metric": TARGET}) == f"F({TEXT}, metric={TEXT})"
