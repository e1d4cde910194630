# SPDX-License-Identifier: MIT
# A job in bad weather for long: 5 % loss, and every 20 s nothing comes through for 4 s; in turn it is
# kept in a buffer, or lost. See test_faults_lab.sh.
. "$1/inside.sh"
log=$2/job seconds=$3
export NBYTES=200000

say job
start "$log" -- end
say calm
sleep 5
say after-calm
loss 5
say soak
begin=$(cut -d. -f1 /proc/uptime)
n=0
while [ $(($(cut -d. -f1 /proc/uptime) - begin)) -lt "$seconds" ]; do
	sleep 16
	say stall
	n=$((n + 1))
	if [ $((n % 2)) = 0 ]; then both sever; else hold; fi
	sleep 4
	both bottleneck 200mbit
	loss 5
	kill -0 $job 2>/dev/null || break
done
say after-soak
mend
touch "$log.stop"
finish
