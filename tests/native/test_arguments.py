"""Numbers that are given as arguments."""

import numpy as np
import pytest

from pdmp.native.arguments import count, seed_number

pytestmark = pytest.mark.exact


def test_whole_numbers():
    assert [count("n", value) for value in (1, 1e3, np.int32(7))] == [1, 1000, 7]
    for value in (True, False, 0, 1.5, "2", None):
        with pytest.raises(ValueError, match="^`n` must be a whole number, at least 1, got "):
            count("n", value)


def test_the_seed_of_a_sequence_is_of_all_that_it_is():
    """One that has spawned children is another, or the children's numbers would be those of a run."""
    fresh, spawned = np.random.SeedSequence(5), np.random.SeedSequence(5)
    spawned.spawn(1)
    child, larger = np.random.SeedSequence(5).spawn(2)[1], np.random.SeedSequence(5, pool_size=8)
    assert seed_number("seed", fresh) == 5
    found = [seed_number("seed", one) for one in (spawned, child, larger)]
    assert 5 not in found and found[0] == seed_number("seed", spawned)
