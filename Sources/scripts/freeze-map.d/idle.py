"""An idle hour of many programs (freeze-map --idle): each one is a worker with the default settings, all run at the same time, and
the clients do little or nothing.

A row is a program and what its client does. The client's function gets the Row: it makes its first request, waits with row.rest()
until the time is over, and makes its last ones; or it receives a stream until then (idle_streams.py). The programs of the freeze
map have a connection that is open all the time. What a program starts as workers beside it has rows of its own.
"""

import collections
import concurrent.futures
import json
import random
import select
import socket
import ssl
import subprocess
import threading
import time

import programs
import talks
from programs import Site, is_root

# What is due may be so late: at most 1s by the rules, and a machine that is busy.
LATE = 1.2
# With --kill: how long the next daemon may take, beside that.
LONGEST_ABSENCE = 3
# Programs start at the same time.
LONGEST_START = 120
# So many are prepared and launched at once.
STARTS_AT_ONCE = 4
# How often the daemon is asked why apps are awake.
SAMPLE = 10
# How often it is said how it is.
REPORT = 300
# The last requests of the programs are not made at once.
APART = 0.2
KINDS = {"listener": "connection", "stream": "data", "datagram": "datagram", "pipe": "pipe", "terminal": "terminal",
         "event": "event", "epoll": "epoll", "timer": "timer"}
HEAD = ["program", "version", "asleep after", "asleep", "woken by", "the client received", "events", "at most late",
        "lost, changed", "awake because; remarks", "right"]
entries = []


