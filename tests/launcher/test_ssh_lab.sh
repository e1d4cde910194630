#!/bin/sh
# SPDX-License-Identifier: MIT
# gridcoll-run by ssh, as on real hosts: two clusters of an emulated WAN, an sshd with a key of its own
# on each host, and a desk that is in neither. Addresses, ports, keys and the jump host are
# ssh_config's; the lab's own way to start ranks is not used. Skipped (77) where no lab can be.
#	test_ssh_lab.sh GUEST HOSTS [all]	(so many in each cluster; also what takes longer)
#
# Set by meson: GRIDCOLL, GRIDCOLL_RUN.
set -u
guest=$1 hosts=$2 all=${3-}
. "$(dirname "$0")/../lab.sh"

# The lab calls its hosts k1 and t1, the job kyoto-1 and tokyo-1, which ssh_config alone knows.
grid() { # KYOTO TOKYO
	printf '[cluster kyoto]\nhosts = %s[1-%d]\nnic = 100Mbit\n' "$1" "$hosts"
	printf '[cluster tokyo]\nhosts = %s[1-%d]\nnic = 100Mbit\n' "$2" "$hosts"
	printf '[link kyoto tokyo]\nrate = 200Mbit\ndelay = 10ms\n'
}

# ---- outside the lab

if [ "${4-}" != --inside ]; then
	choose_backend root
	for program in /usr/sbin/sshd ssh ssh-keygen; do
		command -v "$program" >/dev/null && continue
		echo "SKIP: no $program (apt-get install openssh-client openssh-server)"
		exit 77
	done
	{
		grid k t
		printf '[cluster desk]\nhosts = desk\nnic = 100Mbit\n'
		printf '[link desk %s]\nrate = 100Mbit\ndelay = 2ms\n' kyoto tokyo
	} >"$work/lab.grid"
	[ "$backend" = tap ] && memory= || memory="--mem 2GiB"
	"$GRIDCOLL" lab run --quiet --backend "$backend" $memory "$work/lab.grid" -- \
		sh "$0" "$guest" "$hosts" "$all" --inside
	exit
fi

# ---- inside: hosts with ssh

dir=$(mktemp -d) # a guest's memory
mkdir -p /run/sshd # and it stays: others of this machine may run sshd by now
trap 'rm -rf "$work"' EXIT
lab=$GRIDCOLL_LAB
unset GRIDCOLL_LAB
names=$(for c in kyoto tokyo; do for i in $(seq "$hosts"); do echo "$c-$i"; done; done)
nranks=$((2 * hosts))
sum=$((nranks * (nranks + 1) / 2))

in_lab() { echo "$1" | sed 's/^\(.\)[a-z]*-/\1/'; }
address() { sed -n "s/ $(in_lab "$1")\$//p" /etc/hosts; }
inner() { echo "192.168.7.${1#tokyo-}"; } # of tokyo's hosts, for ssh by way of the first
port() { case $1 in kyoto-*) echo 22 ;; *) echo 2222 ;; esac; }

# In a host's namespace, with its own /etc, and nothing of what the user's files say of ssh.
at() { # HOST COMMAND...
	ip netns exec "gcl-$(in_lab "$1")" sh -c 'for f in ~/.ssh/config ~/.bashrc; do
			[ ! -e "$f" ] || mount --bind "$0/empty" "$f" || exit 1
		done
		mount --bind "$0/$1.config" /etc/ssh/ssh_config &&
			mount --bind "$0/resolv.conf" /etc/resolv.conf || exit 1
		echo $$ >"$0/$1.pid"; shift; exec "$@"' "$dir" "$@"
}

serve() { # HOST ADDRESS [PATH]
	rm -f "$dir/$1.log"
	at "$1" /usr/sbin/sshd -D -E "$dir/$1.log" -f $dir/sshd_config \
		-o "HostKey=$dir/$1" -o "Port=$(port "$1")" -o "ListenAddress=$2" \
		-o "SetEnv=PATH=${3-$(dirname "$GRIDCOLL_RUN"):$(dirname "$GRIDCOLL"):/usr/bin:/bin}" &
	until grep -q listening "$dir/$1.log" 2>/dev/null; do
		kill -0 $! 2>/dev/null || { cat "$dir/$1.log"; exit 1; }
		sleep 0.05
	done
}
stop() { # HOST
	kill "$(cat "$dir/$1.pid")"
	while [ -e "/proc/$(cat "$dir/$1.pid")" ]; do sleep 0.05; done
}

