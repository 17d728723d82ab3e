"""The published data sets: made-up files of their true formats, the real ones where PDMP_DATA is set, and stand-ins."""

import gzip
import hashlib
import io
import os
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from pdmp import data
from pdmp.data import dataset, images, movielens, recordings, sources, uci
from pdmp.data.dataset import split as split_rows

pytestmark = pytest.mark.exact

FOLDERS = ("movielens_100k", "movielens_1m", "arrhythmia", "sepsis_survival", "meg_ica", "mnist")
HERE = os.environ.get("PDMP_DATA", "")
real = {
    folder: pytest.mark.skipif(
        not (HERE and os.path.isdir(os.path.join(HERE, folder))), reason=f"needs {folder}/ in PDMP_DATA"
    )
    for folder in FOLDERS
}


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def md5(content):
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


@pytest.fixture(autouse=True)
def no_environment(request, monkeypatch):
    """Only the tests of the real files see PDMP_DATA."""
    if not request.node.name.startswith("test_real"):
        monkeypatch.delenv("PDMP_DATA", raising=False)


def stand_in(monkeypatch, module, name, files, **more):
    """Let the source `name` of a module expect made-up files."""
    source = getattr(module, name)
    known = {file: sha256(content) for file, content in files.items() if file in source.sha256}
    monkeypatch.setattr(module, name, replace(source, sha256={**source.sha256, **known}, **more))
    return getattr(module, name)


