#!/bin/sh
# SPDX-License-Identifier: MIT
# What links do to packets besides delaying them, against its definition, by the lab's own links (tap) and
# by netem (in a guest): 200 packets of UDP a second, each with its number and its time, and at the end how
# many were lost, in bursts of what length, came twice, damaged or late, and when.
#	bench/impairments.sh BUILD	a table; ten minutes
#	PACKETS=10000 BACKENDS="tap uml" bench/impairments.sh BUILD
# Needs python3, and for netem user-mode-linux.
[ $# = 1 ] && [ -x "$1/tools/gridcoll" ] || {
	sed -n 's/^#\t/usage: /p' "$0" >&2
	exit 2
}
PATH=$(cd "$1" && pwd)/tools:$PATH
export PACKETS="${PACKETS:-5000}"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
printf '[cluster a]\nhosts = a1\n[cluster b]\nhosts = b1\n[link a b]\ndelay = 20ms\n' >"$work/grid"

cat >"$work/take.py" <<'P'
import socket, struct, sys, time
def errors():
    names, values = [line.split() for line in open("/proc/net/snmp") if line.startswith("Udp:")]
    return int(dict(zip(names, values))["InCsumErrors"])
count, before = int(sys.argv[1]), errors()
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", 7000))
print("ready", flush=True)
s.settimeout(3)
came = []
try:
    while True:
        data = s.recv(2000)
        number, at = struct.unpack_from("=QQ", data)
        if number < count:
            came.append((number, time.monotonic_ns() - at))
except TimeoutError:
    pass
numbers = [n for n, _ in came]
there = set(numbers)
lost = [n not in there for n in range(count)]
bursts = sum(l and not before for l, before in zip(lost, [False] + lost))
most, late = -1, 0
for n in numbers:
    late += n < most
    most = max(most, n)
delays = sorted(d for _, d in came)
at = lambda share: delays[int(share * (len(delays) - 1))] / 1e6
print("%5.2f %5.2f %5.2f %5.2f %5.2f  %6.2f %6.2f %6.2f" % (
    100 * sum(lost) / count, sum(lost) / bursts if bursts else 0, 100 * (len(numbers) - len(there)) / count,
    100 * (errors() - before) / count, 100 * late / count, at(.05), at(.5), at(.95)))
P
cat >"$work/send.py" <<'P'
import socket, struct, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("10.2.0.1", 7000))
begin = time.monotonic()
for number in range(int(sys.argv[1])):
    time.sleep(max(0, begin + number / 200 - time.monotonic()))
    s.send(struct.pack("=QQ", number, time.monotonic_ns()) + bytes(84))
P
cat >"$work/inside.sh" <<'I'
work=$1 backend=$2
settings() { # NAME, what our links are told, what netem is, what is expected
	cat <<'S'
nothing	loss=0%	delay 20ms	0, 20 ms
loss 1 %	loss=1%	delay 20ms loss 1%	1 % lost, bursts of 1.01
loss 2 % by 5	loss=2% burst=5	delay 20ms loss gemodel 0.4082% 20%	2 % lost, bursts of 5
jitter 8 ms	jitter=8ms	delay 20ms 8ms	12.8, 20, 27.2 ms; late ones
duplicate 3 %	duplicate=3%	delay 20ms duplicate 3%	3 % twice
corrupt 3 %	corrupt=3%	delay 20ms corrupt 3%	3 % damaged, and so lost
reorder 10 %	reorder=10%	delay 20ms reorder 10%	10 % without delay: 31 % late
S
}
settings | while IFS='	' read -r name ours netem expected; do
	if [ "$backend" = tap ]; then
		gridcoll lab links "a > b" loss=0% burst=1 jitter=0ms duplicate=0% corrupt=0% reorder=0% $ours
	else
		ip netns exec gcl-wan tc qdisc replace dev wan-0-1 root handle 2: netem limit 1000000 $netem
	fi || exit 1
	ip netns exec gcl-b1 python3 "$work/take.py" "$PACKETS" >"$work/took" &
	taker=$!
	until grep -q ready "$work/took"; do sleep 0.1; done
	ip netns exec gcl-a1 python3 "$work/send.py" "$PACKETS"
	wait $taker
	printf '%-14s %-4s %s  %s\n' "$name" "$backend" "$(sed -n 2p "$work/took")" "$expected"
done
I
printf '%-14s %-4s %5s %5s %5s %5s %5s  %s\n' link by lost burst twice bad late 'ms: 5 %, half, 95 %   expected'
for backend in ${BACKENDS:-tap uml}; do
	gridcoll lab run --quiet --backend "$backend" "$work/grid" -- sh "$work/inside.sh" "$work" "$backend" || exit 1
done
