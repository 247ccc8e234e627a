#!/bin/bash
# A worker of leases_queue.sh: leases_worker.sh MOUNTPOINT NAME JOBS. Takes the next job of the lease
# `queue` under a lock, and enters it as done in the lease's state, in one fenced write. What it did
# stands in $DIR/.state/NAME.done, what was refused in NAME.refused. A file NAME.stop (NAME.die,
# NAME.pause) makes it stop (die, wait for NAME.go_on) in the middle of a job.
set -u
point=$1 name=$2 jobs=$3 state=$DIR/.state
cd "$point/leases" || exit 1
exec 9<>queue
while :; do
	flock 9 || exit 1
	next=$(jq .next queue) || exit 1
	[ "$next" -lt "$jobs" ] || exit 0
	if [ -e "$state/$name.stop" ]; then
		mv "$state/$name.stop" "$state/$name.stopped"
		kill -STOP $BASHPID
	elif [ -e "$state/$name.die" ]; then
		mv "$state/$name.die" "$state/$name.dead"
		kill -KILL $BASHPID
	elif [ -e "$state/$name.pause" ]; then
		mv "$state/$name.pause" "$state/$name.paused"
		until [ -e "$state/$name.go_on" ]; do sleep 0.02; done
	fi
	if printf '{"next":%d,"done":%s}\n' $((next + 1)) \
		"$(jq -c --arg by "$name" '.done + [[.next, $by]]' queue)" 2>/dev/null >&9; then
		echo "$next" >>"$state/$name.done"
	else
		echo "$next" >>"$state/$name.refused"
	fi
	flock -u 9
done
