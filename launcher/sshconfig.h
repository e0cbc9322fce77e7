/* SPDX-License-Identifier: Apache-2.0
 *
 * The user's configuration of ssh, as `ssh -N -G` prints it, and what of it has
 * to be another for a session that nobody sits at: one that runs our command,
 * has our standard input, is nobody else's way, and says why it ends. All else
 * is left as the user has it: keys, users, ports, jump hosts, a ControlPath
 * that leads to a connection that stands. Pure.
 */
#ifndef LAUNCHER_SSHCONFIG_H
#define LAUNCHER_SSHCONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* So many words sshconfig_append adds at most. */
enum { SSHCONFIG_WORDS_MAX = 24 };

/* The value of the first line "key value" of `config` into `value`, which has
 * `n` bytes. False: there is none, or it is longer. */
bool sshconfig_value(char *value, size_t n, const char *config,
                     const char *key);

/* The options that a session needs: those of every session, and those that
 * only some releases of ssh know, if this one does; another has nothing of the
 * kind to turn off. "": the configuration is not known. A set for
 * sshconfig_append. */
uint32_t sshconfig_options(const char *config);

/* Put them, "-o" and "Name=value" by turns, to `words`, which has room for
 * SSHCONFIG_WORDS_MAX; they last. Returns how many words it is. */
size_t sshconfig_append(char **words, uint32_t options);

#endif
