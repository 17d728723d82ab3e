"""Changes of parameters that leave a likelihood as it is: to each a mode has an image, and may have a twin there.

Chains in one of two such modes agree with each other, and priors alone say how much mass the other one has. So they
are found before a run: of an expression by trying it with other signs and with parameters exchanged, of a mixture by
its components. Paths then begin at the images of the mode (`pdmp.automatic.modes`).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pdmp.data.formats import listed
from pdmp.models.families import LINKS, Family

if TYPE_CHECKING:
    from pdmp.formulas.nonlinear import Expression
    from pdmp.formulas.predictors import Coding, Predictor

POINTS, MOST_EXCHANGED = 12, 8  #: at which other parameters are tried; parameters of which some are exchanged


class Symmetry(NamedTuple):
    """A change of parameters, on the scales of their links, that a likelihood does not see."""

    turned: tuple[str, ...]  #: those that take the other sign
    exchanged: tuple[tuple[str, str], ...]  #: pairs that take each other's place
    said: str

    def image(self, coding: Coding, natural: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Natural parameters, those of one point, after the change.

        What one of two parameters has that are exchanged, and the other one has not, is 0.
        """
        found, predictors = dict(natural), {p.parameter: p for p in coding.predictors}
        for name in self.turned:
            for own in located(predictors[name]) if name in predictors else ():
                found[own] = -natural[own]
            if name not in predictors:
                link = LINKS[coding.family.links[name]]
                found[name] = link.inverse(-link.forward(natural[name]))
        for a, b in (*self.exchanged, *((b, a) for a, b in self.exchanged)):
            if a in predictors and b in predictors:
                one, other = predictors[a], predictors[b]
                for own in located(one):
                    taken = natural.get(other.prefix + own.removeprefix(one.prefix))
                    fits = taken is not None and np.shape(taken) == np.shape(natural[own])
                    found[own] = taken if fits else 0.0 * natural[own]
                for own in laws(one):
                    found[own] = natural.get(other.prefix + own.removeprefix(one.prefix), natural[own])
            elif a not in predictors and b not in predictors:
                found[a] = natural[b]
        return found | self.correlations(predictors, natural)

    def correlations(
        self, predictors: Mapping[str, Predictor], natural: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Correlations of effects after the change: of two columns of which one takes the other sign they do, too."""
        ends, known = [], {}
        for both in (both for one in predictors.values() for both in one.sets):
            for name, places in zip(both.correlation_names, both.pairs, strict=True):
                ends.append((name, [(both.prefixes[k], both.names[k]) for k in places]))
                known[frozenset(both.names[k] for k in places)] = name
        turned = {predictors[name].prefix for name in self.turned if name in predictors}
        other = {}
        for a, b in self.exchanged:
            if a in predictors and b in predictors:
                one, two = predictors[a].prefix, predictors[b].prefix
                other |= {one: two, two: one}
        found = {}
        for name, pair in ends:
            taken = frozenset(other.get(prefix, prefix) + end.removeprefix(prefix) for prefix, end in pair)
            sign = -1.0 if sum(prefix in turned for prefix, _ in pair) == 1 else 1.0
            found[name] = sign * natural[known.get(taken, name)]
        return found


def located(predictor: Predictor) -> list[str]:
    """Natural parameters that change their sign with a linear predictor: coefficients, and effects of groups."""
    signed = [g.sd_name for g in predictor.groups if g.warp is not None and g.warp.is_monotonic]
    return [predictor.prefix + name for name in (*predictor.columns, *signed, *(g.name for g in predictor.groups))]


def laws(predictor: Predictor) -> list[str]:
    """Natural parameters of the laws of effects, but for correlations: standard deviations and length scales."""
    lengths = [name for g in predictor.groups if g.warp is not None for name in g.warp.lengths]
    return [predictor.prefix + name for name in (*(g.sd_name for g in predictor.groups), *lengths)]


def of_mixture(family: Family) -> Symmetry:
    """The exchange of the two components of a mixture."""
    *parameters, weight = family.parameters
    m = len(parameters) // 2
    pairs = tuple(zip(parameters[:m], parameters[m:], strict=True))
    return Symmetry((weight,), pairs, f"the components of {family.name} can be exchanged")


def of_expression(expression: Expression, links: Mapping[str, str]) -> list[Symmetry]:
    """Symmetries of an expression, for any family.

    Other signs of up to three of the parameters without a link, and exchanges of up to three pairs of those with the
    same link. Of what was found no more is said together with others.
    """
    names, rng = expression.parameters, np.random.default_rng(0)
    plain = [k for k, name in enumerate(names) if links.get(name, "identity") == "identity"]
    columns = rng.uniform(0.3, 2.0, (len(expression.columns), POINTS))
    sizes = rng.uniform(0.3, 2.0, (len(names), POINTS))  # in each row other parameters
    sizes[plain] *= rng.choice([-1.0, 1.0], (len(plain), POINTS))

    def value(parameters: Any) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.broadcast_to(expression(list(columns), list(parameters)), POINTS)

    here = value(sizes)
    if not np.any(np.isfinite(here)):
        return []

    def is_here(parameters: Any) -> bool:
        return np.allclose(value(parameters), here, rtol=1e-9, atol=1e-12, equal_nan=True)

    def is_image(parameters: Any) -> bool:
        """Not half-way, too, as of a sum: then it is no other mode."""
        return is_here(parameters) and not is_here(0.5 * (parameters + sizes))

    found: list[tuple[set, Symmetry]] = []

    def note(changed: set, parameters: Any, turned: Any, exchanged: Any, said: str) -> None:
        if not any(known <= changed for known, _ in found) and is_image(parameters):
            said = f"the expression {expression.text!r} is the same with {said}"
            found.append((changed, Symmetry(tuple(turned), tuple(exchanged), said)))

    for count in (1, 2, 3):
        for some in itertools.combinations(plain, count):
            other, own = sizes.copy(), [names[k] for k in some]
            other[list(some)] *= -1.0
            note(set(some), other, own, (), f"the other sign of {listed(own)}")
    pairs = [
        pair
        for pair in itertools.combinations(range(len(names)), 2)
        if links.get(names[pair[0]], "identity") == links.get(names[pair[1]], "identity")
    ]
    for count in (1, 2, 3) if len(names) <= MOST_EXCHANGED else ():
        for both in itertools.combinations(pairs, count):
            if len(set(itertools.chain(*both))) == 2 * count:
                other = sizes.copy()
                for a, b in both:
                    other[[a, b]] = other[[b, a]]
                called = [(names[a], names[b]) for a, b in both]
                said = " and ".join(f"{a!r} and {b!r} exchanged" for a, b in called)
                note({frozenset(pair) for pair in both}, other, (), called, said)
    return [symmetry for _, symmetry in found]
