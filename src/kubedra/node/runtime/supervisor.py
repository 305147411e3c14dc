"""The tiny process between the agent and one container: it outlives the agent and writes down how the container ended.

Upstream counterpart: containerd-shim and conmon. This file is never imported; the agent compiles it once and runs it as
``python -I -S -E supervisor.pyc FOLDER``. It loads nothing but modules that come with the bare interpreter, so that
it stays under 5 MB (docs/decisions has the measurement). Hence no json, no os, no signal, no datetime.

The agreement with the agent, all in FOLDER:

``spec``   NUL-separated ``key=value`` records: id, argv and env (repeated), cwd, log, log-limit, uid, gid, group,
           stop-signal, depth (how many generations below the first process the command is).
``child``  written before the command runs: its pid and start time.
``exit``   written, synced and renamed when everything has ended: code, signal, finished, message.

On standard input it waits for one byte. The agent sends it after it wrote down this process' identity; an agent
that dies before that leaves nothing running. On standard output it answers one line, ``ok`` or ``error TEXT``.
SIGTERM is passed on to the command as its stop signal, SIGUSR1 means kill. It signals only its own unreaped child
and processes that carry this container's id in their environment.
"""

import _signal  # type: ignore[import-not-found]
import posix
import select
import sys
import time

LINE_LIMIT = 16 * 1024
ID_VARIABLE = b"KUBEDRA_CONTAINER_ID="
EX_NOT_FOUND = 127
EX_NOT_EXECUTABLE = 126
SWEEP_ROUNDS = 20
EXEC_ROUNDS = 2
DEFAULT_PATH = b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def read_file(path: bytes | str) -> bytes:
    """The whole content of a file."""
    fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        parts = []
        while part := posix.read(fd, 1 << 16):
            parts.append(part)
        return b"".join(parts)
    finally:
        posix.close(fd)


def write_file(folder: str, name: str, content: bytes, durable: bool) -> None:
    """Replaces a file in one step; a durable one survives a power cut."""
    temporary = f"{folder}/.{name}.tmp"
    fd = posix.open(temporary, posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_CLOEXEC, 0o600)
    try:
        posix.write(fd, content)
        if durable:
            posix.fsync(fd)
    finally:
        posix.close(fd)
    posix.rename(temporary, f"{folder}/{name}")
    if durable:
        fd = posix.open(folder, posix.O_RDONLY | posix.O_CLOEXEC)
        posix.fsync(fd)
        posix.close(fd)


def start_time(pid: int) -> str:
    """When a process started, in clock ticks since boot: with the pid and the boot it names a process for good."""
    stat = read_file(f"/proc/{pid}/stat")
    return stat[stat.rindex(b")") + 2 :].split()[19].decode()


