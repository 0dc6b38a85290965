"""The greenroomd of the situations of the freeze map (situations.py) and of the idle hour (idle.py)."""

import json
import os
import re
import signal
import subprocess
import threading
import time


class Daemon:
    """A greenroomd, and the states of its apps as `greenroomctl watch` reports them; with is_verbose also the moments for which
    timers thaw them. `before`: the beginning of its command."""

    def __init__(self, binaries, folder, runtime, is_verbose=False, before=()):
        self.binaries, self.folder, self.runtime = binaries, folder, runtime
        self.changed = threading.Condition()
        self.events = 0
        self.apps = {}
        self.group = None
        os.makedirs(f"{folder}/config/apps")
        self.command = ["setpriv", "--pdeathsig", "TERM", "setsid", *before, f"{binaries}/greenroomd", "--config",
                        f"{folder}/config", "--runtime", runtime, "--state", f"{folder}/state"]
        self.start()
        self.wait("greenroomd listens", lambda: os.path.exists(f"{runtime}/bus"))
        self.watcher = subprocess.Popen(
            [f"{binaries}/greenroomctl", "--runtime", runtime, "--json", "watch"] + ["-v"] * is_verbose, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE)
        # For a look at what was not right.
        self.record = open(f"{folder}/events", "wb", buffering=0) if is_verbose else None
        threading.Thread(target=self.read_events, daemon=True).start()
        self.wait("greenroomctl watch prints events", self.is_watched)
        found = re.search(r"below (/[^ ]+) \(", self.ctl("--json", "pressure").replace("\\/", "/"))
        self.group = found and found.group(1)

    def start(self):
        with open(f"{self.folder}/log", "ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def replace(self):
        """Kills greenroomd and starts the next one. Returns how long there was none, in seconds."""
        began = time.monotonic()
        self.process.kill()
        self.process.wait()
        self.start()
        # It waits until a daemon answers.
        self.ctl("list")
        return time.monotonic() - began

    def ctl(self, *words):
        done = subprocess.run(
            [f"{self.binaries}/greenroomctl", "--runtime", self.runtime, *words], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=400, text=True, errors="replace")
        return done.stdout

    def wait(self, what, is_so):
        deadline = time.monotonic() + 20
        while not is_so():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"freeze-map: timeout: {what}\n{open(self.folder + '/log').read()[-2000:]}")
            time.sleep(0.05)

    def is_watched(self):
        # A simulated memory level causes an event, once the subscription works.
        self.ctl("pressure", "warning")
        self.ctl("pressure", "normal")
        return self.events > 0

    def read_events(self):
        for line in self.watcher.stdout:
            event = json.loads(line)
            if self.record:
                self.record.write(line)
            with self.changed:
                self.events += 1
                app = self.apps.get(event.get("app"))
                if app:
                    app.record(event)
                self.changed.notify_all()

    def stop(self):
        self.watcher.kill()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
        if not self.group or not os.path.isdir(self.group):
            return
        # After the daemon was killed, its apps are left.
        for leaf in [entry.path for entry in os.scandir(self.group) if entry.is_dir()]:
            with open(leaf + "/cgroup.kill", "w") as file:
                file.write("1")
            time.sleep(0.2)
            os.rmdir(leaf)
        os.rmdir(self.group)
