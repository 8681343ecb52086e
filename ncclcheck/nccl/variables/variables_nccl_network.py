"""The variables of NCCL about sockets, RDMA and network plug-ins."""

from __future__ import annotations

from ncclcheck.nccl.variables.variables_types import Variable

# NCCL's sources from 2.4.2 to 2.30.7 (all 59 tags), and the names in the libraries 2.31.2 and 2.32.3. `since` and
# `until` are the first and the last of these that read the name; no `since`: 2.4.2 or older.
# fmt: off
NCCL_NETWORK: tuple[Variable, ...] = (
    Variable("NCCL_COLLNET_ENABLE", "switch", "init.cc", since="2.6.4", default="0"),
    Variable("NCCL_COLLNET_NODE_THRESHOLD", "number", "init.cc", since="2.9.9", default="2"),
    Variable("NCCL_COMM_ID", "address", "misc/socket.cc"),
    Variable("NCCL_CONNECT_ROUND_MAX_PEERS", "number", "transport.cc", since="2.19.4", default="128"),
    Variable("NCCL_CROSS_NIC", "number", "graph/search.cc", since="2.5.6", default="2"),
    Variable("NCCL_DMABUF_ENABLE", "switch", "init.cc", since="2.13.4", default="1"),
    Variable("NCCL_GDAKI_FORCE_MCST", "switch", "libnccl.so.2", since="2.32.3"),
    Variable(
        "NCCL_GDAKI_USE_RELIABLE_DB", "switch", "transport/net_ib/gdaki/gin_host_gdaki.cc", since="2.29.7",
        default="0"
    ),
    Variable("NCCL_GDRCOPY_ENABLE", "switch", "init.cc", since="2.9.6", default="0"),
    Variable("NCCL_GDRCOPY_FIFO_ENABLE", "switch", "init.cc", since="2.9.6", default="1"),
    Variable("NCCL_GDRCOPY_FLUSH_ENABLE", "switch", "transport/net.cc", since="2.9.6", default="0"),
    Variable("NCCL_GDRCOPY_SYNC_ENABLE", "switch", "transport/net.cc", since="2.12.7", default="1"),
    Variable("NCCL_GDRCOPY_TAIL_ENABLE", "switch", "transport/net.cc", since="2.9.6", until="2.11.4", default="1"),
    Variable("NCCL_GDRCOPY_USE_INTERNAL_DMABUF", "switch", "libnccl.so.2", since="2.31.2"),
    Variable("NCCL_GDR_FLUSH_DISABLE", "switch", "transport/net_ib/connect.cc", default="0"),
    Variable(
        "NCCL_GIN_COUNTER_POOL_SIZE", "number", "gin/gin_host.cc", since="2.28.7", until="2.29.7",
        default="65536; 2.29.7: 524288"
    ),
    Variable("NCCL_GIN_ENABLE", "switch", "gin/gin_host.cc", since="2.28.7", default="1"),
    Variable(
        "NCCL_GIN_ERROR_QUERY_SEC", "number", "transport/net_ib/gdaki/gin_host_gdaki.cc", since="2.28.7",
        default="10"
    ),
    Variable("NCCL_GIN_EXCLUSIVE_CONTEXTS", "number", "dev_runtime.cc", since="2.29.7", until="2.29.7", default="-1"),
    Variable("NCCL_GIN_GDAKI_LAG_AWARE_DISABLE", "switch", "libnccl.so.2", since="2.32.3"),
    Variable(
        "NCCL_GIN_GDAKI_MAX_DEST_RD_ATOMIC", "number", "transport/net_ib/gdaki/gin_host_gdaki.cc",
        since="2.30.3", default="auto"
    ),
    Variable(
        "NCCL_GIN_GDAKI_MAX_QP_RD_ATOMIC", "number", "transport/net_ib/gdaki/gin_host_gdaki.cc",
        since="2.30.3", default="auto"
    ),
    Variable(
        "NCCL_GIN_GDAKI_NIC_HANDLER", "number", "transport/net_ib/gdaki/gin_host_gdaki.cc", since="2.28.7",
        default="0"
    ),
    Variable(
        "NCCL_GIN_GDAKI_QP_DEPTH", "number", "transport/net_ib/gdaki/gin_host_gdaki.cc", since="2.28.7",
        default="128"
    ),
    Variable("NCCL_GIN_IB_OOO_OPT", "switch", "libnccl.so.2", since="2.31.2"),
    Variable(
        "NCCL_GIN_IB_TC", "number", "transport/net_ib/gin.cc", since="2.30.7", default="-1", lowest=-1,
        highest=255
    ),
    Variable("NCCL_GIN_NCONNECTIONS", "number", "gin/gin_host.cc", since="2.29.7", default="auto"),
    Variable(
        "NCCL_GIN_NCONTEXTS", "number", "gin/gin_host.cc", since="2.28.7", until="2.29.7",
        default="4; 2.29.7: -1"
    ),
    Variable("NCCL_GIN_PLUGIN", "text", "plugin/gin.cc", since="2.29.7"),
    Variable("NCCL_GIN_PLUGIN_REF_COUNT", "number", "plugin/gin.cc", since="2.29.7", default="0"),
    Variable("NCCL_GIN_PROXY_NTHREADS", "number", "libnccl.so.2", since="2.31.2"),
    Variable("NCCL_GIN_PROXY_POLL_BATCH", "number", "libnccl.so.2", since="2.31.2"),
    Variable("NCCL_GIN_PROXY_QUEUE_SIZE", "number", "gin/gin_host_proxy.cc", since="2.28.7", default="-1"),
    Variable(
        "NCCL_GIN_SIGNAL_POOL_SIZE", "number", "gin/gin_host.cc", since="2.28.7", until="2.29.7",
        default="65536; 2.29.7: 524288"
    ),
    Variable("NCCL_GIN_TYPE", "number", "transport/net_ib/gin.cc", since="2.28.7", default="-1"),
    Variable("NCCL_IBVERBS_LIB", "text", "misc/ibvsymbols.cc", since="2.30.3"),
    Variable("NCCL_IB_ADAPTIVE_ROUTING", "switch", "transport/net_ib/init.cc", since="2.16.2", default="auto"),
    Variable(
        "NCCL_IB_ADDR_FAMILY", "word", "transport/net_ib/connect.cc", since="2.21.5",
        values="AF_INET AF_INET6", any_case=False
    ),
    Variable("NCCL_IB_ADDR_RANGE", "range", "transport/net_ib/connect.cc", since="2.21.5"),
    Variable(
        "NCCL_IB_AR_THRESHOLD", "number", "transport/net_ib/p2p.cc", since="2.6.4",
        default="8192; 2.30.3: auto"
    ),
    Variable("NCCL_IB_CUDA_SUPPORT", "switch", "user guide", until="2.3.7"),
    Variable("NCCL_IB_DATA_DIRECT", "switch", "transport/net_ib/init.cc", since="2.27.3", default="1"),
    Variable("NCCL_IB_DEVICE_PCI_ORDER", "switch", "transport/net_ib/init.cc", since="2.29.7", default="1"),
    Variable("NCCL_IB_DISABLE", "switch", "transport/net_ib/init.cc", default="0"),
    Variable("NCCL_IB_ECE_ENABLE", "switch", "transport/net_ib/connect.cc", since="2.23.4", default="1"),
    Variable("NCCL_IB_EVENT_BASED_LB", "switch", "libnccl.so.2", since="2.31.2"),
    Variable("NCCL_IB_EVENT_BASED_LB_REMOTE", "switch", "libnccl.so.2", since="2.31.2"),
    Variable(
        "NCCL_IB_FIFO_TC", "number", "transport/net_ib/connect.cc", since="2.22.3", default="0; 2.24.3: -1",
        lowest=-1, highest=255
    ),
    Variable("NCCL_IB_GDR_LEVEL", "level", "user guide", until="2.3.7", successor="NCCL_NET_GDR_LEVEL"),
    Variable("NCCL_IB_GID_INDEX", "number", "transport/net_ib/connect.cc", default="0; 2.21.5: -1", lowest=-1),
    Variable("NCCL_IB_HCA", "interfaces", "transport/net_ib/init.cc"),
    Variable("NCCL_IB_MERGE_NICS", "switch", "transport/net_ib/init.cc", since="2.20.3", default="1"),
    Variable("NCCL_IB_MERGE_VFS", "switch", "transport/net_ib/init.cc", since="2.18.1", default="1"),
    Variable("NCCL_IB_MQP_RETRY_ALL", "switch", "misc/ibvwrap.cc", since="2.24.3", default="0"),
    Variable("NCCL_IB_MQP_RETRY_CNT", "number", "misc/ibvwrap.cc", since="2.24.3", default="34"),
    Variable("NCCL_IB_MQP_RETRY_SLEEP_MSEC", "number", "misc/ibvwrap.cc", since="2.24.3", default="100"),
    Variable("NCCL_IB_OOO_RQ", "switch", "transport/net_ib/init.cc", since="2.30.3", default="0"),
    Variable("NCCL_IB_PCI_RELAXED_ORDERING", "switch", "transport/net_ib/init.cc", since="2.12.7", default="2"),
    Variable(
        "NCCL_IB_PKEY", "number", "transport/net_ib/connect.cc", since="2.8.3", default="0", lowest=0,
        highest=65535
    ),
    Variable("NCCL_IB_PKEY_VALUE", "text", "libnccl.so.2", since="2.31.2"),
    Variable(
        "NCCL_IB_PREPOST_RECEIVE_WORK_REQUESTS", "switch", "transport/net_ib/common.cc", since="2.29.7",
        default="0; 2.30.3: auto"
    ),
    Variable(
        "NCCL_IB_QPS_PER_CONNECTION", "number", "transport/net_ib/connect.cc", since="2.10.3", default="1",
        lowest=1, highest=128
    ),
    Variable("NCCL_IB_QUERY_PORT_SPEED", "switch", "misc/ibvwrap.cc", since="2.30.7", default="1"),
    Variable("NCCL_IB_RAIL_POLICY", "text", "libnccl.so.2", since="2.32.3"),
    Variable(
        "NCCL_IB_RECEIVER_SIDE_MATCHING_SCHEME", "number", "transport/net_ib/p2p.cc", since="2.29.7",
        default="0; 2.30.3: auto"
    ),
    Variable(
        "NCCL_IB_RESILIENCY_PORT_FAILOVER", "switch", "transport/net_ib/p2p_resiliency.cc", since="2.29.7",
        default="0"
    ),
    Variable(
        "NCCL_IB_RESILIENCY_PORT_FAILOVER_MAX_ATTEMPTS", "number", "transport/net_ib/p2p_resiliency.cc",
        since="2.29.7", default="1"
    ),
    Variable(
        "NCCL_IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY", "number", "transport/net_ib/p2p_resiliency.cc",
        since="2.29.7", default="10"
    ),
    Variable(
        "NCCL_IB_RESILIENCY_PORT_RECOVERY", "switch", "transport/net_ib/p2p_resiliency_recovery.cc",
        since="2.30.3", default="0"
    ),
    Variable(
        "NCCL_IB_RESILIENCY_PORT_RECOVERY_ACK_TIMEOUT", "number",
        "transport/net_ib/p2p_resiliency_recovery.cc", since="2.30.3", default="5000"
    ),
    Variable(
        "NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_INTERVAL", "number",
        "transport/net_ib/p2p_resiliency_recovery.cc", since="2.30.3", default="500"
    ),
    Variable(
        "NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_SIZE", "number",
        "transport/net_ib/p2p_resiliency_recovery.cc", since="2.30.3", default="5"
    ),
    Variable(
        "NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_SEQUENCE_SIZE", "number",
        "transport/net_ib/p2p_resiliency_recovery.cc", since="2.30.3", default="5"
    ),
    Variable(
        "NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_TIMEOUT", "number",
        "transport/net_ib/p2p_resiliency_recovery.cc", since="2.30.3", default="4000"
    ),
    Variable(
        "NCCL_IB_RESILIENCY_PORT_RECOVERY_ATTEMPTS_MAX", "number",
        "transport/net_ib/p2p_resiliency_recovery.cc", since="2.30.3", default="5"
    ),
    Variable(
        "NCCL_IB_RESILIENCY_PORT_RECOVERY_START_DELAY", "number",
        "transport/net_ib/p2p_resiliency_recovery.cc", since="2.30.3", default="200"
    ),
    Variable("NCCL_IB_RETRY_CNT", "number", "transport/net_ib/connect.cc", default="7", lowest=0, highest=7),
    Variable("NCCL_IB_RETURN_ASYNC_EVENTS", "switch", "transport/net_ib/common.cc", since="2.23.4", default="1"),
    Variable(
        "NCCL_IB_ROCE_VERSION_NUM", "number", "transport/net_ib/connect.cc", since="2.21.5", default="2",
        lowest=1, highest=2
    ),
    Variable("NCCL_IB_ROUTABLE_FLID_GID_INDEX", "number", "transport/net_ib/connect.cc", since="2.22.3", default="1"),
    Variable("NCCL_IB_SL", "number", "transport/net_ib/connect.cc", default="0; 2.26.2: -1", lowest=-1, highest=15),
    Variable("NCCL_IB_SORT_MERGE_NICS", "switch", "libnccl.so.2", since="2.32.3"),
    Variable(
        "NCCL_IB_SPLIT_DATA_ON_QPS", "switch", "transport/net_ib/common.cc", since="2.18.1",
        default="1; 2.20.3: 0"
    ),
    Variable("NCCL_IB_SUBNET_AWARE_ROUTING", "switch", "transport/net_ib/connect.cc", since="2.30.7", default="0"),
    Variable(
        "NCCL_IB_SUBNET_PREFIX_LEN", "number", "transport/net_ib/connect.cc", since="2.30.7", default="24",
        lowest=1, highest=32
    ),
    Variable("NCCL_IB_TC", "number", "transport/net_ib/connect.cc", default="0; 2.26.2: -1", lowest=-1, highest=255),
    Variable(
        "NCCL_IB_TIMEOUT", "number", "transport/net_ib/connect.cc", default="14; 2.14.3: 18; 2.23.4: 20",
        lowest=0, highest=31
    ),
    Variable("NCCL_IB_USE_INLINE", "switch", "transport/net_ib/connect.cc", since="2.8.3", default="0"),
    Variable("NCCL_IB_VR_RAILS_PER_SOCKET", "number", "libnccl.so.2", since="2.32.3"),
    Variable("NCCL_IB_VR_SOCKET_COUNT", "number", "libnccl.so.2", since="2.32.3"),
    Variable("NCCL_IB_WARN_RAIL_LOCAL", "switch", "transport/net_ib/connect.cc", since="2.24.3", default="0"),
    Variable("NCCL_IB_WQE_LATENCY_REPORT", "switch", "libnccl.so.2", since="2.31.2"),
    Variable("NCCL_IB_WQE_LATENCY_THRESHOLD_NS", "number", "libnccl.so.2", since="2.31.2"),
    Variable("NCCL_IGNORE_COLLNET_MISMATCH", "switch", "init.cc", since="2.30.3", default="0"),
    Variable("NCCL_IGNORE_NET_MISMATCH", "switch", "init.cc", since="2.30.3", default="1"),
    Variable("NCCL_NET", "text", "init.cc", since="2.10.3"),
    Variable("NCCL_NETDEVS_POLICY", "text", "graph/topo.cc", since="2.28.3"),
    Variable("NCCL_NET_DISABLE_INTRA", "switch", "graph/paths.cc", since="2.12.7", default="auto; 2.12.10: 0"),
    Variable("NCCL_NET_FORCE_FLUSH", "switch", "graph/paths.cc", since="2.15.1", default="1; 2.19.1: 0"),
    Variable("NCCL_NET_FORCE_MERGE", "text", "graph/topo.cc", since="2.24.3"),
    Variable("NCCL_NET_GDR_C2C", "switch", "graph/paths.cc", since="2.26.2", default="0; 2.27.3: 1"),
    Variable(
        "NCCL_NET_GDR_LEVEL", "level", "graph/paths.cc", default="PHB",
        values="LOC NVL NVB C2C>=2.26 PIX PXB PXN P2C>=2.27 PHB SYS", any_case=False
    ),
    Variable("NCCL_NET_GDR_MLOPART", "switch", "graph/paths.cc", since="2.30.7", until="2.31.2", default="0"),
    Variable("NCCL_NET_GDR_READ", "switch", "graph/paths.cc", default="auto"),
    Variable(
        "NCCL_NET_MERGE_LEVEL", "word", "graph/topo.cc", since="2.24.3",
        values="LOC PORT PIX PXB P2C>=2.27 PXN PHB SYS", any_case=False
    ),
    Variable("NCCL_NET_MERGE_POLICY", "word", "graph/topo.cc", since="2.30.7", values="ALL RAIL"),
    Variable("NCCL_NET_OPTIONAL_RECV_COMPLETION", "switch", "transport/net.cc", since="2.24.3", default="1"),
    Variable("NCCL_NET_OVERHEAD", "number", "graph/tuning.cc", since="2.18.1", default="auto"),
    Variable("NCCL_NET_PLUGIN", "text", "plugin/net.cc", since="2.11.4"),
    Variable("NCCL_NET_PLUGIN_REF_COUNT", "number", "plugin/net.cc", since="2.26.2", default="1; 2.28.3: 0"),
    Variable("NCCL_NET_SHARED_BUFFERS", "switch", "transport/net.cc", since="2.8.3", default="auto"),
    Variable("NCCL_NET_SHARED_COMMS", "switch", "transport/net.cc", since="2.12.7", default="1"),
    Variable("NCCL_NSOCKS_PERTHREAD", "number", "transport/net_socket.cc", since="2.4.8", default="auto"),
    Variable("NCCL_NUM_RMA_CTX", "number", "init.cc", since="2.29.2"),
    Variable("NCCL_NUM_RMA_INT_CTX", "number", "libnccl.so.2", since="2.31.2"),
    Variable("NCCL_OOB_NET_ENABLE", "switch", "bootstrap.cc", since="2.23.4", default="0"),
    Variable("NCCL_OOB_NET_IFNAME", "interfaces", "bootstrap.cc", since="2.23.4"),
    Variable("NCCL_P2P_PXN_LEVEL", "number", "graph/search.cc", since="2.12.7", default="2"),
    Variable("NCCL_PXN_C2C", "switch", "graph/paths.cc", since="2.27.3", default="0; 2.28.3: 1"),
    Variable("NCCL_PXN_DISABLE", "switch", "graph/paths.cc", since="2.12.7", default="0"),
    Variable("NCCL_REPORT_CONNECT_PROGRESS", "switch", "transport.cc", since="2.19.4", default="0"),
    Variable("NCCL_RMA_DISABLE", "switch", "dev_runtime.cc", since="2.30.7", default="0"),
    Variable("NCCL_RMA_EAGER_INIT", "switch", "libnccl.so.2", since="2.31.2"),
    Variable("NCCL_RMA_IB_WR_BATCHSIZE", "number", "libnccl.so.2", since="2.32.3"),
    Variable("NCCL_RMA_MULTI_CTX_THRESHOLD", "number", "libnccl.so.2", since="2.31.2"),
    Variable("NCCL_RMA_PLUGIN", "text", "plugin/rma.cc", since="2.30.7"),
    Variable("NCCL_RMA_PLUGIN_REF_COUNT", "number", "plugin/rma.cc", since="2.30.7", default="0"),
    Variable("NCCL_RMA_PROXY_DUMP_SIGNAL", "number", "rma/rma_proxy.cc", since="2.29.2", default="-1"),
    Variable("NCCL_RMA_PROXY_QUEUE_SIZE", "number", "rma/rma_proxy.cc", since="2.29.2", default="-1"),
    Variable("NCCL_SOCKET_FAMILY", "word", "misc/socket.cc", values="AF_INET AF_INET6", any_case=False),
    Variable("NCCL_SOCKET_IFNAME", "interfaces", "misc/socket.cc"),
    Variable("NCCL_SOCKET_INLINE", "number", "transport/net_socket.cc", since="2.27.3", default="128"),
    Variable("NCCL_SOCKET_MAGIC", "text", "misc/socket.cc", since="2.30.7"),
    Variable("NCCL_SOCKET_MIN_TASKSIZE", "number", "transport/net_socket.cc", since="2.27.3", default="65536"),
    Variable("NCCL_SOCKET_NTHREADS", "number", "transport/net_socket.cc", since="2.4.8", default="auto", highest=16),
    Variable("NCCL_SOCKET_POLL_TIMEOUT_MSEC", "number", "misc/socket.cc", since="2.29.2", default="0"),
    Variable("NCCL_SOCKET_RCVBUF", "number", "misc/socket.cc", since="2.27.3", default="-1"),
    Variable("NCCL_SOCKET_RETRY_CNT", "number", "misc/socket.cc", since="2.24.3", default="34"),
    Variable("NCCL_SOCKET_RETRY_SLEEP_MSEC", "number", "misc/socket.cc", since="2.24.3", default="100"),
    Variable("NCCL_SOCKET_SNDBUF", "number", "misc/socket.cc", since="2.27.3", default="-1"),
    Variable("NCCL_UID_STAGGER_RATE", "number", "bootstrap.cc", since="2.23.4", default="7000"),
    Variable("NCCL_UID_STAGGER_THRESHOLD", "number", "bootstrap.cc", since="2.23.4", default="256"),
)
# fmt: on
