#!/usr/bin/env bash
# Runs the tests under Thread Sanitizer and Address Sanitizer. `Scripts/sanitize.sh help` tells the rest.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    cat <<'TEXT'
Scripts/sanitize.sh all                   run all tests under Thread Sanitizer, then under Address Sanitizer
Scripts/sanitize.sh thread [PATTERN]      under the one alone; of the tests, only those whose names match
Scripts/sanitize.sh address [PATTERN]
Scripts/sanitize.sh smoke                 Thread Sanitizer, with the tests that it is most likely to find something in

A run fails when a test fails, or when any process that ran has written a report; the reports stay in .build/sanitizer-reports. Faults are
planted first, in the tests' own process and in a child, and each must be reported.
What a sanitizer cannot bear is left out by name, in Scripts/sanitizers/*.skip, and what it is wrong about in *.supp, each with the reason.
TEXT
}

reports=$PWD/.build/sanitizer-reports

# The lines of a list, without what is said about them.
entries() {
    sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' "$1"
}

# Tells swift what to build and where. What is linked in bears the digest of its source in its name: a change links all programs anew.
prepare() {
    sanitizer=$1
    local source=Scripts/sanitizers/$sanitizer.c toolchain digest object
    toolchain=$(dirname "$(readlink -f "$(command -v swift)")")
    digest=$(cat "$source" - <<<"$reports $toolchain" | sha256sum | cut -c 1-16)
    scratch=.build/with-$sanitizer-sanitizer
    object=$PWD/$scratch/sanitizer-$digest.o
    mkdir -p "$scratch" "$reports"
    "$toolchain/clang" -c -O1 -Wall -Wextra -Werror -o "$object" "$source" \
        -DSANITIZER_REPORTS="\"$reports\"" -DSANITIZER_SYMBOLIZER="\"$toolchain/llvm-symbolizer\"" \
        -DSANITIZER_SUPPRESSIONS="\"$PWD/Scripts/sanitizers/$sanitizer.supp\""
    options=(--sanitize "$sanitizer" --scratch-path "$scratch" -Xlinker "$object")
    local ignored=Scripts/sanitizers/$sanitizer.ignore
    [ ! -f "$ignored" ] || options+=(-Xcc "-fsanitize-ignorelist=$PWD/$ignored")
    echo "== Building with $sanitizer sanitizer"
    swift build --build-tests "${options[@]}"
}

# Each process that has something to report writes a file.
reported() {
    find "$reports" -type f -name "$sanitizer.*" "$@"
}

forget_reports() {
    reported -delete
}

run_tests() {
    swift test --skip-build "${options[@]}" "$@"
}

# FAULT PROCESS: commits the fault there, and nowhere else.
plant() {
    forget_reports
    PLANTED_FAULT=$1 PLANTED_FAULT_IN=$2 run_tests --filter PlantedFaultTests >"$scratch/planted-fault.log" 2>&1
}

# FAULT WORDS NAME: the report says WORDS and names the function, whichever process commits the fault.
prove() {
    local process
    for process in tests child; do
        plant "$1" $process || true
        if ! grep -rqE --include="$sanitizer.*" "$2" "$reports" || ! grep -rq --include="$sanitizer.*" "$3" "$reports"; then
            tail -n 40 "$scratch/planted-fault.log"
            echo "A planted fault ($1) was not reported in the process of the $process: this proves nothing."
            exit 1
        fi
        echo "A planted fault ($1) is reported in the process of the $process."
    done
}

prove_thread() {
    prove race 'Swift access race|data race' plantedRace
    prove race-in-c 'data race' count_in_c
}

prove_address() {
    prove overflow 'heap-buffer-overflow' plantOverflow
    prove use-after-free-in-c 'heap-use-after-free' keychain_test_plant_use_after_free
    prove leak 'detected memory leaks' 'in leak'
}

prove_silence() {
    local process
    for process in tests child; do
        if ! plant guarded $process || [ -n "$(reported)" ]; then
            tail -n 40 "$scratch/planted-fault.log"
            reported -exec cat {} +
            echo "What a lock guards was reported: the sanitizer does not see the lock."
            exit 1
        fi
    done
    echo "What a lock guards is not reported."
}

# SANITIZER [PATTERN]
sanitize() {
    local skipped=() entry
    prepare "$1"
    "prove_$1"
    prove_silence
    while read -r entry; do skipped+=(--skip "$entry"); done < <(entries "Scripts/sanitizers/$1.skip")
    forget_reports
    echo "== Testing with $1 sanitizer"
    local code=0
    run_tests "${skipped[@]}" ${2:+--filter "$2"} 2>&1 | tee "$scratch/tests.log" || code=$?
    if ! grep -qE 'Test run with [1-9][0-9]* test' "$scratch/tests.log"; then
        echo "No test ran."
        code=1
    fi
    if [ -n "$(reported)" ]; then
        reported -exec cat {} +
        reported -printf 'Reported: %p\n'
        code=1
    fi
    [ $code -eq 0 ] && echo "Nothing was reported by $1 sanitizer."
    return $code
}

command=${1:-help}
case $command in
    all)
        failed=0
        Scripts/sanitize.sh thread || failed=1
        Scripts/sanitize.sh address || failed=1
        exit $failed
        ;;
    smoke)
        sanitize thread "$(entries Scripts/sanitizers/thread.smoke | paste -sd '|')"
        ;;
    thread | address) sanitize "$command" "${2:-}" ;;
    *) usage ;;
esac
