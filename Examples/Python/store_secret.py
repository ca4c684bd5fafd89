# SPDX-License-Identifier: Apache-2.0
"""Stores a secret and reads it back."""
import ctypes
import os

library = ctypes.CDLL(os.environ.get("VALET_LIBRARY", "libvalet.so.0"))
text, length = ctypes.c_char_p, ctypes.c_size_t
library.valet_create.argtypes = [text, length, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)]
library.valet_set.argtypes = [ctypes.c_void_p, text, length, text, length]
library.valet_get.argtypes = [ctypes.c_void_p, text, length, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(length)]
library.valet_status_text.restype = library.valet_failure_reason.restype = ctypes.c_char_p
library.valet_buffer_free.argtypes = library.valet_free.argtypes = [ctypes.c_void_p]
library.valet_buffer_free.restype = library.valet_free.restype = None


def check(status):
    if status != 0:
        raise RuntimeError((library.valet_failure_reason() or library.valet_status_text(status)).decode())


WHEN_UNLOCKED = 1
vault, key, secret = ctypes.c_void_p(), "Skroob".encode(), "12345".encode()
check(library.valet_create(b"Druidia", len(b"Druidia"), WHEN_UNLOCKED, ctypes.byref(vault)))
check(library.valet_set(vault, key, len(key), secret, len(secret)))

buffer, size = ctypes.c_void_p(), length()
check(library.valet_get(vault, key, len(key), ctypes.byref(buffer), ctypes.byref(size)))
print(ctypes.string_at(buffer, size.value).decode())
library.valet_buffer_free(buffer)
library.valet_free(vault)