def stamp() -> bytes:
    """Now, as the CRI log format wants it."""
    now = time.time_ns()
    seconds, nanos = divmod(now, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{nanos:09d}Z".encode()


class Log:
    """The container's log in CRI format: ``TIME STREAM F|P TEXT``; P marks a piece of a line that goes on."""

    def __init__(self, path: bytes, limit: int) -> None:
        self.path, self.limit = path, limit
        self.pending = {b"stdout": b"", b"stderr": b""}
        self.fd, self.size = -1, 0
        self.open()

    def open(self) -> None:
        """Opens the file to append to."""
        flags = posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND | posix.O_CLOEXEC
        self.fd = posix.open(self.path, flags, 0o640)
        self.size = posix.fstat(self.fd).st_size

    def feed(self, stream: bytes, data: bytes) -> None:
        """Takes output as it comes; complete lines are written at once."""
        lines = (self.pending[stream] + data).split(b"\n")
        rest = lines.pop()
        out = []
        for line in lines:
            while len(line) > LINE_LIMIT:
                out.append(b"%s %s P %s\n" % (stamp(), stream, line[:LINE_LIMIT]))
                line = line[LINE_LIMIT:]
            out.append(b"%s %s F %s\n" % (stamp(), stream, line))
        while len(rest) >= LINE_LIMIT:
            out.append(b"%s %s P %s\n" % (stamp(), stream, rest[:LINE_LIMIT]))
            rest = rest[LINE_LIMIT:]
        self.pending[stream] = rest
        if out:
            self.write(b"".join(out))

    def finish(self, stream: bytes) -> None:
        """Writes what is left of a line that has no end."""
        if rest := self.pending[stream]:
            self.pending[stream] = b""
            self.write(b"%s %s F %s\n" % (stamp(), stream, rest))

    def write(self, data: bytes) -> None:
        """Appends; a full disk costs lines, never the container."""
        try:
            if self.limit and self.size and self.size + len(data) > self.limit:
                posix.rename(self.path, self.path + b".1")
                posix.close(self.fd)
                self.open()
            self.size += posix.write(self.fd, data)
        except OSError:
            pass


class Command:
    """The container's first process."""

    def __init__(self, spec: list[tuple[bytes, bytes]]) -> None:
        self.argv = [value for key, value in spec if key == b"argv"]
        self.env = dict(value.split(b"=", 1) for key, value in spec if key == b"env")
        single = dict(spec)
        self.cwd = single.get(b"cwd", b"/")
        self.uid, self.gid = int(single.get(b"uid", b"-1")), int(single.get(b"gid", b"-1"))
        self.groups = [int(value) for key, value in spec if key == b"group"]
        self.stop_signal = int(single.get(b"stop-signal", b"15"))
        self.depth = int(single.get(b"depth", b"0"))
        self.marker = ID_VARIABLE + single.get(b"id", b"")
        self.pid = 0

    def program(self) -> bytes:
        """The file to execute, looked up in the container's PATH."""
        name = self.argv[0]
        if b"/" in name:
            return name
        for folder in self.env.get(b"PATH", DEFAULT_PATH).split(b":"):
            candidate = folder + b"/" + name
            if posix.access(candidate, posix.X_OK):
                return candidate
        return name

    def start(self, folder: str, out: int, err: int) -> str:
        """Forks and executes; returns what went wrong, or nothing. The command runs once its pid is written down."""
        go_r, go_w = posix.pipe()
        bad_r, bad_w = posix.pipe()
        self.pid = posix.fork()
        if self.pid == 0:
            self._become(go_r, bad_w, out, err)
        posix.close(bad_w)
        posix.close(go_r)
        content = f"pid={self.pid}\nstart={start_time(self.pid)}\ntime={stamp().decode()}\n"
        write_file(folder, "child", content.encode(), durable=False)
        posix.write(go_w, b"g")
        posix.close(go_w)
        problem = posix.read(bad_r, 4096).decode()
        posix.close(bad_r)
        return problem

    def _become(self, go: int, bad: int, out: int, err: int) -> None:
        """In the child: never returns."""
        code = EX_NOT_EXECUTABLE
        what = self.argv[0]
        try:
            posix.setsid()
            posix.read(go, 1)
            null = posix.open("/dev/null", posix.O_RDONLY)
            posix.dup2(null, 0)
            posix.dup2(out, 1)
            posix.dup2(err, 2)
            for number in (_signal.SIGPIPE, _signal.SIGHUP, _signal.SIGINT, _signal.SIGXFSZ):
                _signal.signal(number, _signal.SIG_DFL)
            # While we may still go anywhere: the folders of the agent are closed to the user that the command runs as.
            what = b"working directory " + self.cwd
            posix.chdir(self.cwd)
            what = self.argv[0]
            if self.gid >= 0 or self.groups:
                posix.setgroups(self.groups)
            if self.gid >= 0:
                posix.setgid(self.gid)
            if self.uid >= 0:
                posix.setuid(self.uid)
            program = self.program()
            try:
                posix.execve(program, self.argv, self.env)
            except FileNotFoundError:
                code = EX_NOT_FOUND
                raise
        except OSError as error:
            text = f"{what.decode(errors='replace')}: {error.strerror}"
            posix.write(bad, text.encode())
        finally:
            posix._exit(code)

    def signal(self, number: int) -> None:
        """Signals the command itself: inside bubblewrap it is the child of a child."""
        pid = self.pid
        if number != _signal.SIGKILL:
            for _ in range(self.depth):
                try:
                    children = read_file(f"/proc/{pid}/task/{pid}/children").split()
                except OSError:
                    children = []
                if not children:
                    break
                pid = int(children[0])
        try:  # noqa: SIM105 - contextlib would cost memory
            posix.kill(pid, number)
        except OSError:
            pass

    def sweep(self) -> None:
        """Kills what the command left behind: whoever carries this container's id."""
        own = posix.getpid()
        for turn in range(SWEEP_ROUNDS):
            found = False
            for name in posix.listdir("/proc"):
                if not name.isdigit() or int(name) in (own, self.pid):
                    continue
                try:
                    handle = posix.pidfd_open(int(name))
                except (OSError, AttributeError):
                    continue
                try:
                    # Looked at after the handle was taken: what is read belongs to what will be signalled.
                    environ = read_file(f"/proc/{name}/environ")
                    if self.marker in environ.split(b"\0"):
                        _signal.pidfd_send_signal(handle, _signal.SIGKILL)
                        found = True
                    elif turn < EXEC_ROUNDS and not environ and read_file(f"/proc/{name}/statm")[:2] != b"0 ":
                        found = True  # in the middle of an exec: look again
                except OSError:
                    pass
                finally:
                    posix.close(handle)
            if not found:
                return
            time.sleep(0.01)


def supervise(folder: str, command: Command, log: Log) -> None:
    """Runs the command to its end."""
    out_r, out_w = posix.pipe()
    err_r, err_w = posix.pipe()
    wake_r, wake_w = posix.pipe()
    for fd in (out_r, err_r, wake_r, wake_w):
        posix.set_blocking(fd, False)
    wanted: list[int] = []
    _signal.set_wakeup_fd(wake_w, warn_on_full_buffer=False)
    _signal.signal(_signal.SIGCHLD, lambda _number, _frame: None)
    _signal.signal(_signal.SIGTERM, lambda _number, _frame: wanted.append(command.stop_signal))
    _signal.signal(_signal.SIGUSR1, lambda _number, _frame: wanted.append(_signal.SIGKILL))
    for number in (_signal.SIGHUP, _signal.SIGINT):
        _signal.signal(number, _signal.SIG_IGN)

    problem = command.start(folder, out_w, err_w)
    posix.close(out_w)
    posix.close(err_w)
    answer = f"error {problem}\n" if problem else "ok\n"
    try:  # noqa: SIM105 - contextlib would cost memory
        posix.write(1, answer.encode())
    except OSError:
        pass  # the agent is gone; it will read the files when it is back
    null = posix.open("/dev/null", posix.O_RDWR)
    for fd in (0, 1, 2):
        posix.dup2(null, fd)

    streams = {out_r: b"stdout", err_r: b"stderr"}
    poller = select.poll()
    for fd in (out_r, err_r, wake_r):
        poller.register(fd, select.POLLIN)
    status = None
    while status is None or streams:
        # Once the command has ended, nobody may hold its output open for long: all it left was killed.
        events = poller.poll(None if status is None else 200)
        if not events and status is not None:
            break
        for fd, _ in events:
            try:
                data = posix.read(fd, 1 << 16)
            except BlockingIOError:
                continue
            if fd == wake_r:
                continue
            if data:
                log.feed(streams[fd], data)
            else:
                poller.unregister(fd)
                log.finish(streams.pop(fd))
        while wanted and status is None:
            command.signal(wanted.pop(0))
        if status is None:
            pid, raw = posix.waitpid(command.pid, posix.WNOHANG)
            if pid:
                status = raw
                command.sweep()
    for stream in streams.values():
        log.finish(stream)
    code = posix.waitstatus_to_exitcode(status)
    signal = max(-code, 0)
    code = 128 + signal if signal else code
    text = f"code={code}\nsignal={signal}\nfinished={stamp().decode()}\nmessage={problem}\n"
    write_file(folder, "exit", text.encode(), durable=True)


def main() -> None:
    """The whole program."""
    folder = sys.argv[1]
    if posix.read(0, 1) != b"g":
        return
    records = [record.split(b"=", 1) for record in read_file(folder + "/spec").split(b"\0") if record]
    spec = [(key, value) for key, value in records]
    single = dict(spec)
    supervise(folder, Command(spec), Log(single[b"log"], int(single.get(b"log-limit", b"0"))))


main()
