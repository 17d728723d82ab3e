"""Data sets for binary regression: tables of one's own, and the problems of ``pdmp compare``.

Every one comes as a `Dataset`: features with a column of ones in front, standardised by the training part, labels 0
and 1, and a fixed split into 80 % for training and 20 % for testing.
"""

from __future__ import annotations

import csv
import difflib
import hashlib
import io
import os
import pathlib
import zipfile
from dataclasses import dataclass

import numpy as np

TEST_FRACTION = 0.2
SPLIT_SEED = 0
INTERCEPT = "intercept"
MISSING = {"", "na", "n/a", "nan", "null", "none", "?"}

SEPSIS_FILE = "s41598-020-73558-3_sepsis_survival_primary_cohort.csv"
SEPSIS_SHA256 = "6ba4ebd256fa3b5f6c0d42444a3e6b9a4b90d6e493c9efdfedcb2ef7470d4b0f"
SEPSIS_URL = "https://archive.ics.uci.edu/static/public/827/sepsis+survival+minimal+clinical+records.zip"
SEPSIS_PAGE = "https://archive.ics.uci.edu/dataset/827/sepsis+survival+minimal+clinical+records"


@dataclass(frozen=True)
class Dataset:
    """Features, labels, and the split.

    Attributes
    ----------
    name : str
    X : ndarray, shape (N, d)
        Features; column 0 is one, the others are standardised by the rows of the training part.
    y : ndarray, shape (N,)
        Labels 0.0 and 1.0.
    names : tuple of str
        Of the columns of `X`.
    labels : tuple
        What 0 and 1 were in the source.
    train_rows, test_rows : ndarray of int
        The split; both empty in a part.
    about : str
        One line on what it is.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    names: tuple
    labels: tuple = (0, 1)
    train_rows: np.ndarray = None
    test_rows: np.ndarray = None
    about: str = ""

    def __len__(self):
        return len(self.y)

    def __repr__(self):
        return f"Dataset({self.name!r}, {len(self)} rows, {self.X.shape[1]} columns, {int(self.y.sum())} of label 1)"

    def _part(self, what, rows):
        if rows is None:
            raise AttributeError(f"{self.name} is a part, and has no {what} part of its own.")
        return Dataset(f"{self.name} ({what})", self.X[rows], self.y[rows], self.names, self.labels, about=self.about)

    @property
    def train(self):
        """The training part, a `Dataset`."""
        return self._part("train", self.train_rows)

    @property
    def test(self):
        """The test part, a `Dataset`."""
        return self._part("test", self.test_rows)


def prepare(name, X, y, names, labels=(0, 1), about=""):
    """Split, standardise by the training part, and put a column of ones in front.

    Parameters
    ----------
    name : str
    X : array_like, shape (N, d)
    y : array_like, shape (N,)
        Labels in {0, 1}.
    names : sequence of str
        Of the d columns.
    labels : tuple
        What 0 and 1 stand for.
    about : str

    Returns
    -------
    Dataset
    """
    from sklearn.model_selection import train_test_split

    X, y = np.asarray(X, float), np.asarray(y, float)
    least = int(min(np.sum(y == 0), np.sum(y == 1)))
    if least < 5:
        raise ValueError(
            f"{name}: one of the two classes has only {least} rows; at least 5 are needed to train and to test."
        )
    train, test = train_test_split(np.arange(len(y)), test_size=TEST_FRACTION, random_state=SPLIT_SEED, stratify=y)
    train, test = np.sort(train), np.sort(test)
    mean, sd = X[train].mean(axis=0), X[train].std(axis=0)
    sd[sd <= 1e-12 * np.maximum(1.0, np.abs(mean))] = (
        1.0  # constant in the training part: its coefficient has the prior
    )
    X = np.column_stack([np.ones(len(y)), (X - mean) / sd])
    first = INTERCEPT
    while first in names:
        first = f"({first})"
    return Dataset(name, X, y, (first, *names), tuple(labels), train, test, about)


# ---------------------------------------------------------------------------------------------------------------
# Tables of one's own


def read(path, target=None):
    """A CSV table for binary regression.

    Parameters
    ----------
    path : path
        Comma-separated, the first row the names of the columns. All columns but the target must be numeric.
    target : str
        The column to predict: two different values, numbers or text. The larger number, or the last in the alphabet,
        becomes label 1.

    Returns
    -------
    Dataset

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        For a table that does not fit; the message names the columns and the row.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r}.")
    names, rows = _read_table(path)
    where = path.name
    if target is None:
        raise ValueError(f"`target` is missing: the column of {where} to predict, one of {_listed(names)}.")
    if target not in names:
        raise ValueError(
            f"{where} has no column {target!r}{did_you_mean(target, names)} Its columns: {_listed(names)}."
        )
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))

    missing = {n: next((k for k, v in enumerate(c) if v.strip().lower() in MISSING), None) for n, c in columns.items()}
    missing = {n: k for n, k in missing.items() if k is not None}
    if missing:
        first = min(missing.values())
        raise ValueError(
            f"{where} has missing values in {_columns(missing)}, the first in row {first + 2} of the file; "
            "remove those rows or fill them in."
        )
    y, labels = _labels(columns.pop(target), target, where)
    features, text, infinite, constant = {}, [], [], []
    for name, column in columns.items():
        try:
            values = np.array(column, dtype=float)
        except ValueError:
            text.append(name)
            continue
        if not np.all(np.isfinite(values)):
            infinite.append(name)
        elif np.all(values == values[0]):
            constant.append(name)
        features[name] = values
    if text:
        raise ValueError(f"{where} has text in {_columns(text)}; code them as numbers, or leave them out.")
    if infinite:
        raise ValueError(f"{where} has infinite values in {_columns(infinite)}.")
    if constant:
        raise ValueError(f"{where} has the same value in every row of {_columns(constant)}; leave them out.")
    if not features:
        raise ValueError(f"{where} has no column but the target {target!r}.")
    X = np.column_stack(list(features.values()))
    return prepare(path.stem, X, y, features, labels, about=f"{where}: {target}")


