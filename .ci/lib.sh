# SPDX-License-Identifier: MIT
# What quickstart and check share. Sourced with the repository as the working directory.

say() {
	printf '\n== %s\n' "$*"
}

packages() {
	sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d' packages.txt
}

installed() {
	dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'
}

# The packages of the list that are not installed; of alternatives, "a|b", the first that apt has.
missing_packages() {
	for p in $(packages); do
		has='' first=''
		for a in $(echo "$p" | tr '|' ' '); do
			installed "$a" && has=1 && break
			[ "$first" ] || ! apt-cache show --no-all-versions "$a" >/dev/null 2>&1 || first=$a
		done
		[ "$has" ] || echo "${first:-${p%%|*}}"
	done
}

# Installs what is missing. Where that cannot be done, says what is needed, and returns 2.
install_packages() {
	if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
		echo "This is not Debian: nothing was installed. gridcoll needs what these Debian"
		echo "packages hold:" $(packages)
		return 2
	fi
	missing=$(missing_packages)
	[ -z "$missing" ] && return 0
	if [ "$(id -u)" != 0 ]; then
		echo "Not root: could not install" $missing
		echo "As root:  apt-get install" $missing
		return 2
	fi
	say "installing" $missing
	{ apt-get update -q && DEBIAN_FRONTEND=noninteractive \
		apt-get install -q -y --no-install-recommends $(missing_packages); } >build-install.log 2>&1 && {
		rm -f build-install.log
		return 0
	}
	echo "apt-get failed, see build-install.log. Needed:" $missing
	return 1
}

# build DIR OPTION...: a configured and built tree, or of it what the tests that $tests selects need.
# Of it $targets, if there are any. $nice goes before the work.
build() {
	dir=$1
	shift
	if [ -f "$dir/build.ninja" ]; then
		meson configure "$dir" "$@" >/dev/null || return 1
	else
		meson setup "$dir" "$@" >"$dir.log" 2>&1 || {
			cat "$dir.log"
			return 1
		}
	fi
	rm -f "$dir.log"
	# shellcheck disable=SC2086 # words
	if [ -n "${tests-}" ]; then # they pass without being run
		${nice-} meson test -C "$dir" --wrapper true $tests
	else
		${nice-} ninja -C "$dir" ${targets-}
	fi >"$dir/build.log" 2>&1 || {
		grep -v '^\[' "$dir/build.log"
		return 1
	}
}
