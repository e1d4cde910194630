/* SPDX-License-Identifier: MIT
 * gcoll_init and gcoll_finalize for many ranks in one process: the product's own, but for the mark
 * that a process joins once, and with the environment of the simulated one. */
#include "job/world.c" /* for its static mark */

#include "tests/simulate/world.h"

#include "tests/simulate/os.h"

static const struct world_settings *settings;

void world_set(const struct world_settings *s)
{
	settings = s;
}

int world_join(gcoll_comm **c)
{
	joined = 0;
	return gcoll_init(c);
}

int gci_environment_read(struct gci_environment *env, struct gci_error *e)
{
	(void)e;
	*env = (struct gci_environment){.rank = os_current->rank,
		.size = settings->size,
		.rendezvous = settings->rendezvous,
		.pace = GCI_PACE_OFF,
		.data_path = GCI_DATA_PATH_POLL,
		.security = settings->security,
		.congestion = ""};
	memcpy(env->secret, settings->secret, sizeof(env->secret));
	return 0;
}

int __real_gci_tcp_create(struct gci_tp **tp, const struct gci_tp_config *config,
	const struct gci_tcp_config *tcp, struct gci_error *e);
int __wrap_gci_tcp_create(struct gci_tp **tp, const struct gci_tp_config *config,
	const struct gci_tcp_config *tcp, struct gci_error *e);

/* The engine's own link, with less room, so that short messages come to its end. */
static void on_link(void *user, int peer, struct gci_tp_link *out)
{
	struct gci_engine *e = user;

	gci_comm_tp_config(e).link(e, peer, out);
	if (settings->eager_nbytes)
		out->eager_nbytes = settings->eager_nbytes;
	if (out->replay_nbytes && settings->replay_nbytes)
		out->replay_nbytes = settings->replay_nbytes;
}

int __wrap_gci_tcp_create(struct gci_tp **tp, const struct gci_tp_config *config,
	const struct gci_tcp_config *tcp, struct gci_error *e)
{
	struct gci_tp_config c = *config;
	struct gci_tcp_config t = *tcp;

	c.link = on_link;
	t.rekey_records = settings->rekey_records;
	return __real_gci_tcp_create(tp, &c, &t, e);
}
