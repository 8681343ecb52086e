"""The rules of Jenkins' JUnit schema (jenkinsci/xunit-plugin, types/model/xsd/junit-10.xsd), told as a table.

The schema itself was run over these documents when this was written; here it needs no validator.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

# element -> attributes (with ! the required ones), and the elements that may be in it
RULES: dict[str, tuple[set[str], set[str]]] = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name!", "tests!", "failures!", "errors!", "group", "time", "skipped", "timestamp", "hostname"}
        | {"id", "package", "file", "log", "url"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": (
        {"name!", "time", "classname", "group"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "properties": (set(), {"property"}),
    "property": ({"name!", "value!"}, set()),
    "failure": ({"type", "message"}, set()),
    "error": ({"type", "message"}, set()),
    "skipped": ({"type", "message"}, set()),
    "system-out": (set(), set()),
    "system-err": (set(), set()),
}
_MIXED = {"failure", "error", "skipped", "system-out", "system-err"}
_TIME = re.compile(r"[0-9,]*(\.[0-9]*)?")


def broken_rules(document: str) -> list[str]:
    """What the schema would refuse, in words; nothing for a valid document."""
    root = ElementTree.fromstring(document.encode())  # noqa: S314 (our own)
    if root.tag not in ("testsuites", "testsuite"):
        return [f"the root is {root.tag}"]
    return list(_broken(root))


def _broken(element: ElementTree.Element) -> Iterator[str]:
    if element.tag not in RULES:
        yield f"no such element: {element.tag}"
        return
    attributes, children = RULES[element.tag]
    known = {name.rstrip("!") for name in attributes}
    yield from (f"{element.tag} has no attribute {name}" for name in element.attrib if name not in known)
    required = {name[:-1] for name in attributes if name.endswith("!")}
    yield from (f"{element.tag} lacks {name}" for name in required - set(element.attrib))
    if element.tag in ("testsuites", "testsuite") and not _TIME.fullmatch(element.get("time", "0")):
        yield f"time {element.get('time')}"
    texts = [element.text, *(child.tail for child in element)]
    if element.tag not in _MIXED and any((text or "").strip() for text in texts):
        yield f"text in {element.tag}"
    for child in element:
        if child.tag not in children:
            yield f"{child.tag} in {element.tag}"
        yield from _broken(child)
