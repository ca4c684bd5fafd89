// SPDX-License-Identifier: Apache-2.0
// swift-format-ignore-file: AlwaysUseLowerCamelCase

internal import CValet

// Each function is declared in valet.h; the compiler holds the signatures against it.

@c @implementation
package func valet_version() -> UnsafePointer<CChar>? {
    unsafe staticText("0.1.0")
}

@c @implementation
package func valet_library_interface_version() -> Int32 {
    Int32(valet_interface_version)
}

/// Text that is part of the program, ended by NUL.
func staticText(_ text: StaticString) -> UnsafePointer<CChar> {
    // A literal of more than one character is stored as UTF-8 with a NUL behind it, and is there for ever.
    unsafe UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
}
