/* SPDX-License-Identifier: MIT
 * Rules for interfaces. Two bytes each make up a host's addresses, the rest of the input is the
 * rules; what they choose is checked against a match that is made bit by bit. */
#include "base/nics.h"
#include "shaping/net.h"

#include <stdlib.h>
#include <string.h>

#define MOST 16

static void make_host(const uint8_t *bytes, struct gci_nic_addr *have, unsigned n)
{
	static const char *const nics[] = {"lo", "eth0", "eth1", "ib0"};
	static const uint8_t heads[][2] = {{127, 0}, {10, 1}, {169, 254}, {0xfe, 0x80}, {0xfd, 0}};
	unsigned i;

	for (i = 0; i < n; i++) {
		unsigned kind = bytes[2 * i] % 5;

		memset(&have[i], 0, sizeof(have[i]));
		strcpy(have[i].nic, nics[bytes[2 * i] / 5 % 4]);
		have[i].six = kind < 3 ? 4 : 6;
		memcpy(have[i].ip, heads[kind], 2);
		have[i].ip[have[i].six == 6 ? 15 : 3] = bytes[2 * i + 1];
		have[i].bits = 16;
	}
}

/* Not of names, which have patterns. */
static int in_net(const struct gci_nic_rule *r, const struct gci_nic_addr *a)
{
	unsigned i;

	for (i = 0; i < r->bits; i++)
		if ((r->ip[i / 8] ^ a->ip[i / 8]) >> (7 - i % 8) & 1)
			return 0;
	return r->six == a->six;
}

static int by_net(const struct gci_nics *r, const struct gci_nic_addr *a, int exclude)
{
	unsigned i;

	for (i = 0; i < r->n; i++)
		if (r->rules[i].exclude == exclude && r->rules[i].six && in_net(&r->rules[i], a))
			return 1;
	return 0;
}

static int has(const struct gci_nics *r, int exclude, int names)
{
	unsigned i, n = 0;

	for (i = 0; i < r->n; i++)
		n += r->rules[i].exclude == exclude && (r->rules[i].six == 0) == names;
	return n > 0;
}

/* A network as it is printed is the same one. */
static void check_net(const char *text)
{
	struct gci_net net, again;
	char printed[GCI_NET_TEXT];

	if (gci_net_parse(&net, text, NULL))
		return;
	if (gci_net_parse(&again, gci_net_text(&net, printed), NULL) ||
		memcmp(&net, &again, sizeof(net)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gci_nic_addr have[MOST];
	unsigned chosen[4], n, nhave, i, k;
	char text[256], list[100];
	struct gci_error e = {0};
	struct gci_nics r;

	if (!size)
		return 0;
	nhave = data[0] % MOST;
	if (size < 1 + 2 * nhave || size - 1 - 2 * nhave >= sizeof(text))
		return 0;
	make_host(data + 1, have, nhave);
	memset(text, 0, sizeof(text));
	memcpy(text, data + 1 + 2 * nhave, size - 1 - 2 * nhave);
	check_net(text);
	if (gci_nics_parse(&r, text, &e)) {
		if (!e.status || !*e.text)
			abort();
		return 0;
	}
	n = gci_nics_choose(&r, have, nhave, nhave ? 0 : -1, chosen, 4);
	if (n > 4 || (n > 1 && !has(&r, 0, 0) && !has(&r, 0, 1)))
		abort();
	for (i = 0; i < n; i++) {
		if (chosen[i] >= nhave || by_net(&r, &have[chosen[i]], 1))
			abort();
		if (has(&r, 0, 0) && !has(&r, 0, 1) && !by_net(&r, &have[chosen[i]], 0))
			abort();
		for (k = 0; k < i; k++)
			if (chosen[k] == chosen[i])
				abort();
	}
	gci_nics_list(have, nhave, list, sizeof(list));
	return 0;
}
