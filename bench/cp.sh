#!/bin/sh
# SPDX-License-Identifier: MIT
# One file to all hosts of two clusters (gridmpi.grid: 2 x 8 hosts, 1 Gbit/s, 10 ms), by `gridcoll cp`
# and by what people have: scp and rsync to one host after the other, rsync to all hosts at once, a
# chain of pipes, where each host writes what comes and passes it on by ssh, and Slurm's sbcast. All of
# them from their start to their end, connections and all; ssh through a real sshd on each host of the
# lab, encrypted as it is by default, and so is gridcoll's WAN. sbcast goes in clear, through a real
# slurmd on each host, into an allocation of the 15 that was made before; its options are the defaults.
#
#	bench/cp.sh [BUILD [SIZE]]	BUILD: a build directory, default "build"; SIZE: in MiB, 256
#
#	METHODS="gridcoll chain rsync-all sbcast rsync scp"  DILATE=40  REPEAT=1
#	FEW=N	the one-after-the-other methods go to every Nth host only, and their times are
#		multiplied: 256 MiB to 15 hosts take them 25 minutes on this lab
#
# Every copy is compared with the source. Times are divided by the dilation. CPU is the guest's, which
# stands for 16 hosts: over 70 %, the figure is the CPU's and not the network's.
set -eu

# ---- inside the lab, on its first host

busy() { # ticks of the guest's CPU, all and busy
	awk '/^cpu / {print $2 + $4 + $6 + $7 + $8 + $9, $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9}' /proc/stat
}

address() { # HOST
	ip netns exec "gcl-$1" ip -4 -o addr show eth0 | awk '{sub("/.*", "", $4); print $4; exit}'
}

# A server on each host, and a configuration that knows them all.
start_servers() {
	[ -d /run/sshd ] || { mkdir /run/sshd && trap 'rmdir /run/sshd' EXIT; }
	mkdir /mnt/ssh
	ssh-keygen -q -t ed25519 -N '' -f /mnt/ssh/host
	ssh-keygen -q -t ed25519 -N '' -f /mnt/ssh/user
	cat >/mnt/ssh/sshd_config <<-END
		Port 22
		HostKey /mnt/ssh/host
		PidFile none
		UsePAM no
		UseDNS no
		StrictModes no
		PermitRootLogin yes
		MaxStartups 100
		AuthorizedKeysFile /mnt/ssh/user.pub
		Subsystem sftp internal-sftp
	END
	for h in $hosts; do
		# bash would read this for every command, and it may do anything
		ip netns exec "gcl-$h" sh -c '[ ! -e ~/.bashrc ] || mount --bind /dev/null ~/.bashrc
			exec /usr/sbin/sshd -f /mnt/ssh/sshd_config'
		printf 'Host %s\nHostName %s\n' "$h" "$(address "$h")"
	done >/mnt/ssh/config
	cat >>/mnt/ssh/config <<-END
		Host *
		User $(id -un)
		IdentityFile /mnt/ssh/user
		StrictHostKeyChecking no
		UserKnownHostsFile /dev/null
		LogLevel ERROR
	END
}

