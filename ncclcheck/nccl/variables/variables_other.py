"""The variables of torch, torchrun, Gloo and CUDA, and the families of names that belong to others."""

from __future__ import annotations

from ncclcheck.nccl.variables.variables_types import Family, Variable

_PROCESS_GROUP = (
    "torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp"  # 2.1 to 2.13; names of the binaries 2.1, 2.6, 2.15
)
_RECORDER = "torch/csrc/distributed/c10d/FlightRecorder.cpp"
_AGENT = "torch/distributed/elastic"
_INIT = "torch/csrc/distributed/c10d/init.cpp"

TORCH: tuple[Variable, ...] = (
    Variable(
        "TORCH_NCCL_ASYNC_ERROR_HANDLING",
        "number",
        _PROCESS_GROUP,
        since="2.2",
        default="3",
        lowest=0,
        highest=3,
        owner="torch",
    ),
    Variable("TORCH_NCCL_AVOID_RECORD_STREAMS", "switch", _PROCESS_GROUP, since="2.2", owner="torch"),
    Variable("TORCH_NCCL_BCAST_UNIQUEID", "switch", _PROCESS_GROUP, since="2.2", owner="torch"),
    Variable("TORCH_NCCL_BLOCKING_WAIT", "switch", _PROCESS_GROUP, since="2.2", default="0", owner="torch"),
    Variable(
        "TORCH_NCCL_COORD_CHECK_MILSEC", "number", _PROCESS_GROUP, since="2.2", default="1000", owner="torch"
    ),
    Variable("TORCH_NCCL_CUDA_EVENT_CACHE", "switch", _PROCESS_GROUP, since="2.2", owner="torch"),
    Variable("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "path", _RECORDER, since="2.2", owner="torch"),
    Variable(
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
        "path",
        _RECORDER,
        since="2.2",
        default="/tmp/nccl_trace_rank_",
        owner="torch",
    ),
    Variable("TORCH_NCCL_DESYNC_DEBUG", "switch", _PROCESS_GROUP, since="2.2", default="0", owner="torch"),
    Variable("TORCH_NCCL_DUMP_ON_TIMEOUT", "switch", _PROCESS_GROUP, since="2.2", owner="torch"),
    Variable(
        "TORCH_NCCL_ENABLE_MONITORING", "switch", _PROCESS_GROUP, since="2.2", default="1", owner="torch"
    ),
    Variable("TORCH_NCCL_ENABLE_TIMING", "switch", _PROCESS_GROUP, since="2.2", default="0", owner="torch"),
    Variable("TORCH_NCCL_EXTRA_DUMP_ON_EXEC", "switch", _PROCESS_GROUP, since="2.2", owner="torch"),
    Variable("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "number", _PROCESS_GROUP, since="2.2", owner="torch"),
    Variable("TORCH_NCCL_HIGH_PRIORITY", "switch", _PROCESS_GROUP, since="2.2", default="0", owner="torch"),
    Variable(
        "TORCH_NCCL_LOG_CPP_STACK_ON_UNCLEAN_SHUTDOWN",
        "switch",
        _PROCESS_GROUP,
        since="2.2",
        default="1",
        owner="torch",
    ),
    Variable("TORCH_NCCL_NAN_CHECK", "switch", _PROCESS_GROUP, since="2.2", default="0", owner="torch"),
    Variable("TORCH_NCCL_NONBLOCKING_TIMEOUT", "text", _PROCESS_GROUP, since="2.2", owner="torch"),
    Variable("TORCH_NCCL_PROPAGATE_ERROR", "switch", _PROCESS_GROUP, since="2.2", default="0", owner="torch"),
    Variable("TORCH_NCCL_RANKS_PER_ROOT", "text", _PROCESS_GROUP, since="2.2", owner="torch"),
    Variable(
        "TORCH_NCCL_RETHROW_CUDA_ERRORS", "switch", _PROCESS_GROUP, since="2.2", default="1", owner="torch"
    ),
    Variable(
        "TORCH_NCCL_SHOW_EAGER_INIT_P2P_SERIALIZATION_WARNING",
        "switch",
        _PROCESS_GROUP,
        since="2.2",
        owner="torch",
    ),
    Variable("TORCH_NCCL_TEARDOWN_ON_TIMEOUT", "text", _PROCESS_GROUP, since="2.2", owner="torch"),
    Variable("TORCH_NCCL_TRACE_BUFFER_SIZE", "number", _PROCESS_GROUP, since="2.2", owner="torch"),
    Variable("TORCH_NCCL_TRACE_CPP_STACK", "switch", _RECORDER, since="2.2", default="0", owner="torch"),
    Variable(
        "TORCH_NCCL_USE_COMM_NONBLOCKING", "text", _PROCESS_GROUP, since="2.2", default="0", owner="torch"
    ),
    Variable(
        "TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK",
        "switch",
        _PROCESS_GROUP,
        since="2.2",
        default="0",
        owner="torch",
    ),
    Variable("TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", "number", _PROCESS_GROUP, since="2.2", owner="torch"),
    Variable(
        "NCCL_ASYNC_ERROR_HANDLING",
        "number",
        _PROCESS_GROUP,
        successor="TORCH_NCCL_ASYNC_ERROR_HANDLING",
        obsolete_since="2.2",
        lowest=0,
        highest=3,
        owner="torch",
    ),
    Variable(
        "NCCL_BLOCKING_WAIT",
        "switch",
        _PROCESS_GROUP,
        successor="TORCH_NCCL_BLOCKING_WAIT",
        obsolete_since="2.2",
        owner="torch",
    ),
    Variable(
        "NCCL_DESYNC_DEBUG",
        "switch",
        _PROCESS_GROUP,
        successor="TORCH_NCCL_DESYNC_DEBUG",
        obsolete_since="2.2",
        owner="torch",
    ),
    Variable(
        "NCCL_ENABLE_TIMING",
        "switch",
        _PROCESS_GROUP,
        successor="TORCH_NCCL_ENABLE_TIMING",
        obsolete_since="2.2",
        owner="torch",
    ),
    Variable(
        "NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK",
        "switch",
        _PROCESS_GROUP,
        successor="TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK",
        obsolete_since="2.2",
        owner="torch",
    ),
    Variable("ENABLE_NCCL_HEALTH_CHECK", "switch", _PROCESS_GROUP, until="2.1.99", owner="torch"),
    Variable("TORCH_FR_BUFFER_SIZE", "number", _RECORDER, owner="torch"),
    Variable("TORCH_FR_CPP_STACK", "switch", _RECORDER, owner="torch"),
    Variable("TORCH_FR_DUMP_DYNAMIC_FILE_NAME", "text", _RECORDER, owner="torch"),
    Variable("TORCH_FR_DUMP_TEMP_FILE", "path", _RECORDER, owner="torch"),
    Variable(
        "TORCH_DISTRIBUTED_DEBUG",
        "word",
        "torch/csrc/distributed/c10d/debug.cpp",
        default="OFF",
        values="OFF INFO DETAIL",
        owner="torch",
    ),
    Variable(
        "TORCH_DISTRIBUTED_USE_TORCHCOMMS", "text", "torch/distributed/distributed_c10d.py", owner="torch"
    ),
    Variable(
        "TORCH_DIST_INIT_BARRIER", "text", "torch/distributed/distributed_c10d.py", default="0", owner="torch"
    ),
    Variable("TORCH_DIST_USE_NCCL2", "text", "torch/distributed/distributed_c10d.py", owner="torch"),
    Variable("TORCH_CPP_LOG_LEVEL", "text", "c10/util/Logging.cpp", owner="torch"),
    Variable("TORCH_SHOW_CPP_STACKTRACES", "text", "c10/util/Exception.cpp", owner="torch"),
    Variable("TORCH_GLOO_LAZY_INIT", "text", _INIT, default="0", owner="torch"),
    Variable("USE_LIBUV", "text", "torch/distributed/rendezvous.py", default="1", owner="torch"),
    Variable("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "text", _AGENT, owner="torchrun"),
    Variable("TORCHELASTIC_AGENT_RUN_ID", "text", _AGENT, owner="torchrun"),
    Variable("TORCHELASTIC_ENABLE_FILE_TIMER", "text", _AGENT, owner="torchrun"),
    Variable("TORCHELASTIC_ERROR_FILE", "path", _AGENT, owner="torchrun"),
    Variable("TORCHELASTIC_ETCD_BINARY_PATH", "path", _AGENT, owner="torchrun"),
    Variable("TORCHELASTIC_EXTRA_CONTEXT", "text", _AGENT, owner="torchrun"),
    Variable("TORCHELASTIC_HEALTH_CHECK_PORT", "number", _AGENT, owner="torchrun"),
    Variable("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "text", _AGENT, owner="torchrun"),
    Variable("TORCHELASTIC_MAX_RESTARTS", "number", _AGENT, owner="torchrun"),
    Variable("TORCHELASTIC_RESTART_COUNT", "number", _AGENT, owner="torchrun"),
    Variable("TORCHELASTIC_RUN_ID", "text", _AGENT, owner="torchrun"),
    Variable("TORCHELASTIC_SIGNALS_TO_HANDLE", "text", _AGENT, owner="torchrun"),
    Variable("TORCHELASTIC_TIMER_FILE", "path", _AGENT, owner="torchrun"),
    Variable("TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT", "number", _AGENT, owner="torchrun"),
    Variable("TORCHELASTIC_USE_AGENT_STORE", "text", _AGENT, owner="torchrun"),
    Variable("GLOO_SOCKET_IFNAME", "names", _INIT, owner="Gloo"),
    Variable(
        "GLOO_DEVICE_TRANSPORT",
        "text",
        "torch/csrc/distributed/c10d/GlooDeviceFactory.cpp",
        default="TCP",
        owner="Gloo",
    ),
    Variable(
        "GLOO_DEVICE_TRANSPORT_TCP_TLS_PKEY",
        "path",
        "torch/csrc/distributed/c10d/GlooDeviceFactory.cpp",
        owner="Gloo",
    ),
    Variable(
        "GLOO_DEVICE_TRANSPORT_TCP_TLS_CERT",
        "path",
        "torch/csrc/distributed/c10d/GlooDeviceFactory.cpp",
        owner="Gloo",
    ),
    Variable(
        "GLOO_DEVICE_TRANSPORT_TCP_TLS_CA_FILE",
        "path",
        "torch/csrc/distributed/c10d/GlooDeviceFactory.cpp",
        owner="Gloo",
    ),
    Variable(
        "GLOO_DEVICE_TRANSPORT_TCP_TLS_CA_PATH",
        "path",
        "torch/csrc/distributed/c10d/GlooDeviceFactory.cpp",
        owner="Gloo",
    ),
    Variable("GLOO_DISABLE_CONNECTION_RETRIES", "text", "gloo/common", owner="Gloo"),
    Variable("GLOO_ENABLE_RANK_AS_SEQUENCE_NUMBER", "text", "gloo/common", owner="Gloo"),
    Variable("GLOO_ENABLE_STORE_V2_API", "text", "gloo/common", owner="Gloo"),
    Variable("GLOO_LOG_LEVEL", "text", "gloo/common/logging.cc", owner="Gloo"),
    Variable(
        "TP_SOCKET_IFNAME", "names", "torch/csrc/distributed/rpc/tensorpipe_agent.cpp", owner="TensorPipe"
    ),
    Variable("TP_VERBOSE_LOGGING", "number", "tensorpipe/common", owner="TensorPipe"),
    Variable(
        "CUDA_LAUNCH_BLOCKING",
        "switch",
        "CUDA C++ programming guide; NCCL src/misc/cudawrap.cc reads it from 2.17.1",
        default="0",
        owner="CUDA",
    ),
    Variable("CUDA_VISIBLE_DEVICES", "text", "CUDA C++ programming guide", owner="CUDA"),
    Variable(
        "NCCL_VERSION",
        "text",
        "NVIDIA's CUDA and NGC images: the version they were built with",
        owner="builds and images",
    ),
    Variable(
        "NCCL_IB_IS_GLOBAL",
        "switch",
        "Mellanox/nccl-rdma-sharp-plugins src/ib_plugin.c",
        owner="HPC-X plug-in",
    ),
    Variable(
        "NCCL_DYNAMIC_CHUNK_SIZE",
        "number",
        "nccl-env-profile.sh of google/nccl-plugin-gpudirect-tcpxo",
        owner="Google plug-in",
    ),
    Variable("NCCL_USE_SNAP", "switch", "recipes for A3 Mega of Google Cloud", owner="Google plug-in"),
    Variable(
        "NCCL_TUNER_CONFIG_PATH",
        "path",
        "nccl-env-profile.sh of google/nccl-plugin-gpudirect-tcpxo",
        owner="Google plug-in",
    ),
    Variable("NCCL_TUNER_CONFIG_FILE", "path", "plugins/tuner/example", owner="NCCL plug-in"),
)

_FOLDERS = (
    "HOME PATH ROOT ROOT_DIR DIR PREFIX INCLUDE INCLUDE_DIR INCLUDE_DIRS INCLUDE_PATH LIB LIBS LIB_DIR LIBDIR LIBRARY "
    "LIBRARIES LIBRARY_DIR LIBRARY_PATH LIB_PATH INSTALL_PATH INSTALL_DIR SRC_DIR SOURCE_DIR TESTS_HOME TESTS_DIR "
    "TESTS_PATH TEST TESTS LINK_LIB BUILD_DIR VER MAJOR MINOR PKG_VERSION"
)
BUILDS: tuple[Variable, ...] = tuple(
    Variable(f"NCCL_{word}", "text", "build scripts, modules and images", owner="builds and images")
    for word in _FOLDERS.split()
)

OTHERS: tuple[Variable, ...] = (*TORCH, *BUILDS)

FAMILIES: tuple[Family, ...] = (
    Family("NCCL_FASTRAK_", "Google plug-in", "google/nccl-plugin-gpudirect-tcpxo"),
    Family("NCCL_GPUDIRECTTCPX_", "Google plug-in", "google/nccl-plugin-gpudirect-tcpx"),
    Family("NCCL_SHIMNET_", "Google plug-in", "google/nccl-plugin-gpudirect-tcpxo"),
    Family("NCCL_GIB_", "Google plug-in", "Google Cloud's NCCL gIB plug-in"),
    Family("NCCL_TELEMETRY_", "Google plug-in", "Google Cloud's NCCL gIB plug-in"),
    Family("NCCL_OFI_", "aws-ofi-nccl", "aws/aws-ofi-nccl"),
    Family("OFI_NCCL_", "aws-ofi-nccl", "aws/aws-ofi-nccl src/nccl_ofi_param.h"),
    Family("NCCL_PLUGIN_", "HPC-X plug-in", "Mellanox/nccl-rdma-sharp-plugins src/p2p_plugin.c"),
    Family("NCCL_UCX_", "HPC-X plug-in", "Mellanox/nccl-rdma-sharp-plugins src/ucx_plugin.c"),
    Family("NCCL_IBEXT_", "HPC-X plug-in", "Mellanox/nccl-rdma-sharp-plugins src/ib_plugin.c"),
    Family("NCCL_SHARP_", "SHARP", "Mellanox/nccl-rdma-sharp-plugins src/sharp_plugin.c"),
    Family("SHARP_", "SHARP", "NVIDIA SHARP documentation"),
    Family("NCCL_SPCX_", "HPC-X plug-in", "NVIDIA's Spectrum-X plug-in"),
    Family("NCCL_INSPECTOR_", "NCCL plug-in", "plugins/profiler/inspector"),
    Family("NCCL_PROFILE_", "NCCL plug-in", "plugins/profiler/example"),
    Family("NCCL_PROFILER_CE_", "NCCL plug-in", "plugins/profiler/example"),
    Family("NCCL_EP_", "NCCL plug-in", "contrib/nccl_ep"),
    Family("NCCL_CHECKPOINT_", "NCCL plug-in", "contrib"),
    Family("NCCL_TESTS_", "nccl-tests", "NVIDIA/nccl-tests src/common.cu"),
    Family("NCCL_CTRAN_", "ncclx", "meta-pytorch/torchcomms comms/utils/cvars/nccl_cvars.yaml"),
    Family("NCCL_COLLTRACE", "ncclx", "meta-pytorch/torchcomms comms/utils/cvars/nccl_cvars.yaml"),
    Family("NCCL_CVARS", "ncclx", "meta-pytorch/torchcomms comms/utils/cvars/nccl_cvars.yaml"),
    Family("NCCLX_", "ncclx", "meta-pytorch/torchcomms comms/utils/cvars/nccl_cvars.yaml"),
    Family("RCCL_", "RCCL", "ROCm/rccl"),
    Family("MSCCL_", "MSCCL", "microsoft/msccl"),
    Family("NCCL_MSCCL", "MSCCL", "microsoft/msccl"),
    Family("UCX_", "UCX", "openucx/ucx"),
    Family("FI_", "libfabric", "ofiwg/libfabric"),
    Family("RDMAV_", "rdma-core", "linux-rdma/rdma-core"),
    Family("MLX5_", "rdma-core", "linux-rdma/rdma-core providers/mlx5"),
    Family("CUDA_", "CUDA", "CUDA C++ programming guide"),
    Family("SLURM", "Slurm", "Slurm's manual pages"),
    Family("OMPI_", "MPI", "Open MPI"),
    Family("PMI", "MPI", "PMI and PMIx"),
    Family("GLOO_DEVICE_TRANSPORT_", "Gloo", "torch/csrc/distributed/c10d/GlooDeviceFactory.cpp"),
)
