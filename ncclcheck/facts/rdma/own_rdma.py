"""Reads RDMA of this machine: its files, and what only a running machine has."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.facts.bounded_call import start
from ncclcheck.facts.rdma.rdma import read_rdma, unusable_files
from ncclcheck.facts.rdma.verbs_library import find_verbs_library
from ncclcheck.facts.rdma.verbs_ports import with_active_mtu
from ncclcheck.facts.section import Section
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.hardware import Rdma


def read_own_rdma(environ: Mapping[str, str], deadline_s: float) -> Fact[Rdma]:
    """Return RDMA of this machine, with what only a running one has.

    May we open the devices, is there a libibverbs, and which MTU do the ports use?
    """
    library = start(find_verbs_library, environ, deadline_s)
    rdma = read_rdma(Path("/"))
    if isinstance(rdma, Missing):
        return rdma
    end = time.monotonic() + deadline_s
    rdma = replace(
        rdma,
        unusable_files=unusable_files(rdma),
        verbs_library=library.result(deadline_s + timeouts.FACTS_INNER_S),
    )
    return with_active_mtu(rdma, environ, max(end - time.monotonic(), timeouts.VERBS_LEAST_S))


RDMA = Section(
    {
        "rdma": "/sys/class/infiniband, /sys/class/infiniband_verbs, /dev/infiniband; libibverbs for `active_mtu`"
    },
    read=lambda request: read_own_rdma(request.environment, min(timeouts.VERBS_S, request.parts_s)),
    read_tree=lambda here: read_rdma(here.root),
)
