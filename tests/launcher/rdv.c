/* SPDX-License-Identifier: MIT */
#include "tests/launcher/rdv.h"

#include "collectives/coll.h"

#include <stdio.h>
#include <string.h>

static const char *const names[NRANKS] = {"k1", "k2", "k3", "k4", "t1", "t2", "t3", "t4"};
static const uint32_t hosts[NRANKS] = {0, 1, 2, 3, 4, 5, 6, 7};

void rdv_drain(struct world *w)
{
	struct gci_rdv_event ev;

	while (gci_rdv_next(w->rdv, &ev)) {
		struct wire *x = ev.user;

		assert_false(x->closed);
		if (ev.type == GCI_RDV_CLOSE) {
			x->closed = 1;
			x->conn = NULL;
		} else {
			gci_buf_put(&x->got, ev.data.data, ev.data.len);
			gci_buf_free(&ev.data);
		}
	}
}

static void count_renewed(void *user, uint32_t rank)
{
	((struct world *)user)->nrenewed[rank]++;
}

static int setup(void **state, int survives)
{
	struct world *w = gci_calloc(1, sizeof(*w));

	w->config = (struct gci_rdv_config){.size = NRANKS,
		.names = names,
		.hosts = hosts,
		.grid = "[cluster k]\nhosts = k[1-8]\n",
		.table = "a table\n",
		.table_digest = 77,
		.beat_ns = SEC,
		.dead_ns = 20 * SEC,
		.start_ns = 60 * SEC,
		.survives = survives,
		.shrink_ns = 100 * SEC,
		.reports = {.renewed = count_renewed, .user = w},
		.grace_ns = 500 * MS};
	memset(w->config.secret, 0x5a, sizeof(w->config.secret));
	w->now = START;
	assert_int_equal(gci_rdv_create(&w->rdv, &w->config, w->now), 0);
	*state = w;
	return 0;
}

int rdv_setup(void **state)
{
	return setup(state, 0);
}

int rdv_setup_surviving(void **state)
{
	return setup(state, 1);
}

int rdv_teardown(void **state)
{
	struct world *w = *state;
	int i;

	gci_rdv_free(w->rdv);
	for (i = 0; i < NRANKS; i++)
		gci_buf_free(&w->ranks[i].got);
	gci_free(w);
	return 0;
}

void rdv_give(struct world *w, struct wire *x, struct gci_buf *bytes)
{
	gci_rdv_input(w->rdv, x->conn, bytes->data, bytes->len, w->now);
	gci_buf_free(bytes);
	rdv_drain(w);
}

void rdv_dial(struct world *w, struct wire *x)
{
	rdv_dial_from(w, x, 1);
}

void rdv_dial_from(struct world *w, struct wire *x, uint8_t host)
{
	const struct gci_reach from = {.n = 1, .ip = {{10, 0, 0, host}}};

	x->conn = gci_rdv_open(w->rdv, x, &from, w->now);
	assert_non_null(x->conn);
}

struct gci_ctl_hello rdv_hello_of(struct world *w, uint32_t rank)
{
	struct gci_ctl_hello m = {.version = GCI_CTL_VERSION,
		.rank = rank,
		.release = "0.0.1",
		.schedules = gci_build.schedules,
		.big_endian = gci_build.big_endian};

	assert_int_equal(gci_ctl_token(w->config.secret, rank, m.token), 0);
	m.reach = (struct gci_reach){5000, 1, 0, {{10, 0, 0, (uint8_t)(rank + 1)}}};
	return m;
}

void rdv_say_hello(struct world *w, struct wire *x, const struct gci_ctl_hello *m)
{
	struct gci_buf b = {0};

	gci_ctl_put_hello(&b, m);
	rdv_give(w, x, &b);
}

void rdv_join(struct world *w, uint32_t rank)
{
	struct gci_ctl_hello m = rdv_hello_of(w, rank);

	rdv_dial(w, &w->ranks[rank]);
	rdv_say_hello(w, &w->ranks[rank], &m);
	w->ranks[rank].beating = 1;
}

void rdv_join_all(struct world *w)
{
	uint32_t i;

	for (i = 0; i < NRANKS; i++)
		rdv_join(w, i);
}

void rdv_say(struct world *w, uint32_t rank, enum gci_ctl_type type)
{
	struct gci_buf b = {0};

	if (type == GCI_CTL_BEAT)
		gci_ctl_put_got(&b, type, w->ranks[rank].heard);
	else
		gci_ctl_put_plain(&b, type);
	rdv_give(w, &w->ranks[rank], &b);
}

