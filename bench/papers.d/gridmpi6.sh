# SPDX-License-Identifier: MIT
# title: GridMPI, figure 6: bcast and allreduce by 1 to 16 senders, 10 ms between the clusters
# paper: M. Matsuda, T. Kudoh, Y. Kodama, R. Takano, Y. Ishikawa: "Efficient MPI Collective Operations for Clusters in Long-and-Fast Networks", CLUSTER 2006, sections 3.4 and 3.5
# minutes: 55
delay=10ms
. "$parts/gridmpi.inc"
figure
judge "$(grows bcast 1 8)" "bcast gains from more senders, up to 8" "Not from each step to the next"
judge "$(grows allreduce 1 8)" "so does allreduce" "Not from each step to the next"
judge "$(resent_up_to 8) <= 100" "no segments to speak of are sent again with up to 8 senders: $(resent_up_to 8) (none)" \
	"Ports of 512 KiB in front of hosts overflow where several send to one"
judge "$(speed bcast 16) < $(speed bcast 8) * 0.97" "over 8 senders bcast becomes slower" \
	"It does not, nor with a queue of 1 MB, where an allreduce does that is not paced (bench/senders.sh)"
judge "$(speed bcast 1) < $(speed bcast farfirst) * 1.2" "farfirst is like one sender" "It is slower"
judge "$(speed allreduce 1) > $(speed allreduce two-tier)" "allreduce with one sender outperforms two-tier" \
	"It does not"
judge "$(speed bcast vandegeijn) < $(speed bcast 8)" \
	"van de Geijn's own algorithm, which knows of no clusters, is slower than the modified one" "It is not"
