# Sourced by the mount tests (bash): a private directory, daemons in the foreground, assertions, and
# a trap that unmounts, ends the daemons and fails the test for whatever they said unexpectedly.
#
#	. "$(dirname "$0")/lib.sh"
#	start_mount a                    # $DIR/bucket mounted at $DIR/a; options may follow
#	assert_equal "$(cat "$DIR/a/docs/k")" '{"n":1}' 'what was written'
#	expect_error 'Device or resource busy' mv .t k
#	expect_log a 'docs/k: it is there, .*: Device or resource busy'
#
# Environment: CAIRNFS and CAIRN (the binaries), CAIRN_TEST_SCALE (percent of the loops, 100).
# A test ends by its last line, or by `fail`. Everything lies in $DIR, which goes at the end.

set -u
export LC_ALL=C
unset "${!CAIRNDB_@}"

: "${CAIRNFS:?the path of the cairnfs binary}"
CAIRN=${CAIRN:-}
NAME=$(basename "$0" .sh)
BASE=/dev/shm
[ -w "$BASE" ] || BASE=${TMPDIR:-/tmp}
DIR=$(mktemp -d "$BASE/cairnfs-$NAME.XXXXXX") || exit 1
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export CAIRNFS CAIRN DIR HERE
mkdir "$DIR/bucket" "$DIR/.state"
umask 022

# --- saying and checking

say() { printf '%s: %s\n' "$NAME" "$*"; }

