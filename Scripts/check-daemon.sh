#!/usr/bin/env bash
# Runs an installed keychaind with a socket that systemd has made, in a mount namespace, and hands a keychain over to it and back. Then a program with a
# group of its own, and one that is known by its file, keep a secret from the other programs of their user, and the user logs in.
#
#   unshare --mount Scripts/check-daemon.sh INSTALLED FOLDER PREFIX PROFILE
#
# INSTALLED is PREFIX with its staging directory, FOLDER does not exist yet, and PROFILE is that for pam-auth-update. Needs root.
# `grep -q` ends before its input, whose writer would fail then.
set -euo pipefail

fail() { echo "$1" >&2; exit 1; }

installed=$1 folder=$2 prefix=$3 profile=$4
mount --make-rprivate /
mount -t tmpfs -o mode=755 none /run
mkdir -m 755 /run/keychain
mkdir -m 700 "$folder" "$folder/home" "$folder/kept"
export KEYCHAIN_HOME=$folder/home
valet=$installed/bin/valet

start() {
    systemd-socket-activate --seqpacket --listen=/run/keychain/keychaind.sock \
        "$installed/libexec/keychaind" --socket=/nowhere/socket --directory="$folder/kept" 2>>"$folder/log" &
    service=$!
    for _ in $(seq 100); do [ ! -S /run/keychain/keychaind.sock ] || break; sleep 0.1; done
}
stop() {
    kill $service
    wait $service 2>/dev/null || true
    rm -f /run/keychain/keychaind.sock
}
trap 'kill $service 2>/dev/null || true' EXIT

start
echo 12345 | "$valet" set luggage
"$valet" daemon adopt >/dev/null || fail "The keychain was not handed over: $(cat "$folder/log")"
[ "$("$valet" get luggage)" = 12345 ] || fail "keychaind does not have the secret."
head -n 1 "$folder/home/keychain.db" | grep '^keychaind signpost' >/dev/null || fail "There is no signpost."
stop
! "$valet" get luggage >/dev/null 2>&1 || fail "Without keychaind the secret was read."
start
echo 54321 | "$valet" set luggage
"$valet" daemon release >/dev/null || fail "The keychain was not given back: $(cat "$folder/log")"
stop
[ "$("$valet" get luggage)" = 54321 ] || fail "The keychain that was given back lacks a change."

# A user, and a program of hers with a group of its own.
here=/run/check
mkdir -m 755 $here
mkdir -m 700 $here/home $here/kept
cp /etc/passwd /etc/group $here
echo "check-user:x:61501:61501::$here/home:/bin/sh" >>$here/passwd
printf 'check-user:x:61501:\ncheck-program:x:961:\n' >>$here/group
mount --bind $here/passwd /etc/passwd
mount --bind $here/group /etc/group
chown 61501:61501 $here/home
install -d -m 755 $here/entitlements
echo '<plist><dict/></plist>' >$here/entitlements/check-program.entitlements
install -m 755 "$valet" $here/valet
install -m 2755 -g check-program "$valet" $here/program
install -m 755 "$installed/libexec/keychain-agent" $here/keychain-agent
as_user() { env -u KEYCHAIN_HOME HOME=$here/home setpriv --reuid 61501 --regid 61501 --clear-groups "$@"; }

# keychain-peer limits itself in the same way when it is started by systemd.
install -d -m 710 -o 61502 $here/peer
setpriv --reuid 61502 --regid 61502 --clear-groups --inh-caps -all,+sys_ptrace --ambient-caps -all,+sys_ptrace --bounding-set -all,+sys_ptrace \
    "$installed/libexec/keychain-peer" --socket $here/peer/socket 2>>"$folder/log" &
inspector=$!
trap 'kill $service $inspector 2>/dev/null || true' EXIT
for _ in $(seq 100); do [ ! -S $here/peer/socket ] || break; sleep 0.1; done
"$installed/libexec/keychaind" --directory=$here/kept --entitlements=$here/entitlements --peer-socket=$here/peer/socket \
    --agent=$here/keychain-agent 2>>"$folder/log" &
service=$!
for _ in $(seq 100); do [ ! -S /run/keychain/keychaind.sock ] || break; sleep 0.1; done
chmod 666 /run/keychain/keychaind.sock
as_user $here/valet daemon adopt >/dev/null || fail "The keychain of the user was not handed over: $(cat "$folder/log")"
echo 12345 | as_user $here/program set luggage
[ "$(as_user $here/program get luggage)" = 12345 ] || fail "The program does not have its secret."
! as_user $here/valet get --app program luggage >/dev/null 2>&1 || fail "Another program has read the secret."
# A program that is known by its file keeps a secret in the group of that file.
as_user $here/valet daemon status | grep 'known by its file,' >/dev/null || fail "The command is not known by its file: $(as_user $here/valet daemon status)"
install -m 755 "$valet" $here/other
own=program:$here/valet
echo 12345 | as_user $here/valet set --app $own shoes
[ "$(as_user $here/valet get --app $own shoes)" = 12345 ] || fail "The program does not have the secret of its file."
! as_user $here/other get --app $own shoes >/dev/null 2>&1 || fail "Another program has read the secret of a file."
# A person lets other programs read that, with the passcode.
echo swordfish >$here/passcode
as_user $here/program passcode set --passcode-fd 3 3<$here/passcode >/dev/null
cat >$here/pinentry <<'END'
#!/bin/sh
echo OK
while read -r command rest; do
    [ "$command" != GETPIN ] || echo "D swordfish"
    echo OK
