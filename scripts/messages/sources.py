"""Where the messages of each program stand: which files, which calls, which versions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from scripts.messages import c_texts, other_texts


class Source(NamedTuple):
    """How to read the messages of one program."""

    repository: str
    form: Literal["c", "c-all", "c-stream", "python", "help", "library"]
    files: str  # expression that a path must match
    calls: str = ""  # macros, or words that a string of a library must have
    since: str = ""  # first release; empty: the newest commit only

    def read(self, data: bytes) -> Iterator[str]:
        """Yield the texts of one file."""
        if self.form == "library":
            yield from other_texts.of_library(data, self.calls)
            return
        source = data.decode("utf-8", "replace")
        if self.form == "python":
            yield from other_texts.of_python(source)
        elif self.form == "help":
            yield from other_texts.of_help_file(source)
        elif self.form == "c-stream":
            yield from c_texts.streams(source, self.calls)
        else:
            yield from c_texts.texts(source, self.calls, all_arguments=self.form == "c-all")

    def has(self, path: str) -> bool:
        """Return True if the file may have messages of the program."""
        return re.search(self.files, path) is not None


_C = r".*\.(?:c|cc|cpp|cu|cuh|h|hpp)$"
# Words of c10d in one string, without those of tensors' ranks, compilers and kernels in the same library.
_DISTRIBUTED = (
    r"(?i)^(?!.*(?:tensors?\b|malformed|onnx|graph|mkldnn|vectoriz|torchdeploy|template|std::|onednn|nvrtc|"
    r"ncclKernel|ncclDev|#ifndef|\bcast a|__torch__|in the fuser|nccl_(?:all_to_all|reduce_scatter)_))"
    r"(?!\s*(?://|\|))"
    r".*(?:nccl|watchdog|tcpstore|c10d|process ?group|heartbeat|libuv|monitoredBarrier|desync|client socket|"
    r"server socket|flight ?recorder|communicator|\bkey-value store|gloo)"
)
# What Ray's core says of failures, without what its libraries and its metrics say.
_RAYS_FAILURES = (
    r"^(?!.*(?:Check failed|proto|%[sdpl]|\bxds|grpc\.|_client|Number of|latency|subchannel|\bnum |OBOD|"
    r"should be|must be))"
    r"(?=.*(?i:fail|dead\b|died|killed|unexpected|timed out|timeout|could not|cannot|\berror|out of memory|out of disk|"
    r"\bOOM\b|crash|mistakenly|preempt|overload|not enough))"
    r".*(?i:\b(?:ray|raylet|gcs|workers?|actor|task|node|objects?|plasma|placement group|runtime env|"
    r"redis|owner|agent|job)\b)"
)
# The coordination service of JAX (xla/tsl/distributed_runtime, xla/pjrt/distributed) and NCCL in XLA, in one string.
_COORDINATION = (
    r"(?i)^(?!.*(?:%[sdpl]|proto|\bstd::|CHECK|template|constraint|scope|semaphore|must be|branch|spir|"
    r"amdgcn|speculat|Enables|(?:Set|Specify|Tracks|Maximum|Whether|Timeout in|Name of|If set)\b))"
    r".*(?:\bbarrier\b|\btasks?\b.*(?:heartbeat|coordinat|connect|failed|error|dead|disconnect|restart)|"
    r"coordination service|heartbeat|collective.*(?:timed|stuck|abort|fail)|rendezvous timed)"
)
SOURCES = {
    "nccl": Source("NVIDIA/nccl", "c", rf"^(?:src|include){_C}", "WARN", "2.18"),
    "aws-ofi-nccl": Source("aws/aws-ofi-nccl", "c", rf"^(?:src|include){_C}", "NCCL_OFI_WARN", "1.5"),
    "sharp": Source("Mellanox/nccl-rdma-sharp-plugins", "c", rf"^(?:src|include){_C}", "WARN"),
    "gloo": Source(
        "pytorch/gloo",
        "c-all",
        rf"^gloo/(?!test|benchmark){_C}",
        r"GLOO_THROW\w*|GLOO_ENFORCE\w*|GLOO_ERROR|GLOO_WARN|GLOO_MAKE_STRING|MakeString|GLOO_ERROR_MSG",
    ),
    "ucx": Source("openucx/ucx", "c", rf"^src/(?!tools){_C}", r"ucs_error|ucs_fatal|ucs_warn", "1.12"),
    "nccl-tests": Source("NVIDIA/nccl-tests", "c", rf"^src/{_C}", r"printf|PRINT|fprintf"),
    "slurm": Source(
        "SchedMD/slurm",
        "c",
        rf"^src/(?:srun|slurmd/slurmstepd|slurmd/common|api/step|api/allocate|plugins/(?:task|mpi|launch|cgroup)|"
        rf"interfaces/cgroup){_C}",
        r"error|fatal|error_r|sent_error|fatal_abort",
        "21.8",
    ),
    "prrte": Source("openpmix/prrte", "help", r"help-.*\.(?:txt|rst)$|show-help-files/"),
    "hydra": Source(
        "pmodels/mpich", "c-all", rf"^src/pm/hydra{_C}", r"HYDU_\w*ERR\w*|HYDU_error_printf|HYDU_dump\w*"
    ),
    "accelerate": Source("huggingface/accelerate", "python", r"^src/.*\.py$"),
    "deepspeed": Source(
        "deepspeedai/DeepSpeed", "python", r"^deepspeed/(?:launcher|comm|runtime|utils).*\.py$"
    ),
    "lightning": Source(
        "Lightning-AI/pytorch-lightning", "python", r"^src/lightning/(?:pytorch|fabric)/.*\.py$"
    ),
    "torch": Source("", "python", r"torch/distributed/(?!_tensor|_shard|pipeline|_spmd|checkpoint).*\.py$"),
    "torch-library": Source("", "library", r"lib/libtorch_c(?:pu|uda)\.so$", _DISTRIBUTED),
    "horovod": Source(
        "horovod/horovod",
        "c-stream",
        r"^horovod/common.*\.cc$",
        r"LOG\((?:ERROR|WARNING|FATAL)(?:, [\w.>-]*(?:\(\))?[\w.>-]*(?:\(\))?)?\)|error_message_stream|message(?= <<)|"
        r"throw std::\w+_error|Status::(?:PreconditionError|Aborted|UnknownError|InvalidArgument)",
    ),
    "horovod-python": Source(
        "horovod/horovod", "python", r"^horovod/(?:runner|common|torch|ray|tensorflow)/.*\.py$"
    ),
    "jax": Source(
        "jax-ml/jax",
        "python",
        r"^jax/_src/(?:distributed|clusters/.*|xla_bridge|multihost\w*)\.py$|^jax/experimental/multihost_utils\.py$",
    ),
    "jax-library": Source("", "library", r"jaxlib/.*\.so$", _COORDINATION),
    "ray": Source("", "python", r"^ray/(?!rllib|data/|dashboard|tune|serve|_private/thirdparty).*\.py$"),
    "ray-core": Source(
        "ray-project/ray",
        "c-stream",
        r"^src/ray/(?:raylet|gcs|core_worker|common|rpc|object_manager)/(?!.*test).*\.cc$",
        r"RAY_LOG\((?:ERROR|WARNING|FATAL)\)",
    ),
    "ray-library": Source(
        "", "library", r"ray/core/src/ray/(?:raylet/raylet|gcs/gcs_server)$", _RAYS_FAILURES
    ),
    "kubernetes": Source(
        "kubernetes/kubernetes",
        "c-all",
        r"^pkg/(?:kubelet|scheduler|controller/(?:job|nodelifecycle|tainteviction|podgc))/(?!.*_test\.go).*\.go$",
        r"Eventf|Event|AnnotatedEventf",
    ),
    "kernel": Source(
        "torvalds/linux",
        "c-all",
        r"(?:^|/)(?:mm/oom_kill|mm/memcontrol|kernel/hung_task|(?<!powerpc/)kernel/watchdog|"
        r"net/sunrpc/(?:clnt|xprt|xprtsock)|net/netfilter/nf_conntrack_core|fs/nfs/nfs4state|"
        r"drivers/pci/pcie/(?:aer|err|dpc)|nvidia-peermem)\.c$",
        r"(?:pr|dev|pci|netdev)_(?:emerg|alert|crit|err|warn)(?:_ratelimited|_once)?|peer_err|panic",
    ),
    "kernel-mlx5": Source(
        "torvalds/linux",
        "c-all",
        r"drivers/net/ethernet/mellanox/mlx5/core/(?:health|main|cmd|events|port|fw_reset|eq)\.c$",
        r"(?:dev|pci|netdev)_(?:emerg|alert|crit|err|warn)(?:_ratelimited|_once)?|mlx5_core_(?:err|warn)(?:_rl|_once)?",
    ),
    "kernel-efa": Source(
        "torvalds/linux",
        "c-all",
        r"drivers/infiniband/hw/efa/\w+\.c$",
        r"(?:dev|pci|ibdev)_(?:emerg|alert|crit|err|warn)(?:_ratelimited|_once)?",
    ),
    "vllm": Source(
        "",
        "python",
        r"^vllm/(?:distributed|executor|worker|v1|engine|entrypoints|platforms|config|utils|ray|device_allocator|"
        r"plugins)(?:/|\.py).*(?<!tool_parsers)/?[\w]+\.py$|^vllm/(?:config|utils)\.py$",
    ),
    "sglang": Source(
        "", "python", r"^sglang/srt/(?:distributed|managers|model_executor|server|utils).*\.py$"
    ),
}
