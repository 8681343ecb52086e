"""The lab itself: nodes are apart, faults are the faults they say, and nothing stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab import faults, namespaces
from tests.lab.launchers import with_flags
from tests.lab.nodes import REPOSITORY, Lab, Node
from tests.lab.process import Finished

pytestmark = pytest.mark.lab
BuildLab = Callable[..., Lab]

# Connects to sys.argv[1:3] and prints "ok", what came as greeting in argv[3] seconds, or the name of the error.
_CONNECT = """
import errno, socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=1) as connection:
        connection.settimeout(float(sys.argv[3]))
        try:
            print("ok", connection.recv(100).decode())
        except TimeoutError:
            print("ok")
except TimeoutError:
    print("timeout")
except socket.gaierror:
    print("unresolvable")
except OSError as error:
    print(errno.errorcode[error.errno])
"""
# Sends sys.argv[3] bytes to a listener of its own on another node and prints how many arrived within two seconds.
_RECEIVE = """
import os, socket, sys, time
listener = socket.create_server(("0.0.0.0", int(sys.argv[1])))
print("listening", flush=True)
connection, _ = listener.accept()
connection.settimeout(2)
got, start = 0, time.monotonic()
try:
    while data := connection.recv(1 << 20):
        got += len(data)
except TimeoutError:
    pass
print("received", got, time.monotonic() - start)
"""
_SEND = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=2) as connection:
    try:
        connection.sendall(bytes(int(sys.argv[3])))
    except TimeoutError:
        pass
"""
# Ends with its rank as exit code, once it has seen that all four run at the same time, and the higher ranks later.
_MEET = """
import sys, time
from pathlib import Path
folder, rank = Path(sys.argv[1]), int(sys.argv[2])
(folder / f"here-{rank}").touch()
while len(list(folder.glob("here-*"))) < 4:
    time.sleep(0.01)
time.sleep(rank * 0.2)
sys.exit(rank)
"""


def connect(source: Node, target: str, port: int, *, greeting_s: float = 0.3) -> str:
    argv = [sys.executable, "-c", _CONNECT, target, str(port), str(greeting_s)]
    return source.run(argv, timeout_s=20).stdout.strip()


def transfer(source: Node, target: Node, count: int) -> tuple[int, float]:
    receiver = target.start([sys.executable, "-c", _RECEIVE, "5001"])
    receiver.wait_for("listening", 10)
    source.run([sys.executable, "-c", _SEND, target.address, "5001", str(count)])
    got, seconds = receiver.wait(10).stdout.split()[-2:]
    return int(got), float(seconds)


def test_nodes_have_their_own_name_address_and_folders_and_reach_each_other(lab: BuildLab) -> None:
    four = lab(4)
    script = "hostname; getent hosts node1 node4; echo $HOME; ls /dev/shm | wc -l; touch /dev/shm/$(hostname)"
    done = with_flags(four, ["sh", "-c", script])
    homes = set()
    for node in four.nodes:
        name, first, fourth, home, files = done[node.name].stdout.split("\n")[:5]
        assert (name, first.split(), fourth.split()) == (
            node.name,
            ["10.78.0.1", "node1"],
            ["10.78.0.4", "node4"],
        )
        assert int(files) == 0
        homes.add(home)
    assert len(homes) == 4
    with faults.hold_port(four["node3"], 4000, "banner"):
        assert connect(four["node1"], "node3", 4000, greeting_s=10).startswith("ok SSH-2.0")


