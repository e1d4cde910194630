/* SPDX-License-Identifier: MIT */
#include "transport/security.h"

#include "base/error.h"

#include <string.h>

int gci_security_parse(const char *name, enum gci_security *out)
{
	static const char *const names[] = {"auto", "off", "auth", "encrypt"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(name, names[i]) != 0)
			continue;
		*out = (enum gci_security)i;
		return 0;
	}
	return GCOLL_ERR_INVAL;
}

int gci_security_encrypts(enum gci_security s, int far)
{
	return s == GCI_SECURITY_ENCRYPT || (s == GCI_SECURITY_AUTO && far);
}
