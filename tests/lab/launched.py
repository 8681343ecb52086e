"""ncclcheck as a user starts it, on the nodes of a lab, with the reports it wrote."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from tests.lab.launchers import substituted
from tests.lab.nodes import PYTHON, Lab, Node
from tests.lab.process import Finished, Running, wait_all

PORT = 29500


class Told(Struct, frozen=True):
    """How ncclcheck ended on one node: its process, and the JSON report it wrote there (None: it wrote none)."""

    finished: Finished
    report: dict[str, Any] | None

    @property
    def code(self) -> int:
        """The exit code of the process."""
        return self.finished.returncode

    @property
    def last_line(self) -> str:
        """The last line on standard output."""
        return (self.finished.stdout.strip().splitlines() or [""])[-1]

    def findings(self, slug: str) -> list[dict[str, Any]]:
        """The findings of one check."""
        assert self.report is not None, str(self.finished)
        return [finding for finding in self.report["findings"] if finding["slug"] == slug]

    def finding(self, slug: str) -> dict[str, Any]:
        """The first finding of one check; fails with the whole output when there is none."""
        found = self.findings(slug)
        assert found, f"no {slug}\n{self.finished}"
        return found[0]

    def outcome(self, slug: str) -> str:
        """How the check ended."""
        assert self.report is not None, str(self.finished)
        return str(next(check["outcome"] for check in self.report["checks"] if check["slug"] == slug))

    @property
    def slugs(self) -> set[str]:
        """Slugs of all findings that are errors or warnings."""
        assert self.report is not None, str(self.finished)
        return {finding["slug"] for finding in self.report["findings"] if finding["severity"] != "info"}


def command(node: Node, *words: str) -> list[str]:
    """`ncclcheck WORDS` with a JSON report in the node's home."""
    return [PYTHON, "-m", "ncclcheck", *words, "--output", str(report_file(node))]


def report_file(node: Node) -> Path:
    """Where `command` has its report written."""
    return node.folder / "home" / "report.json"


def flags(lab: Lab, node: Node, master: str | None = None, nnodes: int | None = None) -> list[str]:
    """The torchrun-style flags of this node."""
    words = ["--nnodes", str(nnodes or len(lab.nodes)), "--node-rank", "{node_rank}"]
    words += ["--master-addr", master or "{master_addr}", "--master-port", str(PORT)]
    return substituted(lab, node, words)


def start(
    lab: Lab,
    *words: str,
    nodes: Iterable[Node] | None = None,
    master: str | None = None,
    env: Mapping[str, str] | None = None,
    env_by_node: Mapping[Node, Mapping[str, str]] | None = None,
    own_words: Mapping[Node, Sequence[str]] | None = None,
    fresh: bool = False,
) -> dict[str, Running]:
    """ncclcheck started on the nodes under flags. `own_words` of a node come last, and so win.

    `fresh` where the time of a start counts: each node then imports torch itself.
    """
    commands = {
        node: [*command(node, *words, *flags(lab, node, master)), *(own_words or {}).get(node, ())]
        for node in nodes or lab.nodes
    }
    return lab.start_all(commands, job_environment(env), env_by_node=env_by_node, fresh=fresh)


def job_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """What every node of a run has: the real NCCL library where there is one, and `env`."""
    library = os.environ.get("NCCLCHECK_TEST_NCCL_LIBRARIES", "").split(":")[-1]
    own = {"LD_LIBRARY_PATH": str(Path(library).parent)} if library else {}
    return {**own, **(env or {})}


def told(lab: Lab, running: Mapping[str, Running], timeout_s: float = 180) -> dict[str, Told]:
    """How it ended on each node, by node name."""
    ended = wait_all(list(running.values()), timeout_s)
    return {finished.node: read(lab[finished.node], finished) for finished in ended}


def read(node: Node, finished: Finished) -> Told:
    """The end of a process with the report it wrote."""
    path = report_file(node)
    return Told(finished, json.loads(path.read_text()) if path.exists() else None)


def run(lab: Lab, *words: str, **how: Any) -> dict[str, Told]:
    """`start` and `told` in one."""
    return told(lab, start(lab, *words, **how))
