"""NC604 env-harmful."""

from __future__ import annotations

import pytest

from tests.checks.environment.clusters import running, with_gpus, with_rdma
from tests.checks.running import finding, is_silent

SLUG = "env-harmful"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("NCCL_P2P_DISABLE", "1", "host memory instead of NVLink"),
        ("NCCL_P2P_LEVEL", "LOC", "LOC disables peer-to-peer"),
        ("NCCL_SHM_DISABLE", "1", "network card"),
        ("NCCL_PXN_DISABLE", "1", "crosses rails"),
        ("NCCL_NET_GDR_LEVEL", "LOC", "GPUDirect RDMA is off"),
        ("NCCL_NET_GDR_LEVEL", "0", "GPUDirect RDMA is off"),
        ("NCCL_IB_TIMEOUT", "0", "forever"),
        ("NCCL_COMM_ID", "10.0.0.1:5000", "earlier job"),
        ("CUDA_LAUNCH_BLOCKING", "1", "nothing overlaps"),
        ("TORCH_NCCL_BLOCKING_WAIT", "true", "nothing overlaps"),
        ("NCCL_BLOCKING_WAIT", "1", "nothing overlaps"),
        ("NCCL_COMM_BLOCKING", "0", "which torch does not expect"),
        ("TORCH_DISTRIBUTED_DEBUG", "DETAIL", "checks all ranks"),
    ],
)
def test_a_left_over_workaround_is_a_warning_with_its_cost(name: str, value: str, words: str) -> None:
    found = finding(SLUG, running({name: value}))
    assert (found.severity, found.hosts) == ("warning", ("node01", "node02"))
    assert found.summary.startswith(f"{name}={value} on node01 and node02")
    assert words in found.summary
    assert found.fixes[0].commands == (f"unset {name}",)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NCCL_DEBUG", "INFO"),
        ("NCCL_DEBUG", "trace"),
        ("NCCL_ALGO", "Ring"),
        ("NCCL_PROTO", "Simple"),
        ("NCCL_NTHREADS", "256"),
        ("NCCL_BUFFSIZE", "8388608"),
        ("NCCL_CUMEM_ENABLE", "0"),
        ("NCCL_IB_GID_INDEX", "3"),
        ("NCCL_DMABUF_ENABLE", "0"),
        ("NCCL_NVLS_ENABLE", "0"),  # NeMo and SGLang set it
        ("NCCL_MIN_CTAS", "32"),
        ("NCCL_LAUNCH_MODE", "GROUP"),
        ("NCCL_CHECK_POINTERS", "1"),
        ("NCCL_COMM_BLOCKING", "1"),
    ],
)
def test_what_only_forces_or_prints_is_for_information(name: str, value: str) -> None:
    assert finding(SLUG, running({name: value})).severity == "info"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NCCL_P2P_DISABLE", "0"),
        ("NCCL_P2P_DISABLE", "2"),
        ("NCCL_P2P_DISABLE", "true"),
        ("NCCL_SHM_DISABLE", "false"),
        ("NCCL_NVLS_ENABLE", "1"),
        ("NCCL_NVLS_ENABLE", "2"),
        ("NCCL_P2P_LEVEL", "NVL"),
        ("NCCL_P2P_LEVEL", "loc"),
        ("NCCL_DEBUG", "WARN"),
        ("NCCL_DEBUG", ""),
        ("NCCL_IB_GID_INDEX", "-1"),
        ("NCCL_IB_TIMEOUT", "22"),
        ("CUDA_LAUNCH_BLOCKING", "0"),
        ("TORCH_NCCL_BLOCKING_WAIT", "0"),
        ("TORCH_DISTRIBUTED_DEBUG", "INFO"),
        ("NCCL_ALGO", ""),
    ],
)
def test_values_without_that_effect_are_silent(name: str, value: str) -> None:
    assert is_silent(SLUG, running({name: value}))


