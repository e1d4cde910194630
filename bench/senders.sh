#!/bin/sh
# SPDX-License-Identifier: MIT
# The GridMPI paper's effect, and what pacing makes of it (M. Matsuda et al., CLUSTER 2006, 4.3: over
# 8 senders of 1 Gbit/s into a WAN of 10 Gbit/s, operations become slower, and times spread): modified
# van de Geijn and Rabenseifner on gridmpi16.grid with a shallow bottleneck of 1 MB, by 1 to 16
# senders, unpaced and paced. Of each: times, segments that TCP sent again in all of its operations
# (the first one too, whose windows open), and what the bottleneck's queue dropped in packets of the
# lab (of several segments each).
#
#	bench/senders.sh [BUILD]		BUILD: a build directory, default "build"
#
#	SENDERS="1 2 4 8 16"  PACE="off auto"  BYTES=8MiB  ITERS=10  DILATE=30
#	OPERATIONS="bcast:vandegeijn-mod allreduce:rabenseifner-mod"	what is measured
#
# An hour, and only on an otherwise idle machine; less with fewer of the above.
set -eu

: "${SENDERS=1 2 4 8 16}" "${PACE=off auto}" "${BYTES=8MiB}" "${ITERS=10}" "${DILATE=30}"
: "${OPERATIONS=bcast:vandegeijn-mod allreduce:rabenseifner-mod}"

hosts() {
	ip netns list | awk '/^gcl-[kt][0-9]/ {print $1}'
}

resent() { # segments, by all hosts so far
	for ns in $(hosts); do
		ip netns exec "$ns" awk '/^Tcp: [0-9]/ {print $13}' /proc/net/snmp
	done | awk '{n += $1} END {print n + 0}'
}

dropped() { # by the bottlenecks so far
	for ns in gcl-sw-kyoto gcl-sw-tokyo; do
		ip netns exec "$ns" tc -s qdisc show | awk '/^qdisc/ {wan = $2 == "tbf" && $5 ~ /^w[0-9]/}
			wan && /dropped/ {sub(",", "", $7); print $7}'
	done | awk '{n += $1} END {print n + 0}'
}

# TCP makes packets of a millisecond of a flow's rate for the card to cut, and larger ones on short
# paths. In slow motion a path is short when its round trip is so many times longer, and a paced
# connection's millisecond (of 600 Mbit/s by four connections) is 12 segments.
slow_packets() {
	shift=9 k=$DILATE
	while [ "$k" -gt 1 ]; do
		shift=$((shift + 1)) k=$((k / 2))
	done
	for ns in $(hosts); do
		ip netns exec "$ns" sysctl -qw net.ipv4.tcp_tso_rtt_log=$shift \
			net.ipv4.tcp_min_tso_segs=12
	done
}

measure() { # OPERATION ALGORITHM SENDERS PACE
	before=$(resent) drops=$(dropped)
	if ! gridcoll-run --pace "$4" gridcoll bench "$1" --bytes "$BYTES" --iters "$ITERS" \
		--algorithm "$2:senders=$3" --json /tmp/senders.json >/tmp/senders.txt 2>&1; then
		cat /tmp/senders.txt
		exit 1
	fi
	after=$(resent)
	tr -d ' \n' </tmp/senders.json | awk -v op="$1" -v n="$3" -v pace="$4" \
		-v k="$DILATE" -v resent=$((after - before)) -v dropped=$(($(dropped) - drops)) '{
		wan = cpu = median = $0
		sub(/.*"wan_bytes":/, "", wan); sub(/.*"cpu_percent":/, "", cpu)
		sub(/.*"median_ns":/, "", median)
		sub(/.*"warm_ns":\[/, ""); sub(/\].*/, "")
		for (i = split($0, t, ",") ; i; i--) {
			least = !least || t[i] < least ? t[i] + 0 : least
			most = t[i] > most ? t[i] + 0 : most
		}
		least /= k; median /= k; most /= k
		printf "%-10s %7d  %-5s %8.1f %8.1f %8.1f %7.2f %8d %8d %9.1f %4d%%\n", op, n, pace,
			least / 1e6, median / 1e6, most / 1e6, most / least, resent, dropped,
			wan / 1e6, cpu
	}'
}

if [ "${1-}" = --inside ]; then
	slow_packets
	printf "%-10s %7s  %-5s %8s %8s %8s %7s %8s %8s %9s %5s\n" operation senders pace \
		"min ms" median "max ms" max/min resent dropped "WAN MB" CPU
	for o in $OPERATIONS; do
		for n in $SENDERS; do
			for p in $PACE; do
				measure "${o%%:*}" "${o#*:}" "$n" "$p"
			done
		done
	done
	exit
fi
here=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:-$here/build}" && pwd)
PATH=$build/tools:$build/launcher:$PATH
grid=$(mktemp)
trap 'rm -f "$grid"' EXIT
sed 's/^queue = .*/queue = 1MB/' "$here/netem/grids/gridmpi16.grid" >"$grid"
export PATH SENDERS PACE BYTES ITERS DILATE OPERATIONS
echo "$BYTES on gridmpi16.grid, queue 1 MB, k = $DILATE, $ITERS operations and a first one"
gridcoll lab run --quiet --mem 5GiB --dilate "$DILATE" "$grid" -- sh "$here/bench/senders.sh" --inside
