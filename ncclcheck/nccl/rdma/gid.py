"""Which entry of a port's GID table NET/IB uses: the index of its own address."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import Gid, RdmaPort
from ncclcheck.nccl import versions
from ncclcheck.nccl.number import number

_BITS = {"inet": 32, "inet6": 128}
_FAMILIES = {"AF_INET": "inet", "AF_INET6": "inet6"}
_MOST_RANGE_CHARACTERS = 127
_MASK = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]{1,18})")
_NO_GID = bytes(16)
_ROUTABLE_BY_DEFAULT = 1


class GidChoice(Struct, frozen=True):
    """The index, or None where it is not known or where NCCL cannot choose one; `reason` says why."""

    index: int | None
    reason: str


class _Range(Struct, frozen=True):
    """NCCL_IB_ADDR_RANGE as NCCL uses it; a length of 0 lets everything in, a negative one nothing."""

    base: bytes = b""
    length: int = 0


class _Wish(Struct, frozen=True):
    """What the variables ask for."""

    family: str
    range: _Range
    roce_version: int


class _UnreadableTypeError(Exception):
    """NCCL stops since it cannot read the type of a GID."""


def choose_gid(port: RdmaPort, environment: Mapping[str, str], version: str) -> GidChoice:
    """Return the GID index NCCL of `version` takes on a port of link layer InfiniBand or Ethernet.

    NCCL src/transport/net_ib.cc (ncclIbGetGidIndex, ncclUpdateGidIndex), since 2.29 net_ib/connect.cc. Entries that
    facts do not list count as unset.
    """
    rules = versions.parse(version)
    explicit = number(environment.get("NCCL_IB_GID_INDEX"), _default_index(rules), version)
    if port.link_layer == "InfiniBand" and rules >= versions.GID_OF_NATIVE_IB_FIXED_SINCE:
        return _native(port, environment, version)
    if explicit >= 0:
        how = (
            "set by NCCL_IB_GID_INDEX"
            if environment.get("NCCL_IB_GID_INDEX")
            else f"the default of {version}"
        )
        return GidChoice(explicit, how)
    if rules < versions.GID_CHOSEN_SINCE:
        return GidChoice(None, f"NCCL {version} cannot use NCCL_IB_GID_INDEX={explicit}")
    if port.link_layer == "InfiniBand":
        return GidChoice(0, "native InfiniBand is addressed by LID")
    return _dynamic(port, environment, version)


def _default_index(version: versions.Version) -> int:
    return -1 if version >= versions.GID_CHOSEN_SINCE else 0


def _native(port: RdmaPort, environment: Mapping[str, str], version: str) -> GidChoice:
    """Index 0, unless the routable GID carries a FLID (bytes 4 and 5): then packets can leave the subnet."""
    index = number(environment.get("NCCL_IB_ROUTABLE_FLID_GID_INDEX"), _ROUTABLE_BY_DEFAULT, version)
    table = {} if isinstance(port.gids, Missing) else {gid.index: gid for gid in port.gids}
    raw = _raw(table[index]) if index in table else _NO_GID
    if raw is not None and any(raw[4:6]):
        return GidChoice(index, f"GID {index} carries a FLID, so it is routable")
    return GidChoice(0, "native InfiniBand without a routable GID")


def _dynamic(port: RdmaPort, environment: Mapping[str, str], version: str) -> GidChoice:
    if isinstance(port.gids, Missing):
        return GidChoice(None, f"its GID table was not read: {port.gids}")
    if not port.gids and isinstance(port.gid_table_length, Missing):
        return GidChoice(None, "its GID table was not read")
    rules = versions.parse(version)
    address_range = _address_range(environment, rules)
    if address_range is None:
        return GidChoice(None, "NCCL before 2.23 crashes on an NCCL_IB_ADDR_RANGE without a slash")
    roce_version = number(environment.get("NCCL_IB_ROCE_VERSION_NUM"), 2, version)
    wish = _Wish(_family(environment), address_range, roce_version)
    return _walk(port.gids, port.gid_table_length, wish, rules)


def _walk(gids: tuple[Gid, ...], told_length: object, wish: _Wish, version: versions.Version) -> GidChoice:
    """Return the result of NCCL's search: index 0 first, then each further one against the best so far."""
    table = {gid.index: gid for gid in gids}
    listed = max(table, default=0) + 1
    length = max(told_length, listed) if isinstance(told_length, int) else listed
    best = 0
    try:
        for index in _telling(table, length):
            if _is_better(table.get(best), table.get(index), wish, version):
                best = index
        if not isinstance(told_length, int) and _is_better(table.get(best), None, wish, version):
            return GidChoice(
                None, f"NCCL moves on to the first unset GID after {listed - 1}, if there is one"
            )
    except _UnreadableTypeError as error:
        return GidChoice(None, f"NCCL before 2.26 stops here: {error}")
    return GidChoice(best, _words(table.get(best), wish))


