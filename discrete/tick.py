r"""What the fixed-step samplers share: their state is held between the ticks of one clock.

=====  =========================================================
flow   none: the state is held until the next tick
clock  ticks; step k lasts as long as its step size says
rate   none: every tick is an event
jump   one update with a stochastic gradient (the sampler's file)
=====  =========================================================

The time average of this path is Σ γₖ₊₁ f(θₖ) / Σ γₖ₊₁, the step-weighted average of Welling & Teh (2011) and Teh,
Thiery & Vollmer (2016): the weight of a state is the size of the step that is taken from it.

A sampler derives from `Ticking` and defines ``jump``. If its noise is that of a Brownian motion, it derives from
`Brownian` and defines ``move``, which is given the normal numbers; such samplers can be extrapolated
(`RichardsonRomberg`).
"""

from __future__ import annotations

import copy
import math
from typing import Any, NamedTuple, Self

import numpy as np

from discrete.curvature import local_law, noise_covariance
from discrete.momenta import Natural
from discrete.schedules import Automatic, Constant, Halved, Schedule, as_schedule, automatic
from pdmp.engine.preflight import is_trusted
from pdmp.errors import OURS, silenced, warn
from pdmp.flow import Still
from pdmp.gradients import Full, Minibatch, Provider, as_provider
from pdmp.interfaces.recipe import Recipe
from pdmp.models.base import Model
from pdmp.native.classes import compiled, inlined
from pdmp.native.velocities import finite as finite  # the samplers take it from here
from pdmp.process import CERTAIN, Process

OURS.add("discrete")  # whose lines no warning points at

#: Steps among which tuning chooses, in units of the automatic one.
FACTORS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
#: Error of a variance for which a smaller step is named, and the largest one of which its size says something.
SMALL_BIAS, LARGEST_BIAS = 0.1, 100.0
#: Largest dimension in which the stability limit on a quadratic U is computed.
LIMITED_DIMENSIONS = 500


def warn_of_bias(name, step, worst, error):
    """Warn that no step is within the error of an automatic one."""
    warn(
        f"{name}: no step keeps the marginal variances within {error:.0%}; at the best step, {step:.3g}, one is "
        f"predicted to be off by {worst:.0%}. Larger batches or control variates make less noise."
    )


def name_smaller(process, name, off, order, chooses):
    """What `Defaults.smaller_step` says of a sampler whose bias is of this order in the step."""
    given, wrong = process.schedule.step(0), min(max(off, 1.0 / off) - 1.0, LARGEST_BIAS)
    step = given * min(0.5, (SMALL_BIAS / wrong) ** (1.0 / order))
    cure = f"give {step:.2g} or less" + (f', or {name}="auto"' if chooses else "")
    batches = "" if process.provider.exact else ", or larger batches"
    return f"Its {name}, {given:.4g}, is too large: {cure}{batches}"


