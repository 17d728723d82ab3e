r"""The Zig-Zag process.

=====  =================================================================================================
flow   straight lines, x + v s, v in {-1, 1}^d
clock  d Poisson clocks. Quadratic targets: one each, inverted exactly, and an event redraws only those of
       its neighbours. Otherwise their superposition: one clock, by thinning under a bound on Σᵢ (vᵢ ∂ᵢU)₊
rate   (vᵢ ∂ᵢU(x))₊, coordinate i; the superposition's is the sum, and i is drawn in proportion
jump   vᵢ ← -vᵢ
=====  =================================================================================================

References
----------
Bierkens, Fearnhead & Roberts (2019), The Zig-Zag process and super-efficient sampling for Bayesian analysis of big
data, Ann. Statist. 47 (rates: eq. 3; thinning: section 3). Bierkens, Grazzi, van der Meulen & Schauer (2020), A
piecewise deterministic Monte Carlo method for diffusion bridges (local form).
"""

from __future__ import annotations

from pdmp.compiled import compiled, positive
from pdmp.processes.exact import ExactGradient
from pdmp.thinning.affine import Inversion


class ZigZag(ExactGradient):
    """Zig-Zag process of exp(-U) with the exact gradient and unit speed in each coordinate.

    Parameters
    ----------
    provider : Model or pdmp.gradients.Full
        What to sample.
    thinning : "auto", "inversion", "affine", "grid" or a bound of `pdmp.thinning`
        "inversion": exact arrivals for quadratic targets, local when their Hessian is sparse, so that the cost of an
        event does not depend on the dimension. "affine": the model's bounds on the slopes of the rates, exact.
        "grid": the adaptive grid for targets that give none; its violations are counted. "auto" takes the first of
        these that the model supports.

    Raises
    ------
    TypeError
        For a gradient with noise.
    ValueError
        For thinning that the model does not support.
    """

    single: int  #: 1: one clock for the sum of the rates; 0: a clock for each coordinate

    events = ("flip",)
    at_walls = "flip"

    def __init__(self, provider, thinning="auto"):
        model = provider.model if hasattr(provider, "model") else None
        affine = model is not None and model.knows("affine_partial")
        if isinstance(thinning, str) and (thinning == "auto" and affine or thinning == "inversion"):
            thinning = Inversion()
        if isinstance(thinning, Inversion):
            if not affine:
                raise ValueError(
                    f'`thinning="inversion"` needs a quadratic potential: {type(model).__name__} has no '
                    f'`affine_partial`. Use thinning="auto".'
                )
            super().__init__(provider, thinning, None, clocks=model.dim, dependents=model.neighbours(), local=True)
        else:
            super().__init__(provider, thinning, "partial_slopes", local=True)
        self.single = int(self.clocks == 1 and not isinstance(self.thinning, Inversion))

    @compiled
    def clock(self, state, i, now, rng):
        return self.thinning.propose(self, state, i, now, rng)

    @compiled
    def rate(self, state, i, now, rng):
        rates = state.memory.rates
        self.rates(state, now, rng, rates)
        total = 0.0
        for j in range(rates.shape[0]):
            total += positive(rates[j])
        rest = rng.random() * total
        chosen = rates.shape[0] - 1
        for j in range(rates.shape[0]):
            rest -= positive(rates[j])
            if rest < 0.0:
                chosen = j
                break
        state.memory.chosen[0] = chosen
        return total

    @compiled
    def touches(self, state, i):
        j = state.memory.chosen[0] if self.single == 1 else i
        return j, j + 1

    @compiled
    def coordinate(self, k):
        return k

    @compiled
    def jump(self, state, i, now, rng):
        j = state.memory.chosen[0] if self.single == 1 else i
        state.v[j] = -state.v[j]
        return 0

    # What the bounds ask for: the signed rates vᵢ ∂ᵢU, and what the model knows of them and of their slopes.

    @compiled
    def rates(self, state, now, rng, out):
        self.look(state, now, rng)
        for j in range(out.shape[0]):
            out[j] = state.v[j] * state.memory.gradient[j]

    @compiled
    def slopes(self, state, out):
        self.provider.model.partial_slopes(state.v, out)

    @compiled
    def levels(self, state, out):
        self.provider.model.partial_bounds(state.v, out)

    @compiled
    def slopes_within(self, state, now, s, out):
        self.provider.model.partial_slopes_within(state.memory.here, state.v, s, out)

    @compiled
    def affine_partial(self, state, i, now):
        return self.provider.model.affine_partial(state.x, state.v, state.moved, now, i)

    @compiled
    def true_rates(self, x, v, scratch, out):
        self.true_gradient(x, scratch)
        for j in range(x.shape[0]):
            out[j] = v[j] * scratch[j]

    @compiled
    def channel(self, state, i):
        return state.memory.chosen[0] if self.single == 1 else i

    def channels(self):
        return [f"coordinate {j}" for j in range(self.dim)]

    def velocity(self, x, rng):
        return rng.choice([-1.0, 1.0], self.dim)

    def memory(self, x, rng):
        return self.exact_memory(x, rng, components=self.dim)
