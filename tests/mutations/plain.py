"""The exact tests of a tree in plain Python, in a process forked from one that has imported the libraries already.

Most planted bugs are caught by a test of a few milliseconds: starting Python and importing the libraries would take
nearly all of the time.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pathlib
import sys

LIBRARIES = [
    "numba",
    "numpy",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.sparse",
    "scipy.special",
    "scipy.stats",
    "pytest",
]
LIBRARIES += ["networkx", "tqdm"]


def server():
    """A context whose processes are forked from one with the libraries; where that is impossible, None."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return None
    os.environ["NUMBA_DISABLE_JIT"] = "1"  # read by the server when it imports numba
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LIBRARIES)
    return context


def run(context, tree, tests, seconds):
    """Exit code of pytest on the exact tests of `tree`, and what it printed; a run longer than `seconds` gives None."""
    printed = pathlib.Path(tree) / "printed.txt"
    process = context.Process(target=_run, args=(str(tree), list(tests), str(printed)))
    process.start()
    process.join(seconds)
    if process.is_alive():
        process.kill()
        process.join()
        return None, "timed out"
    return process.exitcode, printed.read_text(encoding="utf-8", errors="replace")


def _run(tree, tests, printed):
    for name in list(sys.modules):  # of the tree that has no bug
        if name.partition(".")[0] in ("tests", "pdmp", "discrete"):
            del sys.modules[name]
    sys.path[:] = [
        tree,
        *(p for p in sys.path if pathlib.Path(p or ".").resolve() != pathlib.Path(__file__).parents[2]),
    ]
    os.chdir(tree)
    os.environ |= {"PYTHONPATH": tree, "MPLBACKEND": "Agg", "NUMBA_DISABLE_JIT": "1"}
    import pytest

    with (
        open(printed, "w", encoding="utf-8") as file,
        contextlib.redirect_stdout(file),
        contextlib.redirect_stderr(file),
    ):
        code = pytest.main(["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "exact", *tests])
        file.flush()
    os._exit(int(code))
