"""What a model class must define, checked when the class is made."""

from __future__ import annotations

import inspect

from pdmp.models.capabilities import CAPABILITIES
from pdmp.process import check_methods

#: A potential and its gradient: a class that defines one of them defines the other.
PAIRS = ("term_potential", "add_term_gradient"), ("prior_potential", "add_prior_gradient")


def take_whole_target(cls: type, base: type) -> None:
    """Move what a class body calls `potential` and `add_gradient` to where a model keeps it.

    `Model.potential`, which Python calls, checks its argument; the compiled method of that name is kept as
    ``total_potential``. A target that is not a sum over data has one part, which is kept where a sum has its prior.
    """
    written = cls.__dict__.get("potential")
    of_data = cls.term_potential is not base.term_potential
    if getattr(written, "__compiled__", False) and "prior_potential" not in cls.__dict__:
        setattr(cls, "total_potential" if of_data else "prior_potential", written)
        del cls.potential
    elif inspect.isfunction(written) and not of_data and cls.prior_potential is base.prior_potential:
        raise TypeError(f"{cls.__name__}.potential is a method of a model that must be marked @compiled.")
    written = cls.__dict__.get("add_gradient")
    if not of_data and getattr(written, "__compiled__", False) and "add_prior_gradient" not in cls.__dict__:
        cls.add_prior_gradient = written
        del cls.add_gradient


def check_model_class(cls: type, base: type) -> None:
    """Raise a `TypeError` for a method that is missing, misspelt, not marked, or without its counterpart.

    The compiled method ``total_potential`` is then also known to compiled code as ``potential``.
    """
    cls._methods["potential"] = cls._methods["total_potential"]
    cls._tuple.potential = cls._methods["total_potential"]
    known = {n: ", ".join(filter(None, ("self", c.arguments))) for n, c in CAPABILITIES.items() if c.compiled}
    check_methods(cls, base, (), known)
    own = {name for name, method in cls._methods.items() if method is not base._methods.get(name)}
    cls._is_target = bool(own & {name for pair in PAIRS for name in pair})  # not a base that has helpers alone
    for one, other in (*PAIRS, *(pair[::-1] for pair in PAIRS)):
        if one in own and other not in own:
            one, other = cls._methods[one].__name__, _counterpart(cls._methods[one].__name__)
            raise TypeError(f"{cls.__name__} is a model with `{one}`, but without the method `{other}`.")


def check_is_target(cls: type) -> None:
    """Raise a `TypeError` for an object of a class that has none of the methods of a target."""
    if not cls._is_target:
        raise TypeError(
            f"{cls.__name__} is a model without the methods `term_potential` and `add_term_gradient`, or "
            "`potential` and `add_gradient` for a target that is not a sum over data."
        )


def _counterpart(name):
    """The potential that belongs to a gradient, or the gradient that belongs to a potential, as the class names it."""
    pairs = dict((("potential", "add_gradient"), *PAIRS))
    return (pairs | {gradient: potential for potential, gradient in pairs.items()})[name]
