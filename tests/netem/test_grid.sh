#!/bin/sh
# SPDX-License-Identifier: MIT
# Real jobs over 10 ms between two clusters: every operation, with GCI_ALL=1 by every algorithm and on
# 2 x 16 hosts, its results verified on every rank, and the bytes that the WAN interfaces counted held
# against its schedule's own sum. Skipped (77) where no lab can be.
#
# Set by meson: GRIDCOLL, GRIDCOLL_RUN, GRIDCOLL_GRIDS, GRIDCOLL_TEST_SANITIZED.
set -u
. "$(dirname "$0")/../lab.sh"
choose_backend
PATH=$(dirname "$GRIDCOLL_RUN"):$PATH
export PATH

lab() { # NAME GRID DILATION COMMAND...
	name=$1 grid=$2 k=$3
	shift 3
	check "$name" "$GRIDCOLL" lab run --quiet --backend "$backend" --dilate "$k" \
		"$GRIDCOLL_GRIDS/$grid" -- "$@"
}

# Without warming up: where all send to one at once, as reduce by gather, warm windows overflow its
# port, and what is sent again is counted.
[ "${GCI_ALL-0}" = 1 ] && algorithms=all || algorithms=auto
[ "$backend" = tap ] && dilation=1 larger=3 || dilation=2 larger=20
lab "algorithms ($algorithms) at 256 KiB" quickstart.grid $dilation \
	env GRIDCOLL_WARM=off gridcoll-run --quiet-prefix \
	gridcoll bench all --algorithm $algorithms --bytes 256KiB --iters 1 --wan-tolerance 10
lab "small messages" quickstart.grid 1 gridcoll-run --quiet-prefix \
	gridcoll bench all --bytes 8,64KiB --iters 2
[ $algorithms = all ] && lab "2 x 16 hosts" gridmpi16.grid $larger gridcoll-run --quiet-prefix \
	gridcoll bench bcast allreduce --bytes 256KiB --iters 1 --wan-tolerance 10

[ $failures = 0 ]
