#!/bin/bash
# Names of keys (DESIGN "Names") on a directory bucket, and the ones that no key has.
. "$(dirname "$0")/lib.sh"

start_mount a
start_mount b
A=$DIR/a/objects

# key<TAB>name, where they differ in the last segment or not.
python3 - "$DIR" <<'END' || fail 'odd names'
import errno, os, sys
d = sys.argv[1]
objects, other, bucket = d + "/a/objects/", d + "/b/objects/", d + "/bucket/"
table = {
    "plain": "plain", "100%": "100%25", "%": "%25", "a~": "a%7E", "~": "%7E", "~a": "~a",
    "4913": "%34913", "49130": "49130", "new\nline": "new%0Aline", "tab\t": "tab%09",
    "del\x7f": "del%7F", "space ": "space ", "# + & < @ '": "# + & < @ '", "é": "é", "日本": "日本",
    "%41": "%2541", "a%": "a%25", "back\\slash": "back\\slash", "*?[": "*?[", "-rf": "-rf",
    "n" * 249: "n" * 249,
}
for key, name in table.items():
    with open(objects + name, "w") as file:
        file.write(key)
    assert open(bucket + key).read() == key, ("in the bucket", key)
    assert open(other + name).read() == key, ("on the other mount", key)
    # The key is also found when a peer wrote it.
    assert name in os.listdir(other), ("listed", key, os.listdir(other))
assert sorted(os.listdir(objects)) == sorted(table.values()), os.listdir(objects)
# Each key has this name alone.
for name in ["%70lain", "plai%6E", "%2541%", "a%7e", "%zz", "%2", "%", "%%", "a%2F", "%00", "plain%",
             "4913%", "%2E", "%2e", "new%0aline"]:
    try:
        os.stat(objects + name)
        raise SystemExit("found by " + name)
    except FileNotFoundError:
        pass
END

# Names that no key has: nothing is there, and nothing is made.
for name in % %zz %2 a%2F %00 x%7e %41 k%; do
	expect_errno ENOENT 'open(sys.argv[1])' "$A/$name"
	expect_errno EINVAL 'open(sys.argv[1], "w")' "$A/$name"
	expect_log a 'Invalid argument'
	expect_errno EINVAL 'os.mkdir(sys.argv[1])' "$A/$name"
	expect_log a 'Invalid argument'
done
# What S3 takes and a directory cannot hold.
for name in %2E %2E. %2Ehidden; do
	expect_errno EINVAL 'open(sys.argv[1], "w")' "$A/$name"
	expect_log a 'Invalid argument'
done
expect_errno EINVAL 'open(sys.argv[1], "w")' "$A/log%"
expect_log a 'Invalid argument'

# Too long: a segment of the directory store, a key of any store.
expect_errno ENAMETOOLONG 'open(sys.argv[1], "w")' "$A/$(printf 'n%.0s' {1..250})"
expect_log a 'name too long|File name too long'
python3 - "$A" <<'END' || fail 'long keys'
import errno, os, sys
base = sys.argv[1]
path, size = base, 0
while size + 200 <= 1024:
    segment = "s" * 199
    path += "/" + segment
    size += 200
    if size < 1000: os.mkdir(path)
# A key of exactly 1,024 bytes is taken, one of 1,025 is not.
directory, used = os.path.dirname(path), size - 200
os.mkdir(path)
ok, bad = path + "/" + "k" * (1024 - size), path + "/" + "k" * (1025 - size)
open(ok, "w").write("long")
assert open(ok).read() == "long"
assert os.listdir(path) == ["k" * (1024 - size)]
for attempt in (lambda: open(bad, "w"), lambda: os.mkdir(bad), lambda: os.stat(bad)):
    try:
        attempt()
        raise SystemExit("1,025 bytes")
    except OSError as error:
        assert error.errno == errno.ENAMETOOLONG, error
END
allow_log a 'File name too long'
[ -z "$(unexpected_log a)" ] || fail "$(unexpected_log a)"

# The engine's own prefixes are hidden, and refused.
assert_equal "$(ls -d "$A"/log* "$A"/snapshots 2>/dev/null)" '' 'reserved prefixes do not appear'
for view in claims leases docs objects; do
	for name in log logs snapshots txapplied; do
		expect_errno EPERM 'os.mkdir(sys.argv[1])' "$DIR/a/$view/$name"
	done
done
expect_errno ENOENT 'open(sys.argv[1] + "/log/000000000001.msgpack", "w")' "$A"
stop_mount a
start_mount a -o raw
assert_equal "$(cd "$A" && ls -d log snapshots)" $'log\nsnapshots' 'raw shows them in objects/'
echo repaired >"$A/log/x"
assert_file "$DIR/bucket/log/x" repaired 'raw writes them'
expect_error 'No such file' ls "$DIR/a/docs/log"
