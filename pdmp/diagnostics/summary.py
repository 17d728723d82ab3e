"""The table of a run, and warnings: what is wrong with it and what to change."""

from __future__ import annotations

import html
import math
from typing import Any

import numpy as np

from pdmp.diagnostics import events, monte_carlo_error
from pdmp.diagnostics.averages import diagnostic_draws, effective_draws, looked_at, portions, split
from pdmp.diagnostics.effective_size import draws_ess, draws_rhat
from pdmp.diagnostics.pooled import blocks, quantiles
from pdmp.diagnostics.tails import AGREEMENT, RAYS, TAILS, heavy_tails
from pdmp.diagnostics.variable_selection import changes
from pdmp.interfaces.report import Report
from pdmp.models.transforms import flat
from pdmp.native.representation import in_columns

LONG = 10  #: numbers of a vector that are weights of frequencies, at least
COLD, HOT = 0.5, 2.0  #: kinetic temperatures below and above which a summary warns
#: Configurational temperature, divided by the one that is meant, above which a summary warns if its error allows.
WARM = 1.3
#: Effective draws below which a summary warns. With as many, two standard errors of a mean are a tenth of the
#: posterior's standard deviation, and R-hat and the errors are reliable (the recommendation of Vehtari et al., 2021).
FEW = 400.0
SHOWN = (0.05, 0.25, 0.5, 0.75, 0.95)  #: probabilities below the quantiles of what has no variance
ENDS = (0.025, 0.975)  #: probabilities below the ends of the intervals
NO_CHANCE = 30  #: events of two chains from which on their paths are not the same by chance, as of walks on a lattice
UNEQUAL = 1.5  #: times the shortest chain from which the longest is said to be of another length
LARGE = 1.05  #: R-hat above which a summary warns
SEPARATE, SETTLED = 1.2, 50.0  #: R-hat above which chains may be in separate modes, if each has so many effective draws
RESTING = 0.9  #: share of draws that are 0 above which no summary warns of a standard deviation
UNSURE = 0.05  #: Monte Carlo error of an inclusion probability above which a summary warns
LOOSE = 0.05  #: relative Monte Carlo error of a standard deviation above which a summary warns
CORRELATED = 1.5  #: squares count as correlated if their error is above this multiple of that of independent ones
NATURAL = 500  #: most natural parameters that a summary adds to the coordinates of x
REJECTED = 0.7  #: share of accepted steps, relative to what was expected, below which a summary warns
EXAMINED = 1_000  #: proposals from which on a run says that its anchor is poor
DISTANT = 3.0  #: root mean square distance from the anchor, relative to that from the mean, above which it does
#: Of one chain, and of chains that began at one point, below their table.
ONE_CHAIN = (
    "there is one chain, so that R-hat says nothing of modes that it has not found: run several that start apart, by "
    "`chains=` and `initial=` (chains, dim), or let `pdmp.sample(model)` look for modes"
)
ONE_START = (
    "the chains began at one point, so that R-hat says nothing of modes that none has found: start them apart, by "
    "`initial=` (chains, dim), or let `pdmp.sample(model)` look for modes"
)
#: Of a run without positions.
UNSEEN = (
    'heavy tails, a gradient that is wrong far out, and the law of the draws were not checked, as `store="moments"` '
    'keeps no positions; `store="grid"` does'
)
#: What else a caller of ``pdmp.sample(model)`` can do.
OF_MODELS = "`run.extend(gradients=...)`, or choose a parametrisation in which the parameters are less dependent"
#: Effective draws below which a run that ends says so, whatever its budget; numbers of the path looked at for that.
SCARCE, LOOKED = 30.0, 50_000_000
APART = 1.2  #: R-hat above which a summary asks whether there is a density at all where the chains went
FALLS = 0.5  #: mean of (x - mean) ∂U/∂x below which it does not seem to fall there
FEWEST, PLACES = 16, 64  #: draws of a chain at which that is looked at
TERMS = (
    2_000_000  #: gradients of single data that a summary may spend on the temperature, and on whether the density falls
)


