"""The rules of all kinds of checkpoints, found by walking this package."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

import ncclcheck.facts.checkpoints.kinds
from ncclcheck.facts.checkpoints.kinds.rule import Rule


@cache
def all_rules() -> tuple[Rule, ...]:
    """Return every rule, in order of the names of their files."""
    kinds = ncclcheck.facts.checkpoints.kinds
    names = sorted(found.name for found in pkgutil.iter_modules(kinds.__path__, f"{kinds.__name__}."))
    modules = (importlib.import_module(name) for name in names)
    return tuple(rule for module in modules for rule in getattr(module, "RULES", ()))
