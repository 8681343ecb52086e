"""Collects the facts of this node: all sections at once, each under the deadline, a failed one as a Missing."""

from __future__ import annotations

import time
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.facts.code import read_code
from ncclcheck.facts.deadline import start
from ncclcheck.facts.environment import read_environment
from ncclcheck.facts.gpus import read_gpus
from ncclcheck.facts.interfaces import read_interfaces
from ncclcheck.facts.limits import read_limits
from ncclcheck.facts.names import read_names
from ncclcheck.facts.nccl_config import read_config_files
from ncclcheck.facts.nccl_library import ask, find_library
from ncclcheck.facts.software import read_software
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import NcclChoice, NodeFacts
from ncclcheck.model.launch import Launch

# A section whose parts have deadlines of their own gets this much longer, so that what it did read is kept.
_SLACK_S = 1.5
_GPUS_S = 5.0
_NAMES_S = 5.0


class FactsRequest(Struct, frozen=True):
    """What to collect: who we are in the job, the job's environment, the `--code` paths, and the time for it."""

    launch: Launch
    environment: Mapping[str, str]
    code_paths: tuple[str, ...] = ()
    deadline_s: float = 10.0


def collect(request: FactsRequest) -> NodeFacts:
    """Every section but `routes` and `master`, after at most `deadline_s`; what is not there by then is "timeout"."""
    end = time.monotonic() + request.deadline_s
    inner_s = max(request.deadline_s - _SLACK_S, request.deadline_s / 2)
    nccl = start(read_nccl, request.environment, inner_s)
    gpus = start(read_gpus, request.environment, min(_GPUS_S, inner_s))
    code = start(read_code, request.code_paths, inner_s)
    names = start(read_names, min(_NAMES_S, inner_s))
    interfaces = start(read_interfaces)
    software = start(read_software, Missing("absent", "the library was not asked"))
    limits = start(read_limits)
    environment = start(read_environment, request.environment)

    def left_s() -> float:
        return end - time.monotonic()

    choice = nccl.result(left_s())
    versions = software.result(left_s())
    if not isinstance(versions, Missing):
        versions = replace(versions, nccl=nccl_version(choice))
    return NodeFacts(
        launch=request.launch,
        interfaces=interfaces.result(left_s()),
        names=names.result(left_s()),
        environment=environment.result(left_s()),
        software=versions,
        code=code.result(left_s()),
        gpus=gpus.result(left_s()),
        limits=limits.result(left_s()),
        nccl=choice,
    )


def read_nccl(environ: Mapping[str, str], deadline_s: float) -> NcclChoice:
    """What the library torch would load chooses under `environ`, and the files it takes further settings from."""
    library = find_library(environ)
    return NcclChoice(
        asked=library if isinstance(library, Missing) else ask(library, environ, deadline_s),
        config_files=read_config_files(environ),
        home_set="HOME" in environ,
    )


def nccl_version(choice: Fact[NcclChoice]) -> Fact[str]:
    """The version the asked library told, or why there is none."""
    if isinstance(choice, Missing):
        return choice
    return choice.asked if isinstance(choice.asked, Missing) else choice.asked.version
