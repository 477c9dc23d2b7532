#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the boxes of MOV and MP4 files, according to ISO/IEC 14496-12.

  box-check.py FILE...             checks files
  box-check.py --planted FILE      plants faults in a file, each of which must be found
  box-check.py --dump FILE         prints what does not depend on positions, as JSON

Box sizes must add up; tables must agree on the number of samples; samples must lie inside an `mdat` box
and not overlap; edit lists must fit their media. A fragmented file is checked the same way.
"""

import hashlib
import json
import mmap
import os
import struct
import sys

CONTAINERS = {b"moov", b"trak", b"mdia", b"minf", b"dinf", b"stbl", b"edts", b"udta", b"mvex",
              b"moof", b"traf", b"tref"}


class Fault(Exception):
    """A fault of a file."""


class Box:
    def __init__(self, data, start, end):
        if end - start < 8:
            raise Fault(f"{end - start} bytes at {start} are too few for a box")
        size, self.type = struct.unpack_from(">I4s", data, start)
        self.head = 8
        if size == 1:
            if end - start < 16:
                raise Fault(f"the long size of {self.type} at {start} is cut off")
            size, self.head = struct.unpack_from(">Q", data, start + 8)[0], 16
        elif size == 0:
            size = end - start
        if size < self.head or size > end - start:
            raise Fault(f"{self.type} at {start} has {size} bytes, of {end - start}")
        self.data, self.start, self.end = data, start, start + size

    @property
    def body(self):
        return self.data[self.start + self.head:self.end]

    def children(self, skip=0):
        """The boxes inside, which must fill the box."""
        start, boxes = self.start + self.head + skip, []
        end = self.end
        # QuickTime may end user data with four zero bytes.
        if self.type == b"udta" and end - start >= 4 and self.data[end - 4:end] == bytes(4):
            end -= 4
        while start < end:
            boxes.append(Box(self.data, start, end))
            start = boxes[-1].end
        return boxes

    def all(self, kind):
        return [box for box in self.children() if box.type == kind]

    def one(self, kind):
        found = self.all(kind)
        if len(found) != 1:
            raise Fault(f"{self.type} contains {len(found)} {kind}, not one")
        return found[0]

    def maybe(self, kind):
        found = self.all(kind)
        if len(found) > 1:
            raise Fault(f"{self.type} contains {len(found)} {kind}, not one at most")
        return found[0] if found else None


def entries(box, form, skip=4):
    """The entries of a table whose count precedes them; they must fill the box."""
    count = struct.unpack_from(">I", box.body, skip)[0]
    size = struct.calcsize(form)
    if len(box.body) != skip + 4 + count * size:
        raise Fault(f"{box.type} states {count} entries of {size} bytes in {len(box.body)} bytes")
    return list(struct.iter_unpack(form, box.body[skip + 4:]))


def version(box):
    return box.body[0]


def duration(box, at):
    """The timescale and the duration of mvhd or mdhd."""
    form = ">IQ" if version(box) == 1 else ">II"
    return struct.unpack_from(form, box.body, at[version(box)])


def check_tree(box):
    if box.type in CONTAINERS:
        for child in box.children():
            check_tree(child)
    elif box.type == b"stsd":
        count = struct.unpack_from(">I", box.body, 4)[0]
        found = len(box.children(8))
        if count != found or count == 0:
            raise Fault(f"stsd states {count} descriptions and has {found}")


def sizes_of(stbl):
    box = stbl.one(b"stsz")
    common, count = struct.unpack_from(">II", box.body, 4)
    if common:
        if len(box.body) != 12:
            raise Fault(f"stsz with a common size has {len(box.body)} bytes")
        return [common] * count
    if len(box.body) != 12 + 4 * count:
        raise Fault(f"stsz states {count} samples in {len(box.body)} bytes")
    return [size for size, in struct.iter_unpack(">I", box.body[12:])]


def chunks_of(stbl, count, descriptions):
    """For each sample, its chunk; and the chunk offsets."""
    offsets = stbl.maybe(b"stco")
    form = ">I"
    if offsets is None:
        offsets, form = stbl.one(b"co64"), ">Q"
    offsets = [offset for offset, in entries(offsets, form)]
    runs = entries(stbl.one(b"stsc"), ">III")
    chunk_of = []
    for index, (first, number, description) in enumerate(runs):
        following = runs[index + 1][0] if index + 1 < len(runs) else len(offsets) + 1
        if first < 1 or following <= first or number < 1 or (index == 0 and first != 1):
            raise Fault(f"stsc has a run of {number} samples from chunk {first} to {following}")
        if not 1 <= description <= descriptions:
            raise Fault(f"stsc names description {description} of {descriptions}")
        for chunk in range(first - 1, following - 1):
            chunk_of += [chunk] * number
    if len(chunk_of) != count:
        raise Fault(f"stsc and stco list {len(chunk_of)} samples, stsz {count}")
    return chunk_of, offsets


def times_of(stbl, count):
    """The decode times and the composition offsets."""
    deltas = [delta for number, delta in entries(stbl.one(b"stts"), ">II") for _ in range(number)]
    if len(deltas) != count:
        raise Fault(f"stts lists {len(deltas)} samples, stsz {count}")
    ticks = [0]
    for delta in deltas:
        ticks.append(ticks[-1] + delta)
    offsets = [0] * count
    table = stbl.maybe(b"ctts")
    if table:
        offsets = [offset for number, offset in entries(table, ">Ii") for _ in range(number)]
        if len(offsets) != count:
            raise Fault(f"ctts lists {len(offsets)} samples, stsz {count}")
        if version(table) == 0 and min(offsets, default=0) < 0:
            raise Fault("ctts of version 0 has a negative offset")
    return ticks, offsets


def check_samples(stbl, count):
    """Tables that name single samples."""
    for kind in (b"stss", b"stps"):
        table = stbl.maybe(kind)
        numbers = [number for number, in entries(table, ">I")] if table else []
        if any(not 1 <= number <= count for number in numbers) or numbers != sorted(set(numbers)):
            raise Fault(f"{kind} does not list samples 1 to {count} in order")
    table = stbl.maybe(b"sdtp")
    if table and len(table.body) != 4 + count:
        raise Fault(f"sdtp has {len(table.body) - 4} samples of {count}")
    for table in stbl.all(b"sbgp"):
        skip = 12 if version(table) == 1 else 8
        if sum(number for number, _ in entries(table, ">II", skip)) != count:
            raise Fault("sbgp does not list all samples")


def edits_of(trak):
    edts = trak.maybe(b"edts")
    if edts is None:
        return []
    box = edts.one(b"elst")
    return entries(box, ">Qqi" if version(box) == 1 else ">Iii")


def check_edits(trak, ends, media_scale, movie_scale, is_fragmented):
    """An edit must show a part of the media; a last edit of no duration shows the rest of fragments."""
    for index, (length, start, _) in enumerate(edits_of(trak)):
        if start == -1:
            continue
        if start < 0:
            raise Fault(f"an edit starts at {start}")
        if is_fragmented:
            continue
        end = start + length * media_scale / movie_scale
        # Durations in the movie's ticks are rounded to a whole tick.
        if start > ends or end > ends + media_scale / movie_scale + 1:
            raise Fault(f"edit {index} shows {start} to {end} of {ends} ticks of media")


class Track:
    """The tables of a track, as they were read."""


def check_track(trak, movie_scale, media, is_fragmented):
    mdia = trak.one(b"mdia")
    scale, stated = duration(mdia.one(b"mdhd"), {0: 12, 1: 20})
    if not scale:
        raise Fault("mdhd has no timescale")
    minf = mdia.one(b"minf")
    references = entries_of_references(minf)
    stbl = minf.one(b"stbl")
    descriptions = stbl.one(b"stsd").children(8)
    for entry in descriptions:
        if entry.end - entry.start < 16 or not 1 <= struct.unpack_from(
                ">H", entry.body, 6)[0] <= references:
            raise Fault(f"a description {entry.type} names no data reference")
    sizes = sizes_of(stbl)
    chunk_of, offsets = chunks_of(stbl, len(sizes), len(descriptions)) if sizes or not is_fragmented \
        else ([], [])
    ticks, composition = times_of(stbl, len(sizes))
    check_samples(stbl, len(sizes))
    position, before, places = 0, -1, []
    for size, chunk in zip(sizes, chunk_of):
        position = position if chunk == before else offsets[chunk]
        before = chunk
        places.append((position, position + size))
        position += size
    for start, end in places:
        if not any(first <= start and end <= last for first, last in media):
            raise Fault(f"a sample at {start} to {end} is outside mdat")
    ends = max((tick + offset + step for tick, offset, step in zip(
        ticks, composition, (b - a for a, b in zip(ticks, ticks[1:])))), default=0)
    # The frame that is shown last may last longer than until the next one is decoded. The duration in mdhd
    # counts from the time at which the first sample is shown, as in files of FFmpeg.
    ends = max(ends, stated + (composition[0] if composition else 0))
    check_edits(trak, ends, scale, movie_scale, is_fragmented)
    track = Track()
    track.handler = mdia.one(b"hdlr").body[8:12]
    track.box, track.scale, track.sizes, track.places = trak, scale, sizes, places
    track.ticks, track.composition = ticks, composition
    return track


def entries_of_references(minf):
    dref = minf.one(b"dinf").one(b"dref")
    count = struct.unpack_from(">I", dref.body, 4)[0]
    if len(dref.children(8)) != count:
        raise Fault("dref states another number of references than it has")
    return count


def check_overlap(tracks):
    places = sorted({place for track in tracks for place in track.places})
    for (_, end), (start, _) in zip(places, places[1:]):
        if start < end:
            raise Fault(f"two samples overlap at {start}")


def check_fragments(boxes, tracks, media):
    """The runs of each fragment lie inside mdat, and sequence numbers ascend."""
    last = 0
    for moof in boxes:
        if moof.type != b"moof":
            continue
        number = struct.unpack_from(">I", moof.one(b"mfhd").body, 4)[0]
        if number <= last:
            raise Fault(f"fragment {number} follows fragment {last}")
        last = number
        for traf in moof.all(b"traf"):
            header = traf.one(b"tfhd").body
            flags, track = struct.unpack_from(">II", header)
            if not 1 <= track <= len(tracks):
                raise Fault(f"a fragment names track {track} of {len(tracks)}")
            at = 8
            base = moof.start
            if flags & 1:
                base, at = struct.unpack_from(">Q", header, at)[0], at + 8
            at += 4 if flags & 2 else 0
            at += 4 if flags & 8 else 0
            common = struct.unpack_from(">I", header, at)[0] if flags & 0x10 else 0
            end = base
            for run in traf.all(b"trun"):
                fields, count = struct.unpack_from(">II", run.body)
                at, start = 8, end
                if fields & 1:
                    start, at = base + struct.unpack_from(">i", run.body, at)[0], at + 4
                at += 4 if fields & 4 else 0
                width = 4 * sum(1 for bit in (0x100, 0x200, 0x400, 0x800) if fields & bit)
                if len(run.body) != at + count * width:
                    raise Fault(f"trun states {count} samples in {len(run.body)} bytes")
                skip = 4 if fields & 0x100 else 0
                end = start
                for index in range(count):
                    end += struct.unpack_from(
                        ">I", run.body, at + index * width + skip)[0] if fields & 0x200 else common
                if not any(first <= start and end <= stop for first, stop in media):
                    raise Fault(f"a run at {start} to {end} is outside mdat")


def contents(path):
    """The bytes of a file, which are read when they are needed: a file may be larger than memory."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""


