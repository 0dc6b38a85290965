"""The situations of the freeze map: real servers that are at work, or that only have connections, under a worker's default
settings (L51).

Each situation is a server of its own and what a client does. `awake`: the server is at work in a way that a freeze would change,
so it must not be suspended until the client has its answer. `suspended`: each thread waits for something that is watched, so it is
suspended, and woken by what arrives or by its timer. `suspended after RequestSec=`: it has ticks, so bytes over a connection keep
it awake for that time. `never cut`: it may be awake or suspended. Whatever is due at a known time must arrive then.
"""

import http.client
import json
import re
import subprocess
import threading
import time

import programs
from programs import Site, is_root

IDLE, REQUEST, QUIET = 2, 25, 10
# What is due may be so late: a thaw, and a machine that is busy.
LATE = 1.0
HEAD = ["situation", "server", "it has to be", "suspended", "awake because of, woken by", "the client received", "as expected"]
situations = []


class Failure(Exception):
    pass


class Situation:
    """One server, one client, and the times of its states since the client began."""

    def __init__(self, daemon, number, name, server, expected, make, play, settings):
        self.daemon, self.name, self.server, self.expected = daemon, name, server, expected
        self.settings, self.make, self.play = settings, make, play
        self.id = "situation%02d" % number
        self.site = Site(f"{daemon.folder}/{self.id}")
        self.state, self.changes, self.wakes, self.reasons = None, [], [], []
        # done_at: the server has closed the connection, so it may be suspended.
        self.start = self.end = self.done_at = None
        self.received, self.problems = "", []
        # How late the latest of what was due at a known time was.
        self.latest = None

    def record(self, event):
        if self.end:
            return
        if event.get("kind") == "stateChanged":
            self.state = event.get("state")
            self.changes.append((time.monotonic(), self.state))
        elif event.get("kind") == "inputArrived":
            self.wakes.append((time.monotonic(), event.get("message", "").split("woken by ")[-1]))
        elif event.get("kind") in ("ended", "wokenTooOften", "inputNotWatched"):
            self.problems.append(event.get("message", event["kind"]).removeprefix(self.id + ": "))

    def launch(self):
        start = self.make(self.site)
        self.talk, self.port = start.talk, start.talk.port
        script = self.site.write("run", programs.script(start, self.site.folder))
        user = start.user or ("root" if is_root() else "")
        with open(f"{self.daemon.folder}/config/apps/{self.id}.app", "w") as file:
            file.write(
                f"[App]\nExecStart=/bin/sh {script}\nRole=worker\n{f'User={user}' if user else ''}\n"
                f"Type=listening\n[Lifecycle]\nIdleSec={IDLE}s\nRequestSec={REQUEST}s\nLaunchDeadlineSec=5min\n"
                f"{self.settings}\n")
        self.daemon.ctl("reload")
        self.daemon.apps[self.id] = self
        answer = self.daemon.ctl("launch", self.id, "--background")
        if not self.awaits(lambda: self.state == "suspended", 90):
            raise Failure(f"was not suspended at first: {answer.strip()}")

    def awaits(self, is_so, seconds):
        with self.daemon.changed:
            return self.daemon.changed.wait_for(is_so, seconds)

    def pause(self, seconds=QUIET):
        """The client sends nothing for so long."""
        time.sleep(seconds)

    def begin(self):
        """The client's part begins; what came before was only to learn what the server does at rest."""
        self.start = time.monotonic()

    def due(self, seconds, start=None):
        """What has just arrived was due so many seconds after the client began, or after `start`."""
        late = time.monotonic() - (self.start if start is None else start) - seconds
        if late > LATE:
            self.problems.append(f"{late:.1f}s late")
        elif late < -0.1:
            self.problems.append(f"{-late:.1f}s early")
        self.latest = max(self.latest or 0.0, late)

    def run(self):
        try:
            self.launch()
            watch = threading.Thread(target=self.sample, daemon=True)
            watch.start()
            self.received = self.play(self)
        except (Failure, OSError, http.client.HTTPException, subprocess.SubprocessError) as error:
            self.problems.append(f"{type(error).__name__}: {error}")
        self.end = time.monotonic()
        self.start = self.start or self.end

    def sample(self):
        """Asks now and then why the server is awake."""
        while self.end is None:
            time.sleep(1)
            if self.state == "suspended" or self.start is None:
                continue
            status = json.loads(self.daemon.ctl("--json", "status", self.id))
            for reason in status.get("awake", []):
                # The detail names a thread, and would be another one in each row.
                explanation = reason["explanation"].removesuffix(": " + reason.get("detail", ""))
                # Nothing is measured for the first time yet.
                if reason["reason"] != "suspendDelay" and explanation not in self.reasons:
                    self.reasons.append(explanation)

    # ---- The row

    def suspended(self):
        """When the server was suspended, in seconds since the client began."""
        spans, since = [], None
        for at, state in self.changes + [(self.end, "end")]:
            if state == "suspended":
                since = since or at
            elif since:
                if at > self.start + 0.05 and since < self.end - 0.05:
                    spans.append((max(0.0, since - self.start), min(at, self.end) - self.start))
                since = None
        return spans

    def is_as_expected(self):
        spans = [span for span in self.suspended() if span[0] > 0.5]
        if self.problems:
            return False
        if self.expected == "never cut":
            return True
        if self.expected == "awake":
            return not spans or bool(self.done_at) and spans[0][0] >= self.done_at - self.start
        if self.expected == "suspended":
            return any(end - begin > 1 for begin, end in self.suspended())
        return bool(spans) and spans[0][0] > REQUEST - IDLE

    def row(self):
        spans = ", ".join(f"{one:.1f}s to {other:.1f}s" for one, other in self.suspended()) or "never"
        woken = [message.split(" (")[0] for at, message in self.wakes if self.start <= at <= self.end]
        because = "; ".join(self.reasons + [f"woken by {re.sub(':[0-9]+$', '', one)}" for one in dict.fromkeys(woken[:3])])
        received = self.received + (f", at most {max(1, round(self.latest * 1000))}ms late" if self.latest is not None else "")
        cells = [self.name, self.server, self.expected, spans, because, "; ".join([received] + self.problems),
                 "yes" if self.is_as_expected() else "no"]
        return [" ".join(cell.split()).replace("|", "/") for cell in cells]


def situation(name, server, expected, make, play, settings=""):
    """Adds a situation: `make` returns how the server is started (programs.py), and `play` is the client. It returns what the
    client received."""
    situations.append((name, server, expected, make, play, settings))


def since(start):
    return f"{time.monotonic() - start:.1f}s"


# ---- The table


def play(daemon, only):
    """Plays all situations at the same time. Returns them."""
    stages = [Situation(daemon, number, *entry) for number, entry in enumerate(situations)
              if not only or any(word in entry[0] + " " + entry[1] for word in only)]
    threads = [threading.Thread(target=stage.run, daemon=True) for stage in stages]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return stages


def table(rows):
    lines = [HEAD, ["---"] * len(HEAD)] + rows
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"
