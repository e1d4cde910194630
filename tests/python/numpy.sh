#!/bin/sh
# SPDX-License-Identifier: MIT
# The module with NumPy, and the example that uses it.
#	numpy.sh PYTHON EXAMPLE
python=$1 example=$2
"$python" -c 'import numpy' 2>/dev/null || {
	echo "skipped: $python has no numpy (Debian: python3-numpy)"
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
