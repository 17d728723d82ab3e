"""Step sizes: a number, or a function of the number of steps taken.

A schedule is a small compiled class with ``step(k)``, the size of step k = 0, 1, …; write your own by deriving from
`Schedule`. A state is held for as long as the step with which it is left, so time averages along the path are the
step-weighted averages that decreasing steps need.
"""

from __future__ import annotations

import math
import warnings

from pdmp.compiled import Compiled, compiled


class Schedule(Compiled):
    """Base of step-size schedules: define ``step(self, k)``, positive for every k."""

    @compiled
    def step(self, k):
        return 1.0

    def check(self, name):
        """Raise a `ValueError` naming `name` when an early or a late step is not positive and finite."""
        for k in (0, 1, 10, 1_000, 1_000_000):
            value = self.step(k)
            if not 0.0 < value < math.inf:
                raise ValueError(f"`{name}` must be positive and finite; its schedule gives {value} at step {k}.")


class Constant(Schedule):
    """The same size for every step."""

    value: float

    def __init__(self, value):
        self.value = float(value)

    @compiled
    def step(self, k):
        return self.value


class Polynomial(Schedule):
    """a (b + k)^-κ."""

    a: float
    b: float
    kappa: float

    def __init__(self, a, b, kappa):
        self.a, self.b, self.kappa = float(a), float(b), float(kappa)

    @compiled
    def step(self, k):
        return self.a * math.pow(self.b + k, -self.kappa)


class Halved(Schedule):
    """Half of another schedule's steps, each twice."""

    whole: Schedule

    def __init__(self, whole):
        self.whole = whole

    @compiled
    def step(self, k):
        return 0.5 * self.whole.step(k >> 1)


def constant(value):
    """The schedule that every number stands for."""
    return Constant(value)


def polynomial(a, b=1.0, kappa=0.33):
    """Decreasing steps a (b + k)^-κ, k = 0, 1, ….

    Parameters
    ----------
    a, b : float
        Positive scale and offset.
    kappa : float
        Exponent in (0, 1]. Their sum must diverge for the chain to reach its target; above 1 it does not, and a
        `UserWarning` says so. 1/3 is optimal for the mean squared error of SGLD (Teh, Thiery & Vollmer, 2016).
    """
    for name, value in (("a", a), ("b", b), ("kappa", kappa)):
        if not 0.0 < value < math.inf:
            raise ValueError(f"`{name}` of a polynomial schedule must be a positive number, got {value!r}.")
    if kappa > 1.0:
        warnings.warn(
            f"polynomial steps with kappa={kappa} > 1 have a finite sum: the chain cannot reach its target.",
            UserWarning,
            stacklevel=2,
        )
    return Polynomial(a, b, kappa)


def as_schedule(step, name="step"):
    """A `Schedule` from a positive number or a schedule, or an error naming `name`."""
    if isinstance(step, Schedule):
        step.check(name)
        return step
    if isinstance(step, (str, bool)):
        raise TypeError(f"`{name}` must be a number or one of discrete.schedules, got {step!r}.")
    try:
        value = float(step)
    except (TypeError, ValueError):
        raise TypeError(f"`{name}` must be a number or one of discrete.schedules, got {step!r}.") from None
    if not 0.0 < value < math.inf:
        raise ValueError(f"`{name}` must be positive and finite, got {value}.")
    return Constant(value)
