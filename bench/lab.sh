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

# What runs in the lab before the command. TCP's least time-out (200 ms) is no longer in a dilated lab,
# where what waits in a slow link's queue is: acknowledgements behind it would come too late. With
# timers=dilated it is as many times longer as all else.
in_lab='
if [ "$1" != as-they-are ]; then
	for netns in $(ip netns list | cut -d" " -f1); do
		route=$(ip -n "$netns" route show default)
		# shellcheck disable=SC2086 # words
		[ -z "$route" ] || ip -n "$netns" route change $route rto_min "$1"
	done
fi
shift
exec "$@"'

on_grid() { # GRID DILATION COMMAND...
	grid=$1 k=$2 least=as-they-are
	shift 2
	[ "${timers:-}" != dilated ] || least=$((200 * k))ms
	echo "== $grid, k = $k"
	gridcoll lab run --quiet --mem 6GiB --dilate "$k" "$here/netem/grids/$grid.grid" -- \
		sh -c "$in_lab" sh "$least" "$@"
}
