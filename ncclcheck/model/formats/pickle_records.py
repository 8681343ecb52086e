"""Read a pickle with objects in it: each becomes a record of its arguments, state and items, and nothing is called.

What a pickle names is not even looked up: the name is dropped. A record only keeps what the pickle says of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ncclcheck.model.errors import DecodeError
from ncclcheck.model.formats.pickles import PickleReader, reading

MOST_OPERATIONS = 3_000_000  # some seconds; a checkpoint of 100,000 shards has about as many


class Record:
    """Stands for an object of any class."""

    def __init__(self, arguments: object = ()) -> None:
        """Keep the arguments of the call or construction."""
        self.arguments = arguments
        self.state: object = None
        self.items: dict[Any, object] = {}

    def field(self, name: str) -> object:
        """Return a field of the state; None where it has none of that name."""
        return self.state.get(name) if isinstance(self.state, dict) else None


def read_records(
    data: bytes, *, most_operations: int = MOST_OPERATIONS, is_late: Callable[[], bool] = lambda: False
) -> object:
    """Return what the pickle holds, with records for objects and lists for sets.

    Raises DecodeError; PickleTooLong also where `is_late` before it is read.
    """
    return reading(_Reader(data), most_operations, is_late)


class _Reader(PickleReader):
    """The stack machine with records. Opcodes: CPython Lib/pickletools.py."""

    def _constant(self, opcode: int) -> bool:
        return super()._constant(opcode) or self._named(opcode) or self._object(opcode) or self._set(opcode)

    def _named(self, opcode: int) -> bool:
        """Return True if the opcode pushes something by its name."""
        if opcode == ord("c"):  # GLOBAL
            self._line()
            self._line()
        elif opcode == 0x93:  # STACK_GLOBAL  # noqa: PLR2004
            self._pop(2)
        elif opcode == ord("P"):  # PERSID
            self._line()
        elif opcode == ord("Q"):  # BINPERSID
            self._pop(1)
        else:
            return False
        self._stack.append(Record())
        return True

    def _object(self, opcode: int) -> bool:
        """Return True if the opcode makes an object, or gives it its state."""
        if opcode in (ord("R"), 0x81):  # REDUCE, NEWOBJ
            _, arguments = self._pop(2)
            self._stack.append(Record(arguments))
        elif opcode == 0x92:  # NEWOBJ_EX  # noqa: PLR2004
            _, arguments, _ = self._pop(3)
            self._stack.append(Record(arguments))
        elif opcode in (ord("i"), ord("o")):  # INST, OBJ
            if opcode == ord("i"):
                self._line()
                self._line()
            self._stack.append(Record(tuple(self._to_mark())))
        elif opcode == ord("b"):  # BUILD
            (state,) = self._pop(1)
            made = self._top()
            if not isinstance(made, Record):
                raise DecodeError("a damaged pickle: it gives a state to what is no object")
            made.state = state
        else:
            return False
        return True

    def _set(self, opcode: int) -> bool:
        if opcode == 0x8F:  # EMPTY_SET  # noqa: PLR2004
            self._stack.append([])
        elif opcode == 0x90:  # ADDITEMS  # noqa: PLR2004
            self._extend(self._to_mark())
        elif opcode == 0x91:  # FROZENSET  # noqa: PLR2004
            self._stack.append(list(self._to_mark()))
        elif opcode == 0x96:  # BYTEARRAY8  # noqa: PLR2004
            self._stack.append(self._take(self._length("<Q")))
        else:
            return False
        return True

    def _extend(self, values: list[object]) -> None:
        target = self._stack[-1]
        if isinstance(target, Record):
            target.items |= dict(enumerate(values, len(target.items)))
        else:
            super()._extend(values)

    def _fill(self, values: list[object]) -> None:
        target = self._stack[-1]
        items = target.items if isinstance(target, Record) else target
        if not isinstance(items, dict) or len(values) % 2:
            raise DecodeError("a damaged pickle: it sets items of what is no dict")
        # The hash of tuples in tuples can take for ever, and nothing ends it.
        if any(
            isinstance(key, tuple) and any(isinstance(part, tuple) for part in key) for key in values[::2]
        ):
            raise DecodeError("a pickle with keys that are tuples of tuples")
        items |= dict(zip(values[::2], values[1::2], strict=True))
