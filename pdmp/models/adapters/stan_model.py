r"""Stan models, through the C interface of BridgeStan.

A model that BridgeStan compiled is a shared library with functions in C [1]_. A small function around its gradient,
compiled here, has the address that compiled loops call: neither Python nor its lock is in the way. Libraries that were
built without ``STAN_THREADS=true`` keep Stan's tape in one place for all threads; they are called under Python's lock.

References
----------
.. [1] Roualdes et al. (2023), BridgeStan: Efficient in-memory access to the methods of a Stan model. JOSS 8.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import math
import os
import pathlib
from typing import TYPE_CHECKING

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import ArrayLike

from pdmp.models.adapters.function import Callback, FunctionModel, MachineCode, pointer
from pdmp.models.transforms import Log

if TYPE_CHECKING:
    from pdmp.models.base import Model

VOID, INT, TEXT = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
#: The functions that are used; a C bool is passed as an int, 0 or 1.
FUNCTIONS = {
    "bs_model_construct": (VOID, (TEXT, ctypes.c_uint, VOID)),
    "bs_model_destruct": (None, (VOID,)),
    "bs_model_info": (TEXT, (VOID,)),
    "bs_name": (TEXT, (VOID,)),
    "bs_param_names": (TEXT, (VOID, INT, INT)),
    "bs_param_unc_names": (TEXT, (VOID,)),
    "bs_param_num": (INT, (VOID, INT, INT)),
    "bs_param_unc_num": (INT, (VOID,)),
    "bs_param_constrain": (INT, (VOID, INT, INT, VOID, VOID, VOID, VOID)),
    "bs_log_density_gradient": (INT, (VOID, INT, INT, VOID, VOID, VOID, VOID)),
    "bs_free_error_msg": (None, (VOID,)),
}


class StanFunction(MachineCode):
    """(U, ∇U) of a Stan model, and its natural parameters; pickled as the paths of library and data."""

    def __init__(self, path, data, seed):
        self.arguments = path, data, seed
        self._library = _load(path)
        message = VOID()
        text = None if data is None else data.encode()
        self._model = self._library.bs_model_construct(text, seed, ctypes.byref(message))
        if not self._model:
            raise ValueError(f"`library` refuses the data: {self._read(message)}")
        super().__init__(self._library.bs_param_unc_num(self._model))
        if self.dim < 1:
            raise ValueError(f"the Stan model {self._text('bs_name')} has no parameters.")
        self.natural = self._text("bs_param_names", 1, 0).split(",")
        self.variables, self.transforms = self._variables()
        self.message = np.zeros(1, np.intp)  #: address of what Stan said last
        self.compiled = "STAN_THREADS=true" in self._text("bs_model_info") and not numba.config.DISABLE_JIT
        if self.compiled:
            names = ("bs_log_density_gradient", "bs_free_error_msg")
            functions = [ctypes.cast(getattr(self._library, name), VOID).value for name in names]
            self._answer = _as_c_function(self._model, *functions, self.message.ctypes.data, self.dim)
        else:
            self._answer = Callback(self._evaluate, self.dim)
        self.address = self._answer.address

    def __reduce__(self):
        return StanFunction, self.arguments

    def __del__(self):
        if getattr(self, "_model", None):
            self._library.bs_model_destruct(self._model)

    def identity(self):
        """The library's bytes, and the data."""
        path, data, seed = self.arguments
        return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest(), data, seed

    @property
    def failure(self):
        """What Stan said of the last point that it refused."""
        if not self.compiled:
            return self._answer.failure
        return ValueError(ctypes.string_at(int(self.message[0])).decode().strip()) if self.message[0] else None

    @failure.setter
    def failure(self, error):
        if not self.compiled:
            self._answer.failure = error
        elif self.message[0]:
            self._library.bs_free_error_msg(int(self.message[0]))
            self.message[0] = 0

    def constrain(self, draws):
        """Parameters and transformed parameters by their names in the model, of draws (M, dim)."""
        x = np.ascontiguousarray(draws)
        out = np.empty((len(x), len(self.natural)))
        for row, values in zip(x, out, strict=True):
            self._call("bs_param_constrain", 1, 0, row.ctypes.data, values.ctypes.data, None)
        found, first = {}, 0
        for name, shape in _shapes(self.natural).items():
            part = out[:, first : first + math.prod(shape)]
            found[name] = part.reshape(len(x), *shape[::-1]).transpose(0, *range(len(shape), 0, -1))  # column-major
            first += math.prod(shape)
        return found

    def _variables(self):
        """Names, shapes and transforms of the parts of x.

        The interface does not tell transforms: a part that is its parameter, or its logarithm, at three points is
        called so; another has "_unc" behind its name. Matrices are vectors here, column after column.
        """
        names, places = self._text("bs_param_unc_names").split(","), {}
        for j, text in enumerate(names):
            places.setdefault(text.split(".")[0], []).append(j)
        x = np.random.default_rng(0).uniform(-1.0, 1.0, (3, self.dim))
        try:
            natural = self.constrain(x)
        except ValueError:
            natural = {}
        variables, transforms = {}, {}
        for name, columns in places.items():
            shape = (len(columns),) if "." in names[columns[0]] else ()
            y = np.asarray(natural.get(name, np.zeros((3, 0))))
            y = y.transpose(0, *range(y.ndim - 1, 0, -1)).reshape(3, -1)
            same, log = (y.shape == x[:, columns].shape and np.allclose(y, f(x[:, columns])) for f in (np.copy, np.exp))
            known = name if same or log else f"{name}_unc"
            variables[known] = shape
            if log:
                transforms[known] = Log()
        return variables, transforms

    def _evaluate(self, x):
        value, gradient = np.zeros(1), np.zeros(self.dim)
        address = gradient.ctypes.data
        self._call("bs_log_density_gradient", 1, 1, x.ctypes.data, value.ctypes.data, address)
        return -value[0], -gradient

    def _call(self, name, *arguments):
        message = VOID()
        if getattr(self._library, name)(self._model, *arguments, ctypes.byref(message)):
            raise ValueError(self._read(message))

    def _text(self, name, *arguments):
        return getattr(self._library, name)(self._model, *arguments).decode()

    def _read(self, message):
        text = ctypes.string_at(message.value).decode().strip() if message.value else "no reason given"
        if message.value:
            self._library.bs_free_error_msg(message)
        return text


