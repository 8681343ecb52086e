"""What lines of schedulers, Kubernetes, Ray and Horovod mean: how a job ended, or could not start.

Sources: slurmstepd, kubelet events, Ray's core worker, Horovod's stall inspector, torch's heartbeat monitor, XLA.
"""

from __future__ import annotations

from ncclcheck.logs.lines.prompts import AT_HOST, BRACKETED, ENVIRONMENT, SIGNS
from ncclcheck.logs.patterns.topic import Topic

_WIDE = r"(?:\s*(?:\d{1,3}(?:\.\d{1,3}){3}|<none>) +(?P<node>[a-z0-9][a-z0-9.-]{1,252})(?:\s|$))?"  # kubectl -o wide

PLATFORM_TOPICS: tuple[Topic, ...] = (
    Topic(
        "scheduler-end",
        (
            r"CANCELLED AT .{0,40}DUE TO (?P<why>TIME LIMIT|PREEMPTION|NODE FAILURE|JOB REQUEUE)",
            r"\bTERM_(?P<why>RUNLIMIT|OWNER|PREEMPT\w*|ADMIN|FORCE_ADMIN|REQUEUE_\w+)|PBS: job killed: walltime",
            r"(?P<why>[Nn]ode failure) on (?P<node>[\w.-]{1,253})",
            r"\bCluster (?P<why>preempted)|[Ss]pot instance terminated",
            r"(?:was|is|been|got|being) (?P<why>preempted|evicted by the scheduler|reclaimed)\b",
            r"(?P<why>time limit exhausted|job requeued|(?:Spot|spot) (?:instance )?(?:interruption|reclaim)\w*)",
        ),
        has_own_cause=True,
        ends_the_job=True,
    ),
    # The node of the actor that died (Ray python/ray/exceptions.py, ActorDiedError)
    Topic("actor-ip", (r"^\s{0,8}ip: (?P<node>\d{1,3}(?:\.\d{1,3}){3})\s*$",), alarms=False),
    Topic(
        "succeeded",  # said by the launcher or scheduler, which sees all workers end
        (
            r"\b(?:Job|Workload|Workflow|Trial) '?[\w.-]{1,80}'? (?:succeeded|completed successfully)\b",
            r"Local worker group finished \(SUCCEEDED\)",
            r"worker group successfully finished|\bJob completed successfully",
            (
                r"\b(?:job|process|script|run|step)\b.{0,60}\b(?:finished|completed|exited|done)\b.{0,40}"
                r"\b(?:status|code):? 0\b"
            ),
            r"^exit (?:code|status):? 0$|\brecord state: \S{1,80} = SUCCESS$",
            r"=== Run \(ID '\w{1,64}'\) succeeded ===",  # of MLflow, which started the program
            r"\b(?:state|phase|status)[\"']?[:=] ?[\"']?(?:Succeeded|COMPLETED)\b",
        ),
        alarms=False,
    ),
    Topic(
        "previous-attempt", (r"\bkubectl (?:-n \S{1,63} )?logs .{0,200}(?:--previous| -p\b)",), alarms=False
    ),
    Topic(
        "workaround",
        (
            r"^(?:[^#$>\n]{0,80}[$#>]|\u279c {1,2}) .{0,200}\b(?P<setting>"
            r"NCCL_\w{1,40}_DISABLE=1\b|NCCL_P2P_LEVEL=LOC\b|"
            r"NCCL_NVLS_ENABLE=0\b|btl_tcp_if_include[ =]\S{1,80}|"
            r"NCCL_IB_(?:HCA|GID_INDEX)=\S{1,200}|LD_(?:LIBRARY_PATH|PRELOAD)=\S{0,80}nccl)",
        ),
        alarms=False,
    ),
    Topic(
        "local-hop",  # a channel of NCCL 2.3 and older within a node
        (
            r"\bINFO Ring \d{1,3} : (?P<a>\d{1,5})\[(?P<b>\d{1,2})\] -> (?P<c>\d{1,5})\[(?P<d>\d{1,2})\] via "
            r"(?:P2P|SHM|direct shared)",
        ),
        alarms=False,
        at_info=True,
    ),
    Topic(
        "told-size", (r"\b(?:using |dist_)world[ _]size[:=] ?(?P<ranks>\d{1,6})\b",), alarms=False
    ),  # of Megatron
    Topic(
        "rendezvous-result",  # of torchrun: what it told each node of where the store is, and of how many nodes
        (r"^\s*master_addr=(?P<address>\S{1,253})$", r"^\s*group_world_size=(?P<nodes>\d{1,6})$"),
        alarms=False,
    ),
    Topic(
        "rendezvous-endpoint",  # of torchrun's own list of what it was started with
        (r"\brdzv_endpoint {1,20}: (?P<address>[\w.-]{1,253}):(?P<port>\d{1,5})$",),
        alarms=False,
    ),
    Topic(
        "job-row",  # of sacct, or of `kubectl get pytorchjob`
        (
            (
                r"^\s*(?P<slurm>\d{1,12})(?P<part>(?:[_+]\d{1,6})?(?:\.(?:\d{1,6}|ba\w*|ex\w*|in\w*))?)\+?[ |]"
                r"(?:.{0,200}?[ |])?(?P<ended>COMPLETED(?=[ |]{1,200}0:0(?![\d:]))|FAILED|NODE_FAIL|TIMEOUT|CANCELLED|"
                r"BOOT_FAIL|DEADLINE|PREEMPTED|OUT_OF_ME\w*|RUNNING|PENDING|COMPLETING|REQUEUED|SUSPENDED|"
                r"RESIZING)(?:[ |+]|$)"
            ),
            r"^(?P<job>[a-z0-9][\w.-]{1,80}) {2,60}(?P<state>Succeeded|Failed|Running|Created|Pending|"
            r"Restarting|Suspended|Terminating|Unknown) {2,60}(?:\d{1,5}[smhd]){1,3}\s*$",
        ),
        alarms=False,
    ),
    Topic(
        "pod-row",  # of `kubectl get pods`
        (
            r"^(?:[a-z0-9-]{1,63} +)?(?P<pod>[a-z0-9][a-z0-9.-]{2,252}) +(?P<ready>\d{1,3}/\d{1,3}) +"
            r"(?P<state>Completed|Succeeded|Running|Pending|ContainerCreating|PodInitializing|Terminating|"
            r"Init:\S{1,40}) +"
            r"(?P<restarts>\d{1,6})(?: \(\w{1,12} ago\))? +(?:\d{1,5}[smhdy]){1,3}(?:\s|$)"
            rf"{_WIDE}",
            r"^(?:[a-z0-9-]{1,63} +)?(?P<pod>[a-z0-9][a-z0-9.-]{2,252}) +(?P<ready>\d{1,3}/\d{1,3}) +"
            r"(?P<state>Error|Failed|Evicted|Unknown|NotReady|OOMKilled|CrashLoopBackOff|NodeLost|ErrImagePull|StartError|"
            r"ImagePullBackOff|ContainerStatusUnknown|Unexpected\w{1,30}|\w{1,30}(?:Config|Container)Error) +"
            r"(?P<restarts>\d{1,6})(?: \(\w{1,12} ago\))? +(?:\d{1,5}[smhdy]){1,3}(?:\s|$)"
            rf"{_WIDE}",
        ),
        alarms=False,
    ),
    Topic(
        "pod-running",
        (r"^(?:[a-z0-9-]{1,63} +)?(?P<pod>[a-z0-9][a-z0-9.-]{2,252}) +\d{1,3}/\d{1,3} +Running\b",),
        alarms=False,
    ),
    Topic(
        "pod-pending",
        (r"^(?:[a-z0-9-]{1,63} +)?(?P<pod>[a-z0-9][a-z0-9.-]{2,252}) +0/\d{1,3} +Pending\b",),
        alarms=False,
    ),
    Topic(
        "pod-node",  # of `kubectl describe pod`
        (r"^Node: {2,40}(?P<node>[\w.-]{1,253})/[\d.]{7,15}\s*$",),
        alarms=False,
    ),
    Topic(
        "workers-again",  # of torchrun
        (r"\bwill restart worker group|^\s*restart_count=[1-9]",),
        alarms=False,
    ),
    Topic(
        "endpoint-not-given",  # torchrun with c10d does not read --master_addr
        (
            r"\b(?:torchrun|torch\.distributed\.run)\b(?!.{0,2000}(?:rdzv[-_]endpoint|\\\s*$))"
            r"(?=.{0,2000}--master[-_]addr).{0,2000}--rdzv[-_]backend[= ]c10d",
        ),
        alarms=False,
    ),
    Topic(
        "init-method",  # where a worker was told to look for the store
        (
            r"\b(?:(?:distributed_)?init_method ?[=:] ?['\"]?|rank[ :=]{1,2}\d{1,6}\b[^\"']{0,40}?)"
            r"tcp://(?P<address>[\w.-]{1,253}):(?P<port>\d{1,5})",
        ),
        alarms=False,
    ),
    Topic(
        "module-asked",  # a person looks for the module that lets adapters read GPU memory
        (r"\b(?:lsmod|modinfo|modprobe)\b.{0,60}\b(?:nv_?peer|nvidia[_-]peer|peermem)",),
        alarms=False,
    ),
    Topic(
        "direct-gpu",  # in the table of nccl-tests: a kind that adapters can read from
        (r"^# +Rank .{0,120}\[0x[0-9a-f]{1,4}\] .{0,40}(?:SXM|HBM|\bG?[BH]\d00\b|\b[AVP]\d00\b)",),
        alarms=False,
    ),
    Topic("bandwidth-measured", (r"# Avg bus bandwidth {1,10}: \d",), alarms=False),
    Topic(
        "launcher-address",  # that DeepSpeed's launcher takes for the first node's, of `hostname -I`
        (r"\bUsing IP address of (?P<address>[\w.:-]{2,253}) for node\b",),
        alarms=False,
    ),
    Topic(
        "master-address",
        (r"\bMASTER_ADDR[=: ]{1,3}(?P<address>[\w.-]{1,253})",),
        alarms=False,
    ),
    Topic(
        "first-node",
        (r"\bmachine_rank[:= ]{1,3}0\b|--(?:node[-_]rank|machine[-_]rank)[= ]0\b",),
        alarms=False,
    ),
    Topic(
        "cluster-at-loopback",  # of TensorFlow, of several processes
        (
            r"TF_CONFIG\b.{0,20}cluster.{0,200}\b(?:localhost|127\.0\.0\.1):\d.{0,200}\b(?:localhost|127\.0\.0\.1):\d",
        ),
        alarms=False,
    ),
    Topic(
        "mpi-startup", (r"\bMPI startup\(\): (?P<rank>\d{1,6}) {2,12}\d{1,8} ",), alarms=False
    ),  # of Intel MPI
    Topic(
        "world-of-one",  # of a program that prints it
        (r"^(?:num_workers|world[_ ]size|size|hvd\.size\(\)) ?[=:] ?1$",),
        alarms=False,
    ),
    Topic(
        "told-master",
        (r"\bmain[-_]process[-_]ip[:= ]{1,3}['\"]?(?P<address>[\w.:-]{2,253})",),
        alarms=False,
    ),
    Topic(
        "launched",  # by a person, at the prompt of a shell
        (
            r"^(?:[^#$>]{0,120}[#$>]|\+|\u279c ) .{0,200}\b(?:mpirun|mpiexec|prterun|srun|torchrun|deepspeed|"
            r"accelerate launch|horovodrun|jsrun|\w{3,20}_perf|python[\d.]{0,4} )",
        ),
        alarms=False,
    ),
    Topic(
        "inspected",  # by a person, at the prompt of a shell: who looks at a machine has a question
        (
            rf"^{ENVIRONMENT}(?:{BRACKETED}{SIGNS}|{AT_HOST}{SIGNS}|"
            r"[\w.-]{2,63}[#$]|[$>]) (?:sudo )?(?:\S{0,40}/)?(?:dmesg|lsmod|modinfo|modprobe|ibstat(?:us)?|"
            r"ibv_\w{3,20}|"
            r"ibdev2netdev|iblinkinfo|show_gids|ifconfig|ethtool|nvidia-smi|py-spy|gdb|strace|"
            r"ping|tracepath|traceroute|sar|iftop|nload|dstat|"
            r"telnet|tcpdump|iptables|nft|ufw|firewall-cmd|getent|nslookup|dig|lspci|journalctl|netstat|lsof|ulimit|"
            r"ip (?:-\S{1,8} ){0,3}(?:addr|address|link|route|neigh)|(?:grep|cat) [^|\n]{0,80}/(?:etc|proc|sys)/\S*|"
            r"free|top|ps (?:aux|-e\w{0,3})|"
            r"numactl|mlxlink|mlxconfig|perfquery|dcgmi|ipcs|iperf3?|ib_\w{2,10}_(?:bw|lat)|"
            r"kubectl (?:-n \S{1,63} )?describe)"
            r"(?:\s|$)",
        ),
        alarms=False,
    ),
    Topic(
        "coordinator-at",  # where a process of the job listens for the others
        (
            r"\b(?:binding|bound|listening|published|starting|started)\b.{0,40}\b(?:coordinator|endpoint|store|master|"
            r"rendezvous)\b.{0,20}?(?P<address>\d{1,3}(?:\.\d{1,3}){3}):(?P<port>\d{2,5})\b",
        ),
        alarms=False,
    ),
    # Kubernetes
    Topic(
        "mesh",
        (
            r"\b(?:istio|envoy|linkerd)\b|upstream connect error|PassthroughCluster|BlackHoleCluster|upstream_reset|"
            r"filter_chain_not_found|accepted a connection from \[?(?:::ffff:)?127\.0\.0\.6\b",
        ),
        alarms=False,
    ),
    Topic(
        "k8s-policy",
        (r"NetworkPolicy|network policy.{0,60}(?:den|block|drop)|CoreDNS|kube-dns",),
        alarms=False,
    ),
    Topic(
        "kubernetes",
        (
            r"\bkubectl\b|\bkubelet\b|\bkube-system\b|\b(?:pytorch|mpi|vc|ray)job\b|kubeflow\.org|\bkubernetes\b",
        ),
        alarms=False,
    ),
    Topic("conf-shown", (r"\b(?:cat|less|head|more|grep) .{0,60}nccl\.conf\b",), alarms=False),
    Topic(
        "remedy",  # what helped, in the words of who tried it
        (
            (
                r"(?:\b(?:with|without|set|setting|export|after|using|adding|by)\b|-x ).{0,40}\b(?:NCCL|GLOO)_\w{3,40}="
                r"\S{1,40}.{0,60}\b(?:works|worked|fine|(?<!not )ok|solve[sd]|fixe[sd]|normally|pass(?:es|ed)|"
                r"no (?:more )?(?:hang|error)s?|succeed(?:s|ed)|helps|helped|complete[sd]|goes through|runs)\b"
            ),
            (
                r"\b(?:(?:down|up)grad|updat|switch|revert)\w{1,4} .{0,30}\b(?:NCCL|driver|torch|PyTorch|CUDA)\b.{0,40}"
                r"\b(?:works|worked|fixe[sd]|solve[sd]|helps|helped|fine|goes away|gone)\b"
            ),
            (
                r"\b(?:solved|fixed|resolved|work(?:s|ed|ing)|helps|helped|goes away)\b.{0,60}"
                r"\b(?:NCCL|GLOO)_\w{3,40}=\S{1,40}"
            ),
        ),
        alarms=False,
    ),
    Topic(
        "rank-beyond",  # a rank that the world has not
        (
            r"[Ii]nvalid rank requested ?: ?(?P<rank>\d{1,6})/(?P<ranks>\d{1,6})",
            r"GLOBAL_RANK: (?P<global>\d{1,6}), MEMBER: (?P<member>\d{1,6})/(?P<members>\d{1,6})",
        ),
        alarms=False,
        has_own_cause=True,
    ),
    Topic(
        "one-node",  # torchrun was started for one node alone
        (
            r"\btorchrun\b(?!.{0,400}--nnodes[= ](?!1\b)).{0,400}--(?:standalone\b|rdzv[-_]endpoint[= ]localhost:0\b)",
        ),
        alarms=False,
    ),
    Topic(
        "size-asked",  # by the command of a node: how many nodes, and processes on each where all have to have as many
        (
            r"(?<!\S)--(?:num[-_]gpus[= ](?P<gpus>\d{1,3})\b.{0,200}--)?(?:nnodes|num[-_]machines|num[-_]nodes)[= ]"
            r"(?P<nodes>\d{1,6})\b(?!:)",
        ),
        alarms=False,
    ),
    Topic(
        "node-number",  # of the node itself, by its launcher or a person's command
        (
            r"\bnum nodes: \d{1,6}, node rank: (?P<node>\d{1,6})",  # LLaMA-Factory
            r"[#$>] .{0,200}\b(?:torchrun|torch\.distributed\.\w{3,6}|accelerate launch|launch_server)\b.{0,200}"
            r"--(?:node|machine)[-_]rank[= ](?P<number>\d{1,6})",
        ),
        alarms=False,
    ),
    Topic(
        "scan",  # what a person or a scanner itself says
        (r"\bnmap\b|\b(?:vulnerability|security|port)[ -]scan\w*|\bsec-?scan\b|\bmasscan\b",),
        alarms=False,
    ),
    Topic(
        "local-coordinator",  # of JAX, for several processes
        (
            r"coordinator_address=['\"](?:localhost|127\.)[^'\"]{0,40}['\"], ?num_processes=(?P<processes>[2-9]|\d\d+)",
            r"Error received from peer ipv4:127\.0\.0\.1:",
        ),
        alarms=False,
    ),
    Topic(
        "requeued",
        (
            r"\bJob \d+ requeued|requeued,? (?:restart count|as attempt|attempt)|\brestart count [1-9]|"
            r"^[$#>] kubectl (?:-n \S{1,63} )?logs (?!.{0,200}(?:--previous| -p\b))",
        ),
        alarms=False,
    ),
    Topic(
        "credentials",
        (
            (
                r"(?P<what>ExpiredToken\w*|(?:token|credentials?) (?:has |have )?expired|Ticket expired|"
                r"Job credential expired|"
                r"401 Client Error|InvalidAccessKeyId|AccessDenied\b|403 Client Error)"
            ),
        ),
        has_own_cause=True,
    ),
    Topic(
        "platform-event",
        (
            r"The node was (?P<what>low on resource: [\w-]+)|(?P<event>Evicted|FailedMount|FailedScheduling)\b",
            r"(?P<image>ErrImagePull|ImagePullBackOff|Failed to pull image [^:]{1,200})|(?P<loop>CrashLoopBackOff)",
        ),
    ),
    Topic(
        "worker-died",
        (
            r"Worker exit type: |actor died unexpectedly|worker died or was killed while executing",
            r"Worker proc \S+ died unexpectedly|Horovod has been shut down",
        ),
    ),
    Topic(
        "hang",
        (
            r"Heartbeat monitor timed out|watchdog got stuck for \d+ seconds|waiting for remainder of ranks",
            r"No available shared memory broadcast block found in \d+ second|\bpy-spy dump\b",
            r"\((?:enqueue|group|collectives|bootstrap|proxy)\.cc:\d+\)$",
        ),
    ),
    Topic(
        "stalled-ranks",  # of Horovod: who has not come, or who has
        (r"\[missing ranks: ?(?P<missing>[\d, ]{1,255})\]|\[ready ranks: ?(?P<ready>[\d, ]{1,255})\]",),
        alarms=False,
    ),
    Topic(
        "late-task",  # of JAX: who did not come to a barrier, one to a line below it (coordination_service.cc)
        (
            r"^/job:\w{1,64}/replica:\d{1,6}/task:\d{1,6}\s*$",
            r"[Tt]imed out (?:waiting for \d{1,6} task\(s\)|task names):"
            r"(?P<tasks>(?:,? ?/job:\w{1,64}/replica:\d{1,6}/task:\d{1,6}){0,64})",
        ),
        alarms=False,
    ),
    Topic(
        "gone-task",  # of JAX: who sends no heartbeats any more; newer versions list them below, one to a line
        (
            r"/task:(?P<task>\d{1,6}) heartbeat timeout\b",
            r"The following tasks are unhealthy \(stopped sending heartbeats\):",
        ),
        ends_the_job=True,
    ),
    Topic(
        "task-barrier",
        (r"\bBarrier (?:\S{1,200} )?timed out\.(?! (?:Barrier_id|Id): PjRT_Client_Connect)",),
        ends_the_job=True,
    ),
    Topic("no-threads", (r"Resource temporarily unavailable|can't start new thread",)),
    Topic("xla-failed", (r"NCCL operation nccl\w{1,40}.{0,80} failed",)),
)
