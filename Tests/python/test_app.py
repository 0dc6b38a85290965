"""The app in one process with a fake daemon: asyncio, tasks, errors, forks. The contract tests have the rest."""
import asyncio
import json
import math
import os
import pathlib
import signal
import socket
import threading
import time
import unittest
import unittest.mock

from support import GREETING, AppTest
import greenroom
from greenroom import _task

EXPIRING = 'event 2 tasksExpiring {"names": ["upload"], "remainingSeconds": 5.0}\n'
END = 'event 9 willTerminate {"reason": "request"}\nexpect Answer [9, {}]\n'


class Asyncio(AppTest):
    def test_a_task_is_cancelled_when_the_background_time_ends(self):
        self.fake(GREETING + 'expect BeginTask ["upload", "$t"]\nreply t [30000000]\n' + EXPIRING + 'expect EndTask ["$t"]\n' + END)
        app, log = self.app(), []

        @app.on_terminate
        async def terminate():
            log.append("terminate")

        async def main():
            app.start()
            running = asyncio.ensure_future(app.run())
            with self.assertRaises(greenroom.TaskExpired):
                async with app.task("upload") as task:
                    await asyncio.sleep(60)
            self.assertTrue(task.expiring)
            self.assertEqual(asyncio.current_task().cancelling(), 0)
            await running

        asyncio.run(main())
        self.assertEqual(log, ["terminate"])

    def test_progress_is_reported_ten_times_in_a_second_at_most(self):
        self.fake(GREETING + 'expect BeginTask ["export", "$t"]\nreply t [30000000]\n'
                  'expect SetTaskProgress ["export", 1, 5, "Exporting"]\n'
                  'expect SetTaskProgress ["export", 3, 5, "Exporting"]\n'
                  'expect SetTaskProgress ["export", 4, 5, "Finishing"]\n'
                  'expect SetTaskProgress ["export", 5, 5, "Finishing"]\nexpect EndTask ["$t"]\n' + END)
        app, times = self.app(), iter([1.0, 1.09, 1.11, 1.12, 1.13])
        app.on_terminate(lambda: None)

        async def main():
            app.start()
            running = asyncio.ensure_future(app.run())
            async with app.task("export") as task:
                with unittest.mock.patch.object(_task.time, "monotonic", lambda: next(times)):
                    for done in range(1, 6):
                        task.progress(done, 5, "Exporting" if done < 4 else "Finishing")
            await running

        asyncio.run(main())

    def test_the_end_of_the_time_that_is_seen_twice_cancels_once(self):
        self.fake(GREETING + 'expect BeginTask ["upload", "$t"]\nreply t [30000000]\nexpect EndTask ["$t"]\n' + END)
        app = self.app()

        async def main():
            app.start()
            running = asyncio.ensure_future(app.run())
            with self.assertRaises(greenroom.TaskExpired):
                async with app.task("upload") as task:
                    # The connection's thread reports it while the task begins, which has seen it already.
                    task._expire()
                    task._cancel()
                    await asyncio.sleep(60)
            self.assertEqual(asyncio.current_task().cancelling(), 0)
            await running

        asyncio.run(main())

    def test_a_task_that_is_cancelled_by_the_program_is_not_taken_for_expired(self):
        self.fake(GREETING + 'expect BeginTask ["upload", "$t"]\nreply t [30000000]\nexpect EndTask ["$t"]\n' + END)
        app = self.app()
        app.on_terminate(lambda: None)

        async def upload(begun):
            async with app.task("upload"):
                begun.set()
                await asyncio.sleep(60)

        async def main():
            app.start()
            running, begun = asyncio.ensure_future(app.run()), asyncio.Event()
            work = asyncio.ensure_future(upload(begun))
            await begun.wait()
            work.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await work
            await running

        asyncio.run(main())

    def test_a_refused_task_raises_the_sentence(self):
        self.fake(GREETING + 'expect BeginTask ["upload", "$t"]\nerror org.greenroom.Error.NoBackgroundTime No time is left.\n'
                  'expect EndTask ["$t"]\n' + END)
        app = self.app()
        app.on_terminate(lambda: None)

        async def main():
            app.start()
            running = asyncio.ensure_future(app.run())
            with self.assertRaisesRegex(greenroom.Refused, "No time is left.") as caught:
                async with app.task("upload"):
                    self.fail("the task has begun")
            self.assertEqual(caught.exception.name, "org.greenroom.Error.NoBackgroundTime")
            await running

        asyncio.run(main())

    def test_a_push_that_takes_long_delays_no_transition(self):
        self.fake(GREETING + 'event 1 push {"id": 1, "payload": "a"}\nevent 2 didEnterBackground\nexpect Answer [2, {}]\n'
                  'expect Answer [1, {"result": "no-data"}]\n' + END)
        app, background = self.app(), asyncio.Event()
        app.on_terminate(lambda: None)

        @app.on_push
        async def push():
            await background.wait()
            return greenroom.Result.NO_DATA

        @app.on_background
        async def enter():
            asyncio.get_running_loop().call_later(0.1, background.set)

        app.run()

    def test_events_of_a_coroutine_program_keep_their_order(self):
        self.fake(GREETING + 'event 1 openURL {"url": "a"}\nevent 2 openURL {"url": "b"}\nevent 3 didBecomeActive {"cause": "return"}\n' + END)
        app, log = self.app(), []
        app.on_terminate(lambda: None)
        app.on_active(log.append)

        @app.on_url
        async def url(url):
            await asyncio.sleep(0.05 if url == "a" else 0)
            log.append(url)

        app.run()
        self.assertEqual(log, ["a", "b", "return"])


