"""Other seeds for the whole suite: PDMP_TEST_SEED is an integer that is added to every seed of a generator of numpy.

A test that passes for its own seed only is wrong. 0, which is the default, leaves everything as it is.
"""

from __future__ import annotations

import os

import numpy as np

VARIABLE = "PDMP_TEST_SEED"
_default_rng, _PCG64 = np.random.default_rng, np.random.PCG64


def moved(seed, shift):
    """A seed with `shift` added: of an integer, of the first of several, or of a sequence whatever it has spawned."""
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        return int(seed) + shift
    if isinstance(seed, np.random.SeedSequence):
        return np.random.SeedSequence(moved(seed.entropy, shift), spawn_key=seed.spawn_key, pool_size=seed.pool_size)
    if isinstance(seed, (list, tuple)) and seed:
        return [moved(seed[0], shift), *seed[1:]]
    return seed  # None, and generators that exist already


def install():
    """Add the number in the environment to the seeds of all generators that are made from now on in this process."""
    text = os.environ.get(VARIABLE, "0") or "0"
    try:
        shift = int(text)
    except ValueError:
        raise ValueError(f"{VARIABLE} must be an integer, got {text!r}.") from None
    if shift < 0:
        raise ValueError(f"{VARIABLE} must not be negative, got {shift}.")
    if shift:
        np.random.default_rng = lambda seed=None: _default_rng(moved(seed, shift))
        np.random.PCG64 = lambda seed=None: _PCG64(moved(seed, shift))
