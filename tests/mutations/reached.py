"""A plugin of pytest that writes which lines of the packages each test executes, and how long it took.

    pip install coverage
    pytest -p tests.mutations.reached --reached=FOLDER

Each process writes a file of its own; `read` puts them together.
"""

from __future__ import annotations

import collections
import json
import os
import pathlib
import time

import pytest

from tests.mutations.matching import PACKAGES, ROOT


def pytest_addoption(parser):
    parser.addoption("--reached", metavar="FOLDER", help="where to write which lines each test executes")


def pytest_configure(config):
    if config.option.reached:
        if config.rootpath != ROOT:  # of "--reached FOLDER" pytest takes the folder for one that has tests
            raise pytest.UsageError(f"tests are named from {config.rootpath} on: give --reached=FOLDER, with =.")
        config.pluginmanager.register(Recorder(pathlib.Path(config.option.reached)))


class Recorder:
    """What was executed by each test; what a cache was filled with by an earlier one is not seen."""

    def __init__(self, folder):
        import coverage

        inside = [str(ROOT / package) for package in PACKAGES]
        self.coverage = coverage.Coverage(data_file=None, config_file=False, source=inside)
        self.coverage.config.disable_warnings = ["module-not-imported", "no-data-collected", "module-not-measured"]
        self.folder, self.seconds = folder, {}
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        began = time.process_time()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = round(time.process_time() - began, 4)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item):
        """What a fixture executes may be kept for the other tests of the module, so that it counts for all of them."""
        self.coverage.switch_context(item.nodeid.partition("::")[0])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item):
        self.coverage.switch_context(item.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self):
        self.coverage.switch_context("")

    def pytest_sessionfinish(self):
        self.coverage.stop()
        if not self.seconds:
            return
        data, numbers, lines = self.coverage.get_data(), {"": 0}, {}
        for file in data.measured_files():
            lines[os.path.relpath(file, ROOT)] = {
                line: [numbers.setdefault(name, len(numbers)) for name in contexts]
                for line, contexts in data.contexts_by_lineno(file).items()
            }
        self.folder.mkdir(parents=True, exist_ok=True)
        written = json.dumps({"seconds": self.seconds, "names": list(numbers), "lines": lines})
        (self.folder / f"{os.getpid()}.json").write_text(written, encoding="utf-8")


class Reached:
    """Which tests execute lines of a file, with their seconds."""

    def __init__(self, folder):
        self.parts, self.seconds, self.modules = [], {}, collections.defaultdict(list)
        for path in sorted(pathlib.Path(folder).glob("*.json")):
            part = json.loads(path.read_text(encoding="utf-8"))
            self.parts.append(part)
            self.seconds |= part["seconds"]
        for test in self.seconds:
            self.modules[test.partition("::")[0]].append(test)

    def tests(self, file, lines):
        """The tests that execute one of the lines, the quickest first."""
        found = set()
        for part in self.parts:
            here = part["lines"].get(file, {})
            for number in {n for line in lines for n in here.get(str(line), ())}:
                name = part["names"][number]
                found.update([name] if "::" in name else self.modules[name])
        return sorted(found & self.seconds.keys(), key=self.seconds.get)
