# lease run: what the command sees, exit statuses, waiting, renewals, signals, a lost lease.
. "${0%/*}/lib.sh"

deadline_of() {
	"$cairn" lease show --json "$1" | jq -r .deadline
}
moved() {
	[ "$(deadline_of "$1")" != "$2" ]
}
state_of() {
	ps -o stat= -p "$1" | cut -c1
}
is_stopped() {
	[ "$(state_of "$1")" = T ]
}

# The command's environment, output and input are whole; the lease is released when it ends.
expect 0 "$cairn" lease run l -- sh -c 'echo "$CAIRN_LEASE_KEY $CAIRN_LEASE_EPOCH"'
printed 'l 1'
expect 0 "$cairn" lease show l
grep -q '^free epoch 1 ' "$out" || fail 'not released'
echo input | expect 0 "$cairn" lease run l -- cat
printed input
expect 0 "$cairn" lease run l -- sh -c \
	'"$0" lease state l --holder "$CAIRN_LEASE_HOLDER" -- echo "{\"at\":1}"' "$cairn"
expect 0 "$cairn" lease show l --json
json '.state.at == 1 and .epoch == 3 and .status == "free"'

# The exit status is the command's; our own failures say so.
expect 7 "$cairn" lease run l -- sh -c 'exit 7'
[ ! -s "$err" ] || fail 'said something'
expect 143 "$cairn" lease run l -- sh -c 'kill -TERM $$'
expect 2 "$cairn" lease run l -- "$dir/no-such-command"
told 'cannot run .*no-such-command'
expect 0 "$cairn" lease show l
grep -q '^free' "$out" || fail 'not released'
expect 1 "$cairn" lease run --ttl 60 l -- "$cairn" lease run l -- echo never
told held
[ ! -s "$out" ] || fail 'ran without the lease'

# Waiting: in vain, for a release, for a deadline.
expect 0 "$cairn" lease acquire busy --ttl 1000 --json
holder=$(jq -r .holder "$out")
expect 1 "$cairn" lease run busy --wait 0.3 -- echo never
told held
"$cairn" lease run busy --wait inf -- sh -c 'echo $CAIRN_LEASE_EPOCH' >"$dir/waited" 2>"$err" &
waiter=$!
started="$started $waiter"
expect 0 "$cairn" lease release busy --holder "$holder"
wait "$waiter" || fail "the waiter: exit status $?"
same "$(cat "$dir/waited")" 2
expect 0 "$cairn" lease acquire busy --ttl 0.5
expect 0 "$cairn" lease run busy --wait 30 -- sh -c 'echo $CAIRN_LEASE_EPOCH'
printed 4

# A signal ends the waiting, and leaves no lease.
expect 0 "$cairn" lease acquire busy --ttl 1000
"$cairn" lease run busy --wait inf -- echo never >"$out" 2>"$err" &
waiter=$!
started="$started $waiter"
# Before that it is still the shell.
eventually grep -qx cairn "/proc/$waiter/comm"
kill -TERM "$waiter"
wait "$waiter"
same $? 143
[ ! -s "$out" ] || fail 'ran without the lease'

# It renews while the command runs, and not while it is stopped; SIGTERM is forwarded.
"$cairn" lease run renewed --ttl 3 -- sh -c 'echo $$ >"$0"; exec sleep 1000' "$dir/pid" 2>"$err" &
runner=$!
started="$started $runner"
eventually test -s "$dir/pid"
command=$(cat "$dir/pid")
started="$started $command"
before=$(deadline_of renewed)
eventually moved renewed "$before"
before=$(deadline_of renewed)
kill -STOP "$command"
eventually is_stopped "$command"
eventually lease_status renewed expired
kill -CONT "$command"
wait "$runner"
same $? 1
told 'renewed: the lease ran out'
ended "$command" || fail 'the command runs on without its lease'
eventually lease_status renewed free

"$cairn" lease run forwarded -- sh -c 'trap "echo got it; exit 3" TERM
	echo $$ >"$0"; while :; do sleep 0.05; done' "$dir/pid2" >"$out" 2>"$err" &
runner=$!
started="$started $runner"
eventually test -s "$dir/pid2"
kill -TERM "$runner"
wait "$runner"
same $? 3
printed 'got it'

# The runner was stopped, somebody else has taken the lease: the whole group is ended.
"$cairn" lease run stolen --ttl 1 -- sh -c 'trap "" TERM; sleep 1000 & echo "$$ $!" >"$0"; wait' \
	"$dir/pids" 2>"$err" &
runner=$!
started="$started $runner"
eventually test -s "$dir/pids"
read -r command child <"$dir/pids"
started="$started $command $child"
kill -STOP "$runner"
eventually "$cairn" lease acquire stolen --ttl 1000
kill -CONT "$runner"
wait "$runner"
same $? 1
told 'stolen'
eventually ended "$command"
eventually ended "$child"
expect 0 "$cairn" lease show stolen --json
json '.epoch == 2 and .status == "held"'

# A lease that is taken away is noticed at the next renewal, long before the deadline.
"$cairn" lease run gone --ttl 6 -- sh -c 'echo $$ >"$0"; exec sleep 1000' "$dir/pid3" 2>"$err" &
runner=$!
started="$started $runner"
eventually test -s "$dir/pid3"
expect 0 "$cairn" rm gone
wait "$runner"
same $? 1
eventually ended "$(cat "$dir/pid3")"

# The store does not answer (somebody holds its lock): the command is ended before the deadline, and that is a failure of storage.
"$cairn" lease run failing --ttl 2 -- sh -c 'echo $$ >"$0"; exec sleep 1000' "$dir/pid4" 2>"$err" &
runner=$!
started="$started $runner"
eventually test -s "$dir/pid4"
flock --no-fork "$CAIRNDB_STORAGE_PATH/.failing.lock" sleep 1000 &
locker=$!
started="$started $locker"
wait "$runner"
same $? 3
kill "$locker"
told 'so the command was ended'
eventually ended "$(cat "$dir/pid4")"

# The runner is killed: the command goes with it.
"$cairn" lease run killed -- sh -c 'echo $$ >"$0"; exec sleep 1000' "$dir/pid5" 2>"$err" &
runner=$!
started="$started $runner"
eventually test -s "$dir/pid5"
kill -KILL "$runner"
wait "$runner"
eventually ended "$(cat "$dir/pid5")"
exit 0
