"""Reads the files from which NCCL fills settings that the environment leaves open."""

from __future__ import annotations

import os
import pwd
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from ncclcheck.facts.bounded_call import missing_for
from ncclcheck.facts.kept_environment import is_secret_name, without_secrets
from ncclcheck.facts.text_files import readable
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import NcclConfigFile

_LONGEST = 1023  # envVar[1024], envValue[1024] in setEnvFile, src/misc/param.cc
_MEANT = re.compile(r"\s*(export\s+)?NCCL_", re.IGNORECASE)
_LIMIT_BYTES = 1 << 20


def read_config_files(environ: Mapping[str, str], etc: Path = Path("/etc")) -> tuple[NcclConfigFile, ...]:
    """Return every file that NCCL of any version would read, with its NCCL_ settings or why there are none.

    In this order: $NCCL_CONF_FILE, which from 2.23 takes the place of the home's file even when it is missing (an
    empty value counts as unset); .nccl.conf in $HOME, the home since 2.30; .nccl.conf in the passwd entry's home, which
    counted up to 2.29; /etc/nccl.conf. (src/misc/param.cc, initEnv.) Which of them count is the version's affair.
    """
    paths = dict.fromkeys([*_user_files(environ), etc / "nccl.conf"])
    return tuple(NcclConfigFile(readable(str(path)), _read_settings(path)) for path in paths)


def _user_files(environ: Mapping[str, str]) -> Iterator[Path]:
    if named := environ.get("NCCL_CONF_FILE"):
        yield Path(named)
    if home := environ.get("HOME"):
        yield Path(home, ".nccl.conf")
    try:
        yield Path(pwd.getpwuid(os.getuid()).pw_dir, ".nccl.conf")
    except KeyError:  # a container's user need not be in the passwd database
        return


def _read_settings(path: Path) -> Fact[dict[str, str]]:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return Missing("unsupported", f"{path} is not a regular file")
        with path.open("rb") as file:
            text = file.read(_LIMIT_BYTES).decode("utf-8", "surrogateescape")
    except (OSError, ValueError) as error:
        return missing_for(error, readable(str(path)))
    return settings_in(text)


def settings_in(text: str) -> dict[str, str]:
    """Return the NCCL_ settings as setEnvFile reads them: the first of a name wins, nothing is trimmed or unquoted.

    A carriage return stays in the value, since NCCL before 2.30.3 keeps it. Names that were meant to be such, with
    blanks, `export` or small letters, are kept as they are: NCCL sets a variable of that very name, which nobody
    reads. Other variables and what looks like a secret are left out.
    """
    found: dict[str, str] = {}
    for line in text.split("\n"):
        name, equals, value = line.partition("=")
        if not equals or not _MEANT.match(name) or is_secret_name(name.strip()):
            continue
        found.setdefault(readable(name[:_LONGEST]), without_secrets(value[:_LONGEST]))
    return found
