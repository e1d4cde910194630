/* SPDX-License-Identifier: MIT */
#include "shaping/budget.h"

#include "base/units.h"

#include <string.h>

uint64_t gci_budget_sender(const struct gci_budget *b, unsigned senders)
{
	uint64_t n = senders ? senders : 1, bps;

	if (b->given_bps) {
		bps = b->given_bps / n;
		return bps ? bps : 1;
	}
	/* One that sends alone finds the link's rate as TCP does. */
	if (n < 2 || !b->link_bps || !b->nic_bps || b->nic_bps <= b->link_bps / n)
		return 0;
	bps = b->link_bps / 100 * (100 - GCI_BUDGET_SPARE_PERCENT) / n;
	return bps ? bps : 1;
}

/* The text before any of `ends`, without blanks around it; where it ends, or NULL. */
static const char *word(const char *text, char end, char *out, size_t size)
{
	const char *stop = strchr(text, end), *last = stop;

	while (stop && *text == ' ')
		text++;
	while (last && last > text && last[-1] == ' ')
		last--;
	if (!stop || last <= text || (size_t)(last - text) >= size)
		return NULL;
	memcpy(out, text, (size_t)(last - text));
	out[last - text] = '\0';
	return stop;
}

int gci_budget_parse(struct gci_budget_order *o, const char *text, struct gci_error *e)
{
	const char *at = word(text, '>', o->from, sizeof(o->from));
	char rate[32];

	o->bps = 0;
	at = at ? word(at + 1, '=', o->to, sizeof(o->to)) : NULL;
	at = at ? word(at + 1, '\0', rate, sizeof(rate)) : NULL;
	if (!at || (strcmp(rate, "off") != 0 && (gci_parse_rate(rate, &o->bps) || !o->bps)))
		return gci_error_set(
			e, GCOLL_ERR_INVAL, "\"%.100s\", expected " GCI_BUDGET_EXPECTED, text);
	if (!strcmp(o->from, o->to))
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"\"%.100s\": a cluster to itself, expected two clusters", text);
	return 0;
}
