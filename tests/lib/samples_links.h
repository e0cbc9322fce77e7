/* SPDX-License-Identifier: Apache-2.0
 *
 * The samples of the messages of docs/links.md, for samples.c only.
 */
#ifndef TESTS_LIB_SAMPLES_LINKS_H
#define TESTS_LIB_SAMPLES_LINKS_H

#include "proto/message.h"

extern Gpul__LinkStart sample_link_start;
extern Gpul__LinkListening sample_link_listening;
extern Gpul__LinkPeers sample_link_peers;
extern Gpul__LinkReport sample_link_report;

#endif