class Summary:
    """A table of one row for each coordinate of x, and for each natural parameter that is none; prints as text.

    Attributes
    ----------
    rows : list of dict
        With the keys `COLUMNS`, as for ``pandas.DataFrame``. ess and mcse are those of the exact time average; those of
        natural parameters such as σ, where x has log σ, are of draws. "2.5%" and "97.5%" are quantiles of draws, NaN
        for a run that has kept none.
    warnings : list of str
        What is wrong and what to change, a sentence each.
    said : set of str
        Those of them that the run, or its preparation, has issued; of these the text has the beginning only.
    note : str
        The text below the table.
    """

    COLUMNS = ("name", "mean", "sd", "2.5%", "97.5%", "mcse", "ess", "rhat")
    SHOWN = 60  #: rows that are printed

    def __init__(self, rows, cost="", notes=(), warnings=(), said=()):
        self.rows, self.cost, self.warnings, self.said = rows, cost, list(warnings), set(said)
        printed = [f"{w.partition(':')[0]} (as was warned)." if w in self.said else w for w in warnings]
        self.note = "\n".join([*([cost] if cost else []), *notes, *(f"Warning: {w}" for w in printed)])

    def __len__(self):
        return len(self.rows)

    def to_dataframe(self) -> Any:
        """The rows as a ``pandas.DataFrame``, by name: ``summary.to_dataframe().loc["age", "mean"]``.

        Raises
        ------
        ImportError
            Without pandas.
        """
        try:
            import pandas
        except ImportError:
            raise ImportError("`to_dataframe` needs pandas: pip install pandas.") from None
        return pandas.DataFrame(self.rows, columns=list(self.COLUMNS)).set_index("name")

    def _table(self):
        """The rows that are shown, as text, the names of the columns first."""
        forms = dict.fromkeys(("mean", "sd", "2.5%", "97.5%"), "{:.4g}")
        forms |= {"mcse": "{:.2g}", "ess": "{:.0f}", "rhat": "{:.3f}"}
        if all(math.isnan(row["2.5%"]) for row in self.rows):  # no draws are kept
            del forms["2.5%"], forms["97.5%"]
        rows = [[row["name"], *(forms[c].format(row[c]) for c in forms)] for row in self.rows[: self.SHOWN]]
        return [["", *forms], *rows]

    def _repr_html_(self):
        """The same as a table of HTML."""
        head, *rows = ([html.escape(cell) for cell in row] for row in self._table())
        lines = ["<table>", f"<tr>{''.join(f'<th>{cell}</th>' for cell in head)}</tr>"]
        lines += [f"<tr><th>{row[0]}</th>{''.join(f'<td>{cell}</td>' for cell in row[1:])}</tr>" for row in rows]
        lines.append("</table>")
        if len(rows) < len(self.rows):
            lines.append(f"<p>… and {len(self.rows) - len(rows)} more</p>")
        if self.note:
            lines.append(f"<pre>{html.escape(self.note)}</pre>")
        return "\n".join(lines)

    def __repr__(self):
        table = self._table()
        lines = in_columns(table, left=[0])
        if len(table) - 1 < len(self.rows):
            lines.append(f"… and {len(self.rows) - len(table) + 1} more")
        if self.note:
            lines.append(self.note)
        return "\n".join(lines)


