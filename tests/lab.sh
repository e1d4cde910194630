# SPDX-License-Identifier: MIT
# What the tests over the lab share. They source it; where no lab can be they end, skipped (77).
# $work is a directory of their own that is gone with them, also if labs leave something behind.

work=$(mktemp -d /tmp/gridcoll-test-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir "$work/tmp"
export TMPDIR="$work/tmp" GRIDCOLL
failures=0

ok() { echo "ok: $1"; }
bad() {
	echo "FAILED: $1"
	failures=$((failures + 1))
}
check() { # NAME COMMAND...
	what=$1
	shift
	if "$@"; then ok "$what"; else bad "$what"; fi
}

needs_uml() {
	command -v linux.uml >/dev/null && return
	echo "SKIP: linux.uml is not there (apt-get install user-mode-linux)"
	exit 77
}

# Goes on only where the programs can run in a guest.
unless_sanitized() {
	[ "${GRIDCOLL_TEST_SANITIZED:-0}" = 1 ] || return 0
	[ $failures = 0 ] || exit 1
	echo "SKIP: a guest has 512 GiB of addresses, sanitized programs need terabytes"
	exit 77
}

# $backend: tap, on the running kernel, at full speed; where that cannot be, or its user is not really
# root ("root" as argument) and has to be, uml.
choose_backend() {
	backend=tap
	printf '[cluster a]\nhosts = a1\n' >"$work/one.grid"
	{ [ "${1-}" != root ] || [ "$(id -u)" = 0 ]; } &&
		"$GRIDCOLL" lab run --quiet --backend tap "$work/one.grid" -- true 2>/dev/null && return
	backend=uml
	needs_uml
	unless_sanitized
}

# Of what a lab's command printed as "NAME VALUE".
value() { sed -n "s/^$1 //p" "$work/out"; }
