r"""Safeguards against large gradient estimates: what is done to ∇Û before it is used.

=========  =================================  ================================
clip_norm  v min(1, c / \|v\|)                acts where \|v\| > c
clip_value each vⱼ to the interval [lo, hi]   acts where one lies outside
normalise  c v / \|v\|                        acts wherever v ≠ 0
=========  =================================  ================================

Each makes the estimate biased, and so the law that is sampled: by how much depends on how often it acts, which a run
counts. Written as a safeguard and described as one, "clipping" in some texts is `normalise`: it always rescales.
"""

from __future__ import annotations

import math

import numpy as np

from pdmp.native.classes import Compiled, compiled


class Unclipped(Compiled):
    """No safeguard; the base of the others, which define ``act(v)``: change `v` in place, return 1 if it changed."""

    @compiled
    def act(self, v):
        return 0


class ClipNorm(Unclipped):
    """v min(1, c / |v|)."""

    largest: float

    def __init__(self, largest):
        self.largest = largest

    @compiled
    def act(self, v):
        square = 0.0
        for j in range(v.shape[0]):
            square += v[j] * v[j]
        norm = math.sqrt(square)
        if not norm > self.largest:
            return 0
        for j in range(v.shape[0]):
            v[j] *= self.largest / norm
        return 1


class ClipValue(Unclipped):
    """Each entry to [low, high]."""

    low: float
    high: float

    def __init__(self, low, high):
        self.low, self.high = low, high

    @compiled
    def act(self, v):
        acted = 0
        for j in range(v.shape[0]):
            if v[j] < self.low:
                v[j] = self.low
                acted = 1
            elif v[j] > self.high:
                v[j] = self.high
                acted = 1
        return acted


class Normalise(Unclipped):
    """c v / |v|, and 0 where v is 0."""

    length: float

    def __init__(self, length):
        self.length = length

    @compiled
    def act(self, v):
        square = 0.0
        for j in range(v.shape[0]):
            square += v[j] * v[j]
        if square == 0.0:
            return 0
        norm = math.sqrt(square)
        for j in range(v.shape[0]):
            v[j] *= self.length / norm
        return 1


def as_safeguard(clip_norm, clip_value, normalise):
    """The safeguard that these options of a sampler ask for, at most one of them."""
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
    if isinstance(value, (bool, str)) or np.ndim(value) != 0 or not 0.0 < value < math.inf:
        raise ValueError(f"`{name}` must be a positive number, got {value!r}.")
    return {"clip_norm": ClipNorm, "normalise": Normalise}[name](float(value))
