"""Machine code on disk: never out of date, never compiled twice, and a program that runs without it."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from pdmp.native.numba_internals import generations
from tests.checks import in_ci
from tests.native.processes import ROOT, needs_compiler, python

pytestmark = needs_compiler

MODEL_FILE = """
import numpy as np
import pdmp
from forces import stiffness

PRECISION = np.array([1, 1]).max()
X = np.random.default_rng().standard_normal(4)  # other data in each process, which `self.X` is not

class Quartic(pdmp.Model):
    scale: float
    X: np.ndarray

    def __init__(self, scale):
        super().__init__(dim=2, n_data=4)
        self.scale, self.X = scale, X

    @pdmp.compiled
    def prior_potential(self, x):
        return 0.25 * PRECISION * self.scale * (x[0] ** 4 + x[1] ** 4) + 0.5 * stiffness() * (x[0] ** 2 + x[1] ** 2)

    @pdmp.compiled
    def add_prior_gradient(self, x, out):
        for j in range(self.dim):
            out[j] += PRECISION * self.scale * x[j] ** 3 + stiffness() * x[j]

    @pdmp.compiled
    def term_potential(self, x, i):
        return 0.0 * self.X[i] / self.n_data + np.i0(x[0]) * x.level()

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        out[0] += 0.0 * self.X[i]
"""
FORCES_FILE = """
from numba import njit

@njit
def stiffness():
    return 1.0
"""
OVERLOADS_FILE = """
import numpy as np
from numba import types
from numba.extending import overload, overload_method

@overload(np.i0)
def _(x):
    return lambda x: 1.0

@overload_method(types.Array, "level")
def _(x):
    return lambda x: 0.0
"""
ASKED = """
import json
import numpy as np
from pdmp.models import base, called

def asked(model):
    x = np.array([1.0, 2.0])
    values = model.potential(x), *model.gradient(x), *model.term_gradients(x, [0, 1]).ravel()
    functions = called.POTENTIAL.fill, called.GRADIENT.fill, base._add_term_gradients  # compiled for the model
    counts = [(sum(f.stats.cache_hits.values()), sum(f.stats.cache_misses.values())) for f in functions]
    return {"values": values, "hits": sum(hits for hits, _ in counts), "misses": sum(misses for _, misses in counts)}
"""
#: What compiles in half a second: a sampler takes ten, and its code is kept by the same class.
SCRIPT = """
import json
import pdmp
from pdmp.models import called

model = pdmp.models.SkewNormal(2.0)
values = [float(model.potential([0.7])), float(model.gradient([0.7])[0])]
stats = [f.stats for f in (called.POTENTIAL.fill, called.GRADIENT.fill)]
hits, misses = ([sum(getattr(s, "cache_" + name).values()) for s in stats] for name in ("hits", "misses"))
print(json.dumps({"values": values, "hits": hits, "misses": misses}))
"""
FOUND, MADE = ([1, 1], [0, 0]), ([0, 0], [1, 1])


def edit(path, old, new):
    """Change one place of a file and keep its time of modification: a cache must not depend on that."""
    text, stat = path.read_text(), path.stat()
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {path}"
    path.write_text(text.replace(old, new))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def said(script, folder, **environment):
    """What a script prints last; without Python's own cache of bytecode, which goes by times of modification."""
    environment = {"NUMBA_CACHE_DIR": folder / "cache", "PYTHONDONTWRITEBYTECODE": 1} | environment
    return json.loads(python(script, cwd=folder, **environment).splitlines()[-1])


def test_edits_of_the_package_are_compiled_and_those_that_compute_nothing_are_not(tmp_path):
    for package in ("pdmp", "discrete"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "script.py").write_text(SCRIPT)
    first = said("script.py", tmp_path)
    assert (first["hits"], first["misses"]) == MADE
    nothing = "pdmp/engine/result.py", "pdmp/comparison.py"  # files of which nothing is compiled
    special, called = "pdmp/expressions/special.py", "pdmp/models/called.py"
    for path in (*nothing, special, called, "pdmp/models/targets/skew_normal.py"):
        text = (tmp_path / path).read_text()
        (tmp_path / path).write_text("# A comment.\n" + text.replace('"""', '"""More of a docstring. ', 1))
    edit(tmp_path / nothing[0], "from __future__ import annotations", "from __future__ import annotations\nA = 1")
    again = said("script.py", tmp_path)
    assert (again["hits"], again["misses"]) == FOUND
    assert again["values"] == first["values"]
    edit(tmp_path / special, "math.log1p(-0.5 * math.erfc", "math.log1p(-0.4 * math.erfc")  # a method names it
    after = said("script.py", tmp_path)
    assert (after["hits"], after["misses"]) == MADE
    assert after["values"][0] != first["values"][0] and after["values"][1] == first["values"][1]
    of_no_class = "unpacked(fields).total_potential(x)"
    edit(tmp_path / called, of_no_class, f"1.0 * {of_no_class}")
    last = said("script.py", tmp_path)
    assert (last["hits"], last["misses"]) == ([0, 1], [1, 0])
    assert last["values"] == after["values"]


