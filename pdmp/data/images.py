"""Images for neural networks: MNIST."""

from __future__ import annotations

import math
import os

import numpy as np
from numpy.typing import DTypeLike

from pdmp.data.dataset import Dataset
from pdmp.data.sources import Source

IMAGES, LABELS = 2051, 2049  #: magic numbers: unsigned bytes in three dimensions, in one
ADDRESS = "https://ossci-datasets.s3.amazonaws.com/mnist"
MNIST = Source(
    name="mnist",
    title="MNIST, Y. LeCun, C. Cortes and C. J. C. Burges",
    terms="CC BY-SA 3.0",
    page=f"{ADDRESS} (or http://yann.lecun.com/exdb/mnist)",
    folder="mnist",
    sha256={
        "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    },
    urls={
        f"{ADDRESS}/train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        f"{ADDRESS}/train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
        f"{ADDRESS}/t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
        f"{ADDRESS}/t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    },
)


def mnist(path: str | os.PathLike | None = None, dtype: DTypeLike = np.float32) -> Dataset:
    """MNIST: 60,000 handwritten digits to train and 10,000 to test, 28 by 28 pixels each.

    Parameters
    ----------
    path : path, optional
        A folder with the four files, packed or not. By default ``mnist/`` in the folder named by the environment
        variable PDMP_DATA; if that is not set, they are downloaded once (11 MB), with pooch. Their SHA-256 is
        verified.
    dtype : {numpy.float32, numpy.float64}
        Type of the pixels.

    Returns
    -------
    Dataset
        `X` of shape (70000, 784), the pixels of an image row by row, from 0 to 1; `y` the digits. Both parts are views.

    Raises
    ------
    ValueError
        For another type, or a file that is not the published one.
    FileNotFoundError, ConnectionError, ImportError
        If the files are not there, or cannot be downloaded.

    Examples
    --------
    >>> import pdmp
    >>> table = pdmp.data.mnist()  # doctest: +SKIP
    """
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"`dtype` must be float32 or float64, got {dtype}.")
    files = MNIST.open(path)
    images = [idx(files.read(f"{part}-images-idx3-ubyte"), IMAGES, f"{part}-images") for part in ("train", "t10k")]
    labels = [idx(files.read(f"{part}-labels-idx1-ubyte"), LABELS, f"{part}-labels") for part in ("train", "t10k")]
    n_train, size = len(images[0]), images[0][0].size
    X = np.empty((n_train + len(images[1]), size), dtype)
    for part, rows in zip(images, (slice(0, n_train), slice(n_train, None)), strict=True):
        np.divide(part.reshape(len(part), -1), 255, out=X[rows], casting="same_kind")
    y = np.concatenate(labels).astype(float)
    names = [f"pixel_{k // 28}_{k % 28}" for k in range(size)]
    return Dataset(
        "mnist", X, y, tuple(names), tuple(range(10)), slice(0, n_train), slice(n_train, None), about=mnist.about
    )


mnist.about = "MNIST, handwritten digits (CC BY-SA 3.0; PDMP_DATA or download)"


def idx(content, magic, name):
    """The array in a file of unsigned bytes of the idx format.

    The format, big-endian: two bytes 0, the type (8: unsigned byte), the number of dimensions, the length of each as
    four bytes, the values.
    """
    if len(content) < 4 or int.from_bytes(content[:4], "big") != magic:
        raise ValueError(f"{name} is not an idx file of unsigned bytes in {magic - 2048} dimensions.")
    start = 4 + 4 * content[3]
    shape = tuple(int.from_bytes(content[k : k + 4], "big") for k in range(4, start, 4))
    if len(content) != start + math.prod(shape):
        raise ValueError(f"{name} should have {math.prod(shape)} values, and has {len(content) - start}.")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)
