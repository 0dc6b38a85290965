import Glibc
import Linux
import Manifest

/// What `verify` says about the file of a program (L10).
struct ProgramCheck {
    struct Problem {
        var key: String
        var message: String
    }

    private let manifest: AppManifest
    /// Whether the manifest is for a daemon that runs as root.
    private let isForRoot: Bool

    init(_ manifest: AppManifest, isForRoot: Bool) {
        self.manifest = manifest
        self.isForRoot = isForRoot
    }

    func problems() -> [Problem] {
        guard let program = manifest.exec.first else { return [] }
        var found: [Problem] = []
        if manifest.readOnlyProgram {
            if !isForRoot {
                found.append(
                    Problem(
                        key: "ReadOnlyProgram",
                        message:
                            "the app cannot be launched: only a daemon of root may make a folder read-only for an app"))
            }
        } else if let user = manifest.user, let written = writablePart(of: program, user) {
            found.append(
                Problem(
                    key: "ExecStart",
                    message:
                        "\(user) can write \(written), and so change the program; expected files of another user, or "
                        + "ReadOnlyProgram=yes"))
        }
        if let text = manifest.programDigest, let wanted = FileDigest(text) {
            if let type = DescriptorCheck().serverFileSystem(of: program) {
                found.append(
                    Problem(
                        key: "ProgramDigest",
                        message:
                            "\(program) is on a file system of a server (\(type)), which can change the program after its digest "
                            + "was compared; expected a file of a local file system"))
            }
            if let problem = difference(program, wanted) {
                found.append(Problem(key: "ProgramDigest", message: problem))
            }
        }
        return found
    }

    private func difference(_ program: String, _ wanted: FileDigest) -> String? {
        do {
            let digest = try FileDigest(of: program, wanted.kind)
            return digest == wanted ? nil : "the digest of \(program) is \(digest)"
        } catch {
            return "the digest of \(program) cannot be read: \(error)"
        }
    }

    // MARK: Permissions

    /// The file or its folder, if the user of the app may write it; `nil`: neither, or that is not known. Only the mode decides:
    /// root can write everything, and access control lists are not read.
    private func writablePart(of program: String, _ user: String) -> String? {
        guard let record = try? lookUpUser(user), record.uid != 0, let path = resolved(program),
            let slash = path.lastIndex(of: "/")
        else { return nil }
        let folder = slash == path.startIndex ? "/" : String(path[..<slash])
        var (file, parent) = (stat(), stat())
        guard stat(path, &file) == 0, stat(folder, &parent) == 0 else { return nil }
        let groups = groups(of: record)
        if isWritable(file, record.uid, groups) { return path }
        // In a folder with the sticky bit only the owners of a file and of the folder replace it.
        if parent.st_mode & S_ISVTX != 0, file.st_uid != record.uid, parent.st_uid != record.uid { return nil }
        return isWritable(parent, record.uid, groups) ? folder : nil
    }

    private func isWritable(_ about: stat, _ uid: UInt32, _ groups: Set<UInt32>) -> Bool {
        // The owner can change the mode.
        if about.st_uid == uid { return true }
        return about.st_mode & (groups.contains(about.st_gid) ? S_IWGRP : S_IWOTH) != 0
    }

    private func groups(of user: UserRecord) -> Set<UInt32> {
        let group = manifest.group.flatMap { try? lookUpGroup($0) } ?? user.gid
        let named = manifest.supplementaryGroups.compactMap { try? lookUpGroup($0) }
        let listed = (try? supplementaryGroups(of: user.name, gid: group)) ?? []
        return Set([group] + named + listed)
    }

    private func resolved(_ path: String) -> String? {
        guard let found = realpath(path, nil) else { return nil }
        defer { free(found) }
        return String(cString: found)
    }
}
