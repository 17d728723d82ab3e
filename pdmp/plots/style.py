"""How pictures look, which coordinates they show, and what a run gives them to draw."""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from pdmp.data.formats import listed
from pdmp.diagnostics.averages import diagnostic_draws, split

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pdmp.engine.result import Run

#: Any two differ by at least 25 in CIELAB, for readers without red or green cones too (tests simulate that).
COLOURS = (
    *("#0072B2", "#D55E00", "#5EAF94", "#5E2843", "#43AFCA", "#794328", "#282894", "#0DCA5E"),
    *("#1A85FF", "#2828E6"),
)
SMOOTHED = 2_000  #: draws of which a kernel density is, at most
MARKERS = "os^DvPX*"  #: of the kinds of event, which have colours too
DASHES = (0, (4, 1.2))  #: of fixed-step samplers
STYLE = {
    "font.family": "sans-serif",
    "font.size": 8.5,
    "axes.titlesize": 9.0,
    "axes.labelsize": 8.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "figure.dpi": 110,
    "savefig.dpi": 200,
}
LABEL = {"x": 0.5, "y": 0.18}  #: inches that the label of a tick takes
PATH_NUMBERS = 20_000_000  #: largest number of positions times coordinates that are read of one path
LONGEST_NAME = 26  #: characters of a name that a panel has room for
DRAWS = 4_000  #: draws of each chain that densities are made of
CANDIDATES = 500  #: coordinates among which the most correlated are searched for

#: What pictures are of, by annotation: in words, and attributes that tell it from anything else.
SUBJECTS = {
    "Run": ("a run, which `pdmp.sample` returns", ("store", "chains", "records")),
    "Comparison": ("a comparison, which `pdmp.compare` returns", ("errors_by_pass", "rms_by_pass")),
    "Reference": ("a reference, which `pdmp.reference` returns", ("mean", "sd", "ess")),
    "Tuning": ("a search, which `pdmp.tuning.mamba` returns", ("table", "best", "clock")),
}

F = TypeVar("F", bound=Callable)


def check_subjects(signature: inspect.Signature, given: dict[str, Any]) -> None:
    """Raise a `TypeError` for an argument that is not what its annotation says, a subject or where to draw."""
    from matplotlib.axes import Axes

    for name, value in given.items():
        kinds = str(signature.parameters[name].annotation).split(" | ")
        if value is None and "None" in kinds:
            continue
        if name in ("ax", "axes"):
            what = "a matplotlib Axes" if name == "ax" else "matplotlib Axes, one for each panel"
            right = isinstance(value, Axes)
            if name == "axes" and not right:
                right = all(isinstance(one, Axes) for one in np.array(value, dtype=object).ravel())
        else:
            kinds = [kind for kind in kinds if kind != "None"]
            if not set(kinds) <= SUBJECTS.keys():
                continue
            what = ", or ".join(SUBJECTS[kind][0] for kind in kinds)
            right = any(all(hasattr(value, of) for of in SUBJECTS[kind][1]) for kind in kinds)
        if not right:
            raise TypeError(f"`{name}` must be {what}, got {type(value).__name__}.")


@contextlib.contextmanager
def closing(always: bool = True) -> Iterator[None]:
    """Close the figures that pyplot opens within, which it would keep; or only if there is an exception."""
    from matplotlib import pyplot

    open_before, failed = set(pyplot.get_fignums()), True
    try:
        yield
        failed = False
    finally:
        for number in set(pyplot.get_fignums()) - open_before if always or failed else ():
            pyplot.close(number)