def write(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


# -- where files come from -----------------------------------------------------------------------------------------


@pytest.fixture
def sepsis(tmp_path, monkeypatch):
    """A stand-in for the file, in a folder laid out as PDMP_DATA."""
    lines = [f"{20 + k % 60},{k % 2},{k % 3},{int(k % 9 > 0)}" for k in range(200)]
    content = ("age,sex,episode,alive\n" + "\n".join(lines)).encode()
    stand_in(monkeypatch, uci, "SEPSIS", {uci.SEPSIS_FILE: content})
    write(tmp_path / "sepsis_survival", {uci.SEPSIS_FILE: content})
    return tmp_path


def test_a_file_a_folder_an_archive_or_the_environment(sepsis, monkeypatch):
    folder = sepsis / "sepsis_survival"
    file = folder / uci.SEPSIS_FILE
    renamed, packed, archive = sepsis / "renamed.csv", sepsis / "packed.gz", sepsis / "archive.zip"
    renamed.write_bytes(file.read_bytes())
    packed.write_bytes(gzip.compress(file.read_bytes()))
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr(f"__MACOSX/{uci.SEPSIS_FILE}", b"not this one")
        opened.write(file, f"data/{uci.SEPSIS_FILE}")
    unpacked = write(sepsis / "unpacked" / "data", {f"{uci.SEPSIS_FILE}.gz": packed.read_bytes()}).parent
    expected = data.sepsis(file)
    for path in (folder, str(file), renamed, packed, archive, unpacked):
        assert np.array_equal(data.sepsis(path).X, expected.X)
    monkeypatch.setenv("PDMP_DATA", str(sepsis))
    assert np.array_equal(data.sepsis().X, expected.X)
    monkeypatch.setenv("PDMP_DATA", str(sepsis / "nothing"))
    assert np.array_equal(data.sepsis(file).X, expected.X)  # what is given is what is read


def test_other_files_are_refused(sepsis):
    folder = sepsis / "sepsis_survival"
    for name, content in {"other.csv": b"1,2,3,4\n", "cut.gz": gzip.compress(b"1,2,3,4\n")[:-6]}.items():
        (sepsis / name).write_bytes(content)
    with pytest.raises(ValueError, match="is not the file .*csv that was published: its SHA-256 is another"):
        data.sepsis(sepsis / "other.csv")
    with pytest.raises(ValueError, match="cannot be unpacked"):
        data.sepsis(sepsis / "cut.gz")
    with pytest.raises(FileNotFoundError, match=r"no file .*absent.*archive.ics.uci.edu.*CC BY 4.0.*synthetic_sepsis"):
        data.sepsis(sepsis / "absent.csv")
    (folder / uci.SEPSIS_FILE).unlink()
    with pytest.raises(FileNotFoundError, match="there is no file s41598.*set PDMP_DATA"):
        data.sepsis(folder)


def test_every_source_says_what_to_do():
    for module in (uci, movielens, recordings, images):
        for source in vars(module).values():
            if isinstance(source, sources.Source):
                text = source.how()
                assert source.terms in text and source.page in text and f"{source.folder}/" in text
                stand_in_name = text.rpartition("pdmp.data.")[2].partition("(")[0]
                assert callable(getattr(data, stand_in_name)) and stand_in_name == f"synthetic_{source.name}"
                assert callable(getattr(data, source.name))


@pytest.mark.parametrize("name", ["meg", "movielens_100k", "movielens_1m", "movielens_10m", "movielens_20m"])
def test_what_may_not_be_fetched(name):
    with pytest.raises(FileNotFoundError, match=f"'{name}' is not downloaded for you.*set PDMP_DATA"):
        getattr(data, name)()


@pytest.fixture
def web(tmp_path, monkeypatch):
    """A stand-in for the network: address -> content; what is asked for is noted."""
    pooch = pytest.importorskip("pooch")
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache" / name)
    pages, asked = {}, []

    def retrieve(url, known_hash, path):
        asked.append((url, known_hash))
        if url not in pages:
            raise OSError("no network")
        fetched = path / f"fetched{len(asked)}"
        path.mkdir(parents=True, exist_ok=True)
        fetched.write_bytes(pages[url])
        return str(fetched)

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    return pages, asked


def test_download_of_a_nested_archive(sepsis, tmp_path, web, caplog):
    pages, asked = web
    (url,) = uci.SEPSIS.urls
    content = (sepsis / "sepsis_survival" / uci.SEPSIS_FILE).read_bytes()
    inner, outer = tmp_path / "inner.zip", tmp_path / "outer.zip"
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr(f"folder/{uci.SEPSIS_FILE}", content)
    with zipfile.ZipFile(outer, "w") as archive:
        archive.write(inner, "data.zip")
    pages[url] = outer.read_bytes()
    with caplog.at_level("INFO"):
        first = data.sepsis()
    assert len(first) == 200 and asked == [(url, None)]
    assert np.array_equal(data.sepsis().X, first.X) and len(asked) == 1  # kept
    (tmp_path / "cache" / "pdmp" / "sepsis_survival" / uci.SEPSIS_FILE).write_bytes(b"changed")
    with pytest.raises(ValueError, match="SHA-256"):
        data.sepsis()


def test_all_archives_in_an_archive_are_searched():
    outer = io.BytesIO()
    with zipfile.ZipFile(outer, "w") as archive:
        for inside in ("first", "second"):
            inner = io.BytesIO()
            with zipfile.ZipFile(inner, "w") as packed:
                packed.writestr(f"folder/{inside}.csv", inside)
            archive.writestr(f"{inside}.zip", inner.getvalue())
    found = [sources.find_in_zip(outer.getvalue(), f"{name}.csv") for name in ("first", "second", "third")]
    assert found == [b"first", b"second", None]


def test_the_licence_is_shown(sepsis, web, monkeypatch):
    import pooch

    said = []
    monkeypatch.setattr(pooch.get_logger(), "info", lambda text, *parts: said.append(text % parts))
    with pytest.raises(ConnectionError):
        data.sepsis()
    assert any("Licence: CC BY 4.0" in line and "Chicco" in line for line in said)


def test_download_that_fails_or_brings_something_else(sepsis, tmp_path, web, monkeypatch):
    pages, _ = web
    (url,) = uci.SEPSIS.urls
    with pytest.raises(ConnectionError, match=r"download of 'sepsis' from http.* failed \(OSError\).*set PDMP_DATA"):
        data.sepsis()
    archive = tmp_path / "archive.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr(uci.SEPSIS_FILE, b"something else")
    pages[url] = archive.read_bytes()
    with pytest.raises(ValueError, match="SHA-256"):
        data.sepsis()
    pages[url] = b"<html>moved</html>"
    with pytest.raises(ValueError, match="had no file s41598"):
        data.sepsis()
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    with pytest.raises(ImportError, match=r"'sepsis' needs pooch .*pip install 'pdmp\[data\]'"):
        data.sepsis()


def test_mnist_is_downloaded_file_by_file(digits, web):
    pages, asked = web
    files, _, _ = digits
    for url in images.MNIST.urls:
        pages[url] = gzip.compress(files[url.rpartition("/")[2].removesuffix(".gz")])
    assert len(data.mnist()) == 9
    assert asked == [(url, f"md5:{known}") for url, known in images.MNIST.urls.items()]


# -- MovieLens -----------------------------------------------------------------------------------------------------

TRIPLES = [
    (1, 10, 5),
    (1, 30, 3),
    (2, 10, 4),
    (4, 20, 1),
    (4, 30, 2),
    (4, 10, 3),
    (2, 30, 4),
    (1, 20, 2),
    (2, 20, 5),
    (4, 50, 4),
]
LISTED = (20, 10, 40, 30, 50)


def lines(separator, stars=1.0, times=True):
    rows = [(u, i, f"{r * stars:g}", 978300760 + k) for k, (u, i, r) in enumerate(TRIPLES)]
    return "".join(separator.join(map(str, row if times else row[:3])) + "\n" for row in rows).encode()


def listing(separator, header=""):
    return (header + "".join(f"{i}{separator}A film, {i}{separator}Drama\n" for i in LISTED)).encode()


def assert_ratings(found, item_ids, user_ids=(1, 2, 4), stars=1.0):
    user_ids, item_ids = np.array(user_ids), np.array(item_ids)
    assert found.users.dtype == found.items.dtype == np.int32 and found.ratings.dtype == np.float32
    columns = user_ids[found.users], item_ids[found.items], found.ratings / stars
    assert [tuple(row) for row in np.column_stack(columns).tolist()] == TRIPLES  # in the order of the file
    assert found.shape == (len(user_ids), len(item_ids)) and np.array_equal(found.item_ids, item_ids)
    assert np.array_equal(found.user_ids, user_ids)


def test_movielens_100k(tmp_path, monkeypatch):
    files = {}
    for split in range(1, 6):
        text = lines("\t").splitlines(keepends=True)
        text = text[split:] + text[:split]
        files |= {f"u{split}.base": b"".join(text[:8]), f"u{split}.test": b"".join(text[8:])}
    stand_in(monkeypatch, movielens, "MOVIELENS_100K", files)
    folder = write(tmp_path / "ml-100k", files)
    read = data.movielens_100k(split=3, path=folder)
    assert read.shape == (943, 1682) and len(read) == 10 and len(read.train) == 8 and len(read.test) == 2
    turned = TRIPLES[3:] + TRIPLES[:3]
    assert [(u + 1, i + 1, r) for u, i, r in zip(read.users, read.items, read.ratings, strict=True)] == turned
    assert [
        (u + 1, i + 1, r) for u, i, r in zip(read.test.users, read.test.items, read.test.ratings, strict=True)
    ] == turned[8:]
    assert read.mean == read.train.mean == read.test.mean == pytest.approx(np.mean([r for *_, r in turned[:8]]))
    assert np.shares_memory(read.train.items, read.items)  # a view
    with pytest.raises(AttributeError, match="is a part"):
        read.test.train  # noqa: B018
    with pytest.raises(ValueError, match="`split` must be 1, 2, 3, 4 or 5, got 6"):
        data.movielens_100k(split=6)
    (folder / "u2.test").write_bytes(files["u1.test"])
    with pytest.raises(ValueError, match="is not the file u2.test that was published"):
        data.movielens_100k(split=2, path=folder)
    for name in ("u3.base", "u4.test"):
        broken = files | {name: lines("\t", times=False)}
        stand_in(monkeypatch, movielens, "MOVIELENS_100K", broken)
        with pytest.raises(ValueError, match=f"^{name} does not have 4 numbers in each line"):
            data.movielens_100k(split=int(name[1]), path=write(tmp_path / name, broken))


def test_movielens_1m(tmp_path, monkeypatch):
    monkeypatch.setattr(movielens, "BLOCK", 30)  # several blocks, none at the end of a line
    triples = np.array(TRIPLES, "<i4").tobytes()
    monkeypatch.setattr(movielens, "TRIPLES_1M", sha256(triples))
    films = listing("::")
    stand_in(monkeypatch, movielens, "MOVIELENS_1M", {"movies.dat": films})
    whole = write(tmp_path / "whole", {"ratings.dat": lines("::"), "movies.dat": films})
    plain = b"UserID,MovieID,Rating\n" + lines(",", times=False)
    short = write(tmp_path / "short", {"ratings_no_timestamp.csv.gz": gzip.compress(plain), "movies.dat": films})
    for folder in (whole, short):
        assert_ratings(data.movielens_1m(folder), (10, 20, 30, 40, 50))
        assert_ratings(data.movielens_1m(folder, unrated=False), (10, 20, 30, 50))
    (whole / "movies.dat").unlink()
    assert_ratings(data.movielens_1m(whole, unrated=False), (10, 20, 30, 50))
    with pytest.raises(FileNotFoundError, match="there is no file movies.dat"):
        data.movielens_1m(whole)
    (whole / "ratings.dat").write_bytes(lines("::").replace(b"::5::", b"::4::", 1))
    with pytest.raises(ValueError, match="does not hold the ratings that were published"):
        data.movielens_1m(whole)
    (whole / "ratings.dat").write_bytes(lines("::") + b"1::2::x::4\n")
    with pytest.raises(ValueError, match="ratings.dat does not have 4 numbers in each line"):
        data.movielens_1m(whole)
    (whole / "ratings.dat").write_bytes(b"")
    with pytest.raises(ValueError, match="ratings.dat is empty"):
        data.movielens_1m(whole)


@pytest.mark.parametrize(
    ("size", "ratings", "films"), [("10m", "ratings.dat", "movies.dat"), ("20m", "ratings.csv", "movies.csv")]
)
def test_movielens_10m_and_20m(size, ratings, films, tmp_path, monkeypatch):
    name, load = f"movielens_{size}", getattr(data, f"movielens_{size}")
    monkeypatch.setattr(movielens, "USERS_10M", 4)
    if size == "10m":
        files = {ratings: lines("::", 0.5), films: listing("::")}
    else:
        files = {ratings: b"userId,movieId,rating,timestamp\r\n" + lines(",", 0.5).replace(b"\n", b"\r\n")}
        files[films] = listing(",", "movieId,title,genres\n")
    archive = tmp_path / f"ml-{size}.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        for file, content in files.items():
            opened.writestr(f"ml-{size}/{file}", content)
    with pytest.raises(ValueError, match="not the archive that was published: its MD5 is another"):
        load(archive)
    variable = name.upper()
    monkeypatch.setattr(
        movielens, variable, replace(getattr(movielens, variable), md5={archive.name: md5(archive.read_bytes())})
    )
    users = (1, 2, 3, 4) if size == "10m" else (1, 2, 4)
    assert_ratings(load(archive), (10, 20, 30, 40, 50), users, stars=0.5)
    assert_ratings(load(tmp_path), (10, 20, 30, 40, 50), users, stars=0.5)  # the archive in a folder
    assert_ratings(load(archive, unrated=False), (10, 20, 30, 50), stars=0.5)
    unpacked = write(tmp_path / "unpacked", files)
    with pytest.raises(ValueError, match="has 10 ratings by 3 users of 4 films; MovieLens .* has"):
        load(unpacked)
    monkeypatch.setitem(movielens.COUNTS, name, (10, 3, 4))
    assert_ratings(load(unpacked), (10, 20, 30, 40, 50), users, stars=0.5)


def test_split_of_ratings():
    rng = np.random.default_rng(0)
    users, items = rng.integers(50, size=1001), np.array([f"item {k}" for k in rng.integers(70, size=1001)])
    values = rng.standard_normal(1001)
    one, two, other = (data.prepare_ratings("any", users, items, values, seed=seed) for seed in (0, 0, 1))
    assert len(one.test) == 101 and len(one.train) == 900
    assert sorted([*one.train_rows, *one.test_rows]) == list(range(1001))
    assert np.array_equal(one.test_rows, two.test_rows) and not np.array_equal(one.test_rows, other.test_rows)
    assert np.array_equal(one.train.ratings, values.astype(np.float32)[one.train_rows])
    assert one.mean == pytest.approx(values[one.train_rows].mean(), abs=1e-6)
    assert np.array_equal(one.item_ids[one.items], items) and np.array_equal(one.user_ids[one.users], users)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"ratings": [1.0, 2.0]}, r"must be of one length, got \(3,\), \(3,\), \(2,\)"),
        ({"ratings": [1.0, np.nan, 2.0]}, "`ratings` must be finite; the 1th is not"),
        ({"user_ids": [1, 2]}, "users such as .*3.* are not among the identifiers"),
        ({"items": ["a", "b", "c"], "item_ids": ["a", "b"]}, "items such as .*c.* are not among the identifiers"),
        ({"items": ["a", "b", "d"], "item_ids": ["a", "c", "d"]}, "items such as .*b.* are not among the identifiers"),
        ({"users": [1, 3, 4], "user_ids": [1, 2, 4]}, "users such as .*3.* are not among the identifiers"),
        ({"user_ids": [3, 2, 1]}, "the identifiers of users must be sorted, each once"),
        ({"test_fraction": 0.0}, "`test_fraction` must be between 0 and 1, got 0.0"),
        ({"test_fraction": 0.9}, "3 ratings cannot be split"),
        *(({"n_train": n}, f"`n_train` must be a whole number from 1 to 2,.* got {n}") for n in (0, 3, -1, 1.5)),
    ],
)
def test_ratings_that_do_not_fit(change, match):
    arguments = {"users": [1, 2, 3], "items": [1, 1, 2], "ratings": [1.0, 2.0, 3.0]} | change
    with pytest.raises(ValueError, match=match):
        data.prepare_ratings("any", **arguments)


