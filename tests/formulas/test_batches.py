"""Files read in batches: the same models as from tables in memory, and mistakes."""

import contextlib
import importlib.util
import os
import warnings

import numpy as np
import pytest

import pdmp
from pdmp.formulas import batches, checks, sources
from pdmp.formulas.design import read_labels
from pdmp.formulas.table import MISSING, read_table
from pdmp.models.priors import Flat
from pdmp.models.regressions import blocks
from pdmp.models.regressions.design import is_mapped
from tests.formulas.test_regression import (
    SUMS,
    N,
    made,
    shifted,
    table,
)

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

pytestmark = [pytest.mark.exact, pytest.mark.usefixtures("few_radii")]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(sources, "LARGE_FILE", 1)
    monkeypatch.setattr(sources, "BATCH", 7)
    monkeypatch.setattr(batches, "FIRST_ROWS", 3)


def write(data, folder, kind):
    path = folder / f"t.{kind}"
    if kind == "csv":
        data.to_csv(path, index=False)
    else:
        data.to_parquet(path)
    return path


def with_late_levels():
    """Levels and a second label that only rows far down have, and missing values."""
    data = table().sort_values("b", ignore_index=True)
    data.loc[20, "g"], data.loc[[15, 22], "treated"] = "z", "perhaps"
    data["category"] = pandas.Categorical(np.where(np.isin(np.arange(N), [8, 21, 23]), "k", "m"))
    data.loc[[4, 12], "w"] = np.nan
    return data


FORMULAS = [
    ("y ~ x * treated + np.log(e) + C(h) + w", "gaussian", {"weights": "e"}),
    ("y ~ 0 + x + C(h) + offset(w)", "student_t", {}),
    ("b ~ x + category + w", "probit", {"offset": "x"}),
    ("b[down] ~ x", "bernoulli", {}),
    ("c ~ w + offset(x) + (1 | g)", "poisson", {"exposure": "e"}),
    ("c ~ w", "poisson", {"exposure": "e", "weights": "e"}),
    ("c ~ x + (1 + w | g) + (1 | g:h)", "negative_binomial", {}),
]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(("formula", "family", "options"), FORMULAS, ids=" ".join)
def test_the_model_is_that_of_the_table_in_memory(formula, family, options, kind, tmp_path):
    data = with_late_levels()
    path = write(data, tmp_path, kind)
    one, _, priors, notes = made(formula, family, path, **options)
    other, _, usual, said = made(formula, family, data.assign(category=data.category.astype(str)), **options)
    assert is_mapped(one.X) and not is_mapped(other.X)
    assert one.columns == other.columns and [g.levels for g in one.groups] == [g.levels for g in other.groups]
    assert notes == ["the file was read in batches of 7 rows", *said]
    assert {name: str(prior) for name, prior in priors.items()} == {name: str(prior) for name, prior in usual.items()}
    x = other.initial + 0.3 * np.random.default_rng(0).standard_normal(other.dim)
    assert np.allclose(one.initial, other.initial)
    assert one.potential(x) == pytest.approx(other.potential(x), rel=1e-12)
    assert np.allclose(one.gradient(x), other.gradient(x), rtol=1e-10, atol=1e-10)
    for name, value in other.constrain(x).items():
        assert np.allclose(one.constrain(x)[name], value)


def test_what_is_so_in_one_batch_alone(tmp_path):
    """A response that varies there, a count that is none, a missing value."""
    data = table()
    data.loc[7:, "y"], data.loc[20, "x"] = 2.0, np.nan
    model, _, _, notes = made("y ~ x", data=write(data, tmp_path, "csv"))
    assert np.array_equal(model.y, data.y.drop(20)) and "1 of 24 rows have missing values, in 'x', " in notes[1]
    with pytest.raises(ValueError, match="the response 'c' must hold counts 0, 1, 2, … for this family, got 0.5"):
        made("c ~ w", "poisson", write(data.assign(c=[0.5, *data.c[1:]]), tmp_path, "csv"))
    for same in (2.0, -2.0):
        with pytest.raises(ValueError, match=f"the response 'y' is {same:g} in every row"):
            made("y ~ w", data=write(data.assign(y=same), tmp_path, "csv"))


MISTAKES = [
    ("c ~ scale(x)", {}, "scale(...) needs the whole column"),
    ("c ~ I(x - np.mean(x))", {}, "`formula` has a function of whole columns"),
    ("I(c - np.min(c)) ~ x", {}, "`formula` has a function of whole columns, 'I(c - np.min(c))'"),
    ("c ~ w + (1 | np.sign(x - np.mean(x)))", {}, "`formula` has a function of whole columns"),
    ("y ~ x", {}, "the response 'y' must hold counts"),
]


