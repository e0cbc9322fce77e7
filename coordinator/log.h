/* SPDX-License-Identifier: Apache-2.0
 *
 * The coordinator's words on stderr. Edge.
 *
 * Started by gpulaunch, that is a memory file of a fixed size, of which the end
 * is read when the coordinator has died. When it is full it is written from
 * its start again: strangers at the door can fill it, and must not hide why it
 * died.
 */
#ifndef COORDINATOR_LOG_H
#define COORDINATOR_LOG_H

/* One line, with the program's name before it. */
void log_line(const char *text);

#endif
