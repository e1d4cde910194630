#!/bin/sh
# SPDX-License-Identifier: MIT
# The GridMPI paper's comparison in the lab: 2 x 8 hosts, 32 MiB, dilated by 20, warm, in one run.
# Judged are ratios between rows of that run, never a time. Skipped (77) where no lab can be.
#
# Set by meson: GRIDCOLL, GRIDCOLL_RUN, GRIDCOLL_GRIDS, GRIDCOLL_TEST_SANITIZED.
set -u
. "$(dirname "$0")/../lab.sh"
needs_uml
unless_sanitized
PATH=$(dirname "$GRIDCOLL_RUN"):$PATH
export PATH work

timeout 1500 "$GRIDCOLL" lab run --quiet --backend uml --dilate 20 "$GRIDCOLL_GRIDS/gridmpi.grid" \
	-- sh -c '
	gridcoll-run --quiet-prefix gridcoll bench bcast --bytes 32MiB --iters 3 --wan-tolerance 2 \
		--algorithm auto,farfirst,vandegeijn-mod:senders=8 --json "$work/bcast" &&
	gridcoll-run --quiet-prefix gridcoll bench allreduce --bytes 32MiB --iters 3 \
		--wan-tolerance 2 --algorithm rabenseifner-mod:senders=8,two-tier \
		--json "$work/allreduce"' || exit 1

# Medians and limits in the order of the rows.
numbers() { sed -n "s/.*\"$2\": *\([0-9]*\).*/\1/p" "$work/$1"; }

# NAME A B FACTOR: A >= B * FACTOR (in hundredths)
at_least() {
	echo "$1: $(($2 * 100 / $3)) hundredths, expected at least $4"
	[ $(($2 * 100)) -ge $(($3 * $4)) ] || failures=$((failures + 1))
}

set -- $(numbers bcast median_ns)
at_least "farfirst / modified van de Geijn with 8 senders" "$2" "$3" 135
at_least "1.3 times the limit / default bcast" $(($(numbers bcast limit_ns | head -1) * 13 / 10)) \
	"$1" 100
set -- $(numbers allreduce median_ns)
at_least "two-tier / modified Rabenseifner with 8 senders" "$2" "$1" 200
[ $failures = 0 ]
