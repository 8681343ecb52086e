"""The policy that a node meets as it is: what `ncclcheck facts --as-policy` writes, to be read again by --expect."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterator, Sequence

from ncclcheck.checks.environment._settings import HIDDEN
from ncclcheck.checks.expectations import Nothing, Seen
from ncclcheck.checks.host.node_unexpected import READERS as NODE_READERS
from ncclcheck.checks.software.software_unexpected import READERS as SOFTWARE_READERS
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.formats.unsafe_letters import is_unsafe
from ncclcheck.model.policy.expected import Expectation, Presence
from ncclcheck.model.policy.policy_values import COUNTS, SECTIONS, is_variable
from ncclcheck.model.snapshot import Node
from ncclcheck.nccl.variables.variables import lookup

_READERS = {**SOFTWARE_READERS, **NODE_READERS}
_SIZES = frozenset({"gpu.memory", "limits.memlock", "limits.shm"})
_PATTERNS = frozenset({"gpu.model", "network.interface"})
_VARIABLES = ("NCCL_", "TORCH_NCCL_", "GLOO_", "UCX_", "FI_", "OFI_NCCL_")
_OF_A_RUN = frozenset({"NCCL_COMM_ID", "NCCL_DEBUG_FILE"})
_KIB_PER = ((1 << 20, "G"), (1 << 10, "M"), (1, "K"))
_LONGEST_REASON = 160
_ABOUT = {
    "versions": 'exactly these; a range works too: torch = ">=2.7,<3"',
    "gpu": "of every GPU; memory is the least",
    "network": "of the interface that NCCL chooses; the speed is the least",
    "rdma": "of every port that NCCL may use; the rate is the least",
    "pcie": "of every card; the least, an idle GPU as fast as the card can be",
    "limits": "the least",
    "environment": '"value", ["one", "or another"], true: must be set, false: must not be set',
}


def as_policy(host: str, facts: NodeFacts, version: str) -> str:
    """TOML of all that a policy can demand and this node has; what is not known is a comment with the reason."""
    node = Node(host, 0, facts)
    lines = [
        f"# What {_comment(host)} is like, by ncclcheck {version}. Use it with: ncclcheck preflight --expect FILE",
        "# Leave only what the other nodes must have as well. What this node does not tell is a comment.",
        "",
        "# nodes = 4   # of the job, which a single node does not tell",
        *(_line(key, key, node) for key in sorted(COUNTS)),
    ]
    for section, kinds in SECTIONS.items():
        lines += ["", f"# {_ABOUT[section]}", f"[{section}]"]
        if section == "environment":
            lines += _environment(facts)
        else:
            lines += [_line(key, f"{section}.{key}", node) for key in sorted(kinds)]
    return "\n".join(lines) + "\n"


def _line(name: str, key: str, node: Node) -> str:
    seen = tuple(_READERS[key](node, Expectation(key, Presence(True), "")))
    value = _toml(key, seen, node)
    if isinstance(value, Missing):
        return f"# {name}: {_comment(value.detail or value.missing)}"
    return f"{name} = {value}"


def _toml(key: str, seen: Sequence[Seen], node: Node) -> Fact[str]:
    """Return the value as TOML that all of them meet."""
    numbers: list[float | None] = []
    texts: list[str] = []
    for value in seen:
        if isinstance(value.value, Missing):
            return Missing(value.value.missing, f"not known: {value.what}: {value.value}")
        if isinstance(value.value, Nothing):
            return Missing("absent", f"none ({value.value.why})")
        if isinstance(value.value, str):
            texts.append(value.value)
        else:
            numbers.append(value.value)
    if texts:
        return _texts(key, sorted(set(texts)), node)
    limited = [number for number in numbers if number is not None]
    if not limited:
        return (
            '"unlimited"'
            if key == "limits.memlock"
            else Missing("absent", "without limit, so there is no least")
        )
    if key in _SIZES:
        return _size(min(limited))
    return f"{min(limited):.12g}" if min(limited) > 0 or key in COUNTS else Missing("absent", "not told")


def _texts(key: str, texts: list[str], node: Node) -> Fact[str]:
    if key == "network.subnet":
        return _network_of(texts[0], node)
    if key == "versions.ncclcheck":
        return _quoted(f">={texts[0]}")
    if key in _PATTERNS:
        texts = [re.sub(r"([*?\[])", r"[\1]", text) for text in texts]
    quoted = [_quoted(text) for text in texts]
    return quoted[0] if len(quoted) == 1 else f"[{', '.join(quoted)}]"


def _network_of(address: str, node: Node) -> Fact[str]:
    for interface in () if isinstance(node.facts.interfaces, Missing) else node.facts.interfaces:
        for candidate in interface.addresses:
            if candidate.address == address:
                plain = address.partition("%")[0]
                return _quoted(str(ipaddress.ip_network(f"{plain}/{candidate.prefix_length}", strict=False)))
    return Missing("absent", f"not known: the network of {address}")


def _size(kib: float) -> Fact[str]:
    for per, unit in _KIB_PER:
        if kib >= per * 16 or (unit == "K" and kib >= 1):
            return _quoted(f"{int(kib // per)}{unit}")
    return Missing("absent", "less than 1 KiB")


def _environment(facts: NodeFacts) -> Iterator[str]:
    if isinstance(facts.environment, Missing):
        yield f"# not known: {_comment(str(facts.environment))}"
        return
    chosen = {
        name: value
        for name, value in sorted(facts.environment.items())
        if name.startswith(_VARIABLES) and name not in _OF_A_RUN
    }
    if not chosen:
        yield f"# none of {', '.join(f'{prefix}*' for prefix in _VARIABLES)} is set"
    for name, value in chosen.items():
        if not is_variable(name) or lookup(name) is None:
            yield f"# {_comment(name)} is set, and no program is known to read it"
        else:
            yield f"{name} = {'true' if value in HIDDEN else _quoted(value)}"


def _quoted(text: str) -> str:
    r"""Return a basic string of TOML, whose escapes are those of JSON, and `\U` for what a terminal must not get."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(f"\\U{ord(letter):08x}" if is_unsafe(letter) else letter for letter in quoted)


def _comment(text: str) -> str:
    """Return the text in one line, without characters that a comment may not have."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return plain if len(plain) <= _LONGEST_REASON else f"{plain[:_LONGEST_REASON]}..."
