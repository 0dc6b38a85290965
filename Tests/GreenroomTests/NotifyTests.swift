import Glibc
import Greenroom
import TestKit
import Testing

// Each test runs in a process of its own, as it changes the environment.

@Suite("App library: notifications")
struct NotifyTests {
    @Test("each call sends one datagram with its sd_notify(3) text")
    func calls() throws {
        try inOwnProcess {
            let socket = try NotifySocket()
            Greenroom.finishedLaunching()
            #expect(socket.received() == ["READY=1"])
            Greenroom.enteredBackground()
            #expect(socket.received() == ["X_GREENROOM_BACKGROUND=1"])
            Greenroom.heartbeat()
            #expect(socket.received() == ["WATCHDOG=1"])
            Greenroom.completedWake(.newData)
            Greenroom.completedWake(.noData)
            Greenroom.completedWake(.failed)
            Greenroom.completedWake(.newData, number: 17)
            #expect(
                socket.received() == [
                    "X_GREENROOM_WAKE_DONE=new-data", "X_GREENROOM_WAKE_DONE=no-data", "X_GREENROOM_WAKE_DONE=failed",
                    "X_GREENROOM_WAKE_DONE=new-data\nX_GREENROOM_WAKE_ID=17",
                ])
        }
    }

    @Test("a status text is sent on one line")
    func status() throws {
        try inOwnProcess {
            let socket = try NotifySocket()
            Greenroom.status("Uploading 3 of 7 – größer 🦊")
            Greenroom.status("a\nREADY=1\r\nb\n")
            Greenroom.status("")
            #expect(socket.received() == ["STATUS=Uploading 3 of 7 – größer 🦊", "STATUS=a READY=1 b", "STATUS="])
        }
    }

    @Test("a background task ends once: with end() or when the value is destroyed")
    func tasks() throws {
        try inOwnProcess {
            let socket = try NotifySocket()
            let upload = Greenroom.BackgroundTask(named: "upload")
            #expect(upload.name == "upload")
            #expect(socket.received() == ["X_GREENROOM_BEGIN_TASK=upload"])
            upload.end()
            #expect(socket.received() == ["X_GREENROOM_END_TASK=upload"])
            do {
                let sync = Greenroom.BackgroundTask(named: "sync")
                #expect(socket.received() == ["X_GREENROOM_BEGIN_TASK=\(sync.name)"])
            }
            #expect(socket.received() == ["X_GREENROOM_END_TASK=sync"])
        }
    }

    @Test("a task name is sent on one line and truncated to 128 bytes between characters")
    func taskNames() throws {
        try inOwnProcess {
            let socket = try NotifySocket()
            let begin = "X_GREENROOM_BEGIN_TASK="
            let end = "X_GREENROOM_END_TASK="
            Greenroom.BackgroundTask(named: "two\nlines").end()
            #expect(socket.received() == ["\(begin)two lines", "\(end)two lines"])
            let longest = String(repeating: "ä", count: 64)
            Greenroom.BackgroundTask(named: longest).end()
            #expect(socket.received() == [begin + longest, end + longest])
            // The 128th byte is the first of a character of two bytes, which does not fit.
            let name = "a" + String(repeating: "ä", count: 63)
            Greenroom.BackgroundTask(named: name + "äb").end()
            #expect(socket.received() == [begin + name, end + name])
        }
    }

    @Test("an abstract notify socket is supported")
    func abstractSocket() throws {
        try inOwnProcess {
            let socket = try NotifySocket(abstract: true)
            Greenroom.finishedLaunching()
            #expect(socket.received() == ["READY=1"])
        }
    }

    @Test("without NOTIFY_SOCKET no call sends anything or fails")
    func withoutSocket() throws {
        try inOwnProcess {
            let socket = try NotifySocket()
            unsetenv("NOTIFY_SOCKET")
            callAll()
            #expect(socket.received() == [])
        }
    }

    @Test("a notify socket that no longer exists is ignored")
    func missingSocket() throws {
        try inOwnProcess {
            setenv("NOTIFY_SOCKET", "/nonexistent/notify", 1)
            callAll()
            setenv("NOTIFY_SOCKET", "not an address", 1)
            callAll()
        }
    }

    private func callAll() {
        Greenroom.finishedLaunching()
        Greenroom.enteredBackground()
        Greenroom.heartbeat()
        Greenroom.completedWake(.newData)
        Greenroom.status("status")
        Greenroom.BackgroundTask(named: "task").end()
    }
}
