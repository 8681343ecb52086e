"""Which interface NCCL's bootstrap takes: a model of its search that is compared with the real library in the tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from ncclcheck.model.facts import Address, Interface
from ncclcheck.nccl import ifname, subnet, versions

# ncclResult_t of nccl.h
SUCCESS = 0
SYSTEM_ERROR = 2
INTERNAL_ERROR = 3
INVALID_ARGUMENT = 4
INVALID_USAGE = 5
MAX_INTERFACES = 16  # MAX_IFS

_SEARCH_BEFORE_2_28 = ("ib", "^docker,lo", "docker", "lo")
_SEARCH = ("ib", "^docker,lo,virbr", "docker", "lo", "virbr")
_FAMILIES = {"AF_INET": "inet", "AF_INET6": "inet6"}


class Choice(Struct, frozen=True):
    """What NCCL takes, and why. `interface` and `address` are None where it fails, with its `result_code`.

    `candidates` are the names it found in its order: bootstrap uses the first, NET/Socket all of them. An alias label
    (`eth0:1`) is a name of its own. `undecided` says that a rule needs something that facts do not tell.
    """

    interface: str | None
    address: str | None
    reason: str
    candidates: tuple[str, ...]
    result_code: int
    undecided: bool = False


class _IfaddrsEntry(Struct, frozen=True):
    """One line of getifaddrs(3)."""

    interface: Interface
    address: Address

    @property
    def name(self) -> str:
        return self.address.label or self.interface.name


def choose(
    interfaces: Sequence[Interface],
    environment: Mapping[str, str],
    version: str,
    *,
    resolved: Mapping[str, str] | None = None,
) -> Choice:
    """Return what the bootstrap of NCCL `version` binds in the effective environment (`nccl.environment.effective`).

    NCCL src/misc/socket.cc (since 2.29 src/os/linux.cc) and src/bootstrap.cc (bootstrapNetInit), 2.18 to 2.32.
    `resolved` gives the first address of host names, for an NCCL_COMM_ID that holds a name.
    """
    number = versions.parse(version)
    entries = _getifaddrs(interfaces)
    if "NCCL_COMM_ID" in environment:
        return _choose_by_comm_id(entries, interfaces, environment["NCCL_COMM_ID"], number, resolved or {})
    usable = [entry for entry in entries if _is_usable(entry, environment, number)]
    value = environment.get("NCCL_SOCKET_IFNAME")
    if value is not None and ifname.is_set(value):
        found, reason = _matching(usable, value), _reason_for_setting(value)
    else:
        found, reason = _search(usable, number)
    if not found:
        code = INVALID_USAGE if number >= versions.NO_INTERFACE_IS_USAGE_ERROR_SINCE else INTERNAL_ERROR
        return Choice(None, None, f"no socket interface found: {reason}", (), code)
    return _chosen(found, reason)


def is_running(interface: Interface) -> bool:
    """Return True if the interface has IFF_RUNNING, given as `running` or among the flags."""
    return interface.running or "running" in interface.flags


def network_interfaces(
    interfaces: Sequence[Interface],
    environment: Mapping[str, str],
    version: str,
    *,
    resolved: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """Return the names that NET/Socket uses, each a network device; NET/IB uses the first for its own connection setup.

    NCCL src/misc/socket.cc (ncclFindInterfaces), src/transport/net_socket.cc. Unlike bootstrap, NCCL_SOCKET_IFNAME
    comes first here, and NCCL_COMM_ID only decides where it is unset and no name begins with `ib`.
    """
    number = versions.parse(version)
    value = environment.get("NCCL_SOCKET_IFNAME")
    usable = [entry for entry in _getifaddrs(interfaces) if _is_usable(entry, environment, number)]
    if value is not None and ifname.is_set(value):
        return tuple(entry.name for entry in _matching(usable, value))
    if found := _matching(usable, "ib"):
        return tuple(entry.name for entry in found)
    if ifname.is_set(environment.get("NCCL_COMM_ID")):
        by_id = choose(interfaces, environment, version, resolved=resolved)
        if by_id.interface is not None:
            return by_id.candidates
    return tuple(entry.name for entry in _search(usable, number)[0])


def _getifaddrs(interfaces: Sequence[Interface]) -> list[_IfaddrsEntry]:
    """Every address as the kernel dumps them: all of IPv4, then all of IPv6, each by interface."""
    return [
        _IfaddrsEntry(interface, address)
        for family in ("inet", "inet6")
        for interface in interfaces
        for address in interface.addresses
        if address.family == family
    ]


def _is_usable(entry: _IfaddrsEntry, environment: Mapping[str, str], number: versions.Version) -> bool:
    family = _FAMILIES.get(environment.get("NCCL_SOCKET_FAMILY", ""))
    if family is not None and entry.address.family != family:
        return False
    if number >= versions.RUNNING_NEEDED_SINCE and not is_running(entry.interface):
        return False
    return entry.address.address != "::1"


def _matching(entries: Iterable[_IfaddrsEntry], value: str) -> list[_IfaddrsEntry]:
    """Return the entries whose name the value keeps, one per name, at most 16."""
    pattern = ifname.parse(value)
    first: dict[str, _IfaddrsEntry] = {}
    for entry in entries:
        if pattern.matches(entry.name):
            first.setdefault(entry.name, entry)
    return list(first.values())[:MAX_INTERFACES]


def _search(entries: Sequence[_IfaddrsEntry], number: versions.Version) -> tuple[list[_IfaddrsEntry], str]:
    """Return the result of the default search: each step runs only if those before found nothing."""
    steps = _SEARCH if number >= versions.RUNNING_NEEDED_SINCE else _SEARCH_BEFORE_2_28
    for step in steps:
        if found := _matching(entries, step):
            return found, f"NCCL_SOCKET_IFNAME is unset: first match of the default search ({step})"
    return [], "NCCL_SOCKET_IFNAME is unset, and no interface has an address that NCCL takes"


def _reason_for_setting(value: str) -> str:
    pattern = ifname.parse(value)
    names = ("exactly " if pattern.exact else "names that begin with ") + ", ".join(pattern.entries)
    if not pattern.entries:
        names = "anything, since its list is empty"
    return f"NCCL_SOCKET_IFNAME={value} takes {'all but ' if pattern.exclude else ''}{names}"


def _choose_by_comm_id(
    entries: Sequence[_IfaddrsEntry],
    interfaces: Sequence[Interface],
    value: str,
    number: versions.Version,
    resolved: Mapping[str, str],
) -> Choice:
    remote = subnet.parse_comm_id(value, interfaces)
    if isinstance(remote, subnet.HostName) and remote.name in resolved:
        remote = subnet.RemoteAddress(resolved[remote.name].partition("%")[0])
    if isinstance(remote, subnet.Unreadable):
        reason = f"NCCL_COMM_ID={value} is not accepted: {remote.why}"
        return Choice(None, None, reason, (), INVALID_ARGUMENT)
    if isinstance(remote, subnet.HostName):
        reason = f"NCCL_COMM_ID={value}: what {remote.name!r} means to the resolver of this node is not known"
        return Choice(None, None, reason, (), INVALID_ARGUMENT, undecided=True)
    inverted = versions.is_comm_id_inverted(number) and ":" not in remote.address
    found = next(_in_subnet(entries, remote, inverted), None)
    side = "outside (a bug of NCCL 2.29)" if inverted else "in"
    what = f"the first address {side} the subnet of {remote.address}"
    reason = f"NCCL_COMM_ID={value} takes {what}; NCCL_SOCKET_IFNAME is ignored"
    if found is None:
        return Choice(None, None, f"no usable listening interface found: {reason}", (), SYSTEM_ERROR)
    return _chosen([found], reason)


def _in_subnet(
    entries: Iterable[_IfaddrsEntry], remote: subnet.RemoteAddress, inverted: bool
) -> Iterator[_IfaddrsEntry]:
    family = "inet6" if ":" in remote.address else "inet"
    for entry in entries:
        if entry.address.family == family:
            scope_id = subnet.scope_of(entry.interface, entry.address)
            if subnet.is_in_subnet(entry.address, remote, scope_id) != inverted:
                yield entry


def _chosen(found: Sequence[_IfaddrsEntry], reason: str) -> Choice:
    first = found[0]
    names = tuple(entry.name for entry in found)
    return Choice(first.interface.name, first.address.address.partition("%")[0], reason, names, SUCCESS)
