#!/bin/bash
# leases/: who gets the lock, in which order, and who is told what, on one mount and on two.
. "$(dirname "$0")/lib.sh"

A=$DIR/a/leases B=$DIR/b/leases
start_mount a
start_mount b

epoch() { getfattr --only-values -n user.cairn.epoch "$1"; }
waiting() { [ "$(jq .locks_waiting "$DIR/$1/.cairn/status.json")" = "$2" ]; }
is_held() { [ "$(getfattr --only-values -n user.cairn.held "$1" 2>/dev/null)" = 1 ]; }
not_held() { ! is_held "$1"; }
stopped() { grep -q '^State:.T' "/proc/$1/status"; }
lines() { [ "$(wc -l <"$1")" = "$2" ]; }

cd "$A" || fail 'no leases/'

# --- kinds of locks
python3 "$HERE/leases_locks.py" || fail 'leases_locks.py'

# --- sequential commands never meet their own predecessor, whose RELEASE comes late
for ((i = 0; i < $(scaled 100); i++)); do
	flock -n seq true || fail "flock -n, time $i"
done
assert_equal "$(epoch seq)" "$(scaled 100)" 'each lock is an epoch'

# --- nothing is made by opening; only kin see the name
(
	exec 9>unmade
	[ -e unmade ] || fail 'the opener does not see its own name'
	[ ! -e "$DIR/bucket/unmade" ] || fail 'opening made an object'
	assert_equal "$(cat unmade)" '' 'a lease that is not made yet'
	# A process without kin: its parents are gone, so it is a child of init.
	setsid --fork sh -c '
		while read -r name value; do [ "$name" != PPid: ] || echo "$value"; done </proc/$$/status >"$1.parent"
		until [ "$(cat "$1.parent")" = 1 ]; do
			sleep 0.02
			while read -r name value; do [ "$name" != PPid: ] || echo "$value"; done </proc/$$/status >"$1.parent"
		done
		ls unmade >"$1.seen" 2>&1
		: >"$1.done"' sh "$DIR/.state/stranger"
	poll_until 5 'the stranger has looked' test -e "$DIR/.state/stranger.done"
	assert_match "$(<"$DIR/.state/stranger.seen")" 'No such file' 'a stranger'
	flock 9 || fail 'lock'
	[ -e "$DIR/bucket/unmade" ] || fail 'the lock made no object'
)

# --- the other mount
(
	exec 9>two
	flock -n 9 || fail 'first'
	! flock -n "$B/two" true || fail 'two holders on two mounts'
	! flock -w 0.3 "$B/two" true || fail 'two holders on two mounts, waiting'
)
flock -w 10 "$B/two" true || fail 'not released to the other mount'
poll_until 5 'the interrupted waiter is gone' waiting b 0

# --- one mount: first come, first served, each with an epoch of its own
order=$DIR/.state/order
: >"$order"
( exec 9>fifo; flock 9; poll_until 20 'the others queue' test -e "$DIR/.state/queued" ) &
poll_until 5 'the first has it' is_held fifo
for i in 1 2 3 4 5; do
	flock fifo sh -c "echo $i >>'$order'" &
	poll_until 5 "waiter $i queues" waiting a "$i"
done
: >"$DIR/.state/queued"
wait
assert_equal "$(tr '\n' ' ' <"$order")" '1 2 3 4 5 ' 'the order of the waiters'
assert_equal "$(epoch fifo)" 6 'an epoch for each'

# --- a killed holder's lease is free at once; a killed waiter is gone
sleep 600 9>killed & keeper=$!
flock -n -F killed sleep 600 & holder=$!
poll_until 5 'the holder has it' is_held killed
flock killed true & waiter=$!
poll_until 5 'one waits' waiting a 1
kill -KILL $waiter
wait $waiter 2>/dev/null
poll_until 5 'the killed waiter is gone' waiting a 0
flock killed sh -c 'echo next' >"$order" &
poll_until 5 'another waits' waiting a 1
kill -KILL $holder
wait $holder 2>/dev/null
poll_until 5 'a killed holder hands over' lines "$order" 1
kill $keeper
wait

# --- a stopped waiter lets the others pass, and keeps its place
: >"$order"
gate=$DIR/.state/gate
flock stop sh -c "until [ -e '$gate' ]; do sleep 0.02; done" &
poll_until 5 'it is held' is_held stop
flock stop sh -c "echo A >>'$order'" & first=$!
poll_until 5 'A waits' waiting a 1
flock stop sh -c "echo B >>'$order'; until [ -e '$gate.2' ]; do sleep 0.02; done" &
poll_until 5 'B waits' waiting a 2
flock stop sh -c "echo C >>'$order'" &
poll_until 5 'C waits' waiting a 3
kill -STOP $first
poll_until 5 'A is stopped' stopped $first
poll_until 5 'A waits no more' waiting a 2
: >"$gate"
poll_until 5 'B runs' lines "$order" 1
kill -CONT $first
poll_until 5 'A waits again' waiting a 2
: >"$gate.2"
wait
assert_equal "$(tr '\n' ' ' <"$order")" 'B A C ' 'the order around a stopped waiter'

# --- a signal that is handled ends the wait with EINTR, or begins it anew
( exec 9>eintr; flock 9; poll_until 20 'the end of the python' test -e "$DIR/.state/eintr" ) &
poll_until 5 'it is held' is_held eintr
expect_errno EINTR '
import signal
class Ended(OSError): pass
def alarm(*_): raise OSError(errno.EINTR, "alarm")
signal.signal(signal.SIGALRM, alarm)
fd = os.open("eintr", os.O_RDWR)
signal.setitimer(signal.ITIMER_REAL, 0.2)
fcntl.lockf(fd, fcntl.LOCK_EX)'
: >"$DIR/.state/eintr"
wait

# --- children hold on to a description, unless it is closed in them
( exec 9>child; flock 9; (exec sleep 600) & echo $! >"$DIR/.state/child" )
poll_until 5 'the child has begun' test -s "$DIR/.state/child"
is_held child || fail 'the lease ended with the opener, though a child has the description'
kill "$(cat "$DIR/.state/child")"
poll_until 5 'the last copy is gone' not_held child
( exec 9>child; flock 9; sleep 600 9>&- & echo $! >"$DIR/.state/child" )
poll_until 5 'the child has no copy' not_held child
kill "$(cat "$DIR/.state/child")"
flock -o child true || fail 'flock -o'

# --- a blocking lock waits for the other mount's holder, and then has it
flock "$B/cross" sleep 0.5 &
poll_until 5 'b holds' is_held "$B/cross"
flock cross true || fail 'flock over two mounts'
wait

# --- elsewhere there are no locks; a lease is not removed, and not made by other means
: >"$DIR/a/objects/o"
expect_error 'Operation not supported' flock "$DIR/a/objects/o" true
expect_error 'Operation not permitted' rm -f seq
expect_error 'Operation not permitted' mv seq seq2

# --- what is no lease document is none
echo '{"epoch":1}' >"$DIR/a/objects/bad"
expect_error 'Invalid argument' flock bad true
expect_log a 'bad: .*Invalid argument'
expect_error 'Invalid argument' cat bad
expect_log a 'bad: .*Invalid argument'
expect_errno EINVAL 'fcntl.flock(os.open("bad", os.O_RDONLY), fcntl.LOCK_EX)'
expect_log a 'bad: .*Invalid argument'

assert_equal "$(jq '[.leases_held, .locks_waiting]' -c "$DIR/a/.cairn/status.json")" '[0,0]' 'status'
cd /
stop_mount a
stop_mount b
