"""Tail indices: which coordinates have no variance, by the gradient far out and by draws.

The density of a law whose tail index along a coordinate is α falls like r^-(α + m) along rays on which m dimensions
grow together: r ∂U/∂r tends to α + m. Of a tail that is lighter than every power it grows without end. This is seen at
two distances, whether or not the chains have come there: Hamiltonian and bouncing paths hardly reach the tails of a
Cauchy law, and their draws seem to have a variance. Rays along a coordinate show a heavy tail of its own (m = 1), rays
on which all dimensions grow one that they share (m = d); each gives at least α. A coordinate with which a scale grows,
as a mean with that of few data, has a heavy tail that no ray shows: where draws are far out all else is integrated out
there. Where some coordinates share a tail, and where the model is not at hand, a generalised Pareto distribution is
fitted to the draws; of a coordinate that rests at 0, to those that are not 0: zeros among those of a tail are no part
of it.

References
----------
Vehtari, Simpson, Gelman, Yao & Gabry (2024), Pareto smoothed importance sampling, arXiv:1507.02646 (k-hat of draws).
"""

from __future__ import annotations

import math

import numpy as np

from pdmp.diagnostics.effective_size import draws_ess
from pdmp.diagnostics.pooled import blocks
from pdmp.models.propriety import marginal_power

#: Shape of a generalised Pareto tail, the inverse of its index, from which on there is no variance. An estimate must be
#: above it by its standard error, (1 + k) / √M with M of the effective draws in the tail. Of 40 samples of 2,000
#: independent draws 28 of t₁.₅ are, and one of t₂.₅; of 16,000 39 and none. Of effects of four groups k was .6 and .7
#: by chance, in 560 and 730 effective draws.
NO_VARIANCE = 0.5
VARIANCE = 2.02  #: tail index up to which there is none, as far as differences at two distances say
TAILS, TAIL_DRAWS = 20, 1_000  #: coordinates whose tails are looked at, at most, and from how many draws on
SETTLED = 50.0  #: effective draws from which on draws say something of a tail
DISTANCES = (1e4, 1e6)  #: in multiples of the median distance from the median
AGREEMENT = 0.02  #: relative difference between both up to which a tail is a power
#: Nats that U may rise above that of a power tail which begins where draws are: so much less mass is in this one.
UNSEEN = 35.0
RAYS = 4  #: rays in which all coordinates grow, to both sides
#: In median distances from the median: how far the farthest draw is, at least, where all else is integrated out; 1,000
#: draws of a normal law come to 5, of one with exponential tails to 10, and of t₂ to 39.
REMOTE = 15.0


def heavy_tails(draws, places, ess, model=None, errors=1.0):
    """Coordinates of draws (chains, n, d) that seem to have no variance, with their tail indices: {place: α}.

    `places` are looked at by themselves; of many those whose farthest draw is the farthest. Draws are asked if their
    effective numbers `ess` (d,) are given, without those that are exactly 0; a shape that is fitted to them must be
    above the limit by so many `errors`. Without a model, on the whole space, draws alone are asked.
    """
    rests, centre, scale, far = (np.concatenate(each) for each in zip(*map(_extent, blocks(draws)), strict=True))
    places = places[np.argsort(-far[places], kind="stable")[:TAILS]]
    found, unknown = {}, places
    if model is not None and np.all(scale > 0.0):
        indices, shared = tail_indices(model, centre, scale, places)
        indices = {int(j): min(alpha, shared) for j, alpha in zip(places, indices, strict=True)}
        if shared <= VARIANCE:
            indices = dict.fromkeys(range(len(centre)), shared) | indices
        found = {j: alpha for j, alpha in indices.items() if 0.0 < alpha <= VARIANCE}
        unknown = [j for j in places if VARIANCE < indices[int(j)] < math.inf]  # some coordinates may share a tail
        for j in places if 1 < len(centre) <= TAILS else ():
            if far[j] > REMOTE and indices[int(j)] == math.inf:
                index = marginal_power(model, centre, scale, int(j)) - 1.0
                if 0.0 < index <= VARIANCE:
                    found[int(j)] = index
    if ess is None or draws.shape[0] * draws.shape[1] < TAIL_DRAWS:
        return dict(sorted(found.items()))
    from arviz_stats.base import array_stats

    for j in unknown:
        x, effective = draws[:, :, j], ess[j]
        if rests[j]:
            x = x[x != 0.0][None]
            if x.size < TAIL_DRAWS:
                continue
            effective = draws_ess(x[..., None], "mean")[0]
        if effective > SETTLED:
            try:
                with np.errstate(all="ignore"):
                    k = float(array_stats.pareto_khat(x, chain_axis=0, draw_axis=1))
            except ValueError:  # a tail of one value
                continue
            effective = min(effective, x.size)
            tail = min(0.2 * effective, 3.0 * math.sqrt(effective))
            if k - errors * (1.0 + k) / math.sqrt(tail) > NO_VARIANCE:
                found[int(j)] = 1.0 / k
    return dict(sorted(found.items()))


def _extent(draws):
    """Which coordinates are 0 at times; medians; median distances from these; the farthest draw in their unit."""
    with np.errstate(all="ignore"):
        zero = draws == 0.0
        rests = zero.any(axis=(0, 1))
        centre = np.median(draws, axis=(0, 1))
        part = np.abs(draws - centre)
        scale = np.median(part, axis=(0, 1))
        far = part.max(axis=(0, 1)) / scale
        for j in np.flatnonzero(rests & ~zero.all(axis=(0, 1))):
            size = np.abs(draws[:, :, j][~zero[:, :, j]])
            far[j] = size.max() / np.median(size)
    return rests, centre, scale, far


def tail_indices(model, centre, scale, places):
    """α of each of the coordinates `places`, and that of all together; infinite where a tail is lighter than powers.

    Rays begin at `centre` (d,), in coordinates with the unit `scale` (d,).
    """
    d = len(centre)
    own = []
    for j in places:
        along = np.zeros(d)
        along[j] = scale[j]
        own.append(min(power(model, centre, sign * along) for sign in (-1.0, 1.0)) - 1.0)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (RAYS, d))
    rays = np.concatenate([signs, -signs]) * scale
    return own, min(power(model, centre, ray) for ray in rays) - d


def power(model, centre, ray, most=math.inf):
    """r ∂U/∂r far out on a ray, infinite where it is above `most`, not the same at both distances, or has no mass.

    So is the tail of a bounded likelihood of many data times a prior with heavy tails: it begins too far down.
    """
    found = []
    for distance in DISTANCES:
        try:
            with np.errstate(all="ignore"):
                found.append(distance * float(ray @ model.gradient(centre + distance * ray)))
        except Exception:  # noqa: BLE001 - a function of the user's, where no chain has been
            return math.inf
        if not (math.isfinite(found[-1]) and found[-1] <= most):
            return math.inf
    near, far = found
    if not abs(far - near) <= AGREEMENT * abs(far):
        return math.inf
    try:
        with np.errstate(all="ignore"):
            below = model.potential(centre + DISTANCES[0] * ray) - model.potential(centre + ray)
    except Exception:  # noqa: BLE001 - as above
        return far
    return math.inf if below > far * math.log(DISTANCES[0]) + UNSEEN else far