def test_code_that_came_with_the_package_is_run_and_what_did_not_come_is_compiled(tmp_path):
    """What did not come for the best processor that this one is as good as is taken from that of the next."""
    for package in ("pdmp", "discrete"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "script.py").write_text(SCRIPT)
    if not generations():
        pytest.skip("this processor is older than those that code is shipped for")
    place = tmp_path / "pdmp" / "machine_code"
    for processor, features in generations():
        named = {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": features}
        made = said("script.py", tmp_path, NUMBA_CACHE_DIR=place, **named)
        assert (made["hits"], made["misses"]) == MADE  # the second time too: what came is not for named processors
        files = [shutil.move(path, place) for path in place.glob("*/*.code")]
        assert len(files) >= 2
        came = said("script.py", tmp_path)
        assert (came["hits"], came["misses"], came["values"]) == (*FOUND, made["values"])
        assert list((tmp_path / "cache").rglob("*.code")) == []  # and nothing was written
        (potential,) = place.glob("*fill_total_potential-*")
        content = potential.read_bytes()
        potential.unlink()
    potential.write_bytes(content[:-1])
    damaged = said("script.py", tmp_path)
    assert (damaged["hits"], damaged["misses"]) == ([0, 1], [1, 0])
    assert damaged["values"] == pytest.approx(made["values"], rel=1e-12)  # machine code of another processor


#: What compiles in a process, and where: numba announces each function that it compiles, the outermost of a loop too.
COMPILED = """
import json, sys
from numba.core import event

class Compiled(event.Listener):
    names = []

    def on_start(self, event):
        self.names.append(event.data["dispatcher"].__name__)

    def on_end(self, event):
        pass

event.register("numba:compile", Compiled())

def report(**further):
    print("\\n" + json.dumps({"compiled": Compiled.names} | further))
"""
COMMANDS = {
    "compare": "main(['compare', '--problem', 'wine', '--quick', '--data-passes', '40'])",
    "sample": "pdmp.sample(model, gradients=4_000, seed=1, progress=False)",
    "a class of one's own": "pdmp.sample(Bowl(2.0), gradients=4_000, seed=1, progress=False)",
    "a function": "pdmp.sample(from_function(lambda x: (0.5 * x @ x, x), 3), gradients=4_000, seed=1, progress=False)",
    "regression": "pdmp.regression('y ~ x + (1 | g)', {'x': X[:, 0], 'g': y, 'y': X[:, 1]}, seed=1, gradients=4_000)",
    "tune": "main(['tune', 'SGLD', '--problem', 'wine', '--budget', '20'])",
}


BOWLS_FILE = """
import numpy as np
import pdmp

class Bowl(pdmp.Model):
    scale: float

    def __init__(self, scale):
        super().__init__(dim=2)
        self.scale = scale

    @pdmp.compiled
    def potential(self, x):
        return 0.5 * self.scale * (x[0] ** 2 + x[1] ** 2)

    @pdmp.compiled
    def add_gradient(self, x, out):
        for j in range(2):
            out[j] += self.scale * x[j]

class Valley(pdmp.Model):
    y: np.ndarray
    depth: int

    def __init__(self):
        super().__init__(dim=3, n_data=5)
        self.y, self.depth = np.arange(5.0), 2

    @pdmp.compiled
    def term_potential(self, x, i):
        return 0.5 * (x[0] - self.y[i]) ** 2 + self.depth * (x[1] - x[0]) ** 2 + x[2] ** 2

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        out[0] += x[0] - self.y[i] - 2.0 * self.depth * (x[1] - x[0])
        out[1] += 2.0 * self.depth * (x[1] - x[0])
        out[2] += 2.0 * x[2]
"""


def test_a_sampler_is_compiled_once_for_all_models(tmp_path):
    """The first model on a machine compiles it, a second of other fields its own methods, a third process nothing."""
    (tmp_path / "counted.py").write_text(COMPILED)
    (tmp_path / "bowls.py").write_text(BOWLS_FILE)
    (tmp_path / "script.py").write_text("""
import sys
from counted import report
import bowls, pdmp
model = bowls.Bowl(2.0) if sys.argv[1] == "bowl" else bowls.Valley()
report(ends=pdmp.sample(model, gradients=4_000, seed=1, progress=False).trajectories[0].positions[-1].tolist())
""")

    def run(name):
        environment = {"NUMBA_CACHE_DIR": tmp_path / "cache", "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
        return json.loads(python("script.py", name, cwd=tmp_path, **environment).splitlines()[-1])

    assert "advance" in run("bowl")["compiled"]
    first, second = run("valley"), run("valley")
    assert {"fill_total_potential", "fill_add_gradient", "term_potential", "add_term_gradient"} <= set(
        first["compiled"]
    )
    assert not {"advance", "settle", "jump", "clock"} & set(first["compiled"])
    assert second["compiled"] == [] and second["ends"] == first["ends"]


@pytest.mark.parametrize("command", in_ci(COMMANDS))  # the test above shows it of classes of one's own
def test_what_a_new_process_compiles_the_next_one_finds(command, tmp_path):
    """Otherwise every second call would compile again, as the process that has compiled names its code differently."""
    (tmp_path / "counted.py").write_text(COMPILED)
    (tmp_path / "bowls.py").write_text(BOWLS_FILE)
    (tmp_path / "script.py").write_text(f"""
from counted import report
from bowls import Bowl
import contextlib, warnings
import numpy as np
import pdmp
from pdmp.cli import main
from pdmp.models import from_function

warnings.simplefilter("ignore")
X, y = np.random.default_rng(1).standard_normal((100, 9)), np.arange(100) % 2
model = pdmp.models.LogisticRegression(X, y)
with contextlib.suppress(SystemExit):
    {COMMANDS[command]}
report()
""")
    first, second = (said("script.py", tmp_path, PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}") for _ in range(2))
    assert len(first["compiled"]) > 0
    assert second["compiled"] == []


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core")
def test_another_process_compiles_for_a_comparison(tmp_path):
    """What it has compiled is found; it does not run the script, and it is not there where all is on disk."""
    (tmp_path / "script.py").write_text("""
import numpy as np
import pdmp
from pdmp.native.ahead import Ahead

print("the script")
law = pdmp.models.Gaussian([0.0, 0.0], [1.0, 2.0])
truth = pdmp.comparison.Reference(np.zeros(2), np.ones(2), np.eye(2), np.zeros((9, 2)), 1.0, 1e3)
processes = {"BPS": pdmp.BPS(law), "ZigZag": pdmp.ZigZag(law)}
leave = Ahead.__exit__
Ahead.__exit__ = lambda self, *_: [print("others made", sorted(self._begun)), leave(self)] and None
pdmp.compare(processes, reference=truth, data_passes=50, seed=1, say=print)
""")
    environment = {"NUMBA_CACHE_DIR": tmp_path / "cache", "PYTHONPATH": ROOT, "LOKY_MAX_CPU_COUNT": 2}
    first, second = (python("script.py", cwd=tmp_path, **environment) for _ in range(2))
    assert first.count("the script\n") == second.count("the script\n") == 1
    assert re.findall(r"(\w+): compiling \(once", first) == ["BPS"] and "compiling" not in second
    assert "others made ['ZigZag']" in first and "others made []" in second


def test_what_compiles_says_how_long_it_took_last_time(tmp_path):
    """After an edit, as code that is found on disk does not compile; a damaged record of times is as good as none."""
    (tmp_path / "script.py").write_text("""
import json
from pdmp.native import messages
from pdmp.native.classes import entry

@entry
def f(x):
    return x + 1

messages.QUICK, said = 0.0, []
with messages.announcing(said.append):
    f(1), f(2), f(1.0)
print(json.dumps(said))
""")
    once, known = "once; the machine code is kept on disk", r"once; \d s last time on this machine"
    first, again = said("script.py", tmp_path, PYTHONPATH=ROOT), said("script.py", tmp_path, PYTHONPATH=ROOT)
    assert first == [f"compiling ({once})"]  # two types, one text
    assert again == []
    edit(tmp_path / "script.py", "x + 1", "x + 2")
    (last,) = set(said("script.py", tmp_path, PYTHONPATH=ROOT))
    assert re.fullmatch(rf"compiling \({known}\)", last)
    (record,) = (tmp_path / "cache").rglob("seconds.txt")
    assert len(record.read_text().splitlines()) == 2
    record.write_text("damaged")
    edit(tmp_path / "script.py", "x + 2", "x + 3")
    assert said("script.py", tmp_path, PYTHONPATH=ROOT)[0] == f"compiling ({once})"


@pytest.mark.quick
def test_compiling_changes_no_fingerprint(tmp_path):
    """In a process that has compiled nothing before: the rows of a regression, with vectors of eight numbers."""
    out = python(
        "-c",
        """
import numpy as np
from numba import njit
from pdmp.native import vectors
from pdmp.native.classes import fingerprint
from tests.native.helpers_fingerprints import classes_of_the_packages

def hashed():
    return {cls: fingerprint(cls._methods.values()) for cls in classes_of_the_packages()}

before = hashed()
njit(_nrt=False)(lambda data, x: vectors.dot(data, 0, 0, x, 1))(np.ones((2, 8)), np.ones(8))
assert [cls for cls, value in hashed().items() if value != before[cls]] == []
""",
    )
    assert out == ""


def test_two_processes_compile_into_one_folder_at_once(tmp_path):
    """Whichever is first, both get their result, and the next one finds the code of one of them."""
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    environment["NUMBA_DISABLE_JIT"] = "0"
    call = [sys.executable, "script.py"]
    options = {"cwd": tmp_path, "env": environment, "stdout": subprocess.PIPE, "text": True}
    both = [subprocess.Popen(call, **options) for _ in range(2)]
    outputs = [child.communicate(timeout=300)[0] for child in both]
    assert [child.returncode for child in both] == [0, 0]
    one, other = (json.loads(text.splitlines()[-1]) for text in outputs)
    assert one["values"] == other["values"]
    third = said("script.py", tmp_path, PYTHONPATH=ROOT)
    assert (third["hits"], third["misses"], third["values"]) == (*FOUND, one["values"])


@pytest.mark.parametrize("where", in_ci(["module", "script"], "module"))
def test_a_model_of_ones_own_is_compiled_once_and_after_each_edit(where, tmp_path):
    """Asked from Python for potential, gradient and term gradients, in process after process."""
    (tmp_path / "forces.py").write_text(FORCES_FILE)
    (tmp_path / "overloads.py").write_text(OVERLOADS_FILE)
    (tmp_path / "asked.py").write_text(ASKED)
    ending = "import overloads\nfrom asked import asked\nprint(__import__('json').dumps(asked(Quartic(1.0))))"
    model = tmp_path / ("quartic.py" if where == "module" else "script.py")
    (tmp_path / "script.py").write_text(f"from quartic import Quartic\n{ending}")
    model.write_text(MODEL_FILE if where == "module" else f"{MODEL_FILE}\n{ending}")

    def run():
        return said("script.py", tmp_path, PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")

    first = run()
    assert (first["hits"], first["misses"]) == (0, 3)
    assert first["values"][:3] == [0.25 * 17 + 0.5 * 5, 1.0 + 1.0, 8.0 + 2.0]
    edit(model, "import numpy as np\nimport pdmp\n", "import numpy as np  # a comment\n\nimport pdmp\n")
    again = run()
    assert (again["hits"], again["misses"]) == (3, 0)
    assert again["values"] == first["values"]
    edits = (
        (model, "np.array([1, 1]).max()", "np.array([1, 3]).max()", 0.25 * 3 * 17 + 0.5 * 5),
        (model, "0.25 * PRECISION", "0.5 * PRECISION", 0.5 * 3 * 17 + 0.5 * 5),
        (tmp_path / "forces.py", "return 1.0", "return 1.2", 0.5 * 3 * 17 + 0.6 * 5),
        (tmp_path / "overloads.py", "x: 0.0", "x: 0.25", 0.5 * 3 * 17 + 0.6 * 5 + 4 * 0.25),  # of a file it never names
    )
    for path, old, new, potential in edits if where == "module" else edits[:1]:
        edit(path, old, new)
        after = run()
        assert after["hits"] == 0, path
        assert after["values"][0] == pytest.approx(potential, rel=1e-14)


CACHED_FILE = """
import numba
from deep import deep

@numba.njit(cache=True)
def shallow():
    return deep()

@numba.njit("float64()", cache=True)
def of_these_types():
    return deep()
"""
CACHED_SCRIPT = """
import json
import numpy as np
import pdmp
from numba import njit
from shallow import of_these_types, shallow

@njit(cache=True)
def slope(x):
    return 0.5 * (x[0] - shallow()) ** 2, x - shallow()

class Own(pdmp.Model):
    @pdmp.compiled
    def potential(self, x):
        return 0.5 * (x[0] - shallow()) ** 2

    @pdmp.compiled
    def add_gradient(self, x, out):
        out[0] += x[0] - of_these_types()

before = shallow()  # as numba has kept it
zero = np.zeros(1)
own, given = Own(dim=1), pdmp.models.from_function(slope, 1)
values = own.gradient(zero)[0], own.potential(zero), given.gradient(zero)[0], shallow(), of_these_types()
print(json.dumps({"before": before, "values": values}))
"""


@pytest.mark.parametrize("called", in_ci([True, False], True))
def test_what_numba_itself_has_kept_is_not_in_what_is_kept_here(called, tmp_path):
    """Numba does not see that a function of another file has changed, which one of its own cache calls."""
    script = CACHED_SCRIPT if called else CACHED_SCRIPT.replace("= shallow()  #", "= None  #")
    (tmp_path / "shallow.py").write_text(CACHED_FILE)
    (tmp_path / "deep.py").write_text("import numba\n\n@numba.njit\ndef deep():\n    return 2.0\n")
    (tmp_path / "alone.py").write_text("from shallow import *\nshallow(), of_these_types()\nprint('{}')")
    (tmp_path / "script.py").write_text(script)
    environment = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    said("alone.py", tmp_path, **environment)
    assert said("script.py", tmp_path, **environment)["values"] == [-2.0, 2.0, -2.0, 2.0, 2.0]
    said("alone.py", tmp_path, **environment)
    edit(tmp_path / "deep.py", "2.0", "3.0")
    now = said("script.py", tmp_path, **environment)
    assert now["before"] == (2.0 if called else None)
    assert now["values"] == [-3.0, 4.5, -3.0, 3.0, 3.0]
    (tmp_path / "shallow.py").write_text(CACHED_FILE.replace(", cache=True", "").replace("(cache=True)", ""))
    assert said("script.py", tmp_path, **environment)["values"] == now["values"]


OVERLOADED_FILE = """
import numba
from numba.extending import overload
from deep import deep

@numba.njit(cache=True)
def shallow():
    return deep()

def given(x):
    return None

@overload(given, jit_options={"cache": True})
def _(x):
    return lambda x: shallow()

@numba.vectorize(["float64(float64)"], cache=KEPT)
def of_arrays(x):
    return x

@numba.cfunc("float64(float64)", cache=KEPT)
def of_c(x):
    return x
"""
OVERLOADED_SCRIPT = """
import json
import numpy as np
import pdmp
import shallow
from shallow import given

class Base(pdmp.Model):
    @pdmp.compiled
    def potential(self, x):
        return 0.0

    @pdmp.compiled
    def add_gradient(self, x, out):
        out[0] += 1.0

class Own(Base):
    @pdmp.compiled
    def potential(self, x):
        return given(x[0])

class Vectorised(Base):
    @pdmp.compiled
    def potential(self, x):
        return shallow.of_arrays(x[0])

class OfC(Base):
    @pdmp.compiled
    def potential(self, x):
        return shallow.of_c(x[0])

values = [Own(dim=1).potential(np.zeros(1))]
for kind in (Vectorised, OfC):
    try:
        values.append(kind(dim=1).potential(np.full(1, 5.0)))
    except TypeError as error:
        values.append(str(error))
print(json.dumps({"values": values}))
"""


@pytest.mark.release
def test_nor_in_what_overloads_call_and_what_cannot_be_compiled_again_is_refused(tmp_path):
    (tmp_path / "shallow.py").write_text(OVERLOADED_FILE.replace("KEPT", "False"))
    (tmp_path / "deep.py").write_text("import numba\n\n@numba.njit\ndef deep():\n    return 2.0\n")
    (tmp_path / "script.py").write_text(OVERLOADED_SCRIPT)
    environment = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    assert said("script.py", tmp_path, **environment)["values"] == [2.0, 5.0, 5.0]
    (tmp_path / "alone.py").write_text("from shallow import *\nshallow()\nprint('{}')")
    said("alone.py", tmp_path, **environment)
    edit(tmp_path / "deep.py", "2.0", "3.0")
    (tmp_path / "shallow.py").write_text(OVERLOADED_FILE.replace("KEPT", "True"))
    said("alone.py", tmp_path, **environment)
    edit(tmp_path / "deep.py", "3.0", "4.0")
    now = said("script.py", tmp_path, **environment)["values"]
    assert now[0] == 4.0
    assert now[1].startswith("`of_arrays` is a numba DUFunc that is kept on disk")
    assert now[2].startswith("`of_c` is a numba CFunc that is kept on disk")


def test_files_that_are_cut_short_or_changed_are_compiled_anew(tmp_path):
    (tmp_path / "asked.py").write_text(ASKED)
    ending = "print(json.dumps(asked(pdmp.models.LinearGaussian(np.eye(2), np.ones(2)))))"
    (tmp_path / "script.py").write_text(
        f"import json\nimport numpy as np\nimport pdmp\nfrom asked import asked\n{ending}"
    )

    def run():
        return said("script.py", tmp_path, PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")

    first = run()
    files = sorted((tmp_path / "cache").rglob("*.code"))
    count = first["misses"]
    assert 3 <= count <= len(files)
    for k, file in enumerate(files):
        whole = file.read_bytes()
        middle = len(whole) // 2  # in the machine code, which could be loaded all the same
        damaged = b"", whole[:middle], whole[:middle] + bytes(100) + whole[middle + 100 :]
        file.write_bytes(damaged[k % 3])
    after, again = run(), run()
    assert (after["misses"], again["misses"], again["hits"]) == (count, 0, count)
    assert first["values"] == after["values"] == again["values"]


OWN_PROCESS_FILE = """
from typing import NamedTuple
import numpy as np
from pdmp import Process, CERTAIN, compiled

class Seen(NamedTuple):
    flips: np.ndarray

class Telegraph(Process):
    events = ("switch",)

    def __init__(self):
        super().__init__(dim=1)

    @compiled
    def clock(self, state, i, now, rng):
        return now + rng.standard_exponential(), CERTAIN

    @compiled
    def jump(self, state, i, now, rng):
        state.v[0] = -state.v[0]
        state.memory.flips[0] += 1.0
        return 0

    def memory(self, x, rng):
        return Seen(np.zeros(1))
"""


def test_what_one_script_put_on_disk_does_not_disturb_another(tmp_path):
    """Code is kept with the classes that it is for, which the other script cannot import."""
    for name in ("Telegraph", "Switch"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.py").write_text(OWN_PROCESS_FILE.replace("Telegraph", name))
    (tmp_path / "script.py").write_text("""
import importlib, sys
name = sys.argv[1]
sys.path.insert(0, name)
import pdmp
from pdmp.engine import scheduler
pdmp.sample(getattr(importlib.import_module(name), name)(), events=10, seed=1)
print(sum(scheduler.advance.stats.cache_hits.values()))
""")

    def hits(name):
        out = python("script.py", name, cwd=tmp_path, NUMBA_CACHE_DIR=tmp_path / "cache", PYTHONPATH=ROOT)
        return int(out.splitlines()[-1])

    assert [hits(name) for name in ("Telegraph", "Switch", "Telegraph")] == [0, 0, 1]


def test_without_a_folder_that_can_be_written_everything_runs_and_one_warning_says_so(tmp_path):
    """Folders in the place of which there is a file: root, as whom containers run, may write what is read-only."""
    shutil.copytree(ROOT / "pdmp", tmp_path / "pdmp", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [tmp_path / "pdmp", *(path for path in (tmp_path / "pdmp").rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("a file")
    (tmp_path / "bowls.py").write_text(BOWLS_FILE)
    (tmp_path / "script.py").write_text("""
import json, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import pdmp
    from bowls import Bowl
    values = Bowl(2.0).potential([1.0, 2.0]), pdmp.models.Banana().potential([0.5, 0.5])
kept = [str(w.message) for w in caught if "NUMBA_CACHE_DIR" in str(w.message)]
print(json.dumps({"warnings": kept, "values": values}))
""")
    nowhere = "/dev/null/nowhere"
    found = said("script.py", tmp_path, NUMBA_CACHE_DIR="", HOME=nowhere, XDG_CACHE_HOME=nowhere)
    assert len(found["warnings"]) == 1
    assert "machine code is not kept" in found["warnings"][0]
    assert found["values"][0] == 5.0 and found["values"][1] > 0.0
