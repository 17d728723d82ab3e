r"""How the gradient of E = U - ½ |y|² is bounded in the metric of a Gaussian reference, for `pdmp.thinning.conserved`.

With Σ = L Lᵀ, y = L⁻¹ (x - m), and matrices lower <= H(x) <= upper around every Hessian of U, the Hessian of E is
Lᵀ H L - I. Where the gradient is estimated from data, terms and prior have bounds of their own:

- mini-batches: |Lᵀ∇Ê(x)| <= N maxᵢ sup|Lᵀ∇Uᵢ| + |Lᵀ∇prior(m)| + ‖Lᵀ Hₚ L - I‖ |y|;
- control variates with the anchor at y = α: |Lᵀ∇Ê(x)| <= |Lᵀ∇U(a) - α| + (maxᵢ Λᵢ / pᵢ + ‖Lᵀ Hₚ L - I‖) |y - α|, where
  Λᵢ is a Lipschitz constant of Lᵀ∇Uᵢ and pᵢ the probability with which datum i is drawn.

References
----------
Bierkens, Grazzi, Kamatani & Roberts (2020), The Boomerang sampler, ICML, sections 2.2 and 2.3.
"""

from __future__ import annotations

import functools

import numpy as np

from pdmp.gradients import ControlVariate
from pdmp.models.capabilities import missing
from pdmp.models.numerical import prior_gradient, term_partial_bounds, term_partial_lipschitz
from pdmp.thinning.conserved import Conserved, ConservedParts

PIECE = 50_000  #: data at a time
GRADIENTS, LIPSCHITZ = "term_gradient_bounds", "term_lipschitz"  #: what a model must have for bounds on its terms


def spread(bounds, reference):
    """sup over x of the spectral norm of Lᵀ H(x) L - I, for matrices lower <= H(x) <= upper."""
    lower, upper = (np.linalg.eigvalsh(reference.sandwich(bound)) for bound in bounds)
    return float(max(abs(lower[0] - 1.0), abs(upper[-1] - 1.0)))


def entry_spread(bounds, reference):
    """Bounds (d, d) on the entries of |Lᵀ H(x) L - I| over all x, for matrices lower <= H(x) <= upper."""
    lower, upper = (reference.sandwich(bound) for bound in bounds)
    room = np.sqrt(np.maximum(np.diag(upper - lower), 0.0))  # of a matrix between ±(upper - lower)/2
    return np.abs(0.5 * (lower + upper) - np.eye(len(lower))) + 0.5 * np.outer(room, room)


def bound_of_hessian(model, mean, reference):
    """`Conserved` by the model's bounds on its Hessian; None when it has none."""
    bounds = model.hessian_bounds()
    if bounds is None:
        return None
    return Conserved(np.linalg.norm(reference.root.T @ model.gradient(mean)), spread(bounds, reference), True)


def bound_of_entries(model, mean, reference):
    """`ConservedParts` by the model's bounds on its Hessian, for a diagonal reference; None when it has none."""
    bounds = model.hessian_bounds()
    if bounds is None:
        return None
    offset = reference.sd * np.abs(model.gradient(mean))
    return ConservedParts(offset, entry_spread(bounds, reference), np.zeros(model.dim), True)


def bound_of_terms(provider, mean, reference):
    """`Conserved` for gradients that are estimated from mini-batches."""
    model, root = provider.model, reference.root
    rest = spread(_prior_bounds(model), reference)
    if not isinstance(provider, ControlVariate):
        norms = functools.partial(model.term_gradient_norms, root)
        largest = max(part.max() for part, _ in _pieces(model, GRADIENTS, norms))
        prior = np.linalg.norm(root.T @ prior_gradient(model, mean))
        return Conserved(model.n_data * largest + prior, rest, False)
    norms = functools.partial(model.term_lipschitz_norms, root)
    growth = rest + max((_weights(provider, rows) * part).max() for part, rows in _pieces(model, LIPSCHITZ, norms))
    away = np.linalg.solve(root, provider.anchor - mean)
    there = np.linalg.norm(root.T @ model.gradient(provider.anchor) - away)
    return Conserved(there + growth * np.linalg.norm(away), growth, False)


def bound_of_partial_terms(provider, mean, reference):
    """`ConservedParts` for gradients that are estimated from mini-batches, for a diagonal reference."""
    model, sd = provider.model, reference.sd
    growth = entry_spread(_prior_bounds(model), reference)
    common = np.zeros(model.dim)
    if not isinstance(provider, ControlVariate):
        bounds = functools.partial(term_partial_bounds, model)
        largest = np.max([part.max(axis=0) for part, _ in _pieces(model, GRADIENTS, bounds)], axis=0)
        return ConservedParts(
            sd * (model.n_data * largest + np.abs(prior_gradient(model, mean))), growth, common, False
        )
    for part, rows in _pieces(model, LIPSCHITZ, functools.partial(term_partial_lipschitz, model, scale=sd)):
        common = np.maximum(common, (_weights(provider, rows)[:, None] * part).max(axis=0) * sd)
    away = (provider.anchor - mean) / sd
    there = np.abs(sd * model.gradient(provider.anchor) - away)
    offset = there + growth @ np.abs(away) + common * np.linalg.norm(away)
    return ConservedParts(offset, growth, common, False)


def _pieces(model, capability, bounds):
    """``bounds(first, last)`` on the terms, with each range; a `ValueError` where the model has no such capability."""
    for first in range(0, model.n_data, PIECE):
        rows = first, min(first + PIECE, model.n_data)
        part = bounds(*rows)
        if part is None:
            raise ValueError(missing(model, capability, "`provider`: mini-batches need", "Give the model itself."))
        yield part, rows


def _weights(provider, rows):
    """1 / pᵢ of the terms in the range."""
    if provider.draw == "uniform":
        return np.full(rows[1] - rows[0], float(provider.n_data))
    contributions = provider.contributions()
    total, part = contributions.sum(), contributions[rows[0] : rows[1]]
    return np.divide(total, part, out=np.zeros(len(part)), where=part > 0.0)


def _prior_bounds(model):
    bounds = model.prior_hessian_bounds()
    if bounds is None and model.has("add_prior_gradient"):
        asked = "`provider`: mini-batches need"
        raise ValueError(missing(model, "prior_hessian_bounds", asked, "Give the model itself."))
    return (np.zeros((model.dim, model.dim)),) * 2 if bounds is None else bounds
