"""One run of node 0, the real program, with simulated nodes, in a network namespace of its own."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec
from msgspec import Struct

from scripts.scaling import network
from scripts.scaling.agents import Agents, Counts, Plan
from scripts.scaling.node_facts import Model

PORT = 29500
_MEBI = 1 << 20
_SAMPLE_S = 0.1


class NodeZero(Struct, frozen=True):
    """How node 0 ended, what it said when, and what it took. `began`: on the monotonic clock."""

    exit_code: int
    report: str
    began: float
    seconds: float
    cpu_s: float
    peak_mib: float
    said: tuple[tuple[float, str], ...]
    used: tuple[tuple[float, float], ...]  # after so many seconds, CPU seconds of the process so far

    def cpu_at(self, seconds: float) -> float:
        """Return the CPU seconds that it had used by then."""
        return max((cpu_s for at, cpu_s in self.used if at <= seconds), default=0.0)


class Outcome(Struct, frozen=True):
    """What a run took. `phases`: seconds from the start of node 0 until the last node came there."""

    nodes: int
    first: NodeZero
    phases: dict[str, float]
    agents: Counts
    wire_bytes: int
    facts_bytes: int
    load: float

    @property
    def is_whole(self) -> bool:
        """Return whether all simulated nodes ended with the same verdict, which counts every node."""
        return (
            self.agents.ended == self.nodes - 1
            and len(self.agents.exit_codes) == 1
            and self.first.exit_code in (0, 1)
        )

    def figures(self) -> dict[str, float]:
        """Return the figures that must not grow faster than the nodes."""
        return {
            "seconds": self.first.seconds,
            "CPU of node 0": self.first.cpu_s,
            "memory of node 0": self.first.peak_mib,
            "requests": float(sum(self.agents.requests.values())),
            "bytes in the store": float(self.agents.sent_bytes + self.agents.received_bytes),
        }

    def text(self) -> str:
        """Return it for people."""
        count = self.nodes - 1
        requests = sum(self.agents.requests.values())
        kinds = ", ".join(
            f"{name} {number / count:.1f}" for name, number in sorted(self.agents.requests.items())
        )
        lines = [
            f"{self.nodes} nodes with {self.facts_bytes} bytes of facts: "
            f"exit {self.first.exit_code} after {self.first.seconds:.1f} s",
            f"  node 0: {self.first.cpu_s:.1f} s of CPU, {self.first.peak_mib:.0f} MiB; "
            f"simulated nodes: {self.agents.cpu_s:.1f} s of CPU; load before: {self.load:.1f}",
            f"  per simulated node: {requests / count:.1f} requests ({kinds}), "
            f"{self.agents.sent_bytes / count:.0f} bytes sent, {self.agents.received_bytes / count:.0f} received; "
            f"{self.wire_bytes / count:.0f} bytes on the wire with all headers and probes",
            f"  ended with the verdict: {self.agents.ended} of {count}, {self.agents.exit_codes}",
        ]
        events = [(at, f"last node: {phase}") for phase, at in self.phases.items()]
        events += [(at, f"node 0: {line}") for at, line in self.first.said]
        lines += [f"  {at:6.2f} s  {self.first.cpu_at(at):6.2f} s CPU  {text}" for at, text in sorted(events)]
        lines += [f"  failed: {number} x {why}" for why, number in sorted(self.agents.failed.items())[:5]]
        return "\n".join(lines)


def measure(nodes: int, facts_bytes: int, processes: int, timeout_s: float) -> Outcome:
    """Run once, in a child that enters a network namespace. Raises RuntimeError where that cannot be had."""
    reader, writer = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(
        target=_run, args=(writer, nodes, facts_bytes, processes, timeout_s)
    )
    child.start()
    writer.close()
    try:
        found = reader.recv_bytes()
    except EOFError:
        raise RuntimeError("the run ended without a result") from None
    finally:
        child.join()
    return msgspec.msgpack.decode(found, type=Outcome)


def _run(writer: Connection, nodes: int, facts_bytes: int, processes: int, timeout_s: float) -> None:
    network.enter()
    load = os.getloadavg()[0]
    import torch.distributed  # noqa: F401  (before the processes part: it takes seconds)

    model = Model(facts_bytes)
    parts = [tuple(range(first, nodes, processes)) for first in range(1, processes + 1)]
    simulators = [_Simulator(Plan(ranks, nodes, PORT, timeout_s), model) for ranks in parts]
    for simulator in simulators:
        simulator.prepared()
    before = network.bytes_on_wire()
    first = _node_zero(nodes, timeout_s, simulators)
    counts = _together([simulator.counts() for simulator in simulators])
    writer.send_bytes(
        msgspec.msgpack.encode(
            Outcome(
                nodes=nodes,
                agents=counts,
                phases={phase: round(at - first.began, 3) for phase, at in counts.last_at.items()},
                wire_bytes=network.bytes_on_wire() - before,
                facts_bytes=model.bytes,
                load=load,
                first=first,
            )
        )
    )


class _Simulator:
    """A process that simulates some nodes."""

    def __init__(self, plan: Plan, model: Model) -> None:
        self._reader, writer = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("fork").Process(
            target=_simulate, args=(writer, plan, model)
        )
        self._process.start()
        self._seconds = plan.timeout_s

    def prepared(self) -> None:
        """Return once it has prepared the facts of its nodes."""
        self._reader.recv_bytes()

    def go(self) -> None:
        """Let it look for node 0."""
        self._reader.send_bytes(b"go")

    def counts(self) -> Counts:
        """Return what its nodes did, once they have ended."""
        found = self._reader.recv_bytes() if self._reader.poll(30) else None
        if found is None:
            self._process.kill()
        self._process.join()
        return (
            Counts({}, failed={"the process did not end": 1})
            if found is None
            else msgspec.msgpack.decode(found, type=Counts)
        )


def _simulate(connection: Connection, plan: Plan, model: Model) -> None:
    faulthandler.enable()
    agents = Agents(plan, model)
    connection.send_bytes(b"prepared")
    connection.recv_bytes()
    connection.send_bytes(msgspec.msgpack.encode(agents.run()))
    os._exit(0)  # without waiting for thousands of threads


def _together(parts: list[Counts]) -> Counts:
    whole = Counts({})
    for part in parts:
        for name, number in part.requests.items():
            whole.requests[name] = whole.requests.get(name, 0) + number
        for why, number in part.failed.items():
            whole.failed[why] = whole.failed.get(why, 0) + number
        for code, number in part.exit_codes.items():
            whole.exit_codes[code] = whole.exit_codes.get(code, 0) + number
        for phase, at in part.last_at.items():
            whole.last_at[phase] = max(whole.last_at.get(phase, 0.0), at)
        whole.sent_bytes += part.sent_bytes
        whole.received_bytes += part.received_bytes
        whole.ended += part.ended
        whole.cpu_s += part.cpu_s
    return whole


def _cpu_s(pid: int) -> float | None:
    """Return what the process has used, without its children; None once it has ended."""
    try:
        columns = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    if columns[0] == "Z":
        return None
    return (int(columns[11]) + int(columns[12])) / os.sysconf("SC_CLK_TCK")


def _node_zero(nodes: int, timeout_s: float, simulators: list[_Simulator]) -> NodeZero:
    command = [sys.executable, "-m", "ncclcheck", "preflight", "--nnodes", str(nodes), "--node-rank", "0"]
    command += ["--master-addr", str(network.FIRST), "--master-port", str(PORT), "--timeout", str(timeout_s)]
    lines: list[tuple[float, str]] = []
    with tempfile.TemporaryFile("w+") as report:
        began = time.monotonic()
        process = subprocess.Popen(
            command, stdout=report, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).resolve().parents[2]
        )
        for simulator in simulators:
            simulator.go()

        used: list[tuple[float, float]] = []

        def watch() -> None:
            while (cpu_s := _cpu_s(process.pid)) is not None:
                used.append((round(time.monotonic() - began, 3), cpu_s))
                time.sleep(_SAMPLE_S)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()

        def listen() -> None:
            for line in process.stderr or ():
                lines.append((round(time.monotonic() - began, 3), line.rstrip()[:160]))

        listener = threading.Thread(target=listen)
        listener.start()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        listener.join()
        report.seek(0)
        return NodeZero(
            exit_code=process.returncode,
            report=report.read(),
            began=began,
            seconds=round(seconds, 3),
            cpu_s=round(usage.ru_utime + usage.ru_stime, 3),
            peak_mib=round(usage.ru_maxrss * 1024 / _MEBI, 1),
            said=tuple(lines),
            used=tuple(used),
        )
