#!/bin/sh
# SPDX-License-Identifier: MIT
# What meson installs works where it is put: programs that find the library by pkg-config alone, the
# tools, man pages, completions, the Python module. In a prefix of its own, which was not configured.
#	test_install.sh BUILD_DIR SOURCE_DIR PREFIX LIBDIR PYTHON_DIR MAN
set -eu
build=$1 source=$2 prefix=$3 libdir=$4 python_dir=$5 man=$6
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
	echo "$*"
	exit 1
}

meson install -C "$build" --no-rebuild --quiet --destdir "$work/root" >"$work/log" 2>&1 || {
	cat "$work/log"
	exit 1
}
top=$work/root$prefix
lib=$top/$libdir
[ -f "$lib/libgridcoll.so.0" ] || fail "no $lib/libgridcoll.so.0"

# Nothing that is installed looks for the tree it was built in.
for f in "$top/bin/gridcoll" "$top/bin/gridcoll-run" "$lib/libgridcoll.so.0"; do
	readelf -d "$f" | grep -E 'R(UN)?PATH' && fail "$f has a path of its own"
done
for f in "$lib/pkgconfig/gridcoll.pc" "$top"/share/man/man?/* "$top"/share/*/*/*gridcoll*; do
	sed "s|$prefix||g" "$f" | grep -q "$build\|@[A-Z_]*@" && fail "$f knows the build directory, or was not filled in"
done
for f in gridcoll gridcoll-run; do
	"$top/bin/$f" --version | grep -q "^$f 0\." || fail "$f --version"
done

# A program, with what pkg-config says and nothing else.
pc() {
	PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --define-variable=prefix="$top" "$@" gridcoll
}
job() { # PROGRAM...
	"$top/bin/gridcoll-run" -n 3 --quiet-prefix "$@" >"$work/out" || fail "$*: failed"
	[ "$(grep -c "$wanted" "$work/out")" = 3 ] || fail "$*: $(cat "$work/out")"
}
wanted="hello from local0"
# shellcheck disable=SC2046 # words
${CC:-cc} -Wall -Werror "$source/examples/hello_bcast.c" $(pc --cflags --libs) -o "$work/hello"
LD_LIBRARY_PATH=$lib job "$work/hello"
# That needs no package of another library.
PKG_CONFIG_LIBDIR=$lib/pkgconfig PKG_CONFIG_PATH='' pkg-config --cflags --libs --static gridcoll >"$work/log" 2>&1 ||
	fail "$(cat "$work/log")"
[ "$(pc --modversion)" = "$("$top/bin/gridcoll" --version | sed -n 's/^gridcoll //p')" ] || fail "version"
if [ -f "$lib/libgridcoll.a" ]; then
	# shellcheck disable=SC2046 # words
	${CC:-cc} -Wall -Werror "$source/examples/hello_bcast.c" \
		$(pc --static --cflags --libs | sed 's/-lgridcoll/-l:libgridcoll.a/') -o "$work/hello_static"
	readelf -d "$work/hello_static" | grep -q libgridcoll && fail "hello_static is linked with the library"
	job "$work/hello_static"
	echo "static: works"
fi

# A page for each command and function.
if [ "$man" = true ]; then
	pages=$top/share/man
	for f in gridcoll.1 gridcoll-run.1 gridcoll-cp.1 gridcoll-grid.5 libgridcoll.3 gcoll_ibcast.3 \
		gcoll_send_init.3 gcoll_test.3; do
		grep -q "^\.SH NAME" "$pages/man${f##*.}/$f" || fail "no page $f"
	done
	for f in $(nm -D --defined-only "$lib/libgridcoll.so.0" | sed -n 's/.* \(gcoll_[a-z0-9_]*\).*/\1/p'); do
		[ -f "$pages/man3/$f.3" ] || fail "no page $f.3"
	done
fi

# The shells take the completions; what they do with them is tested elsewhere.
while read -r shell file; do
	[ -s "$top/share/$file" ] || fail "no $file"
	! command -v "$shell" >/dev/null || "$shell" -n "$top/share/$file" || fail "$file"
done <<EOL
bash bash-completion/completions/gridcoll
bash bash-completion/completions/gridcoll-run
zsh zsh/site-functions/_gridcoll
fish fish/vendor_completions.d/gridcoll.fish
fish fish/vendor_completions.d/gridcoll-run.fish
EOL

# The module finds the library that is installed with it.
if [ -n "$python_dir" ]; then
	unset GRIDCOLL_LIBRARY
	cat >"$work/sum.py" <<-EOL
		import array, gridcoll
		with gridcoll.init() as world:
		    print("the sum is", world.allreduce(array.array("i", [world.rank]))[0])
		assert gridcoll.__version__[0].isdigit(), gridcoll.__version__
	EOL
	wanted="the sum is 3"
	[ "$prefix" != /usr ] || export LD_LIBRARY_PATH="$lib"
	PYTHONPATH=$top/$python_dir PYTHONDONTWRITEBYTECODE=1 job python3 "$work/sum.py"
fi
