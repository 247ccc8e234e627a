"""The kinds of locks on one key, by descriptors of one process and of its child. Run in leases/."""
import errno
import fcntl
import os
import struct
import threading

OFD_SETLK, OFD_GETLK = 37, 36
NOW = fcntl.LOCK_EX | fcntl.LOCK_NB


def flock_struct(kind, start=0, length=0):
    return struct.pack('hhqqi4x', kind, os.SEEK_SET, start, length, 0)


def ofd(fd, kind):
    fcntl.fcntl(fd, OFD_SETLK, flock_struct(kind))


def getlk(fd, command=fcntl.F_GETLK):
    return struct.unpack('hhqqi4x', fcntl.fcntl(fd, command, flock_struct(fcntl.F_WRLCK)))[0]


def name(function, *arguments):
    try:
        function(*arguments)
        return 'ok'
    except OSError as error:
        return errno.errorcode[error.errno]


def check(what, actual, expected):
    if actual != expected:
        raise SystemExit(f'{what}: is {actual!r}, expected {expected!r}')


def in_child(function, *arguments):
    """What `function` says in a forked process, whose POSIX locks are its own."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, name(function, *arguments).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with open(read, 'rb') as pipe:
        return pipe.read().decode()


def opened(key):
    return os.open(key, os.O_RDWR | os.O_CREAT, 0o666)


def flocks():
    a, b = opened('flock'), opened('flock')
    check('write without a lock', name(os.write, a, b'1\n'), 'EPERM')
    check('unlock without a lock', name(fcntl.flock, a, fcntl.LOCK_UN), 'ok')
    check('first', name(fcntl.flock, a, NOW), 'ok')
    check('again', name(fcntl.flock, a, NOW), 'ok')
    check('another description', name(fcntl.flock, b, NOW), 'EAGAIN')
    check('inherited', in_child(fcntl.flock, a, NOW), 'ok')
    check('shared', name(fcntl.flock, b, fcntl.LOCK_SH | fcntl.LOCK_NB), 'ENOTSUP')
    check('POSIX elsewhere', name(fcntl.lockf, b, NOW), 'EAGAIN')
    check('write elsewhere', name(os.write, b, b'1\n'), 'EPERM')
    check('fcntl on the same description', name(fcntl.lockf, a, NOW), 'ok')
    check('one way unlocked', name(fcntl.flock, a, fcntl.LOCK_UN), 'ok')
    check('still held the other way', name(fcntl.flock, b, NOW), 'EAGAIN')
    check('both unlocked', name(fcntl.lockf, a, fcntl.LOCK_UN), 'ok')
    check('free', name(fcntl.flock, b, NOW), 'ok')
    duplicate = os.dup(b)
    os.close(b)
    check('a copy is open', name(fcntl.flock, a, NOW), 'EAGAIN')
    os.close(duplicate)
    check('the last copy closed', name(fcntl.flock, a, NOW), 'ok')
    os.close(a)


def posix():
    a, b = opened('posix'), opened('posix')
    check('first', name(fcntl.lockf, a, NOW), 'ok')
    check('the process has it', name(fcntl.lockf, b, NOW), 'ok')
    check('another process', in_child(fcntl.lockf, a, NOW), 'EAGAIN')
    check('flock elsewhere', name(fcntl.flock, b, NOW), 'EAGAIN')
    check('OFD elsewhere', name(ofd, b, fcntl.F_WRLCK), 'EAGAIN')
    check('a range', name(fcntl.lockf, a, NOW, 1, 5), 'ENOTSUP')
    check('shared', name(fcntl.lockf, a, fcntl.LOCK_SH | fcntl.LOCK_NB), 'ENOTSUP')
    check('F_GETLK of the holder', getlk(b), fcntl.F_UNLCK)
    check('F_OFD_GETLK', getlk(b, OFD_GETLK), fcntl.F_WRLCK)
    check('write', name(os.write, a, b'1\n'), 'ok')
    check('a child that closes', in_child(os.close, a), 'ok')
    check('write on', name(os.write, a, b'2\n'), 'ok')
    os.close(os.open('posix', os.O_RDONLY))
    check('any close of the file unlocks', name(os.write, a, b'3\n'), 'EPERM')
    check('F_GETLK when free', getlk(b, OFD_GETLK), fcntl.F_UNLCK)
    os.close(a)
    os.close(b)


def ofds():
    a, b = opened('ofd'), opened('ofd')
    check('first', name(ofd, a, fcntl.F_WRLCK), 'ok')
    check('again', name(ofd, a, fcntl.F_WRLCK), 'ok')
    check('another description', name(ofd, b, fcntl.F_WRLCK), 'EAGAIN')
    check('POSIX elsewhere', name(fcntl.lockf, b, NOW), 'EAGAIN')
    check('inherited', in_child(ofd, a, fcntl.F_WRLCK), 'ok')
    os.close(os.open('ofd', os.O_RDONLY))
    check('another close changes nothing', name(os.write, a, b'1\n'), 'ok')
    check('unlock', name(ofd, a, fcntl.F_UNLCK), 'ok')
    check('free', name(ofd, b, fcntl.F_WRLCK), 'ok')
    os.close(b)
    check('closed', name(ofd, a, fcntl.F_WRLCK), 'ok')
    os.close(a)


def threads():
    """Of one description, whichever thread asks: who waited has the lock when the first has it."""
    a, b = opened('threads'), opened('threads')
    check('somebody holds', name(fcntl.flock, a, NOW), 'ok')
    said = []
    waiting = [threading.Thread(target=lambda: said.append(name(fcntl.flock, b, fcntl.LOCK_EX)))
               for _ in range(3)]
    for thread in waiting:
        thread.start()
    os.close(a)
    for thread in waiting:
        thread.join(20)
    check('all threads', said, ['ok'] * 3)
    os.close(b)


flocks()
posix()
ofds()
threads()
