#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for fprintd on a message bus, for tests.

    fprintd.py ADDRESS

Performs a command for each line of its input, and prints an answer:

    reader true|false            plugs a reader in, or unplugs it; a verification is told that it was unplugged
    enroll USER [FINGER...]      sets the enrolled fingers of a user
    script [RESULT...]           what the next verifications say at once, one each; then they wait
    emit RESULT                  says it in the verification that waits
    forge RESULT                 another process says it, to the program that has claimed the reader
    claim true|false             another program claims the reader, or releases it
    deny true|false              permits nothing
    state                        prints free, claimed, or verifying
    waiting                      prints how often the present claim has begun to verify
    calls                        prints the calls since the last time
    end                          ends like a crash
"""
import os
import sys

import dbus
import dbus.lowlevel
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

FPRINT = "net.reactivated.Fprint"
MANAGER, DEVICE, PATH = FPRINT + ".Manager", FPRINT + ".Device", "/net/reactivated/Fprint/Device/0"
# The verification goes on after these.
RETRIES = {"verify-retry-scan", "verify-swipe-too-short", "verify-finger-not-centered", "verify-remove-and-retry", "verify-too-fast"}


class Refusal(dbus.DBusException):
    def __init__(self, name):
        super().__init__("refused by the test")
        self._dbus_error_name = FPRINT + ".Error." + name


class Manager(dbus.service.Object):
    has_reader = True

    @dbus.service.method(MANAGER, in_signature="", out_signature="o")
    def GetDefaultDevice(self):
        if not self.has_reader:
            raise Refusal("NoSuchDevice")
        return dbus.ObjectPath(PATH)


class Device(dbus.service.Object):
    def __init__(self, bus):
        super().__init__(bus, PATH)
        self.fingers, self.script, self.calls, self.start_count = {}, [], [], 0
        self.owner, self.user, self.is_verifying, self.is_denied = None, None, False, False

    def note(self, call, *allowed_owners):
        self.calls.append(call)
        if self.is_denied:
            raise Refusal("PermissionDenied")
        if allowed_owners and self.owner not in allowed_owners:
            raise Refusal("ClaimDevice" if self.owner is None else "AlreadyInUse")

    @dbus.service.method(DEVICE, in_signature="s", sender_keyword="sender")
    def Claim(self, user, sender):
        self.note("Claim", None)
        self.owner, self.user, self.start_count = sender, user, 0
        bus.watch_name_owner(sender, lambda owner: self.release() if not owner and self.owner == sender else None)

    @dbus.service.method(DEVICE, in_signature="", sender_keyword="sender")
    def Release(self, sender):
        self.note("Release", sender)
        self.release()

    def release(self):
        self.owner, self.user, self.is_verifying, self.start_count = None, None, False, 0

    @dbus.service.method(DEVICE, in_signature="s", sender_keyword="sender")
    def VerifyStart(self, finger, sender):
        self.note("VerifyStart", sender)
        if self.is_verifying:
            raise Refusal("AlreadyInUse")
        if not self.fingers.get(self.user):
            raise Refusal("NoEnrolledPrints")
        self.is_verifying = True
        self.start_count += 1
        GLib.idle_add(self.play)

    @dbus.service.method(DEVICE, in_signature="", sender_keyword="sender")
    def VerifyStop(self, sender):
        self.note("VerifyStop", sender)
        if not self.is_verifying:
            raise Refusal("NoActionInProgress")
        self.is_verifying = False

    @dbus.service.method(DEVICE, in_signature="s", out_signature="as")
    def ListEnrolledFingers(self, user):
        self.note("ListEnrolledFingers")
        if not self.fingers.get(user):
            raise Refusal("NoEnrolledPrints")
        return self.fingers[user]

    @dbus.service.method(dbus.PROPERTIES_IFACE, in_signature="ss", out_signature="v")
    def Get(self, interface, name):
        return {"name": "Reader of the test", "scan-type": "press"}[name]

    @dbus.service.signal(DEVICE, signature="sb")
    def VerifyStatus(self, result, done):
        pass

    def play(self):
        while self.is_verifying and self.script:
            result = self.script.pop(0)
            self.VerifyStatus(result, result not in RETRIES)
            if result not in RETRIES:
                break


def perform(command, arguments):
    flag = bool(arguments) and arguments[0] == "true"
    if command == "reader":
        manager.has_reader = flag
        if not flag and device.is_verifying:
            device.VerifyStatus("verify-disconnected", True)
    elif command == "enroll":
        device.fingers[arguments[0]] = arguments[1:]
    elif command == "script":
        device.script = arguments
    elif command == "emit":
        device.VerifyStatus(arguments[0], arguments[0] not in RETRIES)
    elif command == "forge":
        forger = dbus.bus.BusConnection(sys.argv[1])
        signal = dbus.lowlevel.SignalMessage(PATH, DEVICE, "VerifyStatus")
        signal.append(arguments[0], True, signature="sb")
        signal.set_destination(device.owner)
        forger.send_message(signal)
        # The bus has delivered it when it answers.
        forger.name_has_owner(FPRINT)
        forger.close()
    elif command == "claim":
        device.owner = ":another" if flag else None
    elif command == "deny":
        device.is_denied = flag
    elif command == "state":
        return "verifying" if device.is_verifying else "free" if device.owner is None else "claimed"
    elif command == "waiting":
        return str(device.start_count)
    elif command == "calls":
        calls, device.calls = device.calls, []
        return " ".join(calls)
    elif command == "end":
        os._exit(1)
    return "done"


def read(channel, condition):
    line = sys.stdin.readline()
    if not line:
        os._exit(0)
    command, *arguments = line.split()
    print(perform(command, arguments), flush=True)
    return True


dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
bus = dbus.bus.BusConnection(sys.argv[1])
manager, device = Manager(bus, "/net/reactivated/Fprint/Manager"), Device(bus)
name = dbus.service.BusName(FPRINT, bus)
print("ready", flush=True)
GLib.io_add_watch(sys.stdin.fileno(), GLib.IO_IN | GLib.IO_HUP, read)
GLib.MainLoop().run()
