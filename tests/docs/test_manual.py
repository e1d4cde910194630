# SPDX-License-Identifier: MIT
"""The man pages of section 3 say of the library what its headers say: each function has its place, with
the declaration that it has there; so has each setting.

    test_manual.py SETTINGS.C HEADER... PAGE...
"""
import os
import re
import sys

three_forms = ("gcoll_collectives", "gcoll_send")
problems = []


def read(path):
    with open(path) as f:
        return f.read()


def declarations(text):
    """Name to declaration, of functions and types of functions."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    found = {}
    for m in re.finditer(r"^(?:GCOLL_API )?((?:typedef )?[a-z][^;{}()#]*\b(gcoll_\w+)\([^;{}]*\));", text, re.M):
        found[m[2]] = re.sub(r"\( ", "(", re.sub(r"\s+", " ", m[1]))
    return found


def section(page, name):
    m = re.search(r"^# %s\n(.*?)(?=^# |\Z)" % name, page, re.M | re.S)
    return m[1] if m else ""


settings, files = read(sys.argv[1]), sys.argv[2:]
header = declarations("".join(read(f) for f in files if f.endswith(".h")))
pages = {os.path.basename(f).split(".")[0]: read(f) for f in files if f.endswith(".scd")}
described = {}

for title, text in pages.items():
    names = section(text, "NAME").split(" - ")[0].replace("\n", " ").split(", ")
    declared = declarations(section(text, "SYNOPSIS"))
    for name in (n.strip() for n in names):
        if not name.startswith("gcoll_"):
            continue
        if name not in header:
            problems.append(f"{title}: {name} is in no header")
        elif declared.get(name) != header[name]:
            problems.append(f"{title}: SYNOPSIS has {declared.get(name)}, the header {header[name]}")
        for form in (name, name.replace("_", "_i", 1), name + "_init") if title in three_forms else (name,):
            if form in described:
                problems.append(f"{form} is in {title} and in {described[form]}")
            described[form] = title
    for name in declared:
        if name not in header or declared[name] != header[name]:
            problems.append(f"{title}: {name} is not so in a header: {declared[name]}")

for name in header:
    if name not in described and not header[name].startswith("typedef"):
        problems.append(f"{name} has no page")
for key in re.findall(r'\{"(\w+)", [01], set_', settings):
    if f"\n*{key}*\n" not in pages["gcoll_comm_set"]:
        problems.append(f"gcoll_comm_set: does not tell of the setting {key}")
if len(header) < 50 or len(pages) < 10 or len(re.findall(", set_", settings)) < 10:
    problems.append("little was found to compare: this test is broken")

print("\n".join(problems))
sys.exit(bool(problems))