def test_identifiers_are_numbered_whatever_their_size(monkeypatch):
    """By a table or by sorting: below the limit, at it, below 0, and beside identifiers above all that occur."""
    monkeypatch.setattr(dataset, "LARGEST_LOOKUP", 50)
    stars = np.arange(5.0)
    for users in ([7, 49, 3, 7, 0], [7, 50, 3, 7, 0], [7, 49, -3, 7, 0]):
        found = data.prepare_ratings("any", users, [1, 0, 1, 0, 1], stars)
        assert found.user_ids.tolist() == sorted(set(users)) and found.user_ids[found.users].tolist() == users
        every = np.arange(-5, 90, dtype=int) if min(users) < 0 else np.arange(90)
        found = data.prepare_ratings("any", users, [1, 0, 1, 0, 1], stars, user_ids=every)
        assert found.shape == (len(every), 2) and every[found.users].tolist() == users
        with pytest.raises(ValueError, match=rf"^users such as .*{max(users)}.* are not among"):
            data.prepare_ratings("any", users, [1, 0, 1, 0, 1], stars, user_ids=every[every != max(users)])


# -- arrhythmia, MEG, MNIST ----------------------------------------------------------------------------------------


def test_arrhythmia(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.integers(-50, 50, size=(60, 279)).astype(float)
    classes = np.array([1, 2, 16, 10, 1, 15] * 10)
    X[:, 0] = 0.0
    X[:, 4] = 3.0 * X[:, 1] - X[:, 2] + 7.0
    X[classes != 16, 6] = 5.0  # varies only in the rows that are left out
    rows = np.flatnonzero(classes != 16)
    X[rows[split_rows(len(rows), classes[rows] != 1)[0]], 9] = 5.0  # varies only in the test part
    text = [[f"{v:g}" for v in row] for row in X]
    text[0][5] = "?"
    content = "\n".join(",".join([*row, str(c)]) for row, c in zip(text, classes, strict=True)).encode()
    stand_in(monkeypatch, uci, "ARRHYTHMIA", {uci.ARRHYTHMIA_FILE: content})
    folder = write(tmp_path / "arrhythmia", {uci.ARRHYTHMIA_FILE: content})
    read = data.arrhythmia(folder, columns=10, standardise=False)
    kept = [1, 2, 3, 7, 8, 10, 11, 12, 13, 14]
    assert np.array_equal(read.X, np.column_stack([X[classes != 16][:, kept], np.ones(50)]))
    assert np.array_equal(read.y, classes[classes != 16] != 1) and read.labels == ("normal", "arrhythmia")
    assert data.arrhythmia(folder, columns=None, intercept=None).X.shape == (
        50,
        39,
    )  # no more than the rank in the training part
    scaled = data.arrhythmia(folder, columns=10)
    assert np.allclose(scaled.train.X[:, :10].std(axis=0), 1.0) and len(scaled.train) == 40
    assert "QRS_angle" not in scaled.names and "QRS_angle" in data.arrhythmia(folder, columns=10, seed=1).names


def test_meg(tmp_path, monkeypatch):
    table = np.round(np.random.default_rng(0).normal(3.0, 20.0, (10, 50)), 4)
    header = ",".join(f'"V{k + 1}"' for k in range(50))
    content = "\n".join([header, *(",".join(map(str, row)) for row in table)]).encode()
    stand_in(monkeypatch, recordings, "MEG", {recordings.MEG_FILE: content})
    folder = write(tmp_path / "meg_ica", {f"{recordings.MEG_FILE}.gz": gzip.compress(content)})
    raw = data.meg(folder, standardise=False)
    assert np.array_equal(raw.X, table.T) and raw.y is None and raw.train.y is None
    read = data.meg(folder)
    part = table.T[read.train_rows]
    assert np.allclose(read.X, (table.T - part.mean(axis=0)) / part.std(axis=0)) and len(read.test) == 10


def packed_idx(array):
    return bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape) + array.tobytes()


