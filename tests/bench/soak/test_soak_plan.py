"""The plan of a soak, new or resumed."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from ncclcheck.bench.soak.soak_plan import USUAL_BYTES, soak_plan
from ncclcheck.bench.soak.soak_record import SoakRecord
from ncclcheck.model.bench import BenchPlan
from ncclcheck.model.bench_setup import BenchNetwork
from ncclcheck.model.benchmarks.soak import SoakRequest
from ncclcheck.model.fact import Fact, Missing
from tests.soak_builders import HOSTS, soak_block, soak_start

PLAN = BenchPlan("gloo", ("all_gather",), (8,), "float32", 5, None, 20.0, True)
NETWORK = BenchNetwork("gloo", dict.fromkeys(HOSTS, 1), {}, {}, "a test")


def planned(request: SoakRequest, network: BenchNetwork = NETWORK) -> Fact[BenchPlan]:
    return soak_plan(request, PLAN, network, 7200.0)


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
        assert "is of all_reduce of 1K over gloo" in refused.detail
    others = planned(request, replace(NETWORK, ranks_of={"node01": 2}))
    assert isinstance(others, Missing)
    assert "other nodes" in others.detail


def test_a_folder_with_a_series_is_not_begun_anew_and_an_empty_one_not_resumed(tmp_path: Path) -> None:
    assert isinstance(planned(SoakRequest(folder=str(tmp_path), resumes=True)), Missing)
    SoakRecord(str(tmp_path)).begin(soak_start())
    refused = planned(SoakRequest(folder=str(tmp_path)))
    assert isinstance(refused, Missing)
    assert "--resume continues it" in refused.detail
