/* SPDX-License-Identifier: MIT
 * A job's traffic put together from reports, true ones (made by a rank's own sampling,
 * flow/telemetry.h) and false ones. */
#include "tests/test.h"

#include "base/mem.h"
#include "flow/telemetry.h"
#include "launcher/traffic.h"

#include <stdio.h>
#include <string.h>

#define NOW (UINT64_C(1700000000) * GCI_NS_PER_S)

static const char grid_text[] = "[cluster kyoto]\nhosts = k[1-2]\n"
				"[cluster tokyo]\nhosts = t1\n"
				"[link kyoto tokyo]\nrate = 1Gbit\ndelay = 10ms\n";
static const uint32_t cluster_of[] = {0, 0, 1};
static const char *const names[] = {"k1", "k2", "t1"};

static struct gci_traffic *new_traffic(void)
{
	struct gci_traffic *t;

	assert_int_equal(gci_traffic_create(&t, 3, cluster_of, 2), 0);
	return t;
}

/* A rank that has two connections to cluster 1, sampled each 10 ms, reported each 50. */
static uint64_t send_for(
	struct gci_traffic *t, uint32_t rank, uint64_t from_ns, int samples, uint64_t step_nbytes)
{
	struct gci_ctl_report m;
	struct gci_flow f = {.peer = 2, .open = 1, .rtt_ns = 20000 + rank, .cwnd_nbytes = 1000};
	struct gci_sample s;
	int i;

	assert_int_equal(gci_sample_init(&s, 2), 0);
	for (i = 0; i < samples; i++) {
		gci_sample_begin(&s);
		f.sent_nbytes = step_nbytes * (uint64_t)i;
		f.resent = (uint64_t)i;
		gci_sample_flow(&s, 1, &f);
		gci_sample_flow(&s, 1, &f);
		gci_sample_end(&s, from_ns + (uint64_t)i * GCI_BIN_NS);
		assert_false(gci_sample_report(&s, 0, 0, &m)); /* no connection to it */
		if (i % 5 == 4 && gci_sample_report(&s, 1, 0, &m))
			gci_traffic_report(t, rank, &m, from_ns + (uint64_t)i * GCI_BIN_NS);
	}
	assert_true(gci_sample_report(&s, 1, 1, &m));
	gci_traffic_report(t, rank, &m, from_ns + (uint64_t)samples * GCI_BIN_NS);
	gci_sample_free(&s);
	return 2 * step_nbytes * (uint64_t)(samples - 1);
}

static void reports_add_up(void **state)
{
	const struct gci_ctl_report nothing = {.cluster = 1, .end_bin = NOW / GCI_BIN_NS + 41};
	struct gci_traffic *t = new_traffic();
	const struct gci_traffic_pair *p;
	uint64_t sent, n;

	(void)state;
	sent = send_for(t, 0, NOW, 41, 1000);
	sent += send_for(t, 1, NOW + 3 * GCI_NS_PER_MS, 41, 500);
	gci_traffic_sum(t, NOW + 41 * GCI_BIN_NS);
	p = gci_traffic_pair(t, 0, 1);
	assert_non_null(p);
	assert_null(gci_traffic_pair(t, 1, 0));
	assert_null(gci_traffic_pair(t, 0, 0));
	assert_int_equal(p->sum.sent_nbytes, sent);
	assert_int_equal(p->sum.resent, 4 * 40);
	assert_int_equal(p->sum.rtt_ns, 20001);
	assert_int_equal(p->sum.cwnd_nbytes, 4000);
	assert_int_equal(p->connections, 4);
	assert_int_equal(p->senders, 2);
	/* Also what rank 1 sent in the bin that was not over. */
	assert_int_equal(gci_bins_sum(&p->bins, 0, UINT64_MAX), sent);
	for (n = NOW / GCI_BIN_NS + 1; n < NOW / GCI_BIN_NS + 40; n++)
		assert_int_equal(gci_bins_get(&p->bins, n), 3000);
	/* Rank 2 is waited for, but not for ever. */
	assert_int_equal(gci_traffic_settled(t, NOW + 41 * GCI_BIN_NS), NOW / GCI_BIN_NS);
	gci_traffic_report(t, 2, &nothing, NOW + 41 * GCI_BIN_NS);
	assert_int_equal(gci_traffic_settled(t, NOW + 41 * GCI_BIN_NS), NOW / GCI_BIN_NS + 41);
	/* Ranks that have fallen silent are not waited for. */
	assert_int_equal(gci_traffic_settled(t, NOW + 10 * GCI_NS_PER_S), NOW / GCI_BIN_NS + 1000);
	gci_traffic_free(t);
}

