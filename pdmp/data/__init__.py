"""Data sets: published ones on which samplers are tested, synthetic ones of the same shape, and tables of one's own.

A table is a `Dataset`; ratings of items by users are `Ratings`. Both have a fixed split, `train` and `test`.

Published data are read from ``path=``, else from the folder named by the environment variable PDMP_DATA
(``movielens_100k/``, ``movielens_1m/``, ``movielens_10m/``, ``movielens_20m/``, ``arrhythmia/``, ``sepsis_survival/``,
``meg_ica/``, ``mnist/``), else downloaded if their terms allow it; files are verified by their checksums.
"""

from pdmp.data.bundled import PROBLEMS, problem, randhie
from pdmp.data.dataset import Dataset, Ratings, prepare, prepare_ratings
from pdmp.data.films import movielens
from pdmp.data.images import mnist
from pdmp.data.recordings import meg
from pdmp.data.synthetic import (
    synthetic_arrhythmia,
    synthetic_meg,
    synthetic_mnist,
    synthetic_movielens,
    synthetic_ratings,
    synthetic_sepsis,
)
from pdmp.data.tables import did_you_mean, read
from pdmp.data.uci import arrhythmia, sepsis
from pdmp.native.lazy import given_up as _given_up

__all__ = [
    "PROBLEMS",
    "Dataset",
    "Ratings",
    "arrhythmia",
    "did_you_mean",
    "meg",
    "mnist",
    "movielens",
    "prepare",
    "prepare_ratings",
    "problem",
    "randhie",
    "read",
    "sepsis",
    "synthetic_arrhythmia",
    "synthetic_meg",
    "synthetic_mnist",
    "synthetic_movielens",
    "synthetic_ratings",
    "synthetic_sepsis",
]

__getattr__ = _given_up(
    __name__,
    {
        f"{kind}movielens_{size}": f'pdmp.data.{kind}movielens_{size} is now pdmp.data.{kind}movielens("{size}").'
        for kind in ("", "synthetic_")
        for size in ("100k", "1m", "10m", "20m")
    },
)
