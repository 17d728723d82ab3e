"""Numbers, words and arrays that are given as arguments: what is taken, at its limits, and what is said of the rest."""

import math
import types

import numpy as np
import pytest

from pdmp.native import arguments, definite, explanations
from pdmp.native.arguments import (
    count,
    fraction,
    number,
    one_of,
    per_coordinate,
    positive,
    refuse_unreal,
    seed_number,
    told,
)

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
    words = child.generate_state(4)  # of 32 bits each, the lowest first
    assert found[1] == sum(int(word) << 32 * k for k, word in enumerate(words)) and found[1] >= 2**64


TAKEN = {
    "number": (lambda: [number("n", v, least=2.0) for v in (2, 2.0, np.float32(2.5))], [2.0, 2.0, 2.5]),
    "a negative number": (lambda: number("n", -1e300), -1e300),
    "a word for a number": (lambda: number("n", "auto", least=0.0, also=("auto",)), "auto"),
    "positive": (lambda: [positive("n", v) for v in (5e-324, np.int64(3))], [5e-324, 3.0]),
    "a word for a positive one": (lambda: positive("n", "scale", also=("auto", "scale")), "scale"),
    "fraction": (lambda: [fraction("n", v) for v in (0, 1.0 - 2.0**-53)], [0.0, 1.0 - 2.0**-53]),
    "a fraction up to 1": (lambda: fraction("n", 1, one=True), 1.0),
    "count": (lambda: [count("n", v, least=0, most=8) for v in (0, 8, 8.0)], [0, 8, 8]),
    "a large count": (lambda: count("n", 2**62), 2**62),
    "one of": (lambda: [one_of("n", v, ("a", 1, None)) for v in ("a", 1, None)], [None] * 3),
    "flag": (lambda: [arguments.flag("n", v) for v in (False, np.bool_(True))], [False, True]),
    "one for all": (lambda: per_coordinate("n", 2, 3).tolist(), [2.0] * 3),
    "one for each": (lambda: per_coordinate("n", (0, 1, 2), 3, zero=True).tolist(), [0.0, 1.0, 2.0]),
    "a word for each": (lambda: per_coordinate("n", "auto", 3, also=("auto",)), "auto"),
    "coordinates": (lambda: [arguments.coordinates("n", v, 3).tolist() for v in (2, [0, 2], [])], [[2], [0, 2], []]),
    "a mask": (lambda: arguments.coordinates("n", [True, False, True], 3).tolist(), [0, 2]),
    "real": (lambda: arguments.real("n", [[1, 2]], 2).tolist(), [[1.0, 2.0]]),
    "matrix": (lambda: arguments.matrix("n", [[1, 2]], np.float32).dtype, np.float32),
    "not masked": (lambda: refuse_unreal("n", np.ma.array([1.0, 2.0], mask=[False, False])), None),
}


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_taken(name):
    make, expected = TAKEN[name]
    assert make() == expected


def nested(depth):
    """A number in so many lists."""
    value = 1.0
    for _ in range(depth):
        value = [value]
    return value


