"""What NCCL and torch make of a value that they read as a number or a switch."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck.nccl import versions
from ncclcheck.nccl.number import WORDS_REFUSED_SINCE, Parsed, strtoll
from ncclcheck.nccl.variables.variables_types import Variable, default_of

Weight: TypeAlias = Literal["error", "warning", "info"]

_STRICT_SWITCHES_SINCE: versions.Version = (2, 30, 7)  # src/include/param/parser_default.h
_STRICT_SWITCHES = frozenset({"NCCL_SET_THREAD_NAME", "NCCL_WARN_ENABLE_DEBUG_INFO", "NCCL_PARAM_DUMP_ALL"})
# getenv and strtol of their own, which take 0: src/graph/paths.cc (ncclGetLevel), src/init.cc.
_READ_WITH_STRTOL = frozenset({"NCCL_P2P_DISABLE", "NCCL_COLLNET_ENABLE"})
_GID_INDEX_BY_ITSELF_SINCE: versions.Version = (2, 21, 0)
_ON = frozenset({"1", "true", "yes", "on", "y", "t", "enable", "enabled"})
_OFF = frozenset({"0", "false", "no", "off", "n", "f", "disable", "disabled"})
_LOOKALIKES = {**dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2212"), "-")} | dict.fromkeys(
    map(ord, "\u201c\u201d\u2018\u2019\u200b\ufeff"), ""
)
_TORCH_SWITCH = frozenset({"y", "yes", "1", "t", "true", "n", "no", "0", "f", "false"})
_THREADS_IN_A_WARP = 32
_OCTAL = 8
_DIGITS_THAT_FIT = 18
_STOI = re.compile(r"[ \t\n\v\f\r]*([+-]?\d+)")
_INT_LIMIT = 2**31

# What becomes of a number outside lowest .. highest.
_OUTSIDE = {
    "NCCL_SOCKET_NTHREADS": "NCCL takes 16",
    "NCCL_NTHREADS": "NCCL takes the nearest limit",
    "NCCL_LL128_NTHREADS": "NCCL takes the nearest limit",
    "NCCL_CGA_CLUSTER_SIZE": "NCCL takes 8",
    "NCCL_MIN_CTAS": "NCCL ignores it",
    "NCCL_MAX_CTAS": "NCCL ignores it",
    "NCCL_P2P_MAX_PEERS": "NCCL ignores it",
    "NCCL_SHM_LOCALITY": "NCCL ignores it",
    "NCCL_IB_TIMEOUT": "the field has five bits, so the connection fails or gets a different timeout",
    "NCCL_IB_RETRY_CNT": "the field has three bits, so the connection fails or gets a different count",
    "NCCL_IB_SUBNET_PREFIX_LEN": "NCCL rejects it",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": "torch does not know this mode and does not handle errors",
    "NCCL_ASYNC_ERROR_HANDLING": "torch does not know this mode and does not handle errors",
}


class Misreading(Struct, frozen=True):
    """A value that is taken for something else than it says: what happens, and the value that says it right.

    `better` is None where the variable is best unset.
    """

    weight: Weight
    what: str
    better: str | None = None


def misread_number(variable: Variable, value: str, version: str) -> Misreading | None:
    """Return how NCCL `version` misreads the value of a switch or number; None where it reads what is written.

    NCCL src/misc/param.cc (ncclLoadParam): strtoll with base 0, what follows the digits is ignored;
    from 2.32 a value without digits is refused.
    """
    if not value:
        return None
    if variable.name in _STRICT_SWITCHES and versions.parse(version) >= _STRICT_SWITCHES_SINCE:
        return _strict_switch(value)
    parsed = strtoll(value)
    if not parsed.is_number:
        return _word_as_number(variable, value, version)
    if parsed.value is None:
        default = default_of(variable, version) or "its default"
        return Misreading("warning", f"does not fit into 64 bits, so NCCL takes {default}")
    if parsed.base == _OCTAL and parsed.rest[:1] in {"8", "9"}:
        return _read_as(variable, value, parsed.value, "the leading 0 makes it octal")
    if parsed.base == _OCTAL and _decimal(value) not in {None, parsed.value}:
        return _read_as(variable, value, parsed.value, "the leading 0 makes it octal")
    return (
        _rest(parsed) or _only_one_counts(variable, parsed.value) or _outside(variable, parsed.value, version)
    )


def misread_by_torch(variable: Variable, value: str) -> Misreading | None:
    """Return why torch rejects the value of a switch or number (it raises, and creates no process group); else None.

    torch/csrc/distributed/c10d/Utils.hpp (getCvarBool, getCvarInt).
    """
    if variable.kind == "switch":
        if value.lower() in _TORCH_SWITCH:
            return None
        better = "1" if value.strip().strip("\"'").lower() in _ON else "0"
        return Misreading(
            "error",
            "is not a value that torch accepts (1, 0, true, false): init_process_group raises",
            better,
        )
    match = _STOI.match(value)
    if match is None or not -_INT_LIMIT <= int(match[1][:20]) < _INT_LIMIT:
        return Misreading("error", "is not a number that torch can read: init_process_group raises")
    if value[match.end() :].strip():
        return Misreading("warning", f"is read as {int(match[1])}, the rest is ignored", str(int(match[1])))
    return _outside(variable, int(match[1]), versions.NEWEST)


def _strict_switch(value: str) -> Misreading | None:
    if value.upper() in {"1", "T", "TRUE", "0", "F", "FALSE"}:
        return None
    word = value.strip().lower()
    parsed = strtoll(value)
    if word in _OFF or (parsed.is_number and parsed.value == 0):
        return None
    return Misreading("warning", "is none of 1, T, TRUE, 0, F, FALSE, so NCCL takes 0", "1")


def _word_as_number(variable: Variable, value: str, version: str) -> Misreading:
    """Without a digit in front the value is 0 up to 2.31; from 2.32 NCCL takes the default."""
    default = default_of(variable, version)
    is_refused = versions.parse(version) >= WORDS_REFUSED_SINCE and variable.name not in _READ_WITH_STRTOL
    stays_off = not is_refused or default in {"0", ""}
    effect = (
        f"so NCCL takes its default{f', {default}' if default else ''}"
        if is_refused
        else "so it is read as 0"
    )
    word = value.strip().strip("\"'").strip()
    plain = _in_ascii(word)
    inner = strtoll(plain)
    if plain != value.strip() and inner.is_number:
        weight: Weight = "error" if stays_off == bool(inner.value) else "info"
        odd = "the quotes are part of it" if word != value.strip() else "its digits or signs are not ASCII"
        return Misreading(weight, f"is not a number, since {odd}, {effect}", plain)
    if variable.kind != "switch":
        return Misreading("warning", f"is not a number, {effect}")
    if word.lower() in _ON | _OFF:
        is_met = stays_off == (word.lower() in _OFF)
        better = "0" if word.lower() in _OFF else "1"
        end = "which is what it says" if is_met else "the opposite of what it says"
        return Misreading("info" if is_met else "error", f"is not a number, {effect}, {end}", better)
    weight = "warning" if is_refused or default in {"0", ""} else "error"
    return Misreading(weight, f"is not a number, {effect}{'' if is_refused else ', which turns it off'}")


def _in_ascii(text: str) -> str:
    """Return the text with typographic digits, dashes and quotes replaced by ASCII."""
    return unicodedata.normalize("NFKC", text).translate(_LOOKALIKES).strip()


def _read_as(variable: Variable, value: str, number: int, why: str) -> Misreading:
    decimal = _decimal(value)
    is_inverted = variable.kind == "switch" and bool(decimal) != bool(number)
    return Misreading("error" if is_inverted else "warning", f"is read as {number}: {why}", str(decimal))


def _decimal(value: str) -> int | None:
    """Return the number as a person reads it; None for anything but plain digits."""
    text = value.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS_THAT_FIT else None


def _rest(parsed: Parsed) -> Misreading | None:
    rest = parsed.rest.strip()
    if not rest:
        return None
    if rest.startswith(("#", "//", ";")):
        return Misreading("info", f"is read as {parsed.value}; the rest is ignored", str(parsed.value))
    return Misreading("warning", f"is read as {parsed.value}: NCCL stops at {rest[:20]!r}")


def _only_one_counts(variable: Variable, number: int) -> Misreading | None:
    """NCCL_P2P_DISABLE is compared with 1 (src/graph/paths.cc, ncclGetLevel)."""
    if variable.name == "NCCL_P2P_DISABLE" and number not in {0, 1}:
        return Misreading("error", "has no effect: only exactly 1 disables", "1")
    return None


def _outside(variable: Variable, number: int, version: str) -> Misreading | None:
    if variable.name == "NCCL_IB_GID_INDEX" and number == -1:
        if versions.parse(version) < _GID_INDEX_BY_ITSELF_SINCE:
            return Misreading("error", "asks for GID -1, which is valid only from NCCL 2.21 on")
        return None
    low, high = variable.lowest, variable.highest
    if (low is not None and number < low) or (high is not None and number > high):
        bounds = f"from {low} to {high}" if low is not None and high is not None else _one_bound(low, high)
        consequence = _OUTSIDE.get(variable.name, "it has no effect as written")
        return Misreading("warning", f"is not {bounds}: {consequence}")
    if variable.name in {"NCCL_NTHREADS", "NCCL_LL128_NTHREADS"} and number % _THREADS_IN_A_WARP:
        return Misreading("warning", f"is not a multiple of 32, so NCCL takes {high}")
    return None


def _one_bound(low: int | None, high: int | None) -> str:
    return f"{low} or more" if low is not None else f"{high} or less"
