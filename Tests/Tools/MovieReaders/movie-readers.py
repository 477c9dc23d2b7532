#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets other programs read movies of slowmo: recordings, copies and exports.

  movie-readers.py SLOWMO             each program must read each movie without complaint
  movie-readers.py SLOWMO --planted   each program must complain about a movie whose index is damaged

ffprobe, PyAV, mediainfo, exiftool, GStreamer's qtdemux, mpv, VLC and Chromium are asked. A program that is
not installed is skipped, and the reason is printed. Run it with the Python interpreter that has PyAV.
"""

import argparse
import functools
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading


def run(*command, **options):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          errors="replace", timeout=180, stdin=subprocess.DEVNULL, **options)


def lines(text, *expected):
    """The lines of a program's messages, without those that it prints for files of every program."""
    return [line for line in text.splitlines()
            if line.strip() and not any(part in line for part in expected)]


class Movie:
    """A movie, its number of frames and its codec."""

    def __init__(self, path, frames, codec):
        self.path, self.frames, self.codec = path, frames, codec


def make(slowmo, directory):
    """Records and exports movies of each kind."""
    def slow(*arguments):
        result = run(slowmo, *arguments)
        if result.returncode:
            sys.exit(f"slowmo {' '.join(map(str, arguments))}: {result.stderr}")

    def movie(name, codec="h264"):
        path = directory / name
        found = json.loads(run(slowmo, "info", path, "--json").stdout)
        return Movie(path, found["video"]["frame_count"], codec)

    movies = []
    for codec in ("mjpeg", "h264"):
        name = f"take-{codec}.mov"
        slow("record", "synthetic:320x240@120", "-o", directory / name, "-t", "2", "--codec", codec,
             "--progress", "none")
        movies.append(movie(name, codec))
    source = directory / "source.mov"
    made = run("ffmpeg", "-v", "error", "-i", movies[1].path, "-f", "lavfi", "-i", "sine=700:d=2", "-map",
               "0", "-map", "1", "-c:v", "copy", "-c:a", "aac", "-timecode", "01:00:00:00", source)
    if made.returncode:
        sys.exit(f"ffmpeg: {made.stderr}")
    slow("retime", source, "-o", directory / "whole.mov", "--speed", "1", "--copy")
    movies.append(movie("whole.mov"))
    slow("retime", source, "-o", directory / "slow.mp4", "--range", "0.5..1", "--speed", "1/4", "--copy")
    movies.append(movie("slow.mp4"))
    slow("retime", source, "-o", directory / "made.mp4", "--speed", "1/2", "--fps", "30")
    movies.append(movie("made.mp4"))
    return movies


# --- Programs: each function returns complaints, or throws Skipped --------------------------------------


class Skipped(Exception):
    """The reason why a program is not asked."""


def need(program):
    if not shutil.which(program):
        raise Skipped(f"{program} is not installed")


def ffprobe(movie):
    need("ffprobe")
    found = run("ffprobe", "-v", "warning", "-count_packets", "-select_streams", "v:0", "-show_entries",
                "stream=nb_read_packets", "-of", "csv=p=0", movie.path)
    # FFmpeg has no codec for timecodes.
    complaints = lines(found.stderr, "Unsupported codec with id 0 for input stream")
    if found.stdout.strip().strip(",") != str(movie.frames):
        complaints.append(f"{found.stdout.strip()} packets of {movie.frames}")
    return complaints


def pyav(movie):
    try:
        import av
    except ImportError as error:
        raise Skipped(f"PyAV cannot be imported: {error}") from error
    av.logging.set_level(av.logging.WARNING)
    with av.logging.Capture() as messages, av.open(str(movie.path)) as container:
        count = sum(1 for _ in container.decode(video=0))
        # Its times must ascend.
        container.seek(0)
        times = [frame.pts for frame in container.decode(video=0)]
    complaints = [text.strip() for _, _, text in messages if "Unsupported codec with id 0" not in text]
    if count != movie.frames or times != sorted(set(times)):
        complaints.append(f"{count} frames of {movie.frames}, or times that do not ascend")
    return complaints


