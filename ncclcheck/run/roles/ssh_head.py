"""A run led from outside: the head node starts ncclcheck on every host over ssh, and all messages go through that.

So all facts come together though no node may reach another by TCP. The head node itself is not checked, unless it is
one of the hosts.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.checks.registry import Selection
from ncclcheck.exchange.announcements import tell_of_first_node
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import SCHEMA, TOOL_VERSION
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.opening import within_process
from ncclcheck.exchange.store.pipe import answer_call
from ncclcheck.exchange.trust.run_key import new_key
from ncclcheck.exchange.trust.trust import Trust
from ncclcheck.facts.network.interfaces import addresses_now
from ncclcheck.facts.network.names import host_name
from ncclcheck.launch.flags import LaunchFlags
from ncclcheck.launch.reading import DEFAULT_PORT, port
from ncclcheck.measure.remaining import TimeLeft
from ncclcheck.model.codec import encode
from ncclcheck.model.formats.prose import plural
from ncclcheck.model.launch import Launch
from ncclcheck.model.report import Report
from ncclcheck.model.saved import Saved
from ncclcheck.model.snapshot import Silent, Snapshot, Unreached
from ncclcheck.run.context import Context
from ncclcheck.run.coordinator import lead, tell_verdict
from ncclcheck.run.judge import judge, save, start_clock
from ncclcheck.run.options import HeadRequest, RunOptions, RunResult
from ncclcheck.run.session import Joining, Session
from ncclcheck.run.state import RunState
from ncclcheck.run.steps.facts import FACTS
from ncclcheck.run.steps.join import JOIN
from ncclcheck.spawn.fleet import Fleet, Host
from ncclcheck.spawn.process import raise_file_limit
from ncclcheck.spawn.ssh import local_command, ssh_command
from ncclcheck.timeouts import SSH_BYE_S, SSH_COLLECT_S, SSH_CONNECT_S

_FILES, _FILES_PER_HOST = 256, 3


class RemoteTask(Struct, frozen=True, forbid_unknown_fields=True):
    """What a host is told: its part of the run, and in which folder to work, where it has that folder."""

    options: RunOptions
    folder: str
    port: int


def run_from_head(
    options: RunOptions,
    environ: Mapping[str, str],
    say: Callable[[str], None],
    show: Callable[[TimeLeft], None] = lambda _: None,
) -> RunResult:
    """Run to the end, which comes by the deadline whatever the hosts do; afterwards nothing of ours runs on them."""
    clock, request = start_clock(), options.head
    assert request is not None  # noqa: S101 (the caller chose this role for it)
    launch, trust = head_launch(options.flags, request), Trust(new_key("ssh"))
    options = replace(options, key=trust.key)  # it goes to the hosts over ssh's standard input
    deadline = Deadline(options.timeout_s)
    context = Context(options, dict(environ), launch, host_name(), deadline, say, show, trust)
    memory = MemoryBackend()
    store = within_process(memory, launch.master_port)
    store.set(keys.SERVING, secrets.token_bytes(16))
    fleet = _fleet(context, request, store, memory)
    joining = Joining(options.join_timeout_s, given_up=lambda: [host.node_rank for host in fleet.unreached()])
    session = Session(context, store, RunState(), context.steps_deadline(), joining)
    interrupted = False
    try:
        fleet.start()
        say(f"starting ncclcheck on {plural(launch.nnodes, 'host')} over ssh")
        try:
            lead(replace(session, deadline=context.steps_deadline()))
        except KeyboardInterrupt:
            interrupted = True
            if not session.snapshot.nodes:
                session.state.snapshot = _so_far(session)
        snapshot = replace(session.snapshot, authentication=trust.authentication())
        snapshot = with_unreached(snapshot, fleet.unreached())
        saved = save(snapshot, options, clock, interrupted=interrupted)
        report = judge(saved, options)
    except BaseException:
        fleet.close()
        raise
    tell = partial(_tell, session, fleet, report, saved)
    return RunResult(report, saved, prints=True, release=fleet.close if interrupted else tell)


def head_launch(flags: LaunchFlags, request: HeadRequest) -> Launch:
    """Return the job as the head node sees it: one process per host.

    Node 0 is the first host, under the name in the list, unless a flag or MASTER_ADDR names it otherwise.
    """
    nnodes, environment = len(request.hosts), request.environment
    return Launch(
        source="flags",
        rank=0,
        world_size=nnodes,
        local_rank=0,
        local_world_size=1,
        node_rank=0,
        nnodes=nnodes,
        master_addr=flags.master_addr or environment.get("MASTER_ADDR") or request.hosts[0],
        master_port=flags.master_port or port(environment, DEFAULT_PORT),
        nproc_per_node=flags.nproc_per_node,
        hosts=request.hosts,
    )


def with_unreached(snapshot: Snapshot, unreached: tuple[Unreached, ...]) -> Snapshot:
    """Add the hosts that could not take part; each of them is silent, also if it was lost at the end."""
    silent = {node.node_rank for node in snapshot.silent}
    named = {node.node_rank: node.host for node in snapshot.nodes}
    lost = tuple(
        Silent(named.get(host.node_rank, host.host), host.node_rank, "probes", host.seconds)
        for host in unreached
        if host.node_rank not in silent
    )
    # It goes by one name: that which it gave itself, if it was there.
    known = tuple(replace(host, host=named.get(host.node_rank, host.host)) for host in unreached)
    return replace(snapshot, viewpoint="all", unreached=known, silent=(*snapshot.silent, *lost))


def _so_far(session: Session) -> Snapshot:
    """Return what the hosts have said up to now."""
    early = replace(session, deadline=Deadline(SSH_COLLECT_S), joining=Joining(0.0))
    session.state.snapshot = JOIN.lead(early)
    return FACTS.lead(early)


def _tell(session: Session, fleet: Fleet, report: Report, saved: Saved) -> None:
    try:
        tell_verdict(session, report, saved)
    finally:
        fleet.close(SSH_BYE_S)


def _fleet(context: Context, request: HeadRequest, store: Store, memory: MemoryBackend) -> Fleet:
    options, launch = context.options, context.launch
    connect_s = min(SSH_CONNECT_S, options.join_timeout_s)
    own_files = raise_file_limit(_FILES + _FILES_PER_HOST * launch.nnodes)
    own_names = {context.host, context.host.partition(".")[0], "localhost", *addresses_now()}

    def host(rank: int) -> Host:
        name, target = request.hosts[rank], request.targets[rank]
        command = ssh_command(request.ssh, target, request.python, request.environment, connect_s)
        fallback = local_command(request.python, request.environment, own_files) if name in own_names else []
        return Host(name, rank, tuple(command), task_of(context, request, rank), tuple(fallback))

    def failed(unreached: Unreached) -> None:
        context.say(f"{unreached.host}: {unreached.cause}: {unreached.detail}")
        if unreached.node_rank == 0:
            detail = f"{unreached.host} was not reached: {unreached.detail}"
            tell_of_first_node(store, serving=False, detail=detail)

    return Fleet(
        [host(rank) for rank in range(launch.nnodes)],
        partial(answer_call, backend=memory),
        version=TOOL_VERSION,
        schema_version=SCHEMA,
        python=request.python,
        greeting_s=options.join_timeout_s,
        environ=context.environ,
        failed=failed,
    )


def task_of(context: Context, request: HeadRequest, rank: int) -> bytes:
    """Return the task of one host, as a line. What is judged is judged here, so the host is not told how."""
    launch, options = context.launch, context.options
    flags = LaunchFlags(
        nnodes=launch.nnodes,
        node_rank=rank,
        master_addr=launch.master_addr if launch.nnodes > 1 else None,
        master_port=launch.master_port,
        nproc_per_node=launch.nproc_per_node or request.slots[rank],
    )
    own_launch = replace(
        options,
        flags=flags,
        selection=Selection(),
        expected=None,
        wants_documents=False,
        head=None,
        line=None,
        applies=False,
        starts=False,
        timeout_s=max(context.deadline.left(), 1.0),
    )
    return encode(RemoteTask(own_launch, request.folder, launch.master_port))
