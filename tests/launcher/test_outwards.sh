#!/bin/sh
# SPDX-License-Identifier: MIT
# A cluster behind a firewall that lets connections out, and none in: two network namespaces, and a
# classifier that drops what would open a connection inwards. Skipped where that cannot be made.
#	test_outwards.sh GRIDCOLL_RUN GUEST
set -u
run=$(realpath "$1") guest=$(realpath "$2")
dir=$(mktemp -d /tmp/gridcoll-outwards-XXXXXX) || exit 1
in=gcin$$ out=gcout$$ services=""
end() {
	# shellcheck disable=SC2086 # process ids
	[ -z "$services" ] || { kill $services && wait $services; } 2>/dev/null
	ip netns del $in 2>/dev/null
	ip netns del $out 2>/dev/null
	rm -rf "$dir"
}
trap end EXIT
trap 'exit 1' HUP INT TERM
cd "$dir" || exit 1

# IPv4 and TCP, SYN without ACK: dropped, whoever sends it.
no_syn='9,40 0 0 12,21 0 6 2048,48 0 0 23,21 0 4 6,48 0 0 47,84 0 0 18,21 0 1 2,6 0 0 2,6 0 0 0'
make() {
	ip netns add $in && ip netns add $out &&
		ip link add gc0 netns $in type veth peer name gc0 netns $out &&
		ip -n $in addr add 10.77.0.1/24 dev gc0 && ip -n $out addr add 10.77.0.2/24 dev gc0 &&
		ip -n $in link set gc0 up && ip -n $out link set gc0 up &&
		ip -n $in link set lo up && ip -n $out link set lo up &&
		tc -n $in qdisc add dev gc0 clsact &&
		tc -n $in filter add dev gc0 ingress protocol ip bpf da bytecode "$no_syn"
}
make 2>make.err || {
	echo "skipped: no namespaces with a classifier can be made: $(tail -n 1 make.err)"
	exit 77
}

# A job of two ranks on each side, the first two on the side $2; the grid's key is $3.
job() { # NAME FIRST KEY
	mkdir "$1" && printf '[cluster shut]\nhosts = s\n%s\n[cluster open]\nhosts = o\n[link shut open]\n' \
		"$3" >"$1/grid"
	ip netns exec $out "$run" --serve 10.77.0.2:0 -n 4 --grid "$1/grid" --secret-file "$1/secret" \
		>"$1/where" 2>"$1/served" &
	service=$!
	services="$services $service"
	until [ -s "$1/where" ]; do
		kill -0 $service || return 1
		sleep 0.05
	done
	where=$(sed 's/.*=//' "$1/where")
	for rank in 0 1 2 3; do
		host=s side=$in
		if [ $((rank / 2)) = "$2" ]; then host=o side=$out; fi
		GRIDCOLL_HOST=$host GRIDCOLL_RANK=$rank ip netns exec $side "$run" --join "$where" \
			--secret-file "$1/secret" "$guest" sum >"$1/$rank" 2>"$1/$rank.err" &
	done
	wait $service
}

rc=0
fail() {
	echo "FAILED: $1"
	tail -n 5 "$2"/*
	rc=1
}

# Without the key, ranks outside call ranks inside: that shows the firewall.
job blind 0 "" &
blind=$!
job low 0 "inbound = no" && [ "$(cat low/? | grep -c ': sum 10')" = 4 ] || fail "the higher ranks inside" low
job high 1 "inbound = no" && [ "$(cat high/? | grep -c ': sum 10')" = 4 ] || fail "the lower ranks inside" high
wait $blind && fail "no firewall is there" blind
grep -q 'cannot connect to rank [23] at 10.77.0.1' blind/served || fail "another reason" blind
exit $rc
