"""Data sets: the published ones that samplers are tried on, made-up ones of the same shape, and tables of one's own.

A table is a `Dataset`, ratings of items by users are `Ratings`; both have a fixed split, `train` and `test`.

Published ones are read from ``path=``, else from the folder that the environment variable PDMP_DATA names
(``movielens_100k/``, ``movielens_1m/``, ``movielens_10m/``, ``movielens_20m/``, ``arrhythmia/``, ``sepsis_survival/``,
``meg_ica/``, ``mnist/``), else downloaded where their terms allow it; what is read is verified by its checksum.
"""

from pdmp.data.bundled import PROBLEMS as PROBLEMS
from pdmp.data.bundled import problem as problem
from pdmp.data.bundled import randhie as randhie
from pdmp.data.dataset import Dataset as Dataset
from pdmp.data.dataset import Ratings as Ratings
from pdmp.data.dataset import prepare as prepare
from pdmp.data.dataset import prepare_ratings as prepare_ratings
from pdmp.data.images import mnist as mnist
from pdmp.data.movielens import movielens_1m as movielens_1m
from pdmp.data.movielens import movielens_10m as movielens_10m
from pdmp.data.movielens import movielens_20m as movielens_20m
from pdmp.data.movielens import movielens_100k as movielens_100k
from pdmp.data.recordings import meg as meg
from pdmp.data.synthetic import synthetic_arrhythmia as synthetic_arrhythmia
from pdmp.data.synthetic import synthetic_meg as synthetic_meg
from pdmp.data.synthetic import synthetic_mnist as synthetic_mnist
from pdmp.data.synthetic import synthetic_movielens_1m as synthetic_movielens_1m
from pdmp.data.synthetic import synthetic_movielens_10m as synthetic_movielens_10m
from pdmp.data.synthetic import synthetic_movielens_20m as synthetic_movielens_20m
from pdmp.data.synthetic import synthetic_movielens_100k as synthetic_movielens_100k
from pdmp.data.synthetic import synthetic_ratings as synthetic_ratings
from pdmp.data.synthetic import synthetic_sepsis as synthetic_sepsis
from pdmp.data.tables import did_you_mean as did_you_mean
from pdmp.data.tables import read as read
from pdmp.data.uci import arrhythmia as arrhythmia
from pdmp.data.uci import sepsis as sepsis
