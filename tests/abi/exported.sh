#!/bin/sh
# SPDX-License-Identifier: MIT
# What a library exports, as debian/*.symbols has it: NAME@VERSION.
#	exported.sh LIBRARY
nm -D --with-symbol-versions --defined-only "$1" | awk '
	$2 == "A" { print $3 "@" $3; next }
	{ sub("@@", "@", $3); print $3 }' | LC_ALL=C sort
