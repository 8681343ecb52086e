"""Simulated nodes: the project's own participant code over real TCPStore connections, a thread each.

They do not call each other: they answer at once as a healthy node would. What concerns node 0 is real: it reaches their
listener, and those that are its partners measure with it.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import pack
from ncclcheck.exchange.probe.reachability import Listeners
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.tcp import TcpBackend, TcpStore
from ncclcheck.facts.nccl.nccl_listener import NcclListener
from ncclcheck.launch.flags import LaunchFlags
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterPath
from ncclcheck.run.context import Context
from ncclcheck.run.follow import OrderReader
from ncclcheck.run.local_node import LocalNode
from ncclcheck.run.options import RunOptions
from ncclcheck.run.steps.base import Participant
from ncclcheck.run.steps.facts import report_facts
from ncclcheck.run.steps.finish import Finish
from ncclcheck.run.steps.join import arrive
from scripts.scaling.answers import answer_to
from scripts.scaling.listener import SharedListener
from scripts.scaling.network import FIRST, INTERFACE, address_of
from scripts.scaling.node_facts import Model, host_of, launch_of

_SWITCH_S = 0.5  # thousands of threads that wait for the interpreter would wake that often


class Plan(Struct, frozen=True):
    """Which nodes a process simulates, of how many, where node 0 is, and for how long."""

    ranks: tuple[int, ...]
    nnodes: int
    port: int
    timeout_s: float


class Counts(Struct):
    """What the nodes of a process did: requests and bytes to node 0's store, and when (monotonic) each phase ended."""

    requests: dict[str, int]
    sent_bytes: int = 0
    received_bytes: int = 0
    joined: int = 0
    ended: int = 0
    failed: dict[str, int] = {}
    exit_codes: dict[str, int] = {}
    last_at: dict[str, float] = {}  # phase -> when the last node came there
    cpu_s: float = 0.0


class CountingStore:
    """A TCPStore whose requests and bytes are counted (`check`, `get`, ... each one round trip, or one message)."""

    def __init__(self, raw: Any, counts: Counts) -> None:
        self._raw, self._counts = raw, counts

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method, counts = getattr(self._raw, name), self._counts

        def counted(*args: Any) -> Any:
            counts.requests[name] = counts.requests.get(name, 0) + 1
            counts.sent_bytes += sum(_size(arg) for arg in args)
            found = method(*args)
            counts.received_bytes += _size(found)
            return found

        return counted


def _size(value: Any) -> int:
    if isinstance(value, (bytes, str)):
        return len(value)
    return sum(map(_size, value)) if isinstance(value, (list, tuple)) else 8


class AgentStore(TcpStore):
    """A store whose calls run in the thread of their node, which is a daemon: thousands of nodes need no second one."""

    def __init__(self, backend: TcpBackend) -> None:
        self._backend, self.port, self._lost = backend, 0, None
        self._waits, self._small_packets = True, None

    def _call(self, function: Callable[[Any], Any]) -> Any:
        if self._lost is not None:
            return self._lost
        try:
            return function(self._backend)
        except Exception as error:
            self._lost = Missing("error", str(error).splitlines()[0])
            return self._lost

    def close(self) -> None:
        """Leave."""
        self._lost, self._backend = Missing("absent", "closed"), None


class Agents:
    """The simulated nodes of one process. State: what they did so far."""

    def __init__(self, plan: Plan, model: Model) -> None:
        self._plan, self._listener = plan, SharedListener()
        self.counts = Counts({})
        self._lock = threading.Lock()
        launches = {rank: launch_of(rank, plan.nnodes, plan.port) for rank in plan.ranks}
        self._nodes = {rank: (model.facts(rank, launch), launch) for rank, launch in launches.items()}
        self._cpu_before = time.process_time()

    def run(self) -> Counts:
        """Wait for node 0, take part with all nodes, and return what they did."""
        _await_port(str(FIRST), self._plan.port, Deadline(self._plan.timeout_s))
        threading.stack_size(8 << 20)
        sys.setswitchinterval(_SWITCH_S)
        threads = [
            threading.Thread(target=self._node, args=(rank,), daemon=True) for rank in self._plan.ranks
        ]
        for thread in threads:
            thread.start()
        deadline = Deadline(self._plan.timeout_s)
        for thread in threads:
            thread.join(deadline.left())
        self.counts.cpu_s = time.process_time() - self._cpu_before
        return self.counts

    def _node(self, rank: int) -> None:
        try:
            why = self._take_part(rank)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"[:200]
        with self._lock:
            if why:
                self.counts.failed[why] = self.counts.failed.get(why, 0) + 1
            else:
                self.counts.ended += 1

    def _reached(self, phase: str) -> None:
        with self._lock:
            self.counts.last_at[phase] = time.monotonic()

    def _take_part(self, rank: int) -> str:
        from torch.distributed import TCPStore

        facts, launch = self._nodes[rank]
        patience = timedelta(seconds=self._plan.timeout_s)
        raw = TCPStore(str(FIRST), self._plan.port, is_master=False, wait_for_workers=False, timeout=patience)
        options = RunOptions("preflight", LaunchFlags(), wants_documents=False)
        host = host_of(rank)
        context = Context(options, {}, launch, host, Deadline(self._plan.timeout_s), lambda _: None)
        store = AgentStore(TcpBackend(CountingStore(raw, self.counts), context.prefix))
        nonce = store.wait(keys.SERVING, context.deadline)
        if isinstance(nonce, Missing):
            return f"serving: {nonce.detail}"
        participant = arrive(context, store, nonce)
        if isinstance(participant, Missing):
            return f"arrive: {participant.detail}"
        self._listener.nonce = participant.nonce
        self._listener.ticket_of[rank] = participant.ticket
        local = LocalNode(
            facts,
            Listeners.__new__(_Unserved),
            (self._listener.target(rank),),
            Missing("absent"),
            NcclListener(),
        )
        participant = replace(participant, local=local)
        path = MasterPath(
            str(FIRST), self._plan.port, (str(FIRST),), False, address_of(rank), INTERFACE, "answered"
        )
        report_facts(participant, path)
        self._reached("facts sent")
        return self._follow(participant, rank)

    def _follow(self, participant: Participant, rank: int) -> str:
        reader = OrderReader(participant)
        while True:
            received = reader.next(participant.context.deadline)
            if isinstance(received, Missing):
                return f"follow: {received.detail}"
            number, order = received
            self._reached(f"order {number} {type(order).__name__} read")
            if isinstance(order, Finish):
                code = str(order.exit_code)
                self.counts.exit_codes[code] = self.counts.exit_codes.get(code, 0) + 1
                participant.store.set_document(keys.bye(participant.ticket), b"1")
                return ""
            answer = answer_to(order, participant, lambda: self._listener.channels_of(rank))
            participant.store.set_document(keys.answer(number, participant.ticket), pack(answer))
            self._reached(f"order {number} {type(order).__name__} answered")


class _Unserved(Listeners):
    """Stands where a node's own listeners are: the shared listener takes any caller."""

    def admit(self, nonce: str, ticket: int) -> None:
        """Do nothing."""


def _await_port(host: str, port: int, deadline: Deadline) -> None:
    while not deadline.passed:
        try:
            socket.create_connection((host, port), 5).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
