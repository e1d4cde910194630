# SPDX-License-Identifier: MIT
# title: GridMPI, table 1: the costs of four algorithms
# paper: M. Matsuda, T. Kudoh, Y. Kodama, R. Takano, Y. Ishikawa: "Efficient MPI Collective Operations for Clusters in Long-and-Fast Networks", CLUSTER 2006, section 3
# minutes: 5
dilate=${DILATE:-20} bytes=${BYTES:-16MiB} iters=${ITERS:-2}
cat <<END
Two clusters of eight hosts of 1 Gbit/s, 10 Gbit/s and 10 ms one way between them
(\`netem/grids/gridmpi.grid\`), dilated by $dilate; times are divided by that, medians of $iters warm
operations. The paper's sockets had buffers of 3 MB; here the kernel sizes them.

END
measure() { # OPERATION ALGORITHMS
	on_grid gridmpi "$dilate" gridcoll bench "$1" --bytes "$bytes" --algorithm "$2" --iters "$iters" \
		--json "$work/$1.json"
}
shown bcast.out measure bcast farfirst,vandegeijn-mod:senders=1,vandegeijn-mod:senders=8
shown allreduce.out measure allreduce two-tier,rabenseifner-mod:senders=1,rabenseifner-mod:senders=8
for op in bcast allreduce; do
	results "$work/$op.json"
done >"$work/rows"

cat <<'END'
| operation | algorithm | the paper's cost | that, computed | measured | ratio |
|---|---|---|---|---|---|
END
# M/B by payload: 1448 of 1514 bytes.
awk '
function row(cost, ms) { printf "| %s | %s | %s | %.0f ms | %.0f ms | %.2f |\n", $1, $3, cost, ms, $4, $4 / ms }
{
	t = $2 * 8 / (1e9 * 1448 / 1514) * 1000; L = 10
	n = $3 ~ /senders=8/ ? 8 : 1
	if ($3 == "farfirst") row("L + 3M/B", L + 3 * t)
	else if ($3 == "two-tier") row("L + 5M/B", L + 5 * t)
	else row("L + M/nB + 2M/B, n = " n, L + t / n + 2 * t)
}' "$work/rows" | tee "$work/table"
echo
ms() { # ALGORITHM
	awk -v a="$1" '$3 == a { print $4 }' "$work/rows"
}
bcast=$(awk "BEGIN { printf \"%.2f\", $(ms farfirst) / $(ms vandegeijn-mod:senders=8) }")
allreduce=$(awk "BEGIN { printf \"%.2f\", $(ms two-tier) / $(ms rabenseifner-mod:senders=8) }")
near() { # OURS THEIRS
	echo "$1 > 0.85 * $2 && $1 < 1.15 * $2"
}
cost() { # ALGORITHM: ms by the paper's formula
	awk -F'|' -v a=" $1 " '$3 == a { print $5 + 0 }' "$work/table"
}
bcast_costs=$(awk "BEGIN { printf \"%.2f\", $(cost farfirst) / $(cost vandegeijn-mod:senders=8) }")
allreduce_costs=$(awk "BEGIN { printf \"%.2f\", $(cost two-tier) / $(cost rabenseifner-mod:senders=8) }")
judge "$(near "$bcast" 1.6)" "modified van de Geijn with 8 senders is $bcast times as fast as farfirst (1.6)" \
	"The paper's own costs say $bcast_costs for this size"
judge "$(near "$bcast" "$bcast_costs")" "which table 1 puts at $bcast_costs" "It is $bcast"
judge "$(near "$allreduce" 3.2)" \
	"modified Rabenseifner with 8 senders is $allreduce times as fast as two-tier (3.2)" \
	"The paper's own costs say $allreduce_costs: probably its two-tier was slower than its cost"
judge "$(near "$allreduce" "$allreduce_costs")" "which table 1 puts at $allreduce_costs" "It is $allreduce"
judge "$(ms rabenseifner-mod:senders=1) < $(ms two-tier)" \
	"modified Rabenseifner outperforms two-tier even with one sender" "It does not"
again=$(awk '$3 == "vandegeijn-mod:senders=1" { print $8 }' "$work/rows")
one=$(awk "BEGIN { printf \"%.2f\", $(ms vandegeijn-mod:senders=1) / $(ms farfirst) }")
judge "$one > 0.85 && $one < 1.15" "with one sender modified van de Geijn is like farfirst: $one of its time" \
	"$again segments were sent again in it; a median of $iters says little where the machine has other work to do"
# How far off the formulas each is, in percent, the farthest first.
awk -F'|' '{ d = $7 - 1; print int((d < 0 ? -d : d) * 100 + 0.5), $3 }' "$work/table" | sort -rn >"$work/off"
far() { # N
	awk -v n="$1" 'NR == n { print $1 }' "$work/off"
}
judge "$(far 1) <= 20" "measured times are the formulas' within $(far 1) %" \
	"That is $(awk 'NR == 1 { print $2 }' "$work/off"); the others are the formulas' within $(far 2) %"
judge_cpu "$work/rows"
