#!/bin/sh
# SPDX-License-Identifier: MIT
# Records the interface of a library as the one that later builds are compared with. After a change that
# is meant: new functions are; anything else that abidiff finds needs a new soversion once 0.1.0 is out.
# The library needs debug information and, since types are told apart by machine, x86-64.
#	record.sh build/libgridcoll.so
set -eu
here=$(dirname "$0")
top=$here/../..
version=$(sed -n "s/^ *version: '\(.*\)',/\1/p" "$top/meson.build" | head -1)
symbols=$top/debian/libgridcoll0.symbols

"$here/describe.sh" "$1" "$top/include/gridcoll" >"$here/x86_64.abi"

# A symbol keeps the release that it came with.
{
	echo "libgridcoll.so.0 libgridcoll0 #MINVER#"
	"$here/exported.sh" "$1" | while read -r name; do
		grep "^ $name " "$symbols" 2>/dev/null || echo " $name $version"
	done
} >"$symbols.new"
mv "$symbols.new" "$symbols"
