#!/bin/sh
# SPDX-License-Identifier: MIT
# How well each rung of the ladder keeps a rate: one host sends to another one over a link that could
# carry many times as much, by 1 and by 8 connections; bytes on the wire by the counters of the
# sender's queue, which count the headers of every packet. Then the budget is halved while it sends.
# "shared" is two jobs on the same hosts, each of which has half of the link as its budget, and always
# something to send: by --pace edt they share it.
#
#	bench/pacing.sh [BUILD [RUNG...]]	BUILD: a build directory, default "build"
#
# Fails if one is off by more than 3 %, or the two jobs together by more than 5 %. Two minutes.
set -eu

rate=40 # Mbit/s
seconds=3

sent() { # bytes so far, and when: ns
	ip netns exec gcl-a tc -s qdisc show dev eth0 | awk '/Sent/ {print $2; exit}'
	date +%s%N
}

error_of() { # BYTES NS BYTES NS MBIT: measured and its error, as two words
	echo "$@" | awk '{m = ($3 - $1) * 8000 / ($4 - $2); printf "%.2f %.2f\n", m, 100 * (m / $5 - 1)}'
}

# What a host has that is not in a lab, or has no rights.
queue() { # RUNG
	for host in a b; do # all ranks look for the rung that is asked for
		case $1 in
		tcp | user) ip netns exec gcl-$host tc qdisc replace dev eth0 root pfifo limit 1000 ;;
		htb) ip netns exec gcl-$host tc qdisc del dev eth0 root || true ;;
		*) ip netns exec gcl-$host tc qdisc replace dev eth0 root fq ;;
		esac
	done
}

await_traffic() { # BYTES before; of a job in the background, $!
	until [ $(($(sent | head -1) - $1)) -gt 2000000 ]; do
		if ! kill -0 $!; then
			cat /tmp/pacing.*txt
			exit 1
		fi
		sleep 0.1
	done
}

row() { # RUNG FLOWS MBIT MEASURED ERROR
	printf "%-6s %6d %10.1f %10.2f %+8.2f %%\n" "$@"
	case $1,${5#-} in
	*,[0-2].* | shared,[34].*) ;;
	*) echo off >>/tmp/pacing.off ;;
	esac
}

halves() { # RATE of the link, in Mbit/s: two jobs, each with half of it
	queue edt
	jobs=
	for i in 1 2; do
		gridcoll-run --wan-budget "a>b=$(($1 / 2))Mbit" --pace edt gridcoll bench bcast \
			--bytes 48MiB --iters 1 >/tmp/pacing.$i.txt 2>&1 &
		jobs="$jobs $!"
		await_traffic "$(sent | head -1)"
	done
	sleep 3 # the second is at work, too
	for i in 1 2 3; do
		# shellcheck disable=SC2046 # words
		set -- "$1" $(sent && sleep $seconds && sent)
		# shellcheck disable=SC2086
		if ! kill -0 $jobs; then
			cat /tmp/pacing.1.txt /tmp/pacing.2.txt
			exit 1
		fi
		# shellcheck disable=SC2046
		row shared 8 $(($1 / 2)) $(error_of "$2" "$3" "$4" "$5" $(($1 / 2)))
	done
	# shellcheck disable=SC2086
	kill $jobs
	wait
}

measure() { # RUNG FLOWS
	queue "$1"
	gridcoll-run --wan-budget "a>b=${rate}Mbit" --pace "$1" gridcoll bench bcast \
		--bytes 48MiB --streams "$2" --iters 1 >/tmp/pacing.txt 2>&1 &
	job=$!
	await_traffic "$(sent | head -1)"
	# shellcheck disable=SC2046 # words
	set -- "$1" "$2" $(sent && sleep $seconds && sent)
	row "$1" "$2" $rate $(error_of "$3" "$4" "$5" "$6" $rate)
	if ! gridcoll ctl budget "a>b=$((rate / 2))Mbit"; then
		cat /tmp/pacing.txt
		exit 1
	fi
	sleep 1
	set -- "$1" "$2" $(sent && sleep $seconds && sent)
	row "$1" "$2" $((rate / 2)) $(error_of "$3" "$4" "$5" "$6" $((rate / 2)))
	if ! kill $job 2>/dev/null; then
		cat /tmp/pacing.txt
		exit 1
	fi
	wait $job || true
}

if [ "${1-}" = --inside ]; then
	shift
	rm -f /tmp/pacing.off
	printf "%-6s %6s %10s %10s %8s\n" rung flows "asked Mb/s" measured error
	for rung in ${*:-fq tcp user edt htb shared}; do
		if [ "$rung" = shared ]; then
			halves $rate
			continue
		fi
		measure "$rung" 1
		measure "$rung" 8
	done
	[ ! -e /tmp/pacing.off ]
	exit
fi
here=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:-$here/build}" && pwd)
[ $# -eq 0 ] || shift
PATH=$build/tools:$build/launcher:$PATH
export PATH
grid=$(mktemp)
trap 'rm -f "$grid"' EXIT
cat >"$grid" <<GRID
[cluster a]
hosts = a
[cluster b]
hosts = b
[link a b]
rate = 1Gbit
delay = 5ms
GRID
gridcoll lab run --quiet --keep-awake --mem 2GiB "$grid" -- sh "$here/bench/pacing.sh" --inside "$@"
