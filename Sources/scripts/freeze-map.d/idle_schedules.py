"""Programs that do something at known times in the idle hour (idle.py): schedulers, ffmpeg, a client that polls.

What they do is a line in the file `events` of their folder: a number, when it was due, and when it was done, as instants of
CLOCK_REALTIME. It is read at the end.
"""

import os
import shlex
import time

import talks
from idle import LATE, entry
from programs import PYTHON, Start, free_port, is_root

POLL = 25


def lines(row):
    """The lines of the measured time."""
    with open(f"{row.site.folder}/events") as file:
        found = [[float(word) for word in line.split()] for line in file]
    end = time.time() + row.left()
    begin = end - (row.end - row.begin)
    return [line for line in found if begin <= line[-1] <= end]


def jobs(interval):
    """Each job was done in time, and none is missing."""
    def play(row):
        time.sleep(max(0.0, row.left()) + LATE)
        for number, planned, done in lines(row):
            row.event(int(number), planned, done)
        row.received.append(f"a job each {interval}s")
        row.has_all(interval)
    return play


def chain(interval):
    """Each job is due after the one before. The scheduler is at rest between them, and does not make up for what was late."""
    def play(row):
        time.sleep(max(0.0, row.left()) + LATE)
        done = [line[-1] for line in lines(row)]
        for number, (before, this) in enumerate(zip(done, done[1:])):
            row.event(number, before + interval, this)
        row.received.append(f"a job {interval}s after the one before")
        row.has_all(interval)
    return play


# ---- Celery


TASKS = """
import time
from celery import Celery

app = Celery("tasks", broker="redis://127.0.0.1:{port}/0")
app.conf.task_ignore_result = True
app.conf.beat_schedule = {{"job": {{"task": "tasks.job", "schedule": 20.0}}}}

@app.task
def job():
    with open("{folder}/events", "a") as file:
        print(time.time(), file=file)
"""


@entry("Celery: beat, a job each 20s", "python3-celery", "/usr/lib/python3/dist-packages/celery/__init__.py",
       "/usr/lib/python3/dist-packages/redis/__init__.py", "/usr/bin/redis-server", play=chain(20))
def celery(site):
    port = free_port()
    site.write("tasks.py", TASKS.format(port=port, folder=site.folder))

    command = [PYTHON, "-m", "celery", "-A", "tasks"]
    broker = ["/usr/bin/redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", site.folder]
    return Start(command + ["beat", "-s", f"{site.folder}/beat", "--pidfile="], None, listens=False,
                 before=[("its broker, Redis", "redis-server", Start(broker, talks.WebTalk(port, []))),
                         ("its worker, Celery", "python3-celery", Start(command + ["worker", "-c", "1"], None, listens=False))])


# ---- cron, APScheduler, Java


