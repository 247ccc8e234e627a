#!/bin/bash
# Kin (DESIGN "Kin"): whose read an edit was based on, where processes are started in every way that
# scripts know. Each counts in one document, trying again when refused: none lost, none for ever.
. "$(dirname "$0")/lib.sh"

start_mount a
start_mount b
for mount in a b; do
	allow_log $mount 'docs/counter: .*: Device or resource busy'
done
A=$DIR/a/docs B=$DIR/b/docs
TIMES=$(scaled 80)
EACH=$(((TIMES + 7) / 8))

# count DOCS NAME: one counted update by one shell of its own, at last.
cat >"$DIR/count" <<'END'
#!/bin/sh
cd "$1" || exit 1
i=0
until jq -c '.n += 1' counter >".t$2" && mv ".t$2" counter; do
	i=$((i + 1))
	[ $i -lt 3000 ] || exit 1
done 2>/dev/null
END
# The same with a variable in between, and a pipeline.
cat >"$DIR/count_by_variable" <<'END'
#!/bin/sh
cd "$1" || exit 1
i=0
until x=$(cat counter) && printf '%s\n' "$x" | jq -c '.n += 1' >".t$2" && mv ".t$2" counter; do
	i=$((i + 1))
	[ $i -lt 3000 ] || exit 1
done 2>/dev/null
END
chmod +x "$DIR/count" "$DIR/count_by_variable"
export COUNT=$DIR/count VARIABLE=$DIR/count_by_variable A B EACH

begin() {
	rm -f "$DIR/bucket/counter"
	"$CAIRN" --store "$DIR/bucket" doc update counter --create '{"n":0}' -- cat >/dev/null || fail begin
}
end() { assert_equal "$(jq .n "$DIR/bucket/counter")" "$2" "$1"; }

begin # eight background jobs of one shell, on both mounts
for j in 1 2 3 4 5 6 7 8; do
	where=$A
	[ $((j % 2)) = 0 ] || where=$B
	(
		cd "$where" || exit 1
		for ((i = 0; i < EACH; i++)); do
			until jq -c '.n += 1' counter >".t$j" && mv ".t$j" counter; do :; done 2>/dev/null
		done
	) &
done
wait
end 'background jobs' $((8 * EACH))

begin # the same in subshells of subshells, by a variable, through pipelines
for j in 1 2 3 4 5 6 7 8; do
	( (
		cd "$A" || exit 1
		for ((i = 0; i < EACH; i++)); do
			until x=$(cat counter) && (printf '%s\n' "$x" | jq -c '.n += 1' | cat >".t$j") && mv ".t$j" counter; do :; done 2>/dev/null
		done
	) ) &
done
wait
end 'subshells and pipelines' $((8 * EACH))

begin # a pipeline that reads and writes the same document
for j in 1 2 3 4; do
	bash -c 'cd "$A" && for ((i = 0; i < EACH; i++)); do
		until jq -c ".n += 1" counter | sponge counter && [ "${PIPESTATUS[*]}" = "0 0" ]; do :; done 2>/dev/null
	done' &
done
wait
end 'jq | sponge' $((4 * EACH))

begin
printf '%s\n' 'DOCS := $(A)' 'jobs := $(foreach j,$(shell seq $(TIMES)),job$(j))' 'all: $(jobs)' \
	'.PHONY: all $(jobs)' '$(jobs):' '	@$(COUNT) $(DOCS) $@' >"$DIR/Makefile"
succeed make -s -j8 -f "$DIR/Makefile" TIMES="$TIMES" all
end 'make -j8' "$TIMES"

begin # recipes that are one shell line each
printf '%s\n' 'jobs := $(foreach j,$(shell seq $(TIMES)),job$(j))' 'all: $(jobs)' '.PHONY: all $(jobs)' '$(jobs):' \
	'	@cd $(A); until jq -c ".n += 1" counter >.t$@ && mv .t$@ counter; do :; done 2>/dev/null' >"$DIR/Makefile"
succeed make -s -j8 -f "$DIR/Makefile" TIMES="$TIMES" all
end 'make -j8, one line a recipe' "$TIMES"

begin
seq "$TIMES" | xargs -P8 -I{} "$VARIABLE" "$A" {} || fail 'xargs'
end 'xargs -P8' "$TIMES"

begin
for j in 1 2 3 4 5 6 7 8; do
	setsid -w sh -c 'i=0; while [ $i -lt "$EACH" ]; do "$VARIABLE" "$B" "$1" || exit 1; i=$((i + 1)); done' sh $j &
done
wait
end 'setsid' $((8 * EACH))

begin # daemons: nobody of theirs is left above
for j in 1 2 3 4; do
	setsid -f sh -c 'i=0; while [ $i -lt "$EACH" ]; do "$COUNT" "$A" "d$1" || exit 1; i=$((i + 1)); done; : >"$2.$1"' sh $j "$DIR/.state/ended"
done
for j in 1 2 3 4; do poll_until 120 "daemon $j has counted" test -e "$DIR/.state/ended.$j"; done
end 'setsid -f' $((4 * EACH))

begin # sudo: for the reading, for the writing, for all
for j in 1 2 3 4; do
	(
		cd "$A" || exit 1
		for ((i = 0; i < EACH; i++)); do
			until x=$(sudo cat counter) && printf '%s\n' "$x" | sudo jq -c '.n += 1' >".t$j" && sudo mv ".t$j" counter; do :; done 2>/dev/null
		done
	) &
	(for ((i = 0; i < EACH; i++)); do sudo "$COUNT" "$B" "s$j" || exit 1; done) &
done
wait
end 'sudo' $((8 * EACH))
