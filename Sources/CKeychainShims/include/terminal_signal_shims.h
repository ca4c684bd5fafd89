/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that would end or stop this process while its terminal shows nothing of what is typed. */
#ifndef KEYCHAIN_TERMINAL_SIGNAL_SHIMS_H
#define KEYCHAIN_TERMINAL_SIGNAL_SHIMS_H

#include <stdbool.h>

/* From now on SIGINT, SIGTERM, SIGHUP, SIGQUIT and, if `notes_stop`, SIGTSTP are only noted, in whatever thread they arrive, unless they are ignored.
   Handlers are the whole process's: one thread at a time may call this, and then keychain_terminal_signals_restore.
   Returns a descriptor that is readable while one is noted, which stays the process's; -1 with errno set. */
int keychain_terminal_signals_record(bool notes_stop);

/* The signals do again what they did before; what was noted does it now, before this returns. True when something was noted that is meant
   to do more than stop the process. */
bool keychain_terminal_signals_restore(void);

/* Holds SIGTTOU back in this thread, or lets it through: only so can the terminal be put back by a process in its background.
   Returns whether it was held back before. */
bool keychain_terminal_output_signal_block(bool is_blocked);

#endif
