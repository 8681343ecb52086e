"""ConnectX-8 cards that reach GPUs by a PCI function of their own."""

from __future__ import annotations

import pytest

from ncclcheck.nccl.rdma.data_direct import is_possible, plain
from tests.nccl.hardware import UNREAD, bus, device, port

FUNCTION = device("0006:03:00.0", device="0x2100")
CARD = port("mlx5_0", hca_type="MT4131")


@pytest.mark.parametrize(
    ("version", "setting", "expected"),
    [
        ("2.27.3", None, True),
        ("2.26.6", None, False),
        ("2.28.9", "0", False),
        ("2.28.9", "2", True),
        ("2.28.9", "3", False),
    ],
)
def test_by_version_and_setting(version: str, setting: str | None, expected: bool) -> None:
    environment = {} if setting is None else {"NCCL_IB_DATA_DIRECT": setting}
    assert is_possible(CARD, bus(FUNCTION), environment, version) == expected


def test_only_such_a_card_on_a_machine_with_such_a_function() -> None:
    assert is_possible(port("mlx5_0", hca_type=UNREAD), bus(FUNCTION), {}, "2.28.9")
    assert not is_possible(port("mlx5_0"), bus(FUNCTION), {}, "2.28.9")
    assert not is_possible(CARD, bus(device("0000:10:00.0")), {}, "2.28.9")


def test_the_name_of_the_port_itself() -> None:
    assert plain("mlx5_0_dma:1", {"mlx5_0:1"}) == "mlx5_0:1"
    assert plain("mlx5_0:1", {"mlx5_0:1"}) == "mlx5_0:1"
    assert plain("rdma_dma:1", {"rdma_dma:1"}) == "rdma_dma:1"