/* One rank dies, the other goes on. */
static void the_silent_count_with_what_they_have_done(void **state)
{
	const uint64_t later = NOW + 41 * GCI_BIN_NS;
	struct gci_ctl_report m = {.cluster = 1, .end_bin = later / GCI_BIN_NS, .connections = 2};
	struct gci_traffic *t = new_traffic();
	const struct gci_traffic_pair *p;
	uint64_t sent;

	(void)state;
	sent = send_for(t, 0, NOW, 41, 1000);
	m.sum.sent_nbytes = 5;
	m.sum.pacing_bps = 70;
	gci_traffic_report(t, 1, &m, later + 2 * GCI_NS_PER_S);
	gci_traffic_sum(t, later + 2 * GCI_NS_PER_S);
	p = gci_traffic_pair(t, 0, 1);
	assert_int_equal(p->connections, 4);
	assert_int_equal(p->sum.cwnd_nbytes, 2000);
	gci_traffic_sum(t, later + 4 * GCI_NS_PER_S);
	assert_int_equal(p->connections, 2);
	assert_int_equal(p->senders, 1);
	assert_int_equal(p->sum.cwnd_nbytes, 0);
	assert_int_equal(p->sum.rtt_ns, 0);
	assert_int_equal(p->sum.pacing_bps, 70);
	assert_int_equal(p->sum.sent_nbytes, sent + 5); /* counters do not fall */
	assert_int_equal(p->sum.resent, 2 * 40);
	gci_traffic_free(t);
}

/* After a failure a rank's connections are new ones, and count from 0. */
static void counters_go_on_after_a_failure(void **state)
{
	struct gci_ctl_report m = {.cluster = 1, .end_bin = NOW / GCI_BIN_NS, .connections = 2};
	const struct gci_ctl_flows f = {.first = 1, .n = 1, .flows = {{.peer = 2}}};
	struct gci_traffic *t = new_traffic();
	const struct gci_traffic_pair *p;

	(void)state;
	m.sum = (struct gci_flow){.sent_nbytes = 1000, .resent = 7, .cwnd_nbytes = 30};
	gci_traffic_report(t, 0, &m, NOW);
	gci_traffic_report(t, 1, &m, NOW);
	gci_traffic_flows(t, 0, &f);
	gci_traffic_renew(t, 0);
	gci_traffic_sum(t, NOW);
	p = gci_traffic_pair(t, 0, 1);
	assert_int_equal(p->sum.sent_nbytes, 2000);
	assert_int_equal(p->sum.cwnd_nbytes, 30);
	assert_int_equal(p->connections, 2);
	assert_int_equal(t->ranks[0].nflows, 0);
	m.sum = (struct gci_flow){.sent_nbytes = 10, .resent = 1, .cwnd_nbytes = 30};
	gci_traffic_report(t, 0, &m, NOW);
	gci_traffic_sum(t, NOW);
	assert_int_equal(p->sum.sent_nbytes, 2010);
	assert_int_equal(p->sum.resent, 15);
	assert_int_equal(p->sum.cwnd_nbytes, 60);
	assert_int_equal(t->ranks[0].parts[0].fresh_nbytes, 10);
	gci_traffic_renew(t, 0);
	gci_traffic_report(t, 0, &m, NOW);
	gci_traffic_sum(t, NOW);
	assert_int_equal(p->sum.sent_nbytes, 2020);
	gci_traffic_free(t);
}

