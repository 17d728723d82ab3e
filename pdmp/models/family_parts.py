"""Whether the parts of a family of one's own are of one law.

Whatever the law, the derivative of its loss by each functional is 0 on average over its draws (the score identity),
`mean` is the average of the draws, and exp(constant - loss) sums or integrates to 1. A run would not show what is
wrong: it samples the posterior of another law.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from pdmp.errors import warn

if TYPE_CHECKING:
    from pdmp.models.families import Family

DRAWS = 4_000  #: of each row that is looked at
ERRORS = 6.0  #: standard errors that an average may be off
STEADY = 0.05  #: share of the squares that one draw may have: else a tail or a few events decide on the average
SLIGHT = 1e-3  #: what an average may be off anyhow: where no draw has an event, its standard error is 0
STEP = 1e-4  #: of differences of the loss
NEAR = 0.1  #: a functional moved by as much must leave all draws possible: else the derivative has another mean
TOLERANCE = 0.01  #: of a sum or an integral that is 1
NOTHING = 1e-6  #: a sum or an integral that misses the law
MOST = 100_000  #: terms of a sum
SEED = 0
LOOSE = "log", "logit", "probit", "cloglog"  #: links that may have any number
#: First functional, and the others by their number; by other links, which know no bounds, all are in (0, 1).
PLACES = (0.3, lambda k: 0.3 + 0.15 * k), (-0.4, lambda k: 0.4 + 0.11 * k), (0.5, lambda k: -0.3 - 0.13 * k)
#: Of continuous responses: y by a number u, the slope of that, u by y, and how far u goes.
UNBOUNDED: dict[str, tuple[Callable, Callable, Callable, float]] = {
    "number": (np.sinh, np.cosh, np.arcsinh, 60.0),
    "positive": (np.exp, np.exp, np.log, 60.0),
    "share": (
        lambda u: 1 / (1 + np.exp(-u)),
        lambda u: 0.25 / np.cosh(0.5 * u) ** 2,
        lambda y: np.log(y / (1 - y)),
        34,
    ),
    "angle": (np.positive, np.ones_like, np.positive, math.pi),
}


class _Unfit(Exception):
    """What is wrong with draws themselves."""


def compare_parts(family: Family, y: np.ndarray, columns: Mapping[str, np.ndarray]) -> None:
    """Warn of a loss, a draw, a mean or a constant that does not fit the others, at a few places and rows.

    Parameters
    ----------
    family : Family
        Without cuts and categories.
    y : ndarray, shape (N,)
        Responses.
    columns : mapping of str to ndarray
        Further data that the rows have.
    """
    left = ("censored", "upper") if "censored" in family.data else ()  # draws are of what is seen
    own = {name: a for name, a in columns.items() if name in family.data and name not in left}
    rows = [int(i) for a in own.values() for i in (np.argmin(a), np.argmax(a))][:8] or [0, 0]
    data = [own[name][rows] if name in own else (usual or 0.0) for name, usual in family.data.items()]
    with np.errstate(all="ignore"):
        for text in _Look(family, y[:: 1 + len(y) // MOST], data, (DRAWS, len(rows))).found():
            warn(text)


class _Look:
    """At the parts, place by place."""

    def __init__(self, family, y, data, shape):
        self.family, self.y, self.data, self.shape = family, y, data, shape
        self.said: dict[str, str] = {}  #: by the part
        self.fits = False  #: whether a mean could be compared
        self.totals: list[tuple[float, str]] = []  #: those that are not 1, and where

    def found(self) -> list[str]:
        """A sentence for each fault."""
        family, failed, looked = self.family, None, False
        for first, others in PLACES:
            eta = [first, *(others(k) for k in range(1, len(family.links)))]
            eta = [z if link in LOOSE else abs(z) for z, link in zip(eta, family.links.values(), strict=True)]
            values = family.inverse([np.full(self.shape, z) for z in eta])
            at = ", ".join(f"{name} = {v.flat[0]:.3g}" for name, v in zip(family.links, values, strict=True))
            try:
                drawn = None if family.draw is None else self.drawn(values)
                looked = True
            except _Unfit as fault:
                return [f"`draw` of {family.name} {fault}."]
            except Exception as error:  # noqa: BLE001 - of the user's, also for parameters out of their range
                failed = failed or (error, eta)
                continue
            # Further data may be of how a row is seen, weighed or scaled, of which draws know nothing.
            looks = (self.look_at_scores, self.look_at_means, self.look_at_totals)
            for look in looks[1:2] if family.data else looks:
                try:
                    look(eta, values, at, drawn)
                except Exception:  # noqa: BLE001, S112
                    continue
        if failed is not None and not looked and self.is_fault(*failed):
            text = str(failed[0]).partition("\n")[0]
            return [
                f"`draw` of {family.name} fails for arrays of parameters, {type(failed[0]).__name__}: {text}: write "
                "(rng, parameters…, further data…) -> a draw for each, as rng.normal(mu, sigma) is."
            ]
        return self.sentences()

    def drawn(self, values):
        """Draws, (DRAWS, rows)."""
        family = self.family
        y, again = (np.asarray(family.draw(np.random.default_rng(SEED), *values, *self.data), float) for _ in range(2))
        if y.shape != self.shape:
            raise _Unfit(
                f"gives numbers of shape {y.shape} for parameters of {self.shape}: write one draw for each, as "
                "rng.normal(mu, sigma) is"
            )
        if not np.array_equal(y, again, equal_nan=True):
            raise _Unfit("gives other numbers for the same `rng`: write rng.normal(…), say, for np.random.normal(…)")
        return y

    def is_fault(self, error, eta):
        """Whether that draws fail is no matter of where: of one number they do not, or not by what it is."""
        try:
            one = [np.ravel(a)[0] for a in (*self.family.inverse(eta), *self.data)]
            return np.isfinite(float(self.family.draw(np.random.default_rng(SEED), *one)))
        except Exception as alone:  # noqa: BLE001
            return not isinstance(alone, ValueError) or isinstance(alone, IndexError)  # of axes it is both

    def averages(self, values, slight):
        """The mean, its standard error, infinite if not steady, and whether it is not 0."""
        mean, squares = values.mean(), (values - values.mean()) ** 2
        total = squares.sum()
        error = math.sqrt(total) / values.size if squares.max() <= STEADY * total else math.inf
        return mean, error, abs(mean) > ERRORS * error + slight

    def look_at_scores(self, eta, values, at, drawn):
        if drawn is None or "score" in self.said:
            return
        family, y, far = self.family, drawn.ravel(), 0.0
        stored = family.stored(y)

        def loss(k, by):
            moved = [np.full(y.shape, z + by * (j == k)) for j, z in enumerate(eta)]
            return np.broadcast_to(np.asarray(family.loss(stored, *moved), float), y.shape)

        for k, (name, link) in enumerate(family.links.items()):
            score = (loss(k, STEP) - loss(k, -STEP)) / (2.0 * STEP)
            mean, error, off = self.averages(score, SLIGHT)
            ratio = abs(mean) / (error + SLIGHT)
            if off and ratio > far and np.all(np.isfinite([loss(k, NEAR), loss(k, -NEAR)])):
                far, given = ratio, name if link == "identity" else f"the {link} of {name}"
                self.said["score"] = (
                    f"`draw` and `loss` of {family.name} are not of one law: at {at} the derivative of `loss` by "
                    f"{given} is {mean:.3g} ± {error:.1g} on average over draws, and must be 0"
                )
                self.said["loss"] = (
                    f"write in `loss` all of -log p that depends on {name}, such as the logarithm of a scale"
                    + f", where it is given {given}, not {name}" * (link != "identity")
                )

    def look_at_means(self, eta, values, at, drawn):
        family = self.family
        if drawn is None or family.mean is None or family.response == "angle" or "mean" in self.said:
            return
        mean = np.broadcast_to(np.asarray(family.mean(*values, *self.data), float), self.shape)
        _, error, off = self.averages(drawn - mean, SLIGHT * np.abs(mean).mean())
        self.fits = self.fits or math.isfinite(error)
        if off and np.ptp(drawn) > 0.0:
            self.said["mean"] = (
                f"`mean` of {family.name} is not that of `draw`: at {at} it is {mean.mean():.4g}, and draws are "
                f"{drawn.mean():.4g} ± {error:.1g} on average"
            )

    def look_at_totals(self, eta, values, at, drawn):
        family = self.family
        if family.constant is None or "score" in self.said:
            return
        found = list(self.totals_of(eta, self.y if drawn is None else drawn.ravel(), drawn is not None))
        found = [one for one in found if drawn is not None or not one < NOTHING]  # of a law elsewhere
        if found and all(abs(one - 1.0) > TOLERANCE for one in found):  # of NaN nothing is known
            self.totals.append((found[0], at))

    def totals_of(self, eta, sample, is_drawn):
        """What the density has over y where draws are; else over all y, or from the least or to the greatest seen.

        Where there is nothing but the responses, one of them that is 1 is enough: 0 may be no response of the law.
        """
        kind, zeros = self.family.response.removesuffix(" or 0"), self.family.response.endswith(" or 0")
        sample = sample[sample > 0.0] if zeros else sample
        if not len(sample):
            return

        def density(y):
            return np.exp(self.family.log_density(y, *(np.full(y.shape, z) for z in eta)))

        low, high = sample.min(), sample.max()
        if kind in ("count", "label"):
            end = 1.0 if kind == "label" else 0.1 * MOST
            for a, b in ((low, high),) if is_drawn else ((0.0, end), (low, end), (0.0, high)):
                yield density(np.arange(a, b + 1.0)).sum() if b - a < MOST else math.nan
            return
        if len(np.unique(sample)) < 0.9 * len(sample):  # numbers have probabilities of their own, as rounded ones
            return
        of, slope, inverse, end = UNBOUNDED[kind]
        own = np.median(sample), np.subtract(*np.quantile(sample, [0.75, 0.25])) or 1.0
        for m, s in ((0.0, 1.0), own) if kind == "number" else ((0.0, 1.0),):
            a, b = inverse((low - m) / s), inverse((high - m) / s)
            for ends in ((a, b),) if is_drawn else ((-end, end), (a, end), (-end, b)):
                u = np.linspace(*ends, 4_001 if is_drawn else 20_001)
                p = density(m + s * of(u)) * s * slope(u)
                fine, coarse = (np.sum(0.5 * (v[1:] + v[:-1])) * (u[h] - u[0]) for v, h in ((p, 1), (p[::2], 2)))
                zero = density(np.zeros(1))[0] if zeros else 0.0
                yield fine + zero if abs(fine - coarse) <= TOLERANCE * max(1.0, fine) else math.nan

    def sentences(self):
        """All that is wrong, with what to write."""
        said, name = self.said, self.family.name
        if "score" in said:
            how = said["loss"] + ", or mend `draw`" + ", though `mean` fits it" * self.fits
            if "mean" in said:
                how = (
                    "as `mean` does not fit `draw` either, draw from the law of `loss`, by parameters, not their links"
                )
            return [f"{said['score']}; {how}."]
        found = []
        if "mean" in said:
            found.append(
                f"{said['mean']}; write what `draw` has on average, by parameters, not their links, or mend it."
            )
        if self.totals:
            total, at = self.totals[0]
            sizes = [total for total, _ in self.totals]
            how = (
                f"write a `constant` that is {abs(math.log(total)):.4g} {'lower' if total > 1.0 else 'higher'}"
                if len(sizes) == len(PLACES) and max(sizes) < (1.0 + TOLERANCE) * min(sizes)
                else "write in `constant` what of log p depends on y alone, and in `loss` all of -log p that depends "
                "on parameters, such as the logarithm of a scale"
            )
            found.append(
                f"`constant` and `loss` of {name} do not give a density: at {at} exp(constant - loss) is {total:.3g} "
                f"in all over y, and must be 1; {how}."
            )
        return found
