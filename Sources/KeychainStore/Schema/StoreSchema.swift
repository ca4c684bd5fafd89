// SPDX-License-Identifier: Apache-2.0

/// The tables of a store and the numbers in its file header.
///
/// Part of the on-disk format.
enum StoreSchema {
    /// "KCHN", in the header field that says whose file this is.
    static let applicationID: Int64 = 0x4B43_484E
    /// The format of new stores: every page of the file has a checksum.
    static let formatVersion: Int64 = 2
    /// The same tables, from before there were checksums.
    static let oldestFormatVersion: Int64 = 1
    static let pageByteCount = 4096
    /// At the end of each page, for its checksum; format 1 keeps them free.
    static let reservedByteCountPerPage: Int32 = 16
    /// A value of 64 MiB, padded and sealed, with its attributes.
    static let largestRowByteCount: Int32 = 80 * 1024 * 1024

    /// The columns of a stored row, without its number.
    ///
    /// The secret is last: a search passes over rows without touching its pages.
    private static let rowColumns = """
        class INTEGER NOT NULL,
        id BLOB NOT NULL CHECK (length(id) = 16),
        format_version INTEGER NOT NULL,
        accessibility INTEGER NOT NULL,
        class_key_generation INTEGER NOT NULL,
        is_synchronizable INTEGER NOT NULL,
        is_tombstone INTEGER NOT NULL,
        service_digest BLOB NOT NULL CHECK (length(service_digest) = 16),
        account_digest BLOB NOT NULL CHECK (length(account_digest) = 16),
        remaining_key_digest BLOB NOT NULL CHECK (length(remaining_key_digest) = 16),
        access_group_digest BLOB NOT NULL CHECK (length(access_group_digest) = 16),
        revision BLOB NOT NULL CHECK (length(revision) = 16),
        attribute_digests BLOB NOT NULL,
        constraints BLOB,
        wrapped_item_key BLOB NOT NULL,
        tag BLOB NOT NULL,
        sealed_attributes BLOB NOT NULL,
        sealed_secret BLOB NOT NULL
        """

    /// `item_attributes` only makes searches fast: each row's own `attribute_digests` is what counts.
    ///
    /// `quarantine` takes every value as it is, for what lies there is damaged. The two copies of the keybag have a table each, so
    /// that they never share a page.
    static let statements = """
        CREATE TABLE items (number INTEGER PRIMARY KEY, \(rowColumns)) STRICT;
        CREATE UNIQUE INDEX items_primary_key ON items (service_digest, account_digest, remaining_key_digest);
        CREATE INDEX items_account ON items (account_digest);
        CREATE UNIQUE INDEX items_id ON items (id);
        CREATE TABLE item_attributes (
            attribute INTEGER NOT NULL, digest BLOB NOT NULL, item INTEGER NOT NULL,
            PRIMARY KEY (attribute, digest, item)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE quarantine (number INTEGER PRIMARY KEY, seconds REAL NOT NULL, \(RowColumn.list(withSecret: true)));
        CREATE TABLE keybag (number INTEGER PRIMARY KEY CHECK (number = 1), bytes BLOB NOT NULL) STRICT;
        CREATE TABLE keybag_copy (number INTEGER PRIMARY KEY CHECK (number = 1), bytes BLOB NOT NULL) STRICT;
        CREATE TABLE meta (
            number INTEGER PRIMARY KEY CHECK (number = 1),
            store_id BLOB NOT NULL CHECK (length(store_id) = 16),
            keybag_generation INTEGER NOT NULL,
            scrub_pending INTEGER NOT NULL,
            lock_epoch INTEGER NOT NULL
        ) STRICT;
        PRAGMA application_id = \(applicationID);
        PRAGMA user_version = \(formatVersion);
        """
}
