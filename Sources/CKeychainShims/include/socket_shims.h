/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets between local processes, what the kernel knows about the process at the other end, and a descriptor that ends waiting for them. */
#ifndef KEYCHAIN_SOCKET_SHIMS_H
#define KEYCHAIN_SOCKET_SHIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A process as the kernel names it. */
struct keychain_process_identity {
    int32_t process;
    uint32_t user;
    uint32_t group;
};

/* Sends one packet without waiting, with a descriptor unless it is negative. Returns 0 or an errno value. */
int keychain_packet_send(int socket, const void *bytes, size_t byte_count, int descriptor);

/* Receives one packet, and the process that sent it. With `waits`, waits for it, for at most the time of keychain_socket_limit_wait. Returns
   its byte count, 0 at the end of the connection, or -1 with errno: EAGAIN if there is none, EMSGSIZE if the packet is larger than the
   buffer, and EBADMSG if it carries more or fewer than `descriptor_count` descriptors, all of which are closed, or does not name its sender.
   The socket must have been passed to keychain_packet_socket_prepare. */
long keychain_packet_receive(
    int socket, void *buffer, size_t byte_count, bool waits, size_t descriptor_count, struct keychain_process_identity *sender);

/* Limits how long a call waits for a packet, to so many seconds; 0: there is no limit. Returns 0 or an errno value. */
int keychain_socket_limit_wait(int socket, int64_t seconds);

/* Accepts a connection, without waiting, close-on-exec. Returns -1 and sets errno on failure. */
int keychain_socket_accept(int socket);

/* Makes the kernel attach the sender to each packet that the socket receives. Calls wait from then on. Returns 0 or an errno value. */
int keychain_packet_socket_prepare(int socket);

/* Makes the kernel refuse packets with descriptors from now on, if it can. */
void keychain_packet_socket_refuse_descriptors(int socket);

/* The process at the other end when it connected, with its effective user and group. Returns 0 or an errno value. */
int keychain_socket_peer(int socket, struct keychain_process_identity *peer);

/* The supplementary groups of the process at the other end when it connected. Returns how many there are, or -1 with errno: ERANGE if there
   are more than `capacity`, and ENOPROTOOPT before Linux 4.13. */
long keychain_socket_peer_groups(int socket, uint32_t *groups, size_t capacity);

/* A descriptor, close-on-exec, that can be read once it is set. Returns -1 and sets errno on failure. */
int keychain_event_create(void);
void keychain_event_set(int event);

#endif