def styled(function: F) -> F:
    """The function, in whose pictures type and lines have the sizes of `STYLE`, and which refuses wrong subjects.

    A figure that it returns is one of pyplot's, which a notebook and ``pyplot.show()`` show; if it fails, none is left.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def draw(*args, **kwargs):
        from matplotlib import pyplot

        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError:
            given = {}  # Python says below what is missing
        check_subjects(signature, given)
        with pyplot.rc_context(STYLE), closing(always=False):
            return function(*args, **kwargs)

    return draw


def one_axes(ax: Axes | None, width: float = 5.2, height: float = 3.4) -> Axes:
    """The axes given, or those of a new figure of this size in inches."""
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def count_axes(axes: Any, default: int) -> int:
    """The number of axes given, or the default."""
    return default if axes is None else np.size(np.array(axes, dtype=object))


def many_axes(axes: Any, rows: int, columns: int, width: float, height: float, **options: Any) -> np.ndarray:
    """The axes given, as an array of this shape, or those of a new figure with panels of this size in inches."""
    if axes is None:
        from matplotlib import pyplot

        size = (width * columns, height * rows + 0.35)
        return pyplot.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained", **options)[1]
    axes = np.array(axes, dtype=object)
    if axes.size != rows * columns:
        raise ValueError(f"`axes` must be {rows * columns}, one for each panel, got {axes.size}.")
    return axes.reshape(rows, columns)


def say(axes: Axes, text: str, own: bool) -> None:
    """Write how coordinates were chosen above the figure if it is ours (`own`), else above the axes."""
    if text and own:
        axes.figure.suptitle(text, fontsize=8, color="0.35", x=0.01, ha="left")
    elif text:
        axes.set_title(text, fontsize=7.5, color="0.35", loc="left")


def of_chain(run: Run, chain: int | None) -> Run:
    """The run, or one chain of it."""
    if chain is None:
        return run
    return split(run)[check_chain(run, chain)]


def check_chain(run: Run, chain: int) -> int:
    """The number of a chain."""
    if not isinstance(chain, (int, np.integer)) or isinstance(chain, bool) or not 0 <= chain < run.chains:
        raise ValueError(f"`chain` must lie in 0 … {run.chains - 1}, got {chain!r}.")
    return int(chain)


def choose(run: Run, coordinates: Sequence[int | str] | None, most: int, by: str = "ess") -> tuple[list[int], str]:
    """Numbers of the coordinates to draw, and how they were chosen; "" if they were given, or are all.

    If none are given, and there are more than `most`: those with the fewest effective draws (`by` "ess"), the largest
    R-hat ("rhat"), or the most correlated ones ("correlation").
    """
    if coordinates is not None:
        return check_coordinates(coordinates, run), ""
    if run.dim <= most:
        return list(range(run.dim)), ""
    if by == "correlation":
        chosen, why = most_correlated(run, most), "the most correlated"
    elif by == "rhat":
        chosen, why = _first(-np.nan_to_num(run.rhat(), nan=0.0), most), "those with the largest R-hat"
    else:
        chosen, why = slowest(run, most), "those with the fewest effective draws"
    return chosen, f"{most} of {run.dim:,} coordinates: {why}"


def short_names(run: Run) -> list[str]:
    """The names of a run's coordinates as a panel has room for: long ones with an ellipsis in their middle.

    Two that would then look alike are left as they are.
    """
    names, half = run.names(), LONGEST_NAME // 2
    cut = [n if len(n) <= LONGEST_NAME else f"{n[: half - 1].rstrip()} … {n[2 - half :].lstrip()}" for n in names]
    seen = Counter(cut)
    return [short if seen[short] == 1 else name for name, short in zip(names, cut, strict=True)]


def check_coordinates(coordinates: Sequence[int | str], run: Run, least: int = 1) -> list[int]:
    """Numbers of coordinates that were given by number or name."""
    names = run.names()
    given = [coordinates] if isinstance(coordinates, str) or np.ndim(coordinates) == 0 else list(coordinates)
    found = [names.index(k) if isinstance(k, str) and k in names else k for k in given]
    whole = all(isinstance(k, (int, np.integer)) and 0 <= k < run.dim for k in found)
    if len(found) < least or not whole:
        some = "some" if least == 1 else f"at least {least}"
        natural = [k for k in given if isinstance(k, str) and k in run.variables]
        why = f"{natural[0]!r} is a natural parameter, and pictures are of the coordinates; " if natural else ""
        raise ValueError(
            f"`coordinates` must be {some} of 0 … {run.dim - 1}, or their names, got {given}; {why}the names are "
            f"{listed(names)}."
        )
    return [int(k) for k in found]


def _first(values, most):
    """The places of the smallest values, in the order in which they stand."""
    return [int(k) for k in np.sort(np.argsort(values, kind="stable")[:most])]


def slowest(run: Run, most: int) -> list[int]:
    """The coordinates with the fewest effective draws of the mean, those that never moved among them."""
    return _first(np.nan_to_num(run.ess("spectral"), nan=0.0), most)


def most_correlated(run: Run, most: int) -> list[int]:
    """The two most correlated coordinates, then the one that is most correlated with any of these, and so on."""
    among = np.array(slowest(run, CANDIDATES) if run.dim > CANDIDATES else range(run.dim))
    x = draws_of(run, 1_000)[..., among].reshape(-1, len(among))
    with np.errstate(all="ignore"):
        correlation = np.nan_to_num(np.abs(np.corrcoef(x.T)))
    np.fill_diagonal(correlation, -1.0)
    chosen = list(np.unravel_index(np.argmax(correlation), correlation.shape))
    while len(chosen) < most:
        nearest = correlation[chosen].max(axis=0)
        nearest[chosen] = -2.0
        chosen.append(int(np.argmax(nearest)))
    return sorted(int(among[k]) for k in chosen)


def draws_of(run: Run, most: int = DRAWS) -> np.ndarray:
    """At most `most` draws of each chain, (chains, n, d): equally spaced on the path, or all of a grid."""
    if run.store == "grid":
        draws = diagnostic_draws(run)
        return run.draws(1) if draws is None else draws
    return run.draws(int(max(min(most, PATH_NUMBERS // (run.chains * run.dim)), 100)))


def chain_weights(run: Run) -> np.ndarray:
    """The chains' lengths after the warm-up, as fractions: (chains,)."""
    lengths = np.maximum(run.end - run.warmup, 0.0)
    return lengths / lengths.sum()


