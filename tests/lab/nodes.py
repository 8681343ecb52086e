"""`Lab`: nodes in network namespaces, joined by a switch, each with its own names, host name and folders."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Literal

from msgspec import Struct

from tests.lab import namespaces
from tests.lab.forked import Place, Program
from tests.lab.namespaces import ETC, FOLDERS, SHM, call, delete, delete_abandoned, ip
from tests.lab.process import Finished, Running, wait_all

REPOSITORY = Path(__file__).resolve().parents[2]
PYTHON = sys.executable

BridgeState = Literal["up", "no-carrier", "down"]


class Leftover(Struct, frozen=True):
    """Something that is still there on a node: a process, or a socket that listens."""

    node: str
    kind: Literal["process", "listener"]
    what: str


class Node:
    """One node. State: its network namespace, its folder, and its /etc/hosts (`hosts`, name -> address)."""

    def __init__(self, lab: Lab, name: str, number: int) -> None:
        self.lab = lab
        self.name = name
        self.number = number  # in every network of the lab its address ends in this
        self.rank = number - 1
        self.namespace = lab.prefix + name
        self.folder = lab.folder / name
        self.address = lab.address(number)
        self.hosts: dict[str, str] = {}
        self._started: list[Running] = []
        self._services: list[Running] = []
        self._outputs = itertools.count()

    def __repr__(self) -> str:
        return f"<{self.name} {self.address}>"

    # names

    def set_hosts(self, hosts: Mapping[str, str]) -> None:
        """Make `hosts` (name -> address) this node's /etc/hosts, after localhost; also for what already runs."""
        self.hosts = dict(hosts)
        lines = ["127.0.0.1 localhost"] + (["::1 localhost ip6-localhost"] if self.lab.ipv6 else [])
        lines += [f"{address} {name}" for name, address in hosts.items()]
        # written in place: a new file would not be seen through the bind mounts of running processes
        (ETC / self.namespace / "hosts").write_text("\n".join(lines) + "\n")

    def set_resolver(self, address: str) -> None:
        """Make `address` this node's only DNS server. Nobody answers at the default, 127.0.0.1: names fail at once."""
        text = f"nameserver {address}\noptions timeout:5 attempts:2\n"
        (ETC / self.namespace / "resolv.conf").write_text(text)

    # interfaces

    def ip(self, *lines: str) -> None:
        """Run `ip` commands, one per argument, on this node: `node.ip("link set eth0 down")`."""
        ip(lines, namespace=self.namespace)

    def add_bridge(self, name: str, address: str | None = None, *, state: BridgeState = "up") -> None:
        """Add an interface of kind bridge: `docker0`, `virbr0`, `ibs0`, ... `address` is "172.17.0.1/16".

        "up" has a carrier through a port `v-NAME`, as docker0 with a container has; "no-carrier" is up without one,
        as docker0 without containers. (A bridge that never had a port says UNKNOWN: the port comes and goes.)
        """
        own = ":".join(f"{byte:02x}" for byte in os.urandom(4))
        lines = [f"link add {name} address 02:42:{own} type bridge"]
        lines += [f"addr add {address} dev {name}"] if address else []
        self.ip(*lines)
        if state == "down":
            return
        port, far = f"v-{name}"[:15], f"c{self.number}-{name}"[:15]
        switch = self.lab.switch
        self.ip(f"link add {port} type veth peer name {far} netns {switch.namespace}")
        switch.ip(f"link set {far} up")
        self.ip(f"link set {port} up", f"link set {name} up", f"link set {port} master {name}")
        switch.ip(f"link set {far} down")
        if state == "up":
            switch.ip(f"link set {far} up")
        else:
            self.ip(f"link del {port}")
        self.wait_for_state(name, "up" if state == "up" else "down")

    def wait_for_state(self, interface: str, state: Literal["up", "down"]) -> None:
        """Return once the kernel shows the interface in `state`, which it does some time after the change."""
        deadline = time.monotonic() + 5
        ask = f"ip link show {interface} >/dev/null; cat /sys/class/net/{interface}/operstate"  # asking hastens it
        while (shown := call(namespaces.inside(self.namespace, ["sh", "-c", ask])).strip()) != state:
            if time.monotonic() > deadline:
                raise AssertionError(f"{interface} of {self.name} is {shown}, not {state}, after 5 s")
            time.sleep(0.02)

    # processes

    def environment(self, env: Mapping[str, str] | None = None) -> dict[str, str]:
        """What a process of this node has: nothing of the test's own environment but PATH, and `env` on top."""
        base = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "USER": "root",
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
            "PYTHONPATH": str(REPOSITORY),  # the tree under test, installed or not
        }
        return {**base, **(env or {})}

    def start(
        self,
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        *,
        pass_fds: Sequence[int] = (),
        fresh: bool = False,
    ) -> Running:
        """Start a command on this node; it leads a process group, so a test can signal all of it.

        Python programs with torch in them are forks of a process that has imported it, unless `fresh`.
        """
        place = Place(self.namespace, self.name, SHM / self.namespace)
        program = Program(argv, self.environment(env), self.folder / "home", pass_fds)
        output = self.folder / "output" / str(next(self._outputs))
        running = Running(place, program, output, fresh=fresh)
        self._started.append(running)
        return running

    def run(
        self, argv: Sequence[str], env: Mapping[str, str] | None = None, *, timeout_s: float = 60
    ) -> Finished:
        """Run a command on this node to its end."""
        return self.start(argv, env).wait(timeout_s)

    @contextmanager
    def service(
        self, argv: Sequence[str], env: Mapping[str, str] | None = None, *, pass_fds: Sequence[int] = ()
    ) -> Iterator[Running]:
        """A process of the lab itself while the block runs: a fault or a daemon, not counted as left over."""
        running = self.start(argv, env, pass_fds=pass_fds)
        self._services.append(running)
        try:
            yield running
        finally:
            running.stop()
            self._services.remove(running)

    def processes(self) -> dict[int, str]:
        """The processes alive on this node: process id -> command line, the lab's own services apart."""
        ours = {service.pid for service in self._services}
        found: dict[int, str] = {}
        for pid in namespaces.pids(self.namespace):
            if pid in ours or _parents(pid) & ours:
                continue
            try:
                words = Path("/proc", str(pid), "cmdline").read_bytes().split(b"\0")
            except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
                continue
            found[pid] = b" ".join(words).decode(errors="replace").strip()
        return found

    def listeners(self) -> tuple[str, ...]:
        """The TCP sockets that listen on this node, as `ss` prints them, the lab's own services apart."""
        lines = call(["ip", "netns", "exec", self.namespace, "ss", "-H", "-l", "-t", "-n", "-p"]).splitlines()
        ours = {f"pid={service.pid}," for service in self._services}
        return tuple(" ".join(line.split()) for line in lines if not any(pid in line for pid in ours))


