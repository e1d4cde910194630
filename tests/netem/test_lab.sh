#!/bin/sh
# SPDX-License-Identifier: MIT
# The lab as its users meet it: whole runs of gridcoll lab. Skipped (77) where no lab can be.
#
# Set by meson: GRIDCOLL, GRIDCOLL_RUN, GRIDCOLL_LAB_SENDER. No time is judged but by its ratio to what the network
# allows.
set -u
. "$(dirname "$0")/../lab.sh"
needs_uml
export SENDER="$GRIDCOLL_LAB_SENDER"

lab() { "$GRIDCOLL" lab run --quiet --backend uml "$@" 2>"$work/stderr"; }

bad() {
	echo "FAILED: $1"
	sed 's/^/  stderr: /' "$work/stderr" | head -20
	failures=$((failures + 1))
}
says() { grep -q -e "$1" "$work/stderr"; }

# Nothing of a lab is left: no process that knows its directory, no directory.
clean() {
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		if ! pgrep -f "uml_dir=$TMPDIR/" >/dev/null && [ -z "$(ls -A "$TMPDIR")" ]; then
			return 0
		fi
		sleep 0.25
	done
	pgrep -fa "uml_dir=$TMPDIR/"
	ls -A "$TMPDIR"
	return 1
}

cat >"$work/mesh.grid" <<'E'
[cluster a]
hosts = a[1-2]
nic = 50Mbit
lan_delay = 1ms
[cluster b]
hosts = b1
nic = 50Mbit
[cluster c]
hosts = c1
[link a > b]
delay = 20ms
rate = 100Mbit
queue = 1MB
[link b > a]
delay = 60ms
rate = 100Mbit
[link a c]
delay = 30ms
[link b c]
delay = 10ms
E

# --- what the command line refuses, without a guest ------------------------------------------------
printf '[cluster a]\nhosts = k1\nnic = fast\n' >"$work/bad.grid"
lab "$work/bad.grid" -- true
check "bad grid file: exit 2" [ $? = 2 ]
check "bad grid file: file and line" says "bad.grid:3: nic = fast, expected"
lab "$work/none.grid" -- true
check "no grid file: exit 2" [ $? = 2 ]
check "no grid file: its name" says "none.grid"
lab "$work/mesh.grid"
check "no command: exit 2" [ $? = 2 ]
check "no command: says so" says "no command"
lab --dilate 0 "$work/mesh.grid" -- true
check "bad --dilate: exit 2" [ $? = 2 ]
check "bad --dilate: says so" says "dilate \"0\", expected"
lab --mem 1K "$work/mesh.grid" -- true
check "bad --mem: exit 2" [ $? = 2 ]
lab -- true
check "no GRID: exit 2" [ $? = 2 ]

unless_sanitized

"$GRIDCOLL" lab up --backend uml "$work/mesh.grid" 2>"$work/stderr"
check "no standing lab in uml: exit 1" [ $? = 1 ]
check "no standing lab in uml: says what to do" says "gridcoll lab run"

# --- one lab: three clusters, each direction its own -----------------------------------------------
cat >"$work/inside.sh" <<'E'
set -u
at() { host=$1; shift; ip netns exec "gcl-$host" "$@"; }
counter() { at wan cat "/sys/class/net/$1/statistics/tx_$2"; }
# The shortest of eight pings in milliseconds.
rtt() { at "$1" ping -q -c 8 -i 0.2 "$2" | sed -n 's|^rtt .* = \([0-9.]*\)/.*|\1|p'; }

echo "rtt-ab $(rtt a1 10.2.0.1)"
echo "rtt-bc $(rtt b1 10.3.0.1)"
echo "rtt-aa $(rtt a1 a2)"

bytes=$(counter wan-0-1 bytes) packets=$(counter wan-0-1 packets) back=$(counter wan-1-0 bytes)
other=$(counter wan-0-2 bytes)
at b1 "$SENDER" take 7000 >/run/taken &
taker=$!
begin=$(cut -d' ' -f1 /proc/uptime)
at a1 "$SENDER" send 10.2.0.1 7000 4000000
echo "send-status $?"
wait $taker
end=$(cut -d' ' -f1 /proc/uptime)
echo "taken $(cat /run/taken)"
bytes=$(($(counter wan-0-1 bytes) - bytes)) packets=$(($(counter wan-0-1 packets) - packets))
echo "crossed $((bytes - 66 * packets))"
echo "back $(($(counter wan-1-0 bytes) - back))"
echo "other $(($(counter wan-0-2 bytes) - other))"
echo "seconds $begin $end"

