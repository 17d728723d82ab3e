r"""The stochastic-gradient Nosé-Hoover thermostat: SGHMC whose friction adapts to unknown gradient noise.

dθ = p dt, dp = -∇U dt - ξ p dt + √(2A) dB, dξ = (|p|²/d - 1) dt

=====  ==============================================================================================
flow   none
clock  ticks of ε
rate   none: every tick is an event
jump   p += -ε ∇Û(θ) - ε ξ p + √(2Aε) z;   θ += ε p;   ξ += ε (|p|²/d - 1), each with what is new above it
=====  ==============================================================================================

With ``thermostat="per_block"`` each block of coordinates has its own ξ, which follows the |p|²/d of this block.
Released code often has one thermostat for each array of parameters, which is the same.

In stationarity, whatever U and the noise are, E|p|²/d = 1 exactly, and E θ·∇U / d = 1 - E[ξ θ·p] / d. On Gaussian
targets the mean of ξ is A' + ε (A'² - 1/d) / 2 + O(ε²), A' = A + ετ²/2. The bias of averages is O(ε): on a Gaussian the
covariance is 1 - εA'/2 times the target's, up to terms of order ε² and ε/d. Additive Gaussian noise with the same
standard deviation in all coordinates acts exactly as a diffusion A' in place of A, but for the thermostat's start.
SGHMC that does not know the noise has 1 + ετ²/(2D) times the target's variance.

References
----------
Ding, Fang, Babbush, Chen, Skeel & Neven (2014), Bayesian sampling using stochastic gradient thermostats, NeurIPS,
algorithm 2; Coullon, South & Nemeth (2023), Efficient and generalizable tuning strategies for stochastic gradient
MCMC, Stat. Comput. 33, eq. 7 (h, a, α; θ is moved by the new velocity).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from discrete.schedules import Schedule
from discrete.thermostat import Displaced, Thermostatted
from discrete.tick import finite
from pdmp.gradients import Provider
from pdmp.metric import Metric
from pdmp.models import Model
from pdmp.native.classes import compiled


class SGNHT(Displaced, Thermostatted):
    """Stochastic-gradient Nosé-Hoover thermostat on exp(-U).

    Parameters
    ----------
    provider : pdmp.Model or any of `pdmp.gradients`
        Estimates of ∇U. The size of their noise need not be known.
    step : float, schedule or "auto", default "auto"
        ε, the integrator's step, a time, for the momentum p ~ N(0, I); `from_h` takes h = ε². "auto": see
        `discrete.schedules.automatic`.
    diffusion : float, optional
        A of dp = … + √(2A) dB, an inverse time. The thermostat starts at A. When omitted, it is 1 for a given step;
        with an automatic step it is chosen among several, for the fastest decay of correlations per step.
    thermostat : {"scalar", "per_block"}
        One thermostat for all coordinates, or one for each block of them.
    blocks : sequence of int, optional
        Sizes of consecutive blocks, or for each coordinate the number of its block, from 0 on. By default the model's
        variables, in their order. Only for ``thermostat="per_block"``.
    metric
        As for `SGHMC`.

    Raises
    ------
    ValueError
        For a step or diffusion that is not positive, an unknown kind of thermostat, or blocks that do not fit.

    Examples
    --------
    >>> import discrete, pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0, 0.0], [1.0, 1.0, 4.0])
    >>> discrete.SGNHT(model, step=0.1, thermostat="per_block", blocks=[2, 1]).block
    array([0, 0, 1])
    """

    block: np.ndarray  #: (d,) the number of each coordinate's block
    sizes: np.ndarray  #: (blocks,) how many coordinates each block has

    def __init__(
        self,
        provider: Provider | Model,
        step: float | str | Schedule = "auto",
        diffusion: float | None = None,
        thermostat: str = "scalar",
        blocks: ArrayLike | None = None,
        *,
        metric: ArrayLike | Metric | None = None,
    ):
        super().__init__(provider, step, diffusion, metric)
        if thermostat not in ("scalar", "per_block"):
            raise ValueError(f'`thermostat` must be "scalar" or "per_block", got {thermostat!r}.')
        if thermostat == "scalar":
            if blocks is not None:
                raise ValueError('`blocks` is only for thermostat="per_block".')
            blocks = [self.dim]
        elif blocks is None:
            blocks = [int(np.prod(shape)) for shape in self.model.variables.values()]
        self.block = _block_of_each(blocks, self.dim)
        self.sizes = np.bincount(self.block).astype(float)
        self.thermostats = len(self.sizes)

    def linear_step(
        self, step: float, friction: float, curvature: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        kept = 1.0 - friction * step  # of p, which then moves θ
        turn = step * curvature
        transition = np.stack(
            [
                np.stack([1.0 - step * turn, np.full_like(curvature, step * kept)], axis=-1),
                np.stack([-turn, np.full_like(curvature, kept)], axis=-1),
            ],
            axis=-2,
        )
        kick = step * np.array([step, 1.0])
        return transition, kick, 2.0 * friction / step * np.outer(kick, kick)

    @compiled
    def move(self, x, v, memory, z, rng, counts):
        eps, gradient = self.schedule.step(memory.taken[0]), memory.gradient
        xi, squares = memory.thermostat, memory.block_squares
        self.provider.gradient(x, memory.provider, rng, gradient, counts)
        if not finite(gradient):
            return False
        noise, total = math.sqrt(2.0 * self.diffusion * eps), 0.0
        for b in range(squares.shape[0]):
            squares[b] = 0.0
        for j in range(x.shape[0]):
            b = self.block[j]
            p = v[j] - eps * (gradient[j] + xi[b] * v[j]) + noise * z[j]
            v[j] = p
            x[j] += eps * p
            squares[b] += p * p
        for b in range(squares.shape[0]):
            xi[b] += eps * (squares[b] / self.sizes[b] - 1.0)
            total += squares[b]
        return self.finish_step(memory, eps, total / x.shape[0], counts)


def _block_of_each(blocks, d):
    """The number of each coordinate's block, (d,), from the blocks' sizes, or from these numbers, one of which is 0."""
    what = f"`blocks` must be sizes of at least 1 that add up to {d}, or the numbers 0, 1, … of {d} coordinates' blocks"
    try:
        found = np.array(blocks)
    except ValueError:
        raise ValueError(f"{what}, got {blocks!r}.") from None
    if found.ndim != 1 or found.size == 0 or found.dtype.kind not in "iu" or found.min() < 0:
        raise ValueError(f"{what}, got {blocks!r}.")
    if found.min() > 0:
        if found.sum() != d:
            raise ValueError(f"{what}, got sizes that add up to {found.sum()}.")
        return np.repeat(np.arange(len(found)), found)
    if len(found) != d or len(np.unique(found)) != found.max() + 1:
        raise ValueError(f"{what}, got {len(np.unique(found))} different numbers up to {found.max()} of {len(found)}.")
    return found.astype(np.int64)
