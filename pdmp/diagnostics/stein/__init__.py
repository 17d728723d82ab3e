r"""Stein discrepancies: distances of draws from a target of which only the score ∇log π is known.

With a kernel k(x, y) = φ(ρ), ρ = (x - y)ᵀ Γ⁻¹ (x - y), and the scores s, s' at x and y, the Stein kernel is

    k_π(x, y) = s·s' φ - 2 φ' (s - s')·Γ⁻¹(x - y) - 2 φ' tr Γ⁻¹ - 4 φ'' |Γ⁻¹(x - y)|²

whose mean over y ~ π is zero for every x. Its double sum over draws is the square of the kernelised Stein discrepancy,
`ksd`. The finite-set discrepancy `fssd` evaluates the Stein features at a few locations only, `sliced_ksd` sums over
one-dimensional projections, and `stein_thin` chooses draws one at a time so that their discrepancy is least.

None of them detects a mode that is far from all draws. All of them depend on the units of the coordinates: give a
`preconditioner` where scales differ.

Stochastic scores. Where the data are many, s may be an unbiased estimate from a mini-batch drawn anew for each draw:
``ksd(x, scores(Minibatch(model, 100), x), statistic="u")``. The noise of two draws is independent and k_π is linear in
each of the two scores, so the U-statistic, a mean over pairs of different draws, stays unbiased; its variance grows
with the noise. The V-statistic is biased: its diagonal has s·s, so KSD² is larger by E[φ(0) tr Cov(s)] / P. It ranks
samplers as exact scores do if all of them have the same noise. FSSD is linear in each score as well, and its
U-statistic unbiased. Control variates have less noise, and none at their anchor.

References
----------
Gorham & Mackey (2017), Measuring sample quality with kernels, ICML (the inverse multiquadric); Liu, Lee & Jordan
(2016), A kernelized Stein discrepancy for goodness-of-fit tests, ICML (U-statistic); Jitkrittum, Xu, Szabó, Fukumizu &
Gretton (2017), A linear-time kernel goodness-of-fit test, NeurIPS (FSSD); Gong, Li & Hernández-Lobato (2021), Sliced
kernelized Stein discrepancy, ICLR; Riabiz et al. (2022), Optimal thinning of MCMC output, JRSS B 84.
"""

from pdmp.diagnostics.stein.finite_set import fssd
from pdmp.diagnostics.stein.kernel_discrepancy import ksd
from pdmp.diagnostics.stein.kernels import SteinKernel, gaussian, imq
from pdmp.diagnostics.stein.score_function import scores
from pdmp.diagnostics.stein.sliced import sliced_ksd
from pdmp.diagnostics.stein.thinning import stein_thin
from pdmp.native.lazy import given_up as _given_up

__all__ = ["SteinKernel", "fssd", "gaussian", "imq", "ksd", "scores", "sliced_ksd", "stein_thin"]

__getattr__ = _given_up(
    __name__, {"stein_matrix": f"{__name__}.stein_matrix was left out: ksd and stein_thin add up its entries."}
)
