"""A second stream of random numbers inside one chain, whose state is an array.

The coarse chain of an extrapolation draws its batches from a stream of its own, so that the fine chain's numbers do not
depend on when the coarse chain takes its step. It is part of the law of a seed: with one thread and with two, the path
is the same.

References
----------
Doty-Humphrey, C. (2014), PractRand (sfc32).
"""

from __future__ import annotations

import hashlib
import math
import pathlib

import numpy as np
from numba.extending import intrinsic, overload

from pdmp.native.classes import Compiled, compiled

#: Numba's cache does not notice a change of the functions below. They refer to this hash of the file, which changes.
SOURCE = int(hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()[:12], 16)

_options = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


@intrinsic
def _with_words(typing, stream, words):
    def build(context, builder, signature, args):
        return context.make_tuple(builder, signature.return_type, [args[1]])

    return stream(stream, words), build


def with_words(stream, words):
    """The compiled form of a `Stream`, with the state `words`."""
    _ = SOURCE
    return stream._replace(words=words)


@overload(with_words, jit_options=_options)
def _(stream, words):
    return lambda stream, words: _with_words(stream, words)


class Stream(Compiled):
    """Random numbers with the methods of `numpy.random.Generator` that samplers use, from the generator sfc32.

    Its state is 128 bits, of which 32 are a counter: four words in an int64 array, which lies in the memory of a
    process and so is in every checkpoint. ``self.at(words)`` is the stream with that state.
    """

    words: np.ndarray

    def __init__(self):
        self.words = np.zeros(4, np.int64)

    @staticmethod
    def seeded(rng):
        """The state (4,) of a new stream, seeded by a `numpy.random.Generator`."""
        a, b, c = (int(w) for w in rng.integers(0, 2**32, 3))
        counter, mask = 1, 2**32 - 1
        for _ in range(12):
            out = (a + b + counter) & mask
            counter += 1
            a, b, c = b ^ (b >> 9), (c + (c << 3)) & mask, (((c << 21) | (c >> 11)) + out) & mask
        return np.array([a, b, c, counter])

    @compiled
    def at(self, words):
        """The stream with the state `words`, which its draws change in place."""
        return with_words(self, words)

    @compiled
    def random(self):
        """Uniform on [0, 1), with 53 random bits."""
        words, mask = self.words, 0xFFFFFFFF
        a, b, c, counter = words[0], words[1], words[2], words[3]
        high = (a + b + counter) & mask
        a, b, c = b ^ (b >> 9), (c + (c << 3)) & mask, (((c << 21) | (c >> 11)) + high) & mask
        low = (a + b + counter + 1) & mask
        words[0], words[1], words[2] = b ^ (b >> 9), (c + (c << 3)) & mask, (((c << 21) | (c >> 11)) + low) & mask
        words[3] = (counter + 2) & mask
        return ((high >> 5) * 67108864.0 + (low >> 6)) / 9007199254740992.0

    @compiled
    def standard_normal(self):
        """Standard normal, by Box and Muller's formula; the second number that it gives is not used."""
        radius = math.sqrt(-2.0 * math.log(1.0 - self.random()))
        return radius * math.cos(2.0 * math.pi * self.random())

    @compiled
    def standard_exponential(self):
        """Exponential of mean 1, by inversion."""
        return -math.log(1.0 - self.random())
