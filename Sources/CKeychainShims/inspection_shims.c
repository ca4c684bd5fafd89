/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "inspection_shims.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

int keychain_process_handle_open(int process) { return (int)syscall(SYS_pidfd_open, process, 0); }

int keychain_process_handle_signal(int handle, int signal) {
    return syscall(SYS_pidfd_send_signal, handle, signal, NULL, 0) == 0 ? 0 : errno;
}

int keychain_descriptor_receive(int socket) {
    /* The kernel closes the descriptors for which there is no room. There may be room for two. */
    union {
        struct cmsghdr alignment;
        unsigned char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    unsigned char bytes[2];
    struct iovec part = {bytes, sizeof bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (received < 0) return -1;
    int descriptor = -1, count = 0;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        for (size_t offset = 0; header->cmsg_len >= CMSG_LEN(offset + sizeof descriptor); offset += sizeof descriptor) {
            if (descriptor >= 0) (void)close(descriptor);
            memcpy(&descriptor, CMSG_DATA(header) + offset, sizeof descriptor);
            count++;
        }
    }
    if (received == 1 && bytes[0] == 1 && count == 1 && !(message.msg_flags & (MSG_CTRUNC | MSG_TRUNC))) return descriptor;
    if (descriptor >= 0) (void)close(descriptor);
    errno = EBADMSG;
    return -1;
}

int keychain_file_is_on_mount_of_user(const char *path, bool *is) {
    struct statfs system;
    struct statvfs mount;
    if (statfs(path, &system) != 0 || statvfs(path, &mount) != 0) return errno;
    /* FUSE_SUPER_MAGIC: its content is what a process of its user says. Users' own mounts ignore setuid: mount(8), fusermount3(1). */
    *is = system.f_type == 0x65735546 || (mount.f_flag & ST_NOSUID) != 0;
    return 0;
}

#if defined(__x86_64__)
#define OWN_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef OWN_ARCHITECTURE

/* The calls that are always permitted. The C library, Swift, and threads need most of them. */
static const int permitted_calls[] = {
    SYS_read, SYS_pread64, SYS_readv, SYS_write, SYS_writev, SYS_close, SYS_fstat, SYS_newfstatat, SYS_statx, SYS_statfs, SYS_fstatfs,
    SYS_readlinkat, SYS_getdents64, SYS_lseek, SYS_faccessat, SYS_fcntl, SYS_dup, SYS_ppoll, SYS_accept4, SYS_recvfrom, SYS_recvmsg,
    SYS_sendto, SYS_sendmsg, SYS_getsockopt, SYS_shutdown, SYS_munmap, SYS_mremap, SYS_brk, SYS_madvise, SYS_futex, SYS_clock_gettime,
    SYS_clock_nanosleep, SYS_nanosleep, SYS_gettimeofday, SYS_getpid, SYS_gettid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid,
    SYS_tgkill, SYS_exit, SYS_exit_group, SYS_rt_sigreturn, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_sigaltstack, SYS_restart_syscall,
    SYS_getrandom, SYS_sched_yield, SYS_sched_getaffinity, SYS_set_robust_list,
#ifdef SYS_rseq
    SYS_rseq,
#endif
#ifdef SYS_faccessat2
    SYS_faccessat2,
#endif
#ifdef SYS_poll
    SYS_poll,
#endif
#ifdef SYS_stat
    SYS_stat, SYS_lstat, SYS_readlink, SYS_access,
#endif
#ifdef SYS_arch_prctl
    SYS_arch_prctl,
#endif
};

enum { permitted_count = sizeof permitted_calls / sizeof *permitted_calls };

/* The offset of the lower half of an argument: both architectures are little-endian. */
#define ARGUMENT(number) ((unsigned)offsetof(struct seccomp_data, args) + (number) * 8)
#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, (value))
#define REFUSED (SECCOMP_RET_ERRNO | EPERM)
/* If the call is this one, permits it if the argument has none of these bits, and refuses it otherwise. */
#define PERMIT_WITHOUT(call, number, bits)                                                                                                  \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 4), LOAD(ARGUMENT(number)), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), 1, 0),          \
        RETURN(SECCOMP_RET_ALLOW), RETURN(REFUSED)

int keychain_process_confine_to_inspection(void) {
    static const struct sock_filter beginning[] = {
        LOAD(offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCHITECTURE, 1, 0),
        RETURN(SECCOMP_RET_KILL_PROCESS),
        LOAD(offsetof(struct seccomp_data, nr)),
    };
    static const struct sock_filter end[] = {
        /* Files to read only. */
        PERMIT_WITHOUT(SYS_openat, 2, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY)),
        /* Memory without code. */
        PERMIT_WITHOUT(SYS_mmap, 2, PROT_EXEC),
        PERMIT_WITHOUT(SYS_mprotect, 2, PROT_EXEC),
        /* Threads, and no processes. */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4),
        LOAD(ARGUMENT(0)),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x00010000 /* CLONE_THREAD */, 0, 1),
        RETURN(SECCOMP_RET_ALLOW),
        RETURN(REFUSED),
        /* Its flags are in memory, which a filter cannot read; the C library falls back to clone. */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 435 /* clone3 */, 0, 1),
        RETURN(SECCOMP_RET_ERRNO | ENOSYS),
        RETURN(REFUSED),
    };
    enum { beginning_count = sizeof beginning / sizeof *beginning, end_count = sizeof end / sizeof *end };
    struct sock_filter filter[beginning_count + 2 * permitted_count + end_count];
    size_t count = 0;
    memcpy(filter, beginning, sizeof beginning);
    count += beginning_count;
    for (size_t index = 0; index < permitted_count; index++) {
        filter[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)permitted_calls[index], 0, 1);
        filter[count++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
    }
    memcpy(filter + count, end, sizeof end);
    count += end_count;
    struct sock_fprog program = {.len = (unsigned short)count, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return errno;
    return 0;
}

#else

int keychain_process_confine_to_inspection(void) { return ENOSYS; }

#endif
