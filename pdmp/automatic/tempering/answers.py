"""What a tempered run answers: modes with their shares, the evidence, and what is wrong with both.

It is all in the records of the run, so that a loaded run answers too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pdmp.automatic.tempering.evidence import LogEvidence, bridged, in_digits, log_evidence
from pdmp.automatic.tempering.modes import labels
from pdmp.automatic.tempering.references import Mixture
from pdmp.diagnostics import monte_carlo_error
from pdmp.diagnostics.averages import diagnostic_draws
from pdmp.diagnostics.effective_size import draws_ess, draws_rhat
from pdmp.engine.result import Run
from pdmp.errors import warn
from pdmp.interfaces.report import Report
from pdmp.models.base import Model
from pdmp.native.representation import in_columns

#: Restarts of all chains together below which shares are not known; and of the shares, U and tails the effective draws
#: below which a run says so that was asked for none.
RESTARTS, FEW = 50, 100.0
#: Standard error of log Z from which it is not settled; by how much, and how many errors, two estimates may differ.
UNSETTLED, APART, ERRORS = 0.3, 0.5, 4.0
#: Rows that a bridge between a normal law and the draws looks at, at most, of each; but at so many points at least, and
#: at so many at most.
ROWS, LEAST_POINTS, MOST_POINTS = 200_000_000, 400, 4_000
RARE = 0.01  #: share of a mode below which its effective draws are not counted
#: Share by Laplace's approximation from which a mode is looked for, and the part of it below which it is missed.
EXPECTED, MISSED = 0.02, 0.1
#: Nats by which the target is higher above the reference than at the tenth of scans where it is least so, from which on
#: replicas hardly come; scans for which one stays there at a stretch, where no budget makes the share known.
ABOVE, STAYED = 5.0, 1_500
LARGE, NOISE = 1.05, 8.0  #: R-hat of U and of shares above which chains disagree, plus its noise for n draws, NOISE / n
#: What is kept of a reference, and of the modes that were found beforehand.
PARTS, KNOWN = ("weights", "means", "roots", "freedoms"), ("centres", "roots", "masses")


@dataclass(frozen=True)
class ModeShare:
    """One mode of a tempered run."""

    share: float  #: of the posterior's mass
    error: float  #: its Monte Carlo standard error
    mean: np.ndarray  #: (d,) within the mode
    sd: np.ndarray  #: (d,)


class Modes(tuple):
    """The modes of a run, that of the largest share first: a tuple of `ModeShare`, which prints as a table."""

    names: Sequence[str]
    narrowest: float  #: width of a mode, over that of another one, below which it may be missing; nan: not known
    SHOWN = 6  #: coordinates that are printed

    def __new__(cls, modes: Sequence[ModeShare], names: Sequence[str], narrowest: float = math.nan) -> Modes:
        """A tuple with names of the coordinates."""
        made = super().__new__(cls, modes)
        made.names, made.narrowest = names, narrowest
        return made

    def __repr__(self) -> str:
        rows = [["", "share", "error", *self.names[: self.SHOWN]]]
        for k, mode in enumerate(self):
            places = zip(mode.mean[: self.SHOWN], mode.sd[: self.SHOWN], strict=True)
            rows.append(
                [f"mode {k}", f"{mode.share:.3f}", f"{mode.error:.3f}", *(f"{m:.3g} ± {s:.2g}" for m, s in places)]
            )
        lines = in_columns(rows)
        more = len(self.names) - self.SHOWN
        lines += [f"… and {more} more coordinates"] if more > 0 else []
        if not math.isnan(self.narrowest):
            lines.append(f"Modes less than {self.narrowest:.2g} times as wide as others may be missing.")
        return "\n".join(lines)


class LogBayesFactor(NamedTuple):
    """log of the ratio of two evidences."""

    value: float
    error: float  #: its standard error

    def __repr__(self) -> str:
        return f"log Bayes factor {in_digits(self.value, self.error)} ± {self.error:.2g}"


def of_tempered(run: Run, what: str) -> dict[str, np.ndarray]:
    """The arrays that a tempered run has kept, those of its first chain; a `ValueError` for another run."""
    kept = [record.accumulated for record in run.records if "rungs/betas" in record.accumulated]
    if not kept or len(kept) < run.chains:
        raise ValueError(f"`{what}` is for a tempered run, of pdmp.sample(model, tempered=True).")
    return kept[0]


def traces(run: Run, name: str) -> list[np.ndarray]:
    """A trace of each chain, from when all have it, with the same scans between two rows."""
    kept = [record.accumulated for record in run.records]
    coarsest = max(int(one["rungs/spacing"][0]) for one in kept)
    found = []
    for one in kept:
        every = coarsest // int(one["rungs/spacing"][0])
        found.append(one[f"rungs/{name}"][every - 1 :: every])
    return found


def evidence_of(run: Run) -> LogEvidence:
    """log Z of a tempered run, with the constants that U leaves out where its model knows them.

    Where it does not a warning says that log Z is no marginal likelihood.
    """
    found = integral_of(run)
    omitted = float(of_tempered(run, "log_evidence").get("rungs/omitted", np.zeros(1))[0])
    if math.isnan(omitted):
        warn(
            "log_evidence: U of this model leaves out constants of its likelihood or its priors that are not known, or "
            "a prior is flat, so that log Z is the integral of exp(-U) and no marginal likelihood: compare it with "
            "that of no other model. A function of your own with all constants, pdmp.models.from_function, has one."
        )
        return found
    return found._replace(value=found.value + omitted, second=found.second + omitted)


def integral_of(run: Run) -> LogEvidence:
    """log of the integral of exp(-U)."""
    kept = of_tempered(run, "log_evidence")
    works = traces(run, "works")
    if min(len(w) for w in works) < 8:
        raise ValueError("`log_evidence` needs at least 8 scans of each chain: run longer.")
    return log_evidence(works, kept["rungs/betas"])


def unsettled(known: LogEvidence, larger: str, or_else: str = "") -> list[str]:
    """Sentences on a large error, and on both sides that differ by more than it; what is to be `larger`."""
    found = []
    if not known.error < UNSETTLED:
        found.append(
            f"the evidence is not settled: log Z has a standard error of {known.error:.2g}; give a larger {larger}"
        )
    if not abs(known.gap) < APART + ERRORS * min(known.gap_error, UNSETTLED):
        found.append(
            f"the evidence is not settled: stepping stones from both sides differ by {abs(known.gap):.2g} in log Z, so "
            f"part of the mass may be missing; give a larger {larger}{or_else}"
        )
    return found


def evidence_of_draws(run: Run, model: Model) -> LogEvidence:
    """log Z of a model from a run that is not tempered, of a posterior with one mode: by `bridged`.

    It warns where that is not settled; a `ValueError` for a run that is too short.
    """
    draws = diagnostic_draws(run)
    if draws is None or draws.shape[1] < 16:
        raise ValueError("`log_evidence` needs at least 16 draws of each chain: run longer.")
    effective = max(0.5 * float(np.median(draws_ess(draws, "mean"))), 2.0)
    points = min(max(ROWS // max(model.n_data, 1), LEAST_POINTS), MOST_POINTS)
    rng = np.random.default_rng(np.random.SeedSequence(run.seed, spawn_key=(2**32 - 3,)))
    found, omitted = bridged(draws, effective, model.potential, -(-points // run.chains), rng), model.omitted()
    for said in unsettled(found, "`ess=`"):
        warn(f"log_evidence: {said}.")
    return found._replace(value=found.value + omitted, second=found.second + omitted)


def mixture_of(kept: dict[str, np.ndarray]) -> tuple[Mixture, np.ndarray]:
    """The reference, and the mode of each of its components."""
    return Mixture(*(kept[f"reference/{name}"] for name in PARTS)), kept["reference/modes"]


def indicators(run: Run, draws: np.ndarray) -> np.ndarray:
    """Which draws (chains, n, d) are of which mode: 0 or 1, (chains, n, modes)."""
    mixture, group = mixture_of(of_tempered(run, "modes"))
    return np.eye(int(group.max()) + 1)[labels(mixture, group, draws)]


def modes_of(run: Run) -> Modes:
    """The modes of a tempered run."""
    draws = diagnostic_draws(run)
    which = indicators(run, np.zeros((1, 4, run.dim)) if draws is None else draws)
    if draws is None:
        raise ValueError("`modes` needs at least four scans of each chain: run longer.")
    n, found = draws.shape[1], []
    error = monte_carlo_error.standard_error(list(which), [1.0] * len(draws), [float(n)] * len(draws))
    for k in range(which.shape[-1]):
        x = draws[which[..., k] == 1.0]
        if len(x):
            found.append(ModeShare(float(which[..., k].mean()), float(error[k]), x.mean(axis=0), x.std(axis=0)))
    narrowest = of_tempered(run, "modes").get("known/narrowest", [math.nan])
    return Modes(sorted(found, key=lambda mode: -mode.share), run.names(), float(narrowest[0]))


def evidence(a: Any, b: Any) -> LogBayesFactor:
    """The log Bayes factor of two tempered runs, or of two fits: log Z of `a` minus log Z of `b`.

    It is meaningful only if log Z contains all constants of the likelihood and the priors, which do not change a
    posterior's shape. pdmp adds them for fits of `pdmp.regression`, for the regressions of `pdmp.models` with a
    proper `prior_scale`, and for priors and families of `pdmp.models.sum_of_terms`. For its other models with data it
    warns that they are not known. A model of `from_function` has the constants of its U. In a Stan
    program write ``target += normal_lpdf(y | mu, sigma)`` and not ``y ~ normal(mu, sigma)``, which drops them.

    Parameters
    ----------
    a, b : Run or Fit
        Results of ``pdmp.sample(model, tempered=True)`` or of `pdmp.regression`, for the same data.

    Returns
    -------
    LogBayesFactor
        ``value`` and its standard ``error``.

    Raises
    ------
    ValueError
        For a run that is not tempered, and for fits of other rows, censoring or trials, of a density beside
        probabilities, or with a flat prior.

    Examples
    --------
    >>> import pdmp
    >>> narrow, wide = (pdmp.models.from_function(
    ...     lambda x, s=s: (0.5 * x @ x / s**2, x / s**2), dim=1) for s in (1.0, 2.0))
    >>> runs = [pdmp.sample(model, tempered=True, seed=1) for model in (narrow, wide)]  # doctest: +SKIP
    >>> found = pdmp.evidence(*runs)  # doctest: +SKIP
    >>> abs(found.value + 0.693) < 0.2  # log(1 / 2): the ratio of integrals of exp(-U)  # doctest: +SKIP
    True
    """
    for name, run in (("a", a), ("b", b)):
        if not hasattr(type(run), "log_evidence"):
            raise TypeError(
                f"`{name}` must be a run of pdmp.sample(model, tempered=True), or a fit of pdmp.regression, got a "
                f"{type(run).__name__}."
            )
    if hasattr(type(a), "unlike") and hasattr(type(b), "unlike"):
        reason = a.unlike(b)
        if reason is not None:
            raise ValueError(
                f"`a` and `b` are of different data: {reason}. Rows with a missing value in a column that is used are "
                "left out: leave them out of the table of both fits before; and a response that is transformed is "
                "another one."
            )
    first, second = a.log_evidence, b.log_evidence
    return LogBayesFactor(first.value - second.value, math.hypot(first.error, second.error))


def further_draws(run: Run) -> dict[str, float]:
    """Effective draws of what coordinates' means and sds do not show: shares of modes, U, and tails."""
    draws, names = diagnostic_draws(run), run.names()
    if draws is None:
        return {}
    found, which = {}, indicators(run, draws)
    for k in np.flatnonzero((which.mean(axis=(0, 1)) > RARE) & (which.mean(axis=(0, 1)) < 1.0 - RARE)):
        found[f"the share of the mode at {_place(run, int(k))}"] = float(draws_ess(which[..., [k]], "mean")[0])
    potentials = traces(run, "potentials")
    n = min(len(u) for u in potentials)
    if n >= 8:
        found["log p"] = float(draws_ess(np.array([u[:n] for u in potentials])[..., None], "mean")[0])
    tails = draws_ess(draws, "tail")
    k = int(np.argmin(np.where(np.isnan(tails), np.inf, tails)))
    found[f"the tails of {names[k]}"] = float(tails[k])
    return {name: 0.0 if math.isnan(value) else value for name, value in found.items()}


