#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a header with a digest of the sources that make schedules: ranks whose digests differ may make
different ones, and would wait for each other's messages for ever.

    schedules.py FOLDER RELEASE HEADER DEPFILE

The same for the same sources, whatever compiles them, and wherever they are. Left out: the loops that
combine operands, whose results are the same everywhere, and the verifier, which only tests use."""
import hashlib
import pathlib
import sys

LEFT_OUT = ("kernels", "verify")


def main(folder, release, header, depfile):
    root = pathlib.Path(folder)
    files = sorted((p.relative_to(root).as_posix(), p) for p in root.rglob("*.[ch]")
                   if p.relative_to(root).parts[0] not in LEFT_OUT)
    total = hashlib.sha256()
    for name, path in files:
        data = path.read_bytes()
        total.update(b"%s %d\n" % (name.encode(), len(data)))
        total.update(data)
    pathlib.Path(header).write_text(
        f'#define GCI_RELEASE   "{release}"\n#define GCI_SCHEDULES 0x{total.hexdigest()[:16]}ull\n')
    seen = [p for _, p in files] + sorted({p.parent for _, p in files})
    pathlib.Path(depfile).write_text(
        f"{header}: " + " ".join(str(p).replace(" ", "\\ ") for p in seen) + "\n")


main(*sys.argv[1:])