#: `told` has 200 letters of a value, the last for what is left out.
LONG = "x" * 199
FRAME = types.SimpleNamespace(dtypes={"a": np.dtype(float), "b": np.dtype("M8[D]"), "c": np.dtype(complex)})
REFUSED = {
    "number below": (lambda: number("n", 1.999, least=2.0), "`n` must be a finite number, at least 2, got 1.999."),
    "number nan": (lambda: number("n", math.nan), "`n` must be a finite number, got nan."),
    "number of words": (
        lambda: number("n", "best", least=1.0, also=("auto", "scale")),
        "`n` must be a finite number, at least 1, or 'auto' or 'scale', got 'best'.",
    ),
    "truth value": (lambda: number("n", True), "`n` must be a finite number, got True."),
    "complex": (lambda: positive("n", np.complex64(1.0)), "`n` must be a positive number, got np.complex64(1+0j)."),
    "zero": (lambda: positive("n", 0.0, also=("auto",)), "`n` must be a positive number or 'auto', got 0.0."),
    "infinite": (lambda: positive("n", math.inf), "`n` must be a positive number, got inf."),
    "one": (lambda: fraction("n", 1.0), "`n` must be a number in [0, 1), got 1.0."),
    "more than one": (lambda: fraction("n", 1.0001, one=True), "`n` must be a number in [0, 1], got 1.0001."),
    "less than none": (lambda: fraction("n", -1e-9), "`n` must be a number in [0, 1), got -1e-09."),
    "too few": (lambda: count("n", 2, least=3), "`n` must be a whole number, at least 3, got 2."),
    "too many": (lambda: count("n", 1_235, most=1_234), "`n` must be at most 1,234, got 1235."),
    "far too many": (lambda: count("n", 10**30), f"`n` must be at most {2**62:,}, got more."),
    "one of words": (lambda: one_of("n", False, ("a", 1)), "`n` must be one of 'a', 1, got False."),
    "one of numbers": (lambda: one_of("n", 1.0, (1, 2)), "`n` must be one of 1, 2, got 1.0."),
    "200 letters": (lambda: one_of("n", LONG[1:], ["a"]), f"`n` must be one of 'a', got {LONG[1:]!r}."),
    "201 letters": (lambda: one_of("n", LONG, ["a"]), f"`n` must be one of 'a', got '{LONG[1:]}…."),
    "masked": (
        lambda: refuse_unreal("n", np.ma.array([1.0, 2.0, 3.0], mask=[True, False, True])),
        "`n` has 2 masked entries; leave out their rows, or fill them in.",
    ),
    "complex array": (lambda: refuse_unreal("n", np.ones(2, complex)), "`n` must be real, got complex numbers."),
    "a complex number within": (lambda: refuse_unreal("n", [[1.0], (1j,)]), "`n` must be real, got complex numbers."),
    "dates of objects": (
        lambda: refuse_unreal("n", np.array([np.datetime64("2020-01-01"), 1], dtype=object)),
        "`n` must be numbers, got dates.",
    ),
    "times": (lambda: refuse_unreal("n", np.ones(2, "m8[s]")), "`n` must be numbers, got lengths of time."),
    "a column of dates": (lambda: refuse_unreal("n", FRAME), "`n` must be numbers, its column 'b' holds dates."),
    "the 1,000th": (lambda: refuse_unreal("n", [0.0] * 999 + [1j]), "`n` must be real, got complex numbers."),
    "deep lists": (lambda: refuse_unreal("n", nested(65)), "`n` must be at most 64 lists deep, got more."),
    "shape of real": (lambda: arguments.real("n", [[1, 2]], 3), "`n` must have shape (..., 3), got (1, 2)."),
    "a negative one": (
        lambda: per_coordinate("n", [1.0, -1.0], 2, zero=True),
        "`n` must be finite and at least 0, a number or of shape (2,), got [1.0, -1.0].",
    ),
    "one zero": (
        lambda: per_coordinate("n", [1.0, 0.0], 2, also=("auto",)),
        "`n` must be finite and positive, a number or of shape (2,) or 'auto', got [1.0, 0.0].",
    ),
    "another shape": (
        lambda: per_coordinate("n", [1.0, 2.0, 3.0], 2),
        "`n` must be finite and positive, a number or of shape (2,), got [1.0, 2.0, 3.0].",
    ),
    "a matrix of nothing": (
        lambda: arguments.matrix("n", np.zeros((3, 0)), columns="k"),
        "`n` must have shape (N, k), N and k at least 1; got (3, 0).",
    ),
    "beyond float32": (
        lambda: arguments.matrix("n", [[1e300, 1.0], [math.nan, -1e300]], np.float32),
        "`n` must be finite in float32, and has 3 values that are not.",
    ),
    "text for a matrix": (lambda: arguments.matrix("n", "x"), "`n` must be a matrix of numbers, got str."),
    "a coordinate below": (
        lambda: arguments.coordinates("n", [-1, 0], 3),
        "`n` must name coordinates 0 … 2, or be a mask of shape (3,); got [-1, 0].",
    ),
    "a coordinate too far": (
        lambda: arguments.coordinates("n", [0, 3], 3),
        "`n` must name coordinates 0 … 2, or be a mask of shape (3,); got [0, 3].",
    ),
    "a negative seed": (lambda: seed_number("n", -1), "`n` must not be negative, got -1."),
}


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_told(name):
    make, message = REFUSED[name]
    with pytest.raises(ValueError) as caught:
        make()
    assert str(caught.value) == message


def test_lists_are_looked_through_so_far():
    """64 lists, one in the other, and the first 1,000 items of each; not lists that hold themselves."""
    refuse_unreal("n", nested(64))
    refuse_unreal("n", [0.0] * 1_000 + [1j])
    own = [1.0]
    own.append([own])
    with pytest.raises(ValueError, match="^`n` must not contain itself, got a list that does"):
        refuse_unreal("n", own)
    twice = [2.0]
    refuse_unreal("n", [twice, twice])


