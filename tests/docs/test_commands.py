# SPDX-License-Identifier: MIT
"""Every command line that README.md, the guides (docs/*.md) and the man pages show works as it stands.

    test_commands.py [--lab] SOURCE_ROOT BUILD_ROOT DOCUMENT...

Each document is read from top to bottom, and its commands are run one after the other on the first of
eight hosts (sandbox.py), whose directory has what a reader has by then: a clone, and the files that the
text names. Nothing but that host has those files. Commands are

    ```sh blocks of guides; ```LANGUAGE FILE is written to FILE, for what comes after it
    indented blocks of README.md; of a transcript the lines after "$ "
    indented and ``` blocks of man pages, where a line in them begins with a command

A command needs no entry here to be run. What must not, or not so, has one in NOT_RUN, BESIDE or LESS
below, and an entry that no document has is an error. With --lab, instead, those lines are run that bring
up a lab, here, as they stand. Without it, commands and options in these and in the running text must exist.
Links to files of the source tree must lead somewhere.
"""
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import sandbox

PATIENCE_S = 240
LAB_PATIENCE_S = 1800
lab = sys.argv[1] == "--lab"
source, build, *documents = map(os.path.normpath, sys.argv[2 if lab else 1:])
problems = []
nrun = nlooked = 0

# Commands that are not run here, and why.
NOT_RUN = {
    "./quickstart": "installs packages and brings up a lab; .ci and launcher/ssh_lab do",
    "./quickstart            # installs what is missing, builds, runs the main job": "as above",
    "./check                 # installs what is missing, builds, runs a covering sample of the tests": "runs this test",
    "ninja -C build && meson test -C build collectives/algorithms collectives/mutants comm/ops":
        "builds and tests the tree that runs this test; the names are looked up",
    "GCI_ALL=1 GCI_ONLY=bcast:sequential build/tests/collectives/test_algorithms":
        "is for the algorithm that the page has the reader write",
    "tc qdisc replace dev eth0 root fq": "what it names needs a kernel with fq",
    "gridcoll shape run --to 10.2.0.0/16 --initial-window 40 -- gridcoll-run ...": "ends in dots",
}

# Commands that need something beside them: a job that runs, or the other half of one.
BESIDE = {
    r"gridcoll-run --serve 7000 -n 8": "ranks",
    r"gridcoll-run --join head:7000 ": "service",
    r"gridcoll (ctl|top)\b": "job",
    r"gridcoll shape ": "fq",
}
SERVICE = "gridcoll-run --serve 7000 -n 8 --secret-file secret"
RANK = "exec gridcoll-run --join head:7000 --secret-file secret ./program"
JOB = "exec gridcoll-run --grid my.grid --wan-budget 'kyoto>tokyo=4Gbit' gridcoll bench bcast -b 1MiB --iters 1000000"

# Sizes of what is measured between hosts, which all share the processors here: a hundredth is enough.
LESS = {"32MiB": "256KiB", "256MiB": "1MiB", "4MiB": "64KiB", "1MiB": "16KiB"}

# What a.out and program are here.
GREETS = re.compile(r"(?<!--dry-run )\./(a\.out|program|hello_bcast)\b(?!.*2>)")

# Where hosts share directories.
SHARED = re.compile(r"\b(srun|pbsdsh) ")
BATCH = {"PBS_O_WORKDIR": "/shared", "PBS_JOBID": "4711.head", "PBS_NODEFILE": "/shared/nodes"}

# Ends otherwise than with 0: doctor has something to say of these hosts, but says it of each.
DOCTOR = re.compile(r"^gridcoll-run .*gridcoll doctor\b")


def wrong(where, what, command="", output=""):
    problems.append(f"{where}: {what}" + (f":\n{command}" if command else "") + (f"\n--\n{output}" if output else ""))


# ---- what documents show

BLOCK, FILE, PODS = "block", "file", "pods"


def logical_lines(block):
    return [line for line in re.sub(r"\\\n|(?<=&&)\n", " ", block).splitlines() if line.strip() and line[0] != "#"]


def of_guide(text):
    for m in re.finditer(r"^```(\w*) ?(\S*)\n(.*?)^```$", text, re.M | re.S):
        where = text.count("\n", 0, m.start()) + 1
        if m[1] == "sh":
            yield where, BLOCK, m[3]
        elif m[2]:
            yield where, FILE, (m[2], m[3])


