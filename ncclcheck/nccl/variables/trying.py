"""Which settings are tried, under what backend, and what NCCL's manual says of keeping them.

NCCL's manual (docs/userguide/source/env.rst, 2.30.7) has two kinds of variables. Those of "System configuration" may
stay in scripts. All others stand under "Debugging": "should not be used in production nor retained in scripts, or only
as workaround, and removed as soon as the issue is resolved".
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck.model.formats.tables import load_table
from ncclcheck.nccl.settable import SETTABLE, shown
from ncclcheck.nccl.variables.variables import TABLE

Class: TypeAlias = Literal["system", "debugging"]


class _Manual(Struct, frozen=True, forbid_unknown_fields=True):
    system: tuple[str, ...]


_SYSTEM = frozenset(load_table("ncclcheck.nccl.variables", "manual.toml", _Manual).system)
_READ_BY_GLOO = ("GLOO_DEVICE_TRANSPORT", "GLOO_SOCKET_IFNAME", "TORCH_GLOO_LAZY_INIT")
# The benchmark needs these itself: its own log, its own way to notice a hang.
_OWN = (
    "NCCL_DEBUG",
    "NCCL_DEBUG_SUBSYS",
    "NCCL_ASYNC_ERROR_HANDLING",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "TORCH_CPP_LOG_LEVEL",
)


def not_tried(name: str) -> str:
    """Return why a setting is not tried, whatever the backend; empty where it may be."""
    if name in _OWN:
        return f"{name} is the benchmark's own while it measures"
    if name in SETTABLE:
        return ""
    if name in TABLE:
        return f"{name} is not tried: only settings that a number, a word or a list of interfaces makes, and no path"
    near = difflib.get_close_matches(name, sorted(SETTABLE), 1)
    hint = f": did you mean {near[0]}?" if near else ""
    return f"{shown(name)} is not known as a variable of NCCL, torch or Gloo{hint}"


def class_of(names: Iterable[str]) -> Class:
    """Return "debugging" where NCCL's manual does not want one of these variables to be kept."""
    of_nccl = [name for name in names if name.startswith("NCCL_")]
    return "system" if all(name in _SYSTEM for name in of_nccl) else "debugging"


def forces_ll128(arm: Mapping[str, str]) -> bool:
    """Return whether it enables LL128 itself, past NCCL's own look at the platform.

    `^` enables every protocol that it does not name, and NCCL asks the platform only where nothing enables LL128
    (parseList in src/graph/tuning.cc). Up to 2.23 the value is one list; since 2.24 each part may have a collective.
    """
    value = arm.get("NCCL_PROTO", "").upper()
    return _enables_ll128(value) or any(_enables_ll128(_list_of(part)) for part in value.split(";"))


def _list_of(part: str) -> str:
    """Return the list of a part: what stands between its first and second colon, or all of it without one."""
    words = [word for word in part.split(":") if word]
    return "".join(words[1:2] or words[:1])


def _enables_ll128(protocols: str) -> bool:
    is_named = "LL128" in protocols.removeprefix("^").split(",")
    return is_named != protocols.startswith("^")


def unread(names: Iterable[str], backend: str) -> str:
    """Return why these settings say nothing with this backend: a sentence; empty where it reads them all."""
    if backend == "gloo":
        others = [name for name in names if name not in _READ_BY_GLOO]
        known = ", ".join(name for name in _READ_BY_GLOO if name in SETTABLE)
        return (
            f"Gloo, which runs here, does not read {', '.join(others)} (of what may be tried, it reads {known})"
            if others
            else ""
        )
    others = [name for name in names if name in TABLE and TABLE[name].owner == "Gloo"]
    return f"NCCL, which runs here, does not read {', '.join(others)}" if others else ""
