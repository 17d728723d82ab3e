"""Step sizes: a number, or a function of the number of steps taken.

A schedule is a small compiled class with ``step(k)``, the size of step k = 0, 1, …; write your own by deriving from
`Schedule`. A state is held for as long as the step with which it is left, so time averages along the path are the
step-weighted averages that decreasing steps need.

References
----------
Teh, Thiery & Vollmer (2016), Consistency and fluctuations for stochastic gradient Langevin dynamics, JMLR 17;
Zhang, Li, Zhang, Chen & Wilson (2020), Cyclical stochastic gradient MCMC for Bayesian deep learning, ICLR, eq. 1.
"""

from __future__ import annotations

import math
import warnings

from pdmp.native.classes import Compiled, compiled

#: Steps at which a schedule's values are looked at before a run.
LOOKED_AT = (0, 1, 10, 1_000, 1_000_000)


class Schedule(Compiled):
    """Base of step-size schedules: define ``step(self, k)``, positive for every k.

    A schedule may also define ``explores(self, k)``: whether step k only moves on, without noise and without that the
    state before it counts in averages. `SGLD`, `SGD` and `GD` look at it.
    """

    @compiled
    def step(self, k):
        return 1.0

    @compiled
    def explores(self, k):
        return False

    @property
    def exploring(self):
        """Whether the schedule has steps that explore."""
        return self._methods["explores"] is not Schedule._methods["explores"]

    def check(self, name):
        """Raise a `ValueError` naming `name` when an early or a late step is not positive and finite.

        Steps whose sum is finite, as far as their sizes up to step 2⁴¹ tell, are a `UserWarning`.
        """
        self._check_sizes(name)
        if self._sum_seems_finite():
            _warn_of_finite_sum(f"`{name}`: the steps of {type(self).__name__}", stacklevel=5)

    def _check_sizes(self, name):
        for k in LOOKED_AT:
            value = self.step(k)
            if not 0.0 < value < math.inf:
                raise ValueError(f"`{name}` must be positive and finite; its schedule gives {value} at step {k}.")

    def _sum_seems_finite(self):
        """By Cauchy's condensation: Σ step(k) is finite with Σ 2ᵐ step(2ᵐ), so when that falls geometrically in m.

        The largest of a few steps in [2ᵐ, 2ᵐ⁺¹) stands for all. Falling like a power of m, as for 1 / (k log k), is not
        told from a finite sum, and does not warn.
        """
        early, middle, late = (
            2.0**m * max(self.step(2**m + j * 2**m // 7 + j) for j in range(7)) for m in (16, 28, 40)
        )
        if not early * middle * late > 0.0:
            return not late > 0.0
        before, after = math.log(middle / early), math.log(late / middle)
        return after < min(0.8 * before, -0.05)


def _warn_of_finite_sum(steps, stacklevel):
    text = f"{steps} have a finite sum: the chain cannot reach its target."
    warnings.warn(text, UserWarning, stacklevel=stacklevel)


class Constant(Schedule):
    """The same size for every step."""

    value: float

    def __init__(self, value):
        self.value = float(value)

    @compiled
    def step(self, k):
        return self.value


class Automatic(Constant):
    """A constant step that is chosen when a run starts; see `automatic`."""

    error: float

    def __init__(self, error):
        super().__init__(math.nan)
        self.error = float(error)


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

    def check(self, name):
        self._check_sizes(name)  # of its sum `polynomial` has spoken


class Cyclical(Schedule):
    """size/2 (cos(π (k mod length) / length) + 1)."""

    size: float
    length: int

    def __init__(self, size, length):
        self.size, self.length = float(size), int(length)

    @compiled
    def step(self, k):
        return 0.5 * self.size * (math.cos(math.pi * (k % self.length) / self.length) + 1.0)


class Exploring(Cyclical):
    """The same, each cycle beginning with an exploration of `quiet` steps."""

    quiet: int

    def __init__(self, size, length, quiet):
        super().__init__(size, length)
        self.quiet = int(quiet)

    @compiled
    def explores(self, k):
        return k % self.length < self.quiet


class Halved(Schedule):
    """Half of another schedule's steps, each twice."""

    whole: Schedule

    def __init__(self, whole):
        self.whole = whole

    @compiled
    def step(self, k):
        return 0.5 * self.whole.step(k >> 1)


class Repeated(Schedule):
    """Another schedule's values, each twice: those of a temperature while the steps are halved."""

    whole: Schedule

    def __init__(self, whole):
        self.whole = whole

    @compiled
    def step(self, k):
        return self.whole.step(k >> 1)


def constant(value):
    """The schedule that every number stands for."""
    return Constant(value)


def automatic(error=0.1):
    """The constant step that a sampler chooses where its run starts: ``step="auto"`` with the usual `error`.

    It is the largest one at which no marginal variance is predicted to be off by more than `error`, relatively: from
    the Hessian at the mode and the noise of the gradient there, for a posterior that is normal around it. Above 500
    dimensions only the direction of largest curvature is looked at. Where no step is within `error`, the one that comes
    closest is taken, with a `UserWarning`.

    Parameters
    ----------
    error : float, default 0.1
    """
    if isinstance(error, (bool, str)) or not 0.0 < error < 1.0:
        raise ValueError(f"`error` of an automatic step must lie in (0, 1), got {error!r}.")
    return Automatic(error)


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
        _warn_of_finite_sum(f"polynomial steps with kappa={kappa} > 1", stacklevel=3)
    return Polynomial(a, b, kappa)


def power(C, s):
    """Decreasing steps C / (k + 1)ˢ, k = 0, 1, …: `polynomial` with b = 1."""
    for name, value in (("C", C), ("s", s)):
        if not 0.0 < value < math.inf:
            raise ValueError(f"`{name}` of a power schedule must be a positive number, got {value!r}.")
    if s > 1.0:
        _warn_of_finite_sum(f"steps C / (k + 1)^s with s={s} > 1", stacklevel=3)
    return Polynomial(C, 1.0, s)


def cyclical(step, length, exploration=0.0):
    """Cosine-shaped steps that start anew after every `length` of them: step/2 (cos(π (k mod length) / length) + 1).

    Each return to large steps lets the chain leave the mode that it is in.

    Parameters
    ----------
    step : float
        The first and largest step of each cycle.
    length : int
        Steps in a cycle.
    exploration : float, default 0
        Fraction in [0, 1) of each cycle, its beginning, in which `SGLD` adds no noise and the states have holding time
        0: they do not count in averages, and time stands still.
    """
    if not 0.0 < step < math.inf:
        raise ValueError(f"`step` of a cyclical schedule must be a positive number, got {step!r}.")
    if isinstance(length, bool) or int(length) != length or length < 1:
        raise ValueError(
            f"`length` of a cyclical schedule must be a whole number of steps, at least 1, got {length!r}."
        )
    if not 0.0 <= exploration < 1.0:
        raise ValueError(f"`exploration` of a cyclical schedule must lie in [0, 1), got {exploration!r}.")
    quiet = min(math.ceil(exploration * length - 1e-9), int(length) - 1)
    return Exploring(step, length, quiet) if quiet else Cyclical(step, length)


def as_temperature(value):
    """A `Schedule` of temperatures from a number or a schedule, all >= 0."""
    if not isinstance(value, Schedule):
        if isinstance(value, (str, bool)):
            raise TypeError(f"`temperature` must be a number or one of discrete.schedules, got {value!r}.")
        try:
            value = Constant(value)
        except (TypeError, ValueError):
            raise TypeError(f"`temperature` must be a number or one of discrete.schedules, got {value!r}.") from None
    for k in LOOKED_AT:
        if not 0.0 <= value.step(k) < math.inf:
            at = "" if isinstance(value, Constant) else f" at step {k}"
            raise ValueError(f"`temperature` must be finite and at least 0, got {value.step(k)}{at}.")
    return value


def as_schedule(step, name="step"):
    """A `Schedule` from a positive number or a schedule, or an error naming `name`."""
    if isinstance(step, str) and step == "auto":
        return automatic()
    if isinstance(step, Automatic):
        return step
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
