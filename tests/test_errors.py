"""Warnings that are not given, or are listened to, in one thread and not in others."""

import concurrent.futures
import threading
import warnings

import pytest

import pdmp
from pdmp import errors
from pdmp.native.threads import thread_pool

pytestmark = pytest.mark.exact


def said(function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
    return [str(one.message) for one in caught]


def test_what_is_silenced():
    def speak():
        for category in (UserWarning, RuntimeWarning, DeprecationWarning):
            warnings.warn(category.__name__, category, stacklevel=1)
        errors.warn("own")

    def nested():
        with errors.silenced(UserWarning):
            speak()
            with errors.silenced(RuntimeWarning):
                speak()
            speak()
        with errors.silenced():
            speak()
        speak()

    every = ["UserWarning", "RuntimeWarning", "DeprecationWarning", "own"]
    assert said(nested) == [*every[1:3], every[2], *every[1:3], *every]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning):
            speak()
        with errors.silenced():
            warnings.simplefilter("error")  # of the user's function, which stands before
            with pytest.raises(RuntimeWarning):
                warnings.warn("his", RuntimeWarning, stacklevel=1)


def test_threads_that_overlap_leave_the_filters_of_each_other_alone():
    """`catch_warnings` puts back what it found: of two that overlap the filters of one stay."""
    inside, outside = threading.Barrier(2), threading.Barrier(2)

    def first():
        with errors.silenced():
            inside.wait()
            warnings.warn("silenced", stacklevel=1)
            outside.wait()

    def second():
        inside.wait()
        with errors.silenced(RuntimeWarning):
            outside.wait()
            warnings.warn("heard in another", stacklevel=1)
        warnings.warn("heard", RuntimeWarning, stacklevel=1)

    def both():
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for future in [pool.submit(first), pool.submit(second)]:
                future.result()
        warnings.warn("after", stacklevel=1)

    assert said(both) == ["heard in another", "heard", "after"]


def test_threads_of_ours_are_silenced_with_the_caller():
    def run():
        with errors.silenced(), thread_pool(2, "test") as pool:
            pool.submit(warnings.warn, "silenced").result()
        with thread_pool(2, "test") as pool:
            pool.submit(warnings.warn, "heard").result()

    assert said(run) == ["heard"]


def test_listening_hears_our_own_warnings_alone():
    heard = []

    def listening():
        with errors.listening() as found:
            errors.warn("one")
            warnings.warn("of the user", stacklevel=1)
            with errors.silenced(UserWarning):
                errors.warn("silenced")
            with errors.listening() as inner:
                errors.warn("two")
            errors.warn("three")
        heard.extend([found, inner])
        errors.warn("after")

    assert said(listening) == ["of the user", "after"] and heard == [["one", "three"], ["two"]]


def test_runs_in_threads_warn_as_they_do_alone():
    model = pdmp.models.from_function(lambda x: (0.5 * float(x @ x), x), 2)

    def runs(seeds):
        for seed in seeds:
            pdmp.sample(pdmp.BPS(model), events=25, seed=seed)

    def in_threads():
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(runs, [range(k, 16, 4) for k in range(4)]))

    alone = said(lambda: runs(range(16)))
    assert len(alone) > 4 and sorted(said(in_threads)) == sorted(alone) == sorted(said(lambda: runs(range(16))))


def test_runs_are_meant_to_be_short_within_the_context_alone():
    def run():
        pdmp.sample(pdmp.ZigZag(pdmp.models.Gaussian([0.0], precision=[1.0])), events=5, seed=1)

    def short():
        with errors.short_runs():
            run()
        run()

    assert sum("fewer than 30 effective draws" in text for text in said(short)) == 1
