/* SPDX-License-Identifier: MIT */
#include "comm/scratch.h"

#include "base/mem.h"

#include <stddef.h>
#include <string.h>

char *gci_scratch_get(struct gci_scratch *s, uint64_t nbytes)
{
	char *data;
	int i, slot = -1;

	for (i = 0; i < GCI_SCRATCH_KEPT; i++) {
		if (s->kept[i].used)
			continue;
		if (s->kept[i].data && s->kept[i].nbytes >= nbytes) {
			s->kept[i].used = 1;
			return s->kept[i].data;
		}
		slot = i;
	}
	data = gci_reallocarray(NULL, nbytes, 1);
	if (!data || slot < 0)
		return data;
	gci_free(s->kept[slot].data);
	s->kept[slot].data = data;
	s->kept[slot].nbytes = nbytes;
	s->kept[slot].used = 1;
	return data;
}

void gci_scratch_put(struct gci_scratch *s, char *data)
{
	int i;

	for (i = 0; data && i < GCI_SCRATCH_KEPT; i++)
		if (s->kept[i].data == data) {
			s->kept[i].used = 0;
			return;
		}
	gci_free(data);
}

void gci_scratch_free(struct gci_scratch *s)
{
	int i;

	for (i = 0; i < GCI_SCRATCH_KEPT; i++)
		gci_free(s->kept[i].data);
	memset(s, 0, sizeof(*s));
}
