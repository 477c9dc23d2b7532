# SPDX-License-Identifier: Apache-2.0
"""The clusters of check.py: computers of ssh, Slurm and Dask, all on this machine."""
import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import time

SAMPLES = pathlib.Path(__file__).resolve().parents[3] / "Samples" / "cluster"
OPTIONS = ["--speed", "1/8", "--fps", "30", "--encoder-preset", "slower", "--box", "640x480",
           "--pitch", "mute"]


def run(*command, check=True):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if check and done.returncode != 0:
        raise RuntimeError(f"{command}: {done.stdout}{done.stderr}")
    return done.stdout


def await_(holds, what, seconds=120):
    """Waits for a service. The time limit does not apply to the program under test."""
    for _ in range(seconds * 20):
        if holds():
            return
        time.sleep(0.05)
    raise RuntimeError(f"timed out: {what}")


@contextlib.contextmanager
def service(*command, log, **options):
    """A process that is ended with the block."""
    with open(log, "a") as output:
        process = subprocess.Popen(
            list(map(str, command)), stdout=output, stderr=output, stdin=subprocess.DEVNULL,
            **options)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


class Host:
    """A computer of ssh: a network namespace with an sshd."""

    def __init__(self, number, work):
        self.name, self.work = f"clusterhost{number}", work
        self.outside, self.inside = f"clout{number}", f"clin{number}"
        self.address = f"10.213.{number}.2"
        run("ip", "netns", "add", self.name)
        run("ip", "link", "add", self.outside, "type", "veth", "peer", "name", self.inside)
        run("ip", "link", "set", self.inside, "netns", self.name)
        run("ip", "addr", "add", f"10.213.{number}.1/24", "dev", self.outside)
        run("ip", "link", "set", self.outside, "up")
        for command in [["addr", "add", f"{self.address}/24", "dev", self.inside],
                        ["link", "set", self.inside, "up"], ["link", "set", "lo", "up"]]:
            run("ip", "-n", self.name, *command)

    def service(self, full_disk=None):
        """The sshd. For a full disk, the output directory becomes a small tmpfs."""
        command = f"exec /usr/sbin/sshd -D -e -f {self.work}/sshd_config"
        if full_disk:
            reports = f"{full_disk}/reports"
            command = (
                f"mkdir -p /run/cluster-reports && mount --bind {reports} /run/cluster-reports && "
                f"mount -t tmpfs -o size=128k tmpfs {full_disk} && mkdir {reports} && "
                f"mount --bind /run/cluster-reports {reports} && {command}")
        return service("ip", "netns", "exec", self.name, "unshare", "-m", "--propagation",
                       "private", "sh", "-c", command, log=self.work / "sshd.log")

    def processes(self):
        return [int(word) for word in run("ip", "netns", "pids", self.name).split()]

    def vanish(self):
        run("ip", "link", "set", self.outside, "down")

    def close(self):
        for process in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        run("ip", "link", "delete", self.outside, check=False)
        run("ip", "netns", "delete", self.name, check=False)


def parallel(bench):
    """GNU parallel over ssh: a killed export, a computer that vanishes, and a full disk."""
    work = bench.work / "ssh"
    work.mkdir(mode=0o700)
    pathlib.Path("/run/sshd").mkdir(exist_ok=True)
    for key in ["host", "user"]:
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", work / key)
    (work / "sshd_config").write_text(
        f"HostKey {work}/host\nAuthorizedKeysFile {work}/user.pub\nStrictModes no\nUsePAM no\n"
        "PermitRootLogin prohibit-password\nPidFile none\nMaxStartups 100\n")
    (work / "config").write_text(
        f"Host *\n  User {os.environ.get('USER', 'root')}\n  IdentityFile {work}/user\n"
        "  BatchMode yes\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n"
        "  LogLevel ERROR\n  ServerAliveInterval 1\n  ServerAliveCountMax 3\n  ConnectTimeout 3\n")
    environment = {**bench.environment, "PARALLEL_SSH": f"ssh -F {work}/config",
                   "HOME": str(work)}
    hosts = [Host(1, work), Host(2, work)]
    names = ",".join(f"1/{host.address}" for host in hosts)

    def batch(directory):
        return bench.start(SAMPLES / "parallel.sh", names, directory, *bench.clips, "--", *OPTIONS,
                           env=environment)

    def answers():
        return all(subprocess.run(["ssh", "-F", f"{work}/config", host.address, "true"],
                                  capture_output=True).returncode == 0 for host in hosts)
    try:
        directory = bench.outputs("full-disk")
        with hosts[0].service(), hosts[1].service(full_disk=directory):
            await_(answers, "the sshd of both hosts")
            bench.judge(directory, batch(directory), again=True)
        directory = bench.outputs("vanished-host")
        with hosts[0].service(), hosts[1].service():
            await_(answers, "the sshd of both hosts")
            job = batch(directory)
            bench.kill_export(directory, job, hosts[0].processes)
            while job.poll() is None and not bench.exports(directory, hosts[1].processes):
                time.sleep(0.02)
            hosts[1].vanish()
            bench.judge(directory, job, again=True)
    finally:
        for host in hosts:
            host.close()