def of_readme(text):
    for m in re.finditer(r"(?:^    .*\n|^\n(?=    ))+", re.sub(r"^```.*?^```$", lambda b: "\n" * b[0].count("\n"), text,
                         flags=re.M | re.S), re.M):
        where = text.count("\n", 0, m.start()) + 1
        block = re.sub(r"^    ", "", m[0], flags=re.M)
        if re.search(r"^\$ ", block, re.M):
            block = "".join(line[2:] + "\n" for line in block.splitlines() if line.startswith("$ "))
        yield where, BLOCK, block


COMMAND = re.compile(r"(gridcoll|gridcoll-run|tc|sysctl|cc|export|umask|\(umask|srun|pbsdsh|kubectl|ssh)\b ")


def of_page(text):
    # As it is printed: scdoc's escapes and marks are not.
    unmark = lambda s: re.sub(r"\\(.)", r"\1", re.sub(r"(?<![\w\\])_([^_]+)_(?!\w)", r"\1", s))
    for m in re.finditer(r"^```\n(.*?)^```$|(?<=\n\n)(\t[^\n]*\n(?:[^\n]+\n)*)", text, re.M | re.S):
        where = text.count("\n", 0, m.start()) + 1
        literal = m[1] is not None
        block = m[1] if literal else re.sub(r"^\t", "", m[2], flags=re.M)
        block = re.sub(r"\+\+$", "", block, flags=re.M)
        block = block.replace("\\\\", "\\") if literal else unmark(block)
        if COMMAND.match(block) or block.startswith("#!/bin/sh"):
            yield where, BLOCK, block
        elif "command: [" in block:
            yield where, PODS, block


def read_document(path):
    with open(path) as f:
        text = f.read()
    return text, list((of_page if path.endswith(".scd") else of_guide if "/docs/" in path else of_readme)(text))


# ---- whether options exist

helps = {}
here = dict(os.environ, PATH=f"{build}/tools:{build}/launcher:" + os.environ["PATH"])
for name in [n for n in here if n.startswith("GRIDCOLL_")]:
    del here[name]


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
        r = subprocess.run(name + ["--help"], env=here, capture_output=True, text=True)
        helps[key] = r.stdout if r.returncode == 0 else ""
    return helps[key], len(name)


def look_at(command, where):
    """Options that a command line gives to commands of ours; one may start another behind --."""
    global nlooked
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split = True
    try:
        words = [w for w in lexer]
    except ValueError:
        return
    ours = [i for i, w in enumerate(words) if w in ("gridcoll", "gridcoll-run")]
    for n, at in enumerate(ours):
        end = ours[n + 1] if n + 1 < len(ours) else len(words)
        if words[at] == "gridcoll" and not (at + 1 < end and re.match(r"-|[a-z]+$", words[at + 1])):
            continue
        text, length = help_of(words[at:end])
        nlooked += 1
        if not text:
            wrong(where, f"{' '.join(words[at:at + 2])}: no such command")
        for word in words[at + length:end]:
            option = word.split("=")[0]
            if word in ("--", ":", "|", "&&", ";", "&", ">"):
                break
            if re.match(r"--?[a-zA-Z]", option) and not re.search(rf"(^|[\s,\[]){re.escape(option)}\b", text):
                wrong(where, f"{' '.join(words[at:at + length])} has no {option}")


def look_at_text(path, text):
    name = os.path.basename(path)
    for m in re.finditer(r"`(gridcoll(?:-run)? [^`]*)`", text) if path.endswith(".md") else ():
        look_at(m[1].replace("\n", " "), f"{name}:{text.count(chr(10), 0, m.start()) + 1}")
    for m in re.finditer(r"\]\(([^)#:]+)(#[^)]*)?\)", text) if path.endswith(".md") else ():
        if not os.path.exists(os.path.join(os.path.dirname(path), m[1])):
            wrong(name, f"a link to {m[1]}, which is not there")


# ---- running them

