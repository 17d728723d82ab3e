"""Methods of `Compiled` objects at addresses: what calls them is compiled once, whatever the class of the object.

A **record** is an array of words: where the object's fields are, addresses of its compiled methods, one place for
each `Method`, and the fields themselves. Its numba type is the same for every class, so a loop that calls the methods
of a record is the same machine code for all of them and stays on disk; a class compiles its own methods, each when it
is first asked for. The addresses are taken by machine code (`Method.fill`) that is kept on disk like any other.

A call by address is numba's own calling convention, through a pointer: exceptions come out of it as they do of any
call, and arithmetic is the same to the last bit. It costs some nanoseconds, and LLVM does not see across it.

A record keeps the named tuple with the arrays that its fields point to, so whoever has the record has them all. In
plain Python a record is the object's named tuple, and a call is a call.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import config, types
from numba.extending import intrinsic

try:
    from numba.core import cgutils
    from numba.core.base import BaseContext
    from numba.core.callconv import CPUCallConv
    from numba.core.compiler import Flags

    for _part in ("compile_subroutine", "declare_function", "get_abi_sizeof", "pack_value", "unpack_value"):
        getattr(BaseContext, _part)
    for _part in ("call_function", "get_function_type", "return_status_propagate"):
        getattr(CPUCallConv, _part)
except (ImportError, AttributeError) as error:
    raise ImportError(
        f"pdmp does not know numba {numba.__version__}, whose calls by address have changed ({error}): "
        "pip install 'numba<0.69'."
    ) from None

from pdmp.native.classes import Compiled, entry, internal_inlined, readable

PLACES = 32  #: of words before the fields: where these are, and the methods
VECTOR = types.Array(types.float64, 1, "C")
PLAIN = bool(config.DISABLE_JIT)  #: plain Python, as decided when functions were decorated

_records: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # of objects: what they were, and their records


class Method:
    """A method that records have an address of, at the `place` from 1 on.

    ``function(fields, *arguments)`` calls it as ``unpacked(fields).name(*arguments)``; the arguments are 1 or 2
    `vectors`, contiguous and of the same length.
    """

    def __init__(self, place: int, function: Callable, returns: types.Type, vectors: int) -> None:
        self.place = place
        self.fill = _filling(_by_pointers(function, vectors), returns, vectors)
        self.call = _calling(returns, vectors, place)
        if PLAIN:
            self.call = lambda record, arguments: function(record, *arguments)


@intrinsic
def _unpacked(typing_context, fields):
    def generate(context, builder, signature, args):
        return context.unpack_value(builder, signature.return_type, args[0])

    return fields.dtype(fields), generate


@internal_inlined
def _fields_of(pointer):
    return _unpacked(pointer)


#: The named tuple of the fields at a pointer; in plain Python it is given itself.
unpacked: Any = (lambda native: native) if PLAIN else _fields_of


@intrinsic
def _vector(typing_context, pointer, n):
    """The contiguous vector of n numbers at a pointer."""
    from numba.np.arrayobj import populate_array  # not with `import pdmp`: it takes a tenth of that

    def generate(context, builder, signature, args):
        array, size = context.make_array(VECTOR)(context, builder), context.get_constant(types.intp, 8)
        populate_array(array, args[0], shape=[args[1]], strides=[size], itemsize=size, meminfo=None)
        return array._getvalue()

    return VECTOR(pointer, n), generate


def _by_pointers(function, vectors):
    """The function of the fields, the length of the vectors, and where each begins: five words, for seven an array."""
    given = internal_inlined(function)

    def of_one(fields, n, x):
        return given(fields, _vector(x, n))

    def of_two(fields, n, x, y):
        return given(fields, _vector(x, n), _vector(y, n))

    made = of_one if vectors == 1 else of_two
    made.__name__ = function.__name__
    return made


def _filling(function, returns, vectors):
    """An entry (native, record) -> (address, words of a record): it stores the fields, if the record has room."""

    @intrinsic
    def fill(typing_context, native, record):
        def generate(context, builder, signature, args):
            kind = signature.args[0]
            pointer = types.CPointer(kind)
            flags = Flags()
            flags.error_model, flags.nrt = "numpy", False
            made = context.compile_subroutine(builder, function, returns(pointer, *_words(vectors)), flags=flags)
            array = context.make_array(signature.args[1])(context, builder, args[1])
            fields = builder.gep(array.data, [context.get_constant(types.intp, PLACES)])
            word = fields.type.pointee
            size = PLACES + -(-context.get_abi_sizeof(context.get_data_type(kind)) // 8)
            with builder.if_then(builder.icmp_signed(">=", array.nitems, word(size))):
                place = builder.bitcast(fields, context.get_value_type(pointer))
                context.pack_value(builder, kind, _unowned(context, builder, kind, args[0]), place)
                builder.store(builder.ptrtoint(fields, word), array.data)
            address = builder.ptrtoint(context.declare_function(builder.module, made.fndesc), word)
            return context.make_tuple(builder, signature.return_type, [address, word(size)])

        return types.UniTuple(types.int64, 2)(native, record), generate

    def filled(native, record):
        return fill(native, record)

    filled.__name__ = filled.__qualname__ = f"fill{function.__name__}"
    return entry(filled)


def _unowned(context, builder, kind, value):
    """The value without its arrays' owners, which end with the call; the record keeps the arrays."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo, array.parent = (cgutils.get_null_value(p.type) for p in (array.meminfo, array.parent))
        return array._getvalue()
    for k, member in enumerate(kind.types if isinstance(kind, types.BaseTuple) else ()):
        part = _unowned(context, builder, member, builder.extract_value(value, k))
        value = builder.insert_value(value, part, k)
    return value


