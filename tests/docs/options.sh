#!/bin/sh
# SPDX-License-Identifier: MIT
# Each command has a man page, which lists the options of its --help, and no others.
#	options.sh DOCS OPTIONS.AWK GRIDCOLL GRIDCOLL_RUN
set -eu
docs=$1 awk=$2 gridcoll=$3 run=$4
rc=0 found=0
unset GRIDCOLL_LAB

fail() {
	echo "$*"
	rc=1
}

asked() { # PROGRAM [ARGUMENT...]: what its --help explains, but --help itself
	"$@" --help | awk -f "$awk" | awk -F '\t' '$1 == "o" && $2 != "--help" && $2 != "-h" { print $2 }'
}

page() { # PAGE OPTION...: of all that it is about
	page=$docs/$1
	shift
	[ -f "$page" ] || {
		fail "no $page"
		return
	}
	for option; do
		found=$((found + 1))
		grep -q -- "\*$option\*" "$page" || fail "$page: no $option"
	done
	for listed in $(sed -n '/^\*-/s/[*,]/ /gp' "$page" | tr ' ' '\n' | grep '^-' | sort -u); do
		case " $* --help -h " in
		*" $listed "*) ;;
		*) fail "$page: $listed, which --help has not got" ;;
		esac
	done
}

# shellcheck disable=SC2046 # words
page gridcoll-run.1.scd $(asked "$run")
for command in $("$gridcoll" --help | awk -f "$awk" | awk -F '\t' '$1 == "c" { print $2 }'); do
	of_verbs=
	case $command in
	lab | shape) of_verbs=$(asked "$gridcoll" "$command" run) ;;
	esac
	# shellcheck disable=SC2046,SC2086 # words
	page "gridcoll-$command.1.scd" $(asked "$gridcoll" "$command") $of_verbs
	grep -q "\*gridcoll-$command\*(1)" "$docs/gridcoll.1.scd" || fail "gridcoll.1 does not name $command"
done
[ $found -gt 100 ] || fail "found $found options: this test is broken"
exit $rc