def summarise(run):
    """The `Summary` of a run."""
    mean, sd, mcse = run.mean(), run.sd(), run.mcse()
    draws = None if run.store == "moments" else diagnostic_draws(run)
    rhat = run.rhat() if draws is None else draws_rhat(draws, "rank")
    loose = np.full(run.dim, np.nan) if draws is None else sd_errors(draws)
    if draws is not None:  # of what is 0 nearly always the sd is not what one asks for
        loose[np.mean(draws == 0.0, axis=(0, 1)) > RESTING] = 0.0
    apart = np.zeros(run.dim, bool) if draws is None else stay_apart(run, draws, rhat)
    with np.errstate(all="ignore"):
        ess = np.where(mcse > 0.0, (sd / mcse) ** 2, np.nan)
    names = run.names()
    low, high = np.full((2, run.dim), np.nan) if draws is None else run.quantile(ENDS)
    columns = zip(names, *(a.tolist() for a in (mean, sd, low, high, mcse, ess, rhat)), strict=True)
    rows = [dict(zip(Summary.COLUMNS, row, strict=True)) for row in columns]
    natural = natural_draws(run, names, draws)
    rows += natural_rows(run, natural)
    notes = [] if len(run.copies) == 1 else ["mean, sd, mcse and ess are extrapolated; rhat is the fine chain's"]
    notes += [run.info.get("choice")] if run.info.get("choice") else []
    starts = [record.x for record in run.records]
    together = not run.info.get("choice") and all(np.array_equal(x, starts[0]) for x in starts)
    notes += [ONE_START if run.chains > 1 else ONE_CHAIN] if together else []
    hardly = np.flatnonzero(((loose > LOOSE) | (ess < FEW)) & ~apart)
    seen = looked_at(run)
    few = None if seen.store == "moments" else diagnostic_draws(seen)
    heavy = {} if few is None else tails_of(seen, few, hardly, ess)
    found = find_warnings(seen, names, sd, ess, rhat, loose, apart, heavy) + _unsure(run, names, draws)
    found += copies_warning(run)
    found += _natural_tails(run, natural, rows[run.dim :], draws)
    notes += [UNSEEN] if seen.store == "moments" else []
    return Summary(rows, _cost(run, ess), notes, found, [w for w in found if w.rstrip(".") in run.said])


def natural_draws(run, names, draws):
    """Draws (chains, n) by name of the natural parameters that are no coordinates of x, of draws (chains, n, d) of x.

    None for a loaded run of a model that computes them itself, and not of more than `NATURAL` numbers.
    """
    if draws is None or not (run.transforms or run.info.get("constrains", False)):
        return {}
    try:
        natural = run.constrain(draws)
    except ValueError:  # a loaded run
        return {}
    known = set(names)
    columns = {name: values for name, values in flat(natural).items() if name not in known}
    return columns if len(columns) <= NATURAL else {}


def natural_rows(run, columns):
    """Rows of `natural_draws`: their ESS is ArviZ's of these draws, and mcse is sd / √ESS.

    Of each chain there are as many draws, and it counts by its length: where lengths differ, a mean is as uncertain as
    the weighted sum of the chains' means.
    """
    if not columns:
        return []
    x = np.stack(list(columns.values()), axis=-1)
    lengths = np.array([r.length for r in run.records])
    weights = lengths / lengths.sum()
    mean = weights @ x.mean(axis=1)
    sd = np.sqrt(weights @ ((x - mean) ** 2).mean(axis=1))
    with np.errstate(all="ignore"):
        ess = draws_ess(x, "mean")
        if lengths.max() > UNEQUAL * lengths.min():
            each = [w**2 / draws_ess(one[None], "mean") for w, one in zip(weights, x, strict=True) if w > 0.0]
            ess = np.minimum(ess, 1.0 / sum(each))  # the first is smaller where chains are not in the same place
        found = (mean, sd, *quantiles(ENDS, x, lengths), sd / np.sqrt(ess), ess, draws_rhat(x, "rank"))
    return [
        dict(zip(Summary.COLUMNS, row, strict=True)) for row in zip(columns, *(a.tolist() for a in found), strict=True)
    ]


def _natural_tails(run, columns, rows, draws):
    """A sentence on natural parameters that have no variance, by `natural_draws` and their rows.

    Not on those that are a multiple of a coordinate, and a constant: of these `tails_of` judges, which knows gradients,
    where draws of a narrow mode with a wide skirt look heavy. Nor on those whose farthest draw is nearer to 0 than many
    of another number of the same long vector of derived ones: high frequencies of a smooth process have draws of all
    orders below that.
    """
    if not columns or run.info.get("improper"):
        return []
    x = np.stack(list(columns.values()), axis=-1)
    # Two errors: they may be many, and no gradient bears it out. Effects of few groups looked heavy by chance.
    heavy = heavy_tails(x, np.arange(x.shape[-1]), np.array([row["ess"] for row in rows]), errors=2.0)
    if heavy and run.dim <= TAILS and _asked(run) is not None:
        heavy = {k: alpha for k, alpha in heavy.items() if not _is_coordinate(x[..., k], draws)}
    vectors = [name.partition("[")[0] for name in columns]
    many = dict.fromkeys(vectors, 0.0)
    for k, vector in enumerate(vectors if heavy else ()):
        if vector not in run.transforms and vectors.count(vector) >= LONG:
            many[vector] = max(many[vector], float(np.quantile(np.abs(x[..., k]), 0.975)))
    heavy = {k: alpha for k, alpha in heavy.items() if np.abs(x[..., k]).max() > many[vectors[k]]}
    at = quantiles(SHOWN, x, [r.length for r in run.records])
    return _without_variance(list(columns), heavy, at, "those of draws of `run.constrain`")


