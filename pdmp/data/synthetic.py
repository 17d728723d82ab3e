"""Synthetic data of the shape, density and type of the published data sets, for machines without these.

The same seed gives the same data. They are prepared (standardised, split) like the published data.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import DTypeLike

from pdmp.data.dataset import Dataset, Ratings, prepare

BLOCK = 2**17  #: about how many ratings are drawn together
CROWDED = 20  #: items of users who rate more than 1 / CROWDED of all are drawn by sorting, of the others by rejection
STARS_MEAN, STARS_USER, STARS_ITEM, STARS_TASTE, STARS_NOISE = 3.55, 0.45, 0.4, 0.5, 0.8
SEPSIS_COEFFICIENTS = (-0.0436, 0.170, -0.032, 5.584)


def synthetic_ratings(
    n_users: int,
    n_items: int,
    n_ratings: int,
    *,
    rank: int = 10,
    noise: float = 1.0,
    stars: tuple[float, float, float] | None = None,
    spread: float = 0.0,
    least: int = 0,
    test_fraction: float = 0.1,
    seed: int = 0,
    name: str = "synthetic ratings",
) -> Ratings:
    r"""Ratings from a factorisation, each of a different entry of the matrix.

    Without `stars` the rating of item j by user i is uᵢ·vⱼ + noise ε, with standard normal uᵢ, vⱼ and ε. With `stars`
    it is a mean plus an effect of the user, an effect of the item, their interaction uᵢ·vⱼ and noise, with variances
    like those of ratings of films, rounded to the scale.

    Parameters
    ----------
    n_users, n_items, n_ratings : int
        Numbers of users, of items and of ratings.
    rank : int, default 10
        Length of uᵢ and vⱼ.
    noise : float, default 1.0
        Standard deviation of the noise without `stars`.
    stars : tuple of float, optional
        The lowest rating, the highest, and the step between them, such as (0.5, 5, 0.5).
    spread : float, default 0.0
        How unevenly the ratings are distributed: activity of users and popularity of items are log-normal with this
        standard deviation of the logarithm. With 0 all entries of the matrix are equally likely.
    least : int, default 0
        Smallest number of ratings of a user.
    test_fraction : float, default 0.1
        Share of the ratings in the test part, drawn at random.
    seed : int, default 0
    name : str, default "synthetic ratings"
        Name of the data set.

    Returns
    -------
    Ratings
        Sorted by users.

    Raises
    ------
    ValueError
        For numbers that are not positive, more ratings than entries, or fewer than `least` for each user.

    Examples
    --------
    >>> import pdmp
    >>> ratings = pdmp.data.synthetic_ratings(20, 10, 100, rank=2)
    >>> ratings.shape, len(ratings)
    ((20, 10), 100)
    """
    for what, value in (("n_users", n_users), ("n_items", n_items), ("n_ratings", n_ratings), ("rank", rank)):
        if value < 1:
            raise ValueError(f"`{what}` must be at least 1, got {value}.")
    if not n_users * least <= n_ratings <= n_users * n_items:
        raise ValueError(
            f"`n_ratings` must be between {n_users * least} (`least` for each user) and {n_users * n_items} (all "
            f"entries), got {n_ratings}."
        )
    if not 0.0 < test_fraction < 1.0 or math.ceil(test_fraction * n_ratings) >= n_ratings:
        raise ValueError(f"`test_fraction` must be between 0 and 1 and leave ratings to train, got {test_fraction}.")
    rng = np.random.default_rng(seed)
    counts = _counts(n_users, n_items, n_ratings, spread, least, rng)
    popularity = spread * rng.standard_normal(n_items)
    of_users, of_items = rng.standard_normal((n_users, rank + 1)), rng.standard_normal((n_items, rank + 1))
    items = np.empty(n_ratings, np.int32)
    ratings = np.empty(n_ratings, np.float32)
    ends = np.cumsum(counts)
    start = 0
    while start < n_users:  # users in blocks, so that only the result needs memory in proportion to the data
        before = ends[start] - counts[start]
        stop = max(start + 1, int(np.searchsorted(ends, before + BLOCK, side="right")))
        users, chosen = _chosen(counts[start:stop], popularity, n_items, rng)
        users += start
        here = slice(before, ends[stop - 1])
        items[here] = chosen
        taste = np.einsum("ij,ij->i", of_users[users, 1:], of_items[chosen, 1:])
        errors = rng.standard_normal(len(users))
        if stars is None:
            ratings[here] = taste + noise * errors
        else:
            low, high, step = stars
            score = STARS_MEAN + STARS_USER * of_users[users, 0] + STARS_ITEM * of_items[chosen, 0]
            score += STARS_TASTE * taste / math.sqrt(rank) + STARS_NOISE * errors
            ratings[here] = np.clip(low + step * np.rint((score - low) / step), low, high)
        start = stop
    users = np.repeat(np.arange(n_users, dtype=np.int32), counts)
    n_test = math.ceil(test_fraction * n_ratings)
    is_test = np.zeros(n_ratings, bool)
    is_test[rng.choice(n_ratings, n_test, replace=False, shuffle=False)] = True
    train, test = (np.flatnonzero(part).astype(np.int32) for part in (~is_test, is_test))
    mean = float(ratings[train].mean(dtype=float))
    ids = np.arange(n_users), np.arange(n_items)
    about = f"made-up ratings, {n_users} users by {n_items} items"
    return Ratings(name, users, items, ratings, (n_users, n_items), mean, *ids, train, test, about)


def _counts(n_users, n_items, n_ratings, spread, least, rng):
    """Numbers of ratings of the users: at least `least`, more in proportion to activity, at most `n_items`."""
    share = np.exp(spread * rng.standard_normal(n_users))
    counts = np.full(n_users, least, np.int64)
    while (left := n_ratings - int(counts.sum())) > 0:
        room = share * (counts < n_items)
        counts = np.minimum(counts + rng.multinomial(left, room / room.sum()), n_items)
    return counts


def _chosen(counts, popularity, n_items, rng):
    """For each user distinct items, drawn one by one with probabilities proportional to exp(popularity); sorted.

    For most users they are drawn with replacement, and duplicates are drawn again, which gives the same law. As this
    would be slow for users who rate many, their items are those with the largest popularity plus Gumbel noise: the
    same law again.
    """
    crowded = counts * CROWDED > n_items
    done = []
    for user in np.flatnonzero(crowded):
        noisy = popularity + rng.gumbel(size=n_items)
        done.append(user * n_items + np.argpartition(-noisy, counts[user] - 1)[: counts[user]])
    cumulative = np.cumsum(np.exp(popularity - popularity.max()))
    left = np.where(crowded, 0, counts)
    found = np.empty(0, np.int64)  # keys of the users who do not have all yet
    while left.any():
        users = np.repeat(np.arange(len(counts)), left)
        drawn = np.searchsorted(cumulative, rng.random(len(users)) * cumulative[-1], side="right")
        found = np.sort(np.concatenate([found, users * n_items + np.minimum(drawn, n_items - 1)]))
        found = found[np.diff(found, prepend=-1) > 0]  # np.unique takes ten times as long on such keys
        left = np.where(left > 0, counts - np.bincount(found // n_items, minlength=len(counts)), 0)
        complete = left[found // n_items] == 0
        done.append(found[complete])
        found = found[~complete]
    keys = np.sort(np.concatenate(done))
    return keys // n_items, (keys % n_items).astype(np.int32)


def _like_films(size, n_users, n_items, n_ratings, stars, said="", **options):
    """A function that makes ratings like those of a MovieLens data set."""
    name = f"movielens_{size}"

    def made(seed: int = 0) -> Ratings:
        options_ = {"spread": 1.0, "least": 20, "stars": stars} | options
        return synthetic_ratings(n_users, n_items, n_ratings, **options_, seed=seed, name=f"synthetic {name}")

    made.__name__ = made.__qualname__ = f"synthetic_{name}"
    made.__doc__ = f"""Ratings like `pdmp.data.{name}`: {n_ratings:,} by {n_users:,} users of {n_items:,} films{said}.

    Parameters
    ----------
    seed : int, default 0
        Of the data and of the split.

    Returns
    -------
    Ratings

    Examples
    --------
    >>> import pdmp
    >>> ratings = pdmp.data.synthetic_{name}()  # doctest: +SKIP
    """
    return made


synthetic_movielens_100k = _like_films(
    "100k", 943, 1682, 100_000, (1, 5, 1), ", a fifth of them to test", test_fraction=0.2
)
synthetic_movielens_1m = _like_films("1m", 6040, 3883, 1_000_209, (1, 5, 1))
synthetic_movielens_10m = _like_films("10m", 71_567, 10_681, 10_000_054, (0.5, 5, 0.5))
synthetic_movielens_20m = _like_films("20m", 138_493, 27_278, 20_000_263, (0.5, 5, 0.5))


def synthetic_sepsis(
    n: int = 110_204, standardise: bool = False, intercept: str | None = "last", seed: int = 0
) -> Dataset:
    """A table like `pdmp.data.sepsis`: age, sex, number of the episode and a column of ones; alive or dead.

    Age is max(0, N(62.7, 24.1²)), sex Bernoulli(0.474), the episode 1 + Poisson(0.35); the label is drawn from a
    logistic regression with the coefficients of the published data.

    Parameters
    ----------
    n : int, default 110204
    standardise, intercept, seed
        As in `pdmp.data.sepsis`; the seed is that of the data as well.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> import pdmp
    >>> pdmp.data.synthetic_sepsis(n=100).names
    ('age', 'sex', 'episode', 'intercept')
    """
    rng = np.random.default_rng(seed)
    age = np.maximum(rng.normal(62.7, 24.1, n), 0.0)
    X = np.column_stack([age, rng.random(n) < 0.474, 1 + rng.poisson(0.35, n)]).astype(float)
    y = _labels(X @ SEPSIS_COEFFICIENTS[:3] + SEPSIS_COEFFICIENTS[3], rng)
    names, labels = ("age", "sex", "episode"), ("dead", "alive")
    about = "made-up sepsis survival: alive or dead"
    return prepare(
        "synthetic sepsis", X, y, names, labels, about, standardise=standardise, intercept=intercept, seed=seed
    )


def synthetic_arrhythmia(
    n: int = 430, columns: int = 100, standardise: bool = True, intercept: str | None = "last", seed: int = 0
) -> Dataset:
    """A table like `pdmp.data.arrhythmia`: 430 rows of 100 heavy-tailed, correlated columns and one of ones.

    The columns are multivariate t with 4 degrees of freedom and correlations 0.5^|i - j|; the label is drawn from a
    logistic regression on the standardised columns and the intercept with coefficients from N(0, 1/2).

    Parameters
    ----------
    n : int, default 430
    columns : int, default 100
    standardise, intercept, seed
        As in `pdmp.data.arrhythmia`; the seed is that of the data as well.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> import pdmp
    >>> pdmp.data.synthetic_arrhythmia(n=50, columns=5).X.shape
    (50, 6)
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, columns))
    for j in range(1, columns):
        X[:, j] = 0.5 * X[:, j - 1] + math.sqrt(0.75) * X[:, j]
    X /= np.sqrt(rng.chisquare(4, (n, 1)) / 4)
    coefficients = math.sqrt(0.5) * rng.standard_normal(columns + 1)
    y = _labels((X - X.mean(axis=0)) / X.std(axis=0) @ coefficients[:-1] + coefficients[-1], rng)
    names = [f"x{j}" for j in range(columns)]
    about = "made-up heavy-tailed covariates: some arrhythmia or none"
    labels = ("normal", "arrhythmia")
    return prepare(
        "synthetic arrhythmia", X, y, names, labels, about, standardise=standardise, intercept=intercept, seed=seed
    )


