/* SPDX-License-Identifier: MIT */
#include "job/environment.h"

#include "base/clock.h"
#include "base/private.h"
#include "base/units.h"
#include "collectives/grid/grid.h"
#include "transport/control.h"
#include "transport/path.h"
#include "transport/secret.h"
#include "transport/sockopt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JOIN_NS (60 * GCI_NS_PER_S)

/* GRIDCOLL_`what`, or the variable that GRIDCOLL_`what`_FROM names. NULL: neither is set; *name is
 * the one to be told of. */
static const char *look_up(const char *what, char *name, size_t size)
{
	const char *from, *value;

	snprintf(name, size, "GRIDCOLL_%s_FROM", what);
	from = getenv(name);
	snprintf(name, size, "GRIDCOLL_%s", what);
	value = getenv(name);
	if (value || !from || !*from)
		return value;
	snprintf(name, size, "%s (of GRIDCOLL_%s_FROM)", from, what);
	return getenv(from);
}

/* `optional`: then 0 stands for what is not set. */
static int number(const char *what, uint64_t max, int optional, uint64_t *out, struct gci_error *e)
{
	char name[160];
	const char *s = look_up(what, name, sizeof(name));

	*out = 0;
	if ((!s && optional) || (s && !gci_parse_uint(s, max, out)))
		return 0;
	return gci_error_set(e, GCOLL_ERR_INVAL, "%s=%s, expected a number of at most %llu", name,
		s ? s : "(not set)", (unsigned long long)max);
}

static int read_secret_fd(uint8_t *secret, struct gci_error *e)
{
	size_t have = 0;
	uint64_t fd;

	if (number("SECRET_FD", 65535, 0, &fd, e))
		return e->status;
	while (have < GCI_SECRET_NBYTES) {
		ssize_t n = read((int)fd, secret + have, GCI_SECRET_NBYTES - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return gci_error_set(e, GCOLL_ERR_INVAL,
				"GRIDCOLL_SECRET_FD: the job's secret cannot be read (was it read "
				"before? gcoll_init joins once per process), expected 32 bytes");
		have += (size_t)n;
	}
	close((int)fd);
	unsetenv("GRIDCOLL_SECRET_FD"); /* the number may soon be another file's */
	return 0;
}

static int read_secret_file(const char *path, uint8_t *secret, struct gci_error *e)
{
	struct gci_buf text = {.secret = 1};
	struct gci_error why = {0};
	int rc = gci_private_read(path, GCI_SECRET_MAX_TEXT, &text, &why);

	if (rc)
		gci_error_set(e, rc, "GRIDCOLL_SECRET_FILE: %s", why.text);
	else if (gci_secret_parse(text.data, text.len, secret))
		rc = gci_error_set(e, GCOLL_ERR_INVAL,
			"GRIDCOLL_SECRET_FILE: %.300s, expected " GCI_SECRET_EXPECTED, path);
	gci_buf_free(&text);
	return rc;
}

static int read_secret(uint8_t *secret, struct gci_error *e)
{
	const char *path = getenv("GRIDCOLL_SECRET_FILE");

	if (getenv("GRIDCOLL_SECRET_FD"))
		return read_secret_fd(secret, e);
	if (path && *path)
		return read_secret_file(path, secret, e);
	return gci_error_set(e, GCOLL_ERR_INVAL,
		"neither GRIDCOLL_SECRET_FILE nor GRIDCOLL_SECRET_FD is set, "
		"expected the file that gridcoll-run --serve was given by --secret-file");
}

static int read_host(struct gci_environment *env, struct gci_error *e)
{
	const char *s = getenv("GRIDCOLL_HOST");

	if (s && strlen(s) >= sizeof(env->host))
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"GRIDCOLL_HOST=%.300s, expected a host's name of at most %zu characters", s,
			sizeof(env->host) - 1);
	if (s && *s)
		strcpy(env->host, s);
	else if (gethostname(env->host, sizeof(env->host) - 1))
		env->host[0] = '\0';
	return 0;
}

static int read_cluster(struct gci_environment *env, struct gci_error *e)
{
	return gci_grid_take_cluster(
		getenv("GRIDCOLL_CLUSTER"), env->cluster, sizeof(env->cluster), e);
}

static int read_join_timeout(struct gci_environment *env, struct gci_error *e)
{
	const char *s = getenv("GRIDCOLL_JOIN_TIMEOUT");

	env->join_ns = JOIN_NS;
	if (s && *s && gci_parse_time(s, &env->join_ns))
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"GRIDCOLL_JOIN_TIMEOUT=%s, expected " GCI_TIME_EXPECTED, s);
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
	return gci_error_set(e, why.status, "GRIDCOLL_CONGESTION: %s, or default", why.text);
}

/* gridcoll-run tells its own ranks. Others go by the rule that gridcoll-run --serve has. */
static int control_tls(const struct gci_environment *env)
{
	const char *said = getenv("GRIDCOLL_CONTROL_TLS");

	return said ? strcmp(said, "0") != 0 : gci_security_encrypts(env->security, 1);
}

int gci_environment_read(struct gci_environment *env, struct gci_error *e)
{
	uint64_t rank = 0, size = 0;
	char name[160];

	env->rendezvous = getenv("GRIDCOLL_RENDEZVOUS");
	if (!env->rendezvous ||
		(!look_up("RANK", name, sizeof(name)) && !getenv("GRIDCOLL_RANK_FROM")))
		return gci_error_set(e, GCOLL_ERR_NOLAUNCHER,
			"not started by gridcoll-run: GRIDCOLL_RANK and GRIDCOLL_RENDEZVOUS are "
			"not set, expected e.g. gridcoll-run -n 4 PROGRAM%s",
			getenv("GRIDCOLL_LAB") ? ", in the lab without -n" : "");
	if (number("SIZE", GCI_CTL_MAX_RANKS, 1, &size, e) ||
		number("RANK", (size ? size : GCI_CTL_MAX_RANKS) - 1, 0, &rank, e) ||
		read_host(env, e) || read_cluster(env, e) || read_join_timeout(env, e) ||
		read_port_range(env, e) || read_data_path(env, e) || read_security(env, e) ||
		read_congestion(env, e) || read_pace(env, e))
		return e->status;
	env->control_tls = control_tls(env);
	env->rank = (int)rank;
	env->size = (int)size;
	return read_secret(env->secret, e);
}
