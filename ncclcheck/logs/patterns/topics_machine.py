"""What lines about GPUs, memory, the kernel, the launcher and the Python environment mean: topic and words.

Sources: CUDA's error strings, torch (c10/cuda, torch/cuda, DataLoader), NCCL (init.cc, transport/{p2p,shm,nvls}.cc,
misc/shmutils.cc), Linux (mm/oom_kill.c), NVIDIA's Xid list, Slurm, Open MPI, kubelet, CPython's import system.
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
            r"Cuda failure(?: 2)? '?out of memory|CUDA error: out of memory|cuda(?:Host)?Malloc\w* failed: out of",
            r"Failed to (?:CUDA|cuda)\w* ?(?:calloc|malloc)|HIP out of memory|CUBLAS_STATUS_ALLOC_FAILED",
            r"OOM when allocating tensor|\bResourceExhaustedError|RESOURCE_EXHAUSTED: Out of memory",
        ),
        has_own_cause=True,
    ),
    Topic(
        "duplicate-gpu",
        (
            r"Duplicate GPU detected ?: rank (?P<first>\d+) and rank (?P<second>\d+)",
            r"Multiple Ranks are using the same (?:GPU|Partition)|Duplicate GPU detected",
        ),
    ),
    Topic(
        "device-ordinal",
        (
            r"invalid device ordinal|No CUDA GPUs are available|CUDA_ERROR_(?:INVALID|NO)_DEVICE",
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
                r"\bdevice_count\(\) (?:returned|==?|is|was) \d|\d GPUs? (?:are|is|were) (?:visible|available)"
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
            r"CUDA_ERROR_NO_BINARY_FOR_GPU|unsupported gpu architecture|sm_\d+ is not compatible",
        ),
        has_own_cause=True,
    ),
    Topic(
        "driver-too-old",
        (
            r"driver version is insufficient|driver on your system is too old|CUDA_ERROR_INSUFFICIENT_DRIVER",
            r"unsupported (?:display driver|toolchain)|cuda driver combination|forward compatibility was attempted",
            r"Driver/library version mismatch|CUDA_ERROR_(?:SYSTEM_DRIVER_MISMATCH|UNSUPPORTED_PTX_VERSION)",
        ),
        has_own_cause=True,
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
                r"configured)|fabric state is not|domain state (?:DEGRADED|DOWN)"
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
    Topic(
        "p2p-disabled",
        (
            r"P2P is disabled between|peer (?:to peer )?access is not supported|PEER_ACCESS_UNSUPPORTED",
            r"peer mapping resources exhausted|TOO_MANY_PEERS",
            (
                r"^(?!.{0,120}(?:lacks GPU P2P|Custom allreduce))"
                r".{0,200}(?:P2P|peer).{0,60}(?:test|verification).{0,60}fail"
            ),
            r"could not enable P2P|NCCL DIAG.{0,20}(?:FAIL|ERROR).{0,80}P2P|p2p.{0,40}(?:corrupt|wrong data)",
        ),
        at_info=True,
        has_own_cause=True,
    ),
    Topic("acs", (r"ACSCtl:.{0,40}ReqRedir\+|(?:intel|amd)_iommu=on|ACS (?:is )?enabled",), alarms=False),
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
                r"NVLINK_UNCORRECTABLE)"
            ),
        ),
        has_own_cause=True,
    ),
    Topic(
        "xid",
        (r"Xid \(PCI:(?P<device>[^)]{1,40})\): (?P<xid>\d+)|SXid.{0,40}: (?P<sxid>\d+)",),
    ),
    Topic(
        "gpu-lost",
        (
            r"fallen off the bus|GPU is lost|Unable to determine the device handle|GPU requires reset",
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
                r"insufficient shared memory|\(shm\)"
            ),
            r"unable to (?:write to file|open shared memory object|allocate shared memory).{0,40}(?:/torch_|shm)",
            r"unable to allocate shared memory|shm_open.{0,60}(?:fail|No space)|Bus error\b",
            r"posix_fallocate.{0,60}No space left|shmutils\S* NCCL WARN .{0,120}(?:No space|fail)",
        ),
        has_own_cause=True,
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
            r"oom[-_]?kill|Out of memory: Kill|Memory cgroup out of memory|OOM[ -]?Killed",
            r"tasks? [\d,-]{1,200}: Out Of Memory\b|\bTERM_MEMLIMIT\b|state OUT_OF_MEMORY",
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
            r"(?<!died or was )\bKilled\b(?! by (?!signal))",
            r"killed by signal:? (?:Killed|9)|signal 9 \((?:SIGKILL|Killed)\)|\bSIGKILL\b",
        ),
        alarms=False,
    ),
    Topic("host-memory", (r"rss (?P<mib>\d+) ?MiB|MemoryError\b|Cannot allocate memory",), alarms=False),
    # Python environment and libraries
    Topic(
        "nccl-symbol",
        (
            r"Unable to load NCCL library",
            r"undefined symbol: ?_?\w*nccl\w*|libnccl\S*: (?:cannot open|version|undefined|file too short)",
            r"libnccl.{0,80}(?:older|wrong|another|conflict|mismatch)|symbol nccl\w+ .{0,20}not (?:found|defined)",
        ),
        alarms=False,
        has_own_cause=True,
    ),
    Topic(
        "no-nccl-built",
        (r"doesn't have NCCL built in|Torch not compiled with CUDA|NCCL (?:is )?not (?:available|compiled)",),
        has_own_cause=True,
    ),
    Topic(
        "import",
        (
            r"ModuleNotFoundError|ImportError|No module named|cannot import name|undefined symbol|symbol lookup error",
            r"version `(?:GLIBC|GLIBCXX|CXXABI|CUDA)\w*_?[\d.]*' not found|VersionConflict|DistributionNotFound",
            (
                r"(?:requires|incompatible with) .{0,60}(?:version|but you have)|numpy\.\w+ size changed|compiled "
                r"using NumPy 1"
            ),
            r"operator \w+::\w+ does not exist|_ARRAY_API not found|cannot be run in$|bad magic number in '",
        ),
        alarms=False,
        has_own_cause=True,
    ),
    # data
    Topic(
        "missing-file",
        (
            r"FileNotFoundError|No such file or directory|Errno 2\]|does not appear to have a file named",
            (
                r"\b(?!Module)\w*NotFoundError|(?:dataset|checkpoint|model|data|file|path|tokenizer)\b.{0,160}(?:not "
                r"found|not exist|cannot be found)"
            ),
            (
                r"doesn't exist|does not exist|is not a (?:local folder|directory|file)|"
                r"Stale file handle|NotADirectoryError"
            ),
            r"Unable to (?:open|load) .{0,100}(?:file|checkpoint|weights)|no .{0,40}files? found|PermissionError",
            # an error of the file system, with the path that Python names after it
            (
                r"\[Errno (?:5|13|20|21|30|107|108|112|116|117|121)\] [\w ,/()-]{1,60}: b?['\"]|"
                r"\bNoSuch(?:Key|Bucket|Upload)\b|Stale NFS file handle"
            ),
            r"can't open file '|(?:cannot|could not|unable to) (?:access|find|locate) (?:file|the file|'?/)",
        ),
        alarms=False,
        has_own_cause=True,
    ),
    # collectives
    Topic(
        "collective-mismatch",
        (
            r"Detected mismatch between collectives on ranks|Collective(?:s)? (?:mismatch|are mismatched)",
            r"ranks? .{0,60}(?:running|calling) (?:a )?different collective|desync(?:hronized)?\b.{0,80}collective",
            r"Ranks? \d+ is running collective|mismatched (?:collectives|sizes|shapes) across ranks",
        ),
        has_own_cause=True,
    ),
    Topic(
        "uneven",
        (
            (
                r"len\(\w*(?:loader|dataset|batches|sampler)\w*\) ?[=:] ?(?P<length>\d+)|"
                r"(?<!\d)(?P<batches>\d+) (?:mini-?)?batches\b"
            ),
            r"(?:num_batches|steps_per_epoch|n_batches|batches per epoch) ?[=:] ?(?P<steps>\d+)",
        ),
        alarms=False,
    ),
    Topic(
        "inputs-exhausted",
        (
            (
                r"at least one rank that exhausted inputs|(?:rank|ranks) .{0,40}(?:ran out of|"
                r"exhausted) (?:inputs|batches)|[Rr]ank \d+ exhausted all inputs"
            ),
            (
                r"\b(?:data ?loader|dataset|iterator|sampler)\b.{0,40}\b(?:exhausted|ran out|ended) (?:early|after \d)|"
                r"\bran out of (?:data|batches|samples)\b"
            ),
        ),
        has_own_cause=True,
    ),
    Topic("setting-unfit", (r"no algorithm/protocol available.{0,200}NCCL_(?:ALGO|PROTO) was set",)),
    Topic(
        "quiet-phase",
        (
            (
                r"\bno (?:communication|collectives?|traffic)\b|(?:idle|quiet|offline|generation|"
                r"rollout) (?:phase|for|eval)|\bidle[_ -]?time-?out\b|rank 0 only|others? (?:ranks? )?wait\b"
            ),
        ),
        alarms=False,
    ),
    Topic(
        "slow-word",
        (
            (
                r"(?:expected (?:about|>)|reference for this|below the floor|slower than|instead of).{0,60}|tokens/s "
                r"\d+ \(expected"
            ),
        ),
        alarms=False,
    ),
    Topic(
        "global-timeout",
        (
            r"(?:Global|Run|Job) time(?:d)? ?-?out|timed out after \d+ ?s\b|DUE TO TIME LIMIT|time limit exhausted",
        ),
        has_own_cause=True,
        ends_the_job=True,
    ),
    Topic(
        "generic-nccl",
        (
            r"ncclSystemError|ncclInternalError|ncclUnhandledCudaError|ncclInvalid\w+|NCCL (?:error|failure)\b",
            r"unhandled (?:system|cuda) error|internal error - please report|Test NCCL failure",
        ),
        alarms=False,
        has_own_cause=True,
    ),
    Topic(
        "remote-error",
        (r"ncclRemoteError|remote process exited or there was a network error",),
        has_own_cause=True,
    ),
    Topic(
        "nccl-crash",
        (
            (
                r"libnccl\S{0,40}\(?\+0x|rasMsgHandle\w*|\bNCCL BUG\b|"
                r"corrupt(?:ed)? comm(?:unicator)? object|segfault at .{0,80}libnccl|"
                r"Assertion .{0,80}nccl"
            ),
        ),
    ),
    Topic("torch-internal", (r"INTERNAL ASSERT FAILED",)),
    Topic(
        "crash",
        (
            r"Segmentation fault|SIGSEGV|signal 11\b|double free|stack smashing|Fatal Python error|core dumped|SIGABRT",
        ),
        alarms=False,
    ),
    Topic(
        "torch-version",
        (r"\b(?:PyTorch|torch)(?: version)?[:= ]{1,3}v?(?P<torch>\d+\.\d+\.\d+[\w.+-]*)",),
        alarms=False,
    ),
    # how it ended
    Topic(
        "wrong-results",
        (
            r"Out of bounds values ?: (?P<wrong>\d+) FAILED",
            # a row of nccl-tests: size, count, type, operation, root, time, two bandwidths and #wrong
            (
                r"^ {2,12}\d+ +\d+ +(?:float|double|half|bfloat16|fp8_\w+|u?int\d+) +"
                r"(?:sum|prod|max|min|avg|mulsum|none) +"
                r"-?\d+ +[\d.]+ +[\d.]+ +[\d.]+ +(?:[1-9]\d*|0 +[\d.]+ +[\d.]+ +[\d.]+ +[1-9])"
            ),
        ),
        ends_the_job=True,
    ),
    Topic(
        "failed",
        (
            r"exit(?:ed)?(?: with)?(?: exit)? ?(?:code|status):? ?(?:-?[1-9]\d*)|non-zero (?:status|exit)|Test failure",
            (
                r"(?:ORTE|PRTE|mpirun|prterun) (?:was unable|has lost)|unable to reliably start|"
                r"Host key verification failed"
            ),
            r"killed by (?:the )?(?:operator|user|admin|scheduler)|\bjob (?:was )?(?:killed|cancell?ed|preempted)\b",
            r"exits with return code = -?[1-9]|terminated with code -?[1-9]",
            r"\bkilled after \d+ ?s\b|^\S+ FAILED$",
            r"^FAILED\b(?! to)|CANCELLED AT|Job (?:aborted|failed)|terminate called after throwing|MPI_ABORT",
        ),
        ends_the_job=True,
    ),
    Topic(
        "finished",
        (
            (
                r"(?:training|train|job|run|all (?:\d+ )?steps|test|experiment|epochs?)\b.{0,40}\b(?:finished|"
                r"complete(?:d|s)?|done|succe)"
            ),
            (
                r"^(?:finished|done|complete)\b|Out of bounds values : 0 OK|Collective test concluded|\bexit(?:ing)? "
                r"(?:code )?0\b"
            ),
            (
                r"'train_runtime':|Trainer\.fit`? stopped: `?max_|worker group successfully finished|finished all \d+|"
                r"all \d+ (?:steps|epochs|iterations) done|Successfully (?:finished|completed)|Training (?:done|over)"
            ),
            r"validation loss at iteration \d+ on test set",  # Megatron's last work
            r"Process \d+ exits successfully|Application startup complete|Uvicorn running on|server is fired up",
            r"HTTP/1\.[01]\" 200\b|Avg prompt throughput: (?!0\.0\b)",
        ),
        alarms=False,
    ),
)
