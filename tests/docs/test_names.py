#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What comments and pages name is there: files, functions, fields that are set, types and macros.

        test_names.py ROOT
"""
import os
import re
import subprocess
import sys

root = sys.argv[1]
os.chdir(root)
SKIP = {"CHANGELOG.md"}  # tells of what was, too


def listed():
    git = subprocess.run(["git", "ls-files"], capture_output=True, text=True)
    if git.returncode == 0 and git.stdout:
        return git.stdout.split("\n")[:-1]
    found = []
    for folder, folders, names in os.walk("."):
        folders[:] = [d for d in folders if not d.startswith((".", "build"))]
        found += [os.path.relpath(os.path.join(folder, n)) for n in names]
    return found


files = [f for f in listed() if os.path.isfile(f)]
base = {os.path.basename(f) for f in files}
# Made when it is built, others' headers, and a user's own in examples.
base |= {"schedules.h", "version.h", "stdio.h", "bio.h", "program.c", "program.py", "sum.c"}
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
code = set()
texts = []  # of comments and pages: file, line, text
for f in files:
    if f.startswith(("debian/", "bench/papers.out/")) or os.path.basename(f) in SKIP:
        continue
    if f.endswith((".c", ".h", ".cc")):
        text = open(f, encoding="utf-8").read()
        strings = STRING.sub(lambda m: m.group(0) if "/*" not in m.group(0) else '""', text)
        for m in COMMENT.finditer(strings):
            texts.append((f, strings.count("\n", 0, m.start()) + 1, m.group(0)))
        code |= set(re.findall(r"\b[A-Za-z_]\w*\b", COMMENT.sub(" ", strings)))
    elif f.endswith((".md", ".scd")):
        texts.append((f, 1, open(f, encoding="utf-8").read()))
    elif f.endswith((".py", ".map", ".in", ".sh", "meson.build", ".symbols")):
        code |= set(re.findall(r"\b[A-Za-z_]\w*\b", open(f, encoding="utf-8", errors="replace").read()))

wrong = 0
for f, line, text in texts:
    for m in re.finditer(r"(?<![\w./~$%{*-])((?:[\w-]+/)*[\w-]+\.(?:bpf\.c|[ch]|cc|py))\b(?![\w/*(])", text):
        name = m.group(1)
        here = os.path.normpath(os.path.join(os.path.dirname(f), name))
        ok = name in files or here in files or ("/" not in name and name in base)
        ok = ok or any(x.endswith("/" + name) for x in files)
        if not ok and "/" in name and name.split("/")[0] in ("linux", "sys", "asm", "net", "bpf", "netinet", "gridcoll"):
            ok = True
        if not ok:
            print(f"{f}:{line + text.count(chr(10), 0, m.start())}: {name}, which is no file")
            wrong += 1
    for m in re.finditer(r"\b((?:gci|gct|gcb|gcoll|GCI|GCT|GCB|GCOLL)_\w*[A-Za-z0-9])\b(?![*\w])", text):
        if m.group(1) not in code and "NAME" not in m.group(1):
            print(f"{f}:{line + text.count(chr(10), 0, m.start())}: {m.group(1)}, which is nowhere in the code")
            wrong += 1
    for m in re.finditer(r"\b([A-Za-z_]\w+)\(\)|(?<=[{ ,\t]\.)([a-z]\w+)(?= = )", text):
        name = m.group(1) or m.group(2)
        if name not in code:
            print(f"{f}:{line + text.count(chr(10), 0, m.start())}: {name}, which is nowhere in the code")
            wrong += 1
if len(texts) < 1000:
    print(f"{len(texts)} comments and pages: this test is broken")
    wrong += 1
sys.exit(wrong > 0)
