"""The limits that files of an image set: limits.conf(5), and `ulimit` in what shells read at their start."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ncclcheck.facts.tree import Folder
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.image import SetLimit

ITEMS = ("memlock", "nofile", "nproc")
_CONF, _FOLDER = "etc/security/limits.conf", "etc/security/limits.d"
# What bash and sh read (bash(1), dash(1)), on Debian and on Red Hat.
_SCRIPTS = (
    "etc/profile",
    "etc/bash.bashrc",
    "etc/bashrc",
    "root/.bashrc",
    "root/.profile",
    "root/.bash_profile",
)
_PROFILES = "etc/profile.d"
_FLAGS = {"l": "memlock", "n": "nofile", "u": "nproc"}  # ulimit of POSIX shells and bash
_ULIMIT = re.compile(r"(?:^|[;&|\s])ulimit\s+((?:-[SHa-z]+\s+)*)(unlimited|hard|soft|[0-9]{1,15})", re.ASCII)
_FIELDS = 4


def read_limit_files(here: Folder) -> tuple[SetLimit, ...]:
    """Return every line that sets one of ITEMS, in the order in which the files are read."""
    conf = [_CONF, *_in(here, _FOLDER, ".conf")]
    scripts = [*_SCRIPTS, *_in(here, _PROFILES, ".sh")]
    return (
        *(limit for file in conf for limit in _of_conf(file, here.text(file))),
        *(limit for file in scripts for limit in _of_script(file, here.text(file))),
    )


def _in(here: Folder, folder: str, suffix: str) -> list[str]:
    names = here.names(folder)
    return (
        []
        if isinstance(names, Missing)
        else [f"{folder}/{name}" for name in sorted(names) if name.endswith(suffix)]
    )


def _of_conf(file: str, text: Fact[str]) -> Iterator[SetLimit]:
    for number, line in _lines(text):
        fields = line.partition("#")[0].split()
        if len(fields) == _FIELDS and fields[2] in ITEMS and fields[1] in ("soft", "hard", "-"):
            yield SetLimit(f"/{file}", number, fields[0], fields[2], fields[3])


def _of_script(file: str, text: Fact[str]) -> Iterator[SetLimit]:
    for number, line in _lines(text):
        for flags, value in _ULIMIT.findall(line.partition("#")[0]):
            items = [_FLAGS[letter] for letter in flags if letter in _FLAGS]
            if items:
                yield SetLimit(f"/{file}", number, "shells", items[0], value)


def _lines(text: Fact[str]) -> Iterator[tuple[int, str]]:
    return iter(()) if isinstance(text, Missing) else enumerate(text.splitlines(), 1)