@pytest.mark.parametrize(("formula", "options", "says"), MISTAKES, ids=[says[:30] for *_, says in MISTAKES])
def test_mistakes(formula, options, says, tmp_path):
    with pytest.raises(ValueError) as error:
        made(formula, "poisson", write(table(), tmp_path, "csv"), **options)
    assert says in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("formula", ["c ~ np.where(x < {}, x, np.mean(x))", "np.where(c < {}, c, np.max(c)) ~ x"])
def test_a_function_of_whole_columns_that_only_rows_far_down_show(formula, tmp_path):
    """The first rows, by which the formula is coded, are computed of each alone."""
    name = formula[9:10] if formula[0] == "c" else "c"
    data = table().sort_values(name, ignore_index=True)
    formula = formula.format(data[name][10] + 0.5)
    assert made(formula, "poisson", data.iloc[:10]) is not None
    with pytest.raises(ValueError, match=r"of (the )?whole columns?"):
        made(formula, "poisson", write(data, tmp_path, "csv"))


def test_missing_values_are_the_same_however_a_file_is_read(tmp_path, monkeypatch):
    """Text and numbers; what means that a value is missing may be in quotes."""
    words = [word for word in MISSING if word]
    data = table().astype({"x": object})
    for k, word in enumerate(words[:9]):
        data.loc[k, "treated"], data.loc[k + 9, "x"] = word, words[-1 - k]
    path = write(data, tmp_path, "csv")
    path.write_text(path.read_text().replace("NULL", '"NULL"'))
    _, _, _, batched = made("y ~ x + treated", data=path)
    monkeypatch.setattr(sources, "LARGE_FILE", 2**28)
    _, _, _, notes = made("y ~ x + treated", data=path)
    assert batched[1:] == notes and "18 of 24 rows have missing values, in 'x', 'treated', and are left out" in notes
    assert len(set(MISSING)) == 19


@pytest.mark.parametrize("family", ["gaussian", "gamma"])
def test_truth_values_of_which_some_are_missing(family, tmp_path, monkeypatch):
    """pandas has objects of them, and a whole column of these made truth values would have two more."""
    data = table().assign(sure=lambda t: (t.x > 3.0).astype(object), y=lambda t: np.abs(t.y) + 0.1)
    some = data.drop(index=[2, 5, 13]).astype({"sure": bool})
    data.loc[2, "sure"], data.loc[[5, 13], "sure"] = np.nan, None
    expected = pdmp.regression("y ~ x + sure", some, family, sample=False, seed=1)
    tables = {"memory": data, "nullable": data.astype({"sure": "boolean"}), "path": write(data, tmp_path, "parquet")}
    for where, one in tables.items():
        if where == "path" and family == "gamma":  # which is not read in batches
            monkeypatch.setattr(sources, "LARGE_FILE", 2**28)
        found = pdmp.regression("y ~ x + sure", one, family, sample=False, seed=1)
        assert list(map(str, found.priors.values())) == list(map(str, expected.priors.values()))
        assert list(found.priors)[:3] == ["Intercept", "x", "sure"]
        assert "3 of 24 rows have missing values, in 'sure', and are left out" in found.notes
        at = expected.some_draws(1)[0]
        np.testing.assert_allclose(found.model.potential(at), expected.model.potential(at), rtol=1e-12)


@pytest.mark.parametrize("sep", [";", "\t", "|", " "])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_separators_and_encodings_are_those_of_tables_of_labels(sep, encoding, tmp_path, monkeypatch):
    """Recognised in small and in large files as by `pdmp.data.read`, and decimal commas refused as there."""
    path, other, wanted = tmp_path / "t.csv", tmp_path / "other", table().assign(note="a b" if sep == " " else "a, b")
    other.mkdir()
    wanted.to_csv(path, index=False, sep=sep, encoding=encoding)
    pandas.testing.assert_frame_equal(read_table(path), read_table(write(wanted, other, "csv")))
    other = made("y ~ x + treated + (1 | g)", data=wanted)[0]
    x = other.initial + 0.3
    for size in (2**28, 1)[: 1 + (sep != " ")]:
        monkeypatch.setattr(sources, "LARGE_FILE", size)
        one = made("y ~ x + treated + (1 | g)", data=path)[0]
        assert one.columns == other.columns and one.potential(x) == pytest.approx(other.potential(x), rel=1e-12)
    wanted.astype({"x": str}).assign(x=lambda t: t.x.str.replace(".", ",")).to_csv(path, sep=sep, encoding=encoding)
    readers = (read_table, lambda path: made("y ~ x", data=path), lambda path: pdmp.data.read(path, "b"))
    for read in readers if sep != " " else ():  # where commas divide as well
        with pytest.raises(ValueError, match="column 'x' of t.csv has numbers with decimal commas, such as '-?[0-9]+,"):
            read(path)
    with pytest.raises(ValueError, match="'x'|spaces separate the values of .*, a large file"):
        path.write_bytes((sep.join("xxy") + "\n" + sep.join("123") + "\n").encode(encoding))
        made("y ~ x", data=path)


