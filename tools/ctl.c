/* SPDX-License-Identifier: MIT
 * gridcoll ctl: asks a running job, and changes its budgets. */
#include "base/error.h"
#include "shaping/budget.h"
#include "tools/ctl_client.h"
#include "tools/tools.h"

#include <stdlib.h>
#include <string.h>

static const char help[] =
	"usage: gridcoll ctl [JOB] status | budget A>B=RATE...\n"
	"Asks a running gridcoll-run of this user, or changes its budgets.\n"
	"  status             its links, their rates and budgets\n"
	"  budget A>B=RATE    send no faster than that from cluster A to B from now on,\n"
	"                     e.g. kyoto>tokyo=2Gbit; kyoto>tokyo=off: at will\n"
	"JOB is the process id of the gridcoll-run, or the path of its socket; it is not\n"
	"needed while only one job is running.\n"
	"example: gridcoll ctl budget 'kyoto>tokyo=2Gbit'\n";

static int failed(const struct gci_error *e)
{
	fprintf(stderr, "gridcoll ctl: %s\n", e->text);
	return GCT_FAILED;
}

static int wrong(const char *what, const char *expected)
{
	fprintf(stderr, "gridcoll ctl: %s, expected %s (see --help)\n", what, expected);
	return GCT_USAGE;
}

/* As grid files have it, as short as it is exact. */
static const char *rate_text(json_int_t bps, char *out, size_t size)
{
	static const char *const units[] = {"bit", "kbit", "Mbit", "Gbit", "Tbit"};
	size_t unit = 0;

	while (unit < 4 && bps && bps % 1000 == 0) {
		bps /= 1000;
		unit++;
	}
	snprintf(out, size, "%lld%s", (long long)bps, units[unit]);
	return out;
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "?";
}

static void print_status(const json_t *reply)
{
	json_t *links = json_object_get(reply, "links"), *l;
	json_int_t k = json_integer_value(json_object_get(reply, "dilation"));
	long long ranks = json_integer_value(json_object_get(reply, "ranks"));
	long long clusters = json_integer_value(json_object_get(reply, "clusters"));
	char rate[32], budget[32];
	size_t i;

	printf("%s: %lld rank%s in %lld cluster%s", text_of(reply, "command"), ranks,
		ranks == 1 ? "" : "s", clusters, clusters == 1 ? "" : "s");
	if (k > 1)
		printf(", in a lab that is %lld times slower than these rates", (long long)k);
	printf("\n");
	json_array_foreach (links, i, l) {
		json_int_t bps = json_integer_value(json_object_get(l, "rate_bps"));
		json_int_t most = json_integer_value(json_object_get(l, "budget_bps"));

		printf("  %s > %s  rate %s, budget %s\n", text_of(l, "from"), text_of(l, "to"),
			bps ? rate_text(bps, rate, sizeof(rate)) : "unknown",
			most ? rate_text(most, budget, sizeof(budget)) : "none");
	}
}

static int status(struct gct_ctl *c, struct gci_error *e)
{
	json_t *reply = gct_ctl_ask(c, json_pack("{s:s}", "cmd", "status"), e);

	if (!reply)
		return failed(e);
	print_status(reply);
	json_decref(reply);
	return GCT_OK;
}

static int budgets(struct gct_ctl *c, char **orders, struct gci_error *e)
{
	json_t *reply;

	for (; *orders; orders++) {
		reply = gct_ctl_ask(
			c, json_pack("{s:s, s:s}", "cmd", "budget", "budget", *orders), e);
		if (!reply)
			return failed(e);
		json_decref(reply);
	}
	return GCT_OK;
}

/* Before any of them is sent. */
static int check_budgets(char **orders)
{
	struct gci_budget_order o;
	struct gci_error e = {0};

	if (!*orders)
		return wrong("nothing behind budget", GCI_BUDGET_EXPECTED);
	for (; *orders; orders++)
		if (gci_budget_parse(&o, *orders, &e)) {
			fprintf(stderr, "gridcoll ctl: budget: %s\n", e.text);
			return GCT_USAGE;
		}
	return GCT_OK;
}

static int is_verb(const char *word)
{
	return word && (!strcmp(word, "status") || !strcmp(word, "budget"));
}

/* A process id or a path, that is. */
static int may_be_job(const char *word)
{
	return strchr(word, '/') || strspn(word, "0123456789") == strlen(word);
}

static int is_help(const char *word)
{
	return word && (!strcmp(word, "--help") || !strcmp(word, "-h"));
}

int gct_ctl(int argc, char **argv)
{
	struct gci_error e = {0};
	const char *job = NULL;
	struct gct_ctl c;
	int rc;

	if (is_help(argv[1]) || (argc > 2 && is_verb(argv[1]) && is_help(argv[2])))
		return fputs(help, stdout) < 0 ? GCT_FAILED : GCT_OK;
	argv++;
	if (*argv && **argv == '-') {
		fprintf(stderr, "gridcoll ctl: unknown option %s, expected none (see --help)\n",
			*argv);
		return GCT_USAGE;
	}
	if (*argv && !is_verb(*argv))
		job = *argv++;
	if (!is_verb(*argv))
		return wrong(*argv                     ? *argv
			     : job && !may_be_job(job) ? job
						       : "no verb",
			"status or budget");
	rc = !strcmp(*argv, "budget") ? check_budgets(argv + 1) : GCT_OK;
	if (!rc && !strcmp(*argv, "status") && argv[1])
		rc = wrong(argv[1], "nothing behind status");
	if (rc)
		return rc;
	if (gct_ctl_open(&c, job, &e))
		return failed(&e);
	rc = !strcmp(*argv, "budget") ? budgets(&c, argv + 1, &e) : status(&c, &e);
	gct_ctl_close(&c);
	return rc;
}
