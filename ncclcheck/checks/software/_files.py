"""The files that differ between two nodes, in words."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.model.finding import Evidence
from ncclcheck.model.formats.prose import listed, plural
from ncclcheck.model.snapshot import CodeDifference

_IN_SENTENCE = 3
# What jobs write into the folder that they start in, and no program runs: by suffix, by beginning, by folder.
_OUTPUT_SUFFIXES = frozenset({".err", ".log", ".out", ".pid"})
_OUTPUT_NAMES = ("core.", "events.out.tfevents.")
_OUTPUT_FOLDERS = frozenset({"lightning_logs", "mlruns", "tb_logs", "wandb"})  # whatever is in them
_LOG_FOLDERS = frozenset({"log", "logs", "runs"})  # unless it is code by its suffix
_CODE_SUFFIXES = frozenset(
    {".cfg", ".cu", ".cpp", ".ini", ".json", ".py", ".sh", ".so", ".toml", ".yaml", ".yml"}
)


def are_outputs(difference: CodeDifference) -> bool:
    """Return whether files are only missing or added, all are named, and each has a name that jobs give to output."""
    lists = (difference.missing, difference.extra)
    is_whole = all(names.count == len(names.first) for names in lists)
    files = [name for names in lists for name in names.first]
    return bool(files) and is_whole and not difference.changed.count and all(map(_is_output, files))


def _is_output(path: str) -> bool:
    *folders, name = path.split("/")
    suffix = f".{name.rpartition('.')[2]}" if "." in name else ""
    if not _OUTPUT_FOLDERS.isdisjoint(folders):
        return True
    is_log = not _LOG_FOLDERS.isdisjoint(folders) and suffix not in _CODE_SUFFIXES
    return is_log or suffix in _OUTPUT_SUFFIXES or name.startswith(_OUTPUT_NAMES)


def difference_text(difference: CodeDifference) -> str:
    """`on node02 3 files differ from node01 (a.py, b.py, c.py), 1 is missing (d.py)`."""
    parts = [
        f"{plural(names.count, 'file')} {verb} ({listed(names.first, _IN_SENTENCE, count=names.count)})"
        for names, verb in (
            (
                difference.changed,
                f"differ{'s' if difference.changed.count == 1 else ''} from {difference.compared_with}",
            ),
            (difference.missing, f"{'is' if difference.missing.count == 1 else 'are'} missing"),
            (difference.extra, f"{'is' if difference.extra.count == 1 else 'are'} there only"),
        )
        if names.count
    ]
    text = (
        ", ".join(parts)
        if parts
        else f"the files were equal to those of {difference.compared_with} a moment later"
    )
    return f"on {difference.host} {text}"


def file_evidence(difference: CodeDifference) -> Iterator[Evidence]:
    """Yield one piece per kind of difference, with the first ten names."""
    for names, what in (
        (difference.changed, f"files of {difference.path} that differ from {difference.compared_with}"),
        (difference.missing, f"files of {difference.path} that only {difference.compared_with} has"),
        (difference.extra, f"files of {difference.path} that {difference.compared_with} does not have"),
    ):
        if names.count:
            observed = f"{names.count}: {listed(names.first, names.count, count=names.count)}"
            yield Evidence((difference.host,), what, observed, "none", "SHA-256 of each file")
