# Usage errors say what is wrong and which option; help, version, --store, and output that fails.
. "${0%/*}/lib.sh"

expect 0 "$cairn" --version
grep -q '^cairn [0-9]' "$out" || fail version
expect 0 "$cairn" --help
for command in get put rm ls wait claim 'lease acquire' 'lease renew' 'lease state' \
	'lease release' 'lease attach' 'lease run' 'lease show' 'doc get' 'doc update' \
	'doc delete' mount umount status; do
	grep -q "^  $command " "$dir/out" || fail "not listed: $command"
done
for command in get 'lease run' 'doc update' status; do
	# shellcheck disable=SC2086 # two words
	"$cairn" $command --help | grep -q "^usage: cairn $command " || fail "help of $command"
done
expect 0 "$cairn" lease --help
grep -q '^  lease run ' "$out" || fail 'help of lease'

# usage PATTERN ARGUMENT…
usage() {
	pattern=$1
	shift
	expect 2 "$cairn" "$@"
	told "$pattern"
	[ ! -e "$CAIRNDB_STORAGE_PATH" ] || fail 'a wrong command line made a bucket'
}
usage 'COMMAND is missing'
usage "no command 'frob'" frob
usage "no command 'lease frob'" lease frob
usage "second word" doc
usage "get: there is no option '--frob'" get --frob k
usage "get: there is no option '-x'" get k -x
usage "option '--if-match' needs a value: ETAG" put k --if-match
usage "option '--json' takes no value" get k --json=1
usage 'get: an operand is missing' get
usage "'b' is too much" get a b
usage 'claim: .*KEY VALUE' claim k
usage 'exclude each other' put k --if-absent --if-match x
usage "ttl .*'0'" lease acquire k --ttl 0
usage "ttl .*'soon'" lease acquire k --ttl soon
usage "ttl .*'nan'" lease acquire k --ttl nan
usage "wait .*'-1'" lease run k --wait -1 -- true
usage "attempts .*'0'" doc update k --attempts 0 -- cat
usage 'command is missing' doc update k
usage 'command is missing' lease run k --
usage 'operand is missing' lease run -- true
usage "option '--store'" mount --store x y
usage "'c' is too much" mount a b c
usage 'exclude each other' status --store x y

# The bucket: stated before or behind the command, or by the environment; reading makes none.
expect 0 "$cairn" claim k 1 --store "$dir/second"
expect 1 "$cairn" --store "$dir/second" claim k 2
printed 1
expect 0 "$cairn" claim k 3
expect 3 "$cairn" get k --store "$dir/missing"
told missing
[ ! -e "$dir/missing" ] || fail 'reading made a bucket'
CAIRNDB_STORAGE_PATH='' expect 2 "$cairn" get k
told CAIRNDB_STORAGE_PATH
expect 3 "$cairn" get k --store ftp://host/bucket
told ftp

# Options and operands in any order; behind `--` stand operands only.
expect 0 "$cairn" get k --timeout 5
expect 1 "$cairn" get -- --json
told -- --json

# Output that cannot be written is a failure.
if [ -w /dev/full ]; then
	"$cairn" get k >/dev/full 2>"$err"
	same $? 3
	told 'standard output: No space left'
fi
"$cairn" get k >&- 2>"$err"
same $? 3
told 'standard output'
head -c 1000000 /dev/zero | "$cairn" put large >/dev/null
{
	"$cairn" get large 2>"$err"
	echo $? >"$out"
} | :
same "$(cat "$out")" 3
told 'standard output: Broken pipe'
exit 0
