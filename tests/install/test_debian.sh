#!/bin/sh
# SPDX-License-Identifier: MIT
# Debian packages, built from a clean clone, have no errors that lintian knows, and what they hold works.
#	test_debian.sh SOURCE_DIR VERSION
set -eu
source=$1 version=$2
skip() {
	echo "skipped: $*"
	exit 77
}
fail() {
	echo "$*"
	exit 1
}
for tool in dpkg-buildpackage lintian git; do
	command -v $tool >/dev/null || skip "no $tool"
done
git -C "$source" rev-parse HEAD >/dev/null 2>&1 || skip "$source is no clone"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone -q "$source" "$work/gridcoll"
cd "$work/gridcoll"
dpkg-checkbuilddeps || skip "not all that debian/control builds with is installed"
[ "$(dpkg-parsechangelog -S Version)" = "$version" ] || fail "debian/changelog is not of $version"

# The tests are run elsewhere.
DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" DEB_BUILD_PROFILES=nocheck \
	dpkg-buildpackage -us -uc -b >"$work/log" 2>&1 || {
	tail -60 "$work/log"
	exit 1
}
cd "$work"
lintian --allow-root --fail-on error ./*.changes
for package in gridcoll libgridcoll0 libgridcoll-dev python3-gridcoll gridcoll-doc; do
	dpkg-deb -x "${package}_${version}"_*.deb root || fail "no package $package"
done

root=$work/root/usr
# What the pages link to, but for sources that one would change in a clone.
doc=$root/share/doc/gridcoll
ls "$doc/docs/"*.md >/dev/null || fail "gridcoll-doc has no guides"
for page in "$doc/"*.md "$doc/docs/"*.md; do
	for link in $(grep -o '](\([^)#:]*\)' "$page" | sed 's/.*(//'); do
		case $link in *collectives/*.[ch] | */blocks) continue ;; esac
		to=$(dirname "$page")/$link
		[ ! -L "$to" ] || case $(readlink "$to") in
		/*) to=$work/root$(readlink "$to") ;;
		esac
		[ -e "$to" ] || fail "${page##*/}: a link to $link, which no package has"
	done
done
examples=$root/share/doc/gridcoll/examples # debhelper's place for what a -doc package has
lib=$(dirname "$(find "$root/lib" -name 'libgridcoll.so.0')")
export LD_LIBRARY_PATH="$lib" PKG_CONFIG_PATH="$lib/pkgconfig"
"$root/bin/gridcoll" --version | grep -q '+bpf +io_uring' || fail "features are left out"
job() {
	"$root/bin/gridcoll-run" -n 2 --quiet-prefix "$@" | grep -c "$wanted" | grep -qx 2 || fail "$*"
}
flags=$(pkg-config --define-variable=prefix="$root" --static --cflags --libs gridcoll)
wanted="hello from local0"
# shellcheck disable=SC2086 # words
cc "$examples/hello_bcast.c" $flags -o hello
job ./hello
# shellcheck disable=SC2086,SC2046 # words
cc "$examples/hello_bcast.c" \
	$(echo $flags | sed 's/-lgridcoll/-l:libgridcoll.a/') -o hello_static
(unset LD_LIBRARY_PATH && job ./hello_static)
wanted="rank [01] of 2"
if /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
	PYTHONPATH=$root/lib/python3/dist-packages job /usr/bin/python3 \
		"$examples/average.py"
fi
