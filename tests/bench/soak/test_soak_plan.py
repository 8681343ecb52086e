"""The plan of a soak, new or resumed."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ncclcheck.bench.soak.series_folder import FILE
from ncclcheck.bench.soak.soak_plan import USUAL_BYTES, refuse_folder, soak_plan
from ncclcheck.bench.soak.soak_record import SoakRecord
from ncclcheck.model.bench import BenchPlan
from ncclcheck.model.bench_setup import BenchNetwork
from ncclcheck.model.benchmarks.soak import SoakRequest
from ncclcheck.model.errors import UsageError
from ncclcheck.model.fact import Fact, Missing
from tests.soak_builders import HOSTS, soak_block, soak_start

PLAN = BenchPlan("gloo", ("all_gather",), (8,), "float32", 5, None, 20.0, True)
NETWORK = BenchNetwork("gloo", dict.fromkeys(HOSTS, 1), {}, {}, "a test")


def planned(request: SoakRequest, network: BenchNetwork = NETWORK) -> Fact[BenchPlan]:
    return soak_plan(request, PLAN, network)


def test_a_new_soak_has_the_usual_collective_and_size(tmp_path: Path) -> None:
    plan = planned(SoakRequest(folder=str(tmp_path)))
    assert not isinstance(plan, Missing)
    assert (plan.ops, plan.sizes_bytes) == (("all_reduce",), (USUAL_BYTES,))
    assert plan.soak is not None
    assert (plan.soak.every_s, plan.soak.drop, plan.soak.first) == (10.0, 0.05, 0)


def test_a_resumed_soak_goes_on_with_what_was_measured(tmp_path: Path) -> None:
    record = SoakRecord(str(tmp_path))
    record.begin(replace(soak_start(), size_bytes=1 << 10))
    record.add(soak_block(0))
    request = SoakRequest(folder=str(tmp_path), resumes=True)
    plan = planned(request)
    assert not isinstance(plan, Missing)
    assert plan.sizes_bytes == (1 << 10,)
    assert plan.soak is not None
    assert plan.soak.first == 1
    for other in (replace(request, size_bytes=1 << 11), replace(request, ops=("broadcast",))):
        refused = planned(other)
        assert isinstance(refused, Missing)
        assert "is of all_reduce of 1K over gloo, and this run asks for " in refused.detail
        assert "leave --size and --ops out" in refused.detail
    with_duty = replace(soak_start(), plan=replace(soak_start().plan, duty=0.3), at_s=soak_start().at_s + 20)
    record.begin(replace(with_duty, size_bytes=1 << 10))
    for duty, expected in ((None, 0.3), (0.5, 0.5)):
        again = planned(replace(request, duty=duty))
        assert not isinstance(again, Missing)
        assert again.soak is not None
        assert again.soak.duty == expected
    moved = planned(request, replace(NETWORK, ranks_of={"node01": 2, "node02": 0, "node03": 1, "node04": 1}))
    assert isinstance(moved, Missing)
    others = planned(request, replace(NETWORK, ranks_of={"node01": 2}))
    assert isinstance(others, Missing)
    assert (
        "is of 4 ranks on 4 nodes, and this run has 2 on 1, without node02, node03, node04" in others.detail
    )
    more = planned(request, replace(NETWORK, ranks_of=dict.fromkeys(HOSTS, 2)))
    assert isinstance(more, Missing)
    assert "with other ranks per node" in more.detail


def test_a_folder_with_a_series_is_not_begun_anew_and_an_empty_one_not_resumed(tmp_path: Path) -> None:
    assert isinstance(planned(SoakRequest(folder=str(tmp_path), resumes=True)), Missing)
    SoakRecord(str(tmp_path)).begin(soak_start())
    refused = planned(SoakRequest(folder=str(tmp_path)))
    assert isinstance(refused, Missing)
    assert "--resume continues it" in refused.detail


def test_a_folder_that_cannot_be_used_is_refused_before_the_nodes_meet(tmp_path: Path) -> None:
    refuse_folder(None)
    new, there = SoakRequest(folder=str(tmp_path / "new")), SoakRequest(folder=str(tmp_path))
    refuse_folder(new)
    with pytest.raises(UsageError, match=r"--resume .*No such file"):
        refuse_folder(replace(new, resumes=True))
    (tmp_path / FILE).write_bytes(b"")
    for request in (there, replace(there, resumes=True)):
        with pytest.raises(UsageError, match="no series of a soak begins there"):
            refuse_folder(request)
    (tmp_path / FILE).unlink()
    SoakRecord(str(tmp_path)).begin(soak_start())
    refuse_folder(replace(there, resumes=True))
    with pytest.raises(UsageError, match="--resume continues it"):
        refuse_folder(there)


def test_the_time_that_was_asked_for_is_not_cut() -> None:
    plan = planned(SoakRequest(duration_s=9000.0, folder="there"))
    assert not isinstance(plan, Missing)
    assert plan.soak is not None
    assert plan.soak.duration_s == 9000.0
