"""The daemon, the buses, PipeWire and greenroom-session of the test (run)."""

import array
import json
import math
import os
import pwd
import shutil
import subprocess
import tempfile
import time
import wave

from services import ACCOUNTS, DISTRIBUTOR, GEOCLUE, NOTIFIER, PLAYER, PORTAL

TIMEOUT = 60
USER = "nobody"
SINK = ("{ factory.name=support.null-audio-sink node.name=speaker media.class=Audio/Sink object.linger=true "
        "audio.position=[FL FR] }")

BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>custom</type><listen>unix:path=%s</listen><auth>EXTERNAL</auth><policy context="default"><allow user="*"/>
<allow own="*"/><allow send_type="method_call"/><allow send_type="signal"/><allow send_requested_reply="true"/>
<allow receive_type="method_call"/><allow receive_type="method_return"/><allow receive_type="error"/>
<allow receive_type="signal"/></policy></busconfig>
"""


class Failure(Exception):
    pass


def wait(what, value, expected):
    deadline = time.monotonic() + TIMEOUT
    while True:
        found = value()
        if found == expected:
            return
        if time.monotonic() > deadline:
            raise Failure(f"{what}: not after {TIMEOUT}s: {found!r}")
        time.sleep(0.1)


class Stage:
    def __init__(self, binaries):
        self.binaries, self.processes = binaries, []
        self.folder = tempfile.mkdtemp(prefix="greenroom-session.", dir="/tmp")
        os.chmod(self.folder, 0o755)
        user = pwd.getpwnam(USER)
        self.runtime = f"{self.folder}/user"
        os.mkdir(self.runtime, 0o700)
        os.chown(self.runtime, user.pw_uid, user.pw_gid)
        self.environment = {
            "PATH": "/usr/bin:/bin", "HOME": self.runtime, "XDG_RUNTIME_DIR": self.runtime, "LANG": "C.UTF-8",
            "DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={self.folder}/system",
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={self.runtime}/bus"}
        self.write("player.py", PLAYER)
        self.write("portal.py", PORTAL)
        self.write("notifier.py", NOTIFIER)
        self.write("accounts.py", ACCOUNTS)
        self.write("geoclue.py", GEOCLUE)
        self.write("distributor.py", DISTRIBUTOR)
        self.sound("tone", lambda position: int(8000 * math.sin(position / 20)))
        self.sound("silence", lambda position: 0)

    def write(self, name, text):
        os.makedirs(os.path.dirname(f"{self.folder}/{name}"), exist_ok=True)
        with open(f"{self.folder}/{name}", "w") as file:
            file.write(text)

    def sound(self, name, sample):
        """A minute."""
        with wave.open(f"{self.folder}/{name}.wav", "wb") as file:
            file.setparams((1, 2, 8000, 0, "NONE", ""))
            file.writeframes(array.array("h", [sample(position) for position in range(60 * 8000)]).tobytes())

    def app(self, name, command, modes="audio"):
        variables = " ".join(f"{key}={value}" for key, value in self.environment.items() if key != "PATH")
        self.write(f"config/apps/{name}.app", f"[App]\nUser={USER}\nEnvironment={variables}\nExecStart={command}\nStartupSec=0\n"
                   f"[Lifecycle]\nSuspendDelaySec=500ms\nLaunchDeadlineSec=60s\nBackgroundModes={modes}\n")

    def script(self, sound):
        """Plays the sound until the file `stop` exists, and does nothing afterwards."""
        path = f"{self.folder}/{sound}.sh"
        self.write(f"{sound}.sh", f"pw-play --target speaker {self.folder}/{sound}.wav &\n"
                   f"while [ ! -e {self.folder}/stop ]; do sleep 0.1; done\nkill $!\nexec sleep 1000\n")
        return f"/bin/sh {path}"

    # ---- Processes

    def start(self, *words, user=None, stdin=subprocess.DEVNULL):
        log = open(f"{self.folder}/log", "ab")
        change = ["--reuid", user, "--clear-groups"] if user else []
        process = subprocess.Popen(["setpriv", "--pdeathsig", "TERM", *change, *words], stdin=stdin, stdout=log,
                                   stderr=log, env=self.environment)
        self.processes.append(process)
        return process

    def start_daemon(self):
        self.daemon = self.start(f"{self.binaries}/greenroomd", "--system", "--config", f"{self.folder}/config",
                                 "--runtime", f"{self.folder}/run", "--state", f"{self.folder}/state")

    def start_session(self):
        return self.start(f"{self.folder}/bin/greenroom-session", "--verbose", "--silence", "4", user=USER)

    def start_sound(self):
        self.sound_server = [self.start("pipewire", user=USER)]
        wait("PipeWire is there", lambda: self.run_as_user("pw-cli", "info", "0"), True)
        self.sound_server.append(self.start("wireplumber", user=USER))
        wait("there is a sink", lambda: self.run_as_user("pw-cli", "create-node", "adapter", SINK), True)

    def run_as_user(self, *words):
        """Whether a command succeeds."""
        return self.run("setpriv", "--reuid", USER, "--clear-groups", *words).returncode == 0

    def run(self, *words):
        return subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT,
                              env=self.environment, text=True)

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    # ---- Apps

    def ctl(self, *words):
        done = self.run(f"{self.binaries}/greenroomctl", "--runtime", f"{self.folder}/run", *words)
        if done.returncode:
            raise Failure(f"greenroomctl {' '.join(words)}: {done.stdout}{done.stderr}".strip())
        return done.stdout

    def status(self, name):
        done = self.run(f"{self.binaries}/greenroomctl", "--runtime", f"{self.folder}/run", "--json", "status", name)
        return json.loads(done.stdout) if done.stdout else {}

    def state(self, name):
        status = self.status(name)
        return status.get("state"), [one.get("detail", one["reason"]) for one in status.get("awake", [])]

    def log(self):
        return open(f"{self.folder}/log", errors="replace").read()

    def stop_playing(self, is_stopped=True):
        if is_stopped:
            self.write("stop", "")
        else:
            os.unlink(f"{self.folder}/stop")
