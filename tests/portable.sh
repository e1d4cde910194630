#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds and tests gridcoll as other machines would: each row of the table below once, then a table of
# what ran where. Fails where a row does. All rows take more than an hour of two processors.
#	tests/portable.sh			all rows
#	tests/portable.sh ROW...		only these
#	tests/portable.sh ... -- ARGUMENT...	each with these arguments of `meson test`
#	tests/portable.sh --list		names the rows
#	tests/portable.sh --keep DIR ...	roots and builds are made in DIR, and stay there for the next run
#
# As root, on Debian 12 or later with the packages of packages.txt and those that `needs` names below. Of
# the network it uses the mirror that apt is set to. ccache, if it is there, spares most of the compiling.
# Ctrl-C, or SIGTERM, ends what is running, and removes what was made.
cd "$(dirname "$0")/.." || exit 1
. ./.ci/lib.sh

rows='trixie	Debian 13 (gcc 14, OpenSSL 3.5, libuv 1.50), in a root of its own
clang	clang
no-uring	without liburing
no-bpf	without libbpf
python	the first python3 in the PATH has only its own modules
old-cpu	AVX, AES and all that came with them or later hidden from glibc and OpenSSL
oldest-cpu	a processor of 2006, by qemu-x86_64: what has code for newer ones
arm64	cross-built, by qemu-aarch64
musl	musl, as much as Debian has libraries for'

needs() { # ROW
	case $1 in
	trixie) echo mmdebstrap ;;
	oldest-cpu) echo qemu-user-static ;;
	python) echo python3-venv ;;
	arm64) echo mmdebstrap qemu-user-static gcc-aarch64-linux-gnu ;;
	musl) echo musl-tools ;;
	esac
}

usage() {
	sed -n 's/^#\t/usage: /p' tests/portable.sh >&2
	exit 2
}

stop() {
	echo "tests/portable.sh: $*" >&2
	exit 1
}

keep='' chosen='' given=''
parse() {
	while [ $# -gt 0 ]; do
		case $1 in
		--list) echo "$rows" && exit ;;
		--keep) [ $# -gt 1 ] && mkdir -p "$2" && keep=$(cd "$2" && pwd) && shift || usage ;;
		--) shift && given=$* && break ;;
		*) echo "$rows" | cut -f 1 | grep -qxF -e "$1" && chosen="$chosen $1" || usage ;;
		esac
		shift
	done
	chosen=${chosen:-$(echo "$rows" | cut -f 1)}
}
parse "$@"
[ "$(id -u)" = 0 ] || stop "needs root, for roots and namespaces"
missing=$(
	missing_packages
	for row in $chosen; do
		for package in $(needs "$row"); do
			installed "$package" || echo "$package"
		done
	done
)
[ -z "$missing" ] || stop "these packages are missing:" $(echo "$missing" | sort -u)

# All of it is in namespaces of mounts and processes, which end with the first process there: with all
# that was started, and nothing stays mounted. Only then is there nobody who writes to what is removed.
if [ -z "${portable_inside-}" ]; then
	work=${keep:-$(mktemp -d)} || exit 1
	# What a shell has in the background ignores SIGINT, which tests send: so that is undone.
	portable_inside=1 unshare --mount --pid --fork --kill-child --mount-proc sh -c '
		trap "exit 1" TERM
		env --default-signal=INT,QUIT sh tests/portable.sh "$@" &
		wait $!' sh --keep "$work" "$@" &
	all=$!
	tidy() {
		[ -n "$keep" ] || rm -rf --one-file-system "$work"
	}
	end() {
		trap '' HUP INT TERM
		pkill -TERM -P $all
		wait $all
		tidy
		exit "$1"
	}
	trap 'end 129' HUP
	trap 'end 130' INT
	trap 'end 143' TERM
	wait $all
	rc=$?
	tidy
	exit $rc
fi
unset portable_inside
work=$keep

mirror() {
	apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(COMPONENT)|$(REPO_URI)' 'Created-By: Packages' |
		awk -F '|' '$1 == "Debian" && $2 == "Debian" && $3 == "main" { print $4; exit }'
}

