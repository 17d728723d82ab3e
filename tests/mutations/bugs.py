"""The list of planted bugs: each is one edit of one file, and the tests that must fail with it."""

from __future__ import annotations

from typing import NamedTuple

THINNING = "tests/thinning/test_thinning.py"
EXACT = "tests/processes/test_processes_exact.py"
BARKER = "tests/discrete/test_barker.py"
LANGEVIN = "tests/discrete/test_langevin.py"
ROMBERG = "tests/discrete/test_richardson_romberg.py"
GRADIENTS = "tests/gradients/test_gradients.py"
RUNS = "tests/engine/test_run.py"
PATHS = "tests/engine/test_trajectory.py"
EVENTS = "tests/statistics/test_events.py"
PDMP_LAWS = "tests/statistics/test_pdmp_laws.py"
PAPER = "tests/statistics/test_sbps_logistic.py"


class Bug(NamedTuple):
    """One planted bug."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple
    needs: str = ""  #: a package without which these tests are skipped


BUGS = [
    # the event loop
    Bug(
        "scheduler: neighbours' clocks stay stale after an event",
        "pdmp/engine/scheduler.py",
        "first, last, what = process.start[i], process.start[i + 1], DEPENDENTS",
        "first, last, what = i, i + 1, CLOCKS",
        (EVENTS, PDMP_LAWS),
    ),
    Bug(
        "scheduler: the integral of a path is taken after the move",
        "pdmp/engine/scheduler.py",
        "            integrate_all(integrals, flow, x, v, moved[0], now)\n            for j in range(x.shape[0]):\n"
        "                position = flow.position(j, x[j], v[j], now - moved[0])\n",
        "            for j in range(x.shape[0]):\n"
        "                position = flow.position(j, x[j], v[j], now - moved[0])\n"
        "                integrate(integrals, flow, j, position, v[j], moved[0], now)\n",
        (RUNS, PATHS),
    ),
    # thinning
    Bug(
        "affine: one exponential for all components",
        "pdmp/thinning/affine.py",
        "    for j in range(a.shape[0]):  # the first arrival of a sum is the earliest of its parts\n"
        "        s = min(s, first_arrival(a[j], b[j], rng.standard_exponential()))",
        "    e = rng.standard_exponential()\n    for j in range(a.shape[0]):\n"
        "        s = min(s, first_arrival(a[j], b[j], e))",
        (EVENTS, PDMP_LAWS),
    ),
    Bug(
        "grid: the second part of a cell starts with a fresh exponential's worth",
        "pdmp/thinning/grid.py",
        "            e -= 0.5 * (left + memory.inner_bound[0]) * (inner - s)\n",
        "",
        (THINNING, EVENTS),
    ),
    Bug(
        "piecewise: the segment is inverted as if flat",
        "pdmp/thinning/piecewise.py",
        "math.sqrt(max(0.0, left * left + 2.0 * q * e))",
        "left",
        (THINNING,),
    ),
    # BPS and Zig-Zag
    Bug(
        "refreshment: velocities from a cube",
        "pdmp/native/velocities.py",
        "v[j] = rng.standard_normal()\n        square",
        "v[j] = 2.0 * rng.random() - 1.0\n        square",
        (EXACT,),
    ),
    # SBPS
    Bug(
        "SBPS: the clock of the regression restarts at each proposal",
        "pdmp/processes/sbps.py",
        '        s = now - state.moved[0]\n        if line["count"] == 0.0:',
        '        s = 0.0\n        if line["count"] == 0.0:',
        (EXACT, PAPER),
    ),
    # gradients
    Bug(
        "Minibatch: the prior is scaled up with the batch",
        "pdmp/gradients/minibatch.py",
        'into the estimate."""\n        for j in range(out.shape[0]):\n'
        "            out[j] *= weight\n        self.packed.add_prior_gradient(x, out)\n",
        'into the estimate."""\n'
        "        self.packed.add_prior_gradient(x, out)\n        for j in range(out.shape[0]):\n"
        "            out[j] *= weight\n",
        (GRADIENTS,),
    ),
]

# One line each: name, file, old, new, tests.
BUGS += [
    Bug(*row)
    for row in [
        ("Zig-Zag: another coordinate flips", "pdmp/processes/zigzag.py", "j = state.memory.flipping[0] if self.one_clock else i\n        self.rates.flip(state, j)", "j = 0 if self.one_clock else i\n        self.rates.flip(state, j)", (EXACT,)),
    ]
]  # fmt: skip
