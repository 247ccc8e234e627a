#!/bin/bash
# A bucket that fails under the mount: full, read-only, deleted, a foreign lock. Each is the errno of
# DESIGN "Errors" and a log line with key and reason; nothing is lost and nothing hangs.
. "$(dirname "$0")/lib.sh"

# A peer that holds the lock of a key: an answer within the timeout, and a killed asker goes at once.
start_mount a -o timeout=1
echo '{"n":1}' >"$DIR/a/docs/k"
exec 8<"$DIR/bucket/.k.lock"
flock 8
expect_errno ETIMEDOUT 'os.rename(sys.argv[1] + "/.t", sys.argv[1] + "/k") if not os.system("echo 2 >" + sys.argv[1] + "/.t; setfattr -n user.cairn.if_match -v \\* " + sys.argv[1] + "/.t") else None' "$DIR/a/docs"
expect_log a 'k.*timed out.*|k.*Connection timed out'
assert_file "$DIR/a/docs/k" '{"n":1}' 'nothing was written'
assert_file "$DIR/a/docs/.t" 2 'the staging file is kept'
stop_mount a
start_mount a
(exec python3 -c 'import os, sys
os.unlink(sys.argv[1])' "$DIR/a/objects/k") &
waiting=$!
poll_until 10 'the unlink waits' grep -q request_wait_answer "/proc/$waiting/stack" "/proc/$waiting/wchan"
kill -KILL "$waiting"
poll_until 2 'a killed process goes at once' sh -c '! [ -e "/proc/$1" ] || grep -q "State:.Z" "/proc/$1/status"' sh "$waiting"
wait "$waiting" 2>/dev/null
allow_log a 'k: .*Interrupted system call|k: .*cancelled'
flock -u 8
exec 8<&-
assert_file "$DIR/a/docs/k" '{"n":1}' 'the doc is still there'
stop_mount a

# The bucket's directory is deleted under the mount.
cp -r "$DIR/bucket" "$DIR/doomed"
BUCKET=$DIR/doomed start_mount d
assert_file "$DIR/d/docs/k" '{"n":1}' 'before'
rm -rf "$DIR/doomed"
for try in 'open(sys.argv[1] + "/docs/k")' 'open(sys.argv[1] + "/claims/new", "x")' \
	'os.listdir(sys.argv[1] + "/objects")' 'os.mkdir(sys.argv[1] + "/docs/d")'; do
	expect_errno EIO "$try" "$DIR/d"
	expect_log d 'Input/output error'
done
allow_log d 'Input/output error'
stop_mount d

if [ "$(id -u)" = 0 ]; then
	# Full: ENOSPC, the old content stays, and it goes on once there is room.
	mkdir "$DIR/small"
	mount -t tmpfs -o size=400k tmpfs "$DIR/small"
	mkdir "$DIR/small/bucket"
	BUCKET=$DIR/small/bucket start_mount f
	echo '{"old":1}' >"$DIR/f/docs/k"
	head -c 1000000 /dev/zero >"$DIR/small/filler" 2>/dev/null
	python3 -c 'import json, sys; json.dump({"new": "x" * 9000}, sys.stdout)' >"$DIR/f/docs/.t"
	setfattr -n user.cairn.if_match -v '*' "$DIR/f/docs/.t"
	expect_error 'No space left on device' mv "$DIR/f/docs/.t" "$DIR/f/docs/k"
	expect_log f 'No space left on device'
	expect_error 'No space left on device' cp "$DIR/f/docs/.t" "$DIR/f/objects/o"
	expect_log f 'No space left on device'
	allow_log f 'No space left on device'
	assert_file "$DIR/f/docs/k" '{"old":1}' 'the old content stays'
	rm "$DIR/small/filler"
	succeed mv "$DIR/f/docs/.t" "$DIR/f/docs/k"
	assert_equal "$(jq '.new | length' "$DIR/f/docs/k")" 9000 'written once there is room'
	stop_mount f

	# Read-only: mounting it writable is refused, mounting it ro works.
	mount -o remount,ro "$DIR/small"
	run "$CAIRNFS" -f "$DIR/small/bucket" "$DIR/f" -o "cache_dir=$DIR/cache"
	assert_equal "$status" 1 'a read-only directory mounted writable'
	assert_match "$errors" 'cannot mount the bucket.*[Rr]ead-only' 'its message'
	BUCKET=$DIR/small/bucket start_mount f -o ro
	assert_equal "$(jq '.new | length' "$DIR/f/docs/k")" 9000 'read-only'
	stop_mount f
fi

# Objects that are not what a view needs: EINVAL with a line, and seen raw.
start_mount a
printf 'no json' >"$DIR/bucket/bad"
printf '\xff\xfe' >"$DIR/bucket/utf"
for view in docs claims leases; do
	expect_errno EINVAL 'open(sys.argv[1]).read()' "$DIR/a/$view/bad"
	expect_log a 'bad.*Invalid argument'
	expect_errno EINVAL 'open(sys.argv[1]).read()' "$DIR/a/$view/utf"
	expect_log a 'utf.*Invalid argument'
done
assert_file "$DIR/a/objects/bad" 'no json' 'raw it can be read'
for document in '{"epoch":"x","holder":null,"deadline_at":"2026-01-01T00:00:00Z","state":1}' \
	'{"epoch":1,"holder":5,"deadline_at":"2026-01-01T00:00:00Z","state":1}' \
	'{"epoch":1,"holder":"h","deadline_at":"soon","state":1}' '{"epoch":0}' '[]' '7'; do
	printf '%s' "$document" >"$DIR/bucket/lease"
	expect_errno EINVAL 'open(sys.argv[1]).read()' "$DIR/a/leases/lease"
	expect_log a 'lease.*Invalid argument'
	expect_errno EINVAL 'fcntl.flock(os.open(sys.argv[1], os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB)' "$DIR/a/leases/lease"
	allow_log a 'lease.*Invalid argument'
	assert_equal "$(cat "$DIR/bucket/lease")" "$document" 'left as it is'
done
mkfifo "$DIR/bucket/fifo"
ln -s /etc/passwd "$DIR/bucket/symlink"
expect_errno EINVAL 'open(sys.argv[1]).read()' "$DIR/a/objects/fifo"
expect_errno EINVAL 'open(sys.argv[1]).read()' "$DIR/a/objects/symlink"
allow_log a '(fifo|symlink).*Invalid argument'
