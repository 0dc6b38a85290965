import Glibc
package import Posix

/// Which tasks must stall on memory to count (kernel: accounting/psi.rst).
package enum PressureKind: String {
    /// At least one task.
    case some
    /// All tasks that could run.
    case full
}

/// Why a pressure trigger is not available.
package struct PressureUnavailable: Error, Equatable, CustomStringConvertible {
    package let errno: Int32
    package let path: String

    package init(errno: Int32, path: String) {
        self.errno = errno
        self.path = path
    }

    package var description: String {
        switch errno {
        case ENOENT where path.hasPrefix("/sys/fs/cgroup/"):
            "\(path) does not exist: pressure stall information is off for this group (cgroup.pressure), or for the kernel"
        case ENOENT: "\(path) does not exist: this kernel has no pressure stall information"
        case EOPNOTSUPP: "pressure stall information is switched off (boot with psi=1)"
        case EACCES, EPERM, EROFS: "\(path) may not be written by this user"
        case ENODEV: "the cgroup of \(path) is gone"
        default: "\(path): \(SystemError.text(of: errno)) (\(SystemError.name(of: errno)))"
        }
    }
}

/// A pressure trigger: its descriptor reports POLLPRI when tasks have stalled for `stall` within a `window`, at most once in
/// each window. POLLERR means that the cgroup no longer exists; drop the trigger then.
package struct PressureTrigger: ~Copyable {
    package let descriptor: SharedDescriptor
    /// The granted values: at least the requested ones, in the same proportion.
    package let stall: Duration
    package let window: Duration

    /// - Parameters:
    ///   - path: /proc/pressure/memory or a cgroup's memory.pressure.
    ///   - window: 0.5 to 10 s. Without CAP_SYS_RESOURCE the kernel accepts only multiples of 2 s (older kernels none); the
    ///     next larger one is used then, with a proportionally longer stall.
    package init(
        path: String = "/proc/pressure/memory", _ kind: PressureKind, stall: Duration, window: Duration
    ) throws(PressureUnavailable) {
        let wanted = (stall: stall.wholeMicroseconds, window: window.wholeMicroseconds)
        let step: Int64 = 2_000_000
        let longer = max(step, (wanted.window + step - 1) / step * step)
        let scaled = (stall: wanted.stall * longer / max(wanted.window, 1), window: longer)
        let made: Descriptor
        var granted = wanted
        do {
            made = try Self.open(path, kind, wanted)
        } catch  where error.errno == EINVAL && scaled.window != wanted.window {
            made = try Self.open(path, kind, scaled)
            granted = scaled
        }
        descriptor = SharedDescriptor(made)
        self.stall = .microseconds(granted.stall)
        self.window = .microseconds(granted.window)
    }

    private static func open(
        _ path: String, _ kind: PressureKind, _ line: (stall: Int64, window: Int64)
    ) throws(PressureUnavailable) -> Descriptor {
        let file: Descriptor
        do {
            file = try Descriptor.open(path, O_RDWR | O_NONBLOCK | O_NOCTTY)
        } catch {
            throw PressureUnavailable(errno: error.errno, path: path)
        }
        let number = file.raw
        // With the NUL, which the kernel overwrites.
        let bytes = Array("\(kind.rawValue) \(line.stall) \(line.window)".utf8) + [0]
        let count = retryInterrupted { write(number, bytes, bytes.count) }
        if count < 0 { throw PressureUnavailable(errno: errno, path: path) }
        return file
    }
}

extension Duration {
    /// Whole microseconds, rounded down and limited to 1,000 s, so that products cannot overflow. The kernel's limit is 10 s.
    var wholeMicroseconds: Int64 {
        let (seconds, attoseconds) = components
        return min(max(seconds, 0), 999) * 1_000_000 + attoseconds / 1_000_000_000_000
    }
}
