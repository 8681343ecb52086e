"""The run's key in the folder of `--meet-in`: a file of mode 0600, in a folder that only this user can open."""

from __future__ import annotations

from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.trust.run_key import MOST_BYTES, RunKey, new_key
from ncclcheck.exchange.trust.trust import Trust
from ncclcheck.model.fact import Missing

BY = "--meet-in"


def leave_key(store: Store, trust: Trust) -> None:
    """Leave a key for the others in the folder, unless the user gave one."""
    if trust.key is None:
        key = new_key(BY)
        if store.set(keys.KEY, key.secret) is None:
            trust.key = key


def find_key(store: Store, trust: Trust) -> None:
    """Take the key that node 0 left in the folder, unless the user gave one."""
    if trust.key is None:
        found = store.get(keys.KEY)
        if not isinstance(found, Missing) and len(found) <= MOST_BYTES:
            trust.key = RunKey(found, BY)


def at_master(trust: Trust, command: str) -> Trust:
    """Return what is trusted at the master address of a run that meets elsewhere.

    A node that does not see the folder has no key from there, and is to be heard all the same. Where a benchmark
    follows, its ranks need torch's store there.
    """
    of_folder = trust.key is not None and trust.key.by == BY
    return Trust() if of_folder or command != "preflight" else trust
