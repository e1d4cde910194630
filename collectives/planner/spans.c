/* SPDX-License-Identifier: MIT */
#include "collectives/planner/spans.h"

#include <string.h>

#define LEVELS   GCI_SPAN_LEVELS
#define NEVER_NS 1e300

void gci_spans_clear(struct gci_spans *s)
{
	int i;

	memset(s, 0, sizeof(*s));
	for (i = 0; i < LEVELS; i++)
		s->least_before_ns[i] = s->least_after_ns[i] = NEVER_NS;
}

static int level_of(double ns, double most_ns)
{
	int i = (int)(ns / most_ns * LEVELS);

	return i < LEVELS ? i : LEVELS - 1;
}

void gci_spans_add(
	struct gci_spans *s, double before_ns, double after_ns, double work_ns, double most_ns)
{
	int i = level_of(before_ns, most_ns), j = level_of(after_ns, most_ns);

	s->work_ns[i][j] += work_ns;
	if (before_ns < s->least_before_ns[i])
		s->least_before_ns[i] = before_ns;
	if (after_ns < s->least_after_ns[j])
		s->least_after_ns[j] = after_ns;
}

void gci_spans_find(struct gci_spans *s)
{
	double sum[LEVELS] = {0}, here, ns;
	int i, j;

	for (i = LEVELS; i-- > 0;)
		for (here = 0, j = LEVELS; j-- > 0;) {
			here += s->work_ns[i][j];
			sum[j] += here;
			ns = s->least_before_ns[i] + s->least_after_ns[j] + sum[j];
			if (sum[j] <= 0 || ns >= NEVER_NS || ns <= s->ns)
				continue;
			s->ns = ns;
			s->before_ns = s->least_before_ns[i];
			s->after_ns = s->least_after_ns[j];
		}
}
