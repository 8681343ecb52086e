#!/usr/bin/env python3
"""Stub libraries with which a CUDA wheel of torch can be imported without NVIDIA's packages, for its CPU side.

usage: torch_stubs.py SITE_FOLDER OUT_FOLDER

The package index has no CPU wheels of most versions of torch, and NVIDIA's packages are another 3 GB for each.
SITE_FOLDER has torch/ in it, and in nvidia/ what there is of those packages. OUT_FOLDER goes into LD_LIBRARY_PATH: it
gets a file for every NVIDIA library that torch's own libraries need and that is not there. Every function in them
reports an error, so torch finds no GPU. Needs gcc, nm and readelf.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

# libcuda and libnvidia-ml belong to the driver: a machine without GPUs has none, and torch loads without them.
LIBRARY = re.compile(r"lib(cu(?!da\.)|nccl|nv(?!idia-ml))[\w-]*\.so")
FUNCTION = re.compile(r"(cu|nccl|nv|__cuda)\w+")
RETURNS_TEXT = re.compile(r"\w*Get(Status|Result)?(Error)?(String|Name)|ncclGetLastError")
NO_DEVICE = 100  # cudaErrorNoDevice; in NVIDIA's other libraries any number but 0 is an error
PRELUDE = f"""\
typedef const char *text;
int cudaGetDeviceCount(int *count) {{ *count = 0; return {NO_DEVICE}; }}
"""


def said(*command: str) -> list[str]:
    """Return the lines that a command wrote."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def needed(library: Path) -> set[str]:
    """Return the NVIDIA libraries that `library` is linked to."""
    names = (re.search(r"\(NEEDED\).*\[(.+)\]", line) for line in said("readelf", "-dW", str(library)))
    return {name[1] for name in names if name and LIBRARY.match(name[1])}


def symbols(libraries: Iterable[Path], which: str) -> dict[str, str]:
    """Return the versions ("" for none) of the `undefined` or `defined` symbols of the libraries, by name."""
    found = {}
    for library in libraries:
        for line in said("nm", "-D", f"--{which}-only", str(library)):
            name, _, version = line.split()[-1].partition("@")
            found[name] = version.lstrip("@")
    return found


def source(names: Iterable[str]) -> str:
    """Return the C source of functions that all report an error."""
    lines = [PRELUDE]
    for name in sorted({*names} - {"cudaGetDeviceCount"}):
        body = (
            'text {}(void) {{ return "a stub"; }}'
            if RETURNS_TEXT.fullmatch(name)
            else "int {}(void) {{ return {}; }}"
        )
        lines.append(body.format(name, NO_DEVICE))
    return "\n".join(lines) + "\n"


def version_script(symbols_by_file: dict[str, str]) -> str:
    """Return the linker's version script: without the versions, ld.so warns about every library."""
    nodes: dict[str, list[str]] = defaultdict(list)
    for name, version in sorted(symbols_by_file.items()):
        if version:
            nodes[version].append(f"{name};")
    return "".join(f"{version} {{ {' '.join(names)} }};\n" for version, names in nodes.items())


def main() -> int:
    """Write the libraries."""
    site, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    torch = [path for path in (site / "torch" / "lib").glob("*.so*") if path.is_file()]
    present = [path for path in site.glob("nvidia/**/*.so*") if path.is_file()]
    defined = symbols([*torch, *present], "defined")
    undefined = symbols(torch, "undefined")
    symbols_by_file = {
        name: version
        for name, version in undefined.items()
        if FUNCTION.fullmatch(name) and name not in defined
    }
    (out / "stubs.c").write_text(source(symbols_by_file))
    (out / "stubs.map").write_text(version_script(symbols_by_file))
    built = out / "libstubs.so"
    options = ["-w", "-O1", "-fPIC", "-shared", "-nostdlib"]
    if any(symbols_by_file.values()):
        options.append(f"-Wl,--version-script={out / 'stubs.map'}")
    subprocess.run(["gcc", *options, "-o", str(built), str(out / "stubs.c")], check=True)
    missing = set[str]().union(*(needed(library) for library in torch)) - {path.name for path in present}
    for name in missing:
        (out / name).unlink(missing_ok=True)
        (out / name).symlink_to(built.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
