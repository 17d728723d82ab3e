"""A plugin of pytest that writes which functions of the packages each test calls, and how long it took.

    pytest -p tests.mutations.reached --reached FOLDER

Each process writes a file of its own; `read` puts them together.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import threading
import time

import pytest

from tests.mutations.matching import PACKAGES, ROOT

INSIDE = tuple(f"{ROOT / package}{os.sep}" for package in PACKAGES)


def pytest_addoption(parser):
    parser.addoption("--reached", metavar="FOLDER", help="where to write which functions each test calls")


def pytest_configure(config):
    if config.option.reached:
        config.pluginmanager.register(Recorder(pathlib.Path(config.option.reached)))


class Recorder:
    """What was called by each test; what its module or a cache of it has called before is not seen."""

    def __init__(self, folder):
        self.folder, self.tests, self.codes = folder, {}, set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        self.codes, began = set(), time.process_time()
        threading.settrace(self.called)
        sys.settrace(self.called)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            places = sorted(
                f"{os.path.relpath(code.co_filename, ROOT)}:{code.co_firstlineno}"
                for code in self.codes
                if code.co_filename.startswith(INSIDE)
            )
            self.tests[item.nodeid] = [round(time.process_time() - began, 4), places]

    def called(self, frame, event, argument):
        self.codes.add(frame.f_code)

    def pytest_sessionfinish(self):
        if self.tests:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / f"{os.getpid()}.json").write_text(json.dumps(self.tests), encoding="utf-8")


def read(folder):
    """{test: (seconds, {file:line of a function})}."""
    found = {}
    for path in pathlib.Path(folder).glob("*.json"):
        for test, (seconds, places) in json.loads(path.read_text(encoding="utf-8")).items():
            found[test] = seconds, frozenset(places)
    return found
