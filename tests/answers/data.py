"""Data sets: files of every format read with every option, published files made up anew, and synthetic tables."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import pathlib
import tempfile
from dataclasses import replace

import numpy as np
from scipy import sparse

from pdmp import data
from pdmp.data import dataset, formats, images, memory, movielens, recordings, sources, tables, uci
from tests.answers import case
from tests.recorded import moved


def rows(part):
    return [part.start, part.stop] if isinstance(part, slice) else part


def kept(found):
    """All of a table or of ratings, and its parts."""
    if isinstance(found, data.Ratings):
        fields = {name: getattr(found, name) for name in ("users", "items", "ratings", "shape", "mean")}
        fields |= {name: np.asarray(getattr(found, name)).tolist()[:40] for name in ("user_ids", "item_ids")}
        parts = [[len(part), part.mean, part.users.sum(), repr(part).split()] for part in (found.train, found.test)]
    else:
        X = found.X.toarray() if sparse.issparse(found.X) else np.asarray(found.X)
        fields = {"X": X.T, "type": [str(found.X.dtype), type(found.X).__name__]}
        fields |= {name: getattr(found, name) for name in ("y", "names", "labels", "prepared")}
        fields |= {"changes": [text.split() for text in found.changes], "prepared": found.prepared.split()}
        parts = [
            [len(part), part.X.sum(), None if part.y is None else part.y.sum()] for part in (found.train, found.test)
        ]
    fields |= {"train": rows(found.train_rows), "test": rows(found.test_rows), "parts": parts}
    return fields | {"name": found.name, "about": found.about.split(), "repr": repr(found).split()}


# -- tables that are given -------------------------------------------------------------------------------------------


def numbers(n=30):
    """Columns of several scales, one of which never changes, and labels."""
    rng = np.random.default_rng(1)
    X = moved(rng.standard_normal((n, 4)) * [1.0, 30.0, 0.2, 0.0] + [0.0, 100.0, -2.0, 3.0])
    X[rng.random((n, 4)) < 0.3] = 0.0
    X[:, 3] = 3.0
    return X, (X[:, 0] + rng.standard_normal(n) > 0.1).astype(int)


NAMES = ("a", "intercept", "c", "(intercept)")
for label, options in {
    "": {},
    " as it is": {"standardise": False},
    " without an intercept": {"intercept": None},
    " with the intercept last": {"intercept": "last"},
    " of another seed": {"seed": 3, "test_fraction": 0.35},
}.items():
    for form in (np.asarray, sparse.csr_matrix, sparse.coo_array):
        case(
            lambda o=options, f=form: kept(data.prepare("given", f(numbers()[0]), numbers()[1], NAMES, **o)),
            f"prepare {form.__name__}{label}",
        )


@case
def prepared_for_more_classes():
    X, y = numbers(60)
    three = data.prepare("three", X, y + 1 * (X[:, 2] > 0.0), NAMES, ("low", "middle", "high"), "about it")
    plain = data.prepare("plain", X.astype(np.float32), X[:, 1], NAMES, (), intercept=None)
    return [kept(three), kept(plain), kept(data.prepare("none", X.tolist(), None, NAMES, ()))]


@case
def ratings():
    """Identifiers that are numbers, large numbers and text; unrated ones; the first rows, or some at random."""
    rng = np.random.default_rng(2)
    users, items = rng.integers(3, 12, 50), rng.integers(0, 9, 50) * 5
    stars = moved(rng.integers(1, 6, 50).astype(float))
    towns = np.array(["Ystad", "Lund", "Kiruna", "Visby"])[rng.integers(4, size=50)]
    made = [
        data.prepare_ratings("plain", users, items, stars),
        data.prepare_ratings("first", users, items, stars, n_train=37, about="about these ratings"),
        data.prepare_ratings("all", users, items, stars, user_ids=np.arange(20), item_ids=range(0, 60, 5), seed=4),
        data.prepare_ratings("large", users * 10**9, items, stars, test_fraction=0.3),
        data.prepare_ratings("text", towns, items - 20, stars, user_ids=["Kiruna", "Lund", "Malmö", "Visby", "Ystad"]),
    ]
    return [kept(one) for one in made]


# -- files -----------------------------------------------------------------------------------------------------------

TOWNS = ["Lund", "Ystad", "Kiruna"]


def lines(sep=",", index=None, missing=False, quoted=False):
    """A table as text: numbers, text, truth values, a column that never changes, and targets of several kinds."""
    X, y = numbers()
    header = ["dose", "weight", "town", "ill", "same", "died", "stage", "visits"]
    text = [sep.join(header if index is None else [index, *header])]
    for k, row in enumerate(X):
        town = f'"{TOWNS[k % 3]}"' if quoted else TOWNS[k % 3]
        cells = [f"{row[0]:.6f}", f"{row[1]:.6f}", town, str(k % 4 > 1), "7", "yn"[y[k]], f"s{(k * 5) % 3}", str(k % 5)]
        if missing and k in (3, 8, 21):
            cells[k % 3] = ["NA", "", "?"][k % 3]
        text.append(sep.join(cells if index is None else [f"r{k}", *cells]))
    return "\n".join(text) + "\n"


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory() as name:
        yield pathlib.Path(name)


def read(content, *args, name="table.csv", **options):
    with folder() as where:
        file = where / name
        if callable(content):
            content(file)
        else:
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        beside = [where / arg if isinstance(arg, str) and arg.endswith(".npy") else arg for arg in args]
        return kept(data.read(file, *beside, **options))


DROP = {"drop": ("town", "stage", "same")}
OTHERS = {"drop": "stage", "one_hot": True, "drop_constant": True}
for label, (content, options) in {
    "columns left out": (lambda: lines(), DROP),
    "columns encoded": (lambda: lines(), OTHERS),
    "some columns encoded": (lambda: lines(), {"one_hot": ["visits", "town", "stage"], "drop_constant": True}),
    "one column encoded": (lambda: lines(), {"one_hot": "town", "drop": ["stage", "same"]}),
    "encoded without an intercept": (lambda: lines(), OTHERS | {"intercept": None}),
    "as it is": (lambda: lines(), DROP | {"standardise": False, "intercept": "last"}),
    "encoded with the intercept last": (lambda: lines(), OTHERS | {"intercept": "last"}),
    "another seed": (lambda: lines(), DROP | {"seed": 5}),
    "semicolons": (lambda: lines(";"), DROP),
    "tabs": (lambda: lines("\t"), DROP),
    "bars": (lambda: lines("|"), DROP),
    "spaces": (lambda: lines(" "), DROP),
    "a separator that is given": (lambda: lines("%"), DROP | {"sep": "%"}),
    "quotation marks": (lambda: lines(quoted=True), OTHERS),
    "UTF-16": (lambda: lines(";").encode("utf-16"), DROP),
    "gzip": (lambda: gzip.compress(lines().encode()), DROP),
    "an index without a name": (lambda: lines(index=""), DROP),
    "an index that is named": (lambda: lines(index="row"), DROP | {"index": "row"}),
    "names of rows as R has them": (lambda: lines(index="").replace(",dose", "dose", 1), DROP),
    "missing values": (lambda: lines(missing=True), DROP | {"drop_missing": True}),
    "missing values and an index": (
        lambda: lines(index="row", missing=True),
        OTHERS | {"index": "row", "drop_missing": True},
    ),
}.items():
    case(lambda c=content, o=options: read(c(), "died", **o), f"CSV with {label}")
for label, options in {
    "a number": {"target": "visits", "numeric": True},
    "a number above": {"target": "visits", "above": 2.5},
    "one of several numbers": {"target": "visits", "positive": 3},
    "one of several words": {"target": "stage", "positive": "s1"},
    "one of two words": {"target": "died", "positive": "n"},
    "a truth value": {"target": "ill", "positive": "False"},
}.items():
    case(
        lambda o=options: read(lines(), drop=[n for n in ("town", "stage", "same", "died") if n != o["target"]], **o),
        f"target that is {label}",
    )


@case
def a_slip():
    """A word among numbers makes a category, which is said."""
    head, *rest = lines().splitlines()
    rest[6] = rest[6].rpartition(",")[0] + ",none at all"
    text = "\n".join([head, *rest])
    return read(text, "died", drop=("stage", "same", "town"), one_hot=True)


def arrays(layout):
    X, y = numbers()
    X[:, 3] = np.arange(len(X)) % 3
    words = np.array(["no", "yes"])[y]
    if layout == "npz":
        return lambda file: np.savez(file, X=X, y=words, names=np.array(["a", "b", "c", "d"]))
    if layout == "npz of columns":
        return lambda file: np.savez(file, first=X[:, 0], town=np.array(TOWNS)[np.arange(30) % 3], y=y, third=X[:, 2])
    if layout == "npy":
        return lambda file: np.save(file, np.column_stack([X, y]).astype(np.float32))
    if layout == "npy and another":

        def both(file):
            np.save(file, X)
            np.save(file.parent / "labels.npy", 3 * y - 1)
            np.save(file.parent / "numbers.npy", X[:, 1] * 2.0)

        return both
    fields = np.zeros(30, [("dose", float), ("town", "U8"), ("died", bool)])
    fields["dose"], fields["town"], fields["died"] = X[:, 0], np.array(TOWNS)[np.arange(30) % 3], y
    return lambda file: np.save(file, fields)


def numbered(first, missing=False):
    """LIBSVM text, its columns numbered from 0 or from 1."""
    X, y = numbers()
    text = ""
    for k, (row, label) in enumerate(zip(X, y, strict=True)):
        value = "nan" if missing and k in (2, 9) else f"{row[2]:.5f}"
        pairs = [f"{first}:{row[0]:.5f}"] * bool(row[0] != 0.0) + [f"{first + 1}:{row[1]:.5f}"] * bool(row[1] != 0.0)
        text += " ".join([f"{2 * label - 1}", *pairs, f"{first + 3}:{value}"]) + "\n"
    return text


for label, (content, args, options) in {
    "NPZ": (lambda: arrays("npz"), [], {"name": "t.npz"}),
    "NPZ without columns": (lambda: arrays("npz"), [], {"name": "t.npz", "drop": ["b", "a"], "positive": "no"}),
    "NPZ of columns": (lambda: arrays("npz of columns"), ["y"], {"name": "t.npz", "one_hot": True}),
    "NPY": (lambda: arrays("npy"), [-1], {"name": "t.npy"}),
    "NPY by a number": (lambda: arrays("npy"), ["1"], {"name": "t.npy", "numeric": True, "drop": "2"}),
    "NPY and labels": (lambda: arrays("npy and another"), ["labels.npy"], {"name": "t.npy"}),
    "NPY on the disk": (
        lambda: arrays("npy and another"),
        ["numbers.npy"],
        {"name": "t.npy", "numeric": True, "mmap": True, "standardise": False, "intercept": None},
    ),
    "NPY with fields": (lambda: arrays("fields"), ["died"], {"name": "t.npy", "one_hot": ["town"]}),
    "LIBSVM": (lambda: numbered(1), [], {"name": "t.txt", "drop_constant": True}),
    "LIBSVM from zero": (lambda: numbered(0), [], {"name": "t.txt", "drop_constant": True, "intercept": "last"}),
    "LIBSVM packed": (
        lambda: gzip.compress(numbered(1).encode()),
        [],
        {"name": "t", "drop": ["3"], "standardise": False},
    ),
    "LIBSVM with gaps": (lambda: numbered(1, True), [], {"name": "t", "drop_missing": True, "drop_constant": True}),
}.items():
    case(lambda c=content, a=args, o=options: read(c(), *a, **o), f"file of {label}")


@case
def parquet():
    import pandas

    X, y = numbers()
    town = np.array(TOWNS, dtype=object)[np.arange(30) % 3]
    town[4] = None
    frame = pandas.DataFrame({"dose": X[:, 0], "town": town, "died": y.astype(bool), "day": np.arange(30) % 7})
    frame.index = pandas.Index(np.arange(30) + 100, name="patient")
    kinds = {"one_hot": True, "drop_missing": True}
    return [
        read(frame.to_parquet, target, name="t.parquet", **kinds, **more)
        for target, more in (("died", {}), ("day", {"above": 2}))
    ]


@case
def as_they_are_in_files():
    """What the readers of formats find, before anything is left out."""
    found = []
    with folder() as where:
        for name, content in {
            "a.csv": lines(missing=True),
            "b.csv": lines(";", index=""),
            "c.txt": numbered(0),
        }.items():
            (where / name).write_text(content)
            one = data.formats.read_file(where / name)
            if isinstance(one, formats.Matrix):
                found.append([one.names, one.X, one.y, one.target])
                continue
            columns = {k: [c.values, c.missing, c.odd] for k, c in one.columns.items()}
            found.append([columns, one.lines, one.index, one.separator, one.row(3).split()])
            found.append(one._replace(kept=np.array([5, 6]), lines=None).row(1).split())
    words = [formats.listed(range(14)), formats.listed("ab"), formats.columns_text(["x"]), formats.columns_text("xyz")]
    numbers_of = [formats.is_number(text) for text in ("1e3", "1,5", "inf", "", "0x1")]
    return [found, [text.split() for text in words], numbers_of]


# -- published data, whose files are made up anew --------------------------------------------------------------------


def digest(content, kind=hashlib.sha256):
    return kind(content).hexdigest()


@contextlib.contextmanager
def stand_in(module, name, files, **more):
    """A folder with made-up files, which a source expects for a while; PDMP_DATA is it."""
    source, before = getattr(module, name), os.environ.get("PDMP_DATA")
    known = {file: digest(content) for file, content in files.items() if file in source.sha256}
    kept_more = {key: getattr(module, key) for key in more}
    with folder() as where:
        inside = where / source.folder
        inside.mkdir()
        for file, content in files.items():
            (inside / file).write_bytes(content)
        try:
            setattr(module, name, replace(source, sha256={**source.sha256, **known}))
            for key, value in more.items():
                setattr(module, key, value)
            os.environ["PDMP_DATA"] = str(where)
            yield inside
        finally:
            setattr(module, name, source)
            for key, value in kept_more.items():
                setattr(module, key, value)
            os.environ.pop("PDMP_DATA")
            if before is not None:
                os.environ["PDMP_DATA"] = before


@case
def sepsis():
    text = "age,sex,episode,alive\n" + "\n".join(f"{20 + k % 60},{k % 2},{k % 3},{int(k % 9 > 0)}" for k in range(70))
    with stand_in(uci, "SEPSIS", {uci.SEPSIS_FILE: text.encode()}) as where:
        made = [
            data.sepsis(),
            data.sepsis(where, True, "first", 3),
            data.problem("sepsis"),
            data.sepsis(intercept=None),
        ]
        return [kept(one) for one in made]


@case
def arrhythmia():
    rng = np.random.default_rng(3)
    table = np.round(rng.standard_normal((40, 280)) * 10.0, 1)
    table[:, 5], table[:, 7], table[:, 279] = 2.0, table[:, 3] + table[:, 4], np.arange(40) % 17
    table[table[:, 279] == 0, 279] = 1.0
    text = "\n".join(
        ",".join("?" if (j in (11, 12) and k % 3 == 0) else f"{v:g}" for j, v in enumerate(row))
        for k, row in enumerate(table)
    )
    with stand_in(uci, "ARRHYTHMIA", {uci.ARRHYTHMIA_FILE: text.encode()}) as where:
        made = [
            data.arrhythmia(columns=9),
            data.arrhythmia(where, 12, False, "first", 2),
            data.arrhythmia(columns=None),
        ]
        return [kept(one) for one in made]


@case
def attributes():
    return [
        uci.attribute_names(),
        uci.independent(np.array([[1.0, 2.0, 3.0, 1.0], [2.0, 4.0, 3.0, 0.0], [5.0, 10.0, 3.0, 7.0]])),
    ]


@case
def meg():
    rng = np.random.default_rng(3)
    text = "\n".join(",".join(map(str, row)) for row in [range(40), *np.round(rng.standard_normal((10, 40)) * 3.0, 3)])
    with stand_in(recordings, "MEG", {recordings.MEG_FILE: text.encode()}) as where:
        return [kept(data.meg()), kept(data.meg(where / recordings.MEG_FILE, standardise=False, seed=2))]


def packed(array):
    head = bytes([0, 0, 8, array.ndim]) + b"".join(int(n).to_bytes(4, "big") for n in array.shape)
    return head + array.astype(np.uint8).tobytes()


@case
def mnist():
    rng = np.random.default_rng(4)
    files = {}
    for part, n in (("train", 8), ("t10k", 5)):
        files[f"{part}-images-idx3-ubyte"] = packed(rng.integers(256, size=(n, 28, 28)))
        files[f"{part}-labels-idx1-ubyte"] = packed(rng.integers(10, size=n))
    with stand_in(images, "MNIST", files) as where:
        found = [data.mnist(), data.mnist(where, np.float64)]
    return [
        [kept(one) | {"X": one.X, "names": one.names[::97]} for one in found],
        images.idx(packed(np.arange(6).reshape(2, 3)), 2050, "x"),
    ]


def stars(separator, times=True, halves=1.0):
    rng = np.random.default_rng(5)
    users, items = [1, 2, 4, 4, 2, 1, 6, 6, 7, 7, 4, 6], [3, 3, 1, 8, 8, 5, 1, 3, 5, 8, 5, 8]
    text = ""
    for k, (user, item) in enumerate(zip(users, items, strict=True)):
        score = f"{rng.integers(1, 6) * halves:g}"
        text += separator.join([str(user), str(item), score, *([str(900 + k)] if times else [])]) + "\n"
    return text


@case
def movielens_100k():
    files = {f"u{k}.{part}": stars("\t")[: None if part == "base" else 60] for k in (1, 3) for part in ("base", "test")}
    files = {name: (text[: text.rindex("\n") + 1]).encode() for name, text in files.items()}
    with stand_in(movielens, "MOVIELENS_100K", files) as where:
        found = [data.movielens_100k(), data.movielens_100k(3, where)]
        return [kept(one) for one in found]


@case
def movielens_1m():
    triples = np.array([[float(v) for v in line.split("::")[:3]] for line in stars("::").splitlines()]).astype("<i4")
    movies = "".join(f"{k}::A film, the {k}th::Drama\n" for k in (9, 1, 3, 5, 8)).encode()
    known = {"TRIPLES_1M": digest(triples.tobytes())}
    found = []
    for file, text in (("ratings.dat", stars("::")), ("ratings_no_timestamp.csv", stars(",", times=False))):
        body = text if file.endswith("dat") else f"user,item,rating\n{text}"
        with stand_in(movielens, "MOVIELENS_1M", {file: body.encode(), "movies.dat": movies}, **known) as where:
            found += [data.movielens_1m(), data.movielens_1m(where, False, 0.3, 2)]
    return [kept(one) for one in found]


@case
def movielens_of_more():
    found = []
    for name, ending, separator, halves in (("10M", "dat", "::", 0.5), ("20M", "csv", ",", 0.5)):
        films = "".join(f"{k}{separator}A film{separator}Drama\n" for k in (9, 1, 3, 5, 8, 12))
        text = stars(separator, halves=halves)
        if ending == "csv":
            films, text = f"movieId,title,genres\n{films}", f"userId,movieId,rating,timestamp\n{text}"
        files = {f"ratings.{ending}": text.encode(), f"movies.{ending}": films.encode()}
        counts = movielens.COUNTS | {f"movielens_{name.lower()}": (12, 5, 4)}
        more = {"COUNTS": counts, "USERS_10M": 9, "BLOCK": 50}
        load = getattr(data, f"movielens_{name.lower()}")
        with stand_in(movielens, f"MOVIELENS_{name}", files, **more) as where:
            found += [load(), load(where, False, 0.3, 2)]
    return [kept(one) for one in found]


@case
def sources_of_files():
    """Where to get what is missing, by name."""
    known = [
        uci.SEPSIS,
        uci.ARRHYTHMIA,
        images.MNIST,
        recordings.MEG,
        movielens.MOVIELENS_100K,
        movielens.MOVIELENS_20M,
    ]
    return [[source.how().split(), sorted(source.urls), source.folder] for source in known]


# -- what is made ----------------------------------------------------------------------------------------------------

for label, make in {
    "ratings of a factorisation": lambda: data.synthetic_ratings(12, 9, 50),
    "ratings with options": lambda: data.synthetic_ratings(
        15, 8, 60, rank=3, noise=0.2, spread=0.9, least=2, test_fraction=0.3, seed=3, name="mine"
    ),
    "ratings in stars": lambda: data.synthetic_ratings(10, 60, 80, rank=2, stars=(0.5, 5.0, 0.5), spread=0.5, seed=2),
    "sepsis": lambda: data.synthetic_sepsis(80),
    "sepsis with options": lambda: data.synthetic_sepsis(90, True, "first", 3),
    "arrhythmia": lambda: data.synthetic_arrhythmia(60, 6),
    "arrhythmia with options": lambda: data.synthetic_arrhythmia(60, 6, False, None, 2),
    "meg": lambda: data.synthetic_meg(n=40, channels=3),
    "meg with options": lambda: data.synthetic_meg(n=40, channels=3, standardise=False, seed=2),
    "images": lambda: data.synthetic_mnist(15, 6, 8),
    "images with options": lambda: data.synthetic_mnist(5, 4, 14, np.float64, 2),
}.items():
    case(lambda m=make: kept(m()), f"synthetic {label}")


@case
def sizes_of_synthetic_data():
    """What the published sizes are."""
    made, before = [], data.synthetic.synthetic_ratings
    try:
        data.synthetic.synthetic_ratings = lambda *args, **options: made.append([args, options])
        for size in ("100k", "1m", "10m", "20m"):
            getattr(data, f"synthetic_movielens_{size}")(seed=4)
    finally:
        data.synthetic.synthetic_ratings = before
    return made


for name in ("breast_cancer", "wine", "diabetes"):
    case(lambda n=name: kept(data.problem(n)), f"problem {name}")


@case
def digits():
    """Odd or even, without the pixels that never change."""
    found = data.problem("digits")
    return [found.X.T[:, ::60], found.y[::60], found.names, found.prepared.split(), len(found)]


@case
def names_and_sizes():
    problems = {name: load.about.split() for name, load in data.PROBLEMS.items()}
    meant = [tables.did_you_mean(n, k) for n, k in (("agee", ["sex", "age"]), ("WINE", data.PROBLEMS), ("zz", ["age"]))]
    sizes = [memory.in_words(size) for size in (3.0, 2.5e6, 3.21e9, 7.654e12, 1e15)]
    parts = dataset.split(40, np.arange(40) % 3 == 0, 0.3, 2)
    found = sources.unpacked(gzip.compress(b"ab"), "x").decode() + sources.unpacked(b"cd", "x").decode()
    return [problems, [text.split() for text in meant], sizes, parts, dataset.split(20, None, 0.25), found]
