"""The torchrun-style flags as the user gave them."""

from __future__ import annotations

from msgspec import Struct


class LaunchFlags(Struct, frozen=True, forbid_unknown_fields=True):
    """Explicit flags; None: not given."""

    nnodes: int | None = None
    node_rank: int | None = None
    master_addr: str | None = None
    master_port: int | None = None
    nproc_per_node: int | None = None

    @property
    def any_given(self) -> bool:
        """True when the user placed this process by hand."""
        return any(
            value is not None for value in (self.nnodes, self.node_rank, self.master_addr, self.master_port)
        )
