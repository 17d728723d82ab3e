"""NumPyro models: their potential, as `numpyro.infer.util.initialize_model` makes it, jitted with its gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pdmp.errors import silenced
from pdmp.models.adapters.function import Callback, FunctionModel, hash_of, needed
from pdmp.models.transforms import Identity, parts, recognised

if TYPE_CHECKING:
    from pdmp.models.base import Model

ROWS = 1_000  #: draws that are constrained at once
POINTS = 8  #: at which a transform is compared with a parameter


class NumPyroFunction(Callback):
    """(U, ∇U) of a NumPyro model, and its natural parameters; pickled as the model and its arguments."""

    def __init__(self, model, args, kwargs):
        import jax
        import jax.numpy as jnp
        from numpyro.infer import init_to_median
        from numpyro.infer.util import initialize_model

        # The density has constants of them as they are now.
        args, kwargs = _copied(args), _copied(kwargs)
        self.model, self.args, self.kwargs = model, args, kwargs
        self.trace = _trace(model, args, kwargs)
        _check(self.trace)
        found = initialize_model(
            jax.random.PRNGKey(0),
            model,
            init_strategy=init_to_median(),
            model_args=args,
            model_kwargs=kwargs,
            validate_grad=False,
        )
        start = {name: np.asarray(value, float) for name, value in found.param_info.z.items()}
        self.parts = {name: value.shape for name, value in start.items()}
        self.initial = np.concatenate([value.ravel() for value in start.values()])

        self._potential = found.potential_fn  # which runs the model

        def potential(x):
            return self._potential(self._named(x))

        def packed(x):
            """U and its gradient in one array, which saves a quarter of a call's time."""
            value, gradient = jax.value_and_grad(potential)(x)
            return jnp.concatenate([value[None], gradient])

        self._packed = jax.jit(packed)
        self._natural = jax.jit(jax.vmap(lambda x: found.postprocess_fn(self._named(x))))
        super().__init__(self._evaluate, len(self.initial))

    def __reduce__(self):
        return NumPyroFunction, (self.model, self.args, self.kwargs)

    def anew(self, x):
        """U at x of what the model reads by now, without machine code."""
        import jax.numpy as jnp

        return self._potential(self._named(jnp.asarray(x)))

    def identity(self):
        """What tells it from another model: names, shapes, and the density and gradient at two points."""
        return hash_of(repr(self.parts), map(self._evaluate, (self.initial, self.initial + 0.1)))

    def constrain(self, draws):
        """Parameters and deterministic quantities by their names in the model, of draws (M, dim)."""
        x = np.ascontiguousarray(draws)
        found = [self._natural(x[k : k + ROWS]) for k in range(0, len(x), ROWS)]
        names = [name for name, site in self.trace.items() if name in found[0] and site["type"] != "plate"]
        return {name: np.concatenate([np.asarray(part[name], float) for part in found]) for name in names}

    def observed_data(self):
        """Observed values by name."""
        sites = {name: site for name, site in self.trace.items() if site["type"] == "sample" and site["is_observed"]}
        return {name: np.asarray(site["value"]) for name, site in sites.items()}

    def log_likelihoods(self, draws):
        """Log-likelihood of each observed value by the names of the observed variables, of draws (M, dim)."""
        import jax.numpy as jnp
        from numpyro.infer.util import log_likelihood

        natural = {name: jnp.asarray(values) for name, values in self.constrain(draws).items() if name in self.parts}
        found = log_likelihood(self.model, natural, *self.args, **self.kwargs)
        return {name: np.asarray(values) for name, values in found.items()}

    def dims(self):
        """Names of the dimensions that are plates, of variables all of whose independent dimensions are."""
        found = {}
        for name, site in self.trace.items():
            if site["type"] == "sample":
                plates = {frame.dim: frame.name for frame in site["cond_indep_stack"]}
                batch = range(-len(site["fn"].batch_shape), 0)
                if plates and all(k in plates for k in batch):
                    found[name] = [plates[k] for k in batch]
        return found

    def variables(self):
        """Names, shapes and transforms of the parts of x; "_unc" behind a name whose transform is not known here."""
        x = np.random.default_rng(0).uniform(-1.0, 1.0, (POINTS, self.dim))
        natural, own = self.constrain(x), self._named(x)
        variables, transforms = {}, {}
        for name, shape in self.parts.items():
            same = natural[name].shape == own[name].shape
            transform = recognised(own[name], natural[name]) if same else None
            variables[name if transform is not None else f"{name}_unc"] = shape
            if transform not in (None, Identity()):
                transforms[name] = transform
        return variables, transforms

    def _named(self, x):
        return parts(x, self.parts)

    def _evaluate(self, x):
        values = np.asarray(self._packed(x))
        return float(values[0]), values[1:]


