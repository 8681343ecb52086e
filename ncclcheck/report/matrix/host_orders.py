"""The leaves that `matrix` found, as files of other programs: printed for the user to paste, never written in place."""

from __future__ import annotations

from ncclcheck.model.benchmarks.matrix import FabricMatrix
from ncclcheck.model.formats.choices import HostOrder
from ncclcheck.model.formats.host_words import host_words, is_host_word
from ncclcheck.model.formats.prose import plural
from ncclcheck.model.report import Report
from ncclcheck.report.matrix.matrix_text import why_no_leaves
from ncclcheck.report.namesakes import left_out, list_words
from ncclcheck.report.text.fold import fold_hosts
from ncclcheck.report.text.plain import plain

LABEL = "ncclcheck/leaf"
_NO_LEAVES = "# flat: no leaves were found that a job could feel"


def host_order(report: Report, kind: HostOrder) -> str:
    """Return the text, which ends with a new line; nothing without a matrix.

    hostfile: the hosts leaf by leaf, one per line, without those that were lost. slurm-tree, slurm-block: lines of
    topology.conf. labels: a kubectl command per node. A flat network has no topology: only the hostfile is given.
    """
    matrix = report.matrix
    if matrix is None:
        return ""
    if kind == "hostfile":
        named = {node.host for node in matrix.nodes}
        words = list_words(report)
        lines = [words[host] for host in matrix.order if host not in named and host in words]
    elif len(matrix.leaves) < 2:  # noqa: PLR2004 (two leaves)
        lines = [_NO_LEAVES if matrix.flat else f"# leaves are not known: {why_no_leaves(matrix)}"]
    elif kind == "labels":
        lines = [
            f"kubectl label node {host} {LABEL}={name}" if is_host_word(host) else left_out(report, host)
            for name, hosts in matrix.named_leaves.items()
            for host in hosts
        ]
    else:
        lines = [_header(report, matrix), *_slurm(matrix, kind)]
    return "".join(f"{text}\n" for text in lines)


def _header(report: Report, matrix: FabricMatrix) -> str:
    pairs = len({frozenset((cell.from_host, cell.to_host)) for cell in matrix.cells})
    tests = sum(cell.tests for cell in matrix.cells) // 2
    measured = f"{plural(tests, 'test')} of {plural(pairs, 'pair')}"
    return f"# inferred from {measured} on {plain(report.created)}; the names of the leaves are ncclcheck's"


def _slurm(matrix: FabricMatrix, kind: HostOrder) -> list[str]:
    of = {name: words for name, hosts in matrix.named_leaves.items() if (words := host_words(hosts))}
    key = "BlockName" if kind == "slurm-block" else "SwitchName"
    leaves = [f"{key}={name} Nodes={fold_hosts(hosts)}" for name, hosts in of.items()]
    return leaves if kind == "slurm-block" else [*leaves, f"SwitchName=spine Switches={fold_hosts(of)}"]
