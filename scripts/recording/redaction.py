"""Replaces what would name a machine, its owner or its network, so that relations stay: one prefix, one subnet."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re

from msgspec import Struct

# Networks whose kind tells something and their owner nothing: these bits stay as they are.
_KEPT = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
        "192.168.0.0/16", "::ffff:0:0/96", "fe80::/64", "fec0::/10", "fc00::/7", "ff00::/8",
    )
)  # fmt: skip
_OF_EVERYBODY = ("0.0.0.0", "127.0.0.1", "::", "::1", "fe80::")  # noqa: S104 - nothing is bound
_OUI_BITS = 24  # of a GUID or MAC address: the maker of the card
_LOWER_HALF = (1 << 64) - 1
_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])", re.ASCII)
_GROUPS = re.compile(r"(?<![\w:])[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?![\w:])", re.ASCII | re.IGNORECASE)
_MAC = re.compile(r"(?<![\w:])[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5,19}(?![\w:])", re.ASCII | re.IGNORECASE)
_WHOLE_GID = re.compile(r"[0-9a-f]{4}(?::[0-9a-f]{4}){7}", re.ASCII)
_GUID = re.compile(r"[0-9a-f]{4}(?::[0-9a-f]{4}){3}", re.ASCII)
_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.ASCII | re.IGNORECASE)
_MADE_UP_DIGITS = 12


class Redaction(Struct, frozen=True):
    """Replacements by one key: the same value becomes the same, and without the key nothing leads back.

    `names`: the names of this machine, which are replaced wherever they stand in a text.
    """

    key: bytes
    names: tuple[str, ...] = ()

    def host(self, name: str) -> str:
        """Another name for a host; the same for its short and its full name."""
        short = name.partition(".")[0].lower()
        return f"host-{self._digest('host', short)[:_MADE_UP_DIGITS]}"

    def group(self, path: str) -> str:
        """Return the path of a control group with its names, those of users and jobs, replaced."""
        return "/".join(
            part if part in ("", "..") else f"group-{self._digest('group', part)[:_MADE_UP_DIGITS]}"
            for part in path.split("/")
        )

    def address(self, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
        """Another address of the same kind: two that share their first n bits still share n, and no more than that.

        A bit is turned by a keyed hash of the bits before it (Xu, Fan, Ammar, Moon: Prefix-preserving IP address
        anonymization, 2002). The bits that make an address private, link-local or loopback stay, and so do the
        addresses that every machine has.
        """
        if str(address) in _OF_EVERYBODY:
            return str(address)
        kept_bits = max((net.prefixlen for net in _KEPT if address in net), default=0)
        width = address.max_prefixlen
        turned = self._turned(int(address), width, kept_bits)
        if width > 32 and kept_bits == 64:
            turned = int(address) & ~_LOWER_HALF | self._turned(int(address) & _LOWER_HALF, 64, _OUI_BITS)
        return str(type(address)(turned))

    def gid(self, text: str) -> str:
        """Another GID, written as in /sys; its last half is turned like a GUID where its first is link-local."""
        if not _WHOLE_GID.fullmatch(text):
            return self.text(text)
        address = ipaddress.IPv6Address(text)
        if address.ipv4_mapped is not None:
            mapped = int(ipaddress.IPv4Address(self.address(address.ipv4_mapped)))
            return ipaddress.IPv6Address(int(address) & ~0xFFFFFFFF | mapped).exploded
        return ipaddress.IPv6Address(self.address(address)).exploded

    def guid(self, text: str) -> str:
        """Another GUID of the same maker, written as in /sys: four groups of four digits."""
        if not _GUID.fullmatch(text):
            return self.text(text)
        digits = f"{self._turned(int(text.replace(':', ''), 16), 64, _OUI_BITS):016x}"
        return ":".join(digits[place : place + 4] for place in range(0, 16, 4))

    def text(self, text: str) -> str:
        """Return the text with every address, GUID, UUID and name of this machine in it replaced."""
        for name in sorted(self.names, key=len, reverse=True):
            if name:
                text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", self.host(name), text)
        text = _UUID.sub(lambda match: self._same_length("uuid", match[0]), text)
        text = _MAC.sub(lambda match: self._same_length("mac", match[0]), text)
        text = _GROUPS.sub(lambda match: self._group(match[0]), text)
        return _IPV4.sub(lambda match: self._parsed(match[0]), text)

    def _group(self, text: str) -> str:
        if _WHOLE_GID.fullmatch(text.lower()):
            return self.gid(text.lower())
        return self.guid(text.lower()) if _GUID.fullmatch(text.lower()) else self._parsed(text)

    def _parsed(self, text: str) -> str:
        try:
            return self.address(ipaddress.ip_address(text))
        except ValueError:
            return text  # a version, a time: no address

    def _same_length(self, kind: str, text: str) -> str:
        """Return the same signs at the same places, with other hexadecimal digits; of a MAC address the maker stays."""
        digits = re.sub(r"[^0-9a-fA-F]", "", text).lower()
        kept_bits = digits[: _OUI_BITS // 4] if kind == "mac" else ""
        replacements = iter(kept_bits + self._digest(kind, digits)[: len(digits) - len(kept_bits)])
        return "".join(next(replacements) if letter not in ":-" else letter for letter in text)

    def _turned(self, number: int, width: int, kept_bits: int) -> int:
        turned = number
        for place in range(kept_bits, width):
            before = number >> (width - place)
            if int(self._digest(f"{width}/{place}", str(before))[:2], 16) & 1:
                turned ^= 1 << (width - place - 1)
        return turned

    def _digest(self, kind: str, text: str) -> str:
        return hmac.new(self.key, f"{kind} {text}".encode(), hashlib.sha256).hexdigest()
