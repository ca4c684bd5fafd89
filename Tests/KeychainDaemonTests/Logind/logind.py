#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A private message bus with a stand-in for systemd-logind, for tests.

    logind.py DIRECTORY

Starts both, prints the address of the bus, and performs a command for each line of its input:

    add SESSION USER TYPE     a session of a user by number, of the type wayland or tty
    remove SESSION
    place SESSION desk|remote|background|greeter|nowhere
                              what the session is: one in front of the machine, or each other kind
    locked SESSION true|false
    idle SESSION SECONDS      idle since then
    lock SESSION              asks it to lock
    sleep true|false          announces that the system will sleep, or has slept
    inhibitors                prints their number
    forge PROCESS SESSION     sends a process what logind and the bus send, as a program that is neither
    settle PROCESS            waits until a process has handled all messages before
    end                       ends logind
"""
import ctypes
import signal
import subprocess
import sys
import time

import dbus
import dbus.lowlevel

PR_SET_PDEATHSIG = 1
LOGIND, ROOT = "org.freedesktop.login1", "/org/freedesktop/login1"
SESSION, MANAGER, MOCK = LOGIND + ".Session", LOGIND + ".Manager", "org.freedesktop.DBus.Mock"


def end_with_parent():
    """Ends this process with the one that has started it, which a test may kill."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def connection(bus, process):
    """Returns the connection of a process, which it may not have made yet."""
    while True:
        for name in bus.list_names():
            if name.startswith(":") and name != bus.get_unique_name() and process == connected_process(bus, name):
                return name
        time.sleep(0.01)


def settle(bus, process):
    bus.call_blocking(connection(bus, process), "/", "org.freedesktop.DBus.Peer", "Ping", "", ())


def forge(bus, process, session):
    """The bus delivers signals with a destination, whatever the receiver has subscribed to."""
    for path, interface, member, signature, arguments in [
        (ROOT, MANAGER, "PrepareForSleep", "b", [True]), (session, SESSION, "Lock", "", []),
        ("/org/freedesktop/DBus", "org.freedesktop.DBus", "NameOwnerChanged", "sss", [LOGIND, ":1.1", ""]),
    ]:
        message = dbus.lowlevel.SignalMessage(path, interface, member)
        message.set_destination(connection(bus, process))
        message.append(*arguments, signature=signature)
        bus.send_message(message)
    bus.flush()


def connected_process(bus, name):
    try:
        return bus.get_object("org.freedesktop.DBus", "/org/freedesktop/DBus").GetConnectionUnixProcessID(
            name, dbus_interface="org.freedesktop.DBus")
    except dbus.DBusException:
        return None  # The connection has ended.


directory = sys.argv[1]
with open(directory + "/bus.conf", "w", encoding="ascii") as file:
    file.write(f"""<busconfig><type>system</type><listen>unix:path={directory}/bus</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_type="method_call"/><allow send_type="signal"/>
<allow send_requested_reply="true" send_type="method_return"/><allow send_requested_reply="true" send_type="error"/>
<allow receive_type="method_call"/><allow receive_type="method_return"/><allow receive_type="error"/><allow receive_type="signal"/>
</policy></busconfig>""")
# Their messages are not the answers of this program.
daemon = subprocess.Popen(["dbus-daemon", "--nofork", "--print-address", "--config-file", directory + "/bus.conf"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=end_with_parent)
address = daemon.stdout.readline().decode().strip()
logind = subprocess.Popen([sys.executable, "-m", "dbusmock", "--system", "--template", "logind"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=end_with_parent,
                          env={"DBUS_SYSTEM_BUS_ADDRESS": address, "PATH": "/usr/bin:/bin"})
try:
    bus = dbus.bus.BusConnection(address)
    while not bus.name_has_owner(LOGIND):
        time.sleep(0.01)
    print(address, flush=True)
    for line in sys.stdin:
        command, *arguments = line.split()
        manager = bus.get_object(LOGIND, ROOT)
        path = f"{ROOT}/session/{arguments[0]}" if arguments else ROOT
        answer = "done"

        def update(properties):
            bus.get_object(LOGIND, path).UpdateProperties(SESSION, properties, dbus_interface=MOCK)

        if command == "add":
            manager.AddSession(arguments[0], "seat0", dbus.UInt32(int(arguments[1])), "person", True, dbus_interface=MOCK)
            update({"Type": arguments[2]})
            manager.EmitSignal(MANAGER, "SessionNew", "so", [arguments[0], dbus.ObjectPath(path)], dbus_interface=MOCK)
        elif command == "place":
            place = arguments[1]
            update({"Remote": place == "remote", "Active": place != "background", "Class": "greeter" if place == "greeter" else "user"})
            seat = ("", dbus.ObjectPath("/")) if place == "nowhere" else ("seat0", dbus.ObjectPath(ROOT + "/seat/seat0"))
            bus.get_object(LOGIND, path).Set(
                SESSION, "Seat", dbus.Struct(seat, signature="so"), dbus_interface="org.freedesktop.DBus.Properties")
        elif command == "remove":
            manager.RemoveObject(path, dbus_interface=MOCK)
            manager.EmitSignal(MANAGER, "SessionRemoved", "so", [arguments[0], dbus.ObjectPath(path)], dbus_interface=MOCK)
        elif command == "locked":
            update({"LockedHint": arguments[1] == "true"})
        elif command == "idle":
            since = time.clock_gettime(time.CLOCK_MONOTONIC) - float(arguments[1])
            update({"IdleHint": True, "IdleSinceHintMonotonic": dbus.UInt64(int(since * 1_000_000))})
        elif command == "lock":
            bus.get_object(LOGIND, path).Lock(dbus_interface=SESSION)
        elif command == "sleep":
            manager.EmitSignal(MANAGER, "PrepareForSleep", "b", [arguments[0] == "true"], dbus_interface=MOCK)
        elif command == "inhibitors":
            answer = str(len(manager.ListInhibitors(dbus_interface=MANAGER)))
        elif command == "forge":
            forge(bus, int(arguments[0]), f"{ROOT}/session/{arguments[1]}")
        elif command == "settle":
            settle(bus, int(arguments[0]))
        elif command == "end":
            logind.terminate()
            logind.wait()
        print(answer, flush=True)
finally:
    logind.terminate()
    daemon.terminate()
