#!/bin/sh
# SPDX-License-Identifier: MIT
# The lab's links against their own definition, as iperf3, ping and the kernel's counters see them:
# for rates, delays and numbers of connections, what comes through against what headers leave of the
# rate, a ping's round trip against the delays, and whether a connection of TCP cubic overflowed a queue
# of one round trip (without which it would not fill the link: the queue is where losses belong).
#	bench/links.sh BUILD		a table; about ten minutes
#	RATES="1Gbit" DELAYS="10ms" FLOWS="1 4" SECONDS_EACH=10 BACKEND=tap bench/links.sh BUILD
# Needs iperf3, and an idle machine.
[ $# = 1 ] && [ -x "$1/tools/gridcoll" ] || {
	sed -n 's/^#\t/usage: /p' "$0" >&2
	exit 2
}
PATH=$(cd "$1" && pwd)/tools:$PATH
rates=${RATES:-100Mbit 1Gbit 10Gbit} delays=${DELAYS:-1ms 10ms 50ms} flows=${FLOWS:-1 4}
export seconds="${SECONDS_EACH:-10}"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

cat >"$work/inside.sh" <<'I'
at() { host=$1; shift; ip netns exec "gcl-$host" "$@"; }
for h in a1 b1; do
	# Windows for 10 Gbit/s over 100 ms, twice.
	at $h sysctl -qw net.ipv4.tcp_rmem="4096 131072 536870912" net.ipv4.tcp_wmem="4096 16384 536870912"
	at $h sysctl -qw net.ipv4.tcp_congestion_control=cubic
done
at a1 ping -q -c 20 -i 0.05 10.2.0.1 | sed -n 's|^rtt .* = [0-9.]*/\([0-9.]*\)/.*|\1|p'
at b1 iperf3 -s -1 -D >/dev/null
sleep 0.5
at a1 iperf3 -c 10.2.0.1 -P "$1" -t "$seconds" -O 5 -J >"$2/iperf.json"
gridcoll lab links 2>/dev/null | sed -n 's/^a > b: .*, dropped: \([0-9]*\) by the full queue.*/\1/p'
I

bits() { echo "$1" | sed 's/Gbit/000000000/; s/Mbit/000000/'; }
printf '%8s %6s %5s %14s %14s %10s %9s  %s\n' rate delay flows 'of what passes' 'rtt - 2 delay' overflowed busy 'late p50, p99'
for rate in $rates; do
	for delay in $delays; do
		for n in $flows; do
			# One round trip, at least 64 packets.
			queue=$(awk -v r="$(bits "$rate")" -v d="${delay%ms}" 'BEGIN {
				q = r / 8 * 2 * d / 1000; print int(q < 97000 ? 97000 : q) }')
			printf '[cluster a]\nhosts = a1\n[cluster b]\nhosts = b1\n[link a b]\nrate = %s\ndelay = %s\nqueue = %s\n' \
				"$rate" "$delay" "$queue" >"$work/grid"
			gridcoll lab run --backend "${BACKEND:-tap}" "$work/grid" -- \
				sh "$work/inside.sh" "$n" "$work" >"$work/out" 2>"$work/err" || {
				cat "$work/err"
				exit 1
			}
			python3 - "$work" "$(bits "$rate")" "${delay%ms}" "$rate" "$delay" "$n" <<'P'
import json, re, sys
work, rate, delay = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
out = open(work + "/out").read().split()
end = json.load(open(work + "/iperf.json"))["end"]
got = end["sum_received"]["bits_per_second"] / (rate * 1448 / 1514)
err = open(work + "/err").read()
late = re.search(r"at most (\d+) us late, 99 % (\d+) us", err)
print("%8s %6s %5s %13.1f%% %11.2f ms %10s %8s%%  %s us%s" % (*sys.argv[4:7], 100 * got,
      float(out[0]) - 2 * delay, out[1] if len(out) > 1 else "-",
      (re.search(r"busy (\d+) %", err) or [0, "<70"])[1], ", ".join(late.groups()) if late else "-",
      " !" if "MACHINE'S" in err else ""))
P
		done
	done
done