def test_a_column_that_one_file_has_twice(tmp_path):
    import pyarrow
    from pyarrow import parquet

    table().to_parquet(tmp_path / "a.parquet")
    twice = pyarrow.Table.from_pandas(table()).append_column("x", pyarrow.array(np.zeros(N)))
    parquet.write_table(twice, tmp_path / "b.parquet")
    with pytest.raises(ValueError, match="the file '.*b.parquet' has more than one column 'x'"):
        made("y ~ x", data=str(tmp_path))


FIRST = "y,unused,h\n" + "".join(f"{k % 5}.5,abc,{k % 3}\n" for k in range(60))
OTHER_TYPES = [
    ("1.5,abc,1.5\n2.5,abc,7", "h", ["h"]),  # numbers, and then fractions
    ("1.5,abc,None\n2.5,abc,7", "h", ["h"]),
    ("1.5,abc,x\n2.5,abc,7", "C(h)", ["C(h)[1]", "C(h)[2]", "C(h)[7]", "C(h)[x]"]),
    ("1.5,abc,1.5\n2.5,abc,x", "h", ["h[1]", "h[1.5]", "h[2]", "h[x]"]),
]


@pytest.mark.parametrize(("last", "column", "columns"), OTHER_TYPES)
def test_types_that_change_after_the_first_rows(last, column, columns, tmp_path, monkeypatch):
    """The columns are those of the file in memory."""
    monkeypatch.setattr(sources, "CSV_BLOCK", 200)
    path = tmp_path / "t.csv"
    path.write_text(FIRST + last + "\n")
    slip = last.endswith("x") and column == "h"
    with pytest.warns(match="'h' holds numbers but for 'x'") if slip else contextlib.nullcontext():
        one = made(f"y ~ {column}", data=path)[0]
    with open(path, "a") as file:
        file.write("1.5,abc\n")
    with pytest.raises(ValueError, match=r"t.csv' cannot be read: CSV parse error: .*Expected 3 columns, got 2"):
        made(f"y ~ {column}", data=path)
    path.write_text(FIRST + last + "\n")
    monkeypatch.setattr(sources, "LARGE_FILE", 2**28)
    with pytest.warns(match="'h' holds numbers but for 'x'") if slip else contextlib.nullcontext():
        other = made(f"y ~ {column}", data=path)[0]
    assert one.columns == other.columns == ("Intercept", *columns)
    assert np.allclose(one.X, other.X) and np.array_equal(one.y, other.y)


def test_types_of_two_columns_that_change_after_the_first_rows(tmp_path, monkeypatch):
    """The file is begun again once for each of them."""
    monkeypatch.setattr(sources, "CSV_BLOCK", 200)
    path, scan, known = tmp_path / "t.csv", batches._scan_rows, []

    def scanned(used, keys, weights, types, part):
        known.append(types)
        assert len(known) < 4
        return scan(used, keys, weights, types, part)

    monkeypatch.setattr(batches, "_scan_rows", scanned)
    path.write_text("y,h,k\n" + "".join(f"{j % 5}.5,{j % 3},{j % 7}\n" for j in range(60)) + "1.5,1.5,2\n2.5,2,0.5\n")
    model = made("y ~ h + k", data=path)[0]
    assert known == [{}, {"h": "float64"}, {"h": "float64", "k": "float64"}] and model.n_data == 62


@pytest.mark.parametrize("last", [("", 1.0), (0.0, 0.0)])
def test_a_line_of_totals_that_is_left_out_makes_no_category(last, tmp_path):
    """For want of its response, or by its weight, in a file between others."""
    path = tmp_path / "t0.csv"
    path.write_text("y,w,x,g\n" + "".join(f"{k % 7}.5,1,{k % 30},{'ab'[k % 7 > 3]}\n" for k in range(90)))
    (tmp_path / "t1.csv").write_text(path.read_text() + f"{last[0]},{last[1]},total,sum\n")
    (tmp_path / "t2.csv").write_text(path.read_text())
    with pytest.raises(ValueError, match="column 'x' holds numbers but for 'total', and so is text"):
        made("y ~ x + g", data=tmp_path / "t*.csv", weights="w")
    path.unlink()
    assert made("y ~ C(x) + g", data=tmp_path / "t*.csv", weights="w")[0].columns[-1] == "g[b]"  # no g[sum]


