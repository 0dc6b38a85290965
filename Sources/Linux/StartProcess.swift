import CLinux
import Glibc
package import Posix

/// Starts the process that creates processes (launcher.h). `startProcess` does so too; but it never waits for descriptors of other
/// programs if it starts before this process has any. The thread that calls this is the parent of all processes that are started.
package func prepareStarts() { clinux_spawn_prepare() }

/// Starts a process and returns before it has executed its program; `StartingProcess.outcome()` reports the result.
/// - Throws: if no process could be created: EAGAIN (limit of processes), ENOMEM, E2BIG; with a cgroup also
///   ENODEV (removed), EBUSY (it has controllers enabled for its children), EACCES; EINVAL for a string with a NUL or a
///   relative executable.
package func startProcess(_ request: SpawnRequest) throws(SystemError) -> StartingProcess {
    try request.validate()
    let arguments = PackedStrings([request.argumentZero ?? request.executable] + request.arguments)
    let environment = PackedStrings(request.wholeEnvironment)
    let pidVariables = PackedStrings(request.allPidVariables)
    let groups = request.credentials?.groups ?? []
    let limits = request.resourceLimits.map { clinux_limit(resource: $0.resource, soft: $0.soft, hard: $0.hard) }
    let passed = request.passedDescriptors.map(\.descriptor.raw)
    let oomScoreAdjust = changedOOMScoreAdjust(request.oomScoreAdjust)

    var start = clinux_spawn_start()
    let result = withCStrings(
        request.executable, request.workingDirectory, request.outputFile?.path, request.errorFile?.path,
        request.readOnlyProgram
    ) { executable, workingDirectory, output, error, readOnlyProgram in
        withBuffers(arguments, environment, pidVariables) { arguments, environment, pidVariables in
            withBuffers(groups, limits, passed, request.programDigest?.bytes ?? []) { groups, limits, passed, digest in
                var c = clinux_spawn_request()
                c.executable = executable
                c.arguments = arguments
                c.environment = environment
                c.pid_variables = pidVariables
                c.working_directory = workingDirectory
                c.change_credentials = request.credentials != nil
                c.uid = request.credentials?.uid ?? 0
                c.gid = request.credentials?.gid ?? 0
                (c.groups, c.group_count) = (groups.baseAddress, groups.count)
                c.umask = request.umask
                (c.limits, c.limit_count) = (limits.baseAddress, limits.count)
                c.set_oom_score_adjust = oomScoreAdjust != nil
                c.oom_score_adjust = Int32(oomScoreAdjust ?? 0)
                c.no_new_privileges = request.noNewPrivileges
                c.ignore_sigpipe = request.ignoresSIGPIPE
                c.read_only_program = readOnlyProgram
                c.digest_kind = request.programDigest?.kind.raw ?? 0
                c.digest = digest.baseAddress
                c.cgroup = request.cgroup?.raw ?? -1
                c.standard = (
                    request.standardInput?.raw ?? -1, request.standardOutput?.raw ?? -1,
                    request.standardError?.raw ?? -1
                )
                c.standard_path = (nil, output, error)
                c.standard_flags = (0, request.outputFile?.flags ?? 0, request.errorFile?.flags ?? 0)
                c.error_is_output = request.errorIsOutput
                (c.passed, c.passed_count) = (passed.baseAddress, passed.count)
                c.copy_memory = request.credentials != nil || oomScoreAdjust != nil
                return clinux_spawn(&c, &start)
            }
        }
    }
    try check(result, request.cgroup == nil ? "clone3" : "clone3 into a cgroup", request.executable)
    return StartingProcess(start, request)
}