class Row:
    """A worker, its states as the daemon reports them, and what its client received."""

    def __init__(self, daemon, name, package, play, settings="", make=None, start=None, site=None):
        self.daemon, self.name, self.package, self.play, self.settings = daemon, name, package, play, settings
        self.make, self.start = make, start
        self.id = "idle%02d" % len(daemon.apps)
        daemon.apps[self.id] = self
        self.site = site or Site(f"{daemon.folder}/{self.id}")
        self.before, self.problems, self.remarks, self.received = [], [], [], []
        self.changes, self.inputs, self.wakes = [], collections.Counter(), collections.Counter()
        self.warnings = {}
        self.reasons, self.looks, self.due = collections.Counter(), 0, {}
        # Instants of CLOCK_MONOTONIC: of the last request that is followed by rest, and the measured time.
        self.asked_at = self.begin = self.end = None
        self.bytes = self.lost = self.changed = self.events = 0
        self.next, self.latest, self.planned, self.limit = None, None, None, LATE

    # ---- What the daemon reports

    def record(self, event):
        kind, at = event.get("kind"), event.get("timeMonotonic", 0) / 1e6
        if kind == "stateChanged":
            before = self.changes[-1][1] if self.changes else None
            self.changes.append((at, event.get("state")))
            if before == "suspended" and event.get("state") != before and self.is_measured(at):
                self.count_wake(event.get("reason", "other"), at)
        elif kind == "inputArrived" and self.is_measured(at):
            self.inputs[KINDS.get(event.get("input", {}).get("kind"), "other")] += 1
        elif kind == "ended":
            if self.end is None or at <= self.end:
                self.problem(event.get("message", kind))
        elif kind in ("wokenTooOften", "inputNotWatched", "locksHeld", "deadlineMissed", "freezeTakesLong", "cpuThrottled"):
            # The first one is enough, and how many there were.
            self.warnings.setdefault(kind, [0, event.get("message", kind)])[0] += 1

    def count_wake(self, reason, at):
        if reason == "timer":
            # The one that was due nearest to this instant, when the daemon was asked last.
            left = {name: abs(due - at) for name, due in self.due.items()}
            reason = min(left, key=left.get) if left else "timer"
        self.wakes[reason] += 1

    def is_measured(self, at):
        return self.begin is not None and self.begin <= at and (self.end is None or at <= self.end)

    def look(self, status, now):
        """What the daemon answered when it was asked why the app is awake."""
        self.due = {name: now + status[key] for name, key in (("timer", "timerInSeconds"), ("pulse", "pulseInSeconds"))
                    if key in status}
        if status.get("wakeProblem"):
            self.remark(status["wakeProblem"])
        if not self.is_measured(now):
            return
        self.looks += 1
        for reason in status.get("awake", []):
            # The detail names a thread, and would be another one in each row.
            self.reasons[reason["explanation"].removesuffix(": " + reason.get("detail", ""))] += 1

    def problem(self, sentence):
        self.add(self.problems, sentence)

    def remark(self, sentence):
        self.add(self.remarks, sentence)

    def add(self, sentences, sentence):
        sentence = " ".join(str(sentence).split()).replace("|", "/").removeprefix(self.id + ": ")[:200]
        if sentence not in sentences and len(sentences) < 4:
            sentences.append(sentence)

    # ---- Start

    def prepare(self):
        """Makes the files of the program, its manifest, and the rows of the workers before it."""
        self.start = self.start or self.make(self.site)
        self.before = [Row(self.daemon, name, package, None, start=start, site=self.site)
                       for name, package, start in self.start.before]
        for row in self.before:
            row.prepare()
        script = self.site.write(f"run.{self.id}", programs.script(self.start, self.site.folder))
        user = self.start.user or ("root" if is_root() else "")
        with open(f"{self.daemon.folder}/config/apps/{self.id}.app", "w") as file:
            file.write(f"[App]\nName={self.name}\nExecStart=/bin/sh {script}\nRole=worker\n{f'User={user}' if user else ''}\n"
                       f"{'Type=listening' if self.start.listens else ''}\n[Lifecycle]\nLaunchDeadlineSec=5min\n{self.settings}\n")

    def launch(self):
        for row in self.before:
            row.launch()
        answer = self.daemon.ctl("launch", self.id, "--background").strip()
        with self.daemon.changed:
            # The answer may come before the events.
            if not self.daemon.changed.wait_for(self.is_launched, 30):
                raise RuntimeError(f"was not launched: {answer}")
        self.asked_at = time.monotonic()
        if self.play is keep:
            self.await_answer()

    def is_launched(self):
        return any(state in ("background", "suspended") for _, state in self.changes)

    def await_answer(self):
        """The first answer; some programs learn from it what is expected."""
        deadline = time.monotonic() + LONGEST_START
        while True:
            try:
                connection = self.start.talk.fresh()
                try:
                    expected, received = connection.exchange(0)
                finally:
                    connection.close()
                if expected == received:
                    return
                problem = f"answered {received[:60]!r} instead of {expected[:60]!r}"
            except (OSError, subprocess.SubprocessError) as error:
                problem = str(error)
            if time.monotonic() > deadline:
                raise TimeoutError(problem)
            time.sleep(1)

    def run(self):
        try:
            self.play(self)
        except Exception as error:  # A bug of one client must not end the others.
            self.problem(f"{type(error).__name__}: {error}")

    # ---- For clients

    def asked(self):
        """Now the client has its answer, and rests."""
        self.asked_at = time.monotonic()

    def left(self):
        return self.end - time.monotonic()

    def rest(self):
        """Until the measured time is over, and a little longer: one program after the other gets its last request."""
        time.sleep(max(0.0, self.left()) + 1 + APART * int(self.id[4:]))

    def exchange(self, connection, number):
        expected, received = connection.exchange(number)
        self.compare(expected, received)

    def compare(self, expected, received):
        lost, changed = talks.compare(expected, received)
        self.bytes += len(expected)
        self.lost += lost
        self.changed += changed
        if lost or changed:
            self.problem(f"{received[:60]!r} instead of {expected[:60]!r}")

    def event(self, number, planned, arrived=None):
        """An event of a stream or a job of a schedule has arrived, which was due at an instant of CLOCK_REALTIME."""
        if self.next is not None and number != self.next:
            self.problem(f"event {number} instead of {self.next}")
            self.lost += max(0, number - self.next)
            self.changed += number < self.next
        late = (arrived or time.time()) - planned
        self.next, self.planned = number + 1, planned
        self.events += 1
        self.latest = max(late, self.latest if self.latest is not None else late)
        if late > self.limit:
            self.problem(f"event {number} was {late:.1f}s late")

    def has_all(self, interval):
        """Of a stream that ended with the measured time: whether it was there until then."""
        missing = time.time() + self.left() - (self.planned or 0) - interval
        if not self.events:
            self.lost += 1
            self.problem("no event")
        elif missing > self.limit:
            self.lost += 1
            self.problem(f"no event in the last {missing + interval:.1f}s")

    # ---- The row

    def spans(self):
        """When it was suspended, within the measured time."""
        spans, since = [], None
        for at, state in self.changes + [(self.end, "end")]:
            if state == "suspended":
                since = at if since is None else since
            elif since is not None:
                if at > self.begin and since < self.end:
                    spans.append((max(self.begin, since), min(at, self.end)))
                since = None
        return spans

    def share(self):
        return sum(end - begin for begin, end in self.spans()) / (self.end - self.begin)

    def asleep_after(self):
        found = [at - self.asked_at for at, state in self.changes
                 if state == "suspended" and self.asked_at <= at <= self.end]
        return f"{found[0]:.1f}s" if found else "never"

    def woken_by(self):
        wakes = collections.Counter(self.inputs)
        for reason, count in self.wakes.items():
            if reason == "woken":
                # Each input has one, but what a look at the frozen program found has none.
                count -= sum(self.inputs.values()) - self.inputs["timer"]
                reason = "work"
            if reason == "timer":
                wakes["timer"] = 0
            if count > 0:
                wakes[reason] += count
        return ", ".join(f"{count} {kind}" for kind, count in wakes.most_common() if count)

    def is_right(self):
        return not (self.problems or self.lost or self.changed) and (self.latest is None or self.latest <= self.limit)

    def cells(self):
        share = self.share()
        why = [f"{text} ({count * 100 // self.looks}% of the looks)" for text, count in self.reasons.most_common(2)
               if share < 0.5]
        late = "" if self.latest is None else f"{max(1, round(self.latest * 1000))}ms"
        received = [*self.received] + [f"{self.bytes:,} bytes"] * bool(self.bytes)
        for count, message in self.warnings.values():
            self.remark(message + f" ({count} times)" * (count > 1))
        settings = [self.settings.strip().replace("\n", ", ")] * bool(self.settings)
        cells = [self.name, programs.version(self.package), self.asleep_after(), f"{share * 100:.1f}%", self.woken_by(),
                 "; ".join(received), f"{self.events:,}" if self.events else "", late, f"{self.lost:,}, {self.changed:,}",
                 "; ".join(settings + why + self.remarks + self.problems), "yes" if self.is_right() else "no"]
        return [" ".join(cell.split()).replace("|", "/") for cell in cells]


