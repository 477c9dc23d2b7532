# SPDX-License-Identifier: Apache-2.0
"""The report of Benchmarks/run.sh: runs the benchmarks, and writes their figures as Markdown and
JSON."""
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

# The benchmarks and their arguments. DIRECTORY stands for the directory of the report.
PLAN = [
    ("Capture", ["3", "5"]),
    ("Drops", ["3", "DIRECTORY"]),
    ("Vivid", ["5", "1"]),
    ("Limits", ["5", "0.25"]),
    ("Stop", ["5", "2"]),
    ("CrashSafety", ["DIRECTORY", "1", "3"]),
    ("Droppable", ["120", "4"]),
    ("Passthrough", ["5", "60"]),
    ("ConstantRate", ["3"]),
    ("Interpolation", ["1", "DIRECTORY/interpolation", "flow", "flow-fast"]),
    ("Frames", ["1"]),
    ("Shards", ["1"]),
    ("Playback", ["2"]),
    ("Preview", ["2"]),
    ("Pitch", ["short"]),
    ("Codes", ["40", "8"]),
    ("Faces", []),
    ("MovieSearch", []),
    ("Photos", ["3"]),
    ("StartUp", ["30"]),
]


def first_line(*command):
    """The first line that a program prints; empty where it is not installed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return (done.stdout.splitlines() or [""])[0]


def values_of(path, separator):
    """The fields of a file with a name and a value in each line."""
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    pairs = (line.partition(separator) for line in reversed(lines))
    return {name.strip(): value.strip().strip('"') for name, _, value in pairs}


def machine():
    """What a reader must know to compare figures."""
    memory = int(values_of("/proc/meminfo", ":")["MemTotal"].split()[0])
    return {
        "processor": values_of("/proc/cpuinfo", ":").get("model name", platform.machine()),
        "cores": os.cpu_count(),
        "memory_mib": memory // 1024,
        "system": values_of("/etc/os-release", "=").get("PRETTY_NAME", ""),
        "kernel": platform.release(),
        "commit": first_line("git", "describe", "--always", "--dirty"),
        "load_before": os.getloadavg()[0],
        "ffmpeg": first_line("ffmpeg", "-version"),
        "gstreamer": first_line("gst-launch-1.0", "--version"),
        "v4l2-ctl": first_line("v4l2-ctl", "--version"),
        "mpv": first_line("mpv", "--version"),
        "rubberband": first_line("rubberband", "--version"),
    }


def run(name, arguments, folder, built):
    """Runs a benchmark; its status, seconds, output and figures. `built` is a directory where
    benchmarks note the products that they have built."""
    path = folder / "figures.jsonl"
    path.unlink(missing_ok=True)
    print(f"{name} …", file=sys.stderr, flush=True)
    start = time.monotonic()
    with open(folder / f"{name}.txt", "w", encoding="utf-8") as output:
        status = subprocess.run(
            [f"Benchmarks/{name}/run.sh",
             *(each.replace("DIRECTORY", str(folder)) for each in arguments)],
            stdout=output, stdin=subprocess.DEVNULL, check=False,
            env=dict(os.environ, FIGURES=str(path), BENCHMARK=name, BUILT=built)).returncode
    seconds = time.monotonic() - start
    print(f"{name}: {seconds:.0f} s, exit status {status}", file=sys.stderr, flush=True)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return {"benchmark": name, "status": status, "seconds": round(seconds),
            "figures": [json.loads(line) for line in lines]}


def shown(values):
    """A median, with its range where there are several rounds; a dash without a value."""
    if not values:
        return "–"
    median = f"{statistics.median(values):.4g}"
    return median if len(values) == 1 else f"{median} ({min(values):.4g}–{max(values):.4g})"


def table(runs):
    """The lines of a Markdown table of all figures."""
    lines = ["| `Benchmarks/run.sh` | figure | unit | overcrank | peers | goal |", "|---|---|---|---|---|---|"]
    for each in runs:
        for figure in each["figures"]:
            peers = "; ".join(
                f"{peer} {shown(values)}" for peer, values in figure["peers"].items() if values)
            goal = "" if figure["goal"] in (None, "met") else figure["goal"] + " "
            if figure["met"] is not None:
                goal += "met" if figure["met"] else "**missed**"
            cells = [each["benchmark"], figure["figure"], figure["unit"], shown(figure["values"]),
                     peers, goal]
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return lines


def markdown(told):
    """The report as Markdown."""
    lines = ["# Benchmarks", ""]
    lines += [f"* {name}: {value}" for name, value in told["machine"].items() if value != ""]
    lines += ["", "Medians, with the range of the rounds where there are several.", ""]
    lines += [*table(told["runs"]), ""]
    for each in told["runs"]:
        if each["benchmark"] == "Drops":
            lines += ["![Lost frames](drops.png)", ""]
        lines += [f"## {each['benchmark']}", "",
                  f"{each['seconds']} s, exit status {each['status']}.", "", "```text",
                  each["output"].rstrip(), "```", ""]
    return "\n".join(lines)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "benchmark-report").resolve()
    chosen = sys.argv[2:]
    unknown = set(chosen) - {name for name, _ in PLAN}
    if unknown:
        sys.exit(f"no benchmark {', '.join(sorted(unknown))}; there are "
                 + ", ".join(name for name, _ in PLAN))
    folder.mkdir(parents=True, exist_ok=True)
    told = {"machine": machine(), "runs": []}
    path = folder / "report.json"
    if chosen and path.exists():
        # A benchmark that runs again replaces what the report has of it.
        told["runs"] = [run for run in json.loads(path.read_text())["runs"]
                        if run["benchmark"] not in chosen]
    start = time.monotonic()
    built = tempfile.TemporaryDirectory()
    for name, arguments in PLAN:
        if chosen and name not in chosen:
            continue
        told["runs"].append(run(name, arguments, folder, built.name))
        told["runs"].sort(key=lambda each: [name for name, _ in PLAN].index(each["benchmark"]))
        # Each benchmark leaves a report, in case the next one is interrupted.
        path.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")
        outputs = [dict(each, output=(folder / f"{each['benchmark']}.txt").read_text())
                   for each in told["runs"]]
        (folder / "report.md").write_text(markdown(dict(told, runs=outputs)))
    bad = [each["benchmark"] for each in told["runs"] if each["status"] != 0
           or any(figure["met"] is False for figure in each["figures"])]
    print(f"{time.monotonic() - start:.0f} s; {folder}/report.md, report.json"
          + (f"; failed, or missed a goal: {', '.join(bad)}" if bad else ""))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