def mediainfo(movie):
    need("mediainfo")
    found = run("mediainfo", "--Output=JSON", movie.path)
    tracks = (json.loads(found.stdout or "{}").get("media") or {}).get("track", [])
    complaints = [f"{key}: {value}" for track in tracks for key, value in track.get("extra", {}).items()
                  if "Error" in key or "IsTruncated" in key]
    counts = [track.get("FrameCount") for track in tracks if track["@type"] == "Video"]
    if counts[:1] != [str(movie.frames)]:
        complaints.append(f"{counts} frames of {movie.frames}")
    return complaints + lines(found.stderr)


def exiftool(movie):
    need("exiftool")
    found = run("exiftool", "-validate", "-warning", "-error", "-a", "-s3", movie.path)
    return lines(found.stdout + found.stderr, "OK")


def gstreamer(movie):
    need("gst-launch-1.0")
    known = run("gst-inspect-1.0", "qtdemux")
    if known.returncode:
        raise Skipped("GStreamer has no qtdemux")
    found = run("gst-launch-1.0", "-v", "filesrc", f"location={movie.path}", "!", "qtdemux", "name=d",
                "d.video_0", "!", "fakesink", "silent=false",
                env=os.environ | {"GST_DEBUG": "qtdemux:2", "GST_DEBUG_NO_COLOR": "1"})
    complaints = [] if found.returncode == 0 else [f"exit code {found.returncode}"]
    # GStreamer has no names for these boxes of ISO/IEC 14496-12 and QuickTime, nor for items that a `keys`
    # box numbers; it looks for defaults of fragments in every file, and warns of tracks that are not
    # linked. It says the same of the movies that FFmpeg writes.
    unnamed = [f"unknown QuickTime node type {name}"
               for name in ("keys", "....", "chan", "jpeg", "sbgp", "sgpd", "tmcd", "text")]
    messages = [line for line in found.stderr.splitlines() if " WARN " in line or "ERROR" in line]
    complaints += lines("\n".join(messages), *unnamed, "failed to find fragment defaults", "not-linked")
    count = found.stdout.count("last-message = chain")
    if count != movie.frames:
        complaints.append(f"{count} buffers of {movie.frames}")
    return complaints


def mpv(movie):
    need("mpv")
    found = run("mpv", "--no-config", "--vo=null", "--ao=null", "--ao-null-untimed", "--untimed",
                "--msg-level=all=warn", "--term-status-msg=", "--hwdec=no", movie.path)
    return ([] if found.returncode == 0 else [f"exit code {found.returncode}"]) + lines(
        found.stdout + found.stderr, "XDG_RUNTIME_DIR", "Unsupported codec with id 0")


def vlc(movie):
    need("cvlc")
    command = ["cvlc", "-vv", "--intf=dummy", "--vout=dummy", "--aout=dummy", "--no-audio-time-stretch",
               "--play-and-exit", movie.path, "vlc://quit"]
    if os.geteuid() == 0:
        # VLC refuses to run as root.
        need("runuser")
        command = ["runuser", "-u", "nobody", "--", "env", f"HOME={movie.path.parent}/home"] + command
    found = run(*command)
    complaints = [] if found.returncode == 0 else [f"exit code {found.returncode}"]
    if not re.search(r"Received first \w+", found.stderr):
        complaints.append("no frame")
    # Its other warnings are about an index, for files of every program.
    complaints += [line for line in found.stderr.splitlines() if "will be disabled" in line]
    # There is no sound card, no D-Bus and no display.
    return complaints + [line for line in found.stderr.splitlines() if " error: " in line and not any(
        part in line for part in ("dbus", "pulse", "alsa", "xcb", "vdpau", "gl ", "keystore", "interface",
                                  "audio output", "display"))]


