/* SPDX-License-Identifier: Apache-2.0
 *
 * The coordinator's words on stderr. Edge.
 */
#ifndef COORDINATOR_LOG_H
#define COORDINATOR_LOG_H

/* One line, with the program's name before it. */
void log_line(const char *text);

#endif
