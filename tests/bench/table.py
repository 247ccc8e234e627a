"""table.py BUILD-DIRECTORY: run all measurements on tmpfs and on disk and print one table.

Each is taken in ROUNDS rounds, ours and the baseline in turn, so that both see the same machine; the
table shows medians, and the median of the rounds' ratios.
"""

import contextlib
import datetime
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = Path(sys.argv[1])
BENCH = BUILD / "tests/bench/bench_program"
CAIRNFS = BUILD / "fs/cairnfs"
ROUNDS = 5
KEYS = 100_000
DISK = os.environ.get("BENCH_DISK", "/var/tmp")

# what, ours, baseline, aim of the ratio by place; workloads as bench(.c) and peer.py name them, and
# how many processes.
RATES = [
    ("claim, library : raw calls", ("library-claim", 1), ("raw-claim", 1), {}),
    ("claim, library : raw calls with the directory's fsync",
     ("library-claim", 1), ("raw-claim-synced", 1), {}),
    ("claim, library : package", ("library-claim", 1), ("claim", 1), {"tmpfs": 5}),
    ("claim, library : package with the directory's fsync",
     ("library-claim", 1), ("claim-synced", 1), {"disk": 1}),
    ("claim, mount : package", ("mount-claim", 1), ("claim", 1), {"tmpfs": 1, "disk": 1}),
    ("claim by ln, mount : package",
     ("mount-claim-link", 1), ("claim", 1), {"tmpfs": 1, "disk": 1}),
    ("claim, mount : package, 8 processes",
     ("mount-claim", 8), ("claim", 8), {"tmpfs": 2, "disk": 2}),
    ("claim by ln, mount : package, 8 processes",
     ("mount-claim-link", 8), ("claim", 8), {"tmpfs": 2, "disk": 2}),
    ("lease acquire+release, library : package",
     ("library-lease", 1), ("lease", 1), {"tmpfs": 5}),
    ("lease acquire+release, library : package with fsync",
     ("library-lease", 1), ("lease-synced", 1), {"disk": 1}),
    ("flock+unlock, mount : package",
     ("mount-lease", 1), ("lease", 1), {"tmpfs": 1, "disk": 1}),
    ("flock+unlock, mount : package, 8 processes",
     ("mount-lease", 8), ("lease", 8), {"tmpfs": 2, "disk": 2}),
    ("lease renew, library : package", ("library-renew", 1), ("renew", 1), {"tmpfs": 5}),
    ("lease renew, library : package with fsync",
     ("library-renew", 1), ("renew-synced", 1), {"disk": 1}),
    ("lease renew, mount : package", ("mount-renew", 1), ("renew", 1), {"tmpfs": 1, "disk": 1}),
    ("doc update, library : package", ("library-doc", 1), ("doc", 1), {"tmpfs": 5}),
    ("doc update, library : package with fsync",
     ("library-doc", 1), ("doc-synced", 1), {"disk": 1}),
    ("doc update by rename, mount : package",
     ("mount-doc", 1), ("doc", 1), {"tmpfs": 1, "disk": 1}),
    ("doc update by rename, mount : package, 8 processes",
     ("mount-doc", 8), ("doc", 8), {"tmpfs": 2, "disk": 2}),
]
COUNT = {"tmpfs": 2000, "disk": 640}