def _is_coordinate(values, draws):
    """Whether values (chains, n) are a multiple of a coordinate of draws (chains, n, d), and a constant."""
    x, y = draws.reshape(-1, draws.shape[-1]), values.ravel()
    x, y = x - x.mean(axis=0), y - y.mean()
    with np.errstate(all="ignore"):
        return bool(np.any(np.abs(y @ x) > (1.0 - 1e-9) * np.sqrt(np.sum(x * x, axis=0) * (y @ y))))


def sd_errors(draws):
    """Relative Monte Carlo errors of the standard deviations (d,) of equally spaced draws (chains, n, d).

    The relative error of a standard deviation is half that of the variance. If |x - mean| mixes slowly, as on bouncing
    paths that are seldom refreshed, it is much larger than the error of the mean suggests. Where the squares are not
    correlated the result is 0, because the number of draws limits the precision, not the path.
    """
    parts = blocks(draws)
    if len(parts) > 1:
        return np.concatenate([sd_errors(part) for part in parts])
    squares = (draws - draws.mean(axis=(0, 1))) ** 2
    with np.errstate(all="ignore"):
        error = monte_carlo_error.standard_error(
            list(squares), [1.0] * len(draws), [float(draws.shape[1])] * len(draws)
        )
        alone = squares.std(axis=(0, 1)) / math.sqrt(draws.shape[0] * draws.shape[1])
        return np.where(error > CORRELATED * alone, 0.5 * error / squares.mean(axis=(0, 1)), 0.0)


def _unsure(run, names, draws):
    """A sentence on coordinates that moved from 0 and back too seldom, in a run of a sticky process."""
    records = [r for r in run.records if r.length > 0.0]
    if draws is None or not records or not all("included" in r.accumulated for r in records):
        return []
    found = sum(r.accumulated["included"] for r in records) / sum(r.length for r in records)
    error, rests = changes(run, found, draws)
    unsure = np.flatnonzero(error > UNSURE)
    if not len(unsure):
        return []
    k = unsure[np.argmax(error[unsure])]
    times = ", ".join(f"{count:,}" for count in rests[:8, k]) + (", …" if len(rests) > 8 else "")
    return [
        f"{_some(names, unsure)} went to 0 and back too seldom: {names[k]} rested there {times} times"
        f"{' in the chains' if len(rests) > 1 else ''}, and its inclusion probability, {found[k]:.3g}, is known to "
        f"{error[k]:.1g} at best: run about {math.ceil((error[k] / UNSURE) ** 2):,} times as long."
    ]


def tails_of(run, draws, places=None, ess=None):
    """`heavy_tails` of a run: by the gradient of all coordinates where they are few, else of `places`."""
    model = _asked(run)
    if model is not None and run.dim <= TAILS:
        places = np.arange(run.dim)
    places = np.arange(0) if places is None else places
    return heavy_tails(draws, places, ess, model)


def _asked(run):
    """The model whose gradients tell of tails; None where they cannot, or take too long."""
    model = None if isinstance(run.process, str) else getattr(run.process, "model", None)
    asked = 2 * (2 * min(run.dim, TAILS) + 2 * RAYS)
    if not hasattr(model, "gradient") or run.process.rests or run.process.walled or asked * model.n_data > TERMS:
        return None
    return None if run.stopped == "failed" else model  # which may be why it failed


def tail_warning(run):
    """A sentence if coordinates have no variance by the gradient far out; of a run that `pdmp.auto` has set up."""
    draws = None if run.info.get("choice") is None or run.store == "moments" else diagnostic_draws(run)
    return [] if draws is None else _coordinates_without_variance(run, run.names(), tails_of(run, draws))


