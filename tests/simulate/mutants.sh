#!/bin/bash
# SPDX-License-Identifier: MIT
# Breaks the product in one place after the other, and says after how many runs the simulation sees
# it. Each line: how many seeds it may take, whether it is expected to be seen or known to live, file,
# a substitution of Perl's, what it breaks. Works in a copy of what is committed. Fails when one lives
# of which that is not known, or is seen of which it is. With --check nothing is built or run: does each
# line still change its file?
#	tests/simulate/mutants.sh [BUILD-FOLDER-TO-MAKE] [PATTERN]
#	tests/simulate/mutants.sh --check
set -u
list() {
	cat <<'END'
50	seen	transport/replay.c	s/life->ncame\+\+;/life->ncame += 2;/	frames that came are counted twice
1500	seen	transport/replay.c	s/\tresend_notices\(r, life\);\n//	a notice of a loss that was lost itself is not sent again
200	seen	transport/replay.c	s/\tlife->known = 1;\n//	the peer's notice of a loss is forgotten
100	seen	transport/replay.c	s/if \(life->lost\)\n\t\tresend\(r, life\);\n\telse\n/if (!life->lost)\n/	nothing is sent again when the other side tells first
300	lives	transport/endpoint_core.c	s/if \(!gci_replay_copy\(p->replay, f\)\)\n\t\t\tbreak;/gci_replay_copy(p->replay, f);/	a detached SEND is over though there was no room to copy it
50	seen	transport/endpoint.c	s/sink->msg->moved -= sink->nbytes;/;/	the loss of half a payload is not undone
300	seen	transport/endpoint.c	s/sink->sum != sink->crc/0/	a payload's checksum is not compared
300	seen	transport/frame.c	s/gci_load_u32\(head \+ AT_HEAD_CRC\) != gci_crc32c\(0, head, AT_HEAD_CRC\)/0/	nor a header's
50	seen	transport/endpoint.c	s/cost > p->eager_left \|\| //	messages go out without allowance
300	seen	transport/endpoint.c	s/b->id != f->back \+ f->nback/0/	numbers that do not follow each other go in one header
100	seen	transport/stream.c	s/if \(s->in_payload\)\n\t\tgci_ep_undo/if (0)\n\t\tgci_ep_undo/	a stream is lost in a payload as if between two
100	seen	transport/tcp_peers.c	s/set_again\(t, p, now \+ p->pause_ns\);\n\}/;\n}/	nobody connects a lost stream again
300	seen	transport/tcp_conn.c	s/gci_tcp_alive\(t->peers\[c->peer\], gci_now_ns\(\)\);/;/	who was never heard counts as dead at once
200	seen	transport/tcp_conn.c	s/if \(!c->tls.sealed_nbytes\)\n\t\t\tn = /n = /	what is encrypted and not sent yet is encrypted again
100	seen	launcher/rendezvous.c	s/return !c->closing && !k->exited/return 0 \&\& !c->closing \&\& !k->exited/	the loss of a control connection is the rank's end
500	seen	transport/control.c	s/gci_buf_put\(&l->kept, p, n\);/;/	control messages are not sent again
50	seen	comm/op.c	s/op->number << GCI_WINDOW_BITS \| op->started/op->number << GCI_WINDOW_BITS/	all windows have one name
50	seen	comm/op.c	s/\.comm = op->comm->id,/.comm = 0,/	all communicators have one name
50	seen	comm/message.c	s/memmove\(to->buf, from->buf, m->nbytes\);/;/	a message to oneself has no bytes
END
}

check() {
	local wrong=0 n=0 most expected file change what
	while IFS=$'\t' read -r most expected file change what; do
		n=$((n + 1))
		if [ ! -f "$file" ]; then
			echo "$file: is no file: $what" && wrong=$((wrong + 1))
		elif ! perl -0pe "$change" "$file" >"$changed" || cmp -s "$changed" "$file"; then
			echo "$file: there is nothing to change: $what" && wrong=$((wrong + 1))
		fi
	done < <(list)
	echo "$wrong of $n mutants change nothing"
	[ $n -gt 0 ] && [ $wrong = 0 ]
}

root=$(cd "$(dirname "$0")/../.." && pwd)
if [ "${1:-}" = --check ]; then
	type perl >/dev/null 2>&1 || { echo "no perl" && exit 77; }
	changed=$(mktemp) || exit 1
	trap 'rm -f "$changed"' EXIT
	cd "$root" && check
	exit
fi
dir=${1:-/tmp/gridcoll-mutants}
only=${2:-.}
if [ ! -d "$dir/.git" ]; then
	git clone -q "$root" "$dir" && meson setup "$dir/build" "$dir" --buildtype=debugoptimized \
		>/dev/null || exit 1
fi
cd "$dir" || exit 1
git fetch -q "$root" HEAD && git checkout -qf FETCH_HEAD || exit 1
ninja -C build tests/sim >build/mutants.log || exit 1
wrong=0
while IFS=$'\t' read -r most expected file change what; do
	[[ $what =~ $only ]] || continue
	is=broken
	perl -0pi -e "$change" "$file"
	if git diff --quiet; then
		said="there is nothing to change"
	elif ! ninja -C build tests/sim >build/mutants.log; then
		said="does not compile"
	else
		timeout 600 build/tests/sim --runs "$most" --first >build/mutants.log 2>&1
		rc=$?
		case $rc in
		0) is=lives said="LIVES after $most runs" ;;
		1) is=seen said=$(sed -n 's/^seed \([0-9]*\): \(.*\)/seen in run \1: \2/p' build/mutants.log) ;;
		124) said="took too long: $most runs are not over after 600 s" ;;
		*) is=seen said="crashes ($rc)" ;;
		esac
	fi
	if [ $is != "$expected" ]; then
		wrong=$((wrong + 1)) said="$said; expected: $expected"
	fi
	printf '%s: %s\n\t%s\n' "$file" "$what" "${said:0:150}"
	git checkout -q -- "$file"
done < <(list)
echo "$wrong not as expected"
[ $wrong = 0 ]
