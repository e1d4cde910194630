/* SPDX-License-Identifier: MIT
 * Measured parameters as a file: JSON, for people to read and for gridcoll to refuse when it is not
 * what it was.
 *
 *	rc = gci_params_parse(&p, text, len, "my.params", &grid, &e);
 *	if (rc)
 *		puts(e.text);	// my.params:7: ...
 *
 * The format, version 1; nothing else may be there, and of it a link's lists only may be missing:
 *
 *	{
 *	  "version": 1,
 *	  "date": "2026-11-21T16:29:00Z",	UTC
 *	  "grid_digest": "0123456789abcdef",	gci_grid_digest()
 *	  "dilation": 1,			of the lab it was measured in
 *	  "latency": "half a round trip",	or "one way"
 *	  "clusters": ["kyoto", "tokyo"],	as in the grid file
 *	  "links": [				each at most once; those not there: not measured
 *	    {
 *	      "from": "kyoto", "to": "tokyo",
 *	      "latency_ns": 10000000,
 *	      "points": [			rising, first 0 bytes; gap_ns the longest
 *	        {"nbytes": 0, "os_ns": 900, "or_ns": 800, "gap_ns": 2000}
 *	      ],
 *	      "rates": [			rising
 *	        {"streams": 1, "bps": 900000000}
 *	      ],
 *	      "senders": [			rising
 *	        {"senders": 8, "bps": 7000000000}
 *	      ],
 *	      "isends": [			rising
 *	        {"nbytes": 2048, "immediate": true, "initial": 15, "mid": 3, "os_start_ns": 70,
 *	          "os_spike_ns": 9000, "os_mid_ns": 90}
 *	      ]
 *	    }
 *	  ]
 *	}
 *
 * Times and rates are those of the grid as its file says, whatever the dilation. */
#ifndef GCI_COLLECTIVES_MODELS_PARAMS_JSON_H
#define GCI_COLLECTIVES_MODELS_PARAMS_JSON_H

#include "collectives/models/params.h"

#define GCI_PARAMS_MAX_TEXT    (8u << 20)
#define GCI_PARAMS_MAX_NS      UINT64_C(100000000000000)  /* more than a day is no measurement */
#define GCI_PARAMS_MAX_BPS     UINT64_C(1000000000000000) /* a petabit per second */
#define GCI_PARAMS_MAX_NBYTES  (UINT64_C(1) << 40)
#define GCI_PARAMS_MAX_STREAMS 4096
#define GCI_PARAMS_MAX_POINTS  4096 /* of each of a link's lists */

struct gci_buf;

/* Reads a parameters file. `name` stands before the line number in errors. With `g`, it must have
 * been measured on this grid (dilated or not), else GCOLL_ERR_INVAL. Other failures are
 * GCOLL_ERR_PARSE and _NOMEM; `p` is empty after all of them. */
int gci_params_parse(struct gci_params *p, const char *text, size_t len, const char *name,
	const struct gci_grid *g, struct gci_error *e);

/* The same as text, which parses to what is printed. */
void gci_params_print(const struct gci_params *p, struct gci_buf *out);

#endif