def test_a_column_that_a_file_has_nothing_in(tmp_path, monkeypatch):
    """Its rows are left out, and its type, which is none, is not that of the others."""
    data = table()
    for kind in ("csv", "parquet"):
        folder = tmp_path / kind
        folder.mkdir()
        for k, part in enumerate((data[:9], data[9:12].assign(w=None, b=None), data[12:])):
            getattr(part, f"to_{kind}")(folder / f"{k}.{kind}", index=False)
        model, design, _, notes = made("y ~ w + (1 | b)", data=f"{folder}/*.{kind}")
        assert model.n_data == N - 3 and any("3 of" in note for note in notes)
        whole, other, *_ = made("y ~ w + (1 | b)", data=data.drop(index=[9, 10, 11]))
        x = np.linspace(-1.0, 1.0, model.dim)
        assert design.columns == other.columns and np.allclose(model.gradient(x), whole.gradient(x))


def test_files_that_cannot_be_read(tmp_path, monkeypatch):
    """The same lines for large files and small ones, or nearly so."""
    monkeypatch.setattr(sources, "CSV_BLOCK", 200)
    path, late = tmp_path / "t.csv", "".join(f"{k}.5,cafe,{k}\n" for k in range(60))
    for text, in_batches, in_memory in [
        ("y,y\n1,2\n2,3\n", "`data` has more than one column 'y'", None),
        ("y,x\n1,caf\xe9\n2,b\n", "the column 'x' of the file .* is not encoded in UTF-8", "is not encoded in UTF-8"),
        (
            "y,x,z\n" + late + "1.0,caf\xe9,1\n",
            "the column 'x' of the file .* is not encoded",
            "is not encoded in UTF-8",
        ),
        ("\xe9,x\n1,2\n2,b\n", "t.csv' is not encoded in UTF-8; save it so", None),
        (
            "y,x\n1,2\n1,2,3\n",
            "t.csv' cannot be read: CSV parse error: .*Expected",
            "cannot be read: Error tokenizing",
        ),
        ("PAR1 and no more", "t.csv' cannot be read: ", None),
    ]:
        path.write_bytes(text.encode("latin-1"))
        for size, says in ((1, in_batches), (2**28, in_memory or in_batches)):
            monkeypatch.setattr(sources, "LARGE_FILE", size)
            with pytest.raises(ValueError, match=says) as error:
                made("y ~ x", data=path)
            assert "\n" not in str(error.value) and type(error.value) is ValueError
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="t.csv' is empty"):
        made("y ~ x", data=path)


HALVES = {
    "hexadecimal": (["16", "2"], ["0x10", "16"], None),
    "hexadecimal in capitals, and text that has x": (["0X1F", "16"], ["31", "16"], None),
    "beyond 64 bits": (["-1", "3"], ["18446744073709551615", "3"], "has labels above 2^53 as floats"),
    "words and digits": (["True", "False"], ["1", "0"], "truth values as words in some rows, and as 0 or 1 in others"),
    "words and numbers": (["True", "False"], ["1", "2"], None),
    "words and text": (["True", "False"], ["TRUE", "yes"], None),
    "whole numbers and text": (["1", "2"], ["a", "1"], None),
    "whole numbers and others": (["1", "2"], ["2.0", "2.5"], None),
    "truth values and missing ones": (["True", "False"], ["", "True"], None),
}


@pytest.mark.filterwarnings("ignore:.* holds numbers but for")
@pytest.mark.parametrize("halves", HALVES)
@pytest.mark.parametrize("formula", ["y ~ k", "y ~ x + (1 | k)"])
def test_a_file_and_its_halves_are_read_alike(halves, formula, tmp_path, monkeypatch):
    """Arrow reads 0x10 as a number, and each file of a folder by itself."""
    first, other, refused = HALVES[halves]
    rng, head = np.random.default_rng(5), "y,x,k,note\n"
    rows = [f"{rng.normal()},{rng.normal()},{k},0x{k}\n" for k in first * 6 + other * 6]
    (tmp_path / "one.csv").write_text(head + "".join(rows))
    (tmp_path / "folder").mkdir()
    for part, some in (("a.csv", rows[:12]), ("b.csv", rows[12:])):
        (tmp_path / "folder" / part).write_text(head + "".join(some))
    seen = []
    for path, size in (("one.csv", 2**28), ("one.csv", 1), ("folder/*.csv", 1)):
        monkeypatch.setattr(sources, "LARGE_FILE", size)
        try:
            model = made(formula, data=tmp_path / path)[0]
            at = np.linspace(-0.4, 0.6, model.dim)
            seen.append((model.columns, model.potential(at)))
        except ValueError as error:
            seen.append(str(error))
    if isinstance(seen[0], str):
        assert seen[0] == seen[1] == seen[2] and refused is not None and refused in seen[0]
        return
    assert refused is None or (halves, formula) == ("beyond 64 bits", "y ~ k")
    (columns, potential), *others = seen
    assert others == [(columns, pytest.approx(potential, rel=1e-12))] * 2


