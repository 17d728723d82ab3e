"""Let the checkout, which pytest imports, find the machine code of the package as it is installed, and the other way.

numba names a folder in NUMBA_CACHE_DIR by where the functions' file is, and the package a file there by all that its
code is made from: the same in both places. So the folders of the checkout become links to those of the installation.
"""

import hashlib
import os
import pathlib
import sysconfig

ROOT = pathlib.Path(os.path.abspath(__file__)).parents[1]


def kept(folder):
    """Where numba keeps the code of the files of a folder."""
    return pathlib.Path(os.environ["NUMBA_CACHE_DIR"], f"{folder.name}_{hashlib.sha1(bytes(folder)).hexdigest()}")


for package in ("pdmp", "discrete"):
    for path in ROOT.glob(f"{package}/**/"):
        if path.name != "__pycache__":
            installed = kept(pathlib.Path(sysconfig.get_paths()["purelib"], path.relative_to(ROOT)))
            installed.mkdir(parents=True)
            kept(path).symlink_to(installed)
