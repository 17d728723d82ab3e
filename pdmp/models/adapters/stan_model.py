r"""Stan models, through the C interface of BridgeStan.

A model that BridgeStan compiled is a shared library with functions in C [1]_. Stanli's library has the same functions
for every Stan program: the program, translated by its compiler, is an entry among the data. A small function around the
gradient, compiled here, has the address that compiled loops call: neither Python nor its lock is in the way. Libraries
that were built without ``STAN_THREADS=true`` keep Stan's tape in one place for all threads; they are called under
Python's lock.

References
----------
.. [1] Roualdes et al. (2023), BridgeStan: Efficient in-memory access to the methods of a Stan model. JOSS 8.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import pathlib
import re
from typing import TYPE_CHECKING, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import ArrayLike

from pdmp.models.adapters.function import Callback, FunctionModel, MachineCode, needed, pointer
from pdmp.models.transforms import Identity, recognised
from pdmp.native.arguments import refuse_unreal

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
    "bs_rng_construct": (VOID, (ctypes.c_uint, VOID)),
    "bs_rng_destruct": (None, (VOID,)),
}
POINTS = 8  #: at which a transform is compared with a parameter


class Program(NamedTuple):
    """A Stan program as stanli's compiler has translated it."""

    name: str
    translation: str

    def library(self):
        """The path of stanli's library."""
        return str(_stanli()._runtime_lib_path())

    def with_data(self, data):
        """What stanli's library takes as data, JSON: the program is an entry among them."""
        program = {"build_id": _stanli().build_id(), "mir": self.translation, "name": self.name}
        return json.dumps({**json.loads(data or "{}"), "__stanli": program})