def minutes(row):
    """cron sleeps for whole seconds, and starts the jobs of a minute at any time in its second 1."""
    time.sleep(max(0.0, row.left()) + LATE)
    for (done,) in lines(row):
        row.event(int(done // 60), done // 60 * 60 + 2, done)
    row.received.append("a job each minute")
    row.has_all(60)


class Crontabs:
    """A mount namespace in which cron sees the crontabs of a folder instead of the machine's, and has its own files in /run. It is
    that of greenroomd, which sees only there whether another program has the PID file of cron open (L43)."""

    def __init__(self, folder):
        self.created = []
        # The beginning of the command of greenroomd.
        self.command = []
        if not (is_root() and os.path.exists("/usr/sbin/cron") and os.path.exists("/usr/bin/unshare")):
            return
        for name in ("crontabs", "empty"):
            os.makedirs(f"{folder}/{name}")
        targets = {"/var/spool/cron/crontabs": f"{folder}/crontabs", "/etc/cron.d": f"{folder}/empty", "/etc/crontab": "/dev/null"}
        targets = {target: source for target, source in targets.items() if os.path.exists(target)}
        for name in ("crond.pid", "crond.reboot"):
            if not os.path.exists(f"/run/{name}"):
                self.created.append(f"/run/{name}")
            for path in (f"{folder}/{name}", f"/run/{name}"):
                open(path, "a").close()
            targets[f"/run/{name}"] = f"{folder}/{name}"
        mounts = [shlex.join(["mount", "--bind", source, target]) for target, source in targets.items()]
        self.command = ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c",
                        " && ".join(mounts + ['exec "$@"']), "sh"]

    def remove(self):
        for path in self.created:
            os.unlink(path)


def cron(site):
    path = site.write("../crontabs/root", f'MAILTO=""\n* * * * * date +\\%s.\\%N >>{site.folder}/events\n')
    os.chmod(path, 0o600)
    return Start(["/usr/sbin/cron", "-f"], None, listens=False)


if is_root():
    entry("cron, a job each minute", "cron", "/usr/sbin/cron", "/usr/bin/unshare", play=minutes)(cron)


SCHEDULER = """
import time
from datetime import datetime
from apscheduler.schedulers.blocking import BlockingScheduler

start = time.time()

def job():
    now = time.time()
    number = round((now - start) / 20)
    with open("events", "a") as file:
        print(number, start + number * 20, now, file=file)

scheduler = BlockingScheduler()
scheduler.add_job(job, "interval", seconds=20, start_date=datetime.fromtimestamp(start))
scheduler.start()
"""


@entry("APScheduler, a job each 20s", "python3-apscheduler", "/usr/lib/python3/dist-packages/apscheduler/__init__.py",
       play=jobs(20))
def scheduler(site):
    return Start([PYTHON, site.write("scheduler.py", SCHEDULER)], None, listens=False)


EXECUTOR = """
import java.io.FileWriter;
import java.util.concurrent.*;

public class Jobs {
    static int number = 0;
    public static void main(String[] arguments) {
        long start = System.currentTimeMillis();
        Executors.newScheduledThreadPool(1).scheduleAtFixedRate(() -> {
            try (FileWriter file = new FileWriter("events", true)) {
                file.write(number + " " + (start + number * 20000L) / 1e3 + " " + System.currentTimeMillis() / 1e3 + "\\n");
            } catch (Exception error) {
                error.printStackTrace();
            }
            number++;
        }, 0, 20, TimeUnit.SECONDS);
    }
}
"""


@entry("Java, a ScheduledExecutorService, a job each 20s", "openjdk-17-jdk-headless", "/usr/bin/java", "/usr/bin/javac",
       play=jobs(20))
def executor(site):
    site.write("Jobs.java", EXECUTOR)
    site.run("/usr/bin/javac", "Jobs.java")
    return Start(["/usr/bin/java", "-Xmx256m", "-cp", site.folder, "Jobs"], None, listens=False)


# ---- ffmpeg


RATE = 16_000


def grows(row):
    """The file has what was due until now."""
    path = f"{row.site.folder}/audio"
    row.asked_at = time.monotonic()
    first = time.monotonic() - os.stat(path).st_size / RATE
    while row.left() > 0:
        time.sleep(min(5, max(0.0, row.left())))
        late = time.monotonic() - first - os.stat(path).st_size / RATE
        row.events += 1
        row.latest = max(late, row.latest or 0.0)
        if late > row.limit:
            row.problem(f"{late:.1f}s of audio were missing")
    row.received.append(f"{os.stat(path).st_size:,} bytes, {RATE:,} each second, looked at each 5s")


@entry("ffmpeg -re, audio into a file", "ffmpeg", "/usr/bin/ffmpeg", play=grows)
def ffmpeg(site):
    return Start(["/usr/bin/ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "error", "-re", "-f", "lavfi", "-i",
                  f"sine=sample_rate={RATE // 2}", "-c:a", "pcm_s16le", "-f", "s16le", "-flush_packets", "1",
                  f"{site.folder}/audio"], None, listens=False)


# ---- A long poll


POLLS = """
import http.server, sys, time

start, interval = float(sys.argv[2]), float(sys.argv[3])

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        number = int(self.path[1:])
        due = start + number * interval
        time.sleep(max(0, due - time.time()))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"%f" % due)

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
POLLING = {"requests": """
import sys, time, requests

number = int(sys.argv[2])
while True:
    try:
        due = requests.get(f"http://127.0.0.1:{sys.argv[1]}/{number}", timeout=60).text
        if not due:
            continue
    except requests.RequestException:
        time.sleep(0.2)
        continue
    with open("events", "a") as file:
        print(number, due, time.time(), file=file)
    number += 1
""", "urllib": """
import http.client, sys, time, urllib.request

number = int(sys.argv[2])
while True:
    try:
        due = urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/{number}", timeout=60).read().decode()
        if not due:
            continue
    except (OSError, http.client.HTTPException):
        time.sleep(0.2)
        continue
    with open("events", "a") as file:
        print(number, due, time.time(), file=file)
    number += 1
"""}


def polls(row):
    """The server restarts once, half a second after the middle between two answers."""
    server = row.start.server
    middle = (row.begin + row.end) / 2
    wall = time.time() - time.monotonic()
    number = int((middle + wall - row.start.since) / POLL)
    time.sleep(max(0.0, row.start.since + (number + 0.5) * POLL - time.time()))
    row.site.helpers[0].kill()
    row.site.helpers[0].wait()
    time.sleep(0.5)
    row.site.help(*server)
    jobs(POLL)(row)
    row.received.append("the server restarted once")


def polling(library):
    def make(site):
        port = free_port()
        since = time.time()
        server = [PYTHON, site.write("server.py", POLLS), str(port), str(since), str(POLL)]
        site.help(*server)
        start = Start([PYTHON, site.write("poll.py", POLLING[library]), str(port), "1"], None, listens=False)
        start.server, start.since = server, since
        return start
    return make


for name, package in (("requests", "python3-requests"), ("urllib", "python3")):
    entry(f"a client with a long poll of {POLL}s, Python's {name}", package, PYTHON, play=polls)(polling(name))
