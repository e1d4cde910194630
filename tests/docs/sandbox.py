# SPDX-License-Identifier: MIT
"""Eight hosts for the commands of the documents: network, mount and UTS namespaces, in each of which the
root is another one. k1, where a user sits, has the user's files; the others have gridcoll, the
programs a.out and program, and an ssh to each other that is a stand-in (test_ssh_lab.sh has real ones).

What it cannot make here raises Unavailable, with the reason.
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile

HOSTS = [f"{c}{i}" for c in "kt" for i in (1, 2, 3, 4)]
HOME = "/home/me"
CLONE = HOME + "/gridcoll" # what stands for a fresh clone, and is the working directory
NAMES = {"head": "k1", "desk.example.org": "k1", "sum-0.sum": "k1"} # as the documents call k1
PATH = "/grid/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
ROOT_HAS = ("bin", "etc", "lib", "lib32", "lib64", "nix", "opt", "sbin", "usr")


class Unavailable(Exception):
    pass


def enter_namespaces():
    """The calling program starts anew, with a network and mounts of its own. Returns in there."""
    if os.environ.get("GRIDCOLL_TEST_INSIDE"):
        del os.environ["GRIDCOLL_TEST_INSIDE"]
        return
    args = ["unshare", "-nmu"] + (["-Ur"] if os.getuid() else [])
    r = subprocess.run(args + ["ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"],
                       capture_output=True, text=True) if shutil.which("unshare") else None
    if not r or r.returncode:
        raise Unavailable("no network namespaces: " + (r.stderr.strip() if r else "no unshare"))
    os.environ["GRIDCOLL_TEST_INSIDE"] = "1"
    os.execvp("unshare", args + [sys.executable] + sys.argv)


def address(host, card=0):
    return f"{10 + card}.{'kt'.index(host[0]) + 1}.0.{host[1:]}"


HOLDER = r"""
set -e
hostname "$1"
root=$2/root
mount -t tmpfs none "$root"
cd "$root"
mkdir -p dev proc sys run tmp data srv grid shared home/me/gridcoll root var/log var/lib/node_exporter secret
chmod 1777 tmp
for d in $3; do
	if [ -L "/$d" ]; then cp -P "/$d" .; elif [ -d "/$d" ]; then mkdir "$d" && mount --rbind "/$d" "$d"; fi
done
mount --rbind /proc proc
mount --rbind /dev dev
mount -t sysfs none sys 2>/dev/null || mount --rbind /sys sys
mount --bind "$2/hosts" etc/hosts
mount --bind "$2/grid" grid
mount --bind "$2/shared" shared
for d in "$4" "$5"; do mkdir -p "./$d" && mount --rbind "$d" "./$d"; done
echo $$ >"$2/grid/$1.pid.new"
ip link set lo up
mv "$2/grid/$1.pid.new" "$2/grid/$1.pid"
exec chroot . sleep infinity
"""

# All of it is run by hosts' programs: PATH is theirs.
STAND_INS = {
    # ssh [OPTION...] HOST COMMAND: the options are of words with values of their own.
    "ssh": r"""
while [ "${1#-}" != "$1" ]; do shift; done
[ -e "/grid/${1#*@}.pid" ] || { echo "ssh: Could not resolve hostname $1" >&2; exit 255; }
host=${1#*@}
shift
exec /grid/bin/at "$host" /bin/sh -c "$*"
""",
    # A host's command, with nothing of the environment but what a login there sets.
    "at": r"""
host=$1
shift
exec env -i $(cat /grid/env) nsenter -t "$(cat "/grid/$host.pid")" -n -m -u -r -w /bin/sh -c 'cd && exec "$@"' - "$@"
""",
    # srun [-p PARTITION] [-N N] [-n N] COMMAND [: the same], as Slurm would on these hosts: one task on
    # each; standard input goes to all, but of several components only to the first.
    "srun": r"""
exec python3 /grid/srun.py "$@"
""",
    "pbsdsh": r"""
i=0
[ "$1" != -- ] || shift
for host in $(cat "$PBS_NODEFILE"); do
	/grid/bin/at "$host" env "PBS_VNODENUM=$i" "$@" </dev/null &
	i=$((i + 1))
done
wait
""",
    "kubectl": r"""
[ "$*" = "create secret generic sum-secret --from-file=key=/dev/stdin" ] && grep -qxE '[0-9a-f]{64}'
""",
    # The tree that runs the tests is installed, as it is, below a directory of this test's; of tests that
    # are named there must be such.
    "meson": r"""
case $1 in
install) shift && exec MESON install --no-rebuild --quiet --destdir /grid/installed "$@" ;;
esac
exit 1
""",
    "ldconfig": "exit 0\n",
}

SRUN = r"""
import os, subprocess, sys
HOSTS = {"kyoto": ["k1", "k2", "k3", "k4"], "tokyo": ["t1", "t2", "t3", "t4"]}
components, args = [], sys.argv[1:]
while args:
    c = {"partition": None, "n": None}
    while args and args[0] in ("-p", "-N", "-n"):
        c["partition" if args[0] == "-p" else "n"] = args[1]
        args = args[2:]
    end = args.index(":") if ":" in args else len(args)
    c["command"], args = args[:end], args[end + 1:]
    components.append(c)
tasks = []
for k, c in enumerate(components):
    hosts = HOSTS[c["partition"]] if c["partition"] else HOSTS["kyoto"] + HOSTS["tokyo"]
    tasks += [(k, c["command"], hosts[i % len(hosts)]) for i in range(min(int(c["n"] or 8), len(hosts)))]
