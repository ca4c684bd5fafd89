#!/usr/bin/env bash
# Lets programs of a desktop store, search, read, and delete secrets. `Scripts/desktop-real.sh help` describes the options.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    cat <<'TEXT'
Scripts/desktop-real.sh [OPTIONS] [PROGRAM ...]

Starts a private message bus with keychain-secret-service, with an encrypted keychain of its own, and lets each program use it: secret-tool, gdbus,
python (SecretStorage and keyring), git (its helper for libsecret), gio (a server that it mounts with a password of the keyring), portal
(xdg-desktop-portal, for a program in a sandbox), and seahorse. Without names, all of them. The products of a build with the package trait SecretService have to exist:

    Scripts/test.sh --traits TPM,Configuration,Etcd,SecretService --scratch-path .build/with-traits -- --filter '^SecretServiceTests'

    --build DIR       the directory of the built programs (default: .build/with-traits/release)
    --keyring gnome   uses GNOME Keyring instead, which shows that the checks themselves are right
    --picture FILE    keeps pictures of Seahorse's window, beside each other in one file
    --keep            keeps the files, and prints their directory

Exits with 0 if every program did all of it, 1 if one did not, and 2 if a program that was named is not installed. The last line names programs
whose checks did not run because something is not installed.
TEXT
}

build=.build/with-traits/release keyring=bridge picture='' keeps=false programs=()
while [ $# -gt 0 ]; do
    case $1 in
        help | --help) usage; exit ;;
        --build) build=${2:?}; shift 2 ;;
        --keyring) keyring=${2:?}; shift 2 ;;
        --picture) picture=${2:?}; shift 2 ;;
        --keep) keeps=true; shift ;;
        -*) usage >&2; exit 2 ;;
        *) programs+=("$1"); shift ;;
    esac
done

root=$(mktemp -d /tmp/desktop-real.XXXXXX)
children=()
finish() {
    [ ${#children[@]} -eq 0 ] || kill "${children[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    if $keeps; then echo "Files: $root"; else rm -rf "$root"; fi
}
trap finish EXIT

failures=0
current=
check() {
    local name=$1; shift
    if "$@" >>"$root/$current.log" 2>&1; then
        printf '  %-58s ok\n' "$name"
    else
        printf '  %-58s FAILED\n' "$name"
        tail -n 5 "$root/$current.log" | sed 's/^/    /'
        failures=$((failures + 1))
    fi
}
is() { [ "$1" = "$2" ] || { echo "expected '$2', got '$1'"; return 1; }; }
not() { if "$@"; then return 1; fi; }
wait_for() {
    local deadline=$((SECONDS + 30))
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $deadline ] || { echo "$* did not happen" >&2; return 1; }
        sleep 0.1
    done
}

# MARK: The session

mkdir -m 700 "$root/home" "$root/run"
export HOME=$root/home XDG_RUNTIME_DIR=$root/run KEYCHAIN_HOME=$root/home/keychain KEYCHAIN_PINENTRY='' LC_ALL=C.UTF-8
unset XDG_DATA_HOME XDG_CONFIG_HOME XDG_STATE_HOME DISPLAY WAYLAND_DISPLAY
mkdir -m 700 "$KEYCHAIN_HOME"
cat >"$root/bus.conf" <<BUS
<busconfig><type>session</type><listen>unix:path=$root/run/bus</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
BUS
export DBUS_SESSION_BUS_ADDRESS=unix:path=$root/run/bus
dbus-daemon --config-file="$root/bus.conf" --nofork >"$root/bus.log" 2>&1 &
children+=($!)
wait_for test -S "$root/run/bus"
case $keyring in
    bridge)
        [ -x "$build/keychain-secret-service" ] || { echo "$build has no keychain-secret-service: build it, or name another directory with --build" >&2; exit 2; }
        "$build/keychain-secret-service" >"$root/keyring.log" 2>&1 & ;;
    gnome) gnome-keyring-daemon --unlock --components=secrets --foreground <<<luggage >"$root/keyring.log" 2>&1 & ;;
    *) usage >&2; exit 2 ;;
esac
children+=($!)
call() { gdbus call --session --dest "$1" --object-path "$2" --method "$3" "${@:4}"; }
has_keyring() { call org.freedesktop.DBus / org.freedesktop.DBus.NameHasOwner org.freedesktop.secrets | grep true; }
wait_for has_keyring

