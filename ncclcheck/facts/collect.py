"""Collects the facts of this node: all sections at once, each under the deadline, a failed one as a Missing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.facts.deadline import start
from ncclcheck.facts.environment import read_environment
from ncclcheck.facts.gpu.gpu_facts import read_gpu_facts, without_answer
from ncclcheck.facts.host.clock import read_clock
from ncclcheck.facts.host.kernel import read_kernel
from ncclcheck.facts.host.limits import read_limits
from ncclcheck.facts.nccl.nccl_choice import Inquire, read_nccl
from ncclcheck.facts.nccl.nccl_library import inquire
from ncclcheck.facts.network.interfaces import read_interfaces
from ncclcheck.facts.network.names import read_names
from ncclcheck.facts.pci.pci import read_pci
from ncclcheck.facts.rdma.rdma import read_rdma, unusable_files
from ncclcheck.facts.rdma.rdma_counters import read_rdma_counters
from ncclcheck.facts.rdma.verbs_library import find_verbs_library
from ncclcheck.facts.rdma.verbs_ports import with_active_mtu
from ncclcheck.facts.software.code import read_code
from ncclcheck.facts.software.software import read_software
from ncclcheck.facts.storage.paths import CALLED_S, WantedPath, read_paths
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import NcclChoice, NodeFacts
from ncclcheck.model.hardware import Rdma
from ncclcheck.model.launch import Launch

# A section whose parts have deadlines of their own gets this much longer, so that what it did read is kept.
_SLACK_S = 1.5
_GPUS_S = 5.0
_NAMES_S = 5.0
_VERBS_S = 4.0
_LEAST_ASK_S = 1.0
_ROOT = Path("/")


class FactsRequest(Struct, frozen=True):
    """What to collect: who we are in the job, the job's environment, the `--code` paths, and the time for it.

    `data_paths` and `shared_paths` are those of `--data` and `--shared-dir`.
    `ask_with` is how NCCL is asked: a listener's `inquire` keeps open what the library opens.
    """

    launch: Launch
    environment: Mapping[str, str]
    code_paths: tuple[str, ...] = ()
    data_paths: tuple[str, ...] = ()
    shared_paths: tuple[str, ...] = ()
    deadline_s: float = 10.0
    ask_with: Inquire = inquire


def collect(request: FactsRequest) -> NodeFacts:
    """Every section but `routes` and `master`, after at most `deadline_s`; what is not there by then is "timeout"."""
    end = time.monotonic() + request.deadline_s
    inner_s = max(request.deadline_s - _SLACK_S, request.deadline_s / 2)
    nccl = start(read_nccl, request.environment, inner_s, request.ask_with)
    gpus = start(read_gpu_facts, request.environment, min(_GPUS_S, inner_s), inner_s)
    code = start(read_code, request.code_paths, inner_s)
    names = start(read_names, min(_NAMES_S, inner_s))
    rdma = start(read_own_rdma, request.environment, min(_VERBS_S, inner_s))
    counters = start(read_rdma_counters, _ROOT)
    pci, kernel = start(read_pci, _ROOT), start(read_kernel, _ROOT)
    interfaces = start(read_interfaces)
    software = start(read_software, Missing("absent", "the library was not asked"))
    limits = start(read_limits)
    clock = start(read_clock)
    paths = start(read_paths, wanted_paths(request), min(CALLED_S, inner_s))
    environment = start(read_environment, request.environment)

    def left_s() -> float:
        return end - time.monotonic()

    choice = nccl.result(left_s())
    versions = software.result(left_s())
    if not isinstance(versions, Missing):
        versions = replace(versions, nccl=nccl_version(choice))
    gpu_facts = gpus.result(left_s())
    if isinstance(gpu_facts, Missing):
        gpu_facts = without_answer(gpu_facts)
    return NodeFacts(
        launch=request.launch,
        interfaces=interfaces.result(left_s()),
        names=names.result(left_s()),
        environment=environment.result(left_s()),
        software=versions,
        code=code.result(left_s()),
        gpus=gpu_facts.gpus,
        limits=limits.result(left_s()),
        nccl=choice,
        rdma=rdma.result(left_s()),
        pci=pci.result(left_s()),
        kernel=kernel.result(left_s()),
        gpu_driver=gpu_facts.driver,
        gpu_log=gpu_facts.log,
        gpu_work=gpu_facts.work,
        torch_gpus=gpu_facts.torch,
        clock=clock.result(left_s()),
        paths=paths.result(left_s()),
        rdma_counters=counters.result(left_s()),
    )


def wanted_paths(request: FactsRequest) -> tuple[WantedPath, ...]:
    """The paths to look at, each with its purpose."""
    return (
        *(WantedPath(path, "data") for path in request.data_paths),
        *(WantedPath(path, "code") for path in request.code_paths),
        *(WantedPath(path, "shared") for path in request.shared_paths),
    )


def read_own_rdma(environ: Mapping[str, str], deadline_s: float) -> Fact[Rdma]:
    """RDMA of this machine, with what only a running one tells.

    May we open the devices, is there a libibverbs, and which MTU do the ports use?
    """
    library = start(find_verbs_library, environ, deadline_s)
    rdma = read_rdma(_ROOT)
    if isinstance(rdma, Missing):
        return rdma
    end = time.monotonic() + deadline_s
    rdma = replace(
        rdma, unusable_files=unusable_files(rdma), verbs_library=library.result(deadline_s + _SLACK_S)
    )
    return with_active_mtu(rdma, environ, max(end - time.monotonic(), _LEAST_ASK_S))


def nccl_version(choice: Fact[NcclChoice]) -> Fact[str]:
    """The version the asked library told, or why there is none."""
    if isinstance(choice, Missing):
        return choice
    return choice.asked if isinstance(choice.asked, Missing) else choice.asked.version
