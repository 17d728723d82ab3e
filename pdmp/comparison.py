"""Comparisons of samplers: equal data passes, the same starts, one reference.

`compare` runs the samplers, `reference` makes the reference, `registered` finds the samplers that this package and
others have registered, and `configured` sets them up for a target by the `recipe` of each class. The automatic sampler
and `NUTS` spend the same budget, their warm-up included.
"""

from __future__ import annotations

import csv
import importlib.util
import inspect
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pdmp.automatic import auto
from pdmp.automatic.sampling import sample
from pdmp.diagnostics.averages import effective_draws, split
from pdmp.diagnostics.effective_size import draws_ess, draws_rhat
from pdmp.engine.executors import check_executor
from pdmp.engine.result import Run
from pdmp.engine.run import extend
from pdmp.errors import SamplingError, listening, short_runs, silenced
from pdmp.gradients import Minibatch
from pdmp.models.base import Model
from pdmp.models.regressions.logistic import LogisticRegression
from pdmp.native.ahead import Ahead
from pdmp.native.arguments import count, positive, refuse_unreal, seed_number, told
from pdmp.native.messages import announcing
from pdmp.native.representation import in_columns
from pdmp.process import DATA, EVENTS, VIOLATIONS, Process
from pdmp.processes import BPS, HMC

GROUP = "pdmp.processes"  #: the entry points under which samplers register
STEP_ERROR = 0.1  #: relative error of a marginal variance at which a fixed-step sampler chooses its step
WARMUP = 0.02  #: fraction of the data passes that no estimate uses
POINTS = 14  #: number of points of the curve of the error against the data passes
DRAWS = 1_000  #: number of draws of each chain that are kept for pictures
LARGEST_RHAT = 1.01  #: largest R-hat of a reference
LARGEST_Z = 5.0  #: largest difference of the two samplers of a reference, in standard errors
LARGEST_BIAS = 0.1  #: of a mean in posterior sds, and of an sd relative to it: what is off by more is biased
BIAS_Z = 4.0  #: if it is also off by more than so many standard errors
RESOLVED = 0.1  #: largest Monte Carlo error of a mean, in posterior sds, at which a sampler is judged
SAME_LAW = 1e-3  #: relative difference of what the potentials of one posterior grow by, written in two ways
JUDGED_RHAT = 1.05  #: largest R-hat at which it is


# ---------------------------------------------------------------------------------------------------------------
# Which samplers, and how they are set up


def registered() -> dict[str, type[Process]]:
    """Sampler classes by name: the entry points of the group ``pdmp.processes`` of all installed packages.

    Samplers that need only a model, and sample its law, are registered. Those that are not: `pdmp.Bounded`, which needs
    a process and walls, and the sticky processes, whose law has atoms at 0, so that the reference would be wrong.

    Returns
    -------
    dict of str to class

    Examples
    --------
    >>> from pdmp.comparison import registered
    >>> "ZigZag" in registered()
    True
    """
    from importlib import metadata

    return {point.name: point.load() for point in sorted(metadata.entry_points(group=GROUP))}