# MARK: Programs

# Each has a function that says what is missing, and one that uses it.
missing_secret_tool() { command -v secret-tool >/dev/null || echo libsecret-tools; }
use_secret_tool() {
    local entry=(service mail user ada)
    store() { printf %s "$1" | secret-tool store --label='Mail of Ada' "${entry[@]}"; }
    lookup() { is "$(secret-tool lookup "${entry[@]}")" "$1"; }
    search() { secret-tool search --all user ada | grep -F 'label = Mail of Ada'; }
    check "stores" store first
    check "reads" lookup first
    check "replaces" store second
    check "reads what has replaced" lookup second
    check "searches by a part of the attributes" search
    check "deletes" secret-tool clear "${entry[@]}"
    check "finds nothing any more" not secret-tool lookup "${entry[@]}"
}

missing_gdbus() { command -v gdbus >/dev/null || echo libglib2.0-bin; }
use_gdbus() {
    local service=/org/freedesktop/secrets
    look() { gdbus introspect --session --dest org.freedesktop.secrets --object-path $service --recurse | grep "$1"; }
    search() { is "$(call org.freedesktop.secrets $service org.freedesktop.Secret.Service.SearchItems "$1")" "$2"; }
    printf secret | secret-tool store --label=Probe probe gdbus
    check "introspects the collections" look "$service/collection/login"
    check "searches, and finds nothing" search "{'probe': 'none'}" "(@ao [], @ao [])"
    check "finds the item of another program" not search "{'probe': 'gdbus'}" "(@ao [], @ao [])"
    secret-tool clear probe gdbus
}

missing_python() { /usr/bin/python3 -c 'import secretstorage, keyring' 2>/dev/null || echo 'python3-secretstorage and python3-keyring'; }
use_python() {
    # One program for each step, as a login and a later run are.
    in_python() { /usr/bin/python3 - <<<"$1"; }
    local keyring_='import keyring; keyring.set_keyring(__import__("keyring.backends.SecretService", fromlist=["x"]).Keyring())'
    check "keyring stores" in_python "$keyring_; keyring.set_password('mail', 'ada', 'grün')"
    check "keyring replaces" in_python "$keyring_; keyring.set_password('mail', 'ada', 'blau')"
    check "keyring reads" in_python "$keyring_; assert keyring.get_password('mail', 'ada') == 'blau'"
    check "keyring searches without a user" in_python "$keyring_; assert keyring.get_credential('mail', None).username == 'ada'"
    check "keyring deletes" in_python "$keyring_; keyring.delete_password('mail', 'ada'); assert keyring.get_password('mail', 'ada') is None"
    local storage='import secretstorage as s; bus = s.dbus_init(); c = s.get_default_collection(bus)'
    check "SecretStorage stores bytes with a content type" in_python "$storage
i = c.create_item('Bytes', {'kind': 'raw', 'number': '1'}, bytes(range(256)), content_type='application/octet-stream')
assert i.get_secret() == bytes(range(256)) and i.get_label() == 'Bytes' and not i.is_locked()"
    check "SecretStorage searches and reads" in_python "$storage
i, = c.search_items({'kind': 'raw'})
assert i.get_secret() == bytes(range(256)) and i.get_attributes()['number'] == '1' and i.get_created() <= i.get_modified()"
    check "SecretStorage changes label, attributes, and secret" in_python "$storage
i, = s.search_items(bus, {'kind': 'raw'})
i.set_label('Other'); i.set_attributes({'kind': 'changed'}); i.set_secret(b'x')
i, = s.search_items(bus, {'kind': 'changed'})
assert i.get_label() == 'Other' and i.get_secret() == b'x'"
    check "SecretStorage deletes" in_python "$storage
next(c.search_items({'kind': 'changed'})).delete()
assert not list(c.search_items({'kind': 'changed'}))"
    check "SecretStorage stores in the collection in memory" in_python "$storage
m = s.Collection(bus, s.collection.SESSION_COLLECTION)
i = m.create_item('Short', {'kind': 'memory'}, b'y'); assert i.get_secret() == b'y'; i.delete()"
}

