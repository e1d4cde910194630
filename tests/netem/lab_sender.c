/* SPDX-License-Identifier: MIT
 * For lab tests: moves a number of bytes over one TCP connection.
 *
 *	lab_sender take PORT		prints how many came
 *	lab_sender send ADDR PORT NBYTES
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char chunk[262144];

static int take(int port)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), c;
	unsigned long long total = 0;
	ssize_t n;

	if (bind(fd, (struct sockaddr *)&sin, sizeof(sin)) || listen(fd, 1))
		return 1;
	c = accept(fd, NULL, NULL);
	while ((n = recv(c, chunk, sizeof(chunk), 0)) > 0)
		total += (unsigned long long)n;
	printf("%llu\n", total);
	return n < 0;
}

static int send_all(const char *addr, int port, unsigned long long nbytes)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = -1, tries;

	if (inet_pton(AF_INET, addr, &sin.sin_addr) != 1)
		return 2;
	for (tries = 0; tries < 100; tries++) { /* the taker may not listen yet */
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (!connect(fd, (struct sockaddr *)&sin, sizeof(sin)))
			break;
		close(fd);
		usleep(50000);
	}
	while (nbytes) {
		size_t want = nbytes < sizeof(chunk) ? (size_t)nbytes : sizeof(chunk);
		ssize_t n = send(fd, chunk, want, MSG_NOSIGNAL);

		if (n <= 0)
			return 1;
		nbytes -= (unsigned long long)n;
	}
	shutdown(fd, SHUT_WR);
	return recv(fd, chunk, 1, 0) != 0; /* all of it has arrived when the taker ends */
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "take"))
		return take(atoi(argv[2]));
	if (argc == 5 && !strcmp(argv[1], "send"))
		return send_all(argv[2], atoi(argv[3]), strtoull(argv[4], NULL, 10));
	return 2;
}