class Reader:
    """Who reads a document with a terminal on k1 beside it, where what was exported stays so."""

    def __init__(self, grid, env):
        self.grid, self.env = grid, env

    def sh(self, script, host="k1", env=None, **more):
        more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **more}
        if host == "k1":
            keep = "" if env else 'trap "export -p >/home/me/.env" EXIT\n'
            script = keep + "[ ! -e /home/me/.env ] || . /home/me/.env\n" + script
            env = {**self.env, **(env or {})}
        return self.grid.popen(host, script, env=env, **more)

    def finish(self, p, where, command, may_fail=False):
        try:
            output, _ = p.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            output, _ = p.communicate()
            return wrong(where, f"not over in {PATIENCE_S} s", command, output) or output
        if p.returncode and not may_fail:
            wrong(where, f"ended with {p.returncode}", command, output)
        elif GREETS.search(command) and "hello from" not in output:
            wrong(where, "printed no greeting", command, output)
        return output

    def ranks(self, script, where, variables, command):
        """One on each host, and the service that they join; all must end well."""
        service, before = self.sh(command, env={"BESIDE": "ranks"}), len(problems)
        started = [self.sh(script, host, {v: str(i) for v in variables}) for i, host in enumerate(sandbox.HOSTS)]
        for i, p in enumerate(started):
            self.finish(p, f"{where}, rank {i}", script)
        if len(problems) > before:
            service.terminate()
        self.finish(service, where, command)

    def pods(self, manifest, where):
        """What Kubernetes would start: for each index a pod with these words and variables. A second site's
        come beside those of the first one, which are as many."""
        global nrun
        nrun += 1
        text = re.sub(r"\n\s*", " ", re.search(r"command: \[(.*?)\]\n", manifest, re.S)[1])
        words = [a or b for a, b in re.findall(r'"([^"]*)"|([^\s,]+)', text)]
        variables = dict(re.findall(r"{name: (\w+), value: (\w+)}", manifest))
        command, hosts, started = shlex.join(words), sandbox.HOSTS, []
        if "-n 16" in text:
            kyoto, hosts = [hosts[i // 2] for i in range(8)], [hosts[4 + i // 2] for i in range(8)]
            first = re.sub(r"-n 8\b", "-n 16", self.first_pods)
            started = [self.sh(first, h, {"JOB_COMPLETION_INDEX": str(i), "GRIDCOLL_CLUSTER": "kyoto"})
                       for i, h in enumerate(kyoto)]
        else:
            self.first_pods = command
        started += [self.sh(command, h, {"JOB_COMPLETION_INDEX": str(i), **variables}) for i, h in enumerate(hosts)]
        for p in started:
            self.finish(p, where, shlex.join(words))

    def run(self, command, where):
        global nrun
        nrun += 1
        kind = next((k for pattern, k in BESIDE.items() if re.match(pattern, command)), None)
        if kind == "ranks":
            self.ranks(RANK, where, ["GRIDCOLL_RANK"], command)
        elif kind == "service":
            self.ranks(command, where, ["JOB_COMPLETION_INDEX", "PMI_RANK"], SERVICE)
        elif kind == "job":
            job = self.sh(JOB, env={"BESIDE": command}, stdout=subprocess.DEVNULL)
            until = "until gridcoll ctl status >/dev/null 2>&1; do sleep 0.1; done\n"
            self.finish(self.sh(until + command), where, command)
            job.terminate()
            job.wait()
        elif re.match(r"gridcoll shape\b", command) and not self.has_bpf():
            print(f"{where}: not run, since gridcoll was built without eBPF: {command}")
        elif kind == "fq" and not self.has_fq():
            print(f"{where}: not run, since the kernel has no fq here: {command}")
        elif SHARED.search(command):
            self.finish(self.sh(command, env=BATCH, directory="/shared"), where, command)
        else:
            output = self.finish(self.sh(command), where, command, DOCTOR.match(command))
            if DOCTOR.match(command):
                missing = [h for h in sandbox.HOSTS if not re.search(rf"\b{h}: ", output)]
                if missing:
                    wrong(where, f"says nothing of {' '.join(missing)}", command, output)

    def has_bpf(self):
        return self.sh("gridcoll --version | grep -q 'features:.* +bpf'").wait() == 0

    def has_fq(self):
        return self.sh("tc qdisc replace dev eth2 root fq").wait() == 0


def of_lab(unit):
    """Brings one up, or reads what the line before has written there."""
    return re.search(r"\bgridcoll lab run\b|--grid results/|\breport results$|--explain bcast\.trace", unit)


def smaller(command):
    if not re.search(r"gridcoll (bench|tune|probe)\b", command) or "--simulated" in command:
        return command
    command = re.sub(r"gridcoll probe\b", "gridcoll probe --time 3s", command)
    return re.sub(r"\b(%s)\b" % "|".join(LESS), lambda m: LESS[m[1]], command)


def units(block):
    """What is run by one shell: a block, or its lines, where one of them is not run like others."""
    lines = logical_lines(block)
    if any(line in NOT_RUN or of_lab(line) or re.match("|".join(BESIDE), line) for line in lines):
        return lines
    return [block]


seen = set()


def check(path, reader):
    text, blocks = read_document(path)
    look_at_text(path, text)
    for at, kind, what in blocks:
        where = f"{os.path.basename(path)}:{at}"
        if kind == FILE:
            p = reader.sh(f"cat >{what[0]}", stdin=subprocess.PIPE)
            p.communicate(what[1])
            continue
        if kind == PODS:
            reader.pods(what, where)
            continue
        for line in logical_lines(what):
            look_at(line, where)
        for unit in units(what):
            if unit in NOT_RUN:
                seen.add(unit)
            elif not of_lab(unit):
                begun = time.monotonic()
                reader.run(smaller(unit), where)
                print(f"{where}: {time.monotonic() - begun:.1f} s: {unit.strip()[:100]}", flush=True)


# What the reader has: names that the documents use.
FILES = r"""
cd /home/me
mkdir files
cd files
for f in SOURCE/*; do
	case ${f##*/} in build*) ;; *) ln -s "$f" . ;; esac
done
ln -s BUILD build
rm netem examples
mkdir -p netem dataset set data logs
cp -rL SOURCE/netem/grids netem/
cp -rL SOURCE/examples .
cp examples/hello_bcast.c program.c
cat >program.py <<'EOF'
import array, gridcoll
with gridcoll.init() as world:
    assert world.allreduce(array.array("i", [world.rank]))[0] == world.size * (world.size - 1) // 2
EOF
for f in model.bin FILE table.bin dataset/a dataset/b set/a set/b data/a data/b; do head -c 300000 /dev/urandom >$f; done
cp netem/grids/quickstart.grid .
for f in my.grid sites.grid two.grid; do
	cat >$f <<'EOF'
GRID
EOF
done
cp my.grid /shared/
printf '%s\n' HOSTS >/shared/nodes
(umask 077 && gridcoll-run --new-secret >/shared/key)
"""

# What all hosts have. (A secret of others is refused where others can read it.)
EVERYWHERE = r"""
cc SOURCE/examples/hello_bcast.c -ISOURCE/include -LBUILD -lgridcoll -Wl,-rpath,BUILD -o a.out
cp a.out program
cp a.out /shared/program
cp a.out /shared/a.out
for f in secret /secret/key; do (umask 077 && cat /shared/key >$f); done
echo nothing >/var/log/app.log
[ "$(hostname)" != k2 ] || echo another >model.bin # for cp --from k2
"""


def set_up(grid):
    """Programs on all hosts, files on the first one; and the library is installed."""
    reader = Reader(grid, {})

    def on(host, script):
        for name, value in (("SOURCE", source), ("BUILD", build), ("GRID", tutorial["my.grid"]),
                            ("HOSTS", " ".join(sandbox.HOSTS))):
            script = script.replace(name, value)
        reader.finish(reader.sh(script, host, {"SET": "UP"}), "set up", script)

    tutorial = dict(w for _, kind, w in read_document(f"{source}/docs/tutorial.md")[1] if kind == FILE)
    on("k1", FILES)
    for host in sandbox.HOSTS:
        on(host, EVERYWHERE)
    on("k1", "mv a.out program secret /home/me/files/")
    installed = f"{grid.dir}/grid/installed"
    reader.finish(reader.sh("meson install -C build", directory="/home/me/files"), "set up", "meson install")

    def where(name):
        for d, _, files in os.walk(installed):
            if name in files:
                return "/grid/installed" + d[len(installed):]

    pc = where("gridcoll.pc") or "nowhere"
    grid.set_env(PKG_CONFIG_PATH=pc, PKG_CONFIG_SYSROOT_DIR="/grid/installed", LD_LIBRARY_PATH=os.path.dirname(pc),
                 PYTHONPATH=os.path.dirname(where("_installed.py") or "/nowhere/gridcoll"))


def every_document():
    return [f"{source}/README.md"] + sorted(f"{source}/docs/{f}" for f in os.listdir(f"{source}/docs")
                                            if f.endswith((".md", ".scd")))


def look_for_lists():
    """What is listed above must be in some document."""
    shown = [unit for path in every_document() for _, kind, what in read_document(path)[1] if kind == BLOCK
             for unit in units(what)]
    for entry in NOT_RUN:
        if entry not in shown:
            wrong("NOT_RUN", "no document has this", entry)
    for pattern in BESIDE:
        if not any(re.match(pattern, unit) for unit in shown):
            wrong("BESIDE", "no document has this", pattern)


def look_at_readme(path):
    """What README.md counts is what there is."""
    ask = lambda *words: subprocess.run(["gridcoll", *words], env=here, capture_output=True, text=True).stdout
    with open(path) as f:
        text = f.read()
    listed = re.findall(r"^([a-z_]+) +\S", ask("bench", "--list"), re.M)
    operations = set(listed)
    claim = re.search(r"There are (\d+) algorithms of (\w+) operations", text)
    words = "zero one two three four five six seven eight nine ten".split()
    if not claim or (int(claim[1]), claim[2]) != (len(listed), words[len(operations)]):
        wrong("README.md", f"{claim and claim[0]}: gridcoll bench --list has {len(listed)} of {len(operations)}")
    tools = set(re.findall(r"^  ([a-z]+) ", ask("--help"), re.M))
    for m in re.finditer(r"`gridcoll cp`((?:,\s+`[a-z]+`)+)", text):
        named = {"cp", *re.findall(r"`([a-z]+)`", m[1])} | {"lab"} # of which the sentence tells apart
        if named != tools:
            wrong("README.md", f"names tools {sorted(named)}, gridcoll --help {sorted(tools)}")


def check_lab(path):
    """Lines that bring up a lab, on this machine, as they stand."""
    global nrun
    with tempfile.TemporaryDirectory() as directory:
        files = FILES.replace("cd /home/me\n", f"cd {directory}\n").replace("/shared", directory)
        tutorial = dict(w for _, kind, w in read_document(f"{source}/docs/tutorial.md")[1] if kind == FILE)
        for name, value in (("SOURCE", source), ("BUILD", build), ("GRID", tutorial["my.grid"]), ("HOSTS", "none")):
            files = files.replace(name, value)
        greet = build
        files += (f"cc examples/hello_bcast.c -Iinclude -L{greet} -lgridcoll -Wl,-rpath,{greet} -o a.out\n"
                  "cp a.out hello_bcast\n")
        subprocess.run(["sh", "-euc", files], env=here, check=True)
        for at, kind, what in read_document(path)[1]:
            for unit in units(what) if kind == BLOCK else ():
                if not of_lab(unit):
                    continue
                nrun += 1
                where, begun = f"{os.path.basename(path)}:{at}", time.monotonic()
                r = subprocess.run(["sh", "-euc", unit], env=here, cwd=f"{directory}/files", text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LAB_PATIENCE_S)
                print(f"{where}: {time.monotonic() - begun:.1f} s: {unit.strip()[:100]}", flush=True)
                if r.returncode:
                    wrong(where, f"ended with {r.returncode}", unit, r.stdout)


def main():
    if lab:
        if not shutil.which("linux.uml"):
            raise sandbox.Unavailable("no linux.uml (apt-get install user-mode-linux)")
        for path in documents:
            check_lab(path)
        return
    sandbox.enter_namespaces()
    look_for_lists()
    grid = sandbox.Grid(source, build)
    try:
        set_up(grid)
        for path in documents if not problems else ():
            anew = "rm -rf /home/me/gridcoll /home/me/.env && cp -a /home/me/files /home/me/gridcoll"
            grid.popen("k1", anew, directory="/home/me").wait()
            # Only README.md tells how to get the programs in the PATH.
            readme = path.endswith("README.md")
            check(path, Reader(grid, {"PATH": sandbox.PATH} if readme else {}))
            if readme:
                look_at_readme(path)
    finally:
        grid.close()


def told_to_end(*_):
    raise SystemExit("told to end")


signal.signal(signal.SIGTERM, told_to_end)
try:
    main()
except sandbox.Unavailable as e:
    print("skipped:", e)
    sys.exit(77)
if not nrun:
    wrong("this test", "nothing was found to run")
print("\n\n".join(problems))
sys.exit(bool(problems))
