#!/bin/sh
# SPDX-License-Identifier: MIT
# Fails where a library makes a system call, under the call's own name, that failing.h does not know.
#	complete.sh failing.h LIBRARY...
# What cannot fail:
never="clock_gettime geteuid getpid"

header=$1
shift
known=$(grep -o 'X([A-Za-z0-9_]*)' "$header" | sed -e 's/X(//' -e 's/)//' -e 's/64$//' | tr '\n' ' ')
calls=$(echo '#include <sys/syscall.h>' | ${CC:-cc} -E -dM - |
	sed -n 's/^#define SYS_\([a-z0-9_]*\) .*/\1/p' | tr '\n' ' ')
asked=$(nm -u "$@" | sed -n 's/^ *U \([a-z0-9_]*\)$/\1/p' | sed 's/64$//' | sort -u)

found=0 rc=0
for f in $asked; do
	case " $calls " in *" $f "*) ;; *) continue ;; esac
	found=$((found + 1))
	case " $never $known " in *" $f "*) continue ;; esac
	echo "$f is a system call, but none that tests make fail: add it to tests/failing"
	rc=1
done
[ $found -gt 10 ] || {
	echo "found only $found system calls: this test is broken"
	rc=1
}
exit $rc
