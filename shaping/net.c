/* SPDX-License-Identifier: MIT */
#include "shaping/net.h"

#include "base/nics.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

/* "10.2.3.4/16" means 10.2.0.0/16: one network has one name. */
static void cut(struct gci_net *net)
{
	unsigned i;

	for (i = net->bits; i < 128; i++)
		net->ip[i / 8] &= (uint8_t) ~(0x80u >> i % 8);
}

int gci_net_parse(struct gci_net *net, const char *text, struct gci_error *e)
{
	struct gci_nics rules;

	if (gci_nics_parse(&rules, text, NULL) || rules.n != 1 || rules.rules[0].exclude ||
		!rules.rules[0].six)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"\"%s\", expected a network such as 10.2.0.0/16 or fd00:2::/32", text);
	net->six = rules.rules[0].six;
	net->bits = rules.rules[0].bits;
	memcpy(net->ip, rules.rules[0].ip, sizeof(net->ip));
	cut(net);
	return 0;
}

struct gci_net gci_net_of_ip(const uint8_t ip[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct gci_net net = {.six = 6, .bits = 128};

	if (memcmp(ip, mapped, sizeof(mapped))) {
		memcpy(net.ip, ip, 16);
		return net;
	}
	net.six = 4;
	net.bits = 32;
	memcpy(net.ip, ip + 12, 4);
	return net;
}

const char *gci_net_text(const struct gci_net *net, char text[GCI_NET_TEXT])
{
	char ip[INET6_ADDRSTRLEN] = "?";

	inet_ntop(net->six == 6 ? AF_INET6 : AF_INET, net->ip, ip, sizeof(ip));
	if (net->bits == (net->six == 6 ? 128 : 32))
		snprintf(text, GCI_NET_TEXT, "%s", ip);
	else
		snprintf(text, GCI_NET_TEXT, "%s/%u", ip, net->bits);
	return text;
}
