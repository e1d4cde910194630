# SPDX-License-Identifier: MIT
# title: ATCC, figures 16 and 18: trees by segment, measured and simulated
# paper: S. Vadhiyar, G. Fagg, J. Dongarra: "Towards an Accurate Model for Collective Communications", section 5
# minutes: 10
dilate=${DILATE:-30} bytes=${BYTES:-256KiB}
cat <<END
bcast of $bytes to 8 hosts of two clusters in the lab, dilated by $dilate: what each tree takes in
segments of each length, measured and, in parentheses, simulated from the grid file. The paper's
were 64 processors of a Cray T3E. Its figure 17, by MagPIe's formulas, is in part in the report of
\`atcc3\`, which has the segments that the formulas find.

END
list=
for segment in 1KiB 2KiB 4KiB 8KiB 16KiB 32KiB 64KiB 128KiB 256KiB; do
	for tree in sequential chain binary binomial; do
		list=$list${list:+,}$tree:segment=$segment
	done
done
measure() {
	on_grid quickstart "$dilate" gridcoll bench bcast --bytes "$bytes" --algorithm "$list" \
		--iters "${ITERS:-3}" --predict --json "$work/segments.json"
}
measure >"$work/measure.out"
results "$work/segments.json" | sed 's/:segment=/ /' >"$work/rows" # op bytes tree segment ms predicted
cat <<'END'
| segment | flat | chain | binary | binomial |
|---|---|---|---|---|
END
awk '{ t[$4, $3] = sprintf("%.1f ms (%.1f)", $5, $6); if (!seen[$4]++) order[++n] = $4 }
	END { split("sequential chain binary binomial", trees)
		for (i = 1; i <= n; i++) { printf "| %s |", order[i]
			for (k = 1; k <= 4; k++) printf " %s |", t[order[i], trees[k]]
			print "" } }' "$work/rows"
echo
ms() { # TREE SEGMENT
	awk -v t="$1" -v s="$2" '$3 == t && $4 == s { print $5 }' "$work/rows"
}
best() { # SEGMENT: the fastest tree
	awk -v s="$1" '$4 == s && (!m || $5 < m) { m = $5; t = $3 } END { print t }' "$work/rows"
}
worst=$(awk '!($4 in m) || $5 > m[$4] { m[$4] = $5; t[$4] = $3 } END { for (s in t) n += t[s] == "sequential"
	print n + 0 }' "$work/rows")
judge "$worst >= 5" "the flat tree is the slowest in $worst of 9 segments (in all)" \
	"Over two clusters a chain or tree in the order of ranks crosses the WAN but once, and so does the half of a flat \
tree: whole messages handed on one after the other are slower than that"
judge "$(ms chain 256KiB) > $(ms binomial 256KiB)" \
	"with whole messages there is a large difference between chain and binomial tree" "There is none"
judge "\"$(best 1KiB)\" == \"chain\" || \"$(best 2KiB)\" == \"chain\"" "in short segments the chain is the fastest (to 1 KB)" \
	"$(best 1KiB) is: a chain of 8 hosts over a link of 10 ms is not a chain of 64 neighbours"
judge "\"$(best 256KiB)\" == \"binomial\"" "in one segment the binomial tree is the fastest (over 32 KB)" \
	"$(best 256KiB) is"
off=$(awk '{ d = $6 / $5 - 1; print d < 0 ? -d : d }' "$work/rows" | sort -n | awk '{ v[NR] = $1 }
	END { printf "%.0f", 100 * v[int((NR + 1) / 2)] }')
judge "$off <= 10" "simulated times are off by $off % in the median" "They are off by $off % in the median"
awk '{ print $1, $2, $3, $5, $6, $7, $8 }' "$work/rows" >"$work/cpu"
judge_cpu "$work/cpu"
