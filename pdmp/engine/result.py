"""The result of a run: estimates along the paths of all chains, draws from them, tables and files."""

from __future__ import annotations

import functools
import html
import importlib
import os
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from pdmp.data.memory import check_size
from pdmp.diagnostics import monte_carlo_error, pooled
from pdmp.diagnostics.effective_size import batch_ess, batch_rhat, draws_ess, draws_rhat
from pdmp.diagnostics.stein import scores, stein_thin
from pdmp.diagnostics.summary import summarise
from pdmp.diagnostics.variable_selection import inclusion
from pdmp.engine import export, storage
from pdmp.engine.chain import Record
from pdmp.engine.checkpoint import digest, model_values
from pdmp.engine.checks import check_count
from pdmp.engine.recording import Grid, Integrals
from pdmp.engine.trajectory import Trajectory, apply, integrate_function
from pdmp.errors import warn
from pdmp.models import transforms
from pdmp.native.explanations import explained_methods
from pdmp.process import DATA, EVENTS, HORIZONS, KINDS, PROPOSALS, THINNED, VIOLATIONS

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from typing import Unpack

    from matplotlib.figure import Figure

    from pdmp.automatic.tempering.answers import Modes
    from pdmp.automatic.tempering.evidence import LogEvidence
    from pdmp.diagnostics.estimates import Estimate
    from pdmp.diagnostics.summary import Summary
    from pdmp.engine.chain import Budgets, Chain
    from pdmp.models.base import Model
    from pdmp.process import Process

#: Largest number of draws of each chain for diagnostics, and of numbers in all these draws.
DIAGNOSTIC_DRAWS, DIAGNOSTIC_NUMBERS = 4_000, 20_000_000
PORTION, PORTIONS = 32, 32  #: coordinates whose effective draws are counted together, at least; parts at most
ANSWERS = "pdmp.automatic.tempering.answers"  #: of tempered runs, which a floor above gives
STRETCHES = 1_024  #: largest number of stretches of a chain whose averages give Monte Carlo errors


def read_run(header, arrays, extend):
    """The run in a file that has been read; by `extend` it goes on."""
    records = []
    for i, values in enumerate(header["records"]):

        def part(name, i=i):
            return arrays[f"chain/{i}/{name}"]

        begin = f"chain/{i}/accumulated/"

        records.append(
            Record(
                **values,
                **{name: part(name) for name in Record.ARRAYS},
                integrals=Integrals(*(part(f"integrals/{name}") for name in Integrals._fields)),
                grid=Grid(*(part(f"grid/{name}") for name in Grid._fields)),
                accumulated={name.removeprefix(begin): a for name, a in arrays.items() if name.startswith(begin)},
            )
        )
    run = Run(header["info"], records, extend=extend)
    if "states" in header:
        run._states = header["states"], arrays
    return run


