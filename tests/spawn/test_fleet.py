"""Real processes in the place of ssh: how they are started, answered, given up and ended."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.pipe import answer_call
from ncclcheck.model.snapshot import Unreached
from ncclcheck.spawn.fleet import NOISE_LIMIT_BYTES, Fleet, Host
from ncclcheck.spawn.process import state_letter

GREETS = """
import sys, os, json
def greet(version="1", before=""):
    words = json.dumps({"version": version, "schema_version": "1"})
    sys.stdout.write(before + '\\nncclcheck-remote-1 ' + words + '\\n')
    sys.stdout.flush()
def ask(**call):
    sys.stdout.write(json.dumps(call) + '\\n'); sys.stdout.flush()
    return json.loads(sys.stdin.readline())
"""


def host(script: str, rank: int = 0, fallback: str = "") -> Host:
    second = (sys.executable, "-c", GREETS + fallback) if fallback else ()
    return Host(f"node{rank + 1}", rank, (sys.executable, "-c", GREETS + script), b'{"a":1}', second)


@pytest.fixture
def fleet_of() -> Iterator[Callable[..., tuple[Fleet, MemoryBackend]]]:
    started: list[Fleet] = []

    def build(*hosts: Host, greeting_s: float = 20.0) -> tuple[Fleet, MemoryBackend]:
        memory = MemoryBackend()
        fleet = Fleet(
            hosts,
            partial(answer_call, backend=memory),
            version="1",
            schema_version="1",
            python="python",
            greeting_s=greeting_s,
            environ=os.environ,
        )
        fleet.start()
        started.append(fleet)
        return fleet, memory

    yield build
    for fleet in started:
        fleet.close()


def awaited(memory: MemoryBackend, key: str) -> bytes | None:
    deadline = Deadline(20)
    while memory.read(key) is None and not deadline.passed:
        time.sleep(0.01)
    return memory.read(key)


def given_up(fleet: Fleet, count: int = 1) -> tuple[Unreached, ...]:
    deadline = Deadline(20)
    while len(fleet.unreached()) < count and not deadline.passed:
        time.sleep(0.01)
    return fleet.unreached()


FleetOf = Callable[..., tuple[Fleet, MemoryBackend]]
SETS = "task = sys.stdin.readline(); ask(id=1, op='set', key='task', value='b2s='); "


def test_a_host_gets_its_task_and_answers_to_its_calls(fleet_of: FleetOf) -> None:
    script = (
        "greet(); assert json.loads(sys.stdin.readline()) == {'a': 1}\n"
        "ask(id=1, op='set', key='task', value='b2s='); n = ask(id=2, op='add', key='n', amount=1)['count']\n"
        "ask(id=3, op='set', key=f'done/{n}', value='eA==')"
    )
    fleet, memory = fleet_of(*(host(script, rank) for rank in range(3)))
    assert awaited(memory, "done/3") == b"x"
    assert memory.read("task") == b"ok"
    fleet.close(10)
    assert fleet.unreached() == ()


@pytest.mark.parametrize(
    "before", ["Welcome to the cluster!\\n", "no end of line", "{\\n", "\\x00\\xff" * 50]
)
def test_what_a_shell_prints_before_is_passed_over(fleet_of: FleetOf, before: str) -> None:
    fleet, memory = fleet_of(host(f'greet(before="{before}"); {SETS}'))
    assert awaited(memory, "task") == b"ok"
    assert fleet.unreached() == ()


def test_another_version_is_not_talked_to(fleet_of: FleetOf) -> None:
    fleet, memory = fleet_of(host(f"greet('0.9'); {SETS}"))
    (one,) = given_up(fleet)
    assert (one.cause, one.host) == ("other-version", "node1")
    assert "0.9" in one.detail
    assert memory.read("task") is None


@pytest.mark.parametrize(
    ("script", "cause", "words"),
    [
        (
            "greet(); sys.stdin.readline(); print('{\"id\": 1}', flush=True); sys.stdin.readline()",
            "garbage",
            "op",
        ),
        (f"print('x' * {NOISE_LIMIT_BYTES + 9}, flush=True); sys.stdin.readline()", "garbage", "more than"),
        ("sys.exit('it fails')", "ended", "it fails"),
        ("greet(); sys.stdin.readline(); sys.exit('it broke')", "lost", "it broke"),
        ("os.kill(os.getpid(), 9)", "ended", "signal 9"),
        (
            "sys.stderr.write('connect to host node1 port 22: Connection refused'); sys.exit(255)",
            "refused",
            "22",
        ),
    ],
)
def test_how_a_host_fails_is_told(fleet_of: FleetOf, script: str, cause: str, words: str) -> None:
    fleet, _ = fleet_of(host(script))
    (one,) = given_up(fleet)
    assert one.cause == cause
    assert words in one.detail


@pytest.mark.slow
def test_a_host_that_says_nothing_is_given_up_and_ended(fleet_of: FleetOf, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    script = f"open({str(file)!r}, 'w').write(str(os.getpid())); print('Have a nice day', flush=True); sys.stdin.read()"
    fleet, _ = fleet_of(host(script), greeting_s=3.0)
    (one,) = given_up(fleet)
    assert one.cause == "silent"
    assert "Have a nice day" in one.detail
    deadline = Deadline(5)
    while state_letter(int(file.read_text())) not in ("", "Z") and not deadline.passed:
        time.sleep(0.01)
    assert state_letter(int(file.read_text())) in ("", "Z")


def test_this_machine_needs_no_ssh_to_itself(fleet_of: FleetOf) -> None:
    refused = "sys.stderr.write('connect to host node1 port 22: Connection refused'); sys.exit(255)"
    fleet, memory = fleet_of(host(refused, fallback=f"greet(); {SETS}"))
    assert awaited(memory, "task") == b"ok"
    assert fleet.unreached() == ()


def test_a_command_that_is_not_there_is_named(fleet_of: FleetOf) -> None:
    fleet, _ = fleet_of(Host("node1", 0, ("/no/such/ssh",), b"{}"))
    (one,) = given_up(fleet)
    assert one.cause == "no-ssh"
    assert "/no/such/ssh" in one.detail


def test_a_limit_of_this_machine_is_not_taken_for_a_missing_ssh(fleet_of: FleetOf) -> None:
    fleet, _ = fleet_of(Host("node1", 0, ("true", "x" * (1 << 18)), b"{}"))  # MAX_ARG_STRLEN, execve(2)
    (one,) = given_up(fleet)
    assert (one.cause, one.detail) == ("not-started", "true: Argument list too long")


def test_a_host_that_only_asks_does_not_fill_the_memory(fleet_of: FleetOf) -> None:
    script = (
        "greet(); sys.stdin.readline(); big = 'YWFh' * 700_000; ask(id=1, op='set', key='big', value=big)\n"
        "while True: sys.stdout.write(json.dumps({'id': 2, 'op': 'read', 'key': 'big'}) + '\\n')"
    )
    fleet, _ = fleet_of(host(script))
    (one,) = given_up(fleet)
    assert one.cause == "garbage"
    assert "does not read the answers" in one.detail


def test_after_close_nothing_runs(fleet_of: FleetOf, tmp_path: Path) -> None:
    script = "greet(); import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    script += f"open({str(tmp_path)!r} + '/' + str(os.getpid()), 'w'); import time; time.sleep(60)"
    fleet, _ = fleet_of(*(host(script, rank) for rank in range(4)))
    deadline = Deadline(20)
    while len(list(tmp_path.iterdir())) < 4 and not deadline.passed:
        time.sleep(0.01)
    fleet.close()
    assert {state_letter(int(path.name)) for path in tmp_path.iterdir()} <= {"", "Z"}


@pytest.mark.slow
@pytest.mark.further
def test_a_hundred_hosts_at_once(fleet_of: FleetOf) -> None:
    shell = (
        'printf "\\nncclcheck-remote-1 {\\"version\\":\\"1\\",\\"schema_version\\":\\"1\\"}\\n"; read task; '
        'printf "{\\"id\\":1,\\"op\\":\\"add\\",\\"key\\":\\"n\\",\\"amount\\":1}\\n"; read answer'
    )
    hosts = [Host(f"node{rank}", rank, ("sh", "-c", shell), b"{}") for rank in range(100)]
    fleet, memory = fleet_of(*hosts)
    deadline = Deadline(30)
    while memory.read("n") != b"100" and not deadline.passed:
        time.sleep(0.02)
    assert memory.read("n") == b"100"
    fleet.close(10)
    assert fleet.unreached() == ()
