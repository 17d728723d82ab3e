"""Folders of files and Dask DataFrames: the models of one table, bitwise, wherever their passes run."""

import concurrent.futures
import gc
import operator
import os
import pathlib
import pickle
import random
import types
import warnings
import weakref
from types import MappingProxyType

import numpy as np
import pytest

import pdmp
from pdmp.engine import executors
from pdmp.formulas import batches, fitting, predictors, sources
from pdmp.formulas.totals import Totals
from pdmp.gradients import alias
from pdmp.models.families import FAMILIES
from pdmp.models.regressions import blocks, design
from pdmp.models.regressions.laplace import laplace
from pdmp.models.regressions.standardised_effects import Coupling
from pdmp.native import threads
from pdmp.processes.regression_boomerang import RegressionBoomerang, shares
from pdmp.processes.regression_bps import RegressionBPS
from pdmp.processes.regression_zigzag import RegressionZigZag
from pdmp.processes.remainders import Shells
from pdmp.processes.row_bounds import row_bounds
from tests.checks import plain_only
from tests.formulas.test_batches import FORMULAS, with_late_levels, write
from tests.formulas.test_regression import N, made, table
from tests.processes.helpers_moving_regressions import diagonal_boomerang

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("dask")
pytestmark = [pytest.mark.exact, pytest.mark.usefixtures("few_radii")]

