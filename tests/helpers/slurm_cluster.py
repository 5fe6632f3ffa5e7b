"""A SLURM cluster of some nodes on this machine, with pretended GPUs.

`make test-packages` installs its programs. The daemons stay in the foreground as
children of the process that starts them, and end with it, also if it is killed.
"""

import contextlib
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

CONF = Path(__file__).parent / "slurm" / "slurm.conf"
# The folder that SLURM reads: Snakemake's jobs do not inherit SLURM_CONF.
ETC = Path("/etc/slurm")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel")

UNTIL_DEATH = ["--pdeathsig", "TERM"]  # the signal at the death of the process that starts one


def why_not():
    """Return the reason why no cluster can be started here, or an empty string."""
    if os.geteuid() != 0:
        return "SLURM's daemons are started as root"
    if missing := [name for name in PROGRAMS if not shutil.which(name)]:
        return f"{', '.join(missing)} not found; run `make test-packages`"
    if (conf := ETC / "slurm.conf").exists() and not _is_leftover(conf):
        return f"{conf} is there, so this machine may belong to a cluster"
    return ""


def _is_leftover(conf):
    """Return whether a test run that was killed left `conf`: no controller listens."""
    lines = conf.read_text().splitlines()
    if not conf.is_symlink() or lines[:1] != CONF.read_text().splitlines()[:1]:
        return False
    [port] = [ln.partition("=")[2] for ln in lines if ln.startswith("SlurmctldPort=")]
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", int(port))) != 0


def ask(*command, check=True):
    """Run a SLURM command, which would wait for minutes when the cluster is gone."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert not check or done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def _free_ports(n):
    """Return unused ports below the range that systems give to clients."""
    free = []
    for port in range(26_817, 32_000):
        with socket.socket() as bound, contextlib.suppress(OSError):
            bound.bind(("", port))
            free.append(port)
        if len(free) == n:
            return free
    raise RuntimeError("no port is free")


def _write_conf(state, nodes, *, cpus, memory_mb, gpus):
    """Write the configuration below `state` and link to it from where SLURM looks."""
    host = socket.gethostname().split(".")[0]
    controller_port, *ports = _free_ports(1 + len(nodes))
    names = {"state": state, "host": host, "controller_port": controller_port}
    # Daemons of several nodes share the machine; names and ports distinguish them.
    node_settings = f"NodeHostname={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory_mb}"
    described = [
        f"NodeName={node} Port={port} {node_settings} Gres=gpu:{gpus} State=UNKNOWN\n"
        for node, port in zip(nodes, ports, strict=True)
    ]
    conf = CONF.read_text().format(**names) + "".join(described)
    (state / "slurm.conf").write_text(conf)
    # A GPU must be a device; the number at the end of the name is the index.
    for i in range(gpus):
        (state / f"gpu{i}").symlink_to("/dev/null")
    (state / "gres.conf").write_text(
        f"AutoDetect=off\nNodeName={','.join(nodes)} Name=gpu File={state}/gpu[0-{gpus - 1}]\n"
    )
    ETC.mkdir(exist_ok=True)
    for name in ("slurm.conf", "gres.conf"):
        link = ETC / name
        link.unlink(missing_ok=True)  # a dangling link of a run that was killed
        link.symlink_to(state / name)


def _munge_command(state):
    """Prepare munge's key and return its command; munge requires a separate folder."""
    folder = state / "munge"
    folder.mkdir(mode=0o711)
    key = folder / "key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    user = pwd.getpwnam("munge")
    for path in (folder, key):
        os.chown(path, user.pw_uid, user.pw_gid)
    files = {"key-file": "key", "socket": "socket", "pid-file": "pid"}
    files |= {"log-file": "log", "seed-file": "seed"}
    as_user = ["setpriv", "--reuid=munge", "--regid=munge", "--clear-groups", *UNTIL_DEATH]
    options = [f"--{option}={folder / name}" for option, name in files.items()]
    return [*as_user, "munged", "--foreground", *options]


def _wait(condition, event, state, seconds=240):
    """Wait for an event; a busy machine can take much longer than the usual second."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            logs = "\n".join(path.read_text()[-2000:] for path in state.glob("*.log"))
            raise TimeoutError(f"{event} did not happen in {seconds} s:\n{logs}")
        time.sleep(0.2)


@contextlib.contextmanager
def cluster(*, nodes=("node1",), cpus=4, memory_mb=64_000, gpus=4):
    """Run a cluster with the partitions `cpu` and `gpu`, both of all `nodes`.

    Each node has the given CPUs, memory and GPUs; the machine can have fewer.
    """
    state = Path(tempfile.mkdtemp(prefix="slurm-"))
    state.chmod(0o755)  # munge runs as another user
    for name in ("controller", *nodes):
        (state / name).mkdir()
    _write_conf(state, nodes, cpus=cpus, memory_mb=memory_mb, gpus=gpus)
    daemons = []

    def start(name, command):
        with (state / f"{name}.log").open("wb") as log:
            daemons.append(
                subprocess.Popen(
                    # before other tests, because jobs run one after the other and mostly wait
                    ["setpriv", *UNTIL_DEATH, "nice", "-n", "-10", *command],
                    stdout=log,
                    stderr=log,
                    stdin=subprocess.DEVNULL,
                )
            )

    try:
        start("munged", _munge_command(state))
        _wait((state / "munge" / "socket").exists, "The start of munge", state)
        start("slurmctld", ["slurmctld", "-D"])
        for node in nodes:
            start(node, ["slurmd", "-D", "-N", node])
        states = ["sinfo", "--noheader", "--Node", "--partition=gpu", "--format=%T"]
        _wait(
            lambda: ask(*states, check=False).split() == ["idle"] * len(nodes),
            "The start of the nodes",
            state,
        )
        yield
    finally:
        if running := ask("squeue", "--noheader", "--format=%A", check=False).split():
            ask("scancel", *running, check=False)
            with contextlib.suppress(TimeoutError):
                jobs = ["squeue", "--noheader", "--format=%A"]
                _wait(lambda: not ask(*jobs, check=False), "The end of the jobs", state, 30)
        for daemon in reversed(daemons):
            daemon.terminate()
            try:
                daemon.wait(timeout=10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        for name in ("slurm.conf", "gres.conf"):
            (ETC / name).unlink(missing_ok=True)
        shutil.rmtree(state, ignore_errors=True)
