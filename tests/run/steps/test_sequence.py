"""A node checks an order before it follows it: nobody who writes one runs, sets or starts what node 0 never would."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ncclcheck.bench.nodes.bench_order import BenchOrder
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import SCHEMA
from ncclcheck.exchange.probe.reachability import Listeners
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.opening import within_process
from ncclcheck.facts.nccl.nccl_listener import NcclListener
from ncclcheck.launch.flags import LaunchFlags
from ncclcheck.model.bench import BenchPlan
from ncclcheck.model.benchmarks.mesh import Mesh, MeshDimension
from ncclcheck.model.benchmarks.mesh_bench import MeshCall, MeshPlan
from ncclcheck.model.codec import encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.launch import Launch
from ncclcheck.nccl.settable import SETTABLE, refusal
from ncclcheck.nccl.variables.variables import TABLE
from ncclcheck.run.context import Context
from ncclcheck.run.local_node import LocalNode
from ncclcheck.run.options import RunOptions
from ncclcheck.run.session import OrderMessage
from ncclcheck.run.steps.base import RANKS_UNASKED, Bounds, Participant
from ncclcheck.run.steps.compare import CompareOrder
from ncclcheck.run.steps.confirm import ConfirmOrder
from ncclcheck.run.steps.finish import Finish
from ncclcheck.run.steps.recount import RecountOrder
from ncclcheck.run.steps.sequence import STEPS, read_order
from tests.fact_builders import launch, node_facts

NO_FLAGS = LaunchFlags()


def test_every_step_that_nodes_follow_has_a_name_for_people() -> None:
    for step in STEPS:
        assert bool(step.doing) == (step.follow is not None), step.name


BOUNDS = Bounds(ticket=2, most_ranks=8)
PLAN = BenchPlan("gloo", ("all_reduce",), (1 << 20,), "float32", 5, None, 20.0, verify=True)
BENCH = BenchOrder(
    PLAN, 2, ("node1", "node2"), {"1": 0, "2": 1}, {"1": 1, "2": 1}, {"2": {"GLOO_SOCKET_IFNAME": "eth0"}}, "ab12", 60.0
)  # fmt: skip
MESH = MeshPlan(Mesh((MeshDimension("dp", 2),)), (MeshCall("dp", "all_reduce", 1024),), 5.0)
EVIL = {
    "LD_PRELOAD": "/tmp/evil.so",
    "PYTHONPATH": "/tmp/evil",
    "PYTHONSTARTUP": "/tmp/evil.py",
    "NCCL_NET_PLUGIN": "/tmp/libevil.so",
    "NCCL_DEBUG_FILE": "/dev/tcp",
    "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": "/tmp/pipe",
    "NCCL_COMM_ID": "192.0.2.1:80",
    "PATH": "/tmp/evil",
}


def written(order: object) -> bytes:
    return encode(OrderMessage(SCHEMA, "1", order))


@pytest.mark.parametrize(
    "order",
    [
        BENCH,
        CompareOrder((replace(BENCH, name="as-is"), replace(BENCH, name="advised", turns=True))),
        ConfirmOrder({"2": ({"NCCL_SOCKET_IFNAME": "=eth0", "NCCL_COMM_ID": None},)}, 15.0),
        RecountOrder(),
        Finish(0, ("fine",)),
    ],
)
def test_an_order_of_node_0_is_read(order: object) -> None:
    assert read_order(written(order), BOUNDS) == order


@pytest.mark.parametrize("name", EVIL)
def test_no_order_sets_what_could_run_or_call_something(name: str) -> None:
    environment: dict[str, str | None] = {name: EVIL[name]}
    for order in (
        replace(BENCH, environments={"2": environment}),
        replace(BENCH, environments={"1": environment}),  # it is none of node 0's, whoever is meant
        CompareOrder((replace(BENCH, name="advised", environments={"2": environment}),)),
        ConfirmOrder({"2": ({}, environment)}, 15.0),
    ):
        with pytest.raises(DecodeError, match=name):
            read_order(written(order), BOUNDS)


@pytest.mark.parametrize(
    "order",
    [
        replace(BENCH, count={"2": 9}, world_size=9, hosts=("node2",) * 9, first_rank={}),
        replace(BENCH, count={"2": -1}),
        replace(BENCH, first_rank={"2": 2}),
        replace(BENCH, first_rank={"2": -1}),
        replace(BENCH, world_size=3),
        replace(BENCH, world_size=0, hosts=()),
        replace(BENCH, hosts=("node1", "\x1b[2J")),
        replace(BENCH, nonce="../../master"),
        replace(BENCH, nonce=""),
        replace(BENCH, deadline_s=1e300),
        replace(BENCH, deadline_s=-1.0),
        replace(BENCH, plan=replace(PLAN, dtype="__class__")),
        replace(BENCH, plan=replace(PLAN, sizes_bytes=())),
        replace(BENCH, plan=replace(PLAN, sizes_bytes=(0,))),
        replace(BENCH, plan=replace(PLAN, sizes_bytes=(1 << 60,))),
        replace(BENCH, plan=replace(PLAN, sizes_bytes=(1,) * 5000)),
        replace(BENCH, plan=replace(PLAN, mesh=replace(MESH, calls=MESH.calls * 5000))),
        replace(BENCH, plan=replace(PLAN, mesh=replace(MESH, mesh=Mesh((MeshDimension("dp", 1 << 40),))))),
        replace(BENCH, plan=replace(PLAN, mesh=replace(MESH, budget_s=1e12))),
        replace(BENCH, plan=replace(PLAN, iters=1 << 40)),
        replace(BENCH, plan=replace(PLAN, warmup=-1)),
        replace(BENCH, plan=replace(PLAN, budget_s=1e9)),
        replace(BENCH, environments={"2": dict.fromkeys(sorted(SETTABLE))}),
        CompareOrder((BENCH,)),
        CompareOrder((replace(BENCH, name="as-is"),) * 2),
        ConfirmOrder({"2": ({},) * 5000}, 15.0),
        ConfirmOrder({}, 1e9),
    ],
)
def test_what_node_0_never_asks_for_is_refused(order: object) -> None:
    with pytest.raises(DecodeError):
        read_order(written(order), BOUNDS)


def bounds(place: Launch, flags: LaunchFlags = NO_FLAGS) -> Bounds:
    """What a node accepts whose launcher and flags say this."""
    context = Context(RunOptions("bench", flags), {}, place, "node01", Deadline(60), lambda _: None)
    listeners, nccl = Listeners(), NcclListener()
    try:
        local = LocalNode(node_facts(0, 2), listeners, (), Missing("absent", ""), nccl)
        return Participant(context, within_process(MemoryBackend(), 0), 3, "", local).bounds
    finally:
        listeners.close()


def test_a_node_starts_as_many_ranks_as_it_knows_of_itself() -> None:
    assert bounds(launch(0, 2)).most_ranks == RANKS_UNASKED
    assert bounds(launch(0, 2), LaunchFlags(nproc_per_node=64)).most_ranks == 64
    said = replace(launch(0, 2), nproc_per_node=128)
    assert bounds(said).most_ranks == 128
    assert "10.0.0.1" in bounds(said).addresses


names = st.one_of(st.text(), st.sampled_from(sorted(TABLE)), st.sampled_from(sorted(EVIL)))
environments = st.dictionaries(
    names, st.one_of(st.none(), st.text(), st.just("1"), st.just("eth0")), max_size=3
)
orders = st.one_of(
    environments.map(lambda settings: replace(BENCH, environments={"2": settings})),
    environments.map(
        lambda settings: CompareOrder((replace(BENCH, name="as-is", environments={"7": settings}),))
    ),
    environments.map(lambda settings: ConfirmOrder({"2": (settings,)}, 15.0)),
)


@given(orders)
def test_no_order_that_is_read_holds_a_name_that_may_not_be_set(order: object) -> None:
    try:
        read = read_order(written(order), BOUNDS)
    except (DecodeError, UnicodeEncodeError):
        return
    sets = read.sets if isinstance(read, CompareOrder) else (read,)
    for inner in sets:
        assert isinstance(inner, (BenchOrder, ConfirmOrder))
        for value in inner.environments.values():
            for environment in value if isinstance(value, tuple) else (value,):
                assert all(refusal(name, setting) is None for name, setting in environment.items())


@pytest.mark.slow
@given(
    st.recursive(
        st.none() | st.text() | st.integers() | st.floats(), lambda inner: st.dictionaries(st.text(), inner)
    )
)
def test_garbage_is_refused_and_nothing_else_happens(garbage: object) -> None:
    for data in (garbage, {"schema_version": SCHEMA, "tool_version": "1", "order": garbage}):
        with pytest.raises(DecodeError):
            read_order(msgspec.json.encode(data), BOUNDS)
