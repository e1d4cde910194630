/* SPDX-License-Identifier: MIT */
#include "comm/gate.h"

#include "tests/test.h"

#include <unistd.h>

#define NTHREADS 4
#define ROUNDS   2000

static struct gci_gate gate;
static uint64_t inside, together, entered[NTHREADS];

static void *unauth(void *arg)
{
	uint64_t *mine = arg, i;

	for (i = 0; i < ROUNDS; i++) {
		gci_gate_enter(&gate);
		together += inside++;
		++*mine;
		inside--;
		gci_gate_leave(&gate);
	}
	return NULL;
}

static void one_at_a_time(void **state)
{
	pthread_t t[NTHREADS];
	int i;

	(void)state;
	gci_gate_init(&gate);
	for (i = 0; i < NTHREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, unauth, &entered[i]), 0);
	for (i = 0; i < NTHREADS; i++)
		pthread_join(t[i], NULL);
	for (i = 0; i < NTHREADS; i++)
		assert_true(entered[i] == ROUNDS);
	assert_true(together == 0);
	gci_gate_deinit(&gate);
}

/* Who waits at the gate enters before one who leaves and wants to enter again. */
static int waits, has_entered, left_again;

static void *enter_once(void *arg)
{
	(void)arg;
	gci_gate_enter(&gate);
	has_entered = 1;
	gci_gate_leave(&gate);
	return NULL;
}

static uint64_t drawn(void)
{
	uint64_t n;

	pthread_mutex_lock(&gate.mutex);
	n = gate.next;
	pthread_mutex_unlock(&gate.mutex);
	return n;
}

static void first_come_first_served(void **state)
{
	pthread_t t;

	(void)state;
	gci_gate_init(&gate);
	gci_gate_enter(&gate);
	has_entered = 0;
	assert_int_equal(pthread_create(&t, NULL, enter_once, NULL), 0);
	while (drawn() != 2)
		usleep(100);
	assert_int_equal(has_entered, 0);
	gci_gate_leave(&gate);
	gci_gate_enter(&gate);
	assert_int_equal(has_entered, 1);
	gci_gate_leave(&gate);
	pthread_join(t, NULL);
	gci_gate_deinit(&gate);
}

static void *wait_for_news(void *arg)
{
	(void)arg;
	gci_gate_enter(&gate);
	waits = 1;
	while (!left_again)
		gci_gate_wait(&gate);
	waits = 0;
	gci_gate_leave(&gate);
	return NULL;
}

static int is_waiting(void)
{
	int rc;

	gci_gate_enter(&gate);
	rc = waits;
	gci_gate_leave(&gate);
	return rc;
}

/* Others come in while one waits inside. */
static void news(void **state)
{
	pthread_t t;

	(void)state;
	gci_gate_init(&gate);
	assert_int_equal(pthread_create(&t, NULL, wait_for_news, NULL), 0);
	while (!is_waiting())
		usleep(100);
	gci_gate_enter(&gate);
	gci_gate_tell(&gate); /* for nothing: it looks, and waits again */
	gci_gate_leave(&gate);
	assert_int_equal(is_waiting(), 1);
	gci_gate_enter(&gate);
	left_again = 1;
	gci_gate_tell(&gate);
	gci_gate_leave(&gate);
	pthread_join(t, NULL);
	assert_int_equal(waits, 0);
	gci_gate_deinit(&gate);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_at_a_time),
		cmocka_unit_test(first_come_first_served),
		cmocka_unit_test(news),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
