#!/bin/bash
# docs/: each idiom of DESIGN "docs/" by itself: what is based on what, and what is refused.
. "$(dirname "$0")/lib.sh"

start_mount a
start_mount b
A=$DIR/a/docs B=$DIR/b/docs
busy='Device or resource busy'
# Somebody else, who is no kin of ours on this mount.
other() { "$CAIRN" --store "$DIR/bucket" doc update "$1" --create '{"n":0}' -- jq -c "$2" >/dev/null || fail "other $*"; }
base() { other "$1" '{"n":1}'; }
n() { jq .n "$B/$1"; }

# Rename: based on what the makers of the staging file read.
base k
succeed sh -c 'jq -c ".n += 1" "$1/k" >"$1/.t" && mv "$1/.t" "$1/k"' sh "$A"
assert_equal "$(n k)" 2 'jq and mv'
x=$(cat "$A/k")
other k '.n = 10'
printf '%s\n' "$x" >"$A/.t"
expect_error "$busy" mv "$A/.t" "$A/k"
expect_log a 'docs/k: it is not the version that was read before.*busy'
assert_file "$A/.t" '{"n":2}' 'the staging file is kept'
assert_equal "$(n k)" 10 'nothing was lost'
x=$(cat "$A/k")
jq -c '.n += 1' <<<"$x" >"$A/.t"
succeed mv "$A/.t" "$A/k"
assert_equal "$(n k)" 11 'after reading again'

# Nothing read: absent, it is created; there, it is refused, until somebody states a version.
echo '{"n":5}' >"$A/.new"
succeed mv "$A/.new" "$A/new"
assert_equal "$(n new)" 5 'created by rename'
base untouched
python3 - "$A" <<'END' || fail 'nothing read'
import errno, os, sys
docs = sys.argv[1]
with open(docs + "/.u", "w") as file:
    file.write('{"n":7}')
try:
    os.rename(docs + "/.u", docs + "/untouched")
    raise SystemExit("replaced blindly")
except OSError as error:
    assert error.errno == errno.EBUSY, error
etag = os.getxattr(docs + "/untouched", "user.cairn.etag")
os.setxattr(docs + "/.u", "user.cairn.if_match", b"0" * 32)
try:
    os.rename(docs + "/.u", docs + "/untouched")
    raise SystemExit("a wrong version")
except OSError as error:
    assert error.errno == errno.EBUSY, error
os.setxattr(docs + "/.u", "user.cairn.if_match", etag)
assert os.getxattr(docs + "/.u", "user.cairn.if_match") == etag
os.rename(docs + "/.u", docs + "/untouched")
with open(docs + "/.u", "w") as file:
    file.write('{"n":8}')
os.setxattr(docs + "/.u", "user.cairn.if_match", b"*")
os.rename(docs + "/.u", docs + "/untouched")
END
expect_log a 'docs/untouched: it is there, and nothing shows which version.*busy'
expect_log a 'docs/untouched: it is not the stated version.*busy'
assert_equal "$(n untouched)" 8 'if_match and *'

# cp -a carries the version along; noreplace is put-if-absent.
base k
succeed cp -a "$A/k" "$A/.k"
other k '.n = 20'
echo '{"n":21}' >"$A/.k"
expect_error "$busy" mv "$A/.k" "$A/k"
expect_log a 'docs/k: it is not the stated version.*busy'
rm "$A/.k"
succeed cp -a "$A/k" "$A/.k"
echo '{"n":22}' >"$A/.k"
succeed mv "$A/.k" "$A/k"
assert_equal "$(n k)" 22 'cp -a, edit, mv'
echo '{"n":1}' >"$A/.x"
expect_errno EEXIST 'os.link(sys.argv[1], sys.argv[2])' "$A/.x" "$A/k"
expect_errno EEXIST 'libc = ctypes.CDLL(None, use_errno=True)
if libc.renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 1): raise OSError(ctypes.get_errno(), "")' "$A/.x" "$A/k"
expect_errno EINVAL 'libc = ctypes.CDLL(None, use_errno=True)
if libc.renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 2): raise OSError(ctypes.get_errno(), "")' "$A/.x" "$A/k"
succeed ln "$A/.x" "$A/linked"
assert_equal "$(n linked)" 1 'ln creates'
assert_file "$A/.x" '{"n":1}' 'and the staging file stays'

