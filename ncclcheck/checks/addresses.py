"""Questions about IP addresses as text."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network


def is_loopback(address: str) -> bool:
    """Return True for 127.0.0.0/8 and ::1 (also written as ::ffff:127.0.0.1)."""
    parsed = ip_address(address.partition("%")[0])
    mapped = getattr(parsed, "ipv4_mapped", None)
    return parsed.is_loopback or (mapped is not None and mapped.is_loopback)


def is_link_local(address: str) -> bool:
    """Return True for fe80::/10 and 169.254.0.0/16, which are valid on a single link only."""
    return ip_address(address.partition("%")[0]).is_link_local


def family(address: str) -> str:
    """`IPv4` or `IPv6`."""
    return f"IPv{ip_address(address.partition('%')[0]).version}"


def network(address: str, prefix_length: int) -> IPv4Network | IPv6Network:
    """Return the subnet of an address."""
    return ip_network(f"{address.partition('%')[0]}/{prefix_length}", strict=False)
