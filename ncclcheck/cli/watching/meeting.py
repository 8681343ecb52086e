"""Which watcher of the job this is, and where it joins the others: found as the agents of preflight find it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ncclcheck.cli.commands.prefix import Prefixed
from ncclcheck.cli.key_option import given_key
from ncclcheck.exchange.join.rendezvous import placed
from ncclcheck.exchange.trust.munge import trust_of
from ncclcheck.exchange.watchers import Meeting
from ncclcheck.facts.network.interfaces import addresses_now
from ncclcheck.facts.network.names import host_name
from ncclcheck.launch.detect import detect
from ncclcheck.launch.flags import LaunchFlags
from ncclcheck.model.launch import NOT_RANKED


def flags_of(option_values: Mapping[str, Any]) -> LaunchFlags:
    """Return what the options say of this node's place."""
    names = ("nnodes", "node_rank", "master_addr", "master_port", "nproc_per_node")
    return LaunchFlags(**{name: option_values.get(name) for name in names})


def meeting_of(option_values: Mapping[str, Any], prefixed: Prefixed) -> Meeting | None:
    """Return where the watchers of the job meet; None where there is only this one.

    Raises UsageError where the launcher's words contradict each other.
    """
    launch = detect(prefixed.checked_environ, flags_of(option_values), prefixed.line.launch)
    if launch.world_size == 1 and launch.nnodes == 1:
        return None
    if launch.node_rank == NOT_RANKED:
        launch = placed(launch, addresses_now())
    if not launch.master_addr:
        return None
    trust = trust_of(given_key(option_values, os.environ), os.environ, launch)
    return Meeting(launch, host_name(), trust, option_values.get("meet_port") or 0)
