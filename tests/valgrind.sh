#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the unit tests, those that start neither jobs nor labs, under valgrind: memory that was never
# written is read nowhere, none is used that is not ours, none is lost. Fails where a test does, or
# valgrind finds something. Takes some twenty minutes of a processor; long tests take the small
# samples that they take under sanitizers.
#	tests/valgrind.sh		builds in build-valgrind, runs all of them
#	tests/valgrind.sh TEST...	only these, by meson's names: base/buf transport/secure
cd "$(dirname "$0")/.." || exit 1
. ./.ci/lib.sh
dir=build-valgrind

command -v valgrind >/dev/null || {
	echo "needs Debian's package valgrind: apt-get install valgrind" >&2
	exit 1
}

# The rooms' tests that run in one process or a few children of their own. Many ranks and long
# searches are left out, and what counts processor time.
units='^base/
^collectives/
^transport/(address|calls|conn_calls|control|unauthenticated|endpoint.*|frame|listen|losses|mem|messages|poller|reach)$
^transport/(records|replay|secure|secure_hellos|secure_records|sockbuf|sockopt|sums|tcp_nics)$
^transport/tcp_calls(-tls)?$
^comm/(calls|choose|comms|done|integrity|ops|pacing_host|refusals)$
^launcher/(ctl|frames|members|output|placement|recovery|rendezvous|server|traffic|verdict)$
^netem/(frame|labfile|plan)$
^shaping/(htb|net|pacing)$
^tools/(cp_block_sums|cp_files|cp_manifest|cp_resume|cp_sums|cp_text|cp_tree|doctor|explain|facts|gantt|model_files|trace_file)$'
but='^collectives/(algorithms-.*|candidates|mutants.*|scale)$'

options="--buildtype=debugoptimized -Dc_args=-DTEST_SANITIZED=1 -Ddocs=disabled"
# shellcheck disable=SC2086 # words
[ -f $dir/build.ninja ] || CC=gcc meson setup $dir $options >$dir.log 2>&1 || {
	cat $dir.log
	exit 1
}
ninja -C $dir build.ninja >/dev/null || exit 1 # which tests there are now
tests=${*:-$(meson test -C $dir --no-rebuild --list 2>/dev/null | sed 's|.* / ||' |
	grep -E "$units" | grep -vE "$but")}
# shellcheck disable=SC2086 # words
build $dir $options || exit 1

logs=$PWD/$dir/valgrind
rm -rf "$logs"
mkdir "$logs" || exit 1

# Reachable memory is what libraries keep for ever.
# shellcheck disable=SC2086 # words
meson test -C $dir --no-rebuild --num-processes "$(nproc)" --timeout-multiplier 20 --print-errorlogs \
	--wrapper "valgrind --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,possible \
		--show-leak-kinds=definite,possible --num-callers=30 --log-file=$logs/%p" \
	$tests >$dir/tests.log 2>&1
rc=$?
grep -E '^ *[0-9]+/[0-9]+ ' $dir/tests.log || cat $dir/tests.log

# A process's log ends with how many errors it had, those of leaks among them; not where it became
# another program.
for log in "$logs"/*; do
	! grep -q 'ERROR SUMMARY: [1-9]' "$log" || {
		rc=1
		cat "$log"
	}
done
[ $rc = 0 ] || sed -n '/^Summary of Failures/,$p' $dir/tests.log
cat "$logs"/* | awk -v processes="$(ls "$logs" | wc -l)" '
/ERROR SUMMARY:/ { n += $4 }
/definitely lost:|possibly lost:/ { gsub(",", ""); lost += $4 }
END { printf "%d processes, %d errors, %d bytes lost\n", processes, n, lost; exit !processes }' || rc=1
exit $rc