CUTS = 0, 4, 15, N
ROWS = "X", "y", "target", "offset", "weight", "level", "value"


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(sources, "LARGE_FILE", 1)
    monkeypatch.setattr(sources, "BATCH", 5)
    monkeypatch.setattr(batches, "FIRST_ROWS", 6)
    monkeypatch.setattr(blocks, "ENTRIES", 60)
    monkeypatch.setattr(fitting, "SUBSAMPLED_ROWS", N // 2)
    monkeypatch.setattr(fitting, "INTERCEPT_ROWS", 5)
    monkeypatch.setattr(fitting, "SLOPE_ROWS", 5)


def folder_of(data, path, cuts=CUTS):
    path.mkdir()
    for k, (first, stop) in enumerate(zip(cuts[:-1], cuts[1:], strict=True)):
        data.iloc[first:stop].to_parquet(path / f"part-{k}.parquet")
    (path / "_metadata").write_text("of others")
    return path


class Cluster:
    """A Dask client as far as passes over the data see it: tasks are pickled, and run in a random order."""

    def __init__(self, names=("b", "a"), lost=0):
        self.names, self.lost, self.waiting, self.sent, self.late = names, lost, [], [], 0

    scatter = get_executor = None

    def scheduler_info(self, n_workers):
        return {"workers": dict.fromkeys(self.names, {"nthreads": 2})}

    def submit(self, function, *args, pure, workers=None, allow_other_workers=True):
        assert not pure and allow_other_workers and set(workers or ()) <= set(self.names)
        self.sent += workers or []
        packed = [a if isinstance(a, Future) else pickle.dumps(a) for a in args]
        values = lambda: (a.task() if isinstance(a, Future) else pickle.loads(a) for a in packed)  # noqa: E731
        return self._waits(lambda: function(*values()))

    def compute(self, task, **near):
        return self._waits(lambda: task.compute(scheduler="synchronous"))

    def _waits(self, task):
        self.waiting.append(Future(self, task))
        return self.waiting[-1]

    def cancel(self, futures):
        self.waiting = [future for future in self.waiting if future not in futures]

    def run(self):
        random.Random(1).shuffle(self.waiting)
        while self.waiting:
            future = self.waiting.pop()
            try:
                result = future.task()
                if self.lost:  # with its worker, when it had written: it is run again
                    self.lost -= 1
                    result = future.task()
                future.set_result(result)
            except Exception as error:
                future.set_exception(error)


class Future(concurrent.futures.Future):
    def __init__(self, client, task):
        super().__init__()
        self.client, self.task = client, task

    def result(self, timeout=None):
        if timeout is not None and self.client.late > 0:
            self.client.late -= 1
            raise TimeoutError
        self.client.run()
        return super().result()


def scaled(x):
    """What a function is that reads its environment."""
    return x * float(os.environ.get("PDMP_TEST_SCALE", "1"))


class Elsewhere(Cluster):
    """Of which one worker in two has another environment."""

    begun = 0

    def _waits(self, task):
        def there():
            Elsewhere.begun += 1
            with pytest.MonkeyPatch.context() as patched:
                patched.setenv("PDMP_TEST_SCALE", str(1 + Elsewhere.begun % 2))
                return task()

        return super()._waits(there)


@pytest.mark.parametrize("formula", ["y ~ scaled(x)", "scaled(y) ~ x", "y ~ w + (0 + scaled(x) | g)"])
def test_a_worker_that_codes_the_formula_otherwise_is_refused(formula, tmp_path, monkeypatch):
    """One column would have two codings: by its environment, its folder or its files."""
    path, known = folder_of(table(), tmp_path / "parts"), {"np": np, "scaled": scaled}
    with pytest.raises(pdmp.SamplingError, match="computes other columns of .* with the same functions; give it the s"):
        made_by(formula, "gaussian", path, {}, known, client=Elsewhere(), folder=tmp_path)
    whole = made_by(formula, "gaussian", path, {}, known)[0]
    assert_same(whole, made_by(formula, "gaussian", path, {}, known, client=Cluster(), folder=tmp_path)[0])


def rows_of(model):
    return {name: np.asarray(getattr(model, name)) for name in ROWS}


def assert_same(one, other):
    for name, rows in rows_of(one).items():
        assert np.array_equal(rows, rows_of(other)[name]), name
    assert [str(prior) for prior in one.priors] == [str(prior) for prior in other.priors]
    assert np.array_equal(one.initial, other.initial)


@pytest.mark.parametrize(
    ("formula", "family", "options"),
    [pytest.param(*one, id=one[0], marks=pytest.mark.slow if k % 3 else ()) for k, one in enumerate(FORMULAS)],
)
def test_parts_are_one_table(formula, family, options, tmp_path):
    """A file, a folder of three, a glob of them, partitions of Dask, with workers and without: the same bits."""
    import dask.dataframe

    data = with_late_levels()
    whole, _, priors, notes = made(formula, family, write(data, tmp_path, "parquet"), **options)
    assert notes[0] == "the file was read in batches of 5 rows"
    folder = folder_of(data, tmp_path / "t")
    frame = dask.dataframe.from_pandas(data.assign(category=data.category.astype(str)), npartitions=4, sort=False)
    workers = tmp_path / "shared"
    workers.mkdir()
    with_workers = {"client": Cluster(lost=2), "folder": workers}
    for given, more in [(folder, {}), (f"{folder}/p*", {}), (folder, with_workers), (frame, {}), (frame, with_workers)]:
        found, _, same, said = made_by(formula, family, given, options, **more)
        assert_same(found, whole)
        assert said[1:] == notes[1:] and {k: str(p) for k, p in same.items()} == {k: str(p) for k, p in priors.items()}
    del found
    assert list(workers.iterdir()) == []  # the rows go with the model


def made_by(formula, family, data, options, known=MappingProxyType({"np": np}), **more):
    from formulae.environment import Environment

    roles = dict.fromkeys(("offset", "weights", "exposure", "select")) | options
    environment = Environment.capture(0).with_outer_namespace(dict(known))
    return fitting.make_model(
        fitting.describe(formula),
        data,
        fitting.family_of(family),
        None,
        *roles.values(),
        environment=environment,
        **more,
    )


SET_UPS = [
    ("y ~ x + w", "gaussian", {"weights": "e"}),
    ("b ~ x + treated", "bernoulli", {"offset": "e"}),
    ("c ~ w + (1 | g)", "negative_binomial", {}),
    ("c ~ w + x + e + (1 + e + x | g)", "negative_binomial", {"weights": "e"}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("formula", "family", "options"), SET_UPS, ids=[formula for formula, *_ in SET_UPS])
def test_set_up_in_blocks(formula, family, options, tmp_path):
    """Mode, Hessian, expansion, bounds and importance: those of the table in memory, and bitwise so by workers."""
    from pdmp.models.regressions.group_intercepts import GroupIntercepts

    data = table()
    folder = folder_of(data, tmp_path / "t")
    alone = made_by(formula, family, folder, options)[0]
    (tmp_path / "shared").mkdir()
    client = Cluster(lost=3)
    spread = made_by(formula, family, folder, options, client=client, folder=tmp_path / "shared")[0]
    assert len(blocks.spans(N, alone.blocks.width)) > 1  # of as many rows as columns at least
    parts = alone.X * alone.scale + alone.centre, alone.y, alone.likelihood, alone.columns, alone.priors
    kind, groups = type(alone), []
    assert (kind is GroupIntercepts) == ("|" in formula)
    for k, g in enumerate(alone.groups):
        name = alone.columns[alone.means[k]]
        column = np.ones(N) if name == "Intercept" else data[name].to_numpy()
        parts[0][:, alone.means[k]] = column
        groups.append(g._replace(level=alone.level[:, k] - alone.first[k], value=column))
    memory = kind(
        *parts,
        groups,
        alone.dispersion_priors,
        intercept=alone.intercept,
        offset=alone.offset * alone.response_scale if alone.offset.size else None,
        weights=data[options["weights"]] if "weights" in options else None,
        scale_response=family == "gaussian",
    )
    found = [laplace(model) for model in (memory, alone, spread)]
    assert all(np.array_equal(a, b) for a, b in zip(found[1], found[2], strict=True))
    for a, b in zip(found[0], found[1], strict=True):
        assert np.allclose(a, b, rtol=1e-6, atol=1e-8)
    at = found[0].mean, found[0].sd
    if "|" not in formula:
        one, other, third = (RegressionBoomerang(model, at[0]) for model in (memory, alone, spread))
        for name in ("pull", "at_anchor", "weights", "total"):
            assert np.array_equal(getattr(other, name), getattr(third, name)), name
            assert np.allclose(getattr(other, name), getattr(one, name), rtol=1e-5, atol=1e-12), name
        same_growth(one, other, third)
        assert np.array_equal(other.tables.table, third.tables.table)
        assert np.allclose(other.reference.covariance, one.reference.covariance, rtol=1e-9)
        assert other.tables.totals[0] == pytest.approx(one.weights.sum(), rel=1e-12)
        run = pdmp.sample(other, initial=at[0], proposals=100, seed=1, progress=False)
        assert run.stats["bound_violations"] == 0
        for which in (RegressionBPS, diagonal_boomerang):
            one, other, third = (which(model, at[0]) for model in (memory, alone, spread))
            for name in ("hessian", "weights", "total"):
                assert np.array_equal(getattr(other, name), getattr(third, name)), name
                assert np.allclose(getattr(other, name), getattr(one, name), rtol=1e-9, atol=1e-12), name
            assert np.array_equal(other.tables.table, third.tables.table)
        levels, support = np.array([1.0, 0.5]), at[0] > 0.0
        weights, *shells = row_bounds(memory, *at)
        several = [shares(model, *at, weights, Shells(*shells), support, levels) for model in (memory, alone, spread)]
        for one, other, third in zip(*several, strict=True):
            assert np.array_equal(other, third) and np.allclose(other, one, rtol=1e-9)
        anchor, paths = at[0].copy(), []
        anchor[1] *= 0.0 if family == "bernoulli" else 1.0  # not in its support
        for few in (True, False):
            process = RegressionBPS(alone, anchor, few_move=few)
            process.growth.factors[:] = process.growth.factors[0]
            paths.append(pdmp.sample(process, initial=at[0], proposals=40, seed=1, progress=False).records[0].xs)
        assert np.allclose(*paths, rtol=1e-6, atol=1e-9)
    metric = pdmp.Metric(scales=at[1])
    memory, alone, spread = (RegressionZigZag(model, at[0], metric=metric) for model in (memory, alone, spread))
    for name in ("pull", "inner", "border", "own", "horizon", "scale"):
        assert np.array_equal(getattr(alone, name), getattr(spread, name)), name
        assert np.allclose(getattr(alone, name), getattr(memory, name), rtol=1e-9, atol=1e-12), name
    same_growth(memory, alone, spread)
    assert np.array_equal(alone.parts, spread.parts) and np.allclose(alone.parts, memory.parts, rtol=1e-5)
    assert np.array_equal(alone.tables.table, spread.tables.table)
    assert np.allclose(alone.tables.totals, memory.tables.totals, rtol=1e-5)
    assert set(client.sent) == {"a", "b"}


def same_growth(memory, alone, spread):
    """Of blocks the same whoever reads them; of those in memory no shell less, and factors that differ by rounding."""
    assert np.array_equal(alone.growth.radii, spread.growth.radii)
    assert np.array_equal(alone.growth.factors, spread.growth.factors)
    shells = len(alone.growth.radii)
    assert 1 < shells <= len(memory.growth.radii)
    assert np.allclose(alone.growth.factors, memory.growth.factors[:, :shells], rtol=1e-5)


@pytest.mark.parametrize("constant", ["", "0 + "])
def test_totals_of_blocks(constant, tmp_path, monkeypatch):
    """What priors and checks see: that of the table in memory; products about 0 where there is no intercept."""
    from formulae.environment import Environment

    from pdmp.formulas.design import Design

    data, environment = with_late_levels().dropna().assign(h=lambda t: t.h + 1), Environment([{"np": np}])
    roles = {"offset": "x", "exposure": "e", "weights": "h"}
    described = fitting.describe(f"c ~ {constant}w + np.log(e) + (1 + w | g)")
    source = sources.open_source(folder_of(data, tmp_path / "t", (0, 7, 8, len(data))))
    _, rows, totals, _ = batches.read_in_batches(source, described, "count", roles, environment)
    design = Design(fitting.describe(described.formula), data, environment)
    offset = (data.x + np.log(data.e)).to_numpy()
    wanted = Totals.of(design, data.c.to_numpy(float), offset, data.h.to_numpy(float))
    assert len(blocks.spans(totals.rows, rows.width)) > 2
    for name, value, same in zip(Totals._fields, totals, wanted, strict=True):
        assert np.allclose(value, same, rtol=1e-12), name
    monkeypatch.setattr(threads, "CHUNK", 8)
    monkeypatch.setattr(threads, "WHOLE", 4)  # products of several pieces of the rows, by threads
    again = Totals.of(design, data.c.to_numpy(float), offset, data.h.to_numpy(float))
    assert np.allclose(again.products, wanted.products, rtol=1e-12)


def test_rows_are_drawn_from_blocks_in_proportion(tmp_path):
    """The probabilities of the tables of blocks are those of the one table of a model in memory."""
    data = folder_of(table(), tmp_path / "t")
    model = made_by("c ~ x + w", "poisson", data, {})[0]
    at = laplace(model)
    process = RegressionZigZag(model, at.mean, metric=pdmp.Metric(scales=at.sd))
    tables, weights = process.tables, np.zeros(N)
    for i in range(N):
        weights[i] = process.row_weight(0, i)
    found, of_blocks = np.zeros(N), tables.blocks.probabilities()
    for b, (first, stop) in enumerate(zip(tables.first[:-1], tables.first[1:], strict=True)):
        for k in range(first, stop):
            share = of_blocks[b] / (stop - first)
            found[k] += share * tables.table[k, 0]
            found[first + int(tables.table[k, 1])] += share * (1.0 - tables.table[k, 0])
    assert len(of_blocks) > 2
    assert np.allclose(found, weights / weights.sum(), rtol=1e-12)
    assert tables.totals[0] == pytest.approx(weights.sum(), rel=1e-12)
    table_before = np.array(tables.table)
    RegressionZigZag(model, at.mean + 0.1, metric=pdmp.Metric(scales=2.0 * at.sd))  # has tables of its own
    assert np.array_equal(tables.table, table_before)
    rng = np.random.default_rng(0)
    fetched, model, queue = [], types.SimpleNamespace(), tables.queue()
    model.fetch = fetched.append
    items = [tables.next(0, queue, model, rng) for _ in range(4_000)]
    counts = np.bincount(items, minlength=N)
    assert np.all(np.abs(counts - 4_000 * found) < 6.0 * np.sqrt(4_000 * found) + 1.0)

    # Rows are drawn ahead, each from numbers of its own, and asked for once, half of the queue before they are used.
    assert fetched[:4_000] == items and len(fetched) == 4_000 + len(queue.items) // 2
    rng = np.random.default_rng(0)
    for item in items:
        b, _ = tables.blocks.draw(rng)
        k = tables.first[b] + int(rng.random() * (tables.first[b + 1] - tables.first[b]))
        assert item == (k if rng.random() < tables.table[k, 0] else tables.first[b] + int(tables.table[k, 1]))


@plain_only
@pytest.mark.parametrize("kind", [RegressionZigZag, RegressionBoomerang])
def test_rows_of_large_files_are_asked_for(kind, tmp_path, monkeypatch):
    """The path is the same whether rows are asked for or not, and that of a run which went on is that of one run."""
    data = folder_of(table(), tmp_path / "t")
    asked = []
    for module in (design, alias):
        monkeypatch.setattr(module, "ask", lambda rows, i: asked.append((rows.shape, int(i))))
    found = {}
    for share in (1.0, 0.0):
        monkeypatch.setattr(design, "KEPT_SHARE", share)
        model = made_by("c ~ x + w", "poisson", data, {"weights": "e"})[0]
        at = laplace(model)
        options = {} if kind is RegressionBoomerang else {"metric": pdmp.Metric(scales=at.sd)}
        process = kind(model, at.mean, **options)
        options = {"seed": 4, "chains": 1, "initial": at.mean, "progress": False}
        before = len(asked)
        found[share] = pdmp.sample(process, proposals=120, **options)
        assert (len(asked) > before) == (share == 0.0)
        pdmp.sample(process, proposals=50, checkpoint=tmp_path / f"{share}", **options)
        found[f"{share} resumed"] = pdmp.sample(process, proposals=120, checkpoint=tmp_path / f"{share}", **options)
    for run in found.values():
        assert np.array_equal(run.trajectories[0].positions, found[1.0].trajectories[0].positions)
        assert np.array_equal(run.trajectories[0].times, found[1.0].trajectories[0].times)
        assert len(run.trajectories[0].times) > 5
    shapes = {shape for shape, _ in asked}
    assert {(N, 3), (N,), (N, 2)} <= shapes and {i for _, i in asked} <= set(range(N))


def test_a_fit(tmp_path):
    """Chains from a folder: bitwise the same by workers and without."""
    folder, options = folder_of(table(), tmp_path / "t"), {"events": 40, "chains": 1, "seed": 1, "progress": False}
    one = pdmp.regression("b ~ x", folder, "bernoulli", **options)
    data = sources.open_source(folder)
    other = pdmp.regression("b ~ x", str(folder), "bernoulli", folder=tmp_path, **options)
    assert np.array_equal(one["x"], other["x"]) and len(data.parts) == 3
    with pytest.raises(ValueError, match="`folder` must name a folder that all workers of `executor` share"):
        made_by("b ~ x", "bernoulli", folder, {}, client=Cluster())
    with pytest.raises(ValueError, match="`folder` is for data that are read in batches"):
        pdmp.regression("b ~ x", table(), "bernoulli", folder=tmp_path, **options)


def test_sizes_of_files(tmp_path, monkeypatch):
    """8 (p + 2) bytes a row, 16 to draw it and 8 of its bound; 8 (p + 3) more while they are standardised."""
    header = 128  # of an .npy file
    largest, remove = [], blocks.Files.remove

    def taken(folder):
        return sum(path.stat().st_size - header for path in pathlib.Path(folder).iterdir())

    def removed(files, name):
        largest.append(taken(files.folder))
        remove(files, name)

    monkeypatch.setattr(blocks.Files, "remove", removed)
    model = made_by("b ~ x + w", "bernoulli", folder_of(table(), tmp_path / "t"), {}, folder=tmp_path)[0]
    (folder,) = tmp_path.glob("pdmp-*")
    before = taken(folder)
    assert before == 8 * (3 + 2) * N and len(largest) == 1 and largest[0] == before + 8 * (3 + 3) * N
    at = laplace(model)
    process = RegressionZigZag(model, at.mean, metric=pdmp.Metric(scales=at.sd))
    assert taken(folder) == before + (16 + 8) * N and process.model is model
    assert process.tables.table[:, 0].min() > 0.0  # no row is drawn in place of all


def test_mistakes(tmp_path):
    folder = folder_of(table(), tmp_path / "t")
    for given, says in [
        (tmp_path / "t" / "*.csv", "there are no files"),
        (tmp_path, "'.*t' is a folder, and the files"),
    ]:
        with pytest.raises((ValueError, FileNotFoundError), match=says):
            made("c ~ x", "poisson", given)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="no Parquet files in the folder"):
        made("c ~ x", "poisson", tmp_path / "empty")
    with pytest.raises(ValueError, match="`folder`: there is no folder 'nowhere'"):
        made_by("c ~ x", "poisson", folder, {}, folder="nowhere")
    with pytest.raises(ValueError, match="`executor`: the Dask cluster has no workers"):
        made_by("c ~ x", "poisson", folder, {}, client=Cluster(()), folder=tmp_path)
    table().drop(columns="x").to_parquet(folder / "part-9.parquet")
    with pytest.raises(ValueError, match="part-9.parquet' has no column 'x', which the first file has"):
        made("c ~ x", "poisson", folder)
    (folder / "part-9.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(ValueError, match="part-9.parquet' cannot be read"):
        made("c ~ x", "poisson", folder)
    assert not list(tmp_path.glob("pdmp-*"))


class Bar:
    """What a bar was told."""

    def __init__(self, told, total, desc, **_):
        self.total, self.desc, self.n = total, desc, 0
        told.append(self)

    def update(self, rows):
        self.n += rows

    def close(self):
        self.closed = True


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_bars_of_the_passes(kind, tmp_path, monkeypatch):
    """Each counts all rows, batch by batch; none without a terminal."""
    from pdmp.engine import run

    told, data = [], with_late_levels()
    monkeypatch.setattr(run, "open_bar", lambda **options: Bar(told, **options))
    path = tmp_path / "t.csv"
    data.to_csv(path, index=False)
    given = folder_of(data, tmp_path / "t") if kind == "parquet" else path
    complete = N - int(data.w.isna().sum())
    made("c ~ w", "poisson", given, progress=True)
    assert [(bar.desc, bar.total, bar.n, bar.closed) for bar in told] == [
        ("reading", None, N, True),
        ("coding", N, N, True),
        ("means", complete, complete, True),
        ("standardising", complete, complete, True),
    ]
    told.clear()
    for progress in (False, None):
        made("c ~ w", "poisson", given, progress=progress)
    assert not told and not sources._SHOWN


def test_workers_without_the_folder(tmp_path, monkeypatch):
    """A machine where the folder is another one."""
    folder, run = folder_of(table(), tmp_path / "t"), Cluster.run

    def elsewhere(self):
        for path in (tmp_path / "shared").glob("*/coded.npy"):
            path.unlink()
        run(self)

    (tmp_path / "shared").mkdir()
    monkeypatch.setattr(Cluster, "run", elsewhere)
    with pytest.raises(FileNotFoundError, match="`folder`: a worker cannot open .*; all workers must share"):
        made_by("c ~ x", "poisson", folder, {}, client=Cluster(), folder=tmp_path / "shared")


def test_lost_workers(tmp_path, monkeypatch):
    class KilledWorker(Exception):
        pass

    def killed(*_, timeout=None):
        raise KilledWorker("task had its worker killed 4 times")

    folder = folder_of(table(), tmp_path / "t")
    monkeypatch.setattr(Future, "result", killed)
    with pytest.raises(RuntimeError, match="`executor`: a pass over the data has lost worker after worker") as error:
        made_by("c ~ x", "poisson", folder, {}, client=Cluster(), folder=tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("what", ["touched", "added", "shorter"])
def test_a_table_that_changes_while_it_is_read(what, tmp_path, monkeypatch):
    folder, scan = folder_of(table(), tmp_path / "t"), batches._scan

    def changing(*args):
        found = scan(*args)
        if what == "touched":
            os.utime(folder / "part-2.parquet", ns=(0, 12_345))
        elif what == "added":
            table().to_parquet(folder / "part-3.parquet")
        else:
            table().iloc[:3].to_parquet(folder / "part-2.parquet")
        return found

    monkeypatch.setattr(batches, "_scan", changing)
    with pytest.raises(ValueError, match="changed while it was read|came or went while it was read") as error:
        made("y ~ x", "gaussian", folder)
    assert "\n" not in str(error.value)


def test_files_are_written_and_read_by_ranges(tmp_path):
    files, rng = blocks.Files(tmp_path), np.random.default_rng(1)
    for name, shape, kind in [("a", (9, 3), float), ("b", (9,), float), ("c", (9, 2), np.int64), ("d", (9, 0), float)]:
        rows = (100 * rng.standard_normal(shape)).astype(kind)
        files.create(name, shape, kind)
        for first, stop in [(5, 9), (0, 2), (2, 5)]:
            files.write(name, first, rows[first:stop])
        assert np.array_equal(files.mapped(name), rows)
        assert np.array_equal(files.read(name, 2, 7), rows[2:7]) and files.read(name, 2, 7).dtype == rows.dtype
    files.remove("a")
    assert "a" not in files and files.mapped("a").shape == (0,) and not pathlib.Path(files.path("a")).exists()


def test_a_result_that_was_taken_is_kept_no_longer(monkeypatch):
    """A cluster keeps what there is a future of."""
    client, made = Cluster(), []
    waits = client._waits

    def noted(task):
        made.append(weakref.ref(future := waits(task)))
        return future

    monkeypatch.setattr(client, "_waits", noted)
    kept = []
    for _ in sources.Workers(client).map(operator.add, 2, [(1,), (5,), (6,)]):
        gc.collect()
        kept.append(sum(one() is not None for one in made[1:]))  # the first is what all of them share
    assert kept == [3, 2, 1]


def test_a_pass_that_waits_for_workers_says_so_once(monkeypatch):
    """And goes on when there are workers again; nothing is said as long as there are some."""
    monkeypatch.setattr(executors, "ALONE_SECONDS", 0.0)
    client = Cluster()
    workers = sources.Workers(client)
    client.late = 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(workers.map(operator.add, 2, [(1,), (5,)])) == [3, 7]
    results = workers.map(operator.add, 2, [(1,), (5,)])
    client.late, client.names = 3, ("a",)
    there = client.scheduler_info
    # Its workers are there when the tasks are sent, and gone afterwards.
    client.sent = []
    monkeypatch.setattr(
        client, "scheduler_info", lambda n_workers: {"workers": {}} if client.sent else there(n_workers)
    )
    with pytest.warns(UserWarning, match="`executor`: the Dask cluster has no workers") as said:
        assert list(results) == [3, 7]
    assert len(said) == 1

    def lost(n_workers):
        if client.sent:
            raise OSError("Timed out trying to connect")
        return there(n_workers)

    client.late, client.sent = 3, []
    monkeypatch.setattr(client, "scheduler_info", lost)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(workers.map(operator.add, 2, [(1,), (5,)])) == [3, 7]


def test_a_pass_waits_for_workers_that_have_died_since_the_last(monkeypatch):
    """That there are none is no reason for another process: only of the first pass it is an error."""
    monkeypatch.setattr(executors, "ALONE_SECONDS", 0.0)
    client = Cluster(())
    workers = sources.Workers(client)
    with pytest.raises(ValueError, match="`executor`: the Dask cluster has no workers"):
        list(workers.map(operator.add, 2, [(1,)]))
    client.names = ("a", "b")
    assert list(workers.map(operator.add, 2, [(1,), (5,)])) == [3, 7]
    asked, there = [], client.scheduler_info

    def dead(n_workers):
        asked.append(n_workers)
        if len(asked) in (3, 4, 5):
            raise OSError("Timed out trying to connect")  # for now
        return {"workers": {}} if len(asked) < 9 else there(n_workers)

    monkeypatch.setattr(client, "scheduler_info", dead)
    with pytest.warns(UserWarning, match="no workers. What is left waits for one") as said:
        assert workers.spread == 4 and list(workers.map(operator.add, 2, [(1,), (5,)])) == [3, 7]
    assert len(said) == 1 and len(asked) >= 9
    monkeypatch.setattr(executors, "LONGEST_ALONE", 0.0)
    monkeypatch.setattr(client, "scheduler_info", lambda n_workers: {"workers": {}})
    with pytest.raises(RuntimeError, match="the Dask cluster has had no workers for"):
        list(workers.map(operator.add, 2, [(1,)]))
    assert client.waiting == []  # what all tasks share is not kept by the cluster


@pytest.mark.parametrize("known", [True, False], ids=["a mode", "none"])
def test_effects_on_an_imputed_column_begin_as_unknown(known, monkeypatch):
    """Of slopes of 3 and bends of 2 at five rows, two of them of the first group; nothing of the second predictor."""
    grouping = types.SimpleNamespace(name="1|g", levels=["a", "b"], level=np.array([0, 0, 1, 1, 1]))
    coding = types.SimpleNamespace(places={})
    ones = [
        types.SimpleNamespace(
            imputes=name,
            prefix=prefix,
            sets=[types.SimpleNamespace(names=[f"{prefix}1|g"], width=1)],
            groups=[grouping],
            values=lambda k: np.ones(5),
            columns=[],
        )
        for name, prefix in ((None, ""), ("x", "x: "))
    ]
    without = types.SimpleNamespace(mode=lambda: np.zeros(1) if known else None, reported=coding)
    monkeypatch.setattr(predictors, "_by_predictor", lambda *args: (np.full(5, 3.0), np.full(5, 2.0)))
    monkeypatch.setattr(predictors, "of_rows", lambda sets, at, informations, scores, *rest: (informations, scores))
    base = types.SimpleNamespace(initial=np.zeros(1), reported=coding)
    informations, scores = predictors._by_rows(ones, np.zeros(5), without, base, [])
    assert np.ravel(informations).tolist() == [4.0 * known, 6.0 * known, 0.0, 0.0]
    assert np.ravel(scores).tolist() == [6.0 * known, 9.0 * known, 0.0, 0.0]


def test_rows_say_of_effects_of_two_predictors_what_they_say_of_each(monkeypatch):
    """Effects that are multiplied by 1 and by 2, which correlate: nothing is said of both."""
    grouping = types.SimpleNamespace(name="1|g", levels=["a", "b"], level=np.array([0, 0, 1, 1, 1]))
    coding, both = types.SimpleNamespace(places={}), types.SimpleNamespace(names=["1|g", "s: 1|g"], width=2)
    ones = [
        types.SimpleNamespace(
            imputes=None, prefix=prefix, sets=sets, groups=[grouping], values=lambda k, z=z: np.full(5, z), columns=[]
        )
        for prefix, sets, z in (("", [], 1.0), ("s: ", [both], 2.0))
    ]
    said = {"": (np.full(5, 3.0), np.full(5, 2.0)), "s: ": (np.full(5, 0.5), np.full(5, 7.0))}
    monkeypatch.setattr(predictors, "_by_predictor", lambda one, *args: said[one.prefix])
    monkeypatch.setattr(predictors, "of_rows", lambda sets, at, informations, scores, *rest: (informations, scores))
    base = types.SimpleNamespace(initial=np.zeros(1), reported=coding)
    without = types.SimpleNamespace(mode=lambda: np.zeros(1), reported=coding)
    (information,), (score,) = predictors._by_rows(ones, np.zeros(5), without, base, [])
    assert information.tolist() == [[[4.0, 0.0], [0.0, 56.0]], [[6.0, 0.0], [0.0, 84.0]]]
    assert score.tolist() == [[6.0, 2.0], [9.0, 3.0]]


@pytest.mark.parametrize("unit", [1.0, 1e-6])
def test_slopes_and_bends_of_log_likelihoods_are_weighted_and_in_any_unit(unit):
    """Of Student's t with 4 degrees of freedom; where it is not concave the bend is 0."""
    family, sigma = FAMILIES["student_t"], 0.7 * unit
    y, weight = unit * np.array([-0.5, 0.1, 0.9, 4.0]), np.array([1.0, 2.0, 0.5, 3.0])
    eta = [np.full((1, 4), 0.2 * unit), np.full((1, 1), np.log(sigma)), np.full((1, 1), np.log(4.0))]
    observed = types.SimpleNamespace(further=(), weight=weight)
    coding = types.SimpleNamespace(family=family, own=lambda *_: eta)
    without = types.SimpleNamespace(reported=coding, observed=[observed])
    one = types.SimpleNamespace(parameter=family.named[0], unit=unit)
    slope, bend = predictors._by_predictor(one, y, without, np.zeros(3))
    r, wide = y - 0.2 * unit, 4.0 * sigma**2
    np.testing.assert_allclose(slope, weight * 5.0 * r / (wide + r**2), rtol=1e-5)
    np.testing.assert_allclose(bend, weight * np.maximum(5.0 * (wide - r**2) / (wide + r**2) ** 2, 0.0), rtol=1e-4)
    assert bend[3] == 0.0 < bend[2]


@pytest.mark.parametrize("counts", [(), (2,), (2, 1)])
def test_coefficients_of_each_predictor_follow_its_own_effects(counts, monkeypatch):
    """In one matrix, whose blocks of different predictors are 0; predictors without coefficients have none."""
    coding, first, couplings = types.SimpleNamespace(places={}), 0, []
    for k, p in enumerate(counts):
        fixed, effects = first + np.arange(p), first + p + np.arange(3 + k)
        by = 1.0 + k + np.arange((3 + k) * p).reshape(3 + k, p)
        couplings.append(Coupling(fixed, 0.5 + fixed, effects, by))
        first += p + 3 + k
    ones = [
        types.SimpleNamespace(imputes=None, prefix=f"{k}: ", sets=[], groups=[], columns=["x"] * p)
        for k, p in enumerate((*counts, 0))
    ]
    without = types.SimpleNamespace(mode=lambda: np.zeros(1), reported=coding)
    monkeypatch.setattr(predictors, "_by_predictor", lambda *args: (np.ones(5), np.ones(5)))
    left = iter(couplings)
    monkeypatch.setattr(predictors, "_coupling_of", lambda one, bend, coding, at: next(left))
    monkeypatch.setattr(predictors, "of_rows", lambda sets, at, informations, scores, coupling, least: coupling)
    base = types.SimpleNamespace(initial=np.zeros(first), reported=coding)
    found = predictors._by_rows(ones, np.zeros(5), without, base, [])
    if not counts:
        assert found is None
        return
    whole = np.zeros((first, first))
    for one in couplings:
        whole[np.ix_(one.effects, one.others)] = one.by
    assert found.others.tolist() == [k for one in couplings for k in one.others]
    assert found.effects.tolist() == [k for one in couplings for k in one.effects]
    np.testing.assert_array_equal(found.at, 0.5 + found.others)
    np.testing.assert_array_equal(found.by, whole[np.ix_(found.effects, found.others)])
