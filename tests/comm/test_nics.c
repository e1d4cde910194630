/* SPDX-License-Identifier: MIT
 * Jobs between two hosts, made of network namespaces, with two network cards each: what the cards
 * carry is read from their own counters. */
#include "tests/harness.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/gridcoll-nics-XXXXXX";

/* Cards w0 and w1 of both hosts are joined; m0 of the one knows IPv4 only, of the other IPv6. */
static int hosts_up(void)
{
	int id = (int)getpid();

	if (geteuid() || run_shell("ip netns add gcn%da 2>/dev/null", id))
		return -1;
	return run_shell(
		"set -e; a=gcn%da; b=gcn%db; ip netns add $b; "
		"for i in 0 1; do "
		"ip -n $a link add w$i type veth peer name w$i netns $b; "
		"ip -n $a addr add 10.78.$i.1/24 dev w$i; ip -n $b addr add 10.78.$i.2/24 dev w$i; "
		"ip -n $a addr add fd00:78:$i::1/64 dev w$i nodad; "
		"ip -n $b addr add fd00:78:$i::2/64 dev w$i nodad; "
		"for n in $a $b; do ip -n $n link set w$i up; done; done; "
		"ip -n $a link add m0 type veth peer name m0 netns $b; "
		"ip -n $a addr add 10.78.9.1/24 dev m0; "
		"ip -n $b addr add fd00:78:9::2/64 dev m0 nodad; "
		"for n in $a $b; do "
		"ip -n $n link set m0 addrgenmode none; ip -n $n link set m0 up; "
		"ip -n $n link set lo up; done",
		id, id);
}

/* So that each card has a rate of its own, and none stands for the CPU's. Where the kernel has no
 * TBF the shares are what they are. */
static int shaped;

static void shape(void)
{
	int id = (int)getpid();

	shaped = !run_shell(
		"set -e; for n in gcn%da gcn%db; do for i in 0 1; do tc -n $n qdisc add dev "
		"w$i root tbf rate 400mbit burst 128k limit 512k 2>/dev/null; done; done",
		id, id);
}

static void hosts_down(void)
{
	int id = (int)getpid();

	run_shell("ip netns del gcn%da 2>/dev/null; ip netns del gcn%db 2>/dev/null", id, id);
}

/* Bytes that a card of the first host has sent. */
static uint64_t sent(const char *card)
{
	char line[512], name[16];
	uint64_t v[9], found = UINT64_MAX;
	FILE *f;

	snprintf(line, sizeof(line), "ip netns exec gcn%da cat /proc/net/dev", (int)getpid());
	f = popen(line, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line,
			    " %15[^:]: %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
			    " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
			    name, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7],
			    &v[8]) == 10 &&
			!strcmp(name, card))
			found = v[8];
	pclose(f);
	assert_true(found != UINT64_MAX);
	return found;
}

/* Both hosts in one cluster, or in two with a link between; the launcher's address is `addr`. */
static const char *lab_file(int clusters, const char *addr)
{
	static char path[80];
	int id = (int)getpid();
	FILE *f;

	snprintf(path, sizeof(path), "%s/lab.json", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f,
		"{\"version\": 1, \"dilation\": 1, \"grid\": \"%s\", \"hosts\": [\n"
		"{\"name\": \"ka\", \"netns\": \"gcn%da\", \"addr\": \"%s\"},\n"
		"{\"name\": \"tb\", \"netns\": \"gcn%db\", \"addr\": \"10.78.0.2\"}]}\n",
		clusters == 1 ? "[cluster k]\\nhosts = ka,tb\\n"
			      : "[cluster k]\\nhosts = ka\\n[cluster t]\\nhosts = tb\\n"
				"[link k t]\\nrate = 1Gbit\\ndelay = 1ms\\n",
		id, addr, id);
	assert_int_equal(fclose(f), 0);
	return path;
}

static void run(struct job *j, int clusters, const char *addr, const char *rules)
{
	memset(j, 0, sizeof(*j));
	job_start(j, NULL, "--lab", lab_file(clusters, addr), "--interfaces", rules,
		env_path("GRIDCOLL_TEST_JOB"), NULL);
}

/* Runs a job that succeeds; what w0 and w1 carried of it. */
static void carried(
	int clusters, const char *addr, const char *rules, uint64_t *first, uint64_t *second)
{
	struct job j;

	*first = sent("w0");
	*second = sent("w1");
	run(&j, clusters, addr, rules);
	if (job_wait(&j))
		fail_msg("%s: %s", rules, job_err(&j));
	assert_string_equal(job_err(&j), "");
	job_free(&j);
	*first = sent("w0") - *first;
	*second = sent("w1") - *second;
	print_message("%s: w0 %" PRIu64 " bytes, w1 %" PRIu64 "\n", rules, *first, *second);
}

#define LITTLE (1u << 20) /* more than control traffic, far less than the job's data */

/* Streams pull what they send, so a card that happens to be slower carries less. */
static void expect_shared(uint64_t first, uint64_t second)
{
	uint64_t least = first < second ? first : second, all = first + second;

	assert_true(all > 8 * LITTLE);
	assert_true(least > (shaped ? all / 3 : all / 8));
}

static void both_cards_carry(void **state)
{
	uint64_t first, second;

	(void)state;
	carried(2, "10.78.0.1", "10.78.0.0/16", &first, &second);
	expect_shared(first, second);
}

/* And the way to the launcher is IPv6, too. */
static void both_cards_by_ipv6(void **state)
{
	uint64_t first, second;

	(void)state;
	carried(2, "fd00:78:1::1", "fd00:78::/32", &first, &second);
	expect_shared(first, second);
}

/* On a LAN a pair of ranks has as many connections as cards. */
static void both_cards_of_neighbours_carry(void **state)
{
	uint64_t first, second;

	(void)state;
	carried(1, "10.78.0.1", "w?", &first, &second);
	expect_shared(first, second);
}

static void one_card_is_excluded(void **state)
{
	uint64_t first, second;

	(void)state;
	carried(2, "10.78.1.1", "!w1", &first, &second);
	assert_true(second < LITTLE && first > 8 * LITTLE);
}

/* The scope is each side's own: w1 may have another number on each. */
static void link_local_addresses(void **state)
{
	uint64_t first, second;

	(void)state;
	carried(2, "10.78.0.1", "fe80::/10,!w0,!m0", &first, &second);
	assert_true(first < LITTLE && second > 8 * LITTLE);
}

static void families_differ(void **state)
{
	struct job j;

	(void)state;
	run(&j, 2, "10.78.0.1", "m0");
	assert_int_not_equal(job_wait(&j), 0);
	assert_non_null(strstr(job_err(&j), "gridcoll-run: rank 1 on tb takes connections at "
					    "[fd00:78:9::2]:"));
	assert_non_null(strstr(job_err(&j), " only, rank 0 on ka at 10.78.9.1:"));
	assert_non_null(
		strstr(job_err(&j), "expected addresses of one family, IPv4 or IPv6 (see "));
	job_free(&j);
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	if (!hosts_up()) {
		shape();
		return 0;
	}
	hosts_down();
	rmdir(dir);
	printf("skipped: network namespaces need root\n");
	exit(77);
}

static int teardown(void **state)
{
	(void)state;
	hosts_down();
	return run_shell("rm -rf %s", dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_cards_carry),
		cmocka_unit_test(both_cards_by_ipv6),
		cmocka_unit_test(both_cards_of_neighbours_carry),
		cmocka_unit_test(one_card_is_excluded),
		cmocka_unit_test(link_local_addresses),
		cmocka_unit_test(families_differ),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
