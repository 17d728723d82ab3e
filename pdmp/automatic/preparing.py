"""`pdmp.auto`: starts and metric, one after the other."""

from __future__ import annotations

import math
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pdmp.automatic import modes
from pdmp.automatic.metric import FAR, FIRST_WINDOW, Metric, learn_metric
from pdmp.automatic.modes import NAMED, hidden_modes
from pdmp.automatic.row_modes import beside, modes_of_rows
from pdmp.automatic.start import DENSE, Evaluations, draw_by_importance, find_starts
from pdmp.automatic.windows import ends, gradients_of, run_window
from pdmp.engine.checks import check_memory, check_seed
from pdmp.engine.preflight import check_methods, check_propriety, check_target, improper, suspected
from pdmp.errors import warn
from pdmp.metric import LowRank, Sparse
from pdmp.models import adapters
from pdmp.models.base import Model
from pdmp.models.light_tails import LightTailed
from pdmp.models.transforms import coordinate_names
from pdmp.native.arguments import count, flag, one_of, positive, told
from pdmp.process import Prepared, Process
from pdmp.processes.hmc import HMC

#: Place of the warm-up's seeds among the children of a run's, which its chains take from 0 on.
SPAWN_KEY = 2**32 - 1


def auto(
    model: Model | Any,
    *,
    sampler: Callable[..., Process] | None = None,
    options: dict[str, Any] | None = None,
    metric: str = "full",
    chains: int = 4,
    seed: int | None = None,
    initial: ArrayLike | None = None,
    target_acceptance: float | None = None,
    tempered: bool = False,
) -> Process:
    """A process that is ready to sample a model: started, preconditioned and chosen by its own warm-up.

    1. Starts: from the model's initial point, and from a point dispersed around it for each chain, a Newton path; each
       chain starts from the Gaussian of best ELBO along its own path (`pdmp.automatic.start`).
    2. Metric: windows of `HMC`, of all chains together, learn mean and covariance, until they have settled, and the
       step; above 200 dimensions variances and a few directions that they miss (`pdmp.automatic.metric`).
    3. Modes that no chain is in: up to 16 further paths look for them, half of them from far out
       (`pdmp.automatic.modes`).
    4. Another sampler, if it is named, gets that metric. Its own settings (a step, to its acceptance rate) adapt in one
       more window.

    ``pdmp.sample(model)`` does this, and then samples. A posterior of `pdmp.models.sum_of_terms` with many rows is
    sampled at one row a proposal instead, by a Boomerang sampler whose bounds follow from the expression, if that is
    exact and looks at fewer rows; `choice` says so.

    Parameters
    ----------
    model : Model or pymc.Model
        The target. A PyMC model goes through `pdmp.models.from_pymc`.
    sampler : subclass of Process, or callable, optional
        `HMC` when omitted. A class is set up by its method `Process.in_metric`: with a mass (`BPS` and its relatives,
        `ZigZag`, `HMC`), a reference (`Boomerang`), speeds, or a preconditioner (fixed-step samplers). Any other
        callable is called as ``sampler(target, metric, **options)``, with the target and a
        `pdmp.automatic.metric.Metric`, and returns a process.
    options : dict, optional
        Further arguments of the sampler. The entry ``provider``, estimates of the gradient of this model from
        `pdmp.gradients`, stands in the place of the model.
    metric : {"full", "diagonal"}, default "full"
        "diagonal": the sampler gets only the variances of the metric; a Zig-Zag process, for example, gets speeds and
        no matrix.
    chains : int, default 4
        Number of chains, which all take part in the warm-up.
    seed : int, optional
        The same seed gives the same process. By default one is drawn.
    initial : array_like, shape (d,) or (chains, d), optional
        The point around which all paths begin, or the start of each chain's path; the model's ``initial`` when omitted.
    target_acceptance : float, optional
        Of `HMC`, in (0, 1): the mean probability of acceptance at which its step aims; 0.8 when omitted, and 0.9 far
        from normal. 0.95 or more where paths diverge.
    tempered : bool, default False
        Whether to make a process for a posterior of several modes: non-reversible parallel tempering, with short paths
        of `HMC` on each rung, whose ladder and reference are learnt here; of 50,000 rows or more, where terms have
        bounds on single rows, at one row a proposal. It takes no `sampler`, `options` or `metric`.

    Returns
    -------
    Process
        An `HMC`, or what `sampler` makes. In its attribute ``prepared``, ``starts`` is where the chains of a run start
        by default, ``choice`` says in one line what was learnt, and ``gradients`` is the number of gradients and
        potentials that this has cost, all chains together.

    Raises
    ------
    TypeError
        If it is not a model, or `sampler` takes no metric or does not return a process.
    ValueError
        If no point of positive density is found near `initial`, if U falls without end, or for an option that the
        sampler does not take.
    SamplingError
        If the warm-up fails.

    Warns
    -----
    UserWarning
        If a further path ends in a mode that no chain is in and that has a twentieth of the mass or more, or if the
        density grows down a neck in which the chains start.

    See Also
    --------
    pdmp.sample : Runs it.

    Examples
    --------
    >>> import pdmp
    >>> process = pdmp.auto(pdmp.models.Gaussian([0.0, 1.0], [1.0, 4.0]), seed=1)
    >>> process.prepared.starts.shape
    (4, 2)
    >>> run = pdmp.sample(process, events=200, chains=4, seed=1)
    >>> model = pdmp.models.LogisticRegression([[1.0, 0.5], [-1.0, 2.0], [0.5, -1.0]], [1, 0, 1])
    >>> pdmp.auto(model, sampler=pdmp.Boomerang, seed=1).prepared.choice[:28]
    'Boomerang in a metric learnt'
    """
    target = model_of(model)
    if target is None:
        raise TypeError(f"`model` must be a pdmp.Model or a pymc.Model, got {type(model).__name__}.")
    one_of("metric", metric, ("full", "diagonal"))
    if not isinstance(options, (dict, types.NoneType)):
        raise TypeError(f"`options` must be a dict of arguments by name, got {told(options)}.")
    options = dict(options or {})
    check_sampler(sampler, options, target)
    if target_acceptance is not None:
        check_acceptance(target_acceptance, sampler)
    check_tempered(tempered, target)
    for name, other in (("sampler", sampler is not None), ("options", bool(options)), ("metric", metric != "full")):
        if tempered and other:
            raise TypeError(
                f"`{name}` does not go with `tempered`, whose rungs are explored by paths of HMC: leave it out."
            )
    chains = count("chains", chains)
    root = np.random.SeedSequence(check_seed(seed, None), spawn_key=(SPAWN_KEY,))
    for_starts, for_metric, for_modes = root.spawn(3)
    check_methods(target)
    check_target(target)
    check_memory(target, chains, None, False)
    spent = check_propriety(target, initial)
    if tempered:
        from pdmp.automatic.tempering.preparing import tempered as prepared

        ready = prepared(
            target, chains, [for_starts, for_metric, for_modes, *root.spawn(1)], initial, target_acceptance
        )
        for text in ready.prepared.cautions:
            warn(text)
        ready.prepared = ready.prepared._replace(gradients=ready.prepared.gradients + spent)
        return ready
    whole = ""
    if sampler is None and not options and initial is None and target_acceptance is None and target.has("data_sums"):
        from pdmp.automatic.subsampling import subsampled

        process, draws, whole = subsampled(target)
        known: list[modes.Hidden] = []
        if process is not None:
            known, further = modes_of_rows(target, process.anchor, for_modes)
            spent += further
            if known and np.any(known[0].gaussian.centre != process.anchor):
                process, draws, whole = subsampled(target, mode=known[0].gaussian.centre)
        if process is not None:
            drawn = draws(chains, np.random.Generator(np.random.PCG64(for_starts)))
            here, found = beside(known, process.anchor)
            said = modes.warning(found, here, names_of(target))
            if said is not None:
                warn(said)
            others = modes.told(len(found)) if known else "other modes were not sought"
            # The search for the mode, and passes for the expansion and the bounds.
            process.prepared = Prepared(drawn, f"{whole}; {others}", 10 * chains + spent, tuple(filter(None, [said])))
            return process
        whole = f"each gradient is from all rows: {whole}" if whole else ""
    starts = find_starts(target, chains, np.random.Generator(np.random.PCG64(for_starts)), initial)
    names, said_improper = names_of(target), improper(target)
    cautions = [] if said_improper else list(filter(None, [starts.warning(names)]))
    for text in cautions:
        warn(text)
    own = sampler in (None, HMC) and not options and metric == "full"
    learnt = learn_metric(target, starts, for_metric, target_acceptance, own)
    found, near, further = ([], (), 0) if said_improper else hidden_modes(target, starts, learnt, for_modes)
    spent += further
    said = modes.warning(found, learnt.gaussian, names)
    if said is not None:
        warn(said)
        cautions.append(said)
    spent += starts.evaluations + learnt.gradients
    if metric == "diagonal":
        learnt = learnt.diagonal()
    process = named(sampler or HMC, options.pop("provider", target), learnt, options)
    process, learnt, further = settle(process, learnt, for_metric.spawn(1)[0])
    spent += further
    if len(near) > 1 and chains > 1 and initial is None:
        points, counted = learnt.points.copy(), Evaluations(target)
        rng = np.random.Generator(np.random.PCG64(for_modes.spawn(1)[0]))
        points[-1] = draw_by_importance(counted, near[1].gaussian, rng)
        learnt, spent = learnt._replace(points=points), spent + counted.count
    if isinstance(process, HMC) and learnt.neck is not None:
        process.neck = names[learnt.neck]
    choice = "; ".join(filter(None, (describe(process, learnt, None if said_improper else len(found), near), whole)))
    process.prepared = Prepared(learnt.points, choice, spent, (*suspected(target), *cautions), said_improper, near)
    return process