def entry(name, package, *files, play, settings=""):
    """Adds a program: the function returns how it is started, `play` is its client. The files must exist."""
    def add(make):
        entries.append((name, package, files, make, play, settings))
        return make
    return add


# ---- The client of the programs of the freeze map


# What servers write before they close an idle connection.
GOODBYES = (b"421 Timeout", b"HTTP/1.0 408", b"HTTP/1.1 408")


def has_ended(connection):
    """Whether the program has closed a connection since the last answer, as clients look before they send."""
    stream = getattr(connection, "socket", None) or getattr(getattr(connection, "connection", None), "sock", None)
    if stream is None or isinstance(stream, ssl.SSLSocket) or not select.select([stream], [], [], 0)[0]:
        return False
    try:
        found = stream.recv(64, socket.MSG_PEEK)
        return not found or found.startswith(GOODBYES)
    except ConnectionError:
        return True


def keep(row):
    """A request at the beginning, and two at the end: over the connection that was open all the time, and over a new one, up to
    1 MiB."""
    kept = row.start.talk.open()
    row.exchange(kept, 1)
    row.asked()
    row.rest()
    if has_ended(kept):
        row.received.append("kept connection: closed by the server")
        row.kept_ended = True
    else:
        row.exchange(kept, 2)
    kept.close()
    connection = row.start.talk.fresh()
    row.exchange(connection, talks.LARGE_EVERY - 1)
    connection.close()


