"""Put machine code into a wheel: what the first commands of a newcomer need, for any x86-64 processor of ten years.

    python .ci/ship.py dist/pdmp-0.1.0-py3-none-any.whl [NUMBER [COMMANDS]]

The commands below, or the first COMMANDS of them, run with the package of the wheel, in this Python, in one process
for each of the `GENERATIONS` of processors of `pdmp.native.numba_internals` that this one runs, or the best NUMBER of
them. What they compile becomes ``pdmp/machine_code``, in a second wheel beside the first: for this version of Python
and this platform. Of other versions of numba, and on older processors, the package compiles as it does without. Needs
the package `wheel`.
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

from pdmp.native.numba_internals import GENERATIONS, generations

SETTING = """
import warnings
import numpy as np, pdmp
from pdmp.cli import app
warnings.simplefilter("ignore")
rng = np.random.default_rng(1)
X, g = rng.standard_normal((20_000, 5)), np.arange(20_000) % 20
rows = {"x": X[:, 0], "z": X[:, 1], "g": g, "y": X[:, 2], "label": X[:, 3] > 0.0, "count": rng.poisson(2.0, 20_000)}
few = {name: column[:300] for name, column in rows.items()}
short = {"seed": 1, "gradients": 4_000, "progress": False}


def loss(y, z, log_scale):
    return log_scale + 2.5 * pdmp.terms.log1p(((y - z) * pdmp.terms.exp(-log_scale)) ** 2 / 4.0)


def terms(n):
    p = pdmp.Parameters(slope=5, log_scale=1)
    of_rows = pdmp.terms(loss, data=[rows["count"][:n]], at=[X[:n] @ p.slope, p.log_scale])
    normal = pdmp.models.priors.Normal(0.0, 2.5)
    return pdmp.models.sum_of_terms(p, [of_rows], priors={"slope": normal, "log_scale": normal})
"""
COMMANDS = """
pdmp.sample(pdmp.models.from_function(lambda x: (0.5 * x @ x, x), 3), **short)
pdmp.sample(pdmp.models.LogisticRegression(X, rows["label"]), **short)
pdmp.sample(terms(20_000), seed=1, seconds=0.2, progress=False)
pdmp.sample(terms(300), **short)
app(["compare", "--quick", "--data-passes", "40"], standalone_mode=False)
app(["tune", "SGLD", "--budget", "20"], standalone_mode=False)
pdmp.regression("y ~ x + z", rows, seed=1, seconds=0.2)
pdmp.regression("label ~ x + z", rows, family="bernoulli", seed=1, seconds=0.2)
pdmp.regression("count ~ x + z", rows, family="poisson", seed=1, seconds=0.2)
pdmp.regression("y ~ x + (1 | g)", few, seed=1, gradients=4_000)
pdmp.regression("count ~ x + (1 | g)", rows, family="poisson", seed=1, seconds=0.2)
"""


def compiled(processor, commands, package, cache):
    """Run commands with the package at a place, and keep what they compile for a processor."""
    environment = os.environ | {
        "NUMBA_CPU_NAME": processor[0], "NUMBA_CPU_FEATURES": processor[1], "NUMBA_CACHE_DIR": str(cache),
        "MPLBACKEND": "Agg", "PYTHONPATH": str(package), "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as here:
        run = [sys.executable, "-c", SETTING + commands]
        subprocess.run(run, check=True, cwd=here, env=environment, stdout=subprocess.DEVNULL)


def main(path, number=None, commands=None):
    """Write the second wheel."""
    some = "\n".join(COMMANDS.strip().split("\n")[: commands and int(commands)])
    made, wheel, began = generations()[: number and int(number)], pathlib.Path(path).resolve(), time.perf_counter()
    if not made:
        raise SystemExit(f"code is made for {GENERATIONS} here, none of which this {platform.machine()} runs.")
    tool = [sys.executable, "-m", "wheel"]
    with tempfile.TemporaryDirectory() as work:
        subprocess.run([*tool, "unpack", wheel, "--dest", work], check=True, stdout=subprocess.DEVNULL)
        (package,) = pathlib.Path(work).iterdir()
        cache, place = pathlib.Path(work) / "cache", package / "pdmp" / "machine_code"
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(lambda processor: compiled(processor, some, package, cache), made))
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
        result = pathlib.Path(shutil.copy(pathlib.Path(work) / named, wheel.parent))
    size, taken = result.stat().st_size / 2**20, time.perf_counter() - began
    processors = " and ".join(name for name, _ in made)
    print(f"{result.name}: {len(files)} functions for {processors}, {size:.1f} MiB, in {taken:.0f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
