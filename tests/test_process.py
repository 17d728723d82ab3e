"""What a process of one's own must keep to: each slip is one readable error."""

import numpy as np
import pytest

import pdmp

pytestmark = pytest.mark.exact


class Regular(pdmp.Process):
    """An event at every unit of time; `kind` is what the jump returns after time 20."""

    kind: int
    events = ("tick",)

    def __init__(self, kind=0, **options):
        super().__init__(dim=1, **options)
        self.kind = kind

    @pdmp.compiled
    def clock(self, state, i, now, rng):
        return now + 1.0, pdmp.CERTAIN

    @pdmp.compiled
    def jump(self, state, i, now, rng):
        return self.kind if now > 20.0 else 0


def test_a_kind_of_event_without_a_name_stops_the_run():
    with pytest.raises(pdmp.SamplingError, match="kind of event that is not a place in its `events`"):
        pdmp.sample(Regular(kind=1), events=50)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"scope": [[1]]}, "`scope` must name coordinates 0 … 0"),
        ({"scope": [[-1]]}, "`scope` must name coordinates 0 … 0"),
        ({"scope": [[0], [0]]}, "`scope` must have a row for each of the 1 clocks"),
        ({"dependents": [[0, 1]]}, "`dependents` must name clocks 0 … 0"),
        ({"dependents": [[-1]]}, "`dependents` must name clocks 0 … 0"),
        ({"dependents": [[0], [0]]}, "`dependents` must have a row for each of the 1 clocks"),
    ],
)
def test_places_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Regular(**options)


def test_a_velocity_of_the_wrong_length_is_refused():
    class Long(Regular):
        def velocity(self, x, rng):
            return np.ones(3)

    with pytest.raises(ValueError, match=r"Long has dimension 1, but starts with .* v of \(3,\)"):
        pdmp.sample(Long(), events=5)


def test_a_process_has_eight_kinds_of_event_at_most():
    assert len(type("Eight", (Regular,), {"events": tuple("abcdefgh")})(kind=7).events) == 8
    with pytest.raises(TypeError, match="^Nine.events: at most 8 kinds, got 9.$"):
        type("Nine", (Regular,), {"events": tuple("abcdefghi")})


def test_the_names_of_events_of_ones_own_are_no_misspelling():
    """`channels` is called from Python, and `channel` is the compiled method that reads like it."""

    class Named(Regular):
        def channels(self):
            return ["a"]

    assert Named().channels() == ["a"]


def test_a_method_with_other_arguments_is_refused():
    with pytest.raises(TypeError, match=r"Bad.jump must take the arguments \(self, state, i, now, rng\)"):

        class Bad(Regular):
            @pdmp.compiled
            def jump(self, state, now, rng):
                return 0
