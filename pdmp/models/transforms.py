r"""Transforms from the unconstrained x that samplers move to the natural parameters y that people read.

A model names them by ``transforms={"sigma": Log()}`` beside its ``variables``: the part of x of that name then is,
here, log σ. The model's own potential holds the Jacobian; nothing is added to it. For the density p(y) of a natural
parameter, U(x) = -log p(y(x)) - log |det dy/dx|.

=================== ============================================ =================================================
Log(lower)          y = lower + eˣ                               log |dy/dx| = x
Upper(upper)        y = upper - eˣ                               log |dy/dx| = x
Interval(a, b)      y = a + (b - a) / (1 + e⁻ˣ)                  log |dy/dx| = log(b - a) - log(1 + e⁻ˣ) - log(1 + eˣ)
Ordered()           y₀ = x₀, yₖ = yₖ₋₁ + exp(xₖ)                 log det = x₁ + x₂ + …
Simplex()           y = softmax(x₁, …, xₙ, -Σxₖ), n + 1 numbers  log det = Σₖ log yₖ + log(n + 1)
=================== ============================================ =================================================
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass

import numpy as np

from pdmp.native.arguments import number, real

PLACE = "{name}"  #: where the name of y stands in what x is called


@dataclass(frozen=True)
class Transform:
    """A map from x to y of the same shape, coordinate by coordinate, unless a class says otherwise.

    This one is the identity.

    Examples
    --------
    A variable between 0 and 1, of your own:

    >>> import numpy as np
    >>> from pdmp.models.transforms import Transform
    >>> class Probability(Transform):
    ...     def constrain(self, x):
    ...         return 1.0 / (1.0 + np.exp(-x))
    >>> float(Probability().constrain(np.array(0.0)))
    0.5
    >>> Probability().label("p")
    'probability(p)'
    """

    def constrain(self, x):
        """y for an array x, of any shape."""
        return np.array(real("x", x))

    def unconstrain(self, y):
        """x for an array y; the inverse of `constrain`."""
        return np.array(real("y", y))

    def log_jacobian(self, x):
        """Parts of log |det dy/dx|, in the shape of x: their sum over the variable is the logarithm."""
        return np.zeros_like(x, float)

    def log_jacobian_gradient(self, x):
        """The derivatives of log |det dy/dx| by x, in the shape of x."""
        return np.zeros_like(x, float)

    def shape(self, shape):
        """Shape of y for that of x, tuples of int."""
        return tuple(shape)

    def label(self, name):
        """What x is called where y has that name: ``log(sigma)``."""
        return f"{type(self).__name__.lower()}({name})"

    def formula(self):
        """What y is of x, in words."""
        return f"`{type(self).__name__}.constrain` of x"

    def to_json(self):
        """The kind and its numbers, a list; of a class of one's own what x is called. `from_json` reads it."""
        return [type(self).__name__.lower(), *astuple(self)] if is_known(self) else ["own", self.label(PLACE)]


@dataclass(frozen=True)
class Identity(Transform):
    """y = x.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.models.transforms.Identity().constrain([1.0])
    array([1.])
    """

    def label(self, name):
        return name


@dataclass(frozen=True)
class Log(Transform):
    """y = lower + eˣ > lower.

    Examples
    --------
    >>> import pdmp
    >>> log = pdmp.models.transforms.Log(lower=1.0)
    >>> log.constrain([0.0])
    array([2.])
    >>> log.unconstrain([2.0])
    array([0.])
    """

    lower: float = 0.0

    def __post_init__(self):
        _keep_numbers(self)

    def constrain(self, x):
        return self.lower + np.exp(x)

    def unconstrain(self, y):
        return np.log(real("y", y) - self.lower)

    def log_jacobian(self, x):
        return np.array(real("x", x))

    def log_jacobian_gradient(self, x):
        return np.ones_like(x, float)

    def label(self, name):
        if self.lower == 0.0:
            return f"log({name})"
        return f"log({name} {'+' if self.lower < 0.0 else '-'} {abs(self.lower):g})"

    def formula(self):
        return f"{self.lower:g} + exp(x)" if self.lower else "exp(x)"


@dataclass(frozen=True)
class Upper(Transform):
    """y = upper - eˣ < upper.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.models.transforms.Upper(upper=3.0).constrain([0.0])
    array([2.])
    """

    upper: float = 0.0

    def __post_init__(self):
        _keep_numbers(self)

    def constrain(self, x):
        return self.upper - np.exp(x)

    def unconstrain(self, y):
        return np.log(self.upper - real("y", y))

    def log_jacobian(self, x):
        return np.array(real("x", x))

    def log_jacobian_gradient(self, x):
        return np.ones_like(x, float)

    def label(self, name):
        return f"log({self.upper:g} - {name})"

    def formula(self):
        return f"{self.upper:g} - exp(x)"