class StanFunction(MachineCode):
    """(U, ∇U) of a Stan model, and its natural parameters; pickled as the program, or the library's path, and data."""

    def __init__(self, program, data, seed, generated=False, log_likelihood="log_lik"):
        self.arguments = program, data, seed, generated, log_likelihood
        translated = isinstance(program, Program)
        self._library = _load(program.library() if translated else program)
        message = VOID()
        text = program.with_data(data) if translated else data
        text = None if text is None else text.encode()
        self._model = self._library.bs_model_construct(text, seed, ctypes.byref(message))
        if not self._model:
            raise ValueError(f"`program` refuses the data: {self._read(message)}")
        super().__init__(self._library.bs_param_unc_num(self._model))
        if self.dim < 1:
            raise ValueError(f"the Stan model {self._text('bs_name')} has no parameters.")
        self._likelihoods = log_likelihood if log_likelihood in self._places(1, 1) else None
        if self._likelihoods is None and log_likelihood != "log_lik":
            raise ValueError(f"`log_likelihood` must be a generated quantity of the program, got {log_likelihood!r}.")
        self.variables, self.transforms = self._variables()
        self.message, self._said = np.zeros(1, np.intp), None  #: address of what Stan said first, or that itself
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
        """The translated program or the library's bytes, and the data."""
        program, *others = self.arguments
        if not isinstance(program, Program):
            program = hashlib.sha256(pathlib.Path(program).read_bytes()).hexdigest()
        return program, *others

    @property
    def said(self):
        """What Stan said of the first point that it refused since `failure` was set; None if it refused none.

        A point that it refuses has zero density, in its own samplers too, and is no failure.
        """
        if not self.compiled:
            return self._said
        return ctypes.string_at(int(self.message[0])).decode().strip() if self.message[0] else None

    @MachineCode.failure.setter
    def failure(self, error):
        self._said = None
        MachineCode.failure.fset(self, error)
        if self.compiled and self.message[0]:
            self._library.bs_free_error_msg(int(self.message[0]))
            self.message[0] = 0

    def constrain(self, draws):
        """Parameters, transformed parameters and, if asked for, generated quantities by name, of draws (M, dim)."""
        found = self._write(draws, 1, int(self.arguments[3]))
        found.pop(self._likelihoods, None)
        return found

    @property
    def log_likelihood_size(self):
        """How many log-likelihoods there are."""
        return len(self._places(1, 1)[self._likelihoods][1]) if self._likelihoods else 0

    def log_likelihoods(self, draws):
        """The generated quantity that holds the log-likelihood of each datum, of draws (M, dim), by its name."""
        return {self._likelihoods: self._write(draws, 1, 1)[self._likelihoods]} if self._likelihoods else {}

    def _write(self, draws, transformed, generated):
        """All quantities of these kinds by name, each (M, *shape); random ones are the same for the same draws."""
        x, places = np.ascontiguousarray(draws), self._places(transformed, generated)
        out = np.empty((len(x), sum(len(order) for _, order in places.values())))
        message = VOID()
        rng = self._library.bs_rng_construct(self.arguments[2], ctypes.byref(message)) if generated else None
        if generated and not rng:
            raise ValueError(self._read(message))
        try:
            for row, values in zip(x, out, strict=True):
                self._call("bs_param_constrain", transformed, generated, row.ctypes.data, values.ctypes.data, rng)
        finally:
            if rng:
                self._library.bs_rng_destruct(rng)
        found, first = {}, 0
        for name, (shape, order) in places.items():
            part = np.empty((len(x), len(order)))
            part[:, order] = out[:, first : first + len(order)]
            found[name] = part.reshape(len(x), *shape)
            first += len(order)
        return found

    def _places(self, transformed, generated):
        """Shape of each quantity by name, and the place of each of its numbers in an array of that shape."""
        indices = {}
        for text in filter(None, self._text("bs_param_names", transformed, generated).split(",")):
            name, index = re.fullmatch(r"(.*?)((?:\.\d+)*)", text).groups()
            indices.setdefault(name, []).append([int(i) - 1 for i in index.split(".")[1:]])
        found = {}
        for name, index in indices.items():
            index = np.array(index, int)
            shape = tuple(int(n) + 1 for n in index.max(axis=0))
            found[name] = shape, np.ravel_multi_index(tuple(index.T), shape) if shape else np.zeros(1, int)
        return found

    def _variables(self):
        """Names, shapes and transforms of the parts of x.

        The interface does not tell transforms: they are recognised by the parameter's values at some points. A part
        whose transform is none of those known here has "_unc" behind its name. Matrices are vectors here, column after
        column.
        """
        columns = {}
        for j, text in enumerate(self._text("bs_param_unc_names").split(",")):
            columns.setdefault(re.sub(r"(\.\d+)*$", "", text), []).append((j, text))
        x = np.random.default_rng(0).uniform(-1.0, 1.0, (POINTS, self.dim))
        try:
            natural = self._write(x, 0, 0)
        except ValueError:
            natural = {}
        variables, transforms = {}, {}
        for name, found in columns.items():
            part, y = x[:, [j for j, _ in found]], natural.get(name)
            flat = (len(found),) if found[0][1] != name else ()
            # In rows, as arrays are, or in columns, as matrices are.
            shapes = [] if y is None or y[0].size != len(found) else [y.shape[1:], flat]
            for shape in shapes:
                values = y if shape == y.shape[1:] else y.transpose(0, *range(y.ndim - 1, 0, -1)).reshape(POINTS, -1)
                transform = recognised(part.reshape(values.shape), values)
                if transform is not None:
                    variables[name] = shape
                    if transform != Identity():
                        transforms[name] = transform
                    break
            else:
                variables[f"{name}_unc"] = flat
        return variables, transforms

    def _evaluate(self, x):
        value, gradient = np.zeros(1), np.zeros(self.dim)
        address = gradient.ctypes.data
        try:
            self._call("bs_log_density_gradient", 1, 1, x.ctypes.data, value.ctypes.data, address)
        except ValueError as error:
            self._said = self._said or str(error)
            return np.inf, np.full(self.dim, np.nan)
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
        return np.inf

    return answer


def _load(path):
    """The library, its functions declared. Not as ctypes.CDLL does: Python's lock is kept in a call."""
    try:
        library = ctypes.PyDLL(path)
    except OSError as error:
        raise ValueError(f"`program` cannot be loaded as a library: {error}.") from None
    for name, (result, arguments) in FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ValueError(f"`program` is not a library of BridgeStan's: it has no function `{name}`.") from None
        function.restype, function.argtypes = result, arguments
    return library


def _stanli():
    return needed("stanli", "from_stan", "stanli for a Stan program", "stan")


def _translated(program):
    """The `Program` of a path to a Stan file, or of a program's text."""
    stanli, is_text = _stanli(), _is_text(program)
    path = pathlib.Path("model.stan" if is_text else program)
    try:
        text = program if is_text else path.read_text(encoding="utf-8")
        return Program(path.stem, stanli.stan_to_mir(text, include_paths=[] if is_text else [path.absolute().parent]))
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"`program` cannot be read: {error}.") from None
    except RuntimeError as error:
        parts = re.split(r"\n *-{9,}\n", str(error))  # the second is an excerpt of the program
        said = " ".join(" ".join([parts[0], *parts[2:]]).split()).replace("'string'", path.name, 1)
        raise ValueError(f"`program` does not compile: {said}") from None


def _is_text(program):
    return isinstance(program, str) and "{" in program


