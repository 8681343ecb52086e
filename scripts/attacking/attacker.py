"""A stranger on the network of a run, without its key: `python attacker.py ATTACK HOST THIRD FOLDER NODE...`.

HOST is node 0; THIRD an address that no node of the run has.
Each attack runs until it is killed. FOLDER keeps what was seen on the wire, for the attacks that replay it.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import scripts.attacking.connections
import scripts.attacking.datagrams
import scripts.attacking.listeners
import scripts.attacking.stored  # noqa: F401 (they enter their attacks into the list)
from scripts.attacking.field import ATTACKS, Field


def main() -> None:
    """Run one attack until killed."""
    name, host, third, folder, *nodes = sys.argv[1:]
    with suppress(ImportError):
        import torch.distributed  # noqa: F401 (before the run begins)
    (Path.home() / "attacker").write_text("ready")
    ATTACKS[name](Field(host, third, Path(folder), nodes))


if __name__ == "__main__":
    main()