def _place(run, k):
    """Where mode k is, in words."""
    mixture, group = mixture_of(of_tempered(run, "modes"))
    own = np.flatnonzero(group == k)
    return _named(run, mixture.means[own[np.argmax(mixture.weights[own])]])


class TemperedReport(Report):
    """Restarts and round trips, what is kept of the rungs, and what is wrong."""

    def statistics(self, process: Any, state: Any) -> dict[str, float]:
        """Restarts, round trips, the least acceptance of a rung, Λ, and draws of the reference with no density."""
        memory = state.memory
        counted = max(int(memory.counted[0]), 1)
        return {
            "restarts": float(memory.restarts[0]),
            "round_trips": float(memory.trips[0]),
            "mean_acceptance": float((memory.accepted[1:] / counted).min()),
            "mean_barrier": float(memory.rejected.sum() / counted),
            "undefined": float(memory.undefined[0]),
        }

    def accumulated(self, process: Any, state: Any, since: float, end: float) -> dict[str, np.ndarray]:
        """The ladder, W and U of scans, and the reference with its modes."""
        memory, trace = state.memory, state.memory.trace
        counted, used = max(int(memory.counted[0]), 1), int(trace.used[0])
        kept = {f"rungs/{name}": getattr(trace, name) for name in ("spacing", "lowest", "place")}
        kept |= {f"reference/{name}": getattr(process.reference, name) for name in PARTS}
        kept |= {f"known/{name}": part for name, part in zip(KNOWN, process.known, strict=True)}
        return {name: array.copy() for name, array in kept.items()} | {
            "rungs/betas": process.betas.copy(),
            "rungs/omitted": np.array([process.model.omitted()]),
            "rungs/rejections": memory.rejected / counted,
            "rungs/acceptances": memory.accepted[1:] / counted,
            "rungs/works": trace.works[:used].copy(),
            "rungs/potentials": trace.potentials[:used].copy(),
            "reference/modes": process.modes.copy(),
            "known/narrowest": np.array([process.narrowest]),
        }

    def warnings(self, process: Any, stats: dict) -> list[str]:
        """Of few restarts, and of a potential that is not a number where the reference draws."""
        found = []
        if stats["restarts"] < RESTARTS:
            found.append(
                f"only {stats['restarts']:,.0f} replicas came from the reference to the target, so the shares of modes "
                "and the tails are not known: give a larger `gradients=`, or a parametrisation nearer to normal"
            )
        if stats["undefined"]:
            found.append(
                f"U was not a number at {stats['undefined']:,.0f} draws of the reference, which counted as zero "
                "density: return inf where the density is zero, and a number elsewhere"
            )
        return found

    def further_draws(self, run: Any) -> dict[str, float]:
        """Effective draws of shares of modes, of U, and of tails."""
        return further_draws(run)

    def in_vain(self, run: Any) -> bool:
        """Whether a mode or a tail was met that the reference does not know: no budget makes its share known."""
        draws = diagnostic_draws(run)
        return draws is not None and draws.shape[1] >= 8 and bool(_met(run, integral_of(run).value))

    def doubts(self, run: Any, asked: float | None) -> list[str]:
        """Of the evidence, modes that were found and are not visited, replicas that disagree, and few draws."""
        found = []
        draws = diagnostic_draws(run)
        if draws is None or draws.shape[1] < 8:
            return ["too few scans for shares of modes and the evidence: give a larger budget"]
        known = integral_of(run)
        found += unsettled(known, "`gradients=`, `run.extend(gradients=...)`", ", or `initial=` nearer to it")
        met = _met(run, known.value)
        found += met or _missed(run, draws, known.value)
        found += _disagreement(run, draws)
        if asked is None:
            further = further_draws(run)
            name = min(further, key=further.__getitem__)
            if further[name] < FEW:
                found.append(
                    f"fewer than {FEW:.0f} effective draws of {name}, {further[name]:.2g}: give a larger budget, or "
                    "`ess=400` in place of one"
                )
        return found


