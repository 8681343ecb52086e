"""`Fact[T] = T | Missing`: a value that was read, or the reason why it could not be."""

from __future__ import annotations

from types import UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

from msgspec import Struct

Why: TypeAlias = Literal["absent", "denied", "timeout", "unsupported", "error"]


class Missing(Struct, frozen=True, forbid_unknown_fields=True):
    """What could not be read and why: never a default, never a pass."""

    missing: Why
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.missing}: {self.detail}" if self.detail else self.missing

    @property
    def is_untried(self) -> bool:
        """Whether nobody tried to read it, so that it may well be there."""
        return self in _UNTRIED


# What nobody tried to read. The JSON has no kind of its own for it, so that these values are it, and no others.
NOT_READ = Missing("absent", "not read in this run")
NOT_TOLD = Missing("absent", "not read")
NOT_IN_A_TREE = Missing("absent", "a recorded tree does not tell")
NOT_ASKED = Missing("absent", "not asked")
LIBRARY_NOT_ASKED = Missing("absent", "the library was not asked")
LOADER_NOT_ASKED = Missing("absent", "not asked of the loader")
_UNTRIED = frozenset({NOT_READ, NOT_TOLD, NOT_IN_A_TREE, NOT_ASKED, LIBRARY_NOT_ASKED, LOADER_NOT_ASKED})


T = TypeVar("T")

if TYPE_CHECKING:
    Fact: TypeAlias = T | Missing
else:

    def _is_plain(value_type: Any) -> bool:
        """Return whether no value of this type looks like a Missing in JSON: no object."""
        if get_origin(value_type) in (UnionType, Union):
            return all(_is_plain(member) for member in get_args(value_type))
        if get_origin(value_type) is tuple:
            return all(member is ... or _is_plain(member) for member in get_args(value_type))
        return value_type in (str, int, float, bool, type(None), None)

    class _FactType(type):
        """Accepts any runtime value: the value of a `Fact[T]` is a plain T or a Missing, never a wrapper."""

        def __instancecheck__(cls, instance: object) -> bool:
            return True

    class Fact(metaclass=_FactType):
        """At run time `Fact[T]` is a marker class that tells `model.codec` which T to decode.

        msgspec refuses a union of two Structs without a tag, and the contract puts `{"missing": ...}` in the
        place of the value, so the union is made by the codec's hooks. Of plain values and lists of them msgspec makes
        the union itself, in a tenth of the time: `Fact[int]` is `int | Missing`.
        """

        value_type: ClassVar[Any] = None
        _made: ClassVar[dict[Any, type]] = {}

        def __class_getitem__(cls, value_type: Any) -> Any:
            if _is_plain(value_type):
                return value_type | Missing
            if value_type not in cls._made:
                cls._made[value_type] = _FactType(f"Fact[{value_type}]", (cls,), {"value_type": value_type})
            return cls._made[value_type]
