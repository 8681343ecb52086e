"""What a node accepts of an order, whoever wrote it: checked here before anything is done.

Whoever reaches the store can write an order. Its kind is one of a closed set (`exchange.messages.Order`), and every
field of it has to be within what node 0 itself would ask for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.bench.footprint import ELEMENT_BYTES
from ncclcheck.exchange.messages import (
    FACTS_LIMIT_BYTES,
    Bench,
    Compare,
    Confirm,
    Measure,
    Order,
    Reach,
    Resolve,
    Share,
    Step,
    read_message,
)
from ncclcheck.launch.flags import LaunchFlags
from ncclcheck.measure.links.again import MOST_PASSES
from ncclcheck.model.bench import BenchPlan
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.launch import Launch
from ncclcheck.nccl.settable import first_refusal
from ncclcheck.run.probe_rules import Announcements, probe_refusals

STEP_LIMIT_BYTES = FACTS_LIMIT_BYTES * 16
# How often node 0 gives an order of a kind at most; the further measurements are those of what looked slow or late.
MOST_OF_A_KIND: Mapping[type[Order], int] = {Measure: 2 * (1 + MOST_PASSES)}
MOST_RANKS = 1 << 20
RANKS_UNASKED = 16  # ranks that a node starts without its own launcher, flags or GPUs naming so many
MOST_SETTINGS = 64
MOST_ENVIRONMENTS = 64
MOST_PATHS = 256
_MOST_POINTS = 1024
_MOST_ITERATIONS = 1 << 31
_LARGEST_BYTES = 1 << 44
_LONGEST_HOST = 300
_NONCE = re.compile(r"[0-9A-Za-z]{1,64}", re.ASCII)


class Bounds(Struct, frozen=True):
    """What this node itself knows: its ticket, how many ranks it starts at most, and its addresses.

    A further rank of a node starts none, calls nobody and only waits for the verdict.
    """

    ticket: int
    most_ranks: int
    addresses: frozenset[str] = frozenset()


def bounds_of(ticket: int, launch: Launch, flags: LaunchFlags, facts: NodeFacts) -> Bounds:
    """Return the bounds that this node's own launcher, flags and hardware set."""
    gpus = 0 if isinstance(facts.gpus, Missing) else len(facts.gpus)
    said = (launch.nproc_per_node or 0, launch.local_world_size, flags.nproc_per_node or 0)
    interfaces = () if isinstance(facts.interfaces, Missing) else facts.interfaces
    own = frozenset(address.address for interface in interfaces for address in interface.addresses)
    return Bounds(ticket, max(*said, gpus, RANKS_UNASKED), own)


def read_order(data: bytes, bounds: Bounds, announcements: Announcements) -> Order:
    """Return the order in `data`. Raises DecodeError where it is none, or asks for what node 0 never asks for."""
    order = read_message(data, Step, STEP_LIMIT_BYTES).order
    reason = next(_refusals(order, bounds, announcements), None)
    if reason is not None:
        raise DecodeError(f"{name_of(order)}: {reason}")
    return order


def name_of(order: Order) -> str:
    """Return the order's kind for people: "bench"."""
    return type(order).__name__.lower()


def _refusals(order: Order, bounds: Bounds, announcements: Announcements) -> Iterator[str]:
    if isinstance(order, Reach | Resolve | Measure):
        if bounds.most_ranks:
            yield from probe_refusals(order, bounds, announcements)
    elif isinstance(order, Share):
        if len(order.paths) > MOST_PATHS or len(order.tickets) > MOST_RANKS:
            yield f"{len(order.paths)} folders of {len(order.tickets)} nodes"
    elif isinstance(order, Confirm):
        yield from _seconds(order.deadline_s)
        for environments in order.environments.values():
            yield from _environments(environments)
    elif isinstance(order, Bench):
        yield from _bench(order, bounds)
    elif isinstance(order, Compare):
        yield from _compare(order, bounds)


def _compare(order: Compare, bounds: Bounds) -> Iterator[str]:
    names = [bench.name for bench in order.sets]
    if len(set(names)) != len(names) or "bench" in names:
        yield "its sets of workers are not one as-is and one advised"
    for bench in order.sets:
        yield from _bench(bench, bounds)


def _seconds(seconds: float) -> Iterator[str]:
    if not 0.0 <= seconds <= timeouts.LONGEST_OPTION_S:
        yield f"a deadline of {seconds:.3g} s"


def _environments(environments: Sequence[Mapping[str, str | None]]) -> Iterator[str]:
    if len(environments) > MOST_ENVIRONMENTS:
        yield f"{len(environments)} environments, {MOST_ENVIRONMENTS} are accepted"
    for environment in environments:
        if len(environment) > MOST_SETTINGS:
            yield f"{len(environment)} settings, {MOST_SETTINGS} are accepted"
        reason = first_refusal(environment)
        if reason is not None:
            yield reason


def _bench(order: Bench, bounds: Bounds) -> Iterator[str]:
    yield from _seconds(order.deadline_s)
    yield from _plan(order.plan)
    for environment in order.environments.values():
        yield from _environments([environment])
    if not 1 <= order.world_size <= MOST_RANKS or len(order.hosts) != order.world_size:
        yield f"{order.world_size} ranks on {len(order.hosts)} hosts"
    if not all(0 < len(host) <= _LONGEST_HOST and host.isprintable() for host in order.hosts):
        yield "a host name that is none"
    if _NONCE.fullmatch(order.nonce) is None:
        yield "a nonce that is none"
    first, count = (of.get(str(bounds.ticket), 0) for of in (order.first_rank, order.count))
    if not 0 <= count <= bounds.most_ranks:
        yield f"{count} ranks on this node, {bounds.most_ranks} are accepted"
    if not 0 <= first <= order.world_size - count:
        yield f"ranks {first} to {first + count - 1} of {order.world_size}"


def _plan(plan: BenchPlan) -> Iterator[str]:
    if not plan.ops or not plan.sizes_bytes or len(plan.ops) * len(plan.sizes_bytes) > _MOST_POINTS:
        yield f"a plan of {len(plan.ops)} collectives at {len(plan.sizes_bytes)} sizes"
    if not all(0 < size <= _LARGEST_BYTES for size in plan.sizes_bytes):
        yield "a size out of bounds"
    if plan.dtype not in ELEMENT_BYTES:
        yield "a type of elements that is none"
    if not 0 <= plan.warmup <= _MOST_ITERATIONS or not 0 < (plan.iters or 1) <= _MOST_ITERATIONS:
        yield "a number of iterations out of bounds"
    if not 0.0 < plan.budget_s <= timeouts.LONGEST_OPTION_S:
        yield "a budget out of bounds"