def _copied(value):
    """The same with copies of the arrays in it."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, dict):
        return {name: _copied(part) for name, part in value.items()}
    return type(value)(map(_copied, value)) if type(value) in (list, tuple) else value


def _trace(model, args, kwargs):
    """The sites of one run of the model, by name."""
    from numpyro.handlers import seed, trace

    with silenced():
        try:
            return dict(trace(seed(model, 0)).get_trace(*args, **kwargs))
        except NotImplementedError:  # a law that nothing can be drawn from, as an improper one
            from numpyro.handlers import substitute
            from numpyro.infer import init_to_uniform

            model = substitute(seed(model, 0), substitute_fn=init_to_uniform)
            return dict(trace(model).get_trace(*args, **kwargs))


def _check(sites):
    latent = {name: site["fn"] for name, site in sites.items() if site["type"] == "sample" and not site["is_observed"]}
    if not latent:
        raise ValueError("`model` has no variables that are not observed.")
    whole = [name for name, law in latent.items() if law.support.is_discrete]
    if whole:
        names = ", ".join(whole)
        raise TypeError(f"`model` has variables of whole numbers ({names}), which have no gradient: sum them out.")
    plates = [name for name, site in sites.items() if site["type"] == "plate"]
    batches = [name for name in plates if len(sites[name]["value"]) < sites[name]["args"][0]]
    if batches:
        raise TypeError(
            f"`model` draws mini-batches in a plate ({', '.join(batches)}), of which one would be sampled: leave out "
            "`subsample_size`. Mini-batches are drawn here for a model of your own, see pdmp.gradients.Minibatch."
        )


def from_numpyro(model: Callable, *args: Any, **kwargs: Any) -> Model:
    """A model from a NumPyro model with continuous variables, as it is written.

    x is the vector that NumPyro samples, in its transforms; ``run.to_arviz()`` has the model's own parameters and
    deterministic quantities, with its plates as dimensions. A loaded run needs the model for that:
    ``run.to_arviz(model=...)``. What a gradient costs is said under `from_jax`.

    Parameters
    ----------
    model : callable
        A NumPyro model.
    *args, **kwargs
        Its arguments, the observed data among them, as they are now. If arrays that the model names itself have changed
        by the time of a run, it is refused.

    Returns
    -------
    FunctionModel

    Raises
    ------
    TypeError
        If a variable is a whole number, or a plate draws mini-batches.
    ValueError
        If NumPyro is not set to double precision.
    ImportError
        If NumPyro is not installed.

    Examples
    --------
    >>> import numpyro, numpyro.distributions as dist, pdmp              # doctest: +SKIP
    >>> numpyro.enable_x64()                                             # doctest: +SKIP
    >>> def coin(heads):                                                 # doctest: +SKIP
    ...     p = numpyro.sample("p", dist.Beta(1.0, 1.0))
    ...     numpyro.sample("heads", dist.Binomial(10, p), obs=heads)
    >>> run = pdmp.sample(pdmp.models.from_numpyro(coin, heads=7))       # doctest: +SKIP
    """
    needed("numpyro", "from_numpyro", "NumPyro")
    import jax

    if not callable(model):
        raise TypeError(f"`model` must be a NumPyro model, a function, got a {type(model).__name__}.")
    if not jax.config.jax_enable_x64:
        raise ValueError("JAX computes in single precision: say numpyro.enable_x64() before any other use of it.")
    function = NumPyroFunction(model, args, kwargs)
    variables, transforms = function.variables()
    target = FunctionModel(
        function, function.dim, function.initial, variables, check_gradient=False, transforms=transforms
    )
    target.dims = function.dims()
    return target
