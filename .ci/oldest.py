"""Print the oldest versions that pyproject.toml allows, as constraints for pip."""

import pathlib
import re
import tomllib

project = tomllib.loads((pathlib.Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
wanted = [
    *project["dependencies"],
    *(text for name in ("test", "dask", "formula") for text in project["optional-dependencies"][name]),
]
for text in wanted:
    if match := re.fullmatch(r"([\w.-]+)>=([\d.]+)", text):
        print(f"{match[1]}=={match[2]}")
