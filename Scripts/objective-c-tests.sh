#!/usr/bin/env bash
# Builds the Objective-C classes and runs their tests on temporary keychains. Exits with 0 if all tests pass.
set -euo pipefail
cd "$(dirname "$0")/.."

package=Bindings/ObjectiveC
step() { printf '\n== %s\n' "$1"; }
fail() {
    echo "$1" >&2
    exit 1
}

# The C interface needs features of Swift 6.3.
if [ "$(printf '6.3\n%s\n' "$(swift --version 2>/dev/null | sed -n 's/.*Swift version \([0-9.]*\).*/\1/p' | head -n 1)" | sort -V | head -n 1)" != 6.3 ]; then
    echo "The Objective-C classes and the C interface need Swift 6.3; they are not tested."
    exit 0
fi

Scripts/install-dependencies.sh objective-c

step "Build the Objective-C classes and their tests"
swift build --package-path "$package"
programs=$(swift build --package-path "$package" --show-bin-path)
# The clang of the Swift toolchain.
compiler=$(swiftc -print-target-info | sed -n 's|.*"runtimeResourcePath": *"\(.*\)/lib/swift".*|\1/bin/clang|p')
[ -x "$compiler" ] || fail "The Swift toolchain contains no clang. Install a complete toolchain: https://www.swift.org/install/linux"