def test_a_command_gets_nothing_of_the_tests_environment_but_what_it_is_given(
    lab: BuildLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCCL_DEBUG", "outer")
    two = lab(2)
    done = two.run_all(
        {node: ["sh", "-c", "echo $NCCL_DEBUG-$A-$B"] for node in two.nodes},
        {"A": "1", "B": "1"},
        env_by_node={two["node2"]: {"B": "2"}},
    )
    assert [finished.stdout for finished in done.values()] == ["-1-1\n", "-1-2\n"]


def test_all_nodes_start_together_and_each_has_its_own_end(lab: BuildLab) -> None:
    four = lab(4)
    done = with_flags(four, [sys.executable, "-c", _MEET, str(four.folder), "{node_rank}"])
    assert [finished.returncode for finished in done.values()] == [0, 1, 2, 3], [
        str(finished) for finished in done.values()
    ]
    assert done["node4"].seconds > done["node1"].seconds


def test_a_command_that_does_not_end_is_killed_at_the_deadline_with_its_children(lab: BuildLab) -> None:
    one = lab(1)["node1"]
    running = one.start(["sh", "-c", "sleep 100 & echo started; sleep 100"])
    running.wait_for("started", 10)
    done = running.wait(0.5)
    assert done.timed_out
    assert 0.5 <= done.seconds < 50
    assert one.lab.leftovers() == ()


def test_signals_reach_the_command_itself(lab: BuildLab) -> None:
    one = lab(1)["node1"]
    heard = "signal.signal(2, lambda *_: exit(7)); print('ready', flush=True)"
    code = f"import signal, time; {heard}; [time.sleep(0.1) for _ in range(600)]"
    running = one.start([sys.executable, "-c", code])
    running.wait_for("ready", 10)
    running.signal(signal.SIGINT)
    assert running.wait(10).returncode == 7


def test_leftovers_names_what_stayed_but_not_the_labs_own_services(lab: BuildLab) -> None:
    two = lab(2)
    with faults.hold_port(two["node1"], 4000):
        assert two.leftovers() == ()
        two["node2"].run(["setsid", "--fork", "sleep", "77"])
        code = "import socket, time; s = socket.create_server(('', 4001)); print('ready', flush=True); time.sleep(60)"
        two["node1"].start([sys.executable, "-c", code]).wait_for("ready", 10)
        found = two.leftovers(within_s=0)
    assert {(leftover.node, leftover.kind) for leftover in found} == {
        ("node1", "process"),
        ("node1", "listener"),
        ("node2", "process"),
    }
    assert any("sleep 77" in leftover.what for leftover in found)
    assert any(":4001" in leftover.what for leftover in found)


def traces(prefix: str) -> list[str]:
    folders = (namespaces.ETC, namespaces.SHM, Path("/run/netns"))
    return [str(path) for folder in folders if folder.is_dir() for path in folder.glob(f"{prefix}*")]


def test_nothing_is_left_of_a_lab_after_an_exception() -> None:
    two = Lab(2)
    with pytest.raises(KeyError), two:  # noqa: PT012 (the point is what the block leaves behind)
        stopped = two["node1"].start(["setsid", "--fork", "sleep", "78"]).wait(5)
        assert stopped.returncode == 0
        running = two["node2"].start(["sleep", "78"])
        running.signal(signal.SIGSTOP)
        raise KeyError("a test failed")
    assert traces(two.prefix) == []
    assert not two.folder.exists()
    assert not running.alive


_OWNER = """
import time
from tests.lab.nodes import Lab
with Lab(2) as lab:
    lab["node1"].start(["setsid", "--fork", "sleep", "79"]).wait(5)
    print(lab.prefix, lab.folder, flush=True)
    while True:  # a signal that comes just before Python enters a sleep is only heard after it
        time.sleep(0.1)
"""


def start_owner() -> tuple[subprocess.Popen[str], str, Path]:
    owner = subprocess.Popen(
        [sys.executable, "-c", _OWNER],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert owner.stdout is not None
    prefix, folder = owner.stdout.readline().split()
    owner.stdout.close()
    assert traces(prefix) != []
    return owner, prefix, Path(folder)


def test_nothing_is_left_of_a_lab_after_ctrl_c() -> None:
    owner, prefix, folder = start_owner()
    owner.send_signal(signal.SIGINT)
    owner.wait(20)
    assert traces(prefix) == []
    assert not folder.exists()


def test_the_next_lab_clears_away_what_a_killed_test_run_left() -> None:
    owner, prefix, folder = start_owner()
    owner.kill()
    owner.wait(20)
    assert traces(prefix) != []
    with Lab(1):
        assert traces(prefix) == []
    assert not folder.exists()


def test_a_dropped_port_is_silent_for_the_source_named_and_open_for_the_others(lab: BuildLab) -> None:
    three = lab(3)
    with faults.hold_port(three["node1"], 4000):
        faults.drop(three["node1"], 4000, source=three["node2"])
        assert connect(three["node2"], "node1", 4000) == "timeout"
        assert connect(three["node3"], "node1", 4000) == "ok"
        faults.lift_firewall(three["node1"])
        assert connect(three["node2"], "node1", 4000) == "ok"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("tcp-reset", "ECONNREFUSED"),
        ("icmp-port-unreachable", "ECONNREFUSED"),
        ("icmp-host-prohibited", "EHOSTUNREACH"),
    ],
)
def test_a_rejected_port_answers_as_told(lab: BuildLab, answer: faults.RejectWith, error: str) -> None:
    two = lab(2)
    with faults.hold_port(two["node1"], 4000):
        faults.reject(two["node1"], 4000, answer)
        assert connect(two["node2"], "node1", 4000) == error


