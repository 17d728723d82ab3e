"""Other modes of a posterior whose rows are sub-sampled: its process stays in the mode at which rows are expanded.

Some of the rows, a few thousand of each kind, stand for all. From dispersed points paths descend on these by L-BFGS in
the metric of the mode that is known, as those of `pdmp.automatic.modes` do; others begin at images of it, where the
model has symmetries. From an end that is new the search goes on with all rows. What it finds is another mode

- if it is not the known one again,
- if U on the straight line between the two rises by more than `BARRIER`.

Both are judged by the evidence of their normal approximations. A mode that holds more than the known one is where rows
are expanded instead. One that is narrow and far from all paths is not found.
"""

from __future__ import annotations

import math

import numpy as np

from pdmp.automatic.images import moved, words_of
from pdmp.automatic.modes import BARRIER, PATHS, TIE, Hidden, barrier, descend, origins
from pdmp.automatic.start import DENSE, Evaluations, Gaussian, find_path
from pdmp.models.base import Model
from pdmp.native.classes import entry, readable

SOME_ROWS = 5_000  #: of a kind; those of a kind that has no more are all taken
ENDS = 4  #: of paths, from which the search goes on with all rows, at most: it is some tens of passes
PASSES = 30  #: of such a search, about
SAME = 3.0  #: standard deviations between two ends in the same mode, at most


class SomeRows:
    """U(x) with some rows in the place of all, and its gradient."""

    def __init__(self, model: Model, rng: np.random.Generator) -> None:
        self.model, self.dim, self.initial = model, model.dim, model.initial
        last: dict[int, int] = {}
        first: dict[int, int] = {}
        for kind, start, stop in model.pieces():
            first.setdefault(kind, start)
            last[kind] = stop
        self.rows, self.times = [], []
        for kind, stop in last.items():
            n = stop - first[kind]
            chosen = np.sort(rng.choice(n, SOME_ROWS, replace=False)) if n > SOME_ROWS else np.arange(n)
            self.rows.append(first[kind] + chosen)
            self.times.append(n / len(chosen))

    def potential(self, x: np.ndarray) -> float:
        native = self.model.native
        with readable(type(self.model).__name__):
            total = _prior_of(native, x)
            for rows, times in zip(self.rows, self.times, strict=True):
                total += times * _potential_of(native, x, rows)
        return float(total)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        native, total = self.model.native, np.zeros(self.dim)
        with readable(type(self.model).__name__):
            _add_prior_of(native, x, total)
            for rows, times in zip(self.rows, self.times, strict=True):
                out = np.zeros(self.dim)
                _add_gradient_of(native, x, rows, out)
                total += times * out
        return total


@entry
def _prior_of(model, x):
    return model.prior_potential(x)


@entry
def _add_prior_of(model, x, out):
    model.add_prior_gradient(x, out)


@entry
def _potential_of(model, x, rows):
    total = 0.0
    for i in rows:
        total += model.term_potential(x, i)
    return total


@entry
def _add_gradient_of(model, x, rows, out):
    model.add_batch_gradient(x, rows, rows.shape[0], out)


def modes_of_rows(
    model: Model,
    mode: np.ndarray,
    seed: np.random.SeedSequence,
    centre: np.ndarray | None = None,
    rise: float = BARRIER,
) -> tuple[list[Hidden], int]:
    """The one at `mode` (d,) and others, that of most mass first, by how much they are behind it; none that is sure.

    And the evaluations with all rows that this took, about. Paths begin around `centre` (d,), by default the model's
    initial point; between two modes U rises by `rise` at least.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    rows, dense = SomeRows(model, rng), model.dim <= DENSE
    some, whole = Evaluations(rows), Evaluations(model)
    home = find_path(some, mode, rng, (), dense)
    if home.mode is None:
        return [], some.count
    known, begin = (home,), origins(some, model.initial if centre is None else centre, home.mode, rng)
    reflected = [moved(model, mode, word) for word in words_of(model, mode)]
    for k in range(-len(reflected), PATHS):
        end = reflected[k] if k < 0 else descend(some, next(begin), home.mode, known)
        path = None if end is None else find_path(some, end, rng, known, dense)
        if path is not None and path.mode is not None and not any(path is other for other in known):
            known = (*known, path)
    found = [gaussian for gaussian in [at(model, mode)] if gaussian is not None]
    passes = 0
    for path in sorted(known[1:], key=lambda one: -one.elbo)[:ENDS] if found else ():
        x = model.mode(path.mode.centre)
        passes += PASSES
        other = None if x is None else at(model, x)
        if other is not None and all(apart(whole, one, other, rise) for one in found):
            found.append(other)
    logs = [one.log_volume() - whole.potential(one.centre) for one in found]
    modes = [Hidden(one, max(logs) - log) for one, log in zip(found, logs, strict=True)]
    spent = whole.count + passes + math.ceil(some.count * sum(map(len, rows.rows)) / max(model.n_data, 1))
    return sorted(modes, key=lambda one: one.behind), spent


def beside(known: list[Hidden], anchor: np.ndarray) -> tuple[Gaussian, list[Hidden]]:
    """The Gaussian at the anchor (d,), and those of the other modes that are not far behind it."""
    here = [mode for mode in known if np.all(mode.gaussian.centre == anchor)]
    if not here:
        return Gaussian(anchor, np.ones(len(anchor))), []
    others = [mode._replace(behind=mode.behind - here[0].behind) for mode in known if mode is not here[0]]
    return here[0].gaussian, [mode for mode in others if mode.behind <= TIE]


def at(model: Model, mode: np.ndarray) -> Gaussian | None:
    """The normal approximation at a mode; None where U is not convex."""
    try:
        root = np.linalg.cholesky(model.hessian(mode))
    except np.linalg.LinAlgError:
        return None
    return Gaussian(mode, np.linalg.inv(root).T)


def apart(target: Evaluations, one: Gaussian, other: Gaussian, rise: float) -> bool:
    """Whether two modes are not the same."""
    far = np.linalg.norm(one.standardised(other.centre)) > SAME
    return bool(far) and (rise == 0.0 or barrier(target, one.centre, other.centre) > rise)
