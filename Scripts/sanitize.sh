#!/usr/bin/env bash
# Runs the tests under Thread Sanitizer and Address Sanitizer. `Scripts/sanitize.sh help` describes the commands.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    cat <<'TEXT'
Scripts/sanitize.sh all                   run all tests under Thread Sanitizer, then under Address Sanitizer
Scripts/sanitize.sh thread [PATTERN]      run the tests whose names match PATTERN under one sanitizer
Scripts/sanitize.sh address [PATTERN]

A run fails if a test fails, or if any process writes a report; reports stay in .build/sanitizer-reports. Before the tests, faults are
planted in the test process and in a child process, and each must be reported.
Scripts/sanitizers/*.skip lists tests that cannot run under a sanitizer, and *.supp lists false reports, each with the reason.
TEXT
}

reports=$PWD/.build/sanitizer-reports

# Prints the entries of a list without its comments.
entries() {
    sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' "$1"
}

# Builds the tests with a sanitizer. The name of the object that is linked into every program contains the digest of its source, so that a
# change links all programs again.
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

# Finds the reports; each process with a report writes a file.
reported() {
    find "$reports" -type f -name "$sanitizer.*" "$@"
}

forget_reports() {
    reported -delete
}

run_tests() {
    swift test --skip-build "${options[@]}" "$@"
}

# FAULT PROCESS: plants the fault in that process.
plant() {
    forget_reports
    PLANTED_FAULT=$1 PLANTED_FAULT_IN=$2 run_tests --filter PlantedFaultTests >"$scratch/planted-fault.log" 2>&1
}

# FAULT WORDS NAME: checks that the report of the fault contains WORDS and the function NAME, in either process.
prove() {
    local process
    for process in tests child; do
        plant "$1" $process || true
        if ! grep -rqE --include="$sanitizer.*" "$2" "$reports" || ! grep -rq --include="$sanitizer.*" "$3" "$reports"; then
            tail -n 40 "$scratch/planted-fault.log"
            echo "A planted fault ($1) was not reported in the process of the $process, so a clean run would prove nothing." >&2
            echo "The complete log: $scratch/planted-fault.log" >&2
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
            echo "Data protected by a lock was reported: the sanitizer does not see the lock. See Scripts/sanitizers/$sanitizer.c." >&2
            exit 1
        fi
    done
    echo "Data protected by a lock is not reported."
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
        echo "No test ran: no name matches the pattern, or the test process crashed. The complete log: $scratch/tests.log" >&2
        code=1
    fi
    if [ -n "$(reported)" ]; then
        reported -exec cat {} +
        reported -printf 'Reported: %p\n'
        code=1
    fi
    [ $code -eq 0 ] && echo "No report by $1 sanitizer."
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
    thread | address) sanitize "$command" "${2:-}" ;;
    help) usage ;;
    *) usage >&2; exit 2 ;;
esac