@pytest.fixture
def digits(tmp_path, monkeypatch):
    """The four files of MNIST, of six and three images, and what is in them."""
    rng = np.random.default_rng(0)
    pixels, labels = rng.integers(256, size=(9, 28, 28), dtype=np.uint8), rng.integers(10, size=9, dtype=np.uint8)
    files = {}
    for part, rows in (("train", slice(0, 6)), ("t10k", slice(6, 9))):
        files[f"{part}-images-idx3-ubyte"] = packed_idx(pixels[rows])
        files[f"{part}-labels-idx1-ubyte"] = packed_idx(labels[rows])
    stand_in(monkeypatch, images, "MNIST", files)
    return files, pixels, labels


def test_mnist(digits, tmp_path):
    files, pixels, labels = digits
    folder = write(tmp_path / "mnist", {f"{name}.gz": gzip.compress(content) for name, content in files.items()})
    read = data.mnist(folder, dtype=np.float64)
    assert np.array_equal(read.X, pixels.reshape(9, 784) / 255.0) and np.array_equal(read.y, labels)
    assert len(read.train) == 6 and len(read.test) == 3 and np.array_equal(read.test.X, read.X[6:])
    assert np.shares_memory(read.train.X, read.X) and read.names[29:30] == ("pixel_1_1",)
    assert data.mnist(folder).X.dtype == np.float32 and "10 labels" in repr(read)
    with pytest.raises(ValueError, match="`dtype` must be float32 or float64"):
        data.mnist(folder, dtype=int)