def check(data):
    """Checks a file, and returns its movie box and its tracks."""
    boxes, start = [], 0
    while start < len(data):
        boxes.append(Box(data, start, len(data)))
        start = boxes[-1].end
    movies = [box for box in boxes if box.type == b"moov"]
    if len(movies) != 1:
        raise Fault(f"{len(movies)} moov boxes")
    movie = movies[0]
    check_tree(movie)
    is_fragmented = movie.maybe(b"mvex") is not None
    media = [(box.start + box.head, box.end) for box in boxes if box.type == b"mdat"]
    header = movie.one(b"mvhd")
    scale, _ = duration(header, {0: 12, 1: 20})
    if not scale:
        raise Fault("mvhd has no timescale")
    tracks = [check_track(trak, scale, media, is_fragmented) for trak in movie.all(b"trak")]
    numbers = []
    for track in tracks:
        head = track.box.one(b"tkhd")
        numbers.append(struct.unpack_from(">I", head.body, 20 if version(head) == 1 else 12)[0])
    if len(set(numbers)) != len(numbers) or 0 in numbers:
        raise Fault(f"the tracks have the numbers {numbers}")
    following = struct.unpack_from(">I", header.body, len(header.body) - 4)[0]
    if numbers and following <= max(numbers) and following != 0xFFFFFFFF and not is_fragmented:
        raise Fault(f"the next track's number is {following}, and there is one with {max(numbers)}")
    for track in tracks:
        for kind in (track.box.maybe(b"tref").children() if track.box.maybe(b"tref") else []):
            for number, in struct.iter_unpack(">I", kind.body):
                if number not in numbers:
                    raise Fault(f"a reference names track {number}")
    check_overlap(tracks)
    check_fragments(boxes, tracks, media)
    return boxes, movie, tracks


