"""Plant each bug of the list and run the tests that should notice.

    python -m tests.mutations               all of them
    python -m tests.mutations 3 7 sgld      by number, or by what their names contain
    python -m tests.mutations --changed main    of the files that differ from a commit
    python -m tests.mutations --list

Exit code 1 if any survives. The tests named by the list are first run without a bug, where they must pass. With a bug
the exact ones are tried in plain Python first, the slow ones of them last, in a process that has imported everything
(`tests.mutations.live`); if those pass all of them are tried compiled, in a copy of the tree.
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
from typing import NamedTuple

import tests.mutations
from tests.mutations import live
from tests.mutations.matching import ROOT, planted

#: The lists of all modules here that have one.
BUGS = [
    bug
    for module in sorted(info.name for info in pkgutil.iter_modules(tests.mutations.__path__))
    if module.startswith("bugs")
    for bug in importlib.import_module(f"tests.mutations.{module}").BUGS
]
LONGEST = 168.0  #: seconds that the plain tests of a bug take at most; `live` waits for five times as long


class Edited(NamedTuple):
    """The file that a bug is planted in, what is then in it, and the first line that differs."""

    file: str
    changed: str
    line: int

    @classmethod
    def of(cls, file, changed):
        """With the line found."""
        both = zip((ROOT / file).read_text(encoding="utf-8").splitlines(), changed.splitlines(), strict=False)
        return cls(file, changed, 1 + next(k for k, (one, other) in enumerate(both) if one != other))

    def text(self, source):
        """What `tests.mutations.live` plants."""
        return self.changed


def run_compiled(tree, tests, seconds=900):
    """Whether the tests fail in `tree`, compiled, and the last line of their output."""
    environment = os.environ | {"PYTHONPATH": str(tree), "NUMBA_CACHE_DIR": str(tree / ".numba"), "MPLBACKEND": "Agg"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--full", *tests]
    options = {"cwd": tree, "env": environment | {"NUMBA_DISABLE_JIT": "0"}, "capture_output": True, "text": True}
    try:
        done = subprocess.run(command, timeout=seconds, **options)
    except subprocess.TimeoutExpired:
        return True, "timed out"
    if done.returncode not in (0, 1, 2, 5):
        raise RuntimeError(f"pytest could not run {tests}: {(done.stdout + done.stderr)[-2000:]}")
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return done.returncode in (1, 2), lines[-1] if lines else ""


def copy_tree(folder):
    """A copy of what the tests need."""
    tree = pathlib.Path(folder)
    for name in ("pdmp", "discrete", "tests", "examples", "docs"):
        shutil.copytree(ROOT / name, tree / name)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree / name)
    return tree


def plant_compiled(edited, tests):
    """Try one bug in a copy of the tree: (caught, seconds, what the tests said)."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        tree = copy_tree(folder)
        (tree / edited.file).write_text(edited.changed, encoding="utf-8")
        caught, said = run_compiled(tree, tests)
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
            failed, said = run_compiled(
                copy_tree(folder), sorted({test for _, bug in chosen for test in bug.tests}), 3600
            )
        if failed:
            print(f"the tests fail without a bug: {said}")
            return 2
        print(f"without a bug: {said}", flush=True)
    edits, left, survivors = [Edited.of(*planted(bug)) for _, bug in chosen], [], 0

    def report(k, caught, seconds, said):
        number, bug = chosen[k]
        print(f"{number:3} {'caught  ' if caught else 'SURVIVED'} {seconds:5.0f} s  {bug.name}: {said}", flush=True)

    for k, caught, seconds, said in live.attempts(edits, [(bug.tests, LONGEST, 0) for _, bug in chosen], args.jobs):
        if caught:
            report(k, caught, seconds, said)
        else:
            left.append(k)
    with ThreadPoolExecutor(args.jobs) as pool:
        for k, found in zip(left, pool.map(lambda k: plant_compiled(edits[k], chosen[k][1].tests), left), strict=True):
            survivors += not found[0]
            report(k, *found)
    print(f"{len(chosen) - survivors} of {len(chosen)} caught")
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main())
