"""What nodes see of ranks that hang decides who is at fault, where all ranks looked alike."""

from __future__ import annotations

import time
from typing import Any

import pytest
from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.bench.culprits import RankState
from ncclcheck.bench.nodes.hang_evidence import HangWatch, culprits
from ncclcheck.model.bench import HangEvidence, NodeLog, RankFailure
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.gpu import GpuLog, LoggedError
from tests.bench.nodes.benches import rank
from tests.exchange.ras_server import serving
from tests.logs.ras_answers import HEALTHY, as_json

HOSTS = ("node01", "node02", "node03", "node04")
STUCK = tuple(
    RankFailure(number, host, "stuck", "all_reduce 64M, iteration 3", "none gets on", 20.0)
    for number, host in enumerate(HOSTS)
)
UNREAD = Missing("denied", "/dev/kmsg")
WAITING: dict[str, Any] = {"phase": "measuring", "inside": True, "idle_s": timeouts.HANG_LOOK_S + 1}


def xid(number: int, pci: str = "0000:1b:00.0", seconds_ago: float = 2.0) -> LoggedError:
    return LoggedError(
        "Xid", number, pci, seconds_ago, f"NVRM: Xid (PCI:{pci[:-2]}): {number}, GPU has fallen off"
    )


def states(pci: str = "0000:1b:00.0") -> list[RankState]:
    return [replace(rank(number), gpu_pci=pci, **WAITING) for number in range(4)]


def logs(*, errors: tuple[LoggedError, ...] = (), behind: tuple[tuple[int, str], ...] = ()) -> list[NodeLog]:
    """The errors are of node03; RAS was asked on node01."""
    none = Missing("absent")
    return [
        NodeLog(
            host, none, HangEvidence("said" if host == "node01" else none, behind if host == "node01" else (),
                                     errors if host == "node03" else ()),
        )
        for host in HOSTS
    ]  # fmt: skip


def test_the_gpu_of_a_new_error_is_at_fault_and_only_that() -> None:
    (failure,) = culprits(STUCK, logs(errors=(xid(79),)), states())
    assert (failure.rank, failure.host, failure.state) == (2, "node03", "hung")
    assert "the kernel logged Xid 79 of its GPU during the benchmark" in failure.detail
    (failure,) = culprits(STUCK, logs(errors=(xid(79, seconds_ago=1.0), xid(48))), states())
    assert "Xid 48" in failure.detail  # the first one


@pytest.mark.parametrize("error", [xid(43), xid(4711), xid(79, pci="0000:99:00.0")])
def test_an_error_of_no_consequence_or_of_a_gpu_of_nobody_decides_nothing(error: LoggedError) -> None:
    assert {failure.state for failure in culprits(STUCK, logs(errors=(error,)), states())} == {"stuck"}


def test_whom_ras_calls_behind_is_at_fault_unless_that_is_half_of_them() -> None:
    (failure,) = culprits(STUCK, logs(behind=((1, "rank 1 launched 11 AllReduce"),)), states())
    assert (failure.rank, failure.state) == (1, "late")
    assert failure.detail == "by NCCL RAS, rank 1 launched 11 AllReduce"
    half = logs(behind=((1, "behind"), (2, "behind")))
    found = culprits(STUCK, half, states())
    assert len(found) == 4
    assert found[0].detail == "none gets on; said"


def test_who_was_named_already_stays_named() -> None:
    died = replace(STUCK[1], state="died")
    assert culprits((died,), logs(errors=(xid(79),)), states()) == (died,)
    hung = replace(STUCK[2], state="hung")
    (failure,) = culprits((hung,), logs(errors=(xid(79),)), states())
    assert failure.detail.startswith("none gets on; the kernel logged Xid 79 of its GPU")
    assert culprits((), logs(errors=(xid(79),)), states()) == ()


def of_log(*errors: LoggedError) -> Any:
    def read(_deadline_s: float) -> Fact[GpuLog]:
        return GpuLog("/dev/kmsg", errors)

    return read


def evidence(watch: HangWatch, until: Any) -> HangEvidence:
    """What is known once that is so."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        watch.look(states())
        found = watch.evidence(states())
        assert found is not None
        if until(found):
            return found
        time.sleep(0.01)
    raise AssertionError(f"{watch.evidence(states())}")


def test_ras_is_asked_while_the_ranks_live_and_who_is_behind_is_known() -> None:
    counts = {0: 12, 1: 12, 2: 11, 3: 12}
    with serving([HEALTHY], [as_json(counts)]) as server:
        watch = HangWatch(asks_ras=True, read_log=of_log())
        watch.port = server.port
        assert watch.environment() == {"NCCL_RAS_ADDR": f"127.0.0.1:{server.port}"}
        watch.look([rank(0, phase="measuring", inside=True)])  # not for long yet
        assert server.commands == []
        found = evidence(watch, lambda seen: seen.behind)
    assert [number for number, _ in found.behind] == [2]
    assert server.commands.count("VERBOSE STATUS") == 1  # once for one hang
    assert isinstance(found.ras, str)


def test_without_ras_nothing_is_known_of_it_and_only_new_errors_count() -> None:
    watch = HangWatch(asks_ras=True, read_log=of_log(xid(79, seconds_ago=0.0), xid(48, seconds_ago=9e5)))
    found = evidence(watch, lambda seen: "not asked" not in str(seen.ras))
    assert isinstance(found.ras, Missing)
    assert "no NCCL RAS at 127.0.0.1" in found.ras.detail
    assert not isinstance(found.gpu_errors, Missing)
    assert [error.number for error in found.gpu_errors] == [79]


def test_ranks_that_are_done_leave_no_evidence_and_a_log_that_may_not_be_read_is_missing() -> None:
    watch = HangWatch(asks_ras=False, read_log=lambda _: UNREAD)
    assert watch.environment() == {}
    assert watch.evidence([rank(0), rank(1)]) is None
    found = watch.evidence(states())
    assert found is not None
    assert found.gpu_errors == UNREAD
