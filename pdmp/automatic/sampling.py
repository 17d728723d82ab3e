"""`pdmp.sample`: the call that takes a process or a model."""

from __future__ import annotations

import inspect
import os
import sys
from concurrent.futures import Executor
from time import perf_counter
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from pdmp.automatic.preparing import auto, check_acceptance, check_tempered, model_of
from pdmp.data.tables import did_you_mean
from pdmp.engine.chain import Budgets
from pdmp.engine.checkpoint import absolute, check_resumable
from pdmp.engine.checks import check_process
from pdmp.engine.preflight import check_methods, check_propriety, check_target
from pdmp.engine.result import Run
from pdmp.engine.run import check_settings, run_process
from pdmp.models.base import Model
from pdmp.native.explanations import explained
from pdmp.native.messages import announcing
from pdmp.process import Process

#: Where a model is given and no budget: effective draws of every mean and sd, R-hat, most gradients of each chain.
ESS, RHAT, GRADIENTS = 400, 1.05, 100_000
TEMPERED_ESS = 1_000  #: of a tempered run, where the error of a share of a half is then 0.016


@explained
def sample(
    process: Process | Model | Any,
    *,
    initial: ArrayLike | None = None,
    warmup: float = 0,
    chains: int | None = None,
    seed: int | np.random.SeedSequence | np.random.Generator | None = None,
    store: str = "skeleton",
    draws: int | None = None,
    covariance: bool | None = None,
    progress: bool | None = None,
    checkpoint: str | os.PathLike | None = None,
    executor: Executor | Any | None = None,
    target_acceptance: float | None = None,
    tempered: bool = False,
    **budget: Unpack[Budgets],
) -> Run:
    """Run a process, or sample a model.

    For a model `pdmp.auto` makes a process, and warms it up. By default four chains then run until every mean and
    standard deviation has 400 effective draws and R-hat is at most 1.05, or until a chain has spent 100,000 gradients,
    with a warning that says what was not reached.

    A process needs at least one budget or goal. Budgets are for each chain, and a chain stops at the first one that it
    reaches; `ess` and `rhat` are goals of all chains together, and stop all of them.

    Parameters
    ----------
    process : Process, Model or pymc.Model
        For example ``pdmp.ZigZag(model)``, or ``model``.
    initial : array_like, shape (d,) or (chains, d), optional
        Where the chains start. The default is the first of these that there is: the starts that `pdmp.auto` has found
        for the process, the anchor of the gradient provider, the mode of the model, and the model's ``initial``. For a
        model see `pdmp.auto`.
    warmup : float, default 0
        Fraction of the budget, in [0, 1), that is excluded from all estimates; processes adapt only during it. With
        `ess` or `rhat` it is a fraction of the proposals up to the first time that these are examined, if that is
        shorter: with 0.5 the warm-up then has as many proposals as the rest, with 0.9 nine times as many.
    chains : int, optional
        1 by default; 4 for a model, and for a process of `pdmp.auto` as many as it has starts.
    seed : int, numpy.random.SeedSequence or numpy.random.Generator, optional
        Chain i uses child i of ``SeedSequence(seed)``. By default a seed is drawn. A sequence or a generator gives an
        integer, and a generator another one each time. ``run.seed`` is that integer, and repeats the run.
    store : {"skeleton", "grid", "moments"}
        What is kept of the path: every event, `draws` or more equally spaced positions, or nothing. Means and
        variances are exact integrals of the path in each case. With "moments" a few positions are kept for
        the checks after the run; above 8,192 coordinates none, and the summary says what was not checked.
    draws : int, optional
        For ``store="grid"``: how many positions to keep of each chain, 1,000 by default. It is the exact number if the
        budget determines the length of the path; otherwise there are up to twice as many.
    covariance : bool, optional
        Whether to integrate all d² products during the run. By default only without a skeleton, for processes that
        are not local, in up to 100 dimensions. With a skeleton ``run.cov()`` computes them from it.
    progress : bool, optional
        Show a progress bar; by default on a terminal and in a notebook.
    checkpoint : path, optional
        A file from which an interrupted run is resumed, written every 30 s and at the end. The result is bitwise that
        of an uninterrupted run. With a larger budget a finished run goes on. The file identifies a model by its
        functions and by values of its potential and gradient, and refuses a model that holds an object that cannot be
        compared, such as a lock, an open file or a factorisation by scipy. If a write fails, sampling goes on with a
        warning. SIGTERM and SIGHUP end the run as Ctrl-C does.
    executor : concurrent.futures.Executor, distributed.Client or ray.util.multiprocessing.Pool, optional
        Where the chains run: by default in threads, with an executor in a process pool, an ``mpi4py.futures`` pool, a
        Dask or a Ray cluster. The result is bitwise the same.
    target_acceptance : float, optional
        For a model, see `pdmp.auto`: the acceptance at which the steps aim, for example 0.95 if paths diverge.
    tempered : bool, default False
        For a model with several modes: whether to use non-reversible parallel tempering, in which every chain is a
        ladder that goes from mode to mode. `Run.modes` has the shares, and `Run.log_evidence` the evidence. At most 200
        dimensions. From 50,000 rows on, regressions without group effects and sums of terms are explored at one row a
        proposal (`pdmp.automatic.tempering.rows`) where their bounds allow it; else a warning says why not, and what
        that costs.
    **budget : float or int
        When the run ends, by the names under Other Parameters.

    Returns
    -------
    Run
        After Ctrl-C too, with what was sampled before it.

    Other Parameters
    ----------------
    time : float, optional
        Process time; the path ends exactly there.
    events : int, optional
        Recorded jumps: flips, bounces, refreshments, ticks.
    steps : int, optional
        Steps of a fixed-step process.
    proposals : int, optional
        Events and rejected proposals.
    data_passes : float, optional
        Number of data terms evaluated, divided by the number of data; a full gradient is one pass.
    gradients : float, optional
        The same budget by another name, for models that are not sums over data: evaluations of the gradient.
    seconds : float, optional
        Computing time. The only budget whose result depends on the machine; ``run.events`` as a budget repeats it.
    ess : float, optional
        Effective draws that the mean and the sd of every coordinate must have, all chains together, see
        `Run.effective_draws`. They are examined after the same numbers of proposals in every run, at first 500 of each
        chain after the warm-up (and ten for each clock), then a quarter more each time; so the run does not depend on
        how busy the machine is. Without a budget the run ends after 10,000,000 proposals of a chain, or when a
        skeleton of 2 GB is full. A run that ends before it reaches the goal warns once, and says what to try.
    rhat : float, optional
        The largest R-hat that any coordinate may have, for example 1.01; for at least two chains. With `ess` the run
        goes on until it reaches both.

    Raises
    ------
    ValueError, TypeError
        For an invalid argument, before anything runs.
    SamplingError
        If a chain or its executor fails; the attribute ``run`` has what was sampled before.

    See Also
    --------
    pdmp.auto : Makes the process for a model, to look at or to change.
    pdmp.regression : A posterior from a formula and a table.
    pdmp.compare : Several samplers on one model, at equal cost.

    Examples
    --------
    >>> import pdmp
    >>> target = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> run = pdmp.sample(pdmp.ZigZag(target), time=1_000.0, seed=1)
    >>> run.mean().shape
    (2,)
    """
    started = perf_counter()
    for name in budget:
        if name not in Budgets.__annotations__:
            known = arguments()
            raise TypeError(f"sample() got an unexpected keyword argument {name!r}{did_you_mean(name, known)}")
    checkpoint = absolute(checkpoint)
    model = None if isinstance(process, Process) else model_of(process)
    if model is None:
        check_process(process)
        for name, given, instead in (
            ("target_acceptance", target_acceptance is not None, "it there, as pdmp.HMC(model, target_acceptance=...)"),
            ("tempered", tempered, "its model, pdmp.sample(model, tempered=True)"),
        ):
            if given:
                what = f"`{name}` is for a model, whose process pdmp.sample makes"
                raise TypeError(f"{what}; {type(process).__name__} is one already: give {instead}.")
        check_methods(process)
        check_target(process.model)
        check_propriety(process.model, initial, process)
    else:
        if target_acceptance is not None:
            check_acceptance(target_acceptance)
        check_tempered(tempered, model)
        budget = _with_default_goals(budget, chains, tempered)
    of = process if model is None else model
    settings = check_settings(
        of, budget, warmup, chains, seed, store, draws, covariance, progress, checkpoint, executor
    )
    if model is None:
        return run_process(process, initial, settings, started)
    if tempered and store == "moments":
        raise ValueError(
            '`store="moments"` keeps no draws, by which the modes of a tempered run are told apart: use "skeleton", or '
            '"grid" with `draws=`.'
        )
    if checkpoint is not None:
        check_resumable(model)  # before the warm-up
    with announcing(_say if settings.progress else None):
        process = auto(
            model,
            chains=settings.chains,
            seed=settings.seed,
            initial=initial,
            target_acceptance=target_acceptance,
            tempered=tempered,
        )
    return run_process(process, None, settings, started)


def arguments() -> tuple[str, ...]:
    """Names of what `pdmp.sample` takes beside a process or a model."""
    named = [name for name, p in inspect.signature(sample).parameters.items() if p.kind is p.KEYWORD_ONLY]
    return (*named, *Budgets.__annotations__)


def _with_default_goals(budget: Budgets, chains: int | None, tempered: bool) -> Budgets:
    """What a run of a model must reach where its call names no budget."""
    given = {name for name, value in budget.items() if value is not None}
    if given - {"ess", "rhat"}:
        return budget
    if given:
        return {**budget, "gradients": GRADIENTS}
    rhat = None if chains == 1 else RHAT
    return {"gradients": GRADIENTS, "ess": TEMPERED_ESS if tempered else ESS, "rhat": rhat}


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
