/* SPDX-License-Identifier: Apache-2.0 */
/* PeakMemory FILE PROGRAM [ARGUMENT ...]
   Runs a program and writes the most memory that it, or a process of its own, had in use to FILE, in KiB.

   A process starts its life with the peak of the one that made it, so that one must be small: this is. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments) {
    if (count < 3) return 2;
    pid_t child = fork();
    if (child < 0) return 126;
    if (child == 0) {
        execvp(arguments[2], arguments + 2);
        _exit(127);
    }
    int status;
    struct rusage usage;
    /* The parent of this process has the deadline, and kills both. */
    if (wait4(child, &status, 0, &usage) != child) return 126;
    FILE *file = fopen(arguments[1], "we");
    if (file == NULL) return 126;
    fprintf(file, "%ld\n", usage.ru_maxrss);
    if (fclose(file) != 0) return 126;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
