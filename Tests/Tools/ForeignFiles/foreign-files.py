#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs verbs on hostile files, and checks the system calls that they make.

    foreign-files.py SLOWMO [--cases N] [--seed S] [--jobs J] [--case K ...] [--keep DIR] [--planted]

Each case makes an input: a playlist, a script, a reference movie, a project with odd media, a
damaged movie, a pipe, a device, or a name that looks like a URL. Two verbs run on it under strace.
Five conditions must hold.

* Every verb ends without a crash, with a documented exit code other than 70.
* No verb opens a local file other than its input, its outputs, and the files that a run on a
  harmless file opens. A project may also open the movies that it names. Decoys lie next to each
  input and elsewhere.
* No verb creates a network socket or starts a program. A server on this machine must stay
  unvisited.
* A verb that fails leaves no output. A verb that succeeds leaves its outputs and nothing else.
* The inputs stay unchanged. Only `recover` may change a file.

Exits with 1 if a condition is violated. `--planted` then also runs careless programs in place of
slowmo, and exits with 1 if one of their mistakes is not found. `--case` repeats single cases of a seed; `--keep` copies
the inputs of failed cases. Needs ffmpeg, strace and prlimit.
"""
import argparse
import base64
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time

# A hang is detected by the process's CPU time, which a busy machine does not change. A process that
# sleeps forever uses none, so a limit on elapsed time ends it. That limit is far beyond the needs
# of a busy machine.
CPU_SECONDS = 20
WALL_SECONDS = 600
# After SIGINT, a process that waits for a pipe must exit within this time.
INTERRUPTED_SECONDS = WALL_SECONDS
# Memory and disk use are limited, so that a hostile file cannot exhaust the machine.
MEMORY_BYTES = 8 << 30
OUTPUT_BYTES = 1 << 30

# The exit codes of `slowmo --help`, without 70 (internal error), 130 and 143 (interrupted).
EXIT_CODES = {0, 10, 64, 65, 66, 69, 73, 74, 75, 77}
CALLS = "open,openat,openat2,creat,connect,socket,sendto,sendmsg,sendmmsg,execve"
# The only system files that harmless runs may add to the allowed ones.
SYSTEM_FILES = (
    "/lib/", "/lib64/", "/usr/lib/", "/usr/local/lib/", "/opt/", "/proc/", "/sys/", "/dev/null",
    "/dev/urandom", "/dev/shm/", "/etc/ld.so.", "/etc/localtime", "/etc/gcrypt/", "/etc/ssl/",
    "/etc/crypto-policies/", "/etc/gnutls/", "/usr/share/locale", "/usr/share/zoneinfo")
MOVIE_SUFFIXES = ("mov", "mp4", "m4v", "mkv", "avi", "mts", "mxf")


# Materials.

class Materials:
    """Harmless files, from which hostile files are made, and decoys."""

    def __init__(self, slowmo, scratch, port):
        self.slowmo = slowmo
        self.scratch = scratch
        self.port = port
        self.base = scratch / "base"
        self.elsewhere = scratch / "elsewhere"
        self.base.mkdir()
        self.elsewhere.mkdir()
        self.movies = {}
        self.make_movies()
        self.make_takes()
        self.make_decoys()

    def ffmpeg(self, name, *arguments):
        path = self.base / name
        done = subprocess.run(
            ["ffmpeg", "-v", "error", "-nostdin", "-y", "-f", "lavfi", "-i",
             "testsrc2=size=160x120:rate=30:duration=1", "-f", "lavfi", "-i",
             "sine=frequency=440:sample_rate=44100:duration=1", *arguments, str(path)],
            capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"could not make {name}: {done.stderr}")
        self.movies[name] = path.read_bytes()

    def make_movies(self):
        h264 = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "10"]
        reordered = ["-c:v", "libx264", "-preset", "fast", "-pix_fmt", "yuv420p", "-g", "12"]
        aac = ["-c:a", "aac"]
        text = self.base / "text.srt"
        text.write_text("1\n00:00:00,000 --> 00:00:00,900\nhello\n")
        attached = self.base / "attached.ttf"
        attached.write_bytes(b"\0\1\0\0" + bytes(100))
        only_video, only_audio = ["-map", "0:v"], ["-map", "1:a"]
        self.ffmpeg("plain.mov", *h264, *aac)
        self.ffmpeg("front.mp4", *reordered, *aac, "-movflags", "+faststart")
        self.ffmpeg("fragments.mp4", *h264, *aac, "-movflags", "+frag_keyframe+empty_moov")
        self.ffmpeg(
            "text.mov", "-i", str(text), "-map", "0", "-map", "1", "-map", "2", *h264, *aac, "-c:s",
            "mov_text", "-timecode", "01:00:00:00")
        self.ffmpeg("hevc.mp4", "-c:v", "libx265", "-preset", "ultrafast", "-x265-params",
                    "log-level=none:pools=1:frame-threads=1", *only_video)
        self.ffmpeg("plain.mkv", *h264, *aac, "-attach", str(attached), "-metadata:s:t",
                    "mimetype=application/x-truetype-font")
        self.ffmpeg("plain.webm", "-c:v", "libvpx", "-deadline", "realtime", "-c:a", "libvorbis")
        self.ffmpeg("vp9.webm", "-c:v", "libvpx-vp9", "-deadline", "realtime", *only_video)
        self.ffmpeg("plain.avi", "-c:v", "mpeg4", "-c:a", "libmp3lame")
        self.ffmpeg("mjpeg.avi", "-c:v", "mjpeg", "-c:a", "pcm_s16le")
        self.ffmpeg("plain.ts", *h264, *aac)
        self.ffmpeg("plain.mpg", "-c:v", "mpeg2video", "-c:a", "mp2", "-f", "mpeg")
        self.ffmpeg("plain.flv", *h264, *aac)
        self.ffmpeg("plain.ogg", "-c:v", "libtheora", "-c:a", "libvorbis")
        self.ffmpeg("plain.wmv", "-c:v", "wmv2", "-c:a", "wmav2")
        self.ffmpeg("plain.nut", "-c:v", "ffv1", "-c:a", "pcm_s16le")
        self.ffmpeg("plain.mxf", "-c:v", "mpeg2video", "-c:a", "pcm_s16le", "-ar", "48000")
        self.ffmpeg("plain.mp3", *only_audio, "-c:a", "libmp3lame")
        self.ffmpeg("plain.wav", *only_audio)
        self.ffmpeg("plain.flac", *only_audio)
        self.ffmpeg("plain.aac", *only_audio, *aac)
        self.ffmpeg("plain.h264", *only_video, *reordered)
        self.ffmpeg("plain.hevc", *only_video, "-c:v", "libx265", "-preset", "ultrafast",
                    "-x265-params", "log-level=none:pools=1:frame-threads=1")
        self.ffmpeg("plain.m2v", *only_video, "-c:v", "mpeg2video")
        self.ffmpeg("plain.y4m", *only_video, "-frames:v", "4", "-pix_fmt", "yuv420p")
        self.ffmpeg("plain.gif", *only_video, "-r", "10")
        self.ffmpeg("plain.png", *only_video, "-frames:v", "1")
        self.ffmpeg("moving.apng", *only_video, "-frames:v", "5", "-f", "apng")
        self.ffmpeg("plain.jpg", *only_video, "-frames:v", "1")

    def run(self, *arguments):
        done = subprocess.run(
            [self.slowmo, *map(str, arguments)], cwd=self.base, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"could not make {arguments}: {done.stderr}")
        return done.stdout

    def make_takes(self):
        camera = "synthetic:160x120@240"
        self.run("record", camera + "?pace=max", "-o", "take.mov", "--frames", "60",
                 "--progress", "none")
        self.run("record", camera + "?pace=max", "-o", "h264.mov", "--frames", "60", "--codec",
                 "h264", "--progress", "none")
        self.run("retime", "take.mov", "-o", "project.otio", "--speed", "1/2")
        self.report = self.run("bench", "capture", camera, "-t", "0.1", "--json")
        (self.base / "bench.json").write_text(self.report)
        self.take = (self.base / "take.mov").read_bytes()
        self.killed = self.kill(camera)
        self.movies |= {"take.mov": self.take, "h264.mov": (self.base / "h264.mov").read_bytes(),
                        "killed.mov": self.killed}

    def kill(self, camera):
        path = self.base / "killed.mov"
        process = subprocess.Popen(
            [self.slowmo, "record", camera, "-o", path, "--progress", "none"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not path.exists() or path.stat().st_size < 150_000:
            if process.poll() is not None:
                sys.exit("the recording that was to be killed ended by itself")
            time.sleep(0.02)
        process.kill()
        process.wait()
        return path.read_bytes()

    def make_decoys(self):
        image = self.movies["plain.png"]
        decoys = {
            "secret.mov": self.take, "secret.mp4": self.movies["front.mp4"],
            "secret.ts": self.movies["plain.ts"], "secret.avi": self.movies["plain.avi"],
            "secret.mkv": self.movies["plain.mkv"], "secret.wav": self.movies["plain.wav"],
            "secret.aac": self.movies["plain.aac"], "secret.png": image,
            "secret.txt": b"the secret\n", "secret.key": bytes(range(16)),
            "secret.m3u8": b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nsecret.ts\n"
                           b"#EXT-X-ENDLIST\n",
            "secret.srt": b"1\n00:00:00,000 --> 00:00:01,000\nthe secret\n",
            "secret.sub": self.movies["plain.mpg"], "secret.ttf": b"\0\1\0\0" + bytes(50),
            "secret.h264": self.movies["plain.h264"], "secret.mxf": self.movies["plain.mxf"],
            "index.ts": self.movies["plain.ts"], "init.mp4": self.movies["fragments.mp4"],
        }
        decoys |= {f"frames{number:04}.png": image for number in range(4)}
        for name, data in decoys.items():
            (self.elsewhere / name).write_bytes(data)
        self.decoys = sorted(decoys)


class Server:
    """A local network listener that no verb may connect to."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.visits = 0
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                visitor, _ = self.socket.accept()
            except OSError:
                return
            self.visits += 1
            visitor.close()


