"""NC931 python-env: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_no_module() -> None:
    text = (
        "node7: Traceback (most recent call last):\n"
        'node7:   File "/w/train.py", line 2, in <module>\n'
        "node7: ModuleNotFoundError: No module named 'flash_attn'\n"
    )
    assert_cause(text, "python-env", {"node7"})


def test_import_error() -> None:
    text = (
        "6: ImportError: /lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.32' not found (requi"
        "red by /opt/ext.so)\n"
    )
    assert_cause(text, "python-env", {"rank 6"})
