/* SPDX-License-Identifier: MIT
 * What job.c's operations are about, in elements of four bytes; and as an error names it.
 *
 *	assert_non_null(strstr(job_err(&j), "allreduce of " JOB_COUNT_TEXT " uint32")); */
#ifndef GCI_TESTS_COMM_JOB_H
#define GCI_TESTS_COMM_JOB_H

/* ThreadSanitizer looks at each byte that is copied. */
#ifdef __SANITIZE_THREAD__
#define JOB_COUNT      100007
#define JOB_COUNT_TEXT "100007"
#define JOB_TABLE_TEXT "524288" /* what a table has nearest to so many elements of 4 bytes */
#else
#define JOB_COUNT      300007
#define JOB_COUNT_TEXT "300007"
#define JOB_TABLE_TEXT "1048576"
#endif

#endif