def test_idx():
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    assert np.array_equal(images.idx(packed_idx(array), images.IMAGES, "file"), array)
    with pytest.raises(ValueError, match="file is not an idx file of unsigned bytes in 1 dimensions"):
        images.idx(packed_idx(array), images.LABELS, "file")
    with pytest.raises(ValueError, match="not an idx file"):
        images.idx(b"\x00", images.LABELS, "file")
    with pytest.raises(ValueError, match="file should have 24 values, and has 23"):
        images.idx(packed_idx(array)[:-1], images.IMAGES, "file")


# -- the real files ------------------------------------------------------------------------------------------------


@real["movielens_100k"]
@pytest.mark.parametrize("split", [1, 5])
def test_real_movielens_100k(split):
    read = data.movielens_100k(split)
    assert len(read.train) == 80_000 and len(read.test) == 20_000 and read.shape == (943, 1682)
    assert len(np.unique(read.users)) == 943 and len(np.unique(read.items)) == 1682
    assert set(np.unique(read.ratings)) == {1, 2, 3, 4, 5}
    files = movielens.MOVIELENS_100K.open()
    users, items, ratings = movielens._parsed([files.read("u.data")], 4, "u.data")
    code = np.sort((users - 1) * 10_000 + (items - 1) * 5 + ratings.astype(int))
    assert np.array_equal(np.sort(read.users * 10_000 + read.items * 5 + read.ratings.astype(int)), code)
    if split == 1:
        assert len(np.unique(read.train.items)) == 1650
        assert np.sqrt(np.mean((read.test.ratings - read.mean) ** 2)) == pytest.approx(1.154, abs=5e-4)


