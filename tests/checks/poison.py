"""Which facts a check reads on a healthy cluster, found by putting a value in their place that nobody can use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn, TypeAlias, get_args, get_type_hints

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.model.fact import Fact, Missing

Step: TypeAlias = str | int
Path: TypeAlias = tuple[Step, ...]


class PoisonedError(Exception):
    """A poisoned value was used."""


def _refuse(*_: object, **__: object) -> NoReturn:
    raise PoisonedError


_USES = (
    "eq", "ne", "lt", "le", "gt", "ge", "hash", "bool", "len", "iter", "next", "contains", "getitem", "str", "repr",
    "format", "int", "float", "index", "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv",
    "mod", "rmod", "divmod", "round", "and", "rand", "or", "ror", "neg", "call", "getattr",
)  # fmt: skip
# It is no Missing, and that is all that can be found out about it: everything else raises.
Poison: Any = type("Poison", (), {f"__{use}__": _refuse for use in _USES})


def fact_paths(value: object, before: Path = ()) -> Iterator[Path]:
    """Where a struct holds a Fact that is known, itself and in what it contains: of a list, in its last element."""
    if isinstance(value, tuple):
        if value:
            yield from fact_paths(value[-1], (*before, len(value) - 1))
        return
    if not isinstance(value, Struct):
        return
    for name, hint in get_type_hints(type(value)).items():
        fact = getattr(value, name)
        if isinstance(fact, Missing):
            continue
        if Missing in get_args(hint) or (isinstance(hint, type) and issubclass(hint, Fact)):
            yield (*before, name)
        yield from fact_paths(fact, (*before, name))


def put(value: Any, path: Path, new: object) -> Any:
    """The value in which something else stands at `path`."""
    if not path:
        return new
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        return (*value[:step], put(value[step], rest, new), *value[step + 1 :])
    return replace(value, **{step: put(getattr(value, step), rest, new)})
