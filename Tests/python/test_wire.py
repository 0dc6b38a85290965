"""The wire format: values, messages, hostile bytes."""
import os
import random
import unittest

from support import ROOT  # noqa: F401
from greenroom import _wire
from greenroom._wire import Decoder, Message, Variant, WireError, encode

EXAMPLES = [
    ("y", 255), ("b", True), ("n", -2), ("q", 65535), ("i", -(2**31)), ("u", 2**32 - 1), ("x", -(2**63)), ("t", 2**64 - 1),
    ("d", 0.25), ("s", "größer"), ("o", "/a/b"), ("g", "a{sv}"), ("as", ["a", ""]), ("ay", b"\0\1"), ("a{sv}", {}),
    ("a(yt)", [(1, 2), (3, 4)]), ("(ysv)", (1, "a", 7)), ("aas", [["a"], []]), ("a{yat}", {1: [2], 3: []}), ("v", "text"),
]
WRITTEN = {"(ysv)": (1, "a", Variant("u", 7)), "v": Variant("s", "text")}


def message(signature="", body=(), descriptors=()):
    return Message(_wire.SIGNAL, 7, 0, "/a", "b.c", "D", signature=signature, body=list(body), descriptors=list(descriptors))


class Values(unittest.TestCase):
    def test_each_type_is_read_as_written_in_both_byte_orders(self):
        for order in "<>":
            for signature, value in EXAMPLES:
                with self.subTest(signature=signature, order=order):
                    data = encode(message("y" + signature, [1, WRITTEN.get(signature, value)]), order)
                    found = list(Decoder().feed(data))
                    self.assertEqual([each.body for each in found], [[1, value]])

    def test_values_that_do_not_fit_are_refused(self):
        for signature, value in [("y", 256), ("t", -1), ("s", 1), ("s", "a\0b"), ("s", "\ud800"), ("u", "a"), ("as", 7), ("v", 7)]:
            with self.subTest(signature=signature), self.assertRaises(WireError):
                encode(message(signature, [value]))
        with self.assertRaises(WireError):
            encode(message("s", ["x" * _wire.MAX_MESSAGE]))

    def test_invalid_signatures_are_refused(self):
        for signature in ["z", "a", "(", "()", "a{}", "a{s}", "a{vs}", "a{sss}", "{sv}", "(s", ")", "a" * 300 + "y", "(" * 40 + "y" + ")" * 40]:
            with self.subTest(signature=signature), self.assertRaises(WireError):
                _wire.types(signature)

    def test_addresses(self):
        self.assertEqual(_wire.socket_addresses("unix:path=/a%20b,guid=1"), ["/a b"])
        self.assertEqual(_wire.socket_addresses("tcp:host=a;unix:abstract=c"), ["\0c"])
        for address in ["", "unix:", "tcp:host=a", "unix:path=%zz"]:
            with self.subTest(address=address), self.assertRaises(WireError):
                _wire.socket_addresses(address)


class Decoding(unittest.TestCase):
    def test_messages_arrive_in_pieces_of_any_size(self):
        data = b"".join(encode(message("st", [str(number), number])) for number in range(5))
        for size in range(1, 40):
            decoder = Decoder()
            found = [each.body[1] for at in range(0, len(data), size) for each in decoder.feed(data[at : at + size])]
            self.assertEqual(found, [0, 1, 2, 3, 4])

    def test_descriptors_belong_to_their_message_and_the_rest_is_closed(self):
        before = len(os.listdir("/proc/self/fd"))
        pipe = os.pipe()
        decoder = Decoder()
        data = encode(message("h", [0], [pipe[0]]))
        found = list(decoder.feed(data, pipe))
        self.assertEqual(found[0].descriptors, [pipe[0]])
        decoder.close()
        os.close(pipe[0])
        self.assertEqual(len(os.listdir("/proc/self/fd")), before)
        with self.assertRaises(WireError):
            list(Decoder().feed(data))

    def test_bytes_that_are_no_message_raise_only_wire_errors(self):
        """Fuzz: random bytes, and valid messages with some bytes changed. Nothing else is raised, and memory is bounded."""
        source = random.Random(int(os.environ.get("FUZZ_SEED", "13")))
        originals = [encode(message(signature, [WRITTEN.get(signature, value)]), order) for signature, value in EXAMPLES for order in "<>"]
        outcomes = {"message": 0, "error": 0, "more": 0}
        for _ in range(int(os.environ.get("FUZZ_ROUNDS", "20000"))):
            data = bytearray(source.choice(originals)) if source.random() < 0.9 else bytearray(source.randbytes(source.randrange(200)))
            for _ in range(source.randrange(4)):
                if data:
                    data[source.randrange(len(data))] = source.choice([0, 1, 4, 8, 64, 127, 128, 255, source.randrange(256)])
            if source.random() < 0.2:
                del data[source.randrange(len(data) + 1) :]
            try:
                outcomes["message" if list(Decoder().feed(bytes(data))) else "more"] += 1
            except WireError:
                outcomes["error"] += 1
        self.assertTrue(all(outcomes.values()), outcomes)


if __name__ == "__main__":
    unittest.main()
