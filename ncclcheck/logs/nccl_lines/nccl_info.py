"""What one process says in its `NCCL INFO` lines: version, interface, network, devices, channels, communicators.

Source: NCCL 2.7 to 2.32: bootstrap.cc, init.cc, net.cc, transport/{net_ib,net_socket,p2p,shm,net}.cc, plugin/net.cc,
misc/param.cc, graph/connect.cc, enqueue.cc. The wordings per version stand beside the patterns.
"""

from __future__ import annotations

import re

from ncclcheck.logs.readers.numbers import whole
from ncclcheck.model.events import InitStage, Link, LoggedCall, LogPosition, Process

MOST_LINKS = 64  # per process: kinds of channels, not channels
_MOST_SETTINGS = 200
_LONGEST_VALUE = 512

VERSION_PATTERN = r"NCCL version (?P<nccl>\d+\.\d+(?:\.\d+)?)\S*?(?:\+cuda(?P<cuda>[\d.]+))?(?:\s|$)"
_VERSION = re.compile(VERSION_PATTERN)
TUPLE_PATTERN = r"\bnccl[ :=]{1,3}\((?P<major>\d), (?P<minor>\d{1,2}), (?P<patch>\d{1,2})\)"
_TUPLE = re.compile(TUPLE_PATTERN)  # torch.cuda.nccl.version()
_FIRST_MISREAD = 20  # major number of 2.9, whose code is 20900
# `Bootstrap : Using eth0:10.0.0.1<0>` up to 2.23, `Bootstrap: Using` since; 2.7 lists `[0]ib0:...`
_BOOTSTRAP = re.compile(
    r"(?:Bootstrap ?: Using (?:\[0\])?|NET : Using interface )(?P<name>[^\s:]+):(?P<address>\S+?)(?:<\d+>)(?:\s|$)"
)
_SOCKETS = re.compile(r"\[\d+\](?P<name>[^\s:]+):(?P<address>[^\s<]+)<\d+>")
# `[0]mlx5_0:1/IB`, merged `[0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE}`, with rail and plane since 2.30
_DEVICE = re.compile(r"(?:\[\d+\] ?)(?P<name>[A-Za-z][\w.-]*):(?P<port>\d+)(?::\d+){0,2}/(?P<link>IB|RoCE)")
_NETWORK_DEVICE = re.compile(r"\[\d+\]=\{[^}]{1,1000}\}|" + _DEVICE.pattern)
_NETWORK = re.compile(r"Using network (?P<network>.{1,60})$")
_SETTING = re.compile(r"(?P<name>NCCL_\w+) set by environment to (?P<value>.*)$")
_INIT = re.compile(
    r"(?:comm|nccl\w+ comm|\w+ comm) (?P<comm>0x[0-9a-f]+|\(nil\)) rank (?P<rank>\d+) n[rR]anks (?P<ranks>\d+)"
)
_INIT_END = re.compile(r"- ?(?P<stage>Init START|Init COMPLETE|Destroy COMPLETE|Abort COMPLETE)")
_COMM_ID = re.compile(r"commId (?P<id>0x[0-9a-f]+)")
_BUS = re.compile(r"busId (?P<bus>[0-9a-f]+)")
_NODES = re.compile(r"nRanks (?P<ranks>\d+) nNodes (?P<nodes>\d+) localRanks (?P<local>\d+)")
_CHANNEL = re.compile(
    r"(?P<source>\d+)\[\w+\] -> (?P<target>\d+)\[\w+\](?: \[\w+\])? via (?P<via>\S.{0,80})$"
)
_COLL_CHANNELS = re.compile(r"(?P<channels>\d+) coll channels")
_PLUGIN = re.compile(
    r"(?:Loaded net plugin|Successfully loaded external network plugin|P2P plugin) (?P<name>\S.{0,60}?)(?: \(v\d+\))?$"
)
_GPUDIRECT = re.compile(
    r"GPU Direct RDMA (?P<state>Enabled|Disabled) for (?P<what>HCA|GPU) ?(?P<which>.{0,60})"
)
# Since 2.20, at rank 0; without the op up to 2.22, and up to 2.23 with the numbers of nccl_common.h and device.h
_ALGORITHM = re.compile(
    r"^(?:(?P<op>[A-Z]\w+): )?(?P<bytes>\d+) Bytes -> Algo(?:rithm)? (?P<algorithm>\w+) "
    r"proto(?:col)? (?P<protocol>\w+)(?: channel\{Lo\.\.Hi\}=\{(?P<low>\d+)\.\.(?P<high>\d+)\})?"
)
_ALGORITHMS = ("TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT")
_PROTOCOLS = ("LL", "LL128", "SIMPLE")
_DRIVER = re.compile(r"cudaDriverVersion (?P<version>\d+)")
_STAGES: dict[str, InitStage] = {
    "Init START": "start",
    "Init COMPLETE": "complete",
    "Destroy COMPLETE": "destroy",
    "Abort COMPLETE": "abort",
}

