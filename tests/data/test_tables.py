"""Tables of one's own in every format, with everything that can be wrong with them, and the bundled data sets."""

import csv
import gzip
import io
import pickle
import sys
import traceback
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest
from scipy import sparse

from pdmp import data
from pdmp.data import archives, formats, memory

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


def test_options_of_the_columns(tmp_path):
    path = good(tmp_path)
    raw = np.column_stack([20.0 + np.arange(40), 0.5 * (np.arange(40) % 7)])
    plain = data.read(path, "died", standardise=False, intercept=None)
    assert np.array_equal(plain.X, raw) and plain.names == ("age", "dose")
    last = data.read(path, "died", standardise=False, intercept="last")
    assert np.array_equal(last.X, np.column_stack([raw, np.ones(40)])) and last.names[-1] == "intercept"
    assert np.array_equal(plain.train.X, raw[plain.train_rows]) and np.array_equal(plain.test.X, raw[plain.test_rows])
    assert not np.array_equal(plain.test_rows, data.read(path, "died", seed=1).test_rows)
    with pytest.raises(ValueError, match="`intercept` must be 'first', 'last' or None, got True"):
        data.read(path, "died", intercept=True)


def test_a_target_of_numbers(tmp_path):
    read = data.read(good(tmp_path), "dose", numeric=True)
    assert np.array_equal(read.y, 0.5 * (np.arange(40) % 7)) and read.labels == ()
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


def test_spaces_byte_order_mark_and_blank_lines(tmp_path):
    text = "\ufeff" + "\n".join(line.replace(",", ", ") for line in rows()) + "\n\n"
    assert data.read(table(tmp_path, text), target="died").names == ("intercept", "age", "dose")


def test_cells_may_be_long(tmp_path):
    """Longer than the csv module reads of itself; what another test has allowed it is taken back first."""
    csv.field_size_limit(131_072)
    name = "dose, " + "very " * 30_000 + "small"
    read = data.read(good(tmp_path, rows(header=f'age,"{name}",died')), target="died")
    assert read.names == ("intercept", "age", name)


def towns(n=40):
    return ["age,town,month,died"] + [
        f"{20 + k},{('Ulm', 'Aix', 'Bonn')[k % 3]},{k % 4},{k // 2 % 2}" for k in range(n)
    ]


def test_one_hot(tmp_path):
    path = good(tmp_path, towns())
    read = data.read(path, "died", one_hot=True, standardise=False)
    assert read.names == ("intercept", "age", "town=Bonn", "town=Ulm", "month")
    assert np.array_equal(read.X[:, 2], np.arange(40) % 3 == 2) and np.array_equal(read.X[:, 3], np.arange(40) % 3 == 0)


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


def test_something_is_left_beside_constant_columns(tmp_path):
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
    assert_refused(
        good(tmp_path, [*rows(), '1,"2,0']), "not a text file with values separated by commas: its quotation"
    )
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\xff\xfe\x00\x01" * 20)
    assert_refused(binary, "not a text file")
    binary.write_bytes("a,town,y\n1,Åre,0\n".encode("latin-1"))
    assert_refused(binary, "not a text file in UTF-8: row 2 has the byte 0xc5; save it in UTF-8")
    binary.write_bytes(b"\x1f\x8b" + b"\x00\x01" * 20)
    assert_refused(binary, "binary.csv is damaged, and cannot be unpacked")


# -- tables as other programs write them -----------------------------------------------------------------------------


