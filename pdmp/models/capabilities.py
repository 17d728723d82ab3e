"""What a model may say of itself beyond its potential and gradient, in one table.

A model that defines one of these methods can be sampled by what is named beside it; a model without it still runs with
everything that needs less. `Model.has` answers whether a model defines one, `Model.check_bounds` tries to find a point
where what it says is wrong. H is the Hessian of U, Uᵢ the term of datum i, U_f a factor, ∂ⱼ the derivative by xⱼ.

{table}
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Capability(NamedTuple):
    """One method that a model may define."""

    arguments: str  #: of the method, beside `self`
    gives: str  #: what it gives, as error texts call it
    meaning: str  #: what it computes, exactly
    used_by: tuple[str, ...]  #: classes of `pdmp` and `pdmp.thinning`, and options of them, that ask for it
    compiled: bool = True  #: whether it is a compiled method; else one that Python calls
    unless: str = ""  #: a gradient: a model that does not define that one has nothing to say, and the capability


def _of_rays(arguments, meaning, compiled=True):
    return Capability(arguments, "derivatives along rays", meaning, ("DirectionalBPS",), compiled)


PRIOR, TERMS = "add_prior_gradient", "add_term_gradient"

CAPABILITIES = {
    # -- the whole potential --------------------------------------------------------------------------------------
    "potential_and_gradient": Capability(
        "x, out",
        "the potential together with its gradient",
        "U(x), and out += ∇U(x), where both together cost little more than the gradient",
        ("HMC",),
    ),
    "curvature_bound": Capability(
        "v",
        "a bound on the curvature along a direction",
        "a number >= v·H(x)v for every x",
        ("BPS", "DirectionalBPS", "Affine"),
    ),
    "partial_curvature_bounds": Capability(
        "v, out",
        "bounds on the curvature of each coordinate",
        "out[i] >= vᵢ Σⱼ Hᵢⱼ(x) vⱼ for every x",
        ("ZigZag", "CoordinateSampler", "Affine"),
    ),
    "curvature_bound_within": Capability(
        "x, v, s",
        "a bound on the curvature along a piece of the path",
        "a number >= v·H(x + uv)v for 0 <= u <= s",
        ("LocalHessian",),
    ),
    "partial_curvature_bounds_within": Capability(
        "x, v, s, out",
        "bounds on the curvature of each coordinate along a piece of the path",
        "out[i] >= vᵢ Σⱼ Hᵢⱼ(x + uv) vⱼ for 0 <= u <= s",
        ("LocalHessian",),
    ),
    "directional_derivative_bound": Capability(
        "v", "a bound on the derivative along a direction", "a number >= v·∇U(x) for every x", ("ModelConstant",)
    ),
    "partial_derivative_bounds": Capability(
        "v, out", "bounds on the partial derivatives", "out[i] >= vᵢ ∂ᵢU(x) for every x", ("ModelConstant",)
    ),
    "hessian_product": Capability(
        "v, out", "a quadratic potential", "out = Hv, of a quadratic U", ("BPS", "RayInversion")
    ),
    "affine_partial": Capability(
        "x, v, times, now, i",
        "a quadratic potential",
        "the pair (∂ᵢU, its derivative in time) at the time `now`, of a quadratic U, when coordinate j was at x[j] at "
        "the time times[j] and has the velocity v[j] since",
        ("ZigZag", "CoordinateSampler", "Boomerang", "FactorisedBoomerang", "Inversion"),
    ),
    "neighbours": Capability(
        "",
        "the pattern of the Hessian",
        "the pattern of H in compressed rows (indptr, indices), beside `affine_partial`",
        ("ZigZag", "FactorisedBoomerang"),
        compiled=False,
    ),
    "hessian_bounds": Capability(
        "",
        "a bound",
        "symmetric matrices lower <= H(x) <= upper for every x; None when there are none",
        ("Boomerang", "FactorisedBoomerang"),
        compiled=False,
    ),
    "sparse_hessian": Capability(
        "x",
        "a sparse Hessian",
        "H(x) as a sparse array of scipy, its pattern the same at every x",
        ("HMC",),
        compiled=False,
    ),
    # -- along a ray x + sv -----------------------------------------------------------------------------------------
    "ray_room": _of_rays("", "the length of the array `ray` that the following methods keep what they need in", False),
    "ray_begin": _of_rays("x, v, ray", "the ray x + sv begins"),
    "ray_derivatives": _of_rays("s, ray", "the first and the second derivative of U(x + sv) by s"),
    "ray_bound": _of_rays(
        "s, h, ray",
        "a number b with U'(s + τ) <= U'(s) + bτ for 0 <= τ <= h, also for h = ∞; called after `ray_derivatives` at s",
    ),
    "ray_gradient": _of_rays(
        "x, s, ray, out", "out = ∇U at s, where the position is x; called after `ray_derivatives` at s"
    ),
    "ray_turn": _of_rays(
        "x, s, v, ray", "the velocity changes to v at s, where the position is x; s counts from there on"
    ),
    # -- the prior's part -----------------------------------------------------------------------------------------
    "prior_partial": Capability(
        "x, j",
        "the partial derivatives of the prior",
        "∂ⱼ of the prior's part of U",
        ("ZigZag", "LocalBPS"),
        unless=PRIOR,
    ),
    "prior_partial_curvature_bound": Capability(
        "v, j",
        "bounds on the curvature of the prior",
        "a number >= vⱼ Σₖ Hⱼₖ(x) vₖ for every x, H of the prior's part of U",
        ("ZigZag", "LocalBPS"),
        unless=PRIOR,
    ),
    "prior_curvature_bound": Capability(
        "v",
        "a bound on the curvature of the prior",
        "a number >= v·H(x)v for every x, H of the prior's part of U",
        ("LipschitzSBPS",),
        unless=PRIOR,
    ),
    "prior_hessian_bounds": Capability(
        "",
        "bounds on the Hessian of the prior",
        "the same as `hessian_bounds`, of the prior's part of U",
        ("Boomerang", "FactorisedBoomerang"),
        compiled=False,
        unless=PRIOR,
    ),
    "add_prior_parts": Capability(
        "x, v, out",
        "convex and concave parts of the rates",
        "for each rate vⱼ ∂ⱼ of the prior, or their sum where `out` has one row: out[j] += the value of its convex "
        "part, the value of its concave part, the derivative of the concave part in time",
        ("ConcaveConvex",),
        unless=PRIOR,
    ),
    "add_prior_coefficients": Capability(
        "x, v, out",
        "rates that are polynomials in time",
        "for each rate vⱼ ∂ⱼ of the prior at x + tv, or their sum where `out` has one row: out[j, k] += the "
        "coefficient of tᵏ",
        ("Polynomial",),
        unless=PRIOR,
    ),
    # -- single terms ---------------------------------------------------------------------------------------------
    "term_gradient_bounds": Capability(
        "i, out",
        "bounds on single terms",
        "out[j] >= |∂ⱼUᵢ(x)| for every x",
        ("ZigZag", "Boomerang", "FactorisedBoomerang"),
    ),
    "term_lipschitz": Capability(
        "i, scale, out",
        "Lipschitz constants of single terms",
        "out[j] with |∂ⱼUᵢ(x) - ∂ⱼUᵢ(y)| <= out[j] |(x - y) / scale| for all x and y",
        ("ZigZag", "LocalBPS", "Boomerang", "FactorisedBoomerang", "ControlVariate"),
    ),
    "signed_term_bound": Capability(
        "i, j, sign",
        "bounds on the signed derivatives of single terms",
        "a number >= 0 and >= sign · ∂ⱼUᵢ(x) for every x",
        ("LocalBPS",),
    ),
    "largest_term_gradient": Capability(
        "",
        "a bound on the gradients of the terms",
        "a number >= |∇Uᵢ(x)| for every x and i; infinite when there is none",
        ("LipschitzSBPS",),
        compiled=False,
    ),
    "add_term_parts": Capability(
        "x, v, i, out",
        "convex and concave parts of the rates",
        "the same as `add_prior_parts`, of term i",
        ("ConcaveConvex",),
        unless=TERMS,
    ),
    "add_term_coefficients": Capability(
        "x, v, i, out",
        "rates that are polynomials in time",
        "the same as `add_prior_coefficients`, of term i",
        ("Polynomial",),
        unless=TERMS,
    ),
    # -- factors that depend on few coordinates -------------------------------------------------------------------
    "factors": Capability(
        "",
        "factors",
        "the coordinates of each factor, lists or compressed rows: of each term, in order, and of the prior at the end "
        "if there is one, unless the model defines `add_factor_gradient`",
        ("LocalBPS",),
        compiled=False,
    ),
    "add_factor_gradient": Capability(
        "x, f, out",
        "factors of its own",
        "out += ∇U_f(x) of factor f of `factors`, reading and writing the coordinates of f alone",
        ("LocalBPS",),
    ),
    "affine_factor": Capability(
        "x, v, times, now, f",
        "quadratic factors",
        "the pair (v·∇U_f, its derivative in time) at the time `now`, of quadratic factors, x and times as above",
        ("LocalBPS",),
    ),
    "factor_rate_bound": Capability(
        "x, v, f",
        "bounds on single factors",
        "numbers (a, b) with v·∇U_f(x + sv) <= a + bs for every s >= 0",
        ("LocalBPS",),
    ),
}


def missing(model: Any, name: str, asked: str, instead: str = "") -> str:
    """The text of the error for a model without a capability that was asked for; see `require`."""
    text = f"{asked} {CAPABILITIES[name].gives}: {type(model).__name__} has no `{name}`."
    return f"{text} {instead}" if instead else text


def require(model: Any, asked: str, *names: str, instead: str = "") -> None:
    """Raise a `ValueError` that names the first of these capabilities that the model lacks.

    `asked` is who asks, with the verb: '`thinning="inversion"` needs'; `instead` a sentence on what to do instead.
    """
    for name in names:
        if not model.has(name):
            raise ValueError(missing(model, name, asked, instead))


def _listing() -> str:
    lines = []
    for name, capability in CAPABILITIES.items():
        kind = "" if capability.compiled else " (called from Python)"
        lines.append(f"``{name}({capability.arguments})``{kind}")
        lines.append(f"    {capability.meaning}. Used by {', '.join(capability.used_by)}.")
    return "\n".join(lines)


__doc__ = __doc__.replace("{table}", _listing()) if __doc__ else None
