#!/bin/sh
# SPDX-License-Identifier: MIT
# The module with NumPy, and the example that uses it: by the interpreter that was built for, or the
# first of the PATH, or the system's, that has NumPy.
#	numpy.sh PYTHON EXAMPLE
example=$2 python=''
tried=$(echo "$1" && IFS=: && for dir in $PATH /usr/bin; do echo "$dir/python3"; done)
for p in $tried; do
	"$p" -c 'import numpy' 2>/dev/null && python=$p && break
done
[ "$python" ] || {
	echo "skipped: no NumPy (Debian: python3-numpy) for" $tried
	exit 77
}
set -e
out=$("$GRIDCOLL_RUN" -n 3 --quiet-prefix "$python" "$(dirname "$0")/job_numpy.py")
[ "$out" = "$(printf 'done\ndone\ndone')" ]
out=$("$GRIDCOLL_RUN" -n 3 --quiet-prefix "$python" "$example" | sort)
echo "$out"
[ "$out" = "$(for i in 0 1 2; do
	echo "rank $i of 3 on local$i: average [0.   0.25 0.5  0.75 1.  ]"
done)" ]
