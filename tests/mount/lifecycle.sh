#!/bin/bash
# Mounting and unmounting: readiness, exit status, signals, dead daemons, options, what cannot be mounted.
. "$(dirname "$0")/lib.sh"

start_mount a
succeed ls "$DIR/a"
assert_equal "$output" "claims
docs
leases
objects" 'the tree'
expect_error 'No such file or directory' cat "$DIR/a/docs/k"

# .cairn/ is for jq and Prometheus.
echo '{"n":1}' >"$DIR/a/docs/k"
assert_equal "$(jq -r .kind "$DIR/a/.cairn/status.json")" directory 'status.json'
[ "$(jq .requests.put.calls "$DIR/a/.cairn/status.json")" -gt 0 ] || fail 'status.json counts puts'
jq -e '.timeout == 30 and .claim_settle == 5 and .lease_ttl == 60 and .umask == "022"' \
	"$DIR/a/.cairn/config.json" >/dev/null || fail "config.json: $(cat "$DIR/a/.cairn/config.json")"
awk '/^#/ { next } !/^cairnfs_[a-z_]+(\{operation="[a-z]+"\})? [0-9.e+-]+$/ { exit 1 }' \
	"$DIR/a/.cairn/metrics" || fail "metrics: $(cat "$DIR/a/.cairn/metrics")"
expect_error 'Permission denied' sh -c 'echo x >"$1"' sh "$DIR/a/.cairn/log"
expect_errno EPERM 'os.mkdir(sys.argv[1])' "$DIR/a/other"
expect_errno EPERM 'open(sys.argv[1], "w")' "$DIR/a/other"
read -r blocks available < <(stat -f -c '%b %a' "$DIR/a")
[ "$blocks" -gt 0 ] && [ "$available" -gt 0 ] || fail "statfs: $blocks $available"

# SIGTERM ends it in order, and the mount is gone.
kill -TERM "$(daemon_pid a)"
wait_daemon a 0
! is_mounted "$DIR/a" || fail 'mounted after SIGTERM'

# A dead daemon's mountpoint is cleaned up first.
start_mount a
kill_daemon a KILL
allow_log a '^Killed$'
expect_error 'Transport endpoint is not connected' ls "$DIR/a"
start_mount a
assert_file "$DIR/a/docs/k" '{"n":1}' 'after a crash'
stop_mount a

# In the background: the exit status is the mount's, and it works once it says so.
run "$CAIRNFS" "$DIR/bucket" "$DIR/a" -o "cache_dir=$DIR/cache"
assert_equal "$status $errors" '0 ' 'mounted in the background'
assert_file "$DIR/a/docs/k" '{"n":1}' 'ready at once'
succeed fusermount3 -u "$DIR/a"
(cd "$DIR" && CAIRNDB_STORAGE_PATH=$DIR/bucket "$CAIRNFS" a -o "cache_dir=$DIR/cache") ||
	fail 'the bucket from the environment'
assert_file "$DIR/a/docs/k" '{"n":1}' 'the bucket of CAIRNDB_STORAGE_PATH'
succeed fusermount3 -u "$DIR/a"

# What cannot be mounted says why in one line, at once.
cannot() {
	local wanted=$1 text=$2
	shift 2
	run "$CAIRNFS" "$@"
	assert_equal "$status" "$wanted" "exit status of cairnfs $*"
	assert_match "$errors" "$text" "message of cairnfs $*"
	assert_equal "$(wc -l <"$DIR/.state/errors")" 1 "lines of cairnfs $*"
	! is_mounted "$DIR/a" || fail "mounted: cairnfs $*"
}
cannot 2 'no mountpoint' -o ro
cannot 2 "unknown option 'nonsense'" "$DIR/bucket" "$DIR/a" -o nonsense
cannot 2 'uid=x: not a number' "$DIR/bucket" "$DIR/a" -o uid=x
cannot 2 'timeout=-1: not a number of seconds' "$DIR/bucket" "$DIR/a" -o timeout=-1
cannot 2 'too many arguments' a b c
cannot 1 'mountpoint .*/none: No such file' "$DIR/bucket" "$DIR/none"
cannot 1 'cannot mount the bucket: .*no/parent' "$DIR/no/parent/bucket" "$DIR/a" -o "cache_dir=$DIR/cache"
cannot 1 'cannot mount the bucket: .*gs:' gs://bucket/x "$DIR/a" -o "cache_dir=$DIR/cache"
cannot 1 'CAIRNDB_STORAGE_PATH' "$DIR/a" -o "cache_dir=$DIR/cache"
cannot 1 'cannot mount the bucket' "$DIR/bucket/k" "$DIR/a" -o "cache_dir=$DIR/cache"
cannot 1 'staging files.*cache_dir' "$DIR/bucket" "$DIR/a" -o "cache_dir=$DIR/bucket/k/cache"
assert_match "$("$CAIRNFS" --help)" 'usage: cairnfs DIR-OR-URL MOUNTPOINT' '--help'
assert_match "$("$CAIRNFS" --version)" '^cairnfs [0-9.]+$' '--version'

# Options as mount(8) and fstab pass them.
start_mount a -o rw,dev,suid,noatime,x-systemd.automount,_netdev,nofail,umask=077,uid=12345,gid=54321
assert_equal "$(stat -c '%a %u %g' "$DIR/a/docs/k" "$DIR/a/docs" | tr '\n' ' ')" \
	'600 12345 54321 700 12345 54321 ' 'uid, gid, umask'
stop_mount a

# Read-only: nothing is written, locks are none, not even the bucket's own directories are made.
mkdir "$DIR/bare"
echo '{"n":2}' >"$DIR/bare/k"
BUCKET=$DIR/bare start_mount ro -o ro
assert_file "$DIR/ro/docs/k" '{"n":2}' 'read-only'
expect_errno EROFS 'open(sys.argv[1], "w")' "$DIR/ro/docs/k"
expect_errno EROFS 'open(sys.argv[1], "x")' "$DIR/ro/claims/new"
expect_errno EROFS 'os.mkdir(sys.argv[1])' "$DIR/ro/docs/d"
expect_errno EROFS 'os.unlink(sys.argv[1])' "$DIR/ro/docs/k"
assert_equal "$(ls -A "$DIR/bare")" k 'nothing was made in a read-only bucket'
stop_mount ro

if [ "$(id -u)" = 0 ]; then
	# Others come in with allow_other alone, and owner and mode count then.
	chmod 755 "$DIR"
	as() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
	start_mount a
	expect_error 'Permission denied' as ls "$DIR/a"
	stop_mount a
	start_mount a -o allow_other
	succeed as cat "$DIR/a/docs/k"
	assert_equal "$output" '{"n":1}' 'another user reads'
	expect_error 'Permission denied' as sh -c 'echo 2 >"$1"' sh "$DIR/a/docs/k"
	stop_mount a
	start_mount a -o allow_other,umask=0
	succeed as sh -c 'echo "{\"n\":7}" >"$1/.t" && chmod 600 "$1/.t"' sh "$DIR/a/objects"
	assert_equal "$(stat -c '%a %u' "$DIR/a/objects/.t")" '600 65534' 'a staging file is its maker'\''s'
	succeed as mv "$DIR/a/objects/.t" "$DIR/a/objects/theirs"
	assert_file "$DIR/bucket/theirs" '{"n":7}' 'another user writes'
	stop_mount a
fi
