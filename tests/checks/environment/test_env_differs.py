"""NC601 env-differs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.launch.launcher import Launcher
from ncclcheck.launch.launcher_registry import all_launchers
from ncclcheck.model.facts import NcclChoice, NcclConfigFile
from ncclcheck.model.snapshot import RankPlace, Snapshot
from tests.builders import cluster, with_choice, with_environment, with_facts, with_interfaces, without
from tests.checks.environment.clusters import with_rdma
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import answer, interface, launch


def with_rank(snapshot: Snapshot, **differs: str | None) -> Snapshot:
    place = RankPlace(rank=9, host="node02", node_rank=1, local_rank=1, world_size=32, differs=differs)
    return replace(snapshot, ranks=(place,))


def test_the_same_settings_are_silent() -> None:
    assert is_silent("env-differs", cluster(4))


@pytest.mark.parametrize("launcher", all_launchers(), ids=lambda launcher: launcher.name)
def test_the_variables_of_a_launcher_may_differ_between_nodes_and_ranks(launcher: Launcher) -> None:
    names = [pattern.replace("*", "SIZE") for pattern in launcher.variables]
    snapshot = cluster(4)
    for number, node in enumerate(snapshot.nodes):
        snapshot = with_environment(snapshot, node.host, **dict.fromkeys(names, str(number)))
    assert is_silent("env-differs", with_rank(snapshot, **dict.fromkeys(names, "9")))


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


def on_two(first: dict[str, str | None], second: dict[str, str | None]) -> Snapshot:
    """Two nodes with these variables besides their own."""
    return with_environment(with_environment(cluster(2), "node01", **first), "node02", **second)


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("NCCL_IB_DISABLE", "0", "false"),
        ("NCCL_IB_DISABLE", "0", "00"),
        ("NCCL_BUFFSIZE", "4194304", "0x400000"),
    ],
)
def test_values_that_nccl_reads_alike_are_for_information(name: str, first: str, second: str) -> None:
    found = finding("env-differs", on_two({name: first}, {name: second}))
    assert found.severity == "info"
    assert "NCCL reads the same from both" in found.summary
    assert finding("env-differs", on_two({name: first}, {name: "1"})).severity == "error"


def test_a_lost_setting_that_says_the_default_is_no_error() -> None:
    found = finding("env-differs", on_two({"NCCL_IB_DISABLE": "0"}, {}))
    assert found.severity == "warning"
    assert "no difference with these values" in found.summary
    assert finding("env-differs", on_two({"NCCL_IB_DISABLE": "1"}, {})).severity == "error"


def test_gloo_waits_where_nodes_name_different_numbers_of_interfaces() -> None:
    two = on_two({"GLOO_SOCKET_IFNAME": "eth0,eth1"}, {"GLOO_SOCKET_IFNAME": "eth0"})
    for number, host in enumerate(("node01", "node02"), 1):
        two = with_interfaces(
            two, host, interface("eth0", f"10.0.0.{number}/24"), interface("eth1", f"10.1.0.{number}/24")
        )
    found = finding("env-differs", two)
    assert found.severity == "error"
    assert "wait for those with fewer" in found.summary


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("CUDA_VISIBLE_DEVICES", "0,1", "2,3"),
        ("CUDA_VISIBLE_DEVICES", "GPU-1", "GPU-2"),
        ("MASTER_ADDR", "localhost", "10.0.0.1"),  # Kubeflow's master
        ("CUDA_MPS_PIPE_DIRECTORY", "/tmp/mps-1", "/tmp/mps-2"),
        ("NCCL_TIMEOUT", "1", "2"),  # nobody reads it
        ("nccl_debug", "1", "2"),
    ],
)
def test_what_schedulers_set_for_each_node_is_silent(name: str, first: str, second: str) -> None:
    assert is_silent("env-differs", on_two({name: first}, {name: second}))


def test_other_numbers_of_gpus_are_told() -> None:
    two = on_two({"CUDA_VISIBLE_DEVICES": "0,1"}, {"CUDA_VISIBLE_DEVICES": "0"})
    assert finding("env-differs", two).severity == "warning"


def test_lists_of_devices_may_differ_where_every_node_has_its_own() -> None:
    own = on_two({"NCCL_IB_HCA": "=mlx5_0"}, {"NCCL_IB_HCA": "=mlx5_1"})
    assert finding("env-differs", with_rdma(own, "mlx5_0", "mlx5_1")).severity == "info"
    assert finding("env-differs", with_rdma(own, "mlx5_0")).severity == "warning"
    assert (
        finding("env-differs", with_rdma(on_two({"NCCL_IB_HCA": "=mlx5_0"}, {}), "mlx5_0")).severity
        == "warning"
    )
