"""Recordings for independent component analysis: MEG."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

import numpy as np

from pdmp.data.dataset import prepare
from pdmp.data.sources import Source

if TYPE_CHECKING:
    from pdmp.data.dataset import Dataset

MEG_FILE = "MEG_data_reduced.csv"
MEG = Source(
    name="meg",
    title="MEG recording reduced to 10 channels, after R. Vigário et al. (1998), NeurIPS 10",
    terms="terms not stated; cite Vigário et al.",
    page="the code of the article on stochastic gradient Barker dynamics (MEG_data_reduced.csv)",
    folder="meg_ica",
    sha256={MEG_FILE: "12a60d61d881e2f891c27b9ab927517f1c3d3aca7cb47ad57837d8a17ae50675"},
)


def meg(path: str | os.PathLike | None = None, standardise: bool = True, seed: int = 0) -> Dataset:
    """A magnetoencephalogram of 10 channels at 17,730 times.

    Parameters
    ----------
    path : path, optional
        ``MEG_data_reduced.csv`` (channels in rows), packed or not, or a folder with it. By default ``meg_ica/`` in the
        folder named by the environment variable PDMP_DATA. It is not downloaded, as its licence is not known. Its
        SHA-256 is verified.
    standardise : bool, default True
        Mean zero and standard deviation one of each channel in the training part.
    seed : int, default 0
        Of the split into 14,184 times to train and 3,546 to test.

    Returns
    -------
    Dataset
        One row for each time; there is no `y` and no column of ones.

    Raises
    ------
    FileNotFoundError, ValueError
        As `movielens_100k`.

    Examples
    --------
    >>> import pdmp
    >>> table = pdmp.data.meg()  # doctest: +SKIP
    """
    table = np.loadtxt(io.BytesIO(MEG.open(path).read(MEG_FILE)), delimiter=",", skiprows=1, ndmin=2).T
    names = [f"channel_{k + 1}" for k in range(table.shape[1])]
    return prepare("meg", table, None, names, (), meg.about, standardise=standardise, intercept=None, seed=seed)


meg.about = "magnetoencephalogram reduced to 10 channels (PDMP_DATA)"
