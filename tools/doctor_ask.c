/* SPDX-License-Identifier: MIT
 * Facts that only trying tells. */
#include "netem/host.h"
#include "netem/tap.h"
#include "netem/uml.h"
#include "tools/doctor.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <unistd.h>

/* A kernel that has it wants a connection. */
static int try_tls(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), error = 0;

	if (fd < 0)
		return errno;
	if (setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")) && errno != ENOTCONN)
		error = errno;
	close(fd);
	return error;
}

/* Its headers do not tell, and `openssl list -disabled` tells of the tool. A library that can hand
 * its keys to the kernel keeps this mark; TLS 1.3 it leaves to it when receiving since 3.2. */
static int ask_openssl(void)
{
	const int control_message = 74, mark = 0x1000; /* bio.h: BIO_CTRL_SET_KTLS_SEND_CTRL_MSG */
	BIO *b = BIO_new(BIO_s_socket());
	int can;

	if (!b)
		return 0;
	BIO_ctrl(b, control_message, 0, NULL);
	can = BIO_test_flags(b, mark) != 0;
	BIO_free(b);
	return can ? 1 + (OpenSSL_version_num() >= 0x30200000) : 0;
}

static void ask_clock(struct gct_facts *f)
{
	struct timex t = {0};
	int state = adjtimex(&t);

	if (state < 0)
		return;
	f->synced = state != TIME_ERROR && !(t.status & STA_UNSYNC);
	f->clock_error_us = t.maxerror > 0 ? (uint64_t)t.maxerror : 0;
}

static int offload(int fd, const char *nic, uint32_t command)
{
	struct ethtool_value v = {.cmd = command};
	struct ifreq r = {.ifr_data = (char *)&v};

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%.15s", nic);
	return ioctl(fd, SIOCETHTOOL, &r) ? -1 : !!v.data;
}

static void ask_nics(struct gct_facts *f)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), i;

	for (i = 0; fd >= 0 && i < f->nnics; i++) {
		struct gct_nic *n = &f->nics[i];

		n->offload[GCT_TSO] = offload(fd, n->name, ETHTOOL_GTSO);
		n->offload[GCT_GSO] = offload(fd, n->name, ETHTOOL_GGSO);
		n->offload[GCT_GRO] = offload(fd, n->name, ETHTOOL_GGRO);
	}
	if (fd >= 0)
		close(fd);
}

static void ask_qdiscs(struct gct_facts *f)
{
	static const enum gct_module modules[] = {GCT_FQ, GCT_NETEM, GCT_TBF, GCT_HTB};
	size_t i;
	int has;

	for (i = 0; i < sizeof(modules) / sizeof(*modules); i++) {
		has = gci_host_has_qdisc(gct_module_name(modules[i]) + strlen("sch_"));
		if (has >= 0)
			f->module[modules[i]] = has;
	}
}

/* As `gridcoll lab doctor`, but that no guest is booted. */
static void ask_lab(struct gct_facts *f)
{
	struct gci_error host = {0}, tap = {0}, uml = {0};

	gci_host_check(&host);
	gci_tap_check(&tap);
	gci_uml_check(&uml);
	f->lab = !host.status || !tap.status || !uml.status;
	snprintf(f->lab_host, sizeof(f->lab_host), "%.190s", host.text);
	snprintf(f->lab_tap, sizeof(f->lab_tap), "%.190s", tap.text);
	snprintf(f->lab_uml, sizeof(f->lab_uml), "%.190s", uml.text);
}

void gct_facts_ask(struct gct_facts *f)
{
	f->uring = -gci_uring_probe(f->uring_why);
	f->tls_kernel = try_tls();
	f->tls_openssl = ask_openssl();
	ask_clock(f);
	ask_nics(f);
	ask_qdiscs(f);
	ask_lab(f);
}
