"""Models by address: the same bits as code that is compiled for the model, and nothing kept too short or too long."""

import collections
import concurrent.futures
import gc
import math
import weakref

import numpy as np
import pytest

import pdmp
from pdmp.engine.checkpoint import digest
from pdmp.native.addresses import _same, record_of
from pdmp.native.classes import Compiled, compiled
from tests.benchmarks.addresses import InlinedHMC
from tests.checks import in_ci
from tests.native.processes import needs_compiler


class Centre(Compiled):
    at: float
    used: bool

    def __init__(self, at):
        self.at, self.used = at, True

    @compiled
    def shifted(self, x):
        return x - self.at if self.used else math.nan


class Hierarchy(pdmp.Model):
    """Fields of all kinds, and a potential that is not that of its gradient beyond `limit`, where it raises."""

    flag: bool
    y: np.ndarray
    X: np.ndarray
    centre: Centre
    limit: float
    n: int

    def __init__(self, at=0.5, limit=math.inf):
        super().__init__(dim=4)
        self.flag, self.y, self.n = True, np.array([1.0, 2.0, 0.5]), 3
        self.X = np.arange(1.0, 7.0).reshape(2, 3)
        self.centre, self.limit = Centre(at), limit

    @pdmp.compiled
    def potential(self, x):
        if x[0] > self.limit:
            raise ValueError("x[0] is beyond the limit")
        total = 0.5 * self.centre.shifted(x[0]) ** 2
        for j in range(self.n):
            total += 0.5 * self.X[1, j] * (x[j + 1] - x[0] - self.y[j]) ** 2 + 0.1 * math.cos(x[j + 1])
        return total

    @pdmp.compiled
    def add_gradient(self, x, out):
        if self.flag:
            out[0] += self.centre.shifted(x[0])
        for j in range(self.n):
            slope = self.X[1, j] * (x[j + 1] - x[0] - self.y[j])
            out[0] -= slope
            out[j + 1] += slope - 0.1 * math.sin(x[j + 1])


class Together(Hierarchy):
    @pdmp.compiled
    def potential_and_gradient(self, x, out):
        self.add_prior_gradient(x, out)
        return self.prior_potential(x)


class Rows(pdmp.Model):
    """A sum over data, with methods that create arrays."""

    X: np.ndarray

    def __init__(self, X):
        super().__init__(dim=X.shape[1], n_data=len(X))
        self.X = X

    @pdmp.compiled(allocates=True)
    def term_potential(self, x, i):
        return 0.5 * np.sum((self.X[i] - x) ** 2)

    @pdmp.compiled(allocates=True)
    def add_term_gradient(self, x, i, out):
        out += x - self.X[i]


def rows():
    return Rows(np.random.default_rng(3).standard_normal((30, 3)))


@needs_compiler
@pytest.mark.parametrize("make", in_ci([Hierarchy, Together, rows]))  # values by address are compared below
def test_the_path_is_that_of_code_for_the_model(make):
    model, path = make(), []
    for sampler in (pdmp.HMC, InlinedHMC):
        process = sampler(model, step=0.1)
        by_address = "record" in process.native.target._fields
        assert by_address == (sampler is pdmp.HMC)
        run = pdmp.sample(process, initial=np.zeros(model.dim), events=300, seed=1)
        path.append(run.trajectories[0].positions)
    assert len(np.unique(path[0], axis=0)) > 200
    assert np.array_equal(*path)
    x, out = path[0][-1], np.zeros(model.dim)
    model.native.add_gradient(x, out)  # in plain Python
    assert np.allclose(model.gradient(x), out, rtol=1e-12)
    assert model.potential(x) == pytest.approx(model.native.total_potential(x), rel=1e-12)


@pytest.mark.exact
@pytest.mark.compiled
def test_an_exception_keeps_its_words_and_its_chain():
    model = Hierarchy(at=0.0, limit=3.0)
    starts = np.array([[0.0, 1.0, 2.0, 0.5], [2.99, 4.0, 5.0, 3.5]])
    with pytest.raises(pdmp.SamplingError, match=r"ValueError in a step .*beyond the limit \(chain 1,") as caught:
        pdmp.sample(pdmp.HMC(model, step=0.2), initial=starts, events=100, chains=2, seed=1)
    assert isinstance(caught.value.__cause__, ValueError)
    assert str(caught.value.__cause__) == "x[0] is beyond the limit"
    assert [record.stopped == "failed" for record in caught.value.run.records] == [False, True]
    assert model.potential(starts[0]) < math.inf  # and nothing is left of it