@pytest.mark.parametrize("sep", [";", "\t", "|", " "])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_separators_and_byte_order_marks_are_recognised(sep, encoding, tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes("\n".join(line.replace(",", sep) for line in rows()).encode(encoding))
    found = data.read(path, "died")
    expected = data.read(good(tmp_path), "died")
    assert np.array_equal(found.X, expected.X) and found.names == expected.names and expected.changes == ()
    words = {";": "semicolons", "\t": "tabs", "|": "vertical bars", " ": "spaces"}[sep]
    assert found.changes == (f"values are separated by {words}",)


def test_the_separator_that_divides_evenly_is_taken(tmp_path):
    """Commas within cells of other separators, and the reverse."""
    lines = ["size;note;y"] + [f"{k};'a, b, c';{k % 2}" for k in range(40)]
    assert data.read(table(tmp_path, "\n".join(lines)), "y", drop="note").names == ("intercept", "size")
    lines = ["size,note,y"] + [f"{k},a;b{';c' * (k % 3)},{k % 2}" for k in range(40)]
    assert data.read(table(tmp_path, "\n".join(lines)), "y", drop="note").names == ("intercept", "size")
    path = table(tmp_path, "\n".join(line.replace(",", "!") for line in rows()))
    assert data.read(path, "died", sep="!").names == ("intercept", "age", "dose")
    assert_refused(path, "no column 'died'")
    for bad in ("", ";;", "\n", 3):
        assert_refused(path, "`sep` must be one character", sep=bad)


def test_of_two_separators_the_one_of_the_row_of_names_is_taken(tmp_path):
    """Commas divide the other rows into as many cells, and would make their first ones an index without a name."""
    path = table(tmp_path, "note;y\n" + "".join(f"x,{k};{k % 2}\n" for k in range(4)))
    assert formats.layout(path) == (";", "utf-8")
    found = formats.read_file(path)
    assert list(found.columns) == ["note", "y"] and found.separator == ";" and found.index == ()
    assert found.columns["note"].values.tolist() == ["x,0", "x,1", "x,2", "x,3"]
    with pytest.raises(ValueError, match="column 'a' of table.csv has numbers with decimal commas, such as '1,5'"):
        formats.layout(table(tmp_path, "a;b\n1,5;2"))
    with pytest.raises(ValueError, match="column 'a' of table.csv has numbers with decimal commas, such as '1,5'"):
        formats.layout(table(tmp_path, "a ; b\n 1,5 ; 2\nNA ; 3"))


def test_the_index_of_the_rows_is_left_out(tmp_path):
    expected = data.read(good(tmp_path), "died")
    numbered = [f"{'' if k == 0 else k * 7 % 41},{line}" for k, line in enumerate(rows())]
    of_r = [line if k == 0 else f'"row {k}",{line}' for k, line in enumerate(rows())]
    for lines in (numbered, [f"Unnamed: 0{numbered[0]}", *numbered[1:]], of_r):
        found = data.read(good(tmp_path, lines), "died")
        assert np.array_equal(found.X, expected.X) and found.names == expected.names
        assert found.changes == ("left out: the first column, which has no name, as the index of the rows",)
    named = good(tmp_path, [f"{'id' if k == 0 else 100 - k},{line}" for k, line in enumerate(rows())])
    assert data.read(named, "died").names == ("intercept", "id", "age", "dose")
    one = formats._csv(tmp_path / "one.csv", b",y\n1,2\n2,4\n", ",")  # beside a single column too
    assert list(one.columns) == ["y"] and one.index == ("",)
    found = data.read(named, "died", index="id")
    assert np.array_equal(found.X, expected.X)
    assert found.changes == ("left out: column 'id', as the index of the rows",)
    assert_refused(named, "`index` names 'dose', which has the same value in several rows", index="dose")
    assert_refused(named, "`index` names 'idd', which is no column of table.csv; did you mean 'id'", index="idd")


def test_names_are_not_shifted_by_separators_at_the_ends_of_rows(tmp_path):
    for k in (1, 2):
        path = good(tmp_path, [rows()[0], *(line + k * "," for line in rows()[1:])])
        assert_refused(
            path, "the rows of table.csv end with a separator" if k == 1 else "row 2 of table.csv has 5 values"
        )


def test_labels_that_are_missing_are_no_labels(tmp_path):
    y = np.array(["a", "b"] * 20, dtype="U4")
    y[3], y[4] = "nan", " "
    np.savez(tmp_path / "table.npz", X=np.arange(80.0).reshape(40, 2) ** 2, y=y)
    assert_refused(tmp_path / "table.npz", "missing values in the target 'y', the first in row 3", target=None)
    found = data.read(tmp_path / "table.npz", drop_missing=True)
    assert len(found) == 38 and found.labels == ("a", "b")


def test_the_index_that_pandas_keeps_in_parquet_is_left_out(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    lines = [line.split(",") for line in rows()]
    frame = pandas.DataFrame([[float(v) for v in line] for line in lines[1:]], columns=lines[0])
    for name in (None, "patient"):
        frame.index = pandas.Index([f"p{k}" for k in range(40)], name=name)
        frame.to_parquet(tmp_path / "table.parquet")
        found = data.read(tmp_path / "table.parquet", "died")
        assert np.array_equal(found.X, data.read(good(tmp_path), "died").X)
        assert found.changes == (f"left out: column {name or '__index_level_0__'!r}, as the index of the rows",)


def test_columns_and_rows_are_left_out_if_asked(tmp_path):
    lines = rows()
    lines[3], lines[8], lines[9] = "22,,0", ",2.5,1", "28,,0"
    path = good(tmp_path, lines)
    found = data.read(path, "died", drop_missing=True, standardise=False)
    kept = [k for k in range(40) if k not in (2, 7, 8)]
    assert np.array_equal(found.X[:, 1], 20.0 + np.array(kept)) and np.array_equal(found.y, np.array(kept) % 2)
    assert_refused(path, "`drop` names the target 'died'", drop="died")
    assert_refused(path, "`drop` names 'does', which is no column of table.csv; did you mean 'dose'", drop="does")
    lines = [line if k == 0 else ",".join(["", *line.split(",")[1:]]) for k, line in enumerate(rows())]
    assert_refused(
        good(tmp_path, lines), r"every row of table.csv has a missing value, in columns 'age' \(40\)", drop_missing=True
    )


def test_rows_and_columns_of_a_matrix_are_left_out_if_asked(tmp_path):
    X = np.random.default_rng(0).standard_normal((40, 3))
    y = np.arange(40) % 2.0
    X[3, 1], y[5] = np.nan, np.nan
    np.save(tmp_path / "file.npy", np.column_stack([X, y]))
    found = data.read(tmp_path / "file.npy", -1, drop_missing=True, drop="0", standardise=False, intercept=None)
    kept = [k for k in range(40) if k not in (3, 5)]
    assert np.array_equal(found.X, X[kept, 1:]) and np.array_equal(found.y, y[kept]) and found.names == ("1", "2")
    assert found.changes == (
        "left out: column '0'",
        "left out: 2 of 40 rows, with missing values in '1' (1), 'the target' (1)",
    )
    assert_refused(tmp_path / "file.npy", "`drop` names '7', which is no feature", -1, drop="7")
    lines = [f"{k % 2} 1:{'nan' if k == 3 else k} 2:{k % 5}" for k in range(40)]
    found = data.read(table(tmp_path, "\n".join(lines), "file"), drop_missing=True, standardise=False, intercept=None)
    assert np.array_equal(found.X.toarray()[:, 0], [k for k in range(40) if k != 3])
    assert_refused(tmp_path / "file", "`index` is for tables with names", None, index="1")


def test_a_cell_that_is_no_number_is_named(tmp_path):
    lines = rows()
    lines[17] = "36,1.5 mg,0"
    path = good(tmp_path, lines)
    message = r"Row 18 of the file, table.csv: '1.5 mg' in column 'dose' is not a number; correct it"
    assert_refused(path, message)
    lines[3] = "22,,0"
    assert_refused(good(tmp_path, lines), message, drop_missing=True)
    ages = [line if k != 6 else f"twenty,{line.partition(',')[2]}" for k, line in enumerate(rows())]
    assert_refused(good(tmp_path, ages), "Row 7 of the file, table.csv: 'twenty' in column 'age'", one_hot=True)
    few = ["dose,died"] + [f"{'none ' if k == 5 else k % 4},{k // 2 % 2}" for k in range(40)]
    few[6] = "most,1"  # a category, most levels of which are numbers
    said = (
        r"^Row 7 of the file, table.csv: 'most' in column 'dose' is not a number, as nearly all .*one_hot=\['dose'\]\.$"
    )
    with pytest.warns(UserWarning, match=said):
        assert data.read(good(tmp_path, few), "died", one_hot=True).names[-1] == "dose=most"
    assert data.read(good(tmp_path, few), "died", one_hot=["dose"]).names[-1] == "dose=most"
    few[9] = "most,1"  # twice in 40 rows
    assert data.read(good(tmp_path, few), "died", one_hot=True).names[-1] == "dose=most"
    assert_refused(good(tmp_path, few), "Row 7 of the file, table.csv: 'most' in column 'dose'")


@pytest.mark.parametrize("positive", ["False", "false", False])
def test_a_label_of_truth_values_is_named_by_a_word(tmp_path, positive):
    died = np.arange(40) % 4 == 0
    np.savez(tmp_path / "table.npz", age=np.arange(40.0), died=died)
    found = data.read(tmp_path / "table.npz", "died", positive=positive)
    np.testing.assert_array_equal(found.y, ~died)
    assert found.labels == ("True", "False")


def test_targets_of_more_values(tmp_path):
    lines = ["species,mass"] + [f"{('Adelie', 'Gentoo', 'Chinstrap')[k % 3]},{3000 + k}" for k in range(60)]
    path = good(tmp_path, lines)
    assert np.array_equal(data.read(path, "species", positive="Gentoo").y, np.arange(60) % 3 == 1)
    assert np.array_equal(data.read(path, "mass", above=3030, one_hot=True).y, np.arange(60) > 30)
    for options, match in (
        ({"positive": "Gento"}, "`positive` = 'Gento' is no value of the target 'species' .*did you mean 'Gentoo'"),
        ({"above": 3}, "'species' of table.csv has text; with `above` it must be numbers"),
        ({"positive": "Gentoo", "numeric": True}, "give one of `numeric`, `positive` and `above`"),
        ({}, r"not two; say which is label 1 \(positive=, --positive\)\."),
    ):
        assert_refused(path, match, "species", **options)
    assert_refused(path, r"or above which number \(above=, --above\)", "mass", drop="species")
    assert_refused(path, "has only one label, 'not above 1e\\+06'", "mass", above=1e6, one_hot=True)
    assert_refused(path, "`above` must be a finite number, got nan", "mass", above=np.nan, one_hot=True)


# -- sizes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pages", "limit", "bytes_"),
    [
        ((4_096, 1_000), None, 4_096_000),
        ((4_096, 1_000), "max\n", 4_096_000),
        ((4_096, 1_000), "4095999\n", 4_095_999),
        ((4_096, 1_000), "8192000\n", 4_096_000),
        ((4_096, -1), None, memory.UNKNOWN),  # as of a system that does not know
        (None, None, memory.UNKNOWN),
        (None, "5000\n", 5_000),
    ],
)
def test_the_memory_of_the_machine_or_of_its_container(pages, limit, bytes_, monkeypatch):
    def sysconf(name):
        if pages is None:
            raise ValueError(name)
        return dict(zip(("SC_PAGE_SIZE", "SC_PHYS_PAGES"), pages, strict=True))[name]

    def opened(path, **options):
        assert path == "/sys/fs/cgroup/memory.max"
        if limit is None:
            raise FileNotFoundError(path)
        return io.StringIO(limit)

    monkeypatch.setattr(memory.os, "sysconf", sysconf)
    monkeypatch.setattr(memory, "open", opened, raising=False)
    assert memory.machine_memory.__wrapped__() == bytes_


@pytest.mark.parametrize(
    ("size", "words"),
    [(999_999, "999,999 bytes"), (1e6, "1 MB"), (9.98e8, "998 MB"), (1e9, "1 GB"), (2.345e12, "2.35 TB")],
)
def test_sizes_in_words_and_their_limit(size, words, monkeypatch):
    """What is as large as the memory fits."""
    monkeypatch.setattr(memory, "machine_memory", lambda: size)
    memory.check_size("`draws` = 3", size)
    with pytest.raises(memory.TooLarge) as refused:
        memory.check_size("`draws` = 3", size * 1.001, "keep fewer")
    assert str(refused.value).endswith(f", above the {words} of this machine; keep fewer.")


def test_how_many_rows_a_split_needs():
    """Five of each class, or two without classes."""
    X = np.arange(20.0)[:, None]
    for few, refused in ((4, True), (5, False)):
        y = np.arange(20) < few
        for labels, words in (((0, 1), "one of the two classes"), ((0, 1, 2), "one of the 3 classes")):
            z = np.where(np.arange(20) > 12, 2.0 * (len(labels) - 2), y)
            if refused:
                with pytest.raises(ValueError, match=f"^t: {words} has only 4 rows; at least 5 are needed"):
                    data.prepare("t", X, z, ["a"], labels)
            else:
                assert len(data.prepare("t", X, z, ["a"], labels, test_fraction=0.3).test) == 6
    with pytest.raises(ValueError, match="^t: one of the two classes has only 0 rows"):
        data.prepare("t", X, np.zeros(20), ["a"])
    with pytest.raises(ValueError, match="^t has 1 rows; at least 2"):
        data.prepare("t", X[:1], X[:1, 0], ["a"], ())
    assert len(data.prepare("t", X[:2], X[:2, 0], ["a"], ()).train) == 1
    for share in (0.0, 1.0):
        with pytest.raises(ValueError, match=f"between 0 and 1, got {share}"):
            data.prepare("t", X, None, ["a"], (), test_fraction=share)


@pytest.mark.parametrize(("form", "least"), [(np.asarray, 1e-12), (sparse.csr_array, 1e-7)])
@pytest.mark.parametrize(("size", "unit"), [(1.0, 1.0), (400.0, 400.0), (1e-3, 1.0)])
def test_columns_that_hardly_change_are_not_divided(form, least, size, unit):
    """Relative to their mean, or to 1 if that is less; of a column of ±s about the mean the deviation is s."""
    sign, found = 1.0 - 2.0 * (np.arange(64) % 2), []
    for factor in (0.5, 3.0):
        spread = factor * least * unit
        X = form(np.column_stack([size + spread * sign, sign]))
        made = data.prepare("t", X, None, ["a", "b"], (), intercept=None)
        column = np.asarray(made.X[:, [0]].todense() if sparse.issparse(made.X) else made.X[:, [0]]).ravel()
        found.append(np.ptp(column) > 100.0 * least * unit)
    assert found == [False, True]


def test_sizes_are_compared_with_the_memory_of_the_machine(tmp_path, monkeypatch):
    """Before anything of that size is allocated: the figure and the limit."""
    rng, before = np.random.default_rng(0), memory.machine_memory()
    assert 2**28 < before < 2**50
    X, y = rng.standard_normal((2_000, 40)), np.arange(2_000) % 2
    np.save(tmp_path / "X.npy", X)
    np.savez_compressed(tmp_path / "zeros.npz", X=np.zeros((2_000, 40)), y=y)
    (tmp_path / "zeros.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"0,0\n" * 200_000))
    monkeypatch.setattr(memory, "machine_memory", lambda: 500_000)
    tracemalloc.start()
    for name, figure in (
        ("X.npy", "X.npy would take 640,128 bytes"),
        ("zeros.npz", "zeros.npz unpacks to arrays that would take 65[67],... bytes"),
        ("zeros.csv.gz", "zeros.csv.gz, 0.0008 GB of text, would take 8 MB"),
    ):
        assert_refused(tmp_path / name, f"{figure}, above the 500,000 bytes of this machine", "b")
    assert tracemalloc.get_traced_memory()[1] < 3_000_000  # the blocks in which the text is counted
    tracemalloc.stop()
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"a": np.zeros(100_000), "b": np.zeros(100_000)}), tmp_path / "zeros.parquet")
    assert_refused(tmp_path / "zeros.parquet", "100,000 rows of 2 columns, would take 1.6 MB, above", "b")