@real["movielens_1m"]
def test_real_movielens_1m():
    read = data.movielens_1m()
    assert len(read) == 1_000_209 and read.shape == (6040, 3883) and len(read.test) == 100_021
    assert len(np.unique(read.items)) == 3706 and read.item_ids[-1] == 3952


@real["sepsis_survival"]
def test_real_sepsis():
    read = data.sepsis()
    assert read.X.shape == (110_204, 4) and int((read.y == 0).sum()) == 8_105 and len(read.train) == 88_163
    assert read.names == ("age", "sex", "episode", "intercept") and read.X[:, 0].max() == 100.0
    ready = data.problem("sepsis")
    assert ready.names[0] == "intercept" and np.allclose(ready.train.X[:, 1:].std(axis=0), 1.0)


@real["arrhythmia"]
def test_real_arrhythmia():
    read = data.arrhythmia()
    assert read.X.shape == (430, 101) and len(read.train) == 344 and len(read.test) == 86
    assert int(read.y.sum()) == 185
    assert data.arrhythmia(columns=None).X.shape == (430, 245)
    for seed in range(3):
        train = data.arrhythmia(seed=seed).train.X
        assert np.linalg.matrix_rank(train) == 101 and np.allclose(train[:, :-1].std(axis=0), 1.0)
    assert data.problem("arrhythmia").names[0] == "intercept"


@real["meg_ica"]
def test_real_meg():
    read = data.meg()
    assert read.X.shape == (17_730, 10) and len(read.train) == 14_184


@real["mnist"]
def test_real_mnist():
    read = data.mnist()
    assert read.X.shape == (70_000, 784) and len(read.train) == 60_000 and len(read.test) == 10_000
    assert read.X.min() == 0.0 and read.X.max() == 1.0
    assert np.array_equal(np.bincount(read.test.y.astype(int)), [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009])


# -- made-up data of the same shape --------------------------------------------------------------------------------


