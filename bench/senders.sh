#!/bin/sh
# SPDX-License-Identifier: MIT
# The GridMPI paper's effect, and what pacing makes of it (M. Matsuda et al., CLUSTER 2006, 4.3: over
# 8 senders of 1 Gbit/s into a WAN of 10 Gbit/s, operations become slower, and times spread): modified
# van de Geijn and Rabenseifner on gridmpi16.grid with a shallow bottleneck of 1 MB, by 1 to 16
# senders, unpaced and paced. Of each: times of warm operations, and segments that TCP sent again
# between the clusters in all of them; apart from these the first operation, whose windows open, with
# what was sent again by then. What the bottlenecks dropped is counted over all of them together.
#
#	bench/senders.sh [BUILD]		BUILD: a build directory, default "build"
#	bench/senders.sh --judge FILE		what is said of FILE's rows: pass or fail
#	bench/senders.sh --plot FILE SVG	a picture of them (gnuplot)
#
#	SENDERS="1 2 4 8 16"  PACE="off auto"  BYTES=16MiB  ITERS=10  DILATE=30
#	OPERATIONS="bcast:vandegeijn-mod allreduce:rabenseifner-mod"	what is measured
#	DATA=FILE	rows are added to it as well: so one file can come from several runs
#
# An hour, and only on an otherwise idle machine; less with fewer of the above. Connections are not
# encrypted (GRIDCOLL_SECURITY=auth), which would take the lab's one processor. Fails where something
# measured does not hold.
set -eu

: "${SENDERS=1 2 4 8 16}" "${PACE=off auto}" "${BYTES=16MiB}" "${ITERS=10}" "${DILATE=30}"
: "${OPERATIONS=bcast:vandegeijn-mod allreduce:rabenseifner-mod}" "${GRIDCOLL_SECURITY=auth}"

columns="operation senders pace min median max first resent resent-first dropped-all WAN CPU"
row="%-10s %7s %-5s %8s %8s %8s %8s %8s %13s %11s %9s %5s\n"

hosts() {
	ip netns list | awk '/^gcl-[kt][0-9]/ {print $1}'
}

resent() { # segments, by all hosts so far, to whomever
	for ns in $(hosts); do
		ip netns exec "$ns" sed -n '/^Tcp: [0-9]/p' /proc/net/snmp
	done | awk '{n += $13} END {print n + 0}'
}

dropped() { # by the bottlenecks so far: packets of several segments each
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

figure() { # NAME: of the one result, which comes before what is said of sockets
	tr -d ' \n' </tmp/senders.json |
		sed "s/\"sockets\":.*//; s/.*\"$1\":\([^],}]*\).*/\1/; s/^\[//"
}

measure() { # OPERATION ALGORITHM SENDERS PACE
	before=$(resent) drops=$(dropped)
	if ! gridcoll-run --pace "$4" gridcoll bench "$1" --bytes "$BYTES" --iters "$ITERS" \
		--algorithm "$2:senders=$3" --json /tmp/senders.json >/tmp/senders.txt 2>&1; then
		cat /tmp/senders.txt
		exit 1
	fi
	after=$(resent)
	# Times are sorted; counters of bench are those of warm operations.
	tr -d ' \n' </tmp/senders.json | sed 's/.*"warm_ns":\[\([^]]*\)\].*/\1/' | tr ',' ' ' |
		awk -v op="$1" -v n="$3" -v p="$4" -v k="$DILATE" -v row="$row" \
			-v first="$(figure first_ns)" -v median="$(figure median_ns)" \
			-v wan="$(figure wan_bytes)" -v cpu="$(figure cpu_percent)" \
			-v resent="$(figure wan_resent_segments)" \
			-v begin=$((after - before - $(figure resent_segments))) \
			-v drops=$(($(dropped) - drops)) '
		function ms(ns) { return sprintf("%.1f", ns / k / 1e6) }
		{ printf row, op, n, p, ms($1), ms(median), ms($NF), ms(first), resent, begin,
			drops, sprintf("%.1f", wan / 1e6), cpu }'
}

# Rows of one operation, number of senders and way of pacing count as one: the least and the most of
# them, the mean median, all that was sent again.
judge() { # FILE
	awk -v spread=1.15 -v slower=1.05 -v less=10 '
	function say(ok, text) { printf "%s  %s\n", ok ? "pass" : "FAIL", text; failed += !ok }
	$1 == "bcast" || $1 == "allreduce" {
		k = $1 " " $3 " " $2
		rows[k]++
		if (!(k in least) || $4 < least[k]) least[k] = $4
		if ($6 > most[k]) most[k] = $6
		sum[k] += $5; again[k] += $8; busy = $12 > busy ? $12 : busy
	}
	function median(o, p, n) { return sum[o " " p " " n] / rows[o " " p " " n] }
	function best_below(o, p, m,   n, b) {
		for (n = 1; n < m; n *= 2)
			if (o " " p " " n in rows && (!b || median(o, p, n) < b)) b = median(o, p, n)
		return b
	}
	END {
		split("bcast allreduce", ops)
		for (i = 1; i <= 2; i++) {
			o = ops[i]; off = o " off 16"; on = o " auto 16"
			if (off in rows) {
				b = best_below(o, "off", 16)
				say(again[off] > 0, sprintf("%s: 16 unpaced senders lose packets: %d segments " \
					"sent again", o, again[off]))
				if (b) say(median(o, "off", 16) > slower * b, sprintf("%s: and speed: %.2f " \
					"times the best of fewer", o, median(o, "off", 16) / b))
			}
			if (off in rows && on in rows)
				say(again[on] * less <= again[off], sprintf("%s: paced, %d are sent again, " \
					"not %d: a tenth at most", o, again[on], again[off]))
			for (n = 1; n <= 16; n *= 2) {
				k = o " auto " n
				if (!(k in rows)) continue
				b = best_below(o, "auto", n)
				if (b) say(median(o, "auto", n) <= slower * b, sprintf("%s: %d paced take " \
					"%.2f times the best of fewer", o, n, median(o, "auto", n) / b))
				say(most[k] <= spread * least[k], sprintf("%s: %d paced, max/min %.2f", o, n,
					most[k] / least[k]))
			}
		}
		say(busy > 0 && busy <= 70, sprintf("the lab was at most %d %% busy: above 70, times are the CPU'\''s", busy))
		exit failed > 0
	}' "$1"
}

plot() { # FILE SVG
	{
		echo "set terminal svg size 960,1140 dynamic font 'sans,12' background 'white' noenhanced
set multiplot layout 3,2
set grid linecolor '#dddddd'
set border linecolor '#555555'
set title font ',11'
set rmargin 4
set key below samplen 1.5
set logscale x 2
set xrange [0.8:20]
set xtics (1, 2, 4, 8, 16)
set xlabel 'senders'"
		for figure in "4:5:6 ms" "8 segments" "11 MB"; do
			for op in bcast allreduce; do
				panel "$1" "$op" "${figure#* }" "${figure%% *}"
			done
		done
		echo "unset multiplot"
	} | gnuplot >"$2"
}

panel() { # FILE OPERATION UNIT COLUMNS
	case $3 in
	ms) what="time, warm: median, least and most" ;;
	segments) what="sent again in all warm operations" ;;
	*) what="WAN traffic per operation" ;;
	esac
	echo "set title '$2: $what'
