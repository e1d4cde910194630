# SPDX-License-Identifier: MIT
# What goes wrong in the lab of two.grid, and jobs that run meanwhile. Read by test_faults_lab.sh's
# parts, in the lab.
set -u
export GRIDCOLL_LOG=warn

say() { echo "$(cut -d' ' -f1 /proc/uptime) $*"; } # "SECONDS WHAT ..."

# Each way is a bottleneck (tbf), then a wire (netem): W is 0-1 from kyoto to tokyo, or 1-0.
wire() { # W NETEM...: how it is besides late
	w=$1
	shift
	ip netns exec gcl-wan tc qdisc change dev wan-$w root handle 2: netem delay 9900us limit 1000000 "$@"
}
bottleneck() { # W RATE
	case $1 in
	0-1) set -- gcl-sw-kyoto w1 "$2" ;;
	1-0) set -- gcl-sw-tokyo w0 "$2" ;;
	esac
	ip netns exec $1 tc qdisc change dev $2 root handle 1: tbf rate $3 burst 31250 limit 500000
}
both() { what=$1; shift; $what 0-1 "$@"; $what 1-0 "$@"; }

# Faults, each with its end.
loss() { both wire loss ${1}%; } # of packets, not of the bundles of packets that the kernel hands on
sever() { wire $1 loss 100%; }
mend() { both wire; both bottleneck 200mbit; }
hold() { both bottleneck 8kbit; }  # keeps what fits into the buffer
rate() { both bottleneck $1; }
ip netns exec gcl-sw-kyoto ip link set w1 gso_max_segs 1
ip netns exec gcl-sw-tokyo ip link set w0 gso_max_segs 1

# Starts a job; its log is LOG, what it says LOG.err.
start() { # LOG OPTIONS... -- MODE [TIMEOUT]
	log=$1
	shift
	options=
	while [ "$1" != -- ]; do options="$options $1"; shift; done
	shift
	: >"$log"
	rm -f "$log.stop"
	"$GRIDCOLL_RUN" $options "$FAULTS_JOB" "$log" ${NBYTES:-500000} "$@" 2>"$log.err" &
	job=$!
	for _ in $(seq 300); do
		[ "$(grep -c ' did ' "$log")" -ge 40 ] && break # ten operations each
		sleep 0.1
	done
}
finish() { # LOG: until it has ended; within two minutes
	for _ in $(seq 1200); do
		kill -0 $job 2>/dev/null || break
		sleep 0.1
	done
	kill -0 $job 2>/dev/null && { say hangs; kill -9 $job; }
	wait $job
	say "exit $?"
	sleep 0.2
	alive=0
	for f in /proc/[0-9]*/cmdline; do
		tr '\0' ' ' <"$f" 2>/dev/null | grep -q "$FAULTS_JOB" && alive=$((alive + 1))
	done
	say "alive $alive"
}