def check_sampler(sampler: Any, options: dict[str, Any], model: Model) -> None:
    """Raise a `TypeError` or `ValueError` for what can be seen to be wrong before the warm-up."""
    if sampler is not None and not callable(sampler):
        raise TypeError(f"`sampler` must be a subclass of pdmp.Process or a callable, got {told(sampler)}.")
    if isinstance(sampler, type) and issubclass(sampler, Process):
        if sampler.in_metric.__func__ is Process.in_metric.__func__:  # type: ignore[attr-defined]
            sampler.in_metric(model, None)  # which says so
    provider = options.get("provider")
    if provider is not None and getattr(provider, "model", provider) is not model:
        raise ValueError(f"`options`: the provider must be one of this model, got a {type(provider).__name__}.")


def check_acceptance(target_acceptance: Any, sampler: Any = None) -> None:
    """Raise a `TypeError` or `ValueError` for an acceptance outside (0, 1), or of a sampler that has none."""
    if sampler is not None and sampler is not HMC:
        raise TypeError(
            f"`target_acceptance` is of pdmp.HMC, got `sampler` {getattr(sampler, '__name__', sampler)}, whose options "
            "are given by `options=`."
        )
    if not positive("target_acceptance", target_acceptance) < 1.0:
        raise ValueError(f"`target_acceptance` must lie in (0, 1), got {target_acceptance!r}.")