def _coordinates_without_variance(run, names, heavy):
    """`_without_variance` of coordinates."""
    at = run.quantile(SHOWN) if heavy else None
    how = "`run.quantile([0.05, 0.5, 0.95])`" + (' of `store="grid"`' if run.aside else "")
    return _without_variance(names, heavy, at, how)


def _without_variance(names, heavy, quantiles, where):
    """A sentence on what has no variance, of tail indices {place: α}; where quantiles are found, and which they are."""
    if not heavy:
        return []
    k = min(heavy, key=heavy.get)
    mean = " nor a mean" if heavy[k] <= 1.0 + AGREEMENT else ""
    at = ", ".join(f"{value:.3g}" for value in quantiles[:, k])
    return [
        f"{_some(names, list(heavy))} {'seems' if len(heavy) == 1 else 'seem'} to have no variance{mean}: the tail "
        f"index of {names[k]} is about {heavy[k]:.2g}, and of 2 or less there is none. Its sd, Monte Carlo error and "
        "effective draws mean nothing, and no longer run mends that. Report quantiles, "
        f"{where}: 5, 25, 50, 75 and 95 % of {names[k]} are below {at}."
    ]


def _cost(run, ess):
    moved = ess[np.isfinite(ess)]
    if not len(moved):
        return ""
    found = monte_carlo_error.efficiency(run, ess=ess)
    parts = [("second", "per_second"), ("event", "per_event"), ("data pass", "per_data_pass")]
    each = ", ".join(f"{found[key]:.3g} per {name}" for name, key in parts if math.isfinite(found[key]))
    return f"least ess {found['ess_min']:,.0f}: {each}"


def stay_apart(run, draws, rhat):
    """Coordinates (d,) in which each chain, of draws (chains, n, d), has settled, and not where the others are."""
    found = rhat > SEPARATE
    if run.chains < 2 or not found.any():
        return np.zeros(run.dim, bool)
    with np.errstate(all="ignore"):
        for one, chain in zip(draws, split(run), strict=True):
            found[found] = chain.ess("spectral")[found] > SETTLED
            if found.any():
                found[found] = draws_rhat(one[None, :, found], "rank") < LARGE
    return found


def _unequal(run):
    """A sentence where averages over draws, as many of each chain, are others than averages over time."""
    lengths = [record.length for record in run.records]
    if len(lengths) < 2 or run.store == "moments" or run.aside or not max(lengths) > UNEQUAL * min(lengths) > 0.0:
        return []
    return [
        f"the chains have unequal lengths, {min(lengths):.4g} to {max(lengths):.4g}: `run.mean()`, `var`, `cov` and "
        "`quantile` weigh each chain by its length, but `run.draws()` has as many draws of each chain, so that the "
        "shorter ones count for more in averages over draws: weigh draws by the `length` of their `run.records`."
    ]


def _neck(run):
    """What makes a path slow, where the warm-up has seen a neck."""
    name = getattr(run.process, "neck", None)
    return f": with {name} others get narrow, down a neck (non-centred, for a hierarchy)" if name else ""


