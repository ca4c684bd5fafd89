#!/usr/bin/env bash
# Builds the tests, runs them, and prints a short report. `Scripts/test.sh help` describes the options.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    cat <<'TEXT'
Scripts/test.sh [BUILD OPTIONS] [-- TEST OPTIONS]

Build options go to `swift build` and `swift test`, test options to `swift test` alone:
    Scripts/test.sh                                                      all tests
    Scripts/test.sh -- --filter KeychainStoreTests                       some tests
    Scripts/test.sh --enable-all-traits --scratch-path .build/with-traits  all tests, in a build with the package traits
    KEYCHAIN_TEST_SCALE=full Scripts/test.sh                             all tests at full scale

The scratch path (.build/tests) receives build.log, test.log with the complete output of the tests, and test-report.txt with the report.
The exit code is that of `swift test`.
TEXT
}

. Scripts/build-options.sh
while [ $# -gt 0 ]; do
    case $1 in
        help | --help) usage; exit ;;
        --) shift; break ;;
        --scratch-path) build_options[1]=${2:?}; shift 2 ;;
        *) build_options+=("$1"); shift ;;
    esac
done

scratch=${build_options[1]}
mkdir -p "$scratch"

minutes() { printf '%d min %02d s' $(($1 / 60)) $(($1 % 60)); }

build() {
    local log=$scratch/build.log start=$SECONDS
    if [ -d "$scratch/release" ]; then
        echo "Building; without changes this takes a few seconds."
    else
        echo "Building; the first time this takes about 4 minutes."
    fi
    if ! swift build --build-tests "${build_options[@]}" >"$log" 2>&1; then
        # Everything but the progress; the compiler repeats an error for each file of a module.
        grep -vE '^\[[0-9]+/[0-9]+\]' "$log" | awk '!seen[$0]++' | head -n 100
        echo "The build failed. Complete output: $log" >&2
        return 1
    fi
    echo "Built in $(minutes $((SECONDS - start)))."
}

run_tests() {
    local log=$scratch/test.log events=$scratch/test-events code=0 report_code=0 reporter
    if ! command -v python3 >/dev/null 2>&1 || ! grep -q event-stream-output-path <<<"$(swift test --help-hidden 2>/dev/null)"; then
        echo "Testing; without python3 and the event stream of \`swift test\` there is only its own output."
        swift test --skip-build "${build_options[@]}" "$@" 2>&1 | tee "$log" "$scratch/test-report.txt"
        return
    fi
    echo "Testing; the complete output goes to $log."
    rm -f "$events"
    mkfifo "$events"
    # Both ends are open before the reporter and the tests start, so neither waits for the other, even if the tests end at once. The
    # reporter sees the end of the events when the tests have ended and this script has closed its writing end.
    exec 3<>"$events" 4<"$events"
    { Scripts/test-report.py <&4 | tee "$scratch/test-report.txt"; } 3>&- &
    reporter=$!
    exec 4<&-
    swift test --skip-build "${build_options[@]}" --event-stream-version 0 --event-stream-output-path "$events" "$@" >"$log" 2>&1 3>&- || code=$?
    exec 3>&-
    wait "$reporter" || report_code=$?
    rm -f "$events"
    # A run that crashed has no closing line; the reason is at the end of its output.
    grep -qE '^. Test run with' "$scratch/test-report.txt" || tail -n 30 "$log"
    [ $code -ne 0 ] || code=$report_code
    return $code
}

build
run_tests "$@"
