"""lease run at a terminal: ^C, ^Z and fg in an interactive shell, as a user types them."""

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

CAIRN = sys.argv[1]


class Shell:
    """An interactive bash on a terminal of its own."""

    def __init__(self, env):
        self.seen = b""
        self.answered = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], env)

    def send(self, text):
        os.write(self.fd, text.encode())

    def expect(self, pattern, limit=20):
        """Wait until the terminal has shown `pattern`, and forget what came before."""
        end = time.monotonic() + limit
        while not (found := re.search(pattern.encode(), self.seen)):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise AssertionError(f"{pattern!r} was not shown, but {self.seen!r}")
            self.seen += os.read(self.fd, 65536)
        self.answered = self.seen[:found.end()]
        self.seen = self.seen[found.end():]
        return found

    def ask(self, command):
        """What `command` prints."""
        self.send(f"{command}; echo en''d\n")
        self.expect("en''d\r\n")
        self.expect("end\r\n")
        return self.answered

    def close(self):
        # A terminal that goes away hangs up on the shell, which tells its jobs.
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def eventually(condition, limit=20):
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, "never true"
        time.sleep(0.05)


def process_state(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def lease(env, key):
    shown = subprocess.run([CAIRN, "lease", "show", "--json", key], env=env, check=True,
                           stdout=subprocess.PIPE)
    return json.loads(shown.stdout)


def start(shell, key, options=""):
    """Run a command under a lease in the foreground. Returns the pid of the command."""
    # The quotes keep the terminal's echo from looking like the output.
    shell.send(f"$CAIRN lease run {key} {options} -- sh -c 'echo com\"\"mand $$; exec cat'\n")
    return int(shell.expect(r"command (\d+)\r").group(1))


def test_command_reads_the_terminal(shell, env):
    start(shell, "reads")
    shell.send("hello there\n")
    shell.expect("hello there\r\nhello there\r\n")  # the echo, and cat
    shell.send("\x04")
    shell.send("echo status=$?.\n")
    shell.expect(r"status=0\.")
    assert lease(env, "reads")["status"] == "free"


def test_interrupt_ends_the_command(shell, env):
    pid = start(shell, "interrupt")
    shell.send("\x03")
    eventually(lambda: process_state(pid) is None)
    shell.send("echo status=$?.\n")
    shell.expect(r"status=130\.")
    assert lease(env, "interrupt")["status"] == "free"


def test_stopped_command_is_not_renewed_and_goes_on(shell, env):
    pid = start(shell, "stop", "--ttl 2")
    shell.send("\x1a")
    shell.expect("Stopped")
    assert process_state(pid) == "T"
    eventually(lambda: lease(env, "stop")["status"] == "expired")
    shell.send("fg\n")
    eventually(lambda: lease(env, "stop")["status"] == "held")
    shell.send("again\n")
    shell.expect("again\r\nagain\r\n")
    assert lease(env, "stop")["epoch"] == 1
    shell.send("\x04")
    shell.send("echo status=$?.\n")
    shell.expect(r"status=0\.")


def test_stopped_command_that_lost_its_lease_is_ended(shell, env):
    pid = start(shell, "taken", "--ttl 1")
    shell.send("\x1a")
    shell.expect("Stopped")
    eventually(lambda: subprocess.run([CAIRN, "lease", "acquire", "taken"], env=env,
                                      capture_output=True).returncode == 0)
    shell.send("fg\n")
    shell.expect("cairn: .*so the command was ended")
    eventually(lambda: process_state(pid) is None)
    shell.send("echo status=$?.\n")
    shell.expect(r"status=1\.")
    assert lease(env, "taken")["epoch"] == 2


def test_background_command_that_reads_stops(shell, env):
    shell.send("$CAIRN lease run background -- sh -c 'read x; echo got:$x' &\n")
    eventually(lambda: b"Stopped" in shell.ask("jobs"))
    shell.send("fg\n")
    shell.expect("lease run")
    shell.send("line\n")
    shell.expect("got:line")
    eventually(lambda: lease(env, "background")["status"] == "free")


def main():
    directory = tempfile.mkdtemp(prefix="cairn-cli.")
    env = dict(os.environ, CAIRN=CAIRN, PS1="$ ", TERM="dumb", HISTFILE="",
               CAIRNDB_STORAGE_TYPE="filesystem", CAIRNDB_STORAGE_PATH=directory + "/bucket")
    try:
        for name, test in list(globals().items()):
            if not name.startswith("test_"):
                continue
            shell = Shell(env)
            try:
                test(shell, env)
            except BaseException:
                print("FAIL:", name, file=sys.stderr)
                raise
            finally:
                shell.close()
    finally:
        shutil.rmtree(directory)


main()