@explained_methods
class Run:
    """What `sample` returns: estimates along the paths of all chains, and the paths.

    Means, variances and expectations are time averages from the end of the warm-up to the end of each chain; chains are
    pooled in proportion to their lengths. If the process has coupled copies (SGRRLD: a fine and a coarse chain), they
    are extrapolated: sums of the copies' averages with the signed weights `copies`. Positions, `draws`, `ess`, `rhat`
    and `to_arviz` are those of the first copy, the fine chain.

    Parameters
    ----------
    info : dict
        How the run was made.
    records : list of Record
        What each chain recorded.
    process : Process, optional
        The process, with its "auto" options settled; a loaded run has none.
    chains : list of Chain, optional
        The chains in their last state, with which the run can be continued.
    extend : callable, optional
        What continues it, `pdmp.engine.run.extend`; without it the run is a part of another, and cannot be continued.

    Attributes
    ----------
    process : Process or str
        The process, with its "auto" options settled; for a loaded run a description.
    seed : int
        The same arguments with this seed repeat the run bitwise.
    chains, dim : int
        Number of chains; dimension d of the target.
    events : ndarray of int, shape (chains,)
        Events of each chain: as a budget, they repeat a run that ended by `seconds` or Ctrl-C.
    warmup, end : ndarray, shape (chains,)
        Process times at which the warm-up and the path end.
    stopped : str
        What ended the run: the name of a budget, "interrupted" or "failed"; several when chains differ.
    variables : dict of str to tuple of int
        Names and shapes of the parts of x.
    transforms : dict of str to pdmp.models.transforms.Transform
        How the natural parameters follow from those parts of x that are transformed ones.
    copies : tuple of float
        Weights of the coupled copies.
    info : mapping
        Plain values about the process and the run: name and description, kind of path, `dim`, `n_data`, names of the
        events, budget, ``wall_seconds``.
    said : frozenset of str
        What the run has warned of as it ended, or `pdmp.auto` before it; empty for a loaded run.
    records : tuple of Record
        The results of the chains: arrays of the path, counts and integrals.
    stats : dict
        Counts over all chains: events by kind, proposals, thinned proposals, bound violations and their relative
        excess, horizons, data terms and passes, gradients and potentials of `pdmp.auto` before the run, seconds of
        computing, and what the report of the process adds.

    Examples
    --------
    >>> import pdmp
    >>> run = pdmp.sample(pdmp.ZigZag(pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])), events=1_000, chains=2, seed=1)
    >>> run.mean().shape, run.cov().shape, run.draws(50).shape
    ((2,), (2, 2), (2, 50, 2))
    """

    def __init__(
        self,
        info: dict,
        records: Sequence[Record],
        process: Process | None = None,
        chains: list[Chain] | None = None,
        extend: Callable[..., Run] | None = None,
    ) -> None:
        self._info, self._records, self._chains = info, tuple(records), chains
        self._extend = extend  # how it goes on
        # What the Python function of its model was, and all that it names; fields of its process and of its model.
        self._known: tuple[Any, list] | None = None
        self._states: tuple[dict, dict] | None = None  # of the chains of a loaded run
        self.said: frozenset[str] = frozenset()  # warnings that it issued as it ended, or its preparation
        self.process = info["process"] if process is None else process
        self.seed, self.dim, self.store = info["seed"], info["dim"], info["store"]
        self.variables = {k: tuple(s) for k, s in info["variables"].items()}
        self.transforms = {k: transforms.from_json(t) for k, t in info.get("transforms", {}).items()}
        self.copies = tuple(info["copies"])

    @property
    def note(self) -> str | None:
        """What `pdmp.auto` chose for the model and why, one line; None for a process of the user's."""
        return self._info.get("choice")

    def __repr__(self):
        stats = self.stats
        return (
            f"<Run: {self._info['process']}, {self.chains} chain{'s' if self.chains > 1 else ''}, "
            f"{stats['total_events']:,} events, time {self.end.max():.6g}, stopped by {self.stopped}>"
        )

    def _repr_html_(self) -> str:
        """The run and its summary as a table, for notebooks."""
        line = f"<p>{html.escape(repr(self))}</p>"
        return line + self.summary()._repr_html_() if any(r.length > 0.0 for r in self._records) else line

    @property
    def info(self) -> Mapping:
        return types.MappingProxyType(self._info)

    @property
    def records(self) -> tuple[Record, ...]:
        return self._records

    def extend(
        self,
        process: Process | None = None,
        *,
        executor: Executor | Any | None = None,
        progress: bool | None = None,
        checkpoint: str | os.PathLike | None = None,
        **budget: Unpack[Budgets],
    ) -> Run:
        """Continue the run to a larger budget, which is counted from the start.

        Without a warm-up, and with ``store="skeleton"``, the result is bitwise what `sample` would have returned for
        that budget; a warm-up stays as long as it was.

        Parameters
        ----------
        process : Process, optional
            For a loaded run: the process that it is of, with the same options, model and data.
        executor, progress, checkpoint
            As in `pdmp.sample`.
        **budget
            Total budgets by name, as in `pdmp.sample`.

        Returns
        -------
        Run

        Raises
        ------
        ValueError
            For a loaded run without its process, a process that is not that of the run, a run that failed, or a budget
            that is already exceeded.

        Examples
        --------
        >>> import pdmp
        >>> run = pdmp.sample(pdmp.ZigZag(pdmp.models.Gaussian([0.0], [1.0])), events=100, seed=1)
        >>> int(run.extend(events=150).events[0])
        150
        """
        if self._extend is None:
            raise ValueError("this run cannot be continued: it is a part of another.")
        return self._extend(self, process, executor=executor, progress=progress, checkpoint=checkpoint, **budget)

    def split(self) -> list[Run]:
        """A run for each chain; they cannot be continued."""
        return [Run(self._info, [record]) for record in self._records]

    @property
    def chains(self) -> int:
        return len(self._records)

    @property
    def events(self) -> np.ndarray:
        return np.array([int(r.counts[EVENTS]) for r in self._records])

    @property
    def warmup(self) -> np.ndarray:
        return np.array([r.warmup for r in self._records])

    @property
    def end(self) -> np.ndarray:
        return np.array([r.end for r in self._records])

    @property
    def stopped(self) -> str:
        reasons = {r.stopped for r in self._records}
        for first in ("failed", "interrupted"):
            if first in reasons:
                return first
        return ", ".join(sorted(reasons))

    @functools.cached_property
    def stats(self) -> dict[str, Any]:
        counts = sum(r.counts for r in self._records)
        violations, terms, n_data = int(counts[VIOLATIONS]), int(counts[DATA]), max(self._info["n_data"], 1)
        stats = {
            "events": {name: int(counts[KINDS + k]) for k, name in enumerate(self._info["events"])},
            "total_events": int(counts[EVENTS]),
            "proposals": int(counts[PROPOSALS]),
            "thinned": int(counts[THINNED]),
            "bound_violations": violations,
            "mean_excess": float(sum(r.excess[0] for r in self._records)) / max(violations, 1),
            "max_excess": float(max(r.excess[1] for r in self._records)),
            "horizons": int(counts[HORIZONS]),
            "data_terms": terms,
            "data_passes": terms / n_data,
            "preparation_gradients": self._info.get("preparation_gradients", 0),
            "seconds": float(sum(r.seconds for r in self._records)),
            "stopped": [r.stopped for r in self._records],
        }
        for record in self._records:
            for name, value in record.statistics.items():
                if name.startswith("max_"):
                    stats[name] = max(stats.get(name, value), value)
                else:
                    share = value / len(self._records) if name.startswith("mean_") else value
                    stats[name] = stats.get(name, 0.0) + share
        return stats

    # -- averages along the path ----------------------------------------------------------------------------------

    def _used(self):
        used = [r for r in self._records if r.length > 0.0]
        if not used:
            raise ValueError("there is no path after the warm-up: the run ended before, or had no event.")
        return used

    def _block_mean(self):
        """Averages of all coupled copies, (copies, d)."""
        used = self._used()
        total = sum(r.length for r in used)
        reference = used[0].integrals.centre
        # Relative to one centre, so that a small spread around a large mean is accurate.
        sums = sum(r.integrals.first + (r.integrals.centre - reference) * r.length for r in used)
        return (reference + sums / total).reshape(len(self.copies), self.dim)

    @overload
    def mean(self, error: Literal[False] = False) -> np.ndarray: ...
    @overload
    def mean(self, error: Literal[True]) -> Estimate: ...
    def mean(self, error: bool = False) -> np.ndarray | Estimate:
        """Time average of x, (d,); with ``error=True`` an `Estimate`, which has Monte Carlo standard errors too."""
        mean = np.array(self.copies) @ self._block_mean()
        return monte_carlo_error.estimate(mean, *self._stretches()) if error else mean

    def var(self) -> np.ndarray:
        """Time average of (x - mean)², (d,).

        A `UserWarning` is issued if extrapolation has made a variance negative.
        """
        var = self._variance()
        if np.any(var < 0.0) and len(self.copies) > 1:
            warn(
                f"the extrapolated variance of {int(np.sum(var < 0.0))} of {self.dim} coordinates is negative: "
                "the run is too short, or the step too large."
            )
        return var

    def _variance(self):
        """`var` without its warning."""
        used, mean = self._used(), np.tile(self.mean(), len(self.copies))
        total = 0.0
        for r in used:
            shift = r.integrals.centre - mean
            total = total + r.integrals.second + shift * (2.0 * r.integrals.first + shift * r.length)
        blocks = (total / sum(r.length for r in used)).reshape(len(self.copies), self.dim)
        return np.array(self.copies) @ blocks

    def sd(self) -> np.ndarray:
        """Square roots of `var`, (d,); NaN where extrapolation made it negative."""
        with np.errstate(invalid="ignore"):
            return np.sqrt(self.var())

    def cov(self) -> np.ndarray:
        """Time average of (x - mean)(x - mean)ᵀ, (d, d).

        Raises
        ------
        ValueError
            If there is no skeleton, and the products were not integrated during the run (``covariance=True``).
        """
        check_size(f"the covariance in {self.dim:,} dimensions", 8.0 * (self.dim * len(self.copies)) ** 2)
        used, mean = self._used(), np.tile(self.mean(), len(self.copies))
        online = all(r.integrals.cross.size for r in used)
        if not online and self.store != "skeleton":
            reason = "of a local process" if self._info["local"] else "above 100 dimensions without `covariance=True`"
            raise ValueError(f'`store="{self.store}"` {reason} keeps no products; use `store="skeleton"`.')
        total = 0.0
        for i, r in enumerate(self._records):
            if r.length <= 0.0:
                continue
            if online:
                shift, first = r.integrals.centre - mean, r.integrals.first
                lower = np.tril(r.integrals.cross)
                cross = lower + np.tril(lower, -1).T
                mixed = np.outer(shift, first)
                total = total + cross + mixed + mixed.T + np.outer(shift, shift) * r.length
            else:
                total = total + self.paths[i].products(mean, r.warmup, r.end)
        total = total / sum(r.length for r in used)
        d = self.dim
        return sum(w * total[c * d : (c + 1) * d, c * d : (c + 1) * d] for c, w in enumerate(self.copies))

    @overload
    def expectation(self, f: Callable, error: Literal[False] = False) -> float | np.ndarray: ...
    @overload
    def expectation(self, f: Callable, error: Literal[True]) -> Estimate: ...
    def expectation(self, f: Callable, error: bool = False) -> float | np.ndarray | Estimate:
        """Time average of f(x).

        Parameters
        ----------
        f : callable
            From a position (d,) to a number or an array. If it also maps many positions at once, (d, M) to (..., M),
            it is called in that way, which is faster; single positions are computed too, to compare.
        error : bool, default False
            Return an `Estimate`, with the Monte Carlo standard error as in `mcse`; NaN where f has the same value on
            the whole path, such as a probability that comes out as 1: no error can be told then.

        Returns
        -------
        float, ndarray or pdmp.diagnostics.Estimate
            Exact for piecewise-constant paths and, on linear and elliptic ones, for polynomials up to degree 5.
            Otherwise by Gauss-Legendre quadrature: three nodes between two events on lines, eight in each radian on
            ellipses. Under ``store="grid"`` the average over the grid.

        Raises
        ------
        ValueError
            Under ``store="moments"``, which keeps nothing of the path.
        """
        self._refuse("expectation", "moments")
        length = sum(r.length for r in self._used())
        total = sum(self._integral(i, f) for i, r in enumerate(self._records) if r.length > 0.0) / length
        total = float(total) if np.ndim(total) == 0 else total
        if not error:
            return total
        found = monte_carlo_error.estimate(total, *self._stretches(f))
        errors = np.where(found.error <= 1e-12 * np.abs(found.value), np.nan, found.error)  # 0 but for rounding
        return replace(found, error=errors if np.ndim(total) else float(errors))

    def _combined(self, f):
        """f as a function of all coupled copies: the weighted sum of its values."""
        if len(self.copies) == 1:
            return f
        d = self.dim
        return lambda x: sum(w * np.asarray(f(x[c * d : (c + 1) * d])) for c, w in enumerate(self.copies))

    def _integral(self, i, f):
        """∫ f along the path of chain i after its warm-up."""
        r, f = self._records[i], self._combined(f)
        if self.store == "grid":
            rows = r.grid.rows[: int(r.grid.used[0])]
            return integrate_function(f, np.full(len(rows), r.length / max(len(rows), 1)), rows, None)
        path, total = self.paths[i], 0.0
        for h, x, v in path.segments(r.warmup, r.end):
            total = total + integrate_function(f, h, x, v, path.centre)
        return total

    def chain_means(self, f: Callable | None = None) -> np.ndarray:
        """Time average of x, or of f(x), of each chain: (chains, d) or (chains, ...)."""
        if f is not None:
            self._refuse("chain_means", "moments")
        self._used()
        blocks, out = (len(self.copies), self.dim), []
        for i, r in enumerate(self._records):
            if r.length <= 0.0:
                raise ValueError(f"chain {i} has no path after its warm-up.")
            if f is None:
                mean = r.integrals.centre + r.integrals.first / r.length
                out.append(np.array(self.copies) @ mean.reshape(blocks))
            else:
                out.append(self._integral(i, f) / r.length)
        return np.array(out)

    def running_mean(self, f: Callable | None = None, n: int = 100, combined: bool = True) -> np.ndarray:
        """Time averages of x, or of f(x), from the end of the warm-up to each of the n times ``draw_times(n)``.

        Parameters
        ----------
        f : callable, optional
            As in `expectation`.
        n : int, default 100
        combined : bool, default True
            Of coupled copies, such as the fine and the coarse chain of Richardson-Romberg extrapolation: extrapolate.
            Otherwise the averages of each copy.

        Returns
        -------
        ndarray, shape (chains, n, ...)
            Or (chains, n, copies, ...) if not `combined`. The last ones are `chain_means`. Under ``store="grid"`` the
            averages over the grid.

        Raises
        ------
        ValueError
            Under ``store="moments"``, which keeps nothing of the path; for more times than a grid has.

        Examples
        --------
        >>> import pdmp
        >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
        >>> run = pdmp.sample(pdmp.ZigZag(model), events=400, store="grid", draws=100, seed=1)
        >>> run.running_mean(n=20).shape, run.running_mean(n=20, combined=False).shape
        ((1, 20, 2), (1, 20, 1, 2))
        """
        self._refuse("running_mean", "moments")
        n, d, copies = check_count("n", n), self.dim, range(len(self.copies))
        one = (lambda x: x) if f is None else f
        value = self._combined(one) if combined else lambda x: np.array([one(x[c * d : (c + 1) * d]) for c in copies])
        out = []
        for i, r in enumerate(self._records):
            if r.length <= 0.0:
                raise ValueError(f"chain {i} has no path after its warm-up.")
            if self.store == "grid":
                out.append(self._grid_means(i, value, self._grid_rows(i, n)))
                continue
            averages = self.paths[i].stretches(n, value, r.warmup, r.end)
            out.append(np.cumsum(averages, axis=0) / np.arange(1, n + 1).reshape(-1, *[1] * (averages.ndim - 1)))
        return np.array(out)

    def _grid_means(self, i, f, rows):
        """Averages of f over the grid of chain i up to each of `rows`; f may be large, so they are not kept."""
        total, means, place = 0.0, [], 0
        for end in rows:
            for x in self._records[i].grid.rows[place : end + 1]:
                total = total + np.asarray(f(x.copy()), dtype=float)
            place = end + 1
            means.append(total / place)
        return np.array(means)

    # -- Monte Carlo errors -----------------------------------------------------------------------------------------

    def _stretches(
        self, f: Callable | None = None, part: slice | None = None
    ) -> tuple[list[np.ndarray], list[float], list[float]]:
        """Averages of x or of f(x) over equal stretches of each chain, the stretches' lengths, and the chains'.

        From the skeleton, with half as many stretches as events, at most 1,024; else from what the run recorded. Of the
        coordinates `part` alone, if it is given.
        """
        places = self._places(part)
        if f is not None:
            self._refuse("the Monte Carlo error of an expectation", "moments")
        weights, series, each, lengths = np.array(self.copies), [], [], []
        for i, r in enumerate(self._records):
            if r.length <= 0.0:
                continue
            if self.store == "skeleton":
                path, n = self._path(i, part), self._stretch_count(i)
                averages = path.stretches(n, None if f is None else self._combined(f), r.warmup, r.end)
                stretch = r.length / n
            elif f is None:
                stretch = float(r.integrals.stretch[0])
                found = r.batches[places].T / stretch if stretch > 0.0 else np.zeros((0, len(r.batches[places])))
                averages = found + r.integrals.centre[places]
            else:
                rows, stretch = r.grid.rows[: int(r.grid.used[0])], float(r.grid.spacing[0])
                averages = np.moveaxis(apply(self._combined(f), rows.T), -1, 0)
            if f is None:
                averages = weights @ averages.reshape(len(averages), len(weights), averages.shape[1] // len(weights))
            series.append(averages)
            each.append(stretch)
            lengths.append(r.length)
        self._used()
        return series, each, lengths

    def mcse(self, f: Callable | None = None, method: str = "spectral") -> np.ndarray | float:
        """Monte Carlo standard error of `mean`, (d,), or of ``expectation(f)``.

        It is computed from exact averages of the path over equal stretches of time, see
        `pdmp.diagnostics.monte_carlo_error`, not from draws. Under ``store="grid"`` the error of ``expectation(f)`` is
        computed from the grid; under ``store="moments"`` only that of `mean` is available.

        Parameters
        ----------
        f : callable, optional
            As in `expectation`.
        method : {"spectral", "batch"}

        Returns
        -------
        float or ndarray
        """
        error = monte_carlo_error.standard_error(*self._stretches(f), monte_carlo_error.check_method(method))
        return float(error) if np.ndim(error) == 0 else error

    def asymptotic_variance(self, f: Callable | None = None, method: str = "spectral") -> np.ndarray | float:
        """Asymptotic variance σ² of the time average of x, (d,), or of f(x): σ² / t is the variance after time t.

        σ² = 2 ∫₀^∞ cov(f(x(0)), f(x(t))) dt in stationarity; estimated within each chain, and averaged over the chains.
        """
        series, stretches, lengths = self._stretches(f)
        found = [monte_carlo_error.asymptotic_variance(s, h, method) for s, h in zip(series, stretches, strict=True)]
        found = np.tensordot(np.array(lengths) / sum(lengths), np.array(found), 1)
        return float(found) if found.ndim == 0 else found

    def efficiency(self) -> dict[str, float]:
        """Effective draws, in all and per second, event and data pass: see `pdmp.diagnostics.efficiency`."""
        return monte_carlo_error.efficiency(self)

    # -- paths and draws ------------------------------------------------------------------------------------------

    def _refuse(self, what, *stores):
        if self.store in stores:
            better = '`store="skeleton"`' if "grid" in stores else '`store="skeleton"` or `store="grid"`'
            raise ValueError(f'`{what}` needs the path, of which `store="{self.store}"` keeps none; use {better}.')

    @functools.cached_property
    def paths(self) -> list[Trajectory]:
        """The paths of the chains, a list of `Trajectory`, with all coupled copies."""
        self._refuse("trajectories", "moments", "grid")
        return [
            Trajectory(
                *(r.x, r.v, r.times, r.kinds, r.which, r.xs, r.vs),
                end=r.end,
                kind=self._info["kind"],
                events=self._info["events"],
                local=self._info["local"],
                warmup=min(r.warmup, r.end),
                centre=r.centre,
            )
            for r in self._records
        ]

    @functools.cached_property
    def trajectories(self) -> list[Trajectory]:
        """The path of each chain, a list of `Trajectory`; of coupled copies the first, with the last as ``coarse``."""
        if len(self.copies) == 1:
            return self.paths
        paths, d, last = [], self.dim, len(self.copies) - 1
        for path in self.paths:
            fine, coarse = path.block(0, d, kind=0), path.block(last * d, (last + 1) * d, kind=last)
            fine.coarse, fine.coarse_times = coarse.positions, coarse.times
            paths.append(fine)
        return paths

    def at(self, t: ArrayLike) -> np.ndarray:
        """Positions of all chains at time t: (chains, d), or (chains, M, d) for M times."""
        self._refuse("at", "moments", "grid")
        return np.array([path.at(t) for path in self.trajectories])

    def draws(self, n: int = 1_000) -> np.ndarray:
        """Positions at n equally spaced times of each chain after its warm-up: (chains, n, d).

        There are as many of each chain, whatever its length, by which `mean` weighs it.

        Under ``store="grid"``, at the points of the grid that are nearest to these times.
        """
        self._refuse("draws", "moments")
        n = check_count("n", n)
        check_size(f"`n` = {n:,} draws", 8.0 * n * self.chains * self.dim * len(self.copies))
        for i, r in enumerate(self._records):
            if r.length <= 0.0:
                raise ValueError(f"chain {i} has no path after its warm-up to draw from.")
        if self.store == "skeleton":
            return np.array([path.discretise(n) for path in self.trajectories])
        return np.array([r.grid.rows[self._grid_rows(i, n), : self.dim] for i, r in enumerate(self._records)])

    def _grid_rows(self, i, n):
        """Rows of the grid of chain i that are nearest to n equally spaced times."""
        r = self._records[i]
        used = int(r.grid.used[0])
        if n > used:
            raise ValueError(f"`n` = {n} draws are more than the {used} that chain {i} has on its grid.")
        times = np.arange(1, n + 1) * (r.length / n)
        return np.clip(np.rint(times / r.grid.spacing[0]).astype(int) - 1, 0, used - 1)

    def _draws_of_all(self, n):
        """Positions at n equally spaced times of all chains one after the other, (n, d)."""
        self._refuse("draws", "moments")
        ends = np.cumsum([r.length for r in self._records])
        counts = np.diff(np.rint(ends * (n / ends[-1])).astype(int), prepend=0)
        if self.store == "skeleton":
            parts = [path.discretise(k) for path, k in zip(self.trajectories, counts, strict=True) if k]
        else:
            grids = [r.grid.rows[:, : self.dim] for r in self._records]
            parts = [grids[i][self._grid_rows(i, k)] for i, k in enumerate(counts) if k]
        return np.concatenate(parts)

    def draw_times(self, n: int = 1_000) -> np.ndarray:
        """Process times of ``draws(n)``: (chains, n)."""
        self._refuse("draw_times", "moments")
        n = check_count("n", n)
        if self.store == "grid":
            rows = (self._grid_rows(i, n) for i in range(self.chains))
            return np.array([r.warmup + (k + 1) * r.grid.spacing[0] for r, k in zip(self._records, rows, strict=True)])
        return np.array([r.warmup + np.arange(1, n + 1) * (r.length / n) for r in self._records])

    def __getitem__(self, name: str) -> np.ndarray:
        """1,000 draws by name: of a natural parameter, ``(chains, 1000, *shape)``, or a coordinate, (chains, 1000).

        The names are those of `constrain` and of `names`. Under ``store="grid"`` all points of the grid.

        Raises
        ------
        KeyError
            For another name; the text lists the names.
        """
        return self._parameter(name, self.draws(self._grid_size() or 1_000))

    def _parameter(self, name, draws):
        """What `draws` (..., d) of x are of the parameter or coordinate of this name."""
        names = self.names()
        if name in names:
            return draws[..., names.index(name)]
        natural = self.constrain(draws)
        if name not in natural:
            known = ", ".join([*natural, *(n for n in names if n.split("[")[0] not in natural)])
            raise KeyError(f"no parameter {name!r}; the run has {known}")
        return natural[name]

    def _grid_size(self):
        """The number of draws on the grid of each chain; None without a grid."""
        return min(int(r.grid.used[0]) for r in self._records) if self.store == "grid" else None

    def _sorted(self, name):
        """Sorted draws (n, ...) of x, or of a parameter, of all chains, and the share of time at or below each."""
        chains = max(self.chains, 1)
        most = max(min(4 * DIAGNOSTIC_DRAWS // chains, DIAGNOSTIC_NUMBERS // (chains * max(self.dim, 1))), 50)
        draws = self.draws(self._grid_size() or most)
        values = draws if name is None else self._parameter(name, draws)
        values = values.reshape(*values.shape[:2], -1)
        return pooled.ordered(values, [r.length for r in self._records])

    def _shape(self, name):
        return (self.dim,) if name is None else self._parameter(name, np.zeros((1, self.dim))).shape[1:]

    def quantile(self, q: ArrayLike, name: str | None = None) -> np.ndarray:
        """Quantiles of each coordinate of x, or of the parameter `name`, from draws; see also `__getitem__`.

        There are 16,000 draws, and fewer in more than 1,250 dimensions.

        Parameters
        ----------
        q : float or array_like, shape (k,)
            Probabilities in [0, 1].
        name : str, optional
            A natural parameter or a coordinate.

        Returns
        -------
        ndarray, shape (d,) or (k, d)
            Or of the parameter's shape instead of d. Chains are pooled in proportion to their lengths.

        Examples
        --------
        >>> import pdmp
        >>> run = pdmp.sample(pdmp.ZigZag(pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])), ess=400, seed=1)
        >>> run.quantile([0.05, 0.95]).shape
        (2, 2)
        """
        q = np.asarray(q, dtype=float)
        if q.ndim > 1 or q.size == 0 or not np.all((q >= 0.0) & (q <= 1.0)):
            raise ValueError(f"`q` must be one or several probabilities in [0, 1], got {q.tolist()}.")
        values, share, weights = self._sorted(name)
        return pooled.quantiles(q, values, share, weights).reshape((*q.shape, *self._shape(name)))

    def hdi(self, prob: float = 0.95, name: str | None = None) -> np.ndarray:
        """The shortest interval that has probability `prob`, of each coordinate or of the parameter `name`.

        From 16,000 draws, as in `quantile`.

        Parameters
        ----------
        prob : float, default 0.95
        name : str, optional
            A natural parameter or a coordinate.

        Returns
        -------
        ndarray, shape (d, 2)
            Or of the parameter's shape instead of d: lower and upper end.
        """
        if not 0.0 < prob < 1.0:
            raise ValueError(f"`prob` must lie between 0 and 1, got {prob!r}.")
        values, share, weights = self._sorted(name)
        ends = np.empty((values.shape[1], 2))
        for j, (x, upto, each) in enumerate(zip(values.T, share.T, weights.T, strict=True)):
            last = np.searchsorted(upto, upto - each + prob - 1e-9)  # the first draw with enough before it
            first = np.flatnonzero(last < len(x))
            k = first[np.argmin(x[last[first]] - x[first])]
            ends[j] = x[k], x[last[k]]
        return ends.reshape((*self._shape(name), 2))

    def to_dataframe(self, n: int | None = None, model: Model | None = None) -> Any:
        """A ``pandas.DataFrame`` of n draws of each chain: "chain", "draw", and a column for each natural parameter.

        Parameters
        ----------
        n : int, optional
            Draws of each chain, 1,000 by default; all under ``store="grid"``.
        model : Model, optional
            For a loaded run, see `constrain`.

        Raises
        ------
        ImportError
            Without pandas.
        """
        return export.to_dataframe(self, (self._grid_size() or 1_000) if n is None else n, model)

    def diagnostic_draws(self, most: int = DIAGNOSTIC_DRAWS) -> np.ndarray | None:
        """At most `most` draws of each chain for diagnostics, (chains, n, d); None if there are fewer than 4."""
        if self.store == "grid":
            n = min(int(r.grid.used[0]) for r in self._records)
        else:
            n = min(most, int(self.events.min()))
        n = min(n, max(DIAGNOSTIC_NUMBERS // (self.chains * self.dim), 50))
        if n < 4 or any(r.length <= 0.0 for r in self._records):
            return None
        return self.draws(n)

    def ess(self, method: str = "mean") -> np.ndarray:
        """Effective sample size of each coordinate, all chains together, (d,).

        Parameters
        ----------
        method : str, default "mean"
            "spectral" and "batch" are var / mcse² of the exact path (see `mcse`), which no number of draws limits.
            Other methods are those of `pdmp.diagnostics.ess`, from 4,000 draws of each chain (at most as many as there
            were events), and from up to sixteen times as many if more than a fifth of the draws are effective. Under
            ``store="moments"`` only "mean" is available, from the averages over 32 to 64 stretches of the path.
        """
        if method in monte_carlo_error.METHODS:
            with np.errstate(all="ignore"):
                error = self.mcse(method=method)
                return np.where(error > 0.0, self.var() / error**2, np.nan)
        if self.store == "moments":
            if method != "mean":
                raise ValueError(f'`method` {method!r} needs draws, of which `store="moments"` keeps none; use "mean".')
            used, d = self._used(), self.dim
            batches = [r.batches[:d] for r in used]
            var = np.average([self._chain_var(r) for r in used], axis=0, weights=[r.length for r in used])
            stretch = [float(r.integrals.stretch[0]) for r in used]
            means = [r.integrals.centre[:d] + r.integrals.first[:d] / r.length for r in used if r.length > 0.0]
            return batch_ess(var, [r.length for r in used], batches, stretch, means)
        most = DIAGNOSTIC_DRAWS
        while True:
            draws = self.diagnostic_draws(most)
            if draws is None:
                return np.full(self.dim, np.nan)
            ess = draws_ess(draws, method)
            if self.store == "grid" or most >= 16 * DIAGNOSTIC_DRAWS or draws.shape[1] < most:
                return ess
            if not np.any(ess > 0.2 * draws.shape[0] * draws.shape[1]):
                return ess
            most *= 4

    def effective_draws(self) -> dict[str, np.ndarray]:
        """Effective draws of the mean and of the sd of each coordinate, all chains together.

        How many independent draws would have the same Monte Carlo error: var / mcse² of the exact path, of x for the
        mean and of (x - mean)² for the sd. The budget `ess` of `pdmp.sample` counts the fewest of them.

        Returns
        -------
        dict of str to ndarray, shape (d,)
            "mean", which is ``ess("spectral")``, and "sd". NaN for a coordinate that never moved, or for too short a
            path; infinite for the sd if (x - mean)² is constant. Under ``store="moments"`` draws from a normal
            distribution are counted, whose squares vary by 2 var².

        Examples
        --------
        >>> import pdmp
        >>> run = pdmp.sample(pdmp.ZigZag(pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])), ess=100, seed=1)
        >>> bool(min(run.effective_draws()["mean"].min(), run.effective_draws()["sd"].min()) >= 100)
        True
        """
        parts = [self.effective_draws_of(part) for part in self.portions()]
        return {name: np.concatenate([found[name] for found in parts]) for name in ("mean", "sd")}

    def portions(self) -> list[slice]:
        """Parts of the coordinates, at most `PORTIONS`, that `effective_draws` counts one after the other."""
        width = max(PORTION, -(-self.dim // PORTIONS))
        return [slice(first, min(first + width, self.dim)) for first in range(0, self.dim, width)]

    def effective_draws_of(self, part: slice) -> dict[str, np.ndarray]:
        """`effective_draws` of one of the `portions`: the same numbers, whatever has been counted before."""
        return {"mean": self.mean_draws_of(part), "sd": self.sd_draws_of(part)}

    def sd_draws_of(self, part: slice) -> np.ndarray:
        """Those of the standard deviations alone."""
        var = self._variance()[part]
        series, each, lengths, fourth = self._square_stretches(np.tile(self.mean()[part], len(self.copies)), part)
        square_error = monte_carlo_error.standard_error(series, each, lengths)
        with np.errstate(all="ignore"):
            spread = (3.0 * var**2 if fourth is None else fourth) - var**2
            squares = np.where((var > 0.0) & (spread <= 1e-12 * var**2), np.inf, spread / square_error**2)
        return np.where(np.isnan(square_error) | (var <= 0.0), np.nan, squares)

    def mean_draws_of(self, part: slice) -> np.ndarray:
        """Those of the means alone."""
        error = monte_carlo_error.standard_error(*self._stretches(part=part))
        with np.errstate(all="ignore"):
            return np.where(error > 0.0, self._variance()[part] / error**2, np.nan)

    def _places(self, part):
        """Coordinates `part` of every coupled copy, for arrays of all of them; None is all."""
        if part is None or part == slice(0, self.dim):
            return slice(None)
        return (self.dim * np.arange(len(self.copies))[:, None] + np.arange(part.start, part.stop)).ravel()

    def _path(self, i, part):
        """The path of chain i, of these coordinates."""
        places = self._places(part)
        return self.paths[i] if isinstance(places, slice) else self.paths[i].narrowed(places)

    def _square_stretches(self, mean, part=None):
        """As `_stretches`, of (x - mean)², and the average of (x - mean)⁴, None where it is unknown."""
        series, each, lengths, fourth = [], [], [], 0.0
        weights, blocks, places = np.array(self.copies), (len(self.copies), -1), self._places(part)
        for i, r in enumerate(self._records):
            if r.length <= 0.0:
                continue
            shift, four = r.integrals.centre[places] - mean, None
            if self.store == "skeleton":
                n = self._stretch_count(i)
                averages, four = self._path(i, part).square_stretches(n, mean, r.warmup, r.end)
                stretch = r.length / n
            else:
                stretch = float(r.integrals.stretch[0])
                known = stretch > 0.0 and r.square_batches.shape == r.batches.shape
                squares, batches = (b[places] if known else b for b in (r.square_batches, r.batches))
                averages = (squares.T + 2.0 * shift * batches.T) / stretch + shift**2 if known else []
                if self.store == "grid":
                    four = np.mean((r.grid.rows[: int(r.grid.used[0]), places] - mean) ** 4, axis=0)
            series.append(weights @ np.reshape(averages, (-1, len(weights), len(mean) // len(weights))))
            each.append(stretch)
            lengths.append(r.length)
            fourth = None if four is None else fourth + r.length * (weights @ four.reshape(blocks))
        return series, each, lengths, None if fourth is None else fourth / sum(lengths)

    def _stretch_count(self, i):
        """Stretches of chain i for `_stretches`: half as many as events, at most 1,024."""
        r, times = self._records[i], self.paths[i].times
        events = len(times) - int(np.searchsorted(times, r.warmup, side="right"))
        most = max(DIAGNOSTIC_NUMBERS // (len(self.copies) * self.dim * self.chains), 64)
        return max(min(STRETCHES, most, events // 2), 1)

    def rhat(self, method: str = "rank") -> np.ndarray:
        """R-hat of each coordinate, from the two halves of each chain, (d,).

        `method` is that of `pdmp.diagnostics.rhat`. Under ``store="moments"`` the classical R-hat, without ranks.
        """
        if self.store != "moments":
            draws = self.diagnostic_draws()
            return np.full(self.dim, np.nan) if draws is None else draws_rhat(draws, method)
        halves, d = [], self.dim
        used = self._used()
        for r in used:
            stretch = float(r.integrals.stretch[0])
            whole = int(r.length / stretch * (1.0 + 1e-12)) // 2
            if whole == 0:
                return np.full(d, np.nan)
            for part in (slice(0, whole), slice(whole, 2 * whole)):
                halves.append(r.integrals.centre[:d] + r.batches[:d, part].sum(axis=1) / (whole * stretch))
        return batch_rhat([self._chain_var(r) for r in used], halves)

    def inclusion(self) -> np.ndarray:
        """Posterior inclusion probabilities, (d,), of a sticky process: see `pdmp.diagnostics.inclusion`."""
        return inclusion(self)

    def _chain_var(self, r):
        """Variance along one chain's path, first copy, (d,)."""
        d = self.dim
        return r.integrals.second[:d] / r.length - (r.integrals.first[:d] / r.length) ** 2

    # -- tempered runs ----------------------------------------------------------------------------------------------

    def modes(self) -> Modes:
        """The modes of a tempered run, that of the largest share first: share, its error, mean and sd of each.

        From up to 4,000 draws of each chain. Parts of the posterior between which its density falls by less than about
        e⁻⁴ are one mode.

        Raises
        ------
        ValueError
            For a run that is not of ``pdmp.sample(model, tempered=True)``.

        Examples
        --------
        >>> import pdmp
        >>> model = pdmp.models.GaussianMixture([[-5.0], [5.0]], [1.0, 1.0], [0.3, 0.7])
        >>> run = pdmp.sample(model, tempered=True, seed=1)
        >>> len(run.modes()), abs(run.modes()[0].share - 0.7) < 0.1
        (2, True)
        """
        found: Modes = importlib.import_module(ANSWERS).modes_of(self)
        return found

    @functools.cached_property
    def log_evidence(self) -> LogEvidence:
        """log Z of a tempered run, Z the integral of exp(-U): ``value``, standard ``error``, a ``second`` estimate.

        It is the log marginal likelihood if U has all constants of the likelihood and of the priors; those that
        regressions and priors of the package leave out are added, or a warning says that they are not known.

        Raises
        ------
        ValueError
            For a run that is not of ``pdmp.sample(model, tempered=True)``.
        """
        found: LogEvidence = importlib.import_module(ANSWERS).evidence_of(self)
        return found

    # -- tables and files ---------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """A name for each coordinate of x: "beta[0]", "log(sigma)", …; a list of str."""
        return transforms.coordinate_names(self.variables, self.transforms)

    def constrain(self, draws: ArrayLike, model: Model | None = None) -> dict[str, np.ndarray]:
        """Natural parameters of draws of x (..., d), each ``(..., *shape)``, by name; see `pdmp.Model.constrain`.

        A saved run contains the names and transforms of its model. Some models compute natural parameters themselves
        (PyMC, Stan, a non-centred hierarchy); a loaded run of such a model needs it as `model`.
        """
        model = getattr(self.process, "model", None) if model is None else model
        if hasattr(model, "constrain"):
            return model.constrain(draws)
        if self._info.get("constrains", False):
            raise ValueError(
                f"the natural parameters of a {self._info['process']} are computed by its model, which a loaded run "
                "does not hold: give it as `model=`."
            )
        return transforms.split(draws, self.variables, self.transforms)

    def summary(self) -> Summary:
        """A `Summary`: mean, sd, 95 % interval, Monte Carlo error, ESS and R-hat of each coordinate, and warnings.

        Errors and ESS are those of the exact path, see `mcse`; the ends of the interval
        are quantiles, see `quantile`. A warning says what is wrong and what to change.
        """
        return summarise(self)

    def plot(self, coordinates: Sequence[int | str] | None = None) -> Figure:
        """A matplotlib figure of what one looks at first: see `pdmp.plots.overview`."""
        overview: Figure = importlib.import_module("pdmp.plots").overview(self, coordinates)  # of the floor above
        return overview

    def thin(
        self,
        n: int = 100,
        method: str = "stein",
        candidates: int = 5_000,
        target: Model | None = None,
        preconditioner: str | ArrayLike | None = "covariance",
    ) -> np.ndarray:
        """A few positions that represent the whole run: (n, d).

        Parameters
        ----------
        n : int, default 100
        method : {"stein", "time"}
            "stein": draws selected one by one, each so as to reduce the Stein discrepancy most, some perhaps more than
            once (`pdmp.diagnostics.stein_thin`); draws from before convergence are avoided. "time": equally spaced.
        candidates : int, default 5000
            Number of draws to select from, all chains together.
        target : Model, optional
            The target; needed for a loaded run only.
        preconditioner : str, array_like or None, default "covariance"
            Of the discrepancy, see `pdmp.diagnostics.ksd`; None if the covariance of the draws is singular.

        Returns
        -------
        ndarray, shape (n, d)

        Raises
        ------
        ValueError
            For an unknown method, or "stein" without a target.
        """
        n, candidates = check_count("n", n), check_count("candidates", candidates)
        check_size(f"`n` = {n:,} positions", 8.0 * n * self.dim)
        if method not in ("stein", "time"):
            raise ValueError(f'`method` must be "stein" or "time", got {method!r}.')
        if method == "time":
            return self._draws_of_all(n)
        target = getattr(self.process, "model", None) if target is None else target
        if target is None:
            raise ValueError('`method="stein"` needs gradients: give the model as `target=`.')
        of_skeleton, used = self.store == "skeleton", self._used()
        shares = np.array([r.length for r in used]) / sum(r.length for r in used)
        kept = np.array([int(r.counts[EVENTS]) if of_skeleton else int(r.grid.used[0]) for r in used])
        most = int(np.min((kept - 1) / shares))  # of each chain as many as it has
        x = self._draws_of_all(max(min(candidates, most), 1))
        return x[stein_thin(x, scores(target, x), n, preconditioner=preconditioner)]

    def save(self, path: str | os.PathLike) -> None:
        """Write the run to one file (NPZ, without pickle), which `pdmp.load` reads."""
        arrays, records = {}, []
        for i, r in enumerate(self._records):
            records.append({name: getattr(r, name) for name in Record.NUMBERS})
            arrays |= {f"chain/{i}/{name}": getattr(r, name) for name in Record.ARRAYS}
            arrays |= {f"chain/{i}/accumulated/{name}": array for name, array in r.accumulated.items()}
            arrays |= storage.flatten(r.integrals, f"chain/{i}/integrals") | storage.flatten(r.grid, f"chain/{i}/grid")
        header = {"what": "run", "info": self._info, "records": records}
        if self._chains is not None:
            process, start, packed = self._chains[0].process, self._records[0].x[: self.dim], []
            for i, chain in enumerate(self._chains):
                state, trees, _ = chain.snapshot()
                state, more = chain.pack((state, trees, []), f"state/{i}")
                packed.append(state)
                arrays |= more
            header["states"] = {"process": digest(process), "values": model_values(process.model, start)}
            header["states"]["chains"] = packed
        elif self._states is not None:
            header["states"] = self._states[0]
            arrays |= {name: array for name, array in self._states[1].items() if name.startswith("state/")}
        storage.write(path, header, arrays)

    def to_arviz(self, n: int | None = None, model: Model | None = None, log_likelihood: bool | None = None) -> Any:
        """An ``arviz.InferenceData`` (or ``DataTree``, from ArviZ 1.0) of n draws of each chain.

        Its groups are "posterior", of natural parameters (for these and for `model` see `constrain`); "sample_stats",
        of the draws' process times and log densities ``lp``; and "observed_data" and "log_likelihood" where the model
        has them, so that ``arviz.loo`` can be computed. Dims and coords are those of the model. Of coupled copies, the
        fine chain's draws.

        Parameters
        ----------
        n : int, optional
            By default between 100 and 10,000, so many that ArviZ's effective sample sizes of these draws are near those
            of the path, `effective_draws`. They cannot be equal where deviations of the path cancel each other; the
            attribute ``ess_ratio`` of the posterior is the median of ArviZ's bulk ESS over that of the path.
        model : Model, optional
            For a loaded run.
        log_likelihood : bool, optional
            By default if it has at most 20 million numbers.

        Raises
        ------
        ImportError
            Without ArviZ.
        """
        return export.to_arviz(self, n, model, log_likelihood)
