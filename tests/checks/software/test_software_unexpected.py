"""NC510 software-unexpected."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from tests.builders import with_facts, with_software, without
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE, some
from tests.hardware_builders import rdma_cluster
from tests.policies import with_policy


def test_another_version_is_an_error_on_its_hosts_with_the_line_of_the_policy() -> None:
    snapshot = with_policy(rdma_cluster(3), '[versions]\n\ntorch = ">=2.9,<3"\n')
    snapshot = with_software(with_software(snapshot, "node02", torch="2.8.0"), "node03", torch="2.8.0")
    found = finding("software-unexpected", snapshot)
    assert (found.severity, found.hosts) == ("error", ("node02", "node03"))
    assert "torch on node02 and node03 is 2.8.0, but the policy requires >=2.9,<3" in found.summary
    (piece,) = found.evidence
    assert (piece.observed, piece.expected) == ("2.8.0", ">=2.9,<3")
    assert piece.source == "torch/version.py; site.toml, line 3"


@pytest.mark.parametrize("key", ["torch", "cuda", "nccl", "python", "ncclcheck"])
def test_every_version_is_judged(key: str) -> None:
    found = finding("software-unexpected", with_policy(rdma_cluster(2), f'[versions]\n{key} = "9.9.9"\n'))
    assert found.hosts == ("node01", "node02")


def test_a_version_that_is_not_there_is_no_version() -> None:
    snapshot = with_policy(rdma_cluster(2), '[versions]\ncuda = "12.8"\n')
    snapshot = with_software(snapshot, "node02", torch_cuda=Missing("absent", "built without it"))
    assert finding("software-unexpected", snapshot).evidence[0].observed == "none (built without it)"


def test_a_version_that_could_not_be_read_is_not_known() -> None:
    snapshot = with_policy(rdma_cluster(2), '[versions]\nnccl = "2.27.5"\n')
    for broken in (
        with_software(snapshot, "node02", nccl=GONE),
        with_software(snapshot, "node02", nccl=Missing("absent", "not read in this run")),
        without(snapshot, "node02", "software"),
    ):
        result = run("software-unexpected", broken)
        assert result.outcome == "unknown"
        assert "node02" in result.reason
        assert "versions.nccl (site.toml, line 2)" in result.reason


def test_a_profile_of_some_hosts_is_judged_there_only() -> None:
    text = '[versions]\ntorch = "2.9.0"\n[profile.new]\nhosts = "node02"\n[profile.new.versions]\ntorch = "2.10"\n'
    snapshot = with_policy(rdma_cluster(2), text)
    assert finding("software-unexpected", snapshot).hosts == ("node02",)
    assert is_silent("software-unexpected", with_software(snapshot, "node02", torch="2.10.0"))


def test_where_it_is_not_known_which_profile_holds_it_is_not_known() -> None:
    text = '[versions]\ntorch = "2.9.0"\n[profile.h]\ngpu_model = "*H200*"\n[profile.h.versions]\ntorch = "2.10"\n'
    snapshot = with_policy(rdma_cluster(2), text)
    gpus = tuple(replace(gpu, name=GONE) for gpu in some(snapshot.nodes[1].facts.gpus))
    result = run("software-unexpected", with_facts(snapshot, "node02", gpus=gpus))
    assert result.outcome == "unknown"
    assert "whether the profile h (site.toml, line 3) holds" in result.reason
