#!/bin/sh
# SPDX-License-Identifier: MIT
# Predicted against measured: bcast, scatter, gather, allgather and allreduce of 64 KiB to 32 MiB on
# the lab's quickstart.grid, gridmpi.grid and magpie.grid, by what a job would choose, from the grid
# file alone. An hour, and only on an otherwise idle machine.
#
#	bench/predicted.sh [BUILD [GRID...]]		BUILD: a build directory, default "build"
#
# The largest size comes first: it opens the connections' windows for the others. MagPIe's 56 links
# together carry nearly half of what the others' NICs do, in packets that come one by one, so the guest's
# processor needs as much dilation. For short messages the others need more than the bytes alone, since
# the lab's packets are smaller then.
. "$(dirname "$0")/lab.sh"

measure() { # GRID DILATION SIZES ITERATIONS
	# shellcheck disable=SC2086 # words
	on_grid "$1" "$2" gridcoll bench $operations --bytes "$3" --iters "$4" --predict
}

for grid in $grids; do
	case $grid in
	magpie)
		measure magpie 12 32MiB 1
		measure magpie 20 4MiB,1MiB,256KiB,64KiB 3
		;;
	gridmpi) measure gridmpi 60 32MiB,4MiB,1MiB,256KiB,64KiB 3 ;;
	*) measure "$grid" 30 32MiB,4MiB,1MiB,256KiB,64KiB 3 ;;
	esac
done
