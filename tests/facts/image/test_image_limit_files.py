"""The limits that files of an image set."""

from __future__ import annotations

from pathlib import Path

from ncclcheck.facts.image.image_limit_files import read_limit_files
from ncclcheck.facts.tree import machine
from ncclcheck.model.image import SetLimit


def test_every_line_that_sets_a_limit_is_found_with_its_place(tmp_path: Path) -> None:
    files = {
        "etc/security/limits.conf": "# *  soft memlock 64\n* soft memlock 64  # KiB\n*  -  core 0\nroot hard nofile\n",
        "etc/security/limits.d/90-a.conf": "@gpu hard nofile 1024\n",
        "etc/security/limits.d/old.bak": "* - memlock 1\n",
        "etc/profile": "export A=1; ulimit -S -n 1024\n# ulimit -l 64\n",
        "etc/profile.d/gpu.sh": "if true; then ulimit -l 128 && ulimit -c 0; fi\n",
        "root/.bashrc": "ulimit -u unlimited\nmyulimit -n 3\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert read_limit_files(machine(tmp_path)) == (
        SetLimit("/etc/security/limits.conf", 2, "*", "memlock", "64"),
        SetLimit("/etc/security/limits.d/90-a.conf", 1, "@gpu", "nofile", "1024"),
        SetLimit("/etc/profile", 1, "shells", "nofile", "1024"),
        SetLimit("/root/.bashrc", 1, "shells", "nproc", "unlimited"),
        SetLimit("/etc/profile.d/gpu.sh", 1, "shells", "memlock", "128"),
    )


def test_an_image_without_such_files_sets_nothing(tmp_path: Path) -> None:
    assert read_limit_files(machine(tmp_path)) == ()
