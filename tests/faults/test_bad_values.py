"""Values that a conversion would change in silence, options that would do nothing, and words that say too much."""

from __future__ import annotations

import json
import os
import zipfile

import numpy as np
import pytest

import discrete
import pdmp
from pdmp.data import memory
from pdmp.data.dataset import standardised
from pdmp.diagnostics.summary import _path_distance
from pdmp.engine import storage
from pdmp.native.classes import Compiled
from pdmp.native.explanations import explained
from tests.toys import Telegraph

pytestmark = pytest.mark.exact

X = np.random.default_rng(0).standard_normal((12, 2))
Y = (X[:, 0] > 0.0).astype(float)
MASKED, COMPLEX = np.ma.masked_greater(X, 1.0), X + 1j
GAUSSIAN = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda bad: pdmp.models.LogisticRegression(bad, Y), "X"),
        (lambda bad: pdmp.models.LinearGaussian(A=bad, x=Y), "A"),
        (lambda bad: pdmp.models.PoissonRegression(X, bad[:, 0]), "y"),
        (lambda bad: pdmp.models.ICA(bad), "X"),
        (lambda bad: pdmp.models.Gaussian(bad[:2, 0], [1.0, 4.0]), "mean"),
        (lambda bad: pdmp.ZigZag(GAUSSIAN, metric=pdmp.Metric(scales=bad[:2, 0])), "scales"),
        (lambda bad: pdmp.BPS(GAUSSIAN, metric=bad[:2]), "metric"),
        (lambda bad: discrete.SGLD(GAUSSIAN, 0.1, metric=pdmp.Metric(covariance=bad[:2])), "covariance"),
        (lambda bad: pdmp.sample(pdmp.ZigZag(GAUSSIAN), initial=bad[0], events=5, seed=1), "initial"),
        (lambda bad: GAUSSIAN.potential(bad[0]), "x"),
        (lambda bad: bad @ pdmp.Parameters(beta=2).beta, "X"),
        (lambda bad: pdmp.terms(lambda y, m: (y - m) ** 2, [bad[:, 0]], [pdmp.Parameters(m=1).m]), r"data\[0\]"),
    ],
)
def test_masked_entries_complex_numbers_and_dates_are_errors(call, name):
    masked = np.ma.masked_array(X, mask=np.ones(X.shape, bool))
    with pytest.raises(ValueError, match=rf"`?{name}.* has (\d+ )?masked entries"):
        call(masked)
    with pytest.raises(ValueError, match=f"`{name}` must be real, got complex numbers"):
        call(COMPLEX)
    for dtype, held in (("datetime64[D]", "dates"), ("timedelta64[s]", "lengths of time")):
        with pytest.raises(ValueError, match=f"`{name}` must be numbers, got {held}"):
            call(np.ones(X.shape, np.int64).astype(dtype))


@pytest.mark.parametrize("bad", ["False", 1, None])
@pytest.mark.parametrize(
    "call, name",
    [
        (lambda bad: pdmp.models.LogisticRegression(X, Y, intercept=bad), "intercept"),
        (lambda bad: pdmp.models.PoissonRegression(X, Y, 1.0, bad), "intercept"),
        (lambda bad: pdmp.models.from_function(lambda x: (0.5 * x @ x, x), 2, check_gradient=bad), "check_gradient"),
        (lambda bad: pdmp.ForwardEventChain(pdmp.models.Banana(3), positive=bad), "positive"),
        (lambda bad: pdmp.gradients.ControlVariate(pdmp.models.LogisticRegression(X, Y), size=2, renew=bad), "renew"),
        (lambda bad: pdmp.diagnostics.running_mean(None, combined=bad), "combined"),
        (lambda bad: pdmp.Run.mean(None, bad), "error"),
    ],
)
def test_text_and_numbers_are_no_truth_values(call, name, bad):
    with pytest.raises(TypeError, match=f"^`{name}` must be True or False, got {bad!r}"):
        call(bad)


def test_a_truth_value_that_only_its_name_reaches_is_not_looked_for_by_place():
    @explained
    def given(x, *rest, flag: bool = False):
        return x, rest, flag

    assert given(1, 2, 3) == (1, (2, 3), False) and given(1, 2, flag=True) == (1, (2,), True)


