/* SPDX-License-Identifier: MIT */
#include "netem/guest_msg.h"

#include "base/error.h"
#include "base/mem.h"

#include <string.h>

#define MAGIC 0xa7

void gci_guest_msg_put(struct gci_buf *out, enum gci_guest_msg_type type, unsigned session,
	const void *body, size_t len)
{
	gci_buf_put_u8(out, MAGIC);
	gci_buf_put_u8(out, (uint8_t)type);
	gci_buf_put_u16(out, (uint16_t)session);
	gci_buf_put_u32(out, (uint32_t)len);
	gci_buf_put(out, body, len);
}

int gci_guest_msg_get(const struct gci_buf *in, struct gci_guest_msg *f)
{
	uint32_t len;

	if (in->len && in->data[0] != MAGIC)
		return -1;
	if (in->len < GCI_GUEST_MSG_HEADER)
		return 0;
	len = gci_load_u32(in->data + 4);
	f->session = in->data[2] | (unsigned)in->data[3] << 8;
	if (!in->data[1] || in->data[1] >= GCI_GUEST_MSG_TYPES || len > GCI_GUEST_MSG_MAX ||
		f->session >= GCI_MAX_SESSIONS)
		return -1;
	f->type = (enum gci_guest_msg_type)in->data[1];
	if (in->len < GCI_GUEST_MSG_HEADER + len)
		return 0;
	f->body = (struct gci_reader){in->data + GCI_GUEST_MSG_HEADER, len, 0};
	return (int)(GCI_GUEST_MSG_HEADER + len);
}

static void put_strings(struct gci_buf *out, char *const *s)
{
	uint32_t n = 0;

	while (s[n])
		n++;
	gci_buf_put_u32(out, n);
	while (*s)
		gci_buf_put_str(out, *s++);
}

void gci_job_put(struct gci_buf *out, const struct gci_job *job)
{
	gci_buf_put_str(out, job->cwd);
	put_strings(out, job->argv);
	put_strings(out, job->env);
}

static char **get_strings(struct gci_reader *in)
{
	uint32_t n = gci_read_u32(in), i;
	char **s;

	if (in->failed || n > in->len / 4) {
		in->failed = 1;
		return NULL;
	}
	s = gci_calloc((size_t)n + 1, sizeof(*s));
	for (i = 0; s && i < n && !in->failed; i++)
		s[i] = gci_read_str(in, GCI_JOB_MAX);
	if (!s)
		in->failed = 1;
	return s;
}

int gci_job_get(struct gci_reader *in, struct gci_job *job)
{
	job->cwd = gci_read_str(in, 4096);
	job->argv = get_strings(in);
	job->env = get_strings(in);
	if (!in->failed && job->argv[0])
		return 0;
	gci_job_free(job);
	return GCOLL_ERR_PROTO;
}

static void free_strings(char **s)
{
	size_t i;

	for (i = 0; s && s[i]; i++)
		gci_free(s[i]);
	gci_free(s);
}

void gci_job_free(struct gci_job *job)
{
	gci_free(job->cwd);
	free_strings(job->argv);
	free_strings(job->env);
	memset(job, 0, sizeof(*job));
}