def configured(
    model: Model, mode: np.ndarray, samplers: dict[str, type[Process]] | None = None, size: int | None = None
) -> dict[str, Process]:
    """Processes for a comparison on `model`, by label.

    Each class is set up by its own `pdmp.interfaces.Recipe`. A fixed-step sampler takes the largest step at which no
    marginal variance of its stationary law, predicted at the mode, has a relative error above 10 %.

    Parameters
    ----------
    model : Model
    mode : ndarray, shape (d,)
        Its mode.
    samplers : dict of str to class, optional
        As returned by `registered`; by default those whose recipes are `featured`.
    size : int, optional
        Size of the mini-batches, drawn without replacement; by default a tenth of the data, from 20 to 500.

    Returns
    -------
    dict of str to Process

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> from pdmp.comparison import configured
    >>> X = np.random.default_rng(0).standard_normal((100, 2))
    >>> model = pdmp.models.LogisticRegression(X, X[:, 0] > 0.0, prior_scale=1.0)
    >>> list(configured(model, model.mode(), {"ZigZag": pdmp.ZigZag, "BPS": pdmp.BPS}))
    ['ZigZag', 'BPS']
    """
    if size is None:
        size = min(max(model.n_data // 10, 20), 500, model.n_data)
    batch = Minibatch(model, size=size, draw="distinct")
    found = {}
    if samplers is None:
        samplers = {name: cls for name, cls in registered().items() if cls.recipe.featured}
    for cls in samplers.values():
        found |= cls.recipe.processes(cls, model, batch, mode, STEP_ERROR)
    # Continuous-time samplers first; sorting keeps the order within each kind.
    return dict(sorted(found.items(), key=lambda item: item[1].flow.kind == "constant"))


class NUTS:
    """The No-U-Turn sampler of nutpie with its defaults, as a row of a comparison.

    Each call of potential and gradient counts, those of the warm-up too. It goes through Python, so that the seconds of
    this row say little.

    Parameters
    ----------
    model : Model
        The target.

    Raises
    ------
    ImportError
        If nutpie is not installed.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.Banana()
    >>> rows = {"auto": model, "NUTS": pdmp.comparison.NUTS(model)}      # doctest: +SKIP
    >>> table = pdmp.compare(rows, data_passes=5_000)                    # doctest: +SKIP
    """

    def __init__(self, model: Model) -> None:
        try:
            import nutpie  # noqa: F401 - that it is there
        except ImportError:
            raise ImportError("`NUTS` needs nutpie: pip install 'pdmp[nutpie]'.") from None
        self.model = model

    def run(self, initial: np.ndarray, gradients: float, seed: int) -> tuple[list[np.ndarray], list[np.ndarray], float]:
        """Chains from `initial` (chains, d) until each has spent so many gradients.

        Draws (n, d) of each chain after its warm-up, as many as the gradients suffice for; how many gradients it had
        spent at each of them, (n,); and the seconds of one chain, on average.
        """
        draws, spent, seconds = [], [], 0.0
        for k, start in enumerate(initial):
            count = 200
            while True:
                began = perf_counter()
                x, used = self._chain(start, count, seed + k)
                if used[-1] >= gradients:
                    break
                # The same chain again, longer.
                each = max((used[-1] - used[0]) / (count - 1), 1.0)
                count = max(2 * count, math.ceil(1.1 * (gradients - used[0]) / each))
            seconds += perf_counter() - began
            enough = int(np.searchsorted(used, gradients, side="right"))
            draws.append(x[:enough])
            spent.append(used[:enough])
        return draws, spent, seconds / len(initial)

    def _chain(self, start, count, seed):
        """So many draws (count, d) after the warm-up, and the gradients spent at each of them."""
        import nutpie
        from nutpie.compiled_pyfunc import from_pyfunc

        model, calls = self.model, []

        def make_density():
            def density(x):
                calls.append(None)
                return -model.potential(x), -model.gradient(x)

            return density

        def make_expansion(*_):
            return lambda x, *_: {"x": np.array(x)}

        compiled = from_pyfunc(
            model.dim,
            make_density,
            make_expansion,
            [np.dtype(float)],
            [(model.dim,)],
            ["x"],
            make_initial_point_fn=lambda seed: np.array(start),
        )
        with silenced():
            try:
                found = nutpie.sample(compiled, draws=count, chains=1, cores=1, seed=seed % 2**32, progress_bar=False)
            except RuntimeError as error:
                raise SamplingError(f"nutpie: {str(error).partition(chr(10))[0]}") from error
        after = np.asarray(found.sample_stats["n_steps"])[0]
        return np.asarray(found.posterior["x"])[0], len(calls) - after.sum() + np.cumsum(after)


def extra_rows(model: Model) -> dict[str, Model | NUTS]:
    """The automatic sampler, and `NUTS` if nutpie is installed, by label; as `compare` takes them."""
    found: dict[str, Model | NUTS] = {"auto": model}
    if importlib.util.find_spec("nutpie") is not None:
        found["NUTS"] = NUTS(model)
    return found


# ---------------------------------------------------------------------------------------------------------------
# The reference


@dataclass(frozen=True)
class Reference:
    """Moments and draws of a target, with which samplers are compared.

    Attributes
    ----------
    mean, sd : ndarray, shape (d,)
    cov : ndarray, shape (d, d)
    draws : ndarray, shape (n, d)
    rhat, ess : float
        Largest R-hat and smallest effective sample size of any coordinate.
    max_z : float
        Largest difference between the means of two samplers, in standard errors of the difference; NaN if there is
        only one.
    text : str
        How it was made, in one line.
    sd_ess : float
        Smallest effective sample size of a standard deviation; NaN: a quarter of `ess`, as `pdmp.reference` demands.

    Examples
    --------
    >>> import pdmp
    >>> truth = pdmp.reference(pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0]), ess=100, seed=1)
    >>> truth.draws.shape[1], truth.ess >= 100.0
    (2, True)
    """

    mean: np.ndarray
    sd: np.ndarray
    cov: np.ndarray
    draws: np.ndarray
    rhat: float
    ess: float
    max_z: float = math.nan
    text: str = ""
    sd_ess: float = math.nan


def _silent(text):
    pass


def reference(
    model: Model,
    *,
    ess: float = 3_000,
    seed: int = 0,
    chains: int = 4,
    mode: np.ndarray | None = None,
    executor: Any | None = None,
    say: Callable[[str], object] | None = None,
) -> Reference:
    r"""Moments and draws of a target from a long run of an exact sampler, checked against another one.

    Hamiltonian Monte Carlo runs until R-hat < 1.01 and the effective sample size is at least `ess` for every mean and
    `ess` / 4 for every standard deviation. The Bouncy Particle Sampler, which has no step and no acceptance in common
    with it, then runs until its effective sample sizes are a quarter of these, and the means of the two must agree.

    A logistic regression is sampled in coordinates z in which its posterior is nearly standard normal: θ = V z with
    VᵀHV = I and VᵀPV = Λ diagonal (a generalised eigenproblem), H the Hessian at the mode and P the prior's precision.
    In z the model is exactly the logistic regression on the features XV with independent priors N(0, 1/Λ).

    Parameters
    ----------
    model : Model
    ess : float, default 3000
        Smallest effective sample size of the means.
    seed : int, default 0
    chains : int, default 4
        Their starts are over-dispersed: normal around the mode, with twice the standard deviation of the posterior.
    mode : ndarray, shape (d,), optional
        The mode, if it is known.
    executor : concurrent.futures.Executor, distributed.Client or ray.util.multiprocessing.Pool, optional
        Where the chains run, as in `pdmp.sample`.
    say : callable, optional
        Called with messages on the progress, each a str.

    Returns
    -------
    Reference

    Raises
    ------
    SamplingError
        If a sampler did not converge, or the two disagree.
    ValueError
        If no mode of the model was found.

    Examples
    --------
    >>> import pdmp
    >>> reference = pdmp.reference(model, ess=1_000)  # doctest: +SKIP
    """
    if not isinstance(model, Model):
        raise TypeError(f"`model` must be a model, got {told(model)}; of a function, `pdmp.models.from_function`.")
    ess, chains = positive("ess", ess), count("chains", chains)
    say, executor = say or _silent, check_executor(executor)
    return _reference(model, ess, seed, chains, _mode(model, mode), executor, say)


def _reference(model, ess, seed, chains, mode, executor, say, compiling=None):
    """`reference`, its arguments checked; `compiling` is called when something begins to compile."""
    hessian = model.hessian(mode)
    target, V = model, np.eye(model.dim)
    whitened = isinstance(model, LogisticRegression)
    if whitened:
        target, V = _whitened(model, hessian)
        start = np.linalg.solve(V, mode)
        spread = np.eye(model.dim)
    else:
        start, spread = mode, np.linalg.cholesky(np.linalg.inv(hessian))
    seed = seed_number("seed", seed)
    rng = np.random.default_rng(seed)
    starts = start + 2.0 * rng.standard_normal((chains, model.dim)) @ spread.T
    first = HMC(target, metric=np.eye(model.dim) if whitened else hessian)  # dense: as `auto` has it, compiled once
    one = _long_enough(first, starts, ess, seed, executor, say, compiling)
    # On a standard normal, half the rate of the bounces: with fewer refreshments |x| mixes slowly, and so do the
    # standard deviations.
    second = BPS(target, refresh_rate=0.2) if whitened else BPS(target)
    two = _long_enough(second, starts, ess / 4, seed + 1, executor, say, compiling)
    standard_error = np.sqrt(one.var() / one.ess() + two.var() / two.ess())
    # In the sampler's coordinates, which are nearly independent: the maximum of d nearly independent z values.
    max_z = float(np.max(np.abs(one.mean() - two.mean()) / standard_error))
    rhat, smallest = float(np.max(one.rhat())), float(np.min(one.ess()))
    text = (
        f"{type(first).__name__} in {chains} chains of {one.stats['data_passes'] / chains:,.0f} data passes, "
        f"R-hat {rhat:.3f}, min ESS {smallest:,.0f}; {type(second).__name__} agrees: max |z| = {max_z:.1f}"
    )
    if not max_z < LARGEST_Z:
        raise SamplingError(f"The two exact samplers of the reference disagree: max |z| = {max_z:.1f}.", run=one)
    if two.stats["bound_violations"]:
        text += f"; {two.stats['bound_violations']} bound violations of {type(second).__name__}"
    cov = V @ one.cov() @ V.T
    draws = one.draws(min(4_000, max(int(ess / chains), 250))).reshape(-1, model.dim) @ V.T
    return Reference(V @ one.mean(), np.sqrt(np.diag(cov)), cov, draws, rhat, smallest, max_z, text)


def _whitened(model, hessian):
    """The same posterior in coordinates z, θ = Vz, in which the Hessian at the mode is the identity; and V."""
    from scipy import linalg

    prior, V = linalg.eigh(np.diag(model.precision), hessian)
    with np.errstate(divide="ignore"):
        scale = 1.0 / np.sqrt(np.maximum(prior, 0.0))
    return LogisticRegression(model.X @ V, model.y, prior_scale=scale), V


def _mode(model, mode):
    mode = model.mode() if mode is None else np.asarray(mode, float)
    if mode is None:
        raise ValueError(f"no mode of {type(model).__name__} was found; give `reference=` and `initial=`.")
    return mode


def _long_enough(process, starts, ess, seed, executor, say, compiling=None):
    """Double the run until it has converged and has `ess` effective draws of each mean."""
    _prepare(process, starts[0], f"reference, {type(process).__name__}", say, compiling)
    proposals = 2_000
    run = None
    for _ in range(12):
        options = {"initial": starts, "chains": len(starts), "seed": seed, "progress": False, "executor": executor}
        # The warm-up is that of the first attempt.
        with short_runs():
            run = (
                sample(process, proposals=proposals, warmup=0.2, **options)
                if run is None
                else extend(run, proposals=proposals, executor=executor)
            )
        rhat, mean_ess = float(np.max(run.rhat())), float(np.min(run.ess()))
        say(
            f"reference, {type(process).__name__}: {proposals:,} proposals a chain, "
            f"R-hat {rhat:.3f}, min ESS {mean_ess:,.0f}"
        )
        if rhat < LARGEST_RHAT and mean_ess >= ess and float(np.min(run.ess("sd"))) >= ess / 4:
            return run
        proposals *= 2
    raise SamplingError(
        f"The reference did not converge: R-hat {rhat:.3f}, min ESS {mean_ess:.0f} after {proposals // 2:,} proposals "
        f"of {type(process).__name__} in each chain; give `reference=` a run of your own.",
        run=run,
    )


def as_reference(given, dim):
    """The `Reference` itself, or one made from a run."""
    if isinstance(given, Run):
        if given.dim != dim:
            raise ValueError(f"`reference` has dimension {given.dim}, the target {dim}.")
        rhat, ess = float(np.max(given.rhat())), float(np.min(given.ess()))
        sd_ess = float(np.min(effective_draws(given, of=["sd"])["sd"]))
        _check_known(ess, sd_ess)
        draws = given.draws(min(DRAWS, int(given.events.min()))).reshape(-1, dim)
        text = f"the run given, R-hat {rhat:.3f}, min ESS {ess:,.0f}"
        return Reference(given.mean(), given.sd(), given.cov(), draws, rhat, ess, text=text, sd_ess=sd_ess)
    if not isinstance(given, Reference):
        raise TypeError(
            "`reference` must be what pdmp.reference(model) returns, or the Run of a sampler that is to be the "
            f"reference, got {type(given).__name__}."
        )
    if given.mean.shape != (dim,):
        raise ValueError(f"`reference` has dimension {len(given.mean)}, the target {dim}.")
    _check_known(given.ess)
    return given


def _check_same_law(given, model, truth):
    """Raise a `ValueError` if a run is of another posterior than the target, by a difference of their potentials."""
    other = getattr(given.process, "model", None) if isinstance(given, Run) else None
    if other is None or other is model:
        return
    x, y = truth.mean, truth.mean + truth.sd
    values = np.array([[one.potential(y), one.potential(x)] for one in (other, model)])
    with np.errstate(invalid="ignore"):  # both infinite, where nothing is said
        theirs, ours = values[:, 0] - values[:, 1]
    if abs(theirs - ours) > SAME_LAW * (1.0 + abs(theirs) + abs(ours) + 1e-3 * np.abs(values).max()):
        raise ValueError(
            f"`reference` is a run of another posterior: from its mean to an sd beyond its U grows by {theirs:.6g}, "
            f"and that of the target by {ours:.6g}."
        )


def _check_known(*effective):
    """Raise a `ValueError` unless effective draws are known: nothing can be judged by what may be off by anything."""
    if not all(ess > 0.0 for ess in effective):
        raise ValueError("`reference` has too few draws to say how many effective ones they are: sample longer.")


# ---------------------------------------------------------------------------------------------------------------
# The comparison


@dataclass(frozen=True)
class Path:
    """The beginning of one chain's path, for a picture."""

    positions: np.ndarray  #: (K, d) positions at events, and on ellipses also between them
    passes: np.ndarray  #: (K,) data passes from the start to each position
    events: np.ndarray  #: those of the `passes` at which there was an event
    kind: str  #: "linear", "elliptic" or "constant"


WORDS = ("fine", "too short", "biased", "failed")  #: from the best to the worst


class Verdict(NamedTuple):
    """What a comparison says of a sampler."""

    word: str  #: one of `WORDS`
    reason: str


def _seconds(value):
    """A time with two decimals, or with as many more as two significant digits need."""
    digits = 1 - math.floor(math.log10(value)) if value > 0.0 else 2
    return f"{value:.{min(max(digits, 2), 9)}f}"


@dataclass
class Comparison:
    """The result of `compare`; prints as a table, the worst sampler last, and a line for each.

    Attributes
    ----------
    rows : list of dict
        One for each sampler, with the keys `COLUMNS`, as ``pandas.DataFrame`` takes them. Averages over the chains.
    errors_by_pass : dict of str to (ndarray, ndarray)
        For each sampler numbers of data passes (m,), and the errors of the means of one chain after them (m,), in
        posterior standard deviations, averaged over coordinates and chains.
    reference : Reference
    names : list of str
        Names of the coordinates.
    draws : dict of str to ndarray, shape (chains, n, d)
    paths : dict of str to Path
    title : str
    notes : list of str
    verdicts : dict of str to Verdict
        Of all chains together: "too short" if R-hat is above 1.05, the Monte Carlo error of a mean is above 0.1
        posterior sds, or the warm-up has spent the budget; "biased" if a mean is off by more than 0.1 posterior sds,
        or an sd by more than 10 %, and by more than four standard errors; else "fine". A bias that is certain counts
        before a Monte Carlo error.
    rms_by_pass : dict of str to (ndarray, ndarray)
        As `errors_by_pass`, with root mean square errors over coordinates and chains.

    Examples
    --------
    >>> import pdmp
    >>> processes = {"BPS": pdmp.BPS(model), "Zig-Zag": pdmp.ZigZag(model)}  # doctest: +SKIP
    >>> table = pdmp.compare(processes, data_passes=500, seed=1)  # doctest: +SKIP
    >>> table.rows[0]["sampler"]  # doctest: +SKIP
    'BPS'
    """

    rows: list[dict]
    errors_by_pass: dict[str, tuple[np.ndarray, np.ndarray]]
    reference: Reference
    names: list[str]
    draws: dict[str, np.ndarray] = field(repr=False)
    paths: dict[str, Path] = field(repr=False)
    title: str = ""
    notes: list[str] = field(default_factory=list)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    rms_by_pass: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict, repr=False)

    #: for each key its heading, its unit and its format
    COLUMNS = {
        "sampler": ("sampler", "", "{}"),
        "data_passes": ("passes", "of data", "{:,.0f}"),
        "seconds": ("time", "s", _seconds),
        "events": ("events", "number", "{:,.0f}"),
        "bound_violations": ("violations", "number", "{:,.0f}"),
        "min_ess": ("min ESS", "draws", "{:,.0f}"),
        "median_ess": ("med ESS", "draws", "{:,.0f}"),
        "ess_per_pass": ("ESS/pass", "draws", "{:.3g}"),
        "mean_error": ("mean err", "post. sd", "{:.3f}"),
        "max_mean_error": ("max", "post. sd", "{:.3f}"),
        "sd_error": ("sd err", "relative", "{:.3f}"),
        "log_loss": ("log-loss", "nats", "{:.4f}"),
        "setting": ("setting", "", "{}"),
    }

    def __repr__(self):
        lines = self.cells()
        left = {k for k, heading in enumerate(lines[0]) if heading in ("sampler", "verdict", "setting")}
        title = [self.title] if self.title else []
        return "\n".join([*title, *in_columns(lines, left), *self.verdict_lines(), *self.notes])

    def ranked(self) -> list[dict]:
        """The rows by verdict, the fine ones first and those that failed last, and by their mean errors."""

        def place(row):
            verdict, error = self.verdicts.get(row["sampler"]), row["mean_error"]
            return (-1 if verdict is None else WORDS.index(verdict.word), math.isnan(error), error)

        return sorted(self.rows, key=place)

    def cells(self) -> list[list[str]]:
        """The table as text: headings, units, and the rows as `ranked`; a list of lists, without empty columns."""
        lines = [[part[k] for part in self.COLUMNS.values()] for k in range(2)]
        for row in self.ranked():
            lines.append([_form(form, row[key]) for key, (_, _, form) in self.COLUMNS.items()])
        if self.verdicts:
            words = ["verdict", "", *(self.verdicts[row["sampler"]].word for row in self.ranked())]
            lines = [[line[0], word, *line[1:]] for line, word in zip(lines, words, strict=True)]
        keep = [k for k in range(len(lines[0])) if any(line[k] for line in lines[2:])]
        return [[line[k] for k in keep] for line in lines]

    def verdict_lines(self) -> list[str]:
        """A line for each sampler: what to think of it, and why; a list of str."""
        labels = [row["sampler"] for row in self.ranked()]
        return [f"{label}: {'{} ({})'.format(*self.verdicts[label])}" for label in labels if label in self.verdicts]

    def to_dict(self) -> dict[str, Any]:
        """Title, rows with their verdicts, reference and notes as plain values, NaN as None, for JSON."""
        rows = []
        for row in self.ranked():
            plain = {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()}
            verdict = self.verdicts.get(row["sampler"])
            rows.append(plain | ({} if verdict is None else {"verdict": verdict.word, "reason": verdict.reason}))
        about = {"text": self.reference.text, "rhat": self.reference.rhat, "ess": self.reference.ess}
        return {"title": self.title, "rows": rows, "reference": about, "names": list(self.names), "notes": self.notes}

    def to_csv(self, path: str | os.PathLike) -> None:
        """Write the rows to a CSV file, at full precision."""
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(self.COLUMNS))
            writer.writeheader()
            writer.writerows(self.rows)


