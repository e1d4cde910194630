/* SPDX-License-Identifier: MIT */
#include "base/units.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

struct unit {
	const char *suffix;
	uint64_t scale;
};

/* Reads "12", "12.5" as an integer number of millionths (so fractions stay exact), and leaves
 * *rest at the suffix. Up to six decimals. */
static int parse_decimal(const char *s, unsigned __int128 *millionths, const char **rest)
{
	unsigned __int128 v = 0;
	int digits = 0, decimals = 0;

	for (; isdigit((unsigned char)*s); s++, digits++) {
		v = v * 10 + (unsigned)(*s - '0');
		if (v > UINT64_MAX)
			return -1;
	}
	if (!digits)
		return -1;
	if (*s == '.') {
		for (s++; isdigit((unsigned char)*s); s++) {
			if (++decimals > 6)
				return -1;
			v = v * 10 + (unsigned)(*s - '0');
		}
		if (!decimals)
			return -1;
	}
	for (; decimals < 6; decimals++)
		v *= 10;
	while (*s == ' ')
		s++;
	*millionths = v;
	*rest = s;
	return 0;
}

static int parse_unit(const char *s, const struct unit *units, uint64_t *out)
{
	unsigned __int128 v;

	if (parse_decimal(s, &v, &s))
		return -1;
	for (; units->suffix; units++) {
		if (strcmp(s, units->suffix))
			continue;
		v = v * units->scale;
		if (v % 1000000)
			return -1; /* a fraction of the smallest unit */
		v /= 1000000;
		if (v > UINT64_MAX)
			return -1;
		*out = (uint64_t)v;
		return 0;
	}
	return -1;
}

int gci_parse_rate(const char *s, uint64_t *bps)
{
	static const struct unit units[] = {{"bit", 1}, {"kbit", 1000}, {"Kbit", 1000},
		{"Mbit", 1000000}, {"Gbit", 1000000000}, {"Tbit", 1000000000000}, {NULL, 0}};

	return parse_unit(s, units, bps);
}

int gci_parse_time(const char *s, uint64_t *ns)
{
	static const struct unit units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000},
		{"s", 1000000000}, {"m", 60000000000}, {NULL, 0}};

	return parse_unit(s, units, ns);
}

int gci_parse_bytes(const char *s, uint64_t *nbytes)
{
	static const struct unit units[] = {{"", 1}, {"B", 1}, {"KB", 1000}, {"kB", 1000},
		{"MB", 1000000}, {"GB", 1000000000}, {"TB", 1000000000000}, {"K", 1ull << 10},
		{"M", 1ull << 20}, {"G", 1ull << 30}, {"T", 1ull << 40}, {"KiB", 1ull << 10},
		{"MiB", 1ull << 20}, {"GiB", 1ull << 30}, {"TiB", 1ull << 40}, {NULL, 0}};

	return parse_unit(s, units, nbytes);
}

int gci_parse_ratio(const char *s, uint32_t *ppm)
{
	static const struct unit units[] = {{"%", 10000}, {NULL, 0}};
	uint64_t v;

	if (parse_unit(s, units, &v) || v > 1000000)
		return -1;
	*ppm = (uint32_t)v;
	return 0;
}

int gci_parse_uint(const char *s, uint64_t max, uint64_t *out)
{
	uint64_t v = 0;

	if (!*s)
		return -1;
	for (; *s; s++) {
		if (!isdigit((unsigned char)*s) || v > (UINT64_MAX - 9) / 10)
			return -1;
		v = v * 10 + (unsigned)(*s - '0');
	}
	if (v > max)
		return -1;
	*out = v;
	return 0;
}

int gci_parse_ports(const char *s, struct gci_ports *ports)
{
	const char *dash = strchr(s, '-');
	char low[8];
	uint64_t lo, hi;

	if (!dash || (size_t)(dash - s) >= sizeof(low))
		return -1;
	memcpy(low, s, (size_t)(dash - s));
	low[dash - s] = '\0';
	if (gci_parse_uint(low, 65535, &lo) || gci_parse_uint(dash + 1, 65535, &hi) || !lo ||
		hi < lo)
		return -1;
	*ports = (struct gci_ports){(uint16_t)lo, (uint16_t)hi};
	return 0;
}

static char *format(double v, double step, const char *const *names, char *out, size_t size)
{
	while (v >= step * 0.9995 && names[1]) {
		v /= step;
		names++;
	}
	snprintf(out, size, "%.*f %s", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, *names);
	return out;
}

char *gci_format_bytes(uint64_t nbytes, char *out, size_t size)
{
	static const char *const names[] = {"kB", "MB", "GB", "TB", "PB", NULL};

	if (nbytes < 1000) {
		snprintf(out, size, "%u B", (unsigned)nbytes);
		return out;
	}
	return format((double)nbytes / 1e3, 1e3, names, out, size);
}

char *gci_format_rate(uint64_t bps, char *out, size_t size)
{
	static const char *const names[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", NULL};

	return format((double)bps, 1e3, names, out, size);
}

char *gci_format_time(uint64_t ns, char *out, size_t size)
{
	static const char *const names[] = {"ns", "us", "ms", "s", NULL};

	return format((double)ns, 1e3, names, out, size);
}

char *gci_format_hex(const void *data, size_t n, char *out)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *p = data;
	size_t i;

	for (i = 0; i < n; i++) {
		out[2 * i] = digits[p[i] >> 4];
		out[2 * i + 1] = digits[p[i] & 15];
	}
	out[2 * n] = '\0';
	return out;
}
