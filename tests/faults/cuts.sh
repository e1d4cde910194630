# SPDX-License-Identifier: MIT
# Jobs between whose clusters the link is cut for good. See test_faults_lab.sh.
. "$1/inside.sh"
work=$2 profile=$3

cut_short() { # NAME WAY...
	name=$1
	shift
	say job "$name"
	start "$work/$name" --timers "$profile" -- end
	for way in "$@"; do sever $way; done
	say cut
	finish
	mend
}
cut_short both 0-1 1-0
cut_short there 0-1
cut_short back 1-0
[ "$profile" = fast ] || exit 0

say job survive
start "$work/survive" --timers fast --survive -- survive
both sever
for _ in $(seq 300); do
	[ "$(grep -c ' shrunk ' "$work/survive")" = 2 ] && break
	sleep 0.1
done
sleep 1
touch "$work/survive.stop"
finish