def _form(form, value):
    if isinstance(value, float) and math.isnan(value):
        return "-"
    return form(value) if callable(form) else form.format(value)


def compare(
    processes: Mapping[str, Process | Model | NUTS],
    *,
    data_passes: float,
    reference: Reference | Run | float | None = None,
    seed: int | None = None,
    chains: int = 4,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    initial: ArrayLike | None = None,
    warmup: float = WARMUP,
    names: Sequence[str] | None = None,
    title: str = "",
    executor: Any | None = None,
    say: Callable[[str], object] | None = None,
) -> Comparison:
    """Run several samplers of one target for equal data passes and compare them with a reference.

    Parameters
    ----------
    processes : dict of str to Process, Model or NUTS
        The samplers by label, all with the same target. A model stands for the automatic sampler, `pdmp.auto`. Its
        warm-up and that of `NUTS` count as data passes, and are no part of the estimates.
    data_passes : float
        For each chain of each sampler; an exact gradient costs one.
    reference : Reference, Run or float, optional
        By default ``pdmp.reference(model)``; a number is its effective draws: ``pdmp.reference(model, ess=reference,
        seed=seed)``.
    seed : int, optional
    chains : int, default 4
        The table gives averages over chains, each measured by itself.
    test : (array_like, array_like), optional
        Held-out features (n, d) and labels (n,), for models with a method ``predict``.
    initial : array_like, shape (d,) or (chains, d), optional
        Where all samplers start; by default at draws from the normal approximation at the mode.
    warmup : float, default 0.02
        Fraction of the data passes that is left out.
    names : sequence of str, optional
        Names of the coordinates.
    title : str, default ""
        First line of the table.
    executor : concurrent.futures.Executor, distributed.Client or ray.util.multiprocessing.Pool, optional
        Where the chains run, those of the reference too, as in `pdmp.sample`.
    say : callable, optional
        Called with messages on the progress, each a str.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError, TypeError
        For an invalid argument, before anything runs.
    SamplingError
        If the reference fails. A sampler that fails has a row of NaN and a note.

    See Also
    --------
    pdmp.reference : The long run that errors are measured by.
    pdmp.plots.compare : Draws what is returned.

    Examples
    --------
    >>> import numpy as np
    >>> import pdmp
    >>> rng = np.random.default_rng(0)
    >>> model = pdmp.models.LogisticRegression(rng.standard_normal((50, 2)), rng.integers(0, 2, 50), prior_scale=1.0)
    >>> found = pdmp.sample(pdmp.BPS(model), data_passes=400, chains=2, seed=1)
    >>> table = pdmp.compare({'Zig-Zag': pdmp.ZigZag(model)}, data_passes=50, chains=2, reference=found, seed=1)
    >>> len(table.rows)
    1
    """
    say, executor = say or _silent, check_executor(executor)
    model = _common_target(processes)
    if not (isinstance(data_passes, (int, float, np.number)) and 0.0 < data_passes < math.inf):
        raise ValueError(f"`data_passes` must be positive and finite, got {data_passes!r}.")
    seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed_number("seed", seed)
    names = [f"x[{j}]" for j in range(model.dim)] if names is None else [str(n) for n in names]
    if len(names) != model.dim:
        raise ValueError(f"`names` must be {model.dim} names, one for each coordinate, got {len(names)}.")
    test = _check_test(test, model)
    truth, ess, first_seed = None, 3_000, 0
    if isinstance(reference, (int, float, np.number)):
        ess, first_seed = positive("reference", reference), seed
    elif reference is not None:
        truth = as_reference(reference, model.dim)
        _check_same_law(reference, model, truth)
    if initial is None:
        mode = _mode(model, None)
        z = np.random.default_rng([seed, 1]).standard_normal((chains, model.dim))
        initial = mode + z @ np.linalg.cholesky(np.linalg.inv(model.hessian(mode))).T
    else:
        refuse_unreal("initial", initial)
        initial, mode = np.array(initial, float), None
        if initial.shape not in ((model.dim,), (chains, model.dim)):
            raise ValueError(
                f"`initial` must have shape ({model.dim},) or ({chains}, {model.dim}), got {initial.shape}."
            )
    start = initial if initial.ndim == 1 else initial[0]
    rows, errors, draws, paths, verdicts, rms, notes = [], {}, {}, {}, {}, {}, []
    extra = any(not isinstance(process, Process) for process in processes.values())
    with Ahead(_prepare, {label: (processes[label], start) for label in _from_behind(processes)}) as ahead:
        if truth is None:
            truth = _reference(model, ess, first_seed, 4, _mode(model, mode), executor, say, ahead.begin)
        try:
            for label, process in processes.items():
                ahead.wait(label, lambda text, label=label: say(f"{label}: {text}"))
                _prepare(process, start, label, say, ahead.begin)
                say(f"{label}: {data_passes:,.0f} data passes in {chains} chains")
                spent, discarded, began, run = 0.0, warmup, perf_counter(), None
                try:
                    with listening() as said:
                        if isinstance(process, NUTS):
                            points = np.broadcast_to(initial, (chains, model.dim))
                            chained = process.run(points, data_passes, seed)
                            found = _of_draws(label, *chained, data_passes, truth, model, test, names)
                        else:
                            if isinstance(process, Model):
                                process = auto(process, chains=chains, seed=seed, initial=initial)
                                spent, discarded = process.prepared.gradients / chains, 0.0
                                if spent >= data_passes:
                                    told = f"takes {spent:,.0f} data passes, and there are {data_passes:,.0f}"
                                    raise _OnlyWarmup(f"the warm-up alone {told}")
                            prepared = perf_counter() - began if spent else 0.0
                            run = sample(
                                process,
                                initial=None if spent else initial,
                                data_passes=data_passes - spent,
                                warmup=discarded,
                                chains=chains,
                                seed=seed,
                                covariance=False,
                                progress=False,
                                executor=executor,
                            )
                    if run is not None:
                        notes += [f"{label}: {text}" for text in said]
                        if any(record.length <= 0.0 for record in run.records):
                            raise _OnlyWarmup("there is no path after the warm-up; give it more data passes")
                        row = _row(label, process, run, truth, model, test, spent, prepared)
                        at, mean, root = _errors_by_pass(run, truth, discarded, spent)
                        verdict = _verdict_of_run(run, truth, names)
                        found = row, (at, mean), run.draws(DRAWS), _stretch(run), verdict, (at, root)
                except SamplingError as error:
                    if error.run is not None and error.chain is None:  # not this sampler has failed: where it ran has
                        raise
                    rows.append(_failed(label, process))
                    if isinstance(error, _OnlyWarmup):
                        verdicts[label] = Verdict("too short", str(error))
                    else:
                        notes.append(f"{label} failed: {error}")
                        verdicts[label] = Verdict("failed", "see below")
                else:
                    for part, value in zip((rows, errors, draws, paths, verdicts, rms), found, strict=True):
                        part.append(value) if isinstance(part, list) else part.update({label: value})
                if run is not None and len(run.copies) > 1 and label in paths:
                    notes.append(
                        f"{label}: mean, sd and log-loss are extrapolated; ESS, draws and path are its fine chain's."
                    )
                if run is not None and run.stopped == "interrupted":
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            if not rows:
                raise
            left = [label for label in processes if label not in verdicts]
            notes.append(f"The comparison was interrupted; left out: {', '.join(left) or 'nothing'}.")
    floor = math.sqrt(2.0 / math.pi / truth.ess)
    notes.insert(0, f"reference: {truth.text}; mean err {floor:.3f}")
    notes += [
        f"All numbers are for one chain: averages over {chains}, {100 * warmup:g} % of each left out as warm-up.",
        *(["Warm-ups of auto and NUTS count among their passes."] if extra else []),
        "mean err: |error of the mean| / posterior sd, mean over the coordinates; max: the largest; sd err: likewise",
        "|sd / posterior sd - 1|. ESS counts how often a sampler's own law was seen; it does not know of bias.",
        f"Verdicts, on all chains together. biased: a mean off by over {LARGEST_BIAS:g} posterior sd, or an sd by over",
        f"{100 * LARGEST_BIAS:g} %, and by {BIAS_Z:g} standard errors; "
        f"too short: R-hat above {JUDGED_RHAT:g}, or a mean with a Monte Carlo error above {RESOLVED:g} posterior sd.",
    ]
    return Comparison(rows, errors, truth, names, draws, paths, title, notes, verdicts, rms)


