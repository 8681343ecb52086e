"""The values that a policy may demand: what is allowed for each key, and how it is read."""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct
from packaging.specifiers import InvalidSpecifier, Specifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from ncclcheck import timeouts
from ncclcheck.model.benchmarks.isolation import LEAST_EFFECT, MOST_EFFECT, parse_pair_size
from ncclcheck.model.benchmarks.soak import LEAST_DROP, MOST_DROP
from ncclcheck.model.benchmarks.trials import LEAST_GAIN, MOST_GAIN
from ncclcheck.model.errors import UsageError
from ncclcheck.model.policy.expected import Number, Presence, Subnet, Text, VersionRange, Wanted
from ncclcheck.model.units import parse_part, parse_size, parse_time_s

_RANGE = ("<", ">", "=", "!", "~")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}", re.ASCII)
_CAPABILITY = re.compile(r"\d{1,2}\.\d", re.ASCII)
# Also what is no version of Python, like a kernel's 6.8.0-45-generic; but "2.x" would fit nothing.
_PLAIN_VERSION = re.compile(r"v?\d[\w.+!~-]*(?<!\.x)", re.ASCII)
# node[01-16] is a set of hosts elsewhere; a shell pattern has one letter in brackets, and would never say no.
_NODE_SET = re.compile(r"\[[^\]]*(?:\d\d-\d|\d-\d\d|,)[^\]]*\]", re.ASCII)
_PRINTABLE = re.compile(r"[^\x00-\x1f\x7f]{1,1000}")
KIB = 1024.0


class WrongValueError(Exception):
    """A value that a key cannot have; its text says what would be right."""


class Kind(Struct, frozen=True):
    """How the value of a key is read: `read` raises WrongValueError where it is none."""

    read: Callable[[Any], Wanted]


def whole(least: int, most: int, like: int, *, unit: str = "", at_least: bool = False) -> Kind:
    """Return the kind of a whole number within bounds."""

    def read(value: Any) -> Wanted:
        return Number(whole_number(value, least, most, like), unit, at_least)

    return Kind(read)


