"""The result of a run: estimates along the paths of all chains, draws from them, tables and files."""

from __future__ import annotations

import functools
import html
import importlib
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from pdmp.data.memory import check_size
from pdmp.diagnostics import monte_carlo_error, pooled
from pdmp.diagnostics.averages import (
    DIAGNOSTIC_DRAWS,
    DIAGNOSTIC_NUMBERS,
    check_paths,
    ess_of,
    grid_rows,
    grid_size,
    integral,
    need_path,
    rhat_of,
    stretches,
    variance,
    with_path,
)
from pdmp.diagnostics.estimates import Estimate
from pdmp.diagnostics.stein import scores, stein_thin
from pdmp.diagnostics.summary import Summary, summarise
from pdmp.engine import export, storage
from pdmp.engine.chain import Budgets, Chain, Record
from pdmp.engine.checkpoint import digest, model_values
from pdmp.engine.recording import Grid, Integrals
from pdmp.engine.trajectory import Trajectory
from pdmp.errors import warn
from pdmp.models import transforms
from pdmp.models.base import Model
from pdmp.native.arguments import count
from pdmp.native.explanations import explained_methods
from pdmp.process import DATA, EVENTS, HORIZONS, KINDS, PROPOSALS, THINNED, VIOLATIONS, Process

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pdmp.automatic.tempering.answers import Modes
    from pdmp.automatic.tempering.evidence import LogEvidence

SHIFTED = 0.25  #: difference of means, in standard deviations, of selected positions that is said
ANSWERS = "pdmp.automatic.tempering.answers"  #: of tempered runs, which a floor above gives
#: What methods of the past are called.
MOVED = {
    name: f"pdmp.diagnostics.{name}(run, ...)"
    for name in ("draw_times", "effective_draws", "efficiency", "inclusion", "running_mean", "split")
} | {
    "asymptotic_variance": "pdmp.diagnostics.asymptotic_variance(averages, stretch)",
    "chain_means": "[one.mean() for one in pdmp.diagnostics.split(run)]",
    "note": 'run.info.get("choice")',
    "paths": "[path.whole for path in run.trajectories]",
}


