"""A key for caches of what was worked out of facts: equal only to a key of the very same object."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class SameObject(Generic[T]):
    """An object by its identity. The key keeps it, so no other object gets its id."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, opposite: object) -> bool:
        return isinstance(opposite, SameObject) and self.value is opposite.value