def _read_table(path):
    """Names (list) and rows (list of lists of str)."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            lines = [line for line in csv.reader(file, skipinitialspace=True, strict=True) if line]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path.name} is not a text file with comma-separated values: {error}.") from None
    if len(lines) < 2:
        raise ValueError(
            f"{path.name} must have a row of names and at least one row of data; it has {len(lines)} rows."
        )
    names = [name.strip() for name in lines[0]]
    if len(names) == 1 and any(c in names[0] for c in ";\t|"):
        raise ValueError(f"{path.name} has a single column {names[0]!r}; the separator must be a comma.")
    if "" in names:
        raise ValueError(f"{path.name} has a column without a name, the {names.index('') + 1}th.")
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise ValueError(f"{path.name} has several columns of the same name: {_listed(twice)}.")
    if all(_is_number(n) for n in names):
        raise ValueError(f"the first row of {path.name} must be the names of the columns; it holds numbers.")
    for k, row in enumerate(lines[1:]):
        if len(row) != len(names):
            raise ValueError(f"row {k + 2} of {path.name} has {len(row)} values for {len(names)} columns.")
    return names, lines[1:]


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def _labels(column, target, where):
    column = [value.strip() for value in column]
    numeric = all(_is_number(value) for value in column)
    found = sorted({float(v) for v in column} if numeric else set(column))
    if len(found) == 1:
        raise ValueError(f"the target {target!r} of {where} has only one value, {found[0]!r}; two are needed.")
    if len(found) > 2:
        raise ValueError(
            f"the target {target!r} of {where} has {len(found)} different values ({_listed(found, 4)}), not two."
        )
    return np.array([(float(v) if numeric else v) == found[1] for v in column], dtype=float), tuple(found)


def _columns(names):
    names = list(names)
    return f"column{'s' if len(names) > 1 else ''} {_listed(names)}"


def _listed(items, most=12):
    items = list(items)
    text = ", ".join(map(repr, items[:most]))
    return text if len(items) <= most else f"{text}, … ({len(items)} in all)"


def did_you_mean(name, known):
    """ "." or "; did you mean 'x'?" for the closest of `known`, whatever the case."""
    by_lower = {str(k).lower(): k for k in known}
    close = difflib.get_close_matches(str(name).lower(), list(by_lower), n=1, cutoff=0.5)
    return f"; did you mean {by_lower[close[0]]!r}?" if close else "."


# ---------------------------------------------------------------------------------------------------------------
# The problems of `pdmp compare`


def _sklearn(name, loader, label, about):
    def load():
        from sklearn import datasets

        bunch = getattr(datasets, loader)()
        names = [str(n).replace(" ", "_") for n in bunch.feature_names]
        varies = bunch.data.std(axis=0) > 0.0
        names = [n for n, keep in zip(names, varies, strict=True) if keep]
        return prepare(name, bunch.data[:, varies], label(bunch.target), names, about=about)

    load.about = about
    return load


def randhie():
    """RAND health insurance experiment: was there any outpatient visit in the year? 20,190 rows, 9 covariates.

    Part of statsmodels, in the public domain.
    """
    try:
        from statsmodels.datasets import randhie as source
    except ImportError:
        raise ImportError("the problem 'randhie' comes with statsmodels: pip install 'pdmp[data]'.") from None
    frame = source.load_pandas().data
    covariates = [c for c in frame.columns if c != "mdvis"]
    X, y = frame[covariates].to_numpy(float), frame["mdvis"].to_numpy(float) > 0
    return prepare("randhie", X, y, covariates, ("none", "any"), about=randhie.about)


randhie.about = "RAND health insurance experiment (statsmodels): any outpatient visit or none"


def sepsis(path=None):
    """Survival of hospital admissions with sepsis from age, sex and episode; 110,204 rows.

    Chicco & Jurman (2020), Sepsis survival minimal clinical records, UCI Machine Learning Repository, CC BY 4.0.

    Parameters
    ----------
    path : path, optional
        The file, or the folder with it. Without: ``sepsis_survival/`` in the folder that the environment variable
        PDMP_DATA names; without that, the file is downloaded once from the UCI archive, with pooch. Its SHA-256 is
        verified in each case.

    Returns
    -------
    Dataset
        Label 1: alive.
    """
    file = _sepsis_file(path)
    table = np.loadtxt(io.BytesIO(file), delimiter=",", skiprows=1)
    names = ("age", "sex", "episode")
    return prepare("sepsis", table[:, :3], table[:, 3], names, ("dead", "alive"), about=sepsis.about)


sepsis.about = "sepsis survival, primary cohort (UCI 827, CC BY 4.0; PDMP_DATA or download): alive or dead"


def _sepsis_file(path):
    if path is None and os.environ.get("PDMP_DATA"):
        path = pathlib.Path(os.environ["PDMP_DATA"]) / "sepsis_survival"
    if path is not None:
        path = pathlib.Path(path)
        path = path / SEPSIS_FILE if path.is_dir() else path
        if not path.is_file():
            raise FileNotFoundError(
                f"there is no file {str(path)!r}; give the path of {SEPSIS_FILE}, "
                f"or set PDMP_DATA to a folder with it in sepsis_survival/. It is in the archive at {SEPSIS_PAGE}."
            )
        return _checked(path.read_bytes(), str(path))
    try:
        import pooch
    except ImportError:
        raise ImportError(
            "the problem 'sepsis' needs pooch for its download: pip install 'pdmp[data]'; or download it from "
            f"{SEPSIS_PAGE} and set PDMP_DATA to a folder with {SEPSIS_FILE} in sepsis_survival/."
        ) from None
    cache = pathlib.Path(pooch.os_cache("pdmp")) / "sepsis_survival"
    if (cache / SEPSIS_FILE).is_file():
        return _checked((cache / SEPSIS_FILE).read_bytes(), str(cache / SEPSIS_FILE))
    try:
        logger = pooch.get_logger()
        logger.info("Sepsis survival minimal clinical records, D. Chicco and G. Jurman, UCI 827, licence CC BY 4.0.")
        # The archive is not versioned; what counts is the hash of the table in it, verified below.
        archive = pathlib.Path(pooch.retrieve(SEPSIS_URL, known_hash=None, path=cache)).read_bytes()
    except Exception as error:
        raise ConnectionError(
            f"the download of 'sepsis' from {SEPSIS_URL} failed ({type(error).__name__}); download it "
            f"from {SEPSIS_PAGE} by hand and set PDMP_DATA to a folder with {SEPSIS_FILE} in sepsis_survival/."
        ) from error
    file = _checked(_find_in_zip(archive), SEPSIS_URL)
    (cache / SEPSIS_FILE).write_bytes(file)
    return file


def _find_in_zip(archive):
    """The table, from an archive that may hold another one."""
    with zipfile.ZipFile(io.BytesIO(archive)) as outer:
        for name in outer.namelist():
            if name.endswith(SEPSIS_FILE) and "__MACOSX" not in name:
                return outer.read(name)
            if name.endswith(".zip"):
                found = _find_in_zip(outer.read(name))
                if found is not None:
                    return found
    return None


def _checked(file, where):
    if file is None or hashlib.sha256(file).hexdigest() != SEPSIS_SHA256:
        raise ValueError(f"{where} is not the file {SEPSIS_FILE} of the UCI archive: its SHA-256 is another.")
    return file


#: The built-in problems by name.
PROBLEMS = {
    "breast_cancer": _sklearn(
        "breast_cancer",
        "load_breast_cancer",
        lambda y: y,
        "breast cancer, Wisconsin (scikit-learn): benign or malignant",
    ),
    "wine": _sklearn("wine", "load_wine", lambda y: y == 0, "wine (scikit-learn): the first cultivar or another"),
    "digits": _sklearn("digits", "load_digits", lambda y: y % 2, "handwritten digits (scikit-learn): odd or even"),
    "diabetes": _sklearn(
        "diabetes", "load_diabetes", lambda y: y > np.median(y), "diabetes (scikit-learn): progression above the median"
    ),
    "randhie": randhie,
    "sepsis": sepsis,
}


def problem(name):
    """A built-in problem, by name, as a `Dataset`."""
    if name not in PROBLEMS:
        raise ValueError(f"there is no problem {name!r}{did_you_mean(name, PROBLEMS)} Problems: {', '.join(PROBLEMS)}.")
    return PROBLEMS[name]()
