/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may be connected to the coordinator without having shown a key, and for
 * how long; and what is said about those who may not. Pure: the server tells
 * it what happens, with the time, and asks what to do.
 *
 * A connection that is let in has a ticket until it has proved its key, was
 * closed, or is expelled. Bounds are those of proto/limits.h. Addresses are
 * counted as IPv4 address or as the 64 bits of a network of IPv6, since that
 * is what one machine may choose from; loopback is not counted, since a user
 * of this machine has cheaper ways to be in the way.
 *
 * Strangers get one log line a second between them: the first at once, then
 * how many and what they were.
 */
#ifndef COORDINATOR_GATE_H
#define COORDINATOR_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/opening.h"

struct gate;

/* No ticket, no connection. */
#define GATE_NONE UINT32_MAX

/* Room for every kind of stranger in one line. */
enum { GATE_LINE_BYTES = 2048 };

/* NULL: no memory. */
struct gate *gate_create(void);
void gate_destroy(struct gate *g); /* NULL is fine */

/* To be asked before gate_opened: the connection that gives way to a new one
 * from this address, by the caller's number: close it; its ticket is given
 * back. GATE_NONE: a place is free, or nobody has been here for long enough to
 * give way, or nobody had to be expelled lately. */
uint32_t gate_make_room(struct gate *g, const char *address, uint64_t now_ms);

/* A connection was accepted from a literal address; `conn` is the caller's
 * number for it. Returns its ticket, or GATE_NONE: close it at once, nothing
 * more is told about it. */
uint32_t gate_opened(struct gate *g, uint32_t conn, const char *address,
                     uint64_t now_ms);

/* It has begun the handshake of a node of this name. Returns the connection
 * that gives way since too many claim that name, as gate_make_room does. */
uint32_t gate_claimed(struct gate *g, uint32_t ticket, const char *name);

/* It has proved its key: the ticket is given back. */
void gate_proved(struct gate *g, uint32_t ticket);

/* It was closed before that, as what `kind` says; `hint` is the sentence for
 * the user if its secret was wrong (copied), else NULL. The ticket is given
 * back. */
void gate_closed(struct gate *g, uint32_t ticket, enum gpul_stranger kind,
                 const char *hint);

/* The next connection whose time is up, by the caller's number: close it; its
 * ticket is given back. GATE_NONE: there is none (now). */
uint32_t gate_expel(struct gate *g, uint64_t now_ms);

/* Write the line to be logged now, if there is one. Ask after each event and
 * at the deadline. */
bool gate_line(struct gate *g, char line[GATE_LINE_BYTES], uint64_t now_ms);

/* How many were closed since the start, but for those that went away by
 * themselves before it was known what they are: a node whose patience is over
 * does that. What they were into `words`, "" if there were none. */
uint64_t gate_total(const struct gate *g, char words[GATE_LINE_BYTES]);

/* The hint about a wrong secret, for the user; once for the whole job, NULL
 * before and after. */
const char *gate_take_hint(struct gate *g);

/* When gate_expel or gate_line has something to do; UINT64_MAX: never. */
uint64_t gate_next_deadline_ms(const struct gate *g);

/* Tickets given out. */
uint32_t gate_held(const struct gate *g);

#endif
