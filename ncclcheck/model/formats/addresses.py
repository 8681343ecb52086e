"""Questions about IP addresses as text. What was parsed is remembered, since nodes name each other's addresses."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_MOST_KNOWN = 1 << 17
_LONGEST = 64  # an IPv6 address has at most 45 letters, its scope at most 15
_LOCAL_NAMES = ("localhost", "ip6-localhost")


@lru_cache(maxsize=_MOST_KNOWN)
def parsed(address: str) -> IPv4Address | IPv6Address:
    """Return the address without its scope. Raises ValueError where it is none."""
    return ip_address(address.partition("%")[0])


@lru_cache(maxsize=_MOST_KNOWN)
def is_address(text: str) -> bool:
    """Return whether the text is an IP address, with a scope or without."""
    if len(text) > _LONGEST:
        return False
    try:
        return bool(parsed(text).version)
    except ValueError:
        return False


@lru_cache(maxsize=_MOST_KNOWN)
def is_loopback(address: str) -> bool:
    """Return True for 127.0.0.0/8 and ::1 (also written as ::ffff:127.0.0.1)."""
    mapped = getattr(parsed(address), "ipv4_mapped", None)
    return parsed(address).is_loopback or (mapped is not None and mapped.is_loopback)


def means_this_machine(address: str) -> bool:
    """Return True for a loopback address, and for 0.0.0.0 and ::, which connect(2) takes for loopback."""
    return is_loopback(address) or parsed(address).is_unspecified


def names_this_machine(name: str) -> bool:
    """Return True for such an address and for localhost: on every machine they mean that machine."""
    try:
        return means_this_machine(name)
    except ValueError:
        return name.split(".")[0].lower() in _LOCAL_NAMES


@lru_cache(maxsize=_MOST_KNOWN)
def is_link_local(address: str) -> bool:
    """Return True for fe80::/10 and 169.254.0.0/16, which are valid on a single link only."""
    return parsed(address).is_link_local


def family(address: str) -> str:
    """`IPv4` or `IPv6`."""
    return "IPv4" if parsed(address).version == 4 else "IPv6"  # noqa: PLR2004


@lru_cache(maxsize=_MOST_KNOWN)
def number_of(address: str) -> tuple[str, int]:
    """Return the family of an address, and the address as a number."""
    return family(address), int(parsed(address))


@lru_cache(maxsize=_MOST_KNOWN)
def range_of(address: str, prefix_length: int) -> tuple[str, int, int]:
    """Return the family, and the first and last address of the subnet of an address as numbers."""
    subnet = network(address, prefix_length)
    return family(address), int(subnet.network_address), int(subnet.broadcast_address)


@lru_cache(maxsize=_MOST_KNOWN)
def network(address: str, prefix_length: int) -> IPv4Network | IPv6Network:
    """Return the subnet of an address. Raises ValueError where it is none."""
    number = parsed(address)
    beyond = number.max_prefixlen - prefix_length
    return _numbered(number.version, int(number) >> beyond << beyond, prefix_length)


@lru_cache(maxsize=_MOST_KNOWN)
def _numbered(version: int, first: int, prefix_length: int) -> IPv4Network | IPv6Network:
    """Return the subnet with this first address: most nodes are in one, and to read it as text takes long."""
    subnet = first, prefix_length
    return IPv4Network(subnet) if version == 4 else IPv6Network(subnet)  # noqa: PLR2004
