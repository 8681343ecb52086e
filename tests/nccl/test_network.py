"""Which network NCCL uses, in which order, and why the others are passed over."""

from __future__ import annotations

import pytest

from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.hardware import NetPlugin, Rdma
from ncclcheck.nccl.network import NetworkChoice, Surroundings, choose_network
from tests.nccl.hardware import NO_LIBRARY, UNREAD, port, rdma, roce

V = "2.28.9"
HEALTHY = rdma(port("mlx5_0"), port("mlx5_1"))
PLUGIN = NetPlugin("libnccl-net.so", "/opt/libnccl-net.so", (8, 9, 10), "AWS Libfabric")


def choose(
    hardware: Fact[Rdma] = HEALTHY,
    plugins: Fact[tuple[NetPlugin, ...]] = (),
    interfaces: Fact[tuple[str, ...]] = ("eth0",),
    version: str = V,
    **environment: str,
) -> NetworkChoice:
    named = {f"NCCL_{name}": value for name, value in environment.items()}
    return choose_network(Surroundings(hardware, plugins, interfaces), named, version)


def test_infiniband_comes_before_sockets() -> None:
    choice = choose()
    assert (choice.network, [rdma_port.device for rdma_port in choice.ports]) == ("IB", ["mlx5_0", "mlx5_1"])
    assert "every ACTIVE port: mlx5_0:1, mlx5_1:1" in choice.reason


@pytest.mark.parametrize(
    ("value", "network"),
    [("1", "Socket"), ("2", "Socket"), ("0x1", "Socket"), ("-1", "Socket"), ("1 # off", "Socket"),
     ("0", "IB"), ("", "IB"), ("true", "IB"), ("yes", "IB"), ("99999999999999999999", "IB")],
)  # fmt: skip
def test_ib_disable_is_a_number_as_c_reads_it(value: str, network: str) -> None:
    assert choose(IB_DISABLE=value).network == network


@pytest.mark.parametrize(
    ("hardware", "why"),
    [
        (rdma(), "no RDMA device"),
        (
            rdma(port(), verbs_library=NO_LIBRARY),
            "libibverbs, which it needs, cannot be loaded (the loader finds no libibverbs.so.1)",
        ),
        (rdma(port(), device_files=()), "no device file in /dev/infiniband"),
        (rdma(port(), device_files=("uverbs7",)), "device files of mlx5_0:1"),
        (rdma(port(), unusable_files=("uverbs0",)), "device files of mlx5_0:1"),
        (rdma(port(state="DOWN")), "mlx5_0:1 is DOWN"),
        (
            rdma(port(), port("mlx5_1"), port("mlx5_2", state="INIT"), device_files=("uverbs2",)),
            "mlx5_2:1 is INIT; mlx5_0:1, mlx5_1:1 cannot be opened",
        ),
        (
            rdma(*(port(f"efa_{n}", link_layer="Unspecified") for n in range(9))),
            "and 5 more are of link layer",
        ),
    ],
)
def test_what_net_ib_lacks_leads_to_sockets_with_the_reason(hardware: Rdma, why: str) -> None:
    choice = choose(hardware)
    assert (choice.network, choice.ports) == ("Socket", ())
    assert why in choice.reason
    assert "NET/Socket over eth0 as one network device" in choice.reason


def test_a_list_that_keeps_nothing_leads_to_sockets() -> None:
    assert "NCCL_IB_HCA=nosuch keeps none of mlx5_0:1, mlx5_1:1" in choose(IB_HCA="nosuch").reason
    assert choose(IB_HCA="nosuch").network == "Socket"
    assert [rdma_port.device for rdma_port in choose(IB_HCA="=mlx5_1").ports] == ["mlx5_1"]


def test_a_device_without_access_is_left_out() -> None:
    choice = choose(rdma(port(), roce("mlx5_1"), unusable_files=("uverbs0",)))
    assert [rdma_port.device for rdma_port in choice.ports] == ["mlx5_1"]
    assert "mlx5_0:1 cannot be opened" in choice.reason


