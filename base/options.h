/* SPDX-License-Identifier: MIT
 * A command's options: one table, by which its arguments are read and --help is printed, so that the
 * two agree (and with them what completes command lines, which asks --help).
 *
 *	static const struct gci_option options[] = {
 *		{'i', "iters", "N", "warm iterations (default 5)",
 *			GCI_OPTION_NUMBER(struct settings, iterations, 1, 1000000)},
 *		{'j', "json", NULL, "for programs", GCI_OPTION_FLAG(struct settings, json)},
 *		{0, "bytes", "LIST", "sizes, e.g. 8,64KiB", .take = take_sizes},
 *		{0}};
 *	struct settings s = {.iterations = 5};
 *
 *	n = gci_options_read(options, &s, argc, argv, GCI_OPTIONS_ANYWHERE, "mine", &e);
 *	if (n == GCI_OPTIONS_HELP)
 *		gci_options_print(options, stdout);
 *	...					// n > 0: argv[n] is the first operand
 *
 * -h, --help is every command's, and not in the table. One thread (getopt). */
#ifndef GCI_BASE_OPTIONS_H
#define GCI_BASE_OPTIONS_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum gci_option_type {
	GCI_OPTION_IS_TAKEN, /* by `take` */
	GCI_OPTION_IS_FLAG,
	GCI_OPTION_IS_TEXT,
	GCI_OPTION_IS_NUMBER,
	GCI_OPTION_IS_BYTES,
	GCI_OPTION_IS_TIME,
	GCI_OPTION_IS_RATE,
};

struct gci_option {
	char letter;       /* of the short form; 0: none */
	const char *name;  /* of the long one, without dashes; NULL ends the table */
	const char *value; /* what --help calls its value; NULL: it takes none */
	const char *help;  /* as words: lines are broken when it is printed; NULL: not shown */
	enum gci_option_type type;
	size_t at, nbytes;    /* of the field in the settings: an int, const char *, or unsigned */
	uint64_t least, most; /* that the field may be */
	const char *expected; /* where that is not what an error should say; NULL: it is */
	/* Of what is none of these. `value` may be cut up: it is the argument itself. A GCOLL_ERR_*
	 * with the whole text in `e`. */
	int (*take)(void *settings, char *value, struct gci_error *e);
};

/* Where in a table's row the field is, which settings it is a part of, and of which of two sizes. */
#define GCI_OPTION_FIELD(s, f, size, or_size)                                     \
	.at = offsetof(s, f),                                                     \
	.nbytes = sizeof(((s *)NULL)->f) *                                        \
		  sizeof(char[sizeof(((s *)NULL)->f) == (size) ||                 \
					      sizeof(((s *)NULL)->f) == (or_size) \
				      ? 1                                         \
				      : -1])
#define GCI_OPTION_UNSIGNED(s, f, from, to) \
	GCI_OPTION_FIELD(s, f, sizeof(uint32_t), sizeof(uint64_t)), .least = (from), .most = (to)

#define GCI_OPTION_FLAG(s, f) /* int: 1 */ \
	.type = GCI_OPTION_IS_FLAG, GCI_OPTION_FIELD(s, f, sizeof(int), sizeof(int))
#define GCI_OPTION_TEXT(s, f) /* const char * */ \
	.type = GCI_OPTION_IS_TEXT, GCI_OPTION_FIELD(s, f, sizeof(char *), sizeof(char *))
#define GCI_OPTION_NUMBER(s, f, from, to) \
	.type = GCI_OPTION_IS_NUMBER, GCI_OPTION_UNSIGNED(s, f, from, to)
#define GCI_OPTION_BYTES(s, f, from, to) \
	.type = GCI_OPTION_IS_BYTES, GCI_OPTION_UNSIGNED(s, f, from, to)
#define GCI_OPTION_TIME(s, f, from, to) \
	.type = GCI_OPTION_IS_TIME, GCI_OPTION_UNSIGNED(s, f, from, to)
#define GCI_OPTION_RATE(s, f, from, to) \
	.type = GCI_OPTION_IS_RATE, GCI_OPTION_UNSIGNED(s, f, from, to)

#define GCI_OPTIONS_MOST 64 /* in a table */

enum gci_options_order {
	GCI_OPTIONS_ANYWHERE, /* operands are moved behind them */
	GCI_OPTIONS_FIRST,    /* the first operand ends them: a command, with options of its own */
};

#define GCI_OPTIONS_WRONG (-1)
#define GCI_OPTIONS_HELP  (-2)

/* argv[0] is no option. Texts point into argv. `program` is whose --help an error refers to. Returns
 * the number of the first operand; _WRONG: a GCOLL_ERR_* and the reason in `e`; _HELP: it was asked
 * for. */
int gci_options_read(const struct gci_option *options, void *settings, int argc, char **argv,
	enum gci_options_order order, const char *program, struct gci_error *e);

/* Lines of --help: at most GCI_OPTIONS_COLUMNS wide. */
#define GCI_OPTIONS_COLUMNS 79
void gci_options_print(const struct gci_option *options, FILE *out);

/* Prints the words of `text` and the end of the line. Column `at` has been reached already; further
 * lines begin at column `indent`. Longer words than there is room for are not cut. */
void gci_print_wrapped(FILE *out, const char *text, int at, int indent);

/* GCOLL_ERR_INVAL: "--NAME "VALUE", expected EXPECTED". */
int gci_option_wrong(
	struct gci_error *e, const char *name, const char *value, const char *expected);

#endif
