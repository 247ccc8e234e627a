#!/bin/bash
# Mounting and unmounting: readiness, exit status, signals, dead daemons, what cannot be mounted.
. "$(dirname "$0")/lib.sh"

start_mount a
succeed ls "$DIR/a"
assert_equal "$output" "claims
docs
leases
objects" 'the tree'
expect_error 'No such file or directory' cat "$DIR/a/docs/k"
stop_mount a
