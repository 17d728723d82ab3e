"""Two tables of the UCI archive for logistic regression: sepsis survival and arrhythmia."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

import numpy as np

from pdmp.data.dataset import TEST_FRACTION, prepare, split
from pdmp.data.sources import Source

if TYPE_CHECKING:
    from pdmp.data.dataset import Dataset

SEPSIS_FILE = "s41598-020-73558-3_sepsis_survival_primary_cohort.csv"
SEPSIS = Source(
    name="sepsis",
    title="Sepsis survival minimal clinical records, D. Chicco and G. Jurman (2020), UCI 827",
    terms="CC BY 4.0",
    page="https://archive.ics.uci.edu/dataset/827/sepsis+survival+minimal+clinical+records",
    folder="sepsis_survival",
    sha256={SEPSIS_FILE: "6ba4ebd256fa3b5f6c0d42444a3e6b9a4b90d6e493c9efdfedcb2ef7470d4b0f"},
    # The archives of UCI are not versioned; only the hash of the table in them is verified.
    urls={"https://archive.ics.uci.edu/static/public/827/sepsis+survival+minimal+clinical+records.zip": None},
)

ARRHYTHMIA_FILE = "arrhythmia.data"
ARRHYTHMIA = Source(
    name="arrhythmia",
    title="Arrhythmia, H. A. Guvenir, B. Acar and H. Muderrisoglu (1998), UCI 5",
    terms="CC BY 4.0",
    page="https://archive.ics.uci.edu/dataset/5/arrhythmia",
    folder="arrhythmia",
    sha256={ARRHYTHMIA_FILE: "a7f0f4ca289a4c58b5ed85a9adb793189acd38425828ce3dfbb70adb45f30169"},
    urls={"https://archive.ics.uci.edu/static/public/5/arrhythmia.zip": None},
)
UNCLASSIFIED = 16
INDEPENDENT = 1e-7  #: a column is kept if this share of its length is outside the span of those before it


def sepsis(
    path: str | os.PathLike | None = None, standardise: bool = False, intercept: str | None = "last", seed: int = 0
) -> Dataset:
    """Survival of hospital admissions with sepsis from age, sex and episode; 110,204 rows, 8,105 deaths.

    Chicco & Jurman (2020), Sepsis survival minimal clinical records, UCI Machine Learning Repository, CC BY 4.0. Not
    standardised, it is the badly scaled problem of the literature on stochastic gradients: age in years, sex (0 male, 1
    female), number of the episode, and a column of ones. The prior used there is N(0, 1).

    Parameters
    ----------
    path : path, optional
        The file, or a folder or archive with it. By default ``sepsis_survival/`` in the folder named by the environment
        variable PDMP_DATA; if that is not set, it is downloaded once from the UCI archive, with pooch. Its SHA-256 is
        verified.
    standardise : bool, default False
        As in `pdmp.data.prepare`.
    intercept : {"last", "first", None}
    seed : int, default 0
        Of the split into 88,163 rows to train and 22,041 to test.

    Returns
    -------
    Dataset
        Label 1: alive.

    Raises
    ------
    FileNotFoundError, ConnectionError, ImportError
        If the file is not there, or cannot be downloaded.
    ValueError
        If it is not the published one.

    Examples
    --------
    >>> import pdmp
    >>> table = pdmp.data.sepsis()  # doctest: +SKIP
    """
    table = np.loadtxt(io.BytesIO(SEPSIS.open(path).read(SEPSIS_FILE)), delimiter=",", skiprows=1)
    return prepare(
        "sepsis",
        table[:, :3],
        table[:, 3],
        ("age", "sex", "episode"),
        ("dead", "alive"),
        about=sepsis.about,
        standardise=standardise,
        intercept=intercept,
        seed=seed,
    )


sepsis.about = "sepsis survival, primary cohort (UCI 827, CC BY 4.0; PDMP_DATA or download): alive or dead"


def arrhythmia(
    path: str | os.PathLike | None = None,
    columns: int | None = 100,
    standardise: bool = True,
    intercept: str | None = "last",
    seed: int = 0,
) -> Dataset:
    """Cardiac arrhythmia or none from 100 measurements of an electrocardiogram; 430 rows, 101 columns.

    Guvenir, Acar & Muderrisoglu (1998), UCI Machine Learning Repository, CC BY 4.0. The 22 records of the class
    "others" are left out. Of the attributes, those with missing values (five) are left out, and those that are, in the
    training part, constant or linear combinations of a constant and earlier ones: there only the prior would know of
    their coefficients. The first `columns` of the others are kept, so which these are depends a little on `seed`.

    Parameters
    ----------
    path : path, optional
        The file, or a folder or archive with it. By default ``arrhythmia/`` in PDMP_DATA, or a download, as for
        `sepsis`.
    columns : int or None, default 100
        Number of attributes to keep; None: all, some 240.
    standardise : bool, default True
        As in `pdmp.data.prepare`.
    intercept : {"last", "first", None}
    seed : int, default 0
        Of the split into 344 rows to train and 86 to test.

    Returns
    -------
    Dataset
        Label 1: some arrhythmia (classes 2 to 15), 185 rows; label 0: normal, 245 rows.

    Raises
    ------
    FileNotFoundError, ConnectionError, ImportError, ValueError
        As `sepsis`.

    Examples
    --------
    >>> import pdmp
    >>> table = pdmp.data.arrhythmia()  # doctest: +SKIP
    """
    content = ARRHYTHMIA.open(path).read(ARRHYTHMIA_FILE).replace(b"?", b"nan")
    table = np.loadtxt(io.BytesIO(content), delimiter=",", ndmin=2)
    table = table[table[:, -1] < UNCLASSIFIED]
    X, y = table[:, :-1], table[:, -1] != 1
    complete = np.flatnonzero(~np.isnan(X).any(axis=0))
    train, _ = split(len(y), y, TEST_FRACTION, seed, "arrhythmia")
    kept = complete[independent(X[np.ix_(train, complete)])][:columns]
    names = attribute_names()
    return prepare(
        "arrhythmia",
        X[:, kept],
        y,
        [names[j] for j in kept],
        ("normal", "arrhythmia"),
        about=arrhythmia.about,
        standardise=standardise,
        intercept=intercept,
        seed=seed,
    )


arrhythmia.about = "cardiac arrhythmia (UCI 5, CC BY 4.0; PDMP_DATA or download), 100 attributes: some or none"


def independent(X):
    """Indices of the columns that are not linear combinations of a constant and the columns before them."""
    basis = np.empty((0, len(X)))  # of centred columns, which are orthogonal to the constant
    kept = []
    for j in range(X.shape[1]):
        column = X[:, j] - X[:, j].mean()
        length = np.linalg.norm(column)
        if length <= 1e-12 * np.linalg.norm(X[:, j]):
            continue
        rest = column / length
        for _ in range(2):  # the second time for what rounding left
            rest = rest - basis.T @ (basis @ rest)
        if np.linalg.norm(rest) > INDEPENDENT:
            kept.append(j)
            basis = np.vstack([basis, rest / np.linalg.norm(rest)])
    return np.array(kept, int)


def attribute_names():
    """Names of the 279 attributes of `arrhythmia`, from the documentation of the file."""
    general = "age sex height weight QRS_duration PR_interval QT_interval T_interval P_interval"
    angles = "QRS_angle T_angle P_angle QRST_angle J_angle"
    widths = "Q_width R_width S_width R'_width S'_width deflections ragged_R diphasic_R ragged_P diphasic_P ragged_T"
    amplitudes = "JJ Q R S R' S' P T QRSA QRSTA"
    channels = "DI DII DIII AVR AVL AVF V1 V2 V3 V4 V5 V6".split()
    return [
        *f"{general} {angles} heart_rate".split(),
        *(f"{c}_{a}" for c in channels for a in f"{widths} diphasic_T".split()),
        *(f"{c}_{a}_amplitude" if len(a) < 4 else f"{c}_{a}" for c in channels for a in amplitudes.split()),
    ]
