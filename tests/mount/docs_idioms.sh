#!/bin/bash
# The issue's real input: every package of dpkg's status as a doc, written through one mount and read
# back through the other; then 16 processes over both mounts count in random ones, by each idiom that
# scripts use: the sum of the counters is the number of successes, and nobody is refused for ever.
. "$(dirname "$0")/lib.sh"

start_mount a
start_mount b
for mount in a b; do
	# A lost race is refused, and says so.
	allow_log $mount 'docs/packages/.*: Device or resource busy'
done
mkdir "$DIR/a/docs/packages"

# One pipeline writes them.
STATUS=/var/lib/dpkg/status
python3 -c '
import json, re, sys
for paragraph in open(sys.argv[1], encoding="utf-8").read().split("\n\n"):
    fields = dict(re.findall(r"^([A-Za-z-]+): ?(.*(?:\n .*)*)", paragraph, re.M))
    if fields:
        fields["count"] = 0
        print(fields["Package"] + ":" + fields.get("Architecture", "") + "\t" + json.dumps(fields))
' $STATUS >"$DIR/packages"
while IFS=$'\t' read -r package fields; do
	printf '%s\n' "$fields" >"$DIR/a/docs/packages/$package" || fail "write $package"
done <"$DIR/packages"
TOTAL=$(wc -l <"$DIR/packages")
assert_equal "$(find "$DIR/b/docs/packages" -type f | wc -l)" "$TOTAL" 'packages'
(cd "$DIR/b/docs/packages" && while IFS=$'\t' read -r package fields; do
	printf '%s\t' "$package"
	cat "$package"
done <"$DIR/packages") >"$DIR/back"
python3 - "$DIR/packages" "$DIR/back" <<'END' || fail 'what was read back'
import json, sys
for written, read in zip(open(sys.argv[1]), open(sys.argv[2]), strict=True):
    name, text = written.split("\t", 1)
    again, canonical = read.rstrip("\n").split("\t", 1)
    assert name == again and canonical == json.dumps(
        json.loads(text), separators=(",", ":"), sort_keys=True), name
END

# Few documents, so that they race.
cut -f1 "$DIR/packages" | head -n 40 >"$DIR/names"
UPDATES=$(($(scaled 2000) / 16 + 1))

# sed cannot add: it replaces the counter, written in unary, by one x more.
cat >"$DIR/worker" <<'END'
#!/bin/bash
idiom=$1 me=$2 updates=$3
cd "$4" || exit 1
mapfile -t names <"$DIR/names"
RANDOM=$me
refused=0
case $idiom in
jq_mv) update() { jq -c '.count += 1' "$1" >".t$me" && mv ".t$me" "$1"; } ;;
cat_mv) update() {
	x=$(cat "$1")
	jq -c '.count += 1' <<<"$x" >".t$me" && mv ".t$me" "$1"
} ;;
sed) update() { sed -i 's/"unary":"/&x/' "$1"; } ;;
perl) update() { perl -e '
	use strict; my ($k, $t) = @ARGV; local $/; open(my $f, "<", $k) or exit 1; my $x = <$f>; close($f);
	$x =~ s/"count":(\d+)/sprintf("\"count\":%d", $1 + 1)/e;
	open(my $o, ">", $t) or exit 1; print $o $x; close($o) or exit 1; rename($t, $k) or exit 1' "$1" ".t$me"; } ;;
python) update() { python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
d["count"] += 1
with open(sys.argv[1], "w") as f:
    json.dump(d, f)' "$1"; } ;;
replace) update() { python3 -c '
import json, os, sys
d = json.load(open(sys.argv[1]))
d["count"] += 1
with open(sys.argv[2], "w") as f:
    json.dump(d, f)
os.replace(sys.argv[2], sys.argv[1])' "$1" ".t$me"; } ;;
sponge) update() { jq -c '.count += 1' "$1" | sponge "$1" && [ "${PIPESTATUS[0]}" = 0 ]; } ;;
cli) update() { "$CAIRN" --store "$DIR/bucket" doc update "packages/$1" --attempts 100 -- jq -c '.count += 1' >/dev/null; } ;;
esac
for ((i = 0; i < updates; i++)); do
	name=${names[RANDOM % ${#names[@]}]}
	tries=0
	until update "$name" 2>/dev/null; do
		refused=$((refused + 1)) tries=$((tries + 1))
		[ $tries -lt 2000 ] || { echo "refused for ever: $name" >&2; exit 1; }
	done
done
echo "$updates $refused"
END
chmod +x "$DIR/worker"

sum() {
	local name
	while read -r name; do cat "$DIR/b/docs/packages/$name"; done <"$DIR/names" |
		jq -s "$1"
}

race() {
	local idiom=$1 updates=$2 counter=${3:-map(.count) | add} before n done refused
	before=$(sum "$counter")
	for ((n = 1; n <= 16; n++)); do
		"$DIR/worker" "$idiom" $n "$updates" "$DIR/$([ $((n % 2)) = 0 ] && echo a || echo b)/docs/packages" \
			>"$DIR/worker-$n" 2>>"$DIR/worker-errors" &
	done
	wait
	read -r n done refused < <(cat "$DIR"/worker-[0-9]* | awk '{ d += $1; r += $2 } END { print NR, d, r }')
	rm "$DIR"/worker-[0-9]*
	assert_equal "$n" 16 "$idiom: workers that ended well ($(tail -n 3 "$DIR/worker-errors"))"
	assert_equal "$(($(sum "$counter") - before))" "$done" "$idiom: the sum of the counters"
	say "$idiom: $done updates, none lost; $refused refused and tried again"
}

while read -r name; do
	jq -c '.unary = ""' "$DIR/a/docs/packages/$name" >"$DIR/a/docs/packages/.t" &&
		mv "$DIR/a/docs/packages/.t" "$DIR/a/docs/packages/$name" || fail "prepare $name"
done <"$DIR/names"
race jq_mv $UPDATES
race cat_mv $UPDATES
race sed $UPDATES 'map(.unary | length) | add'
race perl $((UPDATES / 4 + 1))
race replace $((UPDATES / 4 + 1))
race python $UPDATES
race sponge $((UPDATES / 4 + 1))
race cli $((UPDATES / 4 + 1))
