/* SPDX-License-Identifier: Apache-2.0
 *
 * A library that lacks a symbol, as an older release does. */
#ifndef DOUBLES_HIDE_H
#define DOUBLES_HIDE_H

/* Takes the symbols that the scenario names and that begin with `prefix` out
 * of the dynamic symbol table of the library that holds `address`, so that
 * dlsym() does not find them. To be called from the library's constructor,
 * which runs before dlopen() returns. A name that the library does not have
 * ends the process: the scenario is wrong. */
void hide_symbols(const void *address, const char *prefix);

#endif