# make_root NAME SUITE OPTION...: by mmdebstrap, unless it is there.
make_root() {
	root=$work/$1-root suite=$2
	shift 2
	[ -e "$root.made" ] && return
	[ -n "$(mirror)" ] || {
		echo "apt knows no mirror of Debian"
		return 1
	}
	rm -rf --one-file-system "$root"
	TMPDIR=$work mmdebstrap --quiet "$@" "$suite" "$root" "$(mirror)" && touch "$root.made"
}

# in_root ROOT COMMAND...: in /src of it; what the command starts ends with it. It is a mount point there,
# without which no namespace of mounts can be made private, as labs are.
in_root() {
	unshare --mount --pid --fork --kill-child sh -c '
	root=$1 && shift && unset TMPDIR && mount --make-rprivate / && mount --bind "$root" "$root" &&
		mount -t proc proc "$root/proc" && mount --rbind /sys "$root/sys" &&
		mount --rbind /dev "$root/dev" && mount -t tmpfs none "$root/dev/shm" &&
		mount -t tmpfs none "$root/run" && mount -t tmpfs none "$root/tmp" &&
		cp -L /etc/resolv.conf "$root/etc/resolv.conf" &&
		exec chroot "$root" sh -c "cd /src && exec \"\$@\"" sh "$@"' sh "$@"
}

# by_qemu COMMAND...: programs for arm64 start as others do. The kernel is told so in a user namespace
# (Linux 6.7 and later), with a network of its own, as namespaces are made by its owner alone.
by_qemu() {
	unshare --user --net sh -c '
	until [ "$(id -u)" = 0 ]; do sleep 0.1; done
	exec env --default-signal=INT,QUIT unshare --mount --pid --fork --kill-child --mount-proc sh -c "
		mount -t sysfs none /sys && mount -t tmpfs none /run && ip link set lo up &&
			mount -t binfmt_misc none /proc/sys/fs/binfmt_misc &&
			cat /usr/lib/binfmt.d/qemu-aarch64.conf >/proc/sys/fs/binfmt_misc/register &&
			exec \"\$@\"" sh "$@"' sh "$@" &
	for map in uid_map gid_map; do
		until echo "0 0 4294967295" >/proc/$!/$map; do
			sleep 0.1 && kill -0 $! || return
		done 2>/dev/null
	done
	wait $!
}

# ---- rows

options="--werror --buildtype=debugoptimized"
# One row's objects are another's, where its option does not matter.
export CCACHE_NOHASHDIR=1
selected=${given:---no-suite slow}
tests=$selected # `build` makes what these need

summary() { # LOG WHAT: what meson's summary says
	awk -v what="$2:" 'index($0, what) == 1 { n = $NF } END { print n + 0 }' "$1"
}

# meson_test COMMAND...: `meson test -C DIR` and what it runs in, to which it adds what is selected.
meson_test() {
	export GRIDCOLL_TEST_PATIENCE=${patience:-3}
	# shellcheck disable=SC2086 # words
	"$@" --no-rebuild --num-processes $(($(nproc) * 2)) --timeout-multiplier $GRIDCOLL_TEST_PATIENCE \
		--print-errorlogs $selected
}

# A tree of this source, for this machine.
tree() { # NAME OPTION...
	name=$1
	shift
	# shellcheck disable=SC2086 # words
	build "$work/$name" $options "$@" && meson_test meson test -C "$work/$name"
}

copy_source() { # ROOT
	mkdir -p "$1/src" && find "$1/src" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} + &&
		git ls-files -z --cached --others --exclude-standard |
		tar --null -T - --ignore-failed-read -cf - 2>/dev/null | tar -xf - -C "$1/src"
}

row_trixie() {
	make_root trixie trixie --variant=apt --include=ca-certificates && copy_source "$root" &&
		in_root "$root" sh -c '. ./.ci/lib.sh; { install_packages || { tail build-install.log; exit 1; }; } && tests=$1 && shift && build build "$@"' \
			sh "$tests" $options && meson_test in_root "$root" meson test -C build
}

# glibc is told by names, OpenSSL by bits of CPUID's words (the whole of ECX, and of leaf 7). They do not bind
# our own kernels, which ask the processor.
row_old_cpu() {
	GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX,-BMI1,-BMI2,-ERMS,-FSRM,-LZCNT,-MOVBE,-SSE4_1,-SSE4_2,-SSSE3,-XSAVEC
	OPENSSL_ia32cap='~0xffffffff00000000:~0xffffffffffffffff'
	export GLIBC_TUNABLES OPENSSL_ia32cap
	tree old-cpu
}

