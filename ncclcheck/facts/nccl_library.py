"""Finds the NCCL library that torch would load here, and asks it what it would choose."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ncclcheck.facts.child import ChildResult, run_child, run_python_child
from ncclcheck.facts.interfaces import read_interfaces
from ncclcheck.facts.nccl_child import MARK
from ncclcheck.facts.nccl_words import bootstrap_line, decode_unique_id, version_text, warnings
from ncclcheck.facts.routes import owner_of
from ncclcheck.facts.software import torch_folder
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import NcclAnswer

_SONAME = "libnccl.so.2"
_WHEEL = Path("nvidia", "nccl", "lib", _SONAME)
# What the system's loader tries where it has no cache (ld.so(8)), with Debian's multiarch folders.
_DEFAULT_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib")


def find_library(environ: Mapping[str, str], search_path: Sequence[str] | None = None) -> Fact[str]:
    """Path of the NCCL library torch would load, in the order in which the loader would find it.

    A preloaded one; NVIDIA's package beside torch, which torch's wheels name in their DT_RPATH (before
    LD_LIBRARY_PATH), or anywhere on the Python path; one inside torch/lib; LD_LIBRARY_PATH; the system's.
    """
    entries = [entry for entry in (sys.path if search_path is None else search_path) if entry]
    folder = torch_folder(entries)
    for path in _candidates(environ, folder, entries):
        if path.is_file():
            return str(path)
    return Missing("absent", f"no {_SONAME} beside torch, in LD_LIBRARY_PATH or among the system's libraries")


def _candidates(environ: Mapping[str, str], torch: Path | None, entries: list[str]) -> Iterator[Path]:
    folders = [entry for entry in environ.get("LD_LIBRARY_PATH", "").replace(";", ":").split(":") if entry]
    for entry in re.split(r"[:\s]+", environ.get("LD_PRELOAD", "")):  # ld.so(8): both separate
        if "nccl" in Path(entry).name:
            yield from [Path(entry)] if "/" in entry else [Path(folder, entry) for folder in folders]
    if torch is not None:
        yield torch.parent / _WHEEL
    yield from (Path(entry, _WHEEL) for entry in entries)
    if torch is not None:
        yield from sorted((torch / "lib").glob("libnccl*.so*"))
    yield from (Path(folder, _SONAME) for folder in folders)
    yield from _system()


def _system() -> Iterator[Path]:
    """What the loader's cache names, else the default folders; ctypes.util would start a compiler to find out."""
    listing = run_child(["/sbin/ldconfig", "-p"], deadline_s=2.0)
    if isinstance(listing, ChildResult) and listing.returncode == 0:
        yield from cached_libraries(listing.stdout.decode("utf-8", "replace"), os.uname().machine)
    multiarch = f"/usr/lib/{os.uname().machine}-linux-gnu"
    yield from (Path(folder, _SONAME) for folder in (multiarch, *_DEFAULT_FOLDERS))


def cached_libraries(listing: str, machine: str) -> list[Path]:
    """The NCCL libraries for this machine in the output of `ldconfig -p`."""
    architecture = {"x86_64": "x86-64", "aarch64": "AArch64"}.get(machine, machine)
    lines = re.findall(rf"^\s*{re.escape(_SONAME)} \((.*?)\) => (.+)$", listing, re.MULTILINE)
    return [Path(path) for kind, path in lines if architecture in kind]


def ask(library: str, environ: Mapping[str, str], deadline_s: float = 10.0) -> Fact[NcclAnswer]:
    """What this library chooses under exactly this environment: the address it bound for a unique id.

    A refusal is an answer too: result code, NCCL's own words, and no address. Missing is: it could not be asked.
    """
    result = run_python_child(
        "ncclcheck.facts.nccl_child", [library], deadline_s=deadline_s, env=_talkative(environ)
    )
    if isinstance(result, Missing):
        return Missing(result.missing, f"{library}: {result.detail}")
    log = result.stdout.decode("utf-8", "replace")
    log, _, said = log.rpartition(MARK)
    if not said or result.returncode != 0:
        text = result.stderr.decode("utf-8", "replace").strip()[-500:]
        return Missing("error", f"{library}: the child that asks it ended with {result.returncode}: {text}")
    words = json.loads(said)
    if "missing" in words:
        return Missing(words["missing"], f"{library}: {words['detail']}")
    return _answer(library, words, log)


def _talkative(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment with NCCL's log on and on stdout, whatever the user or a config file says.

    An empty NCCL_DEBUG_FILE counts as unset, and keeps a config file from setting it: the user's log is not touched.
    """
    quiet = {"NCCL_DEBUG_LEVELS", "NCCL_DEBUG_TIMESTAMP_LEVELS", "NCCL_DEBUG_TIMESTAMP_FORMAT"}
    kept = {name: value for name, value in environ.items() if name not in quiet}
    return {
        **kept,
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,BOOTSTRAP,ENV",
        "NCCL_DEBUG_FILE": "",
    }


def _answer(library: str, words: dict[str, Any], log: str) -> Fact[NcclAnswer]:
    version, result = version_text(words["version"]), int(words["result"])
    line = bootstrap_line(log)
    if result != 0:
        said = [*([line.text] if line else []), *warnings(log)] or [words["error"]]
        return NcclAnswer(library, version, None, None, None, result, "; ".join(dict.fromkeys(said)))
    bound = decode_unique_id(bytes.fromhex(words["id"]))
    if isinstance(bound, Missing):
        return Missing(bound.missing, f"{library} {version}: {bound.detail}")
    if line:
        # With NCCL_COMM_ID the id repeats that address, and only the line names the local one (src/bootstrap.cc).
        return NcclAnswer(library, version, line.address, line.interface, bound.port, result, line.text)
    owner = owner_of(bound.address, read_interfaces(), bound.scope_id)
    interface = None if isinstance(owner, Missing) else owner
    silence = "the library logged no line about its choice; the address is from its unique id"
    return NcclAnswer(library, version, bound.address, interface, bound.port, result, silence)
