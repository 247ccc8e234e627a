#!/usr/bin/env bash
# Build with the address and undefined behaviour sanitizers, then with the thread sanitizer, and
# run all tests on both. Warnings are no errors here, as they are in tools/test.sh: under sanitizers
# gcc warns of paths that cannot be taken.
#
#   tools/sanitize.sh [CTEST-ARGUMENT...]
set -eu
cd "$(dirname "$0")/.."

tools/packages.sh
failed=0
for type in Asan Tsan; do
	build=build-${type,,}
	echo "== $type in $build"
	cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE="$type" -DWARNINGS_AS_ERRORS=OFF
	cmake --build "$build"
	ctest --test-dir "$build" --output-on-failure "$@" || failed=1
done
exit "$failed"
