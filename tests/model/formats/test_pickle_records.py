"""A pickle is read without running any of it."""

from __future__ import annotations

import io
import os
import pickle  # noqa: TID251 (to write what is read)
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp

from ncclcheck.model.errors import DecodeError
from ncclcheck.model.formats.pickle_records import Record, read_records
from ncclcheck.model.formats.pickles import PickleTooLong


class Attack:
    """Makes a file when it is unpickled by pickle itself."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch {self.file}",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_what_it_names_is_not_called(tmp_path: Path, protocol: int) -> None:
    file = tmp_path / "ran"
    told: Any = read_records(pickle.dumps({"a": [Attack(file), 3]}, protocol))
    assert told["a"][1] == 3
    assert isinstance(told["a"][0], Record)
    assert told["a"][0].arguments == (f"touch {file}",)
    assert not file.exists()


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_fields_and_items_of_objects_are_kept(protocol: int) -> None:
    metadata = dcp.Metadata({}, storage_data={"x": 5})
    told: Any = read_records(
        pickle.dumps([metadata, OrderedDict(a=1), torch.float32, torch.Size([2])], protocol)
    )
    assert told[0].field("storage_data") == {"x": 5}
    assert told[0].field("nothing") is None
    assert told[1].items == {"a": 1}


@pytest.mark.parametrize(
    "data", [b"", b"garbage", b"\x80\x04.", b"\x82\x01.", b"(" * 100_000, b"\x80\x04\x8c\xff"], ids=repr
)
def test_damaged_ones_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        read_records(data)


def test_any_cut_of_a_real_one_is_refused_or_read() -> None:
    buffer = io.BytesIO()
    pickle.dump(dcp.Metadata({"a": dcp.metadata.BytesStorageMetadata()}, storage_data={}), buffer)
    for length in range(len(buffer.getvalue())):
        with pytest.raises(DecodeError):
            read_records(buffer.getvalue()[:length])


def test_slow_pickle_is_abandoned_and_not_called_damaged() -> None:
    late = iter([False, True])
    with pytest.raises(PickleTooLong):
        read_records(b"\x80\x02" + b"]" * 100_000 + b".", is_late=lambda: next(late))


def test_a_key_whose_hash_takes_for_ever_is_refused_at_once() -> None:
    doubled = b"".join(b"h" + bytes([n]) + b"h" + bytes([n]) + b"\x86q" + bytes([n + 1]) for n in range(60))
    with pytest.raises(DecodeError, match="tuples of tuples"):
        read_records(b"\x80\x02)q\x00" + doubled + b"}h\x3cK\x01s.")
    assert read_records(pickle.dumps({("a", 1): 2, 3: 4})) == {("a", 1): 2, 3: 4}
