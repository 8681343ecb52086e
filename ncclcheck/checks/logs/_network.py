"""What several causes ask a log about the network: failed connections, names, interfaces, devices."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ncclcheck.checks.logs._view import failures, hosts_of_address, is_local, remarks, troubles
from ncclcheck.checks.logs._works import shows_work
from ncclcheck.model.events import CommInit, ConnectFailure, Event, Log, Process, Remark

# Names that Linux, container engines and tunnels give; a cluster's own network has none of them.
VIRTUAL = re.compile(
    r"(?:docker|br-|virbr|veth|cni|flannel|cali|cilium|weave|podman|lxc|lxd|vmnet|vboxnet|tun|tap|wg|"
    r"tailscale|zt|ip6tnl|sit|gre|dummy|kube)"
)
P2P_OFF = frozenset({("NCCL_P2P_DISABLE", "1"), ("NCCL_P2P_LEVEL", "LOC")})
LINK_LOCAL = ("fe80:", "[fe80:", "169.254.")
_CONTAINER_ID = re.compile(r"[0-9a-f]{12}$")
_DOCKER_DEFAULT = re.compile(r"172\.17\.\d{1,3}\.\d{1,3}$")
_CLUSTER_NAME = re.compile(r"\.svc\b|cluster\.local|\.pod\b")
_NAME = re.compile(
    r"rp != nullptr\. Unable to find address for:? ?(?P<gloo>[\w.-]{1,253})|"
    r"\((?P<name>[A-Za-z0-9][\w.-]{0,253}), ?\d+\)|host (?P<host>[\w.-]{1,253})|resolve "
    r"(?:host(?:name)?:? |')?(?P<other>[\w.-]{1,253})"
)
_FEW_NAMES = 2
_BY_SSH = re.compile(r"\bssh: Could not resolve hostname ", re.IGNORECASE)
_NO_NAMES = frozenset({"hostname", "not", "name", "lookup", "resolution", "names", "host", "address", "node"})
_TIMED_OUT = re.compile(r"\b110\b|timed out", re.IGNORECASE)
_RETRIES_USED = re.compile(r"(?:status=|error )(?:IBV_WC_RETRY_EXC_ERR\()?12\b")
_GID = re.compile(r"(?:GID|Gids?) ?::ffff:(?P<network>\d{1,3}\.\d{1,3}\.\d{1,3})\.\d{1,3}")
UNANSWERED = ("timed-out", "no-route", "unreachable")


def unresolved(log: Log) -> tuple[Remark, ...]:
    """Lines in which a name did not resolve, where the job failed or shows no work; else such lines mean nothing."""
    harmless = {
        (remark.place.file, remark.place.line)
        for remark in remarks(log, "harmless")
        if "sudo" in remark.values.get("why", "")
    }
    found = tuple(
        remark
        for remark in remarks(log, "name-resolution")
        if (remark.place.file, remark.place.line) not in harmless
    )
    return found if found and (troubles(log) or not shows_work(log)) else ()


def names_in(lines: Iterable[Remark]) -> set[str]:
    """Return the names that these lines could not resolve."""
    names: set[str] = set()
    for line in lines:
        for match in _NAME.finditer(line.text):
            name = match["gloo"] or match["name"] or match["host"] or match["other"]
            if name and name not in _NO_NAMES and not name.replace(".", "").isdigit():
                names.add(name)
    return names


def unresolved_hosts(log: Log, lines: Sequence[Event], speakers: Sequence[str]) -> tuple[str, ...]:
    """Return who asked for a name that did not resolve, with the name if both are one; else the names, if few."""
    names = sorted(names_in(line for line in lines if isinstance(line, Remark)))
    if names and len(names) <= _FEW_NAMES and any(_BY_SSH.search(line.text) for line in lines):
        return _both_forms(
            names
        )  # a launcher that reaches a node's address by name: the node is who is missing
    if speakers:
        asked = tuple(speaker for speaker in speakers if not speaker.startswith("rank ")) or tuple(speakers)
        return (*asked, *names) if len(names) == 1 == len(asked) else tuple(speakers)
    names = names or sorted({remark.values["address"] for remark in remarks(log, "master-address")})
    return tuple(names) if len(names) <= _FEW_NAMES else ()


def _both_forms(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of nodes, a pod's also without its service: both are used for it."""
    short = [name.partition(".")[0] for name in names]
    return tuple(dict.fromkeys(form for pair in zip(short, names, strict=True) for form in pair))


def is_cluster_name(text: str) -> bool:
    """Return True if the text holds a name of a Kubernetes service or pod."""
    return bool(_CLUSTER_NAME.search(text))


def is_of_cluster(log: Log, line: Remark) -> bool:
    """Return True if the name that did not resolve is of Kubernetes, by its form or because the log speaks of it."""
    return is_cluster_name(line.text) or bool(remarks(log, "kubernetes", "k8s-policy"))


def is_container(process: Process) -> bool:
    """Return True if host name or address are what Docker gives a container on its default bridge."""
    is_id = bool(_CONTAINER_ID.match(process.host)) and any(letter.isdigit() for letter in process.host)
    return is_id or bool(_DOCKER_DEFAULT.match(process.address))


