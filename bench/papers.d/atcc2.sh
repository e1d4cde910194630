# SPDX-License-Identifier: MIT
# title: ATCC, table 2: how soon gradient descent finds the best segment
# paper: S. Vadhiyar, G. Fagg, J. Dongarra: "Towards an Accurate Model for Collective Communications", section 4.2
# minutes: 6
cat <<'END'
8 hosts of one cluster with Fast Ethernet, as the paper's SunBlades have it, in the lab. Each algorithm
(sequential, chain, binary, binomial) in segments of 8 bytes up to the whole message, or what is for
one host; ten runs of each, as in the paper, and the time is that of the measurements alone. The paper's "linear" search is the exhaustive one.
Nothing is slowed down: short segments cost a search what their messages cost hosts, which dilation
would divide. All hosts share one processor, so those cost more here than on hosts of their own.

END
search() { # OPERATION BYTES
	on_grid ultra "${DILATE:-1}" gridcoll tune "$1" --bytes "$2" \
		--algorithm sequential,chain,binary,binomial --search exhaustive,mgd,smgd \
		--least-segment 8 --iters "${ITERS:-9}"
}
sooner() { # NAME SEARCH: times sooner than the exhaustive one
	awk -v s="$2" '$1 == s { for (i = 2; i < NF; i++) if ($(i + 1) == "x") { print $i; exit } }' "$work/$1"
}
loss() { # NAME SEARCH: percent that its best is slower than the best
	awk -v s="$2" '$1 == s { if ($NF == "%") v = $(NF - 1); else { v = $NF; sub(/%/, "", v) }
		print v + 0; exit }' "$work/$1"
}
rows=$work/rows
: >"$rows"
experiment() { # OPERATION BYTES PAPERS-MGD PAPERS-SMGD WANTED
	echo "## $1 of $2"
	echo
	shown "$1-$2" search "$1" "$2"
	mgd=$(sooner "$1-$2" mgd) smgd=$(sooner "$1-$2" smgd)
	echo "| $1 of $2 | $mgd | $smgd | $3 | $4 | $(loss "$1-$2" smgd) % |" >>"$rows"
	judge "${smgd:-0} >= ${mgd:-0}" "$1 of $2: SMGD is done no later than MGD" \
		"What is tried is measured, and a slow one among few counts"
	judge "${smgd:-0} >= $5" "$1 of $2: SMGD is done $smgd times sooner than the exhaustive search (wanted: $5; the \
paper: $4)" "Where messages are short or the network slow, the ways that it keeps are not much faster than those that it \
leaves: an exhaustive search of so few, of which none takes a hundred times as long as the best, is soon done"
	judge "$(loss "$1-$2" smgd) <= 5" "$1 of $2: what SMGD finds is $(loss "$1-$2" smgd) % slower than the best" \
		"It has given up an algorithm too soon"
}
experiment bcast 1KiB 8.8 8.8 2
experiment bcast "${BYTES:-128KiB}" 62 130 8
experiment scatter 8KiB 26 63 2
experiment scatter 1MiB 79 318 8
cat <<'END'
## Beside the paper

| | here: MGD, times sooner | SMGD | the paper: MGD | SMGD | SMGD's best is slower by |
|---|---|---|---|---|---|
END
cat "$rows"
echo