def arms_around(cls, model, mode, name):
    """Settings around the automatic ones, for batches of 1 % and 10 % of the data, as `pdmp.interfaces.Recipe.arms`."""
    sizes = sorted({max(2, model.n_data // 100), max(2, model.n_data // 10)}) if model.n_data > 2 else [0]
    hessian, arms = model.hessian(mode), []
    for size in sizes:
        batch = Minibatch(model, size) if size else Full(model)
        with silenced(UserWarning):  # tuning itself compares the settings
            chosen = cls(batch, automatic()).with_step(hessian, noise_covariance(batch, mode))
        others = {key: getattr(chosen, key) for key in ("friction", "diffusion") if hasattr(chosen, key)}
        arms += [({"size": size} if size else {}) | {name: chosen.schedule.step(0) * f} | others for f in FACTORS]

    def make(size=None, **settings):
        return cls(Minibatch(model, size) if size else Full(model), **settings)

    return make, arms


def exact_provider(target, name, noisy):
    """The exact gradient of `target`, or a `TypeError` that says what fits; `noisy`: what takes noisy gradients."""
    provider = as_provider(target)
    if not provider.exact:
        raise TypeError(
            f"`target` of discrete.{name} must be a model or pdmp.gradients.Full(model), because it needs the exact "
            f"gradient; got a {type(provider).__name__}. {noisy} mini-batches."
        )
    return provider


@inlined
def acceptance(log_ratio):
    """min(1, exp(log_ratio)); 0 for NaN, where numbers have overflowed."""
    if log_ratio >= 0.0:
        return 1.0
    return math.exp(log_ratio) if log_ratio < 0.0 else 0.0


class TickMemory(NamedTuple):
    """What a chain keeps beside its state. Some samplers have more; `taken` and `provider` are in all of them."""

    taken: np.ndarray  #: (1,) steps taken
    gradient: np.ndarray  #: (d,) the last estimate of ∇U
    normals: np.ndarray  #: (normals d,) the standard normals of this step
    provider: tuple


class StepRecipe(Recipe):
    """The sampler with its automatic step; none for a sampler without one, as no formula predicts its error."""

    def processes(self, sampler, model, batch, mode, error):
        if not sampler.chooses_step():
            return {}
        with silenced(UserWarning):  # a comparison shows the error itself
            process = sampler(batch, automatic(error)).with_step(model.hessian(mode), noise_covariance(batch, mode))
        return {sampler.__name__: process}

    def arms(self, sampler, model, mode):
        return arms_around(sampler, model, mode, sampler.step_name) if sampler.chooses_step() else None

    def setting(self, process):
        return f"step {process.schedule.step(0):.3g}"


class Ticking(Process):
    """Base of the fixed-step samplers: the state is held between the ticks of one clock.

    A sampler defines the compiled method ``jump(state, i, now, rng)``, one update of ``state.x``. It adds 1 to
    ``state.memory.taken[0]`` and returns 0, or returns -1 if a number is not finite. It may define ``holding_time(k)``,
    for how long the state before step k is held; by default that is the size of the step.

    Parameters
    ----------
    provider : pdmp.Model or any of `pdmp.gradients`
        Estimates of ∇U.
    step : float or schedule
        Step size, in the unit of the sampler.
    name : str, default "step"
        What errors call the step.
    **kwargs
        Further arguments of `pdmp.Process`.

    Examples
    --------
    >>> import discrete, pdmp
    >>> class Descent(discrete.Ticking):
    ...     @pdmp.compiled
    ...     def jump(self, state, i, now, rng):
    ...         memory = state.memory
    ...         self.provider.gradient(state.x, memory.provider, rng, memory.gradient, state.counts)
    ...         for j in range(state.x.shape[0]):
    ...             state.x[j] -= self.schedule.step(memory.taken[0]) * memory.gradient[j]
    ...         memory.taken[0] += 1
    ...         return 0
    >>> Descent(pdmp.models.Gaussian([0.0], [1.0]), step=0.1).tick_length()
    0.1
    """

    provider: Provider
    schedule: Schedule
    regular: bool  #: whether all states are held for the same time

    events = ("step",)
    ticks = 1
    recipe = StepRecipe()
    #: Whether the sampler takes schedules with steps that explore (`schedules.cyclical`).
    can_explore = False
    #: What the step size is called among the arguments.
    step_name = "step"
    #: Standard normals that ``move`` needs for each coordinate and step.
    normals = 0
    _required = ()

    def __init__(
        self, provider: Provider | Model, step: float | str | Schedule, name: str = "step", **kwargs: Any
    ) -> None:
        self.provider = as_provider(provider).by_address
        self.model, self.anchor = self.provider.model, self.provider.anchor
        self.schedule = as_schedule(step, name)
        if isinstance(self.schedule, Automatic) and not self.chooses_step():
            raise ValueError(
                f"`{name}`: {type(self).__name__} has no rule to choose it by; give a number or a schedule."
            )
        if self.schedule.exploring and not self.can_explore:
            raise ValueError(f"`{name}`: {type(self).__name__} has no steps that explore; SGLD and SGD have.")
        ours = is_trusted(self._methods["holding_time"].__module__)  # another may depend on the number of the step
        self.regular = isinstance(self.schedule, Constant) and ours
        super().__init__(self.model.dim, flow=Still(), **kwargs)

    @compiled
    def holding_time(self, k):
        """For how long the state before step k is held, in process time."""
        return self.schedule.step(k)

    @compiled
    def clock(self, state, i, now, rng):
        k = state.memory.taken[0]
        if self.regular:  # from the number of steps, so that rounding errors do not add up
            return (k + 1) * self.holding_time(k), CERTAIN
        return now + self.holding_time(k), CERTAIN

    def velocity(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.zeros(self.dim)

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> tuple:
        d = self.model.dim
        return TickMemory(np.zeros(1, np.int64), np.zeros(d), np.zeros(self.normals * d), self.provider.memory(rng))

    def tick_length(self) -> float | None:
        return self.holding_time(0) if self.regular else None

    # -- an automatic step -------------------------------------------------------------------------------------------

    @classmethod
    def chooses_step(cls) -> bool:
        """Whether the sampler has a rule for an automatic step."""
        return cls.choose_settings is not Ticking.choose_settings

    def choose_settings(self, hessian: np.ndarray, noise: np.ndarray, error: float) -> tuple[dict[str, Any], float]:
        """Settings for a target with this Hessian at its mode and this covariance of the gradient's noise there.

        Returns
        -------
        settings : dict
            New attributes by name, the schedule among them.
        worst : float
            The largest relative error of a marginal variance that is predicted for them.
        """
        raise NotImplementedError

    def with_step(self, hessian: np.ndarray, noise: np.ndarray) -> Self:
        """A copy with the settings of `choose_settings` in place of an automatic step."""
        process, error = copy.copy(self), self.schedule.error
        settings, worst = self.choose_settings(hessian, noise, error)
        for name, value in settings.items():
            setattr(process, name, value)
        if worst > 1.01 * error:
            warn_of_bias(type(self).__name__, process.schedule.step(0), worst, error)
        return process

    #: Order of the bias of averages in the step, which determines the weights in `RichardsonRomberg`.
    bias_order = 1

    def smaller_step(self, off: float) -> str | None:
        return name_smaller(self, self.step_name, off, self.bias_order, self.chooses_step())

    # -- stability ---------------------------------------------------------------------------------------------------

    def stability_limit(self, curvature: float) -> float | None:
        """The smallest step at which the sampler diverges, `curvature` the largest curvature of U; None if unknown."""
        return None

    def _constant_hessian(self, x):
        """The Hessian of a quadratic U, for which stability limits are known; None for any other."""
        if self.dim > LIMITED_DIMENSIONS or not self.model.has("affine_partial"):
            return None
        with np.errstate(all="ignore"):
            hessian = self.model.hessian(x)
        return hessian if np.all(np.isfinite(hessian)) else None

    def resolve(self, x: np.ndarray) -> Self:
        if isinstance(self.schedule, Automatic):
            return self.with_step(*local_law(self.provider, x)).resolve(x)
        if type(self).stability_limit is not Ticking.stability_limit:
            hessian = self._constant_hessian(x)
            if hessian is not None:
                self._warn_above(self.stability_limit(float(np.linalg.eigvalsh(hessian)[-1])))
        return copy.copy(self)

    def _warn_above(self, limit):
        first = self.schedule.step(0)
        if limit is not None and first >= limit * (1.0 - 1e-9):
            warn(
                f"{type(self).__name__}: the first step, {first:.4g}, is not below its stability limit of {limit:.4g} "
                "for the largest curvature of U; the chain will diverge."
            )


class Brownian(Ticking):
    """Base of samplers whose noise is that of a Brownian motion.

    A sampler defines the compiled method ``move(x, v, memory, z, rng, counts)``, one step. It changes x, that is θ, and
    the momentum v, if there is one, in place. The array `z` holds the standard normals of the step, `normals` for each
    coordinate, and ``memory.taken[0]`` is the number of the step. It returns False if a gradient is not finite.
    `RichardsonRomberg` extrapolates such samplers.

    Parameters
    ----------
    provider, step, name, **kwargs
        As for `Ticking`.

    Raises
    ------
    TypeError
        If the class has no compiled method ``move``.

    Examples
    --------
    >>> import discrete, pdmp
    >>> class Noise(discrete.Brownian):
    ...     @pdmp.compiled
    ...     def move(self, x, v, memory, z, rng, counts):
    ...         for j in range(x.shape[0]):
    ...             x[j] += (2.0 * self.schedule.step(memory.taken[0])) ** 0.5 * z[j]
    ...         return True
    >>> Noise(pdmp.models.Gaussian([0.0], [1.0]), step=0.1).bias_order
    1
    """

    coordinates: object  #: those that ``move`` works in, see `discrete.momenta`

    normals = 1
    _returned = Ticking._returned | {"move": "True, or False if a number is not finite"}

    def __init__(
        self, provider: Provider | Model, step: float | str | Schedule, name: str = "step", **kwargs: Any
    ) -> None:
        if "move" not in self._methods:
            raise TypeError(f"{type(self).__name__} is a Brownian sampler without the method `move`, marked @compiled.")
        self.coordinates = Natural()
        super().__init__(provider, step, name, **kwargs)

    @compiled
    def jump(self, state, i, now, rng):
        memory = state.memory
        for j in range(memory.normals.shape[0]):
            memory.normals[j] = rng.standard_normal()
        if not self.coordinates.move(self, state, rng):
            return -1
        memory.taken[0] += 1
        return 0

    def halved(self) -> Self:
        """The same sampler with half the step, the fine chain of an extrapolation."""
        fine = copy.copy(self)
        fine.schedule = Halved(self.schedule)
        return fine
