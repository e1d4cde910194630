/* SPDX-License-Identifier: MIT */
#include "base/options.h"

#include "base/units.h"

#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#define NARROW 36 /* column at which explanations begin at the latest */

#define FIRST_VAL 256 /* of long options: no letter */

int gci_option_wrong(struct gci_error *e, const char *name, const char *value, const char *expected)
{
	return gci_error_set(e, GCOLL_ERR_INVAL, "--%s \"%s\", expected %s", name, value, expected);
}

static void put(const struct gci_option *o, void *settings, uint64_t v)
{
	char *field = (char *)settings + o->at;
	uint32_t narrow = (uint32_t)v;

	if (o->nbytes == sizeof(v))
		memcpy(field, &v, sizeof(v));
	else
		memcpy(field, &narrow, sizeof(narrow));
}

static int fits(const struct gci_option *o, uint64_t v)
{
	return v >= o->least && v <= o->most;
}

static int take_number(
	const struct gci_option *o, void *settings, const char *value, struct gci_error *e)
{
	char expected[80];
	uint64_t v;

	if (!gci_parse_uint(value, o->most, &v) && fits(o, v)) {
		put(o, settings, v);
		return 0;
	}
	snprintf(expected, sizeof(expected), "a number from %" PRIu64 " to %" PRIu64, o->least,
		o->most);
	return gci_option_wrong(e, o->name, value, o->expected ? o->expected : expected);
}

static int take_unit(const struct gci_option *o, void *settings, const char *value,
	int (*parse)(const char *s, uint64_t *out), const char *expected, struct gci_error *e)
{
	uint64_t v;

	if (parse(value, &v) || !fits(o, v))
		return gci_option_wrong(e, o->name, value, o->expected ? o->expected : expected);
	put(o, settings, v);
	return 0;
}

static int take(const struct gci_option *o, void *settings, char *value, struct gci_error *e)
{
	static const int one = 1;

	if (value && !*value && o->type != GCI_OPTION_IS_TAKEN)
		return gci_option_wrong(e, o->name, value, "a value that is not empty");
	switch (o->type) {
	case GCI_OPTION_IS_TAKEN:
		return o->take(settings, value, e);
	case GCI_OPTION_IS_FLAG:
		memcpy((char *)settings + o->at, &one, sizeof(one));
		return 0;
	case GCI_OPTION_IS_TEXT:
		memcpy((char *)settings + o->at, &value, sizeof(value));
		return 0;
	case GCI_OPTION_IS_NUMBER:
		return take_number(o, settings, value, e);
	case GCI_OPTION_IS_BYTES:
		return take_unit(o, settings, value, gci_parse_bytes, GCI_BYTES_EXPECTED, e);
	case GCI_OPTION_IS_TIME:
		return take_unit(o, settings, value, gci_parse_time, GCI_TIME_EXPECTED, e);
	case GCI_OPTION_IS_RATE:
		return take_unit(o, settings, value, gci_parse_rate, GCI_RATE_EXPECTED, e);
	}
	return 0;
}

/* What getopt_long did not like: `c` is '?', or ':' for a missing value. */
static int complain(
	int c, char **argv, const struct option *longs, const char *program, struct gci_error *e)
{
	const char *before = argv[optind - 1];
	char text[64];
	int known = 0;

	for (; longs->name; longs++)
		known |= longs->val == optopt && !strncmp(before, "--", 2);
	if (known || !optopt)
		snprintf(text, sizeof(text), "%.*s", (int)strcspn(before, "="), before);
	else
		snprintf(text, sizeof(text), "-%c", optopt);
	return gci_error_set(e, GCOLL_ERR_INVAL, "%s %s, see %s --help",
		c == ':' ? "a value is missing after"
		: known  ? "no value is expected after"
			 : "unknown option",
		text, program);
}

/* getopt's two lists. */
static void list(const struct gci_option *options, struct option longs[GCI_OPTIONS_MOST + 2],
	char letters[2 * GCI_OPTIONS_MOST + 4], enum gci_options_order order)
{
	char *at = letters;
	int n = 0;

	if (order == GCI_OPTIONS_FIRST)
		*at++ = '+';
	*at++ = ':';
	*at++ = 'h';
	for (; options[n].name && n < GCI_OPTIONS_MOST; n++) {
		const struct gci_option *o = &options[n];

		longs[n] = (struct option){
			o->name, o->value != NULL, NULL, o->letter ? o->letter : FIRST_VAL + n};
		if (o->letter)
			*at++ = o->letter;
		if (o->letter && o->value)
			*at++ = ':';
	}
	*at = '\0';
	longs[n++] = (struct option){"help", 0, NULL, 'h'};
	longs[n] = (struct option){NULL, 0, NULL, 0};
}

int gci_options_read(const struct gci_option *options, void *settings, int argc, char **argv,
	enum gci_options_order order, const char *program, struct gci_error *e)
{
	struct option longs[GCI_OPTIONS_MOST + 2];
	char letters[2 * GCI_OPTIONS_MOST + 4];
	int c, n;

	list(options, longs, letters, order);
	optind = 0; /* glibc: begin anew */
	while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (c == 'h')
			return GCI_OPTIONS_HELP;
		if (c == '?' || c == ':')
			return complain(c, argv, longs, program, e), GCI_OPTIONS_WRONG;
		n = c - FIRST_VAL;
		if (c < FIRST_VAL)
			for (n = 0; options[n].letter != c;)
				n++;
		if (take(&options[n], settings, optarg, e))
			return GCI_OPTIONS_WRONG;
	}
	return optind;
}

/* "-b, --bytes LIST", in so many columns. */
static int heading(const struct gci_option *o, char *out, size_t size)
{
	char letter[8] = "    ";

	if (o->letter)
		snprintf(letter, sizeof(letter), "-%c, ", o->letter);
	return snprintf(out, size, "  %s--%s%s%s", letter, o->name, o->value ? " " : "",
		o->value ? o->value : "");
}

static void print_one(const struct gci_option *o, int column, FILE *out)
{
	char text[80];
	int at = heading(o, text, sizeof(text));

	if (at < column - 1)
		at = fprintf(out, "%-*s", column, text);
	else
		at = fprintf(out, "%s ", text);
	gci_print_wrapped(out, o->help, at, column);
}

void gci_options_print(const struct gci_option *options, FILE *out)
{
	static const struct gci_option help = {'h', "help", .help = "this text"};
	const struct gci_option *o;
	int n, column = 0;
	char text[80];

	for (o = options; o->name; o++) {
		n = o->help ? heading(o, text, sizeof(text)) + 2 : 0;
		if (n > column && n <= NARROW)
			column = n;
	}
	for (o = options; o->name; o++)
		if (o->help)
			print_one(o, column, out);
	print_one(&help, column, out);
}

void gci_print_wrapped(FILE *out, const char *text, int at, int indent)
{
	int begun = 0;

	for (;;) {
		int len;

		text += strspn(text, " ");
		len = (int)strcspn(text, " ");
		if (!len)
			break;
		if (begun && at + 1 + len > GCI_OPTIONS_COLUMNS) {
			fprintf(out, "\n%*s", indent, "");
			at = indent;
		} else if (begun) {
			fputc(' ', out);
			at++;
		}
		fprintf(out, "%.*s", len, text);
		text += len;
		at += len;
		begun = 1;
	}
	fputc('\n', out);
}
