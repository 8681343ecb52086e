"""Addresses in what others say: one that is none is refused before a check or an advice computes with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import fields

from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Address, MasterPath, Names, NcclAnswer, Route
from ncclcheck.model.formats.addresses import is_address

_LONGEST = 64
_BITS = {"inet": 32, "inet6": 128}


def refuse_odd_addresses(document: object) -> None:
    """Look through facts, an answer or a knock. Raises DecodeError where an address in it is none.

    So it is done where a document is decoded, and not in the records themselves: what this node reads is no stranger's.
    """
    if refuse := _REFUSALS.get(type(document)):
        refuse(document)
    elif isinstance(document, Struct):
        for field in _fields_with_addresses(type(document)):
            refuse_odd_addresses(getattr(document, field))
    elif isinstance(document, tuple | list | dict):
        for part in document.values() if isinstance(document, dict) else document:
            refuse_odd_addresses(part)


@cache
def _fields_with_addresses(kind: type[Struct]) -> tuple[str, ...]:
    """Return the fields worth a look: of thousands of answers, most parts hold no address."""
    return tuple(field.name for field in fields(kind) if _has_addresses(field.type))


def _has_addresses(kind: Any) -> bool:
    if isinstance(kind, type) and issubclass(kind, Struct):
        return kind in _REFUSALS or bool(_fields_with_addresses(kind))
    return any(map(_has_addresses, (*get_args(kind), *filter(None, [getattr(kind, "value_type", None)]))))


def _refuse(*texts: str) -> None:
    for text in texts:
        if not is_address(text):
            raise DecodeError(f"{text[:_LONGEST]!a} is no IP address")


def _refuse_in_subnet(address: Address) -> None:
    _refuse(address.address)
    bits = _BITS[address.family]
    if not 0 <= address.prefix_length <= bits or (":" in address.address) != (address.family == "inet6"):
        raise DecodeError(
            f"{address.address}/{address.prefix_length} is no subnet of family {address.family}"
        )


def _refuse_in_route(route: Route) -> None:
    if route.purpose != "master":  # which is called by its name
        _refuse(route.destination)


def _refuse_in_list(names: Names | MasterPath) -> None:
    _refuse(*(() if isinstance(names.addresses, Missing) else names.addresses))


def _refuse_in_answer(answer: NcclAnswer) -> None:
    if answer.address is not None:
        _refuse(answer.address)


_REFUSALS: dict[type, Callable[[Any], None]] = {
    Address: _refuse_in_subnet,
    Route: _refuse_in_route,
    Names: _refuse_in_list,
    MasterPath: _refuse_in_list,
    NcclAnswer: _refuse_in_answer,
}
