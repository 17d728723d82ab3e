"""Put machine code into a wheel: what the first commands of a newcomer need, for any x86-64 processor of ten years.

    python .ci/ship.py dist/pdmp-0.1.0-py3-none-any.whl

The commands below run with the package of the wheel, in this Python, for the processor `GENERATION` of
`pdmp.native.numba_internals`, each in a process of its own with an empty cache. What they compile becomes
``pdmp/machine_code``, in a second wheel beside the first: for this version of Python and this platform. Of other
versions of numba, and on older processors, the package compiles as it does without. Needs the package `wheel`.
"""

import concurrent.futures
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time

from pdmp.native.numba_internals import GENERATION

SETTING = """
import warnings
import numpy as np, pdmp
from pdmp.cli import main
warnings.simplefilter("ignore")
rng = np.random.default_rng(1)
X, g = rng.standard_normal((20_000, 5)), np.arange(20_000) % 20
rows = {"x": X[:, 0], "z": X[:, 1], "g": g, "y": X[:, 2], "label": X[:, 3] > 0.0, "count": rng.poisson(2.0, 20_000)}
few = {name: column[:300] for name, column in rows.items()}
short = {"seed": 1, "gradients": 4_000, "progress": False}
"""
COMMANDS = [
    "pdmp.sample(pdmp.models.from_function(lambda x: (0.5 * x @ x, x), 3), **short)",
    "pdmp.sample(pdmp.models.LogisticRegression(X, rows['label']), **short)",
    "main(['compare', '--quick', '--data-passes', '40'])",
    "main(['tune', 'SGLD', '--budget', '20'])",
    *(f"pdmp.regression('{formula}', rows, {options}seed=1, seconds=1.0)" for formula, options in (
        ("y ~ x + z", ""), ("label ~ x + z", "family='bernoulli', "), ("count ~ x + z", "family='poisson', "))),
    "pdmp.regression('y ~ x + (1 | g)', few, seed=1, gradients=4_000)",
    "pdmp.regression('count ~ x + (1 | g)', rows, family='poisson', seed=1, seconds=1.0)",
]  # fmt: skip


def compiled(command, package, cache):
    """Run a command with the package at a place, and keep what it compiles."""
    environment = os.environ | {
        "NUMBA_CPU_NAME": GENERATION, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(cache), "MPLBACKEND": "Agg",
        "PYTHONPATH": str(package), "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as here:
        subprocess.run(
            [sys.executable, "-c", SETTING + command], check=True, cwd=here, env=environment, stdout=subprocess.DEVNULL
        )


def main(path):
    """Write the second wheel."""
    if platform.machine() not in ("x86_64", "AMD64"):
        raise SystemExit(f"code is made for {GENERATION} here, and this is {platform.machine()}.")
    wheel, began = pathlib.Path(path).resolve(), time.perf_counter()
    tool = [sys.executable, "-m", "wheel"]
    with tempfile.TemporaryDirectory() as work:
        subprocess.run([*tool, "unpack", wheel, "--dest", work], check=True, stdout=subprocess.DEVNULL)
        (package,) = pathlib.Path(work).iterdir()
        cache, place = pathlib.Path(work) / "cache", package / "pdmp" / "machine_code"
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda command: compiled(command, package, cache), COMMANDS))
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        files = [shutil.copy(file, place) for name in ("pdmp", "discrete") for file in cache.rglob(f"{name}.*.code")]
        for folder in package.rglob("__pycache__"):
            shutil.rmtree(folder)
        subprocess.run([*tool, "pack", package, "--dest", work], check=True, stdout=subprocess.DEVNULL)
        tag, system = sys.implementation.cache_tag.replace("cpython-", "cp"), sysconfig.get_platform()
        system = "manylinux2014_x86_64" if system == "linux-x86_64" else system.replace("-", "_").replace(".", "_")
        (packed,) = pathlib.Path(work).glob("*.whl")
        named = subprocess.run(
            [*tool, "tags", "--python-tag", tag, "--abi-tag", tag, "--platform-tag", system, packed],
            check=True, capture_output=True, text=True, cwd=work,
        ).stdout.strip()  # fmt: skip
        made = pathlib.Path(shutil.copy(pathlib.Path(work) / named, wheel.parent))
    size, taken = made.stat().st_size / 2**20, time.perf_counter() - began
    print(f"{made.name}: {len(files)} functions, {size:.1f} MiB, in {taken:.0f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
