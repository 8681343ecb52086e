"""A home folder on a dead mount: what reads it while it is imported is imported without it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ncclcheck.facts.bounded_call import within
from ncclcheck.model.fact import Missing
from ncclcheck.timeouts import HOME_S

_NAMES = ("HOME", "XDG_CONFIG_HOME")
_NO_HOME = "/nonexistent"


def home_folder() -> str:
    """Return the home folder; nothing where HOME is unset and no passwd file knows the user, as in a container."""
    try:
        return str(Path.home())
    except RuntimeError:
        return ""


def import_beside_a_dead_home() -> str:
    """Import ClusterShell, which opens files of the home folder, with another HOME if the folder does not answer.

    Return what to say of that; nothing where the folder answers, and then nothing is imported. The environment is as
    before in the end: the job gets the HOME that it was given.
    """
    folders = [home_folder(), os.environ.get("XDG_CONFIG_HOME", "")]
    dead = next((folder for folder in folders if folder and _is_dead(folder)), "")
    if not dead:
        return ""
    before = {name: os.environ.get(name) for name in _NAMES}
    os.environ.update(dict.fromkeys(_NAMES, _NO_HOME))
    try:
        with suppress(Exception):  # whoever needs it says so
            import ClusterShell.NodeSet  # noqa: F401
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    return f"the home folder {dead} does not answer within {HOME_S:.0f} s: is it on a dead mount?"


def _is_dead(folder: str) -> bool:
    found = within(HOME_S, os.stat, folder)
    return isinstance(found, Missing) and found.missing == "timeout"
