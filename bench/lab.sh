# SPDX-License-Identifier: MIT
# What the measurements on several of the lab's grids share; they source it. Their arguments:
#
#	SCRIPT [BUILD [GRID...]]		BUILD: a build directory, default "build"
#
# From here on gridcoll is BUILD's; $grids are those to measure, $operations what on them (all that
# the script is about, or those that OPERATIONS names).
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:-$here/build}" && pwd)
[ $# -eq 0 ] || shift
PATH=$build/tools:$build/launcher:$PATH
export PATH
grids=${*:-quickstart gridmpi magpie}
operations=${OPERATIONS:-bcast scatter gather allgather allreduce}

on_grid() { # GRID DILATION COMMAND...
	grid=$1 k=$2
	shift 2
	echo "== $grid, k = $k"
	gridcoll lab run --quiet --mem 6GiB --dilate "$k" "$here/netem/grids/$grid.grid" -- "$@"
}