# Cases.

@dataclasses.dataclass
class Case:
    """An input in its own directory, next to decoys."""

    number: int
    rng: random.Random
    materials: Materials
    directory: pathlib.Path
    kind: str = ""
    # The name of the input as given to verbs, relative to `inputs`.
    name: str = ""
    # The media names in a project.
    media: list = dataclasses.field(default_factory=list)
    # Additional verbs for this kind of case.
    suits: tuple = ()

    @property
    def inputs(self):
        return self.directory / "in"

    @property
    def outputs(self):
        return self.directory / "out"

    @property
    def path(self):
        return self.inputs / self.name

    def write(self, name, data):
        """Writes the input."""
        self.name = name
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.unlink(missing_ok=True)
        self.path.write_bytes(data.encode() if isinstance(data, str) else data)

    def write_decoy(self, name, data):
        """Writes another file into the directory of the input."""
        path = self.inputs / name
        path.unlink(missing_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)

    def pick(self, *choices):
        return self.rng.choice(choices)

    def other(self, *names):
        """A reference to another file or to the network."""
        name = self.pick(*(names or ("secret.ts", "secret.mov", "secret.mp4", "secret.txt")))
        far = self.materials.elsewhere / name
        port = self.materials.port
        data = base64.b64encode(self.materials.movies["plain.ts"][:1880]).decode()
        return self.pick(
            name, name, str(far), f"file:{far}", f"file://{far}", f"../../elsewhere/{name}",
            f"http://127.0.0.1:{port}/{name}", f"https://127.0.0.1:{port}/{name}",
            f"tcp://127.0.0.1:{port}", f"udp://127.0.0.1:{port}", f"rtsp://127.0.0.1:{port}/a",
            f"rtmp://127.0.0.1:{port}/a/b", f"ftp://127.0.0.1:{port}/{name}",
            f"gopher://127.0.0.1:{port}/{name}", f"concat:{name}|{far}",
            f"subfile,,start,0,end,0,,:{far}", f"crypto:{far}", f"crypto+file:{far}",
            f"async:{far}", f"cache:{far}", f"data:video/mp2t;base64,{data}", "pipe:0", "fd:0",
            "/dev/zero", "/dev/stdin", "/etc/hostname", f"unix:{self.materials.scratch}/socket",
            f"hls+http://127.0.0.1:{port}/{name}", f"ipfs://127.0.0.1:{port}/a",
            f"srt://127.0.0.1:{port}", f"tls://127.0.0.1:{port}", f"concatf:{far}")

    def suffix(self, *own):
        """A file name suffix: one of the given ones, or one of a movie."""
        return self.pick(*own, *own, ".mov", ".mp4", ".ts", ".mkv", ".avi", ".m4v", ".jpg", "")


def hls(case):
    lines = ["#EXTM3U"]
    if case.rng.random() < 0.3:
        for _ in range(case.rng.randint(1, 3)):
            lines += [f'#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="x",URI="{case.other()}"',
                      '#EXT-X-STREAM-INF:BANDWIDTH=100000,AUDIO="a"',
                      case.other("secret.m3u8", "secret.ts")]
    else:
        lines += [f"#EXT-X-VERSION:{case.rng.randint(1, 7)}", "#EXT-X-TARGETDURATION:1",
                  "#EXT-X-MEDIA-SEQUENCE:0"]
        if case.rng.random() < 0.3:
            lines.append(f'#EXT-X-KEY:METHOD=AES-128,URI="{case.other("secret.key")}"')
        if case.rng.random() < 0.3:
            lines.append(f'#EXT-X-MAP:URI="{case.other("init.mp4")}"')
        for _ in range(case.rng.randint(1, 3)):
            if case.rng.random() < 0.3:
                lines.append("#EXT-X-BYTERANGE:1880@0")
            lines += ["#EXTINF:1.0,", case.other("secret.ts")]
        if case.rng.random() < 0.8:
            lines.append("#EXT-X-ENDLIST")
    end = case.pick("\n", "\n", "\r\n")
    case.write("list" + case.suffix(".m3u8", ".m3u"), end.join(lines) + end)


def ffconcat(case):
    lines = case.pick(["ffconcat version 1.0"], ["ffconcat version 1.0"], [])
    for _ in range(case.rng.randint(1, 3)):
        lines.append(case.pick("file '{}'", "file {}").format(case.other()))
        if case.rng.random() < 0.3:
            lines += ["duration 1", "inpoint 0", "option safe 0"]
    case.write("script" + case.suffix(".ffconcat", ".txt", ".concat"), "\n".join(lines) + "\n")


def sdp(case):
    address = case.pick("127.0.0.1", "239.1.1.1")
    case.write("live" + case.suffix(".sdp"), (
        f"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 {address}\r\nt=0 0\r\n"
        f"m=video {case.materials.port} RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n"))


def markup(case):
    """DASH, IMF and other XML descriptions."""
    other = case.other
    kind = case.pick("dash", "cpl", "assetmap", "ism", "svg")
    texts = {
        "dash": (".mpd", f'<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" '
                 f'mediaPresentationDuration="PT1S" profiles="urn:mpeg:dash:profile:isoff-main:2011">'
                 f'<Period><AdaptationSet mimeType="video/mp4"><Representation id="1" '
                 f'bandwidth="1"><BaseURL>{other()}</BaseURL><SegmentList>'
                 f'<Initialization sourceURL="{other("init.mp4")}"/><SegmentURL media="{other()}"/>'
                 f'</SegmentList></Representation></AdaptationSet></Period></MPD>'),
        "cpl": (".xml", '<CompositionPlaylist xmlns="http://www.smpte-ra.org/schemas/2067-3/2016">'
                "<Id>urn:uuid:4c1e2b5e-0000-4000-8000-000000000001</Id><EditRate>24 1</EditRate>"
                "<SegmentList><Segment><SequenceList/></Segment></SegmentList>"
                "</CompositionPlaylist>"),
        "assetmap": (".xml", '<AssetMap xmlns="http://www.smpte-ra.org/schemas/429-9/2007/AM">'
                     f"<AssetList><Asset><Id>urn:uuid:4c1e2b5e-0000-4000-8000-000000000001</Id>"
                     f"<ChunkList><Chunk><Path>{other('secret.mxf')}</Path></Chunk></ChunkList>"
                     f"</Asset></AssetList></AssetMap>"),
        "ism": (".ismc", '<SmoothStreamingMedia MajorVersion="2" Duration="1"><StreamIndex '
                f'Type="video" Url="{other()}"/></SmoothStreamingMedia>'),
        "svg": (".svg", '<svg xmlns="http://www.w3.org/2000/svg" '
                'xmlns:xlink="http://www.w3.org/1999/xlink" width="64" height="64">'
                f'<image width="64" height="64" xlink:href="{other("secret.png")}"/></svg>'),
    }
    suffix, text = texts[kind]
    if kind == "cpl":
        case.write_decoy("ASSETMAP.xml", texts["assetmap"][1])
    name = "ASSETMAP" if kind == "assetmap" else kind
    case.write(name + case.suffix(suffix), '<?xml version="1.0" encoding="UTF-8"?>\n' + text)


