/* SPDX-License-Identifier: MIT
 * A packet as a TAP device hands it over: its header of ten bytes, then the frame. Of any, each cut
 * lies within it, and all cuts together are its data. */
#include "netem/segments.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct virtio_net_hdr vnet;
	struct gci_segments_cut cut;
	struct gci_segments s;
	uint8_t copy[4096];
	uint32_t reached;
	uint16_t i;

	if (size <= sizeof(vnet) || size > sizeof(copy))
		return 0;
	memcpy(&vnet, data, sizeof(vnet));
	data += sizeof(vnet);
	size -= sizeof(vnet);
	gci_segments_read(&s, &vnet, data, size, size);
	check(s.n >= 1 && s.nbytes == size && s.last_nbytes && s.segment_nbytes <= size);
	check(s.headers <= GCI_SEGMENTS_HEADERS && s.headers <= size);
	reached = s.headers;
	for (i = 0; s.n > 1 && i < s.n; i++) {
		gci_segments_cut(&s, &vnet, data, i, 1, &cut);
		check(cut.offset == reached && cut.nheaders == s.headers && cut.nbytes);
		check(cut.nbytes + s.headers == (i + 1 == s.n ? s.last_nbytes : s.segment_nbytes));
		reached += cut.nbytes;
	}
	check(s.n == 1 || reached == size);
	memcpy(copy, data, size);
	gci_segments_corrupt(&vnet, copy, size, size * 2654435761u);
	return 0;
}
