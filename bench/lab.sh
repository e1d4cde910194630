# SPDX-License-Identifier: MIT
# What the measurements on several of the lab's grids share; they source it. Their arguments:
#
#	SCRIPT [BUILD [GRID...]]		BUILD: a build directory, default "build"
#
# From here on gridcoll is BUILD's; $grids are those to measure, $operations what on them (all that
# the script is about, or those that OPERATIONS names). Connections are not encrypted unless
# GRIDCOLL_SECURITY says so: it would take the lab's one processor, which stands for many.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:-$here/build}" && pwd)
[ $# -eq 0 ] || shift
PATH=$build/tools:$build/launcher:$PATH
GRIDCOLL_SECURITY=${GRIDCOLL_SECURITY:-auth}
export PATH GRIDCOLL_SECURITY
grids=${*:-quickstart gridmpi magpie}
operations=${OPERATIONS:-bcast scatter gather allgather allreduce}

on_grid() { # GRID DILATION COMMAND...
	grid=$1 k=$2
	shift 2
	echo "== $grid, k = $k"
	gridcoll lab run --quiet --keep-awake --mem 6GiB --dilate "$k" "$here/netem/grids/$grid.grid" -- "$@"
}
