#!/bin/sh
# SPDX-License-Identifier: MIT
# Jobs over an emulated WAN that has faults: what it survives, it survives with right results; what it
# cannot, ends in time with one error that names the other cluster. Skipped (77) where no lab can be.
#	test_faults_lab.sh weather PROFILE	loss, stalls, and a hundredth of the bandwidth
#	test_faults_lab.sh cuts PROFILE		the link is cut both ways, and each way alone
#	test_faults_lab.sh soak SECONDS		5 % loss and stalls of 4 s, for so long
# PROFILE is that of gridcoll-run's --timers. What it prints has the figures.
#
# Set by meson: GRIDCOLL, GRIDCOLL_RUN, FAULTS_JOB. Times are judged by ratios only.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lab.sh"
needs_uml
unless_sanitized
export GRIDCOLL_RUN FAULTS_JOB

# The lab's command is a part of this folder; what it says comes into `out`.
lab() { # SECONDS PART ARGUMENT...
	limit=$1
	shift
	part=$1
	shift
	timeout $limit "$GRIDCOLL" lab run --quiet --backend uml "$here/two.grid" -- \
		sh "$here/$part.sh" "$here" "$work" "$@" >"$work/out" 2>"$work/lab-err" && return
	echo "FAILED: the lab runs"
	sed 's/^/  /' "$work/out" "$work/lab-err"
	exit 1
}
# Of the N-th job (from 1): "SECONDS WHAT TEXT" in `out` becomes TEXT, or SECONDS.
nth_job() { awk -v n=$1 '$2 == "job" { at++ } at == n' "$work/out"; }
text_of() { nth_job $1 | awk -v w=$2 '$2 == w { print $3; exit }'; }
time_of() { nth_job $1 | awk -v w=$2 '$2 == w { print $1; exit }'; }
between() { # VALUE LOW HIGH
	awk -v v="$1" -v l="$2" -v h="$3" 'BEGIN { exit !(v != "" && v + 0 >= l && v + 0 <= h) }' ||
		{ echo "  got \"$1\", expected $2 ... $3"; return 1; }
}
lines() { grep -c "$@"; } # FILE comes last

# Ends with right results on all four ranks, and without a word but of streams that were lost.
check_good() { # JOB
	check "exit 0" [ "$(text_of 1 exit)" = 0 ]
	check "no rank failed" [ "$(lines ' failed ' "$work/$1")" = 0 ]
	check "all left at the end" [ "$(lines ' leaving ' "$work/$1")" = 4 ]
	check "no wrong result" [ "$(lines ' wrong ' "$work/$1")" = 0 ]
	check "no process is left" [ "$(text_of 1 alive)" = 0 ]
	check "nothing but warnings is said" \
		[ "$(lines -v -e 'warn: .* lost stream ' -e 's; dead after ' -e ': signs of life again$' "$work/$1.err")" = 0 ]
}

# Of operations that began between two moments: how many, and how long they took, in the mean of all
# ranks and at most.
operations() { # JOB BEGIN END
	awk -v b="$2" -v e="$3" '$3 == "did" && $2 >= b && $2 < e {
			n++
			sum += $5
			most = $5 > most ? $5 : most
		} END { if (n) printf "%d %.3f %.3f\n", n / 4, sum / n, most }' "$work/$1"
}
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (b > 0) printf "%.2f\n", a / b }'; }

weather() {
	lab 280 weather "$1"
	check_good job
	echo "weather: operations, mean and longest in seconds, mean by that of calm"
	calm=
	nth_job 1 | awk '$2 == "weather" { if (w) print w, b, $1; w = $3; b = $1 }
		$2 == "over" { print w, b, $1 }' >"$work/weathers"
	while read -r what begin end; do
		set -- $(operations job "$begin" "$end")
		: "${calm:=${2:-}}"
		echo "  $what: ${1:-0} ${2:-} ${3:-} $(ratio ${2:-0} $calm)"
		check "$what: operations end meanwhile" [ "${1:-0}" -gt 0 ]
		last=${2:-}
	done <"$work/weathers"
	check "all weathers were there" [ "$(wc -l <"$work/weathers")" = 6 ]
	check "afterwards it is as fast as before, or a fifth of that" between "$(ratio $last $calm)" 0 5
}

