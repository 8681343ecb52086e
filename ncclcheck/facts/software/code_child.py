"""Child process: prints the tree hash of the path in its arguments, so that a dead mount blocks no one else."""

from __future__ import annotations

import json
import os
import sys
import zlib
from base64 import b64encode
from pathlib import Path

from ncclcheck.facts.software.tree_hash import TooMuchError, tree_hash, tree_listing

_PATH_CHARS = 300


def main() -> None:
    """Print an empty line once the path has answered, and one JSON object: sha256 and files, or missing and detail.

    With "list" as the third argument: the digest of each file by its name, under `listing`.
    """
    path, deadline_s, is_listing = sys.argv[1], float(sys.argv[2]), sys.argv[3:] == ["list"]
    Path(path).exists()
    sys.stdout.write("\n")
    sys.stdout.flush()
    sys.stdout.write(json.dumps(_answer(path, deadline_s, is_listing=is_listing)))


def _answer(path: str, deadline_s: float, *, is_listing: bool) -> dict[str, object]:
    try:
        if is_listing:
            listing = json.dumps(tree_listing(path, deadline_s)).encode()
            return {"listing": b64encode(zlib.compress(listing)).decode()}
        sha256, files = tree_hash(path, deadline_s)
    except PermissionError as error:
        return {"missing": "denied", "detail": _error_text(error)}
    except FileNotFoundError as error:
        return {"missing": "absent", "detail": _error_text(error)}
    except TimeoutError as error:
        return {"missing": "timeout", "detail": f"{path}: {error}"}
    except TooMuchError as error:
        return {"missing": "unsupported", "detail": f"{path}: {error}; name a smaller --code path"}
    except OSError as error:
        return {"missing": "error", "detail": _error_text(error)}
    except RuntimeError as error:  # pathlib's word for a ring of symbolic links before Python 3.13
        return {"missing": "error", "detail": str(error)}
    return {"sha256": sha256, "files": files}


def _error_text(error: OSError) -> str:
    return f"{os.fsdecode(error.filename or b'')[:_PATH_CHARS]}: {error.strerror}"


if __name__ == "__main__":
    main()
