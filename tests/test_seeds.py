"""PDMP_TEST_SEED: what it shifts, and what it leaves alone."""

import numpy as np
import pytest

from tests import seeds

pytestmark = pytest.mark.exact


@pytest.mark.parametrize("seed", [3, np.int64(3), [3, 1], (3, 1)])
def test_a_seed_is_moved(seed):
    expected = 8 if np.ndim(seed) == 0 else [8, 1]
    assert seeds.moved(seed, 5) == expected


def test_a_sequence_is_moved_with_what_it_has_spawned():
    child = np.random.SeedSequence(3).spawn(2)[1]
    expected = np.random.SeedSequence(8).spawn(2)[1]
    assert np.array_equal(seeds.moved(child, 5).generate_state(4), expected.generate_state(4))
    assert child.entropy == 3  # the one that was given stays as it is
    generator = seeds._default_rng(1)
    assert seeds.moved(generator, 5) is generator and seeds.moved(None, 5) is None


@pytest.fixture
def restored(monkeypatch):
    monkeypatch.setattr(np.random, "default_rng", seeds._default_rng)
    monkeypatch.setattr(np.random, "PCG64", seeds._PCG64)
    return monkeypatch


def test_installed_it_shifts_every_generator(restored):
    restored.setenv(seeds.VARIABLE, "5")
    seeds.install()
    assert np.random.default_rng(3).random() == seeds._default_rng(8).random()
    sequence = np.random.SeedSequence(3).spawn(1)[0]
    moved = np.random.Generator(np.random.PCG64(sequence))
    assert moved.random() == seeds._default_rng(np.random.SeedSequence(8).spawn(1)[0]).random()
    assert np.random.default_rng().random() != np.random.default_rng().random()


def test_by_default_nothing_is_replaced(restored):
    for value in ("", "0"):
        restored.setenv(seeds.VARIABLE, value)
        seeds.install()
        assert np.random.default_rng is seeds._default_rng and np.random.PCG64 is seeds._PCG64


@pytest.mark.parametrize("value", ["one", "-1", "1.5"])
def test_what_is_no_shift_is_refused(value, restored):
    restored.setenv(seeds.VARIABLE, value)
    with pytest.raises(ValueError, match="PDMP_TEST_SEED must"):
        seeds.install()
