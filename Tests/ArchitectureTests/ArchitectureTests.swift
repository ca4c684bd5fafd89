// SPDX-License-Identifier: Apache-2.0
import Testing

/// One rule of the architecture, with its reason and the samples that prove that it bites.
struct Rule: Sendable, CustomTestStringConvertible {
    /// The rule in one sentence.
    let name: String
    /// Why it holds: what whoever wants to break the rule has to answer first.
    let reason: String
    /// Sets of files that break the rule, each in another way; all must be caught.
    let caught: [[SourceFile]]
    /// Sets of files that come near and are lawful; none may be caught.
    let passed: [[SourceFile]]
    /// The places among these files that break the rule.
    let violations: @Sendable ([SourceFile]) -> [Violation]

    /// A rule that looks at all files at once.
    init(
        _ name: String, because reason: String, caught: [[SourceFile]], passed: [[SourceFile]] = [],
        violations: @escaping @Sendable ([SourceFile]) -> [Violation]
    ) {
        self.name = name
        self.reason = reason
        self.caught = caught
        self.passed = passed
        self.violations = violations
    }

    /// A rule that looks at one file at a time.
    init(
        _ name: String, because reason: String, caught: [SourceFile], passed: [SourceFile] = [],
        eachFile: @escaping @Sendable (SourceFile) -> [Violation]
    ) {
        self.init(name, because: reason, caught: caught.map { [$0] }, passed: passed.map { [$0] }) { files in files.flatMap(eachFile) }
    }

    var testDescription: String { name }

    static let all = importRules + layoutRules + safetyRules + documentationRules
}

@Suite("The architecture")
struct ArchitectureTests {
    @Test("The repository keeps the rule", arguments: Rule.all)
    func repositoryKeeps(_ rule: Rule) throws {
        let violations = rule.violations(try Repository.swiftFiles())
        #expect(violations.isEmpty, "\(rule.name), because \(rule.reason)\n\(violations.map(\.description).joined(separator: "\n"))")
    }

    @Test("A planted violation is caught", arguments: Rule.all)
    func catches(_ rule: Rule) {
        #expect(!rule.caught.isEmpty, "A rule without a sample proves nothing")
        for sample in rule.caught {
            #expect(!rule.violations(sample).isEmpty, "\(rule.name): should be caught: \(sample)")
        }
    }

    @Test("What only looks like a violation passes", arguments: Rule.all)
    func passes(_ rule: Rule) {
        for sample in rule.passed {
            #expect(rule.violations(sample).isEmpty, "\(rule.name): should pass: \(sample)")
        }
    }

    @Test("There is a repository to look at")
    func repositoryIsFound() throws {
        let files = try Repository.swiftFiles()
        #expect(files.contains { $0.target == "Valet" })
        #expect(files.contains { $0.target == "ArchitectureTests" })
    }
}