class _OnlyWarmup(SamplingError):
    """A budget that the warm-up spends is too small for a sampler; nothing has failed."""


def _from_behind(processes):
    """Labels in the order in which other processes are to compile, while this one comes from the front.

    First what the reference needs second, last what it needs first: HMC, the sampler of models.
    """

    def place(label):
        return isinstance(processes[label], Model), not isinstance(processes[label], BPS)

    return sorted(reversed(processes), key=place)


def _prepare(process, start, label="", say=_silent, compiling=None):
    """Compile what `process` needs; if that is not on disk, say so, and call `compiling`."""
    if isinstance(process, NUTS):
        return

    def announced(text):
        say(f"{label}: {text}")
        if compiling is not None:
            compiling()

    try:
        with silenced(UserWarning), announcing(announced):  # `compare` will report it
            if isinstance(process, Model):
                process, start = auto(process, chains=1, seed=0, initial=start), None
            sample(process, initial=start, events=1, progress=False, covariance=False, seed=0)
    except SamplingError:
        pass  # `compare` will report it


def _common_target(processes):
    if not isinstance(processes, dict) or not processes:
        raise TypeError(f"`processes` must be a dict of label to process, got {processes!r}.")
    models = []
    for label, process in processes.items():
        if isinstance(process, Model):
            models.append(process)
            continue
        if not isinstance(process, (Process, NUTS)):
            what = f"the class {process.__name__}" if inspect.isclass(process) else type(process).__name__
            raise TypeError(f"`processes`: {label!r} must be a process such as pdmp.ZigZag(model), got {what}.")
        if process.model is None:
            raise TypeError(f"`processes`: {label!r} has no target.")
        models.append(process.model)
    if any(m is not models[0] for m in models):
        label = next(n for n, m in zip(processes, models, strict=True) if m is not models[0])
        raise ValueError(
            f"`processes` must have the same target: {label!r} has another one than {next(iter(processes))!r}."
        )
    return models[0]