def test_files_that_are_no_tables_and_truth_values_in_two_ways(tmp_path, monkeypatch):
    np.savez(tmp_path / "t.npz", y=np.zeros(3), x=np.ones(3))
    np.save(tmp_path / "t.npy", np.zeros((3, 2)))
    for path in (tmp_path / "t.npz", tmp_path / "t.npy"):
        with pytest.raises(
            ValueError, match="t.np[yz]' cannot be read: it is a file of NumPy arrays or an archive, and no"
        ):
            made("y ~ x", data=path)
    path = tmp_path / "t.csv"
    for size, columns in (
        (1, ["1.0,0.0,false,1.0,0.0,true"]),
        (2**28, ["True,False,1,0,True,0", "1,0,false,1,0,true"]),
    ):
        monkeypatch.setattr(sources, "LARGE_FILE", size)  # Arrow takes 0 and 1 among truth values for these
        for words in columns:
            path.write_text("y,x\n" + "".join(f"{k % 3}.5,{word}\n" for k, word in enumerate(words.split(","))))
            for formula in ("y ~ x", "y ~ 1 + (1 | x)"):
                with pytest.raises(
                    ValueError, match="^the column 'x' has truth values as words in some rows, and as 0 or"
                ):
                    made(formula, data=path)
        path.write_text("y,x\n" + "".join(f"{k % 3}.5,{k % 2 == 0}\n" for k in range(6)))
        assert made("y ~ x", data=path)[0].columns in (("Intercept", "x"), ("Intercept", "x[True]"))
    with pytest.raises(
        ValueError, match="^the response 'y' has truth values as words in some rows, and as 0 or 1 in oth"
    ):
        read_labels(np.array(["True", "0", "False", "1"], object), "y")
    with pytest.raises(ValueError, match="two values for this family, got 3: 0, 1, yes"):
        read_labels(np.array(["0", "1", "yes"], object), "y")


def test_dates_of_a_csv_file_are_text(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("y,day,at\n" + "".join(f"{k},2026-01-0{1 + k % 3},1{k // 4}:30:00\n" for k in range(12)))
    one = made("y ~ day + (1 | at)", data=path)[0]
    assert one.columns == ("Intercept", "day[2026-01-02]", "day[2026-01-03]")
    monkeypatch.setattr(sources, "LARGE_FILE", 2**28)
    other = made("y ~ day + (1 | at)", data=path)[0]
    assert one.columns == other.columns and one.groups[0].levels == other.groups[0].levels


@pytest.mark.parametrize(("formula", "says"), SUMS[1::2], ids=[formula for formula, _ in SUMS[1::2]])
def test_collinear_columns_of_files(formula, says, tmp_path, monkeypatch):
    """What is said of them is what is said of the table in memory."""
    monkeypatch.setattr(blocks, "ENTRIES", 40)
    path = write(shifted(), tmp_path, "parquet")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        made(formula, data=path)
    texts = [str(one.message) for one in said]
    assert len(texts) == (says is not None) and (says is None or texts[0].startswith(says))


def test_a_file_that_changes_while_it_is_read(tmp_path, monkeypatch):
    path = write(table(), tmp_path, "csv")
    read = pandas.read_csv

    def touched(*args, **options):
        os.utime(path, ns=(0, 12_345))
        return read(*args, **options)

    monkeypatch.setattr(pandas, "read_csv", touched)
    with pytest.raises(ValueError, match="has changed while it was read"):
        read_table(path)
    scan = batches._scan

    def longer(*args):
        with open(path, "a", encoding="utf-8") as file:
            file.write("\n")
        return scan(*args)

    monkeypatch.setattr(batches, "_scan", longer)
    with pytest.raises(ValueError, match="has changed while it was read"):
        made("y ~ x", "gaussian", path)


@pytest.mark.parametrize("more", [1, -1])
def test_another_number_of_rows_in_the_second_pass(more, tmp_path, monkeypatch):
    """Rows that come in neither the size nor the time of a file: the passes are compared."""
    code = batches._code
    monkeypatch.setattr(batches, "_code", lambda common, part, first, kept: code(common, part, first, kept + more))
    with pytest.raises(ValueError, match="another number of rows in the second pass"):
        made("y ~ x", "gaussian", write(table(), tmp_path, "csv"))


def test_separation_is_looked_for_among_some_rows_and_confirmed_among_all(monkeypatch):
    monkeypatch.setattr(checks, "SEPARATION_ROWS", 6)
    t = table()
    t["sure"] = (t.b == "up").astype(float) + 0.1 * (np.arange(N) % 2)
    with pytest.warns(UserWarning, match="'sure' separates the labels"):
        made("b ~ sure", "bernoulli", t)
    with pytest.raises(ValueError, match="'sure' separates the labels: a Flat prior"):
        made("b ~ sure", "bernoulli", t, priors={"sure": Flat()})
    sides = t.b == "up"
    t.loc[sides.idxmax(), "sure"], t.loc[(~sides).idxmax(), "sure"] = 0.0, 1.1  # two rows on the other side
    made("b ~ sure", "bernoulli", t)  # without a warning


def test_counts_of_0_and_what_columns_are_exactly_are_confirmed_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "SEPARATION_ROWS", 6)
    t = table().assign(k=0, twice=lambda t: 2.0 * t.x)
    t.loc[t.b == "up", "k"] = np.arange(1, (t.b == "up").sum() + 1)
    with pytest.warns(UserWarning, match=r"'b\[up\]' separates rows of 0 from others"):
        made("k ~ b + x", "poisson", write(t, tmp_path, "csv"))
    with pytest.warns(UserWarning, match="a sum of the columns gives 'twice' in every row"):
        made("twice ~ x", "gaussian", write(t, tmp_path, "csv"))
    with pytest.warns(UserWarning, match="a sum of the columns gives 'y' in every row"):
        made("y ~ x", "gaussian", write(t.assign(y=t.twice + t.w), tmp_path, "csv"), offset="w")
    t.loc[(t.b != "up").idxmax(), "k"], t.loc[N - 1, "twice"] = 1, 0.0
    made("k ~ b + x", "poisson", write(t, tmp_path, "csv"))  # without a warning
    made("twice ~ x", "gaussian", write(t, tmp_path, "csv"))
    t["b"], t["k"] = (
        np.where(np.arange(N) == 2, "rare", t.b),
        1 * (np.arange(N) != 2),
    )  # a row that is not among the first
    with pytest.warns(UserWarning, match=r"'b\[rare\]' separates rows of 0 from others"):
        notes = made("k ~ b", "poisson", write(t, tmp_path, "csv"))[3]
    said = "the response is 0 or 1 in every row: if it is a label, its family is bernoulli"
    assert said in notes and said not in made("k ~ x", "poisson", write(t.assign(k=2 * t.k), tmp_path, "csv"))[3]


