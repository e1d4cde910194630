#!/bin/sh
# SPDX-License-Identifier: MIT
# Whatever is wrong with a parameters file or a table that is named, each command that takes one names
# the file and the reason, and ends with 2; but for one of another grid, without which it goes on.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0
checks=0

cat >my.grid <<END
[cluster near]
hosts = 127.0.0.1
[cluster far]
hosts = 127.0.0.2
[link near far]
rate = 1Gbit
delay = 1ms
END
"$GRIDCOLL" tune --simulated --grid my.grid bcast -b 1KiB,64KiB -o good.table >/dev/null || exit 1
digest=$(sed -n 's/.*"grid_digest": "\([0-9a-f]*\)".*/\1/p' good.table)
cat >good.params <<END
{"version": 1, "date": "2026-11-21T16:29:00Z", "grid_digest": "$digest", "dilation": 1,
 "latency": "one way", "clusters": ["near", "far"],
 "links": [{"from": "near", "to": "far", "latency_ns": 1000000,
  "points": [{"nbytes": 0, "os_ns": 900, "or_ns": 800, "gap_ns": 2000}]}]}
END

# made KIND: wrong files of that kind, from the good one.
made() {
	: >empty.$1
	for n in 1 40 100 170; do
		head -c $n good.$1 >cut-$n.$1
	done
	head -c $(($(wc -c <good.$1) - 2)) good.$1 >cut.$1
	head -c 100000 "$GRIDCOLL" >binary.$1
	cp my.grid grid.$1
	sed 's/"version": 1/"version": 2/' good.$1 >version.$1
	sed "s/$digest/0123456789abcdef/" good.$1 >foreign.$1
	sed 's/"version": 1/"version": 1, "version": 1/' good.$1 >twice.$1
	sed 's/"version": 1/"version": 1, "a\\u001b[31m": 1/' good.$1 >unknown.$1
	for v in NaN 1e999 -5 1.5 99999999999999999999 null '"1"' '[]'; do
		sed "0,/_ns\": [0-9]*/s//_ns\": $v/" good.$1 >"value-$(echo "$v" | tr -dc a-z0-9-).$1"
	done
	awk 'BEGIN { for (i = 0; i < 100000; i++) printf "[" }' >deep.$1
	truncate -s 1G sparse.$1
	mkdir directory.$1
	ln -s nowhere dangling.$1
	cp good.$1 unreadable.$1 && chmod 0 unreadable.$1
}
made params
made table
# root reads what nobody may
[ "$(id -u)" != 0 ] || rm unreadable.*

# goes_on FILE LAST COMMAND...: status 0 (doctor: or 1), and on standard error the file and LAST.
goes_on() {
	file=$1 last=$2
	shift 2
	checks=$((checks + 1))
	timeout 60 "$@" >out 2>err
	status=$?
	[ "$status" = 0 ] || { [ "$2" = doctor ] && [ "$status" = 1 ]; } || status=wrong
	if [ "$status" = wrong ] || ! grep -qF "$file" err || ! grep -qF "$last" err ||
		LC_ALL=C tr -d '\n -~' <err | grep -q .; then
		echo "FAILED: $* ($status)" && cat err
		failures=$((failures + 1))
	fi
}

# ends FILE - COMMAND...: status 2, and on standard error the file (called as goes_on is).
ends() {
	file=$1
	shift 2
	checks=$((checks + 1))
	timeout 60 "$@" >out 2>err
	status=$?
	if [ "$status" != 2 ] || ! grep -qF "$file" err || LC_ALL=C tr -d '\n -~' <err | grep -q .; then
		echo "FAILED: $* ($status)" && cat err
		failures=$((failures + 1))
	fi
}

# how FILE: what becomes of a command with that file.
how() {
	case $1 in foreign.*) echo goes_on ;; *) echo ends ;; esac
}

params() {
	$(how "$1") "$1" "with the grid file alone" \
		"$GRIDCOLL" plan barrier --grid my.grid --params "$1"
	$(how "$1") "$1" "predicting from the grid file alone" \
		"$GRIDCOLL" tune --simulated --grid my.grid bcast -b 1KiB --params "$1"
	$(how "$1") "$1" "; checking without them" \
		"$GRIDCOLL" doctor --grid my.grid --host 127.0.0.1 --params "$1"
	$(how "$1") "$1" "; running without them" \
		"$GRIDCOLL_RUN" --grid my.grid --params "$1" true
}

table() {
	$(how "$1") "$1" "going on without a table" \
		"$GRIDCOLL" plan bcast --grid my.grid -b 1KiB --table "$1"
	$(how "$1") "$1" "; running with defaults" \
		"$GRIDCOLL_RUN" --grid my.grid --table "$1" true
	goes_on "GRIDCOLL_TABLE: " "; running with defaults" \
		env GRIDCOLL_TABLE="$1" "$GRIDCOLL_RUN" --grid my.grid true
}

unset GRIDCOLL_LAB GRIDCOLL_TABLE
for f in *.params; do
	[ "$f" = good.params ] || params "$f"
done
for f in *.table; do
	[ "$f" = good.table ] || table "$f"
done
mkfifo pipe
ends pipe - "$GRIDCOLL" plan barrier --grid my.grid --params pipe
ends pipe - "$GRIDCOLL_RUN" --grid my.grid --table pipe true
ends nowhere.params - "$GRIDCOLL_RUN" --grid my.grid --params nowhere.params true
ends cut.params - "$GRIDCOLL_RUN" --grid my.grid "$GRIDCOLL" bench barrier -i 1 --params cut.params
goes_on foreign.params "from the grid file alone" \
	"$GRIDCOLL_RUN" --grid my.grid "$GRIDCOLL" bench barrier -i 1 --params foreign.params

# No text of a file, nor its name, reaches a terminal raw.
raw=$(printf 'r\033[31m\na\177w')
printf '[clu\033[31mster a]\n' >"$raw"
ends 'r?[31m?a?w:1: ' - "$GRIDCOLL_RUN" --grid my.grid --params "$raw" true
ends 'r?[31m?a?w:1: ' - "$GRIDCOLL" plan bcast --grid my.grid -b 1KiB --table "$raw"
refused() {
	checks=$((checks + 1))
	if "$@" >out 2>err || ! grep -qF 'r?[31m?a?w:1: unknown section [clu?[31mster a]' err ||
		LC_ALL=C tr -d '\n -~' <err | grep -q .; then
		echo "FAILED: $*" && cat -v err
		failures=$((failures + 1))
	fi
}
refused "$GRIDCOLL" plan bcast -b 1KiB --grid "$raw"
refused "$GRIDCOLL" doctor --grid "$raw"
refused "$GRIDCOLL_RUN" --grid "$raw" true

# And the good ones are taken without a word.
for c in "plan barrier --params good.params" "plan bcast -b 1KiB --table good.table"; do
	# shellcheck disable=SC2086 # words
	"$GRIDCOLL" $c --grid my.grid >out 2>err && [ ! -s err ] || {
		echo "FAILED: $c" && cat err
		failures=$((failures + 1))
	}
done
"$GRIDCOLL_RUN" --grid my.grid --params good.params --table good.table true 2>err && [ ! -s err ] || {
	echo "FAILED: good ones" && cat err
	failures=$((failures + 1))
}
echo "$checks checks, $failures failed"
[ $failures = 0 ]
