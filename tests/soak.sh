#!/bin/sh
# SPDX-License-Identifier: MIT
# The quick suite again and again on a machine that has no time for it: a test that waits for a time
# that it guessed fails here first. Other processes, as many as processors, keep these busy during the
# first runs; the last ones have a single processor for everything. Ends with 0 if no test failed in any run; each
# failure is listed by run and test, with the log of its run beside it.
#	tests/soak.sh			20 busy runs, 5 on one processor, in build-gcc
#	tests/soak.sh BUSY PINNED [TREE [TEST...]]	as many, in another tree, these tests only
cd "$(dirname "$0")/.." || exit 1
. ./.ci/lib.sh
busy=${1-20} pinned=${2-5} dir=${3-build-gcc}
[ $# -gt 3 ] && shift 3 || set -- --no-suite slow

case $busy$pinned in
*[!0-9]*)
	echo "usage: tests/soak.sh [BUSY PINNED [TREE [TEST...]]]" >&2
	exit 2
	;;
esac
if [ ! -f "$dir/build.ninja" ]; then
	build "$dir" --werror --buildtype=debugoptimized || exit 1
fi
ninja -C "$dir" >"$dir/build.log" 2>&1 || {
	tail "$dir/build.log"
	exit 1
}
rm -f "$dir"/soak-*.txt

spinners=
stop_spinners() {
	# shellcheck disable=SC2086 # words
	[ -z "$spinners" ] || kill $spinners 2>/dev/null
	spinners=
}
trap stop_spinners EXIT
trap 'exit 1' HUP INT TERM

runs=0 red=0
# once NAME COMMAND...: one run of the suite under a command, or none
once() {
	name=$1
	shift
	runs=$((runs + 1))
	began=$(date +%s)
	rm -f "$dir/meson-logs/testlog.txt"
	"$@" >"$dir/soak.log" 2>&1
	rc=$?
	echo "$name: $(($(date +%s) - began)) s, $(sed -n 's/^Ok: *\([0-9]*\) *$/\1/p' "$dir/soak.log" |
		tail -1) passed"
	[ $rc = 0 ] && return
	red=$((red + 1))
	cat "$dir/meson-logs/testlog.txt" >"$dir/soak-$runs.txt"
	failed=$(grep -E '^ *[0-9]+/[0-9]+ .*(FAIL|TIMEOUT|ERROR)' "$dir/soak.log" | sort -u)
	echo "${failed:-$(tail -5 "$dir/soak.log")}"
}

export GRIDCOLL_TEST_PATIENCE=10
suite="meson test -C $dir --no-rebuild --timeout-multiplier 10 --num-processes"
for s in $(seq "$(nproc)"); do
	[ "$busy" = 0 ] || {
		while :; do :; done &
		spinners="$spinners $!"
	}
done
i=0
while [ $((i += 1)) -le "$busy" ]; do
	# shellcheck disable=SC2086 # words
	once "busy $i" $suite $(($(nproc) * 2)) "$@"
done
stop_spinners
cpu=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/') # the first of those that we may use
i=0
while [ $((i += 1)) -le "$pinned" ]; do
	# shellcheck disable=SC2086 # words
	once "one processor $i" taskset -c "$cpu" $suite 2 "$@"
done

printf '\n%d runs, %d with failures\n' $runs $red
[ $red = 0 ]
