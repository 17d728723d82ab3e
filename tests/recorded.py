"""What is kept of results in the files beside `tests/digests.py` and `tests/answers`, and how it is compared.

Of a number eight digits are kept, and six compared, so that they hold on any processor. Data moved by 1e-13 must not
move them by more than that, which recording checks: what they would move is refused, as rounding would move it too.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import os
import re
import subprocess
import sys

import numpy as np

VARIABLE = "PDMP_DIGESTS_MOVED"  #: in the environment: by how much data are moved, see `moved`
NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?%?")


def moved(data):
    """Data, moved by a little where the environment says so."""
    data = np.asarray(data, dtype=float)
    return data + float(os.environ.get(VARIABLE, "0")) * np.cos(np.arange(float(data.size))).reshape(data.shape)


def eight(value):
    """A number with eight digits."""
    return float(f"{float(value):.8g}")


def weighed(rows):
    """Each row's sum by weights that all differ, and after them where it is not finite, if it is so anywhere."""
    rows = np.asarray(rows, dtype=float)
    n = len(rows) if rows.ndim > 1 else 1
    rows = rows.reshape(n, rows.size // max(n, 1))
    weights = 1.5 + np.cos(np.arange(rows.shape[1]))
    finite = np.isfinite(rows)
    sums = [eight(v) for v in np.where(finite, rows, 0.0) @ weights / 2.5]
    kinds = np.select([np.isnan(rows), np.isposinf(rows), np.isneginf(rows)], [1.0, 2.0, 4.0], 0.0) @ weights
    return sums if finite.all() else [sums, [eight(v) for v in kinds]]


def numbers_of(text):
    """The numbers in a text, so that its words may be edited."""
    return [float(part.rstrip("%").replace(",", "")) for part in NUMBER.findall(text)]


def folded(value):
    """What is kept of a result: its numbers, and of texts that are keys, labels or choices the text itself.

    A text of several words is a sentence: its numbers are kept. A large array is kept as a weighted sum of each row.
    Data frames, records and the public attributes of other objects are kept by their names.
    """
    if value is None or isinstance(value, bool | np.bool_):
        return None if value is None else bool(value)
    if isinstance(value, str):
        return value if len(value.split()) < 4 else numbers_of(value)
    if isinstance(value, dict):
        return {str(key): folded(part) for key, part in value.items()}
    if hasattr(value, "columns") and hasattr(value, "index"):  # a data frame of pandas
        return {"index": folded(list(value.index)), **{str(k): folded(value[k].to_numpy()) for k in value.columns}}
    if hasattr(value, "index") and hasattr(value, "to_numpy"):  # a series
        return {"index": folded(list(value.index)), "values": folded(value.to_numpy())}
    if hasattr(value, "toarray"):  # a sparse matrix
        return folded(value.toarray())
    if isinstance(value, np.ndarray) and value.dtype.kind not in "fiub":
        return folded(value.tolist())
    if isinstance(value, np.ndarray):
        return [eight(v) for v in value] if value.ndim == 1 and value.size <= 12 else weighed(value)
    if isinstance(value, list | tuple | set | frozenset | range):
        return [folded(part) for part in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if isinstance(value, int | float | np.number):
        return eight(value)
    if dataclasses.is_dataclass(value):
        return {field.name: folded(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if hasattr(value, "__dict__") and vars(value):
        return {key: folded(part) for key, part in vars(value).items() if not key.startswith("_")}
    raise TypeError(f"{type(value).__name__}: give its numbers.")


def difference(kept, found, rtol=1e-6):
    """Where two figures differ first, as 'chain 1, 7: 0.25 for 0.5'; or None."""
    if isinstance(kept, dict) and isinstance(found, dict) and list(kept) == list(found):
        pairs = [(key, kept[key], found[key]) for key in kept]
    elif isinstance(kept, list) and isinstance(found, list) and len(kept) == len(found):
        pairs = [(str(i), *pair) for i, pair in enumerate(zip(kept, found, strict=True))]
    elif isinstance(kept, float | int) and isinstance(found, float | int):
        same = np.isclose(kept, found, rtol=rtol, atol=rtol / 1e3, equal_nan=True)
        return None if same else f"{found} for {kept}"
    else:
        return None if kept == found else f"{str(found)[:200]} for {str(kept)[:200]}"
    for key, first, second in pairs:
        if (inside := difference(first, second, rtol)) is not None:
            return f"{key}, {inside}" if isinstance(first, dict | list) else f"{key}: {inside}"
    return None


@functools.cache
def read(file):
    """What a file keeps: {} if there is none."""
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def write(file, kept):
    """A case a line, so that a change of one is seen as one."""
    file.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in kept.items()) + "\n}\n")


def command(module, description, cases, file_of):
    """The command of `module`: compares or records `cases`, {name: a function that gives what is kept}."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("which", nargs="*", help="parts of names")
    parser.add_argument("--record", action="store_true", help="keep what is found")
    parser.add_argument("--print", action="store_true", help="print what is found")
    args = parser.parse_args()
    made = {k: v for k, v in cases.items() if not args.which or any(part in k for part in args.which)}
    found = {name: json.loads(json.dumps(make())) for name, make in made.items()}
    if args.print:
        print(json.dumps(found))
        return 0
    kept = {file: dict(read(file)) for file in dict.fromkeys(file_of(name) for name in cases)}
    if not args.record:
        said = {name: difference(kept[file_of(name)].get(name), found[name]) for name in found}
        for name, what in said.items():
            if what is not None:
                print(f"different: {name}: {what}")
        print(f"{len(found)} cases, {sum(what is not None for what in said.values())} different")
        return int(any(what is not None for what in said.values()))
    again = subprocess.run(
        [sys.executable, "-m", module, "--print", *args.which],
        env=os.environ | {VARIABLE: "1e-13"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    again, refused = json.loads(again.stdout), 0
    for name, value in found.items():
        if (what := difference(value, again[name], 3e-7)) is not None:
            refused += 1
            print(f"not kept, as data moved by 1e-13 move it: {name}: {what}")
        else:
            kept[file_of(name)][name] = value
    for file, values in kept.items():
        write(file, {name: values[name] for name in cases if file_of(name) == file and name in values})
    return int(refused > 0)
