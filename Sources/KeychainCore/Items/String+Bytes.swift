// SPDX-License-Identifier: Apache-2.0

/// Comparing texts as a keychain does: by their UTF-8.
///
/// Swift calls two texts equal that Unicode calls equivalent, such as an accented letter in one piece and in two. To a
/// keychain they are two names.
extension String {
    package func hasSameBytes(as other: String) -> Bool {
        guard utf8.count == other.utf8.count else { return false }
        var (mine, theirs) = (self, other)
        return mine.withUTF8 { mine in theirs.withUTF8 { theirs in unsafe mine.elementsEqual(theirs) } }
    }

    package func hasSuffixOfSameBytes(as suffix: String) -> Bool {
        utf8.suffix(suffix.utf8.count).elementsEqual(suffix.utf8)
    }
}
