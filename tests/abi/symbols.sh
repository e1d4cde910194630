#!/bin/sh
# SPDX-License-Identifier: MIT
# The library exports the functions of its headers, each with a version, what the record has, and
# nothing else.
#	symbols.sh LIBRARY RECORD HEADER...
set -eu
lib=$1 record=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$(dirname "$0")/exported.sh" "$lib" >"$work/exported"
sed -n 's/^ \([^ ]*\) .*/\1/p' "$record" | LC_ALL=C sort >"$work/recorded"
grep -oh '\bgcoll_[a-z0-9_]*(' "$@" | tr -d '(' | grep -v '_fn$' | LC_ALL=C sort -u >"$work/declared"
sed -n 's/@.*//; /^gcoll_/p' "$work/exported" >"$work/names"

[ "$(wc -l <"$work/declared")" -gt 50 ] || { echo "few functions found in $*"; exit 1; }
diff "$work/declared" "$work/names" || {
	echo "< is declared in a header only, > exported only: see include/gridcoll.map and GCOLL_API"
	exit 1
}
diff "$work/recorded" "$work/exported" || {
	echo "< is in $record only, > exported only."
	echo "Where that is meant: tests/abi/record.sh LIBRARY, and commit what it changes."
	exit 1
}
