"""Which tests a call of pytest runs, and in which processes.

``pytest`` is the quick tier: the tests marked `exact` run in plain Python (NUMBA_DISABLE_JIT=1), which costs no
compilation, and those marked `quick` compiled. ``pytest --full`` adds the slow exact tests in plain Python and,
compiled, all that are not exact and those marked `compiled`; ``--full --rest``, which CI runs after the quick tier,
leaves out what that has run. ``--release`` adds the tests marked `release`. ``repeated.json``, which
`tests.mutations.repeated` writes, names exact ones whose every line quicker ones execute, for either of these.
A test that is asked for by its file, by its name or by ``-k`` or ``-m`` runs in either tier.

Plain and compiled tests cannot share a process, so half of the workers are plain and half compiled; in the quick tier,
which compiles little, only the first is compiled. With
NUMBA_DISABLE_JIT in the environment all are what it says, and with ``-n 0`` the only process is compiled; where
everything is plain, tests that are not exact run only if asked for by name, as they would take hours.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pathlib
import re
import sys

import pytest

from tests import seeds

VARIABLE = "NUMBA_DISABLE_JIT"
# To rewrite and compile every test module takes each process 15 s; what did it before is found in __pycache__.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
ROOT = pathlib.Path(__file__).parents[1]
#: Tests in plain Python that others repeat, by the first tier that has them; in the file by module and function.
REPEATED = {
    tier: {
        f"{module}::{name}{end}" for module, names in modules.items() for name, ends in names.items() for end in ends
    }
    for tier, modules in json.loads((ROOT / "tests/repeated.json").read_text(encoding="utf-8")).items()
}
#: Modules that have tests for `--full` by that list.
MODULES = {name.partition("::")[0] for name in REPEATED["full"]}
#: A file whose tests are all exact.
ALL_EXACT = re.compile(r"^pytestmark = (?:(?!\n\n).)*?mark\.exact", re.MULTILINE | re.DOTALL)

# What test modules share, asserts with the values that they compared as the modules themselves do.
pytest.register_assert_rewrite(
    *(".".join(path.relative_to(ROOT).with_suffix("").parts) for path in ROOT.glob("tests/**/helpers_*.py"))
)


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="the laws as well; without it only the quick tier")
    parser.addoption("--rest", action="store_true", help="with --full: without the quick tier")
    parser.addoption("--release", action="store_true", help="all tests: hours")


def pytest_configure(config):
    """Set numba up before it is imported, and the seeds before they are used."""
    plain = getattr(config, "workerinput", {}).get("plain")
    if plain is not None:
        os.environ[VARIABLE] = str(int(plain))
    os.environ.setdefault("MPLBACKEND", "Agg")  # no windows
    os.environ.setdefault("LOKY_MAX_CPU_COUNT", "1")  # each core has its worker already
    seeds.install()
    gc.disable()  # until all is collected: see `pytest_collection_finish`


def full(config):
    """Whether more than the quick tier is asked for."""
    return config.option.full or config.option.release


def pytest_report_header(config):
    if not full(config) and not named(config):
        return "quick tier: exact tests in plain Python, one law of each sampler compiled; --full adds all laws"
    return None


def named(config):
    """Whether the call asks for certain tests."""
    chosen = any(arg.partition("::")[0].endswith(".py") for arg in config.args)
    return chosen or bool(config.option.keyword or config.option.markexpr)


def wanted(item, config):
    """Whether a test runs in this process."""
    names = ("exact", "quick", "slow", "release", "compiled")
    exact, quick, slow, release, compiled = (item.get_closest_marker(name) is not None for name in names)
    shared = getattr(config, "workerinput", {}).get("plain")
    later = slow or any(item.nodeid in names for names in REPEATED.values())
    release |= item.nodeid in REPEATED["release"] and shared is not False
    early = quick or (exact and not later and shared is not False)
    if not (config.option.release or named(config) or early or (full(config) and not release)):
        return False
    if shared is not None:
        if config.option.rest and (exact and not later if shared else quick):
            return False
        if shared:
            return exact
        return not exact or quick or (full(config) and compiled)
    plain = os.environ.get(VARIABLE, "0") != "0"
    return exact or not plain or any("::" in arg for arg in config.args)


def pytest_make_parametrize_id(config, val, argname):
    """Ids that can be pasted into a shell: of texts the words, of functions without a name their argument's name."""
    if isinstance(val, str):
        return re.sub(r"[^\w.=+/-]+", "_", val, flags=re.ASCII).strip("_")[:50] or argname
    return argname if callable(val) and getattr(val, "__name__", "") == "<lambda>" else None


