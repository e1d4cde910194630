/* SPDX-License-Identifier: MIT */
#include "tests/transport/tcp_world.h"

#include "tests/forbid.h"
#include "transport/address.h"
#include "transport/path.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

const char *listen_ip = "127.0.0.1";
char last_addrs[MAX_RANKS][GCI_ADDRESS_TEXT];

const char *secret_of_rank_1 = SECRET;
int opens_nothing;
const uint32_t *behind;
uint64_t stranger_ns;
void (*reroute)(int size, char addrs[][GCI_ADDRESS_TEXT]);

static int forks; /* rank 1 is a process of its own */
static enum killed doomed;
static pid_t doomed_pid;

void listen_on(const char *ip, int *fd, char addr[GCI_ADDRESS_TEXT])
{
	const struct gci_ports any = {0};
	struct gci_address at;
	struct gci_reach r;

	assert_int_equal(gci_address_make(&at, ip, 0), 0);
	assert_int_equal(gci_tcp_listen(&at, 1, &any, 0, fd, &r, NULL), 0);
	gci_reach_get(&r, 0, &at);
	gci_address_format(&at, addr);
}

struct gci_reach reach_of(const char *addr)
{
	struct gci_reach r = {0};
	struct gci_address a;

	assert_int_equal(gci_address_parse(&a, addr), 0);
	assert_int_equal(gci_reach_add(&r, &a), 0);
	return r;
}

/* Goes on until it is killed. */
static void transfer_for_ever(const struct gci_tp_config *config, const struct gci_tcp_config *tcp)
{
	static uint8_t big[64 << 20];
	struct gci_tp *tp;
	struct message m[2];
	int i;

	if (gci_tcp_create(&tp, config, tcp, NULL))
		_exit(1);
	for (i = 0; i < 2; i++) {
		message_init(&m[i], 2 * i, (struct gci_tp_key){.tag = 9}, big, sizeof(big));
		if (doomed == KILLED_SENDING)
			gci_tp_isend(tp, &m[i].r);
		else
			gci_tp_irecv(tp, &m[i].r);
	}
	for (;;)
		gci_tp_progress(tp, 1000000000);
}

static int open_all(struct world *w, uv_loop_t *loop)
{
	struct gci_reach list[MAX_RANKS];
	struct gci_tcp_config tcp = {.reach = list,
		.behind = behind,
		.loop = loop,
		.stranger_ns = stranger_ns,
		.rekey_records = world_encrypted ? 40 : 0};
	int fds[MAX_RANKS], i, rc = 0;

	for (i = 0; i < w->size && !opens_nothing; i++)
		listen_on(listen_ip, &fds[i], last_addrs[i]);
	if (reroute)
		reroute(w->size, last_addrs);
	for (i = 0; i < w->size && !opens_nothing; i++)
		list[i] = reach_of(last_addrs[i]);
	for (i = 0; i < w->size && !opens_nothing; i++) {
		const char *secret = i == 1 ? secret_of_rank_1 : SECRET;

		memset(tcp.secret, 0, sizeof(tcp.secret));
		memcpy(tcp.secret, secret, strlen(secret));
		tcp.listen_fd = fds[i];
		if (forks && i == 1) {
			doomed_pid = fork();
			if (!doomed_pid)
				transfer_for_ever(&w->config[i], &tcp);
			close(fds[i]);
		} else if (gci_tcp_create(&w->tp[i], &w->config[i], &tcp, NULL)) {
			rc = GCOLL_ERR_NOMEM;
		}
	}
	if (rc)
		world_close(w);
	return rc;
}

/* Each rank with a loop of its own. */
static int own_open(struct world *w)
{
	return open_all(w, NULL);
}

static void own_close(struct world *w)
{
	(void)w;
}

int own_step(struct world *w)
{
	int i;

	for (i = 0; i < w->size; i++)
		if (w->tp[i])
			gci_tp_progress(w->tp[i], i ? 0 : 100000);
	return 1;
}

/* All ranks on one loop. */
static uv_loop_t shared;

static int shared_open(struct world *w)
{
	assert_int_equal(uv_loop_init(&shared), 0);
	w->private = &shared;
	return open_all(w, &shared);
}

static void shared_close(struct world *w)
{
	(void)w;
	uv_run(&shared, UV_RUN_DEFAULT); /* the last callbacks of what was freed */
	assert_int_equal(uv_loop_close(&shared), 0);
}

const struct backend own = {.name = "tcp", .open = own_open, .close = own_close, .step = own_step};
const struct backend on_shared_loop = {.name = "tcp on a shared loop",
	.open = shared_open,
	.close = shared_close,
	.step = own_step};

