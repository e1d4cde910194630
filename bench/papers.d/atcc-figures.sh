# SPDX-License-Identifier: MIT
# title: ATCC, figures 16 to 18: trees by segment, measured, by formula and simulated
# paper: S. Vadhiyar, G. Fagg, J. Dongarra: "Towards an Accurate Model for Collective Communications", section 5
# minutes: 10
dilate=${DILATE:-30} bytes=${BYTES:-256KiB}
cat <<END
The paper's were 64 processors of a Cray T3E, and 256 KiB. First 64 hosts of one cluster, that send one
message at a time: what a bcast of 256 KiB takes by each tree in segments of each length, by MagPIe's
formulas and by the schedules' simulation (the paper's ATCC).

## Figures 17 and 18: 64 hosts, milliseconds by formula and simulated

END
"$build/bench/bench_formulas" "$here/netem/grids/quickstart.grid" | sed -n '/^bcast of 256 KiB to 64/,$p' |
	sed -n '/^segment/,/^$/p' | sed '/^$/q' >"$work/hosts64"
cat <<'END'
| segment | flat | chain | binary | binomial |
|---|---|---|---|---|
END
awk '$1 + 0 { printf "| %d KiB |", $1 / 1024
	for (i = 2; i <= 8; i += 2) printf " %.1f, %.1f |", $i, $(i + 1)
	print "" }' \
	"$work/hosts64"
echo
# Field 2 is the first tree's formula, 3 its simulation.
fastest() { # SEGMENT BY: 0 formula, 1 simulation
	awk -v s="$1" -v by="$2" '$1 == s { split("flat chain binary binomial", name)
		for (i = 1; i <= 4; i++) if (!m || $(2 * i + by) < m) { m = $(2 * i + by); t = name[i] }
		print t }' "$work/hosts64"
}
from_to() { # TREE BY: the segments, in KiB, in which it is the fastest
	for s in 1024 2048 4096 8192 16384 32768 65536 131072 262144; do
		[ "$(fastest $s "$2")" != "$1" ] || echo $((s / 1024))
	done | awk '{ last = $1 } NR == 1 { first = $1 }
		END { print !NR ? "no segment" : first == last ? first " KiB" : first " to " last " KiB" }'
}
worst=$(awk '$1 + 0 { f += $2 > $4 && $2 > $6 && $2 > $8; s += $3 > $5 && $3 > $7 && $3 > $9 }
	END { print f < s ? f : s }' "$work/hosts64")
judge "$worst >= 8" "64 hosts: the flat tree is the slowest in at least $worst of 9 segments by both (in all)" \
	"A chain of 64 hands on whole messages later still"
judge "\"$(fastest 1024 0)\" == \"chain\"" \
	"64 hosts, by formula the chain is the fastest in short segments: $(from_to chain 0) (8 bytes to 4 KB)" \
	"It is $(fastest 1024 0)"
judge "\"$(fastest 8192 0)\" == \"binary\" && \"$(fastest 262144 0)\" == \"binary\"" \
	"64 hosts, by formula the binary tree in longer ones: $(from_to binary 0) (4 to 256 KB)" "It is not"
judge "\"$(fastest 8192 1)\" == \"binary\" && \"$(fastest 65536 1)\" == \"binary\"" \
	"64 hosts, simulated the binary tree, too: $(from_to binary 1) (4 to 64 KB)" "It is not"
judge "\"$(fastest 262144 1)\" == \"binomial\"" \
	"64 hosts, simulated the binomial tree then: $(from_to binomial 1) (above 64 KB)" "It is $(fastest 262144 1)"
far=$(awk '$1 == 262144 { printf "%.1f", $8 / $9 }' "$work/hosts64")
judge "$far > 2" "64 hosts: the formula puts the binomial tree of whole messages far too high, by a factor of $far" \
	"It does not"
cat <<END
## Figures 16 and 18: 8 hosts, measured and simulated

bcast of $bytes to 8 hosts of two clusters in the lab, dilated by $dilate: what each tree takes in
segments of each length, measured and, in parentheses, simulated from the grid file.

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
