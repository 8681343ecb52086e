"""A recorded tree is read from inside only, whatever its links say, and nothing in it can hold us up."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from ncclcheck.facts.tree import Folder, machine, natural
from ncclcheck.model.fact import Missing


@pytest.fixture
def here(tmp_path: Path) -> Folder:
    """A machine below `tmp_path/root`, beside a secret that is not its own."""
    (tmp_path / "secret").write_text("hunter2")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("hunter2")
    root = tmp_path / "root"
    (root / "sys/devices/card").mkdir(parents=True)
    (root / "sys/devices/card/speed").write_text("16\n")
    (root / "sys/class").mkdir()
    return machine(root)


def missing(fact: object) -> str:
    assert isinstance(fact, Missing), fact
    return fact.missing


def test_a_relative_link_is_followed_inside(here: Folder) -> None:
    (here.root / "sys/class/card").symlink_to("../devices/card")
    folder = here.folder("sys/class/card")
    assert isinstance(folder, Folder)
    assert folder.shown() == "/sys/devices/card"
    assert here.number("sys/class/card/speed") == 16


def test_an_absolute_link_begins_at_the_root_of_the_tree(here: Folder) -> None:
    (here.root / "sys/class/card").symlink_to("/sys/devices/card")
    assert here.number("sys/class/card/speed") == 16
    (here.root / "sys/class/hostname").symlink_to("/etc/hostname")
    assert missing(here.text("sys/class/hostname")) == "absent"


@pytest.mark.parametrize(
    "target", ["../../../secret", "../../../../../../../../etc/passwd", "../../../outside/secret"]
)
def test_a_file_link_that_leads_out_is_not_followed(here: Folder, target: str) -> None:
    (here.root / "sys/class/stolen").symlink_to(target)
    assert missing(here.text("sys/class/stolen")) == "denied"
    assert not here.exists("sys/class/stolen")
    assert missing(here.link_name("sys/class/stolen")) == "denied"


def test_a_folder_link_that_leads_out_is_not_followed(here: Folder) -> None:
    (here.root / "sys/class/outside").symlink_to("../../../outside")
    (here.root / "sys/class/up").symlink_to("../../..")
    assert missing(here.text("sys/class/outside/secret")) == "denied"
    assert missing(here.folder("sys/class/up")) == "denied"
    assert missing(here.names("sys/class/outside")) == "denied"
    assert missing(here.text("../secret")) == "denied"


def test_a_link_that_is_stored_as_a_file_is_followed_like_one(here: Folder) -> None:
    (here.root / "sys/class/card").write_text("../devices/card")
    (here.root / "sys/class/out").write_text("../../../outside")
    assert here.number("sys/class/card/speed") == 16
    assert here.folder("sys/class").link_name("card") == "card"  # type: ignore[union-attr]
    assert missing(here.text("sys/class/out/secret")) == "denied"


def test_an_ordinary_file_is_no_link(here: Folder) -> None:
    (here.root / "sys/class/bonding_masters").write_text("bond0 bond1\n")
    (here.root / "sys/class/dots").write_text("../devices/card\n")
    assert missing(here.folder("sys/class/bonding_masters")) == "absent"
    assert missing(here.folder("sys/class/dots")) == "absent"
    assert here.line("sys/class/dots") == "../devices/card"


def test_a_link_that_dangles_still_tells_its_name(here: Folder) -> None:
    (here.root / "sys/class/driver").symlink_to("../bus/drivers/mlx5_core")
    folder = here.folder("sys/class")
    assert isinstance(folder, Folder)
    assert folder.link_name("driver") == "mlx5_core"
    assert folder.has("driver")
    assert not folder.exists("driver")
    assert missing(folder.link_name("nothing")) == "absent"
    assert missing(here.folder("sys/class/driver")) == "absent"


def test_a_ring_of_links_ends(here: Folder) -> None:
    (here.root / "sys/class/a").symlink_to("b")
    (here.root / "sys/class/b").symlink_to("a")
    (here.root / "sys/class/self").symlink_to("self/self/self")
    assert missing(here.text("sys/class/a")) == "error"
    assert missing(here.folder("sys/class/self")) == "error"


def test_pipes_sockets_devices_and_folders_are_never_opened_as_files(here: Folder) -> None:
    os.mkfifo(here.root / "sys/class/pipe")
    (here.root / "sys/class/zero").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(here.root / "socket"))
        for name in ("sys/class/pipe", "sys/class", "socket"):
            assert missing(here.data(name)) == "error"
    assert missing(here.data("sys/class/zero")) == "absent"
    assert missing(here.names("sys/class/pipe")) == "absent"


def test_a_huge_file_is_read_in_part(here: Folder) -> None:
    with (here.root / "sys/class/huge").open("wb") as file:
        file.truncate(1 << 40)
    assert here.data("sys/class/huge", 10) == bytes(10)
    assert len(here.text("sys/class/huge")) == 1 << 20  # type: ignore[arg-type]
    assert missing(here.line("sys/class/huge")) == "absent"


@pytest.mark.parametrize(
    ("text", "number"), [("16\n", 16), ("-1", -1), ("0x60", 0x60), ("0XFF", None), ("", None)]
)
def test_numbers_are_decimal_or_hexadecimal(here: Folder, text: str, number: int | None) -> None:
    (here.root / "number").write_text(text)
    told = here.number("number")
    assert (told == number) if number is not None else isinstance(told, Missing)


@pytest.mark.parametrize(
    "text", ["Invalid argument", "1 2", "1_000", "٣", "9" * 5000, "0x", "1.5", "nan", "\x1b[31m"]
)
def test_what_is_no_number_is_an_error_that_quotes_it(here: Folder, text: str) -> None:
    (here.root / "number").write_text(text)
    told = here.number("number")
    assert missing(told) == "error"
    assert "\x1b" not in str(told)
    assert len(str(told)) < 200


def test_a_name_that_cannot_be_is_missing(here: Folder) -> None:
    assert missing(here.text("nul\0byte")) == "error"
    assert missing(here.text("long" * 100)) == "error"


def test_names_are_in_natural_order_without_hidden_ones(here: Folder) -> None:
    for name in ("mlx5_10", "mlx5_2", "bond0", ".keep", "2", "10"):
        (here.root / "sys/class" / name).touch()
    assert here.names("sys/class") == ("2", "10", "bond0", "mlx5_2", "mlx5_10")
    assert sorted(["a10", "a9b", "a9", "a"], key=natural) == ["a", "a9", "a9b", "a10"]


def test_the_root_has_to_be_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "nothing"):
        with pytest.raises(OSError, match=r"directory"):
            machine(path)
