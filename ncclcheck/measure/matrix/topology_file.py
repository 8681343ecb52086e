"""Slurm's topology.yaml and topology.conf: the nodes behind the lowest switches, or in the blocks.

The grammar: topology.yaml(5), topology.conf(5) of Slurm 26.11. Higher switches, link speeds and block sizes say nothing
about which nodes share a switch, and are passed over; so is a ring or torus.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from ncclcheck.launch.reading import MOST_NAMES, node_names
from ncclcheck.model.benchmarks.site_topology import SiteSwitch, SiteTopology
from ncclcheck.model.errors import UsageError

_TREE, _BLOCK = ("switches", "switch"), ("blocks", "block")
_KINDS = {"tree": _TREE, "block": _BLOCK}
_OTHER_KINDS = frozenset({"flat", "ring", "torus3d"})
_WORD = re.compile(r"(\w+)=(\S*)", re.ASCII)
_NAMES = {"switchname": "switches", "blockname": "blocks"}


class _LineError(Exception):
    """What is wrong in which line, from 1."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(why)
        self.number = number


def parse_topology(text: str, source: str) -> SiteTopology:
    """Return what a topology file says. Raises UsageError, which names `source`, the line, and what is wrong.

    topology.conf has no line that is YAML: it is recognised by its first word.
    """
    is_conf = re.search(r"^\s*(SwitchName|BlockName|BlockSizes)\s*=", text, re.IGNORECASE | re.MULTILINE)
    try:
        switches = tuple(_of_conf(text) if is_conf else _of_yaml(text))
    except _LineError as error:
        raise UsageError(f"{source}: line {error.number}: {error}") from None
    return SiteTopology(source, switches)


def _of_conf(text: str) -> Iterator[SiteSwitch]:
    """Yield each switch or block with nodes. A backslash at its end continues a line."""
    seen: dict[str, str] = {}
    begun, parts = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        content = line.partition("#")[0].rstrip()
        begun = begun or number
        if content.endswith("\\"):
            parts += content[:-1] + " "
            continue
        whole, first, begun, parts = (parts + content).strip(), begun, 0, ""
        if not whole:
            continue
        words = {name.lower(): value for name, value in _WORD.findall(whole)}
        if _WORD.sub("", whole).strip() or not words:
            raise _LineError(
                first, f"expected words like SwitchName=s1 Nodes=node[01-16], not {whole[:60]!r}"
            )
        kind = next((name for name in _NAMES if words.get(name)), None)
        if kind is not None and "nodes" in words:
            yield _switch(words[kind], words["nodes"], first, seen)
        elif kind is None and words.keys() - {"blocksizes"}:
            raise _LineError(first, "neither SwitchName nor BlockName is in it")


def _of_yaml(text: str) -> Iterator[SiteSwitch]:
    """Yield those of the default topology, or of the first."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _LineError(
            mark.line + 1 if mark else 1, f"not YAML: {error.problem or error.context}"
        ) from None
    except yaml.YAMLError as error:  # characters that YAML does not know
        raise _LineError(1, f"not YAML: {' '.join(str(error).split())[:200]}") from None
    except RecursionError:
        raise _LineError(1, "nested too deeply for a topology") from None
    topologies = [_entries(entry) for entry in _items(root, "a list of topologies")]
    if not topologies:
        raise _LineError(1, "there is no topology in it")
    chosen = next(
        (
            entries
            for entries in topologies
            if "cluster_default" in entries and _text(entries["cluster_default"]).lower() in ("true", "yes")
        ),
        topologies[0],
    )
    kind = next((name for name in _KINDS if name in chosen), None)
    if kind is not None:
        yield from _switches(chosen[kind], *_KINDS[kind])
    elif not _OTHER_KINDS & chosen.keys():
        line = next(iter(chosen.values())).start_mark.line + 1 if chosen else 1
        raise _LineError(line, f"a topology has one of {', '.join(sorted({*_KINDS, *_OTHER_KINDS}))}")


def _switches(tree: yaml.Node, many: str, single: str) -> Iterator[SiteSwitch]:
    entries = _entries(tree)
    if many not in entries:
        raise _LineError(tree.start_mark.line + 1, f"expected {many}:")
    seen: dict[str, str] = {}
    for entry in _items(entries[many], f"a list of {many}"):
        words = _entries(entry)
        number = entry.start_mark.line + 1
        if single not in words:
            raise _LineError(number, f"expected {single}: with a name")
        if "nodes" in words:
            yield _switch(_text(words[single]), _text(words["nodes"]), number, seen)


def _switch(name: str, nodes: str, number: int, seen: dict[str, str]) -> SiteSwitch:
    """Return the switch; `seen` keeps the switch of each node, and no node may have two."""
    hosts = node_names(nodes)
    if not hosts:
        raise _LineError(number, f"{nodes[:60]!r} is no list of nodes")
    if len(seen) + len(hosts) > MOST_NAMES:
        raise _LineError(number, f"more than {MOST_NAMES} nodes")
    for host in hosts:
        if host in seen:
            raise _LineError(number, f"{host} is behind {seen[host]} and {name}")
        seen[host] = name
    return SiteSwitch(name, hosts)


def _items(node: yaml.Node | None, what: str) -> list[yaml.Node]:
    if not isinstance(node, yaml.SequenceNode):
        raise _LineError(node.start_mark.line + 1 if node is not None else 1, f"expected {what}")
    return list(node.value)


def _entries(node: yaml.Node) -> dict[str, yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        raise _LineError(node.start_mark.line + 1, "expected names with values")
    return {_text(name): value for name, value in node.value}


def _text(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise _LineError(node.start_mark.line + 1, "expected a word")
    return str(node.value)
