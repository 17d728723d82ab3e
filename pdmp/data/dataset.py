"""Data sets: a table or a list of ratings, with a fixed split into a training part and a test part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from pdmp.data.formats import same_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array, sparray, spmatrix

TEST_FRACTION = 0.2
INTERCEPT = "intercept"
LEAST_OF_A_CLASS = 5
LARGEST_LOOKUP = 10**8  #: identifiers below this are numbered by a lookup table, larger ones by sorting


class Divided:
    """Mixin of data with a fixed split: `_taken(rows)` gives the fields of some rows."""

    name: str
    train_rows: np.ndarray | slice | None
    test_rows: np.ndarray | slice | None

    def _part(self, what, rows):
        if rows is None:
            raise AttributeError(f"{self.name} is a part, and has no {what} part of its own.")
        return replace(self, name=f"{self.name} ({what})", train_rows=None, test_rows=None, **self._taken(rows))

    @property
    def train(self) -> Self:
        """The training part, of the same class; a view of the whole if its rows are a slice.

        Of `Ratings` it has the same shape: users and items keep their numbers.
        """
        return self._part("train", self.train_rows)

    @property
    def test(self) -> Self:
        """The test part, as `train`."""
        return self._part("test", self.test_rows)


@dataclass(frozen=True)
class Dataset(Divided):
    """A table of features, the target if there is one, and the split.

    Attributes
    ----------
    name : str
    X : ndarray or scipy.sparse.csr_array, shape (N, d)
        Features. Means and standard deviations for standardising are those of the training part.
    y : ndarray, shape (N,), or None
        The target: 0.0 and 1.0 for two classes, 0, 1, ... for more, or numbers. None if there is none.
    names : tuple of str
        Names of the columns of `X`.
    labels : tuple
        What the classes 0, 1, ... are called in the source; empty if `y` is not classes.
    train_rows, test_rows : ndarray of int, or slice, or None
        The rows of the two parts; None in a part.
    about : str
        A description in one line.
    prepared : str
        How the columns were prepared: intercept, standardising.
    changes : tuple of str
        What was left out of a file, or encoded, when it was read; one sentence each.

    Examples
    --------
    >>> import pdmp
    >>> table = pdmp.data.synthetic_sepsis(n=100)
    >>> len(table.train), len(table.test), table.X.shape
    (80, 20, (100, 4))
    """

    name: str
    X: np.ndarray | csr_array
    y: np.ndarray | None
    names: tuple[str, ...]
    labels: tuple = (0, 1)
    train_rows: np.ndarray | slice | None = None
    test_rows: np.ndarray | slice | None = None
    about: str = ""
    prepared: str = "features as they are"
    changes: tuple[str, ...] = ()

    def __len__(self):
        return self.X.shape[0]

    def __repr__(self):
        text = f"Dataset({self.name!r}, {len(self)} rows, {self.X.shape[1]} columns"
        if len(self.labels) == 2:
            text += f", {int(self.y.sum())} of label 1"
        elif self.labels:
            text += f", {len(self.labels)} labels"
        return f"{text})"

    def _taken(self, rows):
        return {"X": self.X[rows], "y": None if self.y is None else self.y[rows]}


def prepare(
    name: str,
    X: ArrayLike | sparray | spmatrix,
    y: ArrayLike | None,
    names: Sequence[str],
    labels: Sequence = (0, 1),
    about: str = "",
    *,
    standardise: bool = True,
    intercept: str | None = "first",
    test_fraction: float = TEST_FRACTION,
    seed: int = 0,
) -> Dataset:
    """Split a table, standardise it by the training part, and add a column of ones.

    Parameters
    ----------
    name : str
    X : array_like or scipy.sparse matrix, shape (N, d)
    y : array_like, shape (N,), or None
        Classes are numbered from 0; both parts then have the same shares of them.
    names : sequence of str
        Names of the d columns.
    labels : sequence
        Names of the classes; empty if `y` is not classes.
    about : str
        A description in one line.
    standardise : bool, default True
        Mean zero and standard deviation one in the training part. Sparse columns are divided by their standard
        deviations but not centred, as they would not stay sparse. Columns that are constant in the training part are
        not divided.
    intercept : {"first", "last", None}
        Where to add the column of ones; None: nowhere.
    test_fraction : float, default 0.2
        Share of the rows in the test part, rounded up.
    seed : int, default 0
        Of the split.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        For an unknown intercept, a share outside (0, 1), or too few rows, in all or of a class.

    Examples
    --------
    >>> import numpy as np
    >>> import pdmp
    >>> table = pdmp.data.prepare('small', np.arange(20.0).reshape(10, 2), [0, 1] * 5, ['a', 'b'])
    >>> table.X.shape, len(table.test)
    ((10, 3), 2)
    """
    from scipy import sparse

    if intercept not in ("first", "last", None):
        raise ValueError(f"`intercept` must be 'first', 'last' or None, got {intercept!r}.")
    dense = not sparse.issparse(X)
    same_rows(X=X, y=y)
    X = np.asarray(X, float) if dense else sparse.csr_array(X, dtype=float)
    y = None if y is None else np.asarray(y, float)
    train, test = split(X.shape[0], y if labels else None, test_fraction, seed, name)
    if standardise:
        X = standardised(X, train, names) if dense else _scaled(X, train)
    names = tuple(names)
    if intercept is not None:
        ones = np.ones((X.shape[0], 1))
        columns = (ones, X) if intercept == "first" else (X, ones)
        X = np.hstack(columns) if dense else sparse.csr_array(sparse.hstack(columns, format="csr"))
        label = INTERCEPT
        while label in names:
            label = f"({label})"
        names = (label, *names) if intercept == "first" else (*names, label)
    scaled = "as they are" if not standardise else "standardised" if dense else "divided by their standard deviations"
    prepared = f"{'without' if intercept is None else 'with the'} intercept, features {scaled}"
    return Dataset(name, X, y, names, tuple(labels), train, test, about, prepared)


def split(n, classes, test_fraction=TEST_FRACTION, seed=0, name="the data"):
    """Sorted rows of the training and the test part, drawn at random, both with the same shares of the classes."""
    from sklearn.model_selection import train_test_split

    if not 0.0 < test_fraction < 1.0:
        raise ValueError(f"`test_fraction` must be between 0 and 1, got {test_fraction}.")
    if classes is not None:
        counts = np.unique(classes, return_counts=True)[1]
        least = int(counts.min()) if len(counts) > 1 else 0
        if least < LEAST_OF_A_CLASS:
            which = "one of the two classes" if len(counts) <= 2 else f"one of the {len(counts)} classes"
            raise ValueError(
                f"{name}: {which} has only {least} rows; at least {LEAST_OF_A_CLASS} are needed to train and to test."
            )
    if n < 2:
        raise ValueError(f"{name} has {n} rows; at least 2 are needed to train and to test.")
    train, test = train_test_split(np.arange(n), test_size=test_fraction, random_state=seed, stratify=classes)
    return np.sort(train), np.sort(test)


def standardised(X, train, names):
    """Columns less their means, divided by their standard deviations, both over the rows `train`."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean, sd = X[train].mean(axis=0), X[train].std(axis=0)
    large = np.flatnonzero(~(np.isfinite(mean) & np.isfinite(sd)) & np.all(np.isfinite(X), axis=0))
    if len(large):
        raise ValueError(
            f"column {list(names)[large[0]]!r} cannot be standardised: it holds numbers as large as "
            f"{np.abs(X[:, large[0]]).max():.3g}, and their variance overflows; give it in other units."
        )
    sd[sd <= 1e-12 * np.maximum(1.0, np.abs(mean))] = 1.0  # constant in the training part: the prior alone decides
    return (X - mean) / sd


