"""Data sets: published ones on which samplers are tested, synthetic ones of the same shape, and tables of your own.

A table is a `Dataset`; ratings of items by users are `Ratings`. Both have a fixed split, `train` and `test`.

Published data are read from ``path=``, else from the folder named by the environment variable PDMP_DATA
(``movielens_100k/``, ``movielens_1m/``, ``movielens_10m/``, ``movielens_20m/``, ``arrhythmia/``, ``sepsis_survival/``,
``meg_ica/``, ``mnist/``), else downloaded if their terms allow it; files are verified by their checksums.
"""

from pdmp.data.bundled import PROBLEMS, problem, randhie
from pdmp.data.dataset import Dataset, Ratings, prepare, prepare_ratings
from pdmp.data.images import mnist
from pdmp.data.movielens import movielens_1m, movielens_10m, movielens_20m, movielens_100k
from pdmp.data.recordings import meg
from pdmp.data.synthetic import (
    synthetic_arrhythmia,
    synthetic_meg,
    synthetic_mnist,
    synthetic_movielens_1m,
    synthetic_movielens_10m,
    synthetic_movielens_20m,
    synthetic_movielens_100k,
    synthetic_ratings,
    synthetic_sepsis,
)
from pdmp.data.tables import read
from pdmp.data.uci import arrhythmia, sepsis

__all__ = [
    "PROBLEMS",
    "Dataset",
    "Ratings",
    "arrhythmia",
    "meg",
    "mnist",
    "movielens_1m",
    "movielens_10m",
    "movielens_20m",
    "movielens_100k",
    "prepare",
    "prepare_ratings",
    "problem",
    "randhie",
    "read",
    "sepsis",
    "synthetic_arrhythmia",
    "synthetic_meg",
    "synthetic_mnist",
    "synthetic_movielens_1m",
    "synthetic_movielens_10m",
    "synthetic_movielens_20m",
    "synthetic_movielens_100k",
    "synthetic_ratings",
    "synthetic_sepsis",
]
