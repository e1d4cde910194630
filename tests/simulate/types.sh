#!/bin/sh
# SPDX-License-Identifier: MIT
# types.sh SIM: is every type of OpenSSL's that the product releases one that heap.c takes back from
# dead processes? One that is not shows as a leak, and only where the processor makes the product use
# it and a process dies while it holds one.
command -v nm >/dev/null || exit 77

# Released by the function that has made them, with no system call between.
short_lived="BIO_free EVP_CIPHER_free EVP_KDF_free EVP_KDF_CTX_free SSL_SESSION_free"

nm "$1" | awk -v short_lived="$short_lived" '
BEGIN { split(short_lived, names, " "); for (i in names) known[names[i]] = 1 }
{ sub(/@.*/, "", $NF) }
$NF ~ /^__wrap_/ { known[substr($NF, 8)] = 1 }
$(NF - 1) == "U" && $NF ~ /^[A-Z].*_free$/ { released[$NF] = 1; n++ }
END {
	for (f in released)
		if (!(f in known)) {
			print f ": expected among the TYPES of heap.c (or the short-lived of types.sh)"
			bad = 1
		}
	if (!n)
		print "nothing of OpenSSL is released: expected SSL_free at least"
	exit bad || !n
}'
