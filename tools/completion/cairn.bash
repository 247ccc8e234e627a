# bash completion for cairn(1): commands, their options, keys of the bucket.

# The words before the cursor without options: the command's name in one or two words.
_cairn_command() {
	local word value=
	command=
	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		if [[ $value ]]; then
			value=
			continue
		fi
		case $command$word in
		--store | --timeout) value=follows ;;
		-*) ;;
		lease | doc) command=$word ;;
		*)
			command+=${command:+ }$word
			return
			;;
		esac
	done
}

# What the help of `cairn $1` lists in lines that match the extended expression $2.
_cairn_help() {
	# shellcheck disable=SC2086 # the command may be two words
	cairn $1 --help 2>/dev/null | sed -nE "s/$2/\\1/p"
}

_cairn_keys() {
	local store=() i
	for ((i = 1; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} == --store ]] && store=(--store "${COMP_WORDS[i + 1]}")
	done
	mapfile -t COMPREPLY < <(cairn ls "${store[@]}" -- "$1" 2>/dev/null)
	[[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace
}

_cairn() {
	local current previous words command
	# Keys may hold colons, which bash takes for the end of a word.
	_get_comp_words_by_ref -n : -c current -p previous 2>/dev/null || {
		current=${COMP_WORDS[COMP_CWORD]}
		previous=${COMP_WORDS[COMP_CWORD - 1]}
	}
	_cairn_command
	COMPREPLY=()
	if [[ $previous == --store ]]; then
		mapfile -t COMPREPLY < <(compgen -d -- "$current")
	elif [[ $current == -* ]]; then
		words=$(_cairn_help "$command" '^  [-a-zA-Z0-9, ]*(--[a-z-]+).*')
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
	elif [[ -z $command ]]; then
		words=$(_cairn_help '' '^  ([a-z]+)( [a-z]+)?  .*' | sort -u)
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
	elif [[ $command == lease || $command == doc ]]; then
		words=$(_cairn_help "$command" "^  $command ([a-z]+) .*")
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
	elif [[ $command == *mount || $command == status ]]; then
		mapfile -t COMPREPLY < <(compgen -d -- "$current")
	else
		_cairn_keys "$current"
		declare -F __ltrim_colon_completions >/dev/null && __ltrim_colon_completions "$current"
	fi
}

complete -F _cairn cairn
