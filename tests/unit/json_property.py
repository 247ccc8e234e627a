#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""json_property.py PROGRAM [SEED]: the engine's JSON and timestamps against this Python's.

10,000 random values in odd layouts and 10,000 damaged texts are made canonical by both; 3,000
timestamps are read by both.
"""

import json
import random
import struct
import subprocess
import sys
from datetime import datetime, timedelta, timezone

sys.modules["_datetime"] = None  # the second opinion: datetime in pure Python
for name in [n for n in sys.modules if n in ("datetime", "_pydatetime")]:
    del sys.modules[name]
import datetime as pure  # noqa: E402

VALUES, DAMAGED, TIMES = 10_000, 10_000, 3_000
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)


def space(rnd):
    return "".join(rnd.choice(" \t\n\r") for _ in range(rnd.choice((0, 0, 0, 1, 3))))


def character(rnd):
    """A character of a string as JSON source."""
    kind = rnd.randrange(10)
    if kind < 4:
        char = chr(rnd.randrange(0x20, 0x7F))
        return "\\" + char if char in '"\\' else char
    if kind == 4:
        return "\\" + rnd.choice('"\\/bfnrt')
    if kind == 5:
        return "\\u%04x" % rnd.choice((rnd.randrange(0x80), rnd.randrange(0x10000)))
    if kind == 6:
        return "\\u%04X" % rnd.randrange(0xD800, 0xE000)
    if kind == 7:
        return "\\ud83d\\u%04x" % rnd.randrange(0xDC00, 0xE000)
    if kind == 8:
        return chr(rnd.choice((rnd.randrange(0x7F, 0xD800), rnd.randrange(0xE000, 0x110000))))
    return rnd.choice("aé€😀\x7f￿")


def string(rnd):
    return '"' + "".join(character(rnd) for _ in range(rnd.choice((0, 1, 1, 2, 3, 12)))) + '"'


def number(rnd):
    kind = rnd.randrange(8)
    sign = rnd.choice(("", "", "-"))
    if kind == 0:
        return sign + str(rnd.randrange(10))
    if kind == 1:
        return sign + str(rnd.getrandbits(rnd.choice((31, 63, 64, 200, 20000))))
    if kind == 2:
        value = struct.unpack("d", struct.pack("Q", rnd.getrandbits(64)))[0]
        return json.dumps(value)
    if kind == 3:
        return sign + rnd.choice(("%r", "%.20e", "%.3f", "%.17g")) % rnd.random()
    if kind == 4:
        return sign + "%d%se%s%d" % (
            rnd.randrange(1000), rnd.choice(("", ".0", ".5", ".000100")), rnd.choice("+-"), rnd.randrange(400),
        )
    if kind == 5:
        return sign + repr(2.0 ** rnd.randrange(-1074, 1024))
    if kind == 6:
        return sign + "%d.%d" % (rnd.randrange(1000), rnd.randrange(10**rnd.randrange(1, 25)))
    return rnd.choice(("NaN", "Infinity", "-Infinity", "1e400", "-1E400", "-0", "-0.0", "1e-400", "0E+9"))


def value(rnd, depth=0):
    kind = rnd.randrange(8 if depth < 6 else 6)
    if kind == 0:
        return rnd.choice(("true", "false", "null"))
    if kind < 3:
        return number(rnd)
    if kind < 6:
        return string(rnd)
    count = rnd.choice((0, 1, 2, 3, 6))
    if kind == 6:
        items = [space(rnd) + value(rnd, depth + 1) + space(rnd) for _ in range(count)]
        return "[" + (",".join(items) or space(rnd)) + "]"
    names = ['"a"'] + [string(rnd) for _ in range(max(1, count - 1))]  # some of them twice
    items = [
        space(rnd) + rnd.choice(names) + space(rnd) + ":" + space(rnd) + value(rnd, depth + 1) + space(rnd)
        for _ in range(count)
    ]
    return "{" + (",".join(items) or space(rnd)) + "}"


def damage(rnd, text):
    data = bytearray(text)
    for _ in range(rnd.choice((1, 1, 2, 4))):
        at = rnd.randrange(len(data) + 1)
        kind = rnd.randrange(4)
        if kind == 0:
            data[at:] = b""
        elif kind == 1:
            data[at : at + 1] = b""
        elif kind == 2:
            data[at:at] = bytes((rnd.choice(b'{}[]",:\\u0123456789.eE+-truefalsnNIity \n\x00\x1f\x7f\x80\xc3\xe2\xff'),))
        elif at < len(data):
            data[at] = rnd.randrange(256)
    return bytes(data)


def canonical(text):
    try:
        return json.dumps(json.loads(text.decode()), separators=(",", ":"), sort_keys=True).encode()
    except ValueError:
        return None


def digits(rnd, count):
    return "".join(rnd.choice("0123456789") for _ in range(count))


def clock(rnd):
    separator = rnd.choice((":", ":", ""))
    text = "%02d" % rnd.randrange(25 if rnd.random() < 0.1 else 24)
    for _ in range(rnd.choice((0, 1, 2, 2, 2))):
        text += separator + "%02d" % rnd.randrange(61 if rnd.random() < 0.1 else 60)
    if rnd.random() < 0.4:
        text += rnd.choice(".,") + digits(rnd, rnd.choice((0, 1, 3, 6, 6, 9)))
    return text


def timestamp(rnd):
    year = "%04d" % rnd.choice((rnd.randrange(10000), rnd.randrange(1970, 2040), 1, 9999))
    dash = rnd.choice(("-", "-", ""))
    if rnd.random() < 0.3:
        text = year + dash + "W%02d" % rnd.randrange(55)
        if rnd.random() < 0.6:
            text += dash + str(rnd.randrange(9))
    else:
        text = year + dash + "%02d" % rnd.randrange(14) + dash + "%02d" % rnd.randrange(1, 32)
    if rnd.random() < 0.85:
        text += rnd.choice("TTTT t_-é😀0") + clock(rnd)
        text += rnd.choice(("", "Z", "+" + clock(rnd), "-" + clock(rnd)))
    if rnd.random() < 0.2:
        at = rnd.randrange(len(text) + 1)
        text = text[:at] + rnd.choice(("", "0", ":", "-", "W", "Z", "x", ".", " ")) + text[at + rnd.randrange(2) :]
    return text


def microseconds(parse, zone, epoch, step, text):
    try:
        time = parse(text)
        if time.tzinfo is None:
            time = time.replace(tzinfo=zone)
        return (time.astimezone(zone) - epoch) // step
    except (ValueError, OverflowError, IndexError, AssertionError):
        return None


def opinions(text):
    """What the two readers of this Python make of a timestamp: the same, or one is more lenient."""
    compiled = microseconds(datetime.fromisoformat, timezone.utc, EPOCH, timedelta(microseconds=1), text)
    plain = microseconds(
        pure.datetime.fromisoformat, pure.timezone.utc,
        pure.datetime(1970, 1, 1, tzinfo=pure.timezone.utc), pure.timedelta(microseconds=1), text,
    )
    return {compiled, plain}


def main():
    seed = sys.argv[2] if len(sys.argv) > 2 else str(random.SystemRandom().getrandbits(32))
    rnd = random.Random(seed)
    texts = [(space(rnd) + value(rnd) + space(rnd)).encode() for _ in range(VALUES)]
    texts += [damage(rnd, rnd.choice(texts)) for _ in range(DAMAGED)]
    times = [timestamp(rnd).encode() for _ in range(TIMES)]
    records = [b"j" + b"%08d" % len(t) + t for t in texts] + [b"t" + b"%08d" % len(t) + t for t in times]
    run = subprocess.run([sys.argv[1]], input=b"".join(records), stdout=subprocess.PIPE, check=False)
    answers, at = [], 0
    while at < len(run.stdout):
        head = run.stdout[at : at + 8]
        size = 0 if head == b"refused!" else int(head)
        answers.append(None if head == b"refused!" else run.stdout[at + 8 : at + 8 + size])
        at += 8 + size
    faults, counts = [], {"json taken": 0, "json refused": 0, "times taken": 0, "times refused": 0}
    for text, answer in zip(texts, answers):
        counts["json refused" if answer is None else "json taken"] += 1
        if answer != canonical(text):
            faults.append((text, answer, canonical(text)))
    for text, answer in zip(times, answers[len(texts) :]):
        counts["times refused" if answer is None else "times taken"] += 1
        number = None if answer is None else int(answer)
        wanted = opinions(text.decode())
        if sys.version_info < (3, 14) and b"24" in text and wanted == {None}:
            continue  # 24:00 is midnight only since 3.14
        if number not in wanted:
            faults.append((text, number, wanted))
    print(f"seed {seed}: {len(answers)} answers, {counts}")
    for fault in faults[:10]:
        print("text %r\n  here %r\n  Python %r" % fault)
    if faults or run.returncode or len(answers) != len(records):
        print(f"FAILED: {len(faults)} differences, exit status {run.returncode}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