void rdv_say_fail(struct world *w, uint32_t by, int32_t rank, const char *text)
{
	struct gci_ctl_failure m = {.status = GCOLL_ERR_PEER, .rank = rank};
	struct gci_buf b = {0};

	snprintf(m.text, sizeof(m.text), "%s", text);
	gci_ctl_put_failure(&b, GCI_CTL_FAIL, &m);
	rdv_give(w, &w->ranks[by], &b);
}

void rdv_hang_up(struct world *w, uint32_t rank)
{
	gci_rdv_closed(w->rdv, w->ranks[rank].conn, 0, w->now);
	w->ranks[rank].conn = NULL;
	w->ranks[rank].beating = 0;
	rdv_drain(w);
}

void rdv_end(struct world *w, uint32_t rank, int code, int sig)
{
	gci_rdv_exited(w->rdv, rank, code, sig, w->now);
	rdv_drain(w);
}

void rdv_pass(struct world *w, uint64_t ns)
{
	uint64_t until = w->now + ns, beat = w->now;
	uint32_t i;

	while (w->now < until) {
		uint64_t next = gci_rdv_deadline(w->rdv);

		assert_true(next > w->now);
		w->now = next < until ? next : until;
		if (w->now >= beat) {
			beat = w->now + 500 * MS;
			for (i = 0; i < NRANKS; i++)
				if (w->ranks[i].beating && w->ranks[i].conn)
					rdv_say(w, i, GCI_CTL_BEAT);
		}
		gci_rdv_tick(w->rdv, w->now);
		rdv_drain(w);
	}
}

const char *rdv_verdict(struct world *w)
{
	const struct gci_rdv_verdict *v = gci_rdv_verdict(w->rdv);

	return v ? v->sentence : "";
}

int rdv_next_of(struct wire *x, enum gci_ctl_type type, struct gci_ctl_message *m)
{
	struct gci_error e = {0};
	int skipped = 0;

	while (gci_ctl_get(&x->got, GCI_CTL_MAX_MESSAGE, m, &e) == 1) {
		if (m->type == type)
			return skipped;
		gci_ctl_message_free(m);
		skipped++;
	}
	assert_int_equal(e.status, 0);
	return -1;
}

void rdv_say_agree(struct world *w, uint32_t rank, uint32_t epoch, uint64_t flags)
{
	struct gci_ctl_agree m = {.epoch = epoch, .flags = flags};
	struct gci_buf b = {0};

	gci_ctl_put_agree(&b, GCI_CTL_AGREE, &m);
	rdv_give(w, &w->ranks[rank], &b);
}

void rdv_say_shrink(struct world *w, uint32_t rank, uint32_t epoch)
{
	struct gci_ctl_survivors m = {.epoch = epoch};
	struct gci_buf b = {0};

	gci_ctl_put_survivors(&b, GCI_CTL_SHRINK, &m);
	rdv_give(w, &w->ranks[rank], &b);
}

int rdv_gets(struct world *w, uint32_t rank, enum gci_ctl_type type, struct gci_ctl_message *m)
{
	return rdv_next_of(&w->ranks[rank], type, m) >= 0;
}

void rdv_expect_abort(struct world *w, uint32_t rank, const char *text)
{
	struct gci_ctl_message m;

	assert_true(rdv_gets(w, rank, GCI_CTL_ABORT, &m));
	if (!strstr(m.failure.text, text))
		fail_msg("expected \"%s\", got \"%s\"", text, m.failure.text);
}

void rdv_expect_agreed(struct world *w, uint32_t rank, uint64_t flags, int status)
{
	struct gci_ctl_message m;

	assert_true(rdv_gets(w, rank, GCI_CTL_AGREED, &m));
	assert_true(m.agree.flags == flags);
	assert_int_equal(m.agree.status, status);
}

void rdv_expect_survivors(
	struct world *w, uint32_t rank, uint32_t epoch, const uint32_t *ranks, uint32_t n)
{
	struct gci_ctl_message m;

	assert_true(rdv_gets(w, rank, GCI_CTL_SURVIVORS, &m));
	assert_int_equal(m.survivors.epoch, epoch);
	assert_int_equal(m.survivors.n, n);
	assert_memory_equal(m.survivors.ranks, ranks, n * sizeof(*ranks));
	gci_ctl_message_free(&m);
}

void rdv_expect_news(struct world *w, const char *text)
{
	struct gci_buf news;

	gci_rdv_news(w->rdv, &news);
	if (strcmp(gci_buf_cstr(&news), text) != 0)
		fail_msg("expected \"%s\", got \"%s\"", text, gci_buf_cstr(&news));
	gci_buf_free(&news);
}

void rdv_kill(struct world *w, uint32_t rank)
{
	rdv_hang_up(w, rank);
	rdv_end(w, rank, 0, 9);
}