def test_synthetic_ratings_of_a_factorisation():
    made = data.synthetic_ratings(300, 500, 15_000, rank=10, noise=1.0, seed=3)
    assert made.shape == (300, 500) and len(made) == 15_000 and len(made.test) == 1_500
    assert len(np.unique(made.users * 500 + made.items)) == 15_000  # no entry twice
    # u·v + ε with standard normal entries has variance 11 and kurtosis E(u·v + ε)⁴ = 3·1 + 6·10 + 3·10² + 6·10
    assert made.ratings.var() == pytest.approx(11.0, rel=0.15)
    assert np.mean(made.ratings**4.0) == pytest.approx(423.0, rel=0.3)
    assert made.mean == pytest.approx(made.train.ratings.mean(dtype=float), abs=1e-12)  # the test set is not seen
    assert abs(made.mean - made.ratings.mean(dtype=float)) > 1e-4
    counts = np.bincount(made.users, minlength=300)
    assert counts.var() == pytest.approx(50.0, rel=0.4)  # even: binomial
    again, other = (data.synthetic_ratings(300, 500, 15_000, seed=seed) for seed in (3, 4))
    assert np.array_equal(made.ratings, again.ratings) and np.array_equal(made.test_rows, again.test_rows)
    assert not np.array_equal(made.items, other.items)
    assert len(data.synthetic_ratings(20, 10, 101).test) == 11  # rounded up
    quiet = data.synthetic_ratings(100, 80, 8_000, rank=2, noise=0.0, seed=1)  # the whole matrix, of rank 2
    matrix = np.zeros((100, 80))
    matrix[quiet.users, quiet.items] = quiet.ratings
    assert np.linalg.matrix_rank(matrix, tol=1e-3) == 2
    loud = data.synthetic_ratings(100, 80, 8_000, rank=2, noise=3.0, seed=1)
    assert np.std(loud.ratings - quiet.ratings) == pytest.approx(3.0, rel=0.04)  # 5 standard errors


def test_synthetic_ratings_of_films():
    made = data.synthetic_movielens_100k(seed=1)
    assert made.shape == (943, 1682) and len(made.train) == 80_000 and len(made.test) == 20_000
    assert len(np.unique(made.users * 1682 + made.items)) == 100_000
    of_users, of_items = np.bincount(made.users, minlength=943), np.bincount(made.items, minlength=1682)
    assert of_users.min() >= 20 and of_users.max() > 400 and of_items.max() > 300
    assert set(np.unique(made.ratings)) == {1, 2, 3, 4, 5}
    assert np.sqrt(np.mean((made.test.ratings - made.mean) ** 2)) == pytest.approx(1.1, abs=0.1)
    # What half of the users say of a film, and a user of half of the films, is what the others say, but for noise.
    for mine, others, size in ((made.items, made.users, 1682), (made.users, made.items, 943)):
        even, odd = (np.bincount(mine[others % 2 == k], minlength=size) for k in (0, 1))
        of_each = [
            np.bincount(mine[others % 2 == k], made.ratings[others % 2 == k], size) / np.maximum(n, 1)
            for k, n in enumerate((even, odd))
        ]
        often = np.minimum(even, odd) >= 20
        assert often.sum() > 100 and np.corrcoef(np.array(of_each)[:, often])[0, 1] > 0.5
    halves = data.synthetic_ratings(50, 60, 1_000, stars=(0.5, 5, 0.5), spread=1.0, least=5, seed=2)
    assert set(np.unique(2 * halves.ratings)) <= set(range(1, 11)) and len(np.unique(halves.ratings)) > 6


def test_choice_without_replacement_has_its_law(monkeypatch):
    """Both ways of drawing: the first of two items by popularity, the second by popularity among the others."""
    from pdmp.data import synthetic

    weight = np.array([0.4, 0.3, 0.2, 0.1])
    pair = np.array([[0.0 if i == j else p * q / (1 - p) for j, q in enumerate(weight)] for i, p in enumerate(weight)])
    expected = pair.sum(axis=0) + pair.sum(axis=1)
    n = 20_000
    for crowded in (0, 100):  # by rejection, by sorting
        monkeypatch.setattr(synthetic, "CROWDED", crowded)
        users, items = synthetic._chosen(np.full(n, 2), np.log(weight), 4, np.random.default_rng(5))
        assert np.array_equal(users, np.repeat(np.arange(n), 2)) and np.all(items[::2] < items[1::2])
        found = np.bincount(items) / n
        assert np.all(np.abs(found - expected) < 4.5 * np.sqrt(expected * (1 - expected) / n))