given = sys.stdin.buffer.read() if not sys.stdin.isatty() else b""
started = []
for rank, (k, command, host) in enumerate(tasks):
    env = {"SLURM_PROCID": rank, "SLURM_STEP_NUM_TASKS": len(tasks), "SLURM_JOB_ID": 4711, "SLURM_STEP_ID": 0,
           "SLURM_STEP_NODELIST": ",".join(h for _, _, h in tasks), "SLURMD_NODENAME": host,
           "SLURM_TOPOLOGY_ADDR": "wan.%s.%s" % ("kyoto" if host[0] == "k" else "tokyo", host)}
    if len(components) > 1:
        env["SLURM_HET_SIZE"] = len(components)
        for j, c in enumerate(components):
            env["SLURM_JOB_NODELIST_HET_GROUP_%d" % j] = ",".join(h for i, _, h in tasks if i == j)
            env["SLURM_JOB_PARTITION_HET_GROUP_%d" % j] = c["partition"]
    p = subprocess.Popen(["/grid/bin/at", host, "env"] + ["%s=%s" % e for e in env.items()] +
        ["/bin/sh", "-c", 'cd "$0" && exec "$@"', os.getcwd()] + command, stdin=subprocess.PIPE)
    started.append(p)
for p, (k, _, _) in zip(started, tasks):
    try:
        p.stdin.write(given if not k else b"")
        p.stdin.close()
    except BrokenPipeError:
        pass
sys.exit(max(p.wait() for p in started))
"""


class Grid:
    def __init__(self, source, build):
        self.source, self.build, self.holders = source, build, []
        self.env = {"HOME": HOME, "USER": "me", "LANG": "C.UTF-8"}
        self.dir = tempfile.mkdtemp(prefix="gridcoll-docs-")
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    def _make(self):
        run = self._run
        run(["mount", "--make-rprivate", "/"])
        run(["mount", "-t", "tmpfs", "none", self.dir])
        grid = f"{self.dir}/grid"
        meson = shutil.which("meson") or "no-meson"
        for d in ("root", "shared", "grid", "grid/bin", "grid/installed"):
            os.mkdir(f"{self.dir}/{d}")
        for name, text in STAND_INS.items():
            self.write(f"{grid}/bin/{name}", "#!/bin/sh\n" + text.lstrip().replace("MESON", meson), 0o755)
        self.write(f"{grid}/srun.py", SRUN)
        self.set_env(PATH=f"{self.build}/tools:{self.build}/launcher:{PATH}")
        self.write(f"{self.dir}/hosts", "127.0.0.1 localhost\n" + "".join(
            f"{address(h)} {' '.join([h] + [n for n, k in NAMES.items() if k == h])}\n" for h in HOSTS))
        cards = [(h, c) for h in HOSTS for c in range(3)]
        for h in HOSTS:
            self.holders.append(subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "unshare", "-nmu", "sh", "-c", HOLDER, "-", h, self.dir, " ".join(ROOT_HAS), self.source, self.build],
                stderr=subprocess.PIPE, text=True))
        pid = {}
        for h, p in zip(HOSTS, self.holders):
            while not os.path.exists(f"{grid}/{h}.pid"):
                if p.poll() is not None:
                    raise Unavailable(f"no host can be made: {p.stderr.read().strip()}")
            with open(f"{grid}/{h}.pid") as f:
                pid[h] = f.read().strip()
        # This namespace has the switch between them, one for each card.
        self._ip("".join(f"link add br{c} type bridge\nlink set br{c} up\n" for c in range(3)) + "".join(
            f"link add {h}e{c} type veth peer name eth{c} netns {pid[h]}\nlink set {h}e{c} master br{c} up\n"
            for h, c in cards))
        for h in HOSTS:
            self._ip("".join(f"addr add {address(h, c)}/8 dev eth{c}\nlink set eth{c} up\n" for c in range(3)),
                     ["nsenter", "-t", pid[h], "-n"])

    def _ip(self, batch, where=()):
        self._run([*where, "ip", "-batch", "-"], input=batch)

    @staticmethod
    def _run(args, **more):
        r = subprocess.run(args, capture_output=True, text=True, **more)
        if r.returncode:
            raise Unavailable(f"{' '.join(args)}: {r.stderr.strip()}")

    @staticmethod
    def write(path, text, mode=0o644):
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, mode)

    def set_env(self, **env):
        """What a login sets on all hosts."""
        self.env.update(env)
        self.write(f"{self.dir}/grid/env", " ".join(f"{k}={v}" for k, v in self.env.items()))

    def popen(self, host, script, env=None, directory=CLONE, **more):
        """A shell on a host."""
        words = [f"{k}={v}" for k, v in {**self.env, **(env or {})}.items()]
        at = ["env", "-i", *words, "sh", "-euc", f"cd {directory}\n{script}"]
        with open(f"{self.dir}/grid/{host}.pid") as f:
            pid = f.read().strip()
        return subprocess.Popen(["nsenter", "-t", pid, "-n", "-m", "-u", "-r", "-w", *at], text=True,
                                start_new_session=True, **more)

    def processes(self):
        """Of all hosts but their holders."""
        spaces = {os.readlink(f"/proc/{p.pid}/ns/net") for p in self.holders if p.poll() is None}
        holders = {p.pid for p in self.holders}
        for pid in (int(d) for d in os.listdir("/proc") if d.isdigit()):
            try:
                if pid not in holders and os.readlink(f"/proc/{pid}/ns/net") in spaces:
                    yield pid
            except OSError:
                pass # it has ended

    def close(self):
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        for p in self.holders:
            p.kill()
            p.wait()
        subprocess.run(["umount", "-l", self.dir], stderr=subprocess.DEVNULL)
        shutil.rmtree(self.dir, ignore_errors=True)
