"""Prefetching, which numba lacks: a hint to load a row that will be read soon, to the processor or from a file.

And numbers at addresses, of columns that are not in one array.
"""

from __future__ import annotations

import ctypes
import mmap

from llvmlite import ir
from numba import types
from numba.core import cgutils

from pdmp.native.decorators import in_plain_python, inlined

LINE = 64  #: bytes in a cache line


@in_plain_python(lambda address: ctypes.c_double.from_address(int(address)).value)
def read_at(context, address):
    """The float64 at an address."""

    def generate(context, builder, signature, args):
        number = ir.DoubleType()
        place = builder.inttoptr(args[0], number.as_pointer())
        return builder.load(place, typ=number)

    return types.float64(types.int64), generate


@in_plain_python(lambda address: None)
def fetch_at(context, address):
    """Load what is at an address into the cache."""

    def generate(context, builder, signature, args):
        byte, flag = ir.IntType(8), ir.IntType(32)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte.as_pointer()], ir.FunctionType(ir.VoidType(), [byte.as_pointer()] + [flag] * 3)
        )
        builder.call(function, [builder.inttoptr(args[0], byte.as_pointer()), flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.none(types.int64), generate


@in_plain_python(lambda data, i: None)
def _fetch(context, data, i):

    def generate(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        stride = cgutils.unpack_tuple(builder, array.strides)[0]
        byte = ir.IntType(8)
        row = builder.ptrtoint(array.data, stride.type)
        row = builder.add(row, builder.mul(builder.sext(args[1], stride.type), stride))
        flag = ir.IntType(32)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte.as_pointer()], ir.FunctionType(ir.VoidType(), [byte.as_pointer()] + [flag] * 3)
        )
        for line in range(4):
            offset = stride.type(line * LINE)
            with builder.if_then(builder.icmp_signed("<", offset, stride)):
                pointer = builder.inttoptr(builder.add(row, offset), byte.as_pointer())
                builder.call(function, [pointer, flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.none(data, i), generate


if hasattr(mmap, "MADV_WILLNEED"):

    @in_plain_python(lambda data, i: 0)
    def _ask(context, data, i):

        def generate(context, builder, signature, args):
            array = context.make_array(signature.args[0])(context, builder, args[0])
            stride = cgutils.unpack_tuple(builder, array.strides)[0]
            word, byte, flag = stride.type, ir.IntType(8), ir.IntType(32)
            row = builder.ptrtoint(array.data, word)
            row = builder.add(row, builder.mul(builder.sext(args[1], word), stride))
            page = builder.and_(row, word(-mmap.PAGESIZE))
            length = builder.sub(builder.add(row, stride), page)
            kind = ir.FunctionType(flag, [byte.as_pointer(), word, flag])
            function = cgutils.get_or_insert_function(builder.module, kind, "madvise")
            return builder.call(function, [builder.inttoptr(page, byte.as_pointer()), length, flag(mmap.MADV_WILLNEED)])

        return types.int32(data, i), generate

else:  # a system that cannot be asked

    @inlined
    def _ask(data, i):
        return 0


@inlined
def ask(data, i):
    """Ask the operating system for row i of an array in a file: it is read from the disk while others are looked at.

    Where the file is in memory already that takes a microsecond. Nothing happens on systems without ``madvise``.
    Returns 0, or -1 where the system refuses, which is no error: the row is read when it is looked at.
    """
    return _ask(data, i)


@inlined
def prefetch(data, i):
    """Load row i of a 2-d array into the cache: its first four lines; the processor fetches the rest of a long row."""
    _fetch(data, i)