git_sources=/usr/share/doc/git/contrib/credential/libsecret
missing_git() {
    [ -f $git_sources/git-credential-libsecret.c ] && command -v git >/dev/null || { echo 'git with its contrib directory'; return; }
    pkg-config --exists libsecret-1 glib-2.0 2>/dev/null || echo libsecret-1-dev
}
use_git() {
    local flags entry=$'protocol=https\nhost=git.example.com:8443\npath=repository\n'
    cp $git_sources/git-credential-libsecret.c "$root"
    read -ra flags <<<"$(pkg-config --cflags --libs libsecret-1 glib-2.0)"
    check "the helper builds" "${CC:-cc}" -o "$root/git-credential-libsecret" "$root/git-credential-libsecret.c" "${flags[@]}"
    credential() { GIT_TERMINAL_PROMPT=0 GIT_ASKPASS=/bin/false git -c credential.useHttpPath=true -c credential.helper="$root/git-credential-libsecret" credential "$1" <<<"$2"; }
    answer() { is "$(credential fill "$entry" | grep -E '^(username|password)=' | tr '\n' ' ')" "$1"; }
    check "stores" credential approve "${entry}username=ada"$'\npassword=first\n'
    check "searches by server and port, and reads" answer "username=ada password=first "
    check "replaces" credential approve "${entry}username=ada"$'\npassword=second\n'
    check "reads what has replaced" answer "username=ada password=second "
    check "deletes" credential reject "${entry}username=ada"$'\npassword=second\n'
    check "finds nothing any more" not answer "username=ada password=second "
}

missing_gio() {
    local packages=()
    command -v secret-tool >/dev/null || packages+=(libsecret-tools)
    [ -x /usr/libexec/gvfsd ] && [ -x /usr/libexec/gvfsd-ftp ] || packages+=(gvfs-backends)
    command -v gio >/dev/null || packages+=(libglib2.0-bin)
    /usr/bin/python3 -c 'import gi' 2>/dev/null || packages+=(python3-gi)
    /usr/bin/python3 -c 'import pyftpdlib' 2>/dev/null || packages+=(python3-pyftpdlib)
    echo "${packages[@]}"
}
# `gio mount` reads passwords of the keyring, and cannot be told to store one. A file manager is, by a checkbox; the second program is one.
use_gio() {
    local port server
    mkdir "$root/served"
    echo hello >"$root/served/letter"
    cat >"$root/server.py" <<'PYTHON'
import sys
from pyftpdlib.authorizers import AuthenticationFailed, DummyAuthorizer
from pyftpdlib.handlers import FTPHandler
from pyftpdlib.servers import FTPServer
class Authorizer(DummyAuthorizer):
    def validate_authentication(self, user, password, handler):
        if password != open(sys.argv[2]).read(): raise AuthenticationFailed
FTPHandler.authorizer = Authorizer()
FTPHandler.authorizer.add_user('ada', '', sys.argv[1])
server = FTPServer(('127.0.0.1', 0), FTPHandler)
print(server.address[1], flush=True)
server.serve_forever()
PYTHON
    cat >"$root/mount.py" <<'PYTHON'
import sys
from gi.repository import Gio, GLib
def answer(operation, message, user, domain, flags):
    operation.set_username('ada')
    operation.set_password(open(sys.argv[2]).read())
    operation.set_password_save(Gio.PasswordSave.PERMANENTLY)
    operation.reply(Gio.MountOperationResult.HANDLED)
def mounted(file, result):
    file.mount_enclosing_volume_finish(result)
    loop.quit()
loop, operation = GLib.MainLoop(), Gio.MountOperation()
operation.connect('ask-password', answer)
Gio.File.new_for_uri(sys.argv[1]).mount_enclosing_volume(Gio.MountMountFlags.NONE, operation, None, mounted)
GLib.timeout_add_seconds(30, lambda: sys.exit('no answer'))
loop.run()
PYTHON
    printf 'first=grün' >"$root/password"
    /usr/bin/python3 "$root/server.py" "$root/served" "$root/password" >"$root/port" 2>"$root/server.log" &
    children+=($!)
    GIO_USE_VFS=local /usr/libexec/gvfsd --no-fuse >"$root/gvfsd.log" 2>&1 &
    children+=($!)
    wait_for test -s "$root/port"
    port=$(cat "$root/port")
    server=ftp://ada@127.0.0.1:$port/
    has_mounts() { call org.freedesktop.DBus / org.freedesktop.DBus.NameHasOwner org.gtk.vfs.Daemon | grep true; }
    wait_for has_mounts
    stores() { timeout 40 /usr/bin/python3 "$root/mount.py" "$server" "$root/password"; }
    asks() {
        local output
        ! output=$(mounts 2>&1) || return 1
        grep -F 'password for “ada”' <<<"$output"
    }
    is_refused() { not mounts && grep -F "USER 'ada' failed login" "$root/server.log"; }
    mounts() { timeout 40 gio mount "$server" </dev/null && is "$(gio cat "${server}letter")" hello; }
    unmounts() { gio mount -u "$server"; }
    search() { secret-tool search --all server 127.0.0.1 protocol ftp port "$port" 2>&1 | grep -F "$1"; }
    check "a mount stores the password" stores
    check "a search finds it with the user's name" search 'attribute.user = ada'
    check "unmounts" unmounts
    check "gio searches, reads, and mounts without a question" mounts
    check "unmounts" unmounts
    printf second >"$root/password"
    check "does not mount with a password that is wrong now" is_refused
    check "another mount replaces the password" stores
    check "unmounts" unmounts
    check "gio mounts with the one that has replaced it" mounts
    check "unmounts" unmounts
    check "the password is deleted" secret-tool clear server 127.0.0.1 protocol ftp port "$port"
    check "gio finds none any more, and asks" asks
}

