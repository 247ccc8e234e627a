#!/bin/bash
# objects/: raw bytes, close-to-open, versions that readers keep; trees with standard tools.
. "$(dirname "$0")/lib.sh"

start_mount a
start_mount b
A=$DIR/a/objects B=$DIR/b/objects
mkdir "$DIR/local"

# Files of every size around what is fetched whole, byte for byte, through both mounts.
MIB8=$((8 << 20))
for size in 0 1 4096 1000000 $((MIB8 - 1)) $MIB8 $((MIB8 + 1)) $((40 << 20)); do
	head -c "$size" /dev/urandom >"$DIR/local/$size"
	succeed cp "$DIR/local/$size" "$A/$size"
	succeed cmp "$DIR/local/$size" "$B/$size"
	assert_equal "$(stat -c %s "$B/$size")" "$size" "size of $size"
	cmp "$DIR/local/$size" "$DIR/bucket/$size" || fail "the bucket holds other bytes of $size"
	etag=$(getfattr --only-values -n user.cairn.etag "$B/$size" 2>/dev/null)
	assert_equal "$etag" "$(md5sum <"$DIR/local/$size" | cut -d' ' -f1)" "etag of $size"
done

# Python's modes.
python3 - "$A/modes" "$B/modes" <<'END' || fail 'modes of open'
import os, sys
a, b = sys.argv[1:]
def shows(text):
    assert open(b, "rb").read() == text, (open(b, "rb").read(), text)
with open(a, "xb") as file: file.write(b"hello world")
shows(b"hello world")
try:
    open(b, "xb")
    raise SystemExit("open x of an object that exists")
except FileExistsError:
    pass
with open(a, "ab") as file: file.write(b"!")
shows(b"hello world!")
with open(a, "r+b") as file:
    file.seek(6)
    file.write(b"there")
    file.flush()
    os.fsync(file.fileno())
    shows(b"hello there!")
    file.seek(0)
    assert file.read() == b"hello there!"
with open(a, "wb") as file: pass
os.stat(a)
END
poll_until 5 'a cut object is empty' test ! -s "$B/modes"
printf 0123456789 >"$A/dd"
succeed dd if=/dev/stdin of="$A/dd" bs=1 seek=3 conv=notrunc status=none <<<'abc'
assert_equal "$(cat "$B/dd")" $'012abc\n789' 'dd conv=notrunc'
succeed truncate -s 4 "$A/dd"
assert_equal "$(cat "$B/dd")" 012a 'truncate by descriptor'
python3 -c 'import os, sys; os.truncate(sys.argv[1], 2)' "$A/dd"
assert_equal "$(cat "$B/dd")" 01 'truncate by name'
touch "$A/touched"
assert_equal "$(stat -c %s "$A/touched")" 0 'touch makes an empty object'

# Nobody sees a new object before it is whole; O_EXCL wins it at once.
python3 - "$A" "$B" <<'END' || fail 'a new object is seen when it is whole'
import os, sys
a, b = sys.argv[1:]
file = open(a + "/whole", "w")
file.write("half")
file.flush()
assert not os.path.exists(b + "/whole")
file.write(" and half")
file.close()
assert open(b + "/whole").read() == "half and half"
file = open(a + "/won", "x")
assert os.path.getsize(b + "/won") == 0
file.write("content")
file.close()
assert open(b + "/won").read() == "content"
END

# A reader keeps its version; a large one that is gone says so.
printf old >"$A/small"
exec 5<"$A/small"
printf new >"$DIR/local/new"
mv "$DIR/local/new" "$B/small"
assert_equal "$(cat <&5)" old 'an open file does not change'
exec 5<&-
assert_equal "$(cat "$A/small")" new 'the next open shows the new version'
python3 - "$A/$((MIB8 + 1))" "$B/.replacement" <<'END' || fail 'a large version that is gone'
import errno, os, sys
large, staging = sys.argv[1:]
file = os.open(large, os.O_RDONLY)
assert len(os.pread(file, 1000, 0)) == 1000
open(staging, "wb").write(b"other")
os.rename(staging, os.path.dirname(staging) + "/" + os.path.basename(large))
try:
    os.pread(file, 1000, 4000000)
    raise SystemExit("no error")
except OSError as error:
    assert error.errno == errno.ESTALE, error
END
expect_log a '8388609: the version that was opened is gone.*: Stale file handle'

