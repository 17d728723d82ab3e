"""The only file that uses numba's private parts: for faster compilation, and to keep machine code on disk.

Importing it raises an `ImportError` if numba has changed them; `pdmp.native.decorators` then uses numba's public
options, with which compilation is slower.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import inspect
import os
import pathlib
import pickle
import re
import sys
import threading
from time import perf_counter

import llvmlite
import numba
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba.core import boxing, cgutils
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler import Compiler, CompileResult
from numba.core.cpu import CPUTargetOptions
from numba.core.dispatcher import Dispatcher
from numba.core.pythonapi import NativeValue, _unboxers
from numba.core.serialize import dumps

from pdmp.native.fingerprints import UNIQUE, fingerprint
from pdmp.native.messages import announce, warn_not_kept

#: Options of every function. Numba's reference counting (`_nrt`) is off: the caller keeps every array alive during a
#: call, and passing a tuple of thirty arrays would count thirty references up and down, five times as slow.
#: The wrapper for C is left out, as nothing calls it.
FLAGS = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}


def _check():
    """Raise an `ImportError` if a part that is used here is missing, or takes other arguments."""
    for owner, name, *parameters in (
        (JITCodeLibrary, "_optimize_final_module"),
        (JITCodeLibrary, "_finalize_final_module"),
        (JITCodeLibrary, "_finalize_dynamic_globals"),
        (JITCodeLibrary, "_ensure_finalized"),
        (JITCodeLibrary, "get_pointer_to_function", "name"),
        (JITCPUCodegen, "set_env", "env_name", "env"),
        (JITCPUCodegen, "magic_tuple"),
        (Compiler, "_compile_bytecode"),
        (CompileResult, "_find_referenced_environments"),
        (CompileResultCacheImpl, "check_cachable", "cres"),
        (CompileResultCacheImpl, "reduce", "cres"),
        (CompileResultCacheImpl, "rebuild", "target_context", "payload"),
        (Dispatcher, "enable_caching"),
        (Dispatcher, "compile", "sig"),
        (Dispatcher, "_make_finalizer"),
        (Dispatcher, "_reset_overloads"),
    ):
        if list(inspect.signature(getattr(owner, name)).parameters) != ["self", *parameters]:
            raise ImportError(f"numba {numba.__version__} has changed {owner.__name__}.{name}.")
    for name in (*FLAGS, "forceinline", "no_cpython_wrapper"):
        getattr(CPUTargetOptions, name)
    for name in OPTIONS:
        getattr(numba.config, name)
    if _unboxers.functions[numba.types.NumPyRandomGeneratorType] is not boxing.unbox_numpy_random_generator:
        raise ImportError(f"numba {numba.__version__} takes generators apart elsewhere.")


# ---------------------------------------------------------------------------------------------------------------
# Compilation


class _CodegenWithoutEnvironments:
    """Numba's code generator, except that it does not set environments (a function's globals, as numba keeps them).

    Setting one needs the function's address, and a function that is only linked into others has none. `OuterCompiler`
    sets the environments of all inner functions after the outermost function has become machine code.
    """

    def __init__(self, codegen):
        self._codegen = codegen

    def __getattr__(self, name):
        return getattr(self._codegen, name)

    def set_env(self, env_name, env):
        pass


class _LinkedLibrary(JITCodeLibrary):
    """Code of a function that is only linked into its callers, and becomes machine code as part of them.

    Numba would also make machine code of it alone, which is never called: a quarter to a third of the compile time.
    """

    @property
    def codegen(self):
        return _CodegenWithoutEnvironments(self._codegen)

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name):
        self._ensure_finalized()
        return 0


class InnerCompiler(Compiler):
    """Compiles functions that only compiled code calls."""

    def _compile_bytecode(self):
        self.state.library = _LinkedLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return super()._compile_bytecode()


class OuterCompiler(Compiler):
    """Compiles functions that Python calls as well."""

    def _compile_bytecode(self):
        # Numba makes millions of small objects and keeps them until it is done: collecting garbage would free nothing.
        collecting = gc.isenabled()
        gc.disable()
        try:
            result = super()._compile_bytecode()
        finally:
            if collecting:
                gc.enable()
        for environment in result._find_referenced_environments():
            result.library.codegen.set_env(environment.env_name, environment)
        return result


OUTER = {**FLAGS, "pipeline_class": OuterCompiler}
INNER = {**FLAGS, "pipeline_class": InnerCompiler, "no_cpython_wrapper": True}

# ---------------------------------------------------------------------------------------------------------------
# Generators of random numbers as arguments

#: A part of the name of code on disk: it contains how its arguments are taken apart.
GENERATORS = "by capsule"


def _unbox_generator(kind, generator, c):
    """Numba's value of a NumPy generator, made without running Python code.

    Numba asks `ctypes`, in whose Python code may be raised whatever a signal's handler raises; numba does not look for
    that, and the process dies. The pointers are read where `ctypes` has them from: NumPy's struct `bitgen_t`
    (numpy/random/bitgen.h: state, next_uint64, next_uint32, next_double, next_raw), to which the capsule points.
    """
    builder, api = c.builder, c.pyapi
    failed = cgutils.alloca_once_value(builder, cgutils.true_bit)
    native = cgutils.create_struct_proxy(kind)(c.context, builder)
    bits = cgutils.create_struct_proxy(_BITS)(c.context, builder)
    word, text = cgutils.intp_t, cgutils.voidptr_t
    source = api.object_getattr_string(generator, "bit_generator")
    with cgutils.if_likely(builder, cgutils.is_not_null(builder, source)):
        capsule = api.object_getattr_string(source, "capsule")
        with cgutils.if_likely(builder, cgutils.is_not_null(builder, capsule)):
            name = c.context.insert_const_string(builder.module, "BitGenerator")
            get = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(text, [api.pyobj, text]), "PyCapsule_GetPointer"
            )
            pointer = builder.call(get, [capsule, name])
            with cgutils.if_likely(builder, cgutils.is_not_null(builder, pointer)):
                words = builder.bitcast(pointer, word.as_pointer())
                fields = "state", "fnptr_next_uint64", "fnptr_next_uint32", "fnptr_next_double"
                for i, field in enumerate(fields):
                    setattr(bits, field, builder.load(builder.gep(words, [word(i)])))
                bits.state_address, bits.bit_generator = bits.state, builder.ptrtoint(pointer, word)
                bits.parent = source
                native.bit_generator, native.parent = bits._getvalue(), generator
                if c.context.enable_nrt:  # else nobody counts, and what is counted here is never freed
                    native.meminfo = api.nrt_meminfo_new_from_pyobject(text(None), generator)
                builder.store(cgutils.false_bit, failed)
            api.decref(capsule)
        api.decref(source)
    return NativeValue(native._getvalue(), is_error=builder.load(failed))


_BITS = numba.types.NumPyRandomBitGeneratorType("bit_generator")

# ---------------------------------------------------------------------------------------------------------------
# Machine code on disk


def _described(kind):
    """Text that is different for different numba types, and the same in every Python process."""
    if not isinstance(kind, numba.types.BaseTuple):
        return str(kind)
    cls = None if hasattr(kind, "class_key") else getattr(kind, "instance_class", None)
    members = [_described(member) for member in kind.types]
    return str((str(kind), cls and (cls.__module__, cls.__qualname__), getattr(kind, "fields", None), members))


#: Numba's options, from the environment, with which a function becomes other machine code.
OPTIONS = ("BOUNDSCHECK", "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "ENABLE_AVX", "DEBUGINFO_DEFAULT")
#: What psABI's level 3 has, by LLVM's names: processors since 2013.
LEVEL_3 = {"avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sahf", "sse4.2", "xsave"}
#: What shipped code is made for, the best first: LLVM's processor and features, and what another must have to run it.
#: Level 4 has vectors of 512 bits, which LLVM leaves unused there unless told.
GENERATIONS = {
    ("x86-64-v4", "-prefer-256-bit"): LEVEL_3 | {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"},
    ("x86-64-v3", ""): LEVEL_3,
}
#: Machine code that came with the package, made by ``.ci/ship.py``.
SHIPPED = pathlib.Path(__file__).parents[1] / "machine_code"


def generations():
    """The generations of machine code that this processor runs, the best first."""
    features = get_host_cpu_features()
    return [made for made, needed in GENERATIONS.items() if all(features.get(name, False) for name in needed)]


@functools.cache
def shipped():
    """The generations of machine code that came with the package that are used, the best first.

    None where the user has named a processor (NUMBA_CPU_NAME): code is made for that instead.
    """
    own = numba.config.CPU_NAME is not None or numba.config.CPU_FEATURES is not None
    return [] if own or not SHIPPED.is_dir() else generations()


class _CodeOnDisk:
    """Machine code of one function on disk, for numba's dispatcher: a file for each signature.

    A file's name is a hash of all that its code depends on: versions, processor, the types of the arguments (the name
    of a `Compiled` class's type contains its fingerprint), and the fingerprint of the function. After an edit the name
    is another, so old code is never loaded. A file begins with a hash of its content; a damaged file is written anew.
    Numba's own cache depends on the line and the whole text of the function's file, comments included, does not notice
    edits of other files, and raises an error for a damaged file.

    What came with the package is looked for first, so that it does not depend on what is in a cache which code runs.
    """

    SECONDS = "seconds.txt"  #: beside the files: what, whatever its version, compiled for how long

    def __init__(self, function):
        self.function, self.began = function, {}

    @functools.cached_property
    def numba(self):
        """Numba's own cache of this function, which finds a writable folder; None if there is none."""
        try:
            return CompileResultCacheImpl(self.function)
        except (RuntimeError, OSError, TypeError):
            if os.path.exists(self.function.__code__.co_filename):
                warn_not_kept()
            return None

    @property
    def cache_path(self):
        return self.numba and self.numba.locator.get_cache_path()

    def name(self, signature, processor):
        """The file's name for a processor as in numba's keys; None for code that no other process could use."""
        kinds = signature if isinstance(signature, tuple) else (*signature.args, signature.return_type)
        made_from = fingerprint([self.function]), [_described(kind) for kind in kinds]
        versions = numba.__version__, llvmlite.__version__, sys.implementation.cache_tag, GENERATORS
        options = [int(getattr(numba.config, name) or 0) for name in OPTIONS]
        text = repr((*versions, options, processor, made_from))
        if UNIQUE in text or " at 0x" in text:
            return None
        name = f"{self.function.__module__}.{self.function.__qualname__}".replace("<", "").replace(">", "")
        return f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:32]}.code"

    def path(self, signature, codegen):
        """The file of this signature; None for code that is not kept."""
        name = None if self.numba is None else self.name(signature, codegen.magic_tuple())
        return name and pathlib.Path(self.cache_path, name)

    def _places(self, signature, codegen):
        """Where the code may be, the best first."""
        for made in shipped():
            name = self.name(signature, (codegen.magic_tuple()[0], *made))
            if name is not None:
                yield SHIPPED / name
        path = self.path(signature, codegen)
        if path is not None:
            yield path

    def _what(self, signature):
        """The function and the types as they are called, the same after an edit."""
        kinds = signature if isinstance(signature, tuple) else (*signature.args, signature.return_type)
        types = re.sub(r"#[\w-]+", "", repr([_described(kind) for kind in kinds]))
        types = hashlib.sha256(types.encode()).hexdigest()[:16]
        return f"{self.function.__module__}.{self.function.__qualname__}-{types}"

    def _seconds(self):
        """How long what is in this folder compiled for; empty if that cannot be read."""
        try:
            lines = pathlib.Path(self.cache_path, self.SECONDS).read_text().splitlines()
            return {what: float(seconds) for what, seconds in map(str.split, lines)}
        except (OSError, TypeError, ValueError):
            return {}

    def load_overload(self, signature, target):
        result = self._load(signature, target)
        if result is None:
            announce(self._seconds().get(self._what(signature)))
            self.began[str(signature)] = perf_counter()
            _compiling.depth += 1  # until it is saved
        return result

    def _load(self, signature, target):
        target.refresh()
        for path in self._places(signature, target.codegen()):
            try:
                content = path.read_bytes()
            except OSError:
                continue
            if hashlib.sha256(content[32:]).digest() != content[:32]:
                continue
            try:
                return CompileResultCacheImpl.rebuild(self.numba, target, pickle.loads(content[32:]))
            except (pickle.PickleError, ImportError, AttributeError, LookupError, TypeError):
                continue  # a class in it has been moved or removed
        return None

    def save_overload(self, signature, result):
        _compiling.depth -= 1
        path = self.path(signature, result.codegen)
        if path is None or not self.numba.check_cachable(result):
            return
        content = dumps(self.numba.reduce(result))
        part = path.with_name(f"{path.name}.{os.getpid()}.{id(result)}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(hashlib.sha256(content).digest() + content)
            os.replace(part, path)
            taken = perf_counter() - self.began.pop(str(signature), perf_counter())
            seconds = self._seconds() | {self._what(signature): taken}
            part.write_text("".join(f"{what} {taken:.2f}\n" for what, taken in seconds.items()))
            os.replace(part, path.with_name(self.SECONDS))
        except OSError:
            with contextlib.suppress(OSError):
                part.unlink()
            warn_not_kept()

    def flush(self):
        pass


def keep_on_disk(dispatcher):
    """Let the machine code of a jitted function be kept on disk; returns it."""
    dispatcher._cache = _CodeOnDisk(dispatcher.py_func)
    return dispatcher


def without_caches(found):
    """Let a user's functions be compiled in this process, whatever numba has kept of them on disk.

    Numba looks at the file of each by itself, so that what it loads may have an old version of a function of another
    file, which would then be part of code that is kept here. What was loaded so is compiled anew, and what calls it; a
    `TypeError` for functions that cannot be.
    """
    for one in found:
        if not isinstance(one, Dispatcher) and not isinstance(_cache_of(one), NullCache):
            name, kind = getattr(one, "py_func", one).__name__, type(one).__name__
            raise TypeError(
                f"`{name}` is a numba {kind} that is kept on disk, and not renewed there when a function "
                "of another file changes that it calls: leave out its `cache`."
            )
    jitted = [one for one in found if isinstance(one, Dispatcher)]
    for one in jitted:
        one._cache = NullCache()
    if any(one._cache_hits for one in jitted):
        signatures = [list(one.overloads) for one in jitted]
        for one in jitted:
            one._make_finalizer()()
            one._reset_overloads()
            one._cache_hits.clear()
        for one, compiled in zip(jitted, signatures, strict=True):
            can_compile, one._can_compile = one._can_compile, True
            try:
                for signature in compiled:
                    one.compile(signature)
            finally:
                one._can_compile = can_compile


def _cache_of(one):
    """The cache of what numba's `cfunc`, `vectorize` or `guvectorize` has made."""
    one = getattr(one, "gufunc_builder", one)
    one = getattr(one, "_dispatcher", getattr(one, "nb_func", one))
    return getattr(one, "cache", getattr(one, "_cache", NullCache()))


def _load_unless_compiling(cache, signature, target):
    """What numba's own cache has of a user's function, but not for code that is kept here."""
    return None if _compiling.depth > 0 else _load_of_numba(cache, signature, target)


class _Compiling(threading.local):
    """How many functions are being compiled in this thread whose code is kept here."""

    depth = 0


_compiling = _Compiling()
_check()
_load_of_numba = FunctionCache.load_overload
FunctionCache.load_overload = _load_unless_compiling
_unboxers.functions[numba.types.NumPyRandomGeneratorType] = _unbox_generator
