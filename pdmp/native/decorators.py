"""Which functions become machine code, and how: `compiled` for methods, the others for functions.

====================  ======================================================================================
`compiled`            a method of a `Compiled` class
`entry`               a function that Python calls with a `Compiled` object, and that is kept on disk
`helper`              a function that compiled code calls, or a test from Python
`inlined`             a small one, called where speed counts
`internal`            one that Python never calls, not even a test: less to compile
`internal_inlined`    a small one of these
`vectorised`          a loop over arrays that may reorder its sums for speed
`vectorised_inlined`  a small one of these
`allocating`          one of these that creates arrays
`fused_inlined`       a small one in which a product and a sum may be rounded once
`in_plain_python`     an intrinsic of numba, with what stands for it in plain Python
====================  ======================================================================================

Each says itself whether sums may be reordered. Numba would else pass that on from the caller for which it first
compiles a function: the last bits of a run would depend on what ran before it.

Inlining is LLVM's (``forceinline``), never numba's own (``inline="always"``), which returned wrong numbers for two
levels of calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar, overload

import numba
from numba.extending import intrinsic

from pdmp.native.messages import warn_not_kept

try:
    from pdmp.native.numba_internals import FLAGS, INNER, OUTER, keep_on_disk, without_caches
except (ImportError, AttributeError):  # numba has changed its private parts: slower to compile, the same results
    FLAGS = INNER = OUTER = {"nogil": True, "error_model": "numpy"}

    def keep_on_disk(dispatcher):
        try:
            dispatcher.enable_caching()
        except RuntimeError:
            warn_not_kept()
        return dispatcher

    def without_caches(dispatchers):
        """Nothing: numba's own cache is that of all functions here too."""


#: Whether numba's private parts are in use; without them, compiled methods count references and may create arrays.
FAST_COMPILATION = "pipeline_class" in OUTER

EXACT = {"fastmath": False}
helper = numba.njit(**OUTER, **EXACT)
inlined = numba.njit(forceinline=True, **OUTER, **EXACT)
internal = numba.njit(**INNER, **EXACT)
internal_inlined = numba.njit(forceinline=True, **INNER, **EXACT)
#: Freedoms with floating-point numbers that keep infinities and NaN; results may differ from Python's in the last bits.
FAST = {"arcp", "contract", "afn", "reassoc", "nsz"}
vectorised = numba.njit(fastmath=FAST, **FLAGS)
vectorised_inlined = numba.njit(forceinline=True, fastmath=FAST, **OUTER)
fused_inlined = numba.njit(forceinline=True, fastmath={"contract"}, **OUTER)
allocating = numba.njit(fastmath=FAST, **(FLAGS | {"_nrt": True} if "_nrt" in FLAGS else FLAGS))  # unset: the caller's


def entry(function: Callable) -> Callable:
    """Compile a function that Python calls, and keep the machine code on disk."""
    dispatcher = numba.njit(**OUTER, **EXACT)(function)
    return dispatcher if numba.config.DISABLE_JIT else keep_on_disk(dispatcher)


def in_plain_python(body: Callable) -> Callable:
    """Make an intrinsic of numba that in plain Python is `body`: with ``NUMBA_DISABLE_JIT=1``, and in rehearsals."""

    def made(definition):
        if numba.config.DISABLE_JIT:
            return body
        found = intrinsic(definition)
        found.in_plain_python = body
        return found

    return made


def method_options(method):
    """Numba's options for a method marked with `compiled`."""
    options = {**INNER, **EXACT, "forceinline": method.__inline__}
    return {**options, "_nrt": method.__allocates__} if "_nrt" in options else options


F = TypeVar("F", bound=Callable)


@overload
def compiled(function: F) -> F: ...
@overload
def compiled(*, allocates: bool = False, inline: bool = True) -> Callable[[F], F]: ...
def compiled(function: Any = None, *, allocates: bool = False, inline: bool = True) -> Any:
    """Mark a method of a `Compiled` class as one that compiled code may call.

    Compiled methods work in place on what they are given.

    Parameters
    ----------
    function : callable
        The method.
    allocates : bool, default False
        Whether the method creates arrays (``np.zeros``, ``X[i] * 2``). It is then compiled with numba's reference
        counts, which cost some speed.
    inline : bool, default True
        Whether the method is inlined wherever it is called. A long one that is called from several places compiles
        faster with False.

    Returns
    -------
    callable
        The method itself; a decorator if only options are given.

    Examples
    --------
    >>> import pdmp
    >>> class Halving(pdmp.native.classes.Compiled):
    ...     @pdmp.compiled
    ...     def half(self, x):
    ...         return 0.5 * x
    >>> Halving().half(3.0)
    1.5
    """
    if function is None:
        return lambda method: compiled(method, allocates=allocates, inline=inline)
    function.__compiled__ = True
    function.__allocates__ = allocates
    function.__inline__ = inline
    return function


@inlined
def positive_part(x):
    """max(0, x), with NaN and -inf kept: ``max(0.0, x)`` would return 0 for them."""
    return 0.0 if -math.inf < x < 0.0 else x


@inlined
def larger(a, b):
    """The larger of two numbers; NaN if one of them is."""
    return a if a >= b or math.isnan(a) else b
