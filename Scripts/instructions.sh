#!/usr/bin/env bash
# Counts the instructions of Valet's calls in the release build of a package that uses Valet, with callgrind: user space only, 1,000 items.
# The same on every machine with the same processor features, so that two revisions can be compared.
set -euo pipefail
cd "$(dirname "$0")/.."

package=Benchmarks/Consumer
scratch=${INSTRUCTIONS_SCRATCH:-$package/.build}
mkdir -p "$scratch"
log=$scratch/build.log
swift build --package-path "$package" --scratch-path "$scratch" -c release >"$log" 2>&1 || { tail -n 50 "$log" >&2; exit 1; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Valgrind does not read the debug information of this compiler.
strip -g -o "$folder/consumer" "$scratch/release/Consumer"
KEYCHAIN_HOME=$folder/filled "$folder/consumer" fill 1

# count OPERATION TIMES: the instructions of a process that repeats the operation.
count() {
    rm -rf "$folder/used"
    # A copy of an anchor does not count, so the first opening reads all rows, in both runs alike.
    cp -a "$folder/filled" "$folder/used"
    KEYCHAIN_HOME=$folder/used valgrind --tool=callgrind --callgrind-out-file=/dev/null "$folder/consumer" "$1" "$2" 2>&1 |
        sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}

printf '%-28s %12s\n' "Instructions per call" "1,000 items"
for line in "get:get" "contains, present:contains" "contains, absent:absent" "set, overwrite:set" "set, new key:new"; do
    operation=${line#*:}
    printf '%-28s %12d\n' "${line%:*}" $((($(count "$operation" 120) - $(count "$operation" 20)) / 100))
done
printf '%-28s %12d\n' "allKeys, per key" $((($(count list 4) - $(count list 2)) / 2 / 1000))
