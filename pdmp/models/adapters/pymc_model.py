"""PyMC models: their log density and gradient as PyTensor compiles them to machine code.

PyTensor's numba mode makes one numba function of the whole computation. A C function around it has an address that
compiled loops call as they call any function's, see `pdmp.models.adapters.function`: no Python runs in between, and
threads do not wait for each other.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numba import types

from pdmp.errors import silenced
from pdmp.models.adapters.function import Callback, FunctionModel, MachineCode, hash_of, needed, pointer
from pdmp.models.transforms import Interval, Log, Ordered, Simplex, Upper

if TYPE_CHECKING:
    from pdmp.models.base import Model


class PyMCFunction(MachineCode):
    """(U, ∇U) of a PyMC model, and its natural parameters; pickled as the model."""

    def __init__(self, model):
        _check(model)
        self.model = model
        self._frozen = frozen = _frozen(model)
        self._start = start = model.initial_point()
        by_name = {v.name: v for v in frozen.value_vars}
        self._inputs = [by_name[v.name] for v in model.value_vars]  # freezing changes their order
        super().__init__(sum(np.size(start[v.name]) for v in self._inputs))
        self.initial = np.concatenate([np.ravel(start[v.name]) for v in self._inputs]).astype(float)
        self.variables, self.transforms = {}, {}
        for v in self._inputs:
            rv = frozen.values_to_rvs[v]
            transform = None if v.name == rv.name else _known(frozen.rvs_to_transforms[rv], rv)
            name = v.name if transform is None else rv.name
            self.variables[name] = np.shape(start[v.name])
            if transform is not None:
                self.transforms[name] = transform
        self.dims = {name: [str(d) for d in dims] for name, dims in model.named_vars_to_dims.items()}
        self.coords = {name: list(labels) for name, labels in model.coords.items() if labels is not None}
        self._natural = self._likelihoods = None
        self._density, self._lock = self._compile([frozen.logp()], gradient=True), threading.Lock()
        dispatcher = getattr(getattr(self._density, "vm", None), "jit_fn", None)
        self.compiled = hasattr(dispatcher, "signatures") and len(self._density.maker.fgraph.inputs) == 1
        # Otherwise by Python: a PyTensor without numba mode, variables that are shared, numba's JIT switched off.
        self._answer = _as_c_function(dispatcher, self.dim) if self.compiled else Callback(self._evaluate, self.dim)
        self.address = self._answer.address

    def __reduce__(self):
        return PyMCFunction, (self.model,)

    def identity(self):
        """What tells it from another model: its text, and its density and gradient at two points."""
        return hash_of(self.model.str_repr(), map(self.function, (self.initial, self.initial + 0.1)))

    def constrain(self, draws):
        """Parameters and deterministic quantities by their names in the model, of draws (M, dim)."""
        frozen = self._frozen
        inner = {v.name for rv, v in frozen.rvs_to_values.items() if v.name != rv.name}
        order = [v.name for v in self.model.unobserved_value_vars]
        wanted = [v for v in frozen.unobserved_value_vars if v.name not in inner]
        wanted.sort(key=lambda v: order.index(v.name))
        if self._natural is None:
            self._natural = self._compile(wanted)
        rows = [self._natural(x) for x in np.ascontiguousarray(draws)]
        return {v.name: np.array(column) for v, column in zip(wanted, zip(*rows, strict=True), strict=True)}

    def observed_data(self):
        """Observed values by name."""
        frozen = self._frozen
        return {rv.name: np.asarray(frozen.rvs_to_values[rv].eval()) for rv in frozen.observed_RVs}

    def log_likelihoods(self, draws):
        """Log-likelihood of each observed value by the names of the observed variables, of draws (M, dim)."""
        observed = self._frozen.observed_RVs
        if not observed:
            return {}
        if self._likelihoods is None:
            self._likelihoods = self._compile(self._frozen.logp(vars=observed, sum=False, jacobian=False))
        rows = [self._likelihoods(x) for x in np.ascontiguousarray(draws)]
        return {rv.name: np.array(column) for rv, column in zip(observed, zip(*rows, strict=True), strict=True)}

    def _compile(self, outputs, gradient=False):
        """A function of the one vector x."""
        import pytensor
        from pymc.pytensorf import join_nonshared_inputs

        outputs, joined = join_nonshared_inputs(self._start, outputs, self._inputs)
        if gradient:
            outputs = [outputs[0], pytensor.grad(outputs[0], joined)]
        with silenced():
            return pytensor.function([joined], outputs, mode=None if numba.config.DISABLE_JIT else "NUMBA")

    def _evaluate(self, x):
        with self._lock:  # a function of PyTensor keeps its arguments: it is not for two threads
            value, gradient = self._density(x)
        return -float(value), -gradient


def _as_c_function(dispatcher, dim):
    """A C function answer(address of x, address of the gradient to add to, or 0) -> U around a log density's."""
    shape = (dim,)

    @numba.cfunc(types.float64(types.intp, types.intp), error_model="numpy")
    def answer(x, out):
        potential, gradient = np.nan, np.zeros(shape)
        try:
            value, gradient = dispatcher(numba.carray(pointer(x), shape, np.float64))
            potential = -np.asarray(value).item()
        except Exception:
            potential = np.nan
        if out != 0:
            total = numba.carray(pointer(out), shape, np.float64)
            for j in range(dim):
                total[j] -= gradient[j] if np.isfinite(potential) else np.nan
        return potential

    return answer


