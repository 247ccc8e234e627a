# get, put, rm, ls and wait: bytes, conditions, listings.
. "${0%/*}/lib.sh"

# Bytes come back as they went in, whatever they are.
head -c 3000000 /dev/urandom >"$dir/random"
expect 0 "$cairn" put bin/random "$dir/random"
"$cairn" get bin/random | cmp - "$dir/random" || fail 'the bytes are not the same'
printf 'a\0b' | expect 0 "$cairn" put nul
"$cairn" get nul | od -An -c | grep -q 'a  \\0   b' || fail 'NUL was lost'
: | expect 0 "$cairn" put empty -
expect 0 "$cairn" get empty
[ ! -s "$out" ] || fail 'an empty object is not empty'
expect 0 "$cairn" get --json nul
json '.key == "nul" and .size == 3 and .data == "YQBi" and (.modified | endswith("Z"))'

# The etag that a put prints is the condition of the next.
printf one | expect 0 "$cairn" put k
first=$(cat "$out")
printf two | expect 0 "$cairn" put k --if-match "$first" --json
json ".key == \"k\" and .size == 3 and .etag != \"$first\""
second=$(jq -r .etag "$out")
printf three | expect 1 "$cairn" put k --if-match "$first"
told k
printf three | expect 1 "$cairn" put k --if-absent
same "$("$cairn" get k)" two
printf new | expect 0 "$cairn" put --if-absent fresh

# Absent, and a condition that does not hold.
expect 1 "$cairn" get nothing
told nothing
expect 1 "$cairn" rm nothing
expect 1 "$cairn" rm k --if-match "$first"
expect 0 "$cairn" rm --if-match "$second" k
expect 1 "$cairn" get k

# Listings: one level, all, from a prefix, in byte order; the engine's own keys are not shown.
expect 0 "$cairn" claim dir/deep/x 1
expect 0 "$cairn" ls
printed "$(printf 'bin/\ndir/\nempty\nfresh\nnul')"
expect 0 "$cairn" ls -r
printed "$(printf 'bin/random\ndir/deep/x\nempty\nfresh\nnul')"
expect 0 "$cairn" ls dir/
printed dir/deep/
expect 0 "$cairn" ls nowhere/
[ ! -s "$out" ] || fail 'nowhere is listed'
expect 0 "$cairn" ls -0 dir/ --recursive
tr '\0' '\n' <"$out" | grep -qx dir/deep/x || fail 'no NUL behind the key'
expect 0 "$cairn" ls -l nul
grep -Eq '^ +3  [0-9-]{10}T[0-9:.]{15}Z  nul$' "$out" || fail 'the long form'
expect 0 "$cairn" ls --json
json 'select(.key == "nul") | .size == 3 and (.modified | endswith("Z"))'
same "$(jq -r '.prefix // empty' "$out" | tr '\n' ' ')" 'bin/ dir/ '
i=0
while [ $i -lt 200 ]; do
	printf '%s' "$i" >"$CAIRNDB_STORAGE_PATH/dir/many$i"
	i=$((i + 1))
done
same "$("$cairn" ls -r dir/many | wc -l)" 200

# Waiting: for a key, for a change, in vain.
expect 1 "$cairn" wait later --timeout 0
told later
expect 1 "$cairn" wait later --timeout 0.1 --poll 0.02
"$cairn" wait later --poll 0.02 --timeout inf >"$dir/waited" &
waiter=$!
started="$started $waiter"
printf v1 | expect 0 "$cairn" put later
etag=$(cat "$out")
wait "$waiter" || fail "wait: exit status $?"
same "$(cat "$dir/waited")" "$etag"
expect 1 "$cairn" wait later --changed "$etag" --timeout 0.1 --poll 0.02
"$cairn" wait later --changed "$etag" --poll 0.02 --json >"$dir/waited" &
waiter=$!
started="$started $waiter"
printf v2 | expect 0 "$cairn" put later
wait "$waiter" || fail "wait: exit status $?"
same "$(jq -r .etag "$dir/waited")" "$(cat "$out")"
exit 0