def playlist(case):
    other = case.other
    texts = {
        ".smil": f'<smil><body><video src="{other()}"/></body></smil>',
        ".xspf": '<playlist version="1" xmlns="http://xspf.org/ns/0/"><trackList><track>'
                 f"<location>{other()}</location></track></trackList></playlist>",
        ".asx": f'<asx version="3.0"><entry><ref href="{other()}"/></entry></asx>',
        ".pls": f"[playlist]\nFile1={other()}\nTitle1=x\nLength1=1\nNumberOfEntries=1\nVersion=2\n",
        ".wpl": f'<?wpl version="1.0"?><smil><body><seq><media src="{other()}"/></seq></body></smil>',
        ".ram": other() + "\n", ".strm": other() + "\n", ".m3u": other() + "\n",
        ".cue": f'FILE "{other("secret.wav")}" WAVE\n  TRACK 01 AUDIO\n    INDEX 01 00:00:00\n',
        ".url": f"[InternetShortcut]\nURL={other()}\n",
        ".qtl": f'<?quicktime type="application/x-quicktime-media-link"?><embed src="{other()}"/>',
        ".rtsptext": f"RTSPtext\n{other()}\n", ".avs": f'AVISource("{other("secret.avi")}")\n',
        ".vpy": f"import os\nopen({other('secret.txt')!r}).read()\n",
    }
    suffix = case.pick(*texts)
    case.write("list" + case.suffix(suffix), texts[suffix])


def pattern(case):
    """Names that some readers treat as patterns of file names."""
    name = case.pick(
        "frames%04d.png", "frames%d.png", "frames*.png", "frames[0-9]*.png", "frames000?.jpg",
        "secret.*", "%s%s%s%n.mov", "frames%04d.mov", "{secret,index}.ts", "~secret.mov",
        "$HOME.mov", "`touch run`.mov", "$(touch run).mov", "a b;touch run.mov", "new\nline.mov",
        "frames%09999999999d.png", "out/{index}.mov", "{name}.mov", "{path}.mov", "\\secret.mov")
    if case.rng.random() < 0.6:
        case.write(name, case.pick(
            case.materials.movies["plain.png"], case.materials.take, b"no image\n"))
    case.name = name


def strange_name(case):
    """Names that some readers treat as URLs, protocols, devices or filter graphs."""
    port = case.materials.port
    far = case.materials.elsewhere / "secret.ts"
    names = [
        f"http://127.0.0.1:{port}/secret.mov", f"rtsp://127.0.0.1:{port}/a.mov",
        f"rtmp://127.0.0.1:{port}/a/b", f"tcp://127.0.0.1:{port}", f"udp://@127.0.0.1:{port}",
        "concat:secret.ts|index.ts", "subfile,,start,0,end,1880,,:secret.ts", "crypto:secret.ts",
        "data:text/plain;base64,I0VYVE0zVQo=", "pipe:0", "pipe:", "fd:0", "async:secret.ts",
        "cache:secret.ts", "file:secret.ts", f"concat:{far}", "lavfi:testsrc", "testsrc=size=64x64",
        "x11grab", ":0.0", "hw:0", "default", "/dev/video9", "/dev/fb0", "v4l2:/dev/video0",
        "bluray:/dev/sr0", "dvd:/dev/sr0", "md5:secret.ts", "tee:secret.ts", "movie=secret.mov",
        "amovie=secret.wav", "unix:socket", "rtp://127.0.0.1:9", "mmst://127.0.0.1/a",
        "sftp://127.0.0.1/a", "smb://127.0.0.1/a", "synthetic", "synthetic:64x64@30", "cam0",
        "file://secret.ts", "FILE:secret.ts", "secret.mov:stream", "secret.mov/", "secret.mov/.",
        "secret.mov/../secret.txt", "secret.mov#t=1", "hls+file:secret.m3u8", "m3u8:secret.m3u8",
        "é" * 100 + ".mov", "n" * 250 + ".mov", "x/" * 100 + "a.mov", "nothing.mov", " ", ".",
    ]
    case.name = case.rng.choice(names)
    if case.rng.random() < 0.5 and not case.name.startswith("/") and not case.name.endswith("/"):
        try:
            case.write(case.name, case.pick(
                case.materials.take, case.materials.movies["plain.ts"], b"#EXTM3U\nsecret.ts\n"))
        except OSError:
            pass  # The name is a directory's, or too long.


def subtitles(case):
    other = case.other
    texts = {
        ".vtt": "WEBVTT\n\n00:00.000 --> 00:01.000\nhello\n",
        ".srt": "1\n00:00:00,000 --> 00:00:01,000\nhello\n",
        ".ass": "[Script Info]\nScriptType: v4.00+\nVideo File: " + other() + "\n[Events]\n"
                "Dialogue: 0,0:00:00.00,0:00:01.00,Default,,0,0,0,,hello\n",
        ".idx": "# VobSub index file, v7\nsize: 720x480\nid: en, index: 0\n"
                "timestamp: 00:00:00:000, filepos: 000000000\n",
        ".sub": "{0}{25}hello\n", ".lrc": "[ti:x]\n[00:00.00]hello\n[00:01.00]again\n",
        ".smi": "<SAMI><BODY><SYNC Start=0><P>hello</BODY></SAMI>", ".txt": "[00:00:00]\nhello\n",
        ".ffmeta": ";FFMETADATA1\ntitle=x\n[CHAPTER]\nTIMEBASE=1/1\nSTART=0\nEND=1\n",
        ".nfo": "secret", ".rt": '<window type="generic"><Time begin="0"/>hello</window>',
    }
    suffix = case.pick(*texts)
    # The VobSub reader opens the .sub file next to the index.
    case.write("secret" + suffix if case.rng.random() < 0.6 else "text" + case.suffix(suffix),
               texts[suffix])


def boxes(data, start=0, end=None):
    """The boxes of a movie, as (type, start, start of the content, end)."""
    found, end = [], len(data) if end is None else end
    while start + 8 <= end:
        size, kind = struct.unpack(">I4s", data[start:start + 8])
        head = 8
        if size == 1 and start + 16 <= end:
            size, head = struct.unpack(">Q", data[start + 8:start + 16])[0], 16
        elif size == 0:
            size = end - start
        if size < head or start + size > end:
            break
        found.append((kind, start, start + head, start + size))
        start += size
    return found


def box(kind, *contents):
    content = b"".join(contents)
    return struct.pack(">I4s", 8 + len(content), kind) + content


def replaced(data, path, change):
    """Replaces the boxes at a path; `change` maps a whole box to its replacement."""
    result, last = b"", 0
    for kind, start, content, end in boxes(data):
        if kind == path[0]:
            inner = data[content:end]
            result += data[last:start]
            result += change(data[start:end]) if len(path) == 1 else box(
                kind, replaced(inner, path[1:], change))
            last = end
    return result + data[last:]


def alias(path, name, levels):
    """A Macintosh alias record, in the `alis` entry of a data reference."""
    def padded(text, size):
        text = text.encode()[:size]
        return bytes([len(text)]) + text + bytes(size - len(text))

    def entry(kind, text):
        text = text.encode()
        return struct.pack(">HH", kind, len(text)) + text + bytes(len(text) % 2)

    record = bytes(10) + padded("disk", 27) + bytes(12) + padded(name, 63) + bytes(16)
    record += struct.pack(">HH", levels, levels) + bytes(16)
    record += entry(2, "disk:" + path.lstrip("/").replace("/", ":")) + entry(18, path)
    record += entry(0, "elsewhere") + entry(19, "/") + struct.pack(">HH", 0xFFFF, 0)
    return box(b"alis", bytes(4), record)


def reference_movie(case):
    """QuickTime movies with samples in other files."""
    movie = case.pick(*(case.materials.movies[name] for name in
                        ("take.mov", "plain.mov", "front.mp4", "text.mov", "h264.mov")))
    name = case.pick("secret.mov", "secret.ts", "secret.txt", "secret.h264")
    far = str(case.materials.elsewhere / name)
    way = case.pick("alis", "alis", "url ", "urn ", "rsrc", "rmra", "both")
    url = case.other(name).encode() + b"\0"

    def reference(_):
        entry = {
            "url ": box(b"url ", bytes(4), url), "urn ": box(b"urn ", bytes(4), b"x\0", url),
            "rsrc": box(b"rsrc", bytes(4), url),
        }.get(way) or alias(far, name, case.pick(0, 1, 2, 3))
        return box(b"dref", bytes(4), struct.pack(">I", 1), entry)

    def with_links(moov):
        content = moov[8:]
        links = [box(b"rmda", box(b"rdrf", bytes(4), case.pick(b"url ", b"alis"),
                                  struct.pack(">I", len(url)), url),
                     box(b"rmqu", struct.pack(">I", 1))) for _ in range(2)]
        links = box(b"rmra", *links)
        return box(b"moov", links) if way == "rmra" and case.rng.random() < 0.5 else box(
            b"moov", content, links)

    if way not in ("rmra",):
        movie = replaced(
            movie, [b"moov", b"trak", b"mdia", b"minf", b"dinf", b"dref"], reference)
    if way in ("rmra", "both"):
        movie = replaced(movie, [b"moov"], with_links)
    if case.rng.random() < 0.3:
        # The movie's own media data is emptied.
        movie = replaced(movie, [b"mdat"], lambda _: box(b"mdat"))
    case.write("movie" + case.pick(".mov", ".mp4"), movie)