def whole_number(value: Any, least: int, most: int, like: int) -> int:
    """Return the number. Raises WrongValueError where it is none, or out of bounds."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise WrongValueError(f"expected a whole number, like {like}")
    if not least <= value <= most:
        raise WrongValueError(f"impossible: expected {least} to {most}")
    return value


def rate(unit: str, most: float, like: str) -> Kind:
    """Return the kind of a number above 0 that is a minimum for what is observed."""

    def read(value: Any) -> Wanted:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise WrongValueError(f"expected a number in {unit}, like {like}")
        if not (math.isfinite(value) and 0 < value <= most):
            raise WrongValueError(f"impossible: expected above 0 and at most {most:g} {unit}")
        return Number(float(value), unit, at_least=True)

    return Kind(read)


def size(*, unlimited: bool = False, like: str = '"16G"') -> Kind:
    """Return the kind of a minimum in KiB, written as a size with a binary suffix."""
    allowed = f"expected a size like {like} (binary: 1G is 1 GiB)" + (' or "unlimited"' if unlimited else "")

    def read(value: Any) -> Wanted:
        if unlimited and value == "unlimited":
            return Number(None, "KiB", at_least=True)
        if not isinstance(value, str):
            raise WrongValueError(allowed)
        try:
            return Number(parse_size(value) / KIB, "KiB", at_least=True)
        except UsageError as error:
            raise WrongValueError(f"{error}: {allowed}") from error

    return Kind(read)


def _version(value: Any) -> Wanted:
    if not isinstance(value, str) or not _PRINTABLE.fullmatch(value):
        raise WrongValueError('expected a version, like "2.9.0", or a range, like ">=2.7,<3"')
    if not value.strip().startswith(_RANGE):
        if not _PLAIN_VERSION.fullmatch(value.strip()) and not value.strip().endswith(".*"):
            raise WrongValueError('expected a version, like "2.9.0", or a range, like ">=2.7,<3"')
        if value.strip().endswith(".*"):
            raise WrongValueError(f'write "=={value.strip()}" for any version that begins so')
        return VersionRange(value.strip())
    try:
        specifiers = SpecifierSet(value)
    except InvalidSpecifier as error:
        raise WrongValueError('no range of versions: expected one as in PEP 440, like ">=2.7,<3"') from error
    if not _is_possible(specifiers):
        raise WrongValueError("impossible: no version is in this range")
    return VersionRange(value.strip())


def _is_possible(specifiers: SpecifierSet) -> bool:
    """Return whether a version fits. An interval that is not empty holds one of its ends, or what comes next to one."""
    ends = [_end(specifier) for specifier in specifiers]
    if None in ends:  # ===, which compares texts
        return True
    near = [Version("0"), *(end for end in ends if end is not None)]
    near += [Version(f"{end.base_version}.0.0.0.1") for end in near]
    near += [Version(f"{end.epoch}!{end.major + 1}") for end in near]
    return any(specifiers.contains(version, prereleases=True) for version in near)


def _end(specifier: Specifier) -> Version | None:
    try:
        return Version(specifier.version.removesuffix(".*"))
    except InvalidVersion:
        return None


def words(what: str, like: str, *, pattern: bool = False) -> Kind:
    """Return the kind of one text or a list of texts."""

    def read(value: Any) -> Wanted:
        return Text(texts(value, what, like), pattern)

    return Kind(read)


def texts(value: Any, what: str, like: str) -> tuple[str, ...]:
    """Return the texts of a value that is one text or a list of them. Raises WrongValueError."""
    listed = value if isinstance(value, list) else [value]
    if not listed or not all(isinstance(text, str) and _PRINTABLE.fullmatch(text) for text in listed):
        raise WrongValueError(f"expected {what}, like {like}, or a list of them")
    return tuple(listed)


def patterns(value: Any, what: str, like: str) -> tuple[str, ...]:
    """Return one shell pattern or several. Raises WrongValueError, also for a set of hosts."""
    found = texts(value, what, like)
    for pattern in found:
        if _NODE_SET.search(pattern):
            raise WrongValueError(
                f"expected a shell pattern, like {like}, where [...] stands for one letter, and {pattern!r} looks like "
                "a set of hosts: name each in a list, or write * for what differs"
            )
    return found


def some_of(*allowed: str) -> Kind:
    """Return the kind of one of these words, or a list of them."""

    def read(value: Any) -> Wanted:
        listed = value if isinstance(value, list) and value else [value]
        return Text(tuple(choice(word, *allowed) for word in listed))

    return Kind(read)


def choice(value: Any, *allowed: str) -> str:
    """Return the word. Raises WrongValueError where it is none of these."""
    if isinstance(value, str) and value in allowed:
        return value
    quoted = [f'"{word}"' for word in allowed]
    raise WrongValueError(f"expected {', '.join(quoted[:-1])} or {quoted[-1]}")


def _capability(value: Any) -> Wanted:
    found = texts(value, "a compute capability", '"9.0"')
    if not all(_CAPABILITY.fullmatch(capability) for capability in found):
        raise WrongValueError(
            'expected a compute capability, like "9.0" (a text: 9.0 is a number), or a list of them'
        )
    return Text(found)


def _subnet(value: Any) -> Wanted:
    found = texts(value, "a network", '"10.0.0.0/16"')
    for network in found:
        try:
            ipaddress.ip_network(network)
        except ValueError as error:
            raise WrongValueError(f'{error}: expected a network, like "10.0.0.0/16"') from error
        if "/" not in network:
            raise WrongValueError(f'{network} has no length: expected a network, like "10.0.0.0/16"')
    return Subnet(found)


def _variable(value: Any) -> Wanted:
    if isinstance(value, bool):
        return Presence(value)
    listed = value if isinstance(value, list) else [value]
    if not listed or not all(isinstance(text, str) for text in listed):
        raise WrongValueError(
            'expected the value as a text, like "eth0", a list of allowed ones, true (it must be set) or false '
            "(it must not be set)"
        )
    return Text(tuple(listed))


def is_variable(name: str) -> bool:
    """Return True for what can be the name of an environment variable."""
    return _VARIABLE.fullmatch(name) is not None


VARIABLE = Kind(_variable)
_VERSION = Kind(_version)
_WIDTHS = (1, 2, 4, 8, 12, 16, 32)


def _width(value: Any) -> Wanted:
    if isinstance(value, bool) or value not in _WIDTHS:
        raise WrongValueError(f"expected a number of lanes: {', '.join(map(str, _WIDTHS))}")
    return Number(value, "lanes", at_least=True)


_LANES = Kind(_width)
_GT_S = rate("GT/s", 256, "32")

# What may be demanded of each node: section -> key -> kind. Names of variables are keys of [environment].
SECTIONS: dict[str, dict[str, Kind]] = {
    "versions": dict.fromkeys(("torch", "cuda", "nccl", "python", "ncclcheck", "driver", "kernel"), _VERSION),
    "gpu": {
        "model": words("a model", '"NVIDIA H100*"', pattern=True),
        "memory": size(like='"79G"'),
        "compute_capability": Kind(_capability),
    },
    "network": {
        "interface": words("an interface", '"eth0"', pattern=True),
        "subnet": Kind(_subnet),
        "speed_gbit_s": rate("Gbit/s", 100_000, "100"),
        "mtu": whole(68, 65536, 9000),
    },
    "rdma": {
        "rate_gbit_s": rate("Gbit/s", 100_000, "400"),
        "link_layer": some_of("InfiniBand", "Ethernet"),
    },
    "pcie": {"gpu_width": _LANES, "gpu_speed_gt_s": _GT_S, "nic_width": _LANES, "nic_speed_gt_s": _GT_S},
    "limits": {
        "memlock": size(unlimited=True, like='"64M"'),
        "shm": size(),
        "nofile": whole(1, 1 << 31, 65536, at_least=True),
    },
    "environment": {},
}


def _time(value: Any) -> Wanted:
    if not isinstance(value, str):
        raise WrongValueError('expected a time, like "2h"')
    try:
        parse_time_s(value, timeouts.SOAK_LEAST_S, timeouts.SOAK_LONGEST_S)
    except UsageError as error:
        raise WrongValueError(str(error).partition(": ")[2]) from error
    return Text((value,))


def _percent(least: float, most: float) -> Kind:
    def read(value: Any) -> Wanted:
        text = str(value)
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise WrongValueError('expected per cent, like "5%"')
        try:
            parse_part(text, least, most)
        except UsageError as error:
            raise WrongValueError(str(error).partition(": ")[2]) from error
        return Text((text,))

    return Kind(read)


def _pair_size(value: Any) -> Wanted:
    if not isinstance(value, str):
        raise WrongValueError('expected a size from 64K to 4G, like "64M"')
    try:
        parse_pair_size(value)
    except UsageError as error:
        raise WrongValueError(str(error)) from error
    return Text((value,))


# What is measured, where the command line does not say it: section -> option -> kind.
MEASURING: dict[str, dict[str, Kind]] = {
    "soak": {"duration": Kind(_time), "drop": _percent(LEAST_DROP, MOST_DROP)},
    "isolate": {"slower_than": _percent(LEAST_EFFECT, MOST_EFFECT), "size": Kind(_pair_size)},
    "matrix": {"size": Kind(_pair_size)},
    "try": {"gain": _percent(LEAST_GAIN, MOST_GAIN)},
}
COUNTS: dict[str, Kind] = {
    "gpus_per_node": whole(0, 4096, 8),
    "rdma_ports_per_node": whole(0, 1024, 8),
}
