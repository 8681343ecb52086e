"""Pauses of processes of a run, as they report them to node 0: no node is blamed for that time."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ncclcheck.exchange.awake import still_s
from ncclcheck.exchange.messages import SCHEMA, SMALL_LIMIT_BYTES, TOOL_VERSION, read_message
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.codec import encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.timeouts import LONGEST_OPTION_S, STOOD_STILL_S

_MOST_STEPS = 32


class Pauses(Struct, frozen=True, forbid_unknown_fields=True):
    """For how many seconds a process stood still, by the step of the run that it was in."""

    schema_version: str
    tool_version: str
    seconds: dict[str, float]


class PauseNotes:
    """Tells node 0 where this process stood still. State: the step that it is in, and what it has told."""

    def __init__(self, store: Store, ticket: int) -> None:
        self._store, self._key = store, keys.stood_still(ticket)
        self._step, self._before_s = "", still_s()
        self._told: dict[str, float] = {}

    def begin(self, step: str) -> None:
        """Note that an order for this step has come. Others may have begun with it during a pause that ended now."""
        self.tell(step)
        self._step, self._before_s = step, still_s()

    def tell(self, *further: str) -> None:
        """Tell node 0 if this process stood still in the step, or in further ones, before what it answers is read."""
        grown_s = still_s() - self._before_s
        if grown_s < STOOD_STILL_S:
            return
        self._before_s += grown_s
        for step in (self._step, *further):
            self._told[step] = round(self._told.get(step, 0.0) + grown_s, 1)
        self._store.set_document(self._key, encode(Pauses(SCHEMA, TOOL_VERSION, self._told)))


def reported_pauses(store: Store, host_of: Mapping[int, str]) -> dict[str, dict[str, float]]:
    """Return for how many seconds the nodes (ticket -> host) stood still, by step; only those that did."""
    key_of = {keys.stood_still(ticket): host for ticket, host in host_of.items()}
    found: dict[str, dict[str, float]] = {}
    for key, data in store.get_documents(tuple(key_of)).items():
        try:
            seconds_by_step = read_message(data, Pauses, SMALL_LIMIT_BYTES).seconds
        except DecodeError:
            continue  # it blames no node
        if len(seconds_by_step) <= _MOST_STEPS and all(
            0 < seconds < LONGEST_OPTION_S for seconds in seconds_by_step.values()
        ):
            found[key_of[key]] = seconds_by_step
    return found