def pytest_ignore_collect(collection_path, config):
    """A process reads only the files that have tests for it: to read all takes it half a minute."""
    plain = getattr(config, "workerinput", {}).get("plain")
    if plain is None or named(config) or not collection_path.name.startswith("test_"):
        return None
    text = collection_path.read_text(encoding="utf-8")
    if plain:
        needed = ("mark.slow", "in_quick(") if config.option.rest else ("mark.exact",)
        if config.option.rest and str(collection_path).removeprefix(f"{ROOT}/") in MODULES:
            return None
        return None if any(mark in text for mark in needed) else True
    if full(config) and not ALL_EXACT.search(text):
        return None
    also = ("mark.quick",) * (not config.option.rest) + ("mark.compiled",) * full(config)
    return None if any(mark in text for mark in also) else True


def pytest_collection(session):
    """Every second worker imports the test modules from the last to the first, before it collects them.

    So two workers rewrite and compile half of them each where none is in __pycache__: to do all takes as long again.
    """
    config = session.config
    worker = getattr(config, "workerinput", {}).get("workerid")
    if worker is None or int(worker[2:]) % 4 < 2 or [*config.args] != config.getini("testpaths"):
        return
    for path in sorted(ROOT.glob("tests/**/test_*.py"), reverse=True):
        if not pytest_ignore_collect(path, config):
            try:
                importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
            except (Exception, pytest.skip.Exception):
                pass  # which pytest says, or skips, when it collects the module


def pytest_collection_modifyitems(config, items):
    modules, names = {item.nodeid.partition("::")[0] for item in items}, {item.nodeid for item in items}
    if not any("::" in arg for arg in config.args):
        repeated = set().union(*REPEATED.values())
        config.unknown = {name for name in repeated - names if name.partition("::")[0] in modules}
    kept = [item for item in items if wanted(item, config)]
    config.hook.pytest_deselected(items=[item for item in items if not wanted(item, config)])
    items[:] = sorted(kept, key=lambda item: item.get_closest_marker("slow") is not None)


def pytest_collection_finish(session):
    """What was imported and collected stays to the end: to look through it for garbage again and again costs."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _no_open_figures():
    """Figures of one test are closed before the next: matplotlib warns of more than twenty, in whichever test it is."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="module")
def few_radii():
    """Those of tables of more than 5,000 rows: to enclose rows at more takes most of many tests in plain Python."""
    import numba

    from pdmp.processes import row_bounds

    with pytest.MonkeyPatch.context() as patch:
        if numba.config.DISABLE_JIT:
            patch.setattr(row_bounds, "PLANS", row_bounds.PLANS[1:])
        yield


# ---------------------------------------------------------------------------------------------------------------
# Two kinds of workers


def two_kinds(config):
    """Whether there are plain and compiled workers; asked in the process that starts them."""
    return VARIABLE not in os.environ and config.option.dist == "worksteal"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    cores = min(os.cpu_count() or 1, 4)
    return cores if not two_kinds(config) else 2 * cores if full(config) else cores + 1


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    if two_kinds(node.config) and len(node.config.option.tx) > 1:
        node.workerinput["plain"] = is_plain(node)


def is_plain(node):
    """Workers are numbered from gw0 on."""
    number = int(node.gateway.id[2:])
    return number % 2 == 1 if full(node.config) else number > 0


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return TwoKinds(config, log) if two_kinds(config) and len(config.option.tx) > 1 else None


class TwoKinds:
    """Lets the plain workers share their tests among themselves, and the compiled ones theirs (a `Scheduling`)."""

    def __init__(self, config, log):
        from xdist.scheduler import WorkStealingScheduling

        workers = len(config.option.tx)
        self.compiled, self.plain = self.kinds = [WorkStealingScheduling(config, log) for _ in range(2)]
        self.compiled.numnodes = -(-workers // 2) if full(config) else 1
        self.plain.numnodes = workers - self.compiled.numnodes
        self.session = config.pluginmanager.get_plugin("session")

    def kind(self, node):
        return self.plain if is_plain(node) else self.compiled

    @property
    def nodes(self):
        return [node for kind in self.kinds for node in kind.nodes]

    @property
    def collection_is_completed(self):
        return all(kind.collection_is_completed for kind in self.kinds)

    @property
    def tests_finished(self):
        return all(kind.tests_finished for kind in self.kinds)

    @property
    def has_pending(self):
        return any(kind.has_pending for kind in self.kinds)

    def schedule(self):
        for kind in self.kinds:
            kind.schedule()
            if not kind.collection:
                for node in kind.nodes:
                    node.shutdown()
        self.session.testscollected = len({test for kind in self.kinds for test in kind.collection or ()})

    def add_node(self, node):
        self.kind(node).add_node(node)

    def add_node_collection(self, node, collection):
        self.kind(node).add_node_collection(node, collection)

    def mark_test_complete(self, node, item_index, duration=0.0):
        self.kind(node).mark_test_complete(node, item_index, duration)

    def mark_test_pending(self, item):
        next(kind for kind in self.kinds if item in kind.collection).mark_test_pending(item)

    def remove_pending_tests_from_node(self, node, indices):
        self.kind(node).remove_pending_tests_from_node(node, indices)

    def remove_node(self, node):
        return self.kind(node).remove_node(node)
