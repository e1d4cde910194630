/* SPDX-License-Identifier: MIT
 * Doubly linked list with the links inside its members. A zeroed member is on no list. */
#ifndef GCI_BASE_LIST_H
#define GCI_BASE_LIST_H

#include <stddef.h>

struct gci_list {
	struct gci_list *next, *prev;
};

#define gci_container(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#define gci_list_each(it, list) for ((it) = (list)->next; (it) != (list); (it) = (it)->next)

static inline void gci_list_init(struct gci_list *l)
{
	l->next = l->prev = l;
}

static inline int gci_list_empty(const struct gci_list *l)
{
	return l->next == l;
}

static inline void gci_list_push(struct gci_list *l, struct gci_list *m)
{
	m->prev = l->prev;
	m->next = l;
	l->prev->next = m;
	l->prev = m;
}

/* Takes `m` off its list; nothing if it is on none. */
static inline void gci_list_del(struct gci_list *m)
{
	if (!m->next)
		return;
	m->prev->next = m->next;
	m->next->prev = m->prev;
	m->next = m->prev = NULL;
}

/* Moves all of `from` to the end of `to`. */
static inline void gci_list_move(struct gci_list *to, struct gci_list *from)
{
	if (gci_list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	gci_list_init(from);
}

#endif
