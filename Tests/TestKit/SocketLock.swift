/// Functions in Python that hold the lock of a TCP socket: write(2) takes it, and then waits for a page that userfaultfd(2)
/// leaves empty. The lock is released by `release()`, or with the process.
///
/// `hold(socket)` returns when the lock is held. The program fails if it may not do so (vm.unprivileged_userfaultfd).
package let socketLocker = """
    import ctypes, fcntl, mmap, os, struct, threading
    libc = ctypes.CDLL(None, use_errno=True)
    # userfaultfd(2) has the number 323 or 282.
    faults = libc.syscall(323 if os.uname().machine == "x86_64" else 282, os.O_CLOEXEC)
    memory = mmap.mmap(-1, 65536, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    fcntl.ioctl(faults, 0xc018aa3f, struct.pack("QQQ", 0xaa, 0, 0))  # UFFDIO_API
    fcntl.ioctl(faults, 0xc020aa00, struct.pack("QQQQ", address, 65536, 1, 0))  # UFFDIO_REGISTER
    def hold(socket):
        number = socket.fileno()
        threading.Thread(target=lambda: libc.write(number, ctypes.c_void_p(address), 4096), daemon=True).start()
        os.read(faults, 32)  # the page is missing
    def release():
        fcntl.ioctl(faults, 0xc020aa04, struct.pack("QQQQ", address, 65536, 0, 0))  # UFFDIO_ZEROPAGE

    """
