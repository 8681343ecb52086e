"""What lines about InfiniBand and RoCE mean: topic and the words that say it.

Sources: NCCL 2.14 to 2.32 (transport/net_ib*, misc/ibvwrap.cc), UCX (uct/ib), perftest, libibverbs (ibv_devinfo,
ibstatus, ibstat), show_gids.
"""

from __future__ import annotations

from ncclcheck.logs.patterns.topic import Topic

RDMA_TOPICS: tuple[Topic, ...] = (
    Topic(
        "ib-completion",
        (
            (
                r"Got completion (?:from peer (?P<address>\S{1,300}) )?with "
                r"(?:status=|error |status )(?:IBV_WC_\w{1,40} ?\()?(?P<status>\d+)"
            ),
        ),
    ),
    Topic(
        "ucx-link-local",
        (
            r"\brmac [0-9a-f:]{17} sgix \d{1,3} dgid fe80:",  # a MAC address: of RoCE
            r"ibv_create_ah\([^)]{0,80}\bdgid=fe80:[^)]{0,200}\)[^:]{0,80} failed:",
        ),
    ),
    Topic(
        "ib-async-event",
        (r"Got (?:non-fatal |fatal )?async (?:error )?event|async (?:fatal|error) event|IBV_EVENT_\w+",),
        at_info=True,
    ),
    Topic(
        "ib-event-fatal",
        (
            (
                r"\bport (?:error|down)|device fatal|catas(?:trophic)? ?error|link (?:down|flap)|"
                r"local (?:catastrophic|cata)"
            ),
        ),
        at_info=True,
    ),
    Topic("ib-modify-qp", (r"ibv_modify_qp failed with (?:error )?(?P<error>[^\n]{1,80})",)),
    Topic(
        "ib-no-memory",
        (
            r"ibv_(?:reg_mr\w*|create_(?:cq|qp)|alloc_pd)\S* failed.{0,60}(?:Cannot allocate memory|ENOMEM|\b12\b)",
            r"(?i:(?:creat|regist|alloc)\w{0,4} (?:\w{1,12} )?(?:qp|cq|mr|pd)\b.{0,60}Cannot allocate memory)",
            r"^ *Error: +Cannot allocate memory \(errno=12\)",  # of Open MPI's OpenFabrics
            r"(?:max locked memory|RLIMIT_MEMLOCK).{0,60}(?:too (?:low|small)|is only|exceed)",
        ),
        at_info=True,
        has_own_cause=True,
    ),
    Topic(
        "ib-register-gpu",
        (
            r"ibv_reg_(?:dmabuf_)?mr\S* failed.{0,60}(?:Bad address|EFAULT|not supported|EINVAL|Invalid argument)",
            r"UCX +ERROR ibv_reg_mr\([^)]{0,120}\) failed: Bad address",  # no address of this process's own memory
        ),
    ),
    Topic("ib-verb", (r"Call to (?P<verb>ibv_\w+) failed",)),
    Topic(
        "ib-roce-version",
        (r"(?:read|open) failed in ncclIbRoceGetVersionNum(?:: ?(?P<error>.{1,60}))?",),
        at_info=True,
    ),
    Topic("ib-incompatible", (r"(?:connect|merge)\w*.{0,40}incompatible devices|mixed local Net device",)),
    Topic(
        "ib-port-down",
        (
            (
                r"(?:^|\W)State: ?(?:Down|Initializing|Init)\b|Physical state: ?(?:Polling|"
                r"Disabled|Sleep|LinkErrorRecovery)"
            ),
            r"\bstate:\s{1,8}\d: (?:DOWN|INIT|Disabled|Polling|Sleep)",  # of ibstatus
            r"\bstate:\s{1,40}PORT_(?:DOWN|INIT)\b",  # of ibv_devinfo
            r"port_state:?\s+PORT_(?:DOWN|INIT)|link_layer.{0,40}DOWN|mlx5_\w+.{0,60}link (?:is )?down",
        ),
        alarms=False,
    ),
    Topic(
        "ib-hardware",
        (
            r"mlx5_core.{0,80}(?:health|assert|fatal|Link down|recover|internal error)|Symbol error|excessive buffer",
        ),
        alarms=False,
    ),
    Topic(
        "ib-active",
        (r"State: ?Active\b.{0,120}InfiniBand|(?:Link layer|link_layer):? ?InfiniBand|LinkUp|PORT_ACTIVE",),
        alarms=False,
    ),
    Topic(
        "no-libibverbs",
        (r"Failed to open libibverbs|libibverbs\.so\S*: cannot open|Could not open libibverbs",),
        alarms=False,
        at_info=True,
    ),
    Topic(
        "no-rdma-driver",
        (
            r"couldn't load driver '?lib(?:mlx[45]|efa|bnxt_re|irdma|erdma|mana|ionic)",
            r"no userspace device-specific driver|libmlx[45]\S*: cannot open",
        ),
        alarms=False,
        at_info=True,
    ),
    Topic(
        "no-rdma-device-files",
        (
            r"/dev/infiniband.{0,80}(?:No such|not found|missing|denied)|uverbs\d*.{0,60}(?:No such|denied)",
            r"cannot allocate mlx5dv_\w+|couldn't stat '/dev/infiniband",
        ),
    ),
    Topic(
        "rdma-hardware",
        (
            r"\bmlx[45]_\w+|InfiniBand controller|ConnectX|/sys/class/infiniband|lspci.{0,60}mellanox|\bIBGDA\b",
        ),
        alarms=False,
    ),
    Topic(
        "gid-listing",  # of show_gids
        (
            r"^\s*\w+\s+\d+\s+(?P<index>\d{1,3})\s+(?P<gid>fe80(?::[0-9a-f]{4}){7})\s+(?P<version>v[12])\b",
            r"^\s*\w+\s+\d+\s+(?P<index>\d{1,3})\s+(?P<gid>(?:0000:){5}ffff(?::[0-9a-f]{4}){2})\s+"
            r"\d[\d.]{6,14}\s+(?P<version>v[12])\b",
        ),
        alarms=False,
    ),
    Topic(
        "gid-chosen",  # by a command or a setting of any program
        (r"(?:--ib-index|GID_INDEX|--?gid[_-]index|\bGID index|sgid_index)[ =:]{1,12}(?P<index>\d{1,3})\b",),
        alarms=False,
    ),
    Topic("link-layer", (r"\bLink (?:type|layer)[ :]{1,12}(?:Ethernet|IB|InfiniBand)\b",), alarms=False),
    Topic(
        "gid-useless",  # all zeros: the port has none at this index; or one of no network, on a port of Ethernet
        (
            r"\bGID(?:\[\d+\])?[:= ]{1,12}(?P<zero>(?:0{1,4}:){7,15}0{1,4})(?![:\da-f])",
            r"\bGID(?:\[\d+\])?[:= ]{1,12}(?P<local>fe:?80:[0-9a-f:]{10,50})",
        ),
        alarms=False,
    ),
    Topic(
        "verbs-failed",  # as programs without a table of their own say it
        (
            r"\bstate to RTR\b.{0,40}fail|Failed to modify QP.{0,40}(?:to RTR)?|ibv_modify_qp.{0,60}(?:fail|error)",
            r"wc->status == IBV_WC_SUCCESS|Work Request Flushed Error|transport retry (?:counter|count) exceeded",
        ),
        alarms=False,
    ),
    Topic(
        "gdr-disabled",
        (r"Direct RDMA Disabled for H|GPUDirect RDMA (?:is )?(?:disabled|not (?:available|supported))",),
        alarms=False,
        at_info=True,
    ),
    Topic(
        "gdr-missing",
        (
            (
                r"nvidia[_-]?peermem.{0,60}(?:-> ?0|not (?:loaded|found)|No such|missing|fail|is missing)|"
                r"nv_peer_mem.{0,40}not"
            ),
            r"^ ?(?:Unable|Failed) to \w{4,10} RDMA \w{4,10}\. ?ERRNO: Bad address",  # perftest, of memory of a GPU
        ),
        alarms=False,
        at_info=True,
    ),
    Topic(
        "rdma-wanted",
        (
            r"Error: network IB not found|NCCL_NET set by environment to IB\b",
            r"NCCL_IB_HCA set (?:by environment )?to \S|NCCL_IB_DISABLE set (?:by environment )?to 0",
        ),
        alarms=False,
        at_info=True,
    ),
    Topic("nccl-hint", (r"\bHINT: (?P<hint>In many cases .{1,200})",), alarms=False, at_info=True),
)