# In place: whole new content, committed at the write that completes it.
base p
succeed bash -c 'echo "{\"n\":2}" >"$1/p"' bash "$A"
assert_equal "$(n p)" 2 '>'
for tool in 'cp "$1" "$2"' 'tee "$2" <"$1" >/dev/null' 'dd if="$1" of="$2" status=none' 'install -m 644 "$1" "$2"' \
	'cat "$1" >"$2"' 'sponge "$2" <"$1"' 'cp -f "$1" "$2"' 'rsync --inplace "$1" "$2"' 'mv "$1" "$2"'; do
	echo '{"n":3,"tool":"'"${tool%% *}"'"}' >"$DIR/value"
	succeed setsid -w sh -c "$tool" sh "$DIR/value" "$A/p"
	assert_equal "$(jq -r .tool "$B/p")" "${tool%% *}" "$tool"
done
base p
python3 - "$A/p" "$CAIRN" "$DIR/bucket" <<'END' || fail 'in place, from python'
import errno, json, os, subprocess, sys
doc, cairn, bucket = sys.argv[1:]
value = json.load(open(doc))
def elsewhere():
    subprocess.run([cairn, "--store", bucket, "doc", "update", "p", "--", "jq", ".n += 10"], check=True, stdout=subprocess.DEVNULL)
value["n"] += 1
with open(doc, "w") as file:
    json.dump(value, file)
assert json.load(open(doc)) == {"n": 2}
with open(doc, "r+") as file:
    value = json.load(file)
    value["long"] = "x" * 100000
    file.seek(0)
    json.dump(value, file)
    file.truncate()
assert json.load(open(doc))["long"] == "x" * 100000
value = json.load(open(doc))
elsewhere()
file = open(doc, "w")
try:
    json.dump({"n": 0}, file)
    file.flush()
    raise SystemExit("an update was lost")
except OSError as error:
    assert error.errno == errno.EBUSY, error
try:
    file.close()
    raise SystemExit("an update was lost at the close")
except OSError as error:
    assert error.errno == errno.EBUSY, error
assert json.load(open(doc))["n"] == 12
END
expect_log a 'docs/p: it is not the version that was read before.*busy'
expect_log a 'docs/p: what this descriptor wrote was refused.*busy'
allow_log a 'docs/p: what this descriptor wrote was refused.*busy'
# A retry in place without reading again is refused, however often.
base again
succeed bash -c '
	x=$(cat "$1/again")
	"$2" --store "$3" doc update again -- jq -c ".n += 10" >/dev/null || exit 9
	for i in 1 2 3; do ! echo "$x" 2>/dev/null >"$1/again" || exit $i; done
	x=$(jq -c ".n += 1" "$1/again") && echo "$x" >"$1/again"' bash "$A" "$CAIRN" "$DIR/bucket"
assert_equal "$(n again)" 12 'in place, after reading again'
expect_log a 'docs/again: it is not the version that was read before.*busy'
expect_log a 'docs/again: it was refused before, and has not been read since.*busy'
allow_log a 'docs/again: it was refused before'
expect_errno EINVAL 'os.truncate(sys.argv[1], 0)' "$A/p"
expect_log a 'docs/p: cutting a document'
succeed bash -c ': >"$1/p"' bash "$A"
assert_equal "$(n p)" 12 'cut and not written: as it was'
expect_error 'Invalid argument' bash -c 'echo "{\"more\":1}" >>"$1/p"' bash "$A"
expect_log a 'docs/p: the text is not one JSON value.*Invalid argument'
expect_error 'Invalid argument' bash -c 'cat "$1/p" >/dev/null; exec 3>"$1/p"; echo "{\"n\":30}" >&3; echo "{\"n\":31}" >&3' bash "$A"
expect_log a 'docs/p: the text is not one JSON value.*Invalid argument'
assert_equal "$(n p)" 30 'two values through one descriptor: the first'
succeed bash -c 'cat "$1/p" >/dev/null; echo "{\"n\":32}" 1<>"$1/p"' bash "$A"
assert_equal "$(n p)" 32 '1<>'

# Bad input is refused at once, and what was there stays.
base bad
for text in 'not json' '{"a":1' '{"a":1}}' "{'a':1}" '{"a":01}' '[1,]' $'\xff'; do
	printf '%s' "$text" >"$DIR/value"
	expect_error 'Invalid argument' cp "$DIR/value" "$A/bad"
	printf '%s' "$text" >"$A/.bad"
	expect_errno EINVAL 'os.rename(sys.argv[1], sys.argv[2])' "$A/.bad" "$A/bad" # mv words it otherwise