missing_portal() {
    local packages=()
    [ -x /usr/libexec/xdg-desktop-portal ] || packages+=(xdg-desktop-portal)
    command -v bwrap >/dev/null || packages+=(bubblewrap)
    /usr/bin/python3 -c 'import dbus, gi' 2>/dev/null || packages+=(python3-dbus python3-gi)
    echo "${packages[@]}"
}
use_portal() {
    local portals=$root/portals
    mkdir "$portals"
    case $keyring in
        bridge) cp Scripts/keychain.portal "$portals" ;;
        gnome) cp /usr/share/xdg-desktop-portal/portals/gnome-keyring.portal "$portals" ;;
    esac
    XDG_DESKTOP_PORTAL_DIR=$portals XDG_CURRENT_DESKTOP=GNOME /usr/libexec/xdg-desktop-portal >"$root/portal-program.log" 2>&1 &
    children+=($!)
    has_portal() { call org.freedesktop.DBus / org.freedesktop.DBus.NameHasOwner org.freedesktop.portal.Desktop | grep true; }
    cat >"$root/portal.py" <<'PYTHON'
import dbus, os, sys
from dbus.mainloop.glib import DBusGMainLoop
from gi.repository import GLib
DBusGMainLoop(set_as_default=True)
bus, loop = dbus.SessionBus(), GLib.MainLoop()
reading, writing = os.pipe()
answers = []
bus.add_signal_receiver(lambda code, results: (answers.append(code), loop.quit()), 'Response', 'org.freedesktop.portal.Request')
portal = bus.get_object('org.freedesktop.portal.Desktop', '/org/freedesktop/portal/desktop', introspect=False)
dbus.Interface(portal, 'org.freedesktop.portal.Secret').RetrieveSecret(dbus.types.UnixFd(writing), dbus.Dictionary({}, signature='sv'))
GLib.timeout_add_seconds(30, loop.quit)
if not answers: loop.run()
os.close(writing)
print(answers, os.read(reading, 1000).hex())
PYTHON
    # The file by which Flatpak tells what runs in a sandbox.
    sandboxed() {
        bwrap --tmpfs / --ro-bind /usr /usr --symlink usr/lib /lib --symlink usr/lib64 /lib64 --symlink usr/bin /bin --ro-bind /etc /etc --proc /proc \
            --dev /dev --bind "$root" "$root" --ro-bind-data 9 /.flatpak-info /usr/bin/python3 "$root/portal.py" \
            9<<<"[Application]"$'\n'"name=$1"$'\n'"[Instance]"$'\n'"instance-id=1"
    }
    first() { sandboxed org.example.Mail >"$root/secret" && grep -E '^\[dbus\.UInt32\(0\)\] [0-9a-f]{128}$|^\[0\] [0-9a-f]{128}$' "$root/secret" >/dev/null; }
    again() { is "$(sandboxed org.example.Mail | sha256sum)" "$(sha256sum <"$root/secret")"; }
    another() { not cmp -s <(sandboxed org.example.Other) "$root/secret"; }
    unnamed() { /usr/bin/python3 "$root/portal.py" | grep -E '^\[(dbus\.UInt32\()?2\)?\] $'; }
    hidden() { is "$(call org.freedesktop.secrets /org/freedesktop/secrets org.freedesktop.Secret.Service.SearchItems "{'app_id': 'org.example.Mail'}")" '(@ao [], @ao [])'; }
    check "starts" wait_for has_portal
    check "an application in a sandbox gets its secret" first
    check "gets the same one again" again
    check "another application gets another one" another
    # GNOME Keyring gives all programs without a sandbox one secret, and shows them all.
    if [ $keyring = bridge ]; then
        check "a program without a sandbox gets none" unnamed
        check "the keyring does not show it" hidden
    fi
}

