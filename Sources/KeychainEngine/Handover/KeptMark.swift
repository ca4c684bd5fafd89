// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainStore
internal import KeychainSystem

/// A file in the directory of key files that says that keychaind keeps the keychain whose file is at a path.
///
/// A program that finds the signpost lost asks keychaind, and makes no other keychain. And a file of the same store in the place of the signpost, for
/// example from a backup, is not used: keychaind has what was stored since.
/// It is named `ID.kept`, and has the content of the signpost and, in a third line, the path.
struct KeptMark {
    private let directory: String
    private let storePath: String

    private static let suffix = ".kept"
    private static let byteLimit = 8_192

    init(_ configuration: KeychainConfiguration) {
        directory = configuration.keyDirectory
        storePath = configuration.storePath
    }

    func write(_ storeID: StoreID) throws(KeychainFailure) {
        try PrivateDirectory.make(directory)
        _ = try AtomicFile(path(for: storeID)).write(replacingExisting: true) { writer throws(KeychainFailure) in
            try writer.append(Signpost(storeID: storeID).encoded + Array(storePath.utf8) + [UInt8(ascii: "\n")])
        }
    }

    func remove(_ storeID: StoreID) { FileSystem.tryUnlink(path(for: storeID)) }

    /// Returns the store that keychaind keeps in the place of a file at the path; nil without a mark.
    func storeID() throws(KeychainFailure) -> StoreID? {
        do throws(Errno) {
            for name in try FileSystem.names(in: directory) where name.hasSuffix(Self.suffix) {
                guard let storeID = StoreID(hexadecimal: name.dropLast(Self.suffix.count)) else { continue }
                if try contains(storeID) { return storeID }
            }
            return nil
        } catch .notFound {
            return nil
        } catch {
            throw PrivateFile.readFailure(error, "the directory of key files", directory).located(at: directory, subject: .keyFile)
        }
    }

    /// Whether there is a mark that keychaind keeps this store in the place of a file at the path.
    ///
    /// A directory of key files within the directory of the store moves with it, so each mark there counts.
    func contains(_ storeID: StoreID) throws(Errno) -> Bool {
        let file = try OpenFile(path(for: storeID), .read)
        guard let content = try file.descriptor.readToEnd(byteLimit: Self.byteLimit) else { return false }
        let beginning = Signpost(storeID: storeID).encoded
        guard content.starts(with: beginning) else { return false }
        let movesWithStore = directory.hasPrefix(FileSystem.parent(of: storePath) + "/")
        return movesWithStore || content.dropFirst(beginning.count).dropLast().elementsEqual(storePath.utf8)
    }

    func path(for storeID: StoreID) -> String { "\(directory)/\(storeID.hexadecimal)\(Self.suffix)" }
}
