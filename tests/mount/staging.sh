#!/bin/bash
# Staging files: by name, by birth, by option; local, bounded, gone at the end, never in the bucket.
. "$(dirname "$0")/lib.sh"

start_mount a -o staging='*.new:tmp-*,staging_max=4M'
start_mount b
for view in claims docs objects leases; do
	D=$DIR/a/$view
	for name in .t .goutputstream-X k~ 4913 .k.swp x.new tmp-1; do
		echo '{"a":1}' >"$D/$name" || fail "$view/$name"
		assert_file "$D/$name" '{"a":1}' "$view/$name"
		[ ! -e "$DIR/b/$view/$name" ] || fail "$view/$name is seen on the other mount"
	done
	assert_equal "$(ls -A "$D" | sort | tr '\n' ' ')" \
		'.goutputstream-X .k.swp .t 4913 k~ tmp-1 x.new ' "$view lists staging files"
	[ -z "$(find "$DIR/bucket" -type f)" ] || fail "in the bucket: $(find "$DIR/bucket" -type f)"
	succeed mv "$D/.t" "$D/.t2"
	expect_errno ENOENT 'os.stat(sys.argv[1])' "$D/.t"
	succeed ln "$D/.t2" "$D/.t3"
	assert_equal "$(stat -c %h "$D/.t3")" 2 "$view: links of a staging file"
	expect_errno EEXIST 'os.link(sys.argv[1], sys.argv[2])' "$D/.t2" "$D/.t3"
	succeed rm "$D/.t2"
	assert_file "$D/.t3" '{"a":1}' "$view: the other link stays"
	succeed rm "$D"/.t3 "$D"/.[gk]* "$D"/*
	assert_equal "$(ls -A "$D")" '' "$view is empty again"
done

# By birth, in docs/ and leases/: made as mkstemp(3) does.
python3 - "$DIR/a" <<'END' || fail 'by birth'
import os, sys, tempfile
docs = sys.argv[1] + "/docs"
fd, path = tempfile.mkstemp(dir=docs)
os.write(fd, b'{"n": 1')
os.fsync(fd)
assert open(path).read() == '{"n": 1'
os.write(fd, b"}")
os.close(fd)
os.rename(path, docs + "/born")
assert open(docs + "/born").read() == '{"n":1}\n'
assert os.listdir(docs) == ["born"]
END
[ -z "$(find "$DIR/bucket" -name 'tmp*')" ] || fail 'mkstemp in the bucket'

# A key that exists under a name of the option stays one; others are staging.
echo '{"key":1}' >"$DIR/b/docs/k.new"
assert_file "$DIR/a/docs/k.new" '{"key":1}' 'a key under a staging name'
[ ! -e "$DIR/bucket/x.new" ] || fail 'x.new in the bucket'

# Modes protect them, and are kept.
echo secret >"$DIR/a/objects/.s"
chmod 600 "$DIR/a/objects/.s"
assert_equal "$(stat -c %a "$DIR/a/objects/.s")" 600 'mode of a staging file'
succeed touch -d '2020-02-02 UTC' "$DIR/a/objects/.s"
assert_equal "$(stat -c %Y "$DIR/a/objects/.s")" 1580601600 'time of a staging file'

# Once placed it takes no more writes.
expect_errno EPERM '
fd = os.open(sys.argv[1] + "/.p", os.O_CREAT | os.O_RDWR)
os.write(fd, b"1")
os.rename(sys.argv[1] + "/.p", sys.argv[1] + "/p")
os.write(fd, b"2")' "$DIR/a/objects"
expect_log a 'renamed into place.*Operation not permitted'
assert_file "$DIR/b/objects/p" 1 'what was placed'

# The bound, of all files together, and what was there stays.
head -c 3000000 /dev/zero >"$DIR/a/objects/.big" || fail 'within the bound'
expect_error 'No space left on device' cp "$DIR/a/objects/.big" "$DIR/a/objects/.big2"
expect_log a 'No space left on device'
allow_log a 'No space left on device'
assert_equal "$(stat -c %s "$DIR/a/objects/.big")" 3000000 'the first one is whole'
rm -f "$DIR/a/objects/.big2"
succeed cp "$DIR/a/objects/.s" "$DIR/a/objects/.after"
expect_error 'No space left on device' cp "$DIR/a/objects/.big" "$DIR/a/objects/large"
rm "$DIR/a/objects/.big"
succeed sh -c 'head -c 2000000 /dev/zero >"$1"' sh "$DIR/a/objects/large"
assert_equal "$(stat -c %s "$DIR/bucket/large")" 2000000 'written once there is room'

# What is placed leaves no open file behind in the daemon, though the kernel remembers its inode.
for ((i = 0; i < 300; i++)); do
	echo "$i" >"$DIR/a/claims/.l" && ln "$DIR/a/claims/.l" "$DIR/a/claims/l$i" && rm "$DIR/a/claims/.l" &&
		echo "$i" >"$DIR/a/docs/.m" && mv "$DIR/a/docs/.m" "$DIR/a/docs/m$i" || fail "place $i"
done
opened() { find "/proc/$(daemon_pid a)/fd" | wc -l; }
poll_until 5 'placed files are closed' eval '[ "$(opened)" -lt 40 ]'
rm -f "$DIR"/bucket/[lm][0-9]*

# Gone when the mount ends.
stop_mount a
assert_equal "$(find "$DIR/cache-a" -type f)" '' 'nothing is left in cache_dir'
start_mount a
assert_equal "$(ls -A "$DIR/a/objects" | tr '\n' ' ')" 'born k.new large p ' 'only keys are left'

# A full cache_dir: ENOSPC with a line, nothing lost.
if [ "$(id -u)" = 0 ]; then
	mkdir "$DIR/cache-c"
	mount -t tmpfs -o size=256k tmpfs "$DIR/cache-c"
	start_mount c
	dd if=/dev/zero of="$DIR/cache-c/filler" bs=4k status=none 2>/dev/null
	expect_error 'No space left on device' bash -c 'echo 1 >"$1"' bash "$DIR/c/docs/.t"
	expect_log c 'No space left on device'
	allow_log c 'No space left on device'
	expect_error 'No space left on device' bash -c 'echo 1 >"$1"' bash "$DIR/c/objects/new"
	rm "$DIR/cache-c/filler"
	succeed bash -c 'echo 1 >"$1"' bash "$DIR/c/docs/.t"
	succeed mv "$DIR/c/docs/.t" "$DIR/c/docs/after"
	stop_mount c
fi
