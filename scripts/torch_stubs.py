#!/usr/bin/env python3
"""Stub libraries with which a CUDA wheel of torch can be imported without NVIDIA's packages, for its CPU side.

usage: torch_stubs.py TORCH_LIB_FOLDER OUT_FOLDER

The package index has no CPU wheels of most versions of torch, and NVIDIA's packages are another 3 GB each. OUT_FOLDER
goes into LD_LIBRARY_PATH: it has one file for every NVIDIA library that torch's own libraries need. Every function in
them reports an error, so torch finds no GPU. Needs gcc, nm and readelf.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

# libcuda and libnvidia-ml belong to the driver: a machine without GPUs has none, and torch does not need them to load.
NVIDIA = re.compile(r"lib(cu(?!da\.)|nccl|nv(?!idia-ml))[\w-]*\.so")
SYMBOL = re.compile(r"(cu|nccl|nv|__cuda)\w+")
TEXT = re.compile(r"\w*Get(Status|Result)?(Error)?(String|Name)|ncclGetLastError|nvrtcGetErrorString")
NO_DEVICE = 100  # cudaErrorNoDevice; in the other libraries any number but 0 is an error
PRELUDE = f"""\
typedef const char *text;
int cudaGetDeviceCount(int *count) {{ *count = 0; return {NO_DEVICE}; }}
"""


def said(*words: str) -> list[str]:
    """Return the lines that a program wrote."""
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def needed(library: Path) -> set[str]:
    """Return the NVIDIA libraries that `library` is linked to."""
    names = (re.search(r"\(NEEDED\).*\[(.+)\]", line) for line in said("readelf", "-dW", str(library)))
    return {name[1] for name in names if name and NVIDIA.match(name[1])}


def symbols(library: Path, which: str) -> set[str]:
    """Return names, with `@VERSION` where the symbol has one, of `--undefined-only` or `--defined-only` symbols."""
    return {line.split()[-1].replace("@@", "@") for line in said("nm", "-D", which, str(library)) if line}


def source(names: set[str]) -> str:
    """Return the C source of functions that all report an error."""
    lines = [PRELUDE]
    for name in sorted(names - {"cudaGetDeviceCount"}):
        body = (
            'text {}(void) {{ return "a stub"; }}'
            if TEXT.fullmatch(name)
            else "int {}(void) {{ return {}; }}"
        )
        lines.append(body.format(name, NO_DEVICE))
    return "\n".join(lines) + "\n"


def version_script(wanted: set[str]) -> str:
    """Return the linker's version script: without the versions, ld.so warns about every library."""
    nodes: dict[str, list[str]] = defaultdict(list)
    for symbol in sorted(wanted):
        name, _, version = symbol.partition("@")
        if version:
            nodes[version].append(f"{name};")
    return "\n".join(f"{version} {{ {' '.join(names)} }};" for version, names in nodes.items()) + "\n"


def main() -> int:
    """Write the libraries."""
    torch, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    libraries = [path for path in torch.glob("*.so*") if path.is_file()]
    wanted = set[str]().union(*(symbols(path, "--undefined-only") for path in libraries))
    there = {name.partition("@")[0] for path in libraries for name in symbols(path, "--defined-only")}
    wanted = {
        name
        for name in wanted
        if SYMBOL.fullmatch(name.partition("@")[0]) and name.partition("@")[0] not in there
    }
    (out / "stubs.c").write_text(source({name.partition("@")[0] for name in wanted} | {"cudaGetDeviceCount"}))
    (out / "stubs.map").write_text(version_script(wanted))
    built = out / "libstubs.so"
    options = ["-w", "-O1", "-fPIC", "-shared", "-nostdlib", f"-Wl,--version-script={out / 'stubs.map'}"]
    subprocess.run(["gcc", *options, "-o", str(built), str(out / "stubs.c")], check=True)  # noqa: S607
    for name in sorted(set[str]().union(*(needed(path) for path in libraries))):
        (out / name).unlink(missing_ok=True)
        (out / name).symlink_to(built.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