# --- Planted faults --------------------------------------------------------------------------------

def planted(data):
    """Versions of a file, each with one fault, by name."""
    boxes, movie, tracks = check(data)
    track = max(tracks, key=lambda track: len(track.sizes))
    stbl = track.box.one(b"mdia").one(b"minf").one(b"stbl")

    def changed(at, form, number):
        copy = bytearray(data)
        struct.pack_into(form, copy, at, number)
        return bytes(copy)

    def body(box, offset):
        return box.start + box.head + offset

    def number(box, offset):
        return struct.unpack_from(">I", data, body(box, offset))[0]

    def inner(kind):
        return stbl.one(kind)

    offsets = stbl.maybe(b"stco") or stbl.one(b"co64")
    form = ">I" if offsets.type == b"stco" else ">Q"
    mdhd = track.box.one(b"mdia").one(b"mdhd")
    header = movie.one(b"mvhd")
    head = track.box.one(b"tkhd")
    yield "box beyond its parent", changed(inner(b"stts").start, ">I", 1 << 24)
    yield "box smaller than its header", changed(track.box.one(b"mdia").start, ">I", 4)
    yield "one sample too many in stts", changed(body(inner(b"stts"), 8), ">I", number(inner(b"stts"), 8) + 1)
    yield "one sample too few in stsz", changed(body(inner(b"stsz"), 8), ">I", number(inner(b"stsz"), 8) - 1)
    yield "a chunk beyond the file", changed(
        body(offsets, 8 + struct.calcsize(form) * (number(offsets, 4) - 1)), form, len(data))
    yield "a chunk in the index", changed(body(offsets, 8), form, movie.start + 8)
    yield "a description that does not exist", changed(body(inner(b"stsc"), 16), ">I", 9)
    yield "a first chunk of zero", changed(body(inner(b"stsc"), 8), ">I", 0)
    yield "no samples in a chunk", changed(body(inner(b"stsc"), 12), ">I", 0)
    yield "more descriptions than there are", changed(body(inner(b"stsd"), 4), ">I", 2)
    yield "no timescale", changed(body(mdhd, 20 if version(mdhd) == 1 else 12), ">I", 0)
    yield "a track number of zero", changed(body(head, 20 if version(head) == 1 else 12), ">I", 0)
    yield "a next track number that is taken", changed(header.end - 4, ">I", 1)
    elst = track.box.one(b"edts").one(b"elst")
    if version(elst) == 0:
        yield "an edit beyond the media", changed(body(elst, 12), ">i", 1 << 30)
        yield "an edit that is too long", changed(body(elst, 8), ">I", 1 << 30)
    sync = stbl.maybe(b"stss")
    if sync:
        yield "a key frame beyond the samples", changed(body(sync, 8), ">I", len(track.sizes) + 1)


