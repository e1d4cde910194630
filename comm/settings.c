/* SPDX-License-Identifier: MIT
 * gcoll_comm_set. */
#include "base/units.h"
#include "comm/comm.h"
#include "comm/deadline.h"
#include "comm/pacing.h"
#include "comm/thread.h"
#include "transport/path.h"
#include "transport/sockopt.h"

#include <stdio.h>
#include <string.h>

static int set_algorithm(gcoll_comm *c, enum gci_kind kind, const char *value)
{
	struct gci_error e = {0};
	struct gci_choice choice = {0};

	if (gci_candidate_parse(&choice.how, kind, value, &e))
		return gci_comm_error(e.status, "%s", e.text);
	choice.automatic = !strncmp(value, "auto", strcspn(value, ":"));
	c->choice[kind] = choice;
	return 0;
}

static int set_streams(gcoll_comm *c, const char *value)
{
	uint64_t v;

	if (gci_parse_uint(value, GCI_TP_MAX_STREAMS, &v) || !v)
		return gci_comm_error(GCOLL_ERR_INVAL,
			"streams: \"%s\", expected a number from 1 to %d", value,
			GCI_TP_MAX_STREAMS);
	c->engine->settings.streams = (uint32_t)v;
	return 0;
}

static int set_socket_buffer(gcoll_comm *c, const char *value)
{
	uint64_t v = 0;

	if (strcmp(value, "auto") != 0 && (gci_parse_bytes(value, &v) || v < 4096 || v > 1u << 30))
		return gci_comm_error(GCOLL_ERR_INVAL,
			"socket_buffer: \"%s\", expected auto or a size from 4KiB to 1GiB", value);
	c->engine->settings.sockbuf_nbytes = v;
	return 0;
}

static int set_checksum(gcoll_comm *c, const char *value)
{
	static const char *const names[] = {"auto", "on", "off"};
	int i;

	for (i = 0; i < 3; i++) {
		if (strcmp(value, names[i]) != 0)
			continue;
		c->engine->settings.checksum = (enum gci_checksum)i;
		return 0;
	}
	return gci_comm_error(GCOLL_ERR_INVAL, "checksum: \"%s\", expected auto, on or off", value);
}

static int set_data_path(gcoll_comm *c, const char *value)
{
	if (gci_data_path_parse(value, &c->engine->settings.data_path))
		return gci_comm_error(GCOLL_ERR_INVAL,
			"data_path: \"%s\", expected " GCI_DATA_PATH_EXPECTED, value);
	return 0;
}

static int set_security(gcoll_comm *c, const char *value)
{
	if (gci_security_parse(value, &c->engine->settings.security))
		return gci_comm_error(GCOLL_ERR_INVAL,
			"security: \"%s\", expected " GCI_SECURITY_EXPECTED, value);
	return 0;
}

static int set_congestion(gcoll_comm *c, const char *value)
{
	struct gci_error e = {0};

	if (!strcmp(value, "default")) {
		*c->engine->settings.congestion = '\0';
		return 0;
	}
	if (gci_sockopt_congestion(value, &e))
		return gci_comm_error(e.status, "congestion: %s, or default", e.text);
	snprintf(c->engine->settings.congestion, sizeof(c->engine->settings.congestion), "%s",
		value);
	return 0;
}

static int set_replay(gcoll_comm *c, const char *value)
{
	static const char *const names[] = {"auto", "wan", "always", "off"};
	size_t i, n = sizeof(names) / sizeof(*names);

	for (i = 0; i < n && strcmp(value, names[i]) != 0; i++)
		;
	if (i == n)
		return gci_comm_error(GCOLL_ERR_INVAL,
			"replay: \"%s\", expected auto, wan, always or off", value);
	c->engine->settings.replay = (enum gci_replay_where)i;
	return 0;
}

static int set_timeout(gcoll_comm *c, const char *value)
{
	uint64_t v = GCI_NEVER, floor = 0;
	int rc = 0;

	if (!strcmp(value, "auto"))
		floor = gci_engine_patience(c->engine, GCI_DEADLINE_FLOOR_NS);
	else if (!strncmp(value, "auto:", 5))
		rc = gci_parse_time(value + 5, &floor) || !floor;
	else if (strcmp(value, "never") != 0)
		rc = gci_parse_time(value, &v) || !v;
	if (rc)
		return gci_comm_error(GCOLL_ERR_INVAL,
			"timeout: \"%s\", expected never, auto, auto:TIME or " GCI_TIME_EXPECTED,
			value);
	c->engine->settings.op_timeout_ns = v;
	c->engine->settings.floor_ns = floor;
	return 0;
}

