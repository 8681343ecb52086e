"""Asks the NCCL library that torch would load here what it would choose."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.facts.child import ChildResult, run_python_child
from ncclcheck.facts.nccl.nccl_child import MARK
from ncclcheck.facts.nccl.nccl_search import SONAME, Found, search_libraries
from ncclcheck.facts.nccl.nccl_words import bootstrap_line, decode_unique_id, version_text, warnings
from ncclcheck.facts.network.interfaces import interfaces_now
from ncclcheck.facts.network.routes import owner_of
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import NcclAnswer, NcclChoice
from ncclcheck.model.formats.addresses import is_address

CHILD = "ncclcheck.facts.nccl.nccl_child"


class Inquiry(Struct, frozen=True):
    """The result of asking a library.

    `net_plugin`: NCCL_NET_PLUGIN as the library has it after its config files; None where it is unset.
    """

    answer: Fact[NcclAnswer]
    net_plugin: str | None = None


def find_library(environ: Mapping[str, str], search_path: Sequence[str] | None = None) -> Fact[str]:
    """Return the path of the NCCL library torch would load; where torch has no CUDA, the first that there is.

    A preloaded one; NVIDIA's package beside torch, or anywhere on the Python path; one inside torch/lib;
    LD_LIBRARY_PATH; the system's; conda's.
    """
    return first_library(search_libraries(environ, search_path))


def first_library(found: Sequence[Found]) -> Fact[str]:
    """Return the path of the first; Missing where nothing was found."""
    where = "beside torch, in LD_LIBRARY_PATH or among the system's libraries"
    return found[0].path if found else Missing("absent", f"no {SONAME} {where}")


def ask(
    library: str, environ: Mapping[str, str], deadline_s: float = timeouts.NCCL_ASK_S
) -> Fact[NcclAnswer]:
    """Return what this library chooses under exactly this environment: the address it bound for a unique id.

    A refusal is an answer too: result code, NCCL's own words, and no address. Missing is: it could not be asked.
    """
    return inquire(library, environ, deadline_s).answer


def inquire(library: str, environ: Mapping[str, str], deadline_s: float = timeouts.NCCL_ASK_S) -> Inquiry:
    """Return the same, with what the library made of its config files."""
    return understood(
        library, run_python_child(CHILD, [library], deadline_s=deadline_s, env=talkative(environ))
    )


def understood(library: str, result: ChildResult | Missing) -> Inquiry:
    """Return what the child's output says."""
    if isinstance(result, Missing):
        return Inquiry(Missing(result.missing, f"{library}: {result.detail}"))
    log = result.stdout.decode("utf-8", "replace")
    before, _, after = log.rpartition(MARK)
    answer_line, _, later = after.partition("\n")  # NCCL's thread may still log when the child has answered
    if not answer_line or result.returncode != 0:
        text = result.stderr.decode("utf-8", "replace").strip()[-500:]
        detail = f"{library}: the child that asks it ended with {result.returncode}: {text}"
        return Inquiry(Missing("error", detail))
    words = json.loads(answer_line)
    if "missing" in words:
        return Inquiry(Missing(words["missing"], f"{library}: {words['detail']}"))
    return Inquiry(_answer(library, words, before + later), words["net_plugin"])


def library_of(nccl: Fact[NcclChoice], environ: Mapping[str, str]) -> Fact[str]:
    """Return the library that was asked, to be asked again."""
    if isinstance(nccl, Missing) or isinstance(nccl.libraries, Missing):
        return find_library(environ)
    if nccl.libraries:
        return nccl.libraries[0].path
    return nccl.asked if isinstance(nccl.asked, Missing) else nccl.asked.library


def talkative(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with NCCL's log on and on stdout, whatever the user or a config file says.

    An empty NCCL_DEBUG_FILE counts as unset, and keeps a config file from setting it: the user's log is not touched.
    """
    quiet = {"NCCL_DEBUG_LEVELS", "NCCL_DEBUG_TIMESTAMP_LEVELS", "NCCL_DEBUG_TIMESTAMP_FORMAT"}
    others = {name: value for name, value in environ.items() if name not in quiet}
    return {
        **others,
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,BOOTSTRAP,ENV",
        "NCCL_DEBUG_FILE": "",
    }


def _answer(library: str, words: dict[str, Any], log: str) -> Fact[NcclAnswer]:
    version, result = version_text(words["version"]), int(words["result"])
    line = bootstrap_line(log)
    if result != 0:
        complaints = [*([line.text] if line else []), *warnings(log)] or [words["error"]]
        return NcclAnswer(library, version, None, None, None, result, "; ".join(dict.fromkeys(complaints)))
    bound = decode_unique_id(bytes.fromhex(words["id"]))
    if isinstance(bound, Missing):
        return Missing(bound.missing, f"{library} {version}: {bound.detail}")
    if line and is_address(line.address):
        # With NCCL_COMM_ID the id repeats that address, and only the line names the local one (src/bootstrap.cc).
        return NcclAnswer(library, version, line.address, line.interface, bound.port, result, line.text)
    known = interfaces_now()
    owner = known if isinstance(known, Missing) else owner_of(bound.address, known, bound.scope_id)
    interface = None if isinstance(owner, Missing) else owner
    silence = "the library logged no line about its choice; the address is from its unique id"
    return NcclAnswer(library, version, bound.address, interface, bound.port, result, silence)
