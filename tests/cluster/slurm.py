"""Slurm on this machine: authentication, controller and one node's daemon, from the system's packages, in a folder."""

import contextlib
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from utils.runtime.leaving import die_with_parent

ROOT = Path(__file__).parents[2]
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "sinfo", "squeue", "scancel")
_PATH = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"

_missing = [name for name in PROGRAMS if shutil.which(name, path=_PATH) is None]
needs_slurm = [
    pytest.mark.skipif(bool(_missing), reason="Slurm is not installed (Debian: apt-get install slurm-wlm munge)"),
    pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="Slurm's daemon must be started by root"),
]


@contextlib.contextmanager
def slurm(folder):
    """Entered, jobs can be submitted with the environment that it gives."""
    name = socket.gethostname().split(".")[0]
    environment = os.environ | {"PATH": _PATH, "SLURM_CONF": str(folder / "slurm.conf")}
    environment = {key: value for key, value in environment.items() if not key.startswith("PYTEST_")}
    for each in ("munge", "state", "spool"):
        (folder / each).mkdir(mode=0o700)
    (folder / "key").write_bytes(secrets.token_bytes(128))
    (folder / "key").chmod(0o400)
    (folder / "slurm.conf").write_text(_configuration(folder, name))
    programs = (
        ["munged", "--foreground", "--force", *_munge_options(folder)],
        ["slurmctld", "-D", "-i"],
        ["slurmd", "-D", "-N", name],
    )
    with contextlib.ExitStack() as stack:
        for program in programs:
            log = stack.enter_context(open(folder / f"{program[0]}.log", "w"))
            stack.callback(_end, _start(program, environment, log))
            if program[0] == "munged":
                _wait_for((folder / "munge" / "socket").exists, folder / "munged.log")
        _wait_for(lambda: _ask(environment, "sinfo", "-h", "-o", "%T") == "idle", folder / "slurmctld.log")
        stack.callback(_end_jobs, environment)
        yield environment


def submit(environment, *arguments, timeout=1500):
    """Submit clusters/slurm.sbatch and wait for the job. Returns its exit status."""
    command = ["sbatch", "--wait", "--nodes=1", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, timeout=timeout, capture_output=True).returncode


def _configuration(folder, name):
    user = pwd.getpwuid(os.getuid()).pw_name
    cores = len(os.sched_getaffinity(0))
    return f"""
ClusterName=test
SlurmctldHost={name}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={_free_port()}
SlurmdPort={_free_port()}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
ReturnToService=2
NodeName={name} NodeAddr=127.0.0.1 CPUs={cores} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def _munge_options(folder):
    files = {"socket": "munge/socket", "key-file": "key", "pid-file": "munge/pid", "log-file": "munge/log"}
    return [f"--{option}={folder / file}" for option, file in files.items()] + [f"--seed-file={folder}/munge/seed"]


def _start(program, environment, log):
    where = shutil.which(program[0], path=_PATH)
    return subprocess.Popen(
        [where, *program[1:]],
        preexec_fn=die_with_parent,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )


def _end(process):
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _end_jobs(environment):
    """A daemon that ends leaves its jobs running."""
    _ask(environment, "scancel", "--full", "--user", pwd.getpwuid(os.getuid()).pw_name)
    end = time.monotonic() + 60
    while _ask(environment, "squeue", "-h") and time.monotonic() < end:
        time.sleep(0.3)


def _ask(environment, *command):
    return subprocess.run(command, env=environment, capture_output=True, text=True).stdout.strip()


def _wait_for(condition, log, seconds=90):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"not ready after {seconds} s:\n{log.read_text()[-3000:]}")
        time.sleep(0.3)


def _free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
