#!/bin/bash
# 16 processes over two mounts race for 500 claims, each by its own means: one winner each, and
# every loser reads the winner's value.
. "$(dirname "$0")/lib.sh"

CLAIMS=$(scaled 500)
export CLAIMS
start_mount a
start_mount b
mkdir "$DIR/a/claims/race"
export CAIRNDB_STORAGE_PATH=$DIR/bucket

# A racer ($1: who it is, $2: the directory of claims) reads the number of a claim, tries it, and
# prints "won|lost VALUE".
cat >"$DIR/by_bash" <<'END'
set -C
while read -r i; do
	if echo "{\"by\":\"$1\"}" 2>/dev/null >"$2/$i"; then how=won; else how=lost; fi
	echo "$how $(<"$2/$i")"
done
END
cat >"$DIR/by_dash" <<'END'
set -C
while read -r i; do
	if (echo "{\"by\":\"$1\"}" >"$2/$i") 2>/dev/null; then how=won; else how=lost; fi
	read -r value <"$2/$i"
	echo "$how $value"
done
END
cat >"$DIR/by_python" <<'END'
import json, sys
me, where = sys.argv[1:]
for line in sys.stdin:
    path = where + "/" + line.strip()
    try:
        with open(path, "x") as file:
            json.dump({"by": me}, file)
        how = "won"
    except FileExistsError:
        how = "lost"
    print(how, open(path).read().strip(), flush=True)
END
cat >"$DIR/by_ln" <<'END'
echo "{\"by\": \"$1\"}" >"$2/.$1"
while read -r i; do
	if ln "$2/.$1" "$2/$i" 2>/dev/null; then how=won; else how=lost; fi
	echo "$how $(<"$2/$i")"
done
END
# Its losers look at once: where the winner's value is still to come, they see null (and read again).
cat >"$DIR/by_cairn" <<'END'
while read -r i; do
	if value=$("$CAIRN" claim "race/$i" "{\"by\":\"$1\"}"); then how=won; else how=lost; fi
	[ "$value" != null ] || value=$(<"$2/$i")
	echo "$how $value"
done
END

# The starter sends each claim to all racers, the ones that spawn programs a little earlier.
cat >"$DIR/starter" <<'END'
import os, random, subprocess, sys, time
directory, claims = os.environ["DIR"], int(os.environ["CLAIMS"])
racers, wins = [], {}
for means in "bash dash python ln cairn".split():
    for n in range(4 if means == "bash" else 3):
        me = f"{means}-{n}"
        shell = {"dash": "dash", "python": "python3"}.get(means, "bash")
        point = f"{directory}/{'ab'[n % 2]}/claims/race"
        racers.append((me, subprocess.Popen([shell, f"{directory}/by_{means}", me, point],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)))
for i in range(claims):
    slow = [racer for racer in racers if racer[0].split("-")[0] in ("ln", "cairn")]
    fast = [racer for racer in racers if racer not in slow]
    random.shuffle(slow)
    random.shuffle(fast)
    for me, racer in slow + fast:
        if me == fast[0][0]:
            time.sleep(random.random() * 0.004)
        racer.stdin.write(f"{i}\n")
        racer.stdin.flush()
    results = {me: racer.stdout.readline().strip().partition(" ") for me, racer in racers}
    winners = [me for me, result in results.items() if result[0] == "won"]
    assert len(winners) == 1, f"claim {i} was won by {winners}: {results}"
    wanted = '{"by":"%s"}' % winners[0]
    for me, result in results.items():
        assert result[2] == wanted, f"claim {i}, won by {winners[0]}, was read by {me} as {result[2]}"
    stored = open(f"{directory}/bucket/race/{i}").read()
    assert stored == wanted, f"claim {i} of {winners[0]} is stored as {stored}"
    means = winners[0].split("-")[0]
    wins[means] = wins.get(means, 0) + 1
for me, racer in racers:
    racer.stdin.close()
    assert racer.wait() == 0, me
print("claims_race: wins by means:", wins)
END
python3 "$DIR/starter" || fail 'the racers do not agree'

# The mkdir lock idiom has one winner too.
LOCKS=$(scaled 200)
export LOCKS
locker() {
	python3 -c '
import os, sys
won = 0
for i in range(int(os.environ["LOCKS"])):
    try:
        os.mkdir(f"{sys.argv[1]}/lock{i}")
        won += 1
    except FileExistsError:
        pass
print(won)' "$DIR/$1" >"$DIR/locks-$2"
}
n=0
for where in a/claims b/claims a/docs b/docs a/objects b/objects a/leases b/leases; do
	n=$((n + 1)) # not in the command: a background one expands its words in a subshell
	locker $where $n &
done
wait
assert_equal "$(cat "$DIR"/locks-* | awk '{ sum += $1 } END { print NR, sum }')" "8 $LOCKS" 'locks won by mkdir'
