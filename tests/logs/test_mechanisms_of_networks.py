"""What the lines of a log tell together about networks, limits and where the peers were looked for."""

from __future__ import annotations

import pytest

from tests.logs.rounds import explain

FAILED = "RuntimeError: NCCL error in: x.cpp:1, unhandled system error, NCCL version 2.21.5\n"
NO_ANSWER = (
    "b1:5:6 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.4.0.9<40000> failed : {}\n"
)
USES = "b1:5:6 [0] NCCL INFO Bootstrap : Using eth2:10.4.0.1<0>\n"


def first(log: str) -> tuple[str, tuple[str, ...]]:
    found = explain("job.log", log.encode())
    return (found.findings[0].slug if found.outcome == "named" else found.outcome), (
        found.findings[0].hosts if found.findings else ()
    )


@pytest.mark.parametrize(
    "line", ["worker 3 was shut down with signal 7", "rank 2 (exitcode: -7) of binary", "exit code 135"]
)
def test_a_bus_error_by_its_number_is_shared_memory(line: str) -> None:
    assert first(f"loading the model\n{line}\nError: the worker did not start\n")[0] == "shm-too-small"


@pytest.mark.parametrize(
    "line",
    [
        "b1:5:6 [0] NCCL INFO NET/Socket : 0 interfaces found",
        "include/socket.h:400 WARN Socket creation failed : Address family not supported by protocol",
    ],
)
def test_no_interface_at_all_is_the_containers_network(line: str) -> None:
    assert first(f"{line}\n{FAILED}")[0] == "container-network"


def test_processes_of_one_node_with_different_adapters() -> None:
    def chosen(process: int, device: str) -> str:
        return f"b1:{process}:{process} [0] NCCL INFO NCCL_IB_HCA set by environment to {device}\n"

    assert first(chosen(1, "mlx5_4") + chosen(2, "mlx5_6") + FAILED) == ("ib-hca-selection", ("b1",))
    assert first(chosen(1, "mlx5_4") + chosen(2, "mlx5_4") + FAILED)[0] == "undetermined"


def test_ports_that_ibstatus_lists_as_down() -> None:
    down = "Infiniband device 'mlx5_{}' port 1 status:\n\tstate:\t\t 1: DOWN\n\tphys state:\t 2: Polling\n"
    assert first(down.format(7) + down.format(8) + FAILED)[0] == "ib-link-or-fabric"
    assert (
        first(down.replace("1: DOWN", "4: ACTIVE").replace("2: Polling", "5: LinkUp") + FAILED)[0]
        == "undetermined"
    )


def test_an_established_connection_that_times_out_was_dropped() -> None:
    assert first("rank 1: read update\nerror: recv: connection timed out\n")[0] == "idle-connection-dropped"


def test_a_worker_of_ray_that_looks_for_the_head_at_home() -> None:
    asks = "gcs_rpc_client.h:9: Failed to connect to GCS at address {}:6379 within 5 seconds.\n"
    assert first(asks.format("localhost"))[0] == "master-addr-wrong"
    assert first(asks.format("10.4.0.9"))[0] == "firewall-blocked-ports"


def test_a_coordinator_at_another_port_is_of_an_earlier_attempt() -> None:
    refused = "last error: UNKNOWN: ipv4:10.4.0.9:{}: Failed to connect to remote host: Connection refused\n"
    starts = "I 0101 distributed.py:1] starting the coordinator service at 10.4.0.9:41000\n"
    assert first(starts + refused.format(39999)) == ("master-addr-wrong", ("10.4.0.9",))
    assert first(starts + refused.format(41000))[0] != "master-addr-wrong"


def test_two_interfaces_of_one_subnet_in_a_listing() -> None:
    listing = "    inet 10.4.0.{}/22 brd 10.4.3.255 scope global {}\n"
    failed = NO_ANSWER.format("Connection timed out")
    assert first(listing.format(1, "eth2") + listing.format(2, "eth3") + failed)[0] == "routing-asymmetric"
    assert first(listing.format(1, "eth2") + failed)[0] == "firewall-blocked-ports"


def test_a_way_to_the_peer_by_another_interface() -> None:
    failed = NO_ANSWER.format("Connection timed out")
    route = "10.4.0.9 dev {} src 10.4.0.{} uid 0\n"
    assert first(USES + failed + route.format("eth5", 77))[0] == "routing-asymmetric"
    assert first(USES + failed + route.format("eth2", 1))[0] == "firewall-blocked-ports"


def test_a_plug_in_that_only_one_node_has() -> None:
    networks = (
        "a1:5:6 [0] NCCL INFO Using network {}\nb1:5:6 [0] NCCL INFO Using network {}\nno further output\n"
    )
    assert first(networks.format("AWS Libfabric", "Socket")) == ("net-plugin-config", ("a1", "b1"))
    assert first(networks.format("IBext_v9", "IBext_v9"))[0] != "net-plugin-config"


def test_sockets_with_a_link_local_address_lead_nowhere() -> None:
    old = "a1:5:6 [0] INFO NET : Using interface {}<0>\n"
    hang = "no further output\n"
    assert first(old.format("eth0:10.4.0.1") + old.format("eth1:fe80::1%eth1") + hang) == (
        "wrong-interface",
        ("a1",),
    )
    assert first(old.format("eth0:10.4.0.1") + old.format("eth1:10.5.0.1") + hang)[0] != "wrong-interface"


def test_the_other_kind_of_a_socket_of_nccl_is_no_stranger() -> None:
    wrong = "a1:5:6 [0] misc/socket.cc:441 NCCL WARN socketFinalizeAccept: wrong {}\n"
    assert first(wrong.format("type 1 != 2"))[0] == "undetermined"
    assert first(wrong.format("magic 726568706f74 != 5"))[0] == "port-scanner"


def test_machines_of_one_name_that_meet_over_the_network_are_told_apart() -> None:
    def node(process: int, last: int) -> str:
        return f"node:{process}:1 [0] NCCL INFO Bootstrap : Using eth0:10.4.0.{last}<0>\n"

    hop = "node:5:1 [0] NCCL INFO Channel 00/0 : 9[1] -> 0[0] [receive] via NET/Socket/0\n"
    assert first(node(5, 1) + node(6, 2) + "hangs\n")[0] == "host-hash-collision"
    assert first(node(5, 1) + node(6, 2) + hop + "hangs\n")[0] == "undetermined"


def test_what_waited_is_no_exception_of_a_rank() -> None:
    assert (
        first("ray.exceptions.GetTimeoutError: Get timed out: some objects are not ready.\n")[0]
        == "undetermined"
    )
    assert first("RuntimeError: Operation timed out!\n")[0] == "undetermined"