@pytest.mark.parametrize(("syn_only", "outward"), [(True, "ok"), (False, "timeout")])
def test_dropping_ephemeral_ports_spares_the_nodes_own_connections_only_with_syn_only(
    lab: BuildLab, syn_only: bool, outward: str
) -> None:
    two = lab(2)
    low, high = faults.ephemeral_ports(two["node1"])
    faults.drop(two["node1"], (low, high), source=two["node2"], syn_only=syn_only)
    with faults.hold_port(two["node1"], low + 5), faults.hold_port(two["node2"], low + 5):
        assert connect(two["node2"], "node1", low + 5) == "timeout"
        assert connect(two["node1"], "node2", low + 5) == outward


def test_a_held_port_behaves_as_its_mode_says(lab: BuildLab) -> None:
    two = lab(2)
    request = (
        "import socket; s = socket.create_connection(('node1', 4002)); s.send(b'hello'); print(s.recv(99))"
    )
    with (
        faults.hold_port(two["node1"], 4000, "silent"),
        faults.hold_port(two["node1"], 4001, "banner"),
        faults.hold_port(two["node1"], 4002, "http"),
        faults.hold_port(two["node1"], 4003, "full"),
    ):
        assert connect(two["node2"], "node1", 4000) == "ok"
        assert connect(two["node2"], "node1", 4001, greeting_s=10) == "ok SSH-2.0-OpenSSH_9.2p1 Debian-2"
        assert "HTTP/1.1 400" in two["node2"].run([sys.executable, "-c", request]).stdout
        assert connect(two["node2"], "node1", 4003) == "timeout"
    assert connect(two["node2"], "node1", 4000) == "ECONNREFUSED"


@pytest.mark.slow
@pytest.mark.further
def test_a_port_can_be_held_by_the_store_of_another_job(lab: BuildLab) -> None:
    two = lab(2)
    code = "from torch.distributed import TCPStore as T; s = T('node1', 4000); s.set('a', 'b'); print(s.get('a'))"
    with faults.hold_port(two["node1"], 4000, "tcpstore"):
        assert "b'b'" in str(two["node2"].run([sys.executable, "-c", code]))


def test_names_can_be_loopback_unknown_or_anothers(lab: BuildLab) -> None:
    three = lab(3)
    first, second, third = three.nodes
    faults.loopback_name(first)
    faults.forget_name(second, "node1")
    faults.wrong_name(third, "node1", second.address)
    assert first.run(["getent", "hosts", "node1"]).stdout.split() == ["127.0.1.1", "node1"]
    assert third.run(["getent", "hosts", "node1"]).stdout.split()[0] == "10.78.0.2"
    started = time.monotonic()
    assert connect(second, "node1", 4000) == "unresolvable"
    assert time.monotonic() - started < 5  # which a name server that does not answer would take at least