def nested():
    """A list that contains itself, one through a tuple, an array of objects, and lists deeper than any array."""
    itself, through, array, deep = [], [1.0], np.empty(2, object), [1.0]
    itself.append(itself)
    through.append((through,))
    array[:] = array, 1.0
    for _ in range(3_000):
        deep = [deep]
    return {"itself": itself, "through a tuple": through, "array": array, "deep": deep}


@pytest.mark.parametrize("kind", nested())
@pytest.mark.parametrize(
    "call, name",
    [
        (lambda bad: pdmp.models.LogisticRegression(bad, Y), "X"),
        (lambda bad: pdmp.models.SpikeAndSlabLogisticRegression(X, Y, slab_scale=bad), "slab_scale"),
        (lambda bad: pdmp.models.Banana(dim=bad), "dim"),
        (lambda bad: pdmp.BPS(GAUSSIAN, metric=bad), "metric"),
        (lambda bad: discrete.SGD(bad, step=0.1), "provider"),
        (lambda bad: discrete.SGD(GAUSSIAN, step=bad), "step"),
        (lambda bad: pdmp.sample(pdmp.ZigZag(GAUSSIAN), initial=bad, events=5, seed=1), "initial"),
        (lambda bad: pdmp.sample(pdmp.ZigZag(GAUSSIAN), events=bad, seed=1), "events"),
        (lambda bad: pdmp.sample(pdmp.ZigZag(GAUSSIAN), events=5, seed=1, store=bad), "store"),
        (lambda bad: GAUSSIAN.potential(bad), "x"),
        (lambda bad: pdmp.terms(lambda y, m: y * m, [bad], [pdmp.Parameters(b=1).b]), r"data\[0\]"),
        (lambda bad: pdmp.Parameters(b=3).b[bad], r"b\[index\]"),
        (lambda bad: pdmp.families.poisson.linked(mu=bad), "mu"),
        (lambda bad: pdmp.Family("rare", lambda y, m: m, links=bad), "links"),
    ],
)
def test_lists_that_are_no_arrays(call, name, kind):
    with pytest.raises((TypeError, ValueError), match=f"^`{name}` must [^\n]*$"):
        call(nested()[kind])


@pytest.mark.parametrize("make", [discrete.SGD, discrete.SGZZ, discrete.ZigZagSplitting, discrete.SGLD, discrete.BAOAB])
def test_a_provider_is_named_as_it_is_given(make):
    with pytest.raises(TypeError, match="^`provider` must be a "):
        make(provider=[1], step=0.1)


@pytest.mark.parametrize("make", [discrete.SGBD, pdmp.Boomerang, pdmp.ZigZag, pdmp.SBPS, pdmp.LipschitzSBPS])
def test_a_provider_without_a_step(make):
    with pytest.raises(TypeError, match="^`provider` must be a "):
        make(provider=[1])


def test_an_array_that_masks_nothing_is_taken():
    model = pdmp.models.LogisticRegression(np.ma.masked_array(X), Y)
    assert model.potential(np.ones(2)) == pdmp.models.LogisticRegression(X, Y).potential(np.ones(2))


def test_complex_entries_of_lists_and_columns():
    with pytest.raises(ValueError, match="`mean` must be real"):
        pdmp.models.Gaussian([1.0, 1j], [1.0, 4.0])
    table = pytest.importorskip("pandas").DataFrame({"a": X[:, 0], "b": COMPLEX[:, 1]})
    with pytest.raises(ValueError, match="`X` must be real, its column 'b' holds complex numbers"):
        pdmp.models.LogisticRegression(table, Y)
    table["b"] = np.full(len(table), "2026-01-01", "datetime64[s]")
    with pytest.raises(ValueError, match="`X` must be numbers, its column 'b' holds dates"):
        pdmp.models.LogisticRegression(table, Y)


