#!/bin/sh
# SPDX-License-Identifier: MIT
# Each command has a man page, which has each option of its --help.
#	options.sh DOCS OPTIONS.AWK GRIDCOLL GRIDCOLL_RUN
set -eu
docs=$1 awk=$2 gridcoll=$3 run=$4
rc=0 found=0
unset GRIDCOLL_LAB

page() { # PAGE PROGRAM [ARGUMENT...]
	page=$docs/$1
	shift
	[ -f "$page" ] || {
		echo "no $page"
		rc=1
		return
	}
	for option in $("$@" --help | awk -f "$awk" | awk -F '\t' '$1 == "o" && $2 != "--help" && $2 != "-h" { print $2 }'); do
		found=$((found + 1))
		grep -q -- "\*$option\*" "$page" && continue
		echo "$page: no $option"
		rc=1
	done
}

page gridcoll-run.1.scd "$run"
for command in $("$gridcoll" --help | awk -f "$awk" | awk -F '\t' '$1 == "c" { print $2 }'); do
	page "gridcoll-$command.1.scd" "$gridcoll" "$command"
	grep -q "\*gridcoll-$command\*(1)" "$docs/gridcoll.1.scd" || {
		echo "gridcoll.1 does not name $command"
		rc=1
	}
done
page gridcoll-lab.1.scd "$gridcoll" lab run
page gridcoll-shape.1.scd "$gridcoll" shape run
[ $found -gt 100 ] || {
	echo "found $found options: this test is broken"
	rc=1
}
exit $rc
