r"""The Zig-Zag process of a sum of terms: exact, at one row a proposal.

As in `pdmp.processes.regression_bps` the gradient is expanded at the anchor x̂, ∇U = Σᵢ Rᵢ + K, in the norm of S⁻¹,
S = diag(s²), and the path is a line between events.

=====  =================================================================================================
flow   straight lines, x + v t, |vⱼ| = sⱼ
clock  one for the rows, one for K
rate   of coordinate j: Σᵢ (vⱼ Rᵢⱼ)₊, one row a proposal, and (vⱼ Kⱼ)₊
jump   vⱼ ← -vⱼ
=====  =================================================================================================

The rates balance the flow whatever is left to the rows: their difference from those of -vⱼ is vⱼ ∂ⱼU.

Rows. Σⱼ |vⱼ Rᵢⱼ| is w·Rᵢ for a w of the speeds of v, whose norm is that of v. So it is below the bound of the Bouncy
Particle Sampler, Λᵢ |v| φ(|y|), and rows are proposed and drawn in the same way. One that is accepted, with the sum of
its rates, flips a coordinate in proportion to vⱼ Rᵢⱼ.

K. Between events vⱼ Kⱼ is a line in time, ℓⱼ + mⱼ t, but for priors that are not normal, and below (ℓⱼ)₊ + (mⱼ)₊ t; of
the others it is bounded as there.

A coordinate of velocity 0 stays where it is, and adds nothing to any rate: `Sticky` freezes coordinates so.

References
----------
Bierkens, Fearnhead & Roberts (2019), The Zig-Zag process and super-efficient sampling for Bayesian analysis of big
data, Ann. Statist. 47, sections 4 and 5.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pdmp.expressions.tape import Scratch
from pdmp.gradients.provider import clear
from pdmp.metric import Metric
from pdmp.models.priors import NORMAL
from pdmp.models.sums_of_terms import SumOfTerms
from pdmp.native.classes import compiled, positive_part
from pdmp.process import HORIZON
from pdmp.processes.regression_boomerang import ROW
from pdmp.processes.regression_bps import LONGEST, SLACK, RegressionBPS
from pdmp.thinning.affine import first_arrival
from pdmp.thinning.bound import draw_component


class RowZigZag(RegressionBPS):
    """Zig-Zag process of a sum of terms, sub-sampled exactly.

    Parameters
    ----------
    model : SumOfTerms, or MixedRegression without groups
    anchor : array_like, shape (dim,), optional
        Where the gradient of all rows is known; the mode when omitted.
    metric : "auto", "diagonal", None, float, array_like of shape (dim,), or Metric, default "auto"
        1 / s²: the speeds are the standard deviations of the normal approximation at the anchor when omitted.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> from pdmp.models.priors import Normal
    >>> from pdmp.processes.row_zigzag import RowZigZag
    >>> p = pdmp.Parameters(beta=1)
    >>> rows = pdmp.terms(lambda y, z: np.exp(z) - y * z, [np.arange(40) % 4], [np.ones((40, 1)) @ p.beta])
    >>> model = pdmp.models.sum_of_terms(p, [rows], priors={"beta": Normal(0.0, 1.0)})
    >>> run = pdmp.sample(RowZigZag(model), events=200, seed=1)
    >>> run.stats["data_terms"] <= run.stats["proposals"]
    True
    """

    events = ("flip",)
    _clocks = 2

    def __init__(
        self,
        model: SumOfTerms,
        anchor: ArrayLike | None = None,
        *,
        metric: ArrayLike | Metric | str | None = "auto",
    ) -> None:
        super().__init__(model, anchor, metric=metric)

    # -- compiled -----------------------------------------------------------------------------------------------------

    @compiled
    def propose_known(self, state, line, since, now, rng):
        level, slope, size = 0.0, 0.0, 0.0
        for j in range(state.x.shape[0]):
            if state.v[j] == 0.0:
                continue
            own, rise = self.line_of(state, j, since)
            size += abs(own) + abs(rise) * LONGEST
            if self.model.kinds[j] > NORMAL:
                part, faster = self.line_of_prior(state, j, since)
                own += part
                rise += faster
            level += positive_part(own)
            slope += positive_part(rise)
        level += SLACK * size
        s = first_arrival(level, slope, rng.standard_exponential())
        return (now + s, level + slope * s) if s < LONGEST else (now + LONGEST, HORIZON)

    @compiled
    def rate(self, state, i, now, rng):
        if state.bounds[i] == HORIZON:
            return 0.0
        rates, share, total = state.memory.gradient, 1.0, 0.0
        if i == ROW:
            self.rate_of_row(state, now)
            self.gradient_of_row(state)
            share = self.total / self.weights[state.memory.row[0]]
        s = now - state.moved[0]
        for j in range(rates.shape[0]):
            v = state.v[j]
            if i == ROW:
                rates[j] = positive_part(v * rates[j])
            else:
                rates[j] = self.line_of(state, j, s)[0]
                if self.model.kinds[j] > NORMAL:
                    rates[j] += v * self.model.derivative_of_prior(j, state.x[j] + v * s)
                rates[j] = positive_part(rates[j])
            total += rates[j]
        return total * share

    @compiled
    def jump(self, state, i, now, rng):
        total, rates = 0.0, state.memory.gradient
        for j in range(rates.shape[0]):
            total += rates[j]
        j = draw_component(rates, rng.random() * total)
        state.v[j] = -state.v[j]
        return 0

    @compiled(allocates=True, inline=False)
    def true_rates(self, x, v, scratch, out):
        """The rates of the clocks, from all rows."""
        m, loss = self.model.n_functionals, np.empty(self.model.n_functionals)
        data, room = np.empty((self.model.n_columns, 1)), np.empty((self.model.registers, 1))
        evaluation = Scratch(np.empty((m, 1)), np.empty((m, 1)), data, room)
        self.known(x, scratch)
        out[0], out[1] = 0.0, 0.0
        for j in range(x.shape[0]):
            out[1] += positive_part(v[j] * scratch[j])
        for i in range(self.model.n_data):
            clear(scratch)
            self.model.remainder_along(self.anchor, x, v, i, evaluation, loss)
            self.model.add_remainder(i, loss, scratch)
            for j in range(x.shape[0]):
                out[0] += positive_part(v[j] * scratch[j])

    # -- Python -----------------------------------------------------------------------------------------------------

    def channels(self) -> list[str]:
        return ["rows", "prior"]

    def velocity(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.choice([-1.0, 1.0], self.dim) * self.reference.sd
