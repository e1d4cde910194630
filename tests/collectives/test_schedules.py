# SPDX-License-Identifier: MIT
"""The digest of the sources that make schedules: the same for the same sources, wherever they are, and
another one once a byte of theirs or a name has changed.

    test_schedules.py SCRIPT FOLDER HEADER      HEADER as the build has it"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

script, folder, header = sys.argv[1:]
built = pathlib.Path(header).read_text().split("SCHEDULES ")[1]

with tempfile.TemporaryDirectory() as scratch:
    copy = pathlib.Path(shutil.copytree(folder, f"{scratch}/with a space/collectives"))

    def digest(of):
        subprocess.run([sys.executable, script, of, "1.2.3", f"{scratch}/h", f"{scratch}/d"], check=True)
        assert "registry.c" in pathlib.Path(f"{scratch}/d").read_text()
        return pathlib.Path(f"{scratch}/h").read_text().split("SCHEDULES ")[1]

    assert digest(folder) == built
    (copy / "notes.txt").write_text("no source")
    for path in copy.rglob("*.c"):
        path.touch()
    kernel = copy / "kernels/kernels.c"
    kernel.write_text(kernel.read_text() + "\n")
    assert digest(copy) == built
    assert "with\\ a\\ space" in pathlib.Path(f"{scratch}/d").read_text()
    tree = copy / "bcast/bcast.c"
    sources = tree.read_bytes()
    tree.write_bytes(sources.replace(b";", b" ;", 1))
    assert digest(copy) != built
    tree.write_bytes(sources)
    tree.rename(copy / "bcast/binary_tree.c")
    assert digest(copy) != built