def test_truth_values_of_calls():
    """By name, by place, or by name alone."""

    def function(x, exact: bool = True, *, again: bool = False, n: int = 1):
        return x

    function.__annotations__["exact"] = "bool"  # as of a module in which annotations are not evaluated
    places = arguments.flags_of(function)
    assert list(places) == ["exact", "again"] and places["exact"] == 1 and places["again"] > 10**6
    arguments.check_flags(places, ("no", False), {"again": np.bool_(True), "n": "x"})
    for args, options, name in (
        ((1, "no"), {}, "exact"),
        ((1,), {"again": 1}, "again"),
        ((), {"exact": None}, "exact"),
    ):
        with pytest.raises(TypeError, match=f"^`{name}` must be True or False, got "):
            arguments.check_flags(places, args, options)


def test_seeds_of_generators_move_on():
    one, other = (np.random.default_rng(3) for _ in range(2))
    found = seed_number("n", one), seed_number("n", one)
    assert found[0] != found[1] and found[0] == int.from_bytes(other.bytes(16), "little")
    for wrong in (True, 1.0, "1"):
        with pytest.raises(TypeError, match="^`n` must be an integer, a SeedSequence, a Generator or None, got "):
            seed_number("n", wrong)


def test_copies_are_the_callers_only_if_asked():
    given = np.ones((2, 3))
    assert arguments.matrix("n", given, copy=False) is given and not np.shares_memory(
        arguments.matrix("n", given), given
    )
    assert arguments.matrix("n", given.T, copy=False).flags.c_contiguous
    each = np.array([1.0, 2.0])
    assert not np.shares_memory(per_coordinate("n", each, 2), each) and per_coordinate("n", 1.0, 2).flags.writeable


def test_values_are_told_in_a_line():
    assert told(np.eye(2)) == "array([[1., 0.], [0., 1.]])"
    assert [len(told("x" * n)) for n in (198, 199)] == [200, 200] and told("x" * 199)[-2:] == "x…"
    assert arguments.number("n", 10**305) == 1e305


def test_masks_are_of_all_coordinates():
    assert arguments.coordinates("some", [False, True, True], 3).tolist() == [1, 2]
    for mask in ([True, False], [True, False, True, False], [[True, False, True]]):
        with pytest.raises(ValueError, match="or be a mask of shape \\(3,\\)"):
            arguments.coordinates("some", mask, 3)


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_matrices_are_symmetric_in_any_unit(size):
    """But for rounding, which is taken out."""
    with pytest.raises(ValueError, match="it differs from its transpose by up to"):
        definite.symmetric("a", size * np.array([[1.0, 0.5], [0.499, 1.0]]))
    nearly = size * np.array([[1.0, 0.5], [0.5 + 4e-9, 1.0]])
    found = definite.symmetric("a", nearly)
    assert found[0, 1] == found[1, 0] == pytest.approx(size * (0.5 + 2e-9), rel=1e-12)


class Full:
    """Its memory is full."""

    def potential(self):
        raise MemoryError("full")


def test_memory_that_the_users_code_lacks_is_no_size_of_an_argument():
    """Of what NumPy is asked for the size is the reason, and never the seed."""

    space = {"__name__": "pdmp.engine.run", "np": np}
    exec("def take(model, seed, n): return model.potential() if n == 2**21 else np.zeros(n)", space)
    take = explanations.explained(space["take"])
    with pytest.raises(MemoryError, match="^full$"):
        take(Full(), 2**63, 2**21)
    with pytest.raises(ValueError, match=f"^`n` is too large for the memory of this machine, got {2**58}"):
        take(Full(), 2**63, 2**58)


def test_numbers_that_are_too_large_or_too_small_are_named():
    for value, how in ((1e76, "large"), (-1e76, "large"), (1e-76, "small"), (2**40 + 1, "large"), (10**400, "large")):
        found = explanations._extreme({"a": 1.0, "b": value}, ValueError())
        assert str(found).startswith(f"`b` is too {how} to compute with, got ")
        for several in ([value], [0.0, value], [1.0, value]) if isinstance(value, float) else ():
            found = explanations._extreme({"a": 1.0, "b": several}, ValueError())
            assert str(found) == f"`b` is too {how} to compute with, got {abs(value):g}."
    for value in (1e74, 1e-74, 0.0, 2**40, True):
        assert explanations._extreme({"b": value}, ValueError()) is None
    given = {"a": 3, "n": 2**20, "x": [np.zeros(5), 2**19]}
    assert str(explanations._too_large(given)).startswith("`n` is too large for the memory")
    assert explanations._too_large(given | {"n": 2**20 - 1}) is None
    assert explanations._too_large({"seed": 2**62}) is None  # of which nothing is as large
