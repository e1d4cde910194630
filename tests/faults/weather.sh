# SPDX-License-Identifier: MIT
# One job through all weathers. See test_faults_lab.sh.
. "$1/inside.sh"
log=$2/job

say job
start "$log" --timers "$3" -- end auto
say weather calm
sleep 6
loss 5
say weather loss
sleep 12
mend
say weather again
sleep 3
say weather stalls
for _ in 1 2 3 4 5 6; do
	hold
	sleep 0.5
	mend
	sleep 1.5
done
rate 2mbit
say weather collapse
sleep 15
mend
sleep 2 # what stands in the queue
say weather after
sleep 6
say over
touch "$log.stop"
finish
