"""Child process: looks into one folder of checkpoints, and prints what it found."""

from __future__ import annotations

import resource
import sys
import time
from contextlib import suppress
from pathlib import Path

from ncclcheck.facts.bounded_call import missing_for
from ncclcheck.facts.checkpoints.folder import read_folder
from ncclcheck.facts.text_files import readable
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Missing
from ncclcheck.model.job.checkpoints import CheckpointFolder

_MEMORY_BYTES = 4 << 30  # of a damaged pickle; the largest real metadata takes a part of it


def main() -> None:
    """Print one CheckpointFolder as JSON."""
    path, seconds = Path(sys.argv[1]), float(sys.argv[2])
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    try:
        found = read_folder(path, time.monotonic() + seconds)
    except OSError as error:
        found = CheckpointFolder(readable(str(path)), missing_for(error, readable(str(path))))
    except MemoryError:
        why = Missing("error", f"its metadata needs more than {_MEMORY_BYTES >> 30} GiB")
        found = CheckpointFolder(readable(str(path)), why)
    sys.stdout.buffer.write(encode(found))
