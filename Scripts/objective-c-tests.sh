#!/usr/bin/env bash
# Builds the classes for Objective-C and runs what tests them, on throw-away keychains. Ends with 0 if everything is as it should be.
set -euo pipefail
cd "$(dirname "$0")/.."

package=Bindings/ObjectiveC
step() { printf '\n== %s\n' "$1"; }
fail() {
    echo "$1" >&2
    exit 1
}

# The library below is written with what older compilers do not have.
if [ "$(printf '6.3\n%s\n' "$(swift --version 2>/dev/null | sed -n 's/.*Swift version \([0-9.]*\).*/\1/p' | head -n 1)" | sort -V | head -n 1)" != 6.3 ]; then
    echo "The classes for Objective-C, and the interface for C below them, need Swift 6.3: they are not tested here."
    exit 0
fi

Scripts/install-dependencies.sh objective-c

step "Build the classes for Objective-C and their tests"
swift build --package-path "$package"
programs=$(swift build --package-path "$package" --show-bin-path)
# The compiler that comes with `swift`.
compiler=$(swiftc -print-target-info | sed -n 's|.*"runtimeResourcePath": *"\(.*\)/lib/swift".*|\1/bin/clang|p')
[ -x "$compiler" ] || fail "There is no clang beside swift."

workplace=$(mktemp -d)
# Where a flush costs nothing, for many rounds.
memory=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d)
# Passcodes end with the folder, but their keys would stay in the kernel's keyring.
leave() {
    for home in "$workplace"/*/; do
        [ ! -e "$home/keychain.db" ] || KEYCHAIN_HOME=$home "$programs/SwiftPeer" forget >/dev/null 2>&1 || true
    done
    rm -rf "$workplace" "$memory"
}
trap leave EXIT

step "Compile them as Apple platforms do, with and without automatic reference counting, and import them as a module"
# Over a stand-in for Apple's Foundation, so this shows what the compiler and not what Apple's headers say.
as_for_apple=(-target arm64-apple-macosx13 -fdefine-target-os-macros -ffreestanding -fblocks -fexceptions -fobjc-exceptions -Wall -Wextra -Werror
    -I "$package/AppleBranch" -I "$package/Sources/ValetObjectiveC/include" -I Sources/CValet/include)
for counting in -fobjc-arc -fno-objc-arc; do
    for source in "$package"/Sources/ValetObjectiveC/*.m; do
        "$compiler" "${as_for_apple[@]}" $counting -c "$source" -o "$workplace/object.o"
    done
done
printf 'module ValetObjectiveC { umbrella header "%s" export * }\n' \
    "$PWD/$package/Sources/ValetObjectiveC/include/ValetObjectiveC/ValetObjectiveC.h" >"$workplace/module.modulemap"
"$compiler" "${as_for_apple[@]}" -fobjc-arc -fmodules -fmodules-cache-path="$workplace/modules" \
    -fmodule-map-file="$workplace/module.modulemap" -c "$package/AppleBranch/Import.m" -o "$workplace/object.o"
if "$compiler" "${as_for_apple[@]}" -fobjc-arc -fmodules -fmodules-cache-path="$workplace/modules" -DPLANTED_FAULT \
    -fmodule-map-file="$workplace/module.modulemap" -c "$package/AppleBranch/Import.m" -o "$workplace/object.o" 2>/dev/null; then
    fail "What breaks the rules of automatic reference counting was compiled: this shows nothing."
fi
# Where nobody can be asked once for several reads, nothing may want the functions for it.
for source in "$package"/Sources/ValetObjectiveC/*.m; do
    "$compiler" "${as_for_apple[@]}" -target arm64-apple-tvos17 -fobjc-arc -c "$source" -o "$workplace/object.o"
    if "$(dirname "$compiler")/llvm-nm" -u "$workplace/object.o" | grep valet_single_prompt; then fail "tvOS and watchOS have no such functions."; fi
done
echo "Compiled."

step "Every Objective-C example in the documents is one that is run"
# Each block must be in the program, line for line, and each document except README.md must have one.
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

# Entitlements, a keychain, and somebody who answers: with the passcode, with a wrong one, or not.
cat >"$workplace/entitlements" <<'TEXT'
<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0"><dict>
    <key>application-identifier</key><string>AppID12345.Spaceball</string>
    <key>keychain-access-groups</key><array><string>AppID12345.Spaceball</string><string>AppID12345.Druidia</string></array>
    <key>com.apple.security.application-groups</key><array><string>group.Druidia</string></array>
</dict></plist>
TEXT
cat >"$workplace/pinentry" <<'TEXT'
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
chmod 600 "$workplace/entitlements"
chmod 700 "$workplace/pinentry"
printf agree >"$workplace/answer"
# Who cancels without a terminal or a display is nobody. Nothing is shown.
export DISPLAY=:0
export KEYCHAIN_ENTITLEMENTS=$workplace/entitlements KEYCHAIN_PINENTRY=$workplace/pinentry PERSON=$workplace

keychain() {
    export KEYCHAIN_HOME=$workplace/$1
    mkdir -p -m 700 "$KEYCHAIN_HOME"
}
set_passcode() { printf 12345-Druidia | "$programs/SwiftPeer" set-passcode; }

# What the keychain logs on the way is expected, and shown if something else is not.
run() {
    if "$programs/$1" "${@:2}" 2>"$workplace/log"; then return; fi
    cat "$workplace/log" >&2
    fail "$* failed."
}

step "What each method does"
keychain plain
run SwiftPeer foreign
run ValetObjectiveCTests making values text errors migrations blocks foreign-items without-passcode threads
[ "$("$programs/ValetObjectiveCTests" no-such-case; echo $?)" = 2 ] || fail "A case that does not exist is not noticed."

step "The same keychain from Swift and from Objective-C: Valet's examples"
keychain shared
set_passcode
# Storing these needs it unlocked for several programs.
"$programs/SwiftPeer" write || fail "Unlocked keys cannot be kept for other programs here: is the kernel's keyring refused?"
run ReadmeExamples read
run ReadmeExamples write
run SwiftPeer read
run ReadmeExamples read
# Items of the one are not found in a keychain of the other.
keychain empty
if "$programs/ReadmeExamples" read >/dev/null 2>&1; then fail "Reading from an empty keychain succeeds: this shows nothing."; fi
echo "Each reads what the other wrote."

step "A person is asked"
keychain shared
run ValetObjectiveCTests enclaves single-prompts
run SwiftPeer lock
run ValetObjectiveCTests locked

step "Nothing is left behind by 10,000 rounds"
export KEYCHAIN_HOME=$memory
run ValetObjectiveCTests growth "${ROUNDS:-10000}"
if "$programs/ValetObjectiveCTests" growth 1000 leaking >/dev/null 2>&1; then fail "A planted leak is not found: this shows nothing."; fi
echo "  A planted leak is found."
if [ "$(uname -s)" = Linux ]; then
    # Without what is there for debuggers, which Valgrind may not understand.
    mkdir "$workplace/stripped"
    for file in ValetObjectiveCTests libValetC.so; do strip --strip-debug "$programs/$file" -o "$workplace/stripped/$file"; done
    under_valgrind() {
        valgrind --quiet --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite --show-leak-kinds=definite \
            --suppressions="$package/Tests/valgrind.suppressions" "$workplace/stripped/ValetObjectiveCTests" "$@"
    }
    under_valgrind growth 50 >"$workplace/log" 2>&1 || { cat "$workplace/log" >&2; fail "Valgrind found something."; }
    status=0
    under_valgrind growth 1 leaking >/dev/null 2>&1 || status=$?
    [ $status = 9 ] || fail "Valgrind does not find a planted leak: this shows nothing."
    echo "  Valgrind finds nothing but a planted leak."
fi

printf '\nAll tests of the classes for Objective-C passed.\n'
