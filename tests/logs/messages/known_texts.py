"""Does explain know a message as its program prints it: by a table, a topic, a reader, or as an exception of Python?"""

from __future__ import annotations

import re

from ncclcheck.logs.messages.known import meaning_of
from ncclcheck.logs.messages.software import message_in
from ncclcheck.logs.patterns.topics import topics
from ncclcheck.logs.patterns.topics_harmless import why_harmless
from ncclcheck.logs.readers import collectives, connections, exceptions, exits
from ncclcheck.model.events import LogPosition

PREFIXES = {  # what the program prints before the text
    "aws-ofi-nccl": "NET/OFI ",
    "ucx": "[1.1] [node1:1:0] x.c:1  UCX  ERROR ",
    "slurm": "slurmstepd: error: ",
    "kernel-mlx5": "mlx5_core 0000:17:00.0: run:310:(pid 1): ",
    "kernel-efa": "efa 0000:00:1d.0: ",
    "hydra": "[mpiexec@node1] ",
    "gloo": "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:1] ",
}
_NCCLS_OWN = ("nccl", "aws-ofi-nccl", "sharp")
_PLACE = LogPosition("", 1)
FILLED = "7"


def is_known(text: str, source: str) -> bool:
    """Return True if explain knows the text of that program."""
    line = PREFIXES.get(source, "") + text
    if source in _NCCLS_OWN:
        return meaning_of(line) is not None
    plain = re.sub(r"\*", FILLED, line)
    return (
        message_in(line) is not None
        or message_in(plain) is not None
        or exceptions.split(plain, in_traceback=False) is not None
        or next(iter(topics(plain)), None) is not None
        or bool(why_harmless(plain))
        or next(iter(collectives.read(plain, _PLACE)), None) is not None
        or next(iter(connections.read(plain, _PLACE)), None) is not None
        or next(iter(exits.read(plain)), None) is not None
    )
