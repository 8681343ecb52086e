"""Lists the installed Python packages by the names of their metadata folders, which is quick."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from ncclcheck.facts.text_files import readable

_METADATA_FOLDER = re.compile(r"(?P<name>.+?)(-(?P<version>[^-]+))?(-py[\d.]+)?\.(dist|egg)-info")


class Package(Struct, frozen=True):
    """One installed package and where its metadata lies."""

    name: str
    version: str
    metadata: Path


def installed(search_path: Sequence[str]) -> dict[str, Package]:
    """Return the package by normalised name (PEP 503); the first folder that has a name wins, as for an import.

    Only folder names are read: NAME-VERSION.dist-info (PEP 427), and NAME-VERSION-pyX.Y.egg-info of old.
    Opening each METADATA, as importlib.metadata does, costs a second in a large environment.
    """
    found: dict[str, Package] = {}
    for folder in dict.fromkeys(search_path):
        for entry in _names_in(folder):
            match = _METADATA_FOLDER.fullmatch(entry)
            if match is None:
                continue
            name = re.sub(r"[-_.]+", "-", match["name"]).lower()
            place = Path(folder, entry)
            found.setdefault(name, Package(name, match["version"] or _written_version(place), place))
    return found


def metadata_lines(package: Package) -> list[str]:
    """Return the header lines of the package's metadata; none when it cannot be read."""
    for name in ("METADATA", "PKG-INFO", ""):
        try:
            text = (package.metadata / name).read_text("utf-8", "replace")
        except OSError:
            continue
        return text.partition("\n\n")[0].splitlines()
    return []


def _names_in(folder: str) -> list[str]:
    try:
        return sorted(readable(entry.name) for entry in Path(folder).iterdir())
    except OSError:  # the path may name zip files and folders that do not exist
        return []


def _written_version(place: Path) -> str:
    for line in metadata_lines(Package("", "", place)):
        if line.startswith("Version:"):
            return line.removeprefix("Version:").strip()
    return "unknown"