MOST_SOCKETS = 16  # of a process of NCCL 2.2 to 2.3, which prints each on a line of its own


class Notes:
    """What was noted of one process so far; bounded, whatever it says."""

    def __init__(self, host: str, pid: int, place: LogPosition) -> None:
        self.host, self.pid, self.place = host, pid, place
        self.text: dict[str, str] = {}
        self.numbers: dict[str, int] = {}
        self.devices: tuple[str, ...] = ()
        self.network_devices: tuple[tuple[str, ...], ...] = ()
        self.sockets: tuple[str, ...] = ()
        self.settings: dict[str, str] = {}
        self.channels_seen: set[bytes] = set()
        self.links: dict[Link, None] = {}
        self.algorithms: dict[str, None] = {}
        self.calls: dict[LoggedCall, None] = {}
        self.gpudirect: dict[tuple[str, ...], str] = {}

    def knows_channel(self, message: bytes) -> bool:
        """Return True if a `Channel` line adds nothing new."""
        return (
            len(self.channels_seen) >= MOST_LINKS or message[message.find(b" : ") + 3 :] in self.channels_seen
        )

    def channel(self, message: bytes) -> None:
        """Note a `Channel` line: from which rank to which, and through what."""
        if len(self.channels_seen) >= MOST_LINKS:
            return
        end = message[message.find(b" : ") + 3 :]
        if end not in self.channels_seen:
            self.channels_seen.add(end)
            if match := _CHANNEL.search(end.decode("utf-8", "replace")):
                self.links[Link(int(match["source"]), int(match["target"]), match["via"].strip())] = None

    def info(self, message: str) -> tuple[InitStage, str, int, int] | None:
        """Note a line; return the stage of a communicator with its id, rank and size, where the line has one."""
        if match := _SETTING.search(message):
            if len(self.settings) < _MOST_SETTINGS:
                self.settings[match["name"]] = match["value"].strip().removesuffix(".")[:_LONGEST_VALUE]
            return None
        if match := _INIT.search(message):
            return self._communicator(message, match)
        self._network(message)
        self._machine(message)
        return None

    def _communicator(self, message: str, match: re.Match[str]) -> tuple[InitStage, str, int, int] | None:
        rank, ranks = int(match["rank"][:9]), int(match["ranks"][:9])
        if nodes := _NODES.search(message):
            self.numbers.setdefault("nodes", int(nodes["nodes"][:9]))
            self.numbers.setdefault("local_ranks", int(nodes["local"][:9]))
        if ranks > self.numbers.get("ranks", 0):
            self.numbers["rank"], self.numbers["ranks"] = rank, ranks
        if bus := _BUS.search(message):
            self.text.setdefault("bus_id", bus["bus"])
        end = _INIT_END.search(message)
        if end is None:
            return None
        stage = _STAGES[end["stage"]]
        if stage in ("start", "complete"):
            self.numbers[stage] = self.numbers.get(stage, 0) + 1
        comm_id = _COMM_ID.search(message)
        return stage, comm_id["id"] if comm_id else "", rank, ranks

    def _network(self, message: str) -> None:
        if match := _BOOTSTRAP.search(message):
            if match[0].startswith("NET") and len(self.sockets) < MOST_SOCKETS:
                self.sockets = (*self.sockets, f"{match['name']}:{match['address'][:255]}")
            if (
                match[0].startswith("B") or "interface" not in self.text
            ):  # NCCL 2.2 lists all, the first is the one
                self.text["interface"], self.text["address"] = match["name"], match["address"][:255]
        elif "NET/IB" in message and "Using" in message:
            ports_by_network = [_ports(match[0]) for match in _NETWORK_DEVICE.finditer(message[:4096])]
            self.devices = tuple(port for ports in ports_by_network for port in ports)
            self.network_devices = (
                tuple(ports_by_network) if len(self.devices) > len(ports_by_network) else ()
            )
        elif "NET/Socket" in message and "Using [" in message:
            self.sockets = tuple(
                f"{match['name']}:{match['address']}" for match in _SOCKETS.finditer(message[:4096])
            )
            if self.sockets and "address" not in self.text:  # NCCL 2.3 says nothing of its bootstrap
                name, _, address = self.sockets[0].partition(":")
                self.text["interface"], self.text["address"] = name, address[:255]
        elif match := _NETWORK.search(message):
            self.text["network"] = match["network"].strip()
        elif match := _PLUGIN.search(message):
            self.text["plugin"] = match["name"]
        elif (match := _GPUDIRECT.search(message)) and len(self.gpudirect) < MOST_LINKS:
            # Of a GPU and its many adapters the first of each state.
            whose = match["which"].partition(" / ")[0]
            line = f"{match['state']} for {match['what']} {match['which']}".strip()
            self.gpudirect.setdefault((match["state"], match["what"], whose), line)

    def _machine(self, message: str) -> None:
        if match := _VERSION.search(message):
            self.text["nccl"], self.text["cuda"] = match["nccl"], match["cuda"] or self.text.get("cuda", "")
        elif match := _DRIVER.search(message):
            self.text["driver"] = match["version"][:9]
        elif match := _COLL_CHANNELS.search(message):
            self.numbers["channels"] = whole(match["channels"]) or 0
        elif (match := _ALGORITHM.search(message)) and len(self.algorithms) < MOST_LINKS:
            words = (
                match["op"] or "",
                _named(_ALGORITHMS, match["algorithm"]),
                _named(_PROTOCOLS, match["protocol"]),
            )
            self.algorithms[" ".join(word for word in words if word)] = None
            self._call(match, *words)

    def _call(self, match: re.Match[str], op: str, algorithm: str, protocol: str) -> None:
        """Note how a collective of that size ran, with the number of its channels, which newer versions write."""
        channels = int(match["high"][:9]) - int(match["low"][:9]) + 1 if match["high"] else 0
        size = whole(match["bytes"])
        if len(self.calls) < MOST_LINKS and size is not None:
            self.calls[LoggedCall(op.lower(), size, algorithm, protocol, max(0, channels))] = None

    def process(self, place: LogPosition, rank: int | None) -> Process:
        """All of it as a record; `place` and `rank` as they were resolved at the end."""
        return Process(
            host=self.host,
            pid=self.pid,
            place=place,
            rank=rank,
            ranks=self.numbers.get("ranks"),
            nccl_version=self.text.get("nccl", ""),
            cuda_version=self.text.get("cuda", ""),
            driver_version=self.text.get("driver", ""),
            interface=self.text.get("interface", ""),
            address=self.text.get("address", ""),
            network=self.text.get("network", ""),
            devices=self.devices,
            network_devices=self.network_devices,
            sockets=self.sockets,
            plugin=self.text.get("plugin", ""),
            settings=self.settings,
            links=tuple(self.links),
            nodes=self.numbers.get("nodes"),
            local_ranks=self.numbers.get("local_ranks"),
            bus_id=self.text.get("bus_id", ""),
            channels=self.numbers.get("channels"),
            algorithms=tuple(self.algorithms),
            calls=tuple(self.calls),
            gpudirect=tuple(self.gpudirect.values()),
            inits_started=self.numbers.get("start", 0),
            inits_completed=self.numbers.get("complete", 0),
        )