def check_tempered(tempered: Any, model: Model) -> None:
    """Raise a `TypeError` or `ValueError` for what is no truth value, or a model that is too large."""
    if flag("tempered", tempered) and model.dim > DENSE:
        raise ValueError(
            f"`tempered` is for at most {DENSE} dimensions, as each rung learns a covariance; "
            f"{type(model).__name__} has {model.dim}: leave it out, or integrate out what can be."
        )


def names_of(model: Model) -> list[str]:
    """A name for each coordinate."""
    return coordinate_names(model.variables, model.transforms)


def named(sampler: Callable[..., Process], target: Any, metric: Metric, options: dict[str, Any]) -> Process:
    """A process of the sampler in the metric."""
    make: Callable[..., Any] = sampler
    if isinstance(sampler, type) and issubclass(sampler, Process):
        make = sampler.in_metric
    process = make(target, metric, **options)
    if not isinstance(process, Process):
        raise TypeError(f"`sampler` must return a process, got a {type(process).__name__}.")
    return process


def settle(process: Process, metric: Metric, seed: np.random.SeedSequence) -> tuple[Process, Metric, int]:
    """The process after a window in which it adapts, if it does; the metric, its points moved on; the gradients."""
    if not hasattr(type(process), "adapted") or (isinstance(process, HMC) and not process.adapts):
        return process, metric, 0
    run = run_window(process, metric.points, seed, max(FIRST_WINDOW, 10 * process.model.dim))
    process = process.resolve(metric.points[0]).adapted([record.statistics for record in run.records])
    return process, metric._replace(points=ends(run, metric.points)), gradients_of(run)


def describe(process: Process, metric: Metric, hidden: int | None = 0, near: Sequence[modes.Hidden] = ()) -> str:
    """One sentence on what was learnt, and how.

    `hidden`: modes that no chain is in, None where none were looked for; `near`: as of `Prepared.modes`.
    """
    kind = "covariance" if metric.gaussian.root.ndim == 2 else "variances"
    if isinstance(metric.mass, Sparse):
        kind = "the mean of the sparse Hessian"
    if isinstance(metric.mass, LowRank):
        kind += f" and {len(metric.mass.gains)} directions"
    if isinstance(metric.coordinates, LightTailed):
        indices = sorted({f"{1.0 / rate:.2g}" for rate in metric.coordinates.rates})
        kind += f" of coordinates in which tails of index {', '.join(indices[:NAMED])} are light,"
    elif metric.coordinates is not None:
        scales = [names_of(process.model)[t] for t in np.unique(metric.coordinates.scales)]
        kind += f" of coordinates non-centred in part, by {', '.join(scales[:NAMED])}{' …' * (len(scales) > NAMED)},"
    away = f"; {modes.told(hidden, len(near) - 1)}"
    settled = "settled" if metric.settled else f"not settled: they changed by {metric.change:.2g} in the last window"
    shape = "far from normal" if metric.residual > FAR else "near normal"
    shape += " where the chains are" if hidden else ""
    who = f"{type(process).__name__} in a metric learnt by windows of HMC"
    if isinstance(process, HMC):
        longest = math.ceil(2.0 * process.duration / process.step - 1e-9)
        steps = f"1 to {longest} steps" if longest > 1 else "one step"
        who = f"Hamiltonian Monte Carlo, paths of {steps} of {process.step:.2g}"
    return (
        f"{who}: {kind} learnt in "
        f"{metric.windows} window{'s' if metric.windows > 1 else ''}, {metric.gradients:,} gradients, {settled}; the "
        f"posterior is {shape} (residual gradient {metric.residual:.2f}){away}"
    )


def model_of(target: Any) -> Model | None:
    """The model that `target` is or stands for; None if it is neither a model nor a PyMC model."""
    if isinstance(target, Model):
        return target
    pymc = sys.modules.get("pymc")  # whoever made a PyMC model has imported it
    if pymc is not None and isinstance(target, pymc.Model):
        return adapters.from_pymc(target)
    return None
