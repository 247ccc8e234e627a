#!/usr/bin/env bash
# Install what is needed, build in release mode, run all tests.
#
#   tools/test.sh [CTEST-ARGUMENT...]      for instance: tools/test.sh -R mount -V
set -eu
cd "$(dirname "$0")/.."

tools/packages.sh
cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DWARNINGS_AS_ERRORS=ON
cmake --build build
exec ctest --test-dir build --output-on-failure "$@"