def _ports(text: str) -> tuple[str, ...]:
    """Return the ports in the text of one network device: `[0]mlx5_0:1/IB`, or several in braces."""
    return tuple(f"{match['name']}:{match['port']}/{match['link']}" for match in _DEVICE.finditer(text))


def _named(names: tuple[str, ...], word: str) -> str:
    """Return the name of a number, as newer versions write it; any other word as it is."""
    number = whole(word)
    return names[number] if number is not None and number < len(names) else word


def version_in(text: str) -> tuple[str, str] | None:
    """NCCL's and CUDA's version of a bare `NCCL version` line, which carries no process."""
    if match := _TUPLE.search(text):
        return ".".join(match.groups()), ""
    match = _VERSION.search(text)
    return (_as_nccl_says_it(match["nccl"]), match["cuda"] or "") if match else None


def _as_nccl_says_it(version: str) -> str:
    """Return 2.10.3 for 21.0.3, as torch before 1.12 took the code 21003 apart (NCCLUtils.cpp)."""
    major, _, rest = version.partition(".")
    minor, _, patch = rest.partition(".")
    if not (major.isdecimal() and minor.isdecimal() and _FIRST_MISREAD <= int(major) < _FIRST_MISREAD + 10):
        return version
    return f"2.{(int(major) - _FIRST_MISREAD) * 10 + int(minor)}.{patch}"
