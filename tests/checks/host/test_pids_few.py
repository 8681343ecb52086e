"""NC705 pids-few."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, with_facts
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE, limits, some


def pids(left: Any, nproc: Any = 1 << 18, **changes: Any) -> Snapshot:
    group = replace(some(limits().cgroup), pids_max=4096 if left is not None else None, pids_left=left)
    return with_facts(cluster(2), "node02", limits=limits(cgroup=group, nproc=nproc, **changes))


def test_too_few_left_in_the_group() -> None:
    found = finding("pids-few", pids(300))
    assert (found.severity, found.hosts) == ("warning", ("node02",))
    assert "has 300 of 4096 processes and threads left, while 8 ranks may need 800" in found.summary
    assert is_silent("pids-few", pids(4000))
    assert is_silent("pids-few", pids(None))


def test_the_users_limit_binds_only_whom_the_kernel_binds() -> None:
    found = finding("pids-few", pids(None, 512))
    assert "limited to 512 together" in found.summary
    assert is_silent("pids-few", pids(None, 512, capabilities=("sys_resource",)))
    assert is_silent("pids-few", pids(None, None))


@pytest.mark.parametrize("damaged", [pids(GONE), pids(None, GONE)])
def test_what_could_not_be_read_is_not_passed(damaged: Snapshot) -> None:
    result = run("pids-few", damaged)
    assert (result.outcome, "node02" in result.reason) == ("unknown", True)