def output(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def is_mounted(point):
    return f" {point} fuse.cairnfs " in Path("/proc/self/mounts").read_text()


@contextlib.contextmanager
def mounted(place, bucket):
    """The bucket on a fresh mount: yields the mountpoint and the daemon's pid."""
    point = place / "mount"
    point.mkdir(exist_ok=True)
    daemon = subprocess.Popen(
        [CAIRNFS, bucket, point, "-f", "-o", f"cache_dir={place}/cache"])
    try:
        while not is_mounted(point):
            if daemon.poll() is not None:
                sys.exit(f"table.py: cairnfs ended with {daemon.returncode}")
            time.sleep(0.005)
        yield point, daemon.pid
    finally:
        subprocess.run(["fusermount3", "-u", point], check=False)
        daemon.wait(timeout=30)


class Place:
    """One file system to measure on."""

    def __init__(self, name, parent):
        self.name = name
        self.path = Path(tempfile.mkdtemp(prefix="cairn-bench.", dir=parent))
        self.runs = 0
        self.rates = {}
        for directory in ("bucket", "peer", "raw"):
            (self.path / directory).mkdir()

    def rate(self, point, workload, processes):
        self.runs += 1
        arguments = [f"{workload}-{processes}-{self.runs}", str(COUNT[self.name]), str(processes)]
        if workload.startswith("raw-"):
            command = [BENCH, workload, self.path / "raw"]
        elif workload.startswith("library-"):
            command = [BENCH, workload, self.path / "bucket"]
        elif workload.startswith("mount-"):
            command = [BENCH, workload, point]
        else:
            command = [sys.executable, HERE / "peer.py", workload, self.path / "peer"]
        return float(output(*command, *arguments))

    def measure_rates(self):
        wanted = dict.fromkeys(run for row in RATES for run in row[1:3])
        with mounted(self.path, self.path / "bucket") as (point, _):
            for number in range(ROUNDS):
                for run in wanted:
                    self.rates.setdefault(run, []).append(self.rate(point, *run))
                print(f"{self.name}: round {number + 1} of {ROUNDS}", file=sys.stderr, flush=True)

    def mount_time(self):
        """Milliseconds from the start of cairnfs to its exit status, when the mount answers."""
        point = self.path / "mount"
        start = time.monotonic()
        subprocess.run([CAIRNFS, self.path / "bucket", point, "-o",
                        f"cache_dir={self.path}/cache"], check=True)
        taken = (time.monotonic() - start) * 1e3
        subprocess.run(["fusermount3", "-u", point], check=True)
        return taken

    def listing(self):
        """Resident MiB idle and after ls -U of many keys, seconds of that ls, seconds on the bucket."""
        bucket = self.path / "many"
        if not bucket.exists():
            (bucket / "keys").mkdir(parents=True)
            output(BENCH, "fill", bucket / "keys", str(KEYS))
        with mounted(self.path, bucket) as (point, pid):
            (point / ".cairn/status.json").read_text()
            idle = resident(pid)
            ours = list_time(point / "objects/keys")
            after = resident(pid)
        return idle, after, ours, list_time(bucket / "keys")


def resident(pid):
    """Resident memory in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ValueError("no VmRSS")


def list_time(directory):
    start = time.monotonic()
    listed = output("ls", "-U", directory)
    taken = time.monotonic() - start
    if listed.count("\n") != KEYS:
        sys.exit(f"table.py: {directory} lists {listed.count(chr(10))} keys, not {KEYS}")
    return taken


ROW = "{:<54} {:<6} {:>12} {:>12} {:>7} {:>9}  {}"


def show(what, place, value, baseline, ratio, aim, met):
    verdict = "" if met is None else "met" if met else "MISSED"
    print(ROW.format(what, place, value, baseline, ratio, aim, verdict))


def show_rates(places):
    for what, ours, baseline, aims in RATES:
        for place in places:
            mine, theirs = place.rates[ours], place.rates[baseline]
            ratio = statistics.median(a / b for a, b in zip(mine, theirs))
            aim = aims.get(place.name)
            show(what, place.name, f"{statistics.median(mine):,.0f}/s",
                 f"{statistics.median(theirs):,.0f}/s", f"{ratio:.2f}",
                 f">= {aim}" if aim else "", ratio >= aim if aim else None)


def show_limits(places):
    for place in places:
        ready = statistics.median(place.mount_time() for _ in range(ROUNDS))
        idle, after, ours, theirs = zip(*(place.listing() for _ in range(ROUNDS)))
        for what, value, unit, aim in [
            ("mount until ready", ready, "ms", 50),
            ("resident memory, idle", statistics.median(idle), "MiB", 16),
            (f"resident memory after listing {KEYS:,} keys", statistics.median(after), "MiB", 64),
        ]:
            show(what, place.name, f"{value:.1f} {unit}", "", "", f"<= {aim}", value <= aim)
        ratio = statistics.median(a / b for a, b in zip(ours, theirs))
        show(f"ls -U of {KEYS:,} keys : ls -U on the bucket", place.name,
             f"{statistics.median(ours) * 1e3:.0f} ms", f"{statistics.median(theirs) * 1e3:.0f} ms",
             f"{ratio:.2f}", "<= 2", ratio <= 2)


def machine():
    model = next((line.partition(":")[2].strip() for line in open("/proc/cpuinfo", encoding="utf8")
                  if line.startswith("model name")), platform.machine())
    disk = output("stat", "-f", "-c", "%T", DISK).strip()
    return (f"{datetime.date.today()}, {os.cpu_count()} CPUs ({model}), Linux {platform.release()}, "
            f"disk: {disk}, load {os.getloadavg()[0]:.1f}")


def main():
    places = []
    try:
        for name, parent in ("tmpfs", "/dev/shm"), ("disk", DISK):
            places.append(Place(name, parent))
        print(machine())
        for place in places:
            place.measure_rates()
        print(ROW.format("what", "where", "value", "baseline", "ratio", "aim", "").rstrip())
        show_rates(places)
        show_limits(places)
    finally:
        for place in places:
            shutil.rmtree(place.path)


main()
