"""Load the tables that ship with the package: TOML files beside the module that uses them, decoded strictly.

tomli is compiled and takes a quarter of tomllib's time: half a megabyte of messages is read before `explain` answers.
What users write (policies) is read by tomllib, which bounds its recursion.
"""

from __future__ import annotations

import pkgutil
from typing import TypeVar

import msgspec
import tomli

T = TypeVar("T")


def load_table(package: str, file: str, into: type[T]) -> T:
    """Return the TOML file `file` of `package`, decoded as `into`.

    Raises msgspec.ValidationError, which names the entry, where the file does not fit the type.
    """
    data = pkgutil.get_data(package, file)
    assert data is not None, f"{package} has no {file}"  # noqa: S101 - pkgutil's loaders of files raise OSError instead
    return msgspec.convert(tomli.loads(data.decode()), type=into)
