"""Reads a pickle without running any of it: every class in it becomes an inert record of its arguments and state.

A checkpoint's metadata is a pickle, and a pickle may name any function to be called. Here none is ever looked up: what
would be called is a record that only keeps what it was given.
"""

from __future__ import annotations

import io
import pickle  # noqa: TID251 (to read one without running it: nothing that it names is looked up)
from typing import Any

from ncclcheck.model.errors import DecodeError


class Inert:
    """Stands for an object of any class; keeps what the pickle says of it and does nothing."""

    def __new__(cls, *arguments: Any, **_named: Any) -> Inert:
        """Return a record of the arguments, for a call as for a construction."""
        made = super().__new__(cls)
        made.arguments = arguments
        made.state = None
        made.items = {}
        return made

    arguments: tuple[Any, ...]
    state: Any
    items: dict[Any, Any]

    def __init__(self, *_arguments: Any, **_named: Any) -> None:
        """Do nothing: `__new__` has kept the arguments."""

    def __setstate__(self, state: Any) -> None:
        """Keep the state."""
        self.state = state

    def __setitem__(self, key: Any, value: Any) -> None:
        """Keep an item of a dictionary of a class of its own (OrderedDict)."""
        self.items[key] = value

    def append(self, value: Any) -> None:
        """Keep an item of a list of a class of its own."""
        self.items[len(self.items)] = value

    def field(self, name: str) -> Any:
        """Return a field of the state; None where it has none of that name."""
        return self.state.get(name) if isinstance(self.state, dict) else None


class _Reader(pickle.Unpickler):
    def find_class(self, _module: str, _name: str, /) -> Any:
        return Inert

    def persistent_load(self, _pid: Any, /) -> Any:
        return Inert()

    def get_extension(self, _code: int) -> Any:
        raise pickle.UnpicklingError("an extension code")


def read_inert(data: bytes) -> Any:
    """Return what the pickle holds, with `Inert` in place of every object of a class. Raises DecodeError."""
    try:
        return _Reader(io.BytesIO(data)).load()
    except RecursionError as error:
        raise DecodeError("nested too deeply") from error
    except Exception as error:  # a damaged pickle raises whatever its opcodes meet
        raise DecodeError(f"no pickle: {type(error).__name__}: {error}"[:200]) from error