void choose_path(void)
{
	const char *name = getenv("GCI_TEST_PATH");
	char why[GCI_PATH_WHY];

	if (!name)
		return;
	if (!strcmp(name, "tls")) {
		world_encrypted = 1;
		name = "poll";
	} else if (!strcmp(name, "refused")) {
		if (forbid(SYS_io_uring_setup)) {
			print_message("seccomp: %s\n", strerror(errno));
			exit(77);
		}
		name = "uring";
	} else if (!strcmp(name, "uring") && gci_uring_probe(why)) {
		print_message("no io_uring: %s\n", why);
		exit(77);
	}
	if (gci_data_path_parse(name, &world_path))
		exit(1);
}

int knock_from(const char *ip, const char *addr)
{
	struct gci_address from, to;
	int fd;

	assert_int_equal(gci_address_parse(&to, addr), 0);
	fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	if (ip) {
		assert_int_equal(gci_address_make(&from, ip, 0), 0);
		assert_int_equal(bind(fd, &from.any, from.len), 0);
	}
	assert_int_equal(connect(fd, &to.any, to.len), 0);
	return fd;
}

int knock(const char *addr)
{
	return knock_from(NULL, addr);
}

struct gci_hello hello_of(const struct world *w, uint32_t from, uint32_t to)
{
	uint32_t encrypted = w->link.encrypted || world_encrypted;
	uint32_t replay = encrypted || world_replay_nbytes;

	return (struct gci_hello){.epoch = 3,
		.from = from,
		.to = to,
		.streams = w->link.streams,
		.eager_nbytes = w->link.eager_nbytes,
		.size = (uint32_t)w->size,
		.life = replay,
		.flags = (replay ? GCI_HELLO_REPLAY : 0u) | (encrypted ? GCI_HELLO_ENCRYPTED : 0u)};
}

void exchange(struct world *w)
{
	static uint8_t from[300000], to[2][300000];
	struct message m[4];

	fill(from, sizeof(from), 4);
	memset(to, 0, sizeof(to));
	send_to(w, 0, &m[0], 1, 1, from, sizeof(from));
	send_to(w, 1, &m[1], 0, 1, from, sizeof(from));
	recv_from(w, 0, &m[2], 1, 1, to[0], sizeof(from));
	recv_from(w, 1, &m[3], 0, 1, to[1], sizeof(from));
	world_finish(w, m, 4);
	assert_int_equal(m[2].status, 0);
	assert_int_equal(m[3].status, 0);
	assert_memory_equal(from, to[0], sizeof(from));
	assert_memory_equal(from, to[1], sizeof(from));
}

static int some_has_moved(void *arg)
{
	struct gci_tp_stats s;
	struct world *w = arg;
	int rank, moved = 1;

	for (rank = 0; rank < 3; rank += 2) {
		gci_tp_stats(w->tp[rank], 1, &s);
		moved &= s.rx_payload_nbytes > 0 || s.tx_payload_nbytes > 1 << 20;
	}
	return moved;
}

void a_rank_is_killed(enum killed when, const struct gci_tp_link *link)
{
	enum { N = 64 << 20 };
	uint8_t *big[2] = {room(N), room(N)};
	struct message m[2];
	struct world w;
	int i;

	forks = 1;
	doomed = when;
	world_open(&w, &own, 3, link);
	forks = 0;
	for (i = 0; i < 2; i++)
		if (when == KILLED_SENDING)
			recv_from(&w, 2 * i, &m[i], 1, 9, big[i], N);
		else
			send_to(&w, 2 * i, &m[i], 1, 9, big[i], N);
	world_run(&w, some_has_moved, &w);
	assert_int_equal(kill(doomed_pid, SIGKILL), 0);
	assert_int_equal(waitpid(doomed_pid, NULL, 0), doomed_pid);
	world_finish(&w, m, 2);
	for (i = 0; i < 2; i++) {
		assert_int_equal(m[i].status, GCOLL_ERR_PEER);
		assert_int_equal(w.failure[2 * i].peer, 1);
		/* Of a connection that was reset the peer's death need not be the cause. */
		assert_true(strstr(w.failure[2 * i].text, "rank 1 died") ||
			    strstr(w.failure[2 * i].text, "the connection to rank 1 was lost"));
		free(big[i]);
	}
	world_close(&w);
}

struct gci_tp *lonely(struct world *w, const char *peer_addr, uint64_t connect_ns)
{
	char addr[GCI_ADDRESS_TEXT];
	struct gci_reach list[2];
	struct gci_tcp_config tcp = {.reach = list, .connect_timeout_ns = connect_ns};
	struct gci_error e = {0};
	int rc;

	memset(w, 0, sizeof(*w));
	opens_nothing = 1;
	world_open(w, &own, 2, NULL);
	opens_nothing = 0;
	listen_on("127.0.0.1", &tcp.listen_fd, addr);
	list[0] = reach_of(addr);
	list[1] = reach_of(peer_addr);
	rc = gci_tcp_create(&w->tp[0], &w->config[0], &tcp, &e);
	if (rc) {
		assert_int_equal(rc, e.status);
		print_message("%s\n", e.text);
		w->tp[0] = NULL;
	}
	return w->tp[0];
}