ssh_config() { # [JUMP]: tokyo by way of its first host
	for h in $names; do
		a=$(address "$h") jump=
		case $h in
		tokyo-1) ;;
		tokyo-*) [ -z "${1-}" ] || a=$(inner "$h") jump="ProxyJump tokyo-1" ;;
		esac
		printf 'Host %s\nHostName %s\nPort %s\n%s\n' "$h" "$a" "$(port "$h")" "$jump"
	done
	cat <<-E
		Host *
		User $(id -un)
		IdentityFile $dir/user
		UserKnownHostsFile $dir/known
		GlobalKnownHostsFile /dev/null
		KexAlgorithms curve25519-sha256
	E
}

for h in user $names; do ssh-keygen -q -t ed25519 -N '' -f "$dir/$h"; done
for h in $names; do
	case $h in
	kyoto-*) echo "$(address "$h") $(cat "$dir/$h.pub")" ;;
	*) echo "[$(address "$h")]:$(port "$h"),[$(inner "$h")]:$(port "$h") $(cat "$dir/$h.pub")" ;;
	esac
done >$dir/known
: >$dir/empty
: >$dir/resolv.conf
ssh_config >$dir/desk.config
cat >$dir/sshd_config <<-E
	UsePAM no
	UseDNS no
	StrictModes no
	PermitRootLogin yes
	MaxStartups 100
	PidFile none
	AuthorizedKeysFile $dir/user.pub
E
for h in $names; do
	cp $dir/desk.config "$dir/$h.config"
	serve "$h" "$(address "$h")"
done
grid kyoto- tokyo- >$dir/job.grid

# ---- inside: what is checked

job() { # gridcoll-run's arguments; leaves $out, $err and $status
	# Emulated hosts of a busy machine take their time; none of them is silent.
	at desk "$GRIDCOLL_RUN" --grid $dir/job.grid --ssh-timeout 60s "$@" >"$work/out" 2>"$work/err"
	status=$?
}
show() { sed 's/^/  out: /' "$work/out" && sed 's/^/  err: /' "$work/err"; }
silent() { [ ! -s "$work/err" ] || { show && false; }; }
says() { grep -q -e "$1" "$work/err" || { show && false; }; }
prints() { # N PATTERN: so many lines
	[ "$(grep -c -e "$2" "$work/out")" = "$1" ] || { show && false; }
}
# No host has a process but the one that listens. Sessions of ssh take a moment to go.
quiet() {
	for _ in $(seq 40); do
		left=$(for h in $names; do
			ip netns pids "gcl-$(in_lab "$h")" | grep -v -x "$(cat "$dir/$h.pid" 2>/dev/null)"
		done)
		[ -n "$left" ] || return 0
		sleep 0.25
	done
	ps -o pid,args -p "$(echo "$left" | paste -sd, -)" | sed 's/^/  left: /'
	return 1
}
crossed() { # from kyoto to tokyo: bytes, by the counter that the lab's file names
	set -- $(tr -d '\n' <"$lab" | sed 's/.*"from": *"kyoto", *"to": *"tokyo",//; s/}.*//; s/"[a-z]*"://g; s/[",]//g')
	ip netns exec "$1" cat "/sys/class/net/$2/statistics/${3}_bytes"
}

# A file to all, by a WAN that counts it. Who should know the names does not answer: hosts that run hear
# nothing while that is waited for, so it shall be asked for one name only.
asked() { ip netns exec gcl-desk awk '/^Udp: [0-9]/ { print $5 }' /proc/net/snmp; }
# It is there for ARP: else the question comes back, sooner or later, and the next name is asked for.
ip -n gcl-desk neigh replace 10.3.0.99 lladdr 02:00:00:00:00:99 dev eth0 nud permanent
printf 'nameserver 10.3.0.99\noptions timeout:1 attempts:1\n' >$dir/resolv.conf
head -c 2345678 /dev/urandom >$dir/data
job gridcoll cp $dir/data "$dir/out/%h/"
check "cp from a desk that is no host of the job: exit 2" [ $status = 2 ]
check "cp: it asks whose file" says 'started on no host of the job, expected --from HOST$'
check "cp: nothing was copied" [ ! -e $dir/out ]
before=$(crossed) before_asked=$(asked)
job gridcoll cp -q --from 0 $dir/data "$dir/out/%h/"
check "cp: exit 0" [ $status = 0 ]
check "cp: no word" silent
asked=$(($(asked) - before_asked))
echo "  questions: $asked"
check "IPv4 and IPv6 addresses of one name were asked for" [ $asked = 2 ]
: >$dir/resolv.conf
same=0
for h in $names; do cmp -s $dir/data "$dir/out/$h/data" && same=$((same + 1)); done
check "all copies but the source's own, byte for byte" [ $same = $((nranks - 1)) ]
check "the WAN carried the file once" awk -v n=$(($(crossed) - before)) 'BEGIN {
	print "  crossed: " n; exit !(n >= 2345678 && n < 2 * 2345678) }'
