"""Bounds on the rates of clocks, and the first arrivals under them: one file each.

``propose(process, state, i, now, rng)`` of a bound returns (time, bound): when clock i proposes next, and a number that
its rate does not exceed there; or (time, `pdmp.HORIZON`): there is no event before that time, and the clock proposes
anew then. A process takes an instance, or a name, as its argument ``thinning``.

==================  ================================================  =====  ===========================================
bound               what it needs of the model                        exact  cost of one proposal
==================  ================================================  =====  ===========================================
`Inversion`         a quadratic potential: ``affine_partial``         yes    one partial derivative; never rejected
`RayInversion`      a quadratic potential: ``hessian_product``        yes    one product Hv; never rejected
`Constant`          a number                                          yes    nothing
`ModelConstant`     ``directional_derivative_bound``,                 yes    nothing
                    ``partial_derivative_bounds``
`Affine`            ``curvature_bound``,                              yes    nothing after a rejection:
                    ``partial_curvature_bounds``                             the rates are known there
`Lipschitz`         a Lipschitz constant of the gradient              yes    as `Affine`
`Hessian`           a matrix that dominates the Hessian               yes    as `Affine`, and one product with it
`LocalHessian`      ``curvature_bound_within``,                       yes    as `Affine`; horizons between
                    ``partial_curvature_bounds_within``
`ConcaveConvex`     ``add_prior_parts``, ``add_term_parts``           yes    two passes over the parts for each cell
`Polynomial`        ``add_prior_coefficients``,                       yes    one pass over them for each cell
                    ``add_term_coefficients``
`Grid`              nothing                                           no     two gradients a cell, one for each halving
`Maxima`            nothing                                           no     as `Grid`, and up to four more at a maximum
`Predicted`         nothing; a metric helps                           no     nothing: it predicts from the last gradient
`Conserved`         bounds on the Hessian or on each term's gradient  yes    as `Affine`; nothing for mini-batches
`ConservedParts`    as `Conserved`                                    yes    as `Conserved`
`Sinusoids`         a quadratic potential                             yes    two gradients; rarely rejected
`ProductInversion`  a quadratic potential                             yes    one partial derivative; never rejected
`regression`        noisy observations of the rate                    no     nothing
==================  ================================================  =====  ===========================================

`Conserved` and `Sinusoids` are for `pdmp.Boomerang`, `ConservedParts` and `ProductInversion` for
`pdmp.FactorisedBoomerang`, `regression` is the bound of `pdmp.SBPS`; `Predicted` is its case without noise.

Each proposal also evaluates the true rate; `Predicted` needs no other gradient. A rate above an exact bound stops the
run with an error that names it; one above an approximate bound is counted, with its excess, in ``run.stats``, and the
bound becomes more careful. To write a bound, derive from `Bound`, which also says what a process gives to its bounds;
`first_arrival` and `affine_proposal` invert affine rates.
"""

from pdmp.thinning.affine import Affine, Inversion, RayInversion, affine_proposal, first_arrival
from pdmp.thinning.bound import Bound
from pdmp.thinning.concave_convex import ConcaveConvex
from pdmp.thinning.conserved import Conserved, ConservedParts
from pdmp.thinning.constant import Constant, ModelConstant
from pdmp.thinning.grid import Grid
from pdmp.thinning.hessian import Hessian, Lipschitz, LocalHessian
from pdmp.thinning.maxima import Maxima
from pdmp.thinning.narrow import Narrow
from pdmp.thinning.polynomial import Polynomial
from pdmp.thinning.predicted import Predicted
from pdmp.thinning.sinusoid import ProductInversion, Sinusoids

__all__ = [
    "Affine",
    "Bound",
    "ConcaveConvex",
    "Conserved",
    "ConservedParts",
    "Constant",
    "Grid",
    "Hessian",
    "Inversion",
    "Lipschitz",
    "LocalHessian",
    "Maxima",
    "ModelConstant",
    "Narrow",
    "Polynomial",
    "Predicted",
    "ProductInversion",
    "RayInversion",
    "Sinusoids",
    "affine_proposal",
    "first_arrival",
]
