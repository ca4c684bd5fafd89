// SPDX-License-Identifier: Apache-2.0
#if canImport(Darwin)
internal import Darwin
#else
internal import CKeychainShims
#endif

/// Overwrites memory with zeros, in a way that the compiler does not leave out although nobody reads them.
func wipeMemory(_ bytes: UnsafeMutableRawBufferPointer) {
    guard let start = bytes.baseAddress else { return }
    // The buffer tells its own length.
    #if canImport(Darwin)
    _ = unsafe memset_s(start, bytes.count, 0, bytes.count)
    #else
    unsafe keychain_wipe(start, bytes.count)
    #endif
}
