"""Node 0's order to start workers, and the words of a node about them: what both sides of a benchmark share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck.bench.culprits import RankState
from ncclcheck.bench.footprint import ELEMENT_BYTES
from ncclcheck.exchange.order_limits import environment_faults, seconds_faults
from ncclcheck.measure.mesh.mesh_plan import mesh_plan_faults
from ncclcheck.measure.soak.soak_limits import soak_faults
from ncclcheck.model.bench import BenchPlan
from ncclcheck.timeouts import LONGEST_OPTION_S

MOST_RANKS = 1 << 20
_MOST_POINTS = 1024
_MOST_ITERATIONS = 1 << 31
_LARGEST_BYTES = 1 << 44
_LONGEST_HOST = 300
BLOCKS_KEPT = 64  # of a soak, in the store: node 0 reads each within a second
_NAME = re.compile(r"bench|as-is|advised|try-[0-9]{1,4}", re.ASCII)
_NONCE = re.compile(r"[0-9A-Za-z]{1,64}", re.ASCII)
Left: TypeAlias = Literal["", "interrupted", "timeout"]


class BenchOrder(Struct, frozen=True, forbid_unknown_fields=True, tag="bench"):
    """Start the workers: the host of every rank; and for each ticket its first rank, its count, its environment.

    `name` begins every key under which node 0 and the nodes talk about them. `turns`: they measure when it is their
    turn. `brief`: they measure the plan, and nothing beside it. In an environment None unsets a variable.
    """

    plan: BenchPlan
    world_size: int
    hosts: tuple[str, ...]
    first_rank: dict[str, int]
    count: dict[str, int]
    environments: dict[str, dict[str, str | None]]
    nonce: str
    deadline_s: float
    name: str = "bench"
    turns: bool = False
    brief: bool = False


class BenchState(Struct, frozen=True, forbid_unknown_fields=True):
    """What a node says of its workers, small enough for one packet.

    `points`: how many points its rank 0 has finished; each stands in a document of its own. `left`: why the node
    ended its workers without an order.
    """

    schema_version: str
    tool_version: str
    sequence: int
    states: tuple[RankState, ...]
    points: int
    left: Left = ""


def order_faults(order: BenchOrder, ticket: int, most_ranks: int) -> Iterator[str]:
    """Yield why the node of that ticket, which starts so many ranks at most, does not follow the order."""
    yield from seconds_faults(order.deadline_s)
    yield from _plan_faults(order.plan, order.world_size)
    for environment in order.environments.values():
        yield from environment_faults([environment])
    if not 1 <= order.world_size <= MOST_RANKS or len(order.hosts) != order.world_size:
        yield f"{order.world_size} ranks on {len(order.hosts)} hosts"
    if not all(0 < len(host) <= _LONGEST_HOST and host.isprintable() for host in order.hosts):
        yield "a host name that is none"
    if _NAME.fullmatch(order.name) is None:
        yield "a name that is none"
    if _NONCE.fullmatch(order.nonce) is None:
        yield "a nonce that is none"
    first, count = (of.get(str(ticket), 0) for of in (order.first_rank, order.count))
    if not 0 <= count <= most_ranks:
        yield f"{count} ranks on this node, {most_ranks} are accepted"
    if not 0 <= first <= order.world_size - count:
        yield f"ranks {first} to {first + count - 1} of {order.world_size}"


def _plan_faults(plan: BenchPlan, world_size: int) -> Iterator[str]:
    if not plan.ops or not plan.sizes_bytes or len(plan.ops) * len(plan.sizes_bytes) > _MOST_POINTS:
        yield f"a plan of {len(plan.ops)} collectives at {len(plan.sizes_bytes)} sizes"
    if not all(0 < size <= _LARGEST_BYTES for size in plan.sizes_bytes):
        yield "a size out of bounds"
    if plan.dtype not in ELEMENT_BYTES:
        yield "a type of elements that is none"
    if not 0 <= plan.warmup <= _MOST_ITERATIONS or not 0 < (plan.iters or 1) <= _MOST_ITERATIONS:
        yield "a number of iterations out of bounds"
    if plan.mesh is not None:
        yield from mesh_plan_faults(plan.mesh, world_size)
        yield from seconds_faults(plan.mesh.budget_s)
    if plan.soak is not None:
        yield from soak_faults(plan.soak)
    if not 0.0 < plan.budget_s <= LONGEST_OPTION_S:
        yield "a budget out of bounds"
