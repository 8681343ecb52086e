"""Runs of three real nodes under attack, compared with the same run in peace."""

from __future__ import annotations

import re
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct

from tests.lab.launched import Told, read, start
from tests.lab.nodes import PYTHON, Lab
from tests.lab.process import wait_all

KEY = "attacked-" * 4
ATTACKER = Path(__file__).with_name("attacker.py")
ROOT = str(ATTACKER.parent.parent.parent)
_COUNTER = """
import pathlib, socket
file, count = pathlib.Path.home() / "called", 0
listener = socket.create_server(("", 40099))
while True:
    file.write_text(str(count))
    listener.accept()[0].close()
    count += 1
"""
_WORDS = ("preflight", "--timeout", "30", "--join-timeout", "10")
MEASURING = "measuring-"  # begins the name of an attack on a benchmark
_BENCH = (
    "bench", "--sizes", "64K,1M", "--ops", "all_reduce", "--iters", "1000", "--backend", "gloo", "--timeout", "40",
)  # fmt: skip
_PAIRS = ("isolate", "--size", "256K", "--timeout", "50")
_WORDS_OF = {MEASURING: _BENCH, "isolating-": _PAIRS}  # which runs attacks of such a name are on
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|^::error::x", re.MULTILINE)
_CHANCE = frozenset({"bench-unstable", "bench-slow-rank"})  # what a busy machine makes of a benchmark
_LONGEST_S = 60.0
MOST_MB = 500
LATE_S = 4.0  # so much later node 0 starts, in attacks on those who look for it


class Run(Struct, frozen=True):
    """How a run of three nodes ended: for each node its exit code and findings, and what it took."""

    codes: tuple[int, ...]
    findings: tuple[tuple[str, ...], ...]
    seconds: float
    memory_mb: int
    hung: bool
    harm: tuple[str, ...]  # what ran, was called, or was left

    def text(self) -> str:
        """Return it for a table."""
        found = sorted({slug for node in self.findings for slug in node}) or ["none"]
        harm = f", HARM: {', '.join(self.harm)}" if self.harm else ""
        hung = ", HUNG" if self.hung else ""
        codes = "/".join(map(str, self.codes))
        return f"exit {codes}, {self.seconds:.1f} s, {self.memory_mb} MB, findings: {', '.join(found)}{harm}{hung}"


def attacked(attack: str | None, *, keyed: bool, log_folder: Path, measures: bool = False) -> Run:
    """Return how a run ends while somebody on the switch attacks it; None: in peace, a benchmark if it `measures`."""
    measures = measures or (attack is not None and attack.startswith(MEASURING))
    kind = next((kind for kind in _WORDS_OF if (attack or "").startswith(kind)), "")
    words_of_run = _WORDS_OF.get(kind, _BENCH if measures else _WORDS)
    late_s = LATE_S if attack is not None and attack.startswith("late-node-0") else 0.0
    with Lab(3) as lab, ExitStack() as stack, tempfile.TemporaryDirectory() as empty:
        if attack is not None:
            stack.enter_context(lab.switch.service([PYTHON, "-c", _COUNTER]))
            folder = log_folder if attack.startswith("replay") else Path(empty)
            nodes = [node.address for node in lab.nodes]
            words = [attack, nodes[0], lab.switch.address, str(folder), *nodes]
            stack.enter_context(lab.switch.service([PYTHON, str(ATTACKER), *words], {"PYTHONPATH": ROOT}))
            attacker_log, until = lab.switch.folder / "home" / "attacker", time.monotonic() + 60
            while not attacker_log.exists() and time.monotonic() < until:
                time.sleep(0.05)
        began = time.monotonic()
        env = {"NCCLCHECK_KEY": KEY} if keyed else {}
        first, *others = lab.nodes
        running = {}
        if late_s:
            running = start(lab, *words_of_run, env=env, nodes=others)
            time.sleep(late_s)
        running |= start(lab, *words_of_run, env=env, nodes=(first,) if late_s else lab.nodes)
        peak = 0
        while any(process.alive for process in running.values()) and time.monotonic() < began + _LONGEST_S:
            peak = max([peak, *(_memory_mb(process.pid) for process in running.values())])
            time.sleep(0.05)
        ended = wait_all(list(running.values()), 1)
        outcomes = [read(lab[finished.node], finished) for finished in ended]
        return Run(
            codes=tuple(outcome.code for outcome in outcomes),
            findings=tuple(_findings(outcome) for outcome in outcomes),
            seconds=max(outcome.finished.seconds for outcome in outcomes) - late_s,
            memory_mb=peak,
            hung=any(outcome.finished.timed_out for outcome in outcomes),
            harm=(*_harm(lab, attack is not None), *_unsafe(outcomes)),
        )


def faults(run: Run, peace: Run, *, keyed: bool) -> list[str]:
    """Return what an attack must not have done."""
    found = list(run.harm) + (["hung"] if run.hung else [])
    if run.memory_mb > MOST_MB:
        found.append(f"{run.memory_mb} MB")
    if keyed:
        if (run.codes, run.findings) != (peace.codes, peace.findings):
            found.append("another verdict or finding")
        if run.seconds > peace.seconds + 5:
            found.append(f"{run.seconds - peace.seconds:.1f} s later")
    return found


def _findings(outcome: Told) -> tuple[str, ...]:
    return tuple(sorted(outcome.slugs - _CHANCE)) if outcome.report is not None else ("no report",)


def _harm(lab: Lab, is_counted: bool) -> tuple[str, ...]:
    owned = [
        f"a command ran on {node.name}" for node in lab.nodes if (node.folder / "home" / "owned").exists()
    ]
    called = lab.switch.folder / "home" / "called"
    count = called.read_text() if is_counted and called.exists() else "0"
    left = [
        f"left: {leftover.what} on {leftover.node}"
        for leftover in lab.leftovers()
        if leftover.node != "switch"
    ]
    return (*owned, *(["a third address was called"] if count not in ("", "0") else []), *left)


def _unsafe(outcomes: list[Told]) -> tuple[str, ...]:
    """Return which nodes printed what a terminal, or a log that is read by GitHub, would follow."""
    return tuple(
        f"an unsafe letter on {outcome.finished.node}"
        for outcome in outcomes
        if _UNSAFE.search(outcome.finished.stdout + outcome.finished.stderr)
    )


def _memory_mb(pid: int) -> int:
    """Return the memory that the process itself has, without what it shares with the one that it was forked from."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) >> 10 for line in lines if line.startswith("VmRSS")), 0)
