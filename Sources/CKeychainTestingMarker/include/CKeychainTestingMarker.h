/* SPDX-License-Identifier: Apache-2.0 */
/* Linking this target is what puts a process into testing mode: see marker.c. */
#ifndef CKEYCHAINTESTINGMARKER_H
#define CKEYCHAINTESTINGMARKER_H

/* Does nothing; a call to it keeps the object file, and with it the constructor, in the program. */
void keychain_testing_marker_keep(void);

#endif