def _check_test(test, model):
    if test is None:
        return None
    if not hasattr(model, "predict"):
        raise TypeError(f"`test` needs a model with `predict`; {type(model).__name__} has none.")
    X, y = np.asarray(test[0], float), np.asarray(test[1], float)
    if X.ndim != 2 or X.shape[1] != model.dim or y.shape != (len(X),):
        raise ValueError(f"`test` must be features (n, {model.dim}) and labels (n,), got {X.shape} and {y.shape}.")
    return X, y


def _row(label, process, run, truth, model, test, spent=0.0, prepared=0.0):
    """The row of a run; `spent` data passes of a chain, and `prepared` seconds, went before it."""
    chains = run.chains
    with silenced(UserWarning):  # an extrapolated variance below zero counts as zero
        means = np.array([one.mean() for one in split(run)])
        sds = np.array([np.sqrt(np.maximum(one.var(), 0.0)) for one in split(run)])
    passes = run.stats["data_passes"] / chains + spent
    setting = process.recipe.setting(process)
    return {
        "sampler": label,
        "data_passes": passes,
        "seconds": run.stats["seconds"] / chains + prepared,
        "events": float(np.mean([r.counts[EVENTS] for r in run.records])),
        "bound_violations": float(np.mean([r.counts[VIOLATIONS] for r in run.records])),
        **_scores(means, sds, run.ess() / chains, passes, truth),
        "log_loss": math.nan if test is None else _log_loss(run, model, test),
        "setting": f"{type(process).__name__}, {setting}" if spent else setting,
    }