def test_a_large_message_vanishes_in_an_mtu_black_hole_and_a_small_one_passes(lab: BuildLab) -> None:
    two = lab(2)
    for node in two.nodes:
        faults.set_mtu(node, 9000, switch_mtu=1500)
    assert transfer(two["node1"], two["node2"], 1000)[0] == 1000
    assert transfer(two["node1"], two["node2"], 300_000)[0] == 0
    for node in two.nodes:
        faults.set_mtu(node, 9000)
    assert transfer(two["node1"], two["node2"], 300_000)[0] == 300_000


def test_a_shaped_link_is_slow_in_both_directions(lab: BuildLab) -> None:
    two = lab(2)
    faults.shape(two["node1"], "20mbit")
    for source, target in (two.nodes, reversed(two.nodes)):
        got, seconds = transfer(source, target, 2_000_000)
        assert got == 2_000_000
        assert 0.5 < seconds < 5  # 16 Mbit, 2 of them in the burst: 0.7 s; at a tenth of the rate 7 s


def test_an_unplugged_node_is_out_of_reach(lab: BuildLab) -> None:
    two = lab(2)
    with faults.hold_port(two["node1"], 4000):
        faults.unplug(two["node1"])
        assert connect(two["node2"], "node1", 4000) in ("timeout", "EHOSTUNREACH")
        assert Path("/sys/class/net").is_dir()
        assert two["node1"].run(["cat", "/sys/class/net/eth0/carrier"]).stdout == "0\n"


def test_interfaces_of_every_state_can_be_added(lab: BuildLab) -> None:
    two = lab(2, docker=True)
    two.add_network("eth1", "192.168.7")
    node = two["node1"]
    node.add_bridge("ibs0", "10.9.0.1/24")
    node.add_bridge("virbr0", "10.9.1.1/24", state="down")
    faults.duplicate_address(two["node2"], node.address)
    states = {
        words[0].partition("@")[0]: (words[1], words[2])
        for line in node.run(["ip", "-4", "-br", "addr"]).stdout.splitlines()
        if len(words := line.split()) > 2
    }
    assert states == {
        "lo": ("UNKNOWN", "127.0.0.1/8"),
        "eth0": ("UP", "10.78.0.1/24"),
        "eth1": ("UP", "192.168.7.1/24"),
        "docker0": ("DOWN", "172.17.0.1/16"),  # up without a carrier, as where no container runs
        "ibs0": ("UP", "10.9.0.1/24"),
        "virbr0": ("DOWN", "10.9.1.1/24"),
    }
    assert "172.17.0.1/16" in two["node2"].run(["ip", "-br", "addr"]).stdout
    assert "10.78.0.1/24" in two["node2"].run(["ip", "-br", "addr"]).stdout
    with faults.hold_port(two["node2"], 4000):
        assert connect(node, "192.168.7.2", 4000) == "ok"


def test_nodes_have_ipv6_only_when_asked_for(lab: BuildLab) -> None:
    without, having = lab(1), lab(2, ipv6=True)
    assert "inet6" not in without["node1"].run(["ip", "addr"]).stdout
    with faults.hold_port(having["node2"], 4000, address="fd78::2"):
        assert connect(having["node1"], "fd78::2", 4000) == "ok"


def test_a_finished_command_shows_itself_whole() -> None:
    shown = str(Finished("node1", 3, "out", "err", 1.25, timed_out=False))
    assert [word in shown for word in ("node1", "exit 3", "out", "err")] == [True] * 4


def test_this_machine_is_not_changed_by_a_lab(lab: BuildLab) -> None:
    name = os.uname().nodename
    links = sorted(path.name for path in Path("/sys/class/net").iterdir())
    lab(2, docker=True)
    assert os.uname().nodename == name
    assert sorted(path.name for path in Path("/sys/class/net").iterdir()) == links
