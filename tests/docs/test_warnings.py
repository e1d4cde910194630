#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each warning and error of the log has an entry in docs/troubleshooting.md, and each entry a line.

        test_warnings.py ROOT

The bold head of an entry, under HEADING, is the line's format string, with anything for a conversion."""
import glob
import os
import re
import sys

root = sys.argv[1]
FOLDERS = "base transport comm flow job launcher shaping netem collectives".split()
HEADING = "## Lines of the log"
PAGE = "docs/troubleshooting.md"
BEGINS = re.compile(r"\bgci_log\((?!enum )")
CALL = re.compile(r"\bgci_log\((?!enum )((?:\"(?:\\.|[^\"\\])*\"|[^\";])*)\);", re.S)
FORMAT = re.compile(r'(?:"(?:\\.|[^"\\])*"|PRI[a-z]\d+|\s)*"(?:\\.|[^"\\])*"(?:\s*PRI[a-z]\d+)?', re.S)
CONVERSION = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?(?:hh|h|ll|l|z|j)?[a-zA-Z%]")
COMMENT = re.compile(r"/\*.*?\*/", re.S)


def plain(text):
    """As it reads, in one line."""
    return re.sub(r"\s+", " ", text.replace('\\"', '"')).strip()


def line_of(args):
    """What a call's format string prints: how it reads here, and an expression."""
    m = FORMAT.search(args)
    if not m:
        return "no format string", None
    text = re.sub(r"PRI[a-z]\d+", '"u"', m.group(0))
    text = plain("".join(re.findall(r'"((?:\\.|[^"\\])*)"', text)))
    return CONVERSION.sub("...", text), re.compile(".*".join(map(re.escape, CONVERSION.split(text))))


page = open(os.path.join(root, PAGE), encoding="utf-8").read()
if page.count(HEADING) != 1:
    sys.exit(f"{PAGE}: no section \"{HEADING}\"")
section = page.split(HEADING)[1].split("\n## ")[0]
heads = [plain(h) for h in re.findall(r'\*\*"(.+?)"\*\*', section, re.S)]
wrong, used, ncalls = 0, set(), 0
for path in sorted(p for f in FOLDERS for p in glob.glob(f"{root}/{f}/**/*.[ch]", recursive=True)):
    text = COMMENT.sub(lambda m: "\n" * m.group(0).count("\n"), open(path, encoding="utf-8").read())
    if len(BEGINS.findall(text)) != len(CALL.findall(text)):
        print(f"{os.path.relpath(path, root)}: a call of gci_log that this test cannot read")
        wrong += 1
    for m in CALL.finditer(text):
        where = f"{os.path.relpath(path, root)}:{text.count(chr(10), 0, m.start()) + 1}"
        levels = re.findall(r"GCI_LOG_(\w+)", m.group(1))
        if not levels:
            print(f"{where}: the level is not written GCI_LOG_..., and so this test cannot see it")
            wrong += 1
        if not {"WARN", "ERROR"} & set(levels):
            continue
        ncalls += 1
        line, pattern = line_of(m.group(1))
        found = [h for h in heads if pattern and pattern.fullmatch(h)]
        used |= set(found)
        if not found:
            print(f"{where}: {PAGE}, \"{HEADING}\", lacks the entry **\"{line}\"**: what it means and what to do")
            wrong += 1
for h in heads:
    if h not in used:
        print(f"{PAGE}: **{h}** is no warning or error of the log")
        wrong += 1
if ncalls < 20:
    print(f"{ncalls} warnings found: this test is broken")
    wrong += 1
sys.exit(wrong > 0)
