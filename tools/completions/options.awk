# Reads what --help says. A line for each option or command: o or c, its name, what stands for its value,
# what it does, with tabs between.
function put(kind, name, value, text) {
	if (!seen[kind, name]++)
		printf "%s\t%s\t%s\t%s\n", kind, name, value, text
}
/^usage: / { usage = 1 }
!/^usage: / && !/^       / { usage = 0 }
usage { # what no line of its own explains comes last
	line = $0
	if (match(line, /gridcoll [a-z]+ [a-z]+/)) {
		split(substr(line, RSTART, RLENGTH), words, " ")
		verb[++verbs] = words[3]
	}
	if (match(line, /gridcoll --[a-z]+/))
		brief[++briefs] = substr(line, RSTART + 9, RLENGTH - 9)
	while (match(line, /\[--?[a-z0-9][^]]*\]/)) {
		split(substr(line, RSTART + 1, RLENGTH - 2), words, " ")
		brief[++briefs] = words[1]
		brief_value[briefs] = words[2]
		line = substr(line, RSTART + RLENGTH)
	}
	next
}
/^ +-/ {
	names = 0
	value = text = ""
	for (i = 1; i <= NF; i++) {
		word = $i
		more = sub(/,$/, "", word)
		if (word ~ /^-/ && (i == 1 || after)) {
			name[++names] = word
			own[names] = ""
		} else if (word ~ /^([A-Z][A-Z0-9]*([>=-][A-Z=]+)*|[A-Za-z]+(\|[a-z]+)+)$/ && value == "" || after) {
			own[names] = word
			if (!more)
				value = word
		} else
			break
		after = more
	}
	for (; i <= NF; i++)
		text = text (text == "" ? "" : " ") $i
	for (i = 1; i <= names; i++)
		put("o", name[i], own[i] == "" ? value : own[i], text)
	after = 0
	next
}
/^  [a-z]/ {
	text = $0
	sub(/^  .*[^ ]  +/, "", text)
	put("c", $1, "", text)
}
END {
	for (i = 1; i <= verbs; i++)
		put("c", verb[i], "", "")
	put("o", "--help", "", "")
	for (i = 1; i <= briefs; i++)
		put("o", brief[i], brief_value[i], "")
}
