# SPDX-License-Identifier: MIT
# title: HNOW in the lab: SPOC and FNF between hosts of two speeds, measured
# paper: M. Banikazemi, V. Moorthy, D. K. Panda: "Efficient Collective Communication on Heterogeneous Networks of Workstations", ICPP 1998, sections 7.1 and 7.2
# minutes: 10
dilate=${DILATE:-300} bytes=${BYTES:-256KiB} iters=${ITERS:-3} norders=3
nbytes=$(($(echo "$bytes" | sed 's/KiB$/ * 1024/')))
cat <<END
The paper's hosts differ in what a message costs their processors (t_ini). The lab shapes links and
not processors, so here it is the NIC that a message of $((nbytes / 1024)) KiB keeps busy for that time: its rate is
the message's bits, with their headers, over t_ini. So a slow host also receives slowly, which costs
nothing in the paper's model, and messages to several children share the NIC instead of waiting for
each other. Dilated by $dilate; times are divided by that.

Hosts are in $norders random orders for each row, the first one fast. Those that follow each other and
are alike are a cluster, since ranks are numbered cluster by cluster; the links between clusters are
as fast as all NICs together, and have the delay of a LAN. Times are means over orders of the
medians of $iters warm operations. DEF is the binomial tree in the order of ranks; a factor is DEF's
time over another tree's. The model's factor is the paper's own for the same orders: hosts that send
one message at a time, in t_ini, and receive for nothing.

END

order() { # HOSTS FAST SEED: such as fsffs
	awk -v n="$1" -v fast="$2" -v x="$3" 'BEGIN {
		for (i = 1; i <= n; i++) kind[i] = i <= fast ? "f" : "s"
		for (i = 0; i < 9; i++) x = x * 48271 % 2147483647
		for (i = n; i > 2; i--) {
			x = x * 48271 % 2147483647
			k = 2 + int(x / 2147483647 * (i - 1))
			swap = kind[i]; kind[i] = kind[k]; kind[k] = swap
		}
		for (i = 1; i <= n; i++) printf "%s", kind[i]
	}'
}

grid_of() { # ORDER FAST-US SLOW-US NIC-BITS: NIC-BITS 0: the paper's model, messages cost processors
	awk -v order="$1" -v fast="$2" -v slow="$3" -v bits="$4" '
		function us(k) { return k == "f" ? fast : slow }
		BEGIN {
			for (i = 1; i <= length(order); i++) {
				k = substr(order, i, 1)
				if (k != last) kind[++n] = k
				else hosts[n] = hosts[n] ","
				hosts[n] = hosts[n] k i
				last = k
			}
			for (c = 1; c <= n; c++) {
				printf "[cluster c%d]\nhosts = %s\n", c, hosts[c]
				# Trees only ask which of two costs is less.
				if (bits) printf "nic = %dkbit\nlan_delay = 1us\ntini = %dns\n",
					bits / us(kind[c]) * 1000, us(kind[c])
				else printf "tini = %dus\n", us(kind[c])
			}
			for (a = 1; a < n; a++)
				for (b = a + 1; b <= n; b++) {
					printf "[link c%d c%d]\n", a, b
					if (bits) printf "rate = %dMbit\ndelay = 1us\nqueue = 1MB\nstreams = 1\n",
						bits / fast * length(order)
				}
		}'
}

modelled() { # GRID ALGORITHM: ms
	gridcoll plan bcast --grid "$1" --bytes 1 --algorithm "$2" --ports full-duplex --json |
		awk '/"choice"/ { on = 1 } on && /"predicted_ns"/ { gsub(/,/, ""); ms = $2 / 1e6; on = 0 }
			END { printf "%.4f\n", ms }'
}

run() { # HOSTS FAST FAST-US SLOW-US: rows of $work/rows: hosts fast slow-us algorithm measured predicted model CPU
	seed=0
	while [ $seed -lt $norders ]; do
		seed=$((seed + 1))
		kinds=$(order "$1" "$2" $((seed * 7001))) # each row's orders differ
		grid_of "$kinds" "$3" "$4" "$(awk -v b="$nbytes" 'BEGIN { print b * 8 * 1514 / 1448 }')" \
			>"$work/lab.grid"
		grid_of "$kinds" "$3" "$4" 0 >"$work/model.grid"
		gridcoll lab run --quiet --keep-awake --mem 3GiB --dilate "$dilate" "$work/lab.grid" -- \
			gridcoll-run --pace off gridcoll bench bcast --bytes "$nbytes" \
			--algorithm binomial,spoc,fnf --iters "$iters" --predict --json "$work/lab.json" \
			>"$work/lab.out"
		results "$work/lab.json" >"$work/lab.txt"
		while read -r _ _ algorithm ms predicted _ cpu _; do
			echo "$1 $2 $4 $algorithm $ms $predicted $(modelled "$work/model.grid" "$algorithm")" \
				"$cpu $kinds" >>"$work/rows"
		done <"$work/lab.txt"
		cat "$work/lab.txt" >>"$work/all"
	done
}

