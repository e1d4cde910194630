# SPDX-License-Identifier: MIT
# title: MagPIe: figures 5 to 12, by formula and simulation, and section 4's DAS in the lab
# paper: T. Kielmann, H. Bal, S. Gorlatch, K. Verstoep, R. Hofman: "Network Performance-aware Collective Communication for Clustered Wide Area Systems", Parallel Computing 27 (2001), sections 3 and 4
# minutes: 17
clusters() { # CLUSTERS HOSTS: the paper's simulated wide area: 1 MB/s and 10 ms, inside 50 MB/s
	awk -v n="$1" -v h="$2" 'BEGIN {
		for (i = 1; i <= n; i++) {
			printf "[cluster c%d]\nhosts = m%d-[1-%d]\nnic = 400Mbit\nlan_delay = 20us\n", i, i, h
			for (k = 1; k < i; k++)
				links = links sprintf("[link c%d c%d]\nrate = 8Mbit\ndelay = 10ms\nqueue = 1MiB\n", k, i)
		}
		printf "%s", links }'
}

cat <<'END'
MagPIe's original algorithms send whole messages, the later ones segments whose length they find by
formulas in P-LogP parameters. Here both are simulated on the paper's grid, hosts sending one message
at a time as the formulas have it, or sharing a NIC between connections.

## Figures 5 to 12

END
for shape in "4 1" "4 16" "8 1" "8 8"; do
	clusters "${shape% *}" "${shape#* }" >"$work/clusters-${shape% *}x${shape#* }"
done
(cd "$work" && "$build/bench/bench_formulas" clusters-4x1 clusters-4x16 clusters-8x1 clusters-8x8) |
	sed '/^bcast of 256 KiB to 64 hosts/,$d' >"$work/all"
shown formulas cat "$work/all"

ms() { # GRID OPERATION ALGORITHM: of 1 MiB, NICs shared
	awk -v g="clusters-$1:" -v o="$2" -v a="$3" '/^clusters/ { on = $1 == g }
		on && $1 == o && $2 == a && $3 == 1048576 { print $(NF); exit }' "$work/all"
}
off() { # OPERATION GRIDS: the worst error of its formula for segments, percent, from 256 KiB on, where
	# connections share the NIC, as the paper's did
	awk -v o="$1" -v g="$2" '/^clusters/ { on = $1 ~ g } on && $1 == o && $2 ~ /-/ && $3 >= 262144 {
		d = $5 / $NF - 1; d = d < 0 ? -d : d; m = d > m ? d : m } END { printf "%.1f", m * 100 }' "$work/all"
}
# The last column is the paper's where it has one: drop it for what follows.
sed 's/ \(1079\|1078\|7425\|7437\)$//' "$work/all" >"$work/all2" && mv "$work/all2" "$work/all"
cat <<END
| 1 MiB, one host in each cluster | here | the paper |
|---|---|---|
| bcast to 4 clusters, segments | $(ms 4x1 bcast magpie-pipelined) ms | 1072 ms |
| bcast to 4 clusters, original | $(ms 4x1 bcast magpie) ms | 3200 ms |
| bcast to 8 clusters, segments | $(ms 8x1 bcast magpie-pipelined) ms | 1079 ms |
| bcast to 8 clusters, original | $(ms 8x1 bcast magpie) ms | 7425 ms |
| scatter to 8 clusters, segments | $(ms 8x1 scatter magpie-segmented) ms | 1078 ms |
| scatter to 8 clusters, original | $(ms 8x1 scatter magpie) ms | 7437 ms |

END
near() { # WHAT OURS PAPERS
	judge "$2 / $3 > 0.9 && $2 / $3 < 1.1" "$1: $2 ms ($3 ms)" \
		"A payload of 1448 of 1514 bytes, and sizes in powers of two, make about 8 % of it"
}
near "bcast in segments to 8 clusters" "$(ms 8x1 bcast magpie-pipelined)" 1079
near "the original bcast to 8 clusters" "$(ms 8x1 bcast magpie)" 7425
near "bcast in segments to 4 clusters" "$(ms 4x1 bcast magpie-pipelined)" 1072
near "the original bcast to 4 clusters" "$(ms 4x1 bcast magpie)" 3200
near "scatter in segments" "$(ms 8x1 scatter magpie-segmented)" 1078
near "the original scatter" "$(ms 8x1 scatter magpie)" 7437
judge "$(ms 4x16 bcast magpie-pipelined) / $(ms 4x1 bcast magpie-pipelined) < 1.1" \
	"the number of hosts in a cluster hardly counts for a bcast" "It does"
