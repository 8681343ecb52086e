"""The variables of NCCL that are not about the network."""

from __future__ import annotations

from ncclcheck.nccl.variables.variables_types import Variable

# NCCL's sources from 2.4.2 to 2.30.7 (all 59 tags), and the names in the libraries 2.31.2 and 2.32.3. `since` and
# `until` are the first and the last of these that read the name; no `since`: 2.4.2 or older.
# fmt: off
NCCL: tuple[Variable, ...] = (
    Variable("NCCL_AGG_ALLOC_MODE", "text", "init.cc", since="2.10.3", until="2.12.12"),
    Variable("NCCL_AGG_CHANNEL_SIZE", "number", "init.cc", since="2.10.3", until="2.19.4", default="auto"),
    Variable(
        "NCCL_ALGO", "words", "graph/tuning.cc", since="2.5.6",
        values="Tree Ring CollNetDirect CollNetChain NVLS NVLSTree PAT>=2.23"
    ),
    Variable("NCCL_ALLGATHERV_ENABLE", "switch", "enqueue.cc", since="2.29.2", default="1"),
    Variable("NCCL_ALLOC_P2P_NET_LL_BUFFERS", "switch", "init.cc", since="2.14.3", default="unset; 2.16.5: 0"),
    Variable("NCCL_BUFFSIZE", "number", "init.cc", default="4194304; 2.6.4: auto"),
    Variable("NCCL_CE_CHUNK_SIZE", "number", "libnccl.so.2", since="2.32.3"),
    Variable("NCCL_CE_COLL_AG_MULTICAST_THRESHOLD", "number", "libnccl.so.2", since="2.31.2"),
    Variable("NCCL_CE_INTRA_GPU_MEMCPY_ENABLE", "switch", "libnccl.so.2", since="2.32.3"),
    Variable("NCCL_CFT_ENABLE", "switch", "libnccl.so.2", since="2.31.2"),
    Variable(
        "NCCL_CGA_CLUSTER_SIZE", "number", "init.cc", since="2.15.1", default="0; 2.16.2: auto; 2.17.1: unset",
        highest=8
    ),
    Variable("NCCL_CHECKS_DISABLE", "switch", "user guide", until="2.1.15", successor="NCCL_CHECK_POINTERS"),
    Variable("NCCL_CHECK_MODE", "word", "init.cc", since="2.29.7", values="DEBUG_GLOBAL DEBUG_LOCAL"),
    Variable(
        "NCCL_CHECK_POINTERS", "switch", "init.cc", default="0", successor="NCCL_CHECK_MODE",
        obsolete_since="2.29.7"
    ),
    Variable("NCCL_CHUNK_SIZE", "number", "enqueue.cc", since="2.12.7", default="0"),
    Variable("NCCL_COMM_BLOCKING", "switch", "init.cc", since="2.14.3", default="0; 2.17.1: unset"),
    Variable("NCCL_COMM_SHRINK_SHARE_RESOURCES", "switch", "init.cc", since="2.27.3"),
    Variable("NCCL_COMM_SPLIT_SHARE_RESOURCES", "switch", "init.cc", since="2.18.1"),
    Variable("NCCL_CONF_FILE", "path", "misc/param.cc", since="2.23.4"),
    Variable("NCCL_CREATE_THREAD_CONTEXT", "switch", "proxy.cc", since="2.13.4", until="2.30.4", default="0"),
    Variable("NCCL_CTA_POLICY", "text", "init.cc", since="2.27.3"),
    Variable("NCCL_CUDA_PATH", "path", "misc/cudawrap.cc", since="2.13.4", until="2.20.5"),
    Variable("NCCL_CUMEM_ENABLE", "switch", "misc/cudawrap.cc", since="2.18.1", default="0; 2.19.1: auto"),
    Variable("NCCL_CUMEM_HOST_ENABLE", "switch", "misc/cudawrap.cc", since="2.23.4", default="0; 2.24.3: -1"),
    Variable("NCCL_DEBUG", "word", "debug.cc", values="VERSION WARN ATTN>=2.32 INFO ABORT TRACE"),
    Variable("NCCL_DEBUG_FILE", "path", "debug.cc"),
    Variable(
        "NCCL_DEBUG_LEVELS", "words", "libnccl.so.2", since="2.32.3",
        values="VERSION WARN ATTN INFO ABORT TRACE ALL"
    ),
    Variable(
        "NCCL_DEBUG_SUBSYS", "words", "debug.cc",
        values="INIT COLL P2P SHM NET GRAPH TUNING ENV ALLOC CALL PROXY NVLS BOOTSTRAP>=2.21 REG>=2.21 "
        "PROFILE>=2.22 RAS>=2.24 DESTROY>=2.30 ALLOC_HOST>=2.30.7 ALL"
    ),
    Variable("NCCL_DEBUG_TIMESTAMP_FORMAT", "text", "debug.cc", since="2.26.2"),
    Variable(
        "NCCL_DEBUG_TIMESTAMP_LEVELS", "words", "debug.cc", since="2.26.2",
        values="VERSION WARN ATTN>=2.32 INFO ABORT TRACE ALL"
    ),
    Variable("NCCL_DEV_API_JIT", "switch", "gin/gin_host.cc", since="2.30.7", default="0"),
    Variable("NCCL_DIAGNOSTICS_ECC_THRESHOLD", "text", "libnccl.so.2", since="2.31.2"),
    Variable("NCCL_DIAGNOSTICS_IB_BW_TIMEOUT", "number", "libnccl.so.2", since="2.32.3"),
    Variable("NCCL_DISABLE_MEM_MANAGER", "switch", "mem_manager.cc", since="2.29.7", default="0"),
    Variable("NCCL_ELASTIC_BUFFER_REGISTER", "switch", "dev_runtime.cc", since="2.30.3", default="1"),
    Variable("NCCL_ENABLE_VERSION_CHECK", "number", "dev_runtime.cc", since="2.29.2", default="1"),
    Variable("NCCL_ENQUEUE_REARCH_ENABLE", "switch", "libnccl.so.2", since="2.31.2"),
    Variable("NCCL_ENV_PLUGIN", "text", "plugin/env.cc", since="2.28.7"),
    Variable("NCCL_GRAPH", "text", "graph/search.cc", until="2.5.7", successor="NCCL_GRAPH_FILE"),
    Variable("NCCL_GRAPH_DUMP_FILE", "path", "graph/search.cc", since="2.6.4"),
    Variable("NCCL_GRAPH_DUMP_FILE_RANK", "number", "init.cc", since="2.6.4", default="0"),
    Variable("NCCL_GRAPH_FILE", "path", "graph/search.cc", since="2.6.4"),
    Variable("NCCL_GRAPH_HELPER_DISABLE", "switch", "init.cc", since="2.11.4", default="0"),
    Variable("NCCL_GRAPH_MIXING_SUPPORT", "switch", "init.cc", since="2.13.4", default="1; 2.29.2: unset"),
    Variable("NCCL_GRAPH_REGISTER", "switch", "enqueue.cc", since="2.11.4", default="0; 2.19.1: 1"),
    Variable("NCCL_GRAPH_STREAM_ORDERING", "switch", "enqueue.cc", since="2.30.7"),
    Variable("NCCL_GROUP_CUDA_STREAM", "number", "init.cc", default="auto"),
    Variable("NCCL_HIER_CE_COLL_AG_RAIL_RING_ENABLE", "switch", "libnccl.so.2", since="2.32.3"),
    Variable("NCCL_HIER_CE_COLL_NUM_CTX", "number", "libnccl.so.2", since="2.31.2"),
    Variable("NCCL_HOSTID", "text", "misc/utils.cc", since="2.5.6"),
    Variable("NCCL_IGNORE_CPU_AFFINITY", "switch", "graph/topo.cc", since="2.4.6", default="0"),
    Variable("NCCL_IGNORE_DISABLED_P2P", "switch", "graph/paths.cc", since="2.12.7", default="0"),
    Variable("NCCL_IPC_USE_ABSTRACT_SOCKET", "switch", "os/linux_ipcsocket.cc", since="2.29.2", default="1"),
    Variable("NCCL_L1_SHARED_MEMORY_CARVEOUT", "number", "enqueue.cc", since="2.12.10", default="0"),
    Variable("NCCL_LAUNCH_MODE", "word", "init.cc", values="GROUP PARALLEL"),
    Variable("NCCL_LAUNCH_ORDER_IMPLICIT", "switch", "enqueue.cc", since="2.26.2", default="0"),
    Variable("NCCL_LAUNCH_RACE_FATAL", "switch", "misc/strongstream.cc", since="2.26.2", default="1"),
    Variable("NCCL_LEGACY_CUDA_REGISTER", "switch", "transport/p2p.cc", since="2.24.3", default="0"),
    Variable("NCCL_LL128_BUFFSIZE", "number", "init.cc", since="2.7.3", default="auto"),
    Variable("NCCL_LL128_C2C", "switch", "graph/tuning.cc", since="2.27.3", default="1"),
    Variable(
        "NCCL_LL128_NTHREADS", "number", "graph/tuning.cc", since="2.5.6", default="auto", lowest=160,
        highest=640
    ),
    Variable("NCCL_LL_BUFFSIZE", "number", "init.cc", since="2.7.3", default="auto"),
    Variable("NCCL_LL_THRESHOLD", "number", "init.cc", until="2.4.8", default="auto", successor="NCCL_PROTO"),
    Variable("NCCL_LOCAL_REGISTER", "switch", "register/register.cc", since="2.19.1", default="1"),
    Variable("NCCL_LSA_TEAM_SIZE", "number", "dev_runtime.cc", since="2.29.7", default="auto"),
    Variable("NCCL_MAX_CTAS", "number", "init.cc", since="2.17.1", lowest=1),
    Variable(
        "NCCL_MAX_NCHANNELS", "number", "graph/connect.cc", since="2.5.6", default="auto",
        successor="NCCL_MAX_CTAS", obsolete_since="2.17"
    ),
    Variable(
        "NCCL_MAX_NRINGS", "number", "graph/connect.cc", default="0; 2.5.6: auto", successor="NCCL_MAX_CTAS",
        obsolete_since="2.17"
    ),
    Variable("NCCL_MAX_P2P_NCHANNELS", "number", "graph/paths.cc", since="2.7.3", default="64"),
    Variable("NCCL_MEM_SYNC_DOMAIN", "number", "enqueue.cc", since="2.16.2", default="1"),
    Variable("NCCL_MIN_CTAS", "number", "init.cc", since="2.17.1", lowest=1),
    Variable(
        "NCCL_MIN_NCHANNELS", "number", "graph/connect.cc", since="2.5.6", default="auto",
        successor="NCCL_MIN_CTAS", obsolete_since="2.17"
    ),
    Variable(
        "NCCL_MIN_NRINGS", "number", "graph/connect.cc", default="0; 2.4.7: 1; 2.5.6: auto",
        successor="NCCL_MIN_CTAS", obsolete_since="2.17"
    ),
    Variable("NCCL_MIN_P2P_NCHANNELS", "number", "graph/paths.cc", since="2.7.3", default="1"),
    Variable(
        "NCCL_MLOPART_RDMA_ENABLE", "switch", "register/coll_reg.cc", since="2.30.7", until="2.31.2",
        default="0"
    ),
    Variable(
        "NCCL_MNNVL", "switch", "init.cc", since="2.20.3", until="2.20.5", default="auto",
        successor="NCCL_MNNVL_ENABLE"
    ),
    Variable("NCCL_MNNVL_CLIQUE_ID", "number", "init.cc", since="2.23.4", default="-1"),
    Variable("NCCL_MNNVL_CROSS_CLIQUE", "switch", "init.cc", since="2.30.3", default="0"),
    Variable("NCCL_MNNVL_ENABLE", "switch", "init.cc", since="2.21.5", default="2"),
    Variable("NCCL_MNNVL_RAIL_PER_HOST", "switch", "graph/search.cc", since="2.28.7", default="0"),
    Variable("NCCL_MNNVL_SCATTER_NETS_ENABLE", "switch", "graph/search.cc", since="2.27.5", default="1"),
    Variable("NCCL_MNNVL_UUID", "text", "init.cc", since="2.25.1", default="-1"),
    Variable("NCCL_MULTI_RANK_GPU_ENABLE", "switch", "init.cc", since="2.30.3", default="0"),
    Variable("NCCL_MULTI_SEGMENT_REGISTER", "switch", "transport/generic.cc", since="2.29.2", default="1"),
    Variable(
        "NCCL_NCCL_ALLOC_P2P_NET_LL_BUFFERS", "switch", "init.cc", since="2.14.3", until="2.16.2", default="0",
        successor="NCCL_ALLOC_P2P_NET_LL_BUFFERS"
    ),
    Variable(
        "NCCL_NCHANNELS_PER_NET_PEER", "number", "init.cc", since="2.12.7",
        default="2; 2.20.3: -1; 2.28.3: unset"
    ),
    Variable("NCCL_NO_CACHE", "text", "param/param.cc", since="2.29.7"),
    Variable("NCCL_NTHREADS", "number", "graph/tuning.cc", default="auto", lowest=64, highest=512),
    Variable("NCCL_NVB_DISABLE", "switch", "graph/paths.cc", since="2.9.9", default="0"),
    Variable("NCCL_NVB_PRECONNECT", "switch", "init.cc", since="2.9.9", default="1"),
    Variable(
        "NCCL_NVLINK_UTIL_CENTRIC_SCHED_ENABLE", "switch", "init.cc", since="2.27.3",
        default="0; 2.28.7: unset", lowest=0, highest=1
    ),
    Variable("NCCL_NVLSTREE_MAX_CHUNKSIZE", "number", "transport/nvls.cc", since="2.20.3", default="auto"),
    Variable("NCCL_NVLS_CHUNKSIZE", "number", "transport/nvls.cc", since="2.21.5", default="131072"),
    Variable("NCCL_NVLS_ENABLE", "switch", "transport/nvls.cc", since="2.17.1", default="1; 2.18.1: 2"),
    Variable("NCCL_NVLS_NCHANNELS", "number", "init.cc", since="2.17.1", default="16; 2.25.1: auto; 2.27.3: unset"),
    Variable("NCCL_NVTX_DISABLE", "switch", "init_nvtx.cc", since="2.28.3", default="0"),
    Variable("NCCL_P2P_DIRECT_DISABLE", "switch", "transport/p2p.cc", since="2.12.12", default="0"),
    Variable("NCCL_P2P_DISABLE", "switch", "graph/paths.cc", default="0"),
    Variable("NCCL_P2P_EPOCH_ENABLE", "switch", "enqueue.cc", since="2.29.2", default="1"),
    Variable(
        "NCCL_P2P_LEVEL", "level", "graph/paths.cc", default="auto",
        values="LOC NVL NVB C2C>=2.26 PIX PXB PXN P2C>=2.27 PHB SYS", any_case=False
    ),
    Variable("NCCL_P2P_LL_THRESHOLD", "number", "enqueue.cc", since="2.14.3", default="16384"),
    Variable("NCCL_P2P_MAX_PEERS", "number", "init.cc", since="2.30.3", lowest=1),
    Variable("NCCL_P2P_NET_CHUNKSIZE", "number", "init.cc", since="2.14.3", default="131072"),
    Variable("NCCL_P2P_NVL_CHUNKSIZE", "number", "init.cc", since="2.16.2", default="524288"),
    Variable("NCCL_P2P_PCI_CHUNKSIZE", "number", "init.cc", since="2.16.2", default="131072"),
    Variable("NCCL_P2P_PER_CHANNEL_NET_BW", "number", "graph/paths.cc", since="2.29.2", default="14"),
    Variable("NCCL_P2P_PER_CHANNEL_REG_NET_BW", "number", "libnccl.so.2", since="2.31.2"),
    Variable("NCCL_P2P_READ_ENABLE", "switch", "transport/p2p.cc", since="2.7.3", default="auto"),
    Variable("NCCL_P2P_SCHEDULE_GROUP_SIZE", "number", "init.cc", since="2.28.7", default="8"),
    Variable("NCCL_P2P_USE_CUDA_MEMCPY", "switch", "transport/p2p.cc", since="2.13.4", default="0"),
    Variable("NCCL_PARAM_DUMP_ALL", "switch", "param/param.cc", since="2.30.3", default="0"),
    Variable("NCCL_PAT_ENABLE", "switch", "graph/tuning.cc", since="2.23.4", default="2"),
    Variable("NCCL_PROFILER_PLUGIN", "text", "plugin/profiler.cc", since="2.23.4"),
    Variable("NCCL_PROGRESS_APPENDOP_FREQ", "number", "proxy.cc", since="2.16.5", default="8"),
    Variable("NCCL_PROGRESS_COUNTERS", "switch", "libnccl.so.2", since="2.32.3"),
    Variable("NCCL_PROGRESS_COUNTER_MONITOR_POLL_MS", "number", "libnccl.so.2", since="2.32.3"),
    Variable("NCCL_PROGRESS_COUNTER_MONITOR_STALE_MS", "number", "libnccl.so.2", since="2.32.3"),
    Variable("NCCL_PROGRESS_COUNTER_MONITOR_STALE_WARN_SEC", "number", "libnccl.so.2", since="2.32.3"),
    Variable("NCCL_PROTO", "words", "graph/tuning.cc", since="2.5.6", values="LL LL128 Simple"),
    Variable("NCCL_PROXY_APPEND_BATCH_SIZE", "number", "proxy.cc", since="2.16.2", default="16"),
    Variable("NCCL_PROXY_CPUSET", "text", "proxy.cc", since="2.28.3"),
    Variable("NCCL_PROXY_DUMP_SIGNAL", "number", "proxy.cc", since="2.14.3", default="-1"),
    Variable(
        "NCCL_PROXY_PROFILE", "text", "misc/profiler.cc", since="2.12.7", until="2.22.3",
        successor="NCCL_PROFILER_PLUGIN"
    ),
    Variable("NCCL_RAS_ADDR", "address", "ras/client_support.cc", since="2.24.3"),
    Variable("NCCL_RAS_ENABLE", "switch", "bootstrap.cc", since="2.24.3", default="1"),
    Variable("NCCL_RAS_TIMEOUT_FACTOR", "text", "ras/ras.cc", since="2.24.3", default="1"),
    Variable("NCCL_RINGS", "text", "misc/rings.cc", until="2.4.8", successor="NCCL_GRAPH_FILE"),
    Variable("NCCL_RUNTIME_CONNECT", "switch", "init.cc", since="2.22.3", default="1"),
    Variable("NCCL_RUN_DIAGNOSTICS", "switch", "libnccl.so.2", since="2.31.2"),
    Variable("NCCL_RUN_RAS_DIAGNOSTICS", "switch", "libnccl.so.2", since="2.31.2"),
    Variable("NCCL_SET_CPU_STACK_SIZE", "switch", "init.cc", since="2.28.3", default="1"),
    Variable("NCCL_SET_STACK_SIZE", "switch", "init.cc", since="2.9.6", default="0"),
    Variable("NCCL_SET_THREAD_NAME", "switch", "debug.cc", since="2.12.7", default="0"),
    Variable("NCCL_SHADOW_MEMPOOL_MAX_SIZE", "number", "allocator.cc", since="2.30.7", default="1073741824"),
    Variable("NCCL_SHARED_BUFF_COUNT", "number", "proxy.cc", since="2.8.3", until="2.8.4"),
    Variable("NCCL_SHM_DISABLE", "switch", "transport/shm.cc", default="0"),
    Variable("NCCL_SHM_LOCALITY", "number", "transport/shm.cc", since="2.13.4", default="2", lowest=1, highest=2),
    Variable("NCCL_SHM_MEMCPY_MODE", "number", "transport/shm.cc", since="2.13.4", until="2.30.4", default="1"),
    Variable("NCCL_SHM_USE_CUDA_MEMCPY", "switch", "transport/shm.cc", since="2.13.4", until="2.30.4", default="0"),
    Variable("NCCL_SINGLE_PROC_MEM_REG_ENABLE", "switch", "group.cc", since="2.28.3", default="0"),
    Variable("NCCL_SINGLE_RING_THRESHOLD", "number", "user guide", until="2.2.13"),
    Variable("NCCL_SYM_CE_THRESHOLD", "number", "enqueue.cc", since="2.29.2", default="8388608"),
    Variable("NCCL_SYM_CTAS", "number", "sym_kernels.cc", since="2.27.3", until="2.30.4", default="0"),
    Variable("NCCL_SYM_GIN_KERNELS_ENABLE", "switch", "sym_kernels.cc", since="2.29.7", default="1"),
    Variable("NCCL_SYM_KERNEL", "text", "sym_kernels.cc", since="2.27.3"),
    Variable("NCCL_SYM_NOWIN_ENABLE", "switch", "scheduler/symmetric_sched.cc", since="2.29.2", default="0"),
    Variable("NCCL_SYM_REUSE_SYSMEM_HANDLES", "switch", "dev_runtime.cc", since="2.30.4", default="0"),
    Variable("NCCL_SYM_RS_GIN_CHUNK_SIZE", "number", "sym_kernels.cc", since="2.30.7", default="-1"),
    Variable("NCCL_SYM_TMA_ENABLE", "switch", "sym_kernels.cc", since="2.30.3", default="0"),
    Variable(
        "NCCL_THREAD_THRESHOLD", "number", "init.cc", until="2.4.8", default="auto",
        successor="NCCL_THREAD_THRESHOLDS"
    ),
    Variable("NCCL_THREAD_THRESHOLDS", "text", "graph/tuning.cc", since="2.5.6"),
    Variable("NCCL_TOPO_DUMP_FILE", "path", "init.cc", since="2.6.4"),
    Variable("NCCL_TOPO_DUMP_FILE_RANK", "number", "graph/topo.cc", since="2.6.4", default="0"),
    Variable("NCCL_TOPO_FILE", "path", "graph/topo.cc", since="2.6.4"),
    Variable("NCCL_TOPO_SCATTER_START_NET", "switch", "libnccl.so.2", since="2.31.2", until="2.31.2"),
    Variable("NCCL_TOPO_SPLIT_MLOPART", "switch", "graph/topo.cc", since="2.30.7", default="1"),
    Variable("NCCL_TREE_THRESHOLD", "number", "init.cc", until="2.4.8", default="auto", successor="NCCL_ALGO"),
    Variable("NCCL_TUNER_PLUGIN", "text", "plugin/tuner.cc", since="2.19.1"),
    Variable("NCCL_UNPACK_DOUBLE_NCHANNELS", "switch", "graph/connect.cc", since="2.22.3", default="1"),
    Variable("NCCL_WARN_ENABLE_DEBUG_INFO", "switch", "debug.cc", since="2.19.4", default="0"),
    Variable("NCCL_WIN_ENABLE", "switch", "init.cc", since="2.27.3", default="1"),
    Variable("NCCL_WIN_STRIDE", "number", "dev_runtime.cc", since="2.27.3", default="-1"),
    Variable("NCCL_WORK_ARGS_BYTES", "number", "init.cc", since="2.22.3", default="9223372036854775807"),
    Variable("NCCL_WORK_FIFO_BYTES", "number", "init.cc", since="2.22.3", default="1048576"),
    Variable(
        "NCCL_WORK_FIFO_DEPTH", "number", "init.cc", since="2.13.4", until="2.21.5", default="65536",
        successor="NCCL_WORK_FIFO_BYTES"
    ),
)
# fmt: on
