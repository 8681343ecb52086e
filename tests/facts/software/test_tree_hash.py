"""The tree hash sees names and contents, and nothing that differs between equal trees."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from ncclcheck.facts.software.tree_hash import BYTES_LIMIT, TooMuchError, tree_hash


def _write(root: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return str(root)


@pytest.fixture
def tree(tmp_path: Path) -> str:
    return _write(tmp_path / "one", {"train.py": "run()", "lib/model.py": "class M: ...", "lib/empty": ""})


def test_equal_trees_in_different_places_are_equal(tree: str, tmp_path: Path) -> None:
    files = {"lib/empty": "", "lib/model.py": "class M: ...", "train.py": "run()"}
    other = _write(tmp_path / "elsewhere" / "other name", files)
    os.utime(Path(other, "train.py"), (1, 1))
    Path(other, "lib").chmod(0o700)
    assert tree_hash(tree, 5) == tree_hash(other, 5)
    assert tree_hash(tree, 5)[1] == 3


@pytest.mark.parametrize(
    "change",
    [
        {"train.py": "run ()"},
        {"new.py": ""},
        {"lib/.hidden": "x"},
        {"lib/sub/deep.cfg": "x"},
    ],
)
def test_any_change_shows(tree: str, change: dict[str, str]) -> None:
    before = tree_hash(tree, 5)
    _write(Path(tree), change)
    assert tree_hash(tree, 5)[0] != before[0]


def test_a_renamed_file_and_a_moved_boundary_show(tmp_path: Path) -> None:
    hashes = {
        tree_hash(_write(tmp_path / str(number), files), 5)[0]
        for number, files in enumerate([{"ab": "c"}, {"a": "bc"}, {"a/b": "c"}, {"a": "", "b": "c"}])
    }
    assert len(hashes) == 4


def test_what_is_made_by_running_does_not_count(tree: str) -> None:
    before = tree_hash(tree, 5)
    _write(
        Path(tree),
        {
            ".git/HEAD": "ref",
            "lib/__pycache__/model.cpython-311.pyc": "x",
            "old.pyc": "x",
            ".mypy_cache/CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55",
            ".mypy_cache/3.11/x.json": "{}",
            ".venv/pyvenv.cfg": "home = /usr",
            ".venv/lib/x.py": "x",
        },
    )
    (Path(tree) / "empty folder").mkdir()
    assert tree_hash(tree, 5) == before


def test_a_link_counts_by_its_target_and_is_not_followed(tree: str, tmp_path: Path) -> None:
    (Path(tree) / "data").symlink_to("/somewhere/huge")
    first = tree_hash(tree, 5)
    assert first[1] == 4
    (Path(tree) / "data").unlink()
    (Path(tree) / "data").symlink_to("/somewhere/else")
    assert tree_hash(tree, 5)[0] != first[0]
    (tmp_path / "link to tree").symlink_to(tree)
    assert tree_hash(str(tmp_path / "link to tree"), 5) == tree_hash(tree, 5)


def test_pipes_and_sockets_are_not_opened(tree: str) -> None:
    os.mkfifo(Path(tree) / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(Path(tree) / "socket"))
        assert tree_hash(tree, 5)[1] == 5


def test_names_of_any_bytes_are_hashed(tree: str) -> None:
    Path(os.fsdecode(os.fsencode(tree) + b"/\xff\n")).write_text("x")
    assert tree_hash(tree, 5)[1] == 4


def test_a_single_file_is_a_tree_of_one(tree: str, tmp_path: Path) -> None:
    assert tree_hash(tree + "/train.py", 5)[1] == 1
    same = _write(tmp_path / "three", {"train.py": "run()"})
    assert tree_hash(tree + "/train.py", 5) == tree_hash(same + "/train.py", 5) == tree_hash(same, 5)


def test_past_a_bound_there_is_no_hash(tree: str) -> None:
    with pytest.raises(TimeoutError):
        tree_hash(tree, -1)
    with pytest.raises(TooMuchError, match="more than 2 files"):
        tree_hash(tree, 5, files_limit=2)
    with pytest.raises(TooMuchError, match="more than"):
        tree_hash(tree, 5, bytes_limit=6)


def test_a_file_larger_than_the_bound_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "checkpoint.pt").open("wb") as file:
        file.truncate(BYTES_LIMIT + 1)
    with pytest.raises(TooMuchError, match="512 MiB"):
        tree_hash(str(tmp_path), 5)


def test_a_tree_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        tree_hash(str(tmp_path / "nothing"), 5)
