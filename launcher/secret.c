/* SPDX-License-Identifier: MIT */
#include "launcher/secret.h"

#include "base/private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static int make(uint8_t secret[GCI_SECRET_NBYTES], struct gci_error *e)
{
	return getrandom(secret, GCI_SECRET_NBYTES, 0) == GCI_SECRET_NBYTES
		       ? 0
		       : gci_error_errno(e, "cannot make the job's secret");
}

int gci_new_secret(struct gci_error *e)
{
	uint8_t secret[GCI_SECRET_NBYTES];
	char text[GCI_SECRET_TEXT];
	int rc = make(secret, e);

	if (!rc) {
		gci_secret_format(secret, text);
		if (fputs(text, stdout) < 0 || fflush(stdout))
			rc = gci_error_errno(e, "cannot print the secret");
	}
	explicit_bzero(secret, sizeof(secret));
	explicit_bzero(text, sizeof(text));
	return rc;
}

/* The first line, and no byte more: what follows is for rank 0. */
static int read_line(struct gci_buf *text, struct gci_error *e)
{
	ssize_t n = 1;
	uint8_t byte = 0;

	while (byte != '\n' && n && text->len < GCI_SECRET_MAX_TEXT) {
		n = read(STDIN_FILENO, &byte, 1);
		if (n < 0 && errno != EINTR)
			return gci_error_errno(e, "--secret-file -: cannot read standard input");
		if (n > 0)
			gci_buf_put_u8(text, byte);
	}
	return text->failed ? gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory") : 0;
}

/* Whatever is wrong with it: another one is expected. */
static int unusable(const struct gci_error *why, struct gci_error *e)
{
	int status = why->status == GCOLL_ERR_NOMEM ? why->status : GCOLL_ERR_INVAL;

	return gci_error_set(e, status, "--secret-file: %s", why->text);
}

static int read_secret(const char *path, uint8_t secret[GCI_SECRET_NBYTES], struct gci_error *e)
{
	struct gci_buf text = {.secret = 1};
	struct gci_error why = {0};
	int from_stdin = !strcmp(path, "-"), rc;

	rc = from_stdin ? read_line(&text, e)
			: gci_private_read(path, GCI_SECRET_MAX_TEXT, &text, &why);
	if (why.status)
		rc = unusable(&why, e);
	if (!rc && gci_secret_parse(text.data, text.len, secret))
		rc = gci_error_set(e, GCOLL_ERR_INVAL,
			"--secret-file: %.300s, expected " GCI_SECRET_EXPECTED,
			from_stdin ? "standard input" : path);
	gci_buf_free(&text);
	return rc;
}

static int create(const char *path, uint8_t secret[GCI_SECRET_NBYTES], struct gci_error *e)
{
	struct gci_buf text = {.secret = 1};
	struct gci_error why = {0};
	char line[GCI_SECRET_TEXT];
	int rc = make(secret, e);

	if (rc)
		return rc;
	gci_secret_format(secret, line);
	gci_buf_put(&text, line, strlen(line));
	rc = text.failed ? gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory")
			 : gci_private_create(path, &text, &why);
	if (why.status)
		rc = unusable(&why, e);
	explicit_bzero(line, sizeof(line));
	gci_buf_free(&text);
	return rc;
}

int gci_job_secret(
	const struct gci_options *o, uint8_t secret[GCI_SECRET_NBYTES], struct gci_error *e)
{
	if (!o->guests.secret_file || (!o->guests.serve && !o->guests.join))
		return make(secret, e);
	if (o->guests.serve && strcmp(o->guests.secret_file, "-") != 0 &&
		access(o->guests.secret_file, F_OK) && errno == ENOENT)
		return create(o->guests.secret_file, secret, e);
	return read_secret(o->guests.secret_file, secret, e);
}
