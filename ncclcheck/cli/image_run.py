"""`preflight --image`: a container image judged from within, on the machine that builds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.facts.image.image_node import image_facts
from ncclcheck.facts.network.names import host_name
from ncclcheck.model.errors import UsageError
from ncclcheck.model.snapshot import Node, Snapshot
from ncclcheck.run.judge import judge, save, start_clock
from ncclcheck.run.options import RunOptions, RunResult
from ncclcheck.timeouts import CONCLUDE_S


def run_image(options: RunOptions, environ: Mapping[str, str], say: Callable[[str], None]) -> RunResult:
    """Return the report of this image, by the deadline. The build machine's hardware and network are not read."""
    clock = start_clock()
    deadline = Deadline(options.timeout_s)
    say("reading the image: torch, NCCL, libraries, packages")
    interrupted = False
    snapshot = Snapshot(nodes=(), of="image")
    try:
        facts = image_facts(environ, max(deadline.left() - min(CONCLUDE_S, options.timeout_s / 5), 0.5))
        snapshot = Snapshot(nodes=(Node(host_name(), 0, facts),), of="image")
    except KeyboardInterrupt:
        interrupted = True
    saved = save(snapshot, options, clock, interrupted=interrupted)
    return RunResult(judge(saved, options), saved, prints=True)


def refuse_nodes(options: RunOptions) -> None:
    """Raise UsageError where the options make no sense for an image."""
    flags = options.flags
    placed = (flags.nnodes, flags.node_rank, flags.master_addr, flags.master_port, flags.nproc_per_node)
    elsewhere = options.head is not None or options.meet_in is not None
    if options.command != "preflight" or elsewhere or any(value is not None for value in placed[1:]):
        raise UsageError(
            "--image judges an image on the machine that builds it: leave out what places a run on nodes"
        )
