"""Runs next to each other: in threads, in forked processes, and one so long that memory would show."""

import concurrent.futures
import os
import subprocess
import sys

import pytest

import pdmp
from tests.engine.helpers_run import ROOT, same
from tests.toys import Telegraph, Ticks, Walls

PROCESSES = {"global": Telegraph, "local": Walls, "ticks": Ticks}


@pytest.mark.exact
def test_runs_in_threads_do_not_disturb_each_other():
    """Also those of one and the same process."""
    shared = {name: make() for name, make in PROCESSES.items()}
    calls = [(name, seed) for seed in range(3) for name in shared]

    def run(call):
        name, seed = call
        return pdmp.sample(shared[name], events=120, chains=2, seed=seed, warmup=0.1)

    alone = [run(call) for call in calls]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(same(a, b) for a, b in zip(alone, pool.map(run, calls), strict=True))


FORKED = """
import os, sys, warnings, numpy as np, pdmp
from tests.toys import Walls
warnings.simplefilter("ignore")  # Python warns of forks where there are threads
call = {"events": 200, "chains": 2, "seed": 4}
here = pdmp.sample(Walls(), **call)  # threads have run, and machine code is loaded
read, write = os.pipe()
number = os.fork()
if number == 0:
    os.write(write, pdmp.sample(Walls(), **call).trajectories[1].whole.times.tobytes())
    os._exit(0)
os.close(write)
with open(read, "rb") as file:
    there = np.frombuffer(file.read())
assert os.waitpid(number, 0)[1] == 0
assert np.array_equal(there, here.trajectories[1].whole.times), "a fork has another path"
print("same")
"""


@pytest.mark.exact
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks of POSIX")
def test_a_forked_process_gives_the_same_bits():
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", FORKED], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.stdout == "same\n", done.stderr


LONG = """
import resource, sys, pdmp
process = pdmp.ZigZag(pdmp.models.Gaussian([0.0], [1.0]))
def run(events, store, **options):
    found = pdmp.sample(process, events=events, seed=1, store=store, **options)
    assert found.events[0] == events
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = max(run(1_000_000, "moments"), run(1_000_000, "grid", draws=1_000))
after = max(run(int(sys.argv[1]), "moments"), run(int(sys.argv[1]), "grid", draws=1_000))
print(after - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss in the units of Linux")
def test_memory_does_not_grow_with_the_events():
    """Twenty million events; each would take 25 bytes of a skeleton, 500 MB in all."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "0"}
    call = [sys.executable, "-c", LONG, str(2 * 10**7)]
    done = subprocess.run(call, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=True)
    assert float(done.stdout) < 10.0  # megabytes