set ylabel '$3'
set yrange [0:*]"
	sep="plot "
	for p in off auto; do
		name=unpaced color="#c0392b" at=0.97
		[ $p = off ] || name=paced color="#2471a3" at=1.03
		data="< awk '\$1 == \"$2\" && \$3 == \"$p\"' $1 | sort -n -k2,2"
		if [ "$3" = ms ]; then
			printf "%s\"%s\" using (\$2*$at):5:4:6 with yerrorlines linewidth 2 linecolor '%s' pointtype 7 pointsize 0.6 title '%s'" \
				"$sep" "$(echo "$data" | sed 's/"/\\"/g')" "$color" "$name"
		else
			printf "%s\"%s\" using (\$2*$at):$4 with linespoints linewidth 2 linecolor '%s' pointtype 7 pointsize 0.6 title '%s'" \
				"$sep" "$(echo "$data" | sed 's/"/\\"/g')" "$color" "$name"
		fi
		sep=", "
	done
	echo
}

case ${1-} in
--inside)
	slow_packets
	for o in $OPERATIONS; do
		for n in $SENDERS; do
			for p in $PACE; do
				measure "${o%%:*}" "${o#*:}" "$n" "$p"
			done
		done
	done
	exit
	;;
--judge)
	judge "$2"
	exit
	;;
--plot)
	plot "$2" "$3"
	exit
	;;
esac

here=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:-$here/build}" && pwd)
PATH=$build/tools:$build/launcher:$PATH
grid=$(mktemp) rows=$(mktemp)
trap 'rm -f "$grid" "$rows"' EXIT
sed 's/^queue = .*/queue = 1MB/' "$here/netem/grids/gridmpi16.grid" >"$grid"
export PATH SENDERS PACE BYTES ITERS DILATE OPERATIONS GRIDCOLL_SECURITY
{
	echo "# $BYTES on gridmpi16.grid, queue 1 MB, k = $DILATE, $ITERS warm operations;" \
		"times in ms, WAN in MB per operation, CPU in %"
	# shellcheck disable=SC2059,SC2086 # the columns' names are words
	printf "# $row" ${columns}
} | tee "$rows"
{
	gridcoll lab run --quiet --keep-awake --mem 5GiB --dilate "$DILATE" "$grid" -- \
		sh "$here/bench/senders.sh" --inside || echo "# failed"
} | tee -a "$rows"
! grep -q '^# failed' "$rows" || exit 1
[ -z "${DATA-}" ] || cat "$rows" >>"$DATA"
judge "${DATA:-$rows}"
