"""Bugs in what happens when something fails: a gradient, a checkpoint, a file, a worker."""

from tests.mutations.bugs import Bug

FUNCTION, GRID, MAXIMA = "pdmp/models/adapters/function.py", "pdmp/thinning/grid.py", "pdmp/thinning/maxima.py"
CHAIN, GRADIENTS = "pdmp/engine/chain.py", "tests/faults/test_failing_gradients.py"

BUGS = [
    Bug(name, file, old, new, tuple(tests.split()))
    for name, file, old, new, tests in (
        (
            "failing gradient: after an exception the function is called again",
            FUNCTION,
            "        if self.failure is None:\n            try:",
            "        if True:\n            try:",
            GRADIENTS,
        ),
        (
            "failing gradient: a potential is used although its gradient is not finite",
            FUNCTION,
            "        elif math.isfinite(potential) and not np.isfinite(gradient).all():\n            return math.nan",
            "        elif math.isnan(potential):\n            return math.nan",
            GRADIENTS,
        ),
        (
            "failing gradient: complex numbers lose their imaginary part",
            FUNCTION,
            'if gradient.dtype.kind == "c" or isinstance(potential, complex):',
            "if isinstance(potential, complex):",
            GRADIENTS,
        ),
        (
            "failing gradient: the inner point of a grid's cell may fail",
            GRID,
            "                if not process.beyond(state, now + PART * width):\n                    return False\n",
            "",
            GRADIENTS,
        ),
        (
            "failing gradient: the end of a grid's cell may fail",
            GRID,
            "            if not defined and not known and not process.beyond(state, now + width):\n"
            "                return False\n",
            "",
            GRADIENTS,
        ),
        (
            "failing gradient: a search for the maximum passes over it",
            MAXIMA,
            "            if math.isnan(found):\n                return found\n",
            "",
            GRADIENTS,
        ),
        (
            "failing gradient: minus infinity is a rate of zero",
            "pdmp/native/decorators.py",
            "return 0.0 if -math.inf < x < 0.0 else x",
            "return 0.0 if x < 0.0 else x",
            GRADIENTS,
        ),
        (
            "failing gradient: a Metropolised step rejects what is not a number",
            "discrete/metropolis.py",
            "        if there == math.inf:  # where",
            "        if not math.isfinite(there):  # where",
            GRADIENTS,
        ),
        (
            "failing gradient: proposals outside the support are not counted",
            "discrete/metropolis.py",
            "            memory.outside[0] += 1\n",
            "            pass\n",
            GRADIENTS,
        ),
        (
            "failing gradient: a refreshment in SBPS goes on without a slope",
            "pdmp/processes/sbps.py",
            "            if not math.isfinite(g):\n                return -1\n",
            "",
            GRADIENTS,
        ),
        (
            "failing gradient: counts of a loop that raised are left behind",
            CHAIN,
            "        state.counts[EVENTS] = state.counts[KINDS:].sum()\n",
            "",
            GRADIENTS,
        ),
    )
]