def test_a_column_that_differs_little_among_counts_above_0_is_no_constant_of_them():
    """A ten-millionth of how far it is from the others: its own slope has counts of 0 at one side, and a likelihood."""
    t = table()
    above = (t.b == "up").to_numpy()
    t["k"] = np.where(above, 1 + np.arange(N), 0)
    t["far"] = np.where(above, 1000.0 + 1e-4 * np.arange(N), -1000.0 - np.arange(N))
    made("k ~ far", "poisson", t)  # without a warning
    with pytest.warns(UserWarning, match="'far' separates rows of 0 from others"):
        made("k ~ far", "poisson", t.assign(far=np.where(above, 1000.0, t.far)))


def test_a_file_of_one_row(tmp_path):
    one = table().iloc[[3]]
    model, design, _, notes = made("y ~ 1", data=write(one, tmp_path, "csv"))
    assert model.n_data == 1 and list(design.columns) == ["Intercept"]
    assert notes == ["the file was read in batches of 7 rows"]
    with pytest.raises(ValueError, match="`data` has no rows"):
        made("y ~ 1", data=write(one.iloc[:0], tmp_path, "csv"))


def test_what_contradicts_a_separation_is_found_in_every_piece(monkeypatch):
    monkeypatch.setattr(checks, "SEPARATION_ROWS", 6)
    monkeypatch.setattr(checks, "pieces", lambda X: [slice(k, k + 4) for k in range(0, len(X), 4)])
    for row in (12, 15):  # not among the first rows that are looked at; first and last of a piece
        t = table()
        t["sure"] = np.where(t.b == "up", 1.0, 0.0) + 0.1 * (np.arange(N) % 2)
        t.loc[row, "sure"] = -1.0 if t.b[row] == "up" else 2.0
        made("b ~ sure", "bernoulli", t)  # without a warning


def test_categories_of_numbers_are_no_numbers(tmp_path):
    """Arrow reads what pandas wrote as a category of numbers as numbers: in a file that is small it is a category."""
    data = table()
    data["stage"] = pandas.Categorical(np.arange(N) % 3 + 1, [3, 1, 2])
    (tmp_path / "parts").mkdir()
    data.assign(stage=np.arange(N)).to_parquet(tmp_path / "parts" / "a.parquet")
    data.to_parquet(tmp_path / "parts" / "b.parquet")
    for path, what in ((write(data, tmp_path, "parquet"), "file"), (tmp_path / "parts", "folder")):
        for formula in ("y ~ x + stage", "y ~ x:stage", "y ~ x + (0 + stage | g)"):
            with pytest.raises(
                ValueError,
                match=rf"^`formula`: the column 'stage' is a category of numbers in the {what}, and would be read as "
                r"numbers: write C\(stage\) for a category\.$",
            ):
                made(formula, data=path)
    path = tmp_path / "t.parquet"
    for formula in ("y ~ x + C(stage)", "y ~ x + (1 | stage)"):
        found, wanted = made(formula, data=path)[0], made(formula, data=data)[0]
        assert set(found.columns) == set(wanted.columns)
        assert [g.levels for g in found.groups] == [g.levels for g in wanted.groups]


