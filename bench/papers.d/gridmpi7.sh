# SPDX-License-Identifier: MIT
# title: GridMPI, figure 7: bcast and allreduce by 1 to 16 senders, without delay
# paper: M. Matsuda, T. Kudoh, Y. Kodama, R. Takano, Y. Ishikawa: "Efficient MPI Collective Operations for Clusters in Long-and-Fast Networks", CLUSTER 2006, section 3.6
# minutes: 50
delay=50us
. "$parts/gridmpi.inc"
figure
for op in bcast allreduce; do
	few=$(speed $op 4) most=$(speed $op 16)
	judge "$most / $few > 0.8 && $most / $few < 1.25" \
		"$op: how many send hardly matters: 16 are $(awk "BEGIN { printf \"%.2f\", $most / $few }") times as fast as 4" \
		"With 16 hosts in a cluster, n = 1 and 2 leave most of the link idle, whatever its delay"
done
judge "$(speed bcast vandegeijn) < $(speed bcast 8)" "van de Geijn's own algorithm is slower than the modified one" \
	"It is not"
judge "$(speed allreduce rabenseifner) < $(speed allreduce 8)" "so is Rabenseifner's" "It is not"