def _scores(means, sds, ess, passes, truth):
    """How near means and sds (chains, d) are to the truth, and the effective draws (d,) of a chain."""
    errors = np.abs(means - truth.mean) / truth.sd
    return {
        "min_ess": float(np.min(ess)),
        "median_ess": float(np.median(ess)),
        "ess_per_pass": float(np.min(ess)) / passes,
        "mean_error": float(errors.mean()),
        "max_mean_error": float(errors.max(axis=1).mean()),
        "sd_error": float(np.abs(sds / truth.sd - 1.0).mean()),
    }


def _verdict_of_run(run, truth, names):
    with silenced(UserWarning):  # an extrapolated variance below zero
        sd_draws = effective_draws(run, of=["sd"])["sd"]
        return _verdict(run.mean(), run.sd(), run.mcse(), sd_draws, run.rhat(), truth, names)


def _verdict(mean, sd, error, sd_ess, rhat, truth, names):
    """The verdict on means, sds, standard errors of the means, effective draws of the sds and R-hats, each (d,)."""
    with np.errstate(all="ignore"):
        off = np.array([np.abs(mean - truth.mean) / truth.sd, np.abs(sd / truth.sd - 1.0)])
        own = np.array([error / truth.sd, np.sqrt(0.5 / sd_ess)])
        # The reference's own errors too.
        sd_ess = 0.25 * truth.ess if math.isnan(truth.sd_ess) else truth.sd_ess
        z = off / np.sqrt(own**2 + [[1.0 / truth.ess], [0.5 / sd_ess]])
    worst = int(np.argmax(np.nan_to_num(rhat, nan=np.inf)))
    if not rhat[worst] <= JUDGED_RHAT:
        return Verdict("too short", f"R-hat of {names[worst]} is {rhat[worst]:.3g}")
    unknown = np.flatnonzero(np.isnan(sd))
    if len(unknown):
        return Verdict("too short", f"the extrapolated variance of {names[unknown[0]]} is negative")
    certain = np.where((z > BIAS_Z) & (off > LARGEST_BIAS), off, 0.0)
    what, k = np.unravel_index(np.argmax(certain), certain.shape)
    if certain[what, k] > 0.0:
        size = f"{off[0, k]:.2g} posterior sd" if what == 0 else f"{100 * off[1, k]:.0f} %"
        name = f"the {'mean' if what == 0 else 'sd'} of {names[k]}"
        return Verdict("biased", f"{name} is off by {size}, {z[what, k]:.0f} standard errors")
    worst = int(np.argmax(np.nan_to_num(own[0], nan=np.inf)))
    if not own[0, worst] <= RESOLVED:
        size = f"{own[0, worst]:.2g} posterior sd"
        return Verdict("too short", f"the mean of {names[worst]} has a Monte Carlo error of {size}")
    return Verdict(
        "fine",
        f"means off by at most {off[0].max():.2g} posterior sd, sds by {100 * off[1].max():.0f} %; "
        f"largest Monte Carlo error of a mean {own[0].max():.2g} posterior sd",
    )


