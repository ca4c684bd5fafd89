/* SPDX-License-Identifier: Apache-2.0 */
/* A process that links this target is in testing mode: see marker.c. */
#ifndef CKEYCHAINTESTINGMARKER_H
#define CKEYCHAINTESTINGMARKER_H

/* Does nothing. A call keeps the object file, and with it the constructor, in the program. */
void keychain_testing_marker_keep(void);

#endif