PAGE = b"""<!doctype html><video id=v muted src=/movie></video><script>
const v = document.getElementById('v');
const report = text => fetch('/result', {method: 'POST', body: text});
v.onerror = () => report('error ' + v.error.code + ' ' + v.error.message);
v.onended = () => report(JSON.stringify({duration: v.duration, width: v.videoWidth, height: v.videoHeight,
  frames: v.getVideoPlaybackQuality().totalVideoFrames, at: v.currentTime}));
v.playbackRate = 4; v.play().catch(error => report('error ' + error));
</script>"""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, movie, done, *arguments):
        self.movie, self.done = movie, done
        super().__init__(*arguments)

    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except ConnectionError:  # The browser has seen enough, or ended.
            pass

    def answer(self, code, kind, data, **headers):
        self.send_response(code)
        for key, value in ({"Content-Type": kind, "Content-Length": str(len(data))} | headers).items():
            self.send_header(key.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        if self.path != "/movie":
            return self.answer(200, "text/html", PAGE if self.path == "/" else b"")
        data = self.movie.read_bytes()
        wanted = self.headers.get("Range", "")
        if not wanted.startswith("bytes="):
            return self.answer(200, "video/mp4", data, Accept_Ranges="bytes")
        first, _, last = wanted[6:].partition("-")
        first, last = int(first or 0), min(int(last or len(data) - 1), len(data) - 1)
        return self.answer(206, "video/mp4", data[first:last + 1], Accept_Ranges="bytes",
                           Content_Range=f"bytes {first}-{last}/{len(data)}")

    def do_POST(self):
        self.done.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.answer(200, "text/plain", b"")
        self.done.event.set()


class Results(list):
    """The reports of a page, and the event of the first one."""

    def __init__(self):
        super().__init__()
        self.event = threading.Event()


def chromium(movie):
    if movie.codec != "h264":
        raise Skipped(f"Chromium has no decoder for {movie.codec}")
    need("chromium")
    done = Results()
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, movie.path, done))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as profile:
        browser = subprocess.Popen(
            ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--autoplay-policy=no-user-gesture-required", f"--user-data-dir={profile}",
             f"http://127.0.0.1:{server.server_port}/"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            done.event.wait(120)
        finally:
            browser.terminate()
            browser.wait()
            server.shutdown()
    if not done:
        return ["it does not play to the end"]
    if done[0].startswith("error"):
        return [done[0]]
    found = json.loads(done[0])
    wrong = [f"{found}"] if not found["width"] or not found["frames"] or not found["duration"] else []
    if abs(found["at"] - found["duration"]) > 0.1:
        wrong.append(f"it ends at {found['at']} of {found['duration']} s")
    return wrong


PROGRAMS = [ffprobe, pyav, mediainfo, exiftool, gstreamer, mpv, vlc, chromium]


def damaged(movie, directory):
    """A movie whose chunk offsets lie beyond the file."""
    data = bytearray(movie.path.read_bytes())
    start = 0
    while (start := data.find(b"stco", start)) >= 0:
        count = int.from_bytes(data[start + 8:start + 12], "big")
        for index in range(count):
            data[start + 12 + 4 * index:start + 16 + 4 * index] = (0xF0000000).to_bytes(4, "big")
        start += 4
    path = directory / ("damaged" + movie.path.suffix)
    path.write_bytes(data)
    return Movie(path, movie.frames, movie.codec)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("slowmo", type=pathlib.Path)
    parser.add_argument("--planted", action="store_true")
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        directory.chmod(0o755)
        (directory / "home").mkdir(mode=0o777)
        (directory / "home").chmod(0o777)
        movies = make(options.slowmo.resolve(), directory)
        if options.planted:
            movies = [damaged(movies[2], directory)]
        for program in PROGRAMS:
            for movie in movies:
                try:
                    complaints = program(movie)
                except Skipped as reason:
                    print(f"{program.__name__} {movie.path.name}: skipped, {reason}")
                    continue
                except Exception as error:  # A program that crashes or hangs complains, too.
                    complaints = [f"{type(error).__name__}: {error}"]
                # mediainfo and exiftool read the index alone.
                is_right = bool(complaints) if options.planted else not complaints
                if options.planted and program in (mediainfo, exiftool):
                    is_right = True
                failed += not is_right
                print(f"{program.__name__} {movie.path.name}: "
                      + ("; ".join(complaints[:5]) or "no complaint"))
    print(f"{failed} of the programs' answers are wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
