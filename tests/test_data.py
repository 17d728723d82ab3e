"""Tables of one's own with everything that can be wrong with them, and the built-in data sets."""

import hashlib
import os
import zipfile

import numpy as np
import pytest

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


# -- what is refused ---------------------------------------------------------------------------------------------


def assert_refused(path, match, target="died"):
    with pytest.raises(ValueError, match=match):
        data.read(path, target=target)


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
    assert_refused(good(tmp_path, lines), "same value in every row of columns 'b', 'c'")
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


# -- built-in ----------------------------------------------------------------------------------------------------


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
    monkeypatch.setitem(__import__("sys").modules, "statsmodels.datasets", None)
    with pytest.raises(ImportError, match=r"pip install 'pdmp\[data\]'"):
        data.randhie()


def test_unknown_problem():
    with pytest.raises(ValueError, match="no problem 'randie'; did you mean 'randhie'"):
        data.problem("randie")


@pytest.fixture
def small_sepsis(tmp_path, monkeypatch):
    """A stand-in for the file, with its own hash, in a folder laid out as PDMP_DATA."""
    content = (
        "age,sex,episode,alive\n" + "\n".join(f"{20 + k % 60},{k % 2},{k % 3},{int(k % 9 > 0)}" for k in range(200))
    ).encode()
    folder = tmp_path / "sepsis_survival"
    folder.mkdir()
    (folder / data.SEPSIS_FILE).write_bytes(content)
    monkeypatch.setattr(data, "SEPSIS_SHA256", hashlib.sha256(content).hexdigest())
    return tmp_path


def test_sepsis_from_a_copy(small_sepsis, monkeypatch):
    monkeypatch.setenv("PDMP_DATA", str(small_sepsis))
    folder = small_sepsis / "sepsis_survival"
    for read in (data.sepsis(), data.sepsis(folder), data.sepsis(folder / data.SEPSIS_FILE)):
        assert read.X.shape == (200, 4) and read.names[1:] == ("age", "sex", "episode")


def test_sepsis_refuses_another_file(small_sepsis, monkeypatch):
    folder = small_sepsis / "sepsis_survival"
    monkeypatch.setattr(data, "SEPSIS_SHA256", "0" * 64)
    with pytest.raises(ValueError, match="SHA-256"):
        data.sepsis(folder)
    with pytest.raises(FileNotFoundError, match="PDMP_DATA"):
        data.sepsis(small_sepsis / "absent.csv")


def test_sepsis_from_a_nested_archive(small_sepsis, tmp_path):
    content = (small_sepsis / "sepsis_survival" / data.SEPSIS_FILE).read_bytes()
    inner, outer = tmp_path / "inner.zip", tmp_path / "outer.zip"
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr(f"folder/{data.SEPSIS_FILE}", content)
    with zipfile.ZipFile(outer, "w") as archive:
        archive.write(inner, "data.zip")
    assert data._find_in_zip(outer.read_bytes()) == content


def test_sepsis_without_network(monkeypatch, tmp_path):
    pooch = pytest.importorskip("pooch")
    monkeypatch.delenv("PDMP_DATA", raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache")

    def fails(*args, **kwargs):
        raise OSError("no network")

    monkeypatch.setattr(pooch, "retrieve", fails)
    with pytest.raises(ConnectionError, match="by hand and set PDMP_DATA"):
        data.sepsis()


@pytest.mark.skipif(not os.environ.get("PDMP_DATA"), reason="needs PDMP_DATA")
def test_sepsis():
    read = data.problem("sepsis")
    assert read.X.shape == (110_204, 4) and int((read.y == 0).sum()) == 8_105
