#!/bin/sh
# SPDX-License-Identifier: MIT
# The interface of a library with debug information, as abidiff reads it.
#	describe.sh LIBRARY HEADERS
exec abidw --exported-interfaces-only --headers-dir "$2" --drop-private-types --no-corpus-path \
	--no-comp-dir-path --no-show-locs --type-id-style hash --no-elf-needed "$1"
