"""Vectorised loops over rows of a matrix: products, exponentials and buffers that numba alone does not make fast."""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.np import arrayobj

from pdmp.native.decorators import fused_inlined, in_plain_python
from pdmp.native.prefetch import LINE

BLOCK = 64  #: data handled together, so that their exponentials are vectorised; rows of a tile

# ---------------------------------------------------------------------------------------------------------------
# What numba lacks: a buffer on the stack, and 2^k without a call

WIDE = ir.VectorType(ir.DoubleType(), 8)


def _nearest_number(z):
    return (float(z) + 1.5 * 2.0**52) - 1.5 * 2.0**52  # NumPy's own is slow for one number


_nearest = _nearest_number if config.DISABLE_JIT else np.rint


def _load8(context, builder, data_type, data, i, c):
    """Eight consecutive entries of a row of a 2-d array as a vector of doubles."""
    array = context.make_array(data_type)(context, builder, data)
    pointer = cgutils.get_item_pointer(context, builder, data_type, array, [i, c])
    item = context.get_data_type(data_type.dtype)
    pointer = builder.bitcast(pointer, ir.VectorType(item, 8).as_pointer())
    vector = builder.load(pointer, align=data_type.dtype.bitwidth // 8)  # of one entry: rows may start anywhere
    return vector if vector.type == WIDE else builder.fpext(vector, WIDE)


def _wide(context, builder, array_type, array):
    """Pointer to the first eight entries of a buffer."""
    return builder.bitcast(context.make_array(array_type)(context, builder, array).data, WIDE.as_pointer())


def _plain_dot(data, i, c, x, eights):
    return np.dot(data[i, c : c + 8 * eights].astype(float), x[: 8 * eights])


@in_plain_python(_plain_dot)
def dot(context, data, i, c, x, eights):
    """data[i, c : c + m] · x[:m] in vector registers, m = 8 eights; c + m within the row's padding, x a buffer."""

    def generate(context, builder, signature, args):
        wide = _wide(context, builder, signature.args[3], args[3])
        total = cgutils.alloca_once(builder, WIDE)
        builder.store(ir.Constant(WIDE, [0.0] * 8), total)
        with cgutils.for_range(builder, args[4]) as loop:
            column = builder.add(args[2], builder.mul(loop.index, loop.index.type(8)))
            row = _load8(context, builder, signature.args[0], *args[:2], column)
            product = builder.fmul(row, builder.load(builder.gep(wide, [loop.index]), align=LINE))
            builder.store(builder.fadd(builder.load(total), product), total)
        total, width = builder.load(total), 8
        while width > 1:  # halves are added until one number is left
            width //= 2
            halves = [
                builder.shuffle_vector(
                    total, total, ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(s, s + width)))
                )
                for s in (0, width)
            ]
            total = builder.fadd(*halves)
        return builder.extract_element(total, ir.IntType(32)(0))

    return types.float64(data, i, c, x, eights), generate


def _plain_add8(out, weight, data, i, c):
    out[:8] += weight * data[i, c : c + 8]


@in_plain_python(_plain_add8)
def add8(context, out, weight, data, i, c):
    """out[:8] += weight * data[i, c : c + 8] in vector registers; out is a buffer."""

    def generate(context, builder, signature, args):
        row = _load8(context, builder, signature.args[2], *args[2:])
        pointer = _wide(context, builder, signature.args[0], args[0])
        lane = ir.IntType(32)
        one = builder.insert_element(ir.Constant(WIDE, ir.Undefined), args[1], lane(0))
        weights = builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(lane, 8), [0] * 8))
        total = builder.fadd(builder.load(pointer, align=LINE), builder.fmul(weights, row))
        builder.store(total, pointer, align=LINE)
        return context.get_dummy_value()

    return types.none(out, weight, data, i, c), generate


@in_plain_python(lambda: np.empty(BLOCK))
def buffer(context):
    """An uninitialised float64 array of length `BLOCK` on the stack of the function that calls this."""
    array_type = types.Array(types.float64, 1, "C")

    def generate(context, builder, signature, args):
        pointer = cgutils.alloca_once(builder, ir.ArrayType(ir.DoubleType(), BLOCK))
        pointer.align = LINE
        array = context.make_array(array_type)(context, builder)
        size = context.get_constant(types.intp, BLOCK)
        item = context.get_constant(types.intp, 8)
        data = builder.bitcast(pointer, ir.DoubleType().as_pointer())
        arrayobj.populate_array(array, data=data, shape=(size,), strides=(item,), itemsize=item, meminfo=None)
        return array._getvalue()

    return array_type(), generate


@in_plain_python(lambda k: np.float64(2.0**k))  # beside float32 a number of Python would be one as well
def _power_of_two(context, k):
    """2^k for a whole-numbered float k, -1022 to 1023: k + 1023 is written into the exponent bits of a double."""

    def generate(context, builder, signature, args):
        double, integer = ir.DoubleType(), ir.IntType(64)
        shifted = builder.fadd(args[0], double(1.5 * 2.0**52 + 1023.0))
        return builder.bitcast(builder.shl(builder.bitcast(shifted, integer), integer(52)), double)

    return types.float64(types.float64), generate


@fused_inlined
def exp(z):
    """exp(z) without a branch or a call, z clipped to [-708, 708]; relative error below 1e-14, NaN stays NaN."""
    z = float(z)
    z = 708.0 if z > 708.0 else z
    z = -708.0 if z < -708.0 else z
    k = _nearest(z * 1.4426950408889634)
    r = z - k * 0.693147180369123816490
    r = r - k * 1.90821492927058770002e-10
    p = 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p * _power_of_two(k)


@fused_inlined
def log1p(t):
    """log(1 + t) of -1/2 <= t <= 1 without a branch or a call, by a series; relative error below 1e-14."""
    s = t / (2.0 + t)
    q = s * s
    p = 1.0 / 27.0
    p = p * q + 1.0 / 25.0
    p = p * q + 1.0 / 23.0
    p = p * q + 1.0 / 21.0
    p = p * q + 1.0 / 19.0
    p = p * q + 1.0 / 17.0
    p = p * q + 1.0 / 15.0
    p = p * q + 1.0 / 13.0
    p = p * q + 1.0 / 11.0
    p = p * q + 1.0 / 9.0
    p = p * q + 1.0 / 7.0
    p = p * q + 1.0 / 5.0
    p = p * q + 1.0 / 3.0
    p = p * q + 1.0
    return 2.0 * s * p


def aligned(shape, dtype, zeros=True):
    """An array of zeros, or of anything, that starts at a cache line."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    raw = np.empty(size + LINE, np.uint8)
    start = -raw.ctypes.data % LINE
    array = raw[start : start + size].view(dtype).reshape(shape)
    if zeros:
        array[...] = 0
    return array
