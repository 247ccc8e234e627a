# claim: one winner, and everybody prints its value.
. "${0%/*}/lib.sh"

expect 0 "$cairn" claim job '{"b": 1, "a": "é"}'
printed '{"a":"\u00e9","b":1}'
expect 1 "$cairn" claim job 2
printed '{"a":"\u00e9","b":1}'
expect 1 "$cairn" claim --json job 2
json '.key == "job" and .won == false and .value.b == 1 and (.etag | length) == 32'
expect 0 "$cairn" claim --json other '"text"'
json '.won and .value == "text"'
printf '[1,\n2]\n' | expect 0 "$cairn" claim from/input -
printed '[1,2]'

# What jansson could not hold goes through unharmed.
expect 0 "$cairn" claim odd '[123456789012345678901234567890,NaN,"\ud800"]'
printed '[123456789012345678901234567890,NaN,"\ud800"]'
expect 1 "$cairn" claim --json odd 0
grep -qF '"value":[123456789012345678901234567890,NaN,"\ud800"],' "$out" || fail 'value was changed'

# What is no JSON is refused, with a hint.
expect 2 "$cairn" claim bad text
told 'VALUE: .*"text"'
expect 2 "$cairn" claim bad '{"a":1'
expect 2 "$cairn" claim bad ''
expect 1 "$cairn" get bad
expect 2 "$cairn" claim log/1 1
told log/
expect 2 "$cairn" claim "$(printf %01025d 0)" 1

# Eight processes race for each of ten keys.
round=0
while [ $round -lt 10 ]; do
	racers=
	for racer in 1 2 3 4 5 6 7 8; do
		(
			"$cairn" claim "race/$round" "\"$racer\"" >"$dir/value.$racer"
			echo $? >"$dir/status.$racer"
		) &
		racers="$racers $!"
	done
	for pid in $racers; do
		wait "$pid" || fail "a racer of round $round"
	done
	same "$(cat "$dir"/status.? | sort | uniq -c | awk '{printf "%s*%s ", $1, $2}')" '1*0 7*1 '
	winner=$(grep -lx 0 "$dir"/status.?)
	same "$(sort -u "$dir"/value.?)" "\"${winner##*.}\""
	round=$((round + 1))
done
exit 0
