"""What is made of the value of a variable, where that is something else than it says."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping

from ncclcheck.nccl import ifname, versions
from ncclcheck.nccl.subnet import Unreadable, parse_comm_id
from ncclcheck.nccl.variables.variables_numbers import Misreading, Weight, misread_by_torch, misread_number
from ncclcheck.nccl.variables.variables_types import Variable, values_of

_TRIMMED_SINCE: versions.Version = (2, 30, 7)  # src/include/param/parser_enum.h, parser_bitset.h
_UNKNOWN_TOKEN_FATAL_SINCE: versions.Version = (2, 24, 0)  # src/graph/tuning.cc, parseList
_POLICY_WORDS_SINCE: versions.Version = (2, 29, 2)  # src/init.cc, getEnvCtaPolicyOnce
_FUNCTIONS = frozenset({"broadcast", "reduce", "allgather", "reducescatter", "allreduce"})
_NO_NETWORKS = frozenset(
    "tcp ethernet eth roce rdma infiniband ibverbs sockets verbs true 1 0 none efa".split()  # noqa: SIM905
)
_SILENCE = frozenset(
    {"", "0", "OFF", "NONE", "NO", "FALSE"}
)  # NCCL knows no such level, and prints nothing, as wished
# What no interface or RDMA device has in its name, and people write: other separators, wildcards, shell variables.
_FOREIGN = re.compile(r"[\s;|*?!$\[\]{}()\\\u2010-\u2015\u2212\u2018-\u201d]")
_MAX_ENTRIES = ifname.MAX_ENTRIES


def misread(
    variable: Variable, value: str, version: str, environment: Mapping[str, str] | None = None
) -> Misreading | None:
    """Return how the owner's `version` misreads `value`; None if it reads what is written.

    `environment` is what else is set, where a value is read together with another.
    """
    if variable.kind in {"switch", "number"}:
        if variable.owner in {"torch", "torchrun"}:
            return misread_by_torch(variable, value) if variable.owner == "torch" else None
        return misread_number(variable, value, version)
    reader = _BY_NAME.get(variable.name)
    if reader is not None:
        return reader(variable, value, version)
    if variable.kind == "range":
        return _address_range(value, (environment or {}).get("NCCL_IB_ADDR_FAMILY", ""))
    by_kind = _BY_KIND.get(variable.kind)
    return by_kind(variable, value, version) if by_kind is not None and value else None


# --- words -----------------------------------------------------------------------------------------------------


def _word(variable: Variable, value: str, version: str) -> Misreading | None:
    words = values_of(variable, version)
    if _matches(variable, value, words):
        return None
    effect = _UNKNOWN_WORD.get(variable.name, "NCCL does not know it and ignores it")
    weight: Weight = "error" if variable.owner == "torch" or _asks_for_ipv6(variable, value) else "warning"
    return Misreading(
        weight, f"is none of {', '.join(words)}{_case(variable, value)}: {effect}", _nearest(value, words)
    )


_UNKNOWN_WORD = {
    "NCCL_DEBUG": "NCCL then prints nothing, not even warnings",
    "NCCL_SOCKET_FAMILY": "NCCL takes any family, IPv4 first",
    "NCCL_IB_ADDR_FAMILY": "NCCL takes AF_INET",
    "NCCL_LAUNCH_MODE": "NCCL takes PARALLEL",
    "NCCL_CHECK_MODE": "NCCL checks nothing",
    "NCCL_NET_MERGE_POLICY": "NCCL takes ALL",
    "TORCH_DISTRIBUTED_DEBUG": "init_process_group raises",
}


def _matches(variable: Variable, value: str, words: tuple[str, ...]) -> bool:
    if variable.any_case:
        return value.upper() in {word.upper() for word in words}
    return value in words


def _case(variable: Variable, value: str) -> str:
    words = {word.upper() for word in variable.values.split()}
    if value.strip() != value and value.strip() in variable.values.split():
        return " (without blanks or line ends)"
    return " (in capitals)" if not variable.any_case and value.strip().upper() in words else ""


def _asks_for_ipv6(variable: Variable, value: str) -> bool:
    return variable.name in {"NCCL_SOCKET_FAMILY", "NCCL_IB_ADDR_FAMILY"} and "6" in value


def _nearest(value: str, words: tuple[str, ...]) -> str | None:
    """Return the word that was clearly meant, if there is one."""
    text = value.strip().strip("\"'").upper()
    if text in {word.upper() for word in words}:
        return next(word for word in words if word.upper() == text)
    meant = {
        "IPV4": "AF_INET",
        "INET": "AF_INET",
        "4": "AF_INET",
        "IPV6": "AF_INET6",
        "INET6": "AF_INET6",
        "6": "AF_INET6",
    }
    levels = {"DEBUG": "INFO", "VERBOSE": "INFO", **dict.fromkeys(("WARNING", "ERROR", "FATAL"), "WARN")}
    levels |= dict.fromkeys(("1", "2", "TRUE", "YES", "ON", "ALL"), "INFO")
    candidate = meant.get(text) or levels.get(text)
    return candidate if candidate in words else None


def _debug(variable: Variable, value: str, version: str) -> Misreading | None:
    trims = versions.parse(version) >= _TRIMMED_SINCE
    if value.strip().upper() in _SILENCE:
        return None
    return _word(variable, value.strip() if trims else value, version)


def _level(variable: Variable, value: str, version: str) -> Misreading | None:
    """Return the misreading of a level: a name in capitals, or a number of the old scale (graph/paths.cc)."""
    words = values_of(variable, version)
    if value in words or value[:1].isdigit():
        return None
    if value.strip().upper() in words:
        what = (
            f"does not have the spelling that NCCL knows ({value.strip().upper()}, in capitals, "
            "no blanks), so NCCL ignores it"
        )
        return Misreading("warning", what, value.strip().upper())
    return Misreading("warning", f"is none of {', '.join(words)}, so NCCL ignores it")


# --- lists of words -----------------------------------------------------------------------------------------------


def _log_words(variable: Variable, value: str, version: str) -> Misreading | None:
    """NCCL_DEBUG_SUBSYS and the like: before 2.30.7 unknown words are skipped, since then they void the whole value."""
    words = {word.upper() for word in values_of(variable, version)}
    is_strict = versions.parse(version) >= _TRIMMED_SINCE
    tokens = [entry.strip() if is_strict else entry for entry in value.removeprefix("^").split(",")]
    unknown = [entry for entry in tokens if entry and entry.upper() not in words]
    if not unknown:
        return None
    shown = ", ".join(repr(entry) for entry in unknown[:3])
    if is_strict:
        return Misreading(
            "warning", f"holds {shown}, which NCCL does not know, so it ignores the whole value"
        )
    if len(unknown) == len([entry for entry in tokens if entry]) and not value.startswith("^"):
        return Misreading(
            "warning", f"has no word that NCCL knows ({shown}): all output is off, warnings too"
        )
    return Misreading(
        "warning", f"holds {shown}, which NCCL does not know and skips", _joined(value, tokens, unknown)
    )


def _joined(value: str, tokens: list[str], unknown: list[str]) -> str:
    known_entries = [entry.strip() for entry in tokens if entry not in unknown or entry.strip() != entry]
    return ("^" if value.startswith("^") else "") + ",".join(entry for entry in known_entries if entry)


def _algorithms(variable: Variable, value: str, version: str) -> Misreading | None:
    """NCCL_ALGO and NCCL_PROTO (src/graph/tuning.cc, parseList)."""
    if versions.parse(version) >= _UNKNOWN_TOKEN_FATAL_SINCE:
        return _algorithms_by_function(variable, value, version)
    words = {word.upper() for word in values_of(variable, version)}
    tokens = [entry for entry in value.removeprefix("^").split(",") if entry]
    unknown = [entry for entry in tokens if entry.upper() not in words]
    if not unknown:
        return None
    shown = ", ".join(repr(entry) for entry in unknown[:3])
    if len(unknown) < len(tokens) or value.startswith("^"):
        return Misreading("warning", f"holds {shown}, which NCCL does not know and skips")
    if variable.name == "NCCL_PROTO":
        return Misreading("error", f"has no word that NCCL knows ({shown}), so no protocol is left")
    return Misreading("warning", f"has no word that NCCL knows ({shown}), so it has no effect")


def _algorithms_by_function(variable: Variable, value: str, version: str) -> Misreading | None:
    words = {word.upper() for word in values_of(variable, version)}
    for number, part in enumerate(entry for entry in value.split(";") if entry):
        pieces = [piece for piece in part.split(":") if piece]
        if not pieces:
            continue
        if len(pieces) == 1 and number:
            return Misreading(
                "error",
                f"has {part!r} without a function in front, which NCCL rejects: the job fails with "
                "invalid usage",
            )
        if len(pieces) > 1 and pieces[0].lower() not in _FUNCTIONS:
            return Misreading(
                "error",
                f"names the function {pieces[0]!r}, which NCCL rejects: the job fails with invalid usage",
            )
        for token in pieces[min(1, len(pieces) - 1)].removeprefix("^").split(","):
            if token and token.upper() not in words:
                return Misreading(
                    "error", f"holds {token!r}, which NCCL rejects: the job fails with invalid usage"
                )
    return None


# --- lists of interfaces and devices --------------------------------------------------------------------------------


def _interfaces(variable: Variable, value: str, version: str) -> Misreading | None:  # noqa: ARG001
    """NCCL_SOCKET_IFNAME and NCCL_IB_HCA (src/misc/socket.cc, src/misc/utils.cc)."""
    if not ifname.is_set(value) and variable.name != "NCCL_IB_HCA":
        return Misreading("warning", "is a single character, which NCCL treats as not set")
    body = value.removeprefix("^").removeprefix("=")
    entries = [entry for entry in body.split(",") if entry]
    prefix = value[: len(value) - len(body)]
    odd = [
        entry for entry in entries if entry != entry.strip() or entry.strip().strip("\"'") != entry.strip()
    ]
    if odd or value[:1] in {'"', "'"}:
        plain = prefix + ",".join(entry.strip().strip("\"'") for entry in entries)
        weight: Weight = "error" if len(odd) == len(entries) and not prefix.startswith("^") else "warning"
        shown = ", ".join(repr(entry) for entry in odd[:3]) or repr(value)
        return Misreading(weight, f"holds {shown}: blanks, quotes and line ends are part of the name", plain)
    foreign = [entry for entry in entries if _FOREIGN.search(entry)]
    if foreign:
        weight = "error" if len(foreign) == len(entries) and not prefix.startswith("^") else "warning"
        return Misreading(
            weight,
            f"holds {foreign[0]!r}: NCCL knows commas, and one '^' and '=' in front; the rest is part of the name",
            _with_commas(prefix, entries),
        )
    if value.startswith("=^"):
        return Misreading(
            "error", "has '^' behind '=', where it is part of the name", "^=" + body.removeprefix("^")
        )
    inner = [entry for entry in entries if entry[0] in "^="]
    if inner:
        fixed = prefix + ",".join(entry.lstrip("^=") for entry in entries) if prefix else None
        return Misreading(
            "warning", f"holds {inner[0]!r}: '^' and '=' count only once, in front of the list", fixed
        )
    if len(entries) > _MAX_ENTRIES and variable.name != "NCCL_IB_HCA":
        return Misreading("warning", f"has {len(entries)} entries, of which NCCL reads 16")
    return _addresses_as_names(entries)


def _with_commas(prefix: str, entries: list[str]) -> str | None:
    """Return the list with commas, and with names in place of `eth*`; None where that is not what was meant."""
    parts = [part for entry in entries for part in re.split(r"[\s;|]+", entry) if part]
    names = [part.removesuffix("*") if not prefix.endswith("=") else part for part in parts]
    if any(_FOREIGN.search(name) or not name for name in names):
        return None
    return prefix + ",".join(dict.fromkeys(names))


def _addresses_as_names(entries: list[str]) -> Misreading | None:
    addresses = [entry for entry in entries if _is_address(entry)]
    if not addresses:
        return None
    weight: Weight = "error" if len(addresses) == len(entries) else "warning"
    return Misreading(weight, f"holds the address {addresses[0]}, where NCCL expects names of interfaces")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_interface(text)
    except ValueError:
        return bool(re.fullmatch(r"\d+(\.\d+){1,3}\.?", text))
    return not text.isdigit()


# --- addresses, paths and single variables ----------------------------------------------------------------------------


def _address_range(value: str, family: str) -> Misreading | None:
    """NCCL_IB_ADDR_RANGE (src/transport/net_ib, envIbAddrRange): what it cannot read is no restriction at all."""
    if not value:
        return None
    address, slash, prefix = value.partition("/")
    wants_ipv6 = family == "AF_INET6"
    try:
        parsed = ipaddress.ip_address(address)
        length = int(re.match(r"\s*\d+", prefix)[0]) if slash else -1  # type: ignore[index]
    except (ValueError, TypeError):
        return Misreading(
            "warning", "is not a range in the form 10.0.0.0/16, so NCCL ignores it and takes any GID"
        )
    if length < 0 or length > parsed.max_prefixlen:
        return Misreading(
            "warning", "is not a range in the form 10.0.0.0/16, so NCCL ignores it and takes any GID"
        )
    if isinstance(parsed, ipaddress.IPv6Address) != wants_ipv6:
        fitting_family = "AF_INET" if wants_ipv6 else "AF_INET6"
        return Misreading(
            "warning",
            f"is not of NCCL_IB_ADDR_FAMILY ({family or 'AF_INET'}), so NCCL ignores it; set {fitting_family}",
        )
    return None


def _debug_file(variable: Variable, value: str, version: str) -> Misreading | None:  # noqa: ARG001
    """Only %h, %p and %% mean something; `~` is not the home (src/debug.cc)."""
    if value.startswith("~"):
        return Misreading("warning", "begins with ~, which NCCL reads as a folder of that name")
    strange = [entry for entry in re.findall(r"%(.)", value.replace("%%", "")) if entry not in "hp"]
    if strange:
        return Misreading(
            "warning",
            f"holds %{strange[0]}, which is not replaced: NCCL knows only %h (host) and %p (process)",
        )
    if value and "%" not in value and not value.startswith("/dev/"):
        return Misreading(
            "info", "has neither %h nor %p, so the ranks overwrite each other's file", f"{value}.%h.%p"
        )
    return None


def _path(variable: Variable, value: str, version: str) -> Misreading | None:  # noqa: ARG001
    if value.startswith("~"):
        return Misreading("warning", "begins with ~, which is not expanded to the home folder")
    return None


def _comm_id(variable: Variable, value: str, version: str) -> Misreading | None:  # noqa: ARG001
    parsed = parse_comm_id(value, ())
    if isinstance(parsed, Unreadable):
        return Misreading("error", f"cannot be read: {parsed.why}; the job fails (result code 4)")
    return None


def _net(variable: Variable, value: str, version: str) -> Misreading | None:  # noqa: ARG001
    plain = value.strip().strip("\"'")
    if plain != value:
        return Misreading(
            "error", "has blanks or quotes in it, so NCCL finds no network of that name and fails", plain
        )
    if plain.lower() in _NO_NETWORKS:
        better = "Socket" if plain.lower() in {"tcp", "ethernet", "eth", "sockets"} else "IB"
        return Misreading(
            "error",
            (
                "is not a network of NCCL, which knows IB, Socket and the networks of its "
                "plug-ins: the job fails"
            ),
            better,
        )
    return None


def _cta_policy(variable: Variable, value: str, version: str) -> Misreading | None:
    if versions.parse(version) < _POLICY_WORDS_SINCE:
        return misread_number(variable, value, version)
    if value[:1].isdigit():
        return (
            None
            if value[0] in "012"
            else Misreading("warning", "is not a policy (0, 1, 2): NCCL takes the default")
        )
    unknown = [entry for entry in value.split("|") if entry.upper() not in {"DEFAULT", "EFFICIENCY", "ZERO"}]
    if value and unknown:
        return Misreading(
            "warning", f"holds {unknown[0]!r}, which is none of DEFAULT, EFFICIENCY, ZERO; NCCL skips it"
        )
    return None


def _netdevs_policy(variable: Variable, value: str, version: str) -> Misreading | None:  # noqa: ARG001
    if value.upper() in {"", "AUTO", "ALL"} or re.match(r"MAX:\s*\+?0*[1-9]", value, re.IGNORECASE):
        return None
    return Misreading("warning", "is none of AUTO, ALL and MAX:number, so NCCL takes AUTO")


_Reader = Callable[[Variable, str, str], "Misreading | None"]
_BY_NAME: Mapping[str, _Reader] = {
    "NCCL_DEBUG": _debug,
    "NCCL_DEBUG_FILE": _debug_file,
    "NCCL_ALGO": _algorithms,
    "NCCL_PROTO": _algorithms,
    "NCCL_COMM_ID": _comm_id,
    "NCCL_NET": _net,
    "NCCL_CTA_POLICY": _cta_policy,
    "NCCL_NETDEVS_POLICY": _netdevs_policy,
}
_BY_KIND: Mapping[str, _Reader] = {
    "word": _word,
    "words": _log_words,
    "level": _level,
    "interfaces": _interfaces,
    "path": _path,
}