def _labels(score, rng):
    return (rng.random(len(score)) < 0.5 * (1.0 + np.tanh(0.5 * score))).astype(float)


def synthetic_meg(n: int = 17_730, channels: int = 10, standardise: bool = True, seed: int = 0) -> Dataset:
    """A recording like `pdmp.data.meg`: independent sources of the logistic law, mixed by a random rotation.

    Parameters
    ----------
    n : int, default 17730
    channels : int, default 10
    standardise, seed
        As in `pdmp.data.meg`; the seed is that of the data as well.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> import pdmp
    >>> pdmp.data.synthetic_meg(n=50, channels=3).X.shape
    (50, 3)
    """
    rng = np.random.default_rng(seed)
    sources = rng.logistic(size=(n, channels))
    rotation, triangle = np.linalg.qr(rng.standard_normal((channels, channels)))
    rotation *= np.sign(np.diag(triangle))
    names = [f"channel_{k + 1}" for k in range(channels)]
    return prepare(
        "synthetic meg", sources @ rotation.T, None, names, (), "made-up recording, logistic sources in a rotation",
        standardise=standardise, intercept=None, seed=seed,
    )  # fmt: skip


def synthetic_mnist(
    n_train: int = 60_000, n_test: int = 10_000, side: int = 28, dtype: DTypeLike = np.float32, seed: int = 0
) -> Dataset:
    """Images like `pdmp.data.mnist`: ten classes, pixels from 0 to 1, most of them exactly 0.

    A class is a random path of bright discs. An image of it is the path shifted by up to two pixels (one in small
    images), multiplied by a random brightness, with noise. With 28 by 28 pixels the classes are perfectly separable,
    with 8 by 8 they are not.

    Parameters
    ----------
    n_train, n_test : int, default 60000 and 10000
        Numbers of images.
    side : int, default 28
        Width and height in pixels; 8 gives a small problem of the same kind.
    dtype : {numpy.float32, numpy.float64}
        Type of the pixels.
    seed : int, default 0

    Returns
    -------
    Dataset

    Examples
    --------
    >>> import pdmp
    >>> pdmp.data.synthetic_mnist(n_train=20, n_test=10, side=8).X.shape
    (30, 64)
    """
    rng = np.random.default_rng(seed)
    margin = max(1, side // 14)
    grid = np.arange(side + 2 * margin)
    templates = np.zeros((10, len(grid), len(grid)))
    for template in templates:
        place = rng.uniform(0.3, 0.7, 2) * len(grid)
        for _ in range(6):
            distance = np.hypot(grid[:, None] - place[0], grid - place[1])
            np.maximum(template, np.clip(1.0 + side / 14 - distance, 0.0, 1.0), out=template)
            place = np.clip(place + rng.normal(0.0, 0.15 * side, 2), 0.25 * len(grid), 0.75 * len(grid))
    n = n_train + n_test
    y = rng.integers(10, size=n)
    shifts = rng.integers(2 * margin + 1, size=(n, 2))
    X = np.empty((n, side * side), dtype)
    windows = np.lib.stride_tricks.sliding_window_view(templates, (side, side), axis=(1, 2))
    for start in range(0, n, 10_000):
        rows = slice(start, start + 10_000)
        images = windows[y[rows], shifts[rows, 0], shifts[rows, 1]].reshape(-1, side * side)
        images = images * rng.uniform(0.4, 1.0, (len(images), 1))
        images += 0.2 * rng.standard_normal(images.shape) * (images > 0.0)
        X[rows] = np.clip(images, 0.0, 1.0)
    names = tuple(f"pixel_{k // side}_{k % side}" for k in range(side * side))
    return Dataset(
        "synthetic mnist", X, y.astype(float), names, tuple(range(10)), slice(0, n_train), slice(n_train, None),
        "made-up images of ten classes",
    )  # fmt: skip
