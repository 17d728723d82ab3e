r"""Safeguards against large gradient estimates: what is done to ∇Û before it is used.

=========  =================================  ================================
clip_norm  v min(1, c / \|v\|)                acts where \|v\| > c
clip_value each vⱼ to the interval [lo, hi]   acts where one lies outside
normalise  c v / \|v\|                        acts wherever v ≠ 0
=========  =================================  ================================

Each of them makes the estimate biased, and with it the law that is sampled. How large the bias is depends on how often
the safeguard acts: ``run.stats["mean_clipped"]`` is the fraction of steps. Some texts call `normalise` clipping, though
it changes every estimate.
"""

from __future__ import annotations

import math

import numpy as np

from pdmp.gradients.provider import dot
from pdmp.native.arguments import positive
from pdmp.native.classes import Compiled, compiled


class Unclipped(Compiled):
    """No safeguard, and the base of the others: ``apply(v)`` changes `v` in place, and returns 1 if it did, else 0."""

    @compiled
    def apply(self, v):
        return 0


class ClipNorm(Unclipped):
    """v min(1, c / |v|): vectors longer than c get the length c."""

    largest: float  #: c

    def __init__(self, largest):
        self.largest = largest

    @compiled
    def apply(self, v):
        square = dot(v, v)
        norm = math.sqrt(square)
        if not norm > self.largest:
            return 0
        for j in range(v.shape[0]):
            v[j] *= self.largest / norm
        return 1


class ClipValue(Unclipped):
    """Each entry outside [low, high] is moved to the nearer end of it."""

    low: float
    high: float

    def __init__(self, low, high):
        self.low, self.high = low, high

    @compiled
    def apply(self, v):
        changed = 0
        for j in range(v.shape[0]):
            if v[j] < self.low:
                v[j] = self.low
                changed = 1
            elif v[j] > self.high:
                v[j] = self.high
                changed = 1
        return changed


class Normalise(Unclipped):
    """c v / |v|: every vector gets the length c, but for v = 0, which stays 0."""

    length: float  #: c

    def __init__(self, length):
        self.length = length

    @compiled
    def apply(self, v):
        square = dot(v, v)
        if square == 0.0:
            return 0
        norm = math.sqrt(square)
        for j in range(v.shape[0]):
            v[j] *= self.length / norm
        return 1


def as_safeguard(clip_norm, clip_value, normalise):
    """The safeguard that these options of a sampler stand for; a `ValueError` if more than one is given."""
    given = {"clip_norm": clip_norm, "clip_value": clip_value, "normalise": normalise}
    given = {name: value for name, value in given.items() if value is not None}
    if not given:
        return Unclipped()
    if len(given) > 1:
        raise ValueError(f"at most one of `clip_norm`, `clip_value`, `normalise` can be given, got {len(given)}.")
    name, value = given.popitem()
    if name == "clip_value":
        try:
            low, high = (-value, value) if np.ndim(value) == 0 else map(float, value)
            if not -math.inf < low < high < math.inf:
                raise ValueError
        except (TypeError, ValueError):
            raise ValueError(f"`clip_value` must be a number c > 0 or a pair lo < hi, got {value!r}.") from None
        return ClipValue(float(low), float(high))
    return {"clip_norm": ClipNorm, "normalise": Normalise}[name](positive(name, value))
