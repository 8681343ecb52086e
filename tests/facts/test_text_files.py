"""Small files of /sys and /proc, and those that are missing, forbidden or no files at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ncclcheck.facts.text_files import link_target, read_line, read_number, read_text, readable
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Fact, Missing


def why(fact: Fact[object]) -> str:
    assert isinstance(fact, Missing), fact
    return fact.missing


def test_a_line_comes_without_the_space_around_it_and_a_text_with_it(tmp_path: Path) -> None:
    file = tmp_path / "operstate"
    file.write_text(" up\n")
    assert read_text(file) == " up\n"
    assert read_line(file) == "up"


@pytest.mark.parametrize(("text", "number"), [("9000\n", 9000), ("-1\n", -1), ("0", 0)])
def test_a_number_is_a_number(tmp_path: Path, text: str, number: int) -> None:
    (tmp_path / "mtu").write_text(text)
    assert read_number(tmp_path / "mtu") == number


@pytest.mark.parametrize("text", ["", "max\n", "0x1", "1 2"])
def test_what_is_no_number_is_an_error_that_names_the_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "mtu").write_text(text)
    found = read_number(tmp_path / "mtu")
    assert isinstance(found, Missing)
    assert found.missing == "error"
    assert str(tmp_path / "mtu") in found.detail


def test_a_file_that_is_not_there_is_absent(tmp_path: Path) -> None:
    for read in (read_text, read_line, read_number, link_target):
        assert why(read(tmp_path / "nothing")) == "absent"
        assert why(read(tmp_path / "nothing" / "below")) == "absent"


def test_a_folder_is_no_text(tmp_path: Path) -> None:
    assert why(read_text(tmp_path)) == "error"


def test_a_file_that_always_refuses_is_an_error_and_no_crash() -> None:
    assert why(read_text(Path("/proc/self/mem"))) == "error"  # EIO at address 0


def test_a_name_with_a_zero_byte_is_an_error_and_no_crash() -> None:
    assert why(read_text(Path("/sys/class/net/a\0b"))) == "error"


def test_an_endless_file_ends_after_a_mebibyte() -> None:
    text = read_text(Path("/dev/zero"))
    assert isinstance(text, str)
    assert len(text) == 1 << 20


def test_bytes_that_are_no_text_can_still_be_sent_as_json(tmp_path: Path) -> None:
    (tmp_path / "name").write_bytes(b"eth\xff")
    assert b"eth" in encode(read_line(tmp_path / "name"))
    assert b"eth" in encode(readable(os.fsdecode(b"eth\xff")))
    assert b"eth" in encode(readable("eth\ud800"))


def test_a_link_is_named_by_its_end_though_nothing_is_there(tmp_path: Path) -> None:
    link = tmp_path / "driver"
    link.symlink_to("../../bus/pci/drivers/mlx5_core")
    assert link_target(link) == "mlx5_core"
    assert why(link_target(tmp_path)) == "error"  # not a link
