"""After a run: the gradient of a user's model against differences of its potential, where the run went.

The comparison before a run (`pdmp.engine.preflight.check_target`) is made near `initial`. What is wrong elsewhere only,
or little of what the gradient is out there, shows at positions of the run: steps are in units of its spread, and the
partial derivatives of the data and of the prior nearly cancel. A quarter of the positions is equally spaced, the others
are where coordinates were largest or smallest. At each the slope is compared along one direction of all coordinates.
"""

from __future__ import annotations

import functools

import numpy as np

from pdmp.engine.preflight import is_users
from pdmp.models.adapters.function import FunctionModel
from pdmp.models.verification import shown, wrong_slope

POSITIONS, EACH = 32, 5  #: that are compared, at most; and gradients and potentials at each
DRAWS, NUMBERS = 512, 2_000_000  #: positions of each chain among which extremes are looked for, and numbers in them
SHARE = 20  #: of the gradients of a run one in so many is spent on this, potentials counted alike
TERMS = 20_000  #: and terms of a model whose gradient is compiled


def gradient_warning(run):
    """A sentence if the gradient of a user's model is wrong at a position of the run; deterministic."""
    model = run.process.model
    if not is_users(model) or model.dim != run.dim or not any(r.length > 0.0 for r in run.records):
        return []
    most = int(run.stats["data_passes"]) // SHARE + (TERMS // max(model.n_data, 1) if model.divisible else 0)
    own = isinstance(model, FunctionModel)
    find, rng = model.wrong_slope if own else functools.partial(wrong_slope, model), np.random.default_rng(0)
    for x, scale, chain, event in positions(run, min(POSITIONS, most // EACH)):
        found = find(x, rng, 1, scale=scale)
        if found is not None:
            j, slope, quotient = found
            where = f" of chain {chain}" if run.chains > 1 else ""
            return [
                f"the gradient of {type(model).__name__} is not that of its potential where the run went, so without a "
                f"Metropolis test its draws have another law: {run.names()[j]} of it, after event {event:,}{where}, at "
                f"x = {shown(x)}, is {slope:.6g}, a difference quotient of the potential {quotient:.6g}."
            ]
    return []


def positions(run, n):
    """At most n positions of a run, as (x, spreads of the coordinates, chain, events before it)."""
    chains, d = run.chains, run.dim
    room = min(DRAWS, NUMBERS // (chains * d), int(run.events.min()), run._grid_size() or DRAWS)
    if run.store == "moments" or room < 1 or any(r.length <= 0.0 for r in run.records):
        with np.errstate(invalid="ignore"):
            scale = np.sqrt(run._variance())
        ends = [chain.position(record.end)[:d] for chain, record in zip(run._chains, run.records, strict=True)]
        return [(x, _positive(scale, x), i, int(run.events[i])) for i, x in enumerate(ends[:n])]
    draws, times = run.draws(room).reshape(-1, d), run.draw_times(room).ravel()
    low, middle, high = np.quantile(draws, (0.25, 0.5, 0.75), axis=0)
    with np.errstate(all="ignore"):
        far = np.nan_to_num((draws - middle) / (high - low), posinf=0.0, neginf=0.0)
    widest = np.argsort(-np.ptp(far, axis=0), kind="stable")[: 3 * n // 8]
    places = [k for j in widest for k in (int(np.argmax(far[:, j])), int(np.argmin(far[:, j])))]
    places += np.linspace(len(draws) - 1, 0, n - len(places)).astype(int).tolist()
    found = []
    for k in dict.fromkeys(places):
        i, time = k // room, times[k]
        event = int(time / run.end[i] * run.events[i])  # of a grid about
        if run.store == "skeleton":
            event = int(np.searchsorted(run.paths[i].times[1:], time, side="right"))
        found.append((draws[k], _positive((high - low) / 1.35, draws[k]), i, event))
    return found


def _positive(scale, x):
    """`scale` where it is one, else the size of the coordinate."""
    return np.where(scale > 0.0, scale, np.maximum(1.0, np.abs(x)))
