#!/bin/sh
# SPDX-License-Identifier: MIT
# What a job chooses by itself, against the best that was measured: bcast, scatter, gather, allgather
# and allreduce of six sizes on the lab's quickstart.grid, gridmpi.grid and magpie.grid, 90 cells. Of
# each, the best few by simulation are measured, one of every algorithm first; what is predicted to
# take longer than all of them is not. Half an hour, and only on an otherwise idle machine.
#
#	bench/choices.sh [BUILD [GRID...]]		BUILD: a build directory, default "build"
. "$(dirname "$0")/lab.sh"

choose() { # GRID DILATION SIZES CANDIDATES ITERATIONS
	# shellcheck disable=SC2086 # words
	on_grid "$1" "$2" gridcoll tune $operations --bytes "$3" --measure "$4" --iters "$5"
}

for grid in $grids; do
	case $grid in
	magpie) choose magpie 12 1MiB,256KiB,64KiB,16KiB,4KiB,1KiB 5 3 ;;
	gridmpi)
		choose gridmpi 30 16MiB 4 3
		choose gridmpi 20 4MiB,1MiB,256KiB,64KiB,16KiB 6 3
		;;
	*)
		choose "$grid" 20 16MiB 4 3
		choose "$grid" 10 4MiB,1MiB,256KiB,64KiB,16KiB 6 3
		;;
	esac
done