@dataclass(frozen=True)
class Interval(Transform):
    """y = lower + (upper - lower) / (1 + e⁻ˣ); the logit's inverse, for a probability.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.models.transforms.Interval(0.0, 4.0).constrain([0.0])
    array([2.])
    """

    lower: float = 0.0
    upper: float = 1.0

    def __post_init__(self):
        _keep_numbers(self)
        if not self.lower < self.upper:
            raise ValueError(f"`lower` must be below `upper`, got {self.lower:g} and {self.upper:g}.")

    def constrain(self, x):
        share = 0.5 * (1.0 + np.tanh(0.5 * real("x", x)))
        return self.lower + (self.upper - self.lower) * share

    def unconstrain(self, y):
        y = real("y", y)
        return np.log(y - self.lower) - np.log(self.upper - y)

    def log_jacobian(self, x):
        return math.log(self.upper - self.lower) - np.logaddexp(0.0, x) - np.logaddexp(0.0, -real("x", x))

    def log_jacobian_gradient(self, x):
        return -np.tanh(0.5 * real("x", x))

    def label(self, name):
        return f"logit({name})" if (self.lower, self.upper) == (0.0, 1.0) else f"interval({name})"

    def formula(self):
        if (self.lower, self.upper) == (0.0, 1.0):
            return "expit(x)"
        return f"{self.lower:g} + {self.upper - self.lower:g} expit(x)"


@dataclass(frozen=True)
class Ordered(Transform):
    """y₀ = x₀, yₖ = yₖ₋₁ + exp(xₖ), along the last axis: ascending numbers.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.models.transforms.Ordered().constrain([1.0, 0.0, 0.0])
    array([1., 2., 3.])
    """

    def constrain(self, x):
        steps = np.array(real("x", x))
        steps[..., 1:] = np.exp(steps[..., 1:])
        return np.cumsum(steps, axis=-1)

    def unconstrain(self, y):
        x = np.array(real("y", y))
        x[..., 1:] = np.log(np.diff(x, axis=-1))
        return x

    def log_jacobian(self, x):
        parts = np.array(real("x", x))
        parts[..., 0] = 0.0
        return parts

    def log_jacobian_gradient(self, x):
        gradient = np.ones_like(x, float)
        gradient[..., 0] = 0.0
        return gradient


@dataclass(frozen=True)
class Simplex(Transform):
    """y = softmax(x₁, …, xₙ, -Σxₖ) along the last axis: n + 1 probabilities from n numbers.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.models.transforms.Simplex().constrain([0.0, 0.0, 0.0])
    array([0.25, 0.25, 0.25, 0.25])
    """

    def constrain(self, x):
        x = real("x", x)
        full = np.concatenate([x, -x.sum(axis=-1, keepdims=True)], axis=-1)
        y = np.exp(full - full.max(axis=-1, keepdims=True))
        return y / y.sum(axis=-1, keepdims=True)

    def unconstrain(self, y):
        logs = np.log(y)
        return (logs - logs.mean(axis=-1, keepdims=True))[..., :-1]

    def log_jacobian(self, x):
        # Σ log yₖ + log(n + 1): the sum, in equal parts.
        y, n = self.constrain(x), np.shape(x)[-1]
        total = np.log(y).sum(axis=-1, keepdims=True) + math.log(n + 1)
        return np.repeat(total / n, n, axis=-1)

    def log_jacobian_gradient(self, x):
        y = self.constrain(x)
        return -y.shape[-1] * (y[..., :-1] - y[..., -1:])

    def shape(self, shape):
        return (*shape[:-1], shape[-1] + 1)


@dataclass(frozen=True)
class Elsewhere(Transform):
    """The transform of a class that a file does not hold: what x is called is known, and not what y is."""

    called: str

    def constrain(self, x):
        raise ValueError(
            f"{self.called.replace(PLACE, 'a variable')} is a transform of a class of one's own, which a loaded run "
            "does not hold: give its model as `model=`."
        )

    def label(self, name):
        return self.called.replace(PLACE, name)

    def to_json(self):
        return ["own", self.called]


KINDS = {kind.__name__.lower(): kind for kind in (Identity, Log, Upper, Interval, Ordered, Simplex)}