def _missed(run, draws, log_z):
    """A sentence of a mode that a path found, with mass by Laplace's approximation, and that is hardly visited."""
    kept = of_tempered(run, "modes")
    d = run.dim
    x = draws.reshape(-1, d)
    for centre, root, mass in zip(*(kept[f"known/{name}"] for name in KNOWN), strict=True):
        expected = math.exp(min(0.0, mass - log_z))
        if expected < EXPECTED:
            continue
        square = (np.linalg.solve(root, (x - centre).T) ** 2).sum(axis=0)
        visited = float((square <= d + 4.0 * math.sqrt(2.0 * d)).mean())
        if visited < MISSED * expected:
            return [
                f"a mode that a path found at {_named(run, centre)}, with a share of about {expected:.2g} by Laplace's "
                f"approximation, was visited {visited:.2g} of the time: give a larger `gradients=`, or order what "
                "labels exchange"
            ]
    return []


def _met(run, log_z):
    """A sentence of a mode, or a tail, that the reference does not know, and that replicas have met on their way."""
    kept = [record.accumulated for record in run.records]
    if not all("rungs/place" in one for one in kept):
        return []
    above, longest = [-w[:, -1] - log_z for w in traces(run, "works")], 0
    usual = float(np.quantile(np.concatenate(above), 0.1))
    for one in above:
        edges = np.flatnonzero(np.diff(np.concatenate([[False], one > usual + ABOVE, [False]])))
        longest = max(longest, *(edges[1::2] - edges[::2]).tolist(), 0)
    longest *= max(int(one["rungs/spacing"][0]) for one in kept)
    if longest < STAYED:
        return []
    most, lowest = max(one.max() for one in above), min(kept, key=lambda one: float(one["rungs/lowest"][0]))
    return [
        f"a replica stayed for {longest:,} scans near {_named(run, lowest['rungs/place'])}, where the density is up to "
        f"e^{most:.0f} times that of the reference: a mode that was met by luck, or a long tail. Its share is not "
        "known, and a larger budget helps little: of a mode give `initial=` a row for each chain, one of them there; "
        "of a tail choose a parametrisation nearer to normal"
    ]


def _named(run, x):
    """Where x is, in words."""
    shown = ", ".join(f"{name} = {value:.3g}" for name, value in list(zip(run.names(), x, strict=True))[:3])
    return shown + (" …" if run.dim > 3 else "")


def _disagreement(run, draws):
    """A sentence of chains whose U or shares of modes differ."""
    if run.chains < 2:
        return []
    which, potentials = indicators(run, draws), traces(run, "potentials")
    n = min(len(u) for u in potentials)
    rhats = {"log p": float(draws_rhat(np.array([u[:n] for u in potentials])[..., None], "rank")[0])}
    share = which.mean(axis=(0, 1))
    for k in np.flatnonzero((share > RARE) & (share < 1.0 - RARE)):
        rhats[f"the share of the mode at {_place(run, int(k))}"] = float(draws_rhat(which[..., [k]], "identity")[0])
    name = max(rhats, key=lambda k: -math.inf if math.isnan(rhats[k]) else rhats[k])
    if not rhats[name] > LARGE + NOISE / n:
        return []
    return [
        f"the chains disagree about {name} (R-hat {rhats[name]:.3g}), each with a ladder of its own: give a larger "
        "`gradients=`, and compare them, `pdmp.diagnostics.split(run)`"
    ]