check "nothing is left" quiet

# Hosts start others, those that --dry-run says.
starts='s/^on \([^ ]*\): ssh .* \([a-z]*-[0-9]*\) .*--agent.*/\1 \2/p
	s/^ssh .* \([a-z]*-[0-9]*\) .*--agent.*/desk \1/p'
job --ssh-fanout 2 --dry-run "$guest" sum
check "dry run: exit 0" [ $status = 0 ]
check "each rank's place" prints $nranks '^rank [0-9]*: [a-z]*-[0-9]*, cluster [a-z]*, by ssh$'
check "and the command" prints 1 "^command: $guest sum\$"
check "it started nothing" quiet
sed -n "$starts" "$work/out" | sort >$dir/planned
check "each host has one that starts it" [ "$(wc -l <$dir/planned)" = $nranks ]
check "and not all are started from here" [ "$(grep -c '^desk' $dir/planned)" = 2 ]
job --ssh-fanout 2 sh -c 'echo "begun ${SSH_CONNECTION%% *} ${SSH_CONNECTION% *}"; exec "$0" sum' "$guest"
check "a tree: exit 0" [ $status = 0 ]
check "no word" silent
check "all ranks, and their sum" prints $nranks "of $nranks in cluster . of 2: sum $sum\$"
for h in desk $names; do echo "$(address "$h") $h"; done >$dir/names
sed -n 's/^.*begun //p' "$work/out" |
	awk 'NR == FNR { name[$1] = $2; next } { print name[$1], name[$4] }' $dir/names - | sort >$dir/done
check "started by whom the dry run said" diff $dir/planned $dir/done
check "nothing is left" quiet

# What cannot be started is named, with what to do about it; what could be, ends.
fails() { # CASE WHY ADVICE [OPTION...]: the last host
	case=$1 why=$2 advice=$3
	shift 3
	job "$@" sleep 1000
	check "$case: exit 1" [ $status = 1 ]
	check "$case: it is named, and why" says "^gridcoll-run: rank [0-9]* on $last failed: .*$why"
	check "$case: what to do" says "$advice"
	check "$case: nothing is left" quiet
}
last=tokyo-$hosts
by_hand="\"ssh $last true\" must work here"
stop "$last"
fails "no sshd" "Connection refused" "$by_hand"
if [ -n "$all" ]; then
	fails "no sshd, asked for by another host" "Connection refused" "$by_hand" --ssh-fanout 2
	serve "$last" "$(address "$last")" /nowhere
	fails "not in PATH" "gridcoll-run: command not found" "must be installed there, see --remote-path"
	cp $dir/known $dir/all_known
	sed -i '$d' $dir/known
	fails "not a known key" "Host key verification failed" "$by_hand"
	mv $dir/all_known $dir/known
	stop "$last"
fi
serve "$last" "$(address "$last")"

# Ctrl-C. (What a shell runs in the background ignores it, and so would gridcoll-run.)
at desk env --default-signal=INT "$GRIDCOLL_RUN" --grid $dir/job.grid --ssh-timeout 60s \
	sh -c 'echo begun; exec sleep 1000' >"$work/out" 2>"$work/err" &
job=$!
until [ "$(grep -c begun "$work/out")" = $nranks ] || ! kill -0 $job 2>/dev/null; do
	sleep 0.1
done
kill -INT "$(cat $dir/desk.pid)"
wait $job
check "SIGINT ends the job" [ $? = 130 ]
check "it says so" says "^gridcoll-run: told to end (Interrupt), as were all ranks"
check "all had begun" prints $nranks begun
check "nothing is left" quiet

# To tokyo's ssh only by way of its first host, whose address is then what others' sshd see.
ssh_config jump >$dir/desk.config
for h in $names; do
	case $h in tokyo-*) ip -n "gcl-$(in_lab "$h")" addr add "$(inner "$h")/24" dev eth0 ;; esac
	case $h in tokyo-1 | kyoto-*) continue ;; esac
	stop "$h"
	serve "$h" "$(inner "$h")"
done
at desk ssh -oBatchMode=yes -oProxyJump=none -oHostName="$(address "$last")" "$last" true 2>"$work/err"
check "not directly" says refused
job --address "$(address desk)" "$guest" sum
check "a jump host: exit 0" [ $status = 0 ]
check "no word" silent
check "all ranks, and their sum" prints $nranks "of $nranks in cluster . of 2: sum $sum\$"
if [ -n "$all" ]; then
	job "$guest" sum
	check "without --address: exit 1" [ $status = 1 ]
	check "without --address: what to do" says 'launcher at 192[.]168[.]7[.]1:.*gridcoll-run --address'
fi
check "nothing is left" quiet

for h in $names; do stop "$h"; done
[ $failures = 0 ]