def _scaled(X, train):
    part = X[train]
    mean = part.mean(axis=0)
    variance = part.power(2).mean(axis=0) - mean * mean
    sd = np.sqrt(np.maximum(variance, 0.0))
    sd[sd <= 1e-7 * np.maximum(1.0, np.abs(mean))] = 1.0
    X = X.copy()
    X.data /= sd[X.indices]
    return X


# ---------------------------------------------------------------------------------------------------------------
# Ratings


@dataclass(frozen=True)
class Ratings(Divided):
    """Observed entries of a matrix of users by items, and the split.

    Attributes
    ----------
    name : str
    users, items : ndarray of int32, shape (N,)
        Row and column of each rating, counted from 0 without gaps.
    ratings : ndarray of float32, shape (N,)
    shape : tuple of int
        Numbers of users and of items.
    mean : float
        Mean of the ratings of the training part, in the whole and in both parts: to subtract before factorising.
    user_ids, item_ids : ndarray
        Identifiers of user u and item i in the source.
    train_rows, test_rows : ndarray of int, or slice, or None
        The rows of the two parts; None in a part.
    about : str
        A description in one line.

    Examples
    --------
    >>> import pdmp
    >>> ratings = pdmp.data.synthetic_ratings(20, 10, 100, rank=2)
    >>> len(ratings.train), len(ratings.test)
    (90, 10)
    """

    name: str
    users: np.ndarray
    items: np.ndarray
    ratings: np.ndarray
    shape: tuple[int, int]
    mean: float
    user_ids: np.ndarray
    item_ids: np.ndarray
    train_rows: np.ndarray | slice | None = None
    test_rows: np.ndarray | slice | None = None
    about: str = ""

    def __len__(self):
        return len(self.ratings)

    def __repr__(self):
        return f"Ratings({self.name!r}, {len(self):,} of {self.shape[0]:,} users for {self.shape[1]:,} items)"

    def _taken(self, rows):
        return {name: getattr(self, name)[rows] for name in ("users", "items", "ratings")}


