#!/bin/bash
# with_server.sh versitygw PROGRAM -- COMMAND…    run COMMAND beside a server of its own
# with_server.sh rgw -- COMMAND…
#
# The server stands on 127.0.0.1, in a private directory, and goes when COMMAND has ended. COMMAND
# gets CAIRN_TEST_ENDPOINT (its URL), CAIRN_TEST_SERVER (its name) and keys in AWS_ACCESS_KEY_ID and
# AWS_SECRET_ACCESS_KEY; @ENDPOINT@ in its arguments is the URL.
set -eu
here=$(realpath "$(dirname "$0")")
kind=$1
shift
program=
if [ "$kind" = versitygw ]; then
	program=$1
	shift
fi
[ "$1" = -- ] || { echo "with_server.sh: '--' before the command" >&2; exit 2; }
shift

dir=$(mktemp -d "${TMPDIR:-/tmp}/cairn-$kind.XXXXXX")
server=
clean() {
	if [ "$kind" = rgw ]; then
		"$here/../rgw/down.sh" "$dir/rgw"
	elif [ -n "$server" ]; then
		kill "$server" 2>/dev/null || :
		wait "$server" 2>/dev/null || :
	fi
	rm -rf "$dir"
}
trap clean EXIT
trap 'exit 1' HUP INT TERM

# Two neighbouring ports that nobody listens on: the gateway's monitor takes the second.
free_port() {
	python3 - <<-'P'
	import random, socket
	while True:
	    port = random.randrange(20000, 32000)
	    try:
	        for each in (port, port + 1):
	            with socket.socket() as probe:
	                probe.bind(("127.0.0.1", each))
	    except OSError:
	        continue
	    print(port)
	    break
	P
}

export AWS_ACCESS_KEY_ID=cairnkey AWS_SECRET_ACCESS_KEY=cairnsecret AWS_REGION=us-east-1
export AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/dev/null
unset AWS_PROFILE AWS_SESSION_TOKEN AWS_ENDPOINT_URL AWS_ENDPOINT_URL_S3 http_proxy HTTP_PROXY
port=$(free_port)
case $kind in
versitygw)
	mkdir "$dir/data"
	ROOT_ACCESS_KEY=$AWS_ACCESS_KEY_ID ROOT_SECRET_KEY=$AWS_SECRET_ACCESS_KEY \
		"$program" -p "127.0.0.1:$port" -q --keep-alive posix "$dir/data" >"$dir/log" 2>&1 &
	server=$!
	until (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
		kill -0 "$server" 2>/dev/null || { cat "$dir/log" >&2; exit 1; }
		sleep 0.05
	done
	;;
rgw)
	"$here/../rgw/up.sh" "$dir/rgw" "$port" >/dev/null
	;;
*)
	echo "with_server.sh: no server '$kind'" >&2
	exit 2
	;;
esac
export CAIRN_TEST_ENDPOINT=http://127.0.0.1:$port CAIRN_TEST_SERVER=$kind
"${@//@ENDPOINT@/$CAIRN_TEST_ENDPOINT}"