"$GRIDCOLL" lab link a1 down
at a1 ping -q -c 2 -i 0.2 -W 1 10.2.0.1 >/dev/null
echo "down $?"
"$GRIDCOLL" lab link a1 up
at a1 ping -q -c 10 -i 0.2 -w 20 10.2.0.1 | grep -q ' 0 received'
echo "up-none $?"
"$GRIDCOLL" lab link nobody down 2>/dev/null
echo "nobody $?"
echo "lab $(test -r "$GRIDCOLL_LAB" && echo readable)"
echo "cwd $PWD"
chrt -p "$(pgrep -o ksoftirqd)" | awk '/policy/ { print "softirqs", $NF }'
exit 7
E
cd "$work" && lab mesh.grid -- sh inside.sh >out
check "the command's status comes back" [ $? = 7 ]
value() { awk -v k="$1" '$1 == k { print $2 }' "$work/out"; }
between() { # VALUE LOW HIGH
	awk -v v="$1" -v l="$2" -v h="$3" 'BEGIN { exit !(v != "" && v + 0 >= l && v + 0 < h) }' ||
		{ echo "  got \"$1\", expected $2 ... $3"; return 1; }
}
check "round trip a-b: both delays, and no more than 30 % above" between "$(value rtt-ab)" 80 104
check "round trip b-c: another link" between "$(value rtt-bc)" 20 26
check "round trip inside a: the LAN's" between "$(value rtt-aa)" 2 5
check "a transfer over the WAN ends well" [ "$(value send-status)" = 0 ]
check "and is whole" [ "$(value taken)" = 4000000 ]
check "the WAN's counter counts it" between "$(value crossed)" 4000000 4080000
check "the other direction's only acknowledgements" between "$(value back)" 1 400000
check "the other link's nothing" [ "$(value other)" = 0 ]
check "no faster than the NIC" between "$(awk '$1 == "seconds" { print $3 - $2 }' out)" 0.6 1000
check "link down: no answer" [ "$(value down)" = 1 ]
check "link up again: answers" [ "$(value up-none)" = 1 ]
check "link of an unknown host: exit 2" [ "$(value nobody)" = 2 ]
check "GRIDCOLL_LAB names a file" [ "$(value lab)" = readable ]
check "the directory is kept" [ "$(value cwd)" = "$work" ]
check "the network goes before ranks" [ "$(value softirqs)" = SCHED_FIFO ]
check "nothing is left" clean

# --- a packet takes as long as it is, also the first after a pause -----------------------------------
# 60000 bytes at 50 Mbit/s take 9.8 ms each way, though a bucket has room for them, and the LAN 1 ms. The quickest of
# eight: a busy machine takes longer, but never less.
printf '[cluster a]\nhosts = a[1-2]\nnic = 1Gbit\nlan_delay = 50us\n' >lan.grid
lab --dilate 20 lan.grid -- sh -c '
	for n in 56 60000; do
		ip netns exec gcl-a1 ping -q -c 8 -i 0.2 -s $n a2
	done' >out
check "a round trip of 60000 bytes takes their time, once each way" \
	awk -F '[=/ ]+' '/^rtt/ { t[n++] = $6 } END {
		print "  milliseconds: " t[0] " short, " t[1] " long"
		exit !(n == 2 && t[0] >= 2 && t[1] > 21 && t[1] < 38) }' out

# --- standard streams --------------------------------------------------------------------------------
printf '[cluster a]\nhosts = a1\n' >one.grid
head -c 1000000 /dev/urandom >data
cat >progress.sh <<'E'
"$GRIDCOLL_RUN" --quiet-prefix sh -c 'echo "job <$GRIDCOLL_PROGRESS>"'
"$GRIDCOLL_RUN" --quiet-prefix sh -c 'echo "file <$GRIDCOLL_PROGRESS>"' 2>/run/stderr
"$GRIDCOLL_RUN" --quiet-prefix sh -c 'echo "pipe <$GRIDCOLL_PROGRESS>"' 2>&1 | cat
E
lab one.grid -- sh -c 'cat; cat data >&2; sh progress.sh </dev/null >progress' <data >out
check "standard streams: status" [ $? = 0 ]
check "1 MB of input and output, whole" cmp data out
check "1 MB of errors, whole" cmp -n 1000000 data stderr
check "without a terminal no job shows how far it is" [ "$(grep -c '<>' progress)" = 3 ]
lab one.grid -- nosuchcommand
check "a command that is not there: 127" [ $? = 127 ]
check "and it is named" says nosuchcommand
lab one.grid -- sh -c 'yes' | head -n 1 >out
check "a reader that goes away ends the command" [ "$(cat out)" = y ]
check "nothing is left" clean

# --- a terminal outside is one to those inside whose standard error leads there ----------------------
if python3 -c 'import pty; pty.openpty()' 2>/dev/null; then
	python3 -c 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) != 0)' \
		"$GRIDCOLL" lab run --quiet --backend uml one.grid -- sh progress.sh >out </dev/null
	check "a terminal: status" [ $? = 0 ]
	check "a job whose standard error it is shows how far it is" grep -q '^job <1>' out
	check "not in a file" grep -q '^file <>' out
	check "and not in a pipe" grep -q '^pipe <>' out