static int set_spin(gcoll_comm *c, const char *value)
{
	uint64_t v = 0;

	if (strcmp(value, "off") != 0 && (gci_parse_time(value, &v) || !v || v > GCI_SPIN_MOST_NS))
		return gci_comm_error(GCOLL_ERR_INVAL,
			"spin: \"%s\", expected off or a time of at most 100us", value);
	gci_spin_set(&c->engine->settings.spin, v);
	return 0;
}

static int set_order(gcoll_comm *c, const char *value)
{
	if (strcmp(value, "any") != 0 && strcmp(value, "fixed") != 0)
		return gci_comm_error(
			GCOLL_ERR_INVAL, "order: \"%s\", expected any or fixed", value);
	c->fixed_order = !strcmp(value, "fixed");
	return 0;
}

static int set_compare(gcoll_comm *c, const char *value)
{
	if (strcmp(value, "off") != 0 && strcmp(value, "on") != 0)
		return gci_comm_error(
			GCOLL_ERR_INVAL, "compare: \"%s\", expected off or on", value);
	c->compares = !strcmp(value, "on");
	return 0;
}

static int set_tuning(gcoll_comm *c, const char *value)
{
	static const char *const names[] = {"off", "table", "simulate"};
	size_t i, n = sizeof(names) / sizeof(*names);

	for (i = 0; i < n && strcmp(value, names[i]) != 0; i++)
		;
	if (i == n)
		return gci_comm_error(
			GCOLL_ERR_INVAL, "tuning: \"%s\", expected simulate, table or off", value);
	c->tuning = (enum gci_tuning)i;
	return 0;
}

static int set_record(gcoll_comm *c, const char *value)
{
	if (!*value)
		return gci_comm_error(GCOLL_ERR_INVAL, "record: \"\", expected a file or off");
	if (gci_recording_set(c->engine, strcmp(value, "off") != 0 ? value : NULL))
		return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");
	return 0;
}

static int set_warm(gcoll_comm *c, const char *value)
{
	int when = gci_warm_parse(value);

	if (when < 0)
		return gci_comm_error(
			GCOLL_ERR_INVAL, "warm: \"%s\", expected on, now or off", value);
	gci_warm_set(c->engine, (enum gci_warm_when)when);
	return 0;
}

static int set_pace(gcoll_comm *c, const char *value)
{
	struct gci_error e = {0};
	enum gci_pace_how how;

	if (gci_pace_parse(value, &how))
		return gci_comm_error(
			GCOLL_ERR_INVAL, "pace: \"%s\", expected " GCI_PACE_EXPECTED, value);
	return gci_pacing_set(c->engine, how, &e) ? gci_comm_error(e.status, "pace: %s", e.text)
						  : 0;
}

static const struct {
	const char *key;
	int early; /* before the first operation only */
	int (*set)(gcoll_comm *c, const char *value);
} settings[] = {{"streams", 1, set_streams}, {"socket_buffer", 1, set_socket_buffer},
	{"congestion", 1, set_congestion}, {"checksum", 1, set_checksum},
	{"data_path", 1, set_data_path}, {"replay", 1, set_replay}, {"timeout", 0, set_timeout},
	{"order", 0, set_order}, {"compare", 0, set_compare}, {"tuning", 0, set_tuning},
	{"spin", 0, set_spin}, {"record", 0, set_record}, {"warm", 1, set_warm},
	{"pace", 0, set_pace}, {"security", 1, set_security}};

static int unknown_setting(const char *key)
{
	char list[256] = "";
	int k;

	for (k = 0; k < GCI_NKINDS; k++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s, ",
			gci_kind_name((enum gci_kind)k));
	return gci_comm_error(GCOLL_ERR_INVAL,
		"unknown setting \"%s\", expected %sorder, compare, tuning, streams, "
		"socket_buffer, congestion, checksum, data_path, replay, security, timeout, spin, "
		"pace, warm or record",
		key, list);
}

static int set(gcoll_comm *c, const char *key, const char *value)
{
	int kind = gci_kind_find(key);
	size_t i;

	if (kind >= 0)
		return set_algorithm(c, (enum gci_kind)kind, value);
	for (i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		if (strcmp(key, settings[i].key) != 0)
			continue;
		if (settings[i].early && c->engine->started)
			return gci_comm_error(GCOLL_ERR_INVAL,
				"%s: connections may be open already, "
				"expected before the first operation",
				key);
		return settings[i].set(c, value);
	}
	return unknown_setting(key);
}

int gcoll_comm_set(gcoll_comm *c, const char *key, const char *value)
{
	int rc;

	if (!c || !key || !value)
		return gci_comm_error(GCOLL_ERR_INVAL, "%s is NULL",
			!c    ? "the communicator"
			: key ? "value"
			      : "key");
	rc = gci_enter(c->engine);
	if (rc)
		return rc;
	rc = set(c, key, value);
	gci_leave(c->engine);
	return rc;
}
