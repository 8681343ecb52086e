"""Read plain containers from a pickle with an own interpreter that builds nothing else and calls nothing.

Python's own reader is not used at all: it imports what a pickle names. Here an opcode that would import, call, build an
object or ask for one (GLOBAL, STACK_GLOBAL, INST, OBJ, NEWOBJ, REDUCE, BUILD, EXT, PERSID and every unknown one) ends
the reading with an error, and nothing has happened by then.

Source of the opcodes: CPython Lib/pickle.py and Lib/pickletools.py, protocols 0 to 5; torch's writer of flight recorder
dumps (torch/csrc/jit/serialization/pickler.cpp, protocol 2).
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from ncclcheck.model.errors import DecodeError

HIGHEST_PROTOCOL = 5
MOST_OPERATIONS = 4_000_000  # a dump takes some 100 an entry, with its stack trace, and has 2,000 entries
LONGEST_INTEGER_BYTES = 16
LONGEST_NUMBER_TEXT = 40
_MEMO_MOST = 1 << 32
_LOOKS_AT_THE_CLOCK = (1 << 14) - 1  # once in so many steps


def _never() -> bool:
    return False


# What each opcode of a constant or an empty container leaves on the stack.
_MAKE: dict[int, Callable[[], object]] = {
    ord("N"): lambda: None,
    0x88: lambda: True,
    0x89: lambda: False,
    ord("}"): dict,
    ord("]"): list,
    ord(")"): tuple,
}
# Little-endian numbers of a fixed size: opcode -> format.
_NUMBERS = {ord("M"): "<H", ord("J"): "<i", ord("G"): ">d"}
# Texts and bytes behind their length: opcode -> format of the length.
_TEXTS = {0x8C: "<B", ord("X"): "<I", 0x8D: "<Q"}
_BYTES = {ord("U"): "<B", ord("T"): "<i", ord("C"): "<B", ord("B"): "<I", 0x8E: "<Q"}
_TUPLES = {0x85: 1, 0x86: 2, 0x87: 3}
_PUT = {ord("r"): "<I"}
_GET = {ord("j"): "<I"}
_BINGET, _BINPUT, _BININT1 = ord("h"), ord("q"), ord("K")
_STOP, _MARK, _PROTO, _FRAME, _MEMOIZE = ord("."), ord("("), 0x80, 0x95, 0x94


def read_pickle(data: bytes, *, most_operations: int = MOST_OPERATIONS) -> object:
    """Return what the pickle holds: None, bool, int, float, str, bytes, list, tuple, dict. Else raise DecodeError.

    Containers may be shared, and hold themselves: a caller that walks them bounds its steps.
    """
    return reading(PickleReader(data), most_operations)


def reading(reader: PickleReader, most_operations: int, is_late: Callable[[], bool] = _never) -> object:
    """Return what the reader reads before `is_late`, whatever is wrong with it as DecodeError."""
    try:
        return reader.read(most_operations, is_late)
    except (IndexError, struct.error, UnicodeDecodeError, OverflowError, ValueError, TypeError) as error:
        raise DecodeError(f"a damaged pickle: {error}") from error


class PickleTooLong(DecodeError):  # noqa: N818 (it says nothing against the pickle)
    """It is longer than may be read, and not damaged as far as it was."""


class _Mark:
    """The mark on the stack; nothing that is read can be one."""


_A_MARK = _Mark()


class PickleReader:
    """The stack machine of pickle, without its objects."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._stack: list[object] = []
        self._memo: dict[int, object] = {}

    def read(self, most_operations: int, is_late: Callable[[], bool] = _never) -> object:
        """Return what the pickle holds."""
        data, stack, quick = self._data, self._stack, self._quick
        for done in range(most_operations):
            if not done & _LOOKS_AT_THE_CLOCK and is_late():
                raise PickleTooLong("a pickle that takes longer than there is time for it")
            opcode = data[self._at]
            self._at += 1
            make = _MAKE.get(opcode)
            if make is not None:
                stack.append(make())
            elif quick(opcode):
                continue
            elif opcode == _STOP:
                (value,) = stack
                if isinstance(value, _Mark):
                    raise DecodeError("a damaged pickle: it ends with a mark")
                return value
            elif not (self._constant(opcode) or self._container(opcode) or self._memory(opcode)):
                raise DecodeError(
                    f"a pickle with an object in it (opcode 0x{opcode:02x} at byte {self._at - 1}): it is not read"
                )
        raise PickleTooLong(f"a pickle of more than {most_operations} steps")

    def _quick(self, opcode: int) -> bool:
        """Return True if the opcode was one of the four that make up most of a dump."""
        at = self._at
        if opcode == _BINGET:
            self._stack.append(self._remembered(self._data[at]))
            self._at = at + 1
        elif opcode == _BINPUT:
            self._memo[self._data[at]] = self._top()
            self._at = at + 1
        elif opcode == _BININT1:
            self._stack.append(self._data[at])
            self._at = at + 1
        elif opcode == _MARK:
            self._stack.append(_A_MARK)
        else:
            return False
        return True

    def _constant(self, opcode: int) -> bool:
        """Return True if the opcode pushes a constant."""
        if opcode in _NUMBERS:
            self._stack.append(self._unpack(_NUMBERS[opcode]))
        elif opcode in _TEXTS:
            self._stack.append(self._take(self._length(_TEXTS[opcode])).decode("utf-8", "replace"))
        elif opcode in _BYTES:
            self._stack.append(self._take(self._length(_BYTES[opcode])))
        elif opcode in (0x8A, 0x8B):
            self._stack.append(self._long("<B" if opcode == 0x8A else "<i"))  # noqa: PLR2004
        elif opcode in (ord("I"), ord("L"), ord("F"), ord("V")):
            self._stack.append(_from_text(opcode, self._line()))
        else:
            return False
        return True

    def _container(self, opcode: int) -> bool:
        """Return True if the opcode fills or makes a container."""
        if opcode in _TUPLES:
            self._stack.append(tuple(self._pop(_TUPLES[opcode])))
        elif opcode == ord("t"):
            self._stack.append(tuple(self._to_mark()))
        elif opcode == ord("l"):
            self._stack.append(list(self._to_mark()))
        elif opcode == ord("d"):
            self._stack.append({})
            self._fill(self._to_mark(below=1))
        elif opcode in (ord("a"), ord("e")):
            self._extend(self._pop(1) if opcode == ord("a") else self._to_mark())
        elif opcode in (ord("s"), ord("u")):
            self._fill(self._pop(2) if opcode == ord("s") else self._to_mark())
        else:
            return False
        return True

    def _memory(self, opcode: int) -> bool:
        """Return True if the opcode moves values between stack and memo, or says how the pickle is written."""
        if opcode in _PUT:
            self._memo[int(self._unpack(_PUT[opcode]))] = self._top()
        elif opcode in _GET:
            self._stack.append(self._remembered(int(self._unpack(_GET[opcode]))))
        elif opcode == ord("p"):
            self._memo[_index(self._line())] = self._top()
        elif opcode == ord("g"):
            self._stack.append(self._remembered(_index(self._line())))
        elif opcode == _MEMOIZE:
            self._memo[len(self._memo)] = self._top()
        elif opcode == _PROTO:
            if self._unpack("<B") > HIGHEST_PROTOCOL:
                raise DecodeError("a pickle of an unknown protocol")
        elif opcode == _FRAME:
            self._unpack("<Q")
        elif opcode in (ord("0"), ord("1"), ord("2")):
            self._drop(opcode)
        else:
            return False
        return True

    def _drop(self, opcode: int) -> None:
        if opcode == ord("2"):
            self._stack.append(self._top())
        elif opcode == ord("1"):
            self._to_mark()
        else:
            self._pop(1)

    def _unpack(self, form: str) -> int | float:
        number: int | float = struct.unpack(form, self._take(struct.calcsize(form)))[0]
        return number

    def _length(self, form: str) -> int:
        length = int(self._unpack(form))
        if not 0 <= length <= len(self._data) - self._at:
            raise DecodeError(f"a damaged pickle: {length} bytes are said to follow")
        return length

    def _take(self, length: int) -> bytes:
        taken = self._data[self._at : self._at + length]
        self._at += length
        return taken

    def _line(self) -> bytes:
        end = self._data.find(b"\n", self._at)
        if end < 0:
            raise DecodeError("a damaged pickle: a line has no end")
        line = self._data[self._at : end]
        self._at = end + 1
        return line

    def _long(self, form: str) -> int:
        length = self._length(form)
        if length > LONGEST_INTEGER_BYTES:
            raise DecodeError(f"a pickle with a number of {length} bytes")
        return int.from_bytes(self._take(length), "little", signed=True)

    def _top(self) -> object:
        if isinstance(self._stack[-1], _Mark):
            raise DecodeError("a damaged pickle: a mark is used as a value")
        return self._stack[-1]

    def _pop(self, count: int) -> list[object]:
        values = self._stack[-count:]
        if len(values) < count or any(isinstance(value, _Mark) for value in values):
            raise DecodeError("a damaged pickle: values are missing")
        del self._stack[-count:]
        return values

    def _to_mark(self, below: int = 0) -> list[object]:
        """Return the values above the last mark, which goes with them; `below`: as many values already lie on top."""
        on_top = [self._stack.pop() for _ in range(below)]
        values: list[object] = []
        while not isinstance(value := self._stack.pop(), _Mark):
            values.append(value)
        values.reverse()
        self._stack.extend(reversed(on_top))
        return values

    def _extend(self, values: list[object]) -> None:
        target = self._stack[-1]
        if not isinstance(target, list):
            raise DecodeError("a damaged pickle: it appends to what is no list")
        target.extend(values)

    def _fill(self, values: list[object]) -> None:
        target = self._stack[-1]
        if not isinstance(target, dict) or len(values) % 2:
            raise DecodeError("a damaged pickle: it sets items of what is no dict")
        for key, value in zip(values[::2], values[1::2], strict=True):
            # Only texts: their hashes are salted, so that no file can make a dict slow.
            if not isinstance(key, str):
                raise DecodeError(f"a pickle with keys that are no texts ({type(key).__name__})")
            target[key] = value

    def _remembered(self, index: int) -> object:
        if index not in self._memo:
            raise DecodeError(f"a damaged pickle: nothing is remembered as {index}")
        return self._memo[index]


def _index(line: bytes) -> int:
    number = int(line[:LONGEST_NUMBER_TEXT])
    if not 0 <= number < _MEMO_MOST:
        raise DecodeError("a damaged pickle: an impossible index")
    return number


def _from_text(opcode: int, line: bytes) -> object:
    """Return a value of protocol 0, written in letters."""
    if opcode == ord("V"):
        return line.decode("raw_unicode_escape", "replace")
    if len(line) > LONGEST_NUMBER_TEXT:
        raise DecodeError("a pickle with a number of many digits")
    if opcode == ord("F"):
        return float(line)
    if opcode == ord("I") and line in (b"00", b"01"):
        return line == b"01"
    return int(line.removesuffix(b"L"))
