# SPDX-License-Identifier: MIT
"""In a shell, the tab key offers the commands, and of each all options that its --help shows.

    test_completions.py SHELL FILE     $GRIDCOLL and $GRIDCOLL_RUN are the programs
"""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

SHELL, FILE = sys.argv[1], os.path.abspath(sys.argv[2])
# Line, what is offered, what is not.
CASES = [
    ("gridcoll ", "cp bench lab", "status"),
    ("gridcoll c", "cp ctl", "bench"),
    ("gridcoll --", "--version --help", "--quiet"),
    ("gridcoll shape ", "status set clear run", "budget"),
    ("gridcoll cp -a vand", "vandegeijn vandegeijn-mod", "auto pipeline"),
    ("gridcoll cp -q --re", "--resume", "--quiet"),
    ("gridcoll plan -r 0 sc", "scatter", "reduce"),
    ("gridcoll plan --grid my", "my.grid", "other"),
    ("gridcoll doctor --root subd", "subdir", "subfile"),
    ("gridcoll lab run --backend ", "auto host tap uml", "my.grid"),
    ("gridcoll lab run --quiet m", "my.grid", "other"),
    ("gridcoll-run -n 4 gridcoll", "gridcoll gridcoll-run", "gridcoll.fish"),
]
if SHELL != "bash":  # there the file for another command's line is bash-completion's to load
    CASES.append(("gridcoll-run -n 4 gridcoll cp --re", "--resume", "--quiet"))


def by_bash(lines, home):
    """What is offered, line by line."""
    script = f". {FILE}\n" + """
while IFS= read -r line; do
    read -ra COMP_WORDS <<<"$line"
    [ "${line% }" = "$line" ] || COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    _gridcoll 2>/dev/null
    echo "${COMPREPLY[*]}"
done"""
    run = subprocess.run(["bash", "--norc", "-c", script], input="\n".join(lines) + "\n", text=True,
                         cwd=home, stdout=subprocess.PIPE, timeout=120, check=True)
    return [line.split() for line in run.stdout.splitlines()]


def by_fish(lines, home):
    script = f"source {FILE}\nwhile read line; complete -C $line | string replace -r '\\t.*' ''; echo =; end"
    run = subprocess.run(["fish", "--no-config", "-c", script], input="\n".join(lines) + "\n", text=True,
                         cwd=home, stdout=subprocess.PIPE, timeout=120, check=True)
    return [[w.rstrip("/") for w in part.split()] for part in run.stdout.split("=\n")[:-1]]


class Terminal:
    """zsh completes at a terminal only."""

    def __init__(self, home):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(home)
            os.execvp("zsh", ["zsh", "-f", "-i"])
        self.say("PS1='READY> ' LISTMAX=10000; unsetopt zle_bracketed_paste; stty cols 1000 rows 1000\n")
        self.say(f"fpath=({os.path.dirname(FILE)} $fpath); autoload -U compinit; compinit -u -D\n")
        self.prompted("setopt noautomenu nolistambiguous; bindkey -e; echo UP$((1 + 1))\n", "UP2\r\n")

    def say(self, text, awaited="READY> "):
        os.write(self.fd, text.encode())
        return self.read(awaited)

    def read(self, awaited):
        got, end = "", time.monotonic() + 60
        while awaited not in got:
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                raise SystemExit(f"zsh said, when it should have said {awaited!r}: {got!r}")
            got += os.read(self.fd, 65536).decode(errors="replace")
        return got

    def prompted(self, text, said):
        """As say(), up to the prompt that follows: an earlier one is no sign that keys are read by the
        line editor again."""
        shown = self.say(text, said)
        return shown if "READY> " in shown.split(said)[-1] else shown + self.read("READY> ")

    def complete(self, line):
        """All that the terminal shows after a tab. The line is thrown away then (^U), and the shell
        says something that no completion does."""
        return self.prompted(f"{line}\t\x15echo D$((40 + 2))E\n", "D42E\r\n")

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def by_zsh(lines, home):
    terminal = Terminal(home)
    offered = []
    for line in lines:
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f]", " ", terminal.complete(line))
        offered.append([w.rstrip("/") for w in text.split()])
    terminal.close()
    return offered


def options(program, *command):
    """The long options in the first columns of --help, and of the usage."""
    env = {k: v for k, v in os.environ.items() if k != "GRIDCOLL_LAB"}
    text = subprocess.run([program, *command, "--help"], stdout=subprocess.PIPE, text=True, env=env,
                          check=True).stdout
    return (re.findall(r"^ +(?:-\w(?: [A-Z]+)?, )?(--[a-z][a-z0-9-]*)", text, re.M)
            + re.findall(r", (--[a-z][a-z0-9-]*) [A-Z]", text)
            + re.findall(r"\[(--[a-z][a-z0-9-]*)", re.match(r"(usage:|       ).*\n(       .*\n)*", text)[0]))


def main():
    if not shutil.which(SHELL):
        print(f"skipped: no {SHELL}")
        return 77
    gridcoll, launcher = os.environ["GRIDCOLL"], os.environ["GRIDCOLL_RUN"]
    os.environ["PATH"] = os.pathsep.join(
        [os.path.dirname(gridcoll), os.path.dirname(launcher), os.environ["PATH"]])
    cases = [(line, yes.split(), no.split()) for line, yes, no in CASES]
    listing = subprocess.run([gridcoll, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    commands = re.findall(r"^  ([a-z]+) ", listing, re.M)
    cases += [(f"gridcoll {c} --", options(gridcoll, c), []) for c in commands if options(gridcoll, c)]
    cases += [("gridcoll shape run --", options(gridcoll, "shape", "run"), []),
              ("gridcoll lab run --", options(gridcoll, "lab", "run"), []),
              ("gridcoll-run --", options(launcher), [])]
    if sum(len(yes) for _, yes, _ in cases) < 100:
        print("few options were found: this test is broken")
        return 1

    with tempfile.TemporaryDirectory() as home:
        for name in ("my.grid", "other", "subfile"):
            open(os.path.join(home, name), "w").close()
        os.mkdir(os.path.join(home, "subdir"))
        os.environ.update(HOME=home, XDG_CONFIG_HOME=home, XDG_DATA_HOME=home, ZDOTDIR=home, TERM="xterm")
        offered = globals()["by_" + SHELL]([line for line, _, _ in cases], home)
    wrong = 0
    for (line, yes, no), words in zip(cases, offered, strict=True):
        lacking, extra = [w for w in yes if w not in words], [w for w in no if w in words]
        if lacking or extra:
            print(f"{line!r}: not offered: {lacking}; offered, but wrong: {extra}; all: {words}")
            wrong += 1
    print(f"{len(cases)} lines, {wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
