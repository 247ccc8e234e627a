#!/usr/bin/env bash
# Show what cairnfs is for: build it, mount one bucket twice, let processes on both mounts race for
# claims, work off a queue under leases while two of them fail, and update one document at once.
# Prints what was to hold and whether it did; leaves nothing mounted. Exit status 0: all held.
set -u
cd "$(dirname "$0")/.." || exit 1

KEYS=40 CLAIMANTS=16 JOBS=24 TTL=2 UPDATERS=8 UPDATES=20

log=$(mktemp) || exit 1
quietly() {
	"$@" >"$log" 2>&1 && return
	cat "$log" >&2
	echo "quickstart.sh: failed: $*" >&2
	exit 1
}
trap 'rm -f "$log"' EXIT
tools/packages.sh demo || exit 1
echo "Building (release) in build/ …"
quietly cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release
quietly cmake --build build --target cairnfs cairn
PATH=$PWD/build/fs:$PWD/build/tools:$PATH

# --- a bucket, mounted twice

dir=$(mktemp -d "${TMPDIR:-/tmp}/cairnfs-quickstart.XXXXXX") || exit 1
bucket=$dir/bucket
workers=
clean_up() {
	for pid in $workers; do
		kill -CONT -- "-$pid" && kill -KILL -- "-$pid"
	done 2>/dev/null
	for mount in a b; do
		! mountpoint -q "$dir/$mount" || fusermount3 -u "$dir/$mount" || fusermount3 -uz "$dir/$mount"
	done
	rm -rf "$log" "$dir"
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

mkdir "$bucket" "$dir/a" "$dir/b" "$dir/out"
for mount in a b; do
	cairnfs "$bucket" "$dir/$mount" -o "cache_dir=$dir/cache-$mount,lease_ttl=$TTL" || exit 1
done
printf '\nOne bucket, the directory %s,\nmounted twice, as on two hosts: %s and %s\n' \
	"$bucket" "$dir/a" "$dir/b"

# --- helpers

mount_of() { echo "$dir/$([ $(($1 % 2)) = 0 ] && echo a || echo b)"; }

# wait_until CONDITION…: at most 30 s.
wait_until() {
	for ((i = 0; i < 600; i++)); do
		! "$@" || return 0
		sleep 0.05
	done
	return 1
}

passed=0 failed=0
# check WHAT COMMAND…
check() {
	local what=$1
	shift
	if "$@"; then
		passed=$((passed + 1))
		echo "  PASS  $what"
	else
		failed=$((failed + 1))
		echo "  FAIL  $what"
	fi
}

lines() { cat "$dir/out/$1".* 2>/dev/null | wc -l; }

# --- claims

# As shell scripts do it: every second claimant with noclobber, the others with ln.
claimant() {
	local me=$1 claims key
	claims=$(mount_of "$me")/claims/race
	set -C
	echo "{\"worker\":$me}" >"$claims/.mine-$me"
	for ((key = 0; key < KEYS; key++)); do
		if if [ $((me / 2 % 2)) = 0 ]; then
			echo "{\"worker\":$me}" >"$claims/$key"
		else
			ln "$claims/.mine-$me" "$claims/$key"
		fi 2>/dev/null; then
			echo "$key {\"worker\":$me}"
		else
			echo "$key $(cat "$claims/$key")" >&3
		fi
	done
}

claims_agree() {
	sort -u "$dir"/out/won.* >"$dir/out/winners"
	[ "$(cut -d' ' -f1 "$dir/out/winners" | sort -u | wc -l)" = "$KEYS" ] &&
		cat "$dir"/out/lost.* | sort -u | cmp -s - "$dir/out/winners"
}

printf '\nClaims. A file created in claims/ is a claim; it can be won once, by whoever creates it.\n'
printf '%s shell workers, half on each mount, try to claim each of %s keys.\n' "$CLAIMANTS" "$KEYS"
mkdir "$dir/a/claims/race"
pids=
for ((worker = 0; worker < CLAIMANTS; worker++)); do
	claimant "$worker" >"$dir/out/won.$worker" 3>"$dir/out/lost.$worker" &
	pids="$pids $!"
done
# shellcheck disable=SC2086  # one pid each
wait $pids
check "$(lines won) claims won for $KEYS keys: one winner each" [ "$(lines won)" = "$KEYS" ]
check "$(lines lost) attempts lost, and each loser read the winner's value" claims_agree

# --- leases

# do_job WORKER JOB: under the lease of the job, its state says whether it is done.
do_job() {
	local lease
	lease=$(mount_of "$1")/leases/queue/$2
	(
		exec 9<>"$lease"
		flock -n 9 || exit 0
		[ "$(jq -r .done "$lease")" != true ] || exit 0
		epoch=$(getfattr --only-values -n user.cairn.epoch "$lease" 2>/dev/null)
		if [ -e "$dir/out/pause-$1" ]; then
			mv "$dir/out/pause-$1" "$dir/out/paused-$1"
			echo "$2 $epoch" >"$dir/out/held-$1"
			while [ -e "$dir/out/paused-$1" ]; do sleep 0.05; done
		fi
		if echo "{\"done\":true,\"by\":$1,\"epoch\":$epoch}" >&9; then
			echo "$2"
		else
			echo "$2" >"$dir/out/refused-$1"
		fi
	) 2>>"$dir/out/errors-$1"
}

worker() {
	local round job
	for ((round = 0; round < 200; round++)); do
		for ((job = 0; job < JOBS; job++)); do
			do_job "$1" $(((job + $1 * 5) % JOBS))
		done
		[ "$(cat "$(mount_of "$1")"/leases/queue/* 2>/dev/null | grep -c '"done":true')" -lt "$JOBS" ] || break
		sleep 0.1
	done
}

# In a process group of its own, so that all of it can be killed and stopped.
start_worker() {
	set -m
	worker "$1" >"$dir/out/done.$1" 2>/dev/null &
	set +m
	started=$!
	workers="$workers $started"
}

jobs_done() { cat "$dir"/a/leases/queue/* | grep -c '"done":true'; }
all_jobs_done() { [ "$(jobs_done)" = "$JOBS" ]; }
# taken_over WORKER: by another, with a higher epoch (the fencing token).
taken_over() {
	local job epoch
	read -r job epoch <"$dir/out/held-$1"
	jq -e ".done and .by != $1 and .epoch > $epoch" "$dir/b/leases/queue/$job" >/dev/null
}

printf '\nLeases. flock on a file in leases/ holds it on all hosts, for %s s unless renewed.\n' "$TTL"
printf '6 workers share %s jobs; one is killed while it works, one stopped for longer than that.\n' "$JOBS"
mkdir "$dir/a/leases/queue"
for ((job = 0; job < JOBS; job++)); do
	(flock 9 && echo '{"done":false}' >&9) 9>"$dir/a/leases/queue/$job"
done
touch "$dir/out/pause-1" "$dir/out/pause-2"
start_worker 1
killed=$started
start_worker 2
stopped=$started
wait_until [ -e "$dir/out/held-1" ] && wait_until [ -e "$dir/out/held-2" ]
kill -KILL -- "-$killed"
wait "$killed" 2>/dev/null
kill -STOP -- "-$stopped"
rm -f "$dir"/out/paused-*
for number in 3 4 5 6; do start_worker "$number"; done
wait_until all_jobs_done
kill -CONT -- "-$stopped"
# shellcheck disable=SC2086  # one pid each
wait $workers 2>/dev/null
workers=
check "$(jobs_done) of $JOBS jobs done" all_jobs_done
check "$(lines done) writes of a result went through: no job was done twice" [ "$(lines done)" = "$JOBS" ]
check "the killed worker's job was done by another, at once" taken_over 1
check "the stopped worker's job was done by another, after its lease ran out" taken_over 2
check "the stopped worker woke up and tried to write: refused ($(grep -o 'Stale file handle' "$dir/out/errors-2" | head -n 1))" \
	[ -e "$dir/out/refused-2" ]

# --- docs

# Read, change, rename: a rename over a version that was not the one read fails, and is tried again.
updater() {
	local docs n
	docs=$(mount_of "$1")/docs
	for ((n = 0; n < UPDATES; n++)); do
		until jq '.count += 1' "$docs/counter" >"$docs/.mine-$1" &&
			mv "$docs/.mine-$1" "$docs/counter"; do
			echo "$n"
		done
	done 2>/dev/null
}

printf '\nDocs. A JSON file in docs/ is replaced by rename, if it is still what was read.\n'
printf '%s shell workers on both mounts and one with the command line count %s times each.\n' \
	"$UPDATERS" "$UPDATES"
echo '{"count":0}' >"$dir/a/docs/counter"
pids=
for ((worker = 0; worker < UPDATERS; worker++)); do
	updater "$worker" >"$dir/out/again.$worker" &
	pids="$pids $!"
done
for ((n = 0; n < UPDATES; n++)); do
	cairn --store "$bucket" doc update counter --attempts 1000 -- jq '.count += 1' >/dev/null
done
# shellcheck disable=SC2086  # one pid each
wait $pids
total=$(((UPDATERS + 1) * UPDATES))
count=$(jq .count "$dir/b/docs/counter")
check "the counter says $count after $total updates: none lost ($(lines again) lost a race and were tried again)" \
	[ "$count" = "$total" ]

# --- the end

printf '\nThe end.\n'
unmounted() { ! mountpoint -q "$dir/a" && ! mountpoint -q "$dir/b"; }
fusermount3 -u "$dir/a"
fusermount3 -u "$dir/b"
check "both mounts are gone" unmounted
check "the bucket holds $(cairn --store "$bucket" ls -r | wc -l) keys: $KEYS claims, $JOBS leases, 1 doc" \
	[ "$(cairn --store "$bucket" ls -r | wc -l)" = $((KEYS + JOBS + 1)) ]
printf '\n%s of %s held.\n' "$passed" $((passed + failed))
[ "$failed" = 0 ]