def element(identifier, *contents):
    """A Matroska element."""
    content = b"".join(contents)
    return bytes.fromhex(identifier) + struct.pack(">Q", 1 << 56 | len(content)) + content


def linked_matroska(case):
    """Matroska with linked segments, ordered chapters and attachments, at its start or end."""
    movie = case.materials.movies[case.pick("plain.mkv", "plain.webm", "vp9.webm")]
    name = case.other("secret.mkv").encode()
    uid = element("73a4", bytes(16))
    more = [
        element("1549a966", uid, element("7384", name), element("3eb923", bytes(16)),
                element("3e83bb", name), element("3cb923", bytes(16)), element("3c83ab", name)),
        element("1043a770", element("45b9", element("45dd", b"\1"), element(
            "b6", element("73c4", b"\1"), element("91", b"\0"), element("92", b"\1\0\0\0\0"),
            element("6e67", bytes(16)), element("6ebc", b"\1")))),
        element("1941a469", element("61a7", element("466e", name), element(
            "4660", case.pick(b"font/ttf", b"text/plain", b"image/png", b"video/x-matroska")),
            element("465c", case.materials.movies["plain.png"]), element("46ae", b"\1"))),
    ]
    case.rng.shuffle(more)
    more = b"".join(more)
    segment = movie.find(bytes.fromhex("18538067"))
    head, content = movie[:segment], movie[segment + 12:]
    content = more + content if case.rng.random() < 0.4 else content + more
    case.write("linked" + case.pick(".mkv", ".webm", ".mov"), head + element("18538067", content))


def exchange_file(case):
    """MXF and AAF headers."""
    if case.rng.random() < 0.5:
        locator = case.other("secret.mxf").encode("utf-16-be")
        header = bytes.fromhex("060e2b34020501010d01020101020400") + b"\x83\0\0\x78"
        body = struct.pack(">HHI", 1, 3, 1) + case.rng.randbytes(112)
        network = bytes.fromhex("060e2b34025301010d01010101013200") + b"\x83" + struct.pack(
            ">I", len(locator) + 4)[1:] + struct.pack(">HH", 0x4001, len(locator)) + locator
        data = header + body + network * 3
        if case.rng.random() < 0.5:
            data = case.materials.movies["plain.mxf"][:2000] + network + data
        case.write("essence" + case.suffix(".mxf"), data)
    else:
        data = bytes.fromhex("d0cf11e0a1b11ae1") + case.rng.randbytes(504)
        data += case.other().encode("utf-16-le") + bytes(4096)
        case.write("essence" + case.suffix(".aaf"), data)


def subtitled_avi(case):
    """An AVI with a text stream that contains a playlist."""
    text = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n" + case.other("secret.ts") + \
        "\n#EXT-X-ENDLIST\n"
    if case.rng.random() < 0.3:
        text = f"ffconcat version 1.0\nfile '{case.other()}'\n"
    text = text.encode()

    def chunk(kind, *contents):
        content = b"".join(contents)
        return kind + struct.pack("<I", len(content)) + content + bytes(len(content) % 2)

    def stream(kind, handler, shape):
        return chunk(b"LIST", b"strl", chunk(
            b"strh", kind, handler, struct.pack("<IHHIIIIIIIIHHHH", 0, 0, 0, 0, 1, 25, 0, 25, 9999,
                                                0, 0, 0, 0, 160, 120)), chunk(b"strf", shape))

    shape = struct.pack("<IiiHHIIiiII", 40, 160, 120, 1, 24, 0x47504A4D, 57600, 0, 0, 0, 0)
    packet = b"GAB2\0" + struct.pack("<HI", 2, 10) + "sub\0".encode("utf-16-le") + bytes(2)
    packet += struct.pack("<HI", 4, len(text)) + text
    head = chunk(b"LIST", b"hdrl", chunk(b"avih", struct.pack(
        "<14I", 40000, 0, 0, 16, 25, 0, 2, 0, 160, 120, 0, 0, 0, 0)),
        stream(b"vids", b"MJPG", shape), stream(b"txts", bytes(4), b""))
    image = case.materials.movies["plain.jpg"]
    body = chunk(b"LIST", b"movi", *([chunk(b"01sb", packet), chunk(b"00dc", image)] * 3))
    case.write("text.avi", chunk(b"RIFF", b"AVI ", head, body))


def polyglot(case):
    """Files that combine two formats."""
    text = ("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n" + case.other("secret.ts")
            + "\n#EXT-X-ENDLIST\n").encode()
    tag = b"ID3\4\0\0\0\0\0\x0a" + bytes(10)
    movies = case.materials.movies
    movie = case.pick(movies["take.mov"], movies["plain.ts"], movies["plain.mkv"],
                      movies["plain.mp3"], movies["plain.flac"], movies["plain.h264"])
    data = case.pick(
        tag + text, tag * 50 + text, text + movie, movie + text, movie[:8] + text,
        b"\xef\xbb\xbf" + text, bytes(512) + text, tag + movie, tag + movies["plain.png"], text[:7] + movie,
        movie + case.pick(*movies.values()), box(b"ftyp", b"qt  ", bytes(4)) + text,
        box(b"free", text) + movie, movies["plain.wav"][:44] + text, b"FLV\1\5\0\0\0\x09" + text,
        movies["plain.flac"][:42] + movies["plain.png"], b"OggS" + text, b"RIFF\0\0\0\0AVI " + text)
    case.write("double" + case.suffix(".mov", ".ts", ".mp3", ".flac"), data)


# Projects.

def project_media(case):
    """Makes a medium for a project, and returns the name that the project uses."""
    kind = case.pick(
        "movie", "movie", "playlist", "reference", "url", "device", "pipe", "directory", "self",
        "other", "secret", "damaged", "loop", "image", "script")
    if kind == "movie":
        name = "clip" + case.pick(".mov", ".mkv", ".mp4")
        case.write_decoy(name, case.materials.movies[case.pick("take.mov", "front.mp4", "h264.mov")])
        return name
    if kind == "playlist":
        name = case.pick("clip.m3u8", "clip.mov", "clip.ts")
        case.write_decoy(name, f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{case.other()}\n"
                          "#EXT-X-ENDLIST\n")
        return name
    if kind == "script":
        case.write_decoy("clip.mov", f"ffconcat version 1.0\nfile {case.other()}\n")
        return "clip.mov"
    if kind == "reference":
        far = str(case.materials.elsewhere / "secret.mov")
        case.write_decoy("clip.mov", replaced(
            case.materials.take, [b"moov", b"trak", b"mdia", b"minf", b"dinf", b"dref"],
            lambda _: box(b"dref", bytes(4), struct.pack(">I", 1), alias(far, "secret.mov", 2))))
        return "clip.mov"
    if kind == "device":
        return case.pick("/dev/zero", "/dev/stdin", "/dev/random", "/dev/video0", "/dev/fd/0",
                         "/proc/self/mem", "/proc/self/fd/0", "/dev/full", "/proc/kmsg")
    if kind in ("pipe", "directory", "loop"):
        path = case.inputs / f"{kind}.mov"
        if os.path.lexists(path):
            return path.name
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "directory":
            path.mkdir()
        else:
            path.symlink_to(path.name)
        return path.name
    if kind == "self":
        return case.name
    if kind == "secret":
        return str(case.materials.elsewhere / case.pick("secret.txt", "secret.mov", "secret.ts"))
    if kind == "damaged":
        name, data = mutated(case)
        case.write_decoy("damaged-" + name, data)
        return "damaged-" + name
    if kind == "image":
        return case.pick("secret.png", "frames%04d.png", "frames0001.png")
    return case.other()


def named_project(case, media, suffix):
    """A project that plays half a second of each of its media."""
    if suffix == ".llc":
        return json.dumps({
            "version": case.pick(1, 2), "mediaFileName": media[0],
            "cutSegments": [{"start": 0.01, "end": 0.2, "name": ""},
                            {"start": 0.05, "end": 0.15, "name": ""}]})
    if suffix == ".edl":
        key = case.pick("FROM CLIP NAME", "SOURCE FILE")
        lines = ["TITLE: hostile", "FCM: NON-DROP FRAME"]
        for number, name in enumerate(media):
            lines += [f"{number + 1:03}  AX       V     C        00:00:00:00 00:00:00:04 "
                      f"00:00:{number:02}:00 00:00:{number:02}:04", f"* {key}: {name}"]
        return "\n".join(lines) + "\n"
    escaped = [name.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
               for name in media]
    if suffix == ".fcpxml":
        assets = "".join(
            f'<asset id="a{number}" name="x" start="0s" duration="1s" hasVideo="1" format="f" '
            f'src="{name}"><media-rep kind="original-media" src="{name}"/></asset>'
            for number, name in enumerate(escaped))
        clips = "".join(
            f'<asset-clip ref="a{number}" offset="{number}/5s" duration="1/5s" start="0s"/>'
            for number in range(len(media)))
        return ('<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE fcpxml>\n<fcpxml version="1.9">'
                f'<resources><format id="f" frameDuration="1/30s"/>{assets}</resources><library>'
                '<event><project name="x"><sequence format="f" duration="1s"><spine>'
                f"{clips}</spine></sequence></project></event></library></fcpxml>")

    def time_of(value):
        return {"OTIO_SCHEMA": "RationalTime.1", "rate": 30, "value": value}

    return json.dumps({
        "OTIO_SCHEMA": "Timeline.1", "name": "x", "tracks": {
            "OTIO_SCHEMA": "Stack.1", "children": [{
                "OTIO_SCHEMA": "Track.1", "kind": "Video", "children": [{
                    "OTIO_SCHEMA": "Clip.1", "name": "x", "source_range": {
                        "OTIO_SCHEMA": "TimeRange.1", "start_time": time_of(1),
                        "duration": time_of(5)},
                    "media_reference": {"OTIO_SCHEMA": "ExternalReference.1", "target_url": name}}
                    for name in media]}]}})


