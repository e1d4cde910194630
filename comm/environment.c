/* SPDX-License-Identifier: MIT */
#include "comm/environment.h"

#include "base/units.h"
#include "transport/control.h"
#include "transport/path.h"
#include "transport/sockopt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int number(const char *name, uint64_t max, uint64_t *out, struct gci_error *e)
{
	const char *s = getenv(name);

	if (s && !gci_parse_uint(s, max, out))
		return 0;
	return gci_error_set(e, GCOLL_ERR_INVAL, "%s=%s, expected a number of at most %llu", name,
		s ? s : "(not set)", (unsigned long long)max);
}

static int read_secret(int fd, uint8_t *secret, struct gci_error *e)
{
	size_t have = 0;

	while (have < GCI_SECRET_NBYTES) {
		ssize_t n = read(fd, secret + have, GCI_SECRET_NBYTES - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return gci_error_set(e, GCOLL_ERR_INVAL,
				"GRIDCOLL_SECRET_FD: the job's secret cannot be read (was it read "
				"before? gcoll_init joins once per process)");
		have += (size_t)n;
	}
	close(fd);
	unsetenv("GRIDCOLL_SECRET_FD"); /* the number may soon be another file's */
	return 0;
}

static int read_port_range(struct gci_environment *env, struct gci_error *e)
{
	const char *s = getenv("GRIDCOLL_PORT_RANGE");

	if (s && *s && gci_parse_ports(s, &env->ports))
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"GRIDCOLL_PORT_RANGE=%s, expected " GCI_PORTS_EXPECTED, s);
	return 0;
}

static int read_data_path(struct gci_environment *env, struct gci_error *e)
{
	const char *s = getenv("GRIDCOLL_DATA_PATH");

	if (s && *s && gci_data_path_parse(s, &env->data_path))
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"GRIDCOLL_DATA_PATH=%s, expected " GCI_DATA_PATH_EXPECTED, s);
	return 0;
}

static int read_pace(struct gci_environment *env, struct gci_error *e)
{
	const char *s = getenv("GRIDCOLL_PACE");

	if (s && *s && gci_pace_parse(s, &env->pace))
		return gci_error_set(
			e, GCOLL_ERR_INVAL, "GRIDCOLL_PACE=%s, expected " GCI_PACE_EXPECTED, s);
	return 0;
}

static int read_security(struct gci_environment *env, struct gci_error *e)
{
	const char *s = getenv("GRIDCOLL_SECURITY");

	if (s && *s && gci_security_parse(s, &env->security))
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"GRIDCOLL_SECURITY=%s, expected " GCI_SECURITY_EXPECTED, s);
	return 0;
}

static int read_congestion(struct gci_environment *env, struct gci_error *e)
{
	struct gci_error why = {0};

	env->congestion = getenv("GRIDCOLL_CONGESTION");
	if (!env->congestion || !strcmp(env->congestion, "default"))
		env->congestion = "";
	if (!*env->congestion || !gci_sockopt_congestion(env->congestion, &why))
		return 0;
	return gci_error_set(e, why.status, "GRIDCOLL_CONGESTION: %.400s, or default", why.text);
}

int gci_environment_read(struct gci_environment *env, struct gci_error *e)
{
	uint64_t rank = 0, size = 0, fd = 0;

	env->rendezvous = getenv("GRIDCOLL_RENDEZVOUS");
	if (!env->rendezvous || !getenv("GRIDCOLL_RANK"))
		return gci_error_set(e, GCOLL_ERR_NOLAUNCHER,
			"not started by gridcoll-run: GRIDCOLL_RANK and GRIDCOLL_RENDEZVOUS are "
			"not set");
	if (number("GRIDCOLL_SIZE", GCI_CTL_MAX_RANKS, &size, e) ||
		number("GRIDCOLL_RANK", size ? size - 1 : 0, &rank, e) ||
		number("GRIDCOLL_SECRET_FD", 65535, &fd, e) || read_port_range(env, e) ||
		read_data_path(env, e) || read_security(env, e) || read_congestion(env, e) ||
		read_pace(env, e))
		return e->status;
	env->control_tls = getenv("GRIDCOLL_CONTROL_TLS") != NULL;
	env->rank = (int)rank;
	env->size = (int)size;
	return read_secret((int)fd, env->secret, e);
}
