import Glibc
package import Posix

/// Opens a pseudoterminal: its master, close-on-exec, and the path of its other side. Swift's Glibc lacks posix_openpt(3); these are
/// its system calls (ioctl_tty(2)).
package func openTerminal(rows: UInt16 = 30, columns: UInt16 = 80) throws(SystemError) -> (master: Int32, path: String)
{
    let (setLock, getNumber): (UInt, UInt) = (0x4004_5431, 0x8004_5430)  // TIOCSPTLCK, TIOCGPTN
    let master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
    guard master >= 0 else { throw SystemError(call: "open", errno: errno, path: "/dev/ptmx") }
    var (lock, number): (Int32, UInt32) = (0, 0)
    var size: [UInt16] = [rows, columns, 0, 0]  // struct winsize: rows, columns, two unused fields
    guard ioctl(master, setLock, &lock) == 0, ioctl(master, getNumber, &number) == 0,
        ioctl(master, UInt(TIOCSWINSZ), &size) == 0
    else {
        let reason = errno
        close(master)
        throw SystemError(call: "ioctl", errno: reason, path: "/dev/ptmx")
    }
    return (master, "/dev/pts/\(number)")
}
