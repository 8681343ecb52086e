"""What lines about sockets, rendezvous, names and plug-ins mean: topic and the words that say it.

Sources: NCCL 2.14 to 2.32 (misc/socket.cc, bootstrap.cc, net_socket.cc),
aws-ofi-nccl, Gloo (transport/tcp), torch (c10d/socket.cpp, TCPStore.cpp, torch/distributed/elastic), glibc's
strerror and gai_strerror.
"""

from __future__ import annotations

from ncclcheck.logs.patterns.topic import Topic

NETWORK_TOPICS: tuple[Topic, ...] = (
    # NCCL: bootstrap and interfaces
    Topic(
        "no-interface",
        (
            r"(?<!NET/IB : )\bno (?:socket|usable|IP) interface found|NET/Socket ?: no interface found",
            r"No usable listening interface found|no socket interface (?:matching|found)",
            # Gloo: `rp` is the answer to a name, `ifa` an interface
            r"(?<!rp != nullptr\. )Unable to find (?:address|interface) for:? ?(?P<interface>\S+)",
            r"could not find (?:any )?interface (?:named|matching|with name)|ifa != nullptr",
        ),
        at_info=True,
        has_own_cause=True,
    ),
    Topic(
        "interfaces-none",  # no interface but loopback: not even a socket of its address family
        (r"NET/\w{1,12} ?: 0 interfaces found|Socket creation failed ?: Address family not supported",),
        at_info=True,
    ),
    Topic("no-subnet", (r"No interface found in the same subnet as remote address (?P<address>\S+)",)),
    Topic(
        "bad-family",
        (
            r"(?:wrong|invalid|unknown|unsupported) (?:address|socket) family|address family 0\b|family (?:-1|0)\b",
            r"is neither AF_INET",
        ),
    ),
    Topic("already-checked-in", (r"rank (?P<rank>\d+) of (?P<ranks>\d+) ranks has already checked in",)),
    Topic("rank-count", (r"mismatch in (?:rank count|info) from procs?",)),
    Topic("nccl-version", (r"Mismatched NCCL version detected",), at_info=True),
    Topic(
        "bootstrap-truncated",
        (r"Message truncated ?: ?receiv(?:ed|ing) (?P<got>\d+) bytes instead of (?P<want>\d+)",),
    ),
    Topic(
        "wrong-magic",
        (r"(?:wrong|invalid|bad) (?:magic|type)\b(?: (?P<magic>[0-9a-f]{1,16}))?",),
        alarms=False,
        at_info=True,
    ),
    Topic(
        "collective-size",
        (
            r"peer (?P<address>\S+) (?:collective )?message truncated|mismatch in collective sizes",
            r"collective mismatch error|preamble\.length (?:<=|==)|op\.preamble\.(?:length|nbytes)",
        ),
        has_own_cause=True,
    ),
    Topic(
        "closed-by-peer",
        (
            r"Connection closed by (?:remote )?peer:?(?: (?P<address>\S+))?",
            r"Connection reset by peer|Broken pipe|Remote (?:peer|host) closed|connection (?:was )?closed by",
            r"Application timeout caused pair closure|Socket recv failed while polling|proxy call to rank",
        ),
        alarms=False,
        at_info=True,
        has_own_cause=True,
    ),
    # c10d store, torchrun
    Topic(
        "address-in-use",
        (
            r"EADDRINUSE|address already in use|but another process is utilizing it|\bBinding port \d{1,5} failed",
        ),
        alarms=False,
        has_own_cause=True,
    ),
    Topic(
        "bind-elsewhere",
        (
            r"(?:server socket|bind).{0,120}(?:Cannot assign requested address|EADDRNOTAVAIL)|code: -99, name: E",
        ),
        has_own_cause=True,
    ),
    Topic(
        "name-resolution",
        (
            r"gai error: ?-(?!(?:5|6|7|9)\b)\d+|Name or service not known",
            r"Temporary failure in name resolution|rp != nullptr",
            r"No address associated with hostname|getaddrinfo .{0,80}fail|could ?n[o']t resolve host",
            r"gethostbyname\(.{0,255}\) failed|unable to resolve host(?!name to a)",
            r"\bwaiting for \S{3,253} to resolve\b",
            r"nodename nor servname|no such host|Name resolution fail|can't resolve '|server can't find \S",
            r"DNS resolution failed|Domain name not found|NXDOMAIN|Name does not resolve|[Hh]ost ?name lookup fail",
            r"UnknownHostException|unknown host\b|can(?:not|'t| not) resolve (?:host|name|address|node)",
            r"(?:unable|failed) to (?:resolve|look ?up) (?:the )?(?:host(?!name to a)|name|address|node|DNS|IP)",
        ),
        alarms=False,
        has_own_cause=True,
    ),
    Topic("hostname-fallback", (r"hostname of the client socket cannot be retrieved",), alarms=False),
    Topic(
        "loopback-fallback",
        (r"(?:Using the )?loopback address as fallback|Unable to resolve hostname to a \(local\) address",),
        alarms=False,
    ),
    Topic(
        "foreign-service",
        (
            r"Ping failed, invalid value returned|Bad request from (?:peer|client)|unexpected (?:magic|header)|"
            r"tcp_peer_recv_blocking: recv\(\) failed for <unknown>",
        ),
    ),
    Topic(
        "store-wait",
        (
            r"waitForInput: socket .{1,200} timed out after \d{1,10}ms",
            r"wait timeout after \d+ ?ms, keys: ?(?P<keys>\S+)|Socket Timeout\b|store[-> .]*get\(.{0,200}got error",
        ),
    ),
    Topic(
        "store-lost",
        (
            r"recvValue failed|sendBytes failed|TCPStore.{0,40}(?:lost|closed)|connection to the C10d store has failed",
        ),
        alarms=False,
    ),
    Topic("rendezvous", (r"Rendezvous(?:Timeout|Connection|Closed|State|GracefulExit)\w*",)),
    Topic(
        "monitored-barrier",
        (r"failed to pass monitoredBarrier|monitoredBarrier.{0,200}(?P<ranks>ranks? .{0,80})",),
        ends_the_job=True,
    ),
    # plug-ins
    Topic(
        "plugin-provider",
        (
            r"\befa_\d{1,2}: Failed to (?:process command|allocate|create)",  # the kernel's driver of EFA
            r"NET/OFI.{0,120}(?:Couldn't (?:find|open|create|allocate|bind|enable)|"
            r"No eligible|no optimal|Unable to find|fail|not (?:found|supported))",
            (
                r"(?:No eligible |Couldn't find any (?:optimal )?|no (?:usable )?)(?:libfabric )?providers?|"
                r"fi_getinfo.{0,60}(?:fail|No data|error)|can't find suitable provider"
            ),
        ),
        at_info=True,
        has_own_cause=True,
    ),
    Topic(
        "plugin-network",
        (
            r"network (?P<network>.{1,60}?) not found|Failed to initialize any NET plugin",
            r"Failed to initialize NET plugin|external (?:network )?plugin \S+ is unsupported",
        ),
    ),
    Topic(
        "plugin-sharp",
        (
            r"\bSHA?RP\b.{0,120}(?:error|fail|No resource|unable|Cannot)|sharp_\w+.{0,80}(?:fail|error)|sharp_am\b",
        ),
        at_info=True,
    ),
    Topic(
        "plugin-ucx",
        (
            r"ucp_\w+ .{0,60}fail|uct_\w+.{0,60}fail(?!ed to al|\w*\+0x)|HPC-?X.{0,60}(?:mismatch|incompatib|requires)",
        ),
    ),
    Topic(
        "plugin-topology",  # a plug-in's own file
        (r"Setting NCCL_TOPO_FILE environment variable to|NCCL_TOPO_FILE set .{0,40}aws-ofi-nccl",),
        alarms=False,
        at_info=True,
    ),
    Topic(
        "plugin-load",
        (
            r"Failed to find nccl\w*Plugin_v\d+ symbol.{0,40}giving up|"
            r"libnccl-net\S*: (?:\S{1,200}: )?(?:undefined symbol|version `)",
            (
                r"^(?!.{0,300}\b(?:map|register) GPU memory)"
                r".{0,300}(?:libfabric|aws-ofi-nccl|NET/gIB|FasTrak|GPUDirectTCPX).{0,80}"
                r"(?:version.{0,40}(?:mismatch|too old|"
                r"requires)|fail|error)"
            ),
        ),
        alarms=False,
        at_info=True,
    ),
    # MTU and routes
    # 65536 is that of Linux's loopback, which no packet between nodes takes
    Topic("mtu", (r"\b(?:active_)?mtu[\s=:]{1,6}(?!65536)(?P<mtu>\d{3,5})\b",), alarms=False),
    Topic(
        "ib-mtu", (r"\bqpn \d{1,10} mtu (?P<mtu>[1-5])\b",), alarms=False, at_info=True
    ),  # as verbs number it
    Topic(
        "mtu-error",
        (
            (
                r"Message too long|EMSGSIZE|local error: message too long|"
                r"Frag(?:mentation)? needed|mtu (?:mismatch|differs)"
            ),
        ),
    ),
    Topic(
        "path-mtu", (r"\bpath_mtu (?P<path>\d{3,5})\b.{0,60}\bactive_mtu (?P<port>\d{3,5})\b",), alarms=False
    ),
    Topic(
        "hca-chosen",
        (r"\bNCCL_IB_HCA(?:=| set to |[\w ]{0,30} to )\^?=?[\w:]{1,40},[\w:,]{1,400}",),
        alarms=False,
        at_info=True,
    ),
    Topic(
        "route",
        (r"^(?P<subnet>\d+\.\d+\.\d+\.\d+/\d+) dev (?P<device>\S+)(?=.{0,80}src (?P<source>\S+))?",),
        alarms=False,
    ),
    Topic(
        "route-to",  # the answer of `ip route get`
        (
            r"^(?P<to>\d{1,3}(?:\.\d{1,3}){3}) dev (?P<device>\S{1,40}) src (?P<source>\d{1,3}(?:\.\d{1,3}){3})",
        ),
        alarms=False,
    ),
    Topic(
        "reverse-path", (r"rp_filter ?= ?(?P<value>[12])|martian source|reverse path filter",), alarms=False
    ),
    Topic(
        "address-listing",  # of `ip -brief address` and `ip address`
        (
            r"^(?P<device>[A-Za-z][\w.@:-]{1,30}) +(?:UP|UNKNOWN|DOWN) +"
            r"(?P<address>\d{1,3}(?:\.\d{1,3}){3})/(?P<bits>\d{1,2})",
            (
                r"\binet (?P<held>\d{1,3}(?:\.\d{1,3}){3})/(?P<length>\d{1,2}).{0,60}\bscope "
                r"global\b.{0,40}\b(?P<holder>[A-Za-z][\w.-]{1,30})(?:$|\\)"  # -o writes `\` for a new line
            ),
        ),
        alarms=False,
    ),
    Topic(
        "hosts-file",
        (r"^127\.0\.(?:1\.1|0\.1)\s+(?!localhost)(?P<name>[A-Za-z][\w.-]{1,253})",),
        alarms=False,
    ),
    Topic(
        "listens-at-loopback",  # a server to which other nodes are to connect
        (
            r"\b(?:parameter[ _]server|scheduler|tracker|driver|coordinator|rendezvous)\b.{0,60}"
            r"(?:->|\bat\b|\bon\b|address|host|listen\w*|bound to)[ :=]{1,3}(?:tcp://|http://)?127\.0\.[01]\.1\b",
        ),
        alarms=False,
    ),
    Topic(
        "rdzv-endpoint",
        (r"--rdzv[-_]endpoint[ =](?P<address>\S+)|--master[-_]addr[ =](?P<master>\S+)",),
        alarms=False,
    ),
    Topic(
        "store-name",
        (
            (
                r"trying to connect to \((?P<address>[^,()\s]{1,255}), (?P<port>\d+)\)|"
                r"host (?P<host>\S+):(?P<hostport>\d+) - "
                r"(?:retrying|timed out)"
            ),
        ),
        alarms=False,
    ),
)
