// SPDX-License-Identifier: Apache-2.0
import Testing

/// A rule of the architecture, with its reason and with samples that show that it finds violations.
struct Rule: Sendable, CustomTestStringConvertible {
    /// The rule in one sentence.
    let name: String
    /// The reason for the rule.
    let reason: String
    /// Sets of files that violate the rule, each in another way.
    let caught: [[SourceFile]]
    /// Sets of files that resemble a violation and follow the rule.
    let passed: [[SourceFile]]
    /// Whether the rule also applies to documents, scripts, and other texts.
    let includesOtherTexts: Bool
    /// Returns the violations in the files.
    let violations: @Sendable ([SourceFile]) -> [Violation]

    /// Creates a rule that checks all files together.
    init(
        _ name: String, because reason: String, caught: [[SourceFile]], passed: [[SourceFile]] = [], includesOtherTexts: Bool = false,
        violations: @escaping @Sendable ([SourceFile]) -> [Violation]
    ) {
        self.name = name
        self.reason = reason
        self.caught = caught
        self.passed = passed
        self.includesOtherTexts = includesOtherTexts
        self.violations = violations
    }

    /// Creates a rule that checks each file separately.
    init(
        _ name: String, because reason: String, caught: [SourceFile], passed: [SourceFile] = [], includesOtherTexts: Bool = false,
        eachFile: @escaping @Sendable (SourceFile) -> [Violation]
    ) {
        self.init(name, because: reason, caught: caught.map { [$0] }, passed: passed.map { [$0] }, includesOtherTexts: includesOtherTexts) {
            files in
            files.flatMap(eachFile)
        }
    }

    var testDescription: String { name }

    static let all =
        importRules + systemRules + layoutRules + safetyRules + testSelectionRules + documentationRules + linkRules + languageRules
}

@Suite("The architecture")
struct ArchitectureTests {
    @Test("The repository follows the rule", arguments: Rule.all)
    func repositoryFollows(_ rule: Rule) throws {
        let violations = rule.violations(try Repository.swiftFiles() + (rule.includesOtherTexts ? Repository.otherTexts() : []))
        #expect(violations.isEmpty, "\(rule.name), because \(rule.reason):\n\(violations.map(\.description).joined(separator: "\n"))")
    }

    @Test("A planted violation is found", arguments: Rule.all)
    func catches(_ rule: Rule) {
        #expect(!rule.caught.isEmpty, "the rule has no sample of a violation")
        for sample in rule.caught {
            #expect(!rule.violations(sample).isEmpty, "not found: \(sample)")
        }
    }

    @Test("Code that resembles a violation passes", arguments: Rule.all)
    func passes(_ rule: Rule) {
        for sample in rule.passed {
            #expect(rule.violations(sample).isEmpty, "reported as a violation: \(sample)")
        }
    }

    @Test("The repository's files are found")
    func repositoryIsFound() throws {
        let files = try Repository.swiftFiles()
        #expect(files.contains { $0.target == "Valet" })
        #expect(files.contains { $0.target == "ArchitectureTests" })
    }
}
