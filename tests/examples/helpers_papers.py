"""What `test_papers.py` and other test modules share."""

import importlib.util
import pathlib

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "papers"


def load(path, monkeypatch):
    """The script as a module; its folder is where it imports from, as when it runs by itself."""
    monkeypatch.syspath_prepend(str(path.parent))
    spec = importlib.util.spec_from_file_location(f"paper_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
