// SPDX-License-Identifier: Apache-2.0
import Contracts
import Glibc
import KeychainCore
import KeychainEngine
import KeychainSystem
import KeychainTestSupport
import Testing

/// A key holder in a process of its own, started by some other program, such as `keyctl session -`.
struct ChildHolder {
    private let process: ChildProcess

    init(
        of storeID: StoreID, _ selection: String = "automatic", options: [String] = [], startedBy starter: [String] = []
    ) throws {
        let command = try starter + [BuiltProgram.path(of: "KeychainTestChild"), "hold-keys"] + options + ["\(storeID.low)", selection]
        process = try ChildProcess(command[0], Array(command.dropFirst()))
        // The wrapper may print lines first.
        while let line = try process.readLine(), line != "ready" {}
        try #require(process.linesRead.last == "ready", "\(process.linesRead)")
    }

    /// Returns the child's reply to one line.
    func callAsFunction(_ request: String) throws -> String {
        process.send(request)
        return try #require(try process.readLine())
    }

    /// Ends it normally, after it has removed its keys.
    func end() throws {
        process.closeInput()
        #expect(try process.readToEnd() == "")
        #expect(try process.waitUntilEnded() == .exited(0))
    }

    /// Kills it: keys that it holds for other processes remain.
    func kill() throws {
        process.send(signal: 9)
        #expect(try process.waitUntilEnded() == .killed(bySignal: 9))
    }
}

@Suite("Key holders of several processes", .waitsForClock)
struct KeyHolderProcessTests {
    @Test("A process without access to the keyring uses its memory, with the same behavior otherwise")
    func refused() throws {
        let child = try ChildHolder(of: .init(high: 0, low: .random(in: 0 ... .max)), options: ["--refuse-keyring"])
        #expect(try child("kind") == "processMemory")
        #expect(try child("load unlocked") == "nothing")
        #expect(try child("hold unlocked text 60") == "done")
        #expect(try child("load unlocked") == "held text")
        #expect(try child("epoch 1") == "done")
        #expect(try child("load unlocked") == "nothing")
        try child.end()
    }

    @Test("If the keyring is requested explicitly and access is denied, the error has the cause EPERM")
    func refusedByName() throws {
        let run = try ChildProcess.run(
            BuiltProgram.path(of: "KeychainTestChild"), ["hold-keys", "--refuse-keyring", "1", "kernelKeyring"])
        #expect(run.ending == .exited(1))
        #expect(run.output.hasPrefix("failed -25291 cause=system(errno: \(EPERM)) "))
    }

    @Suite("in the kernel's keyring", .requiresKernelKeyring)
    struct InKernelKeyring {
        private let keys = KernelKeys()

        @Test("A process can load, replace and remove the keys of another, which sees it immediately")
        func shared() throws {
            let holder = keys.holder()
            let child = try ChildHolder(of: keys.storeID)
            let isInitial = CurrentProcess.isInInitialUserNamespace
            #expect(try child("kind") == "\(isInitial ? KeyHolderKind.kernelKeyring : .kernelKeyringOfUserNamespace)")
            try holder.hold(Array("first".utf8), timeoutSeconds: 600)
            #expect(try child("load unlocked") == "held first")
            #expect(try child("hold unlocked second 600") == "done")
            #expect(try holder.bytes(in: .unlocked) == Array("second".utf8))
            #expect(try child("remove unlocked") == "done")
            #expect(try holder.bytes(in: .unlocked) == nil)
            try holder.hold(Array("third".utf8), timeoutSeconds: 600)
            #expect(try child("load unlocked") == "held third")
            try holder.remove(.unlocked)
            #expect(try child("load unlocked") == "nothing")
            try child.end()
        }

        @Test("If access to the keyring is denied after its first use, every call fails and none reports an absent key")
        func refusedLater() throws {
            let child = try ChildHolder(of: keys.storeID)
            #expect(try child("hold unlocked text 600") == "done")
            #expect(try child("refuse-keyring") == "done")
            for request in ["load unlocked", "load first-unlock", "remove unlocked", "hold unlocked text 600"] {
                let answer = try child(request)
                #expect(answer.hasPrefix("failed -25291 cause=system(errno: \(EPERM)) "), "\(request): \(answer)")
            }
            try child.kill()
            #expect(try keys.holder().bytes(in: .unlocked) == Array("text".utf8))
        }