done
END
chmod 755 $here/pinentry
asked() { as_user env KEYCHAIN_PINENTRY=$here/pinentry DISPLAY=:0 GPG_TTY= "$@" </dev/null; }
[ "$(asked $here/other get --app group:check-program luggage)" = 12345 ] || fail "With the passcode, a person does not see the secret of a program."
! as_user $here/other get --app group:check-program luggage </dev/null >/dev/null 2>&1 || fail "Without the passcode, a program has read the secret of another."
asked $here/other access grant $here/other group:check-program >/dev/null || fail "Access was not granted."
as_user $here/other access list | grep "^program:$here/other reads group:check-program, since" >/dev/null || fail "A grant is not listed."
[ "$(as_user $here/other get --app other luggage)" = 12345 ] || fail "The program does not have the secret that it was granted."
! as_user $here/valet get --app other luggage >/dev/null 2>&1 || fail "A program without a grant has read the secret."
as_user $here/valet access revoke $here/other group:check-program
! as_user $here/other get --app other luggage >/dev/null 2>&1 || fail "A program has read the secret after its grant was revoked."
kill $inspector
wait $inspector 2>/dev/null || true
! as_user $here/valet get --app $own shoes </dev/null >/dev/null 2>&1 || fail "Without keychain-peer the program has the secret of its file."
[ "$(as_user $here/program get luggage)" = 12345 ] || fail "Without keychain-peer the program with a group does not have its secret."
# Another program of the user lays a trap: a keychain of its own in the place of the signpost.
signpost=$(find $here/home -name keychain.db)
as_user mv "$signpost" "$signpost.away"
echo 54321 | as_user $here/program set luggage
[ "$(as_user $here/program get luggage)" = 54321 ] || fail "The program does not use keychaind without the signpost."
[ ! -e "$signpost" ] || fail "The program has made a keychain of its own."
as_user mv "$signpost.away" "$signpost"

# The user logs in with `su`, as Debian configures it.
if command -v pam-auth-update >/dev/null 2>&1 && command -v su >/dev/null 2>&1; then
    cp -r /etc/pam.d /usr/share/pam-configs /var/lib/pam $here
    sed "s|$prefix/|$installed/|" "$profile" >$here/pam-configs/keychain
    mount --bind $here/pam.d /etc/pam.d
    mount --bind $here/pam-configs /usr/share/pam-configs
    mount --bind $here/pam /var/lib/pam
    pam-auth-update --enable keychain
    for type in auth session password; do
        grep -q pam_keychain "/etc/pam.d/common-$type" || fail "pam-auth-update does not add the module to common-$type: see Scripts/pam-config.in."
    done
    ! grep -q pam_keychain /etc/pam.d/common-session-noninteractive || fail "The module is in sessions without a person."
    cp /etc/shadow $here
    # The hash of "swordfish".
    echo 'check-user:$6$keychain$vWuWwnCxc5mQUYmY6iPLUbFQXdAqaxrvEgELQbI0rdgMNRhT8DAdF7UqVDrhwe1FHGjuDyrhO0ocYBzl9fhEN.:20000:0:99999:7:::' >>$here/shadow
    mount --bind $here/shadow /etc/shadow
    as_user $here/valet lock --all >/dev/null
    ! as_user $here/valet status | grep 'unlocked;' >/dev/null || fail "The keychain is unlocked after a lock."
    # As another user: root needs no password.
    log_in() { setpriv --reuid 65534 --regid 65534 --clear-groups su check-user -c true <$here/passcode >/dev/null 2>&1; }
    log_in || fail "The user cannot log in with the module."
    as_user $here/valet status | grep 'unlocked;' >/dev/null || fail "The login has not unlocked the keychain: $(as_user $here/valet status)"
    as_user $here/valet lock --all >/dev/null
    kill -STOP $service
    log_in || fail "The user cannot log in while keychaind does not reply."
    kill -CONT $service
    pam-auth-update --package --remove keychain
    ! grep -rq pam_keychain /etc/pam.d || fail "pam-auth-update does not remove the module."
    log_in || fail "The user cannot log in without the module."
else
    echo "pam-auth-update is not installed, so no login was checked."
fi
kill $service
! as_user $here/program get luggage >/dev/null 2>&1 || fail "Without keychaind the program has read a secret."
