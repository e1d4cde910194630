#!/bin/sh
# SPDX-License-Identifier: MIT
# gridcoll cp over an emulated WAN: a file reaches every host; a host's link goes down in
# mid-transfer. Skipped (77) where no lab can be.
#	test_cp_lab.sh TIMERS PROMISE	(the profile, and within how many seconds all must be over)
#
# Set by meson: GRIDCOLL, GRIDCOLL_RUN.
set -u
timers=$1 promise=$2
. "$(dirname "$0")/../lab.sh"
choose_backend
export GRIDCOLL_RUN

at_most() { awk -v v="$1" -v h="$2" 'BEGIN { exit !(v != "" && v + 0 <= h) }'; }

# So slow that what goes to seven hosts in a few seconds has room.
cat >"$work/slow.grid" <<'G'
[cluster kyoto]
hosts = k[1-4]
nic = 50Mbit
[cluster tokyo]
hosts = t[1-4]
nic = 50Mbit
[link kyoto tokyo]
rate = 500Mbit
delay = 20ms
G

cat >"$work/inside.sh" <<'E2'
set -u
work=$1 timers=$2
dir=$(mktemp -d) # a guest's memory
others="k2 k3 k4 t1 t2 t3 t4"
# Time as a process sees it that does nothing: where the machine is busy with other things, it passes
# as slowly for this one as for the ranks.
while sleep 0.1; do echo; done >"$dir/ticks" &
ticker=$!
now() { wc -l <"$dir/ticks"; }

# Of no even length.
head -c 2345679 /dev/urandom >"$dir/data"
"$GRIDCOLL_RUN" "$GRIDCOLL" cp -q "$dir/data" "$dir/good/%h/" 2>"$work/good-err"
echo "good-status $?"
same=0
for h in $others; do cmp -s "$dir/data" "$dir/good/$h/data" && same=$((same + 1)); done
echo "same $same"
echo "source-left-alone $(ls -d "$dir/good/k1" 2>/dev/null)"

truncate -s 1T "$dir/big"
for h in $others; do mkdir -p "$dir/out/$h"; echo "before $h" >"$dir/out/$h/big"; done
"$GRIDCOLL_RUN" --timers "$timers" "$GRIDCOLL" cp "$dir/big" "$dir/out/%h/" 2>"$work/err" &
job=$!
# Its copy has no name before it is whole. Seen from here, a host's path may begin above a changed root.
begun() { ls -l /proc/[0-9]*/fd 2>/dev/null | grep -c "$dir/out/t3/#"; }
while [ "$(begun)" = 0 ] && kill -0 $job 2>/dev/null; do
	sleep 0.1
done
sleep 1
echo "begun $(begun)"
begin=$(now)
"$GRIDCOLL" lab link t3 down
wait $job
echo "status $?"
echo "tenths $(($(now) - begin))"
untouched=0
for h in $others; do
	[ "$(ls -A "$dir/out/$h")" = big ] && [ "$(cat "$dir/out/$h/big")" = "before $h" ] &&
		untouched=$((untouched + 1))
done
echo "untouched $untouched"
alive=0
for f in /proc/[0-9]*/cmdline; do
	tr '\0' ' ' <"$f" 2>/dev/null | grep -q 'gridcoll cp' && alive=$((alive + 1))
done
echo "alive $alive"
kill $ticker
E2

"$GRIDCOLL" lab run --quiet --backend "$backend" "$work/slow.grid" -- \
	sh "$work/inside.sh" "$work" "$timers" >"$work/out" 2>"$work/lab-err"
check "the lab runs" [ $? = 0 ]

check "a file over the WAN: exit 0" [ "$(value good-status)" = 0 ]
check "seven copies, byte for byte" [ "$(value same)" = 7 ]
check "and none at the source" [ -z "$(value source-left-alone)" ]
check "no word" [ ! -s "$work/good-err" ]

check "the link went down in mid-transfer" [ "$(value begun)" = 1 ]
check "exit 1" [ "$(value status)" = 1 ]
# A rank may lose a stream to one that has ended already, and warn of it. First of all one is missed.
check "one message" [ "$(grep -vc -e 'gridcoll: warn: .*: \(lost stream\|from rank\) ' -e 's; dead after ' "$work/err")" = 1 ]
check "it names the rank and the host" grep -q '^gridcoll-run: rank 6 on t3 failed: ' "$work/err"
# Whoever notices first: the launcher, or a peer.
check "and the cause" grep -q -e 'no sign of life for .*network link' -e 'no answer within' \
	-e 'Connection timed out' "$work/err"
check "all is over in time (after $(value tenths) tenths of a second)" \
	at_most "$(value tenths)" $((10 * promise))
check "what was there is untouched, and nothing beside it" [ "$(value untouched)" = 7 ]
check "no process is left" [ "$(value alive)" = 0 ]

if [ $failures != 0 ]; then
	sed 's/^/  out: /' "$work/out"
	sed 's/^/  err: /' "$work/err" "$work/good-err" "$work/lab-err"
	exit 1
fi