        @Test("Held keys outlive their process")
        func outlives() throws {
            let child = try ChildHolder(of: keys.storeID)
            #expect(try child("hold unlocked text 600") == "done")
            try child.kill()
            #expect(try keys.holder().bytes(in: .unlocked) == Array("text".utf8))
        }

        @Test("A session with its own keyring can store, load and remove keys")
        func session() throws {
            let child = try ChildHolder(of: keys.storeID, startedBy: ["keyctl", "session", "-"])
            let holder = keys.holder()
            #expect(try child("hold unlocked inner 600") == "done")
            #expect(try child("load unlocked") == "held inner")
            #expect(try holder.bytes(in: .unlocked) == Array("inner".utf8))
            try holder.hold(Array("outer".utf8), timeoutSeconds: 600)
            #expect(try child("load unlocked") == "held outer")
            let another = try ChildHolder(of: keys.storeID, startedBy: ["keyctl", "session", "-"])
            #expect(try another("load unlocked") == "held outer")
            #expect(try another("remove unlocked") == "done")
            #expect(try child("load unlocked") == "nothing")
            #expect(try holder.bytes(in: .unlocked) == nil)
            try child.end()
            try another.end()
        }

        @Test(
            "Keys work for ordinary users as for root, and neither sees the other's",
            .requiresRoot, .requiresKernelKeyring)
        func ordinaryUser() throws {
            let user = ["--as-user", "61234"]
            let child = try ChildHolder(of: keys.storeID, options: user)
            let holder = keys.holder()
            try holder.hold(Array("root's".utf8), timeoutSeconds: 600)
            #expect(try child("load unlocked") == "nothing")
            #expect(try child("hold unlocked theirs 600") == "done")
            #expect(try child("load unlocked") == "held theirs")
            let another = try ChildHolder(of: keys.storeID, options: user, startedBy: ["keyctl", "session", "-"])
            #expect(try another("load unlocked") == "held theirs")
            #expect(try holder.bytes(in: .unlocked) == Array("root's".utf8))
            #expect(try another("remove unlocked") == "done")
            #expect(try child("load unlocked") == "nothing")
            try another.end()
            try child.end()
            #expect(try holder.bytes(in: .unlocked) == Array("root's".utf8))
        }

        @Test(
            "Many successive unlocks stay within an ordinary user's keyring quota",
            .requiresRoot, .requiresKernelKeyring)
        func quota() throws {
            let child = try ChildHolder(of: keys.storeID, options: ["--as-user", "61235"])
            let text = String(repeating: "x", count: 400)
            var answers: Set<String> = []
            for _ in 0..<300 {
                answers.insert(try child("hold unlocked \(text) 600"))
                answers.insert(try child("remove unlocked"))
            }
            #expect(answers == ["done"])
            try child.end()
        }

        @Test(
            "A user namespace has its own keyring, and the holder reports it",
            .requiresUserNamespaces)
        func userNamespace() throws {
            let holder = keys.holder()
            try holder.hold(Array("outer".utf8), timeoutSeconds: 600)
            let child = try ChildHolder(of: keys.storeID, startedBy: ["unshare", "-Ur"])
            #expect(try child("kind") == "kernelKeyringOfUserNamespace")
            #expect(try child("load unlocked") == "nothing")
            #expect(try child("hold unlocked inner 600") == "done")
            #expect(try child("load unlocked") == "held inner")
            #expect(try holder.bytes(in: .unlocked) == Array("outer".utf8))
            // A lock outside of the namespace is visible through the store only.
            #expect(try child("epoch 1") == "done")
            #expect(try child("load unlocked") == "nothing")
            try child.end()
            #expect(try holder.bytes(in: .unlocked) == Array("outer".utf8))
        }
    }
}
