/* SPDX-License-Identifier: MIT
 * What a resource has to do between two times: what comes there so long after the start at the earliest, and has so far to
 * go from there, has no more of it than from the one until the other before the end (the condition of deadlines on one
 * machine: Horn 1974). The longest of all sums of that kind is the least time that the resource needs.
 *
 *	gci_spans_clear(&s);
 *	gci_spans_add(&s, before_ns, after_ns, work_ns, most_ns);	// of each load
 *	gci_spans_find(&s);
 *	use(s.ns);
 */
#ifndef GCI_COLLECTIVES_PLANNER_SPANS_H
#define GCI_COLLECTIVES_PLANNER_SPANS_H

#define GCI_SPAN_LEVELS 24 /* loads that differ by less than a 24th of the most count as alike */

struct gci_spans {
	double work_ns[GCI_SPAN_LEVELS][GCI_SPAN_LEVELS];
	double least_before_ns[GCI_SPAN_LEVELS], least_after_ns[GCI_SPAN_LEVELS]; /* [level] */
	/* Found: time, and of what: all that is there no sooner, and has no less to go. Never more than is needed. */
	double ns, before_ns, after_ns;
};

void gci_spans_clear(struct gci_spans *s);

/* `most_ns`: of before and after, the same each time, above 0. */
void gci_spans_add(
	struct gci_spans *s, double before_ns, double after_ns, double work_ns, double most_ns);

void gci_spans_find(struct gci_spans *s);

#endif
