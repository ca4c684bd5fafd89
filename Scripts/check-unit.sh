#!/usr/bin/env bash
# Runs the systemd unit of an installed `valet` in a user manager of its own, for a keychain that is in a circle.
#
#   Scripts/check-unit.sh COMMAND UNIT OTHER FOLDER
#
# COMMAND is the installed `valet`, UNIT the unit with its path, OTHER the home of another keychain in the circle, and FOLDER an empty folder. The
# keychain is that of KEYCHAIN_HOME. Needs root, because systemd runs only where it finds the traces of a system manager, here in a mount namespace.
set -euo pipefail

fail() { echo "$1" >&2; exit 1; }
wait_until() {
    local end=$((SECONDS + 30))
    until "${@:2}"; do
        [ $SECONDS -lt $end ] || fail "After 30 seconds, $1. $(systemctl --user status valet-sync 2>&1 | tail -n 12)"
        sleep 0.1
    done
}

if [ "${1:?}" != inside ]; then
    exec timeout --kill-after=5 180 unshare --mount --pid --fork --kill-child --mount-proc "$0" inside "$@"
fi

command=$2 unit=$3 other=$4 folder=$5
mount --make-rprivate /
mount -t tmpfs none /run/systemd
mkdir /run/systemd/system
export HOME=$folder/home XDG_RUNTIME_DIR=$folder/runtime
unset DBUS_SESSION_BUS_ADDRESS XDG_CONFIG_HOME
mkdir -p "$HOME/.config/systemd/user" "$XDG_RUNTIME_DIR"
chmod 700 "$XDG_RUNTIME_DIR"
cp "$unit" "$HOME/.config/systemd/user"
/usr/lib/systemd/systemd --user >"$folder/log" 2>&1 &
manager=$!
# It removes its control groups.
trap 'kill $manager 2>/dev/null && wait $manager || true' EXIT

is_manager_running() { systemctl --user show-environment >/dev/null 2>&1; }
is() { [ "$(systemctl --user show --property "$1" --value valet-sync)" = "$2" ]; }
has_value() {
    KEYCHAIN_HOME=$other "$command" sync now >/dev/null 2>&1 && [ "$(KEYCHAIN_HOME=$other "$command" get --cloud Unit 2>/dev/null)" = "$1" ]
}
wait_until "the manager does not run" is_manager_running
systemctl --user enable --quiet --now valet-sync
echo first | "$command" set --cloud Unit
wait_until "the agent of the unit has not sent a change" has_value first

systemctl --user kill --signal=KILL valet-sync
wait_until "an agent that was killed is not started again" is SubState auto-restart
systemctl --user restart valet-sync
echo second | "$command" set --cloud Unit
wait_until "the agent has not sent a change after a restart" has_value second
systemctl --user stop valet-sync
is Result success || fail "The agent did not end well when it was stopped: $(systemctl --user status valet-sync 2>&1 | tail -n 12)"

# It is not started again and again.
"$command" sync leave >/dev/null
systemctl --user start valet-sync
wait_until "the unit of a keychain that is in no circle has not failed" is ActiveState failed
