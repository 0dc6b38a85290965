"""The examples of docs, played with a fake daemon."""
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

from support import ROOT
import fake_greenroom

ATTACH = """
expect Attach [{"handles": "*", "serial": 0, "library": "*"}]
reply a{sv} [{"app": "test", "run": 1, "serial": 1}]
expect Ready
"""
END = 'terminate\nended\nexit 0\n'
NO_STATE = "error org.greenroom.Error.NotFound There is none."


def started(state=NO_STATE):
    return f"connect\nexpect GetState\n{state}\n{ATTACH}"


class Examples(unittest.TestCase):
    def play(self, name, transcript):
        environment = {"PYTHONPATH": str(ROOT / "Sources/Python"), "STATE_DIRECTORY": self.folder, "PYTHONDONTWRITEBYTECODE": "1"}
        path = pathlib.Path(self.folder, "transcript")
        path.write_text(transcript, encoding="utf-8")
        with mock.patch.dict(os.environ, environment):
            self.assertTrue(fake_greenroom.play(path, [sys.executable, str(ROOT / "docs/examples" / name)]))

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_the_uploader_continues_with_what_an_earlier_process_has_left(self):
        source, copy = pathlib.Path(self.folder, "source/file"), pathlib.Path(self.folder, "file")
        source.parent.mkdir()
        data = os.urandom(100_000)
        source.write_bytes(data)
        copy.write_bytes(data[:65_536])
        self.play("uploader.py", f"""
{started('state ["%s"]' % source)}
expect BeginTask ["upload", "$task"]
reply t [30000000]
expect SetStatus ["{source}: 97 KiB"]
expect EndTask ["$task"]
expect SaveState ["[]"]
{END}""")
        self.assertEqual(copy.read_bytes(), data)

    def test_the_uploader_stops_when_its_background_time_ends(self):
        source = pathlib.Path(self.folder, "source/file")
        source.parent.mkdir()
        source.write_bytes(b"x" * 100_000)
        self.play("uploader.py", f"""
{started()}
event 2 openURL {{"url": "upload:{source}"}}
expect SaveState ["[\\"{source}\\"]"]
expect BeginTask ["upload", "$task"]
ignore
event 3 tasksExpiring {{"names": ["upload"], "remainingSeconds": 5.0}}
reply t [30000000]
expect SetStatus "*"
expect EndTask ["$task"]
{END}""")

    def test_the_feed_reader_keeps_each_headline_once(self):
        self.play("feed.py", f"""
{started('state ["old"]')}
event 2 push {{"id": 1, "payload": "old"}}
expect Answer [2, {{"result": "no-data"}}]
event 3 push {{"id": 2, "payload": "new"}}
expect SaveState ["[\\"old\\",\\"new\\"]"]
expect SetStatus ["2 headlines, the last: new"]
expect Answer [3, {{"result": "new-data"}}]
{END}""")

    def test_the_kiosk_saves_its_page(self):
        # It reports its status each second, which a busy machine takes for the steps below.
        text = (ROOT / "docs/examples/kiosk/kiosk.py").read_text(encoding="utf-8")
        self.assertIn("dispatch(1.0)", text)
        script = pathlib.Path(self.folder, "kiosk.py")
        script.write_text(text.replace("dispatch(1.0)", "dispatch(60.0)"), encoding="utf-8")
        self.play(script, f"""
{started()}
event 2 openURL {{"url": "kiosk:7"}}
event 3 didEnterBackground
expect SaveState ["{{\\"seconds\\":0,\\"page\\":\\"7\\"}}"]
expect Answer [3, {{}}]
{END}""")


if __name__ == "__main__":
    unittest.main()