extension SpawnRequest {
    fileprivate func validate() throws(SystemError) {
        let paths = [workingDirectory, outputFile?.path, errorFile?.path, readOnlyProgram].compactMap { $0 }
        let strings = [executable, argumentZero ?? ""] + paths + arguments + environment
        for string in strings { try string.refuseNul("clone3") }
        if executable.utf8.first != UInt8(ascii: "/") {
            throw SystemError(call: "execve", errno: EINVAL, path: executable)
        }
        // For setresuid and setresgid -1 means "unchanged": the program would run as root.
        if let credentials, ([credentials.uid, credentials.gid] + credentials.groups).contains(.max) {
            throw SystemError(call: "setresuid", errno: EINVAL, path: executable)
        }
        if let oomScoreAdjust, !(-1000...1000).contains(oomScoreAdjust) {
            throw SystemError(call: "write oom_score_adj", errno: EINVAL, path: executable)
        }
        for name in processIDVariables where name.isEmpty || name.utf8.contains(where: { $0 == 0 || $0 == 0x3d }) {
            throw SystemError(call: "setenv", errno: EINVAL, path: name)
        }
        for descriptor in passedDescriptors where !descriptor.hasValidName {
            throw SystemError(call: "LISTEN_FDNAMES", errno: EINVAL, path: descriptor.name)
        }
    }

    fileprivate var wholeEnvironment: [String] {
        if passedDescriptors.isEmpty { return environment }
        let names = passedDescriptors.map(\.name).joined(separator: ":")
        return environment + ["LISTEN_FDS=\(passedDescriptors.count)", "LISTEN_FDNAMES=\(names)"]
    }

    fileprivate var allPidVariables: [String] {
        passedDescriptors.isEmpty ? processIDVariables : processIDVariables + ["LISTEN_PID"]
    }
}

extension OutputFile {
    fileprivate var flags: Int32 { appends ? O_APPEND : 0 }
}

extension PassedDescriptor {
    /// The rule of sd_pid_notify_with_fds(3) for FDNAME=.
    fileprivate var hasValidName: Bool {
        name.utf8.count <= 255 && name.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7f && $0 != UInt8(ascii: ":") }
    }
}

/// Returns `nil` if the process inherits the wanted value: then it need not copy the daemon's memory (spawn.c).
private func changedOOMScoreAdjust(_ wanted: Int?) -> Int? {
    guard let wanted else { return nil }
    let own = try? readFile(at: "/proc/self/oom_score_adj", limit: 16)
    return own.flatMap { Int(String(decoding: $0, as: UTF8.self).filter { $0 != "\n" }) } == wanted ? nil : wanted
}

/// Strings in one buffer, each with a NUL.
private struct PackedStrings {
    var bytes: [UInt8] = []
    let count: Int

    init(_ strings: [String]) {
        count = strings.count
        for string in strings {
            bytes.append(contentsOf: string.utf8)
            bytes.append(0)
        }
    }

    func with<Result>(_ body: (clinux_strings) -> Result) -> Result {
        bytes.withUnsafeBufferPointer {
            body(clinux_strings(bytes: $0.baseAddress, length: $0.count, count: count))
        }
    }
}

private func withBuffers<Result>(
    _ a: PackedStrings, _ b: PackedStrings, _ c: PackedStrings,
    _ body: (clinux_strings, clinux_strings, clinux_strings) -> Result
) -> Result {
    a.with { a in b.with { b in c.with { c in body(a, b, c) } } }
}

private func withBuffers<A, B, C, D, Result>(
    _ a: [A], _ b: [B], _ c: [C], _ d: [D],
    _ body: (UnsafeBufferPointer<A>, UnsafeBufferPointer<B>, UnsafeBufferPointer<C>, UnsafeBufferPointer<D>) -> Result
) -> Result {
    a.withUnsafeBufferPointer { a in
        b.withUnsafeBufferPointer { b in
            c.withUnsafeBufferPointer { c in d.withUnsafeBufferPointer { d in body(a, b, c, d) } }
        }
    }
}

private func withCStrings<Result>(
    _ a: String, _ b: String?, _ c: String?, _ d: String?, _ e: String?,
    _ body: (
        UnsafePointer<CChar>, UnsafePointer<CChar>?, UnsafePointer<CChar>?, UnsafePointer<CChar>?, UnsafePointer<CChar>?
    ) -> Result
) -> Result {
    a.withCString { a in
        withCString(b) { b in
            withCString(c) { c in withCString(d) { d in withCString(e) { e in body(a, b, c, d, e) } } }
        }
    }
}

private func withCString<Result>(_ text: String?, _ body: (UnsafePointer<CChar>?) -> Result) -> Result {
    guard let text else { return body(nil) }
    return text.withCString { body($0) }
}
