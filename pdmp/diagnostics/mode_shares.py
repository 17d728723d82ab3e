"""Shares of modes between which a run may seldom go: effective draws, as a coordinate's mean hardly shows them.

What `pdmp.auto` knows of such modes is in ``process.prepared.modes``: that in which chains were first, and those that
they had hardly been in, where one of them starts.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pdmp.diagnostics.averages import diagnostic_draws
from pdmp.diagnostics.effective_size import draws_ess

if TYPE_CHECKING:
    from pdmp.engine.result import Run

#: Share that a mode has at most, by three visits more than were seen of their mean length, whose effective draws are
#: not counted: what it adds to a mean is small then.
LEAST = 0.02
RARE = 0.25  #: of what its normal approximation says, below which a share counts as not known
FEW = 30.0  #: effective draws of a share below which a run says so
NAMED = 3  #: coordinates that tell where a mode is


def share_draws(run: Run) -> dict[str, float]:
    """Effective draws of the shares of modes, by "the share of the mode at …".

    None of one that holds hardly any; 0 of one that has less than `RARE` times what its normal approximation says.
    """
    known = () if isinstance(run.process, str) else run.process.prepared.modes
    draws = diagnostic_draws(run) if known and run.store != "moments" else None
    if draws is None:
        return {}
    logs = []
    for mode in known:
        z = mode.gaussian.standardised(draws.reshape(-1, run.dim))
        logs.append(-mode.behind - mode.gaussian.log_volume() - 0.5 * (z**2).sum(axis=1))
    which = np.argmax(logs, axis=0).reshape(draws.shape[:2])
    found, expected = {}, np.exp([-mode.behind for mode in known])
    expected /= expected.sum()
    for k in range(1, len(known)):
        there, least = which == k, 0.0
        if there.mean() >= RARE * expected[k]:
            if min(most(there), most(~there)) <= LEAST:
                continue
            least = draws_ess(there[..., None].astype(float), "mean")[0]
        found[f"the share of the mode at {place(run, known[k])}"] = 0.0 if math.isnan(least) else float(least)
    return found


def most(there: np.ndarray) -> float:
    """The share of draws that are `there`, (chains, n), if there are three visits more of the length of those."""
    visits = there[:, 0].sum() + (there[:, 1:] & ~there[:, :-1]).sum()
    return float((there.sum() / max(visits, 1) * (visits + 3)) / there.size)


def place(run: Run, mode) -> str:
    """Where a mode is, in words: the coordinates in which it is farthest from where chains were first, in order."""
    first = run.process.prepared.modes[0].gaussian
    offset = np.abs(mode.gaussian.centre - first.centre) / first.widths()
    names = run.names()
    where = ", ".join(f"{names[j]} = {mode.gaussian.centre[j]:.3g}" for j in np.sort(np.argsort(-offset)[:NAMED]))
    return where + " …" * (len(offset) > NAMED)


def share_doubts(run: Run) -> list[str]:
    """A sentence if a share is hardly known."""
    found = share_draws(run)
    name = min(found, key=found.__getitem__, default=None)
    if name is None or found[name] >= FEW:
        return []
    return [
        f"chains seldom go from mode to mode: there are {found[name]:.2g} effective draws of {name}, and averages may "
        "be wrong by what another share would change. `pdmp.sample(model, tempered=True)` goes from mode to mode"
    ]