def _parents(pid: int) -> set[int]:
    found: set[int] = set()
    while pid > 1:
        try:
            stat = Path("/proc", str(pid), "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            break
        pid = int(stat.rpartition(")")[2].split()[1])
        found.add(pid)
    return found


class Lab:
    """Nodes node1 ... nodeN with eth0 in one network, and a switch between them.

    State, all of it gone after the block: one network namespace per node and one for the switch (their names
    begin with `prefix`, which holds this process' id), their folders under /etc/netns and /dev/shm, and `folder`.
    What a killed test run leaves of these is deleted when the next lab is built.
    """

    def __init__(
        self, count: int = 4, *, subnet: str = "10.78.0", ipv6: bool = False, docker: bool = False
    ) -> None:
        self.count = count
        self.subnet = subnet  # the first three bytes of eth0's addresses
        self.ipv6 = ipv6
        self.docker = docker
        self.prefix = namespaces.new_prefix()

    def address(self, number: int) -> str:
        """The IPv4 address on eth0 of node `number`."""
        return f"{self.subnet}.{number}"

    def __enter__(self) -> Lab:
        delete_abandoned()
        self.folder = FOLDERS / (self.prefix + "files")
        self.folder.mkdir(mode=0o700)
        self.nodes = tuple(Node(self, f"node{number}", number) for number in range(1, self.count + 1))
        self.switch = Node(self, "switch", 254)
        try:
            self._build()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    @property
    def healthy_hosts(self) -> dict[str, str]:
        """The /etc/hosts of a healthy lab: every node's name and its address on eth0."""
        return {node.name: node.address for node in self.nodes}

    def __getitem__(self, name: str) -> Node:
        return next(node for node in (*self.nodes, self.switch) if node.name == name)

    def _build(self) -> None:
        everyone = (*self.nodes, self.switch)
        ip(f"netns add {node.namespace}" for node in everyone)
        for node in everyone:
            own = (node.folder / "home", node.folder / "tmp", node.folder / "output")
            for folder in (*own, ETC / node.namespace, SHM / node.namespace):
                folder.mkdir(parents=True)
            node.set_hosts(self.healthy_hosts)
            node.set_resolver("127.0.0.1")
            # no duplicate address detection: an IPv6 address is usable at once
            setting = "default.accept_dad=0" if self.ipv6 else "default.disable_ipv6=1"
            every = "all.accept_dad=0" if self.ipv6 else "all.disable_ipv6=1"
            argv = ["sysctl", "-q", "-w", f"net.ipv6.conf.{setting}", f"net.ipv6.conf.{every}"]
            call(namespaces.inside(node.namespace, argv))
            node.ip("link set lo up")
        self.add_network("eth0", self.subnet, ipv6="fd78::" if self.ipv6 else None)
        if self.docker:
            for node in self.nodes:
                node.add_bridge("docker0", "172.17.0.1/16", state="no-carrier")

    def add_network(
        self, interface: str, subnet: str, *, nodes: Iterable[Node] | None = None, ipv6: str | None = None
    ) -> None:
        """Give the nodes (all, if none are named) an interface `interface` in a network of its own.

        Node K gets `subnet`.K/24, and `ipv6`K/64 if that is given; the switch end of its cable is `interface`-K.
        """
        bridge = f"br-{interface}"
        members = self.nodes if nodes is None else tuple(nodes)
        lines = [f"link add {bridge} type bridge mcast_snooping 0", f"addr add {subnet}.254/24 dev {bridge}"]
        for node in members:
            port = f"{interface}-{node.number}"
            lines += [
                f"link add {port} type veth peer name {interface} netns {node.namespace}",
                f"link set {port} master {bridge} up",
            ]
        self.switch.ip(*lines, f"link set {bridge} up")
        for node in members:
            lines = [f"addr add {subnet}.{node.number}/24 dev {interface}"]
            lines += [f"addr add {ipv6}{node.number}/64 dev {interface} nodad"] if ipv6 else []
            node.ip(*lines, f"link set {interface} up")
            node.wait_for_state(interface, "up")

    def run_all(
        self,
        commands: Mapping[Node, Sequence[str]],
        env: Mapping[str, str] | None = None,
        *,
        env_by_node: Mapping[Node, Mapping[str, str]] | None = None,
        timeout_s: float = 60,
        fresh: bool = False,
    ) -> dict[str, Finished]:
        """Start a command on each node, all within a few milliseconds, and wait for all of them.

        `env_by_node` goes on top of `env`. The result is by node name, in the order of `commands`.
        """
        started = self.start_all(commands, env, env_by_node=env_by_node, fresh=fresh)
        return dict(zip(started, wait_all(list(started.values()), timeout_s), strict=True))

    def start_all(
        self,
        commands: Mapping[Node, Sequence[str]],
        env: Mapping[str, str] | None = None,
        *,
        env_by_node: Mapping[Node, Mapping[str, str]] | None = None,
        fresh: bool = False,
    ) -> dict[str, Running]:
        """Start a command on each node, all within a few milliseconds; by node name."""
        own = env_by_node or {}
        return {
            node.name: node.start(argv, {**(env or {}), **own.get(node, {})}, fresh=fresh)
            for node, argv in commands.items()
        }

    def leftovers(self, *, within_s: float = 10.0) -> tuple[Leftover, ...]:
        """Processes and listeners still there on the nodes after `within_s`; returns as soon as there are none."""
        deadline = time.monotonic() + within_s
        while True:
            found = [
                Leftover(node.name, "process", f"{pid} {line}")
                for node in self.nodes
                for pid, line in node.processes().items()
            ]
            found += [
                Leftover(node.name, "listener", line) for node in self.nodes for line in node.listeners()
            ]
            if not found or time.monotonic() > deadline:
                return tuple(found)
            time.sleep(0.05)

    def close(self) -> None:
        """End every process of the lab and remove all its state; a second Ctrl-C does not disturb it."""
        everyone = (*self.nodes, self.switch)
        started = [running for node in everyone for running in node._started]
        with _uninterrupted():
            try:
                wait_all(started, 0)  # also those on their way into their namespace
                delete([node.namespace for node in everyone])
            finally:
                shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