def _telling(table: Mapping[int, Gid], length: int) -> list[int]:
    """Return the indexes that can matter: those listed, and the first of a run of unset ones."""
    behind = {index + 1 for index in table} | {1}
    return sorted(index for index in behind | set(table) if 0 < index < length)


def _is_better(best: Gid | None, gid: Gid | None, wish: _Wish, version: versions.Version) -> bool:
    """ncclUpdateGidIndex. The first test asks neither for the RoCE version nor whether the address is link-local."""
    raw, other_raw = _raw(best) or _NO_GID, _raw(gid) or _NO_GID
    family, other_family = _family_of(raw), _family_of(other_raw)
    if other_family != wish.family or not _is_inside(other_raw, wish):
        return False
    if family != other_family:
        return True
    if not _is_valid(other_raw):
        return False
    roce, other_roce = _roce_version(best, version), _roce_version(gid, version)
    # A type that cannot be read leaves an uninitialised number, which is hardly ever equal to the other one.
    is_other_version = roce is None or roce != other_roce
    return (is_other_version or not _is_valid(raw)) and (
        -1 if other_roce is None else other_roce
    ) == wish.roce_version


def _roce_version(gid: Gid | None, version: versions.Version) -> int | None:
    """1 or 2 as gid_attrs/types says; None where it cannot be read, which is an error before 2.26."""
    if gid is None or isinstance(gid.type, Missing):
        if version < versions.UNREADABLE_GID_TYPE_TOLERATED_SINCE:
            which = "of an unset GID" if gid is None else f"of GID {gid.index}"
            raise _UnreadableTypeError(f"the RoCE version {which} cannot be read")
        return None
    if gid.type.startswith(("IB/RoCE v1", "RoCE v1")):
        return 1
    return 2 if gid.type.startswith("RoCE v2") else None


def _raw(gid: Gid | None) -> bytes | None:
    return None if gid is None else _packed(gid.gid)


@lru_cache(maxsize=4096)
def _packed(text: str) -> bytes | None:
    try:
        return ipaddress.IPv6Address(text).packed
    except ValueError:  # facts of another node can hold anything
        return None


def _family_of(raw: bytes) -> str:
    """inet for a v4-mapped GID or its multicast form, else inet6 (getGidAddrFamily)."""
    is_mapped = raw[:8] == bytes(8)
    is_multicast = raw[:8] == b"\xff\x0e" + bytes(6)
    return "inet" if (is_mapped or is_multicast) and raw[8:12] == b"\0\0\xff\xff" else "inet6"


def _is_valid(raw: bytes) -> bool:
    """Set, and not link-local (validGid): fe80::/64, which is narrower than fe80::/10."""
    return raw != _NO_GID and raw[:8] != b"\xfe\x80" + bytes(6)


def _is_inside(raw: bytes, wish: _Wish) -> bool:
    """matchGidAddrPrefix: the last 4 bytes for IPv4, all 16 for IPv6."""
    if wish.range.length <= 0:
        return wish.range.length == 0
    address = raw[12:] if wish.family == "inet" else raw
    shift = _BITS[wish.family] - wish.range.length
    return int.from_bytes(address, "big") >> shift == int.from_bytes(wish.range.base, "big") >> shift


def _family(environment: Mapping[str, str]) -> str:
    return _FAMILIES.get(environment.get("NCCL_IB_ADDR_FAMILY", ""), "inet")


def _address_range(environment: Mapping[str, str], version: versions.Version) -> _Range | None:
    """NCCL_IB_ADDR_RANGE as envIbAddrRange reads it; None where that crashes. What is invalid counts as unset."""
    text = environment.get("NCCL_IB_ADDR_RANGE", "")[:_MOST_RANGE_CHARACTERS]
    if not text:
        return _Range()
    address, slash, mask = text.partition("/")
    if not slash:
        return _Range() if version >= versions.ADDRESS_RANGE_NEEDS_NO_SLASH_SINCE else None
    family = _family(environment)
    try:
        base = (ipaddress.IPv4Address(address) if family == "inet" else ipaddress.IPv6Address(address)).packed
    except ValueError:
        return _Range()
    if "%" in address:  # Python reads a scope there, inet_pton(3) does not
        return _Range()
    match = _MASK.match(mask)
    length = int(match[1]) if match else 0
    return _Range() if length > _BITS[family] else _Range(base, length)


def _words(gid: Gid | None, wish: _Wish) -> str:
    if gid is None:
        return "an unset GID: no entry is of the wanted kind"
    kind = gid.type if isinstance(gid.type, str) else "of unreadable type"
    address = ipaddress.IPv6Address(gid.gid) if _raw(gid) is not None else gid.gid
    mapped = getattr(address, "ipv4_mapped", None)
    family = "IPv4" if wish.family == "inet" else "IPv6"
    return f"{mapped or address} ({kind}), chosen for {family} and RoCE v{wish.roce_version}"