# ---- All rows


def chosen(only):
    """The rows to run, and the reasons why others are not."""
    known = [(name, package, files, make, keep, "") for name, package, files, make in programs.programs] + entries
    found, skipped = [], []
    for name, package, files, make, play, settings in known:
        if only and not any(word in name for word in only):
            continue
        reason = programs.missing(package, files)
        if reason:
            skipped.append(f"{name} is skipped: {reason}")
        else:
            found.append((name, package, play, settings, make))
    return found, skipped


def sample(daemon, ended, say):
    """Asks now and then why apps are awake, and when their timers are due. It wakes none."""
    last = time.monotonic()
    while not ended.wait(SAMPLE):
        now = time.monotonic()
        for status in json.loads(daemon.ctl("--json", "idle")):
            row = daemon.apps.get(status["app"])
            if row:
                row.look(status, now)
        if now - last >= REPORT:
            last = now
            asleep = sum(1 for row in daemon.apps.values() if row.changes and row.changes[-1][1] == "suspended")
            wrong = [f"{row.name}: {row.problems[0]}" for row in daemon.apps.values() if row.problems]
            say(f"{asleep} of {len(daemon.apps)} programs are asleep" + "".join(f"; {sentence}" for sentence in wrong))


def kill(daemon, seconds, ended, say):
    """Kills the daemon again and again, about so many seconds apart, and starts the next one."""
    absences = []
    while not ended.wait(random.uniform(0.5, 1.5) * seconds):
        absences.append(daemon.replace())
    if absences:
        say(f"greenroomd was killed {len(absences)} times; the next one answered after {max(absences):.1f}s at the latest")


def each(rows, work, count):
    """Does the work for all rows, so many at once. Returns the rows for which it succeeded."""
    def attempt(row):
        try:
            work(row)
            return True
        except Exception as error:  # One program must not end the others.
            row.problem(f"{work.__name__}: {type(error).__name__}: {error}")
            return False
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return [row for row, is_good in zip(rows, pool.map(attempt, rows)) if is_good]


def play(daemon, found, minutes, kills, say):
    """Runs all programs for so many minutes; `kills`: the daemon is killed about each so many seconds. Returns the rows."""
    rows = [Row(daemon, *entry) for entry in found]
    ended, killer = threading.Event(), None
    try:
        good = each(rows, Row.prepare, STARTS_AT_ONCE)
        daemon.ctl("reload")
        good = each(good, Row.launch, STARTS_AT_ONCE)
        say(f"{len(good)} of {len(rows)} programs have started")
        begin = time.monotonic()
        every = [one for row in rows for one in (row, *row.before)]
        for row in every:
            row.begin, row.end = begin, begin + 60 * minutes
            row.limit = LATE + LONGEST_ABSENCE * bool(kills)
            row.asked_at = row.asked_at or begin
        threading.Thread(target=sample, args=(daemon, ended, say), daemon=True).start()
        if kills:
            killer = threading.Thread(target=kill, args=(daemon, kills, ended, say), daemon=True)
            killer.start()
        threads = [threading.Thread(target=row.run, daemon=True) for row in good]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return every
    finally:
        ended.set()
        if killer:
            killer.join()
        for helper in [helper for row in rows for helper in row.site.helpers]:
            helper.kill()
            helper.wait()


def table(rows):
    lines = [HEAD, ["---"] * len(HEAD)] + [row.cells() for row in rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"