def test_an_archive_that_promises_more_than_it_holds(tmp_path):
    """A header of ten terabytes before a few bytes, which numpy would allocate."""
    path = tmp_path / "file.npy"
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 1)})
    path.write_bytes(header.getvalue() + bytes(64))
    assert_refused(path, "file.npy is damaged", 0)
    header = io.BytesIO()  # and one of nine numbers before eight, in a file of 24 with its header
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (3, 3)})
    for count, is_whole in ((8, False), (9, True)):
        with io.BytesIO(header.getvalue() + bytes(8 * count)) as file:
            if is_whole:
                assert archives._check_header(file, len(file.getvalue()))
            else:
                with pytest.raises(EOFError):
                    archives._check_header(file, len(file.getvalue()))
    with zipfile.ZipFile(tmp_path / "file.npz", "w") as archive:
        archive.write(path, "X.npy")
    assert_refused(tmp_path / "file.npz", "file.npz is damaged", None)


def test_an_index_of_two_thousand_million(tmp_path):
    tracemalloc.start()
    lines = [f"{k % 2} 1:{k} 2000000000:{k % 5}" for k in range(40)]
    path = table(tmp_path, "\n".join(lines), "file")
    assert_refused(path, "file has an index of 2,000,000,000; at most 16,777,216 columns are read", None)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