def test_underscores_in_a_file_are_no_numbers(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,y\n1_0,0\n2,1\n3,0\n4,1\n")
    with pytest.raises(ValueError, match="column 'a' of table.csv holds '1_0'; if it is a number, write '10'"):
        pdmp.data.read(path, target="y")


def test_a_column_whose_variance_overflows_is_an_error():
    table = np.column_stack([X[:, 0], 1e307 * X[:, 1]])
    with pytest.raises(ValueError, match="column 'b' cannot be standardised: .*as large as .*e.30[67]"):
        standardised(table, np.arange(12), ("a", "b"))
    np.testing.assert_allclose(standardised(X, np.arange(12), ("a", "b")).std(axis=0), 1.0)


@pytest.mark.parametrize(
    "make, option",
    [
        (lambda: pdmp.BPS(GAUSSIAN, metric="diagonal", refresh_rate=1.0), 'metric="diagonal"'),
        (lambda: pdmp.BPS(GAUSSIAN, metric="dense", refresh_rate=1.0), 'metric="dense"'),
        (lambda: pdmp.SBPS(pdmp.gradients.Noisy(GAUSSIAN, 1.0), metric="diagonal"), 'metric="diagonal"'),
    ],
)
def test_what_adapts_in_the_warm_up_says_so_without_one(make, option):
    with pytest.warns(UserWarning, match=f"`warmup` is 0: {option} adapts in the warm-up only"):
        pdmp.sample(make(), events=10, seed=1)
    pdmp.sample(make(), events=10, warmup=0.5, seed=1)


def test_the_distance_of_a_path_is_stated_where_it_says_something():
    assert _path_distance(0.002) == ", and the law of a chain's path is off by at most 0.002 in total variation."
    assert "at most 0.4 in total variation; use" in _path_distance(0.4)
    assert "total variation" not in _path_distance(0.5) and "Grid(safety=20)" in _path_distance(0.5)


# -- sizes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, message",
    [
        ({"chains": 10**9}, "`chains` = 1,000,000,000 would take 20.1 TB, above the .* of this machine; run fewer"),
        ({"store": "grid", "draws": 10**12}, "`draws` = 1,000,000,000,000 positions of 1 chain would take 32 TB"),
        ({"store": "grid", "draws": 10**12, "chains": 3}, "positions of 3 chains would take 96 TB"),
    ],
)
def test_what_does_not_fit_into_memory_is_an_error_before_it_is_allocated(call, message):
    with pytest.raises(ValueError, match=message):
        pdmp.sample(Telegraph(), events=10, seed=1, **call)


def test_functions_of_draws_name_their_arguments():
    """What no check of their own sees, and what a function of the user raises."""
    draws = np.random.default_rng(0).standard_normal((2, 50, 2))
    with pytest.raises(TypeError, match="^`draws` must be an array of numbers, got 'x'"):
        pdmp.diagnostics.ess("x")
    with pytest.raises(TypeError, match="^`run` must have 'draws', got 'x'"):
        pdmp.diagnostics.acf("x")
    with pytest.raises(ValueError, match="^`bins` is too large for the memory"):
        pdmp.diagnostics.reliability(Y, Y, bins=10**13)
    with pytest.raises(TypeError, match="^`draws` must be an array of numbers, got list of shape"):
        pdmp.diagnostics.mean_error([[10**400, 1]] * 9, 0.0, 1.0)
    with pytest.raises(ValueError, match="invalid literal"):
        pdmp.diagnostics.jackknife(lambda d: int("x"), draws)


