"""Bounds on the rates of clocks, and the first arrivals under them: one file each.

A bound is asked ``propose(process, state, i, now, rng)`` and answers (time, bound): when clock i proposes next, and
what its rate cannot exceed there; or (time, `pdmp.HORIZON`): nothing comes before that time, propose anew there. A
process takes an instance, or a name, as its argument ``thinning``.

==================  =================================================  =======  ======================================
bound               what it needs                                      exact    cost of one proposal
==================  =================================================  =======  ======================================
`Inversion`         a quadratic potential (``affine_partial``)         yes      one partial derivative; never rejected
`RayInversion`      a quadratic potential (``hessian_product``)         yes      one product Hv; never rejected
`Constant`          a number                                           yes      nothing
`ModelConstant`     the model's ``directional_derivative_bound`` or               yes      nothing
                    ``partial_derivative_bounds``
`Affine`            the model's ``curvature_bound`` or               yes      nothing: the rates where it was last
                    ``partial_curvature_bounds``                                          rejected are known
`Lipschitz`         a Lipschitz constant of the gradient               yes      as `Affine`
`Hessian`           a matrix that dominates the Hessian                yes      as `Affine`, and one product with it
`LocalHessian`      the model's ``curvature_bound_within`` or        yes      as `Affine`; horizons between
                    ``partial_curvature_bounds_within``
`ConcaveConvex`     the model's ``add_prior_parts`` and                yes      two passes over the parts for each cell
                    ``add_term_parts``
`Polynomial`        the model's ``add_prior_coefficients`` and         yes      one pass over them for each cell
                    ``add_term_coefficients``
`Grid`              nothing                                            no       two gradients for each cell, and one
                                                                                for each of its halvings
`Maxima`            nothing                                            no       as `Grid`, and up to four more where
                                                                                the middle of the cell is highest
`Conserved`         bounds on the Hessian, or on each term's        yes      as `Affine`; nothing for mini-batches
                    gradient (`pdmp.Boomerang`)
`ConservedParts`    the same (`pdmp.FactorisedBoomerang`)              yes      the same
`Sinusoids`         a quadratic potential (`pdmp.Boomerang`)           yes      two gradients; rarely rejected
`ProductInversion`  a quadratic potential                              yes      one partial derivative; never rejected
                    (`pdmp.FactorisedBoomerang`)
`regression`        noisy observations of the rate (`pdmp.SBPS`)       no       nothing
==================  =================================================  =======  ======================================

To each comes the look at the true rate where the clock rings. A rate above an exact bound stops the run with an error
that names the bound; one above an approximate bound is counted, with its excess, in ``run.stats``, and the horizon
shrinks. To write a bound, derive from `Bound`; to have a process thinned by these, see there too.
"""

from pdmp.thinning.affine import Affine, Inversion, RayInversion
from pdmp.thinning.bound import Bound
from pdmp.thinning.concave_convex import ConcaveConvex
from pdmp.thinning.conserved import Conserved, ConservedParts
from pdmp.thinning.constant import Constant, ModelConstant
from pdmp.thinning.grid import Grid
from pdmp.thinning.hessian import Hessian, Lipschitz, LocalHessian
from pdmp.thinning.maxima import Maxima
from pdmp.thinning.narrow import Narrow
from pdmp.thinning.polynomial import Polynomial
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
    "ProductInversion",
    "RayInversion",
    "Sinusoids",
]
