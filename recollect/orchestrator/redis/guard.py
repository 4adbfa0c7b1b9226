"""How an embedded redis-server is started, so that it never outlives its orchestrator.

Between the two stands a shell that holds the reading end of a pipe. However the orchestrator ends,
kill -9 included, the kernel closes its end of the pipe; then the shell ends the server and removes
its files. It does the same when the server ends first, and ends with it.

    orchestrator ── pipe ──► shell ──► redis-server
"""

from __future__ import annotations

import subprocess

from recollect.orchestrator.redis.home import Home

CONNECTIONS_MAX = 256

# The subshell waits for the end of the pipe, the shell itself for the end of the server: a shell
# can wait for one thing only. A server that keeps nothing on disk may be killed outright. Files are
# removed only while they are of this server: the next one may be there already.
GUARD = """
folder=$1 socket=$2 pid_file=$3; shift 3
exec 3<&0 </dev/null
"$@" 3<&- &
server=$!
(read -r nothing <&3; kill -9 "$server" 2>/dev/null) &
waiting=$!
exec 3<&-
wait "$server"
known=
[ -e "$pid_file" ] && read -r known <"$pid_file"
[ "$known" = "$server" ] && rm -f "$socket" "$pid_file" && rmdir "$folder" 2>/dev/null
kill "$waiting" 2>/dev/null
"""


def start(program: str, home: Home, memory_mb: int) -> subprocess.Popen[bytes]:
    """A server under its guard; it ends when the standard input of the guard is closed."""
    return subprocess.Popen(
        [
            *("sh", "-c", GUARD, "redis-guard"),
            *(str(home.folder), str(home.socket), str(home.pid_file)),
            *command(program, home, memory_mb),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # Ctrl-C at a terminal is for the orchestrator, which has something to finish first.
        start_new_session=True,
    )


def command(program: str, home: Home, memory_mb: int) -> list[str]:
    """Reachable by its socket alone, nothing on disk, bounded: when it is full, what has an expiry
    makes room, which are the entries of the cache and not the operational tier."""
    return [
        program,
        *("--port", "0", "--unixsocket", str(home.socket), "--unixsocketperm", "700"),
        *("--save", "", "--appendonly", "no", "--dir", str(home.folder)),
        *("--maxmemory", f"{memory_mb}mb", "--maxmemory-policy", "volatile-lru"),
        *("--maxclients", str(CONNECTIONS_MAX), "--databases", "1"),
        *("--pidfile", str(home.pid_file), "--logfile", str(home.log), "--daemonize", "no"),
    ]