static void false_reports_do_no_harm(void **state)
{
	struct gci_ctl_report m = {.cluster = 2, .end_bin = NOW / GCI_BIN_NS, .nbins = 1};
	const struct gci_ctl_report nothing = {.cluster = 1, .end_bin = NOW / GCI_BIN_NS + 20};
	struct gci_ctl_flows f = {.first = 1, .n = 1, .flows = {{.peer = 3}}};
	struct gci_traffic *t = new_traffic();
	uint64_t sent = send_for(t, 0, NOW, 21, 1000), kept;
	const struct gci_traffic_pair *p = gci_traffic_pair(t, 0, 1);
	int i;

	(void)state;
	kept = gci_bins_sum(&p->bins, 0, UINT64_MAX);
	assert_int_equal(kept, sent);
	gci_traffic_report(t, 1, &m, NOW); /* there is no such cluster */
	m.cluster = 1;
	m.bins[0] = 77;
	m.end_bin = UINT64_MAX;
	gci_traffic_report(t, 1, &m, NOW); /* in the far future */
	m.end_bin = 5;
	gci_traffic_report(t, 1, &m, NOW); /* in 1970 */
	assert_int_equal(t->misplaced_nbytes, 154);
	m.bins[0] = 0;
	m.end_bin = 1;
	gci_traffic_report(t, 1, &m, NOW); /* the first of all */
	assert_int_equal(t->first_bin, NOW / GCI_BIN_NS);
	assert_int_equal(gci_bins_sum(&p->bins, 0, UINT64_MAX), kept);
	/* Neither does it hold the others up. */
	gci_traffic_report(t, 2, &nothing, NOW);
	assert_int_equal(gci_traffic_settled(t, NOW + 20 * GCI_BIN_NS), NOW / GCI_BIN_NS + 20);
	gci_traffic_flows(t, 1, &f);
	assert_int_equal(t->ranks[1].nflows, 0);
	f.n = GCI_FLOWS_MOST;
	for (i = 0; i < GCI_FLOWS_MOST; i++)
		f.flows[i].peer = 2;
	for (i = 0; i < 10; i++, f.first = 0)
		gci_traffic_flows(t, 1, &f);
	assert_int_equal(t->ranks[1].nflows, GCI_TRAFFIC_FLOWS);
	gci_traffic_free(t);
}

/* A clock that is set back, or forward by years, in the middle. */
static void a_jumping_clock_does_no_harm(void **state)
{
	struct gci_flow f = {.peer = 2, .open = 1};
	struct gci_ctl_report m;
	struct gci_sample s;
	uint64_t at[] = {NOW, NOW + GCI_BIN_NS, NOW - 3600 * GCI_NS_PER_S,
		NOW + UINT64_C(100000000) * GCI_NS_PER_S, 0};
	size_t i;

	(void)state;
	assert_int_equal(gci_sample_init(&s, 2), 0);
	for (i = 0; i < sizeof(at) / sizeof(*at); i++) {
		f.sent_nbytes += 1000;
		gci_sample_begin(&s);
		gci_sample_flow(&s, 1, &f);
		gci_sample_end(&s, at[i]);
		assert_true(gci_sample_report(&s, 1, 0, &m));
		assert_true(m.nbins <= GCI_REPORT_BINS && m.nbins <= m.end_bin);
		assert_int_equal(m.sum.sent_nbytes, f.sent_nbytes);
	}
	gci_sample_free(&s);
}

