/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages of docs/links.md for fuzz_rendezvous, each drawn from one byte.
 */
#ifndef TESTS_FUZZ_FUZZ_LINKS_H
#define TESTS_FUZZ_FUZZ_LINKS_H

#include "proto/message.h"

/* LinkListening; LinkReport. The body lives until the next call. */
void fuzz_links_listening(Gpul__Frame *frame, uint8_t choice);
void fuzz_links_report(Gpul__Frame *frame, uint8_t choice);

#endif
