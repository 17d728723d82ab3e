"""Step sizes: a number, or a function of the number of steps taken.

A schedule is a small compiled class with the method ``step(k)``, the size of step k = 0, 1, …. Everything that takes a
step takes a number, which stands for `constant`, or a schedule. To write another one, derive from `Schedule`.

The state before step k is held for ``step(k)``, so that time averages along the path are the averages weighted by the
steps, which decreasing steps need.

References
----------
Teh, Thiery & Vollmer (2016), Consistency and fluctuations for stochastic gradient Langevin dynamics, JMLR 17;
Zhang, Li, Zhang, Chen & Wilson (2020), Cyclical stochastic gradient MCMC for Bayesian deep learning, ICLR, eq. 1.
"""

from __future__ import annotations

import math

from pdmp.errors import warn
from pdmp.native.arguments import count, fraction, positive
from pdmp.native.classes import Compiled, compiled

__all__ = ["Schedule", "automatic", "constant", "cyclical", "polynomial", "power"]

#: Numbers of the steps whose sizes are checked before a run.
CHECKED_STEPS = (0, 1, 10, 1_000, 1_000_000)


class Schedule(Compiled):
    """Base of step-size schedules.

    A schedule defines the compiled method ``step(self, k)``, the size of step k = 0, 1, …, positive for every k, in the
    unit of the sampler that takes it. It may also define ``explores(self, k)``, True for steps that explore: they
    add no noise, and the state before them has no weight in averages. `SGLD`, `SGD` and `GD` take such schedules, the
    other samplers refuse them.

    Examples
    --------
    >>> import discrete, pdmp
    >>> class Harmonic(discrete.schedules.Schedule):
    ...     first: float
    ...
    ...     def __init__(self, first):
    ...         self.first = first
    ...
    ...     @pdmp.compiled
    ...     def step(self, k):
    ...         return self.first / (k + 1)
    >>> Harmonic(0.5).step(4)
    0.1
    """

    @compiled
    def step(self, k):
        return 1.0

    @compiled
    def explores(self, k):
        return False

    @property
    def exploring(self) -> bool:
        """Whether the schedule defines `explores`."""
        return self._methods["explores"] is not Schedule._methods["explores"]

    def check(self, name: str) -> None:
        """Check the sizes of some steps.

        Parameters
        ----------
        name : str
            What the argument is called.

        Raises
        ------
        ValueError
            If one of the steps `CHECKED_STEPS` is not positive and finite.

        Warns
        -----
        UserWarning
            If the sum of all steps is finite, as far as the sizes up to step 2⁴¹ tell.
        """
        self._check_sizes(name)
        if self._sum_seems_finite():
            _warn_of_finite_sum(f"`{name}`: the steps of {type(self).__name__}")

    def _check_sizes(self, name):
        for k in CHECKED_STEPS:
            value = self.step(k)
            if not 0.0 < value < math.inf:
                raise ValueError(f"`{name}` must be positive and finite; its schedule gives {value} at step {k}.")

    def _sum_seems_finite(self):
        """Whether Σ step(k) seems to be finite, by Cauchy's condensation test.

        The sum is finite if and only if Σ 2ᵐ step(2ᵐ) is, as it is when these terms fall geometrically in m. The
        largest of a few steps in [2ᵐ, 2ᵐ⁺¹) stands for all of them. Terms that fall like a power of m, as those of
        1 / (k log k), are taken to have an infinite sum, whether they have one or not.
        """
        early, middle, late = (
            2.0**m * max(self.step(2**m + j * 2**m // 7 + j) for j in range(7)) for m in (16, 28, 40)
        )
        if not early * middle * late > 0.0:
            return not late > 0.0
        before, after = math.log(middle / early), math.log(late / middle)
        return after < min(0.8 * before, -0.05)


def _warn_of_finite_sum(steps):
    warn(f"{steps} have a finite sum: the chain cannot reach its target.")


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
        self._check_sizes(name)  # `polynomial` has warned of a finite sum


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
    """The steps of `Cyclical`, of which the first `exploration_steps` of each cycle explore."""

    exploration_steps: int

    def __init__(self, size, length, exploration_steps):
        super().__init__(size, length)
        self.exploration_steps = int(exploration_steps)

    @compiled
    def explores(self, k):
        return k % self.length < self.exploration_steps


class Repeated(Schedule):
    """The values of another schedule, each of them twice: its temperature, when there are twice as many steps."""

    whole: Schedule

    def __init__(self, whole):
        self.whole = whole

    @compiled
    def step(self, k):
        return self.whole.step(k >> 1)


class Halved(Repeated):
    """Half of the steps of another schedule, each of them twice: the fine chain of an extrapolation."""

    @compiled
    def step(self, k):
        return 0.5 * self.whole.step(k >> 1)


def constant(value: float) -> Schedule:
    """The same size for every step: the schedule that a number stands for.

    Parameters
    ----------
    value : float
        The step, in the unit of the sampler that takes it.

    Returns
    -------
    Schedule

    Examples
    --------
    >>> import discrete
    >>> discrete.schedules.constant(0.1).step(1_000)
    0.1
    """
    return Constant(value)


def automatic(error: float = 0.1) -> Schedule:
    """A constant step that the sampler chooses when a run starts; ``step="auto"`` is this with the default `error`.

    The step is the largest one at which no marginal variance is predicted to be off by more than the fraction `error`.
    The prediction is for a target that is normal around its mode, from the Hessian of U and the covariance of the
    gradient's noise at the mode. Above 500 dimensions it is for the direction of the largest curvature alone. Where no
    step is within `error`, the one that comes closest is taken, with a `UserWarning`. Of samplers with a momentum
    ε²λ <= 1, λ the largest curvature of U at the mode and at some points drawn from the normal law around it; a run and
    its summary warn if a Metropolis test would have rejected many more steps than was expected.

    Parameters
    ----------
    error : float, default 0.1
        Allowed relative error of each marginal variance, in (0, 1).

    Returns
    -------
    Schedule

    Raises
    ------
    ValueError
        For an error outside (0, 1).

    Examples
    --------
    >>> import discrete, pdmp
    >>> model = pdmp.models.Gaussian([0.0], [4.0])
    >>> sampler = discrete.SGLD(model, step=discrete.schedules.automatic(error=0.25))
    >>> step = sampler.resolve(model.mean).schedule.step(0)  # exact variance: 1 / (1 - γλ/2) times the target's
    >>> 0.09 < step <= 0.1
    True
    """
    if isinstance(error, (bool, str)) or not 0.0 < error < 1.0:
        raise ValueError(f"`error` of an automatic step must lie in (0, 1), got {error!r}.")
    return Automatic(error)


def polynomial(a: float, b: float = 1.0, kappa: float = 0.33) -> Schedule:
    """Decreasing steps a (b + k)^-κ, k = 0, 1, ….

    Parameters
    ----------
    a : float
        Positive scale, in the unit of the sampler's step.
    b : float, default 1
        Positive offset, in steps.
    kappa : float, default 0.33
        Positive exponent κ. 1/3 is optimal for the mean squared error of SGLD (Teh, Thiery & Vollmer, 2016).

    Returns
    -------
    Schedule

    Raises
    ------
    ValueError
        For an argument that is not a positive number.

    Warns
    -----
    UserWarning
        For κ > 1: the steps then have a finite sum, and the chain cannot reach its target.

    Examples
    --------
    >>> import discrete
    >>> schedule = discrete.schedules.polynomial(0.5, b=4.0, kappa=0.5)
    >>> schedule.step(0), schedule.step(5)
    (0.25, 0.16666666666666666)
    """
    a, b, kappa = positive("a", a), positive("b", b), positive("kappa", kappa)
    if kappa > 1.0:
        _warn_of_finite_sum(f"polynomial steps with kappa={kappa} > 1")
    return Polynomial(a, b, kappa)


def power(C: float, s: float) -> Schedule:
    """Decreasing steps C / (k + 1)ˢ, k = 0, 1, …: `polynomial` with b = 1.

    Parameters
    ----------
    C : float
        The first step, positive.
    s : float
        Positive exponent; Robbins & Monro's condition for `SGD` is 1/2 < s <= 1.

    Returns
    -------
    Schedule

    Raises
    ------
    ValueError
        For an argument that is not a positive number.

    Warns
    -----
    UserWarning
        For s > 1: the steps then have a finite sum, and the chain cannot reach its target.

    Examples
    --------
    >>> import discrete
    >>> discrete.schedules.power(0.3, 1.0).step(2)
    0.09999999999999999
    """
    C, s = positive("C", C), positive("s", s)
    if s > 1.0:
        _warn_of_finite_sum(f"steps C / (k + 1)^s with s={s} > 1")
    return Polynomial(C, 1.0, s)


def cyclical(step: float, length: int, exploration: float = 0.0) -> Schedule:
    """Steps that fall like a cosine and start anew after each cycle: step/2 (cos(π (k mod length) / length) + 1).

    The large steps at the beginning of a cycle let the chain leave the mode that it is in (Zhang et al., 2020, eq. 1).

    Parameters
    ----------
    step : float
        The first and largest step of each cycle, in the unit of the sampler's step.
    length : int
        Number of steps in a cycle.
    exploration : float, default 0
        Fraction of each cycle, in [0, 1), that explores. These steps come first; `SGLD` adds no noise in them, and the
        states before them are held for no time, so that they do not count in averages.

    Returns
    -------
    Schedule

    Raises
    ------
    ValueError
        For a step that is not positive, a length that is not a whole number >= 1, or a fraction outside [0, 1).

    Examples
    --------
    >>> import discrete
    >>> schedule = discrete.schedules.cyclical(0.1, length=10, exploration=0.3)
    >>> schedule.step(0), schedule.step(10), schedule.explores(2), schedule.explores(3)
    (0.1, 0.1, True, False)
    """
    step, length, exploration = positive("step", step), count("length", length), fraction("exploration", exploration)
    exploring = min(math.ceil(exploration * length - 1e-9), length - 1)
    return Exploring(step, length, exploring) if exploring else Cyclical(step, length)


#: Powers of smaller steps, up to the fourth, are zero in double precision.
LEAST_STEP = 1e-75


def as_temperature(value: float | Schedule) -> Schedule:
    """The `Schedule` of temperatures that a number or a schedule stands for, or an error if one is below 0."""
    value = value if isinstance(value, Schedule) else Constant(_number("temperature", value))
    for k in CHECKED_STEPS:
        if not 0.0 <= value.step(k) < math.inf:
            at = "" if isinstance(value, Constant) else f" at step {k}"
            raise ValueError(f"`temperature` must be finite and at least 0, got {value.step(k)}{at}.")
    return value


def as_schedule(step: float | str | Schedule, name: str = "step") -> Schedule:
    """The `Schedule` that a positive number, "auto" or a schedule stands for, or an error that names `name`."""
    if isinstance(step, str) and step == "auto":
        return automatic()
    if isinstance(step, Automatic):
        return step
    if isinstance(step, Schedule):
        step.check(name)
        return step
    value = _number(name, step)
    if 0.0 < value < LEAST_STEP:
        raise ValueError(f"`{name}` is too small to compute with, got {step!r}; the least is {LEAST_STEP:g}.")
    if not 0.0 < value < math.inf:
        raise ValueError(f"`{name}` must be positive and finite, got {value}.")
    return Constant(value)


def _number(name, value):
    """A number as a float, infinite where it is too large for one, or a `TypeError`."""
    try:
        if not isinstance(value, (str, bool)):
            return float(value)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        pass
    raise TypeError(f"`{name}` must be a number or one of discrete.schedules, got {value!r}.")
