"""What a site says of its switches: which nodes are behind which one."""

from __future__ import annotations

from msgspec import Struct


class SiteSwitch(Struct, frozen=True, forbid_unknown_fields=True):
    """A switch or block, and the nodes behind it."""

    name: str
    hosts: tuple[str, ...]


class SiteTopology(Struct, frozen=True, forbid_unknown_fields=True):
    """The lowest switches (tree) or blocks of a topology file; none where the file says that the network is flat."""

    source: str
    switches: tuple[SiteSwitch, ...]