@intrinsic
def _log_density_gradient(typing_context, function, model, x, value, gradient, message):
    """Call `bs_log_density_gradient` at the address `function`, up to constants and with Jacobians; its error code."""

    def generate(context, builder, signature, args):
        word, code = ir.IntType(types.intp.bitwidth), ir.IntType(32)
        kind = ir.FunctionType(code, (word, code, code, word, word, word, word))
        one = ir.Constant(code, 1)
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), (args[1], one, one, *args[2:]))

    return types.int32(*[types.intp] * 6), generate


@intrinsic
def _free(typing_context, function, message):
    """Call `bs_free_error_msg` at the address `function`."""

    def generate(context, builder, signature, args):
        kind = ir.FunctionType(ir.VoidType(), (ir.IntType(types.intp.bitwidth),))
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), (args[1],))
        return context.get_dummy_value()

    return types.none(types.intp, types.intp), generate


def _as_c_function(model, density, free, kept, dim):
    """A C function answer(address of x, address of the gradient to add to, or 0) -> U around a library's.

    The first error message stays at the address `kept`.
    """

    @numba.cfunc(types.float64(types.intp, types.intp), error_model="numpy")
    def answer(x, out):
        value, gradient, message = np.zeros(1), np.empty(dim), np.zeros(1, np.intp)
        code = _log_density_gradient(density, model, x, value.ctypes.data, gradient.ctypes.data, message.ctypes.data)
        if out != 0:
            total = numba.carray(pointer(out), (dim,), np.float64)
            for j in range(dim):
                total[j] -= gradient[j] if code == 0 else np.nan
        if code == 0:
            return -value[0]
        first = numba.carray(pointer(kept), (1,), np.intp)
        if first[0] == 0:
            first[0] = message[0]
        elif message[0] != 0:
            _free(free, message[0])
        return np.nan

    return answer


def _shapes(names):
    """Shapes by name, in order, of names "a", "b.1", "b.2", "c.1.1", …, with indices from 1."""
    shapes = {}
    for text in names:
        name, *index = text.split(".")
        index = tuple(int(i) for i in index)
        shapes[name] = tuple(max(pair) for pair in zip(shapes.get(name, index), index, strict=True))
    return shapes


def _load(path):
    """The library, its functions declared. Not as ctypes.CDLL does: Python's lock is kept in a call."""
    try:
        library = ctypes.PyDLL(path)
    except OSError as error:
        raise ValueError(f"`library` cannot be loaded: {error}.") from None
    for name, (result, arguments) in FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ValueError(f"`library` is not one of BridgeStan's: it has no function `{name}`.") from None
        function.restype, function.argtypes = result, arguments
    return library


def from_stan(
    library: str | os.PathLike, data: dict | str | None = None, initial: ArrayLike | None = None, seed: int = 0
) -> Model:
    """A model from a Stan program that BridgeStan compiled.

    ``bridgestan.compile_model("model.stan", make_args=["STAN_THREADS=true"])`` makes the library; neither BridgeStan
    nor Stan is needed beside it. One gradient was measured to cost less than 0.1 µs on top of the library's own time.
    Without STAN_THREADS Python's lock is held in each call, chains in threads take turns, and a call costs 7 µs.

    x is Stan's unconstrained vector, its density with Jacobians; ``run.to_arviz()`` has the parameters and transformed
    parameters. A loaded run needs the model for that: ``run.to_arviz(model=...)``.

    Parameters
    ----------
    library : path
        The shared library.
    data : dict, path or str, optional
        Of the program's data block; a path to a JSON file, or JSON itself, likewise.
    initial : array_like, shape (dim,), optional
        Where to look for the mode from, unconstrained; zeros when omitted.
    seed : int, default 0
        For the random numbers in ``transformed data``.

    Returns
    -------
    FunctionModel
        Its callback's attribute ``compiled`` says whether Python is out of the loop.

    Raises
    ------
    ValueError
        If the library cannot be loaded, is not one of BridgeStan's, or refuses the data; in Stan's words.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.from_stan('model.so', data={'N': 10})  # doctest: +SKIP
    """
    path = os.path.abspath(os.fspath(library))
    if isinstance(data, dict):
        data = json.dumps(data, default=lambda a: np.asarray(a).tolist())
    elif data is not None and not str(data).lstrip().startswith("{"):
        data = pathlib.Path(data).read_text()
    function = StanFunction(path, data, int(seed))
    return FunctionModel(
        function, function.dim, initial, function.variables, check_gradient=False, transforms=function.transforms
    )
