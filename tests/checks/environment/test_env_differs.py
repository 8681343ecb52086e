"""NC601 env-differs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.model.facts import NcclChoice, NcclConfigFile
from ncclcheck.model.snapshot import RankPlace, Snapshot
from tests.builders import (
    answer,
    cluster,
    interface,
    launch,
    with_choice,
    with_environment,
    with_facts,
    with_interfaces,
    without,
)
from tests.checks.running import finding, is_silent, run


def with_rank(snapshot: Snapshot, **differs: str | None) -> Snapshot:
    place = RankPlace(rank=9, host="node02", node_rank=1, local_rank=1, world_size=32, differs=differs)
    return replace(snapshot, ranks=(place,))


def test_the_same_settings_are_silent() -> None:
    assert is_silent("env-differs", cluster(4))


def test_another_value_is_a_warning_that_names_the_node() -> None:
    found = finding("env-differs", with_environment(cluster(4), "node03", NCCL_DEBUG="INFO"))
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    assert "NCCL_DEBUG differs: 'INFO' on node03, 'WARN' on node01, node02 and node04" in found.summary


@pytest.mark.parametrize(
    "name", ["NCCL_ALGO", "NCCL_PROTO", "NCCL_NET", "NCCL_P2P_LEVEL", "NCCL_SHM_DISABLE"]
)
def test_what_ranks_must_agree_about_is_an_error(name: str) -> None:
    broken = cluster(4)
    for number, node in enumerate(broken.nodes):
        broken = with_environment(broken, node.host, **{name: "1" if number == 2 else "0"})
    found = finding("env-differs", broken)
    assert (found.severity, found.hosts) == ("error", ("node03",))


def test_variables_that_one_node_lost_are_one_finding_with_the_likely_cause() -> None:
    broken = with_environment(cluster(4), "node03", NCCL_DEBUG=None, MASTER_PORT=None)
    found = finding("env-differs", broken)
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    assert "MASTER_PORT, NCCL_DEBUG are not set on node03, but on node01, node02 and node04" in found.summary
    assert "mpirun needs -x NAME" in found.fixes[0].text


def test_a_lost_setting_that_ranks_must_agree_about_is_an_error() -> None:
    broken = cluster(2)
    found = finding("env-differs", with_environment(broken, "node01", NCCL_ALGO="Ring"))
    assert (found.severity, found.hosts) == ("error", ("node02",))


def test_variables_that_one_node_adds_are_one_finding_on_it() -> None:
    found = finding("env-differs", with_environment(cluster(4), "node03", NCCL_ALGO="Ring", UCX_TLS="tcp"))
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert "NCCL_ALGO, UCX_TLS are set on node03 only" in found.summary


def test_another_master_is_a_warning() -> None:
    found = finding("env-differs", with_environment(cluster(4), "node03", MASTER_ADDR="10.0.0.2"))
    assert found.severity == "warning"


@pytest.mark.parametrize("name", ["RANK", "SLURM_NODEID", "OMPI_COMM_WORLD_RANK", "NCCL_HOSTID", "HOME"])
def test_what_differs_by_nature_is_no_finding(name: str) -> None:
    assert is_silent("env-differs", with_environment(cluster(4), "node03", **{name: "3"}))


def test_a_setting_in_a_config_file_of_one_node_counts() -> None:
    file = NcclConfigFile("/etc/nccl.conf", {"NCCL_ALGO": "Ring"})
    choice = NcclChoice(answer("10.0.0.3", "eth0"), (file,), True)
    found = finding("env-differs", with_facts(cluster(4), "node03", nccl=choice))
    assert found.severity == "error"
    assert "NCCL_ALGO" in found.summary


def test_names_of_interfaces_may_differ_where_each_choice_is_fine() -> None:
    fine = with_interfaces(cluster(4), "node03", interface("ens5", "10.0.0.3/24"))
    fine = with_choice(
        with_environment(fine, "node03", NCCL_SOCKET_IFNAME="ens5"), "node03", "ens5", "10.0.0.3"
    )
    assert finding("env-differs", fine).severity == "info"


def test_names_of_interfaces_that_lead_nowhere_are_a_warning() -> None:
    broken = with_environment(cluster(4), "node03", NCCL_SOCKET_IFNAME="lo")
    assert finding("env-differs", with_choice(broken, "node03", "lo", "127.0.0.1")).severity == "warning"


def test_a_rank_that_differs_from_its_node_is_named() -> None:
    found = finding("env-differs", with_rank(cluster(4), NCCL_ALGO="Ring"))
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert "'Ring' for rank 9 on node02" in found.summary


def test_ranks_have_their_own_place_and_gpus() -> None:
    assert is_silent(
        "env-differs", with_rank(cluster(4), LOCAL_RANK="1", CUDA_VISIBLE_DEVICES="1", SLURM_PROCID="9")
    )


def test_a_rank_that_came_and_sent_nothing_is_unknown() -> None:
    healthy = cluster(2)
    further = launch(1, 2, local_rank=1, local_world_size=2)
    came = replace(healthy, claims=(*healthy.claims, further), claim_hosts=(*healthy.claim_hosts, "node02"))
    assert run("env-differs", came).outcome == "unknown"


def test_what_could_not_be_read_is_unknown() -> None:
    assert run("env-differs", without(cluster(4), "node03", "environment")).outcome == "unknown"
    assert run("env-differs", without(cluster(4), "node03", "nccl")).outcome == "unknown"


def test_a_variable_of_a_config_file_is_not_lost_by_the_launcher() -> None:
    choice = NcclChoice(
        answer("10.0.0.3", "eth0"), (NcclConfigFile("/etc/nccl.conf", {"NCCL_IB_TC": "106"}),), True
    )
    broken = cluster(4)
    for host in ("node01", "node02", "node03"):
        broken = with_facts(broken, host, nccl=choice)
    found = finding("env-differs", broken)
    assert found.hosts == ("node04",)
    assert (
        "NCCL_IB_TC is not set on node04, but on node01, node02 and node03, in /etc/nccl.conf there"
        in found.summary
    )
    assert "launcher" not in found.summary
    only = finding("env-differs", with_facts(cluster(4), "node03", nccl=choice))
    assert "NCCL_IB_TC is set on node03 only, in /etc/nccl.conf there" in only.summary


def test_what_only_the_first_node_has_was_not_passed_on() -> None:
    found = finding("env-differs", with_environment(cluster(4), "node01", NCCL_IB_TC="106"))
    assert (
        "NCCL_IB_TC is set on node01 only, the first node, so the launcher may not pass on" in found.summary
    )
    other = finding("env-differs", with_environment(cluster(4), "node03", NCCL_IB_TC="106"))
    assert "launcher" not in other.summary


def test_what_a_further_rank_lacks_was_lost_by_the_launcher() -> None:
    found = finding("env-differs", with_rank(cluster(4), NCCL_DEBUG=None))
    assert (
        "not set for rank 9 on node02; the first rank there has it, so the launcher may have lost it"
        in found.summary
    )
