#!/usr/bin/env bash
# Creates the root file system of the image: root-filesystem.sh PROGRAM FOLDER
set -euo pipefail
program=$1
root=$2
mkdir -p "$root/var/lib" "$root/run/credentials" "$root/proc"
mkdir -m 700 "$root/var/lib/spaceball"
install -m 755 "$program" "$root/spaceball"

# The shared libraries of the program and of these libraries, and the loader, each at the path where it is searched.
libraries=$(ldd "$program")
if grep 'not found' <<<"$libraries"; then
    echo "$program needs the libraries above, which are not installed." >&2
    exit 1
fi
grep -oE '/[^ ]+' <<<"$libraries" | while IFS= read -r library; do
    install -D -m 755 "$library" "$root$library"
done
