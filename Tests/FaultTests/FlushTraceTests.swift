// SPDX-License-Identifier: Apache-2.0
import Testing

@Suite("The reader of strace's log")
struct FlushTraceTests {
    @Test("A flush between write and acknowledgement satisfies it")
    func accepts() {
        let trace = FlushTrace(
            log: """
                10 pwrite64(5</t/keychain.db-wal>, "abc"..., 4120, 32) = 4120
                10 fdatasync(5</t/keychain.db-wal>)  = 0
                10 write(1<pipe:[7]>, "ack 0\\n", 6) = 6
                """)
        #expect(trace.events == [.logWritten, .logFlushed, .acknowledged("ack 0")])
        #expect(trace.violations.isEmpty)
    }

    @Test(
        "An acknowledgement that comes too early is a violation",
        arguments: [
            // Never flushed.
            """
            10 pwrite64(5</t/keychain.db-wal>, "abc"..., 4120, 32) = 4120
            10 write(1<pipe:[7]>, "ack 0\\n", 6) = 6
            """,
            // Flushed, and then written again.
            """
            10 pwrite64(5</t/keychain.db-wal>, "abc"..., 4120, 32) = 4120
            10 fdatasync(5</t/keychain.db-wal>)  = 0
            10 pwrite64(5</t/keychain.db-wal>, "abc"..., 4120, 32) = 4120
            10 write(1<pipe:[7]>, "ack 0\\n", 6) = 6
            """,
            // The flush failed.
            """
            10 pwrite64(5</t/keychain.db-wal>, "abc"..., 4120, 32) = 4120
            10 fdatasync(5</t/keychain.db-wal>)  = -1 EIO (Input/output error)
            10 write(1<pipe:[7]>, "ack 0\\n", 6) = 6
            """,
            // Another file was flushed.
            """
            10 pwrite64(5</t/keychain.db-wal>, "abc"..., 4120, 32) = 4120
            10 fdatasync(4</t/keychain.db>)  = 0
            10 write(1<pipe:[7]>, "ack 0\\n", 6) = 6
            """,
            // The flush ended after the acknowledgement.
            """
            10 pwrite64(5</t/keychain.db-wal>, "abc"..., 4120, 32) = 4120
            10 fdatasync(5</t/keychain.db-wal> <unfinished ...>
            11 write(1<pipe:[7]>, "ack 0\\n", 6) = 6
            10 <... fdatasync resumed>) = 0
            """,
        ])
    func catchesMissingFlush(_ log: String) {
        #expect(FlushTrace(log: log).violations == [.notFlushed(acknowledgement: "ack 0")])
    }

    @Test("An acknowledgement of nothing is a violation")
    func catchesMissingWrite() {
        let trace = FlushTrace(log: #"10 write(1<pipe:[7]>, "ack 3\n", 6) = 6"#)
        #expect(trace.violations == [.nothingWritten(acknowledgement: "ack 3")])
    }

    @Test("Calls that the log splits are put together again")
    func joinsSplitCalls() {
        let trace = FlushTrace(
            log: """
                10 pwrite64(5</t/keychain.db-wal>, "abc"..., 4120, 32 <unfinished ...>
                11 write(2<pipe:[7]>, "ack of something else\\n", 6) = 6
                10 <... pwrite64 resumed>) = 4120
                10 fdatasync(5</t/keychain.db-wal> <unfinished ...>
                10 <... fdatasync resumed>) = 0
                10 write(1<pipe:[7]>, "ack 0\\n", 6) = 6
                """)
        #expect(trace.events == [.logWritten, .logFlushed, .acknowledged("ack 0")])
    }
}