def test_categories_of_numbers_in_a_file_that_is_read_whole(tmp_path, monkeypatch):
    """Whatever the version of pandas reads them as; the order of one that is ordered is not kept by all of these."""
    monkeypatch.setattr(sources, "LARGE_FILE", 10**9)
    data = table()
    data["stage"] = pandas.Categorical(np.arange(N) % 3 + 1)
    data["marks"] = pandas.Categorical(np.arange(N) % 3 + 1, [3, 2, 1], ordered=True)
    data["rank"] = pandas.Categorical(np.arange(N) % 2 + 1, [2, 1], ordered=True)
    data["grade"] = np.arange(N) % 4
    data.to_parquet(tmp_path / "t.parquet")
    read = read_table(tmp_path / "t.parquet")
    assert read.stage.dtype == data.stage.dtype
    assert read.grade.dtype.kind == "i"
    pandas.testing.assert_series_equal(read.stage, data.stage)
    formulas_of = [pdmp.regression("y ~ x + stage", t, sample=False) for t in (data, tmp_path / "t.parquet")]
    columns = [list(one.model.columns) for one in formulas_of]
    assert columns[0] == columns[1] == ["Intercept", "x", "stage[2]", "stage[3]"]
    if pandas.read_parquet(tmp_path / "t.parquet").marks.dtype.name == "category":
        return  # of a version that keeps it
    for formula, family in [
        ("y ~ marks", "gaussian"),
        ("y ~ mo(marks)", "gaussian"),
        ("y ~ x + (1 | marks)", "gaussian"),
        ("marks ~ x", "cumulative"),
        ({"y": "y ~ x", "sigma": "~ marks"}, "gaussian"),
    ]:
        pdmp.regression(formula, data, family, sample=False)
        message = "^`formula` names 'marks', an ordered category of numbers, of which the file does not keep the order"
        with pytest.raises(ValueError, match=message):
            pdmp.regression(formula, tmp_path / "t.parquet", family, sample=False)
    with pytest.raises(ValueError, match="^`formula` names 'rank', an ordered category"):  # the last of several
        pdmp.regression("y ~ rank", tmp_path / "t.parquet", sample=False)


def test_dictionaries_of_arrow_are_categories(tmp_path):
    """pandas keeps them and cannot read them again."""
    pyarrow = pytest.importorskip("pyarrow")
    data = table()
    labels = pyarrow.array(list(np.array(["k", "l", "m"])[np.arange(N) % 3])).dictionary_encode()
    data["d"] = pandas.arrays.ArrowExtensionArray(labels)
    data.to_parquet(path := tmp_path / "t.parquet")
    arrow = pyarrow.Table.from_pandas(data)
    columns = [
        list(pdmp.regression("y ~ x + d", t, sample=False).model.columns)
        for t in (data, arrow.replace_schema_metadata(None))
    ]
    assert columns[0] == columns[1] == ["Intercept", "x", "d[l]", "d[m]"]
    try:
        pandas.read_parquet(path)
    except TypeError:  # of this version
        with pytest.raises(ValueError, match="^`data`: .*t.parquet' cannot be read: data type 'dictionary<"):
            pdmp.regression("y ~ x", path, sample=False)
        with pytest.raises(ValueError, match="^`data` cannot be read by pandas: data type 'dictionary<.*Leave out"):
            pdmp.regression("y ~ x", arrow, sample=False)


def test_a_table_that_pandas_cannot_take_is_said_in_a_line():
    """Such as one of Polars with whole numbers of 128 bits, which the formula need not name."""
    pyarrow = pytest.importorskip("pyarrow")

    class Wide:
        def to_pandas(self):
            raise pyarrow.ArrowInvalid("Invalid or unsupported format string: '_pli128'.\nDetail: none")

    with pytest.raises(ValueError, match="^`data` cannot be read by pandas: .*'_pli128'.*. Leave out columns") as said:
        pdmp.regression("y ~ x", Wide(), sample=False)
    assert "\n" not in str(said.value)


