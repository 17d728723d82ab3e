"""Python processes of their own, for what happens at import and in a second process."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")

needs_compiler = pytest.mark.skipif(not JIT, reason="looks at compiled code")


def python(*arguments, cwd=ROOT, **environment):
    """Run a Python process; its standard output."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(cwd)} | {k: str(v) for k, v in environment.items()},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