def test_a_word_is_zero_up_to_2_31_only() -> None:
    assert "NVLink SHARP is off" in finding(SLUG, running({"NCCL_NVLS_ENABLE": "false"}, "2.31.2")).summary
    assert is_silent(SLUG, running({"NCCL_NVLS_ENABLE": "false"}, "2.32.3"))


@pytest.mark.parametrize(
    ("name", "value"), [("NCCL_P2P_DISABLE", "1"), ("NCCL_SHM_DISABLE", "1"), ("NCCL_NVLS_ENABLE", "0")]
)
def test_one_gpu_has_nobody_to_talk_to(name: str, value: str) -> None:
    assert is_silent(SLUG, with_gpus(running({name: value}), 1))


def test_gpus_without_nvlink_sharp_lose_nothing_without_it() -> None:
    assert is_silent(SLUG, with_gpus(running({"NCCL_NVLS_ENABLE": "0"}), 8, "NVIDIA A100-SXM4-80GB"))
    assert not is_silent(SLUG, with_gpus(running({"NCCL_NVLS_ENABLE": "0"}), 8, "NVIDIA B200"))


def test_a_forced_gid_is_obsolete_from_2_21() -> None:
    assert is_silent(SLUG, running({"NCCL_IB_GID_INDEX": "3"}, "2.20.5"))
    assert is_silent(SLUG, running({"NCCL_IB_GID_INDEX": "3"}, None))


@pytest.mark.parametrize(("name", "value"), [("NCCL_IB_DISABLE", "1"), ("NCCL_NET", "Socket")])
def test_rdma_turned_off_is_harmful_where_there_is_rdma(name: str, value: str) -> None:
    there = finding(SLUG, with_rdma(running({name: value}), "mlx5_0", "mlx5_1"))
    assert there.severity == "warning"
    assert "though mlx5_0, mlx5_1 would be" in there.summary
    assert is_silent(SLUG, with_rdma(running({name: value})))
    assert is_silent(SLUG, with_rdma(running({name: value}), "mlx5_0", state="DOWN"))
    assert is_silent(SLUG, with_rdma(running({name: value}), "efa_0", link_layer="Unspecified"))
    assert "which is not known" in finding(SLUG, running({name: value})).summary


def test_rdma_turned_off_twice_is_one_finding() -> None:
    found = finding(SLUG, with_rdma(running({"NCCL_IB_DISABLE": "1", "NCCL_NET": "Socket"}), "mlx5_0"))
    assert found.fixes[0].commands == ("unset NCCL_IB_DISABLE NCCL_NET",)


def test_a_plug_in_by_name_needs_no_infiniband_of_nccl() -> None:
    assert is_silent(
        SLUG, with_rdma(running({"NCCL_IB_DISABLE": "1", "NCCL_NET": "AWS Libfabric"}), "mlx5_0")
    )


def test_the_debug_level_is_to_be_warn() -> None:
    assert finding(SLUG, running({"NCCL_DEBUG": "INFO"})).fixes[0].env == {"NCCL_DEBUG": "WARN"}


def test_cards_without_peer_to_peer_lose_nothing_without_it() -> None:
    off = running({"NCCL_P2P_DISABLE": "1"})
    assert is_silent(SLUG, with_gpus(off, 8, "NVIDIA GeForce RTX 4090"))
    assert not is_silent(SLUG, with_gpus(off, 2, "NVIDIA GeForce RTX 3090"))
    assert not is_silent(SLUG, with_gpus(off, 8, "NVIDIA RTX 6000 Ada Generation"))


def test_one_host_id_for_several_nodes_is_an_error() -> None:
    found = finding(SLUG, running({"NCCL_HOSTID": "worker"}))
    assert (found.severity, found.hosts) == ("error", ("node01", "node02"))
    assert "treats them as one machine" in found.summary
    assert is_silent(SLUG, running({"NCCL_HOSTID": "worker"}, nodes=1))


def test_calls_that_do_not_block_are_fine_where_torch_asked_for_them() -> None:
    assert is_silent(SLUG, running({"NCCL_COMM_BLOCKING": "0", "TORCH_NCCL_USE_COMM_NONBLOCKING": "1"}))
