#!/bin/sh
# SPDX-License-Identifier: MIT
# What a job chooses by itself, against the best that was measured: bcast, scatter, gather, allgather
# and allreduce of six sizes on the lab's quickstart.grid, gridmpi.grid and magpie.grid, 90 cells. Of
# each, the best few by simulation are measured, one of every algorithm first; what is predicted to
# take longer than all of them is not. Two hours and a half, and only on an otherwise idle machine. Short
# messages are measured with more dilation, for which the lab's packets are smaller.
#
#	bench/choices.sh [BUILD [GRID...]]		BUILD: a build directory, default "build"
#	OPERATIONS="bcast gather" SIZES=64KiB,16KiB bench/choices.sh ...	only those
. "$(dirname "$0")/lab.sh"

# Those of a list of sizes that SIZES names, or all.
wanted() {
	[ -n "${SIZES:-}" ] || { echo "$1" && return; }
	echo "$1" | tr , '\n' | grep -x -F "$(echo "$SIZES" | tr , '\n')" | paste -s -d ,
}

choose() { # GRID DILATION SIZES CANDIDATES ITERATIONS
	sizes=$(wanted "$3")
	# shellcheck disable=SC2086 # words
	[ -z "$sizes" ] ||
		on_grid "$1" "$2" gridcoll tune $operations --bytes "$sizes" --measure "$4" --iters "$5"
}

for grid in $grids; do
	case $grid in
	magpie) choose magpie 12 1MiB,256KiB,64KiB,16KiB,4KiB,1KiB 5 3 ;;
	gridmpi)
		choose gridmpi 30 16MiB 4 3
		choose gridmpi 30 4MiB 6 3
		choose gridmpi 40 1MiB,256KiB,64KiB,16KiB 6 3
		;;
	*)
		choose "$grid" 20 16MiB 4 3
		choose "$grid" 30 4MiB 6 3
		choose "$grid" 30 1MiB,256KiB,64KiB,16KiB 6 3
		;;
	esac
done
