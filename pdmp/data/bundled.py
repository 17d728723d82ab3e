"""The problems of ``pdmp compare``: data sets of scikit-learn, of statsmodels and of `pdmp.data.uci`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pdmp.data.dataset import prepare
from pdmp.data.tables import did_you_mean
from pdmp.data.uci import arrhythmia, sepsis

if TYPE_CHECKING:
    from pdmp.data.dataset import Dataset


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


def randhie() -> Dataset:
    """RAND health insurance experiment: was there any outpatient visit in the year? 20,190 rows, 9 covariates.

    Part of statsmodels, in the public domain.

    Returns
    -------
    Dataset

    Raises
    ------
    ImportError
        Without statsmodels.

    Examples
    --------
    >>> import pdmp
    >>> table = pdmp.data.randhie()  # doctest: +SKIP
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


def _standardised(load):
    """Load a published table as `pdmp compare` needs it: with standardised columns, and the intercept first."""

    def problem():
        return load(standardise=True, intercept="first")

    problem.about = load.about
    return problem


#: The built-in problems of binary regression by name.
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
    "sepsis": _standardised(sepsis),
    "arrhythmia": _standardised(arrhythmia),
}


def problem(name: str) -> Dataset:
    """A built-in problem, by name, as a `Dataset`.

    Parameters
    ----------
    name : str
        One of `pdmp.data.PROBLEMS`.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        For an unknown name.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.data.problem('breast_cancer').X.shape
    (569, 31)
    """
    if name not in PROBLEMS:
        raise ValueError(f"there is no problem {name!r}{did_you_mean(name, PROBLEMS)} Problems: {', '.join(PROBLEMS)}.")
    return PROBLEMS[name]()
