"""What NCCL chooses, folded over equal nodes; never a guess where it is not known."""

from __future__ import annotations

from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NcclChoice
from ncclcheck.model.hardware import Pci
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.report.text.nccl_text import nccl_lines
from ncclcheck.report.text.page import draw
from tests.builders import cluster, everywhere, with_choice, with_environment, with_silent, without
from tests.nccl.hardware import bus, device, gpu, port, rdma, roce
from tests.report.reports import report


def shown(snapshot: Snapshot, verbose: int = 0) -> list[str]:
    return draw(nccl_lines(report(snapshot=snapshot), verbose), width=None, color=False).splitlines()


def test_equal_nodes_are_one_line() -> None:
    assert shown(cluster(4)) == [
        "NCCL would use",
        "  eth0 on node[01-04] (NCCL 2.27.5, asked of the library itself)",
    ]


def test_a_node_where_it_fails_says_why() -> None:
    lines = shown(with_choice(cluster(4), "node03", None, None))
    assert "  nothing, it would fail on node03 (NCCL 2.27.5, asked of the library itself)" in lines
    assert any("no socket interface found" in line for line in lines)


def test_a_node_where_it_is_not_known_is_named() -> None:
    lines = shown(without(cluster(4), "node02", "nccl"))
    assert "  eth0 on node[01,03-04] (NCCL 2.27.5, asked of the library itself)" in lines
    assert lines[-1].startswith("  unknown on node02: timeout: nccl of the node")


def test_where_no_node_reported_there_is_no_heading_without_a_line() -> None:
    assert shown(with_silent(with_silent(cluster(2), "node01"), "node02")) == []


def test_a_silent_node_is_no_question() -> None:
    assert not [line for line in shown(with_silent(cluster(4), "node04")) if "node04" in line]


def test_verbose_gives_each_node_its_address_library_and_reason() -> None:
    text = "\n".join(shown(cluster(2), verbose=1))
    assert "eth0 10.0.0.2 on node02" in text
    assert "library /opt/venv" in text


def with_hcas(snapshot: Snapshot, count: int = 2, pci: Pci | None = None) -> Snapshot:
    """Every node has that many RoCE ports and libibverbs."""
    ports = (roce(f"mlx5_{number}") for number in range(count))
    return everywhere(snapshot, rdma=rdma(*ports), pci=pci or bus())


def test_network_and_hcas_are_on_the_line_of_equal_nodes() -> None:
    assert shown(with_hcas(cluster(4)))[1:] == [
        "  eth0, network IB with mlx5_0:1, mlx5_1:1 (GID 3) on node[01-04] "
        "(NCCL 2.27.5, asked of the library itself; the network is predicted)"
    ]


def test_of_many_ports_the_first_and_the_last_are_named_unless_verbose() -> None:
    snapshot = with_hcas(cluster(4), 8)
    assert "network IB with 8 ports mlx5_0:1 to mlx5_7:1 (GID 3) on" in shown(snapshot)[1]
    assert "mlx5_3:1" not in shown(snapshot)[1]
    assert any("HCAs mlx5_0:1, mlx5_1:1, mlx5_2:1, mlx5_3:1," in text for text in shown(snapshot, verbose=1))


def test_nodes_with_another_network_are_a_line_of_their_own() -> None:
    lines = shown(with_environment(with_hcas(cluster(4)), "node03", NCCL_IB_DISABLE="1"))
    assert any(text.startswith("  eth0 10.0.0.3, network Socket on node03 ") for text in lines)
    assert any("on node[01-02,04]" in text for text in lines)


def test_a_network_that_fails_says_why_even_in_short() -> None:
    lines = shown(with_environment(with_hcas(cluster(2)), "node02", NCCL_NET="OFI"))
    assert any(text.startswith("  eth0 10.0.0.2, but no network: it would fail on node02") for text in lines)
    assert any("NCCL_NET=OFI: no network of this name" in text for text in lines)


def test_verbose_gives_distances_gpudirect_and_changes() -> None:
    pci = bus(gpu("0000:1b:00.0", numa_node=0), device("0000:10:00.0"), device("0000:11:00.0", numa_node=1))
    text = "\n".join(shown(with_hcas(cluster(1), pci=pci), verbose=1))
    assert "GPU 0000:1b:00.0: PHB mlx5_0; SYS mlx5_1" in text
    assert "GPUDirect RDMA " in text
    assert "NCCL_IB_DISABLE=1 would use Socket" in text
    assert "NET/IB uses every ACTIVE port" in text


def test_an_interface_that_is_not_known_is_no_failure() -> None:
    unasked = NcclChoice(Missing("absent", "no libnccl.so.2"), (), True)
    snapshot = everywhere(
        with_environment(cluster(1), "node01", NCCL_COMM_ID="elsewhere:1"), nccl=unasked, rdma=rdma(port())
    )
    lines = shown(snapshot)
    assert any(
        text.startswith("  interface not known, network IB with mlx5_0:1 (GID 0) on node01") for text in lines
    )
    assert any("'elsewhere'" in text for text in lines)
