"""What a job really used, and where its ranks differ."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.logs.used import driver_cuda, gpudirect, of_processes, transports, unreachable_gpus, used
from ncclcheck.model.events import Link, LogPosition, Process
from ncclcheck.model.report import Used
from tests.checks.logs.explaining import read

LOG = """
0: a:1:1 [0] NCCL INFO NCCL version 2.27.3+cuda12.8
0: a:1:1 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>
0: a:1:1 [0] NCCL INFO Using network IB
1: b:2:2 [0] NCCL INFO NCCL version 2.27.3+cuda12.8
1: b:2:2 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.2<0>
1: b:2:2 [0] NCCL INFO Using network Socket
"""


def process(*vias: str) -> Process:
    place = LogPosition("x", 1)
    return Process("a", 1, place, links=tuple(Link(0, rank + 1, via) for rank, via in enumerate(vias)))


def test_what_all_have_in_common_stands_once_and_differences_with_their_hosts() -> None:
    rows = used(read(LOG))
    assert Used("NCCL", "2.27.3") in rows
    assert Used("interface", "eth0") in rows
    assert Used("network", "IB", ("a",), differs=True) in rows
    assert Used("network", "Socket", ("b",), differs=True) in rows


def test_transports_without_numbers() -> None:
    assert transports(process("P2P/CUMEM/read", "NET/IB/0(1)/GDRDMA/Shared", "NET/IB/3", "SHM/direct/direct")) == (
        "NET/IB", "NET/IB/GDRDMA", "P2P/CUMEM", "SHM",
    )  # fmt: skip


def test_gpudirect() -> None:
    assert gpudirect(process("NET/IB/0/GDRDMA")) == "used"
    assert gpudirect(process("NET/IB/0")) == "not used"
    assert gpudirect(process("NET/IB/0", "NET/IB/1/GDRDMA(PCI)")) == "used by some channels"
    assert gpudirect(process("NET/Socket/0")) == ""


def test_a_nic_that_is_far_from_a_gpu_does_not_keep_others_from_it() -> None:
    far = (
        "Disabled for GPU 1b000 / HCA 2 (distance 7 > 4)",
        "Disabled for GPU 1b000 / HCA 1 (distance 7 > 4)",
    )
    near = "Enabled for GPU 1b000 / HCA 0 (distance 4 <= 4), read 0"
    hca = "Enabled for HCA 0 'mlx5_0'"
    assert said(hca, *far) == ("disabled", far)
    assert said(hca, *far, near) == ("enabled", ())
    assert (
        said(hca, far[0], near, "Disabled for GPU 2b000 / HCA 0 (distance 7 > 4)")[0]
        == "disabled and enabled"
    )
    assert said("Disabled for HCA 0 'mlx5_0'") == ("disabled", ("Disabled for HCA 0 'mlx5_0'",))
    assert said() == ("", ())


def test_what_channels_tell_of_gpudirect_counts_more_than_what_was_asked() -> None:
    far = "Disabled for GPU 1b000 / HCA 2 (distance 7 > 4)"
    near = "Enabled for GPU 1b000 / HCA 0 (distance 4 <= 4), read 0"
    assert unreachable_gpus(replace(process("NET/IB/0/GDRDMA"), gpudirect=(far,))) == ()
    assert unreachable_gpus(replace(process("NET/IB/0/GDRDMA", "NET/IB/1"), gpudirect=(far,))) == ()
    assert unreachable_gpus(replace(process("NET/IB/0"), gpudirect=(near, far))) == (far,)
    assert unreachable_gpus(replace(process("NET/Socket/0"), gpudirect=(near, far))) == ()


def said(*states: str) -> tuple[str, tuple[str, ...]]:
    there = replace(process(), gpudirect=states)
    return gpudirect(there), unreachable_gpus(there)


def test_the_versions_of_bare_banners_count_where_no_process_tells() -> None:
    assert Used("NCCL", "2.20.5") in used(read("NCCL version 2.20.5+cuda12.4\n"))


def test_the_driver_as_cuda_version() -> None:
    assert [driver_cuda("12060"), driver_cuda("13000"), driver_cuda("")] == ["12.6", "13.0", ""]


def test_no_process_no_rows() -> None:
    assert list(of_processes(())) == []
