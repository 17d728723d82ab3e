"""Mini-batches of the differences to an anchor, where the gradient of all the data is known."""

from __future__ import annotations

import copy
import functools
import math

import numpy as np
from numpy.typing import ArrayLike

from pdmp.errors import warn
from pdmp.gradients.alias import AliasTable
from pdmp.gradients.anchors import Anchor, Anchors
from pdmp.gradients.drawing import Importance, WithReplacement, check_size
from pdmp.gradients.provider import Memory, Provider, at_least, clear, dot, sample_variance
from pdmp.models.base import Model
from pdmp.models.capabilities import require
from pdmp.models.descent import find_mode
from pdmp.models.numerical import data_gradient, row_chunks
from pdmp.models.propriety import unlike_a_density
from pdmp.native.arguments import one_of, per_coordinate
from pdmp.native.classes import Compiled, compiled, entry, larger
from pdmp.native.fingerprints import arrays_of
from pdmp.native.threads import each
from pdmp.process import DATA


@entry
def _contributions(model, scale, first, stop, bounds, totals, largest):
    """totals[i] = Cᵢ for first <= i < stop, unless it is empty; largest[j] = maxᵢ scaleⱼ Lᵢⱼ."""
    for i in range(first, stop):
        model.term_lipschitz(i, scale, bounds)
        total = 0.0
        for j in range(scale.shape[0]):
            c = scale[j] * bounds[j]
            total += c
            largest[j] = larger(largest[j], c)
        if totals.shape[0] > 0:
            totals[i] = total


def _mode(model):
    """The mode; where it is searched for with batches, the point that was reached, with a warning if it is not one."""
    if model.searches_by_batches:
        found = find_mode(model)
        if found.error < math.inf and not found.reached:
            warn(
                f"`anchor`: {type(model).__name__} has {found}. That makes the gradient noisier, and biases nothing; "
                "pdmp.models.find_mode(model, ...) takes a larger budget."
            )
        x = found.x if found.error < math.inf else None
    else:
        x = model.mode()
    if x is None:
        what = f"the search for the mode of {type(model).__name__} did not converge"
        raise unlike_a_density(model, f"`anchor` must be given: {what}.")
    return x


def _points(model, anchor):
    """Anchors that were given, (K, dim)."""
    if np.ndim(anchor) != 2:
        points = model.check(anchor, "anchor")[None]
    elif len(anchor) == 0:
        raise ValueError("`anchor` must name a point or more, got none.")
    else:
        points = np.stack([model.check(a, "anchor") for a in anchor])
    if not np.all(np.isfinite(points)):
        raise ValueError(f"`anchor` must be finite, got {np.asarray(anchor)}.")
    return np.ascontiguousarray(points)


def one_anchor(provider: Provider, name: str) -> None:
    """A `TypeError` for a process whose bounds are made for one anchor, unless that is what the provider has."""
    if isinstance(provider, ControlVariate) and (provider.renew or len(provider.points) > 1):
        what = "renew=True" if provider.renew else "several anchors"
        raise TypeError(
            f"pdmp.{name} takes control variates with one anchor that stays, got {what}: give "
            "ControlVariate(model, size, anchor=run.mean()), with a short run of pdmp.ZigZag, say."
        )