def is_on_docker_bridge(address: str) -> bool:
    """Return True for an address that Docker gives a container, as opposed to the host's own on the bridge."""
    return bool(_DOCKER_DEFAULT.match(address)) and not is_bridge_address(address)


def is_bridge_address(address: str) -> bool:
    """Return True for the address that Docker or libvirt gives its own bridge on every machine."""
    return bool(re.fullmatch(r"172\.(?:1[7-9]|2\d|3[01])\.0\.1|192\.168\.122\.1", address))


def unmade(log: Log) -> list[ConnectFailure]:
    """Return connections to other machines that were given up, without those whose name never resolved."""
    names = names_in(remarks(log, "name-resolution"))
    found = [
        failure for failure in failures(log) if not is_local(failure.address) and failure.address not in names
    ]
    given_up = [failure for failure in found if failure.final]
    return given_up or [
        failure for failure in found if failure.reason in UNANSWERED and _is_last(log, failure)
    ]


def _is_last(log: Log, failure: ConnectFailure) -> bool:
    """Return True if the log shows no work and no communicator after a connection that was to be tried again."""
    there = failure.place
    later = [word.last for word in log.words] + [
        event.place for event in log.events if isinstance(event, CommInit) and event.stage != "start"
    ]
    return not remarks(log, "finished") and not any(
        place.file == there.file and place.line > there.line for place in later
    )


def tried(log: Log) -> list[ConnectFailure]:
    """Return connections to other machines that failed, given up or to be tried again."""
    return [failure for failure in failures(log) if not is_local(failure.address)]


def virtual_processes(log: Log) -> list[Process]:
    """Return the processes whose NCCL uses a bridge, a tunnel or a link-local address."""
    return [
        process
        for process in log.processes
        if VIRTUAL.match(process.interface) or process.address.startswith(LINK_LOCAL)
    ]


def distinct_hosts(processes: Iterable[Process]) -> tuple[str, ...]:
    """Their hosts, each once."""
    return tuple(dict.fromkeys(process.host for process in processes))


def rails_apart(text: str) -> bool:
    """Return True if a queue pair timed out between routable GIDs of different /24 networks.

    NCCL's own hint for it is that the adapters are not cross-connected (NCCL_CROSS_NIC).
    """
    if not (_TIMED_OUT.search(text) or _RETRIES_USED.search(text)):
        return False
    networks = [match["network"] for match in _GID.finditer(text)]
    if any(network.startswith(LINK_LOCAL) for network in networks):
        return False  # of no network at all
    if _RETRIES_USED.search(text):  # of routed rails whose third number differs many work
        networks = [network.partition(".")[0] for network in networks]
    return len(networks) > 1 and networks[0] != networks[1]


def chosen_apart(log: Log, setup: Sequence[Remark]) -> bool:
    """Return True if the adapters were chosen by hand, are several, and one has no route to the peer's."""
    return bool(remarks(log, "hca-chosen")) and any(
        "unreachable" in remark.text.lower() and "GID" not in remark.text for remark in setup
    )


def as_line(process: Process, text: str) -> Remark:
    """Return what a process said, as a line to show."""
    return Remark(process.place, text, "used")


def uses_roce(log: Log) -> bool:
    """Return True if some process uses a RoCE device."""
    return any(device.endswith("/RoCE") for process in log.processes for device in process.devices)


def uses_infiniband(log: Log) -> bool:
    """Return True if some process uses any RDMA device."""
    return any(process.devices for process in log.processes)


def without_gpudirect(log: Log) -> list[Process]:
    """Return the processes of hosts that use InfiniBand without GPUDirect RDMA, where another always uses it.

    NCCL decides it by host, driver and distance (transport/net.cc); hosts of one job are alike, so it is missing there.
    """
    used: dict[str, set[bool]] = {}
    for process in log.processes:
        for link in process.links:
            if link.via.startswith("NET/IB"):
                used.setdefault(process.host, set()).add("GDRDMA" in link.via)
    without = {host for host, states in used.items() if states == {False}}
    if not any(states == {True} for states in used.values()):
        return []
    return [process for process in log.processes if process.host in without and process.links]


def only_sockets(log: Log) -> bool:
    """Return True if every process whose network is known used sockets."""
    return {process.network for process in log.processes if process.network} == {"Socket"}


def is_without_p2p(process: Process) -> bool:
    """Return True if a setting of the process disables direct access to other GPUs."""
    return not P2P_OFF.isdisjoint(process.settings.items())


def missed_by_all(log: Log, remote: Sequence[ConnectFailure]) -> set[str]:
    """Return the nodes that did not reach the master, if these are as many as the job has, and none has that name."""
    nodes = {failure.place.host for failure in remote if failure.place.host}
    places = {failure.address for failure in remote}
    asked = max((int(remark.values["nodes"]) for remark in remarks(log, "size-asked")), default=0)
    if not 1 < asked <= len(nodes) or len(places) != 1 or places & nodes:
        return set()
    address = places.pop()
    return nodes if not address[:1].isdigit() and not hosts_of_address(log, address) else set()