# if_match on a staging file; put-if-absent by link and by mv -n.
etag=$(getfattr --only-values -n user.cairn.etag "$A/small" 2>/dev/null)
echo third >"$A/.s"
setfattr -n user.cairn.if_match -v 00000000000000000000000000000000 "$A/.s"
expect_error 'Device or resource busy' mv "$A/.s" "$A/small"
expect_log a 'objects/small: it is not the stated version.*busy'
setfattr -n user.cairn.if_match -v "$etag" "$A/.s"
succeed mv "$A/.s" "$A/small"
assert_equal "$(cat "$B/small")" third 'a stated version'
echo fourth >"$A/.s"
expect_error 'File exists' ln "$A/.s" "$A/small"
succeed ln "$A/.s" "$A/linked"
assert_equal "$(cat "$B/linked")" fourth 'a link puts if absent'

# Unlink, rename of keys, what is refused.
succeed mv "$A/linked" "$A/moved"
assert_equal "$(cat "$B/moved")" fourth 'mv key key'
[ ! -e "$B/linked" ] || fail 'the source of mv is still there'
succeed rm "$A/moved"
expect_error 'No such file or directory' cat "$B/moved"
expect_errno ENOENT 'os.unlink(sys.argv[1])' "$A/moved"
expect_errno EPERM 'os.symlink("x", sys.argv[1])' "$A/symlink"
expect_errno EPERM 'os.mkfifo(sys.argv[1])' "$A/fifo"
expect_errno EPERM 'os.link(sys.argv[1], sys.argv[1] + "2")' "$A/small"
expect_errno EPERM 'os.chmod(sys.argv[1], 0o600)' "$A/small"
succeed chmod 644 "$A/small"
succeed touch -d 2001-01-01 "$A/small"
expect_errno ENOTSUP 'os.rename(sys.argv[1], sys.argv[2])' "$A/small" "$DIR/a/docs/small"
expect_errno ENOTSUP 'fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX)' "$A/small"
expect_errno ENOTSUP 'os.setxattr(sys.argv[1], "user.mime", b"x")' "$A/small"
expect_errno EPERM 'os.setxattr(sys.argv[1], "user.cairn.epoch", b"1")' "$A/small"
expect_errno ENODATA 'os.getxattr(sys.argv[1], "user.mime")' "$A/small"
mkdir "$A/dir"
echo 1 >"$A/dir/key"
expect_errno ENOTSUP 'os.rename(sys.argv[1], sys.argv[2])' "$A/dir" "$A/dir2"
expect_errno ENOTEMPTY 'os.rmdir(sys.argv[1])' "$A/dir"
expect_errno EISDIR 'os.unlink(sys.argv[1])' "$A/dir"
mkdir "$A/empty"
succeed rmdir "$B/empty"

# Trees.
mkdir -p "$DIR/local/tree/x/y/z"
for i in $(seq 50); do echo "$i" >"$DIR/local/tree/x/y/$i"; done
echo deep >"$DIR/local/tree/x/y/z/deep"
succeed cp -r "$DIR/local/tree" "$A/copied"
succeed rsync -r --whole-file "$DIR/local/tree/" "$A/synced"
(cd "$A" && tar cf "$DIR/local/tree.tar" copied) || fail tar
mkdir "$A/untarred"
tar xf "$DIR/local/tree.tar" -C "$A/untarred" --no-same-owner --no-same-permissions || fail untar
for tree in copied synced untarred/copied; do
	succeed diff -r "$DIR/local/tree" "$B/$tree"
done
assert_equal "$(find "$B/copied" -type f | wc -l)" 51 'find counts the files'
succeed cp -a "$B/copied" "$DIR/local/back"
succeed diff -r "$DIR/local/tree" "$DIR/local/back"
assert_equal "$(grep -rl deep "$B/copied")" "$B/copied/x/y/z/deep" 'grep -r'

# A listing tells sizes.
mkdir "$DIR/bucket/many"
for ((i = 0; i < 2000; i++)); do printf '%*s' $((i % 50)) '' >"$DIR/bucket/many/$i"; done
assert_equal "$(find "$A/many" -type f -printf '%f %s\n' | sort)" \
	"$(find "$DIR/bucket/many" -type f ! -name '.*' -printf '%f %s\n' | sort)" 'sizes in a listing'
