"""A second reading of the RoCE GID rule, on addresses instead of bytes: what the property test compares with."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence

Entry = tuple[
    str | None, str | None
]  # address (None: unset) and v1, v2 or None for a type that cannot be read


def index(entries: Sequence[Entry], environment: Mapping[str, str], version: str) -> int | None:
    """The index, or None where NCCL stops. Only for values that the property test makes."""
    release = tuple(int(part) for part in version.split("."))
    if environment.get("NCCL_IB_GID_INDEX", "") == "2":
        return 2
    if release < (2, 21):
        return None if environment.get("NCCL_IB_GID_INDEX") == "-1" else 0
    six = environment.get("NCCL_IB_ADDR_FAMILY") == "AF_INET6"
    wanted = {"1": 1, "true": 0 if release < (2, 32) else 2}.get(
        environment.get("NCCL_IB_ROCE_VERSION_NUM", ""), 2
    )
    current = 0
    for number in range(1, len(entries)):
        here, there = entries[current], entries[number]
        if _is_six(there) != six or not _is_allowed(there, six, environment):
            continue
        if _is_six(here) == six:
            if not _is_global(there):
                continue
            read = [_number(here), _number(there)]
            if None in read and release < (2, 26):
                return None
            if read[1] != wanted or (read[0] == read[1] and _is_global(here)):
                continue
        current = number
    return current


def _address(entry: Entry) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(entry[0] or "::")


def _is_six(entry: Entry) -> bool:
    return _address(entry).version == 6


def _is_global(entry: Entry) -> bool:
    return entry[0] is not None and _address(entry) not in ipaddress.ip_network("fe80::/64")


def _number(entry: Entry) -> int | None:
    return None if entry[0] is None or entry[1] is None else int(entry[1][1])


def _is_allowed(entry: Entry, six: bool, environment: Mapping[str, str]) -> bool:
    try:
        network = ipaddress.ip_network(environment.get("NCCL_IB_ADDR_RANGE", ""), strict=False)
    except ValueError:
        return True
    return (network.version == 6) != six or _address(entry) in network