def find_warnings(run, names, sd, ess, rhat, loose, apart, heavy):
    """What is wrong with the run and what to change, a list of sentences."""
    found, d, stats = list(run.info.get("cautions", [])), run.dim, run.stats
    if improper := run.info.get("improper"):  # chains that drift apart, and slowly, say no more than that
        found, heavy, apart = [improper, *found], {}, np.zeros(d, bool)
    if improper or run.stopped == "in vain":  # a longer run would not mend it
        ess, rhat, loose = np.full(d, math.inf), np.zeros(d), np.zeros(d)
    found += run.info.get("wrong_gradient", [])
    found += [f"{text}." for text in run.info.get("doubts", [])]
    light = ~apart
    light[list(heavy)] = False  # of those without a variance, effective draws and errors mean nothing
    if run.stopped == "failed":
        left_out = run.info.get("left_out", "")
        found.append(f"the run failed; the table is of what was sampled until then{left_out}.")
    if run.stopped == "interrupted":
        found.append("the run was interrupted; the table is of what was sampled until then.")
    still = np.flatnonzero(sd == 0.0)
    if len(still):
        found.append(
            f"{_some(names, still)} never moved: the step may be too large for any proposal to be accepted, or the "
            "run too short."
        )
    found += _no_density(run, names, rhat)
    if apart.any():
        k = int(np.argmax(np.where(apart, rhat, -np.inf)))
        found.append(
            f"the chains stay apart in {_some(names, np.flatnonzero(apart))} (R-hat {rhat[k]:.3g} of {names[k]}), each "
            "settled by itself: they are in separate modes. Averages over them mean nothing, and no longer run mends "
            "that. pdmp.sample(model, tempered=True) gives each mode its share; or, where labels of a mixture have "
            "switched, order what tells them apart, pdmp.models.transforms.Ordered."
        )
    found += _coordinates_without_variance(run, names, heavy)
    low = np.flatnonzero((ess < FEW) & light)
    if len(low):
        k = low[np.argmin(ess[low])]
        found.append(
            f"fewer than {FEW:.0f} effective draws of {_some(names, low)} (least {ess[k]:.3g}: its mean is known to "
            f"{2.0 / math.sqrt(max(ess[k], 1e-2)):.1g} standard deviations): run about "
            f"{math.ceil(FEW / max(ess[k], 1e-2)):,} times as long"
            + (f", {OF_MODELS}{_neck(run)}." if run.info.get("choice") else ", or give a `metric`.")
        )
    elif np.any(np.isnan(ess) & (sd != 0.0)):
        found.append("too short for Monte Carlo errors: there are fewer than 16 events after the warm-up.")
    wide = np.flatnonzero((loose > LOOSE) & light)
    if len(wide) and (len(low) or np.mean(loose > LOOSE) > 1e-3):
        k = wide[np.argmax(loose[wide])]
        found.append(
            f"the standard deviation of {_some(names, wide)} is known to {200.0 * loose[k]:.2g} % at best, as tails "
            f"are heavy, or squares mix slowly: run about {math.ceil((loose[k] / LOOSE) ** 2):,} times as long"
            + (", or refresh more often." if "refresh" in stats["events"] else ".")
        )
    high = np.flatnonzero((rhat > LARGE) & ~apart)
    if len(high) and (len(low) or np.mean(rhat > LARGE) > 1e-3):
        k = high[np.argmax(rhat[high])]
        found.append(
            f"R-hat above {LARGE} for {_some(names, high)} (largest {rhat[k]:.3g}, of {names[k]}): the chains, or "
            "their halves, are in different places. Look at `pdmp.plots.ranks(run)`, and run longer, with a longer "
            "warm-up."
        )
    found += _unequal(run)
    if stats["bound_violations"]:
        bound = events.bounds(run)
        found.append(
            f"{bound['violations']:,} of {stats['thinned']:,} proposals exceeded their bound, the largest by "
            f"{100.0 * stats['max_excess']:.3g} %: about {bound['missed']:.2g} events of the right process are missing"
            + _path_distance(bound["path_distance"])
        )
    temperature = stats.get("mean_kinetic_temperature", 1.0)
    if not COLD < temperature < HOT and temperature == temperature:
        found.append(
            f"kinetic temperature {temperature:.3g}, where it should be 1: "
            + (
                "the step is too large for the noise of the gradient, or the warm-up too short"
                if temperature >= HOT
                else "the step is too large for the friction, or the warm-up too short for the thermostat"
            )
            + "; try a smaller step."
        )
    found += _heat(run)
    found += step_warning(run)
    if not isinstance(run.process, str):
        found += [f"{text}." for text in run.process.report.warnings(run.process, stats)]
        found += run.process.report.reminders(run.process)
    if np.any(np.isnan(sd)):
        found.append(f"the extrapolated variance is negative for {_some(names, np.flatnonzero(np.isnan(sd)))}.")
    return found if d else []


