#!/bin/bash
# leases/: how a lease ends without being unlocked: stopped holders, stopped and killed daemons,
# documents that go; and what a descriptor may ask for of its next lock.
. "$(dirname "$0")/lib.sh"

A=$DIR/a/leases B=$DIR/b/leases
start_mount a
start_mount b
cd "$A" || fail 'no leases/'

xattr() { getfattr --only-values -n "user.cairn.$1" "$2" 2>/dev/null; }
is_held() { [ "$(xattr held "$1")" = 1 ]; }
not_held() { ! is_held "$1"; }
bucket() { jq -r "$2" "$DIR/bucket/$1"; }
moved() { [ "$(bucket "$1" .deadline_at)" != "$2" ]; }
stopped() { grep -q '^State:.T' "/proc/$1/status"; }
waiting() { [ "$(jq .locks_waiting "$DIR/$1/.cairn/status.json")" = "$2" ]; }
seconds() { echo "${EPOCHREALTIME%.*}"; }
# lock_for SECONDS KEY: on descriptor 9.
lock_for() {
	exec 9<>"$2"
	setfattr -n user.cairn.ttl -v "$1" "$2" || fail "ttl of $2"
	flock 9 || fail "lock $2"
}
lost='Stale file handle'

# --- a lease is renewed while its opener runs, and after that by children that hold on
(
	lock_for 1 renewed
	for i in 1 2 3; do
		before=$(bucket renewed .deadline_at)
		poll_until 5 "renewal $i" moved renewed "$before"
	done
	sleep 600 &
	echo $! >"$DIR/.state/child"
) || exit 1
for i in 1 2 3 4; do
	before=$(bucket renewed .deadline_at)
	poll_until 5 "renewal $i after the opener" moved renewed "$before"
done
assert_equal "$(xattr epoch renewed)" 1 'one period all the time'
kill "$(<"$DIR/.state/child")"
poll_until 5 'released' not_held renewed

# --- a stopped holder loses it, to the other mount or to this one, and its late write is refused
for thief in "$B/stopped" "$A/stopped"; do
	rm -f "$DIR/.state/holder" "$DIR/.state/holder.said"
	(
		lock_for 1 stopped
		echo '"mine"' >&9
		own=$(xattr epoch stopped)
		echo "$BASHPID" >"$DIR/.state/holder"
		kill -STOP "$BASHPID"
		expect_error "$lost" bash -c 'echo "\"late\"" >&9'
		expect_error "$lost" bash -c 'echo "\"later\"" >&9'
		expect_errno ESTALE 'os.pread(9, 100, 0)'
		assert_equal "$(xattr epoch stopped) $(xattr held stopped)" "$own 0" 'the own epoch, not the other'
		assert_file stopped '"theirs"' 'by its name anybody reads it'
		succeed flock 9
		assert_equal "$(xattr epoch stopped)" $((own + 2)) 'a new period'
		echo '"again"' >&9 || fail 'write in the new period'
		: >"$DIR/.state/holder.said"
	) &
	poll_until 5 'it locks' test -s "$DIR/.state/holder"
	holder=$(<"$DIR/.state/holder")
	poll_until 5 'it stops' stopped "$holder"
	(
		began=$(seconds)
		exec 9<>"$thief"
		flock 9
		[ $(($(seconds) - began)) -lt 10 ] || fail 'taking over took too long'
		echo '"theirs"' >&9
		kill -CONT "$holder"
	) || exit 1
	wait
	[ -e "$DIR/.state/holder.said" ] || fail "the holder whose lease went to $thief"
	assert_file stopped '"again"' 'the last state'
	for i in 1 2 3; do
		expect_log a "stopped: .*: $lost"
	done
done
# The heartbeat may have been first to know.
allow_log a 'leases/stopped: lease stopped: epoch [0-9]+ was lost: another epoch began'

# --- past its deadline a lease is not held; when nobody took over, it is again
(
	lock_for 1 paused
	me=$BASHPID
	(
		kill -STOP "$me"
		poll_until 10 'past the deadline' not_held paused
		kill -CONT "$me"
	)
	echo '"goes on"' >&9 || fail 'nobody took it over'
	assert_equal "$(xattr epoch paused) $(xattr held paused)" '1 1' 'it holds again'
) || exit 1

# --- a stopped daemon: its lease runs out, late writes through it are refused
cd /
rm -f "$DIR/.state/holder"
(
	cd "$A" || exit 1
	lock_for 1 daemon
	echo '"before"' >&9
	: >"$DIR/.state/holder"
	poll_until 30 'the daemon goes on' test -e "$DIR/.state/goes_on"
	expect_error "$lost" bash -c 'echo "\"late\"" >&9'
	assert_equal "$(xattr epoch daemon) $(xattr held daemon)" '1 0' 'the own epoch'
) &
poll_until 10 'it locks' test -e "$DIR/.state/holder"
# Nobody touches the mount meanwhile: whoever closes a descriptor of it waits for the daemon.
kill -STOP "$(daemon_pid a)"
flock "$B/daemon" true || fail 'taking over from a stopped daemon'
: >"$DIR/.state/goes_on"
kill -CONT "$(daemon_pid a)"
wait
cd "$A" || fail 'no leases/'
expect_log a "daemon: .*: $lost"
allow_log a 'leases/daemon: lease daemon: epoch 1 was lost'
assert_file daemon '"before"' 'the state'

