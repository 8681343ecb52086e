"""Stands in for `facts.paths_child` on a mount whose server dies: tells the kind, and then never anything again."""

from __future__ import annotations

import signal
import sys
import threading


def main() -> None:
    """Not even SIGTERM ends it."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.stdout.write('{"kind": "folder"}\n')
    sys.stdout.flush()
    threading.Event().wait()