static json_int_t whole(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

static void shown_as_json(void **state)
{
	const struct gci_ctl_report nothing = {.cluster = 1, .end_bin = NOW / GCI_BIN_NS + 20};
	struct gci_ctl_flows f = {
		.first = 1, .n = 1, .flows = {{.peer = 2, .stream = 3, .rtt_ns = 5}}};
	struct gci_traffic *t = new_traffic();
	struct gci_error e = {0};
	struct gci_grid g;
	struct gci_traffic_view v = {t, &g, names, NOW + 20 * GCI_BIN_NS};
	json_t *list, *o;

	(void)state;
	assert_int_equal(gci_grid_parse(&g, grid_text, strlen(grid_text), "g", &e), 0);
	send_for(t, 0, NOW, 21, 125000); /* 2 x 100 Mbit/s */
	send_for(t, 1, NOW, 21, 0);
	gci_traffic_report(t, 2, &nothing, NOW);
	gci_traffic_flows(t, 1, &f);
	gci_traffic_sum(t, v.now_ns);
	list = gci_traffic_pairs_json(&v, 0);
	assert_int_equal(json_array_size(list), 1); /* tokyo has sent nothing */
	o = json_array_get(list, 0);
	assert_string_equal(json_string_value(json_object_get(o, "from")), "kyoto");
	assert_string_equal(json_string_value(json_object_get(o, "to")), "tokyo");
	assert_int_equal(whole(o, "link_bps"), 1000000000);
	assert_int_equal(whole(o, "rate_bps"), 200000000);
	assert_int_equal(whole(o, "first_bin"), NOW / GCI_BIN_NS);
	assert_int_equal(json_array_size(json_object_get(o, "bytes")), 20);
	json_decref(list);
	list = gci_traffic_pairs_json(&v, NOW / GCI_BIN_NS + 15);
	assert_int_equal(json_array_size(json_object_get(json_array_get(list, 0), "bytes")), 5);
	json_decref(list);
	list = gci_traffic_parts_json(&v);
	assert_int_equal(json_array_size(list), 3);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(list, 0), "host")), "k1");
	json_decref(list);
	list = gci_traffic_flows_json(&v);
	o = json_array_get(list, 0);
	assert_string_equal(json_string_value(json_object_get(o, "peer_host")), "t1");
	assert_int_equal(whole(o, "stream"), 3);
	json_decref(list);
	gci_grid_free(&g);
	gci_traffic_free(t);
}

/* 32 clusters, each of which sends to all. */
static void many_pairs_have_fewer_bins(void **state)
{
	struct gci_ctl_report m = {.end_bin = NOW / GCI_BIN_NS + 1,
		.nbins = 1,
		.bins = {9},
		.sum = {.sent_nbytes = 9}};
	uint32_t each[32], i;
	struct gci_cluster clusters[32] = {0};
	struct gci_grid g = {.nclusters = 32, .clusters = clusters};
	struct gci_traffic_view v = {NULL, &g, names, NOW + 1000 * GCI_BIN_NS};
	struct gci_traffic *t;
	char name[] = "c";
	json_t *list, *o;

	(void)state;
	for (i = 0; i < 32; i++) {
		each[i] = i;
		clusters[i].name = name;
	}
	assert_int_equal(gci_traffic_create(&t, 32, each, 32), 0);
	for (i = 0; i < 32 * 32; i++) {
		m.cluster = i / 32;
		gci_traffic_report(t, i % 32, &m, NOW);
	}
	gci_traffic_sum(t, NOW);
	v.t = t;
	list = gci_traffic_pairs_json(&v, 0);
	assert_int_equal(json_array_size(list), 32 * 32);
	o = json_array_get(list, 32 * 32 - 1);
	assert_int_equal(json_array_size(json_object_get(o, "bytes")), 256);
	assert_int_equal(whole(o, "first_bin"), NOW / GCI_BIN_NS + 1000 - 256);
	json_decref(list);
	gci_traffic_free(t);
}

/* Of more clusters bins are fewer, but none goes that a rank which is late, or the file, which is a
 * period behind, has yet to see. */
static void no_bin_goes_before_it_is_settled(void **state)
{
	struct gci_ctl_report m = {.cluster = 1, .nbins = 1, .bins = {7}};
	const uint64_t first = NOW / GCI_BIN_NS,
		       lag = GCI_REPORT_PERIOD * GCI_NS_PER_MS / GCI_BIN_NS;
	uint32_t each[40], i;
	struct gci_traffic *t;
	uint64_t n, end = 0, sum = 0;

	(void)state;
	for (i = 0; i < 40; i++)
		each[i] = i;
	assert_int_equal(gci_traffic_create(&t, 2, each, 40), 0);
	for (n = first; n < first + 1000; n++) {
		m.end_bin = n + 1;
		gci_traffic_report(t, 0, &m, n * GCI_BIN_NS);
		if (n < first + 100) /* then its clock stands still for a while */
			gci_traffic_report(t, 1, &m, n * GCI_BIN_NS);
		if ((n - first) % lag || gci_traffic_settled(t, n * GCI_BIN_NS) < first + lag)
			continue;
		end = gci_traffic_settled(t, n * GCI_BIN_NS) - lag;
		sum = gci_bins_sum(&gci_traffic_pair(t, 0, 1)->bins, end, end + lag);
		assert_int_equal(sum, 7 * lag);
	}
	assert_int_equal(sum, 7 * lag);
	gci_traffic_free(t);
}