# One cut: job N of `out`; NAME of its files.
check_cut() { # N NAME DEAD
	dead=$3
	cut=$(time_of $1 cut)
	awk '$3 == "failed" { $3 = ""; print }' "$work/$2" >"$work/failed"
	check "$2: exit 1" [ "$(text_of $1 exit)" = 1 ]
	check "$2: no process is left" [ "$(text_of $1 alive)" = 0 ]
	check "$2: no wrong result" [ "$(lines ' wrong ' "$work/$2")" = 0 ]
	check "$2: the launcher says it once" [ "$(lines '^gridcoll-run: .* failed: ' "$work/$2.err")" = 1 ]
	check "$2: and names the other cluster's ranks and hosts" grep -q \
		'^gridcoll-run: ranks 2-3 on t1-t2 failed: no sign of life for .*network link' \
		"$work/$2.err"
	check_errors $1 "$2" -6 'ranks 2-3 on t1-t2: no sign of life for '
}
# The launcher's side is told its word. The other side is behind the cut: it may be ended by its
# agents first, finds that it does not hear the launcher, or does at the last moment.
check_errors() { # N NAME CODE TEXT
	check "$2: both ranks beside the launcher return its word" \
		[ "$(awk -v c="$3" '$1 < 2 && $3 == c' "$work/failed" | lines "$4" -)" = 2 ]
	check "$2: the others too, or that they do not hear it" \
		[ "$(awk '$1 >= 2' "$work/failed" |
			lines -v -e "$4" -e 'the launcher at .* gives no sign of life' -)" = 0 ]
	# The cut takes a moment, of which the end counts.
	first=$(sort -k2n "$work/failed" | awk -v t="$cut" 'NR == 1 { print $2 - t }')
	last=$(sort -k2n "$work/failed" | awk -v t="$cut" 'END { print $2 - t }')
	echo "  $2: $first ... $last s from the cut to the ranks' errors, $dead s by the profile"
	check "$2: not before its time" between "$(ratio $first $dead)" 0.5 9
	check "$2: in time" between "$(ratio $last $dead)" 0 2
}

cuts() { # PROFILE
	case $1 in
	fast) dead=4 ;;
	default) dead=20 ;;
	esac
	lab 280 cuts "$1"
	check_cut 1 both $dead
	check_cut 2 there $dead
	check_cut 3 back $dead
	[ "$1" = fast ] || return
	check "survive: exit 0" [ "$(text_of 4 exit)" = 0 ]
	check "survive: two go on" [ "$(lines ' shrunk ' "$work/survive")" = 2 ]
	check "survive: and leave well" [ "$(lines ' leaving ' "$work/survive")" = 2 ]
	check "survive: with right results" [ "$(lines ' wrong ' "$work/survive")" = 0 ]
	check "survive: no process is left" [ "$(text_of 4 alive)" = 0 ]
}

soak() { # SECONDS
	lab $(($1 + 240)) soak "$1"
	check_good job
	echo "soak: operations, mean and longest in seconds"
	for what in calm soak; do
		begin=$(time_of 1 $what) end=$(time_of 1 after-$what)
		set -- $(operations job "$begin" "$end")
		echo "  $what, $(echo "$end $begin" | awk '{ print $1 - $2 }') s: ${1:-0} ${2:-} ${3:-}"
		check "$what: operations end" [ "${1:-0}" -gt 0 ]
	done
	stalls=$(nth_job 1 | lines ' stall$' -)
	echo "  stalls: $stalls, warnings: $(wc -l <"$work/job.err")"
	check "it stalled" [ "$stalls" -gt 0 ]
}

"$@"
if [ $failures != 0 ]; then
	sed 's/^/  out: /' "$work/out"
	sed 's/^/  err: /' "$work"/*err
	grep -v ' did ' "$work"/[a-z]* | grep -e ' failed ' -e ' wrong ' -e ' out ' | sed 's/^/  /'
	exit 1
fi