def _as_json(data):
    """The data of a program as JSON, None if there are none."""
    if data is None:
        return None
    if isinstance(data, (str, os.PathLike)):
        text = str(data)
        try:
            if not text.lstrip().startswith("{"):
                text = pathlib.Path(data).read_text(encoding="utf-8")
            _check_numbers(json.loads(text) if "nan" in text.lower() else {})
        except json.JSONDecodeError:
            pass  # the program's library says where
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"`data` cannot be read: {error}.") from None
        return text
    if not isinstance(data, dict):
        raise TypeError(f"`data` must be a dict, a path to a JSON file, or JSON, got {type(data).__name__}.")
    for name, value in data.items():
        refuse_unreal(f"data[{name!r}]", value)
    whole = {name: int(value) if isinstance(value, bool) else value for name, value in data.items()}
    text = json.dumps(whole, default=_as_list)
    if "NaN" in text:
        _check_numbers(json.loads(text))
    return text


def _check_numbers(data):
    """Raise a `ValueError` for NaN in any of the data: the density would be NaN everywhere."""
    for name, value in data.items() if isinstance(data, dict) else ():
        if "NaN" in json.dumps(value).replace('"NaN"', ""):
            raise ValueError(f"`data[{name!r}]` has NaN, which no Stan program can use: leave out what is missing.")


def _as_list(value):
    array = np.asarray(value)
    return (array.astype(int) if array.dtype == bool else array).tolist()


def from_stan(
    program: str | os.PathLike,
    data: dict | str | os.PathLike | None = None,
    initial: ArrayLike | None = None,
    seed: int = 0,
    generated_quantities: bool = False,
    log_likelihood: str = "log_lik",
) -> Model:
    """A model from a Stan program, or from a library that BridgeStan compiled from one.

    A Stan program is compiled and evaluated by stanli (``pip install 'pdmp[stan]'``) in some milliseconds, without a
    C++ toolchain. ``bridgestan.compile_model("model.stan", make_args=["STAN_THREADS=true"])`` makes a library; neither
    BridgeStan nor Stan is needed beside it. One gradient was measured to cost less than 0.1 µs on top of the library's
    own time. Without STAN_THREADS Python's lock is held in each call, chains in threads take turns, and a call costs
    7 µs.

    x is Stan's unconstrained vector, its density with Jacobians. Summaries, ``run["tau"]`` and ``run.to_arviz()`` have
    the parameters and transformed parameters by their names, as the program computes them. A loaded run needs the model
    for that: ``run.to_arviz(model=...)``.

    Parameters
    ----------
    program : path or str
        A Stan file, whose name ends in ".stan"; the text of a Stan program; or a shared library.
    data : dict, path or str, optional
        Of the program's data block; a path to a JSON file, or JSON itself, likewise.
    initial : array_like, shape (dim,), optional
        Where to look for the mode from, unconstrained; zeros when omitted.
    seed : int, default 0
        For the random numbers in ``transformed data`` and ``generated quantities``.
    generated_quantities : bool, default False
        Whether these are computed beside the parameters.
    log_likelihood : str, default "log_lik"
        The generated quantity that holds the log-likelihood of each datum, for the group of ``run.to_arviz()`` by that
        name; there is none if the program has none.

    Returns
    -------
    FunctionModel
        Its callback's attribute ``compiled`` says whether Python is out of the loop.

    Raises
    ------
    ValueError
        If the program does not compile, a library cannot be loaded or is not one of BridgeStan's, or the data are
        refused; in Stan's words.
    ImportError
        If stanli is needed and not installed.

    Warns
    -----
    UserWarning
        If the gradient is not the slope of the log density at two points near `initial`: Stan's own gradients are, and
        those of C++ functions that a program brings may not be.

    Examples
    --------
    >>> import pdmp
    >>> coin = "data { int n, k; } parameters { real<lower=0, upper=1> p; } model { k ~ binomial(n, p); }"
    >>> model = pdmp.models.from_stan(coin, data={"n": 10, "k": 7})     # doctest: +SKIP
    >>> pdmp.sample(model, seed=1)["p"].mean()                          # doctest: +SKIP
    0.667
    """
    if not isinstance(program, (str, os.PathLike)):
        raise TypeError(f"`program` must be a path, or the text of a Stan program, got {type(program).__name__}.")
    if _is_text(program) or os.fspath(program).endswith(".stan"):
        known = _translated(program)
    else:
        known = os.path.abspath(os.fspath(program))
    function = StanFunction(known, _as_json(data), int(seed), bool(generated_quantities), log_likelihood)
    model = FunctionModel(
        function, function.dim, initial, function.variables, check_gradient=False, transforms=function.transforms
    )
    model.warn_of_wrong_slopes("the gradient of the Stan program")
    return model
