/* SPDX-License-Identifier: MIT */
#include "base/nics.h"

#include "base/units.h"

#include <arpa/inet.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#define SEPARATORS ", \t\n"
#define MAX_RULE   63

int gci_same_net(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	if (memcmp(a, b, whole))
		return 0;
	return !rest || !((a[whole] ^ b[whole]) >> (8 - rest));
}

static int parse_net(struct gci_nic_rule *r, const char *text)
{
	char ip[MAX_RULE + 1];
	uint64_t bits, all;
	char *slash;

	snprintf(ip, sizeof(ip), "%s", text);
	slash = strchr(ip, '/');
	if (slash)
		*slash = '\0';
	r->six = strchr(ip, ':') ? 6 : 4;
	bits = all = r->six == 6 ? 128 : 32;
	if (inet_pton(r->six == 6 ? AF_INET6 : AF_INET, ip, r->ip) != 1)
		return -1;
	if (slash && gci_parse_uint(slash + 1, all, &bits))
		return -1;
	r->bits = (uint8_t)bits;
	return 0;
}

static int parse_name(struct gci_nic_rule *r, const char *text)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_.@+*?";
	size_t len = strlen(text);

	if (!len || len >= GCI_NIC_NAME || strspn(text, letters) != len)
		return -1;
	memcpy(r->name, text, len);
	return 0;
}

static int parse_rule(struct gci_nic_rule *r, const char *text)
{
	memset(r, 0, sizeof(*r));
	r->exclude = *text == '!';
	text += r->exclude;
	if (strpbrk(text, ":/") || strspn(text, "0123456789.") == strlen(text))
		return parse_net(r, text);
	return parse_name(r, text);
}

int gci_nics_parse(struct gci_nics *r, const char *text, struct gci_error *e)
{
	char rule[MAX_RULE + 1];
	size_t len;

	r->n = 0;
	for (text += strspn(text, SEPARATORS); *text; text += strspn(text, SEPARATORS)) {
		len = strcspn(text, SEPARATORS);
		snprintf(rule, sizeof(rule), "%.*s", (int)(len > MAX_RULE ? MAX_RULE : len), text);
		if (r->n == GCI_NICS_MAX)
			return gci_error_set(
				e, GCOLL_ERR_INVAL, "more than %d rules", GCI_NICS_MAX);
		if (len > MAX_RULE || parse_rule(&r->rules[r->n], rule))
			return gci_error_set(
				e, GCOLL_ERR_INVAL, "\"%s\", expected " GCI_NICS_EXPECTED, rule);
		r->n++;
		text += len;
	}
	return 0;
}

struct net {
	uint8_t six, bits, ip[16];
};

static const struct net loopback[] = {{4, 8, {127}}, {6, 128, {[15] = 1}}};
static const struct net link_local[] = {{4, 16, {169, 254}}, {6, 10, {0xfe, 0x80}}};

/* Whether a network lies in one of the two. */
static int within(const struct net two[2], uint8_t six, uint8_t bits, const uint8_t *ip)
{
	int i;

	for (i = 0; i < 2; i++)
		if (two[i].six == six && bits >= two[i].bits &&
			gci_same_net(ip, two[i].ip, two[i].bits))
			return 1;
	return 0;
}

static int addr_within(const struct net two[2], const struct gci_nic_addr *a)
{
	return within(two, a->six, 128, a->ip);
}

static int matches(const struct gci_nic_rule *r, const struct gci_nic_addr *a)
{
	if (r->six)
		return r->six == a->six && gci_same_net(r->ip, a->ip, r->bits);
	return !fnmatch(r->name, a->nic, 0);
}

/* Whether a rule that matches means this address; on the second `pass` names mean link-local ones,
 * too. */
static int means(const struct gci_nic_rule *r, const struct gci_nic_addr *a, int pass)
{
	if (addr_within(loopback, a))
		return r->six ? within(loopback, r->six, r->bits, r->ip) : !strpbrk(r->name, "*?");
	if (addr_within(link_local, a))
		return r->six ? within(link_local, r->six, r->bits, r->ip) : pass;
	return 1;
}

