"""The table of environment variables: who reads a name, from which version to which, as what, and its default."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ncclcheck.nccl.variables.variables_nccl import NCCL
from ncclcheck.nccl.variables.variables_nccl_network import NCCL_NETWORK
from ncclcheck.nccl.variables.variables_other import FAMILIES, OTHERS
from ncclcheck.nccl.variables.variables_types import Family, Variable

TABLE: Mapping[str, Variable] = MappingProxyType({one.name: one for one in (*NCCL, *NCCL_NETWORK, *OTHERS)})


def lookup(name: str) -> Variable | Family | None:
    """The variable of that exact name, else the family of its prefix, else None: nobody is known to read it."""
    found = TABLE.get(name)
    if found is not None:
        return found
    return next((family for family in FAMILIES if name.startswith(family.prefix)), None)
