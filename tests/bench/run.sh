#!/usr/bin/env bash
# Measure against the raw system calls and the Python package, and print one table. It is what
# `ninja -C build bench` runs, once bench_program and cairnfs are built:
#
#   tests/bench/run.sh BUILD-DIRECTORY
#
# The first run makes a virtual environment with the package in the build directory. Buckets lie in
# private directories below /dev/shm and BENCH_DISK (default /var/tmp), gone at the end.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
venv=$build/bench-venv

"$here/../../tools/packages.sh" bench
grep -q '^CMAKE_BUILD_TYPE:[A-Z]*=Release$' "$build/CMakeCache.txt" || {
	echo "run.sh: $build is no release build, its numbers would mean nothing" >&2
	exit 2
}

if [ ! -e "$venv/ready" ]; then
	echo "Installing the Python package into $venv"
	rm -rf "$venv"
	/usr/bin/python3 -m venv "$venv"
	"$venv/bin/pip" -q install msgpack aiosqlite structlog 'sqlalchemy[asyncio]>=2.0.25' typer boto3
	"$venv/bin/pip" -q install --no-deps --ignore-requires-python cairndb==0.4.1
	site=$("$venv/bin/python" -c 'import site; print(site.getsitepackages()[0])')
	cp "$here/cairndb_compat.py" "$site"
	echo 'import cairndb_compat' >"$site/cairndb_compat.pth"
	touch "$venv/ready"
fi

exec "$venv/bin/python" "$here/table.py" "$build"