def sampler_of(run: Run) -> str:
    """The name of the run's sampler."""
    return run.process if isinstance(run.process, str) else type(run.process).__name__


def some_of(draws: np.ndarray, most: int) -> np.ndarray:
    """At most so many of the draws (n, ...), evenly spread over all."""
    return draws[:: max(math.ceil(len(draws) / most), 1)]


def kernel_density(x: np.ndarray, points: np.ndarray) -> np.ndarray | None:
    """Kernel density of draws, of at most `SMOOTHED` of them; None if they are all the same."""
    from scipy.stats import gaussian_kde

    x = some_of(x[np.isfinite(x)], SMOOTHED)
    return gaussian_kde(x)(points) if len(x) > 2 and np.ptp(x) > 0.0 else None


def log_number(y: float, _: Any) -> str:
    """A tick label on a logarithmic axis: plain from 0.0001 to 999,999, with a power of ten beyond."""
    if y <= 0.0:  # beyond the end of the axis
        return ""
    if 0.99e-4 <= y < 999_999.5:
        return f"{y:,.10g}" if y >= 1_000.0 else f"{y:.6g}"
    power = math.floor(math.log10(y * (1.0 + 1e-9)))
    factor = f"{y / 10.0**power:.3g}"
    return rf"$10^{{{power}}}$" if factor == "1" else rf"${factor}\times10^{{{power}}}$"


def log_ticks(axes: Axes, which: str, wanted: Sequence[float] = ()) -> None:
    """Label a logarithmic axis, "x" or "y", where it has room, and leave the minor ticks without labels.

    At those that are `wanted` if all of them fit, to three digits; else at 1, 2, 5, 10, … if these fit, at 1, 3, 10, …,
    or at powers of ten; where there are fewer than two of all of these, at round numbers of equal distances. The limits
    have been set before.
    """
    from matplotlib import ticker

    axis, (low, high) = getattr(axes, f"{which}axis"), sorted(getattr(axes, f"get_{which}lim")())
    box = axes.get_window_extent()
    inches = (box.width if which == "x" else box.height) / axes.figure.dpi
    decades = math.log10(high / low)
    label = LABEL[which] * (1.5 if which == "x" and (low < 1e-4 or high >= 1e6) else 1.0)  # "2×10⁻⁵" is longer
    powers = np.arange(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)

    def fits(ticks):
        inside = np.log10(
            [tick for tick in sorted(ticks) if low <= tick * (1.0 + 1e-9) and tick <= high * (1.0 + 1e-9)]
        )
        return len(inside) > 1 and np.min(np.diff(inside)) * inches / decades >= label

    axis.set_major_formatter(log_number)
    axis.set_minor_formatter(lambda *_: "")
    if fits(wanted):
        axis.set_major_locator(ticker.FixedLocator(wanted))
        axis.set_major_formatter(lambda value, _: log_number(float(f"{value:.3g}"), _))
        return
    for subs in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
        if fits([sub * 10.0**power for power in powers for sub in subs]):
            axis.set_major_locator(ticker.LogLocator(subs=subs, numticks=99))
            break
    else:
        if decades < 1.0:
            locators = [ticker.MaxNLocator(n, steps=[1, 2, 5, 10]) for n in (5, 4, 3, 2)]
            chosen = next((one for one in locators if fits(one.tick_values(low, high))), locators[-1])
        else:
            chosen = ticker.LogLocator(numticks=max(int(inches / label), 2))
        axis.set_major_locator(chosen)


def apart(places: np.ndarray, distance: float) -> list[float]:
    """Sorted places in [0, 1], moved as little as possible to be at least `distance` apart."""
    groups: list[list] = []  # [sum of the wanted centres, members]
    for place in places:
        groups.append([place, 1])
        while len(groups) > 1:
            (a, m), (b, n) = groups[-2], groups[-1]
            if b / n - a / m >= 0.5 * distance * (m + n):
                break
            groups[-2:] = [[a + b, m + n]]
    out: list[float] = []
    for total, n in groups:
        centre = min(max(total / n, 0.5 * distance * n), 1.0 - 0.5 * distance * (n - 1))
        out += [centre + distance * (k - 0.5 * (n - 1)) for k in range(n)]
    return out


def names_at_ends(axes: Axes, ends: dict[str, float], colours: dict[str, str]) -> None:
    """Write names beside the right ends of curves on a logarithmic scale, apart where they would overlap."""
    bottom, top = np.log(axes.get_ylim())
    order = sorted(ends, key=lambda label: ends[label])
    wanted = (np.log([ends[label] for label in order]) - bottom) / (top - bottom)
    inside: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
    for label, place, at in zip(order, apart(wanted, 0.062), wanted, strict=True):
        axes.plot([1.01, 1.06], [at, place], lw=0.6, color=colours[label], **inside)
        axes.text(1.075, place, label, fontsize=8, color=colours[label], va="center", **inside)