class Sync(AppTest):
    def test_a_worker_thread_sees_that_its_task_expires_while_a_handler_runs(self):
        self.fake(GREETING + 'expect BeginTask ["upload", "$t"]\nreply t [30000000]\n' + EXPIRING + 'expect EndTask ["$t"]\n' + END)
        app, log = self.app(), []
        app.on_terminate(lambda: log.append("terminate"))

        def work():
            with app.task("upload") as task:
                log.append(task.wait_expiring(30))

        app.start()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        app.run()
        self.assertEqual(log, [True, "terminate"])

    def test_the_remaining_time_is_infinite_in_the_foreground(self):
        self.fake(GREETING + "expect RemainingTime\nreply t [18446744073709551615]\nexpect RemainingTime\nreply t [2500000]\n")
        app = self.app()
        app.start()
        self.assertEqual([app.remaining_time, app.remaining_time], [math.inf, 2.5])

    def test_what_the_earlier_process_described_is_known(self):
        self.fake(GREETING + "expect RemainingTime\nreply t [1]\n")
        app = self.app()
        app.start()
        self.assertGreater(app.remaining_time, 0)
        self.assertEqual(app.last_summary, "page 3")

    def test_a_handler_that_raises_is_logged_and_the_event_is_answered(self):
        self.fake(GREETING + 'event 1 push {"id": 1, "payload": "a"}\nexpect Answer [1, {"result": "failed"}]\n' + END)
        app = self.app()
        app.on_push(lambda payload: 1 / 0)
        app.on_terminate(lambda: None)
        with self.assertLogs("greenroom", "ERROR") as logged:
            app.run()
        self.assertIn("ZeroDivisionError", logged.output[0])

    def test_a_state_that_is_too_large_is_refused_at_once(self):
        self.fake("")
        with self.assertRaisesRegex(greenroom.Refused, "1048577 bytes; at most 1048576"):
            self.app().save_bytes(b"x" * (1048576 + 1))

    def test_a_daemon_that_does_not_answer_is_an_error_of_its_own(self):
        self.fake("connect\nexpect RemainingTime\nreply t [1]\nexpect RemainingTime\nignore\nwait")
        app = self.app()
        # It is connected before the time counts.
        app.remaining_time
        with unittest.mock.patch("greenroom._app.CALL_SECONDS", 1.0), self.assertRaises(greenroom.Unavailable):
            app.remaining_time
        self.played.go.set()

    def test_too_many_calls_without_a_reply_are_refused(self):
        self.fake("connect\nwait")
        app = self.app()
        with self.assertRaisesRegex(greenroom.Refused, "too many calls"):
            for _ in range(1001):
                app._send("SetStateSummary", "s", ["a"])
        self.played.go.set()

    def test_a_thousand_status_texts_are_one_call(self):
        # Nothing accepts the connection meanwhile, so the calls stay in the queue.
        self.fake("unlisten\nwait\nlisten\nconnect\nexpect SetStatus [\"999\"]\n")
        app = self.app()
        for number in range(1000):
            app.status(f"{number}")
        self.played.go.set()
        app._connection.flush(30)

    def test_a_forked_child_does_not_use_the_connection_of_its_parent(self):
        self.fake(GREETING + "expect RemainingTime\nreply t [1000000]\n")
        app = self.app()
        app.start()
        child = os.fork()
        if child == 0:
            with app.task("child"):
                os._exit(0 if app.remaining_time == math.inf and not app.in_greenroom else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(app.remaining_time, 1)

    def test_a_forked_child_does_not_act_for_its_parent(self):
        self.fake(GREETING)
        notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(notify.close)
        notify.setblocking(False)
        notify.bind("\0greenroom-test-%d" % os.getpid())
        os.environ["NOTIFY_SOCKET"] = "@greenroom-test-%d" % os.getpid()
        self.addCleanup(os.environ.pop, "NOTIFY_SOCKET")
        app = self.app()
        app.start()
        # The end of the app would come before its last call.
        self.played.thread.join(60)
        child = os.fork()
        if child == 0:
            app.status("child")
            app.heartbeat()
            refused = 0
            for function in (lambda: app.save(1), app.restore, app.drop_state):
                try:
                    function()
                except greenroom.Error:
                    refused += 1
            app.stop()
            os._exit(0 if refused == 3 else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertRaises(BlockingIOError, notify.recv, 4096)

    def test_answers_and_ends_of_tasks_are_queued_however_many_calls_wait(self):
        self.fake("connect\npause 0.5")
        app = self.app()
        for _ in range(1000):
            app._send("SetStateSummary", "s", ["a"])
        app._send("EndTask", "s", ["a"])
        app._send("Answer", "ta{sv}", [1, {}])
        app.stop()

    def test_handlers_take_as_many_arguments_as_they_want(self):
        app = self.app()
        with self.assertRaisesRegex(TypeError, "gets 1 arguments"):
            app.on_active(lambda cause, more: None)
        app.on_url(lambda *arguments: None)
        app.on_url(lambda: None)


class LaunchEnvironment(AppTest):
    def test_the_launch_is_in_the_environment(self):
        receipt = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"greenroom-receipt-{os.getpid()}")
        with open(receipt, "w", encoding="utf-8") as file:
            json.dump({"explanation": "Crashed."}, file)
        self.addCleanup(os.unlink, receipt)
        launch = greenroom.Launch.from_environment({
            "GREENROOM_APP": "a", "GREENROOM_LAUNCH_STATE": "background", "GREENROOM_LAUNCH_REASON": "push",
            "GREENROOM_FIRST_LAUNCH": "1", "GREENROOM_LAST_RECEIPT": receipt,
        })
        self.assertEqual(launch, greenroom.Launch("a", False, "push", None, True, {"explanation": "Crashed."}))


class WithoutGreenroom(unittest.TestCase):
    def setUp(self):
        patch = unittest.mock.patch.dict(os.environ)
        patch.start()
        self.addCleanup(patch.stop)
        for name in [name for name in os.environ if name.startswith(("GREENROOM_", "NOTIFY_", "STATE_"))]:
            del os.environ[name]

    def test_tasks_do_nothing_and_time_is_infinite(self):
        app = greenroom.App()
        with app.task("a") as task:
            self.assertEqual((task.expiring, task.remaining), (False, math.inf))
        app.status("a")
        app.heartbeat()
        app.idle()
        app.summary("a")
        app.save_snapshot(b"")

        async def work():
            async with app.task("b"):
                await asyncio.sleep(0)

        asyncio.run(work())

    def test_the_state_is_a_file_in_the_state_directory(self):
        with self.subTest("no directory"):
            app = greenroom.App()
            app.save([1])
            self.assertEqual(app.restore("default"), "default")
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            os.environ["STATE_DIRECTORY"] = folder + ":/other"
            self.assertIsNone(app.restore())
            app.save({"page": 3, "text": "ä"})
            self.assertEqual(app.restore(), {"page": 3, "text": "ä"})
            app.save_bytes(b"no json")
            with self.assertLogs("greenroom", "WARNING"):
                self.assertEqual(app.restore(7), 7)
            app.drop_state()
            self.assertIsNone(app.restore())

    def test_the_program_becomes_active_and_ends_with_sigterm(self):
        app, log = greenroom.App(), []

        @app.on_active
        def active(cause):
            log.append(cause)
            os.kill(os.getpid(), 15)

        app.on_terminate(log.append)
        app.run()
        self.assertEqual(log, ["launch", "SIGTERM"])

    def test_a_signal_that_another_thread_receives_ends_a_wait(self):
        app, log, ended = greenroom.App(), [], threading.Event()
        main = threading.get_native_id()

        def other():
            # SYS_poll is 7 on x86-64; elsewhere poll(2) is ppoll(2), 73.
            end = time.monotonic() + 20
            while pathlib.Path(f"/proc/self/task/{main}/syscall").read_text().split()[0] not in ("7", "73"):
                if time.monotonic() > end:
                    return app.stop()
                os.sched_yield()
            # The kernel gives the signal to this thread. It is as for one that comes between Python's last look at signals and a wait.
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
            if not ended.wait(20):
                app.stop()

        thread = threading.Thread(target=other)
        app.on_active(lambda cause: thread.start())
        app.on_terminate(log.append)
        app.run()
        ended.set()
        thread.join()
        self.assertEqual(log, ["SIGTERM"])

    def test_a_program_keeps_its_own_wakeup_descriptor(self):
        reader, writer = socket.socketpair()
        with reader, writer:
            writer.setblocking(False)
            signal.set_wakeup_fd(writer.fileno())
            self.addCleanup(signal.set_wakeup_fd, -1)
            app = greenroom.App()
            app.on_active(lambda cause: os.kill(os.getpid(), signal.SIGTERM))
            app.run()
            self.assertEqual(reader.recv(9), bytes([signal.SIGTERM]))
            self.assertEqual(signal.set_wakeup_fd(-1), writer.fileno())

    def test_stop_ends_run_without_a_handler(self):
        app = greenroom.App()
        app.on_active(app.stop)
        app.run()
        self.assertFalse(app.dispatch(0))

    def test_dispatch_returns_after_its_timeout(self):
        app = greenroom.App()
        start = time.monotonic()
        self.assertTrue(app.dispatch(0.05))
        self.assertGreaterEqual(time.monotonic() - start, 0.05)

    def test_a_systemd_service_is_ready(self):
        import socket
        import tempfile
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as messages:
            messages.bind(folder + "/notify")
            os.environ["NOTIFY_SOCKET"] = folder + "/notify"
            app = greenroom.App()
            app.start()
            app.status("two\nlines")
            app.stop()
            self.assertEqual([messages.recv(99) for _ in range(3)], [b"READY=1", b"STATUS=two lines", b"STOPPING=1"])


if __name__ == "__main__":
    unittest.main()