def project(case):
    suffix = case.pick(".otio", ".llc", ".edl", ".fcpxml")
    case.name = "project" + (suffix if case.rng.random() < 0.9 else ".mov")
    case.media = [project_media(case) for _ in range(case.pick(1, 1, 2))]
    written = list(case.media)
    if suffix in (".otio", ".fcpxml") and case.rng.random() < 0.5:
        # Both formats may name files by URLs.
        written = [f"file://{case.inputs / name if '/' not in name else name}"
                   if ":" not in name else name for name in written]
    text = named_project(case, written, suffix)
    if case.rng.random() < 0.15:
        text = damaged_text(case, text)
    case.write(case.name, text)
    case.suits = ("edit", "edit --copy", "edit .otio") * 4


def damaged_text(case, text):
    text = list(text)
    for _ in range(case.rng.randint(1, 4)):
        place = case.rng.randrange(len(text))
        text[place] = case.pick("", "\0", "{", "}", "]", '"', "<", "-", "9" * 40, "1e999", "\ud7ff")
    return "".join(text)


def deep(case):
    """Deeply nested texts and movies, external entities, and numbers out of range."""
    count = case.pick(1_000, 100_000, 2_000_000)
    far = case.materials.elsewhere / "secret.txt"
    nested = box(b"moov")
    if case.rng.random() < 0.5:
        for _ in range(case.pick(20, 3_000)):
            nested = box(case.pick(b"moov", b"trak", b"udta", b"moof"), nested)
    texts = {
        ".json": "[" * count, ".otio": '{"a":' * count, ".llc": '{"cutSegments":' + "[" * count,
        ".fcpxml": "<fcpxml>" + "<a>" * count, ".xml": "<a " * count,
        ".xxe": f'<?xml version="1.0"?><!DOCTYPE fcpxml [<!ENTITY x SYSTEM "file://{far}">'
                f'<!ENTITY % y SYSTEM "http://127.0.0.1:{case.materials.port}/a.dtd"> %y;]>'
                "<fcpxml version='1.8'>&x;</fcpxml>",
        ".laughs": '<?xml version="1.0"?><!DOCTYPE fcpxml [<!ENTITY a "aaaaaaaaaa">' + "".join(
            f'<!ENTITY {name} "{f"&{last};" * 10}">' for last, name in zip("abcdefghi", "bcdefghij"))
            + "]><fcpxml version='1.8'>&j;</fcpxml>",
        ".report": json.dumps({"schema": "overcrank.bench-capture/1", "drops": "1e400"}),
        ".number": case.materials.report.replace(": 0", case.pick(
            ": 1e999", ": -1e999", ": 99999999999999999999", ": null", ': "0"', ": [0]")),
        ".mov": nested + case.materials.take,
        ".ebml": element("1a45dfa3", element("4282", b"matroska")) + b"".join(
            [bytes.fromhex("18538067") + b"\x01" + b"\xff" * 7] * 500),
        ".ogg": b"OggS\0\2" + bytes(20) + b"\xff" + b"\xff" * 255 + bytes(65025),
        ".edl": "TITLE: x\n" + "001  AX  V  C  99:99:99:99 00:00:00:00 00:00:00:00 99:99:99:99\n"
                * min(count, 50_000),
    }
    suffix = case.pick(*texts)
    case.write("deep" + suffix, texts[suffix])
    case.suits = ("edit", "edit .otio", "bench diff") * 3


def report(case):
    """Reports for `bench diff`, possibly damaged."""
    text = case.materials.report
    if case.rng.random() < 0.7:
        text = damaged_text(case, text)
    case.write("report" + case.suffix(".json"), text)
    case.suits = ("bench diff",) * 12


def sidecar(case):
    """The sidecar of an iPhone clip: a property list in XML or binary form."""
    far = case.materials.elsewhere / "secret.txt"
    texts = [
        '<?xml version="1.0"?><!DOCTYPE plist SYSTEM "http://127.0.0.1:'
        f'{case.materials.port}/a.dtd"><plist version="1.0"><dict><key>adjustmentFormatIdentifier'
        "</key><string>com.apple.video.slomo</string><key>adjustmentData</key><data>"
        f"{base64.b64encode(case.rng.randbytes(60)).decode()}</data></dict></plist>",
        f'<!DOCTYPE plist [<!ENTITY x SYSTEM "{far}">]><plist><dict><key>&x;</key></dict></plist>',
        "<plist>" + "<array>" * case.pick(50, 500_000),
        b"bplist00" + case.rng.randbytes(200) + bytes(6) + b"\1\1" + struct.pack(">QQQ", 3, 0, 90),
        b"bplist00\xa1\0\x08" + bytes(6) + b"\1\1" + struct.pack(">QQQ", 1, 0, 10),
        b"bplist00\xaf\x13\x7f" + b"\xff" * 7 + bytes(6) + b"\x08\x08" + struct.pack(
            ">QQQ", 1 << 62, 0, 8),
        b"bplist00", "", "\0" * 1000,
    ]
    case.write("clip.AAE", case.rng.choice(texts))
    case.suits = ("sidecar",) * 10


# Damage.

def mutated(case):
    """The name and the bytes of a movie or image with one kind of damage."""
    rng = case.rng
    name = rng.choice(list(case.materials.movies))
    data = bytearray(case.materials.movies[name])
    numbers = [0, 1, 2, 7, 8, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFF, 0x10000]
    kind = rng.choice(["flips", "flips", "head", "cut", "sizes", "sizes", "repeat", "swap", "zeros",
                       "insert", "join", "words"])
    if kind == "flips":
        for _ in range(rng.choice([1, 5, 50, 500])):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == "head":
        for _ in range(rng.randint(1, 8)):
            data[rng.randrange(min(len(data), 600))] = rng.randrange(256)
    elif kind == "cut":
        del data[rng.choice([0, 1, 12, 100, rng.randrange(len(data)), len(data) - 1]):]
    elif kind == "sizes":
        places = []
        if name.endswith((".mov", ".mp4")):
            rest = [(0, len(data))]
            while rest:
                for _, start, content, end in boxes(data, *rest.pop()):
                    places.append(start)
                    if bytes(data[start + 4:start + 8]) in (
                            b"moov", b"trak", b"mdia", b"minf", b"stbl", b"moof", b"traf", b"udta",
                            b"edts", b"dinf", b"mvex"):
                        rest.append((content, end))
        for _ in range(rng.choice([1, 1, 3])):
            place = rng.choice(places) if places else rng.randrange(max(1, len(data) - 4))
            if rng.random() < 0.4:
                # A field inside the box: a count, a timescale, a duration.
                place = min(place + 4 * rng.randint(2, 12), len(data) - 4)
            data[place:place + 4] = struct.pack(rng.choice("<>") + "I", rng.choice(numbers))
    elif kind == "repeat":
        start = rng.randrange(len(data))
        part = data[start:start + rng.choice([16, 188, 4096, 40_000])]
        data[start:start] = part * rng.choice([1, 3, 200 if len(part) < 5000 else 20])
    elif kind == "swap":
        first, second = sorted(rng.sample(range(len(data)), 2))
        data[first:] = data[second:] + data[first:second]
    elif kind == "zeros":
        start = rng.randrange(len(data))
        size = min(len(data) - start, rng.choice([1, 64, 4096, 100_000]))
        data[start:start + size] = rng.choice([b"\0", b"\xff"]) * size
    elif kind == "insert":
        start = rng.randrange(len(data))
        data[start:start] = rng.randbytes(rng.choice([1, 3, 188, 5000, 100_000]))
    elif kind == "join":
        data += case.materials.movies[rng.choice(list(case.materials.movies))]
    else:
        # Four-letter names of boxes and chunks are exchanged.
        names = [found.start() for found in re.finditer(rb"[a-z]{4}", bytes(data[:20_000]))]
        for _ in range(min(len(names), rng.randint(1, 3))):
            first, second = rng.choice(names), rng.choice(names)
            data[first:first + 4], data[second:second + 4] = (
                data[second:second + 4], data[first:first + 4])
    return name, bytes(data)


