#!/bin/sh
# install.sh SOURCE-DIRECTORY BUILD-DIRECTORY: what `cmake --install` puts into a prefix works from
# there: programs, headers alone in C and C++, and the README's example with pkg-config. $CFLAGS are
# those of the build (sanitizers must be linked too).
set -eu
source=$1
build=$2
dir=$(mktemp -d "${TMPDIR:-/tmp}/cairn-install.XXXXXX")
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
prefix=$dir/prefix

fail() {
	echo "FAIL: $*" >&2
	exit 1
}

cmake --install "$build" --prefix "$prefix" >"$dir/log" || fail "cmake --install: $(cat "$dir/log")"
library=$(dirname "$(find "$prefix" -name libcairn.so)")
PKG_CONFIG_PATH=$library/pkgconfig
LD_LIBRARY_PATH=$library
export PKG_CONFIG_PATH LD_LIBRARY_PATH

for program in cairn cairnfs; do
	"$prefix/bin/$program" --version | grep -q "^$program [0-9]" || fail "$program --version"
	page=$prefix/share/man/man1/$program.1
	complaints=$(mandoc -Tlint -Wwarning "$page" 2>/dev/null | grep -v 'mandoc.db' || :)
	[ -z "$complaints" ] || fail "$page: $complaints"
done

for header in "$prefix"/include/cairn/*.h; do
	name=cairn/$(basename "$header")
	for language in c:c11 c++:c++11; do
		printf '#include <%s>\n' "$name" |
			cc -x "${language%:*}" "-std=${language#*:}" -Wall -Wextra -Werror -pedantic \
				-fsyntax-only $(pkg-config --cflags libcairn) - ||
			fail "$name does not compile alone as ${language#*:}"
	done
done

# The example between ```c and ``` in the README, shared and static.
awk '/^```c$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$source/README.md" >"$dir/example.c"
[ -s "$dir/example.c" ] || fail "no C example in README.md"
cc ${CFLAGS:-} -Wall -Wextra -Werror "$dir/example.c" $(pkg-config --cflags --libs libcairn) \
	-o "$dir/example"
cc ${CFLAGS:-} -Wall -Wextra -Werror "$dir/example.c" $(pkg-config --cflags libcairn) \
	"$library/libcairn.a" $(pkg-config --static --libs libcairn | sed 's/-lcairn//') \
	-o "$dir/example-static"
said=$("$dir/example" "$dir/bucket")
[ "$said" = 'won: {"by":"c"}' ] || fail "example said '$said'"
said=$(LD_LIBRARY_PATH='' "$dir/example-static" "$dir/bucket")
[ "$said" = 'lost: {"by":"c"}' ] || fail "example-static said '$said'"
said=$("$prefix/bin/cairn" --store "$dir/bucket" get nightly)
[ "$said" = '{"by":"c"}' ] || fail "cairn get said '$said'"

unit=$(find "$prefix" -name 'cairnfs@.service')
grep -q '^ExecStart=/.*/cairnfs %f' "$unit" || fail "$unit names no program"
echo ok
