#!/bin/bash
# leases/: the state as content, cooperative writes, and what xattrs say.
. "$(dirname "$0")/lib.sh"

A=$DIR/a/leases B=$DIR/b/leases
start_mount a
start_mount b
cd "$A" || fail 'no leases/'

xattr() { getfattr --only-values -n "user.cairn.$1" "$2" 2>/dev/null; }
gets() { jq .requests.get.calls "$DIR/a/.cairn/status.json"; }
puts() { jq .requests.put.calls "$DIR/a/.cairn/status.json"; }

# --- each complete value is the state, whatever the offset
(
	exec 9<>k
	expect_error 'Operation not permitted' bash -c 'echo 1 >&9'
	flock 9
	assert_file k null 'a new lease'
	echo '{ "b" : 1, "a" : "ü" }' >&9
	assert_file k '{"a":"\u00fc","b":1}' 'canonical'
	assert_equal "$(stat -c %s k) $(stat -L -c %s /dev/fd/9)" '21 21' 'sizes'
	printf '{"part":' >&9
	assert_file k '{"a":"\u00fc","b":1}' 'half a value is none'
	printf '1}' >&9
	assert_file k '{"part":1}' 'the other half'
	printf '[1][2] "x"\n3' >&9
	assert_file k 3 'the last of several, a number at the close'
	expect_error 'Invalid argument' bash -c 'echo hello >&9'
	echo '"after"' >&9
	assert_file k '"after"' 'after an error'
	python3 -c 'import json,sys; json.dump(["x"*3000000], sys.stdout)' >&9
	assert_equal "$(wc -c <k)" 3000005 'a state of several writes'
	python3 -c 'import os; os.ftruncate(9, 0); os.write(9, b"[4]")' || fail 'ftruncate'
	assert_file k '[4]' 'truncating is nothing'
	expect_errno EPERM 'os.truncate("k", 0)'
	bash -c 'echo 5 >&9' || fail 'a child writes'
	assert_file k 5 'of a child'
	printf '{"never":' >&9
) || exit 1
expect_log a 'leases/k: the text is not JSON .*: Invalid argument'
expect_log a 'leases/k: closed with incomplete JSON, which is dropped .*: Invalid argument'
assert_file k 5 'the state outlives the lock'
: >k
assert_file k 5 'O_TRUNC is nothing'
assert_file "$B/k" 5 'on the other mount'

# --- a read costs the look-up's request, a lock of a new key one, a write one
before=$(gets)
cat k >/dev/null
assert_equal $(($(gets) - before)) 1 'requests of a cat'
before=$(puts)
flock cost true
assert_equal $(($(puts) - before)) 2 'requests of a lock and its end'

# --- attributes of the asker's period and of the document
(
	exec 9>attr
	assert_equal "$(getfattr -d attr 2>/dev/null)" '' 'nothing is there yet'
	flock 9
	assert_equal "$(getfattr attr | grep cairn | sort | tr '\n' ' ')" \
		'user.cairn.deadline user.cairn.epoch user.cairn.etag user.cairn.held ' 'listed'
	assert_equal "$(xattr epoch attr) $(xattr held attr)" '1 1' 'own epoch, held'
	assert_match "$(xattr deadline attr)" '^20[0-9-]+T[0-9:]+\.[0-9]{6}Z$' 'deadline'
	holder=$(jq -r .holder "$DIR/bucket/attr")
	assert_equal "$(xattr holder attr)" "$holder" 'the holder, to its kin'
	assert_equal "$(xattr epoch "$B/attr") $(xattr held "$B/attr")" '1 1' 'the document'
	expect_error 'No such attribute' getfattr -n user.cairn.holder "$B/attr"
	expect_error 'No such attribute' getfattr -n user.cairn.renew attr
	succeed setfattr -n user.cairn.epoch -v 77 attr
	assert_equal "$(xattr epoch attr)" 1 'a listed name is replayed without effect'
	expect_error 'Operation not permitted' setfattr -n user.cairn.nonsense -v 1 attr
	expect_error 'Operation not permitted' setfattr -n user.cairn.renew -v 1 "$B/attr"
	expect_error 'Operation not permitted' setfattr -n user.cairn.ttl -v 1 "$B/attr"
	expect_error 'Operation not supported' setfattr -n user.other -v 1 attr
	before=$(jq .deadline_at "$DIR/bucket/attr")
	succeed setfattr -n user.cairn.renew -v 1 attr
	[ "$(jq .deadline_at "$DIR/bucket/attr")" != "$before" ] || fail 'not renewed'
	expect_error 'Invalid argument' setfattr -n user.cairn.release -v '{' attr
	succeed setfattr -n user.cairn.release -v '{"final": 1}' attr
	assert_file attr '{"final":1}' 'the final state'
	assert_equal "$(xattr held attr) $(jq .holder "$DIR/bucket/attr")" '0 null' 'released'
	expect_error 'Stale file handle' bash -c 'echo 1 >&9'
	flock -n "$B/attr" true || fail 'released, but not free'
	assert_equal "$(xattr epoch attr) $(xattr epoch "$B/attr")" '1 2' 'never the next one'"'"'s epoch'
	succeed flock -n 9
	assert_equal "$(xattr epoch attr)" 3 'locked again, a new period'
	echo 1 >&9
	flock -u 9
	expect_error 'Operation not permitted' bash -c 'echo 2 >&9'
	assert_equal "$(xattr epoch attr) $(xattr held attr)" '3 0' 'unlocked'
) || exit 1
expect_log a 'attr: .*Invalid argument'
expect_log a 'leases/attr: write: epoch 1 was released .*: Stale file handle'
assert_equal "$(xattr held attr)" 0 'nobody holds'
expect_error 'Operation not permitted' setfattr -n user.cairn.release -v 1 attr