missing_seahorse() {
    local program packages=()
    for program in seahorse:seahorse Xvfb:xvfb xdotool:xdotool import:imagemagick; do
        command -v "${program%:*}" >/dev/null || packages+=("${program#*:}")
    done
    echo "${packages[@]}"
}
# The mouse clicks where Seahorse 43 draws its buttons, in GTK's own theme. The keyring shows whether that had an effect; pictures are for a person.
use_seahorse() {
    for attribute in one two; do printf "secret of $attribute" | secret-tool store --label="Seahorse $attribute" seahorse $attribute; done
    Xvfb -displayfd 3 -screen 0 1000x700x24 3>"$root/display" >"$root/xvfb.log" 2>&1 &
    children+=($!)
    wait_for test -s "$root/display"
    DISPLAY=:$(cat "$root/display")
    export DISPLAY GDK_BACKEND=x11 GTK_THEME=Adwaita NO_AT_BRIDGE=1 GSETTINGS_BACKEND=memory
    seahorse >"$root/seahorse.log" 2>&1 &
    children+=($!)
    window() { xdotool search --onlyvisible --name 'Passwords and Keys|Login|Seahorse' | grep .; }
    # Nothing tells when GTK has drawn something.
    click() { xdotool mousemove "$1" "$2" click ${3:+--repeat $3} 1; sleep 1.5; }
    look() { import -window root "$root/seahorse-$1.png"; }
    has() { secret-tool search --all "$1" "$2" | grep -F "$3"; }
    check "shows its window" wait_for window
    sleep 3
    look list
    click 250 94 2
    click 402 183
    look item
    click 428 448
    click 424 288
    look deleted
    check "deletes the item that it shows" not has seahorse one 'secret of one'
    check "leaves the other one" has seahorse two 'secret of two'
    xdotool key ctrl+n
    sleep 1.5
    click 61 205
    click 348 277
    xdotool type 'From Seahorse'
    click 348 316
    xdotool type 'a new secret'
    look new
    click 416 187
    look stored
    check "stores an item" has xdg:schema org.gnome.keyring.Note 'secret = a new secret'
    [ -z "$picture" ] || convert "$root"/seahorse-{list,item,deleted,new,stored}.png -crop 620x540+0+0 +repage +append "$picture"
    unset DISPLAY
}

all=(secret-tool gdbus python git gio portal seahorse)
not_run=()
for program in "${programs[@]:-${all[@]}}"; do
    function=${program//-/_}
    declare -F "use_$function" >/dev/null || { echo "There is no check for $program." >&2; exit 2; }
    current=$program
    echo "$program"
    missing=$("missing_$function")
    if [ -n "$missing" ]; then
        echo "  not installed: $missing"
        [ ${#programs[@]} -eq 0 ] || exit 2
        not_run+=("$program")
        continue
    fi
    "use_$function"
done
[ $failures -eq 0 ] || { echo "$failures checks failed." >&2; exit 1; }
[ ${#not_run[@]} -eq 0 ] || { echo "The other checks passed. Not run, because something is not installed: ${not_run[*]}"; exit; }
echo "All checks passed."