def test_what_a_recorded_machine_does_not_tell_is_assumed_and_said() -> None:
    silent = rdma(port(), device_files=UNREAD, unusable_files=UNREAD, verbs_library=UNREAD)
    choice = choose(silent, plugins=UNREAD, interfaces=UNREAD)
    assert choice.network == "IB"
    assert "assuming that libibverbs can be loaded and that its device files are there" in choice.reason
    asked = rdma(port(), verbs_library=Missing("absent", "not asked of the loader"))
    assert choose(asked).network == "IB"


def test_what_cannot_be_known_is_not_guessed() -> None:
    for hardware in (UNREAD, rdma(port(state=UNREAD)), rdma(port(link_layer=UNREAD))):
        choice = choose(hardware)
        assert (choice.network, choice.fails) == (None, False)
        assert choice.reason.startswith("not known: ")
    assert choose(UNREAD, IB_DISABLE="1").network == "Socket"


def test_a_named_library_stands_in_for_the_missing_one_from_2_30() -> None:
    without = rdma(port(), verbs_library=NO_LIBRARY)
    assert choose(without, IBVERBS_LIB="/opt/libibverbs.so").network == "Socket"
    assert choose(without, version="2.30.3", IBVERBS_LIB="/opt/libibverbs.so").network == "IB"


@pytest.mark.parametrize("name", ["IB", "ib", "Ib"])
def test_nccl_net_names_the_network_in_any_case(name: str) -> None:
    assert choose(NET=name).network == "IB"
    assert choose(NET="socket").network == "Socket"


@pytest.mark.parametrize("name", ["", "IB ", "AWS Libfabric", "OFI"])
def test_a_name_that_nothing_has_is_fatal(name: str) -> None:
    choice = choose(NET=name)
    assert (choice.network, choice.fails) == (None, True)
    assert f"NCCL_NET={name}: no network of this name" in choice.reason


def test_a_named_network_that_does_not_work_is_fatal_and_says_why() -> None:
    choice = choose(rdma(port(state="DOWN")), NET="IB")
    assert choice.fails
    assert "mlx5_0:1 is DOWN" in choice.reason


def test_without_an_interface_nothing_works() -> None:
    choice = choose(interfaces=())
    assert choice.fails
    assert "NET/IB is off: it finds no interface" in choice.reason
    assert "NET/Socket finds no interface" in choice.reason


def test_sockets_use_every_interface() -> None:
    assert "eth0, eth1 as 2 network devices" in choose(rdma(), interfaces=("eth0", "eth1")).reason


def test_a_plugin_comes_first_unless_nccl_net_says_otherwise() -> None:
    assert choose(plugins=(PLUGIN,)).network == "AWS Libfabric"
    assert choose(plugins=(PLUGIN,), NET="aws libfabric").network == "AWS Libfabric"
    assert choose(plugins=(PLUGIN,), NET="IB").network == "IB"
    assert choose(plugins=(PLUGIN,), NET_PLUGIN="none").network == "IB"
    assert choose(plugins=(PLUGIN,), NET_PLUGIN="", version="2.27.3").network == "IB"
    assert choose(plugins=(PLUGIN,), NET_PLUGIN="", version="2.26.2").network == "AWS Libfabric"


def test_a_plugin_that_does_not_load_is_passed_over() -> None:
    old = NetPlugin("libnccl-net.so", "/opt/libnccl-net.so", (4, 5), "old")
    choice = choose(plugins=(old,))
    assert choice.network == "IB"
    assert "plug-in API v4, v5" in choice.reason
    assert choose(plugins=(old,), version="2.18.1").network == "old"


def test_a_plugin_that_somebody_asked_for_and_nobody_looked_for_is_not_known() -> None:
    for choice in (choose(plugins=UNREAD, NET_PLUGIN="ofi"), choose(plugins=UNREAD, NET="AWS Libfabric")):
        assert (choice.network, choice.fails) == (None, False)
    assert choose(plugins=UNREAD).network == "IB"
    assert choose(plugins=UNREAD, NET_PLUGIN="ofi", NET="IB").network == "IB"