def slurm(bench):
    """Slurm: a killed export, and a node that dies and returns."""
    work = bench.work / "slurm"
    for name in ["state", "spool", "munge"]:
        (work / name).mkdir(parents=True)
    node = socket.gethostname().split(".")[0]
    socket_path = work / "munge" / "socket"
    key = work / "munge" / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    (work / "slurm.conf").write_text(f"""
ClusterName=check
SlurmctldHost={node}(127.0.0.1)
SlurmctldPort=26817
SlurmdPort=26818
AuthType=auth/munge
AuthInfo=socket={socket_path}
SlurmUser=root
StateSaveLocation={work}/state
SlurmdSpoolDir={work}/spool
SlurmctldPidFile={work}/slurmctld.pid
SlurmdPidFile={work}/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdTimeout=8
SlurmctldTimeout=30
ReturnToService=2
MpiDefault=none
SlurmdParameters=config_overrides
NodeName={node} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=check Nodes={node} Default=YES MaxTime=INFINITE State=UP
""")
    environment = {**bench.environment, "SLURM_CONF": f"{work}/slurm.conf"}

    def state():
        return subprocess.run(["sinfo", "-h", "-o", "%T"], env=environment, capture_output=True,
                              text=True).stdout.strip()

    def node_service():
        # Its own process group holds the daemon; its steps are found by their parents.
        return service("slurmd", "-D", "-N", node, log=work / "slurmd.log", env=environment)

    def stop_node(daemon, directory):
        """Kills the daemon, its steps and their exports at once."""
        steps = []
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and (entry / "comm").read_text().strip() == "slurmstepd" \
                        and f"SLURM_CONF={work}" in (entry / "environ").read_text():
                    steps.append(int(entry.name))
        for process in [daemon.pid, *steps, *bench.exports(directory)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    with contextlib.ExitStack() as services:
        services.enter_context(service(
            "munged", "--foreground", "--force", f"--socket={socket_path}", f"--key-file={key}",
            f"--pid-file={work}/munge/pid", f"--seed-file={work}/munge/seed",
            f"--log-file={work}/munge/log", log=work / "munged.log"))
        await_(socket_path.exists, "munged")
        services.enter_context(
            service("slurmctld", "-D", log=work / "slurmctld.log", env=environment))
        directory = bench.outputs("slurm-batch")
        with node_service() as daemon:
            await_(lambda: state() == "idle", "the node of Slurm")
            job = bench.start(SAMPLES / "slurm.sh", directory, *bench.clips, "--", *OPTIONS,
                              env=environment)
            bench.kill_export(directory, job)
            while job.poll() is None and not bench.exports(directory):
                time.sleep(0.02)
            stop_node(daemon, directory)
        await_(lambda: state().startswith("down"), "the end of the node")
        with node_service():
            bench.judge(directory, job, again=True)


def dask(bench, python):
    """Dask: a killed export, and a worker that dies while its export continues."""
    work = bench.work / "dask"
    work.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    environment = {**bench.environment, "DASK_TEMPORARY_DIRECTORY": str(work)}
    host, port = address.split(":")

    def worker(number):
        return service(python, "-m", "distributed.cli.dask_worker", f"tcp://{address}", "--nthreads",
                       "1", "--no-nanny", "--no-dashboard", "--name", f"worker{number}",
                       "--local-directory", work, log=work / f"worker{number}.log",
                       env=environment)

    def is_listening():
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) == 0
    with service(python, "-m", "distributed.cli.dask_scheduler", "--host", host, "--port", port,
                 "--no-dashboard", log=work / "scheduler.log", env=environment):
        await_(is_listening, "the scheduler of Dask")
        with worker(1) as lost, worker(2):
            directory = bench.outputs("dask-batch")
            job = bench.start(python, SAMPLES / "dask_batch.py", f"tcp://{address}", directory,
                              *bench.clips, "--", *OPTIONS, env=environment)
            bench.kill_export(directory, job)
            children = []
            while job.poll() is None and not children:
                children = bench.exports(directory, among=lambda: descendants(lost.pid))
                time.sleep(0.02)
            lost.kill()
            bench.judge(directory, job, again=True)


def descendants(process):
    """The processes below a process."""
    found, left = [], [process]
    while left:
        task = left.pop()
        with contextlib.suppress(OSError):
            for thread in pathlib.Path(f"/proc/{task}/task").iterdir():
                children = (thread / "children").read_text().split()
                found += map(int, children)
                left += map(int, children)
    return found