# -- damage ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["npz", "packed npz", "npy", "csv.gz", "parquet"])
def test_damaged_files_are_one_line(kind, numbers, tmp_path):
    """Bytes changed, left out or cut off: the same table, or one line of ours, and nothing of other packages."""
    X, y, names = numbers
    path = tmp_path / "file"
    if kind == "npy":
        with open(path, "wb") as file:
            np.save(file, np.column_stack([X, y]))
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress("\n".join(rows()).encode(), mtime=0))
    elif kind == "parquet":
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        columns = dict(zip([*names, "died"], [*X.T, y], strict=True))
        parquet.write_table(pyarrow.table(columns), path, write_page_checksum=True)
    else:
        with open(path, "wb") as file:
            (np.savez if kind == "npz" else np.savez_compressed)(file, X=X, y=y)
    target = {"npy": -1, "npz": None, "packed npz": None}.get(kind, "died")
    content, rng, refused = path.read_bytes(), np.random.default_rng(1), 0
    whole = data.read(path, target)
    for k in range(150):
        broken, at = (
            bytearray(content),
            int(rng.integers(len(content)) if k % 2 else rng.integers(min(len(content), 200))),
        )
        if k % 5 == 0:
            broken = broken[:at]
        elif k % 5 == 1:
            del broken[at : at + int(rng.integers(1, 20))]
        else:
            broken[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(broken)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                found = data.read(path, target)
            except ValueError as error:
                refused += 1
                said = str(error)
                assert "\n" not in said and said.startswith(("file ", "`", "column", "row", "the ")), said
                assert error.__cause__ is None and "/pdmp/data/" in innermost(error), said
            else:  # the numbers of an NPY file have no checksum
                assert kind == "npy" or (np.array_equal(found.X, whole.X) and np.array_equal(found.y, whole.y))
    assert refused > 75


def innermost(error):
    return traceback.extract_tb(error.__traceback__)[-1].filename


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
    # A column that is constant but for rounding is left as it is, and one beside it is divided.
    flat = np.column_stack([np.full(40, 0.1), np.full(40, -1e5 / 3.0), X[:, 0]])
    found = data.prepare("flat", sparse.csr_array(flat), y, ["a", "b", "c"], intercept=None)
    sd = flat[found.train_rows, 2].std()
    assert np.allclose(found.X.toarray(), flat / [1.0, 1.0, sd], rtol=1e-12)
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
    for name, shape in (("several", (40, 3)), ("single", ())):  # of one shape, but no columns
        np.savez(npz, **{name: np.ones(shape), "died": np.zeros(shape)})
        assert_refused(npz, f"or one array of the same length for each column; it has {name} ", "died")
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
    assert_refused(npy, "file.npy holds Python objects, which are never loaded", None)
    np.savez(npz, X=X.astype(object), y=y)
    assert_refused(npz, "file.npz holds Python objects, which are never loaded", None)
    other.write_bytes(pickle.dumps({"X": X}))
    assert_refused(other, "not a text file", None)
    other.write_bytes(b"\x93NUMPY\x01\x00broken")
    assert_refused(other, "file is damaged", None)
    other.write_bytes(b"PK\x03\x04broken")
    assert_refused(other, "file is damaged", None)
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("table.csv", "a,b")
    assert_refused(other, "an archive, but not one of numpy's arrays; unpack it", None)


def test_libsvm_that_does_not_fit(tmp_path):
    def refused(lines, match, target=None):
        assert_refused(table(tmp_path, "\n".join(lines), "file"), match, target)

    lines = [f"{k % 2} 1:{k} 3:{k % 5}" for k in range(40)]
    refused(lines, "same value in every row of column '2'")
    refused(lines, r"brings its own target \(label\); leave `target` out", "died")
    refused([*lines, "1 1:x"], "file is not LIBSVM text.*; row 41, '1 1:x', is not")
    refused([*lines[:7], "1 3:1 1:2"], "row 8, '1 3:1 1:2', is not .indices must increase")
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


@pytest.mark.parametrize("rows", [slice(0, 5), slice(5, 40), slice(0, 35), slice(35, 40)])
def test_a_column_that_is_constant_in_some_blocks(rows, tmp_path, numbers, monkeypatch):
    monkeypatch.setattr(data.tables, "BLOCK", 16)  # five rows of three columns
    X, y, _ = numbers
    X = X.copy()
    X[rows, 1] = 7.0
    np.save(tmp_path / "file.npy", X)
    np.save(tmp_path / "labels.npy", y)
    assert np.array_equal(data.read(tmp_path / "file.npy", tmp_path / "labels.npy", **AS_IT_IS).X, X)


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


@pytest.mark.parametrize("value", [3, 2.5, [1.5], None, {"a": [3]}.values()], ids=str)
@pytest.mark.parametrize("option", ["drop", "one_hot"])
def test_names_of_columns_are_names(option, value, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,y\n1,0\n2,1\n3,0\n4,1\n")
    with pytest.raises(TypeError, match=f"`{option}` must be the name of a column, or a list of names, got a "):
        data.read(path, "y", **{option: value})
    with pytest.raises(TypeError, match="`index` must be the name of a column, or None, got a list"):
        data.read(path, "y", index=["a"])
    for seed in (-1, "x", 2**32, True, 1.0):
        with pytest.raises(ValueError, match="`seed` must be a whole number from 0 to"):
            data.read(path, "y", seed=seed)
