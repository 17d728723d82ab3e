"""NPY and NPZ files: their sizes are compared with the file before anything is allocated, and nothing is unpickled."""

from __future__ import annotations

import contextlib
import math
import os
import zipfile

import numpy as np
from numpy.lib import format as npy

from pdmp.data.memory import check_size
from pdmp.errors import silenced


class Damaged(ValueError):
    """A file that cannot be read as it was written."""


class Pickled(ValueError):
    """The file holds an array of Python objects, which are never loaded."""


def read_npz(path: str | os.PathLike) -> dict[str, np.ndarray | None]:
    """The arrays of an NPZ file by name; None for a member that is no array.

    `Pickled` for an array of Python objects, a `ValueError` for a damaged file, or one larger than the memory.
    """
    found = {}
    with open(path, "rb") as raw:
        with _refusing(path):
            archive = zipfile.ZipFile(raw)
        with archive:
            members = archive.infolist()
            check_size(f"{file_name(path)} unpacks to arrays that", sum(member.file_size for member in members))
            for member in members:
                with _refusing(path):
                    with archive.open(member) as file:
                        is_array = _check_header(file, member.file_size)
                    with archive.open(member) as file:  # anew: going back within a file would skip its checksum
                        array = npy.read_array(file, allow_pickle=False) if is_array else None
                found[member.filename.removesuffix(".npy")] = array
    return found


def read_npy(path: str | os.PathLike, mmap: bool = False) -> np.ndarray:
    """The array of an NPY file, or with `mmap` a read-only map of it; errors as of `read_npz`."""
    size = os.stat(path).st_size
    if not mmap:
        check_size(file_name(path), size)
    with open(path, "rb") as file, _refusing(path):
        if not _check_header(file, size):
            raise ValueError
        file.seek(0)
        return np.load(path, mmap_mode="r") if mmap else npy.read_array(file, allow_pickle=False)


def file_name(path: str | os.PathLike) -> str:
    """What messages call a file: a `pathlib.Path` by its last part, as it was given otherwise."""
    return str(getattr(path, "name", "")) or repr(os.fspath(path))


@contextlib.contextmanager
def _refusing(path):
    """Whatever numpy and zipfile raise is one line: which it is depends on the byte that was changed."""
    try:
        with silenced():
            yield
    except MemoryError:
        raise
    except Pickled:
        raise Pickled(
            f"{file_name(path)} holds Python objects, which are never loaded; save numbers or text."
        ) from None
    except Exception as error:  # noqa: BLE001 - among them errors of struct, tokenize, zlib, and of the encoding
        raise Damaged(f"{file_name(path)} is damaged ({type(error).__name__}).") from None


def _check_header(file, size):
    """Whether an open file of `size` bytes is an array; an error if it is not as long as its header says."""
    start = file.read(npy.MAGIC_LEN)
    if not start.startswith(npy.MAGIC_PREFIX):
        return False
    read = npy.read_array_header_1_0 if start[-2] == 1 else npy.read_array_header_2_0
    shape, _, dtype = read(file)
    if dtype.hasobject:
        raise Pickled
    if any(n < 0 for n in shape) or math.prod(shape) * dtype.itemsize > size - file.tell():
        raise EOFError
    return True
