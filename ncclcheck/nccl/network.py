"""Which network NCCL uses between nodes: a plug-in, NET/IB or NET/Socket, in this order, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.hardware import NetPlugin, Rdma, RdmaPort
from ncclcheck.nccl import plugins, versions
from ncclcheck.nccl.number import number
from ncclcheck.nccl.rdma import hca

IB = "IB"
SOCKET = "Socket"
NO_DEVICE_FILES = "there is no device file in /dev/infiniband"
_MOST_NAMED = 4


class NetworkChoice(Struct, frozen=True):
    """The network, None where NCCL `fails` or where it is not known, and why. `ports`: those of NET/IB in its order."""

    network: str | None
    reason: str
    ports: tuple[RdmaPort, ...] = ()
    fails: bool = False


class Surroundings(Struct, frozen=True):
    """What the choice depends on besides variables. `interfaces` are the names NET/Socket would use."""

    rdma: Fact[Rdma]
    plugins: Fact[tuple[NetPlugin, ...]]
    interfaces: Fact[tuple[str, ...]]


class _Offer(Struct, frozen=True):
    """One network that NCCL tries; `works` is None where that is not known."""

    name: str
    works: bool | None
    reason: str
    ports: tuple[RdmaPort, ...] = ()
    may_be_named_otherwise: bool = False


def choose_network(around: Surroundings, environment: Mapping[str, str], version: str) -> NetworkChoice:
    """Return the first network that starts and has a device; NCCL_NET restricts it to one name, whatever its case.

    That nothing fits is fatal; an empty NCCL_NET fits nothing. NCCL src/net.cc, since 2.27 src/plugin/net.cc
    (ncclNetInit), and src/init.cc for NCCL_NET.
    """
    named_network = environment.get("NCCL_NET")
    passed: list[str] = []
    for offer in _offers(around, environment, version):
        if named_network is not None and not _is_called(offer, named_network):
            continue
        if offer.works is None:
            return NetworkChoice(None, f"not known: {'; '.join([*passed, offer.reason])}")
        if offer.works:
            return NetworkChoice(offer.name, "; ".join([*passed, offer.reason]), offer.ports)
        passed += [offer.reason] if offer.reason else []
    setting = "no network" if named_network is None else f"NCCL_NET={named_network}: no network of this name"
    why = f" ({'; '.join(passed)})" if passed else ""
    return NetworkChoice(None, f"NCCL stops with an error: {setting} can be used{why}", fails=True)


def _is_called(offer: _Offer, name: str) -> bool:
    is_internal = name.lower() in {IB.lower(), SOCKET.lower()}
    return offer.name.lower() == name.lower() or (offer.may_be_named_otherwise and not is_internal)


def _offers(around: Surroundings, environment: Mapping[str, str], version: str) -> Iterator[_Offer]:
    for attempt in plugins.attempts(around.plugins, environment, version):
        if attempt.loads is None and not attempt.is_named and not _names_a_plugin(environment):
            continue  # what nobody asked for and nobody saw is assumed not to be there
        yield _Offer(
            attempt.network,
            attempt.loads,
            attempt.reason,
            may_be_named_otherwise=not attempt.is_network_known,
        )
    yield _ib(around, environment, version)
    yield _socket(around.interfaces)


def _names_a_plugin(environment: Mapping[str, str]) -> bool:
    return environment.get("NCCL_NET", IB).lower() not in {"", IB.lower(), SOCKET.lower()}


def _socket(interfaces: Fact[tuple[str, ...]]) -> _Offer:
    if isinstance(interfaces, Missing):
        return _Offer(SOCKET, True, "NET/Socket, assuming that an interface has an address (not told)")
    if not interfaces:
        return _Offer(SOCKET, False, "NET/Socket finds no interface")
    devices = "as one network device" if len(interfaces) == 1 else f"as {len(interfaces)} network devices"
    return _Offer(SOCKET, True, f"NET/Socket over {', '.join(interfaces)} {devices}")


def _ib(around: Surroundings, environment: Mapping[str, str], version: str) -> _Offer:
    value = environment.get("NCCL_IB_DISABLE")
    if number(value, 0, version) != 0:
        return _Offer(IB, False, f"NCCL_IB_DISABLE={value} switches NET/IB off")
    if isinstance(around.rdma, Missing):
        return _Offer(IB, None, f"the RDMA devices of the node are not known ({around.rdma})")
    if not around.rdma.ports:
        return _Offer(IB, False, "the node has no RDMA device")
    library = around.rdma.verbs_library
    names_library = bool(environment.get("NCCL_IBVERBS_LIB")) and (
        versions.parse(version) >= versions.IBVERBS_LIB_SINCE
    )
    if isinstance(library, Missing) and is_unloadable(library) and not names_library:
        return _Offer(
            IB, False, f"NET/IB is off: libibverbs, which it needs, cannot be loaded ({library.detail})"
        )
    if around.interfaces == ():
        return _Offer(
            IB, False, ("NET/IB is off: it finds no interface with an address for its connection setup")
        )
    return _ib_ports(around.rdma, environment, version)


def is_unloadable(library: Fact[str]) -> bool:
    """Return True if libibverbs could not be loaded; on a recorded tree nothing was tried."""
    return isinstance(library, Missing) and library.missing in {"absent", "error"} and not library.is_untried


def _ib_ports(rdma: Rdma, environment: Mapping[str, str], version: str) -> _Offer:
    usable, closed = _by_device_file(rdma)
    if not usable:
        return _Offer(IB, False, f"NET/IB finds no device: {_why_closed(rdma, closed)}")
    ports = hca.selected_ports(usable, environment, version)
    if isinstance(ports, Missing):
        return _Offer(IB, None, f"which ports NET/IB would use, since {ports.detail}")
    if not ports:
        return _Offer(
            IB, False, f"NET/IB finds no device: {_why_none(usable, environment)}{_left_out(closed)}"
        )
    value = environment.get("NCCL_IB_HCA")
    chosen_by = f"NCCL_IB_HCA={value} keeps" if value else "NET/IB uses every ACTIVE port:"
    return _Offer(IB, True, f"{chosen_by} {hca.names_of(ports)}{_left_out(closed)}{_assumed(rdma)}", ports)


def _by_device_file(rdma: Rdma) -> tuple[list[RdmaPort], list[RdmaPort]]:
    """Return the ports of devices that can be opened, and the others. What was not read counts as usable."""
    usable: list[RdmaPort] = []
    closed: list[RdmaPort] = []
    for port in rdma.ports:
        (closed if is_closed(port, rdma) else usable).append(port)
    return usable, closed


def is_closed(port: RdmaPort, rdma: Rdma) -> bool:
    """Return True if the device of the port cannot be opened: no device file, or no permission."""
    files = rdma.device_files
    if files == ():
        return True
    if isinstance(port.uverbs, Missing):
        return False
    is_absent = not isinstance(files, Missing) and port.uverbs not in files
    return is_absent or (not isinstance(rdma.unusable_files, Missing) and port.uverbs in rdma.unusable_files)


def _why_closed(rdma: Rdma, closed: Sequence[RdmaPort]) -> str:
    if rdma.device_files == ():
        return NO_DEVICE_FILES
    return f"the device files of {hca.names_of(closed)} are missing or may not be opened"


def _why_none(ports: Sequence[RdmaPort], environment: Mapping[str, str]) -> str:
    counting = [port for port in ports if not hca.is_ruled_out(port)]
    if counting:
        return f"NCCL_IB_HCA={environment.get('NCCL_IB_HCA')} keeps none of {hca.names_of(counting)}"
    ports_in: dict[str, list[RdmaPort]] = {}
    for port in ports:
        ports_in.setdefault(_state(port), []).append(port)
    return "; ".join(f"{_some(members)} {_is(members)} {state}" for state, members in ports_in.items())


def _some(ports: Sequence[RdmaPort]) -> str:
    """Return the ports, or the first of many and how many more."""
    named = hca.names_of(ports[:_MOST_NAMED])
    rest = len(ports) - _MOST_NAMED
    return f"{named} and {rest} more" if rest > 0 else named


def _is(ports: Sequence[RdmaPort]) -> str:
    return "are" if ports[1:] else "is"


def _state(port: RdmaPort) -> str:
    if isinstance(port.state, str) and port.state != "ACTIVE":
        return port.state
    return f"of link layer {port.link_layer}"


def _left_out(closed: Sequence[RdmaPort]) -> str:
    return f"; {hca.names_of(closed)} cannot be opened" if closed else ""


def _assumed(rdma: Rdma) -> str:
    unknown = []
    if isinstance(rdma.verbs_library, Missing):
        unknown.append("that libibverbs can be loaded")
    if isinstance(rdma.device_files, Missing):
        unknown.append("that its device files are there")
    return f", assuming {' and '.join(unknown)} (not told)" if unknown else ""
