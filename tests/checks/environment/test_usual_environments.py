"""Environments of healthy clusters, as clouds, containers and launchers set them: none may give a warning."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncclcheck.checks.registry import all_checks, run_check
from ncclcheck.nccl.variables.variables import TABLE
from ncclcheck.nccl.variables.variables_folklore import FOLKLORE
from tests.checks.environment.clusters import running, with_rdma

NGC_CONTAINER = {
    "NCCL_VERSION": "2.27.5",
    "NVIDIA_VISIBLE_DEVICES": "all",
    "CUDA_VERSION": "12.9.1.010",
    "TORCH_NCCL_USE_COMM_NONBLOCKING": "0",
    "TORCH_CUDA_ARCH_LIST": "8.0 9.0",
    "OMPI_MCA_coll_hcoll_enable": "0",
    "UCX_MEMTYPE_CACHE": "n",
    "NCCL_IB_HCA": "mlx5",
}
AWS_EFA = {
    "FI_PROVIDER": "efa",
    "FI_EFA_USE_DEVICE_RDMA": "1",
    "FI_EFA_FORK_SAFE": "1",
    "FI_EFA_SET_CUDA_SYNC_MEMOPS": "0",
    "OFI_NCCL_PROTOCOL": "rdma",
    "OFI_NCCL_NIC_DUP_CONNS": "4",
    "NCCL_SOCKET_IFNAME": "^lo,docker",
    "NCCL_NET": "AWS Libfabric",
    "NCCL_NET_PLUGIN": "ofi",
    "NCCL_TUNER_PLUGIN": "/opt/amazon/ofi-nccl/lib/libnccl-ofi-tuner.so",
    "NCCL_BUFFSIZE": "8388608",
    "NCCL_P2P_NET_CHUNKSIZE": "524288",
    "NCCL_DEBUG": "INFO",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
}
GOOGLE_TCPXO = {
    "NCCL_FASTRAK_CTRL_DEV": "eth0",
    "NCCL_FASTRAK_IFNAME": "eth1,eth2,eth3,eth4,eth5,eth6,eth7,eth8",
    "NCCL_FASTRAK_NUM_FLOWS": "2",
    "NCCL_FASTRAK_ENABLE_CONTROL_CHANNEL": "0",
    "NCCL_FASTRAK_USE_SNAP": "1",
    "NCCL_FASTRAK_USE_LLCM": "1",
    "NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY": "/dev/aperture_devices",
    "NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE": "/usr/local/nvidia/lib64/a3plus_guest_config.textproto",
    "NCCL_TUNER_PLUGIN": "libnccl-tuner.so",
    "NCCL_TUNER_CONFIG_PATH": "/usr/local/nvidia/lib64/a3plus_tuner_config.textproto",
    "NCCL_SOCKET_IFNAME": "eth0",
    "NCCL_CROSS_NIC": "0",
    "NCCL_ALGO": "Ring,Tree",
    "NCCL_PROTO": "Simple,LL128",
    "NCCL_MIN_NCHANNELS": "4",
    "NCCL_BUFFSIZE": "8388608",
    "NCCL_DYNAMIC_CHUNK_SIZE": "524288",
    "NCCL_P2P_NET_CHUNKSIZE": "524288",
    "NCCL_P2P_PCI_CHUNKSIZE": "524288",
    "NCCL_P2P_NVL_CHUNKSIZE": "1048576",
    "NCCL_NVLSTREE_MAX_CHUNKSIZE": "131072",
    "NCCL_NET_GDR_LEVEL": "PIX",
    "NCCL_PXN_DISABLE": "0",
}
AZURE = {
    "NCCL_TOPO_FILE": "/opt/microsoft/ndv5-topo.xml",
    "NCCL_IB_PCI_RELAXED_ORDERING": "1",
    "NCCL_SOCKET_IFNAME": "eth0",
    "UCX_TLS": "tcp",
    "UCX_NET_DEVICES": "eth0",
    "NCCL_IB_QPS_PER_CONNECTION": "4",
    "NCCL_IGNORE_CPU_AFFINITY": "1",
    "SHARP_COLL_ENABLE_SAT": "1",
    "NCCL_COLLNET_ENABLE": "0",
    "NCCL_MIN_NCHANNELS": "32",
}
ORACLE = {
    "NCCL_SOCKET_NTHREADS": "16",
    "NCCL_DEBUG": "WARN",
    "NCCL_CUMEM_ENABLE": "0",
    "NCCL_IB_SPLIT_DATA_ON_QPS": "0",
    "NCCL_IB_QPS_PER_CONNECTION": "1",
    "NCCL_IB_GID_INDEX": "3",
    "NCCL_IB_TC": "41",
    "NCCL_IB_SL": "0",
    "NCCL_IB_TIMEOUT": "22",
    "NCCL_NET_PLUGIN": "none",
    "NCCL_SOCKET_IFNAME": "eth0",
    "NCCL_IGNORE_CPU_AFFINITY": "1",
    "NCCL_IB_HCA": "=mlx5_0,mlx5_3,mlx5_4,mlx5_5",
}
SLURM = {
    "SLURM_JOB_ID": "17",
    "SLURM_PROCID": "0",
    "SLURM_GPUS_ON_NODE": "8",
    "NCCL_DEBUG_FILE": "/scratch/nccl.%h.%p.log",
    "NCCL_DEBUG_SUBSYS": "INIT,NET",
    "OMP_NUM_THREADS": "8",
    "TORCH_DISTRIBUTED_DEBUG": "INFO",
    "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000",
    "TORCH_NCCL_DUMP_ON_TIMEOUT": "true",
    "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "1800",
    "GLOO_SOCKET_IFNAME": "eth0",
    "TP_SOCKET_IFNAME": "eth0",
}
OTHER_LAUNCHERS = {  # LSF, SageMaker, Kubeflow and Open MPI
    "JSM_NAMESPACE_RANK": "0",
    "JSM_NAMESPACE_SIZE": "4",
    "LSB_MCPU_HOSTS": "launch1 1 node01 42 node02 42",
    "SM_HOSTS": '["algo-1", "algo-2"]',
    "SM_CURRENT_HOST": "algo-1",
    "PET_NNODES": "2",
    "PET_NODE_RANK": "0",
    "OMPI_MCA_orte_hnp_uri": "3871211520.0;tcp://10.77.0.1:47111",
    "PMIX_NAMESPACE": "prterun-node01-1@1",
}
TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "none",
    "TORCHELASTIC_RESTART_COUNT": "0",
    "TORCHELASTIC_MAX_RESTARTS": "0",
    "TORCHELASTIC_USE_AGENT_STORE": "True",
    "TORCHELASTIC_ERROR_FILE": "/tmp/x/error.json",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
}
GOOGLE_GIB = {
    "NCCL_NET": "gIB",
    "NCCL_CROSS_NIC": "0",
    "NCCL_NET_GDR_LEVEL": "PIX",
    "NCCL_P2P_NET_CHUNKSIZE": "131072",
    "NCCL_NVLS_CHUNKSIZE": "524288",
    "NCCL_IB_GID_INDEX": "3",
    "NCCL_IB_ADAPTIVE_ROUTING": "1",
    "NCCL_IB_QPS_PER_CONNECTION": "4",
    "NCCL_IB_TC": "52",
    "NCCL_IB_FIFO_TC": "84",
    "NCCL_TUNER_CONFIG_PATH": "/usr/local/gib/configs/tuner_config_a4.txtpb",
}
GOOGLE_TCPX = {
    "NCCL_NET": "GPUDirectTCPX_v7",
    "NCCL_GPUDIRECTTCPX_SOCKET_IFNAME": "eth1,eth2,eth3,eth4",
    "NCCL_GPUDIRECTTCPX_CTRL_DEV": "eth0",
    "NCCL_GPUDIRECTTCPX_TX_BINDINGS": "eth1:8-21,112-125;eth2:8-21,112-125",
    "NCCL_P2P_PXN_LEVEL": "0",
    "NCCL_SOCKET_IFNAME": "eth0",
    "NCCL_NSOCKS_PERTHREAD": "4",
    "NCCL_SOCKET_NTHREADS": "1",
    "NCCL_MAX_NCHANNELS": "12",
    "NCCL_MIN_NCHANNELS": "12",
    "NCCL_USE_SNAP": "1",
    "NCCL_NVLS_ENABLE": "0",
}
FRAMEWORKS = {  # Megatron-LM, NeMo, SGLang, vLLM and verl
    "CUDA_DEVICE_MAX_CONNECTIONS": "1",
    "NCCL_NVLS_ENABLE": "0",
    "NCCL_CUMEM_ENABLE": "0",
    "NCCL_GRAPH_REGISTER": "0",
    "TORCH_NCCL_AVOID_RECORD_STREAMS": "1",
    "NCCL_IB_SL": "1",
    "NCCL_IB_TIMEOUT": "19",
    "NCCL_NET_GDR_LEVEL": "SYS",
    "NCCL_P2P_NET_CHUNKSIZE": "2097152",
    "TORCH_DIST_INIT_BARRIER": "1",
    "TORCH_CPP_LOG_LEVEL": "INFO",
    "NCCL_TEST": "0",
}
SLINGSHOT = {
    "NCCL_NET": "AWS Libfabric",
    "NCCL_CROSS_NIC": "1",
    "NCCL_NET_GDR_LEVEL": "PHB",
    "NCCL_PROTO": "^LL128",
    "FI_CXI_ATS": "0",
    "FI_MR_CACHE_MONITOR": "userfaultfd",
}
LISTS_OF_DEVICES = {  # CoreWeave, Lambda, Tencent and others
    "NCCL_IB_HCA": "mlx5_0:1",
    "UCX_NET_DEVICES": "mlx5_0:1",
    "NCCL_COLLNET_ENABLE": "1",
    "SHARP_COLL_ENABLE_SAT": "1",
    "NCCL_IB_QPS_PER_CONNECTION": "4",
    "NCCL_IB_TC": "160",
    "NCCL_NET_GDR_LEVEL": "2",
    "nccl_home": "/opt/nccl",
}
USUAL = {
    "Google with gIB": GOOGLE_GIB,
    "Google with TCPX": GOOGLE_TCPX,
    "frameworks": FRAMEWORKS,
    "Slingshot": SLINGSHOT,
    "lists of devices": LISTS_OF_DEVICES,
    "an NGC container": NGC_CONTAINER,
    "AWS with EFA": AWS_EFA,
    "Google with TCPXO": GOOGLE_TCPXO,
    "Azure": AZURE,
    "Oracle": ORACLE,
    "Slurm": SLURM,
    "torchrun": TORCHRUN,
    "other launchers": OTHER_LAUNCHERS,
}
# What a policy demands of the environment is no question of what is usual.
FAMILY = [
    all_check for all_check in all_checks() if all_check.code.startswith("NC6") and not all_check.demands
]


@pytest.mark.parametrize("nccl", ["2.18.3", "2.21.5", "2.23.4", "2.27.5", "2.28.9", "2.30.7", "2.32.3", None])
@pytest.mark.parametrize("name", USUAL)
def test_a_usual_environment_gives_no_warning(name: str, nccl: str | None) -> None:
    snapshot = with_rdma(running(USUAL[name], nccl), "mlx5_0")
    findings = [finding for check in FAMILY for finding in run_check(check, snapshot).findings]
    assert [(finding.slug, finding.summary) for finding in findings if finding.severity != "info"] == []


@pytest.mark.parametrize("name", USUAL)
def test_with_a_known_version_it_is_judged_whole(name: str) -> None:
    snapshot = with_rdma(running(USUAL[name], "2.27.5"), "mlx5_0")
    assert [run_check(check, snapshot).reason for check in FAMILY] == [""] * len(FAMILY)


@settings(deadline=None)  # what it says is under test, not how fast
@given(
    st.dictionaries(
        st.sampled_from(sorted({*TABLE, *FOLKLORE}))
        | st.text("NCL_GOTRHAB", max_size=20).map("NCCL_{}".format),
        st.text(max_size=10) | st.text(" ^=,:;|%/-+0123456789abcdefxAFINETlorings~.\r'\"", max_size=20),
        max_size=12,
    ),
    st.sampled_from(["2.18.3", "2.23.4", "2.29.7", "2.30.7", "2.32.3", "2.45.1", None]),
)
@pytest.mark.further
def test_no_environment_breaks_a_check(environment: dict[str, str], nccl: str | None) -> None:
    snapshot = running(environment, nccl)
    broken = [run for check in FAMILY if (run := run_check(check, snapshot)).outcome == "crashed"]
    assert broken == []
