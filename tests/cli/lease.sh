# lease acquire, renew, state, release, attach and show.
. "${0%/*}/lib.sh"

mkdir "$CAIRNDB_STORAGE_PATH"
expect 1 "$cairn" lease show l
expect 0 "$cairn" lease acquire l --json
json '.key == "l" and .epoch == 1 and (.holder | length) == 32 and .state == null'
holder=$(jq -r .holder "$out")
deadline=$(jq -r .deadline "$out")

# Held: by one, shown without the credential.
expect 1 "$cairn" lease acquire l
told 'held'
grep -q "$holder" "$err" && fail 'the holder string is a credential'
expect 0 "$cairn" lease show l
grep -Eq '^held epoch 1 deadline [^ ]+Z state null$' "$out" || fail show
expect 0 "$cairn" lease show l --json
json ".status == \"held\" and .epoch == 1 and .deadline == \"$deadline\""
grep -q "$holder" "$out" && fail 'the holder string is a credential'

# The holder string acts; another, or none, does not.
expect 0 "$cairn" lease attach l --holder "$holder"
grep -Eq '^epoch 1 deadline [^ ]+Z$' "$out" || fail attach
expect 1 "$cairn" lease attach l --holder other
expect 1 "$cairn" lease renew l --holder other
expect 2 "$cairn" lease renew l
told 'lease renew: --holder'
expect 0 "$cairn" lease renew --holder "$holder" --ttl 1000 l --json
json ".epoch == 1 and .deadline > \"$deadline\" and (has(\"holder\") | not)"

# The state: as the holder, and from outside.
expect 0 "$cairn" lease state l --holder "$holder" -- jq '{n: 1}'
printed '{"n":1}'
expect 0 "$cairn" lease state l -- jq '.n += 1'
printed '{"n":2}'
expect 0 "$cairn" lease state l --json -- jq '.n += 1'
json '.key == "l" and .state.n == 3'
expect 1 "$cairn" lease state l --holder other -- jq '.n += 1'
expect 1 "$cairn" lease state l -- false
expect 1 "$cairn" lease state nothing -- cat
expect 0 "$cairn" lease show l --json
json '.epoch == 1 and .status == "held" and .state.n == 3'

# Released: the document and its epoch stay, a final state may be set.
expect 2 "$cairn" lease release l --holder "$holder" --state nonsense
told '--state'
expect 0 "$cairn" lease release l --holder "$holder" --state '{"done": true}'
expect 1 "$cairn" lease release l --holder "$holder"
expect 0 "$cairn" lease show l
grep -q '^free epoch 1 .* state {"done":true}$' "$out" || fail show
expect 1 "$cairn" lease renew l --holder "$holder"

# A transition makes the new state, or says no.
expect 1 "$cairn" lease acquire l --transition 'exit 9'
told 'acquire lease l: sh exited with status 9'
expect 0 "$cairn" lease show l --json
json '.status == "free" and .epoch == 1'
expect 0 "$cairn" lease acquire l --holder 'me, ö' --ttl 0.3 --transition "jq '.again = 1'"
grep -Eq '^epoch 2 deadline [^ ]+Z holder me, ö$' "$out" || fail 'the human line'
expect 0 "$cairn" lease acquire fresh --transition 'jq "[.]"' --json
json '.state == [null]'

# An expired lease can be taken, unless stealing is not allowed.
eventually lease_status l expired
expect 1 "$cairn" lease acquire l --no-steal
expect 1 "$cairn" lease attach l --holder 'me, ö'
expect 0 "$cairn" lease acquire l --json
json '.epoch == 3 and .state == {"done": true, "again": 1}'

# What is no lease document.
printf '{"epoch":"x"}' | expect 0 "$cairn" put wrong
expect 3 "$cairn" lease acquire wrong
told 'wrong.*epoch'
expect 3 "$cairn" lease show wrong

# Eight processes: one acquires.
racers=
for racer in 1 2 3 4 5 6 7 8; do
	(
		"$cairn" lease acquire race 2>/dev/null >&2
		echo $? >"$dir/status.$racer"
	) &
	racers="$racers $!"
done
for pid in $racers; do
	wait "$pid" || fail 'a racer'
done
same "$(cat "$dir"/status.? | sort | uniq -c | awk '{printf "%s*%s ", $1, $2}')" '1*0 7*1 '
exit 0
