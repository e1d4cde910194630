/* SPDX-License-Identifier: MIT */
#include "tests/launcher/places.h"

#include "tests/harness.h"

#include "base/clock.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/gridcoll-test-XXXXXX"; /* the suite's own */

const char *in_dir(const char *name)
{
	static char path[4][128];
	static int i;

	i = (i + 1) % 4;
	snprintf(path[i], sizeof(path[i]), "%s/%s", dir, name);
	return path[i];
}

const char *write_file(const char *name, const char *fmt, ...)
{
	const char *path = in_dir(name);
	FILE *f = fopen(path, "w");
	va_list ap;

	assert_non_null(f);
	va_start(ap, fmt);
	vfprintf(f, fmt, ap);
	va_end(ap);
	assert_int_equal(fclose(f), 0);
	return path;
}

static pid_t server;

static int free_port(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
	getsockname(fd, (struct sockaddr *)&at, &len);
	close(fd);
	return ntohs(at.sin_port);
}

static void start_server(const char *config)
{
	server = fork();
	assert_true(server >= 0);
	if (server)
		return;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	dup2(open(in_dir("sshd.log"), O_WRONLY | O_CREAT, 0600), 2);
	/* sshd wants to be called by its absolute path. */
	execl("/usr/sbin/sshd", "/usr/sbin/sshd", "-D", "-e", "-f", config, NULL);
	_exit(99);
}

static int ssh_up(void)
{
	const char *user = getpwuid(getuid()) ? getpwuid(getuid())->pw_name : "";
	int port = free_port(), tries;
	char path[4096];

	if (access("/usr/sbin/sshd", X_OK) || run_shell("command -v ssh ssh-keygen >/dev/null"))
		return -1;
	if (!geteuid()) /* stays: another sshd may have come to need it meanwhile */
		mkdir("/run/sshd", 0755);
	if (run_shell("cd %s && ssh-keygen -q -t ed25519 -N '' -f host && "
		      "ssh-keygen -q -t ed25519 -N '' -f user && mkdir bin",
		    dir))
		return -1;
	/* What the user's login scripts do and say is no part of a test. */
	start_server(write_file("sshd_config",
		"Port %d\nListenAddress 127.0.0.1\nHostKey %s/host\nPidFile none\nUsePAM no\n"
		"AuthorizedKeysFile %s/user.pub\nStrictModes no\nPasswordAuthentication no\n"
		"MaxStartups 100\n"
		"SetEnv HOME=%s\n",
		port, dir, dir, dir));
	write_file("ssh_config",
		"Host gct-far\nProxyJump gct-a\n"
		"Host gct-dark\nProxyCommand sleep 1000\n"
		"Host gct-void*\nHostName gct-silent\nConnectTimeout 100\nConnectionAttempts 9\n"
		"Host gct-mute\nProxyCommand " SAYS_HELLO "\n"
		"Host gct-*\nHostName 127.0.0.1\nPort %d\nUser %s\nIdentityFile %s/user\n"
		"StrictHostKeyChecking no\nUserKnownHostsFile %s/known\nLogLevel ERROR\n"
		"ConnectTimeout 20\n",
		port, user, dir, dir);
	write_file("bin/ssh",
		"#!/bin/sh\n"
		"by=$(shift $(($# - 2)); echo \"${GRIDCOLL_RANK:-run} $1\" >>%s/started\n"
		"case $1 in gct-void*) echo %s/by ;; esac)\n"
		"PATH=%s exec $by ssh -F %s/ssh_config \"$@\"\n",
		dir, dir, getenv("PATH"), dir);
	snprintf(path, sizeof(path), "%s/bin:%s", dir, getenv("PATH"));
	setenv("PATH", path, 1);
	run_shell("chmod +x %s/bin/ssh", dir);
	for (tries = 0; tries < 50; tries++) {
		if (!run_shell("ssh -oBatchMode=yes gct-a true 2>%s/ssh.log", dir))
			return 0;
		gci_sleep_ns(100 * GCI_NS_PER_MS);
	}
	return -1;
}

static int have_ssh = -1; /* not tried yet */

void need_ssh(void)
{
	if (have_ssh < 0)
		have_ssh = !ssh_up();
	if (have_ssh)
		return;
	print_message("skipped: no ssh server can be run here\n");
	skip();
}

const char *remote_run(void)
{
	const char *path = write_file("remote", "#!/bin/sh\nPATH=%s/bin:$PATH exec %s \"$@\"\n",
		dir, env_path("GRIDCOLL_RUN"));

	chmod(path, 0755);
	return path;
}

int places_up(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

int places_down(void **state)
{
	(void)state;
	if (server > 0) {
		kill(server, SIGTERM);
		waitpid(server, NULL, 0);
	}
	return run_shell("rm -rf %s", dir);
}