def _of_draws(label, draws, spent, seconds, data_passes, truth, model, test, names):
    """Row, errors by pass, draws, path, verdict and root mean square errors of chains of draws.

    `spent` has the gradients that had been spent at each draw.
    """
    least = min(len(x) for x in draws)
    if least < 4:
        raise _OnlyWarmup(f"the warm-up alone takes nearly all of the {data_passes:,.0f} data passes")
    passes = float(np.mean([used[-1] for used in spent]))
    means, sds = (np.array([getattr(np, name)(x, axis=0) for x in draws]) for name in ("mean", "std"))
    thinned = np.array([x[np.linspace(0, len(x) - 1, min(DRAWS, least)).astype(int)] for x in draws])
    row = dict.fromkeys(Comparison.COLUMNS, math.nan) | {
        "sampler": label,
        "data_passes": passes,
        "seconds": seconds,
        "events": float(np.mean([len(x) for x in draws])),
        **_scores(means, sds, np.mean([draws_ess(x[None], "mean") for x in draws], axis=0), passes, truth),
        "log_loss": math.nan if test is None else _log_loss_of_draws(thinned[:, -500:], model, test),
        "setting": "nutpie",
    }
    counts = np.unique(np.geomspace(1, least, POINTS).astype(int))
    off = np.array([[(x[:n].mean(axis=0) - truth.mean) / truth.sd for x in draws] for n in counts])
    at = np.array([np.mean([used[n - 1] for used in spent]) for n in counts])
    first = spent[0][:4_000].astype(float)
    path = Path(draws[0][:4_000], first - first[0], first - first[0], "constant")
    x = np.array([x[:least] for x in draws])
    pooled, sd = x.mean(axis=(0, 1)), x.std(axis=(0, 1))
    ess, sd_ess = (draws_ess(x, method) for method in ("mean", "sd"))
    verdict = _verdict(pooled, sd, sd / np.sqrt(ess), sd_ess, draws_rhat(x, "rank"), truth, names)
    root = np.sqrt(np.mean(off**2, axis=(1, 2)))
    return row, (at, np.abs(off).mean(axis=(1, 2))), thinned, path, verdict, (at, root)


