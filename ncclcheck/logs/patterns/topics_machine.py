"""What lines about GPUs, memory and the kernel mean: topic and words.

Sources: CUDA's error strings, torch (c10/cuda, torch/cuda, DataLoader), NCCL (init.cc, transport/{p2p,shm,nvls}.cc,
misc/shmutils.cc), Linux (mm/oom_kill.c), NVIDIA's Xid list, Slurm, kubelet.
"""

from __future__ import annotations

from ncclcheck.logs.patterns.topic import Topic

MACHINE_TOPICS: tuple[Topic, ...] = (
    # GPU memory and devices
    Topic(
        "cuda-oom",
        (
            r"CUDA failure \S{1,40} 'out of memory|CUDA out of memory|(?<!ray\.exceptions\.)\bOutOfMemoryError",
            r"CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation",
            r"(?:Cuda|HIP) failure(?: 2)? '?out of memory",
            r"CUDA error: out of memory|cuda(?:Host)?Malloc\w* failed: out of",
            r"Failed to (?:CUDA|cuda)\w* ?(?:calloc|malloc)|HIP out of memory|CUBLAS_STATUS_ALLOC_FAILED",
            r"(?:CUDA|HIP|GPU) (?:\w{1,20} )?error\b.{0,200}: out of memory\b|[Oo]ut of (?:GPU|device|HBM|VRAM) memory",
            r"CUD(?:A|ART) error: out of memory|larger than the maximum number of tokens that can be stored in KV ",
            r"OOM when allocating tensor|\bResourceExhaustedError|RESOURCE_EXHAUSTED: Out of memory",
        ),
        has_own_cause=True,
    ),
    Topic(
        "duplicate-gpu",
        (
            r"Duplicate GPU detected ?: rank (?P<first>\d+) and rank (?P<second>\d+)",
            r"Multiple Ranks are using the same (?:GPU|Partition)|Duplicate GPU detected",
            r"Multiple processes within (?:a )?communication group running on (?:the )?same CUDA device",  # XGBoost
        ),
    ),
    Topic(
        "gpu-busy",  # CUDA's cudaErrorDevicesUnavailable: another process has the GPU to itself, or the GPU is not well
        (
            r"CUDA-capable device(?:\(s\) is/are|s are) busy or unavailable",
            r"cudaErrorDevicesUnavailable|CUDA_ERROR_DEVICE_UNAVAILABLE",
        ),
    ),
    Topic(
        "gpu-taken",  # a process says which GPU it uses
        (
            r"^(?:\w{1,20}: ?)?Using device (?P<device>\d{1,2}): (?:NVIDIA|Tesla|GeForce|Quadro|AMD)\b",
            r"(?<!parallel )\b[Rr]ank:? #?(?P<taker>\d{1,6})\]?:? (?:is )?(?:uses|using|on|runs on|bound to) (?:the )?"
            r"(?:GPU|device|cuda)(?: ?[:#]| ) ?(?P<number>\d{1,2})\b",
        ),
        alarms=False,
    ),
    Topic(
        "far-end",  # of a connection that Open MPI tells of, in a field of its help text
        (r"^ {1,8}(?:Remote host|Peer hostname|Peer host): {1,20}(?P<host>[\w.:-]{1,253})(?: \(\[\[|\s*$)",),
        alarms=False,
    ),
    Topic(
        "rdma-listed",  # by a person, who looked into the container
        (
            r"^(?:(?:rdma_cm|issm\d{1,3}|umad\d{1,3}|uverbs\d{1,3}) {1,8})*uverbs\d{1,3}(?: {1,8}uverbs\d{1,3})*$",
            r"^(?:(?:mlx\d|bnxt_re|irdma|rdmap|efa)[\w-]{0,16}\d{1,3}[\t ]{1,8}){0,31}"
            r"(?:mlx\d_|bnxt_re|irdma|rdmap|efa_)[\w-]{0,16}\d{1,3}$",
        ),
        alarms=False,
    ),
    Topic(
        "device-ordinal",
        (
            r"invalid device ordinal|No (?:CUDA|HIP|XPU) GPUs are available|CUDA_ERROR_(?:INVALID|NO)_DEVICE",
            r"[Ll]ocal[ _]rank.{0,40}\b(?:larger|greater|exceeds?)\b.{0,20}\bnumber of (?:\w{1,9} )?GPUs",
            r"\bhipError(?:InvalidDevice|NoDevice)\b",
            r"no CUDA-capable device is detected|Invalid device id|device (?:index|ordinal) .{0,40}out of range",
            (
                r"no GPUs? (?:were |was )?found|\bnum_gpus\b.{0,80}INTERNAL ASSERT|"
                r"requires at least (?:one|1) (?:CUDA|GPU)"
            ),
            (
                r"requested gpus?: .{0,80}(?:But|only)|(?:But )?your machine only has|device_count\(\) is \d|"
                r"device >= 0 && device < num_gpus"
            ),
            (
                r"(?:not enough|insufficient|too few) (?:visible )?(?:GPU|CUDA device|accelerator)s?\b|"
                r"available GPUs? \d{1,5} is less than|\bdevice_count\(\) (?:returned|==?|is|was) \d|"
                r"(?:\b(?:only|but|just|while)\b.{0,20}\d|(?<!\d)0) GPUs? (?:are|is|were) (?:visible|available)|"
                r"\d GPUs? (?:are|is|were) (?:visible|available)\b.{0,12}\bbut\b"
            ),
            (
                r"(?:do(?:es)?n't|do(?:es)? not) (?:have enough|see any|allocate any) GPUs?\b|"
                r"less than (?:than )?(?:the )?(?:max )?(?:local )?(?:gpu|GPU) count"
            ),
            (
                r"(?:expected|requested|requires|needs|asked for|wants?) (?:at least |exactly )?\d{1,3} "
                r"(?:visible )?(?:GPU|CUDA device|device)s?\b.{0,80}\b(?:only|but|found|got|saw|sees|available|visible)"
            ),
        ),
        has_own_cause=True,
    ),
    Topic(
        "no-kernel-image",
        (
            r"no kernel image is available|not compatible with the current PyTorch installation",
            r"(?:Cuda|HIP) failure(?: \d{1,3})? '?(?:named symbol not found|invalid device function)",
            r"hipErrorNoBinaryForG(?:pu|PU)\b",
            r"CUDA_ERROR_NO_BINARY_FOR_GPU|unsupported gpu architecture|sm_\d+ is not compatible",
            r"ptxas.{0,40}Value 'sm_\w{1,8}' is not|(?:no|not a) (?:valid|compiled) (?:kernel|cubin|code).{0,40}sm_?\d",
            r"not supported (?:for|on|by) (?:the current|this) GPU|GPUs with compute capability of at least",
            r"only supports? \w{1,20} GPUs? or newer|requires? (?:a )?(?:GPU with )?compute capability",
            (
                r"only supported on (?:GPUs|devices) with (?:CUDA )?compute capability|"
                r"supported for (?:GPU )?arch(?:itecture)? sm_?\d"
            ),
            (
                r"(?:device|GPU) (?:of|with|has) (?:CUDA )?(?:compute )?capability \S{1,8},? .{0,60}(?:not "
                r"supported|unsupported|too (?:low|old))"
            ),
        ),
        has_own_cause=True,
    ),
    Topic(
        "driver-too-old",
        (
            r"driver version is insufficient|driver on your system is too old|CUDA_ERROR_INSUFFICIENT_DRIVER|"
            r"API call is not supported in the installed CUDA driver",
            r"unsupported (?:display driver|toolchain)|cuda driver combination|forward compatibility was attempted",
            r"Driver/library version mismatch|CUDA_ERROR_(?:SYSTEM_DRIVER_MISMATCH|UNSUPPORTED_PTX_VERSION)",
        ),
        has_own_cause=True,
    ),
    # A node of the domain that `nvidia-imex-ctl -N` lists, and that is not ready
    Topic(
        "fabric-node",
        (
            r"Node #\d{1,4} {1,4}[*-] (?P<node>[\w.:-]{1,63}) [*-] {1,4}- (?:UNAVAILABLE|NOT_RUNNING|INITIALIZING|"
            r"SHUTTING_DOWN)",
        ),
        alarms=False,
    ),
    Topic(
        "fabric",
        (
            (
                r"system not yet initialized|Error 802\b|CUDA_ERROR_SYSTEM_NOT_READY|fabric ?manager.{0,80}(?:not|"
                r"fail|error|inactive)"
            ),
            r"Multicast memory.{0,200}(?:CUDA error|fail)|transport/nvls\S* (?:\(\w+\) )?NCCL WARN Cuda failure",
            (
                r"(?:IMEX|imex)\b.{0,120}(?:not|fail|error|missing|unavailable|permit)|MNNVL.{0,80}(?:fail|error|not "
                r"configured)|fabric state is not|domain state:? (?:DEGRADED|DOWN)"
            ),
            r"CUDA_ERROR_NOT_PERMITTED|cuMemCreate.{0,80}(?:operation not permitted|fail)|Cuda failure 800\b",
            (
                r"cuMulticast\w+.{0,80}(?:fail|error)|Fabric\W+State\W+(?:In Progress|Not Started)|"
                r"NVSwitch.{0,60}(?:fatal|fail)"
            ),
        ),
        at_info=True,
        has_own_cause=True,
    ),
    Topic("garbled-size", (r"CUDA malloc (?P<bytes>\d{16,20}) bytes",), alarms=False, at_info=True),
    Topic("no-nvswitch", (r"NV_WARN_NOTHING_TO_DO",), alarms=False),  # of the fabric manager's start
    Topic(
        "p2p-disabled",
        (
            r"P2P is disabled between|peer (?:to peer )?access is not supported|PEER_ACCESS_UNSUPPORTED",
            r"peer mapping resources exhausted|TOO_MANY_PEERS",
            (
                r"^(?!.{0,120}(?:lacks GPU P2P|Custom allreduce))"
                r".{0,200}(?:P2P|peer).{0,60}(?:test|verification).{0,60}fail"
            ),
            (
                r"\bsimpleP2P\b.{0,40}(?:fail|error)|Verification error @ element|"
                r"NCCL DIAG.{0,20}(?:FAIL|ERROR).{0,80}P2P|p2p.{0,40}(?:corrupt|wrong data)"
            ),
        ),
        at_info=True,
        has_own_cause=True,
    ),
    Topic(
        "acs",
        (
            r"ACSCtl:.{0,40}ReqRedir\+|(?:intel|amd)_iommu=on|ACS (?:is )?enabled",
            r"Missing \"iommu=pt\" from kernel command line",  # RCCL, init.cc
        ),
        alarms=False,
    ),
    Topic("iommu-fault", (r"DMAR: .{0,120}(?:fault|PTE)|AMD-Vi: .{0,80}IO_PAGE_FAULT|IOMMU.{0,40}fault",)),
    Topic("device-assert", (r"device-side assert triggered|Assertion `.{0,200}` failed",)),
    Topic(
        "cuda-fault",
        (
            r"illegal memory access|unspecified launch failure|misaligned address|CUDA_ERROR_(?:LAUNCH_FAILED|ILLEGAL)",
        ),
        alarms=False,
    ),
    Topic(
        "ecc",
        (
            (
                r"uncorrectable (?:ECC|NVLink)|ECC error|row remap\w* fail|CUDA_ERROR_(?:ECC_UNCORRECTABLE|"
                r"NVLINK_UNCORRECTABLE|CONTAINED|HARDWARE_STACK_ERROR)"
            ),
            r"Invalid access of peer GPU memory over nvlink|CUDA error: hardware stack error",
        ),
        has_own_cause=True,
    ),
    Topic(
        "xid",
        (r"(?<!S)Xid \((?:PCI:)?(?P<device>[^)]{1,40})\): (?P<xid>\d+)|SXid.{0,40}?: (?P<sxid>\d+)",),
    ),
    Topic(
        "gpu-lost",
        (
            r"fallen off the bus|GPU is lost|Unable to determine the device handle|GPU requires reset",
            r"\bNV_ERR_RESET_REQUIRED\b",
            r"HW Exception by GPU node-\d{1,4} \(Agent handle: \w{1,20}\) reason ?: ?GPU Hang",  # ROCr, runtime.cpp
            r"AER: .{0,80}(?:Uncorrect|Fatal)|PCIe Bus Error: severity=(?:Uncorrect|Fatal)",
        ),
        has_own_cause=True,
    ),
    # shared memory, limits
    Topic(
        "shm",
        (
            (
                r"failed to extend /dev/shm|Error while (?:creating|attaching to) shared memory segment|"
                r"/dev/shm.{0,120}No space left"
            ),
            (
                r"No space left on device.{0,120}(?:/dev/shm|nccl-)|out of shared memory|"
                r"insufficient shared memory"
            ),
            r"unable to (?:write to file|open shared memory object|allocate shared memory).{0,40}(?:/torch_|shm)",
            r"No space left on device: b?['\"]/(?:psm_|dev/shm|torch_|sem\.|nccl-)",
            r"unable to allocate shared memory|shm_open.{0,60}(?:fail|No space)|(?<!PCIe )Bus error\b",
            r"unable to mmap \d+ bytes from file </?torch_",
            r"\bsignal:? 7\b(?! ?\d)|\bSIGBUS\b|\bexit ?code:? (?:-7|135)\b",
            r"return code = -7\b|non-zero status (?:135|249)\b",
            r"posix_fallocate.{0,60}No space left|shmutils\S* NCCL WARN .{0,120}(?:No space|fail)",
        ),
        has_own_cause=True,
    ),
    Topic(
        "shm-trace",  # where NCCL's error began, without its warning: a call of the system failed in shm.cc
        (r"^(?:NCCL INFO )?transport/shm\.cc:\d{1,5} -> 2$",),
        alarms=False,
        at_info=True,
    ),
    Topic("memlock", (r"(?:ulimit -l|max locked memory|memlock)[^\d\n]{0,60}(?P<kib>\d+)\b",), alarms=False),
    Topic(
        "open-files",
        (r"Too many open files|EMFILE|ENFILE|received \d+ items of ancdata",),
        has_own_cause=True,
    ),
    # host memory
    Topic(
        "host-oom",
        (
            r"oom[-_]?kill|low on resource: memory|Out of memory: Kill|Memory cgroup out of memory|OOM[ -]?Killed",
            r"tasks? [\d,-]{1,200}: Out Of Memory\b|\bTERM_MEMLIMIT\b|state OUT_OF_MEMORY|\bOUT_OF_ME(?:MORY|\+)",
            (
                r"\bearlyoom\b.{0,80}(?:SIGTERM|SIGKILL|killing)|systemd-oomd\b.{0,80}[Kk]ill|"
                r"job killed: mem \S{1,20} exceed"
            ),
            r"exceeded (?:job |step )?memory limit|Killed process \d+|DefaultCPUAllocator: (?:can't|not enough)",
            (
                r"killed due to memory pressure|node running low on memory|"
                r"exceeds the memory usage threshold|cgroup.{0,40}oom"
            ),
        ),
        has_own_cause=True,
        ends_the_job=True,
    ),
    Topic(
        "killed",
        (
            r"(?<!died or was )\bKilled\b(?! by )",
            r"killed by signal:? (?:Killed|9)|signal 9 \((?:SIGKILL|Killed)\)|\bSIGKILL\b",
            r"non-zero status (?:137|247)\b",
        ),
        alarms=False,
        has_own_cause=True,
    ),
    Topic(
        "host-no-memory",  # told to the program, which was not killed
        (
            r"\[Errno 12\] Cannot allocate memory|^(?:\w{1,30}\.){0,3}_?(?:Array)?MemoryError\b|std::bad_alloc\b",
        ),
        has_own_cause=True,
    ),
    Topic("host-memory", (r"rss (?P<mib>\d+) ?MiB|MemoryError\b|Cannot allocate memory",), alarms=False),
    # what a person looked up beside the job
    Topic(
        "large-ping",
        (r"^PING (?P<host>\S{1,253}) \([\d.]{7,15}\).{0,80} (?P<size>\d{4,5})\(\d{4,5}\) bytes of data",),
        alarms=False,
    ),
    Topic(
        "ping-answered", (r"^(?P<size>\d{3,5}) bytes from \S{1,253}(?: \S{3,45})?: icmp_seq=",), alarms=False
    ),
    Topic(
        "ping-whole",
        (r"\b[1-9]\d{0,5} (?:packets )?received\b.{0,40}\b0(?:\.0)?% packet loss",),
        alarms=False,
    ),
    Topic("ping-lost", (r"\b0 (?:packets )?received\b.{0,40}\b100(?:\.0)?% packet loss",), alarms=False),
    Topic(
        "packet-log",  # of the kernel's packet filter
        (r"\bSRC=(?P<address>[\d.]{7,15}) DST=[\d.]{7,15} .{0,120}\bDPT=(?P<port>\d{1,5})\b",),
        alarms=False,
    ),
)
