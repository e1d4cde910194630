/* SPDX-License-Identifier: MIT */
#include "netem/uml_start.h"

#include "base/mem.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#define UML_XSTATE_NBYTES 2696 /* what linux.uml keeps of a process's extended state */

int gci_self_path(char *out, size_t size, struct gci_error *e)
{
	ssize_t n = readlink("/proc/self/exe", out, size - 1);

	if (n < 0)
		return gci_error_errno(e, "/proc/self/exe");
	out[n] = '\0';
	return 0;
}

int gci_uml_find(char *out, size_t size, struct gci_error *e)
{
	const char *path = getenv("PATH");

	for (path = path ? path : ""; *path; path += *path == ':') {
		size_t len = strcspn(path, ":");

		if (len && snprintf(out, size, "%.*s/linux.uml", (int)len, path) < (int)size &&
			!access(out, X_OK))
			return 0;
		path += len;
	}
	snprintf(out, size, "/usr/bin/linux.uml");
	if (!access(out, X_OK))
		return 0;
	return gci_error_set(e, GCOLL_ERR_UNSUPPORTED,
		"user-mode Linux is not there (no linux.uml in PATH), get it with: apt-get install "
		"user-mode-linux");
}

static int needs_xstate(void)
{
#ifdef __x86_64__
	unsigned a, b, c, d;

	return __get_cpuid_count(13, 0, &a, &b, &c, &d) && b > UML_XSTATE_NBYTES;
#else
	return 0;
#endif
}

/* The module for LD_PRELOAD: beside our program in a build directory, or where it is installed. */
static int find_xstate(char *out, size_t size, const char *self, struct gci_error *e)
{
	const char *slash = strrchr(self, '/');

	if (snprintf(out, size, "%.*s/../netem/" GCI_XSTATE_MODULE, (int)(slash - self), self) <
			(int)size &&
		!access(out, R_OK))
		return 0;
	if (snprintf(out, size, "%s", GCI_XSTATE_INSTALLED) < (int)size && !access(out, R_OK))
		return 0;
	return gci_error_set(e, GCOLL_ERR_UNSUPPORTED,
		"this processor has AMX, for which the guest needs %s, which is not there",
		GCI_XSTATE_INSTALLED);
}

/* Where the guest's memory, a sparse file, fits: /dev/shm is often small in containers. */
static const char *memory_dir(uint64_t mem_nbytes)
{
	struct statvfs v;

	if (!statvfs("/dev/shm", &v) && !(v.f_flag & ST_NOEXEC) &&
		(uint64_t)v.f_bavail * v.f_frsize >= mem_nbytes)
		return "/dev/shm";
	return "/tmp";
}

int gci_uml_launch(struct gci_keeper *k, const char *dir, uint64_t mem_nbytes, int console,
	int line_in, int line_out, struct gci_error *e)
{
	char uml[4096], self[4096], preload[4096], mem[32], tmpdir[32];
	char init[4200], uml_dir[4200], arg[4200], home[4200], load[4200];
	char *argv[] = {uml, mem, (char *)"root=/dev/root", (char *)"rootfstype=hostfs",
		(char *)"rootflags=/", (char *)"rw", init, (char *)"quiet", (char *)"con=null",
		(char *)"con0=null,fd:2", (char *)"ssl=null", (char *)"ssl0=fd:3,fd:4",
		(char *)"umid=guest", uml_dir, (char *)"--", (char *)"lab", (char *)"guest", arg,
		NULL};
	char *env[] = {tmpdir, home, (char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL, NULL};
	int null, rc = gci_uml_find(uml, sizeof(uml), e);

	rc = rc ? rc : gci_self_path(self, sizeof(self), e);
	if (!rc && needs_xstate()) {
		rc = find_xstate(preload, sizeof(preload), self, e);
		snprintf(load, sizeof(load), "LD_PRELOAD=%s", preload);
		env[3] = load;
	}
	if (rc)
		return rc;
	if (strpbrk(self, "\"\n") || strpbrk(dir, "\"\n"))
		return gci_error_set(
			e, GCOLL_ERR_UNSUPPORTED, "quotes in the path %s or %s", self, dir);
	snprintf(mem, sizeof(mem), "mem=%lluM", (unsigned long long)(mem_nbytes >> 20));
	snprintf(tmpdir, sizeof(tmpdir), "TMPDIR=%s", memory_dir(mem_nbytes));
	snprintf(init, sizeof(init), "init=\"%s\"", self);
	snprintf(uml_dir, sizeof(uml_dir), "uml_dir=%s/", dir);
	snprintf(arg, sizeof(arg), "\"%s\"", dir);
	snprintf(home, sizeof(home), "HOME=%s", dir);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	rc = gci_keeper_start(k,
		&(struct gci_keeper_job){
			dir, argv, env, {null, console, console}, {line_in, line_out}},
		e);
	close(null);
	return rc;
}
