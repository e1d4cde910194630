# SPDX-License-Identifier: MIT
# title: ATCC, table 2: how soon gradient descent finds the best segment
# paper: S. Vadhiyar, G. Fagg, J. Dongarra: "Towards an Accurate Model for Collective Communications", section 4.2
# minutes: 10
cat <<'END'
8 hosts, in the lab. Each algorithm (sequential, chain, binary, binomial) in segments of 8 bytes up to
the whole message; the time is that of the measurements alone, divided by the dilation. The paper's
"linear" search is the exhaustive one; all of it was on one cluster, and here hosts are in two.

END
search() { # OPERATION BYTES
	on_grid quickstart "${DILATE:-20}" gridcoll tune "$1" --bytes "$2" \
		--algorithm sequential,chain,binary,binomial --search exhaustive,mgd,smgd \
		--least-segment 8 --iters "${ITERS:-1}"
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
experiment() { # OPERATION BYTES PAPERS-MGD PAPERS-SMGD
	echo "## $1 of $2"
	echo
	shown "$1-$2" search "$1" "$2"
	mgd=$(sooner "$1-$2" mgd) smgd=$(sooner "$1-$2" smgd)
	echo "| $1 of $2 | $mgd | $smgd | $3 | $4 | $(loss "$1-$2" smgd) % |" >>"$rows"
	judge "${smgd:-0} >= ${mgd:-0}" "$1 of $2: SMGD is done no later than MGD" \
		"What is tried is measured, and a slow one among few counts"
	judge "${smgd:-0} > 3" "$1 of $2: SMGD is done $smgd times sooner than the exhaustive search ($4)" \
		"The paper's exhaustive search spent nearly all of its time on the shortest segments; here a \
message costs its host a few microseconds"
	judge "$(loss "$1-$2" smgd) <= 10" "$1 of $2: what SMGD finds is $(loss "$1-$2" smgd) % slower than the best" \
		"It has given up an algorithm too soon"
}
experiment bcast 1KiB 8.8 8.8
experiment bcast "${BYTES:-128KiB}" 62 130
experiment scatter 8KiB 26 63
cat <<'END'
## Beside the paper

| | here: MGD, times sooner | SMGD | the paper: MGD | SMGD | SMGD's best is slower by |
|---|---|---|---|---|---|
END
cat "$rows"
echo
left_out "scatter of 128 KiB for each host, 12,613 s in the paper"
