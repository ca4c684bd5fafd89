# SPDX-License-Identifier: Apache-2.0
"""keyring_peer.py READS WRITES

Measures python-keyring on the items that libsecret_peer has made. The secret is read from standard input. Writes lines of an
operation and nanoseconds, and at last the peak memory of this process in KiB.
"""

import sys
import time

import keyring

SERVICE = "benchmark"


def measure(operation, run):
    start = time.monotonic_ns()
    result = run()
    print(operation, time.monotonic_ns() - start)
    return result


def main():
    reads, writes = int(sys.argv[1]), int(sys.argv[2])
    secret = sys.stdin.readline().rstrip("\n")
    for index in range(reads // 5):
        keyring.get_password(SERVICE, f"account-{index}")
    for index in range(reads):
        if measure("get", lambda: keyring.get_password(SERVICE, f"account-{index * 31 % 1000}")) != secret:
            sys.exit("get_password: not the secret")
    for index in range(writes):
        # Its items have an attribute more than libsecret's, so that only its own are overwritten.
        name = f"python-{index}"
        measure("setNew", lambda: keyring.set_password(SERVICE, name, secret))
        measure("overwrite", lambda: keyring.set_password(SERVICE, name, secret))
        measure("remove", lambda: keyring.delete_password(SERVICE, name))
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                print("memory", line.split()[1])


main()