# --- cooperative writes: from outside, by rename, on the state that was read
flock coop sh -c 'echo "{\"n\":1}" >coop' 2>/dev/null && fail 'a path write is no write through the lock'
(exec 9>"$B/coop"; flock 9; echo '{"n":1}' >&9)
echo '{"n":9}' >.unread
expect_error 'Device or resource busy' mv .unread coop
expect_log a 'leases/coop: nothing shows which state .*: Device or resource busy'
expect_error 'No such file' mv .unread absent
expect_error 'File exists' ln .unread coop
expect_error 'No such file' ln .unread absent
jq '.n += 1' coop >.next && mv .next coop || fail 'a cooperative write'
assert_file coop '{"n":2}' 'written cooperatively'
assert_equal "$(jq -c '[.epoch, .holder]' "$DIR/bucket/coop")" '[2,null]' 'the document is the same otherwise'
value=$(cat coop)
jq '.n += 1' "$B/coop" >"$B/.next" && mv "$B/.next" "$B/coop" || fail 'on the other mount'
echo "$value" >.next
expect_error 'Device or resource busy' mv .next coop
expect_log a 'coop: .*the state has been written by somebody else.*: Device or resource busy'
assert_file coop '{"n":3}' 'the lost race wrote nothing'
setfattr -n user.cairn.if_match -v '*' .next
succeed mv .next coop
assert_file coop '{"n":2}' 'if_match *'
etag=$(xattr etag coop)
echo '{"n":5}' >.next
setfattr -n user.cairn.if_match -v "$etag" .next
succeed mv .next coop
echo '{"n":6}' >.next
setfattr -n user.cairn.if_match -v "$etag" .next
expect_error 'Device or resource busy' mv .next coop
expect_log a 'leases/coop: it is not the stated version; .*: Device or resource busy'
echo '{' >.next
expect_errno EINVAL 'os.rename(".next", "coop")'
expect_log a 'coop: .*: Invalid argument'
python3 - <<'PYTHON' || fail 'mkstemp and replace'
import os, tempfile
assert open('coop').read() == '{"n":5}\n'
fd, name = tempfile.mkstemp(dir='.')
os.write(fd, b'{"n":7}')
os.close(fd)
os.replace(name, 'coop')
assert open('coop').read() == '{"n":7}\n'
PYTHON

# --- the holder notices a cooperative write that came after its last read
(
	exec 9<>coop
	flock 9
	renew=$(jq .deadline_at "$DIR/bucket/coop")
	cooperate() { jq ".by_b = $1" "$B/coop" >"$B/.c" && mv "$B/.c" "$B/coop"; }
	cooperate 1 || fail 'while it is held'
	assert_equal "$(jq .deadline_at "$DIR/bucket/coop")" "$renew" 'the deadline is kept'
	echo '{"n":10}' >&9 || fail 'a holder that never read replaces'
	assert_file coop '{"n":10}' 'replaced'
	cooperate 2 || fail 'again'
	expect_error 'Device or resource busy' bash -c 'echo "{\"n\":11}" >&9'
	expect_error 'Device or resource busy' bash -c 'echo "{\"n\":11}" >&9'
	assert_equal "$(jq .by_b coop)" 2 'read again'
	echo '{"n":12}' >&9 || fail 'after reading again'
	echo '{"n":13}' >&9 || fail 'after an own write'
	assert_file coop '{"n":13}' 'written'
	cooperate 3
	assert_equal "$(python3 -c 'import os; print(os.pread(9, 100, 0).decode())')" '{"by_b":3,"n":13}' 'read through the lock'
	echo '{"n":14}' >&9 || fail 'after reading through the lock'
	jq '.n += 1' coop >.mine && mv .mine coop || fail 'the holder cooperates with itself'
	echo '{"n":16}' >&9 || fail 'after its own cooperative write'
	setfattr -n user.cairn.renew -v 1 coop
	cooperate 4 || fail 'renewals do not disturb cooperative writes'
) || exit 1
expect_log a 'coop: .*the state has been written by somebody else.*: Device or resource busy'
expect_log a 'coop: .*the state has been written by somebody else.*: Device or resource busy'
assert_file coop '{"by_b":4,"n":16}' 'the last of them'

# --- what Python's cairndb may hold is shown unharmed
printf '%s' '{"deadline_at":"2001-01-01T00:00:00+00:00","epoch":41,"holder":"h","state":[NaN,123456789012345678901234567890,"\ud800"]}' >"$DIR/bucket/odd"
assert_file odd '[NaN,123456789012345678901234567890,"\ud800"]' 'an odd state'
assert_equal "$(xattr epoch odd) $(xattr held odd) $(xattr deadline odd)" '41 0 2001-01-01T00:00:00.000000Z' 'an expired lease'
flock odd true || fail 'taking over an odd state'
assert_file odd '[NaN,123456789012345678901234567890,"\ud800"]' 'kept'
assert_equal "$(xattr epoch odd)" 42 'the next epoch'

cd /
stop_mount a
stop_mount b
