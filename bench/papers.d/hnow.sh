# SPDX-License-Identifier: MIT
# title: HNOW, figures 7 to 9: SPOC and FNF beside a binomial tree, simulated
# paper: M. Banikazemi, V. Moorthy, D. K. Panda: "Efficient Collective Communication on Heterogeneous Networks of Workstations", ICPP 1998, section 7.2
# minutes: 1
cat <<'END'
64 hosts of two kinds, in 300 random orders; a message costs a fast host 400 us to send, a slow one
2, 4 or 6 times that. Factors of improvement are those over a binomial tree in the order of ranks
(DEF). Beside the latency of each tree, that of the schedule's simulation is computed: the two must
be the same, or the run fails.

END
shown hnow "$build/bench/bench_hnow"

cell() { # FIELD PERCENT FACTOR: of the first part of the table
	awk -v f="$1" -v p="$2" -v k="$3" '/^speed/ { on = 1 } /^number/ { on = 0 }
		on && $2 == p && $4 == k { print $f; exit }' "$work/hnow"
}
spoc=$(cell 13 25 4) fnf=$(cell 14 25 4) half=$(cell 13 50 4) half_fnf=$(cell 14 50 4)
best=$(cell 14 50 6)
cat <<END
| 64 hosts, 1 KiB | here: SPOC | FNF | the paper: SPOC | FNF |
|---|---|---|---|---|
| 25 % fast, speed factor 4 | $spoc | $fnf | 2.3 | 3.3 |
| 50 % fast, speed factor 4 | $half | $half_fnf | | |
| 50 % fast, speed factor 6, the best of all | $(cell 13 50 6) | $best | | 4.5 |

END
judge "$spoc > 2.15 && $spoc < 2.4" "SPOC's factor with 25 % fast hosts, $spoc (2.3)" "It is another"
judge "$fnf > 3.1 && $fnf < 3.5" "FNF's factor with 25 % fast hosts, $fnf (3.3)" \
	"No order of hosts can make it more than 3.0 by the paper's own model: the binomial tree takes at \
most 400 + 5 x 1600 us, and no tree less than 2800 us. 3.2 is what FNF from a fast source gains \
over the binomial tree from any source; the text does not tell how its figure was read"
judge "$best > 4.3 && $best < 5" "the best factor, $best (up to 4.5)" "It is another"
judge "$half == $half_fnf" "SPOC and FNF are the same where half of the hosts are fast (6.4)" ""
left_out "figures 4 to 6, which are of 24 workstations, and figure 10, several multicasts at a time"
left_out "hosts of two speeds in the lab: it slows down links, not processors"