RATINGS = [0, 1], [0, 1], [1.0, 2.0]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: pdmp.models.MatrixFactorization(*RATINGS, rank=10**12), "`rank` is too large for the memory"),
        (lambda: pdmp.models.BPMF(*RATINGS, rank=2, n_users=2**62), "`n_users` is too large for the memory"),
        (lambda: pdmp.models.BayesianNN(X, Y, hidden=(10**12, 2)), "`hidden` is too large for the memory"),
        (lambda: pdmp.models.Gaussian(np.broadcast_to(1.0, (10**7, 10**6)), [1.0]), "`mean` is too large .* shape"),
        (lambda: pdmp.models.LinearGaussian(1e300 * X, Y), "`A` is too large to compute with"),
        (lambda: discrete.RichardsonRomberg(discrete.SGLD(GAUSSIAN, 0.1), order=10**9), "`order` must be at most 50"),
        (lambda: pdmp.sample(pdmp.ZigZag(GAUSSIAN), events=10**5000), r"^`events` must be at most [\d,]+, got more.$"),
        (lambda: pdmp.Parameters(b=10**18), "^`b` of 1,000,000,000,000,000,000 coordinates would take"),
        (lambda: pdmp.Metric(scales=[10**400, 1]), "^`scales` must be finite, as floats are, got "),
        (lambda: pdmp.Parameters(b=10**400), "^`b` of 10,000.* coordinates would take"),
        (lambda: pdmp.models.priors.Normal(10**400, 1.0), "`mean` of Normal must be a finite number, got 1000"),
        (lambda: pdmp.models.priors.Normal(-(10**400), 1.0), "`mean` of Normal must be a finite number, got -1000"),
        (lambda: pdmp.models.priors.HalfNormal(10**400), "`scale` of HalfNormal must be positive and finite, got 1000"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_a_size_is_named_as_it_is_given(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_sizes_of_results(monkeypatch):
    run = pdmp.sample(pdmp.ZigZag(pdmp.models.Gaussian(np.zeros(50), np.ones(50))), events=60, seed=1)
    with pytest.raises(ValueError, match="`n` = 1,000,000,000,000 draws would take 400 TB, above"):
        run.draws(10**12)
    monkeypatch.setattr(memory, "machine_memory", lambda: 19_999)
    with pytest.raises(ValueError, match="the covariance in 50 dimensions would take 20,000 bytes, above the 19,999"):
        run.cov()
    with pytest.raises(ValueError, match="`covariance=True` in 50 dimensions would take 20,000 bytes"):
        monkeypatch.setattr(pdmp.engine.checks, "CHAIN_BYTES", 0)
        pdmp.sample(run.process, events=60, seed=1, covariance=True)


# -- seeds, defaults and names ---------------------------------------------------------------------------------------


def path(seed, **call):
    run = pdmp.sample(Telegraph(), events=40, chains=2, seed=seed, **call)
    return run.seed, np.concatenate([t.times for t in run.trajectories])


def test_seeds_are_integers_sequences_or_generators():
    number, times = path(5)
    assert number == 5
    for same in (np.int64(5), np.random.SeedSequence(5)):
        seed, found = path(same)
        assert seed == 5 and type(seed) is int
        np.testing.assert_array_equal(found, times)
    root = np.random.SeedSequence(5)
    child = root.spawn(1)[0]
    for other in (root, child, np.random.SeedSequence([5, 1]), np.random.SeedSequence(5, pool_size=8)):
        seed, found = path(other)
        assert not np.array_equal(found, times)
        np.testing.assert_array_equal(path(other)[1], found)  # a sequence is not used up
        np.testing.assert_array_equal(path(seed)[1], found)
    rng = np.random.default_rng(5)
    first, second = path(rng), path(rng)
    assert first[0] != second[0] and not np.array_equal(first[1], second[1])
    np.testing.assert_array_equal(path(np.random.default_rng(5))[1], first[1])
    np.testing.assert_array_equal(path(first[0])[1], first[1])
    for bad in ("lucky", 1.0, True, [1, 2], np.random.RandomState(1)):
        with pytest.raises(TypeError, match="`seed` must be an integer, a SeedSequence, a Generator or None"):
            path(bad)


@pytest.mark.parametrize("bad", ["no", 1, np.nan, [], np.ones(2)])
def test_a_progress_bar_is_shown_or_not(bad):
    run = pdmp.sample(Telegraph(), events=4, seed=1, progress=np.False_)
    for call in (lambda: pdmp.sample(Telegraph(), events=4, progress=bad), lambda: run.extend(events=8, progress=bad)):
        with pytest.raises(TypeError, match="`progress` must be True, False or None, got"):
            call()


@pytest.mark.parametrize("make", [lambda: np.random.default_rng(7), lambda: np.random.SeedSequence([3, 4])])
def test_seeds_of_other_kinds_are_resumed_and_saved(make, tmp_path):
    call = {"events": 40, "chains": 2}
    pdmp.sample(Telegraph(), seed=make(), checkpoint=tmp_path / "run", **call)
    longer = pdmp.sample(Telegraph(), seed=make(), checkpoint=tmp_path / "run", **call | {"events": 90})
    whole = pdmp.sample(Telegraph(), seed=make(), **call | {"events": 90})
    longer.save(tmp_path / "saved.npz")
    assert pdmp.load(tmp_path / "saved.npz").seed == whole.seed == longer.seed
    np.testing.assert_array_equal(longer.draws(50), whole.draws(50))
    assert pdmp.sample(Telegraph(), checkpoint=tmp_path / "run", **call | {"events": 90}).seed == whole.seed


def test_a_grid_keeps_a_thousand_positions_by_default():
    run = pdmp.sample(Telegraph(), time=30.0, seed=1, store="grid")
    assert run.draws(1_000).shape == (1, 1_000, 2) and run.info["arguments"]["draws"] == 1_000
    with pytest.raises(ValueError, match="1001 draws are more than the 1000"):
        run.draws(1_001)


REGRESSIONS = {
    "LogisticRegression": lambda X: pdmp.models.LogisticRegression(X, Y),
    "with an intercept": lambda X: pdmp.models.LogisticRegression(X, Y, intercept=True),
    "with an offset": lambda X: pdmp.models.LogisticRegression(X, Y, offset=np.ones(12)),
    "PoissonRegression": lambda X: pdmp.models.PoissonRegression(X, Y, intercept=True),
    "LinearGaussian": lambda X: pdmp.models.LinearGaussian(X, Y),
    "NormalInverseGammaRegression": lambda X: pdmp.models.NormalInverseGammaRegression(X, Y),
    "SpikeAndSlabLinearRegression": lambda X: pdmp.models.SpikeAndSlabLinearRegression(X, Y),
}


@pytest.mark.parametrize("name", REGRESSIONS)
def test_columns_of_a_data_frame_name_the_coefficients(name):
    pandas = pytest.importorskip("pandas")
    make = REGRESSIONS[name]
    plain = make(X)
    model = make(pandas.DataFrame(X, columns=["age", "intercept" if "Poisson" in name else "dose"]))
    rest = [n for n in plain.variables if n not in ("x", "coefficients")]
    assert list(model.variables) == ["age", "(intercept)" if "Poisson" in name else "dose", *rest]
    x = np.linspace(-0.3, 0.4, model.dim)
    assert model.potential(x) == plain.potential(x)
    for columns in ([0, 1], ["a", "a"], [("a", 1), ("a", 2)]):
        table = pandas.DataFrame(X, columns=pandas.Index(columns))
        assert make(table).variables in (plain.variables, {"coefficients": (2,)})


def test_the_summary_has_the_names_of_the_columns(tmp_path):
    pandas = pytest.importorskip("pandas")
    model = pdmp.models.LogisticRegression(pandas.DataFrame(X, columns=["age", "dose"]), Y, intercept=True)
    run = pdmp.sample(pdmp.ZigZag(model), events=30, seed=1)
    assert [line.split()[0] for line in str(run.summary()).splitlines()[1:4]] == ["age", "dose", "intercept"]
    run.save(tmp_path / "run.npz")
    assert pdmp.load(tmp_path / "run.npz")["dose"].shape == (1, 1_000)


# -- damage ----------------------------------------------------------------------------------------------------------


def damages(content, rng, count):
    """Copies of a file with a bit changed, bytes left out, or its end missing."""
    for k in range(count):
        broken, at = bytearray(content), int(rng.integers(len(content)))
        if k % 4 == 0:
            broken = broken[:at]
        elif k % 4 == 1:
            del broken[at : at + int(rng.integers(1, 40))]
        else:
            broken[at] ^= 1 << int(rng.integers(8))
        yield bytes(broken)


@pytest.mark.parametrize("kind", ["run", "checkpoint"])
def test_damaged_runs_and_checkpoints_are_one_line(kind, tmp_path):
    """Whatever was changed: the same run, or one line that says so."""
    path, call = tmp_path / "file", {"events": 30, "seed": 1, "chains": 2}
    whole = pdmp.sample(Telegraph(), checkpoint=path if kind == "checkpoint" else None, **call)
    if kind == "run":
        whole.save(path)

    def read():
        return pdmp.load(path) if kind == "run" else pdmp.sample(Telegraph(), checkpoint=path, **call)

    refused = 0
    for broken in damages(path.read_bytes(), np.random.default_rng(2), 80):
        path.write_bytes(broken)
        try:
            run = read()
        except ValueError as error:
            assert str(error).startswith(f"{str(path)!r} is damaged, or not a file that this package wrote")
            assert "\n" not in str(error)
            refused += 1
        else:
            np.testing.assert_array_equal(run.draws(20), whole.draws(20))
            np.testing.assert_array_equal(run.var(), whole.var())
    assert refused > 53


@pytest.mark.parametrize("kind", ["run", "checkpoint"])
def test_files_that_lack_a_part_are_damaged(kind, tmp_path):
    """Files that are whole, and hold another thing than they should."""
    path, call = tmp_path / "file", {"events": 30, "seed": 1}
    run = pdmp.sample(Telegraph(), checkpoint=path if kind == "checkpoint" else None, **call)
    if kind == "run":
        run.save(path)
    header, arrays = storage.read(path, kind)

    def refused(header, arrays):
        storage.write(path, header, arrays)
        with pytest.raises(ValueError, match="is damaged, or not a file that this package wrote") as caught:
            pdmp.load(path) if kind == "run" else pdmp.sample(Telegraph(), checkpoint=path, **call)
        assert "\n" not in str(caught.value)

    refused([header], arrays)
    storage.write(path, header, arrays)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("further", "no array")
    with pytest.raises(ValueError, match=r"is damaged, or not a file that this package wrote\.$"):
        pdmp.load(path) if kind == "run" else pdmp.sample(Telegraph(), checkpoint=path, **call)
    for name in header:
        if name not in ("what", "states"):
            if name not in ("machine", "named"):  # which those of earlier versions lack
                refused({k: v for k, v in header.items() if k != name}, arrays)
            refused(header | {name: "x"}, arrays)
    needed = [name for name in arrays if kind == "checkpoint" or not name.startswith("state/")]
    for name in needed[:: max(len(needed) // 8, 1)]:
        refused(header, {k: v for k, v in arrays.items() if k != name})
    assert json.loads(json.dumps(header)) == header


@pytest.mark.exact
def test_a_device_is_neither_read_nor_replaced_by_a_file(tmp_path):
    """Of one that can be read without end, or waits without end for a writer, nothing is read."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/full", tmp_path):
        with pytest.raises(ValueError, match="' is no file"):
            pdmp.load(path)
    with pytest.raises(OSError, match="pipe' is no file"):
        storage.write(tmp_path / "pipe", {}, {})
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"] and not (tmp_path / "pipe").is_file()


def test_the_family_and_the_columns_of_a_regression_are_named():
    pytest.importorskip("formulae")
    for bad in (*nested().values(), 3, None, {"a": 1}):
        with pytest.raises(TypeError, match="^`family` must be the name of a family or a pdmp.Family, got [a-zA-Z]+.$"):
            pdmp.regression("y ~ x", {"y": Y, "x": X[:, 0]}, family=bad, sample=False)
    with pytest.raises((TypeError, ValueError), match="^[^\n]*$"):
        pdmp.regression("y ~ x", {"y": Y, "x": np.array(None)}, sample=False)


def test_whatever_has_a_constructor_looks_at_its_arguments():
    """One that only takes them, given by place or by name; numbers and texts are its own matter."""

    class Taker(Compiled):
        def __init__(self, first, second=None):
            pass

    Taker(1.0, "text")
    for args, kwargs, name in (
        ((1.0, [1j]), {}, "second"),
        (([1j],), {}, "first"),
        ((1.0,), {"second": [1j]}, "second"),
    ):
        with pytest.raises(ValueError, match=f"`{name}`.*complex"):
            Taker(*args, **kwargs)