def test_the_index_of_the_rows_is_no_column(tmp_path, monkeypatch):
    """In memory, in a file, in batches, in a folder and in partitions alike; other columns are read beside it."""
    data = table()
    for index in ("x", ["g", "x"]):
        indexed = data.set_index(index)
        folder = tmp_path / f"{len(index)}"
        folder.mkdir()
        indexed[:9].to_parquet(folder / "a.parquet")
        indexed[9:].to_parquet(path := folder / "b.parquet")
        given = [(indexed, 1), (path, 2**28), (path, 1), (folder, 1)]
        if index == "x" and importlib.util.find_spec("dask") is not None:
            given.append((pytest.importorskip("dask.dataframe").from_pandas(indexed.sort_index(), npartitions=2), 1))
        for one, size in given:
            monkeypatch.setattr(sources, "LARGE_FILE", size)
            for formula, options in (("y ~ w + x", {}), ("y ~ w", {"offset": "x"})):
                asked = next(iter(options), "formula")
                with pytest.raises(
                    ValueError,
                    match=rf"^`{asked}` names 'x', which is the index of the rows of `data`, not a column: make it one "
                    r"by `reset_index\(\)`\.$",
                ):
                    made(formula, data=one, **options)
        assert made("y ~ w", data=folder)[0].columns == ("Intercept", "w")
    with pytest.raises(ValueError, match="^`formula` names 'x', which is the index of the rows of `new`"):
        made("y ~ w + x", data=data)[1].new(indexed)
    indexed.reset_index().to_parquet(folder / "a.parquet")
    with pytest.raises(ValueError, match="b.parquet' has no column 'x', which the first file has"):
        made("y ~ x", data=folder)


def test_rows_of_weight_0_are_not_read(tmp_path):
    """Their levels and numbers neither: of files, as of tables in memory."""
    data = with_late_levels()
    out = data.iloc[[0, 1, 2]].assign(x=[1e9, np.nan, -1e8], treated="never", g="nowhere", y=1e9, e=0.0)
    both = pandas.concat([data[:3], out[:1], data[3:12], out[1:], data[12:]], ignore_index=True)  # of three batches
    found = {}
    for name, part in (("one", data), ("other", both)):
        (tmp_path / name).mkdir()
        found[name] = made(
            "y ~ x + w + treated + (1 | g)", "gaussian", write(part, tmp_path / name, "parquet"), weights="e"
        )
    (one, _, priors, notes), (other, _, same, said) = found.values()
    assert said[1:] == [
        "3 of 27 rows have weight 0, and are left out",
        *(note.replace("of 24", "of 27") for note in notes[1:]),
    ]
    assert [g.levels for g in one.groups] == [g.levels for g in other.groups] and one.columns == other.columns
    for k, part in enumerate((both[:5], both[5:])):
        part.to_parquet(tmp_path / f"{k}.parquet")
    assert made("y ~ x + w + treated + (1 | g)", "gaussian", tmp_path / "*.parquet", weights="e")[3][1:] == said[1:]
    codes = [[prior.coded() for prior in own.values()] for own in (priors, same)]
    np.testing.assert_allclose(*codes, rtol=1e-12)  # sums of other blocks
    assert other.potential(one.initial) == pytest.approx(one.potential(one.initial), rel=1e-12)
    with pytest.raises(ValueError, match="nor 0 in every row"):
        made("y ~ x", data=write(data.assign(e=0.0), tmp_path, "csv"), weights="e")


@pytest.mark.parametrize("ordered", [True, False])
def test_an_order_of_categories_that_batches_do_not_keep_is_told_of(ordered, tmp_path):
    """Levels are those of the alphabet then, of a column itself and within C(...), as without an order in memory."""
    levels, n = ["low", "mid", "high"], 60
    rng = np.random.default_rng(0)
    named = {"dose": rng.choice(levels, n), "kind": rng.choice(["a", "b"], n)}
    dose = pandas.Categorical(named["dose"], categories=levels, ordered=ordered)
    table = pandas.DataFrame({"y": rng.normal(size=n), "dose": dose, "kind": pandas.Categorical(named["kind"])})
    table[:30].to_parquet(tmp_path / "0.parquet")
    table[30:].to_parquet(tmp_path / "1.parquet")
    told = "levels of dose are in the order of the alphabet, not in that of the folder"
    for formula, column in (("y ~ dose + kind", "dose"), ("y ~ C(dose) + kind", "C(dose)")):
        fit = pdmp.regression(formula, tmp_path, sample=False, seed=1)
        assert [note for note in fit.notes if "alphabet" in note] == ([told] if ordered else [])
        assert f"{column}[low]" in fit.priors and f"{column}[high]" not in fit.priors
    assert not any("alphabet" in note for note in pdmp.regression("y ~ kind", tmp_path, sample=False, seed=1).notes)
    assert ("dose[low]" in pdmp.regression("y ~ dose", table, sample=False, seed=1).priors) != ordered
