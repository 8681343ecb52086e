"""Decoding documents of many nodes: equal parts of their facts are decoded once, and are one object from then on.

Most nodes of a cluster say the same in most sections. So a document of thousands of nodes takes little time and memory,
and who compares nodes can ask first whether two of them hold the very same object.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, UNSET, Raw, Struct, UnsetType

from ncclcheck.model.codec import decode, decode_hook
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Fact
from ncclcheck.model.facts import NodeFacts

T = TypeVar("T")
_ABSENT = Raw(b"")
_MOST_KNOWN = (
    512  # of one type: what nodes share is among the first ones, and their names and addresses are not shared
)
_SHARED_FROM = (
    2  # so often the number of values in its full table a type was asked for, if nodes share its values
)
_FAULTS = (DecodeError, msgspec.DecodeError, TypeError, UnicodeDecodeError, RecursionError)
_MISSING = re.compile(rb'\{\s*"missing"')  # of an indented document, too


def decode_shared(data: bytes, value_type: type[T], reader: SharedReader | None = None) -> T:
    """Return the value in `data` as `decode` does, with equal parts of facts shared. Raises DecodeError likewise.

    Documents that the same `reader` reads share parts with each other, too.
    """
    try:
        value: T = (reader or SharedReader()).document(data, value_type)
    except _FAULTS:
        return decode(data, value_type)  # its error says where in the whole document the fault is
    return value


class _Part(Struct, frozen=True):
    """A field that is still text in the shallow twin: its place in the Struct, and what an absent one has."""

    number: int
    name: str
    type: Any
    default: Callable[[], Any] | None  # None: it is required


class _Split(Struct, frozen=True):
    """A Struct type with a shallow twin, in which the parts of facts are still text; `parts` are what differs.

    `fields` returns the values of all fields of a twin, in the order of the type's own.
    """

    type: Any
    shallow: Any
    fields: Callable[[Any], tuple[Any, ...]]
    parts: tuple[_Part, ...]


class _Plan(Struct, frozen=True):
    """How the text of a part is read. A tuple of Structs has an `element`; a Struct with parts has a `split`.

    `texts` splits a tuple into the texts of its elements; `value` decodes the part, or its shallow twin, as a whole.
    """

    value: Any
    missing: Any  # decodes what stands in the place of a Fact
    element: Any = None
    split: _Split | None = None
    texts: Any = None


class _Table:
    """The values of one type that were read, by text; state: how often it was asked, and whether that is of use."""

    def __init__(self) -> None:
        self.values: dict[bytes, Any] = {}
        self.asked = 0
        self.is_shared = True
        self.latest: tuple[Raw | None, Any] = None, None  # most nodes say what the one before said

    def add(self, text: bytes, value: Any) -> None:
        """Keep a value. When the table is full, and few values were found in it, it is given up."""
        if len(self.values) < _MOST_KNOWN:
            self.values[text] = value
            if len(self.values) == _MOST_KNOWN and self.asked < _SHARED_FROM * _MOST_KNOWN:
                self.is_shared = False
                self.values.clear()


class SharedReader:
    """Reads what is text in the shallow twin of a document; state: what it read before, by type and text."""

    def __init__(self) -> None:
        self._known: dict[Any, _Table] = {}

    def document(self, data: bytes, value_type: Any) -> Any:
        """Return the value in `data`."""
        return self.whole(_decoder(_split(value_type).shallow).decode(data), value_type)

    def value(self, data: bytes, value_type: Any) -> Any:
        """Return the value in `data` as `decode` does: a section of facts. Raises DecodeError likewise."""
        try:
            return self._shared(data, value_type)
        except _FAULTS:
            return decode(data, value_type)

    def whole(self, shallow: Any, value_type: Any) -> Any:
        """Return the value of which `shallow` is the twin."""
        element = _element(value_type)
        if element is not None:
            return tuple([self.whole(part, element) for part in shallow])
        return self._joined(shallow, _split(value_type))

    def _joined(self, shallow: Any, split: _Split) -> Any:
        values = list(split.fields(shallow))
        for part in split.parts:
            text = values[part.number]
            if text is _ABSENT:
                if part.default is None:
                    raise DecodeError(f"no {part.name}")
                values[part.number] = part.default()
            elif isinstance(text, Raw):
                values[part.number] = self._shared(text, part.type)
            elif text is not UNSET:
                values[part.number] = self.whole(text, part.type)
        return split.type(*values)

    def _shared(self, text: Raw | bytes, part_type: Any) -> Any:
        table = self._table(part_type)
        if not table.is_shared:
            return self._read(text, part_type)
        table.asked += 1
        latest, value = table.latest
        if text == latest:  # to compare is quicker than to copy and to hash
            return value
        key = bytes(text)
        value = table.values.get(key)
        if value is None:
            value = self._read(text, part_type)
            table.add(key, value)
        else:
            table.latest = Raw(key), value
        return value

    def _table(self, part_type: Any) -> _Table:
        table = self._known.get(part_type)
        if table is None:
            table = self._known.setdefault(part_type, _Table())
        return table

    def _read(self, text: Raw | bytes, part_type: Any) -> Any:
        plan = _plan(part_type)
        if plan.missing is not None and _MISSING.match(text):
            return plan.missing.decode(text)
        if plan.element is not None:
            if self._table(plan.element).is_shared:
                return tuple([self._shared(part, plan.element) for part in plan.texts.decode(text)])
            if plan.split is not None:
                return tuple([self._joined(part, plan.split) for part in plan.value.decode(text)])
        elif plan.split is not None:
            return self._joined(plan.value.decode(text), plan.split)
        return plan.value.decode(text)


@cache
def _plan(part_type: Any) -> _Plan:
    missing = _decoder(part_type) if _is_fact(part_type) else None
    value_type = part_type.value_type if _is_fact(part_type) else part_type
    element = _element(value_type)
    read_type = value_type if element is None else element
    split = _split(read_type) if _is_struct(read_type) and _split(read_type).parts else None
    if split is not None:
        value_type = split.shallow if element is None else tuple[split.shallow, ...]  # type: ignore[name-defined]
    return _Plan(
        _decoder(value_type), missing, element, split, None if element is None else _decoder(list[Raw])
    )


@cache
def _split(value_type: Any) -> _Split:
    declared = get_type_hints(value_type)
    hints = {name: _without_unset(hint) for name, hint in declared.items()}
    fields = msgspec.structs.fields(value_type)
    parts = {name: hint for name, hint in hints.items() if _is_part(hint, value_type)}
    shallow = msgspec.defstruct(
        f"Shallow{value_type.__name__}",
        [
            (
                field.name,
                *_shallow_field(field, parts.get(field.name), declared[field.name]),
            )
            for field in fields
        ],
        forbid_unknown_fields=value_type.__struct_config__.forbid_unknown_fields,
        kw_only=True,
    )
    found = tuple(
        _Part(number, field.name, parts[field.name], _default(field))
        for number, field in enumerate(fields)
        if field.name in parts
    )
    return _Split(value_type, shallow, _values_of([field.name for field in fields]), found)


def _values_of(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) == 1:
        only = attrgetter(names[0])
        return lambda shallow: (only(shallow),)
    return attrgetter(*names) if names else lambda _: ()


def _default(field: msgspec.structs.FieldInfo) -> Callable[[], Any] | None:
    if field.required:
        return None
    factory: Callable[[], Any] = (
        field.default_factory if field.default_factory is not NODEFAULT else lambda: field.default
    )
    return factory


def _shallow_field(field: msgspec.structs.FieldInfo, part: Any, hint: Any) -> tuple[Any, Any]:
    """Return type and default of a field in the shallow twin; `part` is its type if it is one."""
    if part is not None and not _holds_nodes(part):
        return Raw, msgspec.field(default=_ABSENT, name=field.encode_name)
    if part is not None:
        element = _element(part)
        shallow: Any = tuple[_split(element).shallow, ...] if element else _split(part).shallow  # type: ignore[misc]
        hint = shallow | UnsetType if UnsetType in get_args(hint) else shallow
    if field.default_factory is not NODEFAULT:
        return hint, msgspec.field(default_factory=field.default_factory, name=field.encode_name)
    return hint, msgspec.field(default=field.default, name=field.encode_name)


def _is_part(part_type: Any, within: Any) -> bool:
    """Return whether a field is read on its own: the way to the facts of a node, and what is large in them."""
    if within is NodeFacts or _holds_nodes(within):
        return within is NodeFacts or _holds_nodes(part_type)
    value_type = part_type.value_type if _is_fact(part_type) else part_type
    return get_origin(value_type) is dict or _is_struct(value_type) or _element(value_type) is not None


@cache
def _holds_nodes(value_type: Any) -> bool:
    """Return whether the facts of nodes are in a value of this type, or are the value."""
    if _element(value_type) is not None:
        return _holds_nodes(_element(value_type))
    if value_type is NodeFacts or not _is_struct(value_type):
        return value_type is NodeFacts
    return any(_holds_nodes(_without_unset(hint)) for hint in get_type_hints(value_type).values())


@cache
def _element(value_type: Any) -> Any:
    """Return the Struct type of which this type is a tuple; else None."""
    is_tuple = get_origin(value_type) is tuple and get_args(value_type)[1:] == (...,)
    return get_args(value_type)[0] if is_tuple and _is_struct(get_args(value_type)[0]) else None


@cache
def _is_struct(value_type: Any) -> bool:
    return isinstance(value_type, type) and issubclass(value_type, Struct)


@cache
def _is_fact(value_type: Any) -> bool:
    return isinstance(value_type, type) and issubclass(value_type, Fact)


@cache
def _without_unset(hint: Any) -> Any:
    kinds = [kind for kind in get_args(hint) if kind is not UnsetType]
    return kinds[0] if UnsetType in get_args(hint) and len(kinds) == 1 else hint


@cache
def _decoder(value_type: Any) -> Any:
    return msgspec.json.Decoder(value_type, dec_hook=decode_hook)
