/* SPDX-License-Identifier: Apache-2.0 */
/* Deferral of signals that would end or stop this process while its terminal does not echo input. */
#ifndef KEYCHAIN_TERMINAL_SIGNAL_SHIMS_H
#define KEYCHAIN_TERMINAL_SIGNAL_SHIMS_H

#include <stdbool.h>

/* Installs handlers that only record SIGINT, SIGTERM, SIGHUP, SIGQUIT, other signals that would end the process by default, and, with
   `notes_stop`, SIGTSTP and SIGCONT, in any thread. Ignored signals stay ignored. Handlers belong to the whole process: one thread at a time
   may call this, and then keychain_terminal_signals_restore.
   Returns a descriptor that is readable while a signal is recorded and must not be closed, or -1 with errno set. */
int keychain_terminal_signals_record(bool notes_stop);

/* Restores the previous handlers, and raises the recorded signals before it returns. Returns true if a recorded signal was to end the
   process. */
bool keychain_terminal_signals_restore(void);

/* Blocks or unblocks SIGTTOU in this thread. A background process must block it to restore the terminal's settings.
   Returns whether it was blocked before. */
bool keychain_terminal_output_signal_block(bool is_blocked);

#endif
