#!/bin/bash
# A queue of jobs worked off by 8 workers on two mounts. Two are killed, one is stopped past its ttl,
# and so is a daemon: each job is done once, and a late write is refused.
. "$(dirname "$0")/lib.sh"

JOBS=200 # on each build: the workers that are watched must find jobs when their turn comes
start_mount a -o lease_ttl=2
start_mount b -o lease_ttl=2
for mount in a b; do
	allow_log $mount 'queue: .*: Stale file handle'
	allow_log $mount 'leases/queue: lease queue: epoch [0-9]+ was lost'
	# A lease that ran out is taken over while its holder gives it back, or renews.
	allow_log $mount 'leases/queue: .*epoch [0-9]+ was (lost|released)'
done

(
	cd "$DIR/b/leases" || exit 1
	exec 9<>queue
	flock 9
	echo '{"next":0,"done":[]}' >&9 || fail 'begin'
) || exit 1

declare -A pid
for i in 1 2 3 4 5 6 7 8; do
	mount=a
	[ $((i % 2)) = 1 ] || mount=b
	bash "$HERE/leases_worker.sh" "$DIR/$mount" "w$i" "$JOBS" 2>>"$DIR/.state/w$i.errors" &
	pid[$i]=$!
done
# Looked at in the bucket: a mount may be stopped.
next() { jq .next <(jq .state "$DIR/bucket/queue"); }
reached() { [ "$(next)" -ge "$1" ]; }
is_there() { [ -e "$DIR/.state/$1" ]; }
stopped() { grep -q '^State:.T' "/proc/$1/status"; }

# Killed in the middle of a job, and anywhere.
poll_until 60 'some jobs are done' reached 5
: >"$DIR/.state/w1.die"
poll_until 60 'one dies in a job' is_there w1.dead
kill -KILL "${pid[2]}"
wait "${pid[1]}" "${pid[2]}" 2>/dev/null

# Stopped in the middle of a job, past its ttl: the others go on.
: >"$DIR/.state/w3.stop"
poll_until 60 'one stops in a job' is_there w3.stopped
poll_until 5 'it is stopped' stopped "${pid[3]}"
at=$(next)
poll_until 60 'the others go on without it' reached $((at + 5))
kill -CONT "${pid[3]}"
poll_until 60 'its late write is refused' is_there w3.refused
assert_equal "$(<"$DIR/.state/w3.refused")" "$at" 'the job that it did too late'

# A stopped daemon in the middle of a job.
: >"$DIR/.state/w5.pause"
poll_until 60 'one pauses in a job' is_there w5.paused
kill -STOP "$(daemon_pid a)"
at=$(next)
poll_until 60 'the other mount goes on' reached $((at + 5))
: >"$DIR/.state/w5.go_on"
kill -CONT "$(daemon_pid a)"
poll_until 60 'the late write is refused' is_there w5.refused
assert_equal "$(<"$DIR/.state/w5.refused")" "$at" 'the job that was done too late'

for i in 3 4 5 6 7 8; do
	wait "${pid[$i]}" || fail "worker $i: $(<"$DIR/.state/w$i.errors")"
done
assert_equal "$(jq -c '[.done[][0]] == [range('"$JOBS"')]' "$DIR/a/leases/queue")" true 'each job once, in order'
# What a worker believes to have done, it has; only who was killed may not have had the time to say so.
for i in 1 2 3 4 5 6 7 8; do
	sort -n "$DIR/.state/w$i.done" >"$DIR/.state/believed" 2>/dev/null
	jq -r --arg by "w$i" '.done[] | select(.[1] == $by) | .[0]' "$DIR/a/leases/queue" >"$DIR/.state/entered"
	if [ "$i" -le 2 ]; then
		sort -n -u "$DIR/.state/believed" "$DIR/.state/entered" >"$DIR/.state/both"
		cmp -s "$DIR/.state/both" "$DIR/.state/entered" || fail "killed worker $i believes in jobs that it did not do"
	else
		cmp "$DIR/.state/believed" "$DIR/.state/entered" || fail "worker $i believes otherwise"
	fi
done
stop_mount a
stop_mount b
