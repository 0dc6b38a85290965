#!/usr/bin/python3
"""hostile.py PROGRAM: a daemon that sends damaged messages to the contract app in C. FUZZ_SEED=, FUZZ_ROUNDS=

The frames are valid, and the bodies are changed: sd-bus reads those only when the library does. The program must survive, and still
handle a valid event.
"""
import os
import pathlib
import random
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "contract"))
import fake_greenroom  # noqa: E402
from greenroom import _wire  # noqa: E402

KINDS = {
    "openURL": {"url": "x:y"}, "didBecomeActive": {"cause": "launch"}, "willEnterForeground": {}, "push": {"payload": "a", "id": 1},
    "tasksExpiring": {"names": ["a", "b"], "remainingSeconds": 1.5}, "notification": {"kind": "time", "payload": "x"},
    "didResume": {"suspendedSeconds": 0.5, "changed": ["a"]}, "memoryWarning": {"level": "critical"},
    "scene": {"scene": "a", "notice": "sceneWillConnect", "state": "background"}, "future": {"a": {"b": [""]}},
}


class Hostile(fake_greenroom.Player):
    """Answers every call, and sends messages whose bodies are damaged."""

    def damaged(self, chance):
        kind = chance.choice(list(KINDS))
        details = fake_greenroom.variants(KINDS[kind])
        self.serial += 1
        message = _wire.Message(
            _wire.SIGNAL, path=fake_greenroom.PATH, interface=fake_greenroom.INTERFACE, member="Event", signature="tsa{sv}",
            serial=self.serial, body=[self.serial, kind, details],
        )
        data = bytearray(_wire.encode(message, chance.choice("<>")))
        order = "little" if data[:1] == b"l" else "big"
        body = int.from_bytes(data[4:8], order)
        # The serial of the event is not changed, so that later events are not old.
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data) - body + 8, len(data))] = chance.choice([0, 1, 0xFF, chance.randrange(256)])
        self.connection.sendall(data)

    def answer_calls(self, wanted):
        """Answers calls until one has this text."""
        while True:
            self.last = self.next_message()
            if self.last.member == "GetState":
                self.do_error("org.greenroom.Error.NotFound", "None.")
            elif self.last.member == "Attach":
                self.do_reply("a{sv}", "[{}]")
            elif self.last.member == "BeginTask":
                self.do_reply("t", "[1]")
            else:
                self.do_reply()
            if self.last.member == wanted or self.last.body[:1] == [wanted]:
                return


def main(program):
    seed = int(os.environ.get("FUZZ_SEED", random.randrange(2**32)))
    rounds = int(os.environ.get("FUZZ_ROUNDS", 20))
    print(f"hostile daemon: FUZZ_SEED={seed} FUZZ_ROUNDS={rounds}")
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="greenroom-hostile") as folder, open(folder + "/log", "w") as log:
        player = Hostile(folder, [program])
        standard_error = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            player.do_connect()
            player.answer_calls("Ready")
            for number in range(rounds):
                for _ in range(50):
                    player.damaged(chance)
                player.serial += 1
                player.do_event(player.serial, "openURL", f'{{"url": "round:{number}"}}')
                player.answer_calls(f"url round:{number}")
            # Memory that is lost is an exit status of the sanitizer.
            player.do_terminate()
            player.answer_calls("terminate SIGTERM")
            player.do_ended()
            player.do_exit(0)
        except (fake_greenroom.Mismatch, OSError, _wire.WireError) as error:
            os.dup2(standard_error, 2)
            with open(folder + "/log") as text:
                sys.exit(f"hostile.py: FUZZ_SEED={seed}: {error}\n{text.read()[-8000:]}")
        finally:
            player.close()


if __name__ == "__main__":
    main(sys.argv[1])
