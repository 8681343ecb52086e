"""Which environment variables a message from another process may set, and to which values.

Whoever reaches the master port can write a message. So an order or a report may only name settings that steer NCCL,
torch and Gloo with a number, a word or a list of interfaces. Nothing that is loaded, executed, opened, written or
called may be set by it: no plug-in, library, path, file, pipe, dump or address, and no variable of the loader, Python
or the shell.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from ncclcheck.nccl.variables.variables import TABLE
from ncclcheck.nccl.variables.variables_types import Kind, Variable

_OWNERS = frozenset({"NCCL", "torch", "Gloo"})
# Parts of names that read, write, load, execute or call something, though their value is only a number or a switch.
_UNSAFE_PARTS = frozenset(
    "PLUGIN FILE PATH PIPE DUMP LIB CONF JIT EXEC PROFILER PROFILE DIAGNOSTICS SIGNAL TRACE FR RAS".split()  # noqa: SIM905
)
_MOST_CHARACTERS = 1024
_MOST_SHOWN = 60
_NUMBER = re.compile(r"-?(0[xX][0-9a-fA-F]{1,16}|[0-9]{1,19})", re.ASCII)
_SWITCH_WORDS = frozenset("y yes 1 t true n no 0 f false".split())  # noqa: SIM905 (torch's getCvarBool)
_WORDS = re.compile(r"\^?[A-Za-z0-9_^,:;]*", re.ASCII)
_INTERFACES = re.compile(r"\^?=?[A-Za-z0-9_.:@+-]{1,64}(,[A-Za-z0-9_.:@+-]{1,64})*", re.ASCII)
_NETWORK = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)
# Never made by a message, but it may take them away: what calls an address, and what is not NCCL's, torch's or Gloo's.
_ONLY_UNSET = frozenset({"NCCL_COMM_ID", "CUDA_LAUNCH_BLOCKING"})


def _is_number(_: Variable, value: str) -> bool:
    return _NUMBER.fullmatch(value) is not None


def _is_switch(variable: Variable, value: str) -> bool:
    return _is_number(variable, value) or value.lower() in _SWITCH_WORDS


def _is_word(variable: Variable, value: str) -> bool:
    words = {word.partition(">=")[0].upper() for word in variable.values.split()}
    return value.upper() in words or (variable.kind == "level" and _is_number(variable, value))


def _is_range(_: Variable, value: str) -> bool:
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        return False
    return "%" not in value


def _are_words(_: Variable, value: str) -> bool:
    return _WORDS.fullmatch(value) is not None


def _are_interfaces(_: Variable, value: str) -> bool:
    return _INTERFACES.fullmatch(value) is not None


_FITS: Mapping[Kind, Callable[[Variable, str], bool]] = MappingProxyType(
    {
        "switch": _is_switch,
        "number": _is_number,
        "word": _is_word,
        "level": _is_word,
        "words": _are_words,
        "interfaces": _are_interfaces,
        "names": _are_interfaces,
        "range": _is_range,
    }
)


def _is_safe(variable: Variable) -> bool:
    parts = frozenset(variable.name.split("_"))
    return variable.owner in _OWNERS and variable.kind in _FITS and not parts & _UNSAFE_PARTS


SETTABLE: frozenset[str] = frozenset(
    {variable.name for variable in TABLE.values() if _is_safe(variable)} | {"NCCL_NET"}
)


def refusal(name: str, value: str | None) -> str | None:
    """Return why a message may not set `name` to `value` (None: unset it), or None where it may.

    An empty value is what takes a setting of a config file away.
    """
    if name not in SETTABLE and not (value is None and name in _ONLY_UNSET):
        return f"{shown(name)} is no setting that a message may make"
    if not value:
        return None
    if len(value) > _MOST_CHARACTERS:
        return f"the value of {name} has {len(value)} characters, {_MOST_CHARACTERS} are accepted"
    variable = TABLE[name]
    fits = (
        _NETWORK.fullmatch(value) is not None if name == "NCCL_NET" else _FITS[variable.kind](variable, value)
    )
    return None if fits else f"{name}={shown(value)} does not fit the type of {name}"


def first_refusal(environment: Mapping[str, str | None]) -> str | None:
    """Return the first reason why a message may not make these settings, or None where it may make all of them."""
    reasons = (refusal(name, value) for name, value in environment.items())
    return next((reason for reason in reasons if reason is not None), None)


def shown(text: str) -> str:
    """Return the text of a message or a file in quotes: short, and without terminal control characters."""
    return ascii(text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}...")