def damaged(case):
    name, data = mutated(case)
    if case.rng.random() < 0.15:
        name = pathlib.Path(name).stem + case.suffix(".mov", ".avi", ".wav")
    case.write(name, data)


def special(case):
    """Special files and unusual files."""
    kind = case.pick("pipe", "pipe", "socket", "directory", "/dev/zero", "/dev/random", "/dev/null",
                     "/dev/full", "loop", "dangling", "empty", "one byte", "/proc/self/mem",
                     "/dev/stdin", "/proc/self/maps", "/dev/tty", "through link")
    name = "special" + case.pick(".mov", ".mp4", ".otio", ".json", ".png", "")
    case.kind = f"special file: {kind}"
    case.name = name
    path = case.path
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        listener = socket.socket(socket.AF_UNIX)
        # A long path does not fit into a socket address, so the socket is bound through a short
        # link.
        short = pathlib.Path(tempfile.mkdtemp())
        (short / "in").symlink_to(case.inputs)
        listener.bind(str(short / "in" / name))
        listener.close()
        shutil.rmtree(short)
    elif kind == "directory":
        path.mkdir()
        (path / "secret.mov").write_bytes(case.materials.take)
    elif kind.startswith("/"):
        case.name = kind
    elif kind == "loop":
        path.symlink_to("loop2")
        (case.inputs / "loop2").symlink_to(name)
    elif kind == "dangling":
        path.symlink_to("nowhere.mov")
    elif kind == "through link":
        path.symlink_to("/dev/zero")
    else:
        path.write_bytes(b"" if kind == "empty" else b"{")


def sparse(case):
    """Huge sparse files.

    Readers search everything that is not a packet for the next packet, in time proportional to the
    file size. Only movies, whose boxes give the offset of the next box, are therefore larger than
    readers can search in the allowed time.
    """
    movies = case.materials.movies
    way = case.pick("zeros", "media", "front", "front", "size", "tail")
    name = "huge" + case.pick(".mov", ".mp4", ".ts", ".mkv", ".h264", ".wav", ".avi", ".mpg")
    size = case.pick(3 << 30, 5 << 30, 1 << 42)
    case.write(name, b"")
    with open(case.path, "r+b") as file:
        if way == "media":
            # A huge empty box precedes the movie.
            file.write(struct.pack(">I4sQ", 1, b"mdat", size))
            file.seek(size)
            file.write(movies["plain.mov"])
        elif way == "front":
            front = case.pick(".ts", ".mkv", ".avi", ".mpg", ".wav", ".h264", ".flv", ".ogg", ".mp3")
            file.write(movies["plain" + front])
            # libavformat reads a WAV file in pieces of eight bytes, each with a system call, so
            # this one is small.
            file.truncate((32 if front == ".wav" else 400) << 20)
        elif way == "size":
            file.write(movies["front.mp4"])
            file.truncate(size)
        elif way == "tail":
            file.seek(case.pick(400 << 20, 3 << 30))
            file.write(movies[case.pick("take.mov", "plain.ts")])
        else:
            file.truncate(size)
    case.kind = f"sparse file: {way}"


# The relative frequency of each kind.
KINDS = {
    "HLS playlist": (hls, 12), "ffconcat script": (ffconcat, 8), "SDP": (sdp, 3),
    "description in XML": (markup, 6), "other playlist": (playlist, 6),
    "pattern as name": (pattern, 5), "strange name": (strange_name, 8),
    "subtitles and text": (subtitles, 4), "reference movie": (reference_movie, 9),
    "linked Matroska": (linked_matroska, 4), "MXF and AAF": (exchange_file, 3),
    "AVI with a playlist": (subtitled_avi, 3), "two formats at once": (polyglot, 6),
    "project": (project, 16), "deep text and entities": (deep, 5), "report": (report, 3),
    "sidecar": (sidecar, 3), "damaged movie": (damaged, 30), "special file": (special, 8),
    "sparse file": (sparse, 2),
}


def make_case(materials, directory, seed, number):
    rng = random.Random(f"{seed} {number}")
    case = Case(number, rng, materials, directory)
    case.inputs.mkdir(parents=True)
    case.outputs.mkdir()
    for name in materials.decoys:
        os.link(materials.elsewhere / name, case.inputs / name)
    kind = rng.choices(list(KINDS), [weight for _, weight in KINDS.values()])[0]
    case.kind = kind
    KINDS[kind][0](case)
    return case


# Verbs.

def verbs(case, name):
    """Arguments and outputs of each verb, for an input name."""
    out = case.outputs
    movie, again = out / "out.mov", out / "again.otio"
    none = ["--progress", "none"]
    pace = case.pick("?pace=max", "?pace=max", "?pace=max", "")
    return {
        "info": (["info", name], []), "info --json": (["info", name, "--json"], []),
        "retime --copy": (["retime", name, "-o", movie, "--speed", "1/2", "--copy", *none], [movie]),
        "retime --fps": (
            ["retime", name, "-o", movie, "--speed", "1/4", "--fps", "30", *none], [movie]),
        "retime .otio": (["retime", name, "-o", again, "--speed", "1/2"], [again]),
        "sidecar": (["retime", case.materials.base / "take.mov", "--sidecar", name, "-o", movie,
                     "--copy", *none], [movie]),
        "frames": (["frames", name, "-o", f"{out}/{{index:06}}.png", "--at", "0", *none],
                   ["000000.png"]),
        "frames --csv": (["frames", name, "--csv", out / "out.csv", *none], [out / "out.csv"]),
        "recover": (["recover", name, *case.pick([], ["--json"])], []),
        "recover -o": (["recover", name, "-o", movie], [movie]),
        "edit": (["edit", name, "-o", movie, "--fps", "30", *none], [movie]),
        "edit --copy": (["edit", name, "-o", movie, "--copy", *none], [movie]),
        "edit .otio": (["edit", name, "-o", again], [again]),
        "record": (["record", f"file:{name}{pace}", "-o", movie, "--frames", "10", *none], [movie]),
        "bench diff": (["bench", "diff", name, name, "--fail-on", "drops>0"], []),
    }


# Camera names end at a question mark, so such file names are not given to `record`.
NOT_FOR_CAMERAS = "?"
COMMON_VERBS = (
    "info", "info --json", "retime --copy", "retime --copy", "retime --fps", "retime --fps",
    "retime .otio", "frames", "frames --csv", "recover", "recover -o", "edit", "record", "bench diff")
# These verbs read a pipe to its end and wait for its writer, as cat does.
PIPE_READERS = ("edit", "edit --copy", "edit .otio", "bench diff", "sidecar")


def chosen_verbs(case):
    choices = [verb for verb in (*COMMON_VERBS, *case.suits)
               if verb != "record" or NOT_FOR_CAMERAS not in case.name]
    first = case.rng.choice(choices)
    return [first, case.rng.choice([verb for verb in choices if verb != first])]


# Checks of a run.

def fingerprint(path):
    """A value that changes when a file changes; only the ends of huge files are read."""
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode):
        return (stat.S_IFMT(status.st_mode),)
    with open(path, "rb") as file:
        if status.st_size < 1 << 26:
            return (status.st_size, hashlib.sha1(file.read()).hexdigest())
        head = file.read(1 << 20)
        file.seek(-(1 << 20), os.SEEK_END)
        return (status.st_size, status.st_mtime_ns, hashlib.sha1(head + file.read()).hexdigest())


def fingerprints(directory):
    return {str(path.relative_to(directory)): fingerprint(path) for path in sorted(directory.rglob("*"))}


def unescaped(text):
    return os.fsdecode(bytes.fromhex(text.replace("\\x", "")))


class Trace:
    """The files, network calls and programs in the strace log of a run."""

    LINE = re.compile(r'^\d+ +(\w+)\((.*)')
    TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')

    def __init__(self, log, directory):
        self.opened, self.network, self.programs = set(), set(), []
        for line in log.read_text(errors="replace").splitlines():
            found = self.LINE.match(line)
            if not found:
                continue
            call, rest = found.groups()
            texts = [unescaped(text) for text in self.TEXT.findall(rest)]
            if "AF_INET" in rest:
                self.network.add(f"{call}({self.readable(rest)}")
            elif call in ("open", "openat", "openat2", "creat") and texts:
                # Process IDs and descriptor numbers are normalized, since they differ between runs.
                path = os.path.normpath(os.path.join(directory, texts[0]))
                flags = "O_TMPFILE" if "O_TMPFILE" in rest else ""
                path = re.sub(r"^/proc/(self/|\d+/|thread-self/)", "/proc/self/", path)
                path = re.sub(r"^(/proc/self/\w+/)\d+", r"\1N", path)
                self.opened.add(path + flags)
            elif call == "execve" and texts:
                self.programs.append(texts[0])
            elif call == "socket":
                self.opened.add(f"socket {rest.split(',')[0]}")
            elif call == "connect" and texts:
                self.opened.add(f"socket {texts[0]}")

    @classmethod
    def readable(cls, text):
        return cls.TEXT.sub(lambda found: repr(unescaped(found[1])), text)


