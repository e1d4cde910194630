#!/bin/sh
# SPDX-License-Identifier: MIT
# Says how many lines of transport/ and collectives/ the ordinary suites run (neither the long ones nor
# those in the lab), file by file, and fails where a room has less than 90 %, or a test fails. It takes
# about as long as ./check.
#	tests/coverage.sh		builds and tests in build-coverage
#	tests/coverage.sh --count	only counts what the tests there have run up to now
#	tests/coverage.sh --missed	the same, with the lines that none did, as FILE:LINE: TEXT
rooms="transport collectives"
least=90

cd "$(dirname "$0")/.." || exit 1
. ./.ci/lib.sh
dir=build-coverage

case "${1-}" in
"" | --count) missed=0 ;;
--missed) missed=1 ;;
*)
	echo "usage: tests/coverage.sh [--count | --missed]" >&2
	exit 2
	;;
esac

rc=0
if [ -z "${1-}" ]; then
	targets=meson-test-prereq
	CC=gcc build $dir --buildtype=debug -Doptimization=g -Db_coverage=true || exit 1
	find $dir -name '*.gcda' -exec rm -f {} +
	meson test -C $dir --no-rebuild --num-processes $(($(nproc) * 2)) --timeout-multiplier 3 \
		--no-suite slow --no-suite lab --print-errorlogs >$dir/tests.log 2>&1 || {
		sed -n '/^Summary of Failures/,$p' $dir/tests.log
		rc=1
	}
fi

# gcov's listing of a source: count, line, text. A header has one from each file that includes it, and
# a line of it is run if any of them ran it.
cd $dir || exit 1
# shellcheck disable=SC2086 # words
find $rooms -name '*.gcno' -exec gcov --stdout --relative-only {} + 2>/dev/null |
	awk -v rooms="$rooms" -v least=$least -v missed=$missed '
	{
		count = $0; sub(/:.*/, "", count); gsub(/ /, "", count)
		text = $0; sub(/^[^:]*:/, "", text)
		line = text; sub(/:.*/, "", line); line += 0
		sub(/^[^:]*:/, "", text)
	}
	line == 0 {
		if (text ~ /^Source:/) {
			file = substr(text, 8); sub(/^(\.\.\/)*/, "", file)
			room = file; sub(/\/.*/, "", room)
			wanted = index(" " rooms " ", " " room " ") > 0
		}
		next
	}
	!wanted || count == "-" { next }
	!((file, line) in run) {
		run[file, line] = 0
		nlines[file]++
		all[room]++
	}
	count !~ /^[#=]/ && !run[file, line] {
		run[file, line] = 1
		nrun[file]++
		covered[room]++
	}
	{ said[file, line] = text }
	END {
		sort = "sort -k 6"
		for (f in nlines)
			printf "%6d of %6d %7.1f %% %s\n", nrun[f], nlines[f], 100 * nrun[f] / nlines[f], f | sort
		close(sort)
		sort = "sort -t : -k 1,1 -k 2,2n"
		for (i in run) {
			split(i, at, SUBSEP)
			if (missed && !run[i])
				print at[1] ":" at[2] ":" said[i] | sort
		}
		close(sort)
		n = split(rooms, room_of, " ")
		for (i = 1; i <= n; i++) {
			r = room_of[i]
			if (!all[r]) { print r ": no line was counted"; bad = 1; continue }
			part = 100 * covered[r] / all[r]
			printf "%s/: %d of %d lines, %.1f %% (at least %d)\n", r, covered[r], all[r], part, least
			sum += covered[r]; of += all[r]
			bad = bad || part < least
		}
		if (of)
			printf "together: %d of %d lines, %.1f %%\n", sum, of, 100 * sum / of
		exit bad
	}' || rc=1
exit $rc