formula() { # OPERATION PAPERS GRIDS WHAT WHY
	judge "$(off "$1" "$3") <= $2" "the formula for $4 is off by $(off "$1" "$3") % at most, from 256 KiB on ($2 %)" "$5"
}
formula bcast 4 x1: "bcast, one host in each cluster," "It is off by more"
formula bcast 4 x[18] "bcast, several hosts in each cluster too," \
	"Where one message after the other goes over a NIC, as the formula has it, it is nearer (above: off)"
formula scatter 14 . scatter "It is off by more"
formula gather 14 . gather "What comes from several at a time shares the root's NIC, and takes longer than the formula \
says: the paper saw some of that, too"
# The paper's is of the phase between coordinators alone.
formula allgather 16 x1: "allgather between coordinators" "It is off by more"
judge "$(off allgather .) <= 16" "so it is with several hosts in each cluster: by $(off allgather .) % at most" \
	"The paper compares the phase between coordinators only"

measure() { # GRID OPERATION ALGORITHMS SIZES JSON
	gridcoll lab run --quiet --dilate "${DILATE:-auto}" "$1" -- gridcoll bench "$2" --bytes "$4" \
		--algorithm "$3" --iters "${ITERS:-2}" --json "$work/$5.json"
}

cat <<'END'
## The wide area of 8 clusters, in the lab

The paper's was simulated too: its coordinators were processes of one cluster, which waited as long as
the wide area would have taken. This one is of sockets over emulated links.

END
: >"$work/wide.txt"
# The paper's messages to each process have 1 MiB; `bench` counts what leaves the root.
for op in "bcast magpie,magpie-pipelined" "scatter magpie,magpie-segmented"; do
	size=1MiB
	[ "${op% *}" = bcast ] || size=8MiB
	shown "wide-${op% *}" measure "$work/clusters-8x1" "${op% *}" "${op#* }" "$size" "wide-${op% *}"
	results "$work/wide-${op% *}.json" >>"$work/wide.txt"
done
lab_ms() { # OPERATION ALGORITHM
	awk -v o="$1" -v a="$2" '$1 == o && $3 == a { print $4; exit }' "$work/wide.txt"
}
near "in the lab, bcast in segments to 8 clusters" "$(lab_ms bcast magpie-pipelined)" 1079
near "in the lab, the original bcast to 8 clusters" "$(lab_ms bcast magpie)" 7425
near "in the lab, scatter in segments" "$(lab_ms scatter magpie-segmented)" 1078
near "in the lab, the original scatter" "$(lab_ms scatter magpie)" 7437
judge_cpu "$work/wide.txt"

cat <<'END'
## Section 4: the DAS, in the lab

Four clusters, links as in the paper's table 2. The paper's times are in a figure only; it says that
segments pay from 16 to 64 KB on.

END
das() { # HOSTS: of each cluster
	awk -v n="$1" 'BEGIN {
		split("vu leiden uva delft", name)
		split("0 5 26 7 3.5 0 4 3 28 6 0 7.5 6 4.5 6.5 0", rate)
		split("0 3.5 1.5 2.5 3.5 0 3 4 1.5 3 0 2 2.5 4 2 0", delay)
		for (i = 1; i <= 4; i++)
			printf "[cluster %s]\nhosts = %s[1-%d]\nnic = 100Mbit\nlan_delay = 20us\n", name[i], name[i], n
		for (i = 1; i <= 4; i++)
			for (k = 1; k <= 4; k++)
				if (i != k)
					printf "[link %s > %s]\nrate = %sMbit\ndelay = %sms\nqueue = 256KiB\n", name[i],
						name[k], rate[4 * i + k - 4], delay[4 * i + k - 4]
	}'
}
run_das() { # HOSTS SIZES
	das "$1" >"$work/das-$1.grid"
	: >"$work/das-$1.txt"
	hosts="one host"
	[ "$1" = 1 ] || hosts="$1 hosts"
	printf '### %s in each cluster\n\n' "$hosts"
	for op in "bcast magpie,magpie-pipelined" "scatter magpie,magpie-segmented" \
		"gather magpie,magpie-segmented" "allgather magpie,magpie-segmented"; do
		shown "das-$1-${op% *}" measure "$work/das-$1.grid" "${op% *}" "${op#* }" "$2" "das-$1-${op% *}"
		results "$work/das-$1-${op% *}.json" >>"$work/das-$1.txt"
		judge "$(awk -v o="${op% *}" '$1 == o && $2 >= 1000000 { t[$3 == "magpie"] = $4 }
			END { print (t[0] < t[1] * 1.02) }' "$work/das-$1.txt")" \
			"${op% *} of 1 MiB on the DAS, $hosts in each cluster, is no slower in segments" \
			"One link carries all of a message that comes or goes at its rate either way"
	done
	judge_cpu "$work/das-$1.txt"
}
run_das 1 1MiB,256KiB,64KiB,16KiB
run_das 16 1MiB,64KiB