else
	echo "no pseudo-terminal here: progress in a lab is not looked at"
fi
check "nothing is left" clean

# --- a guest that cannot boot --------------------------------------------------------------------------
mkdir bin
printf '#!/bin/sh\necho "Kernel panic - not syncing: no reason"\nexit 1\n' >bin/linux.uml
chmod +x bin/linux.uml
PATH="$work/bin:$PATH" lab one.grid -- true
check "no boot: exit 1" [ $? = 1 ]
check "no boot: says why" says "did not boot: Kernel panic - not syncing: no reason"
check "nothing is left" clean

# --- ended from outside ----------------------------------------------------------------------------------
start_sleeper() {
	rm -f started
	"$GRIDCOLL" lab run --quiet --backend uml one.grid -- sh -c 'echo > started; sleep 1000' \
		2>"$work/stderr" </dev/null &
	pid=$!
	while [ ! -e started ] && kill -0 $pid 2>/dev/null; do # booting takes as long as it takes
		sleep 0.1
	done
}
start_sleeper
kill -TERM $pid
wait $pid
check "SIGTERM goes to the command" [ $? = 143 ]
check "SIGTERM: nothing is left" clean
start_sleeper
check "a running lab is seen" [ -n "$(pgrep -f "uml_dir=$TMPDIR/")" ]
kill -KILL $pid
wait $pid 2>/dev/null
check "SIGKILL: nothing is left" clean

# --- the host backend, in a guest: its kernel has what it needs, and it is root there ----------------
cat >nested.sh <<'E'
set -u
two=$1
others() { ls /run/netns | grep -c -v -x -e gcl-one -e gcl-sw-outer; }
"$GRIDCOLL" lab run --quiet --backend host "$two" -- sh -c 'echo > /run/started; exec sleep 1000' &
pid=$!
while [ ! -e /run/started ] && kill -0 $pid 2>/dev/null; do sleep 0.1; done
"$GRIDCOLL" lab run --quiet --backend host "$two" -- true 2>/dev/null
echo "second $?"
kill -KILL $pid
wait $pid 2>/dev/null
echo "leavings $(others)"
"$GRIDCOLL" lab run --quiet --backend host "$two" -- sh -c \
	'ip netns exec gcl-a1 ping -q -c 1 10.2.0.1 >/dev/null && exit 5'
echo "status $?"
echo "left $(others)"
"$GRIDCOLL" lab up --backend host "$two" >/run/up
echo "up $? $(cat /run/up)"
"$GRIDCOLL" lab run --quiet --backend host "$two" -- true 2>/run/why
echo "stands $? $(grep -c 'gridcoll lab down' /run/why)"
ip netns exec gcl-a1 ping -q -c 1 10.2.0.1 >/dev/null
echo "answers $?"
GRIDCOLL_LAB=/run/gridcoll/lab.json "$GRIDCOLL" lab link a1 down
echo "unplugged $?"
"$GRIDCOLL" lab down
echo "down $? $(others)"
"$GRIDCOLL" lab down 2>/run/why
echo "none $? $(grep -c 'no lab stands' /run/why)"
ip netns add gcl-b1
"$GRIDCOLL" lab run --quiet --backend host "$two" -- true 2>/run/why
echo "foreign $? $(grep -c 'gcl-b1 already' /run/why) $(test -e /run/netns/gcl-b1 && echo kept)"
E
printf '[cluster outer]\nhosts = one\n' >outer.grid
printf '[cluster a]\nhosts = a1\n[cluster b]\nhosts = b1\n[link a b]\ndelay = 20ms\nrate = 100Mbit\n' >two.grid
lab outer.grid -- sh nested.sh two.grid >out
check "host: a second lab is refused" [ "$(value second)" = 1 ]
check "host: a killed lab leaves its namespaces" [ "$(value leavings)" = 5 ]
check "host: the next one cleans up, runs, and has the command's status" [ "$(value status)" = 5 ]
check "host: and leaves nothing" [ "$(value left)" = 0 ]
check "host: up" grep -q '^up 0 export GRIDCOLL_LAB=/' out
check "host: one lab at a time" grep -q '^stands 1 1' out
check "host: it stands" grep -q '^answers 0' out
check "host: its cables can be pulled" grep -q '^unplugged 0' out
check "host: down leaves nothing" grep -q '^down 0 0' out
check "host: down without a lab says so" grep -q '^none 0 1' out
check "host: a namespace that is not ours is kept" [ "$(grep foreign out)" = "foreign 1 1 kept" ]
check "nothing is left" clean

[ $failures = 0 ]
