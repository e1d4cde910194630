#!/bin/sh
# SPDX-License-Identifier: MIT
# The lab whose links are gridcoll's own, on the running kernel. Skipped (77) where that cannot be.
#
# Set by meson: GRIDCOLL, GRIDCOLL_RUN, GRIDCOLL_LAB_SENDER. Of times only what a busy machine cannot make wrong is
# judged: nothing is earlier than the network lets it be.
set -u
work=$(mktemp -d /tmp/gridcoll-test-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
export GRIDCOLL SENDER="$GRIDCOLL_LAB_SENDER"
failures=0
ok() { echo "ok: $1"; }
bad() {
	echo "FAILED: $1"
	sed 's/^/  stderr: /' "$work/stderr" | head -20
	failures=$((failures + 1))
}
check() { # NAME COMMAND...
	what=$1
	shift
	if "$@"; then ok "$what"; else bad "$what"; fi
}
says() { grep -q -e "$1" "$work/stderr"; }
value() { sed -n "s/^$1 //p" "$work/out"; }
least() { # VALUE LEAST
	awk -v v="$1" -v l="$2" 'BEGIN { exit !(v != "" && v + 0 >= l) }' ||
		{ echo "  got \"$1\", expected $2 or more"; return 1; }
}
lab() { "$GRIDCOLL" lab run --quiet --backend tap "$@" 2>"$work/stderr"; }
cd "$work" || exit 1

printf '[cluster a]\nhosts = a1\n' >one.grid
if ! lab one.grid -- true; then
	cat stderr
	grep -q 'no tap backend' stderr && exit 77
	exit 1
fi

cat >mesh.grid <<'G'
[cluster a]
hosts = a[1-2]
nic = 100Mbit
[cluster b]
hosts = b1
[cluster c]
hosts = c1
[link a > b]
delay = 20ms
rate = 80Mbit
[link b > a]
delay = 60ms
[link a c]
delay = 30ms
rate = 40Mbit
[link b c]
via = a
G

cat >inside.sh <<'G'
set -u
at() { host=$1; shift; ip netns exec "gcl-$host" "$@"; }
# What came out of the link to $1 from $2 (clusters by number).
counter() { at "sw-$1" cat "/sys/class/net/w$2/statistics/rx_bytes"; }
rtt() { at "$1" ping -q -c 5 -i 0.2 "$2" | sed -n 's|^rtt .* = \([0-9.]*\)/.*|\1|p'; }
now() { cut -d' ' -f1 /proc/uptime; }
transfer() { # FROM TO ADDRESS
	at "$2" "$SENDER" take 7000 >taken &
	taker=$!
	begin=$(now)
	at "$1" "$SENDER" send "$3" 7000 4000000 || echo "send-failed $?"
	wait $taker
	echo "$1-$2 $(cat taken) $(now) $begin" | awk '{ print $1 "-bytes", $2; print $1 "-seconds", $3 - $4 }'
}
echo "rtt-ab $(rtt a1 10.2.0.1)"
echo "rtt-ac $(rtt a1 10.3.0.1)"
echo "rtt-bc $(rtt b1 10.3.0.1)"
bytes=$(counter b 0) other=$(counter c 0)
transfer a1 b1 10.2.0.1
echo "crossed $(($(counter b 0) - bytes))"
echo "other $(($(counter c 0) - other))"
transfer b1 c1 10.3.0.1
"$GRIDCOLL" lab link a1 down
at a1 ping -q -c 2 -i 0.2 -W 1 10.2.0.1 >/dev/null
echo "down $?"
"$GRIDCOLL" lab link a1 up
at a1 ping -q -c 10 -i 0.2 -w 20 10.2.0.1 | grep -q ' 0 received'
echo "up-none $?"
echo "lab $(test -r "$GRIDCOLL_LAB" && echo readable)"
echo "cwd $PWD"
sleep 1000 &
echo "sleeper $!"
exit 7
G
lab mesh.grid -- sh inside.sh >out
check "the command's status comes back" [ $? = 7 ]
check "round trip a-b: both delays" least "$(value rtt-ab)" 80
check "round trip a-c" least "$(value rtt-ac)" 60
check "round trip b-c: by way of a, the delays of both links" least "$(value rtt-bc)" 140
check "a transfer is whole" [ "$(value a1-b1-bytes)" = 4000000 ]
check "no faster than the link" least "$(value a1-b1-seconds)" 0.4
check "the counter of its link has it" least "$(value crossed)" 4000000
check "that of another one little" sh -c "[ $(value other) -lt 100000 ]"
check "by way of a: whole, too" [ "$(value b1-c1-bytes)" = 4000000 ]
check "and no faster than the slower of both links" least "$(value b1-c1-seconds)" 0.8
check "link down: no answer" [ "$(value down)" = 1 ]
check "link up again: answers" [ "$(value up-none)" = 1 ]
check "GRIDCOLL_LAB names a file" [ "$(value lab)" = readable ]
check "the directory is kept" [ "$(value cwd)" = "$work" ]
check "outside nobody sees its namespaces" sh -c '! ip netns list | grep -q -e gcl-a1 -e gcl-sw-a'

# --- what is shared has to be enough for all ---------------------------------------------------------
cat >shared.grid <<'G'
[switch city]
[cluster a]
hosts = a[1-2]
nic = 1Gbit
uplink = 40Mbit
[cluster b]
hosts = b1
nic = 1Gbit
[cluster c]
hosts = c1
nic = 1Gbit
[host c1]
nic = 20Mbit
[link a city]
delay = 10ms
[link city b]
delay = 5ms
[link b c]
delay = 5ms
G
cat >shared.sh <<'G'
now() { cut -d' ' -f1 /proc/uptime; }
take() { ip netns exec "gcl-$1" "$SENDER" take 7000 >"$1.taken"; }
send() { ip netns exec "gcl-$1" "$SENDER" send "$2" 7000 2000000; }
echo "rtt $(ip netns exec gcl-a1 ping -q -c 5 -i 0.2 10.3.0.1 | sed -n 's|^rtt .* = \([0-9.]*\)/.*|\1|p')"
take b1 & take c1 &
begin=$(now)
send a1 10.2.0.1 & send a2 10.3.0.1 &
wait
echo "both $begin $(now)" | awk '{ print $1, $3 - $2 }'
echo "bytes $(($(cat b1.taken) + $(cat c1.taken)))"
take c1 &
begin=$(now)
send b1 10.3.0.1
wait
echo "card $begin $(now)" | awk '{ print $1, $3 - $2 }'
"$GRIDCOLL" lab links
G
lab shared.grid -- sh shared.sh >out
check "shared: from a past the city and b to c, round trip" least "$(value rtt)" 40
check "shared: both transfers are whole" [ "$(value bytes)" = 4000000 ]
check "shared: and no faster than the uplink that both pass" least "$(value both)" 0.8
check "shared: no faster than its host's own card" least "$(value card)" 0.8
check "shared: links and uplinks are counted, each by its ends" sh -c \
	'grep -q "^a > uplink: [0-9]* packets" out && grep -q "^city > b: [0-9]* packets" out'
lab shared.grid -- "$GRIDCOLL" lab links "uplink a" loss=1%
check "shared: an uplink changes like a link" [ $? = 0 ]

# --- losses are TCP's to repair, and counted where they happen ---------------------------------------
printf '[cluster a]\nhosts = a1\n[cluster b]\nhosts = b1\n[link a b]\nrate = 1Gbit\ndelay = 1ms\nloss = 1%%\n' >loss.grid
cat >loss.sh <<'G'
ip netns exec gcl-b1 "$SENDER" take 7000 >taken &
ip netns exec gcl-a1 "$SENDER" send 10.2.0.1 7000 20000000
wait
echo "taken $(cat taken)"
ip netns exec gcl-a1 nstat -az TcpRetransSegs TcpOutSegs 2>/dev/null | awk '/Tcp/ { print $1, $2 }'
G
lab loss.grid -- sh loss.sh >out
check "what is lost is sent again: all of it comes" [ "$(value taken)" = 20000000 ]
check "of 13,800 segments one in a hundred is lost" least "$(value TcpRetransSegs)" 70

# --- links that change ---------------------------------------------------------------------------------
printf '0s all delay=20ms\n0s a > b loss=100%%\n3s all loss=0%% # later\n' >weather
lab --weather weather mesh.grid -- sh -c '
	rtt() { ip netns exec gcl-a1 ping -q -c 5 -i 0.2 $1 | sed -n "s|^rtt .* = \([0-9.]*\)/.*|\1|p"; }
	ip netns exec gcl-a1 ping -q -c 2 -i 0.2 -W 1 10.2.0.1 >/dev/null; echo "lost $?"
	echo "ac $(rtt 10.3.0.1)"
	sleep 3
	echo "ab $(rtt 10.2.0.1)"
	"$GRIDCOLL" lab links a c delay=40ms jitter=1ms
	echo "later $(rtt 10.3.0.1)"
	"$GRIDCOLL" lab links "a > b" speed=1Mbit; echo "bad $?"
	"$GRIDCOLL" lab links' >out
check "weather: all of it lost" [ "$(value lost)" = 1 ]
check "weather: another delay" least "$(value ac)" 40
check "weather: no losses any more" least "$(value ab)" 40
check "a link changed from inside" least "$(value later)" 78
check "a change that there is not: exit 2" [ "$(value bad)" = 2 ]
check "and it says what there is" says '"speed", expected KEY=VALUE with rate'
check "links: what each has lost, both pings at least" grep -qE "^a > b: .*, ([2-9]|[1-9][0-9]+) lost;" out
printf '0s all delay=20\n' >weather
lab --weather weather mesh.grid -- true
check "a bad file: exit 2" [ $? = 2 ]
check "and its line" says 'weather:1: delay=20, expected a time'

# --- how far to dilate -----------------------------------------------------------------------------------
printf '[cluster a]\nhosts = a[1-2]\nnic = 1kbit\n' >small.grid
printf '[cluster a]\nhosts = a[1-2]\nnic = 400Gbit\n' >large.grid
chosen() { # GRID: by --dilate auto
	"$GRIDCOLL" lab run --backend tap --dilate auto $1 -- true 2>"$work/stderr"
	sed -n 's/^gridcoll lab: --dilate auto: \([0-9]*\) .*/\1/p' "$work/stderr"
}
check "auto: what any machine carries is not dilated" [ "$(chosen small.grid)" = 1 ]
check "auto: what none does, is" least "$(chosen large.grid)" 10

# --- several at once, standard streams, signals --------------------------------------------------------
head -c 1000000 /dev/urandom >data
lab one.grid -- sh -c 'cat; cat data >&2' <data >out
check "1 MB of input and output, whole" cmp data out
check "1 MB of errors, whole" cmp -n 1000000 data stderr
lab one.grid -- nosuchcommand
check "a command that is not there: 127" [ $? = 127 ]
check "and it is named" says nosuchcommand
# Their processes have equal numbers, by which jobs are found.
export GRIDCOLL_RUN
lab mesh.grid -- sh -c 'exec "$GRIDCOLL_RUN" -n 1 sh -c "touch first; while [ ! -e second ]; do sleep 0.1; done"' &
pid=$!
while [ ! -e first ] && kill -0 $pid 2>/dev/null; do sleep 0.1; done
"$GRIDCOLL" lab run --quiet --backend tap mesh.grid -- sh -c 'exec "$GRIDCOLL_RUN" -n 1 touch second' 2>second-err
check "two labs at a time, of the same names" wait $pid
check "and a job in each" [ -z "$(grep -h "control socket" stderr second-err)" ]

sleeper() {
	rm -f started
	"$GRIDCOLL" lab run --quiet --backend tap one.grid -- \
		sh -c "echo > started; ip netns exec gcl-a1 setsid sleep 98765.$$ & exec sleep 98765.$$" 2>stderr &
	pid=$!
	while [ ! -e started ] && kill -0 $pid 2>/dev/null; do sleep 0.1; done
}
gone() {
	for _ in $(seq 100); do
		pgrep -f "^sleep 98765.$$" >/dev/null || return 0
		sleep 0.1
	done
	return 1
}
sleeper
kill -TERM $pid
wait $pid
check "SIGTERM goes to the command" [ $? = 143 ]
check "SIGTERM: nothing is left" gone
sleeper
kill -KILL $pid
wait $pid 2>/dev/null
check "SIGKILL: nothing is left" gone

# One that heeds no signal is given up at the third.
cat >deaf.sh <<'G'
trap '' HUP INT TERM QUIT
: >started
while :; do sleep 0.1; done
G
rm -f started
"$GRIDCOLL" lab run --quiet --backend tap one.grid -- sh deaf.sh 2>stderr &
pid=$!
until [ -e started ] || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done
for s in HUP TERM QUIT; do
	kill -s $s $pid
	sleep 0.5
done
wait $pid
rc=$?
check "three signals, and the command is given up: 128 and the last it heard of" [ $rc = 129 -o $rc = 131 -o $rc = 143 ]

# A lab that is not up yet goes at once: from here, nothing comes through for half a minute.
printf '[cluster a]\nhosts = a1\n[cluster b]\nhosts = b1\n[link a b]\ndelay = 15s\n' >slow.grid
"$GRIDCOLL" lab run --quiet --backend tap slow.grid -- touch came 2>stderr &
pid=$!
sleep 1
kill -TERM $pid
wait $pid
check "a lab that is not up yet ends as well" [ $? = 143 ]
check "and its command did not run" [ ! -e came ]

# What a supervisor sends to all that it started is heard once: what the lab passes on is not the same again.
cat >hears.sh <<'G'
trap 'echo >>heard' INT
trap 'exit 5' TERM
: >started
while [ -e started ]; do sleep 0.1; done
G
rm -f started
setsid env --default-signal=INT "$GRIDCOLL" lab run --quiet --backend tap one.grid -- sh hears.sh 2>stderr &
pid=$!
until [ -e started ] || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done
kill -s INT -- -$pid
until [ -e heard ] || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done
kill -TERM $pid
wait $pid
check "a signal to the group: exit" [ $? = 5 ]
check "a signal to the group is heard once" [ "$(wc -l <heard)" = 1 ]

# --- without root: in a user namespace, where /dev/net/tun may be opened ---------------------------------
chmod 755 "$work" && mknod -m 666 tun c 10 200 2>/dev/null
cat >nobody.sh <<'G'
mount --bind tun /dev/net/tun || exit 99
setpriv --reuid 65534 --regid 65534 --clear-groups sh -c '
	"$GRIDCOLL" --version >/dev/null && "$GRIDCOLL" lab run --quiet --backend tap mesh.grid -- \
		ip netns exec gcl-a1 ping -q -c 10 -i 0.2 -w 20 10.2.0.1'
G
unshare --mount sh nobody.sh >out 2>stderr
if grep -q ' 0 received' out || grep -q ' received' out; then
	check "without root: answers" sh -c '! grep -q " 0 received" out'
else
	echo "without root: not looked at: $(tail -1 stderr)"
fi

# --- what it cannot do -----------------------------------------------------------------------------------
printf '[cluster a]\nhosts = a1\nlan_delay = 1ms\n' >far.grid
lab far.grid -- true
check "a LAN's delay that it has no means for: exit 2" [ $? = 2 ]
check "and it says so" says 'cluster a: lan_delay of more than 100 us'

[ $failures = 0 ]
