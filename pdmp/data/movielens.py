"""Ratings of films: MovieLens 100K, 1M, 10M and 20M.

F. M. Harper and J. A. Konstan (2015), The MovieLens Datasets: History and Context, ACM TiiS 5(4):19. Their terms
(research, acknowledgement, no redistribution) do not allow this package to contain or to download them: get the
archives from GroupLens, and give their path. They are verified by their checksums.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from typing import TYPE_CHECKING

import numpy as np

from pdmp.data.dataset import prepare_ratings
from pdmp.data.sources import Source

if TYPE_CHECKING:
    from pdmp.data.dataset import Ratings

BLOCK = 2**24  #: bytes of text that are read at a time
SEPARATORS = bytes.maketrans(b",:\t\r", b"    ")
TERMS = (
    "GroupLens Research, University of Minnesota: for research, with acknowledgement; not to be redistributed, nor "
    "used commercially without permission"
)


def _source(size, **checks):
    name = f"movielens_{size.lower()}"
    page = f"https://grouplens.org/datasets/movielens/{size.lower()}/"
    return Source(name=name, title=f"MovieLens {size}", terms=TERMS, page=page, folder=name, **checks)


MOVIELENS_100K = _source(
    "100K",
    md5={"ml-100k.zip": "0e33842e24a9c977be4e0107933c0723"},
    sha256={
        "u.data": "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
        "u1.base": "ce253ec86c448b44fb3ba9a30d12dcfc2e9210cbde71efada3730c22e9ac212a",
        "u1.test": "18c6014a4b2c7324f250a63f8904a7b16b2b19f911129e346141507b0cbac950",
        "u2.base": "6c06f0b5df4b256da1a994f3ac66edc8da4d3f09bc9282df6b14d893366d703e",
        "u2.test": "4de658d1e04ed9104629509a2e2528fce833ac8e048280183f1df167632038c3",
        "u3.base": "afdc155c291c6edc41c0407e39d7462eb98d341e064f0b0a12175b80b3c4af5d",
        "u3.test": "0f548b51c78327de4c156461d3e430b7e5579fe2b5681586a59416e48fd35f6d",
        "u4.base": "219f0f4d40dfe9c5141d425f53fa91ee23ed275f14e280bbf1b50117afb064ca",
        "u4.test": "7c02ad0a1e7ab1083c8b9d4b627203a051dd7b5eab46d99fa44de33470de8db9",
        "u5.base": "a9574e59ce961eec2121627760b6e9b0974ce1637b3fe69ac32cb14a4bfab485",
        "u5.test": "351cc52e0d15b6c721466276fc24671d40936899e3d01fadeaf312915b8c5634",
    },
)
MOVIELENS_1M = _source(
    "1M",
    md5={"ml-1m.zip": "c4d9eecfca2ab87c1945afe126590906"},
    sha256={"movies.dat": "0140fc2356357c1a851d0f52e893a1e4d3696df632c4141cea8d5bc3d621f0b9"},
)
MOVIELENS_10M = _source("10M", md5={"ml-10m.zip": "ce571fd55effeba0271552578f2648bd"}, sha256={})
MOVIELENS_20M = _source("20M", md5={"ml-20m.zip": "cd245b17a1ae2cc31bb14903e1204af3"}, sha256={})

#: SHA-256 of users, items and ratings of 1M in the order of the file, as little-endian int32: with or without times.
TRIPLES_1M = "2f7c47172e212b19755ade42212d1baf4c4208edfb9423bcef270270fdf41648"
#: Numbers of ratings, users and rated films in the two data sets for whose unpacked files no checksum is known.
COUNTS = {"movielens_10m": (10_000_054, 69_878, 10_677), "movielens_20m": (20_000_263, 138_493, 26_744)}
USERS_100K, ITEMS_100K, USERS_10M = 943, 1682, 71_567


def movielens_100k(split: int = 1, path: str | os.PathLike | None = None) -> Ratings:
    """MovieLens 100K: 100,000 ratings from 1 to 5 by 943 users of 1682 films.

    Parameters
    ----------
    split : {1, 2, 3, 4, 5}, default 1
        Which of the published splits u1 to u5: 80,000 ratings to train, 20,000 to test.
    path : path, optional
        ``ml-100k.zip``, or a folder with its files. By default ``movielens_100k/`` in the folder named by the
        environment variable PDMP_DATA.

    Returns
    -------
    Ratings
        Of shape (943, 1682) for every split; in u1, 32 of the films occur only in the test part.

    Raises
    ------
    FileNotFoundError
        If there is no such file; the message says where to get it and on what terms.
    ValueError
        For another split, or if a file is not the published one.

    Examples
    --------
    >>> import pdmp
    >>> ratings = pdmp.data.movielens_100k()  # doctest: +SKIP
    """
    if split not in (1, 2, 3, 4, 5):
        raise ValueError(f"`split` must be 1, 2, 3, 4 or 5, got {split!r}.")
    files = MOVIELENS_100K.open(path)
    parts = [_parsed([files.read(f"u{split}.{part}")], 4, f"u{split}.{part}") for part in ("base", "test")]
    users, items, ratings = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return prepare_ratings(
        f"movielens_100k u{split}",
        users,
        items,
        ratings,
        user_ids=np.arange(1, USERS_100K + 1),
        item_ids=np.arange(1, ITEMS_100K + 1),
        n_train=len(parts[0][0]),
        about=f"MovieLens 100K, split u{split} (GroupLens; research use, no redistribution)",
    )


def movielens_1m(
    path: str | os.PathLike | None = None, unrated: bool = True, test_fraction: float = 0.1, seed: int = 0
) -> Ratings:
    """MovieLens 1M: 1,000,209 ratings from 1 to 5 by 6040 users of 3706 films.

    Parameters
    ----------
    path : path, optional
        ``ml-1m.zip``, or a folder with ``ratings.dat`` and ``movies.dat``; the ratings may also be
        ``ratings_no_timestamp.csv``, the same without times. By default ``movielens_1m/`` in PDMP_DATA.
    unrated : bool, default True
        Include films that are listed but were never rated, as in the factorisations of the literature: shape
        (6040, 3883) instead of (6040, 3706).
    test_fraction : float, default 0.1
        Share of the ratings in the test part, drawn at random.
    seed : int, default 0
        Of the split.

    Returns
    -------
    Ratings
        In the order of the file.

    Raises
    ------
    FileNotFoundError, ValueError
        As `movielens_100k`.

    Examples
    --------
    >>> import pdmp
    >>> ratings = pdmp.data.movielens_1m()  # doctest: +SKIP
    """
    files = MOVIELENS_1M.open(path)
    plain = files.find("ratings.dat") is None and files.find("ratings_no_timestamp.csv") is not None
    users, items, ratings = _read(files, "ratings_no_timestamp.csv" if plain else "ratings.dat", 3 if plain else 4)
    triples = np.column_stack([users, items, ratings]).astype("<i4")
    if hashlib.sha256(triples.tobytes()).hexdigest() != TRIPLES_1M:
        raise ValueError(f"{str(files.path)!r} does not hold the ratings that were published. {MOVIELENS_1M.how()}")
    listed = _first_column(files, "movies.dat") if unrated else None
    return _prepared(MOVIELENS_1M, (users, items, ratings), None, listed, test_fraction, seed)


def movielens_10m(
    path: str | os.PathLike | None = None, unrated: bool = True, test_fraction: float = 0.1, seed: int = 0
) -> Ratings:
    """MovieLens 10M: 10,000,054 ratings from 0.5 to 5 by 69,878 users of 10,677 films.

    Parameters
    ----------
    path : path, optional
        ``ml-10m.zip``, or a folder with ``ratings.dat`` and ``movies.dat``. By default ``movielens_10m/`` in PDMP_DATA.
        The archive is verified by the MD5 that GroupLens states, unpacked files by the numbers of ratings, users and
        films.
    unrated : bool, default True
        Include films that are listed and users that are numbered but have no rating, as in the factorisations of the
        literature: shape (71567, 10681) instead of (69878, 10677).
    test_fraction, seed
        As in `movielens_1m`.

    Returns
    -------
    Ratings

    Raises
    ------
    FileNotFoundError, ValueError
        As `movielens_100k`.

    Examples
    --------
    >>> import pdmp
    >>> ratings = pdmp.data.movielens_10m()  # doctest: +SKIP
    """
    numbered = np.arange(1, USERS_10M + 1) if unrated else None
    return _large(MOVIELENS_10M, path, "dat", numbered, unrated, test_fraction, seed)


def movielens_20m(
    path: str | os.PathLike | None = None, unrated: bool = True, test_fraction: float = 0.1, seed: int = 0
) -> Ratings:
    """MovieLens 20M: 20,000,263 ratings from 0.5 to 5 by 138,493 users of 26,744 films.

    Parameters
    ----------
    path : path, optional
        ``ml-20m.zip``, or a folder with ``ratings.csv`` and ``movies.csv``. By default ``movielens_20m/`` in PDMP_DATA.
        The archive is verified by the MD5 that GroupLens states, unpacked files by the numbers of ratings, users and
        films.
    unrated : bool, default True
        Include films that are listed but were never rated: shape (138493, 27278) instead of (138493, 26744).
    test_fraction, seed
        As in `movielens_1m`.

    Returns
    -------
    Ratings

    Raises
    ------
    FileNotFoundError, ValueError
        As `movielens_100k`.

    Examples
    --------
    >>> import pdmp
    >>> ratings = pdmp.data.movielens_20m()  # doctest: +SKIP
    """
    return _large(MOVIELENS_20M, path, "csv", None, unrated, test_fraction, seed)


def _large(source, path, ending, user_ids, unrated, test_fraction, seed):
    files = source.open(path)
    users, items, ratings = _read(files, f"ratings.{ending}", 4)
    found = (len(users), *(int(np.count_nonzero(np.bincount(ids))) for ids in (users, items)))
    if files.archive is None and found != COUNTS[source.name]:
        raise ValueError(
            f"{str(files.path)!r} has {found[0]:,} ratings by {found[1]:,} users of {found[2]:,} films; {source.title} "
            "has {:,} by {:,} of {:,}.".format(*COUNTS[source.name])
        )
    listed = _first_column(files, f"movies.{ending}") if unrated else None
    return _prepared(source, (users, items, ratings), user_ids, listed, test_fraction, seed)


def _prepared(source, read, user_ids, item_ids, test_fraction, seed):
    about = f"{source.title} (GroupLens; research use, no redistribution)"
    ids = {"user_ids": user_ids, "item_ids": item_ids}
    return prepare_ratings(source.name, *read, **ids, test_fraction=test_fraction, seed=seed, about=about)


def _read(files, name, columns):
    """Users, items and ratings of a file, block by block."""
    with files.open(name) as file:
        if name.endswith(".csv"):
            file.readline()  # the names of the columns
        return _parsed(_blocks(file), columns, name)


def _blocks(file):
    """The text in blocks of whole lines."""
    while block := file.read(BLOCK):
        yield block + file.readline()


def _parsed(blocks, columns, name):
    """The first three of the `columns` numbers in each line, as int32, int32 and float32."""
    users, items, ratings = [], [], []
    for block in blocks:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy only warns of text that is not a number
            try:
                values = np.fromstring(block.translate(SEPARATORS), sep=" ").reshape(-1, columns)
            except (DeprecationWarning, ValueError):
                raise ValueError(f"{name} does not have {columns} numbers in each line.") from None
        users.append(values[:, 0].astype(np.int32))
        items.append(values[:, 1].astype(np.int32))
        ratings.append(values[:, 2].astype(np.float32))
    if not users:
        raise ValueError(f"{name} is empty.")
    return np.concatenate(users), np.concatenate(items), np.concatenate(ratings)


def _first_column(files, name):
    """The identifiers at the start of each line of a list of films, sorted."""
    separator = b"," if name.endswith(".csv") else b"::"
    lines = files.read(name).splitlines()[name.endswith(".csv") :]
    return np.sort(np.array([int(line.split(separator, 1)[0]) for line in lines if line]))
