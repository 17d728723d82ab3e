"""Bugs planted in the functions of a process that has the packages and the tests already, and that is forked for each.

Most bugs are caught by a test of a few milliseconds: to import the packages and to collect the tests would take nearly
all of the time. A function gets the code of the file with the bug. Where that is impossible, as in a default argument
or in code that ran at import, the tests run in a copy of the tree.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import types

from tests.mutations.matching import PACKAGES, ROOT

OPTIONS = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "exact"]
MEMORY = 8 << 30  #: bytes that a process with a bug may take: some bugs fill lists for ever


def attempts(bugs, chosen, jobs):
    """(number of a bug, whether a test failed, seconds, what pytest said last) of each, as they end.

    `chosen`: of each bug its tests, or files or functions of them, how long they take without it, their number.
    """
    os.environ |= {"NUMBA_DISABLE_JIT": "1", "MPLBACKEND": "Agg"}
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
        import pytest

        files = sorted({test.partition("::")[0] for tests, _, _ in chosen for test in tests})
        collected = Collected()
        if files and pytest.main([*OPTIONS, "--collect-only", *files], plugins=[collected]) not in (0, 5):
            raise RuntimeError("the tests cannot be collected; the folder of --reached is of other tests")
    functions = {}
    gc.unfreeze()  # what `tests/conftest.py` has frozen after collection is not among the objects
    for found in gc.get_objects():
        if isinstance(found, types.FunctionType):
            functions.setdefault(found.__code__, []).append(found)
    gc.collect()
    gc.freeze()
    context, waiting, running = multiprocessing.get_context("fork"), list(enumerate(bugs))[::-1], {}
    with tempfile.TemporaryDirectory() as folder:
        while waiting or running:
            while waiting and len(running) < jobs:
                k, bug = waiting.pop()
                tests, seconds, _ = chosen[k]
                tests = [test for test in tests if test in collected.tests]
                if not tests:
                    yield k, False, 0.0, "no test executes it"
                    continue
                printed = pathlib.Path(folder) / f"{k}.txt"
                process = context.Process(target=attempt, args=(bug, tests, functions, printed))
                process.start()
                began = time.perf_counter()
                running[process.sentinel] = k, process, began, began + 60.0 + 5.0 * seconds, printed
            ready = multiprocessing.connection.wait(list(running), 1.0)
            late = [sentinel for sentinel, (*_, until, _) in running.items() if time.perf_counter() > until]
            for sentinel in {*ready, *late}:
                k, process, began, _, printed = running.pop(sentinel)
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # what it started goes as well
                process.join()
                text = printed.read_text(encoding="utf-8", errors="replace") if printed.exists() else ""
                if process.exitcode == 4 and "ERROR collecting" not in text:  # which is by the bug: all were collected
                    raise RuntimeError(f"pytest could not run {chosen[k][0]}: {text[-2000:]}")
                said = [line for line in text.splitlines() if line.strip()]
                seconds = time.perf_counter() - began
                yield k, process.exitcode not in (0, 5), seconds, said[-1] if said else ""


class Collected:
    """The tests that there are, with their functions and files, but those whose names pytest does not take back."""

    tests: frozenset[str] = frozenset()

    def pytest_collection_finish(self, session):
        names = [item.nodeid for item in session.items if "\\" not in item.nodeid]
        wholes = [name.partition(mark)[0] for name in names for mark in ("[", "::")]
        self.tests = frozenset(names + wholes)


def attempt(bug, tests, functions, printed):
    """Plant it in this process, run the tests, and leave with the code of pytest."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with open(printed, "w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            here = bug.file.endswith(".py") and planted(bug, functions)
        except Exception:
            traceback.print_exc(file=file)
            file.flush()
            os._exit(4)  # nothing was planted, so that nothing has been caught
        if here:
            import pytest

            with contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
                code = int(pytest.main([*OPTIONS, *tests]))
        else:
            code = in_a_copy(bug, tests)
        file.flush()
    os._exit(code)


def planted(bug, functions):
    """Whether the functions that are there have got the code with the bug, and nothing else differs."""
    source = (ROOT / bug.file).read_text(encoding="utf-8")
    if replaced(bug, source):
        return True
    old, new = (compile(text, str(ROOT / bug.file), "exec") for text in (source, bug.text(source)))
    pairs, same = [], True

    def compare(before, after):
        """Collect the functions of a module or a class that differ; what is computed at import must not."""
        nonlocal same
        inner = [[c for c in code.co_consts if isinstance(c, types.CodeType)] for code in (before, after)]
        if len(inner[0]) != len(inner[1]) or before.co_code != after.co_code or rest(before) != rest(after):
            same = False
            return
        for one, other in zip(*inner, strict=True):
            if one.co_flags & 0x2:  # CO_NEWLOCALS: a function
                if one != other:
                    pairs.append((one, other))
            else:
                compare(one, other)

    compare(old, new)
    live = [(function, after) for before, after in pairs for function in functions.get(before, ())]
    if not same or not live:
        return False
    try:
        for function, after in live:
            function.__code__ = after
    except ValueError:  # it closes over other names
        return False
    return True


def constants_of(node):
    """The names that a statement of a module, ``NAME = value`` or ``ONE, OTHER = values``, gives values; or none."""
    targets = getattr(node.targets[0], "elts", node.targets[:1])
    names = [getattr(target, "id", "") for target in targets]
    return names if len(node.targets) == 1 and all(name.isupper() for name in names) else []


def replaced(bug, source):
    """Whether the bug is in a constant of a module, which has been given its new value wherever it was imported."""
    module = sys.modules.get(bug.file[:-3].replace("/", ".").removesuffix(".__init__"))
    for node in ast.parse(bug.text(source)).body:
        if not isinstance(node, ast.Assign) or not node.lineno <= bug.line <= node.end_lineno or not constants_of(node):
            continue
        if module is None:
            return False
        names = constants_of(node)
        try:
            values = eval(compile(ast.Expression(node.value), bug.file, "eval"), vars(module))
        except Exception:  # noqa: BLE001 - the module cannot be imported with it, which a copy shows
            return False
        for name, new in zip(names, values if len(names) > 1 else [values], strict=True):
            old = getattr(module, name)
            for other in [m for key, m in sys.modules.items() if key.partition(".")[0] in PACKAGES]:
                if vars(other).get(name) is old:
                    setattr(other, name, new)
        return True
    return False


def rest(code):
    """Constants but for code, and names."""
    return [repr(c) for c in code.co_consts if not isinstance(c, types.CodeType)], code.co_names


def in_a_copy(bug, tests):
    """The code of pytest in a copy of the tree that has the bug."""
    from tests.mutations.__main__ import copy_tree

    with tempfile.TemporaryDirectory() as folder:
        tree = copy_tree(folder)
        source = (ROOT / bug.file).read_text(encoding="utf-8")
        (tree / bug.file).write_text(bug.text(source), encoding="utf-8")
        environment = os.environ | {"PYTHONPATH": str(tree)}
        return subprocess.run([sys.executable, "-m", "pytest", *OPTIONS, *tests], cwd=tree, env=environment).returncode