class ControlVariate(Provider):
    r"""A mini-batch of the differences to an anchor a, where the gradient of all the data is known.

    ∇U(x) ≈ ∇prior(x) + Σᵢ ∇Uᵢ(a) + (1/n) Σ_{i in batch} [∇Uᵢ(x) - ∇Uᵢ(a)] / pᵢ, the same batch in both terms [1]_,
    where pᵢ is the probability of i. The noise is zero at the anchor and grows with the distance to it.

    Parameters
    ----------
    model : pdmp.Model
        The target, a sum of N terms.
    size : int
        Number n of terms in a batch, drawn with replacement, independently at each call.
    anchor : array_like of shape (dim,) or (K, dim), optional
        The point a; the model's mode when omitted. Runs start here. For models with many data that is searched for by
        stochastic gradient descent, to a tolerance of a tenth of a standard deviation: see `pdmp.models.find_mode`.
        Of several points the one nearest to x is used, in units of `scale`, for targets of several modes; runs start at
        the first.
    draw : {"uniform", "importance"}, default "uniform"
        - ``"uniform"``: every term with the same probability pᵢ = 1/N.
        - ``"importance"``: in proportion to what a term can contribute, pᵢ = Cᵢ / Σ C with Cᵢ = Σⱼ scaleⱼ Lᵢⱼ and
          |∂ⱼUᵢ(x) - ∂ⱼUᵢ(y)| <= Lᵢⱼ |(x - y) / scale|, by an alias table at the same cost for every N. The
          bound on the noise is then ΣᵢCᵢ, where that of uniform draws is N maxᵢ Cᵢ [2]_.
    scale : float or array_like of shape (dim,), default 1.0
        Units in which Cᵢ measures distances, such as standard deviations of the target.
    renew : bool, default False
        Whether anchors that turn out to be poor move in the warm-up, each to the mean of the path near it: for a mode
        that was not found, or that lies far from the mean. Each chain has its own; each move is one pass over the
        data, and counts as one. After the warm-up the anchors stay (`pdmp.gradients.anchors`).

    See Also
    --------
    pdmp.gradients.Minibatch : Without the anchor.

    Notes
    -----
    One call counts n data terms. `gradient_and_projection` and `gradient_and_sd` estimate the variance from the
    differences, as `Minibatch` does from the gradients; they need n >= 2.

    References
    ----------
    .. [1] Baker, Fearnhead, Fox & Nemeth (2019), Control variates for stochastic gradient MCMC. Stat. Comput. 29.
    .. [2] Sen, Sachs, Lu & Dunson (2020), Efficient posterior sampling for high-dimensional imbalanced logistic
       regression. Biometrika 107.

    Raises
    ------
    TypeError
        If `model` is not a model.
    ValueError
        If the model has no terms, `size` is not a whole number from 1, `draw` is unknown or needs bounds that the
        model does not have, `scale` is not positive, `renew` is not a bool, `anchor` has another shape or is not
        finite, or none is given
        and the search for the mode does not converge.

    Warns
    -----
    UserWarning
        If the search by stochastic gradient descent ends before its tolerance: the anchor is where it ended.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.LogisticRegression([[1.0], [2.0], [3.0]], [0, 1, 1])
    >>> anchored = pdmp.gradients.ControlVariate(model, size=1, anchor=[0.5], draw="importance")
    >>> anchored.terms_per_call, anchored.anchor, anchored.independent
    (1, array([0.5]), True)
    """

    model: Model
    drawing: Compiled
    anchors: Compiled

    def __init__(
        self,
        model: Model,
        size: int,
        anchor: ArrayLike | None = None,
        draw: str = "uniform",
        scale: ArrayLike = 1.0,
        renew: bool = False,
    ):
        super().__init__(model)
        one_of("draw", draw, ("uniform", "importance"))
        self.size, self.draw = check_size(size, model), draw
        self.scale = per_coordinate("scale", scale, self.dim)
        if draw == "importance":
            require(model, '`draw="importance"` needs', "term_lipschitz", instead='Use draw="uniform".')
        self.renew = bool(renew)
        points = _mode(model)[None] if anchor is None else _points(model, anchor)
        gradients = np.array([data_gradient(model, a) for a in points])
        self.points, self.gradients = points, gradients
        self.anchor, self.anchor_gradient = points[0], gradients[0]
        self._data = arrays_of(model.native)
        self._set_anchors()
        self.has_variance = self.size >= 2

    def check_unchanged(self) -> None:
        """Raise a `ValueError` if the gradient at the anchor is of other data than the model has by now."""
        if arrays_of(self.model.native) != self._data:
            raise ValueError(
                f"what {type(self.model).__name__} holds has changed since its ControlVariate was made, whose gradient "
                "of all data at the anchor is that of the old ones: make it anew."
            )

    def _set_anchors(self):
        kind = Anchors if self.renew or len(self.points) > 1 else Anchor
        rest = (self.scale, self.n_data, self.renew) if kind is Anchors else ()
        self.anchors = kind(self.points, self.gradients, *rest)

    @functools.cached_property
    def drawing(self) -> Compiled:
        """How batches are drawn, one of `pdmp.gradients.drawing`."""
        if self.draw == "uniform":
            return WithReplacement(self.size, self.n_data)
        return Importance(self.size, AliasTable(self.contributions()))

    def contributions(self) -> np.ndarray:
        """Cᵢ = Σⱼ scaleⱼ Lᵢⱼ, shape (N,)."""
        out = np.empty(self.n_data)
        self._bound_terms(out)
        return out

    def largest(self) -> np.ndarray:
        """The largest scaleⱼ Lᵢⱼ of all data i, shape (dim,)."""
        return self._bound_terms(np.zeros(0))

    def _bound_terms(self, totals):
        """Write Cᵢ of each term, unless `totals` is empty; returns the largest scaleⱼ Lᵢⱼ, (dim,)."""
        native, largest = self.model.native, np.zeros(self.dim)

        def part(first, stop):
            found = np.zeros(self.dim)
            _contributions(native, self.scale, first, stop, np.zeros(self.dim), totals, found)
            return found

        for found in each(part, row_chunks(self.model)):
            largest = np.maximum(largest, found)  # NaN stays
        return largest

    def rescaled(self, scale: ArrayLike) -> ControlVariate:
        """The same estimator, with distances measured in units of `scale`, a number or (dim,)."""
        other = copy.copy(self)
        other.scale = per_coordinate("scale", scale, self.dim)
        other.__dict__.pop("drawing", None)
        other._set_anchors()
        return other

    @property
    def waits_for_warmup(self) -> str | None:  # type: ignore[override]
        """The option that does something in the warm-up only, as it was given, or None."""
        return "renew=True" if self.renew else None

    #: What a run says that was far from its anchor.
    anchor_advice = "give ControlVariate(..., renew=True) and warmup=0.2, or anchor=run.mean()"

    def anchor_distances(self, mean: np.ndarray, var: np.ndarray) -> tuple[float, float] | None:
        """The squared distance of `mean` from the anchor, and the sum of the variances, in units of `scale`.

        None with several anchors, or where they move.
        """
        if self.renew or len(self.points) > 1:
            return None
        return float(np.sum(((mean - self.anchor) / self.scale) ** 2)), float(np.sum(var / self.scale**2))

    @property
    def terms_per_call(self) -> int:
        return self.size

    def memory(self, rng: np.random.Generator | None) -> Memory:
        return self.make_memory(self.size)._replace(bank=self.anchors.memory())

    @compiled
    def gradient(self, x, memory, rng, out, counts):
        self.anchors.visit(self.model, memory.bank, x, self.drawing.size, counts)
        self.drawing.draw(memory, rng)
        self.gradient_again(x, memory, out, counts)

    @compiled
    def gradient_again(self, x, memory, out, counts):
        n, weight = self.drawing.last(memory)
        self.anchors.choose(memory.bank, x)
        self.drawing.difference(self.model, x, memory.bank.anchor, memory, n, out)
        self._complete(x, memory, n, weight, out, counts)

    @compiled
    def _complete(self, x, memory, n, weight, out, counts):
        """Turn the sum of differences into the estimate."""
        known = memory.bank.anchor_gradient
        for j in range(out.shape[0]):
            out[j] = weight * out[j] + known[j]
        self.model.add_prior_gradient(x, out)
        counts[DATA] += n

    @compiled
    def gradient_and_projection(self, x, v, memory, rng, out, counts):
        self.anchors.visit(self.model, memory.bank, x, self.drawing.size, counts)
        anchor = memory.bank.anchor
        n, weight, correction = self.drawing.draw(memory, rng)
        here, there = memory.scratch, memory.anchor_scratch
        clear(out)
        first, second = 0.0, 0.0
        for k in range(n):
            clear(here)
            clear(there)
            self.model.add_term_gradient(x, memory.rows[k], here)
            self.model.add_term_gradient(anchor, memory.rows[k], there)
            p, factor = 0.0, self.drawing.factor(memory, k)
            for j in range(out.shape[0]):
                difference = factor * (here[j] - there[j])
                out[j] += difference
                p += v[j] * difference
            first += p
            second += p * p
        self._complete(x, memory, n, weight, out, counts)
        g = dot(v, out)
        return g, at_least(weight * weight * n * correction * sample_variance(first, second, n), g)

    @compiled
    def gradient_and_sd(self, x, memory, rng, out, sd, counts):
        self.anchors.visit(self.model, memory.bank, x, self.drawing.size, counts)
        anchor = memory.bank.anchor
        n, weight, correction = self.drawing.draw(memory, rng)
        here, there = memory.scratch, memory.anchor_scratch
        clear(out)
        clear(sd)
        for k in range(n):
            clear(here)
            clear(there)
            self.model.add_term_gradient(x, memory.rows[k], here)
            self.model.add_term_gradient(anchor, memory.rows[k], there)
            factor = self.drawing.factor(memory, k)
            for j in range(out.shape[0]):
                difference = factor * (here[j] - there[j])
                out[j] += difference
                sd[j] += difference * difference
        for j in range(out.shape[0]):
            sd[j] = weight * math.sqrt(n * correction * sample_variance(out[j], sd[j], n))
        self._complete(x, memory, n, weight, out, counts)
