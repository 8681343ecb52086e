"""The keys of the store: no two are the same, whatever their numbers and names."""

from __future__ import annotations

import inspect
from itertools import product

from ncclcheck.exchange.store import keys

NAMES: tuple[object, ...] = ("bench", "as-is", "advised")
OF_PARAMETER = {"name": NAMES, "nonce": NAMES, "prefix": NAMES, "pair": ((1, 2), (1, 12))}


def every_key() -> list[str]:
    """Return each constant, and each function's key for several tickets, numbers and sets of workers."""
    found = [value for name, value in vars(keys).items() if name.isupper()]
    for _, function in inspect.getmembers(keys, inspect.isfunction):
        parameters = list(inspect.signature(function).parameters)
        values = [OF_PARAMETER.get(name, (0, 1, 12)) for name in parameters]
        found += [function(*chosen) for chosen in product(*values)]
    return found


def test_no_two_keys_are_the_same() -> None:
    found = every_key()
    assert len(found) > 60
    assert len(set(found)) == len(found)


def test_a_part_of_a_document_is_no_key_of_its_own() -> None:
    found = every_key()
    documents = {keys.REPORT, keys.SAVED, keys.FIRST_NODE, *(keys.hello(ticket) for ticket in (0, 1, 12))}
    assert not {f"{document}/{part}" for document in documents for part in range(20)} & set(found)