@pytest.mark.exact
@pytest.mark.compiled
def test_a_field_that_is_replaced_is_seen_and_a_run_goes_on_with_what_it_had():
    model, x = Hierarchy(), np.array([0.3, 0.1, 0.2, 0.4])
    native, out = pdmp.HMC(model, step=0.1).native.target, np.zeros(4)
    before = model.potential(x)
    for field, value in (("y", model.y + 1.0), ("flag", False), ("centre", Centre(7.0)), ("n", 2)):
        old, was = getattr(model, field), (model.potential(x), *model.gradient(x))
        setattr(model, field, value)
        assert (model.potential(x), *model.gradient(x)) != was, field
        setattr(model, field, old)
        assert (model.potential(x), *model.gradient(x)) == was
    model.centre.at = 7.0
    assert model.potential(x) != before == native.total_potential(x)
    model.centre.at = 0.5
    model.y[0] = 9.0  # in place: the same array
    assert model.potential(x) == native.potential_and_gradient(x, out) != before


@needs_compiler
@pytest.mark.quick
def test_who_has_a_record_has_the_arrays_and_they_end_with_it():
    model, x, out = Hierarchy(), np.zeros(4), np.zeros(4)
    arrays, expected = [weakref.ref(a) for a in (model.y, model.X)], model.gradient(x)
    native, owner = pdmp.HMC(model, step=0.1).native.target, weakref.ref(model)
    assert native.record is record_of(model)
    del model
    gc.collect()
    assert owner() is None
    assert all(array() is not None for array in arrays)
    native.add_gradient(x, out)
    assert np.array_equal(out, expected)
    del native
    gc.collect()
    assert all(array() is None for array in arrays)


@needs_compiler
@pytest.mark.quick
def test_methods_that_create_arrays_count_no_references_of_the_record():
    model, x = rows(), np.zeros(3)
    expected = -model.X.sum(axis=0)
    for _ in range(2_000):
        found = model.gradient(x)
    gc.collect()
    assert np.allclose(found, expected) and np.allclose(model.X.mean(), -expected.sum() / 90)


@needs_compiler
@pytest.mark.quick
def test_threads_that_ask_first_at_once():
    models = [Hierarchy(at=float(k % 5)) for k in range(40)]
    x = np.full(4, 0.25)
    expected = [Hierarchy(at=float(k)).potential(x) for k in range(5)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            found = list(pool.map(lambda model: (model.potential(x), model.gradient(x)[1]), models * 4))
            assert [value for value, _ in found] == [expected[k % 5] for k in range(40)] * 4
            assert len({slope for _, slope in found}) == 1
            for model in models:
                model.y = model.y.copy()  # their records are made anew, by several threads at once


@pytest.mark.exact
@pytest.mark.compiled
def test_a_digest_is_that_of_the_model_whether_it_has_a_record_or_not():
    first, second = (pdmp.HMC(Hierarchy(), step=0.1) for _ in range(2))
    first.native, first.model.potential(np.zeros(4))
    assert digest(first) == digest(second) != digest(pdmp.HMC(Hierarchy(at=0.6), step=0.1))


@pytest.mark.exact
def test_records_are_of_the_same_object_if_all_fields_are():
    """Arrays are the same objects, and numbers are equal and of one type."""
    pair, y = collections.namedtuple("pair", "a b"), np.ones(2)
    assert _same(pair(y, 2.0), pair(y, 2.0)) and _same(pair(pair(y, 1), True), pair(pair(y, 1), True))
    for other in (pair(y.copy(), 2.0), pair(y, 3.0), pair(y, 2), (y, 2.0)):
        assert not _same(pair(y, 2.0), other)
    assert not _same(None, pair(y, 2.0))