def dump(path):
    """Times, sizes, boxes without positions, and media, which two files with the same contents share."""
    data = contents(path)
    boxes, movie, tracks = check(data)
    found = {"brands": boxes[0].body.decode("latin-1"), "tracks": [],
             "boxes": [box.type.decode("latin-1") for box in boxes if box.type not in (b"free", b"wide")]}
    for track in tracks:
        media = hashlib.sha256()
        for start, end in track.places:
            media.update(data[start:end])
        stbl = track.box.one(b"mdia").one(b"minf").one(b"stbl")
        tables = {box.type.decode("latin-1"): box.body.hex() if len(box.body) < 4096 else
                  hashlib.sha256(box.body).hexdigest()
                  for box in stbl.children() if box.type not in (b"stco", b"co64", b"stsc")}
        others = {box.type.decode("latin-1"): box.body.hex()
                  for box in track.box.children() if box.type != b"mdia"}
        mdia = {box.type.decode("latin-1"): box.body.hex()
                for box in track.box.one(b"mdia").children() if box.type != b"minf"}
        minf = {box.type.decode("latin-1"): box.body.hex()
                for box in track.box.one(b"mdia").one(b"minf").children() if box.type != b"stbl"}
        found["tracks"].append({
            "samples": len(track.sizes), "media": media.hexdigest(), "stbl": tables,
            "trak": others, "mdia": mdia, "minf": minf})
    found["movie"] = {box.type.decode("latin-1"): box.body.hex()
                      for box in movie.children() if box.type != b"trak"}
    json.dump(found, sys.stdout, indent=1)


def main(arguments):
    if arguments[:1] == ["--dump"]:
        dump(arguments[1])
        return 0
    if arguments[:1] == ["--planted"]:
        data = open(arguments[1], "rb").read()
        missed, count = [], 0
        for name, bad in planted(data):
            count += 1
            try:
                check(bad)
                missed.append(name)
            except Fault:
                pass
        print(f"{count} planted faults, {len(missed)} of them not found {missed or ''}")
        return 1 if missed or count < 12 else 0
    failed = 0
    for path in arguments:
        try:
            check(contents(path))
        except Fault as fault:
            print(f"{path}: {fault}")
            failed += 1
    print(f"{len(arguments)} files checked, {failed} faulty")
    return 1 if failed or not arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
