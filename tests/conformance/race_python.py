# SPDX-License-Identifier: MIT
"""Races of our directory store against the Python package's, on one bucket.

    PYTHON race_python.py STORE_RACER

PYTHON is an interpreter that has cairndb. Called with more arguments, it is a Python racer itself.
"""

import asyncio
import hashlib
import os
import subprocess
import sys
import tempfile

import structlog

structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))

from cairndb.storage.filesystem import FilesystemStorage

RACERS = 2  # of each kind
ROUNDS = 300


def count(storage, times):
    while times:
        found = storage.get_object_sync("counter")
        value = str(int(found.data) + 1).encode()
        if storage.put_object_sync("counter", value, if_match=found.etag):
            times -= 1


def create(storage, times):
    value = f"p-{os.getpid()}".encode()
    for i in range(times):
        if storage.put_object_sync(f"race/{i}", value, if_absent=True):
            print(i)


def commit(storage, times):
    value = f"p-{os.getpid()}".encode()
    for i in range(1, times + 1):
        if asyncio.run(storage.put_commit(i, value)):
            print(i)


def append(storage, times):
    for _ in range(times):
        storage.append_object_sync("grows", b"line\n")


def open_and_shut(storage, times):
    done = 0
    for _ in range(times):
        if storage.put_object_sync("door", b"theirs", if_absent=True):
            assert storage.get_object_sync("door").data == b"theirs", "somebody else came in"
            storage.delete_object_sync("door")
            done += 1
    print(done)


def race(root, ours, theirs, argument, racers=RACERS):
    """Run both kinds at once. Every process must succeed; each one's output, by process id."""
    commands = [[sys.argv[1], root, ours, str(argument)]] * racers
    commands += [[sys.executable, __file__, sys.argv[1], root, theirs, str(argument)]] * racers
    running = [subprocess.Popen(c, stdout=subprocess.PIPE, text=True) for c in commands]
    output = {p.pid: p.communicate(timeout=200)[0].split() for p in running}
    for process in running:
        assert process.returncode == 0, f"{process.args}: exit {process.returncode}"
    return output


def check_one_winner(root, output, name_of, numbers):
    """Each number was won once, and what is stored is its winner's."""
    wins = [(number, pid) for pid, won in output.items() for number in won]
    assert len(wins) == len(numbers), f"{len(wins)} wins of {len(numbers)}"
    assert {int(number) for number, _ in wins} == set(numbers)
    for number, pid in wins:
        with open(os.path.join(root, name_of(int(number)))) as stored:
            assert stored.read().split("-")[1] == str(pid)


def run(root):
    storage = FilesystemStorage(root)

    storage.put_object_sync("counter", b"0")
    race(root, "count", "count", ROUNDS)
    total = int(storage.get_object_sync("counter").data)
    assert total == 2 * RACERS * ROUNDS, f"updates were lost: {total}"

    output = race(root, "create", "create", ROUNDS)
    check_one_winner(root, output, lambda n: f"race/{n}", range(ROUNDS))

    output = race(root, "commit", "commit", ROUNDS)
    check_one_winner(root, output, lambda n: f"log/{n:012d}.msgpack", range(1, ROUNDS + 1))
    assert asyncio.run(storage.list_commits()) == list(range(1, ROUNDS + 1))

    race(root, "read", "append", ROUNDS, racers=1)
    assert storage.get_object_sync("grows").data == b"line\n" * ROUNDS

    race(root, "delete", "delete", ROUNDS)
    assert storage.get_object_sync("door") is None

    # What either writes, the other finds, under the same etag and nothing beside it.
    listed = storage.list_objects_sync("race/")
    assert listed == sorted(f"race/{i}" for i in range(ROUNDS)), "temporary files are listed"
    found = storage.get_object_sync("race/0")
    assert found.etag == hashlib.md5(found.data).hexdigest()
    left = [name for _, _, files in os.walk(root) for name in files if ".tmp" in name]
    assert not left, f"temporary files are left: {left}"
    print("races against Python: ok")


def main():
    if len(sys.argv) == 2:
        with tempfile.TemporaryDirectory(prefix="cairn-test-") as root:
            run(root)
        return
    _, _, root, mode, times = sys.argv
    modes = {"count": count, "create": create, "commit": commit, "append": append,
             "delete": open_and_shut}
    modes[mode](FilesystemStorage(root), int(times))


main()