# fail MESSAGE: end the test. In a subshell it ends that one, and the test fails at its end.
fail() {
	local at=${BASH_LINENO[0]} i
	for ((i = 1; i < ${#BASH_SOURCE[@]}; i++)); do
		[ "${BASH_SOURCE[i]}" = "${BASH_SOURCE[0]}" ] || { at=${BASH_LINENO[i - 1]}; break; }
	done
	printf '%s: FAILED at line %s: %s\n' "$NAME" "$at" "$*" >&2
	: >"$DIR/.state/failed"
	exit 1
}

# assert_equal ACTUAL EXPECTED WHAT
assert_equal() {
	[ "$1" = "$2" ] || fail "$3: is '${1:0:2000}', expected '${2:0:2000}'"
}

# assert_match ACTUAL REGEX WHAT
assert_match() {
	[[ $1 =~ $2 ]] || fail "$3: is '${1:0:2000}', expected a match of '$2'"
}

# assert_file PATH EXPECTED WHAT: its content, without the last newlines.
assert_file() {
	local content
	content=$(cat "$1") || fail "$3: $1 cannot be read"
	assert_equal "$content" "$2" "$3"
}

# run COMMAND…: its exit status in $status, its outputs in $output and $errors. In this shell.
run() {
	"$@" >"$DIR/.state/output" 2>"$DIR/.state/errors"
	status=$?
	output=$(<"$DIR/.state/output")
	errors=$(<"$DIR/.state/errors")
}

# succeed COMMAND…: it must, and say nothing on stderr.
succeed() {
	run "$@"
	[ "$status" = 0 ] && [ -z "$errors" ] || fail "'$*' ended with $status: $errors"
}

# expect_error TEXT COMMAND…: it must fail and say TEXT (the message of an errno).
expect_error() {
	local text=$1
	shift
	run "$@"
	[ "$status" != 0 ] || fail "'$*' succeeded, expected '$text'"
	[[ $errors == *"$text"* ]] || fail "'$*' said '$errors', expected '$text'"
}

# expect_errno NAME PYTHON [ARGUMENT…]: the Python statements (os, sys imported) must raise OSError NAME.
expect_errno() {
	local wanted=$1 code=$2 got
	shift 2
	got=$(python3 -c "
import ctypes, errno, fcntl, os, sys
try:
    exec(sys.argv.pop(1))
    print('no error')
except OSError as error:
    print(errno.errorcode[error.errno])" "$code" "$@" 2>&1)
	assert_equal "$got" "$wanted" "errno of: $code ${*}"
}

# poll_until SECONDS WHAT COMMAND…: look again until it succeeds.
poll_until() {
	local until=$((${EPOCHREALTIME%.*} + $1)) what=$2
	shift 2
	until "$@"; do
		[ "${EPOCHREALTIME%.*}" -lt "$until" ] || fail "not within bounds: $what"
		sleep 0.02
	done
}

# scaled N: how often a loop of N runs here.
scaled() {
	local n=$(($1 * ${CAIRN_TEST_SCALE:-100} / 100))
	echo $((n > 0 ? n : 1))
}

# --- daemons

is_mounted() { grep -q " $1 fuse.cairnfs " /proc/self/mounts; }

daemon_pid() { cat "$DIR/.state/$1.pid"; }

daemon_ended() { [ -s "$DIR/.state/$1.status" ]; }

# start_daemon NAME ARGUMENT…: cairnfs -f ARGUMENT…, stderr in $DIR/.state/NAME.log. Does not wait.
# Not our child: a plain `wait` of the test does not wait for it.
start_daemon() {
	local name=$1 state=$DIR/.state/$1
	shift
	rm -f "$state.status" "$state.pid" "$state.killed"
	: >>"$state.log"
	: >>"$state.used"
	setsid sh -c '
		state=$1
		shift
		"$@" &
		echo $! >"$state.pid"
		wait $!
		echo $? >"$state.status"
	' sh "$state" "$CAIRNFS" -f "$@" </dev/null >>"$state.log" 2>&1 &
	disown
	poll_until 10 "daemon $name has a pid" test -s "$state.pid"
	grep -qx "$name" "$DIR/.state/daemons" 2>/dev/null || echo "$name" >>"$DIR/.state/daemons"
}

ready() { daemon_ended "$1" || { is_mounted "$2" && [ -e "$2/.cairn/status.json" ]; }; }

# start_mount NAME [OPTION…]: mount $BUCKET (default $DIR/bucket) at $DIR/NAME and wait until it works.
start_mount() {
	local name=$1 point=$DIR/$1
	shift
	mkdir -p "$point" 2>/dev/null
	start_daemon "$name" "${BUCKET:-$DIR/bucket}" "$point" -o "cache_dir=$DIR/cache-$name" "$@"
	poll_until 30 "mount $name is ready" ready "$name" "$point"
	! daemon_ended "$name" || fail "daemon $name ended: $(cat "$DIR/.state/$name.log")"
}

# stop_mount NAME: unmount it, as a user does; the daemon must end with 0.
stop_mount() {
	local name=$1
	poll_until 10 "unmount $name" fusermount3 -u "$DIR/$name" 2>"$DIR/.state/errors"
	wait_daemon "$name" 0
}

# wait_daemon NAME STATUS: until it has ended, with that exit status.
wait_daemon() {
	poll_until 30 "daemon $1 ends" daemon_ended "$1"
	assert_equal "$(cat "$DIR/.state/$1.status")" "$2" \
		"exit status of daemon $1 ($(tail -n 40 "$DIR/.state/$1.log"))"
	: >"$DIR/.state/$1.killed"
}

# kill_daemon NAME [SIGNAL]: end it so that its exit status is of no interest (KILL).
kill_daemon() {
	: >"$DIR/.state/$1.killed"
	kill "-${2:-KILL}" "$(daemon_pid "$1")"
	poll_until 30 "daemon $1 is killed" daemon_ended "$1"
}

# --- their logs: each line must be expected, once

take_log_line() {
	WANTED=$2 awk -v used="$DIR/.state/$1.used" '
		BEGIN { while ((getline line < used) > 0) taken[line] = 1 }
		!(FNR in taken) && $0 ~ ENVIRON["WANTED"] { print FNR >> used; found = 1; exit }
		END { exit !found }
	' "$DIR/.state/$1.log"
}

# expect_log NAME REGEX: one more line of the daemon matches (awk), at the latest in 5 s.
expect_log() {
	poll_until 5 "a log line of $1 matches '$2' (unexpected: $(unexpected_log "$1"))" take_log_line "$1" "$2"
}

# allow_log NAME REGEX: any number of such lines may come (races whose outcome is not fixed).
allow_log() { printf '%s\n' "$2" >>"$DIR/.state/$1.allowed"; }

unexpected_log() {
	: >>"$DIR/.state/$1.allowed"
	awk -v used="$DIR/.state/$1.used" -v allowed="$DIR/.state/$1.allowed" '
		BEGIN {
			while ((getline line < used) > 0) taken[line] = 1
			while ((getline line < allowed) > 0) regex[++count] = line
		}
		FNR in taken { next }
		{ for (i = 1; i <= count; i++) if ($0 ~ regex[i]) next; print }
	' "$DIR/.state/$1.log"
}

# --- the end

end_daemon() {
	local name=$1 pid i
	pid=$(daemon_pid "$name")
	for ((i = 0; i < 600; i++)); do
		! is_mounted "$DIR/$name" || fusermount3 -u "$DIR/$name" 2>/dev/null ||
			umount "$DIR/$name" 2>/dev/null
		! daemon_ended "$name" || return 0
		[ $i != 400 ] || kill "$pid" 2>/dev/null
		sleep 0.05
	done
	printf '%s: daemon %s does not end: %s\n' "$NAME" "$name" \
		"$(fuser -vm "$DIR/$name" 2>&1)" >&2
	fusermount3 -uz "$DIR/$name" 2>/dev/null
	kill -KILL "$pid" 2>/dev/null
	return 1
}

end_test() {
	local result=$1 name lines point
	trap '' INT TERM HUP
	cd /
	local left
	left=$(jobs -p)
	# shellcheck disable=SC2086 # one pid each
	[ -z "$left" ] || kill $left 2>/dev/null
	while read -r name; do
		end_daemon "$name" || result=1
		if [ ! -e "$DIR/.state/$name.killed" ] && [ "$(cat "$DIR/.state/$name.status" 2>/dev/null)" != 0 ]; then
			printf '%s: daemon %s ended with %s\n' "$NAME" "$name" \
				"$(cat "$DIR/.state/$name.status" 2>/dev/null)" >&2
			result=1
		fi
		lines=$(unexpected_log "$name")
		if [ -n "$lines" ]; then
			printf '%s: unexpected output of daemon %s:\n%s\n' "$NAME" "$name" "${lines:0:8000}" >&2
			result=1
		fi
	done < <(cat "$DIR/.state/daemons" 2>/dev/null)
	[ ! -e "$DIR/.state/failed" ] || result=1
	# Whatever else was mounted below (small tmpfs), the newest first.
	while read -r point; do
		umount -l "$point" 2>/dev/null || fusermount3 -uz "$point" 2>/dev/null
	done < <(awk -v dir="$DIR/" 'index($2, dir) == 1 { print $2 }' /proc/self/mounts | tac)
	chmod -R u+w "$DIR" 2>/dev/null
	rm -rf --one-file-system "$DIR"
	[ "$result" != 0 ] || say ok
	exit "$result"
}

trap 'end_test $?' EXIT
trap 'exit 130' INT TERM HUP

if [ ! -e /dev/fuse ]; then
	mknod /dev/fuse c 10 229 || fail 'no /dev/fuse, and it cannot be made'
fi