def test_synthetic_ratings_are_made_in_blocks(monkeypatch):
    from pdmp.data import synthetic

    monkeypatch.setattr(synthetic, "BLOCK", 100)
    made = data.synthetic_ratings(200, 40, 3_000, spread=1.0, least=5, seed=0)
    assert len(np.unique(made.users * 40 + made.items)) == 3_000 and np.all(np.diff(made.users) >= 0)
    assert np.bincount(made.users).min() >= 5 and np.count_nonzero(made.ratings) == 3_000


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((0, 5, 10), "`n_users` must be at least 1, got 0"),
        ((5, 5, 26), r"between 0 \(`least` for each user\) and 25 \(all entries\), got 26"),
        ((5, 5, 9, 2), r"between 10 \(`least`"),
        ((5, 5, 9, 0, 1.0), "`test_fraction` must be between 0 and 1 .*got 1.0"),
    ],
)
def test_synthetic_ratings_that_do_not_fit(arguments, match):
    options = dict(zip(("least", "test_fraction"), arguments[3:], strict=False))
    with pytest.raises(ValueError, match=match):
        data.synthetic_ratings(*arguments[:3], **options)


def test_synthetic_tables():
    sepsis = data.synthetic_sepsis(seed=1)
    assert sepsis.X.shape == (110_204, 4) and len(sepsis.train) == 88_163 and sepsis.names[-1] == "intercept"
    assert sepsis.X[:, 0].min() == 0.0 and sepsis.X[:, 0].mean() == pytest.approx(62.7, abs=0.5)
    assert sepsis.X[:, 1].mean() == pytest.approx(0.474, abs=0.01) and 1.0 == sepsis.X[:, 2].min()
    assert sepsis.X[:, 2].mean() == pytest.approx(1.35, abs=0.01)
    expected = 1.0 / (1.0 + np.exp(-sepsis.X @ [-0.0436, 0.170, -0.032, 5.584]))
    assert sepsis.y.mean() == pytest.approx(expected.mean(), abs=4.5 * 0.5 / np.sqrt(len(sepsis)))
    assert np.mean(sepsis.y * expected) == pytest.approx(np.mean(expected**2), abs=0.005)
    heart = data.synthetic_arrhythmia(seed=1)
    assert heart.X.shape == (430, 101) and len(heart.train) == 344
    large = data.synthetic_arrhythmia(n=20_000, columns=4, standardise=False, intercept=None)
    ranks = large.X.argsort(axis=0).argsort(axis=0)
    spearman = 6.0 / np.pi * np.arcsin(np.array([0.5, 0.25]) / 2.0)  # of normal columns; t with 4 degrees: a bit less
    assert np.corrcoef(ranks.T)[0, 1:3] == pytest.approx(spearman, abs=0.04)
    spread = np.quantile(np.abs(large.X), 0.5), np.quantile(np.abs(large.X), 0.99)
    assert spread == pytest.approx((0.7407, 4.604), rel=0.1)  # quantiles of |t| with 4 degrees of freedom


def test_synthetic_recording():
    made = data.synthetic_meg(seed=2, standardise=False)
    assert made.X.shape == (17_730, 10) and made.y is None and len(made.train) == 14_184
    assert np.cov(made.X.T) == pytest.approx(np.pi**2 / 3 * np.eye(10), abs=0.2)  # a rotation of logistic sources
    kurtosis = np.mean(made.X**4, axis=0) / made.X.var(axis=0) ** 2
    assert np.all(kurtosis > 3.05) and np.all(kurtosis < 4.5)
    assert np.allclose(data.synthetic_meg(seed=2).train.X.std(axis=0), 1.0)


def test_synthetic_images():
    made = data.synthetic_mnist(600, 200, side=8, dtype=np.float64, seed=0)
    assert made.X.shape == (800, 64) and len(made.train) == 600 and len(made.test) == 200
    assert made.X.min() == 0.0 and made.X.max() == 1.0 and set(made.y) == set(range(10))
    large = data.synthetic_mnist(1_000, 10, seed=0)
    assert large.X.shape == (1_010, 784) and large.X.dtype == np.float32 and 0.05 < (large.X > 0).mean() < 0.4
    # a class can be told from its mean image, though not always
    means = np.array([made.train.X[made.train.y == k].mean(axis=0) for k in range(10)])
    nearest = np.argmin(((made.test.X[:, None] - means) ** 2).sum(axis=2), axis=1)
    assert 0.3 < np.mean(nearest == made.test.y) < 1.0  # by chance: 0.1
    assert np.array_equal(made.X, data.synthetic_mnist(600, 200, side=8, dtype=np.float64, seed=0).X)
