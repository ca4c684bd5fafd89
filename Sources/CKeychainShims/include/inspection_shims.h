/* SPDX-License-Identifier: Apache-2.0 */
/* Handles of processes, how they are passed from one process to another, and the confinement of the process that examines them. */
#ifndef KEYCHAIN_INSPECTION_SHIMS_H
#define KEYCHAIN_INSPECTION_SHIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A handle of a process, close-on-exec, which never stands for another process with the same number. It can be read once the process has
   ended. Returns -1 and sets errno on failure: ENOSYS before Linux 5.3. */
int keychain_process_handle_open(int process);

/* Sends a signal to the process of a handle. Returns 0 or an errno value. */
int keychain_process_handle_signal(int handle, int signal);

/* Receives a packet of one byte with a descriptor, without waiting. Returns the descriptor, close-on-exec, or -1 with errno: EBADMSG for every other packet, and at the
   end of the connection. */
int keychain_descriptor_receive(int socket);

/* Whether a file is on a file system in which, or in whose mounts, an ordinary user may have put files: FUSE, or a mount that ignores setuid.
   Returns an errno value on failure. */
int keychain_file_is_on_mount_of_user(const char *path, bool *is);

/* Limits this process, for good, to the system calls that read files and answer on sockets that it has already: no tracing, no access to the
   memory of other processes or to their descriptors, no new sockets, no new programs, and no file to write. A refused call fails with EPERM.
   The process must have one thread. Returns 0 or an errno value: ENOSYS on processors whose system calls it does not know. */
int keychain_process_confine_to_inspection(void);

#endif
