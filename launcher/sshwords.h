/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a node could not be reached by ssh, told from the exit code and the last
 * words of ssh, of the shell there and of the program: ssh itself has one code,
 * 255, for all that can go wrong. Its messages are English everywhere, since
 * it takes only LC_CTYPE from the user's locale. Pure.
 */
#ifndef LAUNCHER_SSHWORDS_H
#define LAUNCHER_SSHWORDS_H

#include <stdbool.h>

#include "common/buf.h"
#include "gpulaunch.pb-c.h"

/* The words of the command there, if the program did not get there whole. */
#define SSH_NOT_COPIED "gpulaunch-worker was not copied"

enum ssh_fault {
    SSH_FAULT_OTHER = 0,
    SSH_FAULT_NAME,           /* its name is not known */
    SSH_FAULT_REFUSED,        /* nothing listens there */
    SSH_FAULT_SILENT,         /* no answer: host down, packets dropped */
    SSH_FAULT_ROUTE,          /* no way to its network */
    SSH_FAULT_DROPPED,        /* closed or reset before the log-in */
    SSH_FAULT_LOGIN,          /* no key that it takes */
    SSH_FAULT_HOST_KEY,       /* not known */
    SSH_FAULT_NEW_HOST_KEY,   /* not the one that was known */
    SSH_FAULT_CONFIG,         /* of ssh, here */
    SSH_FAULT_MISSING,        /* the program, there */
    SSH_FAULT_NOT_EXECUTABLE, /* the program, there */
    SSH_FAULT_NOT_COPIED,     /* the program, as it was to be */
    SSH_FAULT_LIBRARY,        /* that the program needs, there */
    SSH_FAULT_NO_GREETING,    /* something else answered */
    SSH_FAULT_VERSION,        /* the program is of another release */
    SSH_FAULT_COORDINATOR,    /* the program there cannot reach it */
    SSH_FAULT_NOT_STARTED,    /* here: no memory, descriptor or process left */
    SSH_FAULT_SLOW,           /* still under way when the time was over */
    SSH_FAULT_NOT_TRIED,      /* its turn had not come by then */
    SSH_FAULT_COUNT,
};

/* What became of a session that has ended with `code` (128+N for a signal N),
 * of which `lines` were the last, a newline between two: ssh's own, or those
 * of the host and its programs, which decide nothing where ssh has failed.
 * `has_greeted`: the worker was there. */
enum ssh_fault ssh_judge(int code, const char *lines, bool has_greeted);

/* What of these the user is to read: without the host's banner where ssh or a
 * shell has said what is wrong, and the last of them where `bytes` do not hold
 * all. On one line. */
void ssh_choose_words(char *words, size_t bytes, int code, const char *lines,
                      bool has_greeted);

/* The same for the coordinator, which decides reason and exit code. */
Gpul__NodeGone__Why ssh_why(enum ssh_fault fault);

/* Does it make sense to try again? A host that drops connections has too many
 * at once; one that is silent may be starting. */
bool ssh_is_transient(enum ssh_fault fault);

/* Append what is wrong, the words, and what to do about it. */
void ssh_explain(struct gpul_buf *out, enum ssh_fault fault, const char *node,
                 const char *words);

#endif
