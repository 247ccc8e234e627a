# doc get, update and delete: no update is lost, a command that fails writes nothing.
. "${0%/*}/lib.sh"

mkdir "$CAIRNDB_STORAGE_PATH"
expect 1 "$cairn" doc get stats
expect 1 "$cairn" doc update stats -- jq .
told stats
expect 0 "$cairn" doc update stats --create '{"runs": 0}' -- jq '.runs += 1'
printed '{"runs":1}'
expect 0 "$cairn" doc update --json stats -- jq '.runs += 1'
json '.key == "stats" and .value.runs == 2 and (.etag | length) == 32'
expect 0 "$cairn" doc get stats
printed '{"runs":2}'
expect 0 "$cairn" doc get stats --json
json '.value == {"runs": 2}'
same "$("$cairn" get stats)" '{"runs":2}'

# The value arrives with a newline; a command need not read it.
expect 0 "$cairn" doc update stats -- sh -c 'read -r line && printf "[%s]" "$line"'
printed '[{"runs":2}]'
expect 0 "$cairn" doc update stats -- echo '{"runs":2}'

# A command that fails, is killed, prints no JSON or nothing, or is not there.
expect 1 "$cairn" doc update stats -- sh -c 'echo 7; exit 5'
told 'stats: sh exited with status 5'
expect 1 "$cairn" doc update stats -- sh -c 'kill -9 $$'
told 'signal 9'
expect 1 "$cairn" doc update stats -- echo nonsense
told 'no JSON'
expect 1 "$cairn" doc update stats -- true
expect 2 "$cairn" doc update stats -- "$dir/no-such-command"
told 'cannot run .*no-such-command: No such file'
same "$("$cairn" doc get stats)" '{"runs":2}'

# A check judges what is read and what is to be written; what it prints is no answer.
expect 0 "$cairn" doc update stats --check 'jq -e ".runs > 0"' -- jq '.runs += 1'
printed '{"runs":3}'
expect 1 "$cairn" doc update stats --check 'jq -e ".runs < 4"' -- jq '.runs += 1'
told 'check document stats: sh exited with status 1'
same "$("$cairn" doc get stats)" '{"runs":3}'

# A value larger than any pipe's buffer, both ways at once.
head -c 4000000 /dev/zero | tr '\0' x | sed 's/^/"/; s/$/"/' | expect 0 "$cairn" put large
expect 0 "$cairn" doc update large -- cat
same "$(wc -c <"$out")" 4000003
expect 0 "$cairn" doc update large -- sh -c 'cat; printf "     "'
head -c 70000000 /dev/zero | tr '\0' ' ' >"$dir/blank"
expect 1 "$cairn" doc update stats -- cat "$dir/blank"
told 'more than'

# What Python's json holds, and an object that is no JSON.
expect 0 "$cairn" doc update odd --create '[NaN,1e400,123456789012345678901]' -- cat
printed '[NaN,Infinity,123456789012345678901]'
printf '{"a":' | expect 0 "$cairn" put broken
expect 3 "$cairn" doc get broken
told broken
expect 3 "$cairn" doc update broken -- cat

# Sixteen processes, five updates each.
writers=
for writer in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
	(
		for round in 1 2 3 4 5; do
			"$cairn" doc update counter --create '{"n":0}' --attempts 1000 -- \
				jq '.n += 1' >/dev/null || exit 1
		done
	) &
	writers="$writers $!"
done
for pid in $writers; do
	wait "$pid" || fail 'an update failed'
done
same "$("$cairn" doc get counter)" '{"n":80}'

# A race that is lost in every attempt.
expect 1 "$cairn" doc update counter --attempts 2 -- \
	sh -c '"$0" doc update counter -- jq ".n += 1" >/dev/null; cat' "$cairn"
told '2 attempts'
same "$("$cairn" doc get counter)" '{"n":82}'

# The time that a command takes is not the store's.
expect 0 "$cairn" doc update counter --timeout 0.5 -- sh -c 'sleep 1; cat'

expect 0 "$cairn" doc delete counter
expect 1 "$cairn" doc delete counter
expect 1 "$cairn" doc get counter
exit 0
