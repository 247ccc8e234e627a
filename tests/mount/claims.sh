#!/bin/bash
# claims/: what a claim's value is, when it is set, and what is refused.
. "$(dirname "$0")/lib.sh"

start_mount a
start_mount b
A=$DIR/a/claims B=$DIR/b/claims

# What is written is the value: JSON in any layout, a scalar, or one line of text.
value() {
	printf "$1" >"$A/$2" || fail "write $1"
	assert_file "$B/$2" "$3" "the value of '$1'"
	assert_equal "$(cat "$DIR/bucket/$2")" "$3" "the bytes of '$1'"
}
value '{"run_id":"r1"}\n' object '{"run_id":"r1"}'
value '{ "b" : 1.0,\n "a" : [ 1, 2 ] }' layout '{"a":[1,2],"b":1.0}'
value '[]' array '[]'
value '12\n' number 12
value '12' number2 12
value '"text"' string '"text"'
value 'true\n' word true
value 'null\n' nothing null
value 'worker-7\n' text '"worker-7"'
value 'worker 7' text2 '"worker 7"'
value '12 monkeys\n' text3 '"12 monkeys"'
value '[draft] é' text4 '"[draft] \u00e9"'
value '{"big":123456789012345678901234567890,"f":1e400,"n":NaN,"s":"\\ud800"}' odd \
	'{"big":123456789012345678901234567890,"f":Infinity,"n":NaN,"s":"\ud800"}'

# In pieces, by several processes that share the descriptor.
{ printf '{"a":'; cat <<<1; printf '}'; } >"$A/pieces"
assert_file "$B/pieces" '{"a":1}' 'in pieces'
python3 -c '
import json, sys
with open(sys.argv[1], "x") as file:
    json.dump({"k": list(range(5000))}, file)' "$A/python"
assert_equal "$(jq '.k | length' "$B/python")" 5000 'a value of several writes'
for tool in 'cp "$1" "$2"' 'cat "$1" >"$2"' 'dd if="$1" of="$2" status=none' 'tee "$2" <"$1" >/dev/null'; do
	echo '{"tool":1}' >"$DIR/value"
	succeed sh -c "$tool" sh "$DIR/value" "$A/by-${tool%% *}"
	assert_file "$B/by-${tool%% *}" '{"tool":1}' "$tool"
	run sh -c "$tool" sh "$DIR/value" "$A/by-${tool%% *}"
	[ "$status" != 0 ] || fail "$tool onto a claim that exists"
done

# The value may be set once; a claim that exists is never changed or removed.
expect_errno EPERM 'f = os.open(sys.argv[1], os.O_CREAT | os.O_EXCL | os.O_WRONLY); os.write(f, b"{}\n"); os.write(f, b"{}\n")' "$A/once"
for mode in os.O_WRONLY 'os.O_WRONLY | os.O_TRUNC' 'os.O_WRONLY | os.O_APPEND' os.O_RDWR \
	'os.O_CREAT | os.O_EXCL | os.O_WRONLY' 'os.O_CREAT | os.O_WRONLY'; do
	expect_errno EEXIST "os.open(sys.argv[1], $mode)" "$B/object"
done
expect_errno EPERM 'os.unlink(sys.argv[1])' "$A/object"
expect_errno EPERM 'os.truncate(sys.argv[1], 0)' "$A/object"
expect_errno EPERM 'os.rename(sys.argv[1], sys.argv[1] + "2")' "$A/object"
expect_errno EPERM 'os.open(sys.argv[1], os.O_CREAT | os.O_RDONLY)' "$A/readonly"
[ ! -e "$DIR/bucket/readonly" ] || fail 'an open for reading claimed'
assert_file "$B/object" '{"run_id":"r1"}' 'it is as it was'
succeed cp -a "$A/object" "$DIR/copied"
assert_file "$DIR/copied" '{"run_id":"r1"}' 'cp -a out'

# ln and mv carry the value in the same step; a claim that exists gets EEXIST.
echo '{"by":"ln"}' >"$A/.mine"
succeed ln "$A/.mine" "$A/linked"
expect_errno EEXIST 'os.link(sys.argv[1], sys.argv[2])' "$A/.mine" "$A/linked"
expect_errno EEXIST 'os.rename(sys.argv[1], sys.argv[2])' "$A/.mine" "$A/object"
succeed mv "$A/.mine" "$A/moved"
assert_equal "$(cat "$B/linked" "$B/moved")" $'{"by":"ln"}\n{"by":"ln"}' 'by ln and mv'
[ ! -e "$A/.mine" ] || fail 'the staging file is still there'
echo '{"cut":' >"$A/.cut"
expect_errno EINVAL 'os.link(sys.argv[1], sys.argv[2])' "$A/.cut" "$A/cut"
expect_log a 'claims/cut: .*incomplete JSON.*Invalid argument'
[ ! -e "$DIR/bucket/cut" ] || fail 'incomplete JSON claimed'

# Incomplete JSON is an error that cp sees, and the value stays null.
expect_error 'Invalid argument' cp "$A/.cut" "$A/incomplete"
expect_log a 'claims/incomplete: closed with incomplete JSON.*Invalid argument'
assert_equal "$(cat "$DIR/bucket/incomplete")" null 'incomplete JSON'
python3 -c 'print("[" * 501 + "]" * 501)' >"$DIR/deep"
expect_error 'Invalid argument' cp "$DIR/deep" "$A/deep"
expect_log a 'claims/deep: JSON nested over 500 levels'
allow_log a 'claims/deep: '
printf 'line\nline\n' >"$DIR/lines"
expect_error 'Invalid argument' cp "$DIR/lines" "$A/lines"
expect_log a 'claims/lines: .*neither JSON nor one line'
allow_log a 'claims/lines: '
printf '\xff\xfe\n' >"$DIR/binary"
expect_error 'Invalid argument' cp "$DIR/binary" "$A/binary"
expect_log a 'claims/binary: .*UTF-8'
allow_log a 'claims/binary: '

# A reader that finds null waits for the value.
python3 - "$A/slow" "$B/slow" <<'END' || fail 'a reader waits for the value'
import os, subprocess, sys
winner, reader = sys.argv[1:]
fd = os.open(winner, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
waiting = subprocess.Popen(["cat", reader], stdout=subprocess.PIPE, text=True)
while "S" not in open(f"/proc/{waiting.pid}/stat").read().split(")")[1][:3] and \
        "D" not in open(f"/proc/{waiting.pid}/stat").read().split(")")[1][:3]:
    assert waiting.poll() is None
os.write(fd, b'{"slow":1}\n')
os.close(fd)
assert waiting.communicate()[0] == '{"slow":1}\n'
END
stop_mount a
stop_mount b

# A value that comes too late is refused, and what readers may have seen stays.
start_mount a -o claim_settle=1
start_mount b -o claim_settle=1
python3 - "$A/late" "$B/late" <<'END' || fail 'too late'
import errno, os, sys, time
winner, reader = sys.argv[1:]
fd = os.open(winner, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
assert open(reader).read() == "null\n"      # it came once the winner may not write any more
try:
    os.write(fd, b"1\n")
    raise SystemExit("written")
except OSError as error:
    assert error.errno == errno.EPERM, error
assert open(reader).read() == "null\n"
END
expect_log a 'claims/late: the value came over 0.5 s.*Operation not permitted'
succeed touch "$A/touched"
poll_until 5 'a touched claim is null' sh -c '[ "$(cat "$1")" = null ]' sh "$B/touched"
