#!/usr/bin/env bash
# Runs the installed units with systemd as the first process of a container: socket activation, the users and the restrictions of the services, upgrades
# while programs use them, keychain-watch beside systemd-logind, and fingerprints with fprintd and a virtual reader.
#
#   Scripts/check-systemd.sh DESTDIR PREFIX FOLDER
#
# DESTDIR has the installation, PREFIX is that without DESTDIR, and FOLDER does not exist yet. Needs root, overlayfs, and the hierarchy of control
# groups of version 2. The container has the files of this system, with the installation in the place of PREFIX, and changes those of the
# installation alone.
set -euo pipefail

fail() { echo "$1" >&2; exit 1; }

# The part that systemd runs in the container.
check() {
    local prefix=$1 valet=$1/bin/valet user=check-user unit number
    as_user() { env -i HOME=/home/$user PATH=/usr/bin:/bin setpriv --reuid $user --regid $user --clear-groups "$@"; }
    field() { sed -n "s/^$1:[[:space:]]*//p" "/proc/$(systemctl show -p MainPID --value "$2")/status"; }
    is_active() { systemctl --quiet is-active "$1"; }

    systemd-sysusers "$prefix/lib/sysusers.d/keychaind.conf" 2>/dev/null
    systemd-tmpfiles --create "$prefix/lib/tmpfiles.d/keychaind.conf"
    useradd --uid 59901 --create-home $user
    systemctl --quiet start keychain-peer.socket keychain-fprint-digest.socket keychaind.socket
    ! is_active keychaind.service || fail "keychaind runs before a program needs it."

    echo 12345 | as_user "$valet" set luggage
    as_user "$valet" daemon adopt >/dev/null || fail "The keychain was not handed over."
    [ "$(as_user "$valet" get luggage)" = 12345 ] || fail "keychaind does not have the secret."
    for unit in keychaind keychain-peer; do
        is_active $unit.service || fail "$unit.service is $(systemctl is-active $unit.service)."
        [ "$(ps -o user:32= -p "$(systemctl show -p MainPID --value $unit.service)")" = $unit ] ||
            [ $unit = keychaind ] || fail "$unit does not run as its user."
        [ "$(field Seccomp $unit.service)" = 2 ] || fail "$unit has no filter of system calls."
        [ "$(field NoNewPrivs $unit.service)" = 1 ] || fail "$unit may get new privileges."
    done
    [ "$(field CapEff keychaind.service)$(field CapBnd keychaind.service)" = 00000000000000000000000000000000 ] || fail "keychaind has capabilities."
    [ "$(field CapEff keychain-peer.service)" = 0000000000080000 ] || fail "keychain-peer has other capabilities than its own."
    [ "$(stat -c %U:%a /var/lib/keychain)" = keychain:700 ] || fail "The directory of keychains is $(stat -c %U:%a /var/lib/keychain)."

    # Who a program is, with the restrictions of both services.
    [[ $(as_user "$valet" daemon status) == *'known by its file'* ]] || fail "The command is not known by its file: $(as_user "$valet" daemon status)"
    groupadd --system check-program
    install -g check-program -m 2755 "$valet" "$prefix/bin/check-program"
    echo '<plist><dict/></plist>' >/etc/keychain/entitlements.d/check-program.entitlements
    echo 54321 | as_user "$prefix/bin/check-program" set shoes
    [ "$(as_user "$prefix/bin/check-program" get shoes)" = 54321 ] || fail "The program with a group of its own does not have its secret."
    ! as_user "$valet" get --app check-program shoes 2>/dev/null || fail "Another program has read the secret."

    # A program that its user can change, in services of the system.
    install -o $user -m 755 "$valet" /home/$user/own
    in_service() { systemd-run --quiet --wait --pipe --unit="check-$1" -p User=$user /home/$user/own "${@:2}"; }
    local group=unit:check-deploy.service
    [[ $(in_service deploy daemon status) == *$group* ]] || fail "The service is not known: $(in_service deploy daemon status)"
    echo 13579 | in_service deploy set --app $group token
    [ "$(in_service deploy get --app $group token)" = 13579 ] || fail "The service does not have its secret."
    ! in_service other get --app $group token 2>/dev/null || fail "Another service has read the secret."
    ! as_user /home/$user/own get --app $group token 2>/dev/null </dev/null || fail "A program outside the service has read its secret."

    # An application in a sandbox, whose directory of data has a copy of the signpost.
    if command -v bwrap >/dev/null 2>&1; then
        local data=/home/$user/.var/app/org.example.App/data place
        printf '[Application]\nname=org.example.App\n' >/run/flatpak-info
        as_user mkdir -p $data/keychain
        as_user chmod 700 $data/keychain
        as_user cp /home/$user/.local/share/keychain/keychain.db $data/keychain
        local sandbox=(bwrap --unshare-user --proc /proc --dev-bind /dev /dev --ro-bind /run/flatpak-info /.flatpak-info)
        for place in /bin /etc /lib /lib64 /opt /usr "$prefix" /run/keychain; do sandbox+=(--ro-bind-try $place $place); done
        sandbox+=(--bind $data $data --setenv XDG_DATA_HOME $data)
        [[ $(as_user "${sandbox[@]}" "$valet" daemon status) == *flatpak:org.example.App* ]] ||
            fail "The application in a sandbox is not known: $(as_user "${sandbox[@]}" "$valet" daemon status)"
        echo 67890 | as_user "${sandbox[@]}" "$valet" set --app flatpak:org.example.App token
        [ "$(as_user "${sandbox[@]}" "$valet" get --app flatpak:org.example.App token)" = 67890 ] || fail "The application does not have its secret."
        ! as_user "${sandbox[@]}" "$valet" get luggage 2>/dev/null || fail "The application has read a secret of programs outside."
    fi

    # An upgrade stops the services while programs use them. What was acknowledged is there.
    (
        for number in $(seq 200); do
            ! echo "$number" | as_user "$valet" set "key$number" 2>/dev/null || echo "$number"
        done >/run/acknowledged
    ) &
    while kill -0 $! 2>/dev/null; do
        # More often than systemd permits.
        systemctl reset-failed
        systemctl restart keychain-peer.service keychaind.service || fail "The services do not restart."
    done
    [ -s /run/acknowledged ] || fail "Nothing was stored beside the restarts."
    while read -r number; do
        [ "$(as_user "$valet" get "key$number")" = "$number" ] || fail "What was acknowledged beside a restart is lost: key$number."
    done </run/acknowledged
    echo "$(wc -l </run/acknowledged) of 200 values were stored beside restarts."

    # keychaind alone gets the digest of prints, from a program that sees them with all its restrictions.
    local prints=/var/lib/fprint/$user/driver/device digest
    digest() {
        setpriv --reuid "$1" --regid "$1" --clear-groups python3 -c '
import socket
connection = socket.socket(socket.AF_UNIX)
connection.connect("/run/keychain-fprint-digest/keychain-fprint-digest.sock")
connection.sendall((59901).to_bytes(4, "little"))
print(connection.recv(64).hex())'
    }
    install -d -m 700 "$prints"
    echo first >"$prints/7"
    digest=$(digest keychain)
    [ ${#digest} -eq 64 ] || fail "keychain-fprint-digest has not answered: $(journalctl --no-pager -u 'keychain-fprint-digest@*')"
    [ "$(digest keychain)" = "$digest" ] || fail "The digest of the same prints differs."
    echo second >"$prints/7"
    [ "$(digest keychain)" != "$digest" ] || fail "The digest of other prints is the same."
    ! digest $user 2>/dev/null || fail "A user has got the digest of prints."

    # keychain-watch runs beside logind, and locks when it starts.
    if is_active dbus.socket && systemctl start systemd-logind.service; then
        echo swordfish >/run/passcode
        systemctl start keychain-watch.service
        as_user "$prefix/bin/check-program" passcode set --passcode-fd 3 3</run/passcode >/dev/null
        [[ $(as_user "$valet" status) == *'unlocked;'* ]] || fail "The keychain is locked after its passcode was set."
        systemctl restart keychain-watch.service
        [[ $(as_user "$valet" status) != *'unlocked;'* ]] || fail "The keychain is unlocked after keychain-watch has started."
        # Its first call has started logind.
        ! journalctl --no-pager -u keychain-watch.service | grep 'is lost' || fail "keychain-watch has ended although logind runs."
    else
        echo "systemd-logind does not run in the container, so keychain-watch was not checked."
    fi

    # A finger opens an item of a program, where fprintd has a reader of libfprint for tests.
    check_fingers() {
        local program=$prefix/bin/check-program line
        # While a program uses the reader, it takes touches at this socket.
        touch_reader() {
            python3 -c '
import socket, sys, time
for _ in range(int(sys.argv[2])):
    while True:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect("/var/lib/fprint/reader")
            break
        except OSError:
            time.sleep(0.05)
    connection.sendall(b"SCAN " + sys.argv[1].encode())
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)' "$@"
        }
        enroll() {
            touch_reader "$1" 5 &
            timeout 30 fprintd-enroll $user >/run/enrolled || fail "No finger was enrolled: $(cat /run/enrolled)"
            wait $!
        }
        # With a prompt that stays until it is ended.
        printf '#!/bin/sh\necho OK\nwhile read -r command rest; do [ "$command" != CONFIRM ] || exec sleep 30; echo OK; done\n' >/run/pinentry
        chmod 755 /run/pinentry
        read_with_finger() {
            exec 4< <(as_user env KEYCHAIN_PINENTRY=/run/pinentry DISPLAY=:0 "$prefix/libexec/keychain-agent" </dev/null)
            read -r line <&4
            touch_reader "$1" 1 &
            as_user "$program" get "${@:2}" </dev/null || fail "The finger does not open the item: $(journalctl --no-pager -u keychain-fingerprint -u fprintd)"
            wait $!
            exec 4<&-
        }
        rm -r /var/lib/fprint/$user
        mkdir -p /etc/systemd/system/fprintd.service.d
        printf '[Service]\nEnvironment=FP_VIRTUAL_DEVICE=/var/lib/fprint/reader FP_DRIVERS_WHITELIST=virtual_device\n' \
            >/etc/systemd/system/fprintd.service.d/check.conf
        systemctl daemon-reload
        systemctl stop fprintd.service
        enroll one
        # PAM makes a session of logind.
        systemd-run --quiet --unit=check-session -p PAMName=login -p User=$user --setenv=XDG_SEAT=seat0 \
            --setenv=XDG_VTNR="$(tr -d -c 0-9 </sys/class/tty/tty0/active 2>/dev/null)" --setenv=XDG_SESSION_TYPE=wayland --setenv=XDG_SESSION_CLASS=user sleep 300
        as_user "$program" unlock --passcode-fd 3 3</run/passcode >/dev/null
        for line in biometric-any biometric-current-set; do echo 24680 | as_user "$program" set $line --secure-enclave $line; done
        [ "$(read_with_finger one biometric-any --secure-enclave biometric-any)" = 24680 ]
        [ "$(read_with_finger one biometric-current-set --secure-enclave biometric-current-set)" = 24680 ]
        # The same finger, enrolled again.
        enroll one
        ! as_user "$program" get biometric-current-set --secure-enclave biometric-current-set 2>/dev/null </dev/null || fail "An item of a former set of fingers is there."
        [ "$(read_with_finger one biometric-any --secure-enclave biometric-any)" = 24680 ]
    }

    # keychain-fingerprint may verify the fingers of every user with fprintd, and may not enroll any. Another program of the system may do neither.
    local action=net.reactivated.fprint.device right
    if command -v pkcheck >/dev/null 2>&1 && [ -e /usr/share/polkit-1/actions/$action.policy ] && is_active dbus.socket; then
        systemctl start keychain-fingerprint.service || fail "keychain-fingerprint does not start: $(journalctl --no-pager -u keychain-fingerprint.service)"
        may() { pkcheck --process "$(systemctl show -p MainPID --value "$1")" --action-id "$action.$2" 2>/dev/null; }
        for right in verify setusername; do
            may keychain-fingerprint.service $right || fail "polkit does not give keychain-fingerprint the right $right: see Scripts/keychain.rules."
            ! may keychain-peer.service $right || fail "polkit gives another program the right $right."
        done
        ! may keychain-fingerprint.service enroll || fail "polkit lets keychain-fingerprint enroll fingers."
        check_fingers
    else
        echo "polkit and fprintd are not installed, so fingerprints were not checked."
    fi

    systemctl stop keychaind.service keychaind.socket
    ! as_user "$valet" get luggage 2>/dev/null || fail "Without keychaind the secret was read."
}

# The part that prepares the container, in namespaces of its own, and becomes its first process.
enter() {
    local destination=$1 prefix=$2 folder=$3 root=/mnt directory directories
    mount --make-rprivate /
    mount --bind / "$root"
    mount -t tmpfs none "$folder"
    directories=(etc home var)
    # The place of the installation may be missing.
    [ -d "$prefix" ] || directories+=("$(cut -d / -f 2 <<<"$prefix")")
    for directory in "${directories[@]}"; do
        mkdir -p "$folder/upper/$directory" "$folder/work/$directory"
        mount -t overlay -o "lowerdir=/$directory,upperdir=$folder/upper/$directory,workdir=$folder/work/$directory" none "$root/$directory"
    done
    # Not a layer of an overlay: files of several layers have devices by which no program is known by its file.
    mkdir -p "$root$prefix"
    mount --bind "$destination$prefix" "$root$prefix"
    mount -t proc none "$root/proc"
    mount -t tmpfs none "$root/run"
    mount -t tmpfs none "$root/tmp"
    mount --rbind /dev "$root/dev"
    mount -t sysfs -o ro none "$root/sys"
    mount -t tmpfs none "$root/sys/fs/cgroup" 2>/dev/null || true
    mount -t cgroup2 none "$root/sys/fs/cgroup"
    mount --bind "$4" "$root/mnt"
    # Nothing of this system is started.
    rm -rf "$root"/etc/systemd/system/*.wants
    cp "$root$prefix"/lib/systemd/system/keychain* "$root/etc/systemd/system"
    [ ! -d /etc/polkit-1/rules.d ] || cp "$destination/usr/share/polkit-1/rules.d/50-keychain.rules" "$root/etc/polkit-1/rules.d"
    install -m 755 "$0" "$root/etc/check-systemd"
    cat >"$root/etc/systemd/system/check.service" <<TEXT
[Unit]
After=basic.target dbus.socket
Wants=dbus.socket
[Service]
Type=oneshot
ExecStart=/bin/sh -c '/etc/check-systemd check $prefix >/mnt/log 2>&1; result=\$?; journalctl --no-pager >/mnt/journal 2>&1; systemctl exit \$result'
TEXT
    printf '[Unit]\nRequires=basic.target\nWants=check.service\n' >"$root/etc/systemd/system/check.target"
    cd "$root"
    # The former root directory is below the new one for a moment only.
    pivot_root . home
    umount -l /home
    export container=check
    exec /lib/systemd/systemd --system --unit=check.target --show-status=0 >/dev/null 2>&1
}

case $1 in
    check) check "$2" ;;
    enter) enter "${@:2}" ;;
    *)
        mkdir -m 755 "$3" "$3.output"
        result=0
        timeout 300 unshare --mount --pid --fork --kill-child --uts --ipc --cgroup "$(realpath "$0")" enter "$1" "$2" "$3" "$3.output" || result=$?
        rm -f "$1$2/bin/check-program"
        cat "$3.output/log"
        [ $result -eq 0 ] || { tail -n 100 "$3.output/journal"; fail "The check with systemd has failed: $result."; }
        rm -r "$3" "$3.output"
        ;;
esac