def _failed(label, process):
    set_up = isinstance(process, Process) and process.prepared.choice is None
    setting = process.recipe.setting(process) if set_up else ""
    return dict.fromkeys(Comparison.COLUMNS, math.nan) | {"sampler": label, "setting": setting}


def _log_loss(run, model, test):
    """Log loss of the posterior mean of the predicted probability, averaged over the chains."""
    n = int(min(max(2_000_000 // len(test[1]), 50), 500))
    return _log_loss_of_draws((one.whole.discretise(n) for one in run.trajectories), model, test, run.copies)


def _log_loss_of_draws(draws, model, test, copies=(1.0,)):
    from sklearn.metrics import log_loss

    (X, y), losses = test, []
    for x in draws:
        of_copies = zip(copies, np.split(x, len(copies), axis=1), strict=True)
        p = sum(weight * model.predict(part, X).mean(axis=0) for weight, part in of_copies)
        losses.append(log_loss(y, np.clip(p, 1e-12, 1.0 - 1e-12), labels=[0.0, 1.0]))
    return float(np.mean(losses))


def _errors_by_pass(run, truth, warmup, spent):
    """Numbers of data passes, and the mean and the root mean square errors of the means after them.

    `spent` passes went before the run.

    Averages along the path are exact. Data passes are taken to be proportional to process time, as they are for
    constant steps, and on average for a process in equilibrium.
    """
    first = min(1.5 * warmup, 0.5 * (1.0 + warmup)) if warmup > 0.0 else 0.01
    fractions = np.geomspace(first, 1.0, POINTS)
    errors = np.zeros((run.chains, POINTS, run.dim))
    weights = np.array(run.copies)
    for i, path in enumerate(one.whole for one in run.trajectories):
        times = path.warmup + (fractions - warmup) / (1.0 - warmup) * (path.end - path.warmup)
        times[-1] = path.end
        total, before = 0.0, path.warmup
        for k, t in enumerate(times):
            total, before = total + path.integral(None, before, t), t
            mean = weights @ np.reshape(total / (t - path.warmup), (len(weights), run.dim))
            errors[i, k] = np.abs(mean - truth.mean) / truth.sd
    passes = spent + fractions * run.stats["data_passes"] / run.chains
    return passes, errors.mean(axis=2).mean(axis=0), np.sqrt(np.mean(errors**2, axis=(0, 2)))


def _stretch(run, rows=4_000):
    """The path of chain 0 over its first events."""
    path, record = run.trajectories[0], run.records[0]
    events = path.times[: rows + 1]
    times = path.refine(events)
    rate = record.counts[DATA] / max(run.info["n_data"], 1) / path.end
    return Path(path.at(times), rate * times, rate * events, path.kind)
