"""Tables of one's own in every format, with everything that can be wrong with them, and the bundled data sets."""

import gzip
import pickle
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest
from scipy import sparse

from pdmp import data

pytestmark = pytest.mark.exact


def table(tmp_path, text, name="table.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def rows(n=40, header="age,dose,died"):
    return [header] + [f"{20 + k},{0.5 * (k % 7)},{k % 2}" for k in range(n)]


def good(tmp_path, lines=None):
    return table(tmp_path, "\n".join(rows() if lines is None else lines))


# -- what comes out ----------------------------------------------------------------------------------------------


def test_split_and_standardisation(tmp_path):
    read = data.read(good(tmp_path), target="died")
    assert read.names == ("intercept", "age", "dose") and read.X.shape == (40, 3) and len(read) == 40
    assert len(read.train) == 32 and len(read.test) == 8
    assert np.all(read.X[:, 0] == 1.0)
    assert np.allclose(read.train.X[:, 1:].mean(axis=0), 0.0, atol=1e-14)
    assert np.allclose(read.train.X[:, 1:].std(axis=0), 1.0)
    assert abs(read.test.X[:, 1].mean()) > 1e-6  # standardised by the training part, not by itself
    assert read.train.y.mean() == read.test.y.mean() == 0.5
    # undo it: an affine map of the column in the file
    age = 20.0 + np.arange(40)
    slope, at = np.polyfit(read.X[:, 1], age, 1)
    assert np.allclose(slope * read.X[:, 1] + at, age)
    assert repr(read) == "Dataset('table', 40 rows, 3 columns, 20 of label 1)"


def test_options_of_the_columns(tmp_path):
    path = good(tmp_path)
    raw = np.column_stack([20.0 + np.arange(40), 0.5 * (np.arange(40) % 7)])
    plain = data.read(path, "died", standardise=False, intercept=None)
    assert np.array_equal(plain.X, raw) and plain.names == ("age", "dose")
    assert plain.prepared == "without intercept, features as they are"
    last = data.read(path, "died", standardise=False, intercept="last")
    assert np.array_equal(last.X, np.column_stack([raw, np.ones(40)])) and last.names[-1] == "intercept"
    assert data.read(path, "died").prepared == "with the intercept, features standardised"
    assert np.array_equal(plain.train.X, raw[plain.train_rows]) and np.array_equal(plain.test.X, raw[plain.test_rows])
    assert not np.array_equal(plain.test_rows, data.read(path, "died", seed=1).test_rows)
    with pytest.raises(ValueError, match="`intercept` must be 'first', 'last' or None, got True"):
        data.read(path, "died", intercept=True)


def test_a_target_of_numbers(tmp_path):
    read = data.read(good(tmp_path), "dose", numeric=True)
    assert np.array_equal(read.y, 0.5 * (np.arange(40) % 7)) and read.labels == ()
    assert repr(read) == "Dataset('table', 40 rows, 3 columns)"
    lines = [f"{line},{'name' if k == 0 else 'x'}" for k, line in enumerate(rows())]
    with pytest.raises(ValueError, match="the target 'name' of table.csv has text; with `numeric` it must be numbers"):
        data.read(good(tmp_path, lines), "name", numeric=True)
    infinite = ["a,y"] + [f"{k},{'inf' if k == 3 else k}" for k in range(20)]
    with pytest.raises(ValueError, match="the target 'y' of table.csv has infinite values"):
        data.read(good(tmp_path, infinite), "y", numeric=True)


def test_split_is_fixed_and_complete(tmp_path):
    one, two = (data.read(good(tmp_path), target="died") for _ in range(2))
    assert np.array_equal(one.train_rows, two.train_rows)
    assert sorted([*one.train_rows, *one.test_rows]) == list(range(40))
    with pytest.raises(AttributeError, match="is a part"):
        one.train.test  # noqa: B018


@pytest.mark.parametrize(
    ("values", "labels"),
    [(("0", "1"), (0.0, 1.0)), (("-1", "1"), (-1.0, 1.0)), (("1", "2"), (1.0, 2.0)), (("no", "yes"), ("no", "yes"))],
)
def test_two_valued_targets(tmp_path, values, labels):
    lines = ["x,y"] + [f"{k % 9},{values[k % 2]}" for k in range(40)]
    read = data.read(good(tmp_path, lines), target="y")
    assert read.labels == labels and np.array_equal(read.y, np.arange(40) % 2)


def test_spaces_byte_order_mark_and_blank_lines(tmp_path):
    text = "\ufeff" + "\n".join(line.replace(",", ", ") for line in rows()) + "\n\n"
    assert data.read(table(tmp_path, text), target="died").names == ("intercept", "age", "dose")


def test_a_column_called_intercept(tmp_path):
    read = data.read(good(tmp_path, rows(header="intercept,dose,died")), target="died")
    assert read.names == ("(intercept)", "intercept", "dose")


def towns(n=40):
    return ["age,town,month,died"] + [
        f"{20 + k},{('Ulm', 'Aix', 'Bonn')[k % 3]},{k % 4},{k // 2 % 2}" for k in range(n)
    ]


def test_one_hot(tmp_path):
    path = good(tmp_path, towns())
    read = data.read(path, "died", one_hot=True, standardise=False)
    assert read.names == ("intercept", "age", "town=Bonn", "town=Ulm", "month")
    assert np.array_equal(read.X[:, 2], np.arange(40) % 3 == 2) and np.array_equal(read.X[:, 3], np.arange(40) % 3 == 0)
    full = data.read(path, "died", one_hot=["town", "month"], standardise=False, intercept=None)
    months = tuple(f"month={k}" for k in range(4))
    assert full.names == ("age", "town=Aix", "town=Bonn", "town=Ulm", *months)
    assert np.array_equal(full.X[:, 1:4].sum(axis=1), np.ones(40)) and np.array_equal(
        full.X[:, 4], np.arange(40) % 4 == 0
    )


def test_one_hot_is_refused(tmp_path):
    path = good(tmp_path, towns())
    assert_refused(
        path, "`one_hot` names 'twon', which is no feature of table.csv; did you mean 'town'", one_hot=["twon"]
    )
    assert_refused(path, "`one_hot` names 'died', which is no feature", one_hot="died")
    names = ["name,died"] + [f"n{k},{k % 2}" for k in range(40)]
    assert_refused(good(tmp_path, names), "'name' of table.csv has 40 different values in 40 rows", one_hot=True)
    clash = ["town,town=Ulm,died"] + [f"{('Ulm', 'Aix')[k % 2]},{k},{k // 2 % 2}" for k in range(40)]
    assert_refused(good(tmp_path, clash), "a column 'town=Ulm', the name of an indicator of 'town'", one_hot=True)


def test_constant_columns_are_dropped_if_asked(tmp_path):
    lines = ["a,b,c,died"] + [f"3,{k},1,{k % 2}" for k in range(20)]
    read = data.read(good(tmp_path, lines), "died", drop_constant=True, standardise=False)
    assert read.names == ("intercept", "b") and np.array_equal(read.X[:, 1], np.arange(20))
    lines = ["a,died"] + [f"3,{k % 2}" for k in range(20)]
    assert_refused(good(tmp_path, lines), "no column but the target 'died'", drop_constant=True)


# -- what is refused ---------------------------------------------------------------------------------------------


def assert_refused(path, match, target="died", **options):
    with pytest.raises(ValueError, match=match):
        data.read(path, target=target, **options)


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file .*absent\.csv"):
        data.read(tmp_path / "absent.csv", target="died")


@pytest.mark.parametrize("token", ["", "NA", "nan", "?", " null "])
def test_missing_values_name_columns_and_row(tmp_path, token):
    lines = rows()
    lines[5] = f"31,{token},0"
    assert_refused(good(tmp_path, lines), r"missing values in column 'dose', the first in row 6 of the file")


def test_missing_values_in_several_columns(tmp_path):
    lines = rows()
    lines[7], lines[3] = ",,1", "31,2,"
    assert_refused(good(tmp_path, lines), r"missing values in columns 'age', 'dose', 'died', the first in row 4")


def test_text(tmp_path):
    lines = ["age,sex,town,died"] + [f"{k},{'mf'[k % 2]},Lund,{k % 2}" for k in range(20)]
    assert_refused(good(tmp_path, lines), "text in columns 'sex', 'town'; code them as numbers")


def test_constant_and_infinite_columns(tmp_path):
    lines = ["a,b,c,died"] + [f"{k},3,1,{k % 2}" for k in range(20)]
    assert_refused(good(tmp_path, lines), "same value in every row of columns 'b', 'c'; leave them out")
    lines = ["a,died"] + [f"{'inf' if k == 3 else k},{k % 2}" for k in range(20)]
    assert_refused(good(tmp_path, lines), "infinite values in column 'a'")


def test_targets(tmp_path):
    path = good(tmp_path)
    assert_refused(path, "no column 'dies'; did you mean 'died'", "dies")
    assert_refused(path, r"no column 'weight'\. Its columns: 'age', 'dose', 'died'", "weight")
    assert_refused(path, "`target` is missing", None)
    assert_refused(path, r"the target 'dose' of table\.csv has 7 different values", "dose")
    assert_refused(good(tmp_path, ["a,died"] + [f"{k},1" for k in range(20)]), "only one value, 1.0")
    assert_refused(good(tmp_path, ["a,died"] + [f"{k},{int(k == 0)}" for k in range(20)]), "only 1 rows; at least 5")
    assert_refused(good(tmp_path, ["died"] + [str(k % 2) for k in range(20)]), "no column but the target")


def test_malformed_tables(tmp_path):
    assert_refused(good(tmp_path, rows(header="age,age,died")), "several columns of the same name: 'age'")
    assert_refused(good(tmp_path, rows(header="age,,died")), "a column without a name, the 2th")
    assert_refused(good(tmp_path, [*rows(), "1,2"]), "row 42 of table.csv has 2 values for 3 columns")
    assert_refused(good(tmp_path, ["age,dose,died"]), "at least one row of data")
    assert_refused(good(tmp_path, [""]), "at least one row of data")
    assert_refused(good(tmp_path, rows()[1:]), "must be the names of the columns")
    assert_refused(good(tmp_path, [line.replace(",", ";") for line in rows()]), "separator must be a comma")
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\xff\xfe\x00\x01" * 20)
    assert_refused(binary, "not a text file")
    binary.write_bytes(b"\x1f\x8b" + b"\x00\x01" * 20)
    assert_refused(binary, "binary.csv cannot be unpacked")


# -- the other formats: the same data come out ---------------------------------------------------------------------


@pytest.fixture
def numbers():
    """A matrix, labels, and names."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((40, 3)), (np.arange(40) % 2).astype(float), ["a", "b", "c"]


def assert_same(read, numbers, names=None):
    X, y, expected = numbers
    whole = data.prepare("any", X, y, expected)
    assert np.array_equal(read.X, whole.X) and np.array_equal(read.y, y)
    assert read.names[1:] == tuple(expected if names is None else names)
    assert np.array_equal(read.test_rows, whole.test_rows)


def test_gzipped_csv(tmp_path):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress("\n".join(rows()).encode()))
    read = data.read(path, "died")
    assert np.array_equal(read.X, data.read(good(tmp_path), "died").X) and read.name == "table"


def test_npz(tmp_path, numbers):
    X, y, names = numbers
    path = tmp_path / "file.npz"
    np.savez(path, X=X, y=y, names=names)
    assert_same(data.read(path), numbers)
    assert_same(data.read(path, "y"), numbers)
    np.savez_compressed(path, X=X, y=np.where(y > 0, "yes", "no"))
    assert_same(data.read(path), numbers, "012")
    assert data.read(path).labels == ("no", "yes")
    np.savez(path, label=y.astype(int), **dict(zip(names, X.T, strict=True)))
    assert_same(data.read(path, "label"), numbers)


def test_npy(tmp_path, numbers):
    X, y, names = numbers
    path = tmp_path / "file.npy"
    np.save(path, np.column_stack([X, y]))
    for target in (-1, "-1", 3, "3"):
        assert_same(data.read(path, target), numbers, "012")
    np.save(path, np.column_stack([y, X]))
    assert_same(data.read(path, 0), numbers, "123")
    np.save(path, np.column_stack([X[:, :1], y, X[:, 1:]]))
    assert_same(data.read(path, 1), numbers, "023")
    np.save(path, X)
    np.save(tmp_path / "labels.npy", y)
    assert_same(data.read(path, tmp_path / "labels.npy"), numbers, "012")
    fields = np.empty(40, [(n, float) for n in names] + [("label", "U3")])
    for n, column in zip(names, X.T, strict=True):
        fields[n] = column
    fields["label"] = np.where(y > 0, "yes", "no")
    np.save(path, fields)
    assert_same(data.read(path, "label"), numbers)


def test_libsvm(tmp_path, numbers):
    X, y, _ = numbers
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    for first in (0, 1):
        lines = ["# made up"] if first else []
        for x, t in zip(X, y, strict=True):
            lines.append(f"{2 * t - 1:+g} " + " ".join(f"{j + first}:{v!r}" for j, v in enumerate(x.tolist()) if v))
        read = data.read(table(tmp_path, "\n".join(lines), "a9a"))
        assert sparse.issparse(read.X) and read.labels == (-1.0, 1.0) and np.array_equal(read.y, y)
        assert read.names == ("intercept", *(str(j + first) for j in range(3)))
        sd = X[read.train_rows].std(axis=0)
        assert np.allclose(read.X.toarray(), np.column_stack([np.ones(40), X / sd]), rtol=1e-12)
        assert np.allclose(read.train.X.toarray(), read.X.toarray()[read.train_rows])
        assert len(read.test) == 8 and read.prepared.endswith("divided by their standard deviations")
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress("\n".join(lines).encode()))
    raw = data.read(packed, standardise=False, intercept=None)
    assert np.array_equal(raw.X.toarray(), X) and raw.X.nnz == np.count_nonzero(X)


def test_parquet(tmp_path, numbers):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    X, y, names = numbers
    path = tmp_path / "file.parquet"

    def write(**columns):
        parquet.write_table(pyarrow.table(columns), path)

    features = dict(zip(names, X.T, strict=True))
    write(**features, died=y.astype(np.int8))
    assert_same(data.read(path, "died"), numbers)
    write(**features, died=y > 0)
    assert_same(data.read(path, "died"), numbers)
    town = ["Ulm", "Aix"] * 20
    write(**features, town=pyarrow.array(town).dictionary_encode(), died=y)
    assert data.read(path, "died", one_hot=True).names[-1] == "town=Ulm"
    assert_refused(path, "text in column 'town'")
    write(a=pyarrow.array([None, *X[1:, 0]]), b=[np.nan if k == 5 else k for k in range(40)], died=y)
    assert_refused(path, "missing values in columns 'a', 'b', the first in row 0, counted from 0")
    write(a=pyarrow.array([0] * 40, pyarrow.timestamp("ms")), died=y)
    assert_refused(path, r"column 'a' of file.parquet is of type timestamp\[ms\]; it must be numbers or text")
    parquet.write_table(pyarrow.Table.from_arrays([pyarrow.array(y)] * 2, ["a", "a"]), path)
    assert_refused(path, "several columns of the same name: 'a'")
    path.write_bytes(b"PAR1 and nothing else")
    assert_refused(path, "not a Parquet file that can be read")


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "file.parquet"
    path.write_bytes(b"PAR1" * 10)
    with pytest.raises(ImportError, match=r"file.parquet is a Parquet file, .*pip install 'pdmp\[data\]'"):
        data.read(path, "died")


def test_arrays_that_do_not_fit(tmp_path, numbers):
    X, y, names = numbers
    npy, npz = tmp_path / "file.npy", tmp_path / "file.npz"

    def refused(array, match, target=-1, **options):
        np.save(npy, array)
        assert_refused(npy, match, target, **options)

    hole, far = X.copy(), X.copy()
    hole[3, 1], far[3, 2] = np.nan, np.inf
    refused(np.column_stack([hole, y]), "missing values in column '1'; remove those rows or fill them in")
    refused(np.column_stack([far, y]), "infinite values in column '2'")
    refused(np.column_stack([X, np.ones(40), y]), "same value in every row of column '3'")
    refused(
        np.column_stack([X, np.where(np.arange(40) == 7, np.nan, y)]),
        "missing values in the target 'column 3', .*row 7",
    )
    refused(np.column_stack([X, y]), r"has no column 4; it has 4, from 0 to 3", 4)
    refused(np.column_stack([X, y]), r"has no column -5; it has 4", -5)
    refused(np.column_stack([X, y]), "`target` is missing: the number of the column", None)
    refused(np.column_stack([X, y]), "no file 'label'", "label")
    refused(np.column_stack([X, y]), "a matrix of numbers; `one_hot` is for tables with names", one_hot=True)
    refused(np.column_stack([X, np.ones(40)]), "'column 3' of file.npy has only one value, 1.0")
    refused(np.column_stack([X, np.arange(40) % 3]), "'column 3' of file.npy has 3 different values")
    refused(np.zeros((3, 3, 3)), r"a matrix of shape \(N, d\)")
    refused(np.zeros((2, 2), complex), "a matrix of numbers, and has one of type complex128")
    refused(np.zeros((2, 2), [("a", float)]), "has fields in an array of shape")
    np.save(tmp_path / "short.npy", y[:-1])
    refused(X, r"the target 'short.npy' of file.npy has shape \(39,\) for 40 rows", tmp_path / "short.npy")
    np.save(tmp_path / "wide.npy", X)
    refused(X, "wide.npy must be an NPY file with one value for each row", tmp_path / "wide.npy")
    np.savez(npz, X=X)
    assert_refused(npz, "has `X` and no `y`", None)
    np.savez(npz, X=X, y=y[1:])
    assert_refused(npz, r"the target 'y' of file.npz has shape \(39,\)", None)
    np.savez(npz, X=X, y=y, names=["a", "a", "b"])
    assert_refused(npz, "several columns of the same name: 'a'", None)
    np.savez(npz, X=X, y=y, names=["a", "b"])
    assert_refused(npz, "has 2 names for 3 columns", None)
    np.savez(npz, X=X, y=y)
    assert_refused(npz, r"brings its own target \(y\); leave `target` out", "died")
    np.savez(npz, a=X[:, 0], died=y[1:])
    assert_refused(npz, "one array of the same length for each column; it has a .40,., died .39,.")
    np.savez(npz, a=X[:, 0] > 0, b=np.array(["x", ""] * 20), died=y)
    assert_refused(npz, "missing values in column 'b', the first in row 1, counted from 0")


def test_nothing_is_unpickled(tmp_path, numbers):
    X, y, _ = numbers
    npy, npz, other = tmp_path / "file.npy", tmp_path / "file.npz", tmp_path / "file"
    np.save(npy, X.astype(object))
    assert_refused(npy, "file.npy cannot be read: .*allow_pickle", None)
    np.savez(npz, X=X.astype(object), y=y)
    assert_refused(npz, "file.npz cannot be read: .*allow_pickle", None)
    other.write_bytes(pickle.dumps({"X": X}))
    assert_refused(other, "not a text file", None)
    other.write_bytes(b"\x93NUMPY\x01\x00broken")
    assert_refused(other, "file cannot be read", None)
    other.write_bytes(b"PK\x03\x04broken")
    assert_refused(other, "file cannot be read", None)
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("table.csv", "a,b")
    assert_refused(other, "an archive, but not one of numpy's arrays; unpack it", None)


def test_libsvm_that_does_not_fit(tmp_path):
    def refused(lines, match, target=None):
        assert_refused(table(tmp_path, "\n".join(lines), "file"), match, target)

    lines = [f"{k % 2} 1:{k} 3:{k % 5}" for k in range(40)]
    refused(lines, "same value in every row of column '2'")
    refused(lines, r"brings its own target \(label\); leave `target` out", "died")
    refused([*lines, "1 1:x"], "is not LIBSVM text")
    refused([f"1 1:{k}" for k in range(40)], "the target 'label' of file has only one value, 1.0")
    refused([f"{k % 2} 1:{'nan' if k == 3 else k} 2:{k % 5}" for k in range(40)], "missing values in column '1'")
    refused([f"{k % 2} 1:{k} 2:{'inf' if k == 3 else k}" for k in range(40)], "infinite values in column '2'")


# -- larger than memory --------------------------------------------------------------------------------------------


AS_IT_IS = {"mmap": True, "standardise": False, "intercept": None}


def test_memory_mapped(tmp_path, monkeypatch):
    monkeypatch.setattr(data.tables, "BLOCK", 2**14)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50_000, 20)).astype(np.float32), np.arange(50_000) % 2
    path, labels = tmp_path / "large.npy", tmp_path / "labels.npy"
    np.save(path, X)
    np.save(labels, y)
    tracemalloc.start()
    read = data.read(path, labels, **AS_IT_IS)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < X.nbytes / 2  # the target as numbers, and one block
    for part in (read, read.train, read.test):
        assert isinstance(part.X, np.memmap) and part.X.flags.c_contiguous
    assert np.array_equal(read.X, X) and np.array_equal(read.y, y) and read.names[-1] == "19"
    assert len(read.train) == 40_000 and np.array_equal(read.test.X, X[40_000:])
    assert np.array_equal(read.test.y, y[40_000:]) and read.labels == (0.0, 1.0)


def test_memory_mapped_is_refused(tmp_path, numbers, monkeypatch):
    monkeypatch.setattr(data.tables, "BLOCK", 16)
    X, y, _ = numbers
    path, labels = tmp_path / "file.npy", tmp_path / "labels.npy"
    np.save(labels, y)

    def refused(array, match, target=labels, **options):
        np.save(path, array)
        assert_refused(path, match, target, **(AS_IT_IS | options))

    hole, far = X.copy(), X.copy()
    hole[39, 1], far[39, 2] = np.nan, np.inf
    refused(hole, "missing values in column '1'")
    refused(far, "infinite values in column '2'")
    refused(np.column_stack([X, np.ones(40)]), "same value in every row of column '3'")
    refused(X, "leaves the file as it is: give standardise=False", standardise=True)
    refused(X, "leaves the file as it is", intercept="first")
    refused(X, "leaves the file as it is", drop_constant=True)
    refused(X, "with `mmap` the target must be an NPY file of its own, not column 0", 0)
    refused(X.astype(int), "`mmap` needs a matrix of float32 or float64 in C order; file.npy has int64")
    refused(
        np.asfortranarray(X), "`mmap` needs a matrix of float32 or float64 in C order; file.npy has float64 in Fortran"
    )
    assert_refused(good(tmp_path), "`mmap` needs a matrix of numbers in an NPY file; table.csv is none", **AS_IT_IS)


# -- bundled -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shape"),
    [("breast_cancer", (569, 31)), ("wine", (178, 14)), ("digits", (1797, 62)), ("diabetes", (442, 11))],
)
def test_scikit_learn_sets(name, shape):
    read = data.problem(name)
    assert read.X.shape == shape and set(read.y) == {0.0, 1.0} and np.all(np.isfinite(read.X))


def test_randhie():
    pytest.importorskip("statsmodels")
    read = data.problem("randhie")
    assert read.X.shape == (20_190, 10) and 0.6 < read.y.mean() < 0.75


def test_randhie_without_statsmodels(monkeypatch):
    monkeypatch.setitem(sys.modules, "statsmodels.datasets", None)
    with pytest.raises(ImportError, match=r"pip install 'pdmp\[data\]'"):
        data.randhie()


def test_unknown_problem():
    with pytest.raises(ValueError, match="no problem 'randie'; did you mean 'randhie'"):
        data.problem("randie")
