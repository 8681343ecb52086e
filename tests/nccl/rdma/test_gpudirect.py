"""GPUDirect RDMA: through what, by version, for which GPUs."""

from __future__ import annotations

import pytest

from ncclcheck.model.fact import Fact
from ncclcheck.model.hardware import GpuNic
from ncclcheck.nccl.rdma.gpudirect import describe, farthest, gpudirect_methods
from tests.nccl.hardware import UNREAD, port

NV_MEM = "/sys/kernel/mm/memory_peers/nv_mem/version"
NV_MEM_NC = "/sys/kernel/mm/memory_peers/nv_mem_nc/version"
OLD_PEERMEM = "/sys/kernel/mm/memory_peers/nvidia-peermem/version"
MODULE = "/sys/module/nvidia_peermem/version"
NEAR = (GpuNic("gpu0", "mlx5_0", "PIX"), GpuNic("gpu1", "mlx5_0", "PHB"), GpuNic("gpu1", "mlx5_1", "PXB"))


def words(
    peer_memory: Fact[tuple[str, ...]] = (),
    nvidia_open: Fact[bool] = False,
    version: str = "2.28.9",
    distances: tuple[GpuNic, ...] = NEAR,
    **environment: str,
) -> str:
    named = {f"NCCL_{name}": value for name, value in environment.items()}
    return describe([port("mlx5_0"), port("mlx5_1")], distances, peer_memory, nvidia_open, named, version)


@pytest.mark.parametrize(
    ("path", "versions"),
    [
        (NV_MEM, {"2.18.1", "2.21.5", "2.22.3", "2.23.4", "2.30.7"}),
        (NV_MEM_NC, {"2.22.3", "2.23.4", "2.30.7"}),
        (OLD_PEERMEM, {"2.18.1", "2.21.5"}),
        (MODULE, {"2.23.4", "2.30.7"}),
    ],
)
def test_where_each_version_looks_for_a_peer_memory_module(path: str, versions: set[str]) -> None:
    asked = ("2.18.1", "2.21.5", "2.22.3", "2.23.4", "2.30.7")
    assert {
        one for one in asked if words((path,), version=one).startswith("possible through the peer")
    } == versions


def test_a_module_that_the_version_does_not_see_is_named() -> None:
    text = words((MODULE,), version="2.22.3")
    assert text.startswith("not possible: NCCL 2.22.3 does not look for")
    assert MODULE in text


def test_dmabuf_needs_open_kernel_modules_and_is_not_switched_off() -> None:
    assert words(nvidia_open=True).startswith("possible through DMA-BUF")
    off = words(nvidia_open=True, DMABUF_ENABLE="0")
    assert off.startswith("not possible: ")
    assert "NCCL_DMABUF_ENABLE=0" in off
    assert words(nvidia_open=True, DMABUF_ENABLE="false").startswith("not possible")


def test_what_was_not_read_is_not_known() -> None:
    assert words(UNREAD, UNREAD).startswith("not known: ")
    assert words((), UNREAD).startswith("not known: no peer-memory module")
    assert words(UNREAD, True).startswith("possible through DMA-BUF")


def test_every_gpu_needs_a_nic_near_enough() -> None:
    assert words((MODULE,)).endswith("every GPU has a NIC within PXB")
    assert words((MODULE,), NET_GDR_LEVEL="PIX", NET_GDR_C2C="0").endswith("no NIC within PIX of gpu1")
    assert "prevents every GPU from using it" in words((MODULE,), NET_GDR_LEVEL="LOC")
    assert words((MODULE,), distances=()).endswith("is not known")


@pytest.mark.parametrize(
    ("version", "setting", "counts"),
    [
        ("2.25.1", "1", False),
        ("2.26.2", "", False),
        ("2.26.2", "1", True),
        ("2.27.3", "", True),
        ("2.28.9", "0", False),
    ],
)
def test_a_link_of_the_gpu_to_its_cpu_makes_up_for_a_nic_at_that_cpu(
    version: str, setting: str, counts: bool
) -> None:
    at_cpu = (GpuNic("gpu0", "mlx5_0", "PHB"),)
    text = words((MODULE,), version=version, distances=at_cpu, NET_GDR_C2C=setting)
    assert "no NIC within PXB of gpu0" in text
    assert text.endswith("of gpu0, which does not matter if it has a C2C link to its CPU (Grace)") is counts
    far = (GpuNic("gpu0", "mlx5_0", "SYS"),)
    assert "C2C" not in words((MODULE,), distances=far)


def test_only_nics_in_use_count() -> None:
    assert words((MODULE,), distances=(GpuNic("gpu0", "mlx5_7", "PIX"),)).endswith("is not known")


@pytest.mark.parametrize(
    ("value", "version", "expected"),
    [
        ("", "2.28.9", "PXB"), ("PIX", "2.28.9", "PIX"), ("SYS", "2.28.9", "SYS"), ("pix", "2.28.9", "PXB"),
        ("0", "2.28.9", ""), ("1", "2.28.9", "PIX"), ("2", "2.28.9", "PXB"), ("3", "2.28.9", "PHB"),
        ("4", "2.28.9", "SYS"), ("9", "2.28.9", "SYS"), ("0x1", "2.28.9", "PIX"), ("-1", "2.28.9", "PXB"),
        ("NVL", "2.28.9", ""), ("C2C", "2.26.2", ""), ("C2C", "2.25.1", "PXB"), ("PXN", "2.18.1", "PXB"),
        ("P2C", "2.27.3", "PXB"), ("99999999999999999999", "2.28.9", "SYS"),
    ],
)  # fmt: skip
def test_the_level(value: str, version: str, expected: str) -> None:
    assert farthest({"NCCL_NET_GDR_LEVEL": value}, version) == expected


def test_each_way_is_open_closed_or_not_known() -> None:
    assert [is_open for is_open, _ in gpudirect_methods((MODULE,), False, {}, "2.28.9")] == [True, False]
    assert [is_open for is_open, _ in gpudirect_methods((), True, {}, "2.28.9")] == [False, True]
    assert [is_open for is_open, _ in gpudirect_methods(UNREAD, UNREAD, {}, "2.28.9")] == [None, None]