temporary=$(mktemp -d)
# A file system in memory, where a flush is fast.
memory=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d)
# Unlocked keys would otherwise stay in the kernel's keyring.
leave() {
    for home in "$temporary"/*/; do
        [ ! -e "$home/keychain.db" ] || KEYCHAIN_HOME=$home "$programs/SwiftPeer" forget >/dev/null 2>&1 || true
    done
    rm -rf "$temporary" "$memory"
}
trap leave EXIT

step "Compile them for Apple platforms, with and without automatic reference counting, and import them as a module"
# A stub replaces Apple's Foundation, so this checks the code against the compiler, not against Apple's headers.
as_for_apple=(-target arm64-apple-macosx13 -fdefine-target-os-macros -ffreestanding -fblocks -fexceptions -fobjc-exceptions -Wall -Wextra -Werror
    -I "$package/AppleBranch" -I "$package/Sources/ValetObjectiveC/include" -I Sources/CValet/include)
for counting in -fobjc-arc -fno-objc-arc; do
    for source in "$package"/Sources/ValetObjectiveC/*.m; do
        "$compiler" "${as_for_apple[@]}" $counting -c "$source" -o "$temporary/object.o"
    done
done
printf 'module ValetObjectiveC { umbrella header "%s" export * }\n' \
    "$PWD/$package/Sources/ValetObjectiveC/include/ValetObjectiveC/ValetObjectiveC.h" >"$temporary/module.modulemap"
"$compiler" "${as_for_apple[@]}" -fobjc-arc -fmodules -fmodules-cache-path="$temporary/modules" \
    -fmodule-map-file="$temporary/module.modulemap" -c "$package/AppleBranch/Import.m" -o "$temporary/object.o"
if "$compiler" "${as_for_apple[@]}" -fobjc-arc -fmodules -fmodules-cache-path="$temporary/modules" -DPLANTED_FAULT \
    -fmodule-map-file="$temporary/module.modulemap" -c "$package/AppleBranch/Import.m" -o "$temporary/object.o" 2>/dev/null; then
    fail "Code that violates the rules of automatic reference counting was compiled: this check does not work."
fi
# tvOS and watchOS have no single prompts, so nothing may reference their functions.
for source in "$package"/Sources/ValetObjectiveC/*.m; do
    "$compiler" "${as_for_apple[@]}" -target arm64-apple-tvos17 -fobjc-arc -c "$source" -o "$temporary/object.o"
    if "$(dirname "$compiler")/llvm-nm" -u "$temporary/object.o" | grep valet_single_prompt; then fail "The code for tvOS and watchOS references functions for single prompts."; fi
done
echo "Compiled."

step "Every Objective-C example in the documents is run"
# Each example must be in the program, line for line, and each document except README.md must have one.
awk -v program="$package/Tests/ReadmeExamples/main.m" '
    function trimmed(line) { sub(/^[ \t]+/, "", line); sub(/[ \t]+$/, "", line); return line }
    BEGIN { text = "\n"; while ((getline line < program) > 0) if (trimmed(line) != "") text = text trimmed(line) "\n" }
    FNR == 1 { inside = 0; count[FILENAME] += 0 }
    /^```objc$/ { inside = 1; block = "\n"; next }
    /^```$/ && inside {
        inside = 0; count[FILENAME]++; total++
        if (index(text, block) == 0) { print FILENAME " shows an example that is not run:" block; failed = 1 }
        next
    }
    inside && trimmed($0) != "" && $0 !~ /^[#@]import/ { block = block trimmed($0) "\n" }
    END {
        for (document in count) if (count[document] == 0 && document != "README.md") { print document " has no example"; failed = 1 }
        print total + 0 " examples"
        exit failed || total == 0
    }
' README.md Sources/Valet/Valet.docc/Objective-C.md Sources/Valet/Valet.docc/Secure-Enclave-Valets.md "$package/README.md"

# Entitlements, and a pinentry program that enters the passcode, enters a wrong one, or cancels.
cat >"$temporary/entitlements" <<'TEXT'
<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0"><dict>
    <key>application-identifier</key><string>AppID12345.Spaceball</string>
    <key>keychain-access-groups</key><array><string>AppID12345.Spaceball</string><string>AppID12345.Druidia</string></array>
    <key>com.apple.security.application-groups</key><array><string>group.Druidia</string></array>
</dict></plist>
TEXT
cat >"$temporary/pinentry" <<'TEXT'
#!/bin/sh
cd "${0%/*}" || exit 1
echo OK
while read -r command rest; do
    printf '%s %s\n' "$command" "$rest" >>questions
    case $command:$(cat answer) in
        GETPIN:agree) echo 'D 12345-Druidia'; echo OK ;;
        GETPIN:wrong) echo 'D 54321-Druidia'; echo OK ;;
        GETPIN:*) echo 'ERR 83886179 cancelled' ;;
        BYE:*) echo OK; exit ;;
        *) echo OK ;;
    esac
done
TEXT
chmod 600 "$temporary/entitlements"
chmod 700 "$temporary/pinentry"
printf agree >"$temporary/answer"
# Without a terminal or a display no prompt can be shown, and canceling is not possible. The pinentry program shows nothing.
export DISPLAY=:0
export KEYCHAIN_ENTITLEMENTS=$temporary/entitlements KEYCHAIN_PINENTRY=$temporary/pinentry PERSON=$temporary

keychain() {
    export KEYCHAIN_HOME=$temporary/$1
    mkdir -p -m 700 "$KEYCHAIN_HOME"
}
set_passcode() { printf 12345-Druidia | "$programs/SwiftPeer" set-passcode; }

# The log is shown only if the program fails.
run() {
    if "$programs/$1" "${@:2}" 2>"$temporary/log"; then return; fi
    cat "$temporary/log" >&2
    fail "$* failed."
}

step "Each method"
keychain plain
run SwiftPeer foreign
run ValetObjectiveCTests making values text errors migrations blocks foreign-items without-passcode threads
[ "$("$programs/ValetObjectiveCTests" no-such-case; echo $?)" = 2 ] || fail "An unknown test case is not rejected."

step "A keychain shared by Swift and Objective-C, with Valet's examples"
keychain shared
set_passcode
# Several processes need the unlocked keychain.
"$programs/SwiftPeer" write || fail "Unlocked keys cannot be shared with other processes: is the kernel's keyring available?"
run ReadmeExamples read
run ReadmeExamples write
run SwiftPeer read
run ReadmeExamples read
# Items of one keychain are not found in another.
keychain empty
if "$programs/ReadmeExamples" read >/dev/null 2>&1; then fail "Reading from an empty keychain succeeds: this check does not work."; fi
echo "Each reads the items of the other."

step "Prompts"
keychain shared
run ValetObjectiveCTests enclaves single-prompts
run SwiftPeer lock
run ValetObjectiveCTests locked

step "10,000 rounds without a leak"
export KEYCHAIN_HOME=$memory
run ValetObjectiveCTests growth "${ROUNDS:-10000}"
if "$programs/ValetObjectiveCTests" growth 1000 leaking >/dev/null 2>&1; then fail "A planted leak is not found: this check does not work."; fi
echo "  A planted leak is found."
if [ "$(uname -s)" = Linux ]; then
    # Without debug information, which Valgrind may not support.
    mkdir "$temporary/stripped"
    for file in ValetObjectiveCTests libValetC.so; do strip --strip-debug "$programs/$file" -o "$temporary/stripped/$file"; done
    under_valgrind() {
        valgrind --quiet --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite --show-leak-kinds=definite \
            --suppressions="$package/Tests/valgrind.suppressions" "$temporary/stripped/ValetObjectiveCTests" "$@"
    }
    under_valgrind growth 50 >"$temporary/log" 2>&1 || { cat "$temporary/log" >&2; fail "Valgrind found an error."; }
    status=0
    under_valgrind growth 1 leaking >/dev/null 2>&1 || status=$?
    [ $status = 9 ] || fail "Valgrind does not find a planted leak: this check does not work."
    echo "  Valgrind finds only the planted leak."
fi

printf '\nAll tests of the Objective-C classes passed.\n'
