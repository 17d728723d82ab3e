"""Programs in plain Python that need not import the packages, which takes longer than most of them run.

One process has imported them, and forks for each program: what a program changes, or leaves behind, ends with it.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pathlib
import runpy
import select
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[1]
#: What is not installed is not needed either.
IMPORTED = "scipy.stats", "matplotlib.pyplot", "pandas", "formulae", "arviz", "discrete", "tests.examples.small"


def program(module, *arguments, folder, seconds=600):
    """``python -m module arguments`` in a folder, ended: its exit code and what it printed."""
    server = _server()
    with tempfile.TemporaryDirectory() as printed:
        call = {"module": module, "arguments": [str(a) for a in arguments], "folder": str(folder), "printed": printed}
        server.stdin.write(json.dumps(call) + "\n")
        server.stdin.flush()
        if not select.select([server.stdout], [], [], seconds)[0]:
            _server.cache_clear()
            server.kill()
            raise TimeoutError(f"{module} {' '.join(call['arguments'])} did not end in {seconds} s")
        code = server.stdout.readline()
        assert code, f"no process is left that could run {module}"
        out, err = (pathlib.Path(printed, name).read_text(encoding="utf-8") for name in ("out", "err"))
    return subprocess.CompletedProcess([module, *arguments], int(code), out, err)


@functools.cache
def _server():
    environment = {"NUMBA_DISABLE_JIT": "1", "MPLBACKEND": "Agg", "PYTHONPATH": str(ROOT)}
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.forked"],
        cwd=ROOT,
        env=os.environ | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(_end, server)
    return server


def _end(server):
    """It ends where its input does."""
    with server:
        server.stdin.close()


def serve():
    """A line of the input is a program; the answer is its exit code."""
    for name in IMPORTED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    import pdmp

    for name in dir(pdmp):
        getattr(pdmp, name)  # most are imported at their first use
    gc.collect()
    gc.freeze()  # pages that a fork does not write to are shared
    for line in sys.stdin:
        call = json.loads(line)
        if os.fork() == 0:
            return run(**call)
        print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)


def run(module, arguments, folder, printed):
    """In the fork, which ends as any process does."""
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    for number, name in ((1, "out"), (2, "err")):
        with open(os.path.join(printed, name), "wb") as file:
            os.dup2(file.fileno(), number)
    os.chdir(folder)
    sys.argv, sys.path[0] = [module, *arguments], folder
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    serve()
