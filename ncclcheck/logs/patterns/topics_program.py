"""What lines of the program itself mean: its libraries, data and collectives, and how the job ended.

Sources: CPython's import system and errors, torch, nccl-tests, Slurm, Open MPI, trainers (Lightning, transformers).
"""

from __future__ import annotations

from ncclcheck.logs.patterns.topic import Topic

PROGRAM_TOPICS: tuple[Topic, ...] = (
    # Python environment and libraries
    Topic(
        "library-replaced",  # by a person, who tried another build or version of NCCL
        (
            r"^[^\n]{0,120}[$#%>] (?:sudo )?(?:mv|ln|cp|rm|dpkg|apt(?:-get)?|dnf|yum) [^\n]{0,300}\blibnccl",
            r"^[^\n]{0,120}[$#%>] [^\n]{0,80}\b(?:pip3?|uv|conda|mamba) [^\n]{0,120}\bnccl(?:-cu\d\d)?[ =<>]",
            r"^[^\n]{0,120}[$#%>] [^\n]{0,80}(?:LD_PRELOAD|LD_LIBRARY_PATH|VLLM_NCCL_SO_PATH)=\S{0,200}nccl",
        ),
        alarms=False,
    ),
    Topic(
        "went-well",  # in the words of who tried something else
        (
            r"^#+ (?:(?:after|with|since|now)\b|[^\n]{0,80}\bafter ).{0,80}(?:\bclean\b|"
            r"\b(?:no|zero|0) (?:more )?(?:\w{1,12} )?(?:hang|stall|timeout|error|crash)|"
            r"\b(?:runs?|works?|is) (?:fine|stable|normally)|\b(?:stable|works|gone)\b)",
        ),
        alarms=False,
    ),
    Topic(
        "nccl-symbol",
        (
            r"Unable to load NCCL library",
            r"undefined symbol: ?_?\w*nccl\w*|libnccl\S*: (?:cannot open|version|undefined|file too short)",
            r"libnccl.{0,80}(?:older|wrong|another|conflict|mismatch)|symbol nccl\w+ .{0,20}not (?:found|defined)",
            r"NameError: name 'nccl[A-Z]\w* ?' is not defined",  # of vLLM 0.4, which goes on without the library
        ),
        alarms=False,
        has_own_cause=True,
    ),
    Topic(
        "no-nccl-built",
        (
            r"Unknown communication backend: nccl",
            r"doesn't have NCCL built in|Torch not compiled with CUDA|NCCL (?:is )?not (?:available|compiled)",
        ),
        has_own_cause=True,
    ),
    Topic(
        "import",
        (
            r"(?:Module|Package)NotFoundError|ImportError",
            r"No module named|cannot import name|undefined symbol|symbol lookup error",
            r"version `(?:GLIBC|GLIBCXX|CXXABI|CUDA)\w*_?[\d.]*' not found|VersionConflict|DistributionNotFound",
            (
                r"(?:requires|incompatible with) .{0,60}(?:version|but you have)|numpy\.\w+ size changed|compiled "
                r"using NumPy 1"
            ),
            r"\b(?:[Mm]aximum|[Mm]inimum) (?:supported )?version \d[\w.]{0,20} .{0,60}\b(?:supported|required)\b",
            r"\bversion \d[\w.]{0,20} (?:or (?:newer|later|higher) )?is (?:not supported|required|too (?:old|new))\b",
            r"^(?:Runtime|Import|Value)Error: (?!CUDA|NCCL|GPU)[A-Z][\w.-]{1,40} is not (?:available|installed)\.?$",
            r"^OSError: lib(?!nccl|cuda\.so)[\w.+-]{1,60}\.so[\d.]{0,20}: cannot open shared object file",
            r"Failed to import [\w.]{1,120} because of",
            r"is used but incompatible|\bPlease (?:re)?install (?:the )?[\w.-]{1,40} ?[<>=!~]=|\bpip install\b",
            r"^\w{1,60}Error: .{0,80}\b(?:is|are) (?:not installed|required but not installed)\b",
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
                r"\b(?!Module|Package)\w*NotFoundError|"
                r"(?:dataset|checkpoint|model|data|file|path|tokenizer)\b.{0,160}(?:not "
                r"found|not exist|cannot be found)"
            ),
            (
                r"doesn't exist|does not exist|is not a (?:local folder|directory|file)|"
                r"Stale file handle|NotADirectoryError"
            ),
            r"\b(?:directory|folder) not found\b",
            r"Unable to (?:open|load) .{0,100}(?:file|checkpoint|weights)|no .{0,40}files? found|PermissionError",
            # an error of the file system, with the path that Python names after it
            (
                r"\[Errno (?:13|20|21|30|107|108|112|116|117|121)\] [\w ,/()-]{1,60}: b?['\"]|"
                r"\bNoSuch(?:Key|Bucket|Upload)\b|Stale NFS file handle|\[Errno (?:107|108|112|116|121)\] "
            ),
            r"Repo id must be in the form[^/]{0,80}/repo_name': '/",  # a path that is not there
            r"can't open file '|(?:cannot|could not|unable to) (?:access|find|locate) (?:file|the file|'?/)",
        ),
        alarms=False,
        has_own_cause=True,
    ),
    # collectives
    Topic(
        "collective-mismatch",
        (
            # torch's analyzer of flight recorder dumps (torch/distributed/flight_recorder/components/types.py)
            r"\bCulprit rank \d{1,6}; Error type: (?:COLLECTIVE_TYPE|SIZE_OR_SYNTAX|COLLECTIVE_DTYPE)_MISMATCH",
            r"Detected mismatch between collectives on ranks|Collective(?:s)? (?:mismatch|are mismatched)",
            r"[Mm]ismatched collectives?\b|shapes? into the collective are mismatched",
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
                r"(?<!\d)(?P<batches>\d+) (?:mini-?)?batches\b|"
                r"\b(?:done|finished|ended) after (?P<ended>\d{1,9}) (?:steps|iterations)\b"
            ),
            r"(?:num_batches|steps_per_epoch|n_batches|batches (?:per|in|an) epoch) ?[=:] ?(?P<steps>\d+)",
        ),
        alarms=False,
    ),
    Topic(
        "data-ended",  # of a rank, as at the end of every epoch
        (r"\b(?:reache[sd]|hits?) (?:the )?end of (?:the )?(?:data ?loader|dataset|data|epoch)\b",),
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
                r"\b(?:data ?loader|dataset|iterator|sampler)\b.{0,40}\b(?:exhausted|ran out|ended) "
                r"(?:early|after (?:step |batch |iteration )?\d)|"
                r"\bran out of (?:data|batches|samples)\b|"
                r"\b(?:data ?loader|shard|iterator|dataset) is empty\b|\bworld_size \d{1,6} > num_shards|"
                r"StopIteration after \d|leaving (?:the )?\w{1,20} loop\b"
            ),
            r"\b(?:data ?loader|data ?set|iterator|samples|shards)\b.{0,20}\bexhausted\b(?!.{0,20}(?:restart|repeat))",
        ),
        has_own_cause=True,
    ),
    Topic(
        "usage-error",  # of a program's own arguments (argparse)
        (
            r"^(?:[\w./-]{1,120}\.py: )?error: (?:unrecognized arguments: |argument -|the following arguments are)",
        ),
        has_own_cause=True,
    ),
    Topic("setting-unfit", (r"no algorithm/protocol available.{0,200}NCCL_(?:ALGO|PROTO) was set",)),
    Topic(
        "quiet-phase",
        (
            (
                r"\bno (?:communication|collectives?|traffic)\b|(?:idle|quiet|offline|generation|"
                r"rollout) (?:phase|for|eval)|\bidle[_ -]?(?:TCP |connection )?time-?out\b|"
                r"rank 0 only|others? (?:ranks? )?wait\b"
            ),
        ),
        alarms=False,
    ),
    Topic(
        "busy-word",  # what keeps one rank from a collective
        (
            r"\bnfs: server \S{1,253} not responding|\bblocked for more than \d{2,6} seconds|soft lockup",
            r"(?:Thermal Slowdown|HW Power Brake Slowdown|Power Brake)\s{0,30}: Active|\bthermal throttl\w+",
            r"\b(?:took|stalled for|blocked for|busy for) \d{3,6}(?:\.\d{1,3})? ?(?:s|sec|seconds)\b",
            r"\b(?:upload|consolidat|sav|writ)\w{0,8} \d{1,6}(?:\.\d{1,3})? ?(?:GB|GiB|TB)\b",
        ),
        alarms=False,
    ),
    Topic(
        "slow-word",
        (
            (
                r"(?:expected (?:about|more than|at least|over|up to|>|~)|"
                r"\(target:? \d|reference for (?:this|\d)|below the floor|slower than|instead of).{0,60}|"
                r"/s,? \(expected \d|\b\d{1,2} ?% of (?:what|the|our|its)\b"
            ),
            r"# Avg bus bandwidth {1,10}: 0\.\d",  # of sockets, or of tiny messages
            r"\bexpected\b.{0,20}\b(?:NET/(?!Socket)\w{2,20}|InfiniBand|RDMA|RoCE|IB|EFA|GPU ?Direct)\b",
            (
                r"\b(?:expected|should be|used to be|was|vs\.?) (?:around |about |>|"
                r"~)?\d{1,4}(?:\.\d{1,3})? ?(?:GB/s|Gb/s|Gbps|%)|"
                r"\b(?:busbw|algbw|bandwidth)\b.{0,60}\b(?:expected|should be|instead)\b|"
                r"\d ?GB/s.{0,40}\b(?:where|while|but|other|sister|same)\b.{0,60}\d ?GB/s|"
                r"\bonly \d{1,4}(?:\.\d{1,3})? ?(?:GB/s|Gb/s|Gbps)"
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
                r"^(?:free|malloc|realloc|munmap_chunk)\(\): (?:corrupt|invalid|mismatching|double)|"
                r"File \"[^\"]{1,300}(?:nccl|NCCL)\w{0,60}\.py\", line \d{1,6} in |0x[0-9a-f]{6,16} nccl\w{1,60}\(|"
                r"libnccl\S{0,40}\(?\+0x|rasMsgHandle\w*|\bNCCL BUG\b|"
                r"corrupt(?:ed)? comm(?:unicator)? object|segfault at .{0,80}libnccl|"
                r"Assertion .{0,80}nccl"
            ),
        ),
    ),
    Topic(
        "nccl-frame",  # of a native stack: glog's, gdb's
        (r"(?:@|#[0-4]) +0x[0-9a-f]{6,16}[^\n]{0,80}\bp?nccl[A-Z]\w{1,60} ?\(",),
        alarms=False,
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
            (
                r"^\s*\d{1,12}(?:[_+.]\S{0,20})?[ |](?:.{0,200}[ |])?(?:FAILED|NODE_FAIL|TIMEOUT|CANCELLED|BOOT_FAIL|"
                r"DEADLINE|PREEMPTED|OUT_OF_ME\w*)[ |+].{0,200}(?<![\d:])\d{1,3}:\d{1,3}(?![\d:])"  # a row of sacct
            ),
            r"\brecord state: \S{1,80} = FAILURE$|=== Run \(ID '\w{1,64}'\) failed ===",
            r"\bProgram failed with code [1-9]|W&B process to finish.{0,20}\(failed [1-9]",
            r"\bkilled after \d+ ?s\b|^\S+ FAILED$",
            r"(?:^|: )FAIL(?:ED)?\b(?! to)|CANCELLED AT|Job (?:aborted|failed)",
            r"terminate called after throwing|MPI_ABORT",
        ),
        ends_the_job=True,
    ),
    Topic(
        "tracker-closed",  # by a program that ends by itself, whether it did all that it should or not
        (
            r"^wandb: (?:[^\w\s]{1,4} )?(?:View (?:run|project|sweep)\b|Synced \S|Find (?:user )?logs\b|You can sync)",
            r"COMET INFO: .{0,40}Experiment Summary$",
            r"\bView (?:run .{1,120}|experiment) at: ?http",  # of MLflow
        ),
        alarms=False,
    ),
    Topic(
        "finished",
        (
            (
                r"(?:training|train|\bfit|\bjob|run|all (?:\d+ )?steps|test|experiment|epochs?)\b.{0,40}\b(?:finished|"
                r"complete(?:d|s)?(?! {1,20}\d{1,3}:\d)|done|succe(?!eded {2}))"  # but not a row of a table of jobs
            ),
            (
                r"^(?:finished|done|complete)\b|Out of bounds values : 0 OK|Collective test concluded|"
                r"\bexit(?:ed|ing|s)?(?: with)?(?: exit)? (?:code |status )?0\b|^job end\b|\btotal images/sec: \d|"
                r"^Total img/sec on \d{1,6} \w{2,6}(?:\(s\))?: (?!0\.0\b)\d"
            ),
            (
                r"'train_runtime':|Trainer\.fit`? stopped: `?max_|worker group successfully finished|finished all \d+|"
                r"all \d+ (?:steps|epochs|iterations) done|Successfully (?:finished|completed)|Training (?:done|over)"
            ),
            # of a script: how the command ended
            r"^rc=0$|^\w{0,20}EXIT(?:_CODE)?=0$|^exit(?:[ _](?:code|status))? ?[=:] ?0$|^status ?[=:] ?0$",
            r"\brank ?\d{1,6}(?:/\d{1,6})?[\]:]?:? (?:is )?(?:finished|done|exiting)(?:\.?$| \[)",
            r"validation loss at iteration \d+ on test set",  # Megatron's last work
            r"\breturn ?code ?[=:] ?0$",  # of subprocess
            r"\bnhc: {1,4}Health check passed\b",  # LBNL's Node Health Check, and Azure's
            r"\bAMReX \(\S{1,60}\) finalized",
            r"All processes entering MPI_Finalize",  # of Intel's MPI benchmarks
            r"\[exiting program after \d|\bdone training\b|^Succeeded$|\b[Gg]racefully exiting\b|"
            r"\bShutting down the [Rr]ay cluster connection|^(?:Total )?[Tt]raining time: \d(?!.{0,60}on hooks)",
            r"={4,} Serving Benchmark Result ={4,}|^Workload completed$",  # of vLLM and SGLang; of XPK
            r"={4,} (?!.{0,60}(?:failed|error))\d{1,6} passed\b",  # of pytest
            r"^(?:=+ )?(?!.{0,80}(?:failed|error))\d{1,6} passed\b.{0,80} in \d{1,6}\.\d{1,2}s\b",
            r"\bProgram ended successfully\b|W&B process to finish.{0,20}\(success\)",  # of W&B
            r"\bNCCL(?: with \w{1,20} \w{1,20})? is successful!",  # of vLLM's script that tries NCCL
            # of text-generation-inference
            r"\bShard ready in \d|text_generation_router\S{0,60}: (?:\S{1,80}: )?(?:Connected|Success)$",
            r"\bDummy health check server started\b",  # of SGLang: all nodes but the first
            r"\bDeployed app '[\w.-]{1,80}' successfully|\bApplication '[\w.-]{1,80}' is ready at http",  # of Ray
            # of llama.cpp
            r"\bserver is listening on https?://\S{1,80} - starting the main loop",
            r"\btotal time = +\d[\d.]{0,12} ms / +\d{1,9} tokens\b",
            r"\b(?:target|final|max\w{0,12}) (?:iterations?|steps?|epochs?) reached\b",
            r"\b(?:[Tt]rained|[Ff]inal) model (?:has been |was )?(?:written|exported|saved) to\b",
            r"\b[Ff]inished (?:(?:\w{1,20} )?training|the (?:run|job))\b|Application shutdown complete",
            r"Process \d+ exits successfully|Application startup complete|Uvicorn running on|server is fired up",
            r"HTTP/1\.[01]\" 200\b|Avg prompt throughput: (?!0\.0\b)|\b200 OK\b",
            r"\bStarted (?:GRPCInferenceService|HTTPService|Metrics Service)\b|- Destroy COMPLETE\b",
        ),
        alarms=False,
    ),
)
