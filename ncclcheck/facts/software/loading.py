"""Loads libraries in children of a child, so that a broken or hostile one spoils no other; returns each result."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.facts.child import run_python_child
from ncclcheck.model.codec import decode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Fact, Missing

T = TypeVar("T")
_LIMIT_BYTES = 1 << 20


class LibraryVersion(Struct, frozen=True, forbid_unknown_fields=True):
    """What ncclGetVersion of a library answered."""

    number: int


class Plugin(Struct, frozen=True, forbid_unknown_fields=True):
    """A file that was tried as plug-in: the path the loader found; its APIs and name as network, and as tuner."""

    file: str
    path: Fact[str]
    apis: tuple[int, ...] = ()
    network: Fact[str] = Missing("absent", "not loaded")
    tuner_apis: tuple[int, ...] = ()
    tuner: Fact[str] = Missing("absent", "not loaded")


class Loaded(Struct, frozen=True, forbid_unknown_fields=True):
    """Answers in the order of the questions."""

    versions: tuple[Fact[LibraryVersion], ...] = ()
    plugins: tuple[Fact[tuple[Plugin, ...]], ...] = ()


def load(
    libraries: Sequence[str],
    plugins: Sequence[Sequence[str]],
    first_folders: Sequence[str],
    environ: Mapping[str, str],
    deadline_s: float,
) -> Loaded:
    """Return the version of each library.

    And for each group of plug-in files the results, up to the first that loads.

    Plug-in files without a slash are looked for in `first_folders`, then by the loader under `environ`. Each library
    and each group has a process of its own; all work at once, and are ended by the deadline.
    """
    if not libraries and not plugins:
        return Loaded()
    # A preloaded NCCL would answer in the place of the one that is asked.
    environment = {name: value for name, value in environ.items() if name != "LD_PRELOAD"}
    request = {
        "libraries": list(libraries),
        "plugins": [list(group) for group in plugins],
        "first_folders": list(first_folders),
        "end": time.monotonic() + deadline_s - min(timeouts.LOADING_DYING_S, deadline_s / 2),
    }
    result = run_python_child(
        "ncclcheck.facts.software.loading_child",
        [json.dumps(request)],
        deadline_s=deadline_s,
        env=environment,
    )
    if not isinstance(result, Missing):
        try:
            return decode(result.stdout, Loaded, limit_bytes=_LIMIT_BYTES)
        except DecodeError as error:
            text = result.stderr.decode("utf-8", "replace").strip()[-300:]
            result = Missing(
                "error",
                f"the child that loads libraries ended with {result.returncode} and no answer: {text or error}",
            )
    return Loaded((result,) * len(libraries), (result,) * len(plugins))