# The mean over orders, or a factor.
mean() { # HOSTS FAST SLOW-US ALGORITHM FIELD
	awk -v h="$1" -v f="$2" -v s="$3" -v a="$4" -v k="$5" \
		'$1 == h && $2 == f && $3 == s && $4 == a { sum += $k; n++ } END { printf "%.3f", sum / n }' "$work/rows"
}
factor() { # HOSTS FAST SLOW-US ALGORITHM FIELD
	awk -v d="$(mean "$1" "$2" "$3" binomial "$5")" -v t="$(mean "$1" "$2" "$3" "$4" "$5")" \
		'BEGIN { printf "%.2f", d / t }'
}

cases="8:2:400:1600 8:4:400:1600 16:4:400:1600 16:8:400:1600 16:4:690:1480 16:8:690:1480"
: >"$work/rows"
: >"$work/all"
for c in $cases; do
	# shellcheck disable=SC2046 # four words
	run $(echo "$c" | tr : ' ')
done

rows() { # CELLS: what prints those of one case, by $h, $f and $slow
	for c in $cases; do
		IFS=: read -r h f fast slow <<-END
			$c
		END
		printf '| %s | %s | %s, %s |' "$h" "$f" "$fast" "$slow"
		"$1"
		echo
	done
}
measured() {
	for a in binomial spoc fnf; do
		printf ' %.2f ms | %.2f ms |' "$(mean "$h" "$f" "$slow" $a 5)" "$(mean "$h" "$f" "$slow" $a 6)"
	done
}
factors() {
	for a in spoc fnf; do
		for k in 5 6 7; do
			printf ' %s |' "$(factor "$h" "$f" "$slow" $a $k)"
		done
	done
}
cat <<'END'
| hosts | fast | t_ini, us | DEF: measured | predicted | SPOC: measured | predicted | FNF: measured | predicted |
|---|---|---|---|---|---|---|---|---|
END
rows measured
cat <<'END'

| hosts | fast | t_ini, us | SPOC: measured | predicted | the model's | FNF: measured | predicted | the model's |
|---|---|---|---|---|---|---|---|---|
END
rows factors
printf '\nThe orders (f is a fast host, the first one is rank 0):\n\n'
awk '!seen[$1, $2, $3, $9]++ { k = $1 " hosts, " $2 " fast, " $3 " us"; if (k != last) printf "%s* %s:", last ? "\n" : "", k
	last = k; printf " `%s`", $9 } END { print "\n" }' "$work/rows"

off=$(awk '{ d = $6 / $5 - 1; d = d < 0 ? -d : d; m = d > m ? d : m } END { printf "%.0f", 100 * m }' "$work/rows")
judge "$off <= 20" "what was measured is as predicted, each order within $off %" \
	"Predictions are off by as much as $off %. The simulation has a NIC's connections take turns by quarters of a \
message; probably TCP's take turns packet by packet, so that of several children the first is served as late as \
the last. That would make it slower the more children hosts have, and DEF the most; it was not measured"
for c in $cases; do
	IFS=: read -r h f fast slow <<-END
		$c
	END
	what="$h hosts, $f of them fast, $fast and $slow us"
	s=$(factor "$h" "$f" "$slow" spoc 5) n=$(factor "$h" "$f" "$slow" fnf 5)
	judge "$s > 1 && $n > 1" "$what: both are faster than DEF, SPOC $s and FNF $n times" \
		"SPOC's factor is $s, FNF's $n"
	if [ $((2 * f)) = "$h" ]; then
		judge "$s / $n > 0.95 && $s / $n < 1.05" "and like each other, as half of the hosts are fast (6.4)" \
			"SPOC's factor is $s, FNF's $n, though their trees are the same"
	else
		judge "$n > $s" "and FNF is the faster one" "It is not, $s and $n: it saves time by fast hosts that send to \
many, and these share the NIC"
	fi
	m=$(factor "$h" "$f" "$slow" fnf 7)
	judge "$n / $m > 0.85 && $n / $m < 1.15" "and FNF's factor is the model's, $m, within 15 %" \
		"FNF's factor, $n, is not the model's, $m: there a slow host takes a message in for nothing, and \
the first of several children does not wait for the others"
done
seventeen=$(factor 16 8 1480 spoc 5)
judge "$seventeen > 1.5 && $seventeen < 1.9" \
	"16 hosts, half of them fast, with the testbed's t_ini: SPOC is $seventeen times as fast as DEF (1.7, figure 4)" \
	"As above: here the slow hosts that are last in a tree take their message in as slowly as they would send it"
judge_cpu "$work/all"
