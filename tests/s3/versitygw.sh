#!/bin/sh
# versitygw.sh [DIRECTORY]: build the pinned versitygw into DIRECTORY (~/.cache/cairnfs-tests),
# once, and print its path. Needs Go (1.24 or newer) and the network, for about two minutes.
set -eu
version=v1.8.0
dir=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/cairnfs-tests}/versitygw-$version
if ! [ -x "$dir/versitygw" ]; then
	mkdir -p "$dir"
	GOBIN=$dir go install "github.com/versity/versitygw/cmd/versitygw@$version" >&2
fi
echo "$dir/versitygw"
