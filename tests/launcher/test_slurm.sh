#!/bin/sh
# SPDX-License-Identifier: MIT
# Jobs under srun and sbatch: a munged, a slurmctld and four slurmd of our own, on loopback, in a
# directory of their own. Skipped where they are not installed.
#	test_slurm.sh GRIDCOLL_RUN GUEST
set -u
run=$(realpath "$1") guest=$(realpath "$2")
PATH=$PATH:/usr/sbin
for program in munged slurmctld slurmd srun sbatch; do
	command -v $program >/dev/null || {
		echo "skipped: no $program (Debian: slurmctld slurmd slurm-client munge)"
		exit 77
	}
done
[ "$(id -u)" = 0 ] || {
	echo "skipped: slurmd needs root"
	exit 77
}

dir=$(mktemp -d /tmp/gridcoll-slurm-XXXXXX) || exit 1
daemons="" munge=""
end() {
	# shellcheck disable=SC2086 # process ids
	[ -z "$daemons" ] || { kill $daemons && wait $daemons; } 2>/dev/null
	[ -z "$munge" ] || { kill "$munge" && wait "$munge"; } 2>/dev/null
	rm -rf "$dir"
}
trap end EXIT
trap 'exit 1' HUP INT TERM
cd "$dir" || exit 1

give_up() {
	echo "$1"
	for f in munged.out slurmctld.out slurmd*.out; do
		echo "== $f"
		tail -n 8 "$f"
	done
	exit 1
}

# Ports in a row that are free now: others may listen at fixed ones.
base=$(python3 -c '
import random, socket
def free(port):
    s = socket.socket()
    try:
        return not s.bind(("127.0.0.1", port))
    except OSError:
        return False
    finally:
        s.close()
while True:
    base = random.randrange(10000, 19000)
    if all(free(base + i) for i in range(6)):
        print(base)
        break') || exit 1
host=$(hostname -s)
mkdir state spool
(umask 077 && head -c 64 /dev/urandom >munge.key)
cat >slurm.conf <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$base
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge.sock
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd-%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=bf_interval=1,sched_interval=1
TopologyPlugin=topology/tree
ReturnToService=2
NodeName=n[1-4] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((base + 1))-$((base + 4))] CPUs=4
PartitionName=all Nodes=n[1-4] Default=YES State=UP
PartitionName=east Nodes=n[1-2] State=UP
PartitionName=west Nodes=n[3-4] State=UP
CONF
cat >topology.conf <<CONF
SwitchName=kyoto Nodes=n[1-2]
SwitchName=tokyo Nodes=n[3-4]
SwitchName=wan Switches=kyoto,tokyo
CONF
export SLURM_CONF="$dir/slurm.conf"
munged --foreground --force --socket="$dir/munge.sock" --key-file="$dir/munge.key" \
	--pid-file="$dir/munge.pid" --log-file="$dir/munge.log" --seed-file="$dir/munge.seed" \
	>munged.out 2>&1 &
munge=$!
for i in $(seq 100); do
	[ -S munge.sock ] && break
	sleep 0.1
done
slurmctld -D >slurmctld.out 2>&1 &
daemons=$!
for node in n1 n2 n3 n4; do
	mkdir spool/$node
	slurmd -D -N $node >slurmd-$node.out 2>&1 &
	daemons="$daemons $!"
done
deadline=$(($(date +%s) + 40))
until [ "$(timeout 5 sinfo -h -p all -o '%T %D' 2>/dev/null)" = "idle 4" ]; do
	# shellcheck disable=SC2086 # process ids
	kill -0 $munge $daemons 2>/dev/null && [ "$(date +%s)" -lt $deadline ] ||
		give_up "Slurm does not come up"
	sleep 0.1
done

there=127.0.0.1:$((base + 5)) # our nodes' names are not those of hosts
rc=0
fail() {
	echo "FAILED: $1"
	head -n 20 out err
	rc=1
}

# Tasks on all nodes: hosts and ranks are Slurm's, all in one cluster; rank 0 gets what follows the
# secret.
(timeout 50 "$run" --new-secret) | timeout 50 srun -N 4 -n 6 "$run" --slurm --join $there "$guest" sum >out 2>err ||
	fail "srun"
sort out | awk '{ exit !($0 == "rank " NR - 1 " of 6 in cluster 0 of 1: sum 21") }' &&
	[ "$(wc -l <out)" = 6 ] || fail "six tasks"

# A grid file of the nodes' names tells clusters.
cat >grid <<GRID
[cluster east]
hosts = n[3-4]
[cluster west]
hosts = n[1-2]
[link east west]
rate = 1Gbit
GRID
"$run" --new-secret | timeout 50 srun -N 4 -n 4 "$run" --slurm --join $there --grid grid "$guest" sum >out 2>err ||
	fail "srun with a grid file"
[ "$(sort out | awk '{ print $2, $7 }' | tr '\n' ' ')" = "0 1 1 1 2 0 3 0 " ] || fail "clusters of the grid"