def _words(vectors):
    """Types of the length of the vectors, and of the pointers to them."""
    return (types.intp, *[types.CPointer(types.float64)] * vectors)


def _calling(returns, vectors, place):
    """An intrinsic (record, arguments) that calls what is at this place."""
    expected, kinds = (types.voidptr, *_words(vectors)), (VECTOR,) * vectors

    @intrinsic
    def call(typing_context, record, arguments):
        def generate(context, builder, signature, args):
            words = context.make_array(signature.args[0])(context, builder, args[0]).data
            made = context.call_conv.get_function_type(returns, expected)
            at = builder.gep(words, [context.get_constant(types.intp, place)])
            function = builder.inttoptr(builder.load(at), made.as_pointer())
            arrays = [context.make_array(VECTOR)(context, builder, a) for a in cgutils.unpack_tuple(builder, args[1])]
            given = [builder.inttoptr(builder.load(words), cgutils.voidptr_t), arrays[0].nitems]
            given += [array.data for array in arrays]
            status, answer = context.call_conv.call_function(builder, function, returns, expected, given)
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return answer

        return (returns(record, arguments), generate) if tuple(arguments) == kinds else None

    return call


def record_of(owner: Compiled, *methods: Method) -> np.ndarray:
    """The record of an object as it is now, with the addresses of these methods.

    It is made anew where a field is no longer what it was; a run that goes on with the old one keeps that.
    """
    native = owner.native
    if PLAIN:
        return native
    old, record = _records.get(owner, (None, None))
    if not _same(old, native):
        record = None
    for method in methods:
        if record is not None and record[method.place] != 0:
            continue
        with readable(type(owner).__name__):
            address, words = method.fill(native, _empty(PLACES, None) if record is None else record)
            if record is None:
                record = _empty(words, native)
                method.fill(native, record)
        record[method.place] = address
        _records[owner] = native, record
    return record


def _empty(words, native):
    """A record of so many words; the memory behind it keeps what its fields point to."""
    memory: Any = (ctypes.c_int64 * words)()
    memory.kept = native
    return np.frombuffer(memory, np.int64)


def _same(old, new):
    """Whether two named tuples have the same arrays, numbers and named tuples."""
    if isinstance(new, tuple):
        return type(old) is type(new) and all(map(_same, old, new))
    return old is new or not isinstance(new, np.ndarray) and type(old) is type(new) and old == new