/* Each name has its HELP and TYPE once, before all its samples, which have labels and a number. */
static void check_prometheus(char *text)
{
	char *line, *rest = text, name[80] = "", of[80], value[40];
	int nmetrics = 0;

	while ((line = strtok_r(rest, "\n", &rest))) {
		if (!strncmp(line, "# HELP ", 7)) {
			assert_int_equal(sscanf(line, "# HELP %79s %*s", name), 1);
			assert_null(strstr(rest, line)); /* not again */
			nmetrics++;
			continue;
		}
		if (*line == '#') {
			assert_int_equal(sscanf(line, "# TYPE %79s %39s", of, value), 2);
			assert_string_equal(of, name);
			assert_int_equal(!strcmp(value, "counter"),
				!strcmp(name + strlen(name) - 6, "_total"));
			continue;
		}
		assert_int_equal(sscanf(line, "%79[a-z_]{%*[^}]} %39s", of, value), 2);
		assert_string_equal(of, name);
		assert_int_equal(strspn(value, "0123456789.e+-"), strlen(value));
	}
	assert_true(nmetrics > 8);
}

static void shown_to_prometheus(void **state)
{
	struct gci_traffic *t = new_traffic();
	struct gci_error e = {0};
	struct gci_buf out = {0};
	struct gci_grid g;
	struct gci_traffic_view v = {t, &g, names, NOW + 20 * GCI_BIN_NS};

	(void)state;
	assert_int_equal(gci_grid_parse(&g, grid_text, strlen(grid_text), "g", &e), 0);
	send_for(t, 0, NOW, 21, 1000);
	gci_traffic_sum(t, v.now_ns);
	gci_traffic_prometheus(&v, "a\"b\\c", &out);
	assert_non_null(strstr(gci_buf_cstr(&out),
		"\ngridcoll_sent_bytes_total{job_id=\"a\\\"b\\\\c\",from=\"kyoto\",to=\"tokyo\"} "
		"40000\n"));
	assert_non_null(strstr(gci_buf_cstr(&out), "} 2.0000000000000002e-05\n")); /* rtt: 20 us */
	assert_non_null(strstr(gci_buf_cstr(&out), "} 125000000\n"));
	check_prometheus((char *)out.data);
	gci_buf_free(&out);
	gci_grid_free(&g);
	gci_traffic_free(t);
}

static void any_allocation_may_fail(void **state)
{
	struct gci_ctl_report m = {
		.cluster = 1, .end_bin = NOW / GCI_BIN_NS, .nbins = 1, .bins = {9}};
	struct gci_traffic *t;
	unsigned long n;
	int failed;

	(void)state;
	for (n = 1, failed = 1; failed; n++) {
		gci_mem_fail_at(n);
		if (!gci_traffic_create(&t, 3, cluster_of, 2)) {
			gci_traffic_report(t, 0, &m, NOW);
			gci_traffic_sum(t, NOW);
			failed = gci_mem_failed();
			assert_int_equal(t->failed, failed);
			gci_traffic_free(t);
		}
		gci_mem_fail_at(0);
	}
	assert_true(n > 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports_add_up),
		cmocka_unit_test(the_silent_count_with_what_they_have_done),
		cmocka_unit_test(counters_go_on_after_a_failure),
		cmocka_unit_test(false_reports_do_no_harm),
		cmocka_unit_test(a_jumping_clock_does_no_harm),
		cmocka_unit_test(shown_as_json),
		cmocka_unit_test(many_pairs_have_fewer_bins),
		cmocka_unit_test(no_bin_goes_before_it_is_settled),
		cmocka_unit_test(shown_to_prometheus),
		cmocka_unit_test(any_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