done
allow_log a 'bad: .*Invalid argument'
python3 -c 'print("[" * 501 + "]" * 501)' >"$A/.deep"
expect_errno EINVAL 'os.rename(sys.argv[1], sys.argv[2])' "$A/.deep" "$A/bad"
python3 -c 'print("[" * 500 + "]" * 500)' >"$A/.deep"
succeed mv "$A/.deep" "$A/deep"
head -c $((65 << 20)) /dev/zero | tr '\0' x | sed 's/.*/"&"/' >"$DIR/big"
expect_error 'File too large' cp "$DIR/big" "$A/big"
expect_log a 'docs/big: .*File too large'
cp "$DIR/big" "$A/.big"
expect_error 'File too large' mv "$A/.big" "$A/big"
expect_log a 'docs/big: .*File too large'
rm "$A/.big" "$DIR/big"
assert_equal "$(n bad)" 1 'it is as it was'
odd='{"a":123456789012345678901234567890,"b":NaN,"c":"\ud800","d\u0000":1,"e":Infinity}'
printf '%s' '{"e":1e400,"d\u0000":1,"c":"\ud800","b":NaN,"a":123456789012345678901234567890}' >"$A/.odd"
succeed mv "$A/.odd" "$A/odd"
assert_file "$B/odd" "$odd" 'what other JSON readers refuse is kept'
succeed sed -i 's/"b":NaN/"b":-Infinity/' "$A/odd"
assert_file "$B/odd" "${odd/NaN/-Infinity}" 'and edited'

# Unlink.
base u
x=$(cat "$A/u")
other u '.n = 2'
expect_error "$busy" rm "$A/u"
expect_log a 'docs/u: unlink: it is not the version that was read.*busy'
printf '%s\n' "$x" >"$DIR/value"
expect_error "$busy" mv "$DIR/value" "$A/u"
expect_log a 'docs/u: .*busy'
assert_equal "$(n u)" 2 'mv from another filesystem lost nothing'
x=$(cat "$A/u")
succeed rm "$A/u"
printf '%s\n' "$x" >"$A/u" || fail 'create after unlink'
assert_equal "$(n u)" 2 'created again by who unlinked it'
x=$(cat "$A/u")
"$CAIRN" --store "$DIR/bucket" doc delete u
printf '%s\n' "$x" >"$A/.u"
expect_error "$busy" mv "$A/.u" "$A/u"
expect_log a 'docs/u: .*busy'
[ ! -e "$B/u" ] || fail 'a deleted document came back'

# Key onto key, and what is refused.
base from
succeed setsid -w mv "$A/from" "$A/to"
assert_equal "$(n to)" 1 'mv key key'
[ ! -e "$B/from" ] || fail 'the source is still there'
base from
expect_error "$busy" setsid -w mv "$A/from" "$A/to"
expect_log a 'docs/to: it is there, and nothing shows.*busy'
assert_equal "$(n from)" 1 'the source stays'
expect_errno ENOTSUP 'os.rename(sys.argv[1], sys.argv[2])' "$A/from" "$DIR/a/claims/from"
succeed cp -a "$A/to" "$A/copy"
assert_equal "$(n copy)" 1 'cp -a of a document'

# Editors.
base v
succeed vim -es -u NONE -c '%s/1/2/' -c 'wq' "$A/v"
assert_equal "$(n v)" 2 'vim'
succeed vim -es -u NONE -c 'set backup' -c '%s/2/3/' -c 'w!' -c 'q' "$A/v"
assert_equal "$(n v)" 3 'vim :w! with a backup'
rm -f "$A/v~"
other v '.n = 4'
succeed perl -pi -e 's/4/5/' "$A/v"
assert_equal "$(n v)" 5 'perl -pi'
succeed sed -i 's/5/6/' "$A/v"
assert_equal "$(n v)" 6 'sed -i'
tmux -L "cairnfs-$$" new-session -d -x 80 -y 24 "nano -I '$A/v'"
poll_until 10 'nano shows the document' sh -c 'tmux -L "$1" capture-pane -p | grep -q n.:6' sh "cairnfs-$$"
tmux -L "cairnfs-$$" send-keys End BSpace BSpace 7 '}' C-o Enter C-x
poll_until 10 'nano has saved' sh -c '[ "$(jq .n "$1")" = 7 ]' sh "$B/v"
poll_until 10 'nano has ended' sh -c '! tmux -L "$1" has-session 2>/dev/null' sh "cairnfs-$$"
assert_equal "$(ls -A "$A" | grep '^v' | tr '\n' ' ')" 'v ' 'editors leave nothing behind'
