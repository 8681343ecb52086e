"""ncclcheck: are these nodes and this network fit for a multi-node GPU job, and if not, why not.

`ncclcheck.preflight`, `bench`, `run`, `isolate`, `matrix` and `soak` are the commands as functions: see
`ncclcheck.api`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = (
    False  # `typing` takes 20 ms to import, in which Ctrl-C would show a traceback (ncclcheck.__main__)
)
if TYPE_CHECKING:
    from typing import Any

    from ncclcheck.api import bench, isolate, matrix, preflight, run, soak, to_json, to_text
    from ncclcheck.model.errors import NcclcheckError, UsageError
    from ncclcheck.model.finding import Evidence, Finding, Fix
    from ncclcheck.model.report import Report, Verdict

__version__ = "0.1.0"
__all__ = [
    "Evidence", "Finding", "Fix", "NcclcheckError", "Report", "UsageError", "Verdict",
    "__version__", "bench", "isolate", "matrix", "preflight", "run", "soak", "to_json", "to_text",
]  # fmt: skip

_WHERE = {
    **dict.fromkeys(
        ("bench", "isolate", "matrix", "preflight", "run", "soak", "to_json", "to_text"), "ncclcheck.api"
    ),
    **dict.fromkeys(("NcclcheckError", "UsageError"), "ncclcheck.model.errors"),
    **dict.fromkeys(("Evidence", "Finding", "Fix"), "ncclcheck.model.finding"),
    **dict.fromkeys(("Report", "Verdict"), "ncclcheck.model.report"),
}


class _Lazy(ModuleType):
    """This module: what it exports is imported when it is first asked for.

    `bench` and `run` are also packages of ours: the import system sets such a name to the package, which must not
    replace the function. `from ncclcheck.run.options import ...` is found in sys.modules and works as ever.
    """

    def __getattr__(self, name: str) -> Any:
        if name not in _WHERE:
            raise AttributeError(f"module 'ncclcheck' has no attribute {name!r}")
        return getattr(import_module(_WHERE[name]), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in _WHERE):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _Lazy
