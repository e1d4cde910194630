#!/bin/sh
# SPDX-License-Identifier: MIT
# Programs that were linked with the recorded library run with this one.
#	abidiff.sh LIBRARY HEADERS RECORD
lib=$1 headers=$2 record=$3
skip() {
	echo "skipped: $*"
	exit 77
}
command -v abidiff >/dev/null || skip "no abidiff (Debian: abigail-tools)"
readelf -h "$lib" | grep -q 'Machine:.*X86-64' || skip "the record is of x86-64"
readelf -S "$lib" | grep -q '\.debug_info' || skip "$lib has no debug information"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Written down alike before they are compared: what is private is left out of both.
"$(dirname "$0")/describe.sh" "$lib" "$headers" >"$work/now.abi" || exit 1
abidiff "$record" "$work/now.abi"
rc=$?
[ $rc = 0 ] || echo "Where that is meant: tests/abi/record.sh LIBRARY, and commit what it changes."
exit $rc