def read_run(header, arrays, extend):
    """The run in a file that has been read; by `extend` it goes on."""
    records = []
    for i, values in enumerate(header["records"]):
        own = {name.removeprefix(f"chain/{i}/"): a for name, a in arrays.items() if name.startswith(f"chain/{i}/")}
        records.append(
            Record(
                **values,
                **{name: own.pop(name) for name in Record.ARRAYS},
                integrals=Integrals(*(own.pop(f"integrals/{name}") for name in Integrals._fields)),
                grid=Grid(*(own.pop(f"grid/{name}") for name in Grid._fields)),
                accumulated={name.removeprefix("accumulated/"): array for name, array in own.items()},
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
        The function that continues the run, `pdmp.engine.run.extend`. Without it the run is a part of another, and
        cannot be continued.

    Attributes
    ----------
    process : Process or str
        The process, with its "auto" options settled; for a loaded run a description.
    seed : int
        The same arguments with this seed repeat the run bitwise.
    chains, dim : int
        Number of chains; dimension d of the target.
    events : ndarray of int, shape (chains,)
        Events of each chain; given as a budget, they repeat a run that ended by `seconds` or Ctrl-C.
    warmup, end : ndarray, shape (chains,)
        Process times at which the warm-up and the path end.
    stopped : str
        What ended the run: the name of a budget, "in vain" if a larger budget would not reach its goal either,
        "interrupted" or "failed"; several of these if chains differ.
    variables : dict of str to tuple of int
        Names and shapes of the parts of x.
    transforms : dict of str to pdmp.models.transforms.Transform
        How the natural parameters follow from those parts of x that are transformed ones.
    copies : tuple of float
        Weights of the coupled copies.
    info : dict
        Plain values about the process and the run: name and description, kind of path, `dim`, `n_data`, names of the
        events, budget, ``wall_seconds``; and ``choice``, what `pdmp.auto` chose for a model and why.
    said : frozenset of str
        The warnings that the run gave as it ended, or `pdmp.auto` before it; empty for a loaded run.
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
        self.info, self.records, self._chains = info, tuple(records), chains
        self._extend = extend  # how it goes on
        # What the Python function of its model was, and all that it names; fields of its process and of its model.
        self._known: tuple[Any, list] | None = None
        self._states: tuple[dict, dict] | None = None  # of the chains of a loaded run
        self.said: frozenset[str] = frozenset()  # warnings that it issued as it ended, or its preparation
        self.aside = False  # whether the grid is of positions that are kept for checks alone
        self.process = info["process"] if process is None else process
        self.seed, self.dim, self.store = info["seed"], info["dim"], info["store"]
        self.variables = {k: tuple(s) for k, s in info["variables"].items()}
        own = getattr(getattr(self.process, "model", None), "transforms", {})  # whose classes may be the user's
        self.transforms = own or {k: transforms.from_json(t) for k, t in info.get("transforms", {}).items()}
        self.copies = tuple(info["copies"])
        reasons = {r.stopped for r in self.records} | ({"interrupted"} if info.get("left_out") else set())
        self.stopped = next((r for r in ("failed", "interrupted") if r in reasons), ", ".join(sorted(reasons)))
        self.chains = len(self.records)
        self.events = np.array([int(r.counts[EVENTS]) for r in self.records], dtype=int)
        self.warmup, self.end = np.array([(r.warmup, r.end) for r in self.records]).reshape(-1, 2).T

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            said = f"`run.{name}` is `{MOVED[name]}` now." if name in MOVED else f"a Run has no attribute {name!r}."
            raise AttributeError(said)

    def __repr__(self):
        stats = self.stats
        return (
            f"<Run: {self.info['process']}, {self.chains} chain{'s' if self.chains > 1 else ''}, "
            f"{stats['total_events']:,} events, time {self.end.max():.6g}, stopped by {self.stopped}>"
        )

    def _repr_html_(self) -> str:
        """The run and its summary as a table, for notebooks."""
        line = f"<p>{html.escape(repr(self))}</p>"
        return line + self.summary()._repr_html_() if any(r.length > 0.0 for r in self.records) else line

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

    @functools.cached_property
    def stats(self) -> dict[str, Any]:
        counts = sum(r.counts for r in self.records)
        violations, terms, n_data = int(counts[VIOLATIONS]), int(counts[DATA]), max(self.info["n_data"], 1)
        stats = {
            "events": {name: int(counts[KINDS + k]) for k, name in enumerate(self.info["events"])},
            "total_events": int(counts[EVENTS]),
            "proposals": int(counts[PROPOSALS]),
            "thinned": int(counts[THINNED]),
            "bound_violations": violations,
            "mean_excess": float(sum(r.excess[0] for r in self.records)) / max(violations, 1),
            "max_excess": float(max(r.excess[1] for r in self.records)),
            "horizons": int(counts[HORIZONS]),
            "data_terms": terms,
            "data_passes": terms / n_data,
            "preparation_gradients": self.info.get("preparation_gradients", 0),
            "seconds": float(sum(r.seconds for r in self.records)),
            "stopped": [r.stopped for r in self.records],
        }
        for record in self.records:
            for name, value in record.statistics.items():
                if name.startswith("max_"):
                    stats[name] = max(stats.get(name, value), value)
                else:
                    share = value / len(self.records) if name.startswith("mean_") else value
                    stats[name] = stats.get(name, 0.0) + share
        return stats

    # -- averages along the path ----------------------------------------------------------------------------------

    def _block_mean(self):
        """Averages of all coupled copies, (copies, d)."""
        used = with_path(self)
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
        return monte_carlo_error.estimate(mean, *stretches(self)) if error else mean

    def var(self) -> np.ndarray:
        """Time average of (x - mean)², (d,).

        A `UserWarning` is issued if extrapolation has made a variance negative.
        """
        var = variance(self)
        if np.any(var < 0.0) and len(self.copies) > 1:
            warn(
                f"the extrapolated variance of {int(np.sum(var < 0.0))} of {self.dim} coordinates is negative: "
                "the run is too short, or the step too large."
            )
        return var

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

        Warns
        -----
        UserWarning
            If there are fewer events than dimensions, so that the matrix is singular but for what segments add.
        """
        check_size(f"the covariance in {self.dim:,} dimensions", 8.0 * (self.dim * len(self.copies)) ** 2)
        used, mean = with_path(self), np.tile(self.mean(), len(self.copies))
        online = all(r.integrals.cross.size for r in used)
        if not online and self.store != "skeleton":
            reason = "of a local process" if self.info["local"] else "above 100 dimensions without `covariance=True`"
            raise ValueError(f'`store="{self.store}"` {reason} keeps no products; use `store="skeleton"`.')
        total = 0.0
        for i, r in enumerate(self.records):
            if r.length <= 0.0:
                continue
            if online:
                shift, first = r.integrals.centre - mean, r.integrals.first
                lower = np.tril(r.integrals.cross)
                cross = lower + np.tril(lower, -1).T
                mixed = np.outer(shift, first)
                total = total + cross + mixed + mixed.T + np.outer(shift, shift) * r.length
            else:
                total = total + self.trajectories[i].whole.products(mean, r.warmup, r.end)
        if (events := int(self.events.sum())) < self.dim:
            warn(f"{events:,} events in {self.dim:,} dimensions are too few for a covariance: run longer.")
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
            Otherwise by Gauss-Legendre quadrature: six nodes between two events on lines, twelve in each radian on
            ellipses, in eight parts where f turns or jumps between them, and a random place besides, by which
            functions that jump have no bias. With `error` the path is also cut where the stretches end of which the
            error is computed: of a function that jumps the value is then another, by less than its error. Under
            ``store="grid"`` the average over the grid.

        Raises
        ------
        ValueError
            Under ``store="moments"``, which keeps nothing of the path.
        """
        need_path(self, "expectation", "moments")
        length = sum(r.length for r in with_path(self))
        if error:  # the error is that of this mean: where f jumps, other cuts would give another
            series, each, lengths = stretches(self, f)
            total = sum(one.mean(axis=0) * part for one, part in zip(series, lengths, strict=True)) / length
        else:
            total = sum(integral(self, i, f) for i, r in enumerate(self.records) if r.length > 0.0) / length
        total = float(total) if np.ndim(total) == 0 else total
        if not error:
            return total
        found = monte_carlo_error.estimate(total, series, each, lengths)
        errors = np.where(found.error <= 1e-12 * np.abs(found.value), np.nan, found.error)  # 0 but for rounding
        return replace(found, error=errors if np.ndim(total) else float(errors))

    # -- Monte Carlo errors -----------------------------------------------------------------------------------------

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
        error = monte_carlo_error.standard_error(*stretches(self, f), monte_carlo_error.check_method(method))
        return float(error) if np.ndim(error) == 0 else error

    # -- paths and draws ------------------------------------------------------------------------------------------

    @functools.cached_property
    def trajectories(self) -> list[Trajectory]:
        """The path of each chain, a list of `Trajectory`; of coupled copies the first, with the last as ``coarse``."""
        need_path(self, "trajectories", "moments", "grid")
        how = {"kind": self.info["kind"], "events": self.info["events"], "local": self.info["local"]}
        return [
            Trajectory(
                *(r.x, r.v, r.times, r.kinds, r.which, r.xs, r.vs),
                end=r.end,
                warmup=min(r.warmup, r.end),
                centre=r.centre,
                **how,
            ).of_copies(len(self.copies))
            for r in self.records
        ]

    def at(self, t: ArrayLike) -> np.ndarray:
        """Positions of all chains at time t: (chains, d), or (chains, M, d) for M times."""
        need_path(self, "at", "moments", "grid")
        return np.array([path.at(t) for path in self.trajectories])

    def draws(self, n: int = 1_000) -> np.ndarray:
        """Positions at n equally spaced times of each chain after its warm-up: (chains, n, d).

        There are as many of each chain, whatever its length, by which `mean` weighs it.

        Under ``store="grid"``, at the points of the grid that are nearest to these times.
        """
        need_path(self, "draws", "moments")
        n = count("n", n)
        check_size(f"`n` = {n:,} draws", 8.0 * n * self.chains * self.dim * len(self.copies))
        check_paths(self)
        if self.store == "skeleton":
            return np.array([path.discretise(n) for path in self.trajectories])
        return np.array([r.grid.rows[grid_rows(self, i, n), : self.dim] for i, r in enumerate(self.records)])

    def _draws_of_all(self, n):
        """Positions at n equally spaced times of all chains one after the other, (n, d)."""
        need_path(self, "draws", "moments")
        ends = np.cumsum([r.length for r in self.records])
        counts = np.diff(np.rint(ends * (n / ends[-1])).astype(int), prepend=0)
        if self.store == "skeleton":
            parts = [path.discretise(k) for path, k in zip(self.trajectories, counts, strict=True) if k]
        else:
            grids = [r.grid.rows[:, : self.dim] for r in self.records]
            parts = [grids[i][grid_rows(self, i, k)] for i, k in enumerate(counts) if k]
        return np.concatenate(parts)

    def __getitem__(self, name: str) -> np.ndarray:
        """1,000 draws by name: of a natural parameter, ``(chains, 1000, *shape)``, or a coordinate, (chains, 1000).

        The names are those of `constrain` and of `names`. Under ``store="grid"`` all points of the grid.

        Raises
        ------
        KeyError
            For another name; the text lists the names.
        """
        return self._parameter(name, self.draws(grid_size(self) or 1_000))

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

    def _pooled(self, name):
        """Draws (chains, n, k) of x, or of a parameter, and the lengths of the chains."""
        chains = max(self.chains, 1)
        most = max(min(4 * DIAGNOSTIC_DRAWS // chains, DIAGNOSTIC_NUMBERS // (chains * max(self.dim, 1))), 50)
        draws = self.draws(grid_size(self) or most)
        values = draws if name is None else self._parameter(name, draws)
        return values.reshape(*values.shape[:2], -1), [r.length for r in self.records]

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
        return pooled.quantiles(q, *self._pooled(name)).reshape((*q.shape, *self._shape(name)))

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
        values, share, weights = pooled.ordered(*self._pooled(name))
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
        return export.to_dataframe(self, (grid_size(self) or 1_000) if n is None else n, model)

    def ess(self, method: str = "mean") -> np.ndarray:
        """Effective sample size of each coordinate, all chains together, (d,).

        Parameters
        ----------
        method : str, default "mean"
            "spectral" and "batch" are var / mcse² of the exact path (see `mcse`), which no number of draws limits.
            Other methods are those of `pdmp.diagnostics.ess`, from 4,000 draws of each chain (at most as many as there
            were events in the shortest, so that of chains of unequal lengths they count too few), and from up to
            sixteen times as many if more than a fifth of the draws are effective. Under
            ``store="moments"`` only "mean" is available, from the averages over 32 to 64 stretches of the path.
        """
        if method in monte_carlo_error.METHODS:
            with np.errstate(all="ignore"):
                error = self.mcse(method=method)
                return np.where(error > 0.0, self.var() / error**2, np.nan)
        return ess_of(self, method)

    def rhat(self, method: str = "rank") -> np.ndarray:
        """R-hat of each coordinate, from the two halves of each chain, (d,).

        `method` is that of `pdmp.diagnostics.rhat`. Under ``store="moments"`` the classical R-hat, without ranks.
        """
        return rhat_of(self, method)

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
        if self.info.get("constrains", False):
            raise ValueError(
                f"the natural parameters of a {self.info['process']} are computed by its model, which a loaded run "
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
            once (`pdmp.diagnostics.stein_thin`); draws from before convergence are avoided, but shares of modes that
            lie apart are not kept, which a warning says. "time": equally spaced.
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
        n, candidates = count("n", n), count("candidates", candidates)
        check_size(f"`n` = {n:,} positions", 8.0 * n * self.dim)
        if method not in ("stein", "time"):
            raise ValueError(f'`method` must be "stein" or "time", got {method!r}.')
        if method == "time":
            return self._draws_of_all(n)
        target = getattr(self.process, "model", None) if target is None else target
        if target is None:
            raise ValueError('`method="stein"` needs gradients: give the model as `target=`.')
        of_skeleton, used = self.store == "skeleton", with_path(self)
        shares = np.array([r.length for r in used]) / sum(r.length for r in used)
        kept = np.array([int(r.counts[EVENTS]) if of_skeleton else int(r.grid.used[0]) for r in used])
        most = int(np.min((kept - 1) / shares))  # of each chain as many as it has
        x = self._draws_of_all(max(min(candidates, most), 1))
        chosen = x[stein_thin(x, scores(target, x), n, preconditioner=preconditioner)]
        with np.errstate(all="ignore"):
            off = np.nan_to_num(np.abs(chosen.mean(axis=0) - x.mean(axis=0)) / x.std(axis=0))
        j = int(np.argmax(off))
        if off[j] > max(SHIFTED, 2.0 / math.sqrt(n)):
            warn(
                f"the positions have a mean of x[{j}] of {chosen[:, j].mean():.4g}, and the draws that they are from "
                f"{x[:, j].mean():.4g} ± {x[:, j].std():.3g}: a Stein discrepancy does not see how much of the law "
                'each of several modes has. Take method="time", unless the draws are from before convergence.'
            )
        return chosen

    def save(self, path: str | os.PathLike) -> None:
        """Write the run to one file (NPZ, without pickle), which `pdmp.load` reads.

        A run that was continued since has its path alone in the file, with a warning: the states of the chains, from
        which a loaded run continues, are those of the run that `extend` returned.
        """
        arrays, records = {}, []
        for i, r in enumerate(self.records):
            records.append({name: getattr(r, name) for name in Record.NUMBERS})
            arrays |= {f"chain/{i}/{name}": getattr(r, name) for name in Record.ARRAYS}
            arrays |= {f"chain/{i}/accumulated/{name}": array for name, array in r.accumulated.items()}
            arrays |= storage.flatten(r.integrals, f"chain/{i}/integrals") | storage.flatten(r.grid, f"chain/{i}/grid")
        header = {"what": "run", "info": self.info, "records": records}
        pairs = [] if self._chains is None else zip(self._chains, self.records, strict=True)
        if not all(chain.is_at(record) for chain, record in pairs):
            warn("the run was continued since, so that its file cannot be: save the run that `extend` returned.")
        elif self._chains is not None:
            process, start, packed = self._chains[0].process, self.records[0].x[: self.dim], []
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
