#!/bin/sh
# Every function of the headers has its place in the library's man page, at least by its blocking form.
#	test_manual.sh PAGE HEADER...
set -eu
page=$1
shift
names=$(grep -oh '\bgcoll_[a-z_]*(' "$@" | tr -d "(" | grep -v _fn | sort -u)
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
[ "$(echo "$names" | wc -w)" -gt 50 ] || { echo "few functions found in $*"; exit 1; }
[ -z "$missing" ] || { echo "not in $page:$missing"; exit 1; }
