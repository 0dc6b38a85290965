import Glibc

/// The error of `inOwnProcess`: how the process ended, and its output.
package struct OwnProcessFailed: Error, CustomStringConvertible {
    package var description: String
}

/// Runs the rest of a test in a process of its own, because it changes the whole process (its user, limits or subreaper) or
/// counts descriptors while other tests open some.
///
/// The test runner is started again for this test and runs `body`. Swift Testing's exit tests do the same, but their monitor
/// spins while any other test has a child that is not reaped, which is always the case here.
///
/// - Throws: in the first process `OwnProcessFailed`; in the other the error of `body`.
package func inOwnProcess(
    _ body: () throws -> Void, function: String = #function, file: String = #fileID, line: Int = #line
) throws {
    guard try isOwnProcess(function, file, line) else { return }
    try body()
}

/// As the other `inOwnProcess`, for a body with Swift concurrency.
package func inOwnProcess(
    isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Void, function: String = #function,
    file: String = #fileID, line: Int = #line
) async throws {
    guard try isOwnProcess(function, file, line) else { return }
    try await body()
}

/// Returns whether this is the process of this test. In another one, runs the test in a process of its own and throws if it fails.
private func isOwnProcess(_ function: String, _ file: String, _ line: Int) throws -> Bool {
    let site = "\(file):\(line)"
    if let wanted = getenv(siteVariable) {
        // Another call of `inOwnProcess` in the same test, or another test that the filter matches.
        guard String(cString: wanted) == site else { return false }
        // SIGALRM ends a process that does not end by itself.
        alarm(120)
        return true
    }
    var path = Array("/tmp/greenroom-output-XXXXXX".utf8CString)
    let output = mkstemp(&path)
    guard output >= 0 else { throw OwnProcessFailed(description: "mkstemp: error \(errno)") }
    unlink(path)
    _ = fcntl(output, F_SETFD, FD_CLOEXEC)
    defer { close(output) }
    let status = try runnerStatus(filter: filter(function, file), site: site, output: output)
    guard status == 0 else { throw OwnProcessFailed(description: "wait status \(status):\n\(contents(output))") }
    return false
}

private let siteVariable = "GREENROOM_TEST_SITE"

/// A regular expression for the test's ID, which is `Module.Suite/function()/File.swift:line:column`.
private func filter(_ function: String, _ file: String) -> String {
    let name = file.split(separator: "/").last ?? ""
    let escaped = "/\(function)/\(name):".map { $0.isLetter || $0.isNumber ? "\($0)" : "\\\($0)" }
    return escaped.joined()
}

private func runnerStatus(filter: String, site: String, output: Int32) throws -> Int32 {
    let words = ["test", "--testing-library", "swift-testing", "--filter", filter]
    var arguments = words.map { strdup($0) } + [nil]
    var variables: [UnsafeMutablePointer<CChar>?] = [strdup("\(siteVariable)=\(site)")]
    var next = environ
    while let variable = next.pointee {
        variables.append(strdup(variable))
        next += 1
    }
    variables.append(nil)
    defer { for word in arguments + variables { free(word) } }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, output, 1)
    posix_spawn_file_actions_adddup2(&actions, output, 2)
    var pid: pid_t = 0
    let result = posix_spawn(&pid, "/proc/self/exe", &actions, nil, &arguments, variables)
    guard result == 0 else { throw OwnProcessFailed(description: "posix_spawn: error \(result)") }
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0 {
        guard errno == EINTR else { throw OwnProcessFailed(description: "waitpid: error \(errno)") }
    }
    return status
}

private func contents(_ file: Int32) -> String {
    var bytes = [UInt8](repeating: 0, count: 64 << 10)
    let count = pread(file, &bytes, bytes.count, 0)
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
}
