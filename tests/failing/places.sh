#!/bin/sh
# SPDX-License-Identifier: MIT
# Fails if there is a place in base/ or transport/ that asks for memory, or calls something that
# failing.h knows, and where no test makes that fail; lists them. Builds in build-places, where nothing
# is inlined, and runs what has failing.h in it.
rooms="base transport"
# What only passes on what it is asked.
never='^base/mem\.c:'

cd "$(dirname "$0")/../.." || exit 1
. ./.ci/lib.sh
dir=build-places
options="--buildtype=debug -Doptimization=1 -Ddocs=disabled"
flags="-fno-inline -fno-optimize-sibling-calls"

[ -f $dir/build.ninja ] || CC=gcc meson setup $dir $options "-Dc_args=$flags" >$dir.log 2>&1 || {
	cat $dir.log
	exit 1
}
ninja -C $dir build.ninja >/dev/null || exit 1 # which tests there are now
tests=$(meson test -C $dir --no-rebuild --list 2>/dev/null | sed 's|.* / ||' |
	grep -E '^(base/.*|transport/.*|launcher/run_calls)$' | grep -vE -e '-(all|100000)$')
build $dir || exit 1

export GCI_FAILED_PLACES=$PWD/$dir/failed.raw
rm -f "$GCI_FAILED_PLACES"
meson test -C $dir --no-rebuild --num-processes "$(nproc)" --timeout-multiplier 3 --print-errorlogs \
	$tests >$dir/tests.log 2>&1 || {
	sed -n '/^Summary of Failures/,$p' $dir/tests.log
	exit 1
}

grep -q ' transport/uring  *SKIP' $dir/tests.log && {
	echo "no io_uring here: its places are left out"
	never="$never|^transport/(path_)?uring\.c:"
}

# FILE:LINE FUNCTION, where they have failed.
cut -d ' ' -f 1-3 "$GCI_FAILED_PLACES" | sort -u >$dir/failed.lines
for program in $(cut -d ' ' -f 1 $dir/failed.lines | uniq); do
	awk -v program="$program" '$1 == program { print $3 }' $dir/failed.lines >$dir/failed.names
	awk -v program="$program" '$1 == program { print $2 }' $dir/failed.lines |
		addr2line -e "$program" | sed 's/ (discriminator.*//' | paste -d ' ' - $dir/failed.names
done | sed 's|^[^ ]*/\.\./||' | sort -u >$dir/failed

# And where they are called.
for room in $rooms; do
	objdump -dlr --no-show-raw-insn "$dir/$room/lib$room.a"
done | awk -v names="$(grep -o 'X([A-Za-z0-9_]*)' tests/failing/failing.h | tr '\n' ' ')" '
BEGIN {
	n = split(names, name, " ")
	for (i = 1; i <= n; i++)
		known[substr(name[i], 3, length(name[i]) - 3)] = 1
}
/^[^ \t].*:[0-9]+( \(discriminator [0-9]+\))?$/ { sub(/ \(discriminator.*/, ""); at = $0 }
/^[ \t]+[0-9a-f]+: R_/ {
	sub(/[-+]0x[0-9a-f]+$/, "", $3)
	if ($3 in known)
		print at, $3
}' | sed 's|^[^ ]*/\.\./||' | sort -u | grep -vE "$never" >$dir/called

comm -23 $dir/called $dir/failed >$dir/missed
sed 's/^/never fails: /' $dir/missed
awk -v missed="$(wc -l <$dir/missed)" 'END {
	printf "%d of %d places have failed\n", NR - missed, NR
	exit !NR || missed
}' $dir/called