def is_known(transform):
    """Whether it is one of those here, which a file holds by its name and its numbers."""
    return KINDS.get(type(transform).__name__.lower()) is type(transform)


def from_json(parts):
    """The transform that `Transform.to_json` wrote."""
    kind, *numbers = parts
    return Elsewhere(*numbers) if kind == "own" else KINDS[kind](*numbers)


def _keep_numbers(transform):
    """Its bounds as floats, also of NumPy's integers; a `ValueError` or `TypeError` for what is no finite number."""
    for name, value in vars(transform).items():
        object.__setattr__(transform, name, float(number(name, value)))


def recognised(x, y):
    """The transform that gives y for x, both (n, *shape) with n points; None if there is none here."""
    share = 0.5 * (1.0 + np.tanh(0.5 * x))
    (height, low), *_ = np.linalg.lstsq(np.column_stack([share.ravel(), np.ones(x.size)]), y.ravel(), rcond=None)
    candidates = [Identity(), Log(_rounded(np.mean(y - np.exp(x)))), Upper(_rounded(np.mean(y + np.exp(x))))]
    if _rounded(height) > 0.0:
        candidates.append(Interval(_rounded(low), _rounded(low + height)))
    if x.ndim > 1:
        candidates.append(Ordered())
    # Beside how much y varies, not its size, of which only the last digits are rounded.
    allowed = 1e-11 + 1e-9 * np.abs(y - y.mean(axis=0)) + 8.0 * np.finfo(float).eps * np.abs(y)
    return next((c for c in candidates if np.all(np.abs(y - c.constrain(x)) <= allowed)), None)


def _rounded(value):
    """A bound without the rounding errors of its computation."""
    return float(f"{value:.11g}") if abs(value) > 1e-11 else 0.0


def check_transforms(transforms, variables):
    """A dict of transforms, one for some of the `variables`; errors name what is wrong."""
    transforms = dict(transforms or {})
    for name, transform in transforms.items():
        if name not in variables:
            raise ValueError(f"`transforms` names {name!r}, which is not among the variables {list(variables)}.")
        if not isinstance(transform, Transform):
            raise TypeError(
                f"`transforms` must hold transforms such as pdmp.models.transforms.Log(), {name!r} has {transform!r}."
            )
        if isinstance(transform, (Ordered, Simplex)) and not variables[name]:
            raise ValueError(f"{type(transform).__name__} is for vectors, and the variable {name!r} is one number.")
    named = [*variables, *(transform.label(name) for name, transform in transforms.items()), "chain", "draw"]
    for name in variables:
        whole, bracket, _ = name.partition("[")
        if named.count(name) > 1 + isinstance(transforms.get(name), Identity) or (bracket and whole in named):
            raise ValueError(
                f"`variables`: {name!r} is also what a coordinate of another, or a column of a table of draws, is "
                "called: rename it."
            )
    return transforms


def split(draws, variables, transforms=()):
    """Natural parameters, each (..., *shape), of draws (..., dim): the parts of x, in order, transformed."""
    draws = real("draws", draws, sum(math.prod(shape) for shape in variables.values()))
    known = dict(transforms)
    return {name: known.get(name, Identity()).constrain(part) for name, part in parts(draws, variables).items()}


def parts(x, variables):
    """The parts of x (..., dim) by the names of the variables, each (..., *shape): views where x is contiguous."""
    found, first = {}, 0
    for name, shape in variables.items():
        size = math.prod(shape)
        found[name] = x[..., first : first + size].reshape((*x.shape[:-1], *shape))
        first += size
    return found


def flat(natural):
    """Each number of natural parameters (chains, n, *shape), as (chains, n), by names such as "beta[0,1]"."""
    found = {}
    for name, values in natural.items():
        for i in np.ndindex(*values.shape[2:]):
            found[f"{name}[{','.join(map(str, i))}]" if i else name] = values[(slice(None), slice(None), *i)]
    return found


def coordinate_names(variables, transforms=()):
    """A name for each coordinate of x: "beta[0]", "log(sigma)", …; a list of str."""
    out, transforms = [], dict(transforms)
    for name, shape in variables.items():
        transform = transforms.get(name, Identity())
        for i in np.ndindex(*shape):
            index = f"[{','.join(map(str, i))}]" if i else ""
            whole = isinstance(transform, (Ordered, Simplex))  # a coordinate of x is not of one of y alone
            out.append(transform.label(name) + index if whole else transform.label(name + index))
    return out
