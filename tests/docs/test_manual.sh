#!/bin/sh
# Every function of the header HEADER has its place in the library's man page PAGE, at least by its
# blocking form.
set -eu
header=$1 page=$2
names=$(grep -o '\bgcoll_[a-z_]*(' "$header" | tr -d "(" | grep -v _fn | sort -u)
missing=
for name in $names; do
	base=${name%_init}
	case $base in
	gcoll_i*) plain=gcoll_${base#gcoll_i} ;;
	*) plain=$base ;;
	esac
	grep -q "\*$name[*(]" "$page" || grep -q "\*$base[*(]" "$page" || grep -q "\*$plain[*(]" "$page" ||
		missing="$missing $name"
done
[ "$(echo "$names" | wc -w)" -gt 50 ] || { echo "few functions found in $header"; exit 1; }
[ -z "$missing" ] || { echo "not in $page:$missing"; exit 1; }
