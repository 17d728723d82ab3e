"""What `test_fingerprints.py` and other test modules share."""

import importlib
import pkgutil

from pdmp.native.classes import Compiled


def compiled_classes(cls=Compiled):
    for inner in cls.__subclasses__():
        yield inner
        yield from compiled_classes(inner)


def classes_of_the_packages():
    """All compiled classes, after all modules have been imported."""
    for package in ("pdmp", "discrete"):
        module = importlib.import_module(package)
        for info in pkgutil.walk_packages(module.__path__, f"{package}."):
            if "_model" not in info.name and not info.name.endswith("__main__"):  # of libraries that may be missing
                importlib.import_module(info.name)
    classes = {cls for cls in compiled_classes() if cls.__module__.partition(".")[0] in ("pdmp", "discrete")}
    assert len(classes) > 100
    return classes