class Judge:
    """Runs commands and reports violations."""

    def __init__(self, materials, server):
        self.materials = materials
        self.server = server
        self.allowed = set()
        # Shared libraries; the loader searches the command's directory first.
        self.library = re.compile(
            rf"^({re.escape(os.path.dirname(materials.slowmo))}|/lib|/usr/lib|/lib64|/opt)/.*\.so(\.|$)")
        self.cpu, self.wall = CPU_SECONDS, WALL_SECONDS

    def learn(self, directory):
        """Runs verbs on harmless files and allows the system files that they open."""
        self.allowed.add(f"{tempfile.gettempdir()}O_TMPFILE")
        self.allowed.add("/tmpO_TMPFILE")
        for number, (name, data) in enumerate(sorted(self.materials.movies.items())):
            case = Case(0, random.Random(0), self.materials, directory / str(number))
            case.inputs.mkdir(parents=True)
            case.outputs.mkdir()
            case.write(name, data)
            case.write_decoy("project.llc", named_project(case, [name], ".llc"))
            case.write_decoy("bench.json", self.materials.report)
            # Other formats differ only in the libraries that they load.
            few = ("info", "retime --fps")
            for verb in COMMON_VERBS if name in ("take.mov", "killed.mov", "plain.ts") else few:
                given = {"bench diff": "bench.json", "edit": "project.llc"}.get(verb, name)
                arguments, _ = verbs(case, str(case.inputs / given))[verb]
                done = self.run(case, [self.materials.slowmo, *map(str, arguments)])
                inside = {path for path in done.trace.opened if path.startswith(SYSTEM_FILES)}
                self.allowed |= inside
                own = {path for path in done.trace.opened - inside
                       if not path.startswith(str(case.directory)) and path not in self.allowed
                       and not self.library.match(path)}
                own -= {str(self.materials.base / "take.mov")}
                if own or done.trace.network:
                    sys.exit(f"{verb} opens {own} {done.trace.network} for the harmless {name}")
                for path in case.outputs.iterdir():
                    path.unlink()
            shutil.rmtree(case.directory)

    def run(self, case, command, pipe=None, interrupts=False):
        """Runs a command under strace, with resource limits, in the input directory."""
        log = case.directory / "strace.log"
        line = [
            "prlimit", f"--cpu={self.cpu}:{self.cpu + 5}", f"--as={MEMORY_BYTES}",
            f"--fsize={OUTPUT_BYTES}", "--core=0", "strace", "-f", "-qq", "--seccomp-bpf", "-xx",
            "-s", "4096", "-e", f"trace={CALLS}", "-o", str(log), *command]
        # Exceeding the file size limit returns an error to the program instead of a signal.
        process = subprocess.Popen(
            line, cwd=case.inputs, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True, restore_signals=False)
        is_over = threading.Event()
        helper = None
        if pipe is not None:
            helper = threading.Thread(target=(interrupt_when_asleep if interrupts else keep_writing),
                                      args=(pipe, process, is_over))
            helper.start()
        is_asleep = False
        try:
            output, words = process.communicate(
                timeout=INTERRUPTED_SECONDS if interrupts else self.wall)
        except subprocess.TimeoutExpired:
            is_asleep = True
            os.killpg(process.pid, signal.SIGKILL)
            output, words = process.communicate()
        is_over.set()
        if helper:
            helper.join()
        status = process.returncode
        return Done(status, is_asleep, output.decode(errors="replace"),
                    words.decode(errors="replace"), Trace(log, case.inputs))

    def problems(self, case, verb, command, outputs):
        """Runs a verb and returns the violations as (class, text), and the exit status."""
        reads_pipe = verb in PIPE_READERS and stat_mode(case.path) == stat.S_IFIFO
        interrupts = reads_pipe and case.rng.random() < 0.5
        is_regular = stat_mode(case.path) == stat.S_IFREG and not case.name.startswith("/proc/")
        before = fingerprints(case.inputs)
        visits = self.server.visits
        done = self.run(case, command, case.path if reads_pipe else None, interrupts)
        found = []

        def problem(kind, words):
            found.append((kind, words))

        error = done.words.strip().split("\n")[-1][:300]
        if done.is_asleep:
            problem("hang", "still waits for the writer of a pipe after SIGINT" if interrupts else
                    f"still asleep after {self.wall} s")
        elif done.status in (-signal.SIGXCPU, -signal.SIGKILL):
            problem("hang", f"used {self.cpu} s of processor time")
        elif interrupts and done.status == -signal.SIGINT:
            pass  # SIGINT came before the handler was installed.
        elif done.status < 0:
            problem("crash", f"{signal.Signals(-done.status).name}: {done.words[-600:]}")
        elif done.status == 70:
            problem("internal error", error)
        elif interrupts:
            if done.status not in (130, 128 + signal.SIGINT):
                problem("exit code", f"{done.status} after SIGINT: {error}")
        elif done.status not in EXIT_CODES:
            problem("exit code", f"{done.status}: {error}")
        elif done.status == 74 and is_regular:
            # The disk works, so the input is at fault; 65 would be correct.
            problem("blame", f"74, an I/O error, for a file that can be read: {error}")
        elif done.status not in (0, 10) and not (done.words.strip() or "--json" in command):
            problem("message", f"says nothing about its exit code {done.status}")
        if "--json" in command and not found:
            try:
                json.loads(done.output)
            except ValueError:
                problem("document", f"standard output is not a JSON document: {done.output[:200]!r}")
        may_open = self.allowed | self.own_files(case, verb)
        for path in sorted(done.trace.opened - may_open):
            if not path.startswith(f"{case.outputs}/") and not self.library.match(path):
                problem("opened", path)
        for call in sorted(done.trace.network):
            problem("network", call)
        if self.server.visits != visits:
            # With several jobs, another case may have caused the visit; its trace shows it.
            problem("visit", "the server on this machine was visited")
        for program in done.trace.programs[1:]:
            problem("program", f"ran {program}")
        self.judge_files(case, verb, done, outputs, before, problem)
        return found, done.status

    def own_files(self, case, verb):
        """The input and, for a project, the regular files that it names."""
        inputs = case.inputs
        allowed = {os.path.normpath(case.path), os.path.normpath(case.outputs),
                   str(self.materials.base / "take.mov")}
        # Opening a device or a pipe may change it, so movie readers must check the file type first.
        if verb not in PIPE_READERS and stat_mode(case.path) not in (stat.S_IFREG, stat.S_IFDIR, None):
            allowed.discard(os.path.normpath(case.path))
        if not verb.startswith("edit"):
            return allowed
        allowed.add(str(inputs))
        for name in case.media:
            plain = name.removeprefix("file://")
            last = re.split(r"[/\\]", plain)[-1]
            candidates = [inputs / plain, inputs / last]
            # A missing movie is searched for in the project's directory by its stem.
            candidates += [inputs / f"{last}.{suffix}" for suffix in MOVIE_SUFFIXES]
            allowed |= {os.path.normpath(path) for path in candidates
                        if stat_mode(path) == stat.S_IFREG}
        return allowed

    def opens(self, path):
        return subprocess.run([self.materials.slowmo, "info", path], capture_output=True,
                              stdin=subprocess.DEVNULL).returncode == 0

    def judge_files(self, case, verb, done, outputs, before, problem):
        after = fingerprints(case.inputs)
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) == after.get(name):
                continue
            is_input = os.path.normpath(name) == os.path.normpath(case.name)
            # A recording without a frame becomes an empty movie, and recover reports that.
            may_change = verb == "recover" and is_input and (
                done.status == 0 or "is now an empty movie" in done.words + done.output)
            if not may_change:
                problem("input changed", f"{name}: {before.get(name)} became {after.get(name)}")
        left = sorted(path.name for path in case.outputs.iterdir())
        wanted = sorted(pathlib.Path(path).name for path in outputs)
        if done.status == 0 and left != wanted:
            problem("output", f"ended with 0 and left {left}, not {wanted}")
        # A recording cut short by its camera is kept up to that point.
        is_kept = (verb == "record" and left == wanted and "stopped by error" in done.output
                   and self.opens(outputs[0]))
        if done.status != 0 and left and not is_kept:
            problem("output", f"ended with {done.status} and left {left}")


@dataclasses.dataclass
class Done:
    """The result of a run."""

    status: int
    is_asleep: bool
    output: str
    words: str
    trace: Trace


def stat_mode(path):
    """The type of a file, with links followed; None if stat fails."""
    try:
        return stat.S_IFMT(os.stat(path).st_mode)
    except (OSError, ValueError):
        return None


def keep_writing(pipe, _, is_over):
    """Repeatedly opens and closes a pipe for writing, whenever it has a reader."""
    while not is_over.is_set():
        try:
            os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            pass  # The pipe has no reader yet.
        time.sleep(0.01)


