"""The same command on every node: with torchrun-style flags, and under the real torchrun."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tests.lab.nodes import PYTHON, Lab, Node
from tests.lab.process import Finished

MASTER_PORT = 29500


def substituted(lab: Lab, node: Node, argv: Sequence[str]) -> list[str]:
    """`argv` with {node_rank}, {nnodes}, {node}, {address} and {master_addr} (node1's address) filled in for `node`."""
    values = {
        "{node_rank}": str(node.rank),
        "{nnodes}": str(len(lab.nodes)),
        "{node}": node.name,
        "{address}": node.address,
        "{master_addr}": lab.nodes[0].address,
    }
    words = list(argv)
    for name, value in values.items():
        words = [word.replace(name, value) for word in words]
    return words


def with_flags(
    lab: Lab,
    argv: Sequence[str],
    env: Mapping[str, str] | None = None,
    *,
    nodes: Iterable[Node] | None = None,
    env_by_node: Mapping[Node, Mapping[str, str]] | None = None,
    timeout_s: float = 60,
) -> dict[str, Finished]:
    """Run `argv` on the nodes (all, if none are named) with `{node_rank}` and the like filled in, as a user would."""
    commands = {node: substituted(lab, node, argv) for node in nodes or lab.nodes}
    return lab.run_all(commands, env, env_by_node=env_by_node, timeout_s=timeout_s)


def with_torchrun(
    lab: Lab,
    argv: Sequence[str],
    env: Mapping[str, str] | None = None,
    *,
    nproc_per_node: int = 1,
    master_addr: str | None = None,
    nodes: Iterable[Node] | None = None,
    env_by_node: Mapping[Node, Mapping[str, str]] | None = None,
    timeout_s: float = 120,
) -> dict[str, Finished]:
    """Run torchrun on the nodes; `argv` is what follows its options: `["-m", "ncclcheck", "run"]` or `["train.py"]`.

    A failing worker makes torchrun exit 1 whatever the worker's exit code was; its own text has that code.
    """
    torchrun = [PYTHON, "-m", "torch.distributed.run", "--nnodes", "{nnodes}", "--node-rank", "{node_rank}"]
    torchrun += ["--nproc-per-node", str(nproc_per_node), "--master-port", str(MASTER_PORT)]
    torchrun += ["--master-addr", master_addr or "{master_addr}"]
    return with_flags(lab, [*torchrun, *argv], env, nodes=nodes, env_by_node=env_by_node, timeout_s=timeout_s)
