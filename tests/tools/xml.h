/* SPDX-License-Identifier: MIT
 * Is it well-formed XML, of the plain kind that we write? */
#ifndef GCI_TESTS_TOOLS_XML_H
#define GCI_TESTS_TOOLS_XML_H

#include <stddef.h>

/* NULL, or what is wrong. */
const char *xml_wrong(const char *text, size_t len);

#endif
