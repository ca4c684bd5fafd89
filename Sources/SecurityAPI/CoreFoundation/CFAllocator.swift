// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase, NeverUseImplicitlyUnwrappedOptionals
// The name is Apple's, and so is the implicitly unwrapped type.

/// A source of memory.
///
/// It has no values: every place that takes one takes `kCFAllocatorDefault`.
public final class CFAllocator: Sendable {
    private init() {}
}

/// The default allocator, which is none in particular.
public let kCFAllocatorDefault: CFAllocator! = nil