# What is run is emulated, but not the programs that it starts.
row_oldest_cpu() {
	tests=${given:-base/buf collectives/kernels collectives/verify_exec transport/secure
		transport/secure_records transport/sums transport/endpoint_sums}
	selected=$tests
	# shellcheck disable=SC2086 # words
	build "$work/oldest-cpu" $options && patience=20 meson_test \
		meson test -C "$work/oldest-cpu" --wrapper 'qemu-x86_64-static -cpu core2duo'
}

# A virtual environment has no modules of Debian's.
row_python() {
	/usr/bin/python3 -m venv --without-pip "$work/venv" || return
	PATH=$work/venv/bin:$PATH
	tree python
}

# arm64: the compiler is the host's, libraries are those of a root in which nothing ever runs: Debian's
# libisal2 cannot be here for two processors. Tests run here, as do their shells and tools; gridcoll's
# programs run by qemu, and name the loader and the libraries in that root.
arm64_libraries=libc6-dev,libgcc-12-dev,linux-libc-dev,libbpf-dev,libcmocka-dev,libinih-dev,libisal-dev,libjansson-dev,libmnl-dev,libssl-dev,liburing-dev,libuv1-dev

# What is not run by qemu 7.2, and why: the reason, a tab, and which. What needs io_uring, seccomp, or orphans
# that an ancestor adopts, none of which it has, skips itself; so does much of what needs bpf().
by_qemu_not='it passes on four bytes of TCP_INFO, and no SO_MAX_PACING_RATE	^transport/(tcp|tcp_failures|tcp_losses(-tls)?)$|^tools/(ctl|report|top)$
its smaps do not say what madvise() has asked for	^base/mem$
it gives no orphans to an ancestor (PR_SET_CHILD_SUBREAPER)	^comm/kills$
what it needs itself counts as memory of the program	^comm/scale(-leaks)?$
what is sealed and summed by emulated code takes more than nine minutes	^tools/cp$
it has no openat2(), without which cp follows no links below DEST	^tools/cp_receivers$
it has no bpf(), nor what netlink says of queues	^shaping/(edt|edt_hook|sockops|net|htb)$
the lab is a machine of its own, which runs what is native (ENOEXEC)	^netem/(grid|lab)$|[_-]lab
interpreters and compilers are the native ones	^(python|install)/|^docs/(guides|pages|readme)$'

row_arm64() {
	codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
	make_root arm64 "$codename" --variant=extract --architectures=arm64 --include=$arm64_libraries || return
	cat >"$work/arm64.ini" <<-E
		[binaries]
		c = ['aarch64-linux-gnu-gcc', '--sysroot=$root']
		ar = 'aarch64-linux-gnu-ar'
		strip = 'aarch64-linux-gnu-strip'
		pkgconfig = 'pkg-config'
		[properties]
		sys_root = '$root'
		pkg_config_libdir = ['$root/usr/lib/aarch64-linux-gnu/pkgconfig', '$root/usr/share/pkgconfig']
		needs_exe_wrapper = false
		[built-in options]
		c_link_args = ['-Wl,--dynamic-linker=$root/lib/ld-linux-aarch64.so.1', '-Wl,--disable-new-dtags',
		  '-Wl,-rpath,$root/lib/aarch64-linux-gnu:$root/usr/lib/aarch64-linux-gnu']
		[host_machine]
		system = 'linux'
		cpu_family = 'aarch64'
		cpu = 'aarch64'
		endian = 'little'
	E
	# shellcheck disable=SC2086 # words
	[ -f "$work/arm64/build.ninja" ] ||
		meson setup --cross-file "$work/arm64.ini" $options "$work/arm64" || return
	[ "$given" ] || {
		names=$(meson test -C "$work/arm64" --no-rebuild --no-suite slow --list |
			sed 's|.* / ||')
		cannot=$(echo "$by_qemu_not" | cut -f 2 | paste -sd '|')
		selected=$(echo "$names" | grep -vE "$cannot")
		echo "$by_qemu_not" | while IFS='	' read -r why which; do
			echo "$names" | grep -E "$which" | sed "s|\$|: not run, $why|"
		done
		tests=$selected
	}
	build "$work/arm64" || return
	patience=10 meson_test by_qemu meson test -C "$work/arm64"
}

