"""The Python package's side: peer.py WORKLOAD DIRECTORY TAG COUNT PROCESSES, as bench(.c) has it.

`WORKLOAD-synced` adds the fsync of the directory, which the package omits, behind each rename.
"""

import multiprocessing
import os
import sys
import time

import structlog
from cairndb.engine.coordination import Document, acquire_sync, claim_sync
from cairndb.storage.filesystem import FilesystemStorage

structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))

VALUE = {"run_id": "run-000042", "host": "worker-7"}
replace = os.replace


def replace_synced(source, target):
    replace(source, target)
    directory = os.open(os.path.dirname(target), os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(directory)
    os.close(directory)


def increment(value):
    return {"n": value["n"] + 1}


def workload(name, storage, key):
    """The function of a number that is measured."""
    if name == "claim":
        return lambda number: claim_sync(storage, f"{key}-{number:06}", VALUE)
    if name == "doc":
        doc = Document(storage, key)
        return lambda number: doc.update_sync(increment, create={"n": 0})
    if name == "renew":
        lease = acquire_sync(storage, key, ttl=60, holder="h")
        return lambda number: lease.renew_sync()
    if name == "lease":
        return lambda number: acquire_sync(storage, key, ttl=60, holder="h").release_sync()
    sys.exit(f"peer.py: no workload {name}")


def work(name, directory, key, count, barrier):
    once = workload(name, FilesystemStorage(directory), key)
    barrier.wait()
    for number in range(count):
        once(number)


def main():
    name, directory, tag, count, processes = sys.argv[1:]
    if name.endswith("-synced"):
        name = name.removesuffix("-synced")
        os.replace = replace_synced
    count, processes = int(count) // int(processes), int(processes)
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(processes + 1)
    workers = [
        context.Process(target=work, args=(name, directory, f"{tag}/w{i}", count, barrier))
        for i in range(processes)
    ]
    for worker in workers:
        worker.start()
    barrier.wait()
    start = time.monotonic()
    for worker in workers:
        worker.join()
    seconds = time.monotonic() - start
    if any(worker.exitcode for worker in workers):
        sys.exit("peer.py: a worker failed")
    print(f"{count * processes / seconds:.1f}")


main()
