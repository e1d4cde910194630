# SPDX-License-Identifier: MIT
# title: HNOW, table 2: FNF's trees beside the best ones
# paper: M. Banikazemi, V. Moorthy, D. K. Panda: "Efficient Collective Communication on Heterogeneous Networks of Workstations", ICPP 1998, table 2
# minutes: 1
cat <<'END'
10,000 random cases for each number of hosts: a message costs a host 100, 200, ... or 800 us to send.
Latencies are means, in microseconds.

END
"$build/bench/bench_hnow2" 10000 >"$work/hnow2"
cat <<'END'
| hosts | here: FNF | best | behind | the paper: FNF | best | behind |
|---|---|---|---|---|---|---|
END
awk 'NR > 1 { printf "| %s | %s | %s | %s %% | %s | %s | %s %% |\n", $1, $2, $3, $4, $8, $9, $10 }' \
	"$work/hnow2"
echo
off=$(awk 'NR > 1 { d = $3 / $9 - 1; d = d < 0 ? -d : d; m = d > m ? d : m }
	END { printf "%.1f", m * 100 }' "$work/hnow2")
few=$(awk 'NR > 1 && $1 <= 5 && $4 > m { m = $4 } END { print m + 0 }' "$work/hnow2")
many=$(awk 'NR > 1 && $4 > m { m = $4 } END { print m + 0 }' "$work/hnow2")
alike=$(awk 'NR > 1 && (!m || $6 < m) { m = $6 } END { print m + 0 }' "$work/hnow2")
judge "$off < 2" "mean latencies, within $off %: as near as so many random cases are" "They are others"
judge "$few == 0" "up to 5 hosts FNF's tree is the best one" "It is not"
judge "$many < 1.2" "beyond that it is within about 1 %: $many % at most (0.99 %)" "It is farther off"
judge "$alike >= 89" "of all cases, $alike % at least have a best tree (90 to 100 %)" "They are fewer"
