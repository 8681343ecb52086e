"""What a benchmark is to measure, as the user asked for it, and the network it runs on."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.model.bench import Backend, Op
from ncclcheck.model.benchmarks.mesh import Mesh
from ncclcheck.model.benchmarks.model_shape import ModelRequest
from ncclcheck.model.benchmarks.soak import SoakRequest
from ncclcheck.model.benchmarks.trials import TryRequest

# The environment to measure under: the job's own, the advised one, or the job's where it is proven to work, else the
# advised one.
Under: TypeAlias = Literal["as-is", "advised", "proven"]
Binding: TypeAlias = dict[str, tuple[str, str]]  # host -> (interface, address)
Changes: TypeAlias = dict[str, dict[str, str | None]]  # host -> variable -> value (None: unset)


class MeshRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The parallel groups to measure in. No `dimensions`: all; no `ops`: what usually runs in each dimension.

    `model`: what it exchanges in a step is measured, and neither `ops` nor the sizes of the request.
    """

    mesh: Mesh
    dimensions: tuple[str, ...] = ()
    ops: tuple[Op, ...] = ()
    mix: bool = False
    model: ModelRequest | None = None


class BenchRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """What the user wants measured; the backend is settled when it is known which nodes have GPUs."""

    sizes_bytes: tuple[int, ...] = (1 << 20, 1 << 21, 1 << 22, 1 << 23, 1 << 24)
    ops: tuple[Op, ...] = ("all_reduce", "all_gather")
    backend: Literal["auto", "gloo", "nccl"] = "auto"
    dtype: str = "float32"
    iters: int | None = None
    warmup: int = 5
    budget_s: float = timeouts.BENCH_BUDGET_S
    verify: bool = True
    cuda_graph: bool = False
    under: Under = "proven"
    mesh: MeshRequest | None = None
    soak: SoakRequest | None = None
    tries: TryRequest | None = None


# They make the host wait, look at every element, or talk between the calls: a benchmark on NCCL is run without them.
DISTORTING = (
    "CUDA_LAUNCH_BLOCKING",
    "TORCH_NCCL_BLOCKING_WAIT",
    "NCCL_BLOCKING_WAIT",
    "TORCH_NCCL_NAN_CHECK",
    "TORCH_DISTRIBUTED_DEBUG",
)


class BenchNetwork(Struct, frozen=True):
    """The backend of a benchmark, its ranks per node, and the interfaces and settings it uses.

    `binding` is empty where the backend chooses for itself; `proof` says why this network. `fault`: the hosts on which
    it is known that nothing can start there, and why.
    """

    backend: Backend
    ranks_of: dict[str, int]
    binding: Binding
    environment_of: Changes
    proof: str
    fault: dict[str, str] = {}

    @property
    def transport(self) -> str:
        """Return it for people: "gloo over TCP on eth0 (bound by GLOO_SOCKET_IFNAME=eth0: NCCL's own choice)"."""
        if not self.binding:
            return f"{self.backend}, its own choice of transport"
        interfaces = ", ".join(sorted({interface for interface, _ in self.binding.values()}))
        settings = sorted(
            {
                f"{name} unset" if value is None else f"{name}={value}"
                for environment in self.environment_of.values()
                for name, value in environment.items()
                if name not in DISTORTING
            }
        )
        bound = f"bound by {' '.join(settings)}: {self.proof}" if settings else self.proof
        return f"{self.backend}{' over TCP' if self.backend == 'gloo' else ''} on {interfaces} ({bound})"