# musl: Debian has no library for it but the C library: neither libuv nor OpenSSL, nor cmocka for the
# tests. So all that is installed is compiled; linked and run is what needs inih alone: schedules and
# their simulator, in measurements that check themselves. Debian's libinih.a is glibc's by isspace alone.
row_musl() {
	[ -f "$work/musl/build.ninja" ] ||
		# The others' headers do for any C library, and are looked for last.
		CC=musl-gcc meson setup $options -Dbpf=disabled -Dpython=disabled -Ddocs=disabled -Dc_args="-idirafter \
			/usr/include -idirafter /usr/include/$(gcc -print-multiarch)" "$work/musl" || return
	ninja -C "$work/musl" build.ninja || return # or what is listed may be what was there before
	# shellcheck disable=SC2046 # words
	ninja -C "$work/musl" base/libbase.a collectives/libcollectives.a $(
		ninja -C "$work/musl" -t targets all | sed -n 's/: c_COMPILER$//p' |
			grep -vE '^(tests|examples|bench)/') || return
	passed=0 failed=0
	cd "$work/musl" || return
	cat >isspace.c <<-E
		#include <ctype.h>
		const unsigned short **__ctype_b_loc(void)
		{
			static unsigned short kinds[384];
			static const unsigned short *at = kinds + 128;
			for (int c = 0; c < 256; c++)
				kinds[128 + c] = isspace(c) ? 1 << 13 : 0;
			return &at;
		}
	E
	for program in 'bench_hnow --check' 'bench_hnow4 20' 'bench_hnow10 3'; do
		name=${program%% *}
		# shellcheck disable=SC2046,SC2086 # words
		if ninja $(ninja -t targets all | grep -o "^bench/$name\.p/[^:]*\.o") >/dev/null &&
			musl-gcc -static -o "$name" "bench/$name.p/"*.o isspace.c collectives/libcollectives.a \
				base/libbase.a "$(pkg-config --variable=libdir inih)/libinih.a" -lm && ./$program >/dev/null; then
			passed=$((passed + 1))
		else
			echo "FAIL: $program" && failed=$((failed + 1))
		fi
	done
	printf 'Ok: %d\nFail: %d\n' $passed $failed
	[ $failed = 0 ]
}

row_clang() {
	CC=clang tree clang
}

row_no_uring() {
	tree no-uring -During=disabled
}

row_no_bpf() {
	tree no-bpf -Dbpf=disabled
}

rc=0
rm -f "$work/table"
for row in $chosen; do
	say "$row: $(echo "$rows" | sed -n "s/^$row	//p")"
	log=$work/$row.out began=$(date +%s)
	# What is kept may be of another clone: it would go on to test that.
	grep -qsF "\"source\": \"$PWD\"" "$work/$row/meson-info/meson-info.json" || rm -rf "${work:?}/$row"
	("row_$(echo "$row" | tr - _)") >"$log" 2>&1 && how=ok || how=FAILED rc=1
	if [ $how = FAILED ]; then
		grep -E '^ *[0-9]+/[0-9]+ .* (FAIL|TIMEOUT|ERROR) ' "$log" || tail -20 "$log"
		cp "$log" "build-portable-$row.log" && echo "all of it: build-portable-$row.log"
	fi
	printf '%-12s %6d %6d %7d %8d %7d %6.1f  %s\n' "$row" "$(summary "$log" Ok)" \
		$(($(summary "$log" Fail) + $(summary "$log" Timeout))) "$(summary "$log" Skipped)" \
		"$(grep -c ': not run, ' "$log")" $(($(date +%s) - began)) "$(cut -d ' ' -f 2 /proc/loadavg)" \
		$how >>"$work/table"
	tail -1 "$work/table"
done
say "what ran where"
printf '%-12s %6s %6s %7s %8s %7s %6s\n' row passed failed skipped "left out" seconds load
cat "$work/table"
exit $rc
