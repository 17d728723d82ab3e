"""Prefetching, which numba lacks: a hint to the processor to load a row that will be read soon."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic

from pdmp.native.classes import inlined

LINE = 64  #: bytes in a cache line

if config.DISABLE_JIT:

    def _fetch(data, i):
        pass

else:

    @intrinsic
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


@inlined
def prefetch(data, i):
    """Load row i of a 2-d array into the cache: its first four lines; the processor fetches the rest of a long row."""
    _fetch(data, i)
