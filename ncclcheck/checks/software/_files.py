"""The files that differ between two nodes, in words."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.model.finding import Evidence
from ncclcheck.model.formats.prose import listed, plural
from ncclcheck.model.snapshot import CodeDifference

_IN_SENTENCE = 3


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
