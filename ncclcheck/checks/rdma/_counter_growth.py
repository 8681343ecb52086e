"""By how much a counter grew between two readings, with what counters do besides: stop at the top, wrap, be reset."""

from __future__ import annotations

from msgspec import Struct

# Counters of the InfiniBand port attributes stop at their largest value (InfiniBand Architecture Specification,
# PortCounters). Their widths in bits: Linux, drivers/infiniband/core/sysfs.c, PORT_PMA_ATTR.
_STOPS_AT = {
    "symbol_error": (1 << 16) - 1,
    "link_error_recovery": (1 << 8) - 1,
    "link_downed": (1 << 8) - 1,
    "port_rcv_errors": (1 << 16) - 1,
    "port_rcv_remote_physical_errors": (1 << 16) - 1,
    "port_rcv_switch_relay_errors": (1 << 16) - 1,
    "port_xmit_discards": (1 << 16) - 1,
    "port_xmit_constraint_errors": (1 << 8) - 1,
    "port_rcv_constraint_errors": (1 << 8) - 1,
    "local_link_integrity_errors": (1 << 4) - 1,
    "excessive_buffer_overrun_errors": (1 << 4) - 1,
}
_WRAPS_AT = (1 << 32, 1 << 64)  # registers of cards
_NEAR_THE_TOP = 16  # a counter that was in the last sixteenth before, and is in the first after, has wrapped


class Growth(Struct, frozen=True):
    """What was added, at least. `was_reset`: somebody set it to zero in between, and what was before that is lost."""

    count: int
    was_reset: bool = False
    is_full: bool = False  # it stands at its largest value and cannot grow

    @property
    def is_certain(self) -> bool:
        """False where more may have been added than is seen."""
        return not (self.was_reset or self.is_full)


def growth(name: str, before: int, after: int) -> Growth:
    """How the counter of that name got from one value to the other."""
    if after >= before:
        return Growth(after - before, is_full=after == _STOPS_AT.get(name))
    if name not in _STOPS_AT:
        for top in _WRAPS_AT:
            if top > before >= top - top // _NEAR_THE_TOP and after < top // _NEAR_THE_TOP:
                return Growth(top - before + after)
    return Growth(after, was_reset=True)
