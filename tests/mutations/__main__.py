"""Plant each bug of the list in a copy of the tree and run the tests that should notice.

    python -m tests.mutations               all of them
    python -m tests.mutations 3 7 sgld      by number, or by what their names contain
    python -m tests.mutations --changed main    of the files that differ from a commit
    python -m tests.mutations --list

Exit code 1 if any survives. The tests named by the list are first run without a bug, where they must pass. With a bug
the exact ones are tried in plain Python first, the slow ones of them last, which costs no compilation, and all of them
compiled if those pass.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import pathlib
import pkgutil
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import tests.mutations
from tests.mutations import plain as forked
from tests.mutations.matching import ROOT, planted

#: What plain-Python runs are forked from; see `tests.mutations.plain`.
SERVER = forked.server() if __name__ == "__main__" else None
#: The lists of all modules here that have one.
BUGS = [
    bug
    for module in sorted(info.name for info in pkgutil.iter_modules(tests.mutations.__path__))
    if module.startswith("bugs")
    for bug in importlib.import_module(f"tests.mutations.{module}").BUGS
]


def run_tests(tree, tests, seconds=900, plain=False):
    """Whether the tests fail in `tree`, and the last line of their output; `plain`: the exact ones, without numba."""
    environment = os.environ | {"PYTHONPATH": str(tree), "NUMBA_CACHE_DIR": str(tree / ".numba"), "MPLBACKEND": "Agg"}
    environment["NUMBA_DISABLE_JIT"] = str(int(plain))
    if plain and SERVER is not None:
        code, printed = forked.run(SERVER, tree, tests, seconds)
    else:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", *tests]
        command += ["-m", "exact"] if plain else ["--full"]
        try:
            done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=seconds)
            code, printed = done.returncode, done.stdout + done.stderr
        except subprocess.TimeoutExpired:
            code, printed = None, "timed out"
    if code not in (None, 0, 1, 2, 5):
        raise RuntimeError(f"pytest could not run {tests}: {printed[-2000:]}")
    lines = [line for line in printed.splitlines() if line.strip()]
    return code in (None, 1, 2), lines[-1] if lines else ""


def copy_tree(folder):
    """A copy of what the tests need."""
    tree = pathlib.Path(folder)
    for name in ("pdmp", "discrete", "tests", "examples", "docs"):
        shutil.copytree(ROOT / name, tree / name)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree / name)
    return tree


def plant(bug):
    """Try one bug: (caught, seconds, what the tests said)."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        tree = copy_tree(folder)
        file, text = planted(bug)
        (tree / file).write_text(text, encoding="utf-8")
        caught, said = run_tests(tree, bug.tests, plain=True)
        if not caught:
            caught, said = run_tests(tree, bug.tests)
    return caught, time.perf_counter() - began, said


def main():
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("which", nargs="*", help="numbers, or parts of names")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--changed", metavar="COMMIT", help="only bugs of files that differ from it")
    parser.add_argument("--trust", action="store_true", help="that the tests pass without a bug, as `pytest` has shown")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    chosen = [
        (number, bug)
        for number, bug in enumerate(BUGS, 1)
        if not args.which or any(w == str(number) or (not w.isdigit() and w in bug.name) for w in args.which)
    ]
    if args.changed:
        command = ["git", "diff", "--name-only", args.changed]
        changed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
        chosen = [(number, bug) for number, bug in chosen if planted(bug)[0] in changed]
    missing = {bug.needs for _, bug in chosen if bug.needs and importlib.util.find_spec(bug.needs) is None}
    if missing:
        print(f"bugs whose tests need {', '.join(sorted(missing))} are left out: not installed")
        chosen = [(number, bug) for number, bug in chosen if bug.needs not in missing]
    if args.list:
        for number, bug in chosen:
            print(f"{number:3} {bug.name:60} {bug.file}")
        return 0
    if not args.trust:
        with tempfile.TemporaryDirectory() as folder:
            failed, said = run_tests(copy_tree(folder), sorted({test for _, bug in chosen for test in bug.tests}), 3600)
        if failed:
            print(f"the tests fail without a bug: {said}")
            return 2
        print(f"without a bug: {said}", flush=True)
    survivors = 0
    with ThreadPoolExecutor(args.jobs) as pool:
        for (number, bug), (caught, seconds, said) in zip(chosen, pool.map(plant, [b for _, b in chosen]), strict=True):
            survivors += not caught
            print(f"{number:3} {'caught  ' if caught else 'SURVIVED'} {seconds:5.0f} s  {bug.name}: {said}", flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} caught")
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main())
