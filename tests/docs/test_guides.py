# SPDX-License-Identifier: MIT
"""The guides (docs/*.md): what they show is true.

    test_guides.py SOURCE_ROOT BUILD_ROOT GUIDE...

Of each guide a shell runs what its blocks say, from top to bottom, in a directory of its own that has
the source tree's netem/grids and examples in it:

    ```sh                   run; must end with 0
    ```sh elsewhere         needs hosts, root or a lab: not run, but commands and options must exist
    ```LANGUAGE FILE        written to FILE, for what comes after it
    ```text                 not looked at, like any other

Links to files of the source tree must lead somewhere. Ends with 1 and says where what is not so.
"""
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

PATIENCE_S = 120
source, build, guides = sys.argv[1], sys.argv[2], sys.argv[3:]
problems = []
nrun = nlooked = 0

env = dict(os.environ)
for name in [n for n in env if n.startswith("GRIDCOLL_")]:
    del env[name]
env["PATH"] = f"{build}/tools:{build}/launcher:" + env["PATH"]
env["PKG_CONFIG_PATH"] = f"{build}/meson-uninstalled"
env["CPATH"] = f"{source}/include" # which the uninstalled gridcoll.pc does not name
env["LD_LIBRARY_PATH"] = f"{build}/comm"
env["PYTHONPATH"] = f"{source}/python"
env["GRIDCOLL_LIBRARY"] = f"{build}/comm/libgridcoll.so.0"
helps = {}


def help_of(words):
    """What a command of ours says of itself, and how many words are its name. "": there is none such."""
    if words[0] == "gridcoll-run":
        name = words[:1]
    elif words[1:3] in (["lab", "run"], ["lab", "up"], ["shape", "run"], ["shape", "set"]):
        name = words[:3]
    else:
        name = words[:2]
    key = tuple(name)
    if key not in helps:
        r = subprocess.run(name + ["--help"], env=env, capture_output=True, text=True)
        helps[key] = r.stdout if r.returncode == 0 else ""
    return helps[key], len(name)


def look_at(command, where):
    """Options that a command line gives to commands of ours; one may start another behind --."""
    global nlooked
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split = True
    words = [w for w in lexer]
    ours = [i for i, w in enumerate(words) if w in ("gridcoll", "gridcoll-run")]
    for n, at in enumerate(ours):
        end = ours[n + 1] if n + 1 < len(ours) else len(words)
        text, length = help_of(words[at:end])
        nlooked += 1
        if not text:
            problems.append(f"{where}: {' '.join(words[at:at + 2])}: no such command")
        for word in words[at + length:end]:
            option = word.split("=")[0]
            if word == "--" or word in ("|", "&&", ";", "&", ">"):
                break
            if re.match(r"--?[a-zA-Z]", option) and not re.search(rf"(^|[\s,\[]){re.escape(option)}\b", text):
                problems.append(f"{where}: {' '.join(words[at:at + length])} has no {option}")


def run(block, directory, where):
    global nrun
    nrun += 1
    try:
        r = subprocess.run(["sh", "-eu"], input=block, env=env, cwd=directory, text=True, timeout=PATIENCE_S,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired:
        problems.append(f"{where}: not over in {PATIENCE_S} s:\n{block}")
        return
    if r.returncode:
        problems.append(f"{where}: ended with {r.returncode}:\n{block}--\n{r.stdout}")


def commands(block):
    return [line for line in block.replace("\\\n", " ").splitlines() if line.strip() and line[0] != "#"]


def check(guide, directory):
    with open(guide) as f:
        text = f.read()
    name = os.path.basename(guide)
    for m in re.finditer(r"^```(\w*) ?(\S*)\n(.*?)^```$", text, re.M | re.S):
        language, rest, block = m.groups()
        where = f"{name}:{text.count(chr(10), 0, m.start()) + 1}"
        if language == "sh" and rest == "elsewhere":
            for command in commands(block):
                look_at(command, where)
        elif language == "sh":
            run(block, directory, where)
        elif rest:
            with open(os.path.join(directory, rest), "w") as f:
                f.write(block)
    for m in re.finditer(r"\]\(([^)#:]+)(#[^)]*)?\)", text):
        if not os.path.exists(os.path.join(os.path.dirname(guide), m[1])):
            problems.append(f"{name}: a link to {m[1]}, which is not there")


for guide in guides:
    with tempfile.TemporaryDirectory() as directory:
        shutil.copytree(f"{source}/netem/grids", f"{directory}/netem/grids")
        shutil.copytree(f"{source}/examples", f"{directory}/examples")
        check(guide, directory)
if guides and (not nrun or not nlooked):
    problems.append("nothing was found to run: this test is broken")

print("\n".join(problems))
sys.exit(bool(problems))
