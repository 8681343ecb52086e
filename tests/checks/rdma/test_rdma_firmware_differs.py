"""NC309 rdma-firmware-differs."""

from __future__ import annotations

from msgspec.structs import replace

from tests.builders import everywhere
from tests.checks.running import finding, is_silent, run
from tests.hardware_builders import healthy_rdma, ib_ports, rdma_cluster, with_port, with_ports
from tests.nccl.hardware import UNREAD, port

SLUG = "rdma-firmware-differs"


def test_the_node_with_old_firmware_is_named() -> None:
    old = [replace(ib_port, firmware="28.36.1010") for ib_port in ib_ports()]
    found = finding(SLUG, with_ports(rdma_cluster(4), "node03", *old))
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    assert "28.36.1010 on node03, 28.39.1002 on node01, node02 and node04" in found.summary


def test_one_card_of_a_node_is_enough_and_a_tie_is_said_to_be_one() -> None:
    found = finding(SLUG, with_port(rdma_cluster(2), "node02", "mlx5_3", firmware="28.36.1010"))
    assert "28.36.1010 and 28.39.1002 on node02" in found.summary
    assert "no majority" in found.summary


def test_another_model_has_firmware_of_its_own() -> None:
    other = port("mlx5_8", board_id="MT_0000000436", firmware="22.39.1002")
    assert is_silent(SLUG, everywhere(rdma_cluster(2), rdma=healthy_rdma(*ib_ports(), other)))


def test_what_was_not_read_is_unknown_and_efa_is_not_asked() -> None:
    for what in ("firmware", "board_id"):
        result = run(SLUG, with_port(rdma_cluster(2), "node01", "mlx5_3", **{what: UNREAD}))
        assert (result.outcome, "mlx5_3" in result.reason) == ("unknown", True)
    efa = port("rdmap_0", driver="efa", link_layer="Unknown", firmware=UNREAD, board_id=UNREAD)
    assert run(SLUG, everywhere(rdma_cluster(2), rdma=healthy_rdma(efa))).outcome == "not_applicable"
