"""`python -m ncclcheck`, and the `ncclcheck` of a shell: quiet on Ctrl-C also while the program is being imported."""

import os
import signal

from ncclcheck.model.exit_code import INTERRUPTED


def main() -> None:
    """Run the command line and end the process with its exit code."""
    # Python would print the line that is just being imported, and end by the signal. Ignored (&) it stays so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _leave)
    from ncclcheck.cli.main import main as run

    run()


def _leave(*_: object) -> None:
    try:
        os.write(2, b"ncclcheck: interrupted\n")
    finally:  # standard error may be closed
        os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