# Slurm on all hosts, and an allocation of all others. Each slurmd has a place of its own by a name
# that all share, as hosts with their own disks have.
start_slurm() {
	mkdir -p /mnt/slurm/state /mnt/slurm/here
	(umask 077 && head -c 64 /dev/urandom >/mnt/slurm/key)
	munged --force --socket=/mnt/slurm/munge --key-file=/mnt/slurm/key --pid-file=/mnt/slurm/pid \
		--log-file=/mnt/slurm/munge.log --seed-file=/mnt/slurm/seed
	{
		cat <<-END
			ClusterName=lab
			SlurmctldHost=$(hostname -s)($(address "$source"))
			SlurmUser=root
			AuthType=auth/munge
			AuthInfo=socket=/mnt/slurm/munge
			StateSaveLocation=/mnt/slurm/state
			SlurmdSpoolDir=/mnt/slurm/spool-%n
			SlurmctldPidFile=/mnt/slurm/slurmctld.pid
			SlurmdPidFile=/mnt/slurm/%n.pid
			SlurmctldLogFile=/mnt/slurm/slurmctld.log
			SlurmdLogFile=/mnt/slurm/%n.log
			ProctrackType=proctrack/pgid
			TaskPlugin=task/none
			SlurmdParameters=config_overrides
			ReturnToService=2
			MessageTimeout=$((10 * DILATE))
			PartitionName=all Nodes=ALL Default=YES
		END
		for h in $hosts; do
			echo "NodeName=$h NodeHostname=$(hostname -s) NodeAddr=$(address "$h")"
		done
	} >/mnt/slurm/slurm.conf
	echo CgroupPlugin=cgroup/v1 >/mnt/slurm/cgroup.conf # the guest has none, and v1 does not mind
	{
		at_source slurmctld
		for h in $hosts; do
			mkdir "/mnt/slurm/spool-$h"
			ip netns exec "gcl-$h" sh -c "mount --bind /mnt/out/$h /mnt/slurm/here &&
				exec slurmd -N $h"
		done
		at_source timeout 300 salloc --no-shell -w "$(echo $others | tr ' ' ,)"
	} >/mnt/slurm/out 2>&1 || {
		tail -n 5 /mnt/slurm/out /mnt/slurm/*.log >&2
		exit 1
	}
	SLURM_JOB_ID=$(awk '/Granted job allocation/ {print $NF}' /mnt/slurm/out)
	export SLURM_JOB_ID
}

at_source() {
	ip netns exec "gcl-$source" "$@"
}

by_gridcoll() {
	gridcoll-run --quiet-prefix gridcoll cp -q /mnt/data '/mnt/out/%h/'
}

by_scp() {
	for h in $some; do
		at_source scp -q -F /mnt/ssh/config /mnt/data "$h:/mnt/out/$h/"
	done
}

by_rsync_to() { # HOST
	at_source rsync -e "ssh -F /mnt/ssh/config" --rsync-path="$(command -v rsync)" --times --perms \
		/mnt/data "$1:/mnt/out/$1/"
}

by_rsync() {
	for h in $some; do
		by_rsync_to "$h"
	done
}

by_rsync_all() {
	for h in $others; do
		by_rsync_to "$h" &
	done
	wait
}

# Each host's part: it keeps what comes, and the next one gets it at the same time.
by_chain() {
	cat >/mnt/ssh/link <<-END
		#!/bin/sh
		me=\$1
		shift
		[ \$# -gt 0 ] || exec cat >/mnt/out/\$me/data
		tee /mnt/out/\$me/data | ssh -F /mnt/ssh/config \$1 sh /mnt/ssh/link "\$@"
	END
	first=${others%% *}
	at_source ssh -F /mnt/ssh/config "$first" sh /mnt/ssh/link $others </mnt/data
}

by_sbcast() {
	at_source sbcast /mnt/data /mnt/slurm/here/data
}

missing() { # HOSTS...: how many have not got it
	n=0
	for h; do
		cmp -s /mnt/data "/mnt/out/$h/data" || n=$((n + 1))
	done
	echo $n
}

measure() { # METHOD
	some=$others
	case $1 in
	scp | rsync) some=$(echo $others | tr ' ' '\n' | awk -v n="$FEW" 'NR % n == 1 || n == 1') ;;
	esac
	for h in $hosts; do
		mkdir -p "/mnt/out/$h"
		rm -f "/mnt/out/$h/data"
	done
	[ "$1" != sbcast ] || [ "${SLURM_JOB_ID-}" ] || start_slurm
	before=$(busy) begin=$(cut -d ' ' -f 1 /proc/uptime)
	"by_$(echo "$1" | tr - _)"
	end=$(cut -d ' ' -f 1 /proc/uptime)
	echo "$1 $begin $end $before $(busy) $(echo $some | wc -w) $(echo $others | wc -w) $(missing $some)"
}

if [ "${1-}" = --inside ]; then
	size=$2
	hosts=$(ip netns list | awk '/^gcl-[kt][0-9]/ {sub("gcl-", "", $1); print $1}' | sort)
	hosts=$(echo $hosts) source=${hosts%% *}
	others=${hosts#* }
	mount -t tmpfs -o size=$((17 * size + 64))m tmpfs /mnt # goes with the lab
	mkdir /mnt/out
	start_servers
	head -c $((size << 20)) /dev/urandom >/mnt/data
	for _ in $(seq "$REPEAT"); do
		for method in $METHODS; do
			measure "$method"
		done
	done
	exit
fi

# ---- outside

: "${METHODS=gridcoll chain rsync-all sbcast rsync scp}" "${DILATE=40}" "${REPEAT=1}" "${FEW=1}"
: "${GRIDCOLL_SECURITY=auto}"
SLURM_CONF=/mnt/slurm/slurm.conf
export METHODS DILATE REPEAT FEW GRIDCOLL_SECURITY SLURM_CONF
size=${2:-256}
here=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:-$here/build}" && pwd)
PATH=$build/tools:$build/launcher:$PATH:/usr/sbin
export PATH

for method in $METHODS; do
	case $method in
	gridcoll) need= ;;
	chain) need="ssh ssh-keygen" ;;
	sbcast) need="munged slurmctld slurmd salloc sbcast" ;;
	*) need="ssh ssh-keygen ${method%-all}" ;;
	esac
	for program in $need; do
		command -v "$program" >/dev/null || {
			echo "$method is left out: no $program here" >&2
			METHODS=$(echo " $METHODS " | sed "s/ $method / /")
		}
	done
done

row() { # what measure() says
	echo "$*" | awk -v k="$DILATE" -v mib="$size" '
NF != 10 { print; exit 1 }
{
	t = ($3 - $2) / k * $9 / $8
	printf "%-10s %5d %8.2f s %10.1f %6.0f%%", $1, $8, t, mib * 1.048576 / t,
		100 * ($6 - $4) / ($7 - $5)
	print $10 ? "  " $10 " copies are wrong" : ""
	exit $10 > 0
}'
}

echo "$size MiB to 15 hosts of gridmpi.grid, k = $DILATE; ssh: $(ssh -V 2>&1 | cut -d, -f1)"
printf "%-10s %5s %10s %10s %7s\n" method hosts time "MB/s each" CPU
{
	gridcoll lab run --quiet --keep-awake --mem $((3072 + 17 * size))MiB --dilate "$DILATE" \
		"$here/netem/grids/gridmpi.grid" -- sh "$here/bench/cp.sh" --inside "$size" || echo "# failed"
} |
	{
		failed=
		while read -r line; do
			row $line || failed=1
		done
		[ -z "$failed" ]
	}
