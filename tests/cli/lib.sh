# Sourced by the scripts here, with the path of cairn as their $1: a private directory, a bucket in
# it that the environment names, and checks.
set -u

cairn=$1
dir=$(mktemp -d "${TMPDIR:-/tmp}/cairn-cli.XXXXXX") || exit 1
export CAIRNDB_STORAGE_TYPE=filesystem CAIRNDB_STORAGE_PATH="$dir/bucket"
unset CAIRNDB_STORAGE_PREFIX
out=$dir/out
err=$dir/err

# Scripts add the processes that they leave running to this list.
started=
clean_up() {
	for pid in $started; do
		kill -CONT "$pid" 2>/dev/null
		kill -KILL "$pid" 2>/dev/null
	done
	rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

fail() {
	printf 'FAIL: %s\n' "$*" >&2
	printf -- '-- standard output:\n' >&2
	cat "$out" >&2
	printf -- '-- standard error:\n' >&2
	cat "$err" >&2
	exit 1
}

# expect STATUS COMMAND…: its exit status; output is left in $out and $err. A failure of cairn's own
# is told in a line that says so.
expect() {
	wanted=$1
	shift
	"$@" >"$out" 2>"$err"
	status=$?
	[ "$status" -eq "$wanted" ] || fail "$*: exit status $status, not $wanted"
}

# printed TEXT: standard output was this line.
printed() {
	printf '%s\n' "$1" | cmp -s - "$out" || fail "not printed: $1"
}

# told PATTERN: standard error has such a line of cairn's.
told() {
	grep -q "^cairn: .*$1" "$err" || fail "not told: $1"
}

# json FILTER: standard output is JSON of which this is true.
json() {
	jq -e "$1" "$out" >/dev/null || fail "not so: $1"
}

same() {
	[ "$1" = "$2" ] || fail "'$1' is not '$2'"
}

# eventually COMMAND…: true within 20 s.
eventually() {
	tries=400
	until "$@" 2>/dev/null; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || fail "never true: $*"
		sleep 0.05
	done
}

# ended PID: it runs no more (it may wait to be reaped).
ended() {
	case $(ps -o stat= -p "$1") in
	'' | Z*) return 0 ;;
	*) return 1 ;;
	esac
}

lease_status() {
	[ "$("$cairn" lease show --json "$1" | jq -r .status)" = "$2" ]
}