def _check(model):
    pymc = needed("pymc", "from_pymc", "PyMC")
    if not isinstance(model, pymc.Model):
        raise TypeError(f"`model` must be a pymc.Model, got a {type(model).__name__}.")
    if not model.value_vars:
        raise ValueError("`model` has no variables that are not observed.")
    if model.discrete_value_vars:
        names = ", ".join(v.name for v in model.discrete_value_vars)
        raise TypeError(f"`model` has variables of whole numbers ({names}), which have no gradient: sum them out.")
    drawn = [v.name for v in (*model.basic_RVs, *model.potentials) if _has_batches(v, model.rvs_to_values.get(v))]
    if drawn:
        raise TypeError(
            f"`model` draws mini-batches by pymc.Minibatch ({', '.join(drawn)}), of which one would be sampled: give "
            "it the data. Mini-batches are drawn here for a model of your own, see pdmp.gradients.Minibatch."
        )
    for v in model.value_vars:
        if v.dtype != "float64":
            raise TypeError(f"`model` computes in {v.dtype}: set pytensor.config.floatX = 'float64' before it is made.")


def _has_batches(*variables):
    """Whether `pymc.Minibatch` is among what these PyTensor variables are computed from."""
    waiting, seen = [v for v in variables if v is not None], set()
    while waiting:
        node = waiting.pop().owner
        if node is None or node in seen:
            continue
        if type(node.op).__name__ == "MinibatchOp":
            return True
        seen.add(node)
        waiting += node.inputs
    return False


def _frozen(model):
    """The model with its data as constants."""
    from pymc.model.transform.optimization import freeze_dims_and_data

    try:
        return freeze_dims_and_data(model)
    except NotImplementedError:  # with initial values of one's own; data are then shared
        return model


def _known(transform, rv):
    """The same transform of this package, None when there is none."""
    kind = type(transform).__name__
    simple = {"LogTransform": Log, "LogOddsTransform": Interval, "SimplexTransform": Simplex, "Ordered": Ordered}
    if kind in simple:
        return simple[kind]()
    if kind != "Interval":
        return None
    bounds = [getattr(b, "data", b) for b in transform.args_fn(*rv.owner.inputs)]
    if any(b is not None and (np.ndim(b) or not isinstance(b, float | int | np.ndarray | np.number)) for b in bounds):
        return None  # bounds that differ, or are computed
    low, high = (None if b is None else float(b) for b in bounds)
    if low is None:
        return None if high is None else Upper(high)
    return Log(low) if high is None else Interval(low, high)


def from_pymc(model: Any) -> Model:
    """A model from a PyMC model with continuous variables, as it is written.

    Log density and gradient are compiled by PyTensor's numba mode and called from compiled loops without Python and
    without its lock; one gradient on eight schools (10 dimensions) was measured to cost 0.65 µs so, 8 µs by way
    of Python. Making the model takes some seconds. ``pymc.Data`` are as they are now.

    x is the vector that PyMC samples, in its transforms; ``run.to_arviz()`` has the model's own parameters and
    deterministic quantities. A loaded run needs the model for that: ``run.to_arviz(model=...)``.

    Parameters
    ----------
    model : pymc.Model

    Returns
    -------
    FunctionModel
        Its callback's attribute ``compiled`` says whether Python is in the loop: it is where variables are shared with
        other PyTensor functions, or numba's JIT is switched off.

    Raises
    ------
    TypeError
        If a variable is a whole number, or in single precision, or data are drawn by ``pymc.Minibatch``.

    Examples
    --------
    >>> import pymc, pdmp                                          # doctest: +SKIP
    >>> with pymc.Model() as coin:                                 # doctest: +SKIP
    ...     p = pymc.Beta("p", 1.0, 1.0)
    ...     pymc.Binomial("heads", 10, p, observed=7)
    >>> model = pdmp.models.from_pymc(coin)                        # doctest: +SKIP
    >>> pdmp.sample(pdmp.ZigZag(model), events=10_000).to_arviz()  # doctest: +SKIP
    """
    function = PyMCFunction(model)
    target = FunctionModel(
        function,
        function.dim,
        function.initial,
        function.variables,
        check_gradient=False,
        transforms=function.transforms,
    )
    target.dims, target.coords = function.dims, function.coords
    return target
