/* SPDX-License-Identifier: MIT */
#include "tests/simulate/fiber.h"

#include "tests/simulate/heap.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define STACK_NBYTES (1u << 20)
#else
#define STACK_NBYTES (256u << 10)
#endif

struct fiber {
	ucontext_t first;
	jmp_buf here;
	struct fiber *next; /* of the spare ones */
	void *stack;
	void (*fn)(void *arg);
	void *arg;
	int begun, over, dying;
	void *fake; /* AddressSanitizer's */
};

static struct fiber *spare, *current;
static jmp_buf outside;
#ifdef WITH_ASAN
static const void *outside_stack;
static size_t outside_nbytes;
static void *outside_fake;
#endif

/* AddressSanitizer wants to be told before and after each switch. `end`: whoever leaves never comes
 * back. */
static void leaving(struct fiber *f, int end)
{
#ifdef WITH_ASAN
	__sanitizer_start_switch_fiber(end ? NULL : &f->fake, outside_stack, outside_nbytes);
#else
	(void)f;
	(void)end;
#endif
}

static void arrived(struct fiber *f)
{
#ifdef WITH_ASAN
	__sanitizer_finish_switch_fiber(f->fake, &outside_stack, &outside_nbytes);
#else
	(void)f;
#endif
}

static void begin(void)
{
	struct fiber *f = current;

	f->fake = NULL;
	arrived(f);
	f->fn(f->arg);
	f->over = 1;
	leaving(f, 1);
	_longjmp(outside, 1);
}

struct fiber *fiber_new(void (*fn)(void *arg), void *arg)
{
	struct fiber *f = spare;

	if (f) {
		spare = f->next;
	} else {
		f = heap_calloc(1, sizeof(*f));
		f->stack = mmap(NULL, STACK_NBYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
		if (f->stack == MAP_FAILED || mprotect(f->stack, 4096, PROT_NONE))
			abort();
	}
	f->fn = fn;
	f->arg = arg;
	f->begun = f->over = f->dying = 0;
	getcontext(&f->first);
	f->first.uc_stack.ss_sp = f->stack;
	f->first.uc_stack.ss_size = STACK_NBYTES;
	f->first.uc_link = NULL;
	makecontext(&f->first, begin, 0);
	return f;
}

void fiber_enter(struct fiber *f)
{
	int begun = f->begun;

	current = f;
	f->begun = 1;
#ifdef WITH_ASAN
	__sanitizer_start_switch_fiber(&outside_fake, f->stack, STACK_NBYTES);
#endif
	if (!_setjmp(outside)) { /* later switches spare the system calls of the first */
		if (begun)
			_longjmp(f->here, 1);
		setcontext(&f->first);
	}
#ifdef WITH_ASAN
	__sanitizer_finish_switch_fiber(outside_fake, NULL, NULL);
#endif
	current = NULL;
}

void fiber_leave(void)
{
	struct fiber *f = current;

	leaving(f, 0);
	if (!_setjmp(f->here))
		_longjmp(outside, 1);
	arrived(f);
	if (!f->dying)
		return;
	leaving(f, 1);
	_longjmp(outside, 1);
}

int fiber_over(const struct fiber *f)
{
	return f->over;
}

void fiber_free(struct fiber *f)
{
	if (f->begun && !f->over) {
		f->dying = 1;
		fiber_enter(f);
	}
#ifdef WITH_ASAN
	__asan_unpoison_memory_region((char *)f->stack + 4096, STACK_NBYTES - 4096);
#endif
	f->next = spare;
	spare = f;
}