def _path_distance(distance):
    """How far the law of a path is off, if the bound says something, and what to set."""
    if distance >= 0.5:
        return (
            ", too many to say how far the law of a path is off; give an exact bound or a larger margin (`thinning=`, "
            "such as pdmp.thinning.Grid(safety=20); `k` of pdmp.SBPS), and check that the gradient is that of U."
        )
    said = f", and the law of a chain's path is off by at most {distance:.2g} in total variation"
    return f"{said}." if distance < 0.01 else f"{said}; use a tighter horizon or an exact bound (`thinning=`)."


def step_warning(run):
    """A sentence if a Metropolis test would reject many more of a chain's steps than its automatic step allowed for."""
    process = run.process
    if isinstance(process, str) or type(process.report).step_acceptance is Report.step_acceptance:
        return []  # before draws are taken, which are many
    n = min(64, TERMS // max(getattr(getattr(process, "model", None), "n_data", 0), 1) // 4)
    if run.store == "moments" or n < 16 or int(run.events.min()) < n:
        return []
    draws = diagnostic_draws(run)
    if draws is None:
        return []
    draws = draws.reshape(-1, run.dim)
    some = draws[np.linspace(0, len(draws) - 1, n).astype(int)]
    found = process.report.step_acceptance(process, some, np.random.default_rng(0))
    if found is None or not found[0] < REJECTED * found[1]:
        return []
    return [
        f"a Metropolis test would accept {found[0]:.0%} of the steps, where {found[1]:.0%} were expected: the "
        "automatic step is too large away from the mode, and the law of the chain wrong; give a smaller step."
    ]


def short_warning(run):
    """A sentence if chains never left where they began, or a mean has hardly any effective draws.

    Of as many coordinates as can be looked at without reading much of a long path.
    """
    if run.stopped in ("failed", "interrupted") or run.dim == 0:
        return []
    few = f"fewer than {SCARCE:.0f} effective draws"
    if all(record.length <= 0.0 for record in run.records):
        return [f"{few}: there is no path after the warm-up, as the run ended before, or had no event."]
    moved = [_moved(record, run.dim) for record in run.records]
    still = [not np.any(where) for where in moved]
    rests = not isinstance(run.process, str) and run.process.rests
    if any(still) and not rests:
        number = f"{sum(still)} of {run.chains} chains" if run.chains > 1 else "the chain"
        return [
            f"{few}: {number} never left where {'they' if sum(still) > 1 else 'it'} began. The step may be too large "
            "for any proposal to be accepted, the start in a place that cannot be left, or the run too short."
        ]
    names, least, worst, read, anywhere = run.names(), math.inf, 0, 0, np.any(moved, axis=0)
    for part in portions(run):
        ess = effective_draws(run, part, ["mean"])["mean"]
        # A variance that extrapolation made negative says nothing of the mean; `var` warns of it.
        ess = np.where(ess < 0.0, math.inf, np.where(ess > 0.0, ess, 0.0))  # NaN of too short a path
        if rests:
            ess[~anywhere[part]] = math.inf
        if ess.min() < least:
            least, worst = float(ess.min()), part.start + int(np.argmin(ess))
        read += int(run.events.sum()) * (part.stop - part.start)
        if least < SCARCE or read > LOOKED:
            break
    if not least < SCARCE:
        return []
    more = ": averages can be off by a posterior standard deviation. Sample longer, and look at `run.summary()`."
    return [f"{few} of {names[worst]} ({least:.2g}){more}"]


def copies_warning(run):
    """A sentence if chains have the same path to the last bit, so that they are pooled as if they were independent."""
    seen: dict[bytes, int] = {}
    for k, record in enumerate(run.records):
        if run.events[k] < NO_CHANCE or not np.any(_moved(record, run.dim)):
            continue
        sums = record.integrals
        path = sums.centre.tobytes() + sums.first.tobytes() + sums.second.tobytes()
        if path in seen:
            return [
                f"chains {seen[path]} and {k} have the same path: what the process draws does not come from the `rng` "
                "that its methods are given, or it draws nothing. They count as one chain; R-hat, effective draws "
                "and errors are of copies."
            ]
        seen[path] = k
    return []


def _moved(record, d):
    """Which coordinates of a chain moved after the warm-up, (d,)."""
    if record.length <= 0.0:
        return np.zeros(d, bool)
    first, second = (a[:d] / record.length for a in (record.integrals.first, record.integrals.second))
    return second > first**2


def anchor_warning(run):
    """A sentence if the anchor of control variates was far from the path: more data are evaluated then than need be."""
    process = run.process
    while hasattr(process, "inner"):
        process = process.inner
    provider = getattr(process, "provider", process)
    if not hasattr(provider, "anchor_distances") or run.stats["thinned"] < EXAMINED:
        return []
    if not any(r.length > 0.0 for r in run.records):
        return []
    found = provider.anchor_distances(run.mean(), run.var())
    if found is None or not found[0] > (DISTANT**2 - 1.0) * found[1]:
        return []
    times = math.sqrt(1.0 + found[0] / found[1]) if found[1] > 0.0 else math.inf
    return [
        f"the path was {times:.1f} times as far from the anchor as from its own mean, and bounds on what the data "
        f"contribute grow in proportion: {provider.anchor_advice}."
    ]


def _no_density(run, names, rhat):
    """A sentence if along some coordinates the density does not fall off at the places that were visited.

    Of any density without walls E (x - m) ∂U/∂x is 1, whatever m, by partial integration; where the potential is flat
    it is 0, and where the density rises outwards it is negative.
    """
    process, high = run.process, np.flatnonzero(rhat > APART)
    model = None if isinstance(process, str) else process.model
    if not len(high) or not hasattr(model, "gradient") or run.store == "moments" or process.rests or process.walled:
        return []
    if run.stopped == "failed" or process.aimed_temperature() != 1.0:
        return []
    draws = diagnostic_draws(run)
    n = 0 if draws is None else min(PLACES, draws.shape[1], TERMS // max(model.n_data, 1) // run.chains)
    if n < FEWEST:
        return []
    x = draws[:, np.linspace(0, draws.shape[1] - 1, n).astype(int)].reshape(-1, run.dim)
    try:
        gradients = np.array([model.gradient(row) for row in x])
    except (ValueError, TypeError):  # a path without draws, or a state that is not a point of the model
        return []
    with np.errstate(all="ignore"):
        products = ((x - x.mean(axis=0)) * gradients)[:, high]
        value = products.mean(axis=0)
        most = value + 3.0 * products.std(axis=0) / math.sqrt(len(x))
    flat_ones = np.flatnonzero(most < FALLS)
    if not len(flat_ones):
        return []
    k = flat_ones[np.argmin(value[flat_ones])]
    return [
        f"along {_some(names, high[flat_ones])} the density does not fall off where the chains went: the mean of "
        f"(x - mean) ∂U/∂x is {value[k]:.2g} for {names[high[k]]}, and 1 for a density without walls. The posterior "
        "may be improper, if a parameter has a flat prior and the data say nothing of it, or the chains have hardly "
        "moved, as with a step that is too small or refreshments that are too many."
    ]


def _heat(run):
    """A sentence if a fixed-step chain is hotter than its target, measured with exact gradients."""
    process = run.process
    model = None if isinstance(process, str) else process.model
    if model is None or not process.ticks or not hasattr(model, "gradient") or run.store == "moments":
        return []
    aimed = process.aimed_temperature()
    if not aimed:  # 0: a descent
        return []
    if run.stopped == "failed" or run.info.get("wrong_gradient"):  # which says it already
        return []
    n = min(200, TERMS // max(model.n_data, 1) // run.chains, int(run.events.min()) // 2)
    if run.store == "grid":
        n = min(n, min(int(r.grid.used[0]) for r in run.records))
    if n * run.chains < 16 or n < 4:
        return []
    try:
        found = events.configurational_temperature(model, run.draws(n))
    except (ValueError, TypeError):  # a path without draws, or a state that is not a point of the model
        return []
    if not found.value > WARM * aimed + 4.0 * found.error:
        return []
    return [
        f"configurational temperature {found}, where it should be {aimed:g}: the step is too large for the noise of "
        "the gradient or for the curvature, or the warm-up is too short; try a smaller step, larger batches or a "
        "control variate, and a longer warm-up."
    ]


def _some(names, places):
    """Up to three names, and how many more."""
    text = ", ".join(names[k] for k in places[:3])
    return text if len(places) <= 3 else f"{text} and {len(places) - 3:,} more"
