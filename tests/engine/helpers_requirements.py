"""What `test_requirements.py` and other test modules share."""

from __future__ import annotations

import sys
import types

MODULE = '''
import fractions
import functools
import os

import numba
import numpy as np
import pdmp
from tests.toys import Telegraph

SHIFT = 0.0
TABLE = np.zeros(2_000)
LINKS = {"identity": 0.0}
calls, found, buffer = 0, {}, np.zeros(2)


def helper(x):
    return x


class Shape:
    power = 2

    def value(self, x):
        return 0.5 * (x**self.power).sum()


def function(x, scale=1.0):
    """The potential of a Gaussian."""
    global calls
    calls += 1
    found[calls] = x
    buffer[:] = x
    assert __file__ and __name__
    y = helper(x) - SHIFT - TABLE[7] - LINKS["identity"]
    return scale * float(Shape().value(y)), scale * y


class Target:
    mean = 0.0

    def __call__(self, x):
        return 0.5 * float((x - self.mean) @ (x - self.mean)), x - self.mean


@numba.njit
def chance():
    return 0.3 + SHIFT


class Slower(Telegraph):
    @pdmp.compiled
    def rate(self, state, i, now, rng):
        return chance()

    def held_until(self, state, now):
        assert now >= 0.0
        return now


def reading(x):
    y = x - float(os.environ["PDMP_TEST_MEAN"])
    return 0.5 * float(y @ y), y


def formula(x):
    return x + LINKS["identity"]


def beyond(x, slope):
    """The potential of a Gaussian, but for far tails of which no value is compared."""
    excess = np.maximum(np.abs(x) - 1e4, 0.0)
    return 0.5 * float(x @ x) + slope * float(excess.sum()), x + slope * np.sign(excess)


class Settings:
    def __init__(self, slope):
        self.slope = slope


SLOPES, ARRAY, SETTINGS = [1.0], np.array([1.0]), Settings(1.0)
PART = functools.partial(beyond, slope=1.0)
OF_LIST = functools.partial(lambda x, slopes: beyond(x, slopes[0]), slopes=[1.0])
THIRD, memory, last = fractions.Fraction(1, 3), {}, {}


@functools.singledispatch
def slope_of(x):
    return 0.0


@slope_of.register
def slope_of_arrays(x: np.ndarray):
    return 1.0


def named(x, *, slope=1.0):
    return beyond(x, slope)


def by_list(x):
    return beyond(x, SLOPES[0])


def by_array(x):
    return beyond(x, ARRAY[0])


def by_object(x):
    return beyond(x, SETTINGS.slope)


def by_fraction(x):
    return beyond(x, float(THIRD))


def by_part(x):
    return PART(x)


def by_part_of_list(x):
    return OF_LIST(x)


def dispatched(x):
    return beyond(x, slope_of(x))


class Unit(float):
    def __repr__(self):
        return "some metres"


METRE, STEEP = Unit(1.0), 1.0


def by_unit(x):
    return beyond(x, METRE * 1.0)


def steep(x):
    return beyond(x, 1.0 * STEEP)


def by_import(x):
    import users_module as own

    return beyond(x, own.STEEP)


def by_import_of_a_function(x):
    from users_module import steep

    return steep(x)


def remembering(x):
    if x.tobytes() not in memory:
        memory[x.tobytes()] = beyond(x, SLOPES[0])
    last["x"] = x
    return memory[x.tobytes()]
'''


def module(text):
    made = types.ModuleType("users_module")
    made.__file__ = "/elsewhere/users_module.py"
    sys.modules[made.__name__] = made
    exec(compile(text, made.__file__, "exec"), made.__dict__)
    return made
