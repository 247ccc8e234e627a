#!/usr/bin/env bash
# Install the Debian packages that building and testing need; quick when all are there.
#
#   tools/packages.sh            to build and to test
#   tools/packages.sh demo       to build and for tools/quickstart.sh
#   tools/packages.sh bench      to build and to measure against the Python package
#
# Root, or sudo where something is missing. This is the one list of what the project needs.
set -eu

build="gcc g++ libc6-dev cmake ninja-build pkg-config fuse3 libfuse3-dev libjansson-dev libssl-dev
	libcurl4-openssl-dev libexpat1-dev libmsgpack-dev libcmocka-dev"
demo="jq attr util-linux"
test="jq attr python3 perl make vim nano tmux moreutils sudo rsync procps psmisc
	busybox dash util-linux mandoc"
bench="jq attr python3-venv ca-certificates"

case ${1:-test} in
demo) wanted="$build $demo" ;;
test) wanted="$build $test" ;;
bench) wanted="$build $bench" ;;
*)
	echo "usage: packages.sh [demo|test|bench]" >&2
	exit 2
	;;
esac

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		echo "packages.sh: not root and no sudo to run: $*" >&2
		exit 1
	fi
}

installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing=
for package in $wanted; do
	installed "$package" || missing="$missing $package"
done

if [ -n "$missing" ]; then
	echo "Installing:$missing"
	as_root apt-get -qq update
	# shellcheck disable=SC2086  # a list of words
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
		-o Dpkg::Use-Pty=0 $missing >/dev/null
fi

# Containers and chroots may lack it; the kernel's module is the host's matter.
[ -e /dev/fuse ] || as_root mknod -m 666 /dev/fuse c 10 229
