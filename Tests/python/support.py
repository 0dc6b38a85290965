"""What the tests share: the package of this source tree, and an app with a fake daemon in a thread."""
import os
import pathlib
import sys
import tempfile
import threading
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "Sources/Python"), str(ROOT / "Tests/contract")]

import fake_greenroom  # noqa: E402
import greenroom  # noqa: E402

GREETING = """
connect
expect Attach [{"handles": "*", "serial": "*", "library": "*"}]
reply a{sv} [{"app": "test", "run": 1, "serial": 0, "stateSummary": "page 3"}]
expect Ready
"""


class Fake:
    """Plays a transcript in a thread, for an app in this process. The environment names its socket."""

    def __init__(self, test, transcript):
        self.folder = tempfile.TemporaryDirectory()
        self.player = fake_greenroom.Player(self.folder.name, [])
        self.player.process = mock.Mock(poll=lambda: 0)
        self.error = None
        # A step "wait" ends when the test sets this.
        self.go = threading.Event()
        self.player.do_wait = lambda: self.go.wait(60)
        self.apps = []
        path = self.folder.name + "/transcript"
        pathlib.Path(path).write_text(transcript, encoding="utf-8")
        self.steps = fake_greenroom.steps(path)
        patch = mock.patch.dict(os.environ, self.player.environment)
        patch.start()
        test.addCleanup(patch.stop)
        self.thread = threading.Thread(target=self.play, daemon=True)
        self.thread.start()

    def play(self):
        try:
            for _, name, arguments in self.steps:
                getattr(self.player, "do_" + name)(*arguments)
        except Exception as error:  # The test reports it, and the app does not wait for what will not come.
            self.error = error
            for app in self.apps:
                app.stop()

    def finish(self, test):
        self.thread.join(60)
        self.player.close()
        self.folder.cleanup()
        test.assertIsNone(self.error, self.error)
        test.assertFalse(self.thread.is_alive())


class AppTest(unittest.TestCase):
    def fake(self, transcript):
        self.played = Fake(self, transcript)
        self.addCleanup(self.played.finish, self)

    def app(self):
        app = greenroom.App()
        if hasattr(self, "played"):
            self.played.apps.append(app)
        self.addCleanup(lambda: app._connection and app._connection.close())
        return app