# --- a document that goes, or is replaced by an older one, is a lost lease
(
	lock_for 60 gone
	echo 1 >&9
	cp "$DIR/bucket/gone" "$DIR/.state/gone"
	rm "$DIR/bucket/gone"
	expect_errno ESTALE 'os.pread(9, 100, 0)'
	expect_error "$lost" bash -c 'echo 2 >&9'
	expect_error 'No such file' cat "$B/gone"
) || exit 1
expect_log a "leases/gone: read: epoch 1 was lost .*: $lost"
expect_log a "leases/gone: write: epoch 1 was lost .*: $lost"

# --- what may be asked for the next lock
(
	exec 9<>wanted
	for bad in 0 -1 1x '' nan 1e12; do
		expect_error 'Invalid argument' setfattr -n user.cairn.ttl -v "$bad" wanted
		expect_log a 'leases/wanted: set user.cairn.ttl .*: Invalid argument'
	done
	expect_error 'Invalid argument' setfattr -n user.cairn.steal -v maybe wanted
	expect_log a 'leases/wanted: set user.cairn.steal .*: Invalid argument'
	setfattr -n user.cairn.ttl -v 1000 wanted
	setfattr -n user.cairn.holder -v 'job 7, ö' wanted
	flock 9
	assert_equal "$(bucket wanted .holder) $(xattr holder wanted)" 'job 7, ö job 7, ö' 'the holder'
	left=$(($(date -d "$(bucket wanted .deadline_at)" +%s) - $(date +%s)))
	[ $left -gt 990 ] && [ $left -le 1000 ] || fail "a ttl of 1000 s: $left"
) || exit 1

# --- another descriptor, on either mount, enters the period of a holder string
for mount in a b; do
	(
		key=attach-$mount other=$DIR/$mount/leases/attach-$mount
		exec 9<>"$key"
		setfattr -n user.cairn.holder -v 'job 7, ö' "$key"
		flock 9
		echo 1 >&9
		(
			exec 8<>"$other"
			setfattr -n user.cairn.attach -v 'another' "$other"
			! flock -n 8 || fail 'attached with the wrong holder string'
			! flock 8 || fail 'attaching does not wait'
			setfattr -n user.cairn.attach -v 'job 7, ö' "$other"
			flock -n 8 || fail 'attach'
			assert_equal "$(xattr epoch "$other") $(xattr held "$other")" '1 1' 'the same epoch'
			echo 2 >&8 || fail 'write as the same holder'
			setfattr -n user.cairn.release -v '' "$other" || fail 'release as the same holder'
		) || exit 1
		assert_equal "$(jq -c '[.holder, .state]' "$DIR/bucket/$key")" '[null,2]' 'released by the other'
		expect_error "$lost" bash -c 'echo 3 >&9'
	) || exit 1
	expect_log a "attach-$mount: .*: $lost"
done

# --- an expired lease is not taken by who does not steal
document='{"deadline_at":"2001-01-01T00:00:00.000000Z","epoch":7,"holder":"dead","state":null}'
printf '%s' "$document" >"$DIR/bucket/expired"
(
	exec 9<>expired
	setfattr -n user.cairn.steal -v 0 expired
	! flock -n 9 || fail 'stolen'
	! flock -w 0.5 9 || fail 'stolen after a while'
	assert_equal "$(<"$DIR/bucket/expired")" "$document" 'untouched'
	setfattr -n user.cairn.steal -v 1 expired
	flock -n 9 || fail 'not stolen'
	assert_equal "$(xattr epoch expired)" 8 'the next epoch'
) || exit 1

# --- the command line and the mount see each other
if [ -n "$CAIRN" ]; then
	export CAIRNDB_STORAGE_TYPE=filesystem CAIRNDB_STORAGE_PATH=$DIR/bucket
	(
		lock_for 60 line
		echo '{"n":1}' >&9
		expect_error held "$CAIRN" lease acquire line
		succeed "$CAIRN" lease state line -- jq -c '.n += 1'
		assert_file line '{"n":2}' 'a cooperative write of the command line'
	) || exit 1
	poll_until 5 'released' not_held line
	succeed "$CAIRN" lease acquire line --holder me
	! flock -n line true || fail 'held by the command line'
	succeed "$CAIRN" lease release line --holder me
	succeed flock -w 10 line true
fi

# --- a daemon that ends releases nothing, and answers who waits
(
	lock_for 3 ends
	flock ends true 2>/dev/null &
	flock "$B/ends" true &
	other=$!
	poll_until 5 'it waits' waiting a 1
	poll_until 5 'and there' waiting b 1
	kill -TERM "$(daemon_pid a)"
	wait_daemon a 0
	assert_equal "$(bucket ends .holder | wc -c)" 33 'the holder stands'
	wait $other || fail 'the lease did not run out'
	assert_equal "$(bucket ends .epoch)" 2 'the next epoch'
) || exit 1
cd /
wait
start_mount a
(
	cd "$A" && lock_for 3 killed
	kill_daemon a
	allow_log a '^Killed$'
	flock "$B/killed" true || fail 'the lease of a killed daemon did not run out'
) || exit 1
stop_mount b
