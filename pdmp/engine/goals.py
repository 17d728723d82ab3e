"""Goals of a run, effective draws and R-hat: examined at numbers of proposals that depend on the path alone.

All chains run up to a look, a number of proposals, and wait there for each other; then the run is examined as it would
be at its end, and either stops there or goes on to the next look, a quarter further after the warm-up. Neither a clock
nor the goal itself decides where the looks are. So a seed repeats its run however busy the machine is, in any
executor, and a run that is extended to a higher goal is bitwise the run that was given that goal at once.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from pdmp.diagnostics.averages import DIAGNOSTIC_DRAWS, effective_draws, portions
from pdmp.diagnostics.mode_shares import share_draws
from pdmp.engine.chain import GOALS, LOOK, NEVER, SKELETON_BYTES, Budget, finished, row_bytes, rows_per_event
from pdmp.engine.result import Run
from pdmp.process import EVENTS, PROPOSALS

FIRST_LOOK = 500  #: proposals after the warm-up at the first look, at least
CLOCK_PROPOSALS = 10  #: and at least so many for each clock
GROWTH = 4  #: each look is 1 / `GROWTH` of the proposals after the warm-up further than the last
QUICK_NUMBERS = 2_000_000  #: numbers in the draws of all chains up to which R-hat is computed at every look
VAIN = "in vain"  #: why a run stopped that would reach no goal (`Report.in_vain`)
DEFAULT_PROPOSALS = 10_000_000  #: where a chain stops that has reached no goal, if no other budget is given


class Goal:
    """What a run must reach: at least `ess` effective draws, and an R-hat of at most `rhat`.

    `warmup` is a fraction of the proposals up to the first look.
    """

    def __init__(self, process, warmup, ess=None, rhat=None):
        self.ess, self.rhat = ess, rhat
        self.reason = ", ".join(name for name, value in (("ess", ess), ("rhat", rhat)) if value is not None)
        self.step = max(process.ticks, 1)
        self.first = self._whole(max(FIRST_LOOK, CLOCK_PROPOSALS * process.clocks) / (1.0 - warmup))
        self.warmup = warmup * self.first
        #: At the last look: effective draws, infinite where they were not counted, as other coordinates had too few
        #: already; R-hat of each coordinate, None where it was not needed; and, where all coordinates have enough,
        #: effective draws of what else the process asks for (`Report.further_draws`), and of shares of modes.
        self.draws = self.rhats = None
        self.further: dict[str, float] = {}
        self.shows_rhat = self.partial = False  # whether R-hat is displayed; whether draws of some were not counted
        self.slowest = {}  # the least effective draws of a proposal, of each portion of coordinates that was counted
        self.bound = None  # the default bound, if no other budget is given
        self.records = None  # of the chains at the last look, whose memory the next look takes

    def _whole(self, proposals):
        return self.step * math.ceil(round(proposals / self.step, 6))

    def after(self, look):
        """The look that follows."""
        return look + self._whole((look - self.warmup) / GROWTH)

    def limit(self, process, budget, chains, store):
        """The budget with a bound at which chains end that never reach the goal."""
        if budget == Budget(step=budget.step):
            budget = replace(budget, proposals=self._whole(DEFAULT_PROPOSALS))
            self.bound = "proposals"
        if store == "skeleton" and budget.events == NEVER:
            room = 0.95 * SKELETON_BYTES / (chains * rows_per_event(process)[0])
            events = self.step * int(room / row_bytes(process, process.flow.kind != "constant") / self.step)
            budget = replace(budget, events=max(events, self.step))
        return budget

    def begin(self, chains):
        """The first look that no chain has passed."""
        look, most = self.first, max(int(c.state.counts[PROPOSALS]) for c in chains)
        while look < most:
            look = self.after(look)
        return look

    def resume(self, chains):
        """After a checkpoint was read: chains that waited at an earlier look than others go on."""
        look = max(c.look for c in chains)
        if look == NEVER:  # the file is of a run without a goal
            look = self.begin(chains)
        for chain in chains:
            if chain.stopped == LOOK and chain.look < look:
                chain.stopped = None
            chain.look = look

    def go_on(self, chains, info):
        """Examine chains that have all stopped or wait; whether they shall run to another look.

        Where one was interrupted on its way to the look, nothing is examined: a run that resumes does it there.
        """
        if any(c.stopped is None or c.stopped in GOALS or c.failure is not None for c in chains):
            return False
        self.records = finished(chains, self.records)
        run = Run(info, self.records, process=chains[0].process)
        self.examine(run)
        waiting = [c for c in chains if c.stopped == LOOK]
        reached = self.reached()
        if reached or run.process.report.in_vain(run):
            for chain in waiting:
                chain.stopped = self.reason if reached else VAIN
            return False
        look = self.after(max(c.look for c in chains))
        for chain in waiting:
            chain.look, chain.stopped = look, None
        return bool(waiting)

    def examine(self, run):
        """Effective draws and R-hat of a run so far."""
        moved = all(r.length > 0.0 for r in run.records)
        nothing = np.full(run.dim, np.nan)
        if self.ess is not None:
            self.draws, self.further = self.count(run) if moved else {"mean": nothing, "sd": nothing}, {}
            if self.enough():
                self.further = {**run.process.report.further_draws(run), **share_draws(run)}
        # Ranks of many draws take seconds. Where draws are too few already they would change nothing.
        numbers = run.dim * run.chains * min(int(run.events.min()), DIAGNOSTIC_DRAWS)
        wanted, self.rhats = self.rhat is not None or self.shows_rhat, None
        if wanted and ((self.shows_rhat and numbers <= QUICK_NUMBERS) or self.enough()):
            self.rhats = run.rhat() if moved else nothing

    def count(self, run):
        """Effective draws, portion by portion, those first that had the fewest; until one has too few."""
        found = {name: np.full(run.dim, np.inf) for name in ("mean", "sd")}
        parts, self.partial = portions(run), False
        order = sorted(range(len(parts)), key=lambda k: self.slowest.get(k, math.inf))
        for place, k in enumerate(order):
            least = math.inf
            for name, draws in effective_draws(run, parts[k]).items():
                found[name][parts[k]] = draws
                least = min(least, float(np.where(np.isnan(draws), 0.0, draws).min()))
            self.slowest[k] = least / max(run.stats["proposals"], 1)
            if least < self.ess:
                self.partial = place + 1 < len(order)
                break
        return found

    def enough(self):
        """Whether all that is counted has the effective draws that are asked for; what never moved has none."""
        if self.ess is None:
            return True
        of_coordinates = all(bool(np.all(d >= self.ess)) for d in self.draws.values())
        return of_coordinates and all(d >= self.ess for d in self.further.values())

    def reached(self):
        """Whether every coordinate has reached the goal; one that never moved has not."""
        return self.enough() and (self.rhat is None or bool(np.all(self.rhats <= self.rhat)))

    def least(self):
        """The fewest effective draws, of what, and of which coordinate; 0.0 if it never moved.

        That is of "mean" or "sd"; or of what else is counted, and None.
        """
        found = {name: np.where(np.isnan(d), 0.0, d) for name, d in self.draws.items()}
        name = min(found, key=lambda name: found[name].min())
        further = min(self.further, key=self.further.__getitem__, default=None)
        if further is not None and self.further[further] < found[name].min():
            return self.further[further], further, None
        return float(found[name].min()), name, int(np.argmin(found[name]))

    def largest(self):
        """The largest R-hat and its coordinate; infinite for one that never moved."""
        found = np.where(np.isnan(self.rhats), np.inf, self.rhats)
        return float(found.max()), int(np.argmax(found))

    def share(self, chains):
        """About which part of the way to the goal the chains have gone, judged by the last look; 0 before the first."""
        if self.draws is None and self.rhats is None:
            return 0.0
        now = float(np.mean([c.state.counts[PROPOSALS] for c in chains]))
        look = max(c.look for c in chains)
        last = self.warmup + (look - self.warmup) / (1.0 + 1.0 / GROWTH)  # where it was examined
        least = self.least()[0] if self.draws is not None else math.inf
        needed = self.warmup + (last - self.warmup) * self.ess / least if 0.0 < least < math.inf else 0.0
        return min(now / max(needed, look), 1.0)

    def describe(self):
        """The state at the last look, for the progress bar."""
        parts = []
        if self.draws is not None:
            parts.append(f"ESS {self.least()[0]:,.0f} of {self.ess:,.0f}")
        if self.rhats is not None:
            parts.append(f"R-hat {self.largest()[0]:.3f}" + ("" if self.rhat is None else f" (to be {self.rhat:g})"))
        return ", ".join(parts)

    def shortfall(self, run):
        """A sentence on what a run that has stopped did not reach, and what to try; None if it has, or was stopped."""
        if run.stopped in ("failed", "interrupted", VAIN) or any(r.stopped in GOALS for r in run.records):
            return None
        if (self.draws is None and self.rhats is None) or self.reached():
            return None
        names, found = run.names(), []
        if self.partial:
            self.draws, self.partial = effective_draws(run), False
        if self.rhat is not None and self.rhats is None:
            self.rhats = run.rhat()
        if self.ess is not None and (least := self.least())[0] < self.ess:
            what = least[1] if least[2] is None else f"the {least[1]} of {names[least[2]]}"
            what = f"{least[0]:,.3g} effective draws of {what}"
            found.append(f"`ess={self.ess:g}` was not reached: {what}")
        if self.rhat is not None and (largest := self.largest())[0] > self.rhat:
            found.append(f"`rhat={self.rhat:g}` was not reached: R-hat is {largest[0]:.4g} of {names[largest[1]]}")
        spent = max(int(r.counts[EVENTS if run.stopped == "events" else PROPOSALS]) for r in run.records)
        unit = "events" if run.stopped == "events" else "proposals"
        given = [name for name in run.info["budget"] if name not in GOALS]
        if run.stopped == "events" and "events" not in given and "steps" not in given:
            more = 'its skeleton has no more room: give `store="moments"`'
        elif self.bound is not None:
            more = f"the default bound: give a larger `{self.bound}=`"
        else:
            more = "give a larger " + " or ".join(f"`{name}=`" for name in given)
        what = "a longer `warmup=`, a `metric=`, more refreshment, another sampler"
        if run.info.get("choice") is not None:  # of pdmp.sample(model)
            what = "`target_acceptance=0.95`" if hasattr(run.process, "target_acceptance") else what
            what = getattr(run.process, "remedy", what)
        return (
            f"{'; '.join(found)}, after {spent:,} {unit} of a chain ({more}). Where a longer run changes little, try "
            f"{what}, or a parametrisation in which the parameters are less dependent."
        )