def prepare_ratings(
    name: str,
    users: ArrayLike,
    items: ArrayLike,
    ratings: ArrayLike,
    *,
    user_ids: ArrayLike | None = None,
    item_ids: ArrayLike | None = None,
    about: str = "",
    test_fraction: float = 0.1,
    n_train: int | None = None,
    seed: int = 0,
) -> Ratings:
    """Number users and items from 0 without gaps, and split the ratings.

    Parameters
    ----------
    name : str
    users, items : array_like, shape (N,)
        Identifiers, integers or text.
    ratings : array_like, shape (N,)
    user_ids, item_ids : array_like, optional
        All identifiers, sorted, including those without a rating; by default those that occur.
    about : str
    test_fraction : float, default 0.1
        Share of the ratings in the test part, drawn at random and rounded up.
    n_train : int, optional
        Instead of a random split: the first `n_train` ratings are the training part, the others the test part.
    seed : int, default 0
        Of the split.

    Returns
    -------
    Ratings

    Raises
    ------
    ValueError
        For arrays of different lengths, ratings that are not finite, identifiers that are not in `user_ids` or
        `item_ids`, or a split with an empty part.

    Examples
    --------
    >>> import pdmp
    >>> ratings = pdmp.data.prepare_ratings('small', ['ann', 'bob', 'ann'], [7, 7, 9], [4.0, 3.0, 5.0])
    >>> ratings.shape
    (2, 2)
    """
    same_rows(users=users, items=items, ratings=ratings)
    users, items = np.asarray(users), np.asarray(items)
    ratings = np.asarray(ratings, np.float32)
    if ratings.ndim != 1 or users.shape != ratings.shape or items.shape != ratings.shape:
        raise ValueError(
            f"`users`, `items` and `ratings` must be of one length, got {users.shape}, {items.shape}, {ratings.shape}."
        )
    if not np.all(np.isfinite(ratings)):
        raise ValueError(f"`ratings` must be finite; the {int(np.argmin(np.isfinite(ratings)))}th is not.")
    user_ids, users = _numbered("users", users, user_ids)
    item_ids, items = _numbered("items", items, item_ids)
    if n_train is not None:
        if not (isinstance(n_train, int | np.integer) and 0 < n_train < len(ratings)):
            raise ValueError(
                f"`n_train` must be a whole number from 1 to {len(ratings) - 1}, so that both parts have ratings, got "
                f"{n_train!r}."
            )
        train, test = slice(0, n_train), slice(n_train, len(ratings))
    else:
        if not 0.0 < test_fraction < 1.0:
            raise ValueError(f"`test_fraction` must be between 0 and 1, got {test_fraction}.")
        n_test = int(np.ceil(test_fraction * len(ratings)))
        if not 0 < n_test < len(ratings):
            raise ValueError(f"{len(ratings)} ratings cannot be split into a part to train and a part to test.")
        order = np.random.default_rng(seed).permutation(np.arange(len(ratings), dtype=np.int32))
        train, test = np.sort(order[n_test:]), np.sort(order[:n_test])
    mean = float(ratings[train].mean(dtype=float))
    shape = (len(user_ids), len(item_ids))
    return Ratings(name, users, items, ratings, shape, mean, user_ids, item_ids, train, test, about)


def _numbered(what, values, ids):
    """All identifiers, sorted, and the index of each value among them as int32."""
    small = values.dtype.kind in "iu" and len(values) and values.min() >= 0 and values.max() < LARGEST_LOOKUP
    if ids is None and small:
        seen = np.zeros(int(values.max()) + 1, bool)
        seen[values] = True
        ids = np.flatnonzero(seen)
    elif ids is None:
        ids = np.unique(values)
    ids = np.asarray(ids)
    if np.any(ids[1:] <= ids[:-1]):
        raise ValueError(f"the identifiers of {what} must be sorted, each once.")
    if small:
        table = np.full(max(int(values.max()), int(ids[-1])) + 1, -1, np.int32)
        table[ids] = np.arange(len(ids), dtype=np.int32)
        places = table[values]
        unknown = places < 0
    else:
        places = np.searchsorted(ids, values).astype(np.int32)
        unknown = ids[np.minimum(places, len(ids) - 1)] != values
    if np.any(unknown):
        raise ValueError(f"{what} such as {values[np.argmax(unknown)]!r} are not among the identifiers given.")
    return ids, places
