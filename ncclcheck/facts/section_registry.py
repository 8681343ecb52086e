"""All sections that are read of a machine, found by walking the package `facts`."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

import ncclcheck.facts
from ncclcheck.facts.section import Section
from ncclcheck.model.facts import NodeFacts

# What runs in a process of its own, and what reads a container image instead of a machine.
_WITHOUT_SECTIONS = ("_child", "facts.image")


@cache
def all_sections() -> tuple[Section, ...]:
    """Return every section. Raises ValueError for one that NodeFacts lacks, or that is declared twice."""
    found: dict[str, Section] = {}
    for module_info in pkgutil.walk_packages(ncclcheck.facts.__path__, "ncclcheck.facts."):
        if any(part in module_info.name for part in _WITHOUT_SECTIONS):
            continue
        for value in vars(importlib.import_module(module_info.name)).values():
            if not isinstance(value, Section):
                continue
            for name in value.sources:
                if name not in NodeFacts.__struct_fields__ or found.setdefault(name, value) is not value:
                    raise ValueError(f"section {name!r} is declared twice, or is no field of NodeFacts")
    return tuple({id(section): section for section in found.values()}.values())