def interrupt_when_asleep(_, process, is_over):
    """Sends SIGINT once to the traced process, when it waits for the pipe's writer."""
    last, count = "", 0
    while not is_over.is_set():
        try:
            tasks = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
            child = int(tasks.split()[0])
            words = pathlib.Path(f"/proc/{child}/syscall").read_text()
        except (OSError, IndexError):
            words = ""
        # A waiting main thread stays in one system call (open or poll).
        count = count + 1 if words == last and words not in ("", "running\n") else 0
        last = words
        if count == 25:
            os.kill(child, signal.SIGINT)
            return
        time.sleep(0.02)


def run_case(judge, directory, seed, number, keep):
    """Makes a case, runs two verbs on it, and returns the results."""
    case = make_case(judge.materials, directory / f"case-{number}", seed, number)
    results = []
    chosen = chosen_verbs(case)
    is_absolute = case.rng.random() < 0.5
    for verb in chosen:
        given = case.name
        if is_absolute and not given.startswith("/"):
            given = f"{case.inputs}/{given}"
        given = f"./{given}" if given.startswith("-") else given
        arguments, outputs = verbs(case, given)[verb]
        command = [judge.materials.slowmo, *map(str, arguments)]
        found, status = judge.problems(case, verb, command, outputs)
        results.append((case.kind, verb, status, found, shlex.join(command)))
        if found and keep:
            target = keep / f"case-{seed}-{number}"
            if not target.exists():
                shutil.copytree(case.inputs, target, symlinks=True, ignore=not_kept)
        for path in case.outputs.iterdir():
            path.unlink()
    shutil.rmtree(case.directory)
    return number, results


def not_kept(directory, names):
    """The names to skip when copying: pipes, devices and sparse files."""
    paths = [pathlib.Path(directory, name) for name in names]
    return [path.name for path in paths if stat_mode(path) not in (stat.S_IFREG, stat.S_IFDIR)
            or path.stat().st_size > 1 << 28]


# Planted mistakes.

def planted(judge, directory):
    """Runs faulty programs in place of slowmo; returns the mistakes that were not detected."""
    lax = ["ffmpeg", "-v", "error", "-nostdin", "-y", "-allowed_extensions", "ALL",
           "-protocol_whitelist", "file,http,tcp,crypto,data", "-i"]
    lax_script = ["ffmpeg", "-v", "error", "-nostdin", "-y", "-f", "concat", "-safe", "0",
                  "-protocol_whitelist", "file,http,tcp", "-i"]
    far = judge.materials.elsewhere / "secret.ts"
    port = judge.materials.port
    list_of = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{}\n#EXT-X-ENDLIST\n".format
    shell = ["sh", "-c"]
    mistakes = [
        ("opened", list_of(far), "list.m3u8", lax, ["-f", "null", "-"]),
        ("opened", list_of("secret.ts"), "list.m3u8", lax, ["-f", "null", "-"]),
        ("network", list_of(f"http://127.0.0.1:{port}/a.ts"), "list.m3u8", lax, ["-f", "null", "-"]),
        ("opened", f"file '{far}'\n", "script.txt", lax_script, ["-f", "null", "-"]),
        ("opened", "", "a.mov", shell + [f"read x <{far}; exit 65"], []),
        ("program", "", "a.mov", shell + ["cat a.mov; exit 65"], []),
        ("crash", "", "a.mov", shell + ["kill -SEGV $$"], []),
        ("internal error", "", "a.mov", shell + ["echo x >&2; exit 70"], []),
        ("exit code", "", "a.mov", shell + ["echo x >&2; exit 3"], []),
        ("blame", "", "a.mov", shell + ["echo x >&2; exit 74"], []),
        ("message", "", "a.mov", shell + ["exit 65"], []),
        ("document", "", "a.mov", shell + ["echo '{} {}'; : --json"], ["--json"]),
        ("input changed", "", "a.mov", shell + ["echo >>a.mov"], []),
        ("input changed", "", "a.mov", shell + ["echo >>secret.txt; exit 65"], []),
        ("output", "", "a.mov", shell + ["echo >../out/out.mov; echo x >&2; exit 65"], []),
        ("output", "", "a.mov", shell + ["echo >../out/.out.mov.part; exit 0"], []),
        ("hang", "", "a.mov", shell + ["while :; do :; done"], []),
        ("hang", "", "a.mov", shell + ["exec 3<>pipe; read x <&3"], []),
    ]
    missed = []
    for number, (kind, data, name, front, back) in enumerate(mistakes):
        case = Case(number, random.Random(0), judge.materials, directory / f"planted-{number}")
        case.inputs.mkdir(parents=True)
        case.outputs.mkdir()
        for decoy in judge.materials.decoys:
            shutil.copy(judge.materials.elsewhere / decoy, case.inputs / decoy)
        os.mkfifo(case.inputs / "pipe")
        case.write(name, data)
        # These programs never end, so the limits are short.
        judge.cpu, judge.wall = (1, 3) if kind == "hang" else (CPU_SECONDS, WALL_SECONDS)
        command = [*front, name, *back] if front[0] == "ffmpeg" else [*front, *back]
        found, _ = judge.problems(case, "info", command, [])
        kinds = {each for each, _ in found}
        if kind == "opened":
            # ffmpeg itself opens other files on this machine; only the decoy counts.
            kinds = {each for each, words in found if "secret" in words}
        print(f"planted {kind}: {'found' if kind in kinds else 'MISSED'}")
        if kind not in kinds:
            missed.append(f"{kind}: {shlex.join(command)}: {found}")
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("slowmo")
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--case", type=int, action="append", help="run only this case of the seed")
    parser.add_argument("--directory", type=pathlib.Path, help="the directory for the files")
    parser.add_argument("--keep", type=pathlib.Path, help="copy inputs with problems to this directory")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument(
        "--planted", action="store_true",
        help="also run careless programs in place of slowmo, whose mistakes must be found")
    options = parser.parse_args()
    for program in ("ffmpeg", "strace", "prlimit"):
        if not shutil.which(program):
            sys.exit(f"{program} is missing")
    slowmo = str(pathlib.Path(options.slowmo).resolve())
    server = Server()
    with tempfile.TemporaryDirectory(prefix="foreign-files-", dir=options.directory) as name:
        scratch = pathlib.Path(name).resolve()
        materials = Materials(slowmo, scratch, server.port)
        judge = Judge(materials, server)
        judge.learn(scratch / "harmless")
        decoys = fingerprints(materials.elsewhere)
        numbers = options.case or range(options.cases)
        results = []
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            tasks = [pool.submit(run_case, judge, scratch, options.seed, number, options.keep)
                     for number in numbers]
            for task in concurrent.futures.as_completed(tasks):
                number, runs = task.result()
                results.append((number, runs))
                for kind, verb, status, found, command in runs:
                    for problem, words in found:
                        print(f"case {number} ({kind}): {problem}: {words}\n    {command}\n    again: "
                              f"foreign-files.py SLOWMO --seed {options.seed} --case {number}",
                              flush=True)
                    if options.verbose:
                        print(f"case {number} ({kind}): {verb} = {status}: {command}", flush=True)
        changed = decoys != fingerprints(materials.elsewhere)
        is_wrong = summary(results, judge, server, changed)
        if options.planted:
            missed = planted(judge, scratch)
            print("\n".join(missed) or "every planted mistake was found")
            is_wrong = is_wrong or bool(missed)
    return is_wrong


def summary(results, judge, server, changed):
    """Prints the counts by kind; returns 1 for any violation."""
    runs = [run for _, each in results for run in each]
    counts = {}
    for _, each in results:
        # The text after the colon names the kind of special or sparse file.
        row = counts.setdefault(each[0][0].split(":")[0], [0, 0, 0, 0])
        row[0] += 1
        for _, _, status, found, _ in each:
            row[1] += status in (0, 10)
            row[2] += status not in (0, 10)
            row[3] += bool(found)
    width = max(map(len, counts), default=4)
    print(f"{'kind':{width}} {'cases':>6} {'accepted':>9} {'refused':>8} {'problems':>9}")
    for kind, row in sorted(counts.items()):
        print(f"{kind:{width}} {row[0]:6} {row[1]:9} {row[2]:8} {row[3]:9}")
    statuses = {}
    for _, _, status, _, _ in runs:
        statuses[status] = statuses.get(status, 0) + 1
    print("exit codes: " + ", ".join(f"{count} ended with {status}"
                                     for status, count in sorted(statuses.items())))
    plain = sorted(path for path in judge.allowed if ".so" not in path)
    print(f"allowed besides libraries: {' '.join(plain)}")
    problems = sum(len(found) for _, _, _, found, _ in runs)
    if changed:
        problems += 1
        print("a decoy was changed")
    print(f"{len(results)} cases, {len(runs)} runs, {server.visits} visits to the server, "
          f"{problems} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