static int excluded(const struct gci_nics *r, const struct gci_nic_addr *a)
{
	unsigned i;

	for (i = 0; i < r->n; i++)
		if (r->rules[i].exclude && matches(&r->rules[i], a))
			return 1;
	return 0;
}

static int only_excludes(const struct gci_nics *r)
{
	unsigned i;

	for (i = 0; i < r->n; i++)
		if (!r->rules[i].exclude)
			return 0;
	return 1;
}

static unsigned the_usual(const struct gci_nics *r, const struct gci_nic_addr *have, unsigned nhave,
	int usual, unsigned *chosen)
{
	unsigned i;

	if (usual >= 0 && !excluded(r, &have[usual])) {
		chosen[0] = (unsigned)usual;
		return 1;
	}
	for (i = 0; i < nhave; i++)
		if (r->n && !excluded(r, &have[i]) && !addr_within(loopback, &have[i]) &&
			!addr_within(link_local, &have[i])) {
			chosen[0] = i;
			return 1;
		}
	return 0;
}

struct choice {
	const struct gci_nics *all;
	const struct gci_nic_addr *have;
	unsigned nhave;
	unsigned *chosen, n, max;
};

/* Not chosen before, nor another of its interface since `first`. */
static int is_new(const struct choice *c, unsigned i, unsigned first)
{
	unsigned k;

	for (k = 0; k < c->n; k++)
		if (c->chosen[k] == i ||
			(k >= first && !strcmp(c->have[c->chosen[k]].nic, c->have[i].nic)))
			return 0;
	return 1;
}

/* Adds what this rule means of one family, in the order of the addresses: hosts whose cards are on
 * the same networks, whatever their names and numbers there, then have equal numbers for them. */
static void choose_by(struct choice *c, const struct gci_nic_rule *r, uint8_t six, int pass)
{
	unsigned first = c->n, i;

	while (c->n < c->max) {
		const struct gci_nic_addr *best = NULL;

		for (i = 0; i < c->nhave; i++) {
			const struct gci_nic_addr *a = &c->have[i];

			if (a->six == six && matches(r, a) && means(r, a, pass) &&
				!excluded(c->all, a) && is_new(c, i, first) &&
				(!best || memcmp(a->ip, best->ip, sizeof(a->ip)) < 0))
				best = a;
		}
		if (!best)
			return;
		c->chosen[c->n++] = (unsigned)(best - c->have);
	}
}

unsigned gci_nics_choose(const struct gci_nics *r, const struct gci_nic_addr *have, unsigned nhave,
	int usual, unsigned *chosen, unsigned max)
{
	struct choice c = {r, have, nhave, chosen, 0, max};
	unsigned i;
	int pass;

	if (only_excludes(r))
		return the_usual(r, have, nhave, usual, chosen);
	for (pass = 0; pass < 2 && !c.n; pass++)
		for (i = 0; i < r->n; i++) {
			if (r->rules[i].exclude)
				continue;
			choose_by(&c, &r->rules[i], 4, pass);
			choose_by(&c, &r->rules[i], 6, pass);
		}
	return c.n;
}

char *gci_nics_list(const struct gci_nic_addr *have, unsigned n, char *out, size_t size)
{
	char ip[INET6_ADDRSTRLEN], one[80];
	size_t len = 0;
	unsigned i;

	*out = '\0';
	for (i = 0; i < n; i++) {
		inet_ntop(have[i].six == 6 ? AF_INET6 : AF_INET, have[i].ip, ip, sizeof(ip));
		snprintf(one, sizeof(one), "%s%s %s/%u", i ? ", " : "", have[i].nic, ip,
			have[i].bits);
		if (len + strlen(one) + sizeof(", ...") > size) {
			snprintf(out + len, size - len, "%s...", i ? ", " : "");
			break;
		}
		len += (size_t)snprintf(out + len, size - len, "%s", one);
	}
	return out;
}
