"""Sources of published data: a path, the folder PDMP_DATA, or a download; files are verified by checksums."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import pathlib
import zipfile
import zlib
from dataclasses import dataclass, field

GZIP = b"\x1f\x8b"
BLOCK = 2**22


@dataclass(frozen=True)
class Source:
    """A published data set."""

    name: str  #: of the function that loads it
    title: str  #: and authors
    terms: str  #: the licence, shown before a download and if the files are missing
    page: str  #: from which a user gets it
    folder: str  #: of its files in PDMP_DATA
    sha256: dict[str, str]  #: of the unpacked content, by name of the file
    md5: dict[str, str] = field(default_factory=dict)  #: of whole archives, as their publisher states it, by name
    #: Addresses for downloads, each with the MD5 of the download, or None if only its content is verified. Empty if the
    #: terms do not allow a program to download the files, or are not known; the user then has to.
    urls: dict[str, str | None] = field(default_factory=dict)

    def open(self, path: str | os.PathLike | None = None) -> Files:
        """The `Files` at `path`, else in PDMP_DATA, else downloaded once if its terms allow it."""
        if path is None and os.environ.get("PDMP_DATA"):
            path = pathlib.Path(os.environ["PDMP_DATA"]) / self.folder
        if path is not None:
            path = pathlib.Path(path)
            if not path.exists():
                raise FileNotFoundError(f"there is no file {str(path)!r}. {self.how()}")
            return Files(self, path)
        if not self.urls:
            raise FileNotFoundError(f"{self.name!r} is not downloaded for you. {self.how()}")
        return Files(self, self._downloaded())

    def how(self):
        """The part of a message that says where to get it, on what terms, and where to put it."""
        expected = ", ".join([*self.md5, *self.sha256][:4])
        return (
            f"{self.title}: get it at {self.page} ({self.terms}) and give `path=`, or set PDMP_DATA to a folder with "
            f"{expected} in {self.folder}/. pdmp.data.synthetic_{self.name}() makes data of the same shape."
        )

    def _downloaded(self):
        """The folder with the files, which are downloaded if they are not there yet."""
        try:
            import pooch
        except ImportError:
            raise ImportError(
                f"{self.name!r} needs pooch for its download: pip install 'pdmp[data]'. {self.how()}"
            ) from None
        cache = pathlib.Path(pooch.os_cache("pdmp")) / self.folder
        if all((cache / name).is_file() for name in self.sha256):
            return cache
        pooch.get_logger().info("%s. Licence: %s. %s", self.title, self.terms, self.page)
        found = {}
        for url, md5 in self.urls.items():
            try:
                fetched = pooch.retrieve(url, known_hash=None if md5 is None else f"md5:{md5}", path=cache)
            except Exception as error:
                raise ConnectionError(
                    f"the download of {self.name!r} from {url} failed ({type(error).__name__}). {self.how()}"
                ) from error
            fetched = pathlib.Path(fetched).read_bytes()
            for name in self.sha256:
                content = None
                if zipfile.is_zipfile(io.BytesIO(fetched)):
                    content = find_in_zip(fetched, name)
                elif url.endswith((name, f"{name}.gz")):
                    content = unpacked(fetched, url)
                if content is not None:
                    found[name] = self.checked(name, content, url)
        for name in self.sha256:
            if name not in found:
                raise ValueError(f"{', '.join(self.urls)} had no file {name}. {self.how()}")
            (cache / name).write_bytes(found[name])
        return cache

    def checked(self, name, content, where):
        """Return `content`, or raise a `ValueError` if its SHA-256 is not that of the file `name`."""
        if name in self.sha256 and hashlib.sha256(content).hexdigest() != self.sha256[name]:
            raise ValueError(f"{where} is not the file {name} that was published: its SHA-256 is another. {self.how()}")
        return content


class Files:
    """The files of a `Source` in a folder, in a zip archive, or a single file; those ending in .gz are unpacked."""

    def __init__(self, source, path):
        self.source, self.path = source, path
        self.archive = None
        if path.is_dir():
            for name in source.md5:
                if (path / name).is_file():
                    self.archive = path / name
        elif zipfile.is_zipfile(path):
            self.archive = path
        if self.archive is not None and source.md5:
            self._check_archive()

    def _check_archive(self):
        digest = hashlib.md5(usedforsecurity=False)
        with open(self.archive, "rb") as file:
            while block := file.read(BLOCK):
                digest.update(block)
        if digest.hexdigest() not in self.source.md5.values():
            raise ValueError(
                f"{str(self.archive)!r} is not the archive that was published: its MD5 is another. {self.source.how()}"
            )

    def find(self, name):
        """The path of a file, or the name of a member of the archive; None if there is none of that name."""
        if self.path.is_dir():
            for pattern in (name, f"{name}.gz", f"*/{name}", f"*/{name}.gz"):
                found = sorted(p for p in self.path.glob(pattern) if p.is_file())
                if found:
                    return found[0]
        if self.archive is not None:
            with zipfile.ZipFile(self.archive) as archive:
                for member in archive.namelist():
                    if member == name or (member.endswith(f"/{name}") and "__MACOSX" not in member):
                        return member
        elif self.path.is_file() and (self.path.name in (name, f"{name}.gz") or len(self.source.sha256) == 1):
            return self.path
        return None

    def open(self, name):
        """A file, unpacked, open for reading bytes; nothing is verified."""
        found = self.find(name)
        if found is None:
            raise FileNotFoundError(f"there is no file {name} in {str(self.path)!r}. {self.source.how()}")
        if isinstance(found, str):
            return zipfile.ZipFile(self.archive).open(found)
        with open(found, "rb") as file:
            packed = file.read(2) == GZIP
        return gzip.open(found) if packed else open(found, "rb")

    def read(self, name):
        """The content of a file, unpacked and verified."""
        with self.open(name) as file:
            try:
                content = file.read()
            except (EOFError, OSError, zlib.error) as error:
                raise ValueError(f"{str(self.path)!r}: {name} cannot be unpacked ({error}).") from None
        return self.source.checked(name, content, f"{str(self.path)!r}")


def unpacked(content, where):
    """`content`, decompressed if it is in gzip format."""
    if content[:2] != GZIP:
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{where} cannot be unpacked ({error}).") from None


def find_in_zip(archive, name):
    """The file `name` from an archive that may hold other archives; None if it is not there."""
    with zipfile.ZipFile(io.BytesIO(archive)) as outer:
        for member in outer.namelist():
            if member.endswith(name) and "__MACOSX" not in member:
                return outer.read(member)
            if member.endswith(".zip"):
                found = find_in_zip(outer.read(member), name)
                if found is not None:
                    return found
    return None
