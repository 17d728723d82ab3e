r"""Bounds for polynomial potentials: along a line every rate is a polynomial in time with known coefficients.

On s >= 0 the terms cₖ sᵏ with cₖ > 0 are convex and those with cₖ < 0 concave, so that `pdmp.thinning.concave_convex`
applies. The coefficients are evaluated at the begin of a cell only, and the cell is used until it ends or the velocity
changes.

References
----------
Sutton & Fearnhead (2023), Concave-Convex PDMP-based sampling, J. Comput. Graph. Statist. 32, section 3.2.
"""

from __future__ import annotations

import math

from pdmp.models.base import Model
from pdmp.native.arguments import count
from pdmp.native.classes import Compiled, compiled
from pdmp.thinning.bound import Bound, settle_cell
from pdmp.thinning.concave_convex import arrive, check_pieces, is_current, no_lines, set_line


class Polynomial(Bound):
    """The model's rates as polynomials in time, added up over prior and data.

    The model defines ``add_prior_coefficients(x, v, out)`` and ``add_term_coefficients(x, v, i, out)``. If `out` has
    shape (d, degree + 1), they add the coefficient of sᵏ in vⱼ ∂ⱼU(x + sv) to ``out[j, k]``; if it has shape
    (1, degree + 1), that of v·∇U(x + sv) to ``out[0, k]``.

    Parameters
    ----------
    degree : int
        Degree of the rates, one less than that of the potential; at least 1.

    Raises
    ------
    ValueError
        Unless `degree` is an integer >= 1.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.Banana()
    >>> run = pdmp.sample(pdmp.BPS(model, thinning=pdmp.thinning.Polynomial(degree=3)), events=50, seed=1)
    >>> run.mean().shape
    (2,)
    """

    degree: int

    name = "the polynomial bound"
    wants = ("add_prior_coefficients", "add_term_coefficients")
    straight = True
    adapts = True

    def __init__(self, degree: int) -> None:
        self.degree = count("degree", degree)

    @compiled
    def propose(self, process, state, i, now, rng):
        memory = state.memory.bound
        if not is_current(memory, state, i, now):
            h, table = memory.horizon[0], memory.start
            process.rate_coefficients(state, now, table)
            total = 0.0
            for j in range(table.shape[0]):
                convex, concave, slope, power = 0.0, table[j, 0], 0.0, 1.0  # at h
                for k in range(1, table.shape[1]):
                    if k > 1 and table[j, k] > 0.0:
                        convex += table[j, k] * power * h
                    else:
                        concave += table[j, k] * power * h
                        slope += k * table[j, k] * power
                    power *= h
                set_line(memory, j, h, 0.0, convex, table[j, 0], table[j, 1], concave, slope)
                total += convex + concave
            if not math.isfinite(total):
                return now, math.nan
            settle_cell(memory, state, i, now, h)
        return arrive(memory, now, rng)

    def memory(self, m: int, dim: int, width: float) -> tuple:
        return no_lines(m, dim, self.degree + 1, width)

    def check(self, model: Model, form: str | None, flow: Compiled, components: int) -> None:
        check_pieces(self, model, form, flow, "coefficients")

    def describe(self, model: Model, form: str | None) -> str:
        return f"the sum of `add_prior_coefficients` and `add_term_coefficients` of {type(model).__name__}"
