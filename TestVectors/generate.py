#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the test vectors beside this file, from Sources/KeychainServices/KeychainServices.docc/On-disk-format.md alone.

A second implementation of the format, sharing no code with the library: vectors made by the library itself would only
show that it agrees with itself. Needs Python 3.9 and the package `cryptography`. The same vectors come out each time; a
released one must never change.

    python3 TestVectors/generate.py
"""
import hashlib
import hmac
import json
import math
import pathlib
import struct

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.keywrap import aes_key_wrap

FOLDER = pathlib.Path(__file__).resolve().parent


def fixed(name, count=32):
    """Bytes that look random and are the same each time."""
    return hashlib.shake_256(("swift-keychain test vectors: " + name).encode()).digest(count)


def u16(number):
    return struct.pack("<H", number)


def u32(number):
    return struct.pack("<I", number)


def u64(number):
    return struct.pack("<Q", number)


def counted(data):
    return u32(len(data)) + data


def hkdf(key, salt, info, count):
    return HKDF(algorithm=hashes.SHA256(), length=count, salt=salt, info=info).derive(key)


def mac(key, message):
    return hmac.new(key, message, hashlib.sha256).digest()


def flipped(data, index, mask=1):
    altered = bytearray(data)
    altered[index] ^= mask
    return bytes(altered)


# Keys

STORE_ID = fixed("store id", 16)
OTHER_STORE_ID = fixed("other store id", 16)
DEVICE_SECRET = fixed("device secret")
DEVICE_KEY = hkdf(DEVICE_SECRET, STORE_ID, b"keychain device key v1", 32)
KEYBAG_KEY = hkdf(DEVICE_SECRET, STORE_ID, b"keychain keybag mac v1", 32)
INDEX_KEY = fixed("index key")
ROW_TAG_KEY = fixed("row-tag key")
AK, CK, DK, AKU, CKU, DKU, AKPU = 6, 7, 8, 9, 10, 11, 12
CLASS_KEYS = [(code, 1, fixed("class key %d" % code)) for code in (AK, CK, DK, AKU, CKU, DKU)]
CLASS_KEYS_TWO_GENERATIONS = sorted(CLASS_KEYS + [(AK, 2, fixed("class key 6, second"))], key=lambda entry: entry[:2])


# Keybag


def class_key_entry(code, generation, key, wrapping=1, check=None, wrapping_key=DEVICE_KEY):
    if check is None:
        check = hkdf(key, STORE_ID, b"keychain class key check v1" + bytes([code]) + u32(generation), 16)
    return bytes([code]) + u32(generation) + bytes([wrapping]) + aes_key_wrap(wrapping_key, key) + check


def keybag_fields(class_keys=CLASS_KEYS, generation=1, protector=b"\x01"):
    return [
        (1, u64(generation)),
        (2, protector),
        (3, aes_key_wrap(DEVICE_KEY, INDEX_KEY)),
        (4, aes_key_wrap(DEVICE_KEY, ROW_TAG_KEY)),
        (5, b"".join(class_key_entry(*entry) for entry in class_keys)),
    ]


def keybag(fields=None, version=1, magic=b"KBAG", store_id=STORE_ID, key=KEYBAG_KEY, trailing=b""):
    body = magic + u16(version) + store_id
    for tag, value in keybag_fields() if fields is None else fields:
        body += u16(tag) + counted(value)
    body += trailing
    return body + mac(key, body)


def replaced(tag, value):
    return [(number, value if number == tag else old) for number, old in keybag_fields()]


KEYBAG = keybag()


# Passcode

SALT = fixed("passcode salt")
LOW_COST, STANDARD_COST = (10, 1, 1), (16, 8, 1)
PASSCODE = b"12345"


def passcode_record(cost=LOW_COST, salt=SALT, derivation=1):
    return bytes([derivation]) + salt + bytes([cost[0]]) + u32(cost[1]) + u32(cost[2])


def passcode_key(passcode=PASSCODE, cost=LOW_COST, salt=SALT):
    exponent, r, p = cost
    stretched = hashlib.scrypt(passcode, salt=salt, n=2**exponent, r=r, p=p, maxmem=2**31 - 1, dklen=32)
    return hkdf(stretched + DEVICE_SECRET, STORE_ID, b"keychain passcode key v1", 32)


def is_protected(code):
    return code not in (DK, DKU)


# As after a passcode was set for the first time: all protected classes in generation 2, the older ones still there.
PASSCODE_CLASS_KEYS = sorted(
    CLASS_KEYS + [(code, 2, fixed("class key %d, under a passcode" % code)) for code in (AK, CK, AKU, CKU, AKPU)],
    key=lambda entry: entry[:2],
)
NEWEST_CLASS_KEYS = [entry for entry in PASSCODE_CLASS_KEYS if entry[1] == 2 or not is_protected(entry[0])]


def passcode_entry(code, generation, key, wrapping=None, check=None, passcode_wrapping_key=None):
    if wrapping is None:
        wrapping = 2 if is_protected(code) else 1
    wrapping_key = (passcode_wrapping_key or passcode_key()) if wrapping == 2 else DEVICE_KEY
    return class_key_entry(code, generation, key, wrapping, check, wrapping_key)


def passcode_fields(class_keys=PASSCODE_CLASS_KEYS, generation=2, record=None, entries=None, wrapping_key=None):
    if entries is None:
        entries = [passcode_entry(*entry, passcode_wrapping_key=wrapping_key) for entry in class_keys]
    fields = [(tag, b"".join(entries) if tag == 5 else value) for tag, value in keybag_fields(generation=generation)]
    return fields + [(16, passcode_record() if record is None else record)]


def holder_payload(class_keys, codes, generation=2):
    keys = [entry for entry in class_keys if entry[0] in codes]
    data = b"\x01" + STORE_ID + u64(generation) + u16(len(keys))
    return data + b"".join(bytes([code]) + u32(number) + key for code, number, key in keys)


def passcode_vectors():
    cases = []

    def case(name, passcode=PASSCODE, cost=LOW_COST, class_keys=PASSCODE_CLASS_KEYS, generation=2, wrong=b"12346"):
        key = passcode_key(passcode, cost)
        cases.append(
            {
                "name": name,
                "keybag": keybag(passcode_fields(class_keys, generation, passcode_record(cost), wrapping_key=key)).hex(),
                "generation": generation,
                "passcode": passcode.hex(),
                "wrongPasscode": wrong.hex(),
                "cost": {"roundsExponent": cost[0], "blockSize": cost[1], "parallelism": cost[2]},
                "passcodeKey": key.hex(),
                "classKeys": [{"accessibility": c, "generation": g, "key": k.hex()} for c, g, k in class_keys],
                "payloads": {
                    "unlocked": holder_payload(class_keys, (AK, AKU, AKPU), generation).hex(),
                    "first-unlock": holder_payload(class_keys, (CK, CKU), generation).hex(),
                },
            }
        )

    case("just set")
    case("older generations dropped", class_keys=NEWEST_CLASS_KEYS, generation=3)
    case("the standard cost", cost=STANDARD_COST)
    case("every parameter of the cost at work", cost=(11, 3, 2))
    case("a passcode of one byte", passcode=b"0", wrong=b"1")
    case("a passcode beyond ASCII", passcode="Zażółć 🔑".encode(), wrong="Zazolc 🔑".encode())
    case("a passcode longer than a hash block", passcode=b"passcode " * 100, wrong=b"passcode " * 99)
    return {"format": "passcode version 1", "storeID": STORE_ID.hex(), "deviceSecret": DEVICE_SECRET.hex(), "cases": cases}


def keybag_vectors():
    cases = []

    def opens(name, copies, damaged=0, class_keys=CLASS_KEYS, generation=1, protector=b"\x01"):
        cases.append(
            {
                "name": name,
                "copies": [copy.hex() for copy in copies],
                "expect": "opens",
                "damagedCopyCount": damaged,
                "generation": generation,
                "protectorKind": protector[0],
                "protectorParameters": protector[1:].hex(),
                "classKeys": [{"accessibility": c, "generation": g, "key": k.hex()} for c, g, k in class_keys],
            }
        )

    def refused(name, copies, reason):
        cases.append({"name": name, "copies": [copy.hex() for copy in copies], "expect": "notAvailable", "reason": reason})

    opens("two equal copies", [KEYBAG, KEYBAG])
    opens("one copy", [KEYBAG], damaged=1)
    opens("first copy altered", [flipped(KEYBAG, 40), KEYBAG], damaged=1)
    opens("second copy altered", [KEYBAG, flipped(KEYBAG, len(KEYBAG) - 1)], damaged=1)
    opens("first copy truncated", [KEYBAG[:-1], KEYBAG], damaged=1)
    opens("first copy empty", [b"", KEYBAG], damaged=1)
    opens("first copy claims a newer version without authentication", [flipped(KEYBAG, 4, 2), KEYBAG], damaged=1)
    newer = keybag(keybag_fields(generation=2))
    opens("second copy is an authentic keybag of a later generation", [KEYBAG, newer], damaged=1, generation=2)
    opens("first copy is an authentic keybag of a later generation", [newer, KEYBAG], damaged=1, generation=2)
    parameters = b"\x02" + "keychain-device-secret".encode()
    with_parameters = keybag(keybag_fields(protector=parameters))
    opens("a protector with parameters", [with_parameters] * 2, protector=parameters)
    high = keybag(keybag_fields(generation=2**64 - 1))
    opens("the highest generation", [high] * 2, generation=2**64 - 1)
    renewed = keybag(keybag_fields(CLASS_KEYS_TWO_GENERATIONS, generation=7))
    opens("a class key in two generations", [renewed] * 2, class_keys=CLASS_KEYS_TWO_GENERATIONS, generation=7)

    damaged = "damaged"
    refused("both copies altered", [flipped(KEYBAG, 40), flipped(KEYBAG, 41)], damaged)
    refused("both copies truncated", [KEYBAG[:-1]] * 2, damaged)
    refused("only the authentication code is left", [KEYBAG[-32:]] * 2, damaged)
    refused("both copies empty", [b"", b""], damaged)
    refused("no copy", [], damaged)
    refused("a byte appended", [KEYBAG + b"\0"] * 2, damaged)
    foreign_key = hkdf(fixed("another device secret"), STORE_ID, b"keychain keybag mac v1", 32)
    refused("authenticated under another device secret", [keybag(key=foreign_key)] * 2, damaged)
    other_store_key = hkdf(DEVICE_SECRET, OTHER_STORE_ID, b"keychain keybag mac v1", 32)
    refused("of another store", [keybag(store_id=OTHER_STORE_ID, key=other_store_key)] * 2, damaged)

    newer = "newer version"
    refused("version 2", [keybag(version=2)] * 2, newer)
    refused("version 0", [keybag(version=0)] * 2, newer)
    for tag in (6, 16, 20, 0xFFFF):
        refused("a field with tag %d" % tag, [keybag(keybag_fields() + [(tag, b"later")])] * 2, newer)
    refused("protector kind 4", [keybag(replaced(2, b"\x04"))] * 2, newer)
    entries = [class_key_entry(*entry) for entry in CLASS_KEYS]
    refused("a class key of class 13", [keybag(replaced(5, b"".join(
        entries + [class_key_entry(13, 1, fixed("thirteenth"))])))] * 2, newer)

    form = "not in any known form"
    refused("a presence key pair without a passcode", [keybag(keybag_fields() + [(17, presence_field())])] * 2, form)
    for name, field in (("cut short", presence_field()[:-1]), ("with more behind", presence_field() + b"\0"), ("empty", b"")):
        refused("a presence key pair %s" % name, [keybag(passcode_fields() + [(17, field)])] * 2, form)
    refused("protector kind 3, and nothing of what a chip sealed", [keybag(replaced(2, b"\x03"))] * 2, form)
    refused("a field with tag 19 of a later version", [keybag(keybag_fields() + [(19, b"later")])] * 2, newer)
    refused("a field with tag 19 and nothing in it", [keybag(keybag_fields() + [(19, b"")])] * 2, form)
    for tag in (17, 18):
        refused("a field with tag %d and a wrong length" % tag, [keybag(keybag_fields() + [(tag, b"later")])] * 2, form)
    refused("a class key under a passcode key, without a passcode", [keybag(replaced(5, b"".join(
        [class_key_entry(*CLASS_KEYS[0], wrapping=2)] + entries[1:])))] * 2, form)
    refused("other magic", [keybag(magic=b"KBAH")] * 2, form)
    refused("another store id under the right key", [keybag(store_id=OTHER_STORE_ID)] * 2, form)
    refused("fields out of order", [keybag(list(reversed(keybag_fields())))] * 2, form)
    refused("a field twice", [keybag(keybag_fields()[:1] + keybag_fields())] * 2, form)
    for tag in range(1, 6):
        refused("no field %d" % tag, [keybag([f for f in keybag_fields() if f[0] != tag])] * 2, form)
    refused("no fields", [keybag([])] * 2, form)
    refused("a byte after the fields", [keybag(trailing=b"\0")] * 2, form)
    refused("a field longer than the keybag", [keybag(trailing=u16(6) + u32(0xFFFFFFFF))] * 2, form)
    refused("a generation of 7 bytes", [keybag(replaced(1, bytes(7)))] * 2, form)
    refused("a protector without a kind", [keybag(replaced(2, b""))] * 2, form)
    refused("an index key of 41 bytes", [keybag(replaced(3, keybag_fields()[2][1] + b"\0"))] * 2, form)
    refused("an index key under another key", [keybag(replaced(3, aes_key_wrap(fixed("x"), INDEX_KEY)))] * 2, form)
    refused("a row-tag key of 39 bytes", [keybag(replaced(4, keybag_fields()[3][1][:-1]))] * 2, form)
    refused("class keys cut short", [keybag(replaced(5, b"".join(entries)[:-1]))] * 2, form)
    refused("no class keys", [keybag(replaced(5, b""))] * 2, form)
    refused("a class without a key", [keybag(replaced(5, b"".join(entries[1:])))] * 2, form)
    refused("class keys out of order", [keybag(replaced(5, b"".join(reversed(entries))))] * 2, form)
    refused("a class key twice", [keybag(replaced(5, b"".join(entries[:1] + entries)))] * 2, form)
    refused("a class key of generation 0", [keybag(replaced(5, b"".join(
        [class_key_entry(AK, 0, fixed("zeroth"))] + entries)))] * 2, form)
    refused("whenPasscodeSet under the device key", [keybag(replaced(5, b"".join(
        entries + [class_key_entry(AKPU, 1, fixed("class key 12"))])))] * 2, form)
    refused("a wrong check value", [keybag(replaced(5, b"".join(
        [class_key_entry(*CLASS_KEYS[0], check=bytes(16))] + entries[1:])))] * 2, form)
    swapped = class_key_entry(AK, 1, CLASS_KEYS[1][2], check=entries[0][-16:])
    refused("the key of another class", [keybag(replaced(5, b"".join([swapped] + entries[1:])))] * 2, form)

    def passcode_replaced(name, reason, index=None, entry=None, added=None, record=None):
        changed = [passcode_entry(*entry) for entry in PASSCODE_CLASS_KEYS]
        if index is not None:
            changed[index : index + 1] = [] if entry is None else [entry]
        if added is not None:
            changed.append(added)
        refused(name, [keybag(passcode_fields(record=record, entries=changed))] * 2, reason)

    at = {entry[:2]: index for index, entry in enumerate(PASSCODE_CLASS_KEYS)}
    for code, generation, key in PASSCODE_CLASS_KEYS:
        wrapping = 1 if is_protected(code) else 2
        passcode_replaced("class %d, generation %d, under the wrong key beside a passcode" % (code, generation), form,
                          at[code, generation], passcode_entry(code, generation, key, wrapping=wrapping))
    passcode_replaced("a passcode, and no key of whenPasscodeSet", form, at[AKPU, 2])
    passcode_replaced("a passcode, and no key of always", form, at[DK, 1])
    passcode_replaced("a class key under wrapping 3", newer, at[AK, 2], class_key_entry(AK, 2, fixed("key"), wrapping=3))
    passcode_replaced("a passcode, and class 13", newer, added=class_key_entry(13, 2, fixed("thirteenth"), wrapping=2))
    passcode_replaced("a wrong check value beside a passcode", form, at[DK, 1], passcode_entry(DK, 1, CLASS_KEYS[2][2], check=bytes(16)))
    passcode_replaced("an empty passcode record", form, record=b"")
    passcode_replaced("a passcode record cut short", form, record=passcode_record()[:-1])
    passcode_replaced("a passcode record with a byte more", form, record=passcode_record() + b"\0")
    passcode_replaced("derivation 0", newer, record=passcode_record(derivation=0))
    passcode_replaced("derivation 2", newer, record=passcode_record(derivation=2) + b"later parameters")
    for cost in ((9, 8, 1), (16, 0, 1), (16, 17, 1), (16, 8, 0), (16, 8, 17), (16, 1, 1), (21, 8, 1), (20, 8, 5), (64, 8, 1),
                 (255, 2**32 - 1, 2**32 - 1)):
        passcode_replaced("N = 2^%d, r = %d, p = %d" % cost, "refused", record=passcode_record(cost))
    refused("keys under a passcode that is not there", [keybag(passcode_fields()[:-1])] * 2, form)
    refused("a passcode, and keys without one", [keybag(keybag_fields() + [(16, passcode_record())])] * 2, form)
    return {
        "format": "keybag version 1",
        "storeID": STORE_ID.hex(),
        "deviceSecret": DEVICE_SECRET.hex(),
        "cases": cases,
    }


# Attributes

ACCOUNT, SERVICE, GROUP, DOMAIN, SERVER, PROTOCOL, AUTH, PORT, PATH = range(1, 10)
LABEL, GENERIC, CREATOR, ACCESSIBLE, SYNC, TOMB, VIEW_HINT, TOKEN, USER = 12, 15, 16, 22, 24, 25, 26, 27, 29
CREATED, MODIFIED = 30, 31
TYPE_CODES = {"text": 1, "data": 2, "number": 3, "date": 4}


def value_bytes(kind, value):
    if kind == "text":
        return value.encode()
    if kind == "data":
        return bytes.fromhex(value)
    if kind == "number":
        return struct.pack("<q", int(value))
    return struct.pack("<d", value)


def attribute(number, kind, content):
    return bytes([number, TYPE_CODES[kind]]) + counted(content)


def encoded_attributes(entries):
    return b"\x01" + b"".join(attribute(n, kind, value_bytes(kind, value)) for n, kind, value in sorted(entries))


def entries_json(entries):
    # Numbers as text: JSON readers may take a large one for a binary fraction.
    return [
        {"attribute": n, "type": kind, "value": str(value) if kind == "number" else value} if kind != "date"
        else {"attribute": n, "type": kind, "seconds": value}
        for n, kind, value in sorted(entries)
    ]


SKROOB = [
    (ACCOUNT, "text", "Skroob"),
    (SERVICE, "text", "the combination"),
    (GROUP, "text", "com.example.spaceball"),
    (ACCESSIBLE, "text", "ak"),
    (SYNC, "number", 0),
    (CREATED, "date", 700000000.25),
    (MODIFIED, "date", 700000000.5),
]


def attributes_vectors():
    valid = {
        "no attributes": [],
        "a generic password": SKROOB,
        "empty text and empty data": [(ACCOUNT, "text", ""), (GENERIC, "data", "")],
        "text beyond ASCII": [(LABEL, "text", "Zażółć 🔑 \u0000 e\u0301")],
        "data that is not UTF-8": [(ACCOUNT, "data", "ff00fe")],
        "numbers": [(PORT, "number", 443), (CREATOR, "number", -1), (SYNC, "number", 2**63 - 1), (TOMB, "number", -(2**63))],
        "dates": [(CREATED, "date", -0.5), (MODIFIED, "date", 1e300)],
        "each attribute number": [
            (n, "text", str(n)) for n in list(range(1, 23)) + [24, 25, 26, 27, 29, 30, 31, 32]
        ],
        "a long text": [(PATH, "text", "/" * 70000)],
    }
    good = encoded_attributes(SKROOB)
    account = attribute(ACCOUNT, "text", b"a")
    service = attribute(SERVICE, "text", b"b")
    refused = {
        "nothing": b"",
        "version 0": b"\0" + good[1:],
        "version 2": b"\2" + good[1:],
        "cut in a value": good[:-1],
        "cut in a byte count": b"\1" + account + bytes([SERVICE, 1, 5, 0]),
        "cut after a number": b"\1" + account + bytes([SERVICE]),
        "a byte after the last": good + b"\0",
        "attributes out of order": b"\1" + service + account,
        "an attribute twice": b"\1" + account + account,
        "attribute 0": b"\1" + attribute(0, "text", b"a"),
        "attribute 23, not in use": b"\1" + attribute(23, "text", b"a"),
        "attribute 28, not in use": b"\1" + attribute(28, "text", b"a"),
        "attribute 33, not in use": b"\1" + attribute(33, "text", b"a"),
        "type 0": b"\1" + bytes([ACCOUNT, 0]) + counted(b"a"),
        "type 5": b"\1" + bytes([ACCOUNT, 5]) + counted(b"a"),
        "text that is not UTF-8": b"\1" + attribute(ACCOUNT, "text", b"\xff"),
        "text with half a surrogate pair": b"\1" + attribute(ACCOUNT, "text", b"\xed\xa0\x80"),
        "a number of 7 bytes": b"\1" + attribute(PORT, "number", bytes(7)),
        "a number of 9 bytes": b"\1" + attribute(PORT, "number", bytes(9)),
        "a date of 4 bytes": b"\1" + attribute(CREATED, "date", bytes(4)),
        "a byte count beyond the end": b"\1" + bytes([ACCOUNT, 1]) + u32(2) + b"a",
        "the highest byte count": b"\1" + bytes([ACCOUNT, 1]) + u32(0xFFFFFFFF) + b"a",
    }
    cases = [
        {"name": name, "expect": "parses", "entries": entries_json(entries), "encoded": encoded_attributes(entries).hex()}
        for name, entries in valid.items()
    ]
    cases += [{"name": name, "expect": "refused", "encoded": data.hex()} for name, data in refused.items()]
    return {"format": "attributes version 1", "cases": cases}


# Digests

GENERIC_PASSWORD, INTERNET_PASSWORD = 1, 2
COMPARED_AS_NUMBERS = {6, 8, 16, 17, 18, 19, 20, 21}


def compared_bytes(kind, value):
    if kind == "number":
        return struct.pack("<i" if -(2**31) <= value < 2**31 else "<q", value)
    return value_bytes(kind, value)


def digest(purpose, item_class, values):
    message = bytes([1, purpose, item_class, len(values)])
    for number, kind, value in values:
        content = compared_bytes(kind, value)
        form = 1 if number in COMPARED_AS_NUMBERS and kind == "number" else 0
        message += bytes([number, form]) + u64(len(content))[:6] + content
    return mac(INDEX_KEY, message)[:16]


def one_digest(item_class, number, kind, value):
    return digest(1, item_class, [(number, kind, value)])


def digest_vectors():
    single = [
        ("a text", GENERIC_PASSWORD, ACCOUNT, "text", "a"),
        ("data of the same bytes", GENERIC_PASSWORD, ACCOUNT, "data", "61"),
        ("another class", INTERNET_PASSWORD, ACCOUNT, "text", "a"),
        ("another attribute", GENERIC_PASSWORD, SERVICE, "text", "a"),
        ("an empty text", GENERIC_PASSWORD, ACCOUNT, "text", ""),
        ("empty data", GENERIC_PASSWORD, ACCOUNT, "data", ""),
        ("a number in a text attribute", GENERIC_PASSWORD, ACCOUNT, "number", 1),
        ("data of that number's bytes", GENERIC_PASSWORD, ACCOUNT, "data", "01000000"),
        ("a number in a number attribute", INTERNET_PASSWORD, PORT, "number", 1),
        ("text of that number's bytes", INTERNET_PASSWORD, PORT, "text", "\u0001\u0000\u0000\u0000"),
        ("a negative number", INTERNET_PASSWORD, PORT, "number", -1),
        ("a number of 8 bytes", INTERNET_PASSWORD, PORT, "number", 2**31),
        ("a protocol as text", INTERNET_PASSWORD, PROTOCOL, "text", "http"),
        ("text beyond ASCII", GENERIC_PASSWORD, LABEL, "text", "Zażółć 🔑"),
        ("a text longer than a hash block", GENERIC_PASSWORD, SERVICE, "text", "service " * 100),
        ("a text of 64 KiB", GENERIC_PASSWORD, ACCOUNT, "text", "x" * 65536),
    ]
    several = [
        ("no values", GENERIC_PASSWORD, []),
        ("one value, which is not the digest of one", GENERIC_PASSWORD, [(ACCOUNT, "text", "a")]),
        ("the rest of a generic password's key", GENERIC_PASSWORD, [
            (GROUP, "text", "com.example.spaceball"), (SYNC, "number", 0), (VIEW_HINT, "text", ""), (TOKEN, "text", ""),
            (USER, "data", "")]),
        ("border between two values, here", GENERIC_PASSWORD, [(VIEW_HINT, "text", "ab"), (TOKEN, "text", "c")]),
        ("border between two values, there", GENERIC_PASSWORD, [(VIEW_HINT, "text", "a"), (TOKEN, "text", "bc")]),
        ("the same in another order", GENERIC_PASSWORD, [(TOKEN, "text", "c"), (VIEW_HINT, "text", "ab")]),
        ("the rest of an internet password's key", INTERNET_PASSWORD, [
            (GROUP, "text", "g"), (DOMAIN, "text", ""), (PROTOCOL, "text", "http"), (AUTH, "text", "dflt"),
            (PORT, "number", 443), (PATH, "text", "/"), (SYNC, "number", 0)]),
    ]
    cases = [
        {"name": name, "purpose": "one value", "itemClass": c, "values": unsorted_json([(n, kind, value)]),
         "digest": one_digest(c, n, kind, value).hex()}
        for name, c, n, kind, value in single
    ]
    cases += [
        {"name": name, "purpose": "several values", "itemClass": c, "values": unsorted_json(values),
         "digest": digest(2, c, values).hex()}
        for name, c, values in several
    ]
    return keyed({"format": "index digests version 1", "cases": cases})


def unsorted_json(values):
    return [{"attribute": n, "type": kind, "value": str(value)} for n, kind, value in values]


def keyed(vectors):
    """With what opens the store that the vectors belong to."""
    return {"storeID": STORE_ID.hex(), "deviceSecret": DEVICE_SECRET.hex(), "keybag": KEYBAG.hex(), **vectors}


# Headers


def header_json(version=1, item_class=GENERIC_PASSWORD, item_id=None, accessibility=AK, generation=1, revision=None,
                synchronizable=False, tombstone=False, service=None, account=None, remaining=None, group=None,
                others=(), constraints=None):
    return {
        "formatVersion": version,
        "itemClass": item_class,
        "itemID": (item_id or fixed("item id", 16)).hex(),
        "accessibility": accessibility,
        "classKeyGeneration": generation,
        "revision": (revision or fixed("revision", 16)).hex(),
        "isSynchronizable": synchronizable,
        "isTombstone": tombstone,
        "serviceDigest": (service or fixed("service digest", 16)).hex(),
        "accountDigest": (account or fixed("account digest", 16)).hex(),
        "remainingKeyDigest": (remaining or fixed("remaining digest", 16)).hex(),
        "accessGroupDigest": (group or fixed("group digest", 16)).hex(),
        "attributeDigests": b"".join(bytes([n]) + d for n, d in others).hex(),
        "constraints": None if constraints is None else constraints.hex(),
    }


def encoded_header(header, store_id=STORE_ID):
    get = lambda name: bytes.fromhex(header[name])
    data = bytes([header["formatVersion"]]) + store_id + bytes([header["itemClass"]]) + get("itemID")
    data += bytes([header["accessibility"]]) + u32(header["classKeyGeneration"]) + get("revision")
    data += bytes([header["isSynchronizable"] * 1 | header["isTombstone"] * 2])
    data += get("serviceDigest") + get("accountDigest") + get("remainingKeyDigest") + get("accessGroupDigest")
    data += counted(get("attributeDigests"))
    return data + (b"\0" if header["constraints"] is None else b"\1" + counted(get("constraints")))


def header_vectors():
    headers = {
        "the least": header_json(),
        "an internet password": header_json(item_class=INTERNET_PASSWORD, accessibility=CKU),
        "synchronizable": header_json(synchronizable=True),
        "a tombstone": header_json(synchronizable=True, tombstone=True),
        "further digests": header_json(others=[(LABEL, fixed("a", 16)), (GENERIC, fixed("b", 16)), (USER, fixed("c", 16))]),
        "the highest generation": header_json(generation=2**32 - 1),
        "constraints": header_json(constraints=b"a tree"),
        "empty constraints": header_json(constraints=b""),
        "a later format version": header_json(version=255),
    }
    cases = [{"name": n, "storeID": STORE_ID.hex(), "header": h, "encoded": encoded_header(h).hex()} for n, h in headers.items()]
    cases.append({"name": "another store", "storeID": OTHER_STORE_ID.hex(), "header": header_json(),
                  "encoded": encoded_header(header_json(), OTHER_STORE_ID).hex()})
    one, two = bytes([LABEL]) + fixed("a", 16), bytes([GENERIC]) + fixed("b", 16)
    packed = [
        {"name": "none", "expect": "parses", "bytes": ""},
        {"name": "two", "expect": "parses", "bytes": (one + two).hex()},
        {"name": "out of order", "expect": "refused", "bytes": (two + one).hex()},
        {"name": "the same attribute twice", "expect": "refused", "bytes": (one + one).hex()},
        {"name": "cut short", "expect": "refused", "bytes": (one + two)[:-1].hex()},
        {"name": "attribute 0", "expect": "refused", "bytes": (b"\0" + one[1:]).hex()},
        {"name": "attribute 23, not in use", "expect": "refused", "bytes": (bytes([23]) + one[1:]).hex()},
    ]
    return {"format": "row header version 1", "cases": cases, "packedDigests": packed}


# Rows


def padded_count(content_count):
    needed = content_count + 9
    step = 64
    if needed > 4096:
        exponent = int(math.log2(needed))
        while 2 ** (exponent + 1) <= needed:
            exponent += 1
        while 2**exponent > needed:
            exponent -= 1
        step = 2 ** (exponent - len(bin(exponent)[2:]))
    return -(-needed // step) * step


def pad(content):
    """What of `None` stands for no content at all."""
    data = b"" if content is None else content
    zeros = padded_count(len(data)) - len(data) - 9
    return data + bytes(zeros) + bytes([content is not None]) + u64(len(data))


def seal_part(part, header, wrapped, item_key, plaintext, store_id=STORE_ID):
    associated = bytes([part]) + encoded_header(header, store_id) + counted(wrapped)
    return AESGCM(item_key).encrypt(bytes(11) + bytes([part]), plaintext, associated)


CLASS_KEY_OF = {(code, generation): key for code, generation, key in CLASS_KEYS}


def tag(header, wrapped, attributes, secret, store_id=STORE_ID):
    return mac(ROW_TAG_KEY, counted(encoded_header(header, store_id)) + counted(wrapped) + counted(attributes) + counted(secret))


def row(header, plain_attributes, plain_secret, item_key, store_id=STORE_ID, wrapped=None, class_key=None):
    """A row whose two plaintexts are given as they are, padding and all."""
    if class_key is None:
        class_key = CLASS_KEY_OF.get((header["accessibility"], header["classKeyGeneration"]), fixed("no class key"))
    if wrapped is None:
        wrapped = aes_key_wrap(class_key, item_key)
    attributes = seal_part(1, header, wrapped, item_key, plain_attributes, store_id)
    secret = seal_part(2, header, wrapped, item_key, plain_secret, store_id)
    return {
        "header": header,
        "wrappedItemKey": wrapped.hex(),
        "sealedAttributes": attributes.hex(),
        "sealedSecret": secret.hex(),
        "tag": tag(header, wrapped, attributes, secret, store_id).hex(),
    }


def skroob_header(**changes):
    settings = {
        "service": one_digest(GENERIC_PASSWORD, SERVICE, "text", "the combination"),
        "account": one_digest(GENERIC_PASSWORD, ACCOUNT, "text", "Skroob"),
        "group": one_digest(GENERIC_PASSWORD, GROUP, "text", "com.example.spaceball"),
    }
    settings.update(changes)
    return header_json(**settings)


def row_vectors():
    cases = []
    plain = pad(encoded_attributes(SKROOB))

    def opens(name, secret, entries=SKROOB, **changes):
        header = skroob_header(**changes)
        item_key = fixed("item key: " + name)
        cases.append(
            {
                "name": name,
                "expect": "opens",
                "isIntact": True,
                "row": row(header, pad(encoded_attributes(entries)), pad(secret), item_key),
                "itemKey": item_key.hex(),
                "attributes": encoded_attributes(entries).hex(),
                "secret": None if secret is None else secret.hex(),
            }
        )

    def refused(name, damaged_row, intact=False, part="attributes", expect="decode"):
        """Part: the first that does not open. With `secret` the attributes can still be read."""
        cases.append({"name": name, "expect": expect, "isIntact": intact, "firstDamagedPart": part, "row": damaged_row})

    opens("a short secret", b"12345")
    opens("no secret", None)
    opens("an empty secret", b"")
    opens("a secret that ends with zeros", b"12345\0\0\0")
    opens("a secret of zeros only", bytes(64))
    opens("a secret that just fits", fixed("secret", 55))
    opens("a secret that just does not fit", fixed("secret", 56))
    opens("a secret above 4 KiB", fixed("secret", 5000))
    opens("a secret above 64 KiB", fixed("secret", 70001))
    opens("no attributes", b"12345", entries=[])
    for code in (AK, CK, DK, AKU, CKU, DKU):
        opens("class %d" % code, b"12345", accessibility=code)
    opens("synchronizable, with further digests", b"12345", synchronizable=True, others=[(LABEL, fixed("label", 16))])
    opens("a tombstone", None, entries=SKROOB[:3], synchronizable=True, tombstone=True)

    key = fixed("item key: refused")
    good = row(skroob_header(), plain, pad(b"12345"), key)

    def altered(name, change):
        damaged = json.loads(json.dumps(good))
        change(damaged)
        return damaged

    def part_change(field, change):
        def apply(target):
            target[field] = change(bytes.fromhex(target[field])).hex()
        return apply

    def header_change(field, value):
        def apply(target):
            target["header"][field] = value
        return apply

    for field, part in (("wrappedItemKey", "attributes"), ("sealedAttributes", "attributes"), ("sealedSecret", "secret")):
        for where, index in (("first", 0), ("last", -1)):
            name = "%s byte of %s altered" % (where, field)
            refused(name, altered(name, part_change(field, lambda data: flipped(data, index))), part=part)
        for name, change in (
            ("%s cut short" % field, lambda data: data[:-1]),
            ("%s longer" % field, lambda data: data + b"\0"),
            ("%s empty" % field, lambda data: b""),
            ("%s of one byte" % field, lambda data: data[:1]),
        ):
            refused(name, altered(name, part_change(field, change)), part=part)
    refused("sealedSecret of a tag only", altered("", part_change("sealedSecret", lambda data: data[-16:])), part="secret")
    for field, value in (
        ("itemClass", INTERNET_PASSWORD), ("itemID", fixed("other", 16).hex()), ("revision", fixed("other", 16).hex()),
        ("isSynchronizable", True), ("isTombstone", True), ("serviceDigest", fixed("other", 16).hex()),
        ("accountDigest", fixed("other", 16).hex()), ("remainingKeyDigest", fixed("other", 16).hex()),
        ("accessGroupDigest", fixed("other", 16).hex()), ("attributeDigests", (bytes([LABEL]) + fixed("other", 16)).hex()),
        ("accessibility", AKU), ("formatVersion", 0),
    ):
        refused("%s altered" % field, altered("", header_change(field, value)))
    refused("constraints added", altered("", header_change("constraints", "")), expect="newer")
    refused("service and account digests swapped", altered("", lambda target: target["header"].update(
        serviceDigest=target["header"]["accountDigest"], accountDigest=target["header"]["serviceDigest"])))

    other = row(skroob_header(item_id=fixed("other item", 16), revision=fixed("other revision", 16)), plain, pad(b"other"),
                fixed("item key: other"))
    for field, part in (("wrappedItemKey", "attributes"), ("sealedAttributes", "attributes"), ("sealedSecret", "secret")):
        refused("%s of another row" % field, altered("", lambda target: target.update({field: other[field]})), part=part)
    refused("everything sealed from another row", {**other, "header": good["header"]})
    refused("the parts swapped", {**good, "sealedAttributes": good["sealedSecret"], "sealedSecret": good["sealedAttributes"]})
    refused("of another store", row(skroob_header(), plain, pad(b"12345"), key, store_id=OTHER_STORE_ID))
    refused("under another class key", row(skroob_header(), plain, pad(b"12345"), key, class_key=CLASS_KEYS[1][2]), intact=True)

    def tagged(name, attributes=plain, secret=pad(b"12345"), part="secret", **changes):
        """As a faulty writer with all keys would make it: only its inside is wrong."""
        refused(name, row(skroob_header(**changes), attributes, secret, key), intact=True, part=part)

    zeros = 64 - 9 - 5
    tagged("padding that is not zero, at its start", secret=b"12345\1" + bytes(zeros - 1) + b"\1" + u64(5))
    tagged("padding that is not zero, at its end", secret=b"12345" + bytes(zeros - 1) + b"\1" + b"\1" + u64(5))
    tagged("a presence of 2", secret=b"12345" + bytes(zeros) + b"\2" + u64(5))
    tagged("an absent secret that is not empty", secret=b"12345" + bytes(zeros) + b"\0" + u64(5))
    tagged("a byte count beyond the part", secret=bytes(55) + b"\1" + u64(56))
    tagged("the highest byte count", secret=bytes(55) + b"\1" + u64(2**64 - 1))
    tagged("a byte count of 2^63", secret=bytes(55) + b"\1" + u64(2**63))
    tagged("a secret without padding", secret=b"12345" + b"\1" + u64(5))
    tagged("a secret with too much padding", secret=b"12345" + bytes(zeros + 64) + b"\1" + u64(5))
    tagged("a secret shorter than its trailer", secret=bytes(8))
    tagged("an empty plaintext", secret=b"")
    tagged("attributes that are absent", attributes=pad(None), part="attributes")
    tagged("attributes of version 2", attributes=pad(b"\2"), part="attributes")
    tagged("attributes that are empty", attributes=pad(b""), part="attributes")
    long_key = row(skroob_header(), plain, pad(b"12345"), key, wrapped=aes_key_wrap(CLASS_KEYS[0][2], key + key))
    refused("a wrapped key of 72 bytes", long_key, intact=True)
    refused("a later format version", row(skroob_header(version=2), plain, pad(b"12345"), key), intact=None, expect="newer")
    refused("access control", row(skroob_header(constraints=b"tree"), plain, pad(b"12345"), key), intact=True, expect="newer")
    cases.append({**cases[0], "name": "tag altered", "isIntact": False, "expect": "opens",
                  "row": {**cases[0]["row"], "tag": flipped(bytes.fromhex(cases[0]["row"]["tag"]), 31).hex()}, "isResealable": False})
    cases.append({**cases[0], "name": "tag cut short", "isIntact": False, "expect": "opens",
                  "row": {**cases[0]["row"], "tag": cases[0]["row"]["tag"][:32]}, "isResealable": False})
    cases.append({**cases[0], "name": "no tag", "isIntact": False, "expect": "opens",
                  "row": {**cases[0]["row"], "tag": ""}, "isResealable": False})
    lengths = [0, 1, 54, 55, 56, 119, 120, 4086, 4087, 4088, 4343, 4344, 8182, 8183, 8184, 65526, 65527, 65528, 10 * 2**20, 2**32, 2**53]
    return keyed({
        "format": "row version 1",
        "cases": cases,
        "paddedByteCounts": [{"content": n, "padded": padded_count(n)} for n in lengths],
    })


# Backups

BACKUP_ID = fixed("backup id", 16)
BACKUP_SALT = fixed("backup salt")
BACKUP_PASSWORD = "12345, as on my luggage"
BACKUP_DATE = 700000001.5
CHUNK = 65536


def backup_item(secret, name="Skroob", code=AK, item_class=b"genp", entries=None, reference=None):
    attributes = SKROOB if entries is None else entries
    if entries is None:
        attributes = [e for e in SKROOB if e[0] not in (ACCOUNT, ACCESSIBLE)]
        attributes += [(ACCOUNT, "text", name), (ACCESSIBLE, "text", {AK: "ak", CK: "ck", DK: "dk", AKU: "aku"}[code])]
    return {
        "reference": reference or item_class + fixed("item " + name, 16),
        "accessibility": code,
        "attributes": encoded_attributes(attributes),
        "secret": secret,
    }


def backup_record(item, presence=None):
    data = b"\1" + item["reference"] + bytes([item["accessibility"]]) + counted(item["attributes"])
    present = (item["secret"] is not None) if presence is None else presence
    return data + bytes([present]) + counted(item["secret"] or b"")


def backup_end(count, device_only=0, constrained=0, unreadable=0):
    return b"\2" + u64(count) + u64(device_only) + u64(constrained) + u64(unreadable)


def backup_keys(password=BACKUP_PASSWORD, exponent=10, block=8, parallel=1):
    stretched = hashlib.scrypt(
        password.encode(), salt=BACKUP_SALT, n=2**exponent, r=block, p=parallel, maxmem=2**31 - 1, dklen=32)
    return [hkdf(stretched, BACKUP_ID, info, 32) for info in (b"keychain backup header mac v1", b"keychain backup chunks v1")]


def backup_header(magic=b"KBAK", version=1, kdf=1, exponent=10, block=8, parallel=1, chunk=CHUNK, key=None, more=b"", count=None):
    if key is None:
        key = backup_keys()[0]
    fields = BACKUP_ID + bytes([kdf]) + BACKUP_SALT + bytes([exponent]) + u32(block) + u32(parallel)
    fields += u32(chunk) + struct.pack("<d", BACKUP_DATE) + more
    body = magic + u16(version) + u16(len(fields) + 48 if count is None else count) + fields
    body += mac(key, body)
    return body + hashlib.sha256(body).digest()[:8]


def backup(plaintext, header=None, chunk_key=None, chunks=None):
    header = header or backup_header()
    key = AESGCM(chunk_key or backup_keys()[1])
    if chunks is None:
        chunks = [plaintext[at : at + CHUNK] for at in range(0, len(plaintext), CHUNK)]
    data = header
    for number, chunk in enumerate(chunks):
        nonce = bytes(3) + u64(number) + bytes([number == len(chunks) - 1])
        data += key.encrypt(nonce, chunk, hashlib.sha256(header).digest())
    return data


def backup_vectors():
    cases = []

    def opens(name, items, left=(0, 0, 0), password=BACKUP_PASSWORD, **cost):
        plaintext = b"".join(map(backup_record, items)) + backup_end(len(items), *left)
        keys = backup_keys(password, **cost)
        file = backup(plaintext, backup_header(key=keys[0], **cost), keys[1])
        cases.append(
            {
                "name": name,
                "expect": "opens",
                "password": password,
                "items": [
                    {
                        "reference": item["reference"].hex(),
                        "accessibility": item["accessibility"],
                        "attributes": item["attributes"].hex(),
                        "secretDigest": None if item["secret"] is None else hashlib.sha256(item["secret"]).hexdigest(),
                    }
                    for item in items
                ],
                "leftBehind": {"thisDeviceOnly": left[0], "constrained": left[1], "unreadable": left[2]},
                "file": file.hex(),
            }
        )
        return file

    def refused(name, file, expect="decode", password=BACKUP_PASSWORD):
        cases.append({"name": name, "expect": expect, "password": password, "file": file.hex()})

    one = backup_item(b"12345")
    good = opens("one item", [one])
    opens("no items", [])
    opens("nothing but what stayed behind", [], left=(1, 2, 2**40))
    internet = [(ACCOUNT, "text", "Vespa"), (SERVER, "text", "druidia.example"), (GROUP, "text", "group.example"),
                (ACCESSIBLE, "text", "dk"), (SYNC, "number", 1), (PORT, "number", 443)]
    opens("each class that may migrate, and both item classes", [
        backup_item(b"a", "ak", AK), backup_item(b"b", "ck", CK), backup_item(b"c", "dk", DK),
        backup_item(b"d", "Vespa", DK, b"inet", internet)])
    opens("no secret, and an empty one", [backup_item(None, "none"), backup_item(b"", "empty")])
    opens("a password beyond ASCII", [one], password="Zażółć 🔑")
    opens("another cost", [one], exponent=11, block=4, parallel=3)
    opens("two chunks, with a record over their border", [
        backup_item(b"before"), backup_item(bytes(range(256)) * 256, "large", CK), backup_item(b"after", "last", DK)])
    overhead = len(backup_record(backup_item(b""))) + len(backup_end(1))
    opens("exactly one chunk", [backup_item(b"x" * (CHUNK - overhead))])

    refused("another password", good, "authFailed", password="12346")
    refused("an empty file", b"")
    refused("the header alone", good[:118])
    refused("half the header", good[:60])
    refused("no tag", good[:-1])
    refused("a byte appended", good + b"\0")
    refused("other magic", backup(backup_end(0), backup_header(magic=b"KBAG")))
    refused("checksum altered", flipped(good, 117))
    refused("code altered", flipped(good, 100))
    refused("version altered", flipped(good, 4, 2))
    refused("a byte count beyond the file", backup(backup_end(0), backup_header(count=4000)))
    refused("a byte count of 0", backup(backup_end(0), backup_header(count=0)))
    refused("a longer header", backup(backup_end(0), backup_header(more=b"more")))
    newer = "notAvailable"
    refused("version 2", backup(backup_end(0), backup_header(version=2)), newer)
    refused("version 2 with a longer header", backup(backup_end(0), backup_header(version=2, more=b"more")), newer)
    refused("another derivation", backup(backup_end(0), backup_header(kdf=2)), newer)
    refused("other chunks", backup(backup_end(0), backup_header(chunk=2 * CHUNK)), newer)
    for name, cost in {
        "too few rounds": {"exponent": 9}, "too many rounds": {"exponent": 31}, "no blocks": {"block": 0},
        "blocks without end": {"block": 0xFFFFFFFF}, "no parallelism": {"parallel": 0},
        "parallelism without end": {"parallel": 0xFFFFFFFF}, "2 GiB": {"exponent": 21},
    }.items():
        refused("a cost of " + name, backup(backup_end(0), backup_header(**cost)), newer)

    record, end = backup_record(one), backup_end(1)

    def written(name, plaintext, **changes):
        """As a faulty writer with the password would make it: only its inside is wrong."""
        refused(name, backup(plaintext, **changes))

    written("no end", record)
    written("no plaintext", b"", chunks=[b""])
    written("an empty last chunk", b"", chunks=[record + backup_item(bytes(CHUNK))["secret"][: CHUNK - len(record)], b""])
    written("a first chunk that is not full", b"", chunks=[record, end])
    written("one item too few", record + backup_end(2))
    written("one item too many", record + record + end)
    written("a byte after the end", record + end + b"\0")
    written("an item after the end", end + record)
    written("two ends", record + end + end)
    written("an end cut short", record + end[:-1])
    written("a record of kind 0", b"\0" + end)
    written("a record of kind 3", b"\3" + end)
    written("a count of 2^63", record + backup_end(2**63))
    written("an item of this device only", backup_record(backup_item(b"1", code=AKU)) + end)
    written("accessibility 13", record[:21] + b"\x0d" + record[22:] + end)
    written("an accessibility that the attributes deny", record[:21] + bytes([CK]) + record[22:] + end)
    written("a class without a name", b"\1" + b"abcd" + record[5:] + end)
    written("a certificate", b"\1" + b"cert" + record[5:] + end)
    for number, name in ((GROUP, "access group"), (ACCESSIBLE, "accessibility")):
        written("attributes without %s" % name, backup_record(
            backup_item(b"1", entries=[e for e in SKROOB if e[0] != number])) + end)
    written("a tombstone", backup_record(backup_item(b"1", entries=SKROOB + [(TOMB, "number", 1)])) + end)
    written("attributes in no known form", backup_record({**one, "attributes": b"\2"}) + end)
    written("a presence of 2", backup_record(one, 2) + end)
    written("an absent secret that is not empty", backup_record(one, 0) + end)
    written("a secret longer than the backup", record[:-9] + u32(64 << 20) + b"12345" + end)
    written("a secret longer than any", record[:-9] + u32(0xFFFFFFFF) + b"12345" + end)
    return {
        "format": "backup version 1",
        "id": BACKUP_ID.hex(),
        "salt": BACKUP_SALT.hex(),
        "creationDate": BACKUP_DATE,
        "cases": cases,
    }


# Constraints

PRESENCE_KEY = fixed("presence private key")
APPLICATION_PASSWORD = b"spaceballs"


def public_key(private):
    key = X25519PrivateKey.from_private_bytes(private).public_key()
    return key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def labeled_extract(suite, salt, label, ikm):
    return hmac.new(salt or bytes(32), b"HPKE-v1" + suite + label + ikm, hashlib.sha256).digest()


def labeled_expand(suite, prk, label, info, length):
    data = struct.pack(">H", length) + b"HPKE-v1" + suite + label + info
    output, block, number = b"", b"", 0
    while len(output) < length:
        number += 1
        block = hmac.new(prk, block + data + bytes([number]), hashlib.sha256).digest()
        output += block
    return output[:length]


def hpke_seal(recipient, info, plaintext, ephemeral):
    """RFC 9180, base mode: X25519 with HKDF-SHA256, HKDF-SHA256, AES-256-GCM."""
    encapsulated = public_key(ephemeral)
    shared = X25519PrivateKey.from_private_bytes(ephemeral).exchange(X25519PublicKey.from_public_bytes(recipient))
    kem = b"KEM" + struct.pack(">H", 0x20)
    secret = labeled_expand(
        kem, labeled_extract(kem, b"", b"eae_prk", shared), b"shared_secret", encapsulated + recipient, 32)
    suite = b"HPKE" + struct.pack(">HHH", 0x20, 1, 2)
    context = b"\0" + labeled_extract(suite, b"", b"psk_id_hash", b"") + labeled_extract(suite, b"", b"info_hash", info)
    schedule = labeled_extract(suite, secret, b"secret", b"")
    key = labeled_expand(suite, schedule, b"key", context, 32)
    nonce = labeled_expand(suite, schedule, b"base_nonce", context, 12)
    return encapsulated + AESGCM(key).encrypt(nonce, plaintext, b"")


def presence_field(private=PRESENCE_KEY, public=None):
    return (public or public_key(private)) + aes_key_wrap(passcode_key(), private)


def constrained_keybag():
    return keybag(passcode_fields() + [(17, presence_field())])


class Node:
    """A constraint, its key, and what it is kept as."""

    def __init__(self, key, content):
        self.key, self.content = key, content


def presence_node(kind, name):
    key = fixed("node key: " + name)
    box = hpke_seal(public_key(PRESENCE_KEY), b"keychain presence v1" + STORE_ID, key, fixed("ephemeral: " + name))
    return Node(key, bytes([kind]) + box)


def unreleased_node(kind):
    return Node(None, bytes([kind]))


def password_node(name, cost=LOW_COST, password=APPLICATION_PASSWORD):
    salt = fixed("password salt: " + name, 16)
    exponent, r, p = cost
    stretched = hashlib.scrypt(
        password, salt=b"keychain apppw 1" + STORE_ID, n=2**exponent, r=r, p=p, maxmem=2**31 - 1, dklen=32)
    check = hkdf(stretched, STORE_ID, b"keychain application password check v1" + salt, 16)
    key = hkdf(stretched, STORE_ID, b"keychain application password v1" + salt, 32)
    return Node(key, b"\6" + salt + bytes([exponent]) + u32(r) + u32(p) + check)


def any_node(name, *nodes):
    key = fixed("any key: " + name)
    content = bytes([16, len(nodes)])
    for node in nodes:
        content += node.content + (b"\0" if node.key is None else b"\1" + aes_key_wrap(node.key, key))
    return Node(key, content)


def all_node(*nodes):
    key = hkdf(b"".join(node.key for node in nodes), STORE_ID, b"keychain constraint all v1", 32)
    return Node(key, bytes([17, len(nodes)]) + b"".join(node.content for node in nodes))


def constrained_row(node, secret, name, code=AKPU, generation=2):
    header = skroob_header(accessibility=code, generation=generation, constraints=b"\1" + node.content)
    bound = {**header, "classKeyGeneration": 0}
    item_key = fixed("item key: " + name)
    inner = aes_key_wrap(node.key, item_key)
    class_key = {(c, g): k for c, g, k in PASSCODE_CLASS_KEYS}[code, generation]
    outer = aes_key_wrap(class_key, inner)
    attributes = seal_part(1, bound, inner, item_key, pad(encoded_attributes(SKROOB)))
    sealed = seal_part(2, bound, inner, item_key, pad(secret))
    return {
        "header": header, "wrappedItemKey": outer.hex(), "sealedAttributes": attributes.hex(), "sealedSecret": sealed.hex(),
        "tag": tag(header, outer, attributes, sealed).hex(),
    }


def constraint_vectors():
    cases = []

    def opens(name, constraint, node, code=AKPU):
        cases.append({
            "name": name, "constraint": constraint, "row": constrained_row(node, b"12345", name, code),
            "attributes": encoded_attributes(SKROOB).hex(), "secret": b"12345".hex(),
        })

    opens("user presence", "userPresence", presence_node(1, "user presence"))
    opens("device passcode, when unlocked", "devicePasscode", presence_node(2, "device passcode"), AK)
    opens("application password", "applicationPassword", password_node("alone"))
    opens("any of biometry and passcode", "any(biometryAny,devicePasscode)",
          any_node("any", unreleased_node(3), presence_node(2, "any")))
    opens("any of three", "any(biometryCurrentSet,devicePasscode,companion)",
          any_node("three", unreleased_node(4), presence_node(2, "three"), unreleased_node(5)))
    opens("presence and password", "all(userPresence,applicationPassword)",
          all_node(presence_node(1, "both"), password_node("both")))
    inner = any_node("inner", unreleased_node(3), presence_node(2, "inner"))
    opens("a tree of two levels", "all(any(biometryAny,devicePasscode),applicationPassword)",
          all_node(inner, password_node("outer")))
    presence = presence_node(1, "malformed").content
    malformed = {
        "nothing": b"", "version 2": b"\2" + presence, "no node": b"\1", "kind 0": b"\1\0", "kind 7": b"\1\7",
        "kind 18": b"\1\x12\1" + presence, "a node cut short": b"\1" + presence[:-1], "more behind": b"\1" + presence + b"\0",
        "any of none": b"\1\x10\0", "all of none": b"\1\x11\0", "any of 17": b"\1\x10\x11" + 17 * b"\3\0",
        "a flag of 2": b"\1\x10\1\3\2", "five levels": b"\1" + 4 * b"\x11\1" + b"\3",
        "a password cut short": b"\1" + password_node("short").content[:-1],
    }
    return {
        "format": "constraints version 1", "storeID": STORE_ID.hex(), "deviceSecret": DEVICE_SECRET.hex(),
        "keybag": constrained_keybag().hex(), "passcode": PASSCODE.decode(), "presencePublicKey": public_key(PRESENCE_KEY).hex(),
        "applicationPassword": APPLICATION_PASSWORD.hex(), "cases": cases,
        "malformed": [{"name": name, "bytes": data.hex()} for name, data in malformed.items()],
    }


# Recovery

RECOVERY_BITS = fixed("recovery key", 20)
RECOVERY_PRIVATE = hkdf(RECOVERY_BITS, STORE_ID, b"keychain recovery key v1", 32)
TPM_SECRET = fixed("TPM passcode secret")
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def recovery_text(bits=RECOVERY_BITS):
    check = int.from_bytes(hashlib.sha256(b"keychain recovery key check v1" + bits).digest()[:3], "big") >> 4
    number = int.from_bytes(bits, "big") << 20 | check
    letters = "".join(CROCKFORD[number >> 5 * (35 - index) & 31] for index in range(36))
    return "-".join(letters[start:start + 4] for start in range(0, 36, 4))


def recovery_record(passcode_secret=None):
    recipient = public_key(RECOVERY_PRIVATE)
    record = recipient + hpke_seal(recipient, b"keychain recovery v1" + STORE_ID, DEVICE_SECRET, fixed("recovery ephemeral"))
    if passcode_secret is not None:
        record += hpke_seal(
            recipient, b"keychain passcode recovery v1" + STORE_ID, passcode_secret, fixed("passcode recovery ephemeral"))
    return record


def sealed_object(name):
    area = lambda part, count: struct.pack(">H", count) + fixed("%s: %s" % (name, part), count)
    return b"\1" + counted(b"\0\x0b" + fixed(name + ": root key", 32)) + counted(area("public", 78)) + counted(area("private", 158))


def recovery_vectors():
    cases = []

    def case(name, fields, passcode, class_keys):
        cases.append({
            "name": name, "keybag": keybag(fields).hex(), "passcode": passcode,
            "classKeys": [{"accessibility": c, "generation": g, "key": k.hex()} for c, g, k in class_keys],
        })

    case("a key file", keybag_fields() + [(18, recovery_record())], None, CLASS_KEYS)
    case("a key file and a passcode", passcode_fields() + [(17, presence_field()), (18, recovery_record())], PASSCODE.decode(),
         PASSCODE_CLASS_KEYS)
    tpm = lambda fields: [(tag, b"\3" + sealed_object("device secret") if tag == 2 else value) for tag, value in fields]
    case("a TPM", tpm(keybag_fields()) + [(18, recovery_record())], None, CLASS_KEYS)
    exponent, r, p = LOW_COST
    stretched = hashlib.scrypt(PASSCODE, salt=SALT, n=2**exponent, r=r, p=p, maxmem=2**31 - 1, dklen=32)
    key = hkdf(stretched + DEVICE_SECRET + TPM_SECRET, STORE_ID, b"keychain passcode key v1", 32)
    fields = tpm(passcode_fields(wrapping_key=key)) + [
        (17, public_key(PRESENCE_KEY) + aes_key_wrap(key, PRESENCE_KEY)), (18, recovery_record(TPM_SECRET)),
        (19, sealed_object("passcode secret"))]
    case("a TPM and a passcode", fields, PASSCODE.decode(), PASSCODE_CLASS_KEYS)
    return {
        "format": "recovery version 1", "storeID": STORE_ID.hex(), "deviceSecret": DEVICE_SECRET.hex(),
        "recoveryKey": recovery_text(), "otherRecoveryKey": recovery_text(fixed("another recovery key", 20)), "cases": cases,
    }


# Page checksums


def page_checksum(content, number):
    first = (int.from_bytes(b"EGAPNHCK", "little") + number) % 2**64
    second = int.from_bytes(b"MUS NHCK", "little")
    for (word,) in struct.iter_unpack("<I", content):
        first = (first + word) % 2**64
        second = (second + first) % 2**64
    return u64(first) + u64(second)


def page_checksum_vectors():
    def case(name, pattern, number):
        content = pattern * (4080 // len(pattern))
        return {"name": name, "pattern": pattern.hex(), "page": number, "checksum": page_checksum(content, number).hex()}

    return {
        "format": "page checksum version 1",
        "cases": [
            case("zeros", b"\0", 1),
            case("all bits set", b"\xff", 2),
            case("random", fixed("page", 255), 3),
            case("the same elsewhere", fixed("page", 255), 4),
            case("the highest number", fixed("page", 255), 2**32 - 2),
            case("no two words the same", fixed("another page", 4080), 5),
        ],
    }


def write(name, vectors):
    text = json.dumps(vectors, indent=1, ensure_ascii=True, sort_keys=True)
    (FOLDER / name).write_text(text + "\n", encoding="ascii")


if __name__ == "__main__":
    write("keybag-v1.json", keybag_vectors())
    write("passcode-v1.json", passcode_vectors())
    write("attributes-v1.json", attributes_vectors())
    write("index-digests-v1.json", digest_vectors())
    write("row-header-v1.json", header_vectors())
    write("row-v1.json", row_vectors())
    write("backup-v1.json", backup_vectors())
    write("constraints-v1.json", constraint_vectors())
    write("recovery-v1.json", recovery_vectors())
    write("page-checksum-v1.json", page_checksum_vectors())