# Switches do, as the manual has it.
# shellcheck disable=SC2016 # the tasks' variables
"$run" --new-secret | timeout 50 srun -N 4 -n 4 sh -c 's=${SLURM_TOPOLOGY_ADDR%.*}
	GRIDCOLL_CLUSTER=${s##*.} exec "$@"' sh "$run" --slurm --join $there "$guest" sum >out 2>err ||
	fail "srun with switches"
[ "$(sort out | awk '/ of 2: sum 10$/ { print $2, $7 }' | tr '\n' ' ')" = "0 0 1 0 2 1 3 1 " ] ||
	fail "switches are clusters"

# Only in pipes and files: tasks see neither in their environment.
secret=$("$run" --new-secret)
echo "$secret" | timeout 50 srun -N 2 -n 2 "$run" --slurm --join $there sh -c \
	"tr '\\\\0' '\\n' </proc/self/environ; tr '\\\\0' '\\n' </proc/\$PPID/cmdline; exec '$guest' sum" >out 2>err ||
	fail "srun of a shell"
grep -q GRIDCOLL_SECRET_FD out && ! grep -q "$secret" out || fail "the secret shows"

# A task that dies: all others are told which, and on which node.
"$run" --new-secret | timeout 50 srun -N 4 -n 4 --kill-on-bad-exit=0 "$run" --slurm --join $there --timers fast \
	"$guest" die 2 >out 2>err && fail "nobody noticed a death"
[ "$(grep -c 'barrier: rank 2 on n3: ' err)" = 3 ] || fail "three tasks are told of the fourth"
grep -q '^gridcoll-run: rank 2 on n3 failed: its control connection was lost' err ||
	fail "rank 0's gridcoll-run tells of it"

# No secret, and no task of srun.
timeout 50 srun -N 1 -n 1 "$run" --slurm --join $there "$guest" sum </dev/null >out 2>err && fail "without a secret"
grep -q 'standard input, expected 64 hexadecimal digits' err || fail "the secret that is missing"
"$run" --slurm true </dev/null >out 2>err && fail "without srun"
grep -q 'SLURM_PROCID=(not set), expected a number (--slurm is for tasks of srun' err ||
	fail "the variable that is missing"

# From a script of sbatch.
cat >script <<SCRIPT
#!/bin/sh
"$run" --new-secret | srun "$run" --slurm --join $there "$guest" sum
SCRIPT
timeout 50 sbatch --wait -N 2 -n 4 -o "$dir/out" -e "$dir/err" script >/dev/null || fail "sbatch"
[ "$(grep -c 'of 4 in cluster 0 of 1: sum 10' out)" = 4 ] || fail "four tasks of a script"

# A heterogeneous step: a partition is a cluster, and rank 0 is in the first that is named, though its
# nodes are the last by name. The secret is in a file.
(umask 077 && echo "$secret" >secret)
components() { # OPTIONS AND COMMAND: two ranks in west, three in east
	timeout 50 srun -Q -p west -N 2 -n 2 "$run" --slurm --secret-file "$dir/secret" "$@" : \
		-p east -N 2 -n 3 "$run" --slurm --secret-file "$dir/secret" "$@" >out 2>err
}
components --join $there "$guest" sum || fail "srun of two components"
[ "$(sort out | awk '/ of 5 .* of 2: sum 15$/ { print $2, $7 }' | tr '\n' ' ')" = "0 1 1 1 2 0 3 0 4 0 " ] ||
	fail "partitions are clusters"
components --dry-run "$guest" sum || fail "srun of two components that only say who they are"
[ "$(grep -c '^rank [1-4] of 5: joins the job at n3:2[0-9]*$' out)" = 4 ] &&
	[ "$(awk '/ joins / { print $NF }' out | sort -u | wc -l)" = 1 ] || fail "where rank 0 is"
components --join $there --grid grid "$guest" sum || fail "two components with a grid file"
[ "$(sort out | awk '{ print $2, $7 }' | tr '\n' ' ')" = "0 0 1 0 2 1 3 1 4 1 " ] ||
	fail "clusters of the grid, not partitions"
components --join $there --secret-file - "$guest" sum </dev/null && fail "a secret for one component of two"
grep -q 'to one component of a heterogeneous step only: expected --secret-file FILE' err ||
	fail "which secret two components need"

# The same from a script, and a step on one component of the two.
cat >script <<SCRIPT
#!/bin/sh
#SBATCH -p west -N 2 -n 2
#SBATCH hetjob
#SBATCH -p east -N 1 -n 1
srun --het-group=0,1 "$run" --slurm --join $there --secret-file "$dir/secret" "$guest" sum
"$run" --new-secret | srun --het-group=0 "$run" --slurm --join $there "$guest" sum
SCRIPT
timeout 50 sbatch --wait -o "$dir/out" -e "$dir/err" script >/dev/null || fail "sbatch of a heterogeneous job"
[ "$(sort out | awk '/ of 3 .* of 2: sum 6$/ { print $2, $7 }' | tr '\n' ' ')" = "0 1 1 1 2 0 " ] ||
	fail "partitions in a script"
[ "$(grep -c 'of 2 in cluster 0 of 1: sum 3' out)" = 2 ] || fail "one component of two"

[ $rc = 0 ] || give_up "see above"
echo "ok: ran under $(srun --version)"
