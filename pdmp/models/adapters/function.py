"""A target from any Python function: JAX, PyTorch, numpy, anything that can be called.

Compiled loops reach the function through the address of a C callback, a number among the model's fields. So the loops
are the same machine code for every function and stay in the disk cache, and they keep running without Python's lock,
which the callback takes for itself for as long as the function runs.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import functools
import gc
import hashlib
import importlib
import itertools
import math
import os
import pathlib
import pickle
import random
import sys
import threading
import warnings
import weakref
from collections.abc import Callable

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload
from numpy.typing import ArrayLike

from pdmp.errors import warn
from pdmp.models.base import Model
from pdmp.models.transforms import coordinate_names
from pdmp.models.verification import FEW_DIRECTIONS, directions, first_of, shown, slopes_differ, warn_of_blindness
from pdmp.native.arguments import count, real
from pdmp.native.classes import check_unchanged, compiled
from pdmp.native.explanations import explained
from pdmp.native.fingerprints import changed, dispatchers, fingerprint, kept

#: By how much a value that is computed again may differ: times the resolution, as sums in threads do, and at least.
SAME, LEAST = 1e4, 1e-6
#: potential = answer(address of x, address of the gradient to add to, or 0)
#: How often what a function names is looked at in a call, times the places there are; where functions are that are not
#: the user's.
LOOKS = 100_000
INSTALLED = tuple(
    {str(pathlib.Path(path).resolve()) for path in (np.__path__[0] + "/..", os.__file__ + "/..")} | {"<frozen"}
)
_changing = weakref.WeakKeyDictionary()  # of functions, what calls changed when an earlier model of it was made
SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_size_t, ctypes.c_size_t)


def needed(package, name, what="the package", extra=None):
    """A package that a function of this name needs."""
    try:
        return importlib.import_module(package)
    except ImportError:
        raise ImportError(f"`{name}` needs {what}: pip install 'pdmp[{extra or package}]'.") from None


def hash_of(text, answers):
    """What tells a model from another: a text, and (U, ∇U) at some points."""
    digest = hashlib.sha256(text.encode())
    for part in itertools.chain.from_iterable(answers):
        digest.update(np.asarray(part).tobytes())
    return digest.hexdigest()


def call(address, x, out):
    """Call the callback at `address`: returns the potential at x, and adds the gradient to `out` unless it is None."""
    return SIGNATURE(address)(x.ctypes.data, 0 if out is None else out.ctypes.data)


@intrinsic
def _call(typing_context, address, x, out):
    def generate(context, builder, signature, args):
        word, double = ir.IntType(types.intp.bitwidth), ir.DoubleType()

        def data(kind, value):
            if kind == types.none:
                return ir.Constant(word, 0)
            return builder.ptrtoint(context.make_array(kind)(context, builder, value).data, word)

        _, x_kind, out_kind = signature.args
        function = builder.inttoptr(args[0], ir.FunctionType(double, (word, word)).as_pointer())
        return builder.call(function, (data(x_kind, args[1]), data(out_kind, args[2])))

    return types.float64(types.intp, x, out), generate


@overload(call, jit_options={"nogil": True, "error_model": "numpy", "_nrt": False})
def _overload_call(address, x, out):
    def contiguous(a):
        return isinstance(a, types.Array) and a.layout == "C" and a.ndim == 1 and a.dtype == types.float64

    if contiguous(x) and (contiguous(out) or out in (None, types.none)):
        return lambda address, x, out: _call(address, x, out)
    return None


@intrinsic
def pointer(typing_context, address):
    """The address as a pointer, for ``numba.carray``."""

    def generate(context, builder, signature, args):
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return types.voidptr(types.intp), generate


@contextlib.contextmanager
def _shared_randomness():
    """A list that is not empty if the generators that threads share are drawn from within, NumPy's or Python's.

    They are put back to where they were.
    """

    def states():
        return np.random.get_state(legacy=False), random.getstate()  # noqa: NPY002 - what a user's function may draw from

    found, (numpys, pythons) = [], states()
    np.random.random(), random.random()  # noqa: NPY002 - else they may be where each call leaves them
    before = pickle.dumps(states())
    try:
        yield found
    finally:
        found += [True] * (pickle.dumps(states()) != before)
        np.random.set_state(numpys)  # noqa: NPY002
        random.setstate(pythons)


def _of_all_threads():
    """What a function may replace while it runs, and all threads share: output, folder, environment, filters."""
    try:
        folder = os.getcwd()
    except OSError:  # it was removed
        folder = None
    return id(sys.stdout), id(sys.stderr), folder, dict(os.environ), list(warnings.filters)


@contextlib.contextmanager
def _changes_meanwhile(function):
    """A list that is not empty if calls change what the function names, or all threads share, even if they put it back.

    As work arrays that are cleared: between the steps of a line they are looked at, in all functions of the user's. At
    each step when it comes for the 1st, 2nd, 4th, 8th … time, and less often where there is much to look at.
    """
    found, start, outside = [], kept(function, some=True), _of_all_threads()
    if sys.gettrace() is not None:  # a debugger has that place
        yield found
        return
    times, left = collections.Counter(), max(64, LOOKS // max(1, len(start)))

    def look(frame, event, _):
        nonlocal left
        if frame.f_code.co_filename.startswith(INSTALLED) or found or left <= 0:
            return None
        frame.f_trace_opcodes = True
        place = frame.f_code, frame.f_lasti
        times[place] += 1
        if times[place] & (times[place] - 1) == 0:
            left -= 1
            found.extend([True] * (_of_all_threads() != outside or bool(changed(start, kept(function, some=True)))))
        return look

    collecting = gc.isenabled()
    gc.disable()  # a look makes many small objects, and frees them itself
    sys.settrace(look)
    try:
        yield found
    finally:
        sys.settrace(None)
        if collecting:
            gc.enable()


class Callback:
    """A Python function with a C address; pickled as the function, and given a new address where it is loaded.

    `FunctionModel` also takes another object with `address`, `evaluate`, `failure` and `identity`, and perhaps
    `constrain`: see `MachineCode`.
    """

    def __init__(self, function, dim, reuses=False, changing=frozenset()):
        self.function, self.dim, self._kept = function, dim, threading.local()
        self.changing = changing  #: where the function keeps what its calls change, see `fingerprints.kept`
        self.reuses, self._turns = reuses, threading.Lock()  # whether a call changes what the function keeps
        self._vector = ctypes.c_double * dim
        self._pointer = SIGNATURE(self._answer)
        self.address = ctypes.cast(self._pointer, ctypes.c_void_p).value

    def __reduce__(self):
        return Callback, (self.function, self.dim, self.reuses, self.changing)

    @property
    def failure(self):
        """The exception that the function raised in this thread: other threads advance other chains, of other runs."""
        return getattr(self._kept, "failure", None)

    @failure.setter
    def failure(self, error):
        self._kept.failure = error

    def identity(self):
        """Hash of the function and of all that it names, but for what its own calls change, as caches do."""
        return fingerprint([self.function], named_only=("pdmp",), without=self.changing)

    def evaluate(self, x):
        """(U, ∇U) as a float and an array of shape (dim,); whatever the function raises comes through."""
        if self.reuses:  # another thread would change it meanwhile
            with self._turns:
                potential, gradient = self.function(x)
                gradient = np.array(gradient)
        else:
            potential, gradient = self.function(x)
            gradient = np.asarray(gradient)
        if gradient.dtype.kind == "c" or isinstance(potential, complex):
            raise TypeError("`potential_and_gradient` must return real numbers, got complex ones.")
        gradient = gradient.astype(float, copy=False)
        if gradient.shape != (self.dim,):
            raise ValueError(
                f"`potential_and_gradient` must return a gradient of shape ({self.dim},), got {gradient.shape}."
            )
        return float(potential), gradient

    def _answer(self, x, out):
        potential = gradient = math.nan
        if self.failure is None:
            try:
                # A copy: the function may keep what it is given.
                potential, gradient = self.evaluate(np.frombuffer(self._vector.from_address(x)).copy())
            except BaseException as error:  # nothing can be raised through machine code: from here on all is NaN
                self.failure = error
                with contextlib.suppress(AttributeError):
                    error.of_user = True  # type: ignore[attr-defined]
        if out:
            total = np.frombuffer(self._vector.from_address(out))
            total += gradient if math.isfinite(potential) else math.nan
        elif math.isfinite(potential) and not np.isfinite(gradient).all():
            return math.nan  # a potential that cannot be relied on, unless it says +inf
        return potential


class MachineCode:
    """Base of what is machine code at an address from the start: no Python runs in a call, and no lock is taken."""

    compiled = True  #: else by Python: `_answer` is a `Callback`

    def __init__(self, dim):
        self.dim = dim

    @property
    def failure(self):
        return None if self.compiled else self._answer.failure

    @failure.setter
    def failure(self, error):
        if not self.compiled:
            self._answer.failure = error

    def __deepcopy__(self, memo):
        return self  # nothing in it changes

    def function(self, x):
        """(U, ∇U) at an array x of shape (dim,)."""
        x, gradient = np.ascontiguousarray(x, dtype=float), np.zeros(self.dim)
        potential = call(self.address, x, gradient)
        failure = self.failure if potential != potential else None
        if failure is not None:
            self.failure = None
            raise failure
        return potential, gradient

    evaluate = function


class FunctionModel(Model):
    """What `from_function`, `from_jax`, `from_torch`, `from_pymc`, `from_numpyro` and `from_stan` return."""

    address: int

    divisible = False
    everywhere = False
    of_log_density = False  #: whether the user's function is minus U
    known = None  #: a point with (U, ∇U) there when the model was made, if they were compared

    def __init__(
        self, potential_and_gradient, dim, initial=None, variables=None, n_data=0, check_gradient=True, transforms=None
    ):
        ready = hasattr(potential_and_gradient, "address")
        if not (ready or callable(potential_and_gradient)):
            kind = type(potential_and_gradient).__name__
            raise TypeError(f"`potential_and_gradient` must be a function x -> (U, gradient), got a {kind}.")
        dim = count("dim", dim)
        super().__init__(dim=dim, n_data=n_data, variables=variables, transforms=transforms)
        if initial is not None:
            self.initial = self.check(initial, "initial")
        if not ready:
            check_unchanged([potential_and_gradient])
        self.callback = potential_and_gradient if ready else Callback(potential_and_gradient, dim)
        before = None if ready else kept(potential_and_gradient)
        self.of_log_density = getattr(potential_and_gradient, "of_log_density", False)
        self.resolution = float(self._check_function())
        self.is_compared = bool(check_gradient)  # where a run went, too
        if check_gradient:
            self._compare_slopes()
        if not ready:
            # Work arrays hold at `initial` what they held if the caller has been there, and caches what was asked.
            fresh = 0.1 + 1e-3 * np.random.default_rng(list(hashlib.sha256(repr(before).encode()).digest())).random()
            with _shared_randomness() as drawn, _changes_meanwhile(potential_and_gradient) as meanwhile:
                self._evaluated(self.initial + fresh * np.maximum(1.0, np.abs(self.initial)))
            changing = changed(before, kept(potential_and_gradient))
            with contextlib.suppress(TypeError):  # what has no weak references
                changing |= _changing.get(potential_and_gradient, changing)
                _changing[potential_and_gradient] = changing
            self.callback.changing = changing
            # Numba's own threads may end the process where two calls of parallel loops overlap.
            parallel = any(one.targetoptions.get("parallel") for one in dispatchers([potential_and_gradient]))
            self.callback.reuses = self.callback.reuses or bool(changing or drawn or meanwhile or parallel)

    @property
    def address(self):
        return self.callback.address

    def mode(self, initial=None):
        try:
            return super().mode(initial)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the function raises, perhaps outside its support
            warn(
                f"the mode was not found: `potential_and_gradient` raised {type(error).__name__}: {error}. Return the "
                "potential inf outside the support; in a run an exception is a failure."
            )
            return None

    def identity(self):
        return self.callback.identity()

    @property
    def constrains(self):
        return hasattr(self.callback, "constrain")

    def constrain(self, draws):
        if not self.constrains:
            return super().constrain(draws)
        return self._of_draws(self.callback.constrain, draws)

    def _of_draws(self, function, draws):
        """What a function of (M, dim) draws gives by name, of draws (..., dim)."""
        draws = real("draws", draws)
        found = function(draws.reshape(-1, self.dim))
        return {name: values.reshape((*draws.shape[:-1], *values.shape[1:])) for name, values in found.items()}

    def observed_data(self):
        return self.callback.observed_data() if hasattr(self.callback, "observed_data") else {}

    @property
    def log_likelihood_size(self):
        """How many log-likelihoods there are at one point, as far as that is known."""
        return getattr(self.callback, "log_likelihood_size", 0)

    def log_likelihoods(self, draws):
        has = hasattr(self.callback, "log_likelihoods")
        return self._of_draws(self.callback.log_likelihoods, draws) if has else {}

    @property
    def said(self):
        """Why the density of a point is zero, in the words of who computes it; None where there are none."""
        return getattr(self.callback, "said", None)

    @property
    def failure(self):
        """The exception that the function raised in what this thread computes, None if there was none."""
        return self.callback.failure

    @failure.setter
    def failure(self, error):
        self.callback.failure = error

    @compiled
    def prior_potential(self, x):
        return call(self.address, x, None)

    @compiled
    def add_prior_gradient(self, x, out):
        call(self.address, x, out)

    @compiled
    def potential_and_gradient(self, x, out):
        return call(self.address, x, out)

    def potential(self, x):
        potential, gradient = self.callback.evaluate(self.check(x))
        return potential if np.isfinite(gradient).all() or not math.isfinite(potential) else math.nan

    def gradient(self, x):
        return self.callback.evaluate(self.check(x))[1].copy()

    def _check_function(self):
        """One call at `initial`, refused in words; returns the relative resolution of what the function computes in."""
        answer = self.callback.function(self.initial.copy())
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            kind = type(answer).__name__
            raise TypeError(
                f"`potential_and_gradient` must return the pair (U, gradient), got a {kind}; pdmp.models.from_jax and "
                "from_torch compute the gradient of a U themselves."
            )
        potential, gradient = (np.asarray(part) for part in answer)
        if potential.shape != ():
            raise ValueError(
                f"`potential_and_gradient` must return a number for U, got an array of shape {potential.shape}."
            )
        for name, part in (("U", potential), ("the gradient", gradient)):
            if part.dtype.kind not in "fiu":
                raise TypeError(f"`potential_and_gradient` must return real numbers, {name} is {part.dtype}.")
        potential, second = self.callback.evaluate(self.initial.copy())
        if isinstance(self.callback, Callback):
            self.callback.reuses = np.shares_memory(gradient, second)
        for name, part in (("U", potential), ("the gradient", second)):
            if not np.all(np.isfinite(part)):
                raise ValueError(f"`potential_and_gradient` must be finite at `initial`, {name} is {part}.")
        single = any(np.asarray(part).dtype in (np.float16, np.float32) for part in answer)
        return np.finfo(np.float32 if single else np.float64).eps

    def _compare_slopes(self):
        """Compare ∇U with difference quotients of U, every coordinate, at two points away from `initial`.

        At `initial` itself, often zeros, a partial derivative may vanish, and a wrong factor of it is right.
        """
        rng, seen = np.random.default_rng(0), np.zeros(self.dim, np.int8)
        scale = np.maximum(1.0, np.abs(self.initial))
        compared = 0
        for size in (1.0, 0.3, 0.1, 0.01, 0.0):
            if compared == 2:
                break
            x = self.initial + size * scale * rng.choice([-1.0, 1.0], self.dim) * rng.uniform(0.5, 1.5, self.dim)
            here, gradient = self._evaluated(x)
            if not (math.isfinite(here) and np.all(np.isfinite(gradient))):
                continue  # beyond the support, perhaps
            compared += 1
            self._compare_again(x, here, gradient)
            found = self.wrong_slope(x, rng, FEW_DIRECTIONS, (here, gradient), seen=seen)
            if found is not None:
                j, slope, quotient = found
                if self.of_log_density:
                    raise ValueError(
                        "the derivative of `log_density` is not that of its values: for U = -log density coordinate "
                        f"{coordinate_names(self.variables, self.transforms)[j]}, at x = {shown(x)}, it is "
                        f"{slope:.8g}, and the slope of the values {quotient:.8g}. What detaches or stops a gradient, "
                        "rounds, or converts to whole numbers cannot stand between x and the density."
                    )
                raise ValueError(
                    "`potential_and_gradient` returns a gradient that does not fit its U: coordinate "
                    f"{coordinate_names(self.variables, self.transforms)[j]} of it, at x = {shown(x)}, is "
                    f"{slope:.8g}, the slope of U is {quotient:.8g}. The gradient must be that of U = -log "
                    "density. (`check_gradient=False` skips this comparison.)"
                )
            self.known = x, here, gradient
        if compared:
            warn_of_blindness(self, seen)

    def check_unchanged(self) -> None:
        """Raise a `TypeError` if what machine code of the function has as a constant is another value by now."""
        if isinstance(self.callback, Callback):
            check_unchanged([self.callback.function])
        anew = getattr(self.callback, "anew", None) or getattr(self.callback.function, "anew", None)
        if anew is None:
            return
        x = self.initial if self.known is None else self.known[0]
        was, now = self.callback.evaluate(x.copy())[0], float(anew(x.copy()))
        if abs(now - was) > math.sqrt(self.resolution) * max(1.0, abs(was)):
            raise TypeError(
                f"what the model reads, data perhaps, has changed since it was made, and its machine code has it as it "
                f"was: at x = {shown(x)} U is {was:.8g} there, and {now:.8g} by now. Make the model anew."
            )

    def changed(self) -> str | None:
        """A sentence if U or ∇U is another now than when the model was made, at a point that was looked at then."""
        if self.known is None:
            return None
        try:
            self._compare_again(*self.known)
        except ValueError as error:
            return f"{str(error).split(': it must')[0]}: the function has changed, and a run is of no one posterior."
        return None

    def _compare_again(self, x, here, gradient):
        """Raise a `ValueError` if U or ∇U is not the same a second time, but for the order of sums."""
        again, second = self._evaluated(x)
        allowed = max(SAME * self.resolution, LEAST)
        other = abs(again - here) > allowed * max(1.0, abs(here))
        which, was, now = "U", here, again
        if not other:
            j = int(np.argmax(np.abs(second - gradient)))
            other = abs(second[j] - gradient[j]) > allowed * max(1.0, np.abs(gradient).max())
            which, was, now = "gradient", gradient[j], second[j]
        if other:
            name, skipped = "potential_and_gradient", " (`check_gradient=False` skips this comparison.)"
            if self.of_log_density:
                name, skipped = "log_density", ""
            raise ValueError(
                f"`{name}` returns another {which} when it is called again at x = {shown(x)}, "
                f"{now:.8g} after {was:.8g}: it must depend on x alone, not on random numbers or an earlier call."
                f"{skipped}"
            )

    def warn_of_wrong_slopes(self, what: str) -> None:
        """Warn if `what` is not that of the potential, of an adapter whose gradients are exact unless it is broken."""
        rng = np.random.default_rng(0)
        for size in (0.3, 0.1):
            x = self.initial + size * np.maximum(1.0, np.abs(self.initial)) * rng.choice([-1.0, 1.0], self.dim)
            found = self.wrong_slope(x, rng, FEW_DIRECTIONS)
            if found is not None:
                j, slope, quotient = found
                warn(
                    f"{what} is not the slope of its log density: coordinate "
                    f"{coordinate_names(self.variables, self.transforms)[j]} of it, at x = {shown(x)}, is "
                    f"{-slope:.8g}, and the slope {-quotient:.8g}. Look for a derivative that is written by hand, or "
                    "a library of another version: what samples without a Metropolis test has another law."
                )
                return

    def wrong_slope(self, x, rng, most, here=None, scale=None, seen=None):
        """As `pdmp.models.verification.wrong_slope`; `here` is (U, ∇U)."""
        here, gradient = self._evaluated(x) if here is None else here
        if not (math.isfinite(here) and np.all(np.isfinite(gradient))):
            return None
        groups, lengths = directions(gradient, x, most, self.resolution, scale)
        v = rng.choice([-1.0, 1.0], self.dim) * lengths
        return first_of(functools.partial(self._differs, x, here, gradient, v, seen), groups)

    def _evaluated(self, x):
        """(U, ∇U), NaN where the function raises."""
        try:
            with np.errstate(all="ignore"):
                return self.callback.evaluate(x.copy())
        except Exception:  # noqa: BLE001 - beyond the support, perhaps
            return math.nan, np.full(self.dim, math.nan)

    def _differs(self, x, here, gradient, v, seen, group):
        """As `slopes_differ`; of one coordinate at other steps too, as U may be known to few digits only."""

        def value(y):
            return self._evaluated(y)[0]

        if slopes_differ(value, x, here, gradient, v, self.resolution, group, seen) is None:
            return None
        slope, most, errors = float(gradient[group[0]]), 1e-3 * np.abs(gradient).max(), []
        if len(group) > 1:
            return slope, math.nan
        size, v = v[group[0]], np.where(np.arange(self.dim) == group[0], v, 0.0)
        for h in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
            low, high = value(x - h * v), value(x + h * v)
            quotient = (high - low) / (2.0 * h * size)
            largest = max(abs(quotient), abs(slope), most)
            # Quotients that rounding spoils say nothing.
            if 16.0 * self.resolution * abs(here) / (h * abs(size)) < 1e-3 * largest < math.inf:
                errors.append((abs(quotient - slope) / largest, quotient))
        return (slope, min(errors)[1]) if errors and min(errors)[0] > 1e-3 else None


@explained
def from_function(
    potential_and_gradient: Callable,
    dim: int,
    initial: ArrayLike | None = None,
    variables: dict[str, tuple[int, ...]] | None = None,
    n_data: int = 0,
    check_gradient: bool = True,
    transforms: dict | None = None,
) -> Model:
    """A model whose potential and gradient are computed by any Python function.

    One gradient in a compiled loop was measured to cost about 1.4 µs on top of the function's own time at dim = 10 and
    2 µs at dim = 1000, one potential 0.8 and 1.1 µs. Chains in threads take turns in the function, unless it releases
    Python's lock and its calls change nothing that it keeps, as work arrays; for a process pool it must be picklable.

    Parameters
    ----------
    potential_and_gradient : callable
        f(x) -> (U, gradient), x a fresh array of shape (dim,), U = -log density up to a constant a number, and the
        gradient of U (not of the log density) of shape (dim,), both numpy arrays or whatever converts to them.
    dim : int
        Dimension of x.
    initial : array_like, shape (dim,), optional
        Where to look for the mode from; zeros when omitted. The function is called there once, before anything runs.
    variables : dict of str to tuple of int, optional
        Names and shapes of the parts of x, in order.
    n_data : int, default 0
        How many data one call looks at, for counting data passes. The sum over them cannot be sub-sampled.
    check_gradient : bool, default True
        Compare the gradient with difference quotients of U, in every coordinate: at two points near `initial` now, and
        where a run went when it ends, which then warns. False for a gradient that is known to be right.
    transforms : dict of str to pdmp.models.transforms.Transform, optional
        For variables that are not natural parameters, see `pdmp.Model`.

    Returns
    -------
    FunctionModel
        A model. When the function raises in a run, that run stops: the exception is the cause of its `SamplingError`.

    Raises
    ------
    TypeError, ValueError
        If the function does not return a number and a gradient of shape (dim,), finite at `initial`, or if the two
        differ by more than 10⁻³ in the comparison of slopes; or if a number or an array that a function of numba names
        has changed since it was compiled. What the function itself raises comes through.

    See Also
    --------
    pdmp.models.from_jax : A log density that JAX differentiates.
    pdmp.Model : A model as a class, with its data.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> model = pdmp.models.from_function(lambda x: (0.5 * x @ x, x), dim=3)
    >>> model.gradient(np.ones(3))
    array([1., 1., 1.])
    """
    return FunctionModel(potential_and_gradient, dim, initial, variables, n_data, check_gradient, transforms)
