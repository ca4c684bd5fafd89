// SPDX-License-Identifier: Apache-2.0

/// The command-line options of the benchmark.
struct Options {
    static let usage = """
        usage: Benchmarks [--items N] [--samples N] [--no-peers]
               Benchmarks compare [options]
          --items N     the number of items of the large keychain (100000)
          --samples N   how often each reading is measured (20000)
          --no-peers    leave libsecret and gnome-keyring out
        """

    var largeItemCount = 100_000
    var sampleCount = 20_000
    var includesPeers = true

    /// Nil when the arguments are not understood.
    init?(_ arguments: [String]) {
        var rest = arguments[...]
        while let option = rest.popFirst() {
            switch option {
            case "--no-peers": includesPeers = false
            case "--items", "--samples":
                guard let number = rest.popFirst().flatMap({ Int($0) }), number >= 1_000 else { return nil }
                if option == "--items" { largeItemCount = number } else { sampleCount = number }
            default: return nil
            }
        }
    }
}
