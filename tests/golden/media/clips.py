#!/usr/bin/env python3
"""tests/golden/media/clips.py -- Short videos, and what transformers makes of them. Needs av,
numpy, torch, torchvision, torchcodec and transformers; writes this folder's clips/ and clips.txt:

    NAME SAMPLED FRAMES FPS WIDTH HEIGHT ROWS COLUMNS INDICES STAMPS PATCHES
    NAME refused WORDS

SAMPLED is what Gemma4VideoProcessor was asked for, FRAMES what torchcodec counts in the file.
PATCHES holds, of each sampled frame, the first 48 bytes of two patches, in hexadecimal."""
import fractions
import io
import struct
from pathlib import Path

import av
import numpy as np
from torchcodec.decoders import VideoDecoder
from transformers.models.gemma4.video_processing_gemma4 import Gemma4VideoProcessor

HERE = Path(__file__).resolve().parent
OUT = HERE / "clips"
OUT.mkdir(exist_ok=True)
lines = []


def frame(i, width, height):
    """A bar that moves and a ground that changes: every frame is told from its neighbours."""
    y, x = np.mgrid[0:height, 0:width]
    image = np.stack([x * 3 % 256, y * 4 % 256, np.full_like(x, 30 + 7 * i % 200)], -1)
    image[:, (2 * i) % width:(2 * i) % width + 6] = (240, 240 - 6 * i % 200, 20)
    return image.astype(np.uint8)


def film(name, codec, n, fps, size=(70, 50), times=None, pixels="yuv420p", keep=None, **options):
    """A video of n frames, `fps` a second or shown at `times` in milliseconds."""
    width, height = (side // 2 * 2 for side in size)
    container = av.open(str(OUT / name), "w", options=options)
    stream = container.add_stream(codec, rate=fps)
    stream.width, stream.height, stream.pix_fmt = width, height, pixels
    stream.codec_context.thread_count = 1
    base = fractions.Fraction(1, 1000) if times else fractions.Fraction(1, fps)
    stream.codec_context.time_base = base
    for i in range(n):
        picture = av.VideoFrame.from_ndarray(frame(i, width, height), format="rgb24")
        picture.pts, picture.time_base = times[i] if times else i, base
        for packet in stream.encode(picture):
            container.mux(packet)
    for packet in stream.encode(None):
        container.mux(packet)
    container.close()


def look(name, sampled):
    path = str(OUT / name)
    total = VideoDecoder(path, seek_mode="exact").metadata.num_frames
    asked = min(sampled, total)      # the reference refuses more than there are; we take all
    result = Gemma4VideoProcessor(num_frames=asked)(
        [path], return_metadata=True, return_tensors="np")
    about = result["video_metadata"][0]
    positions = result["video_position_ids"]
    n_patches = int((positions[0][:, 0] >= 0).sum())
    columns, rows = (positions[0][:n_patches].max(0) + 1) // 3
    some = b""
    for patches in result["pixel_values_videos"]:
        patches = (patches[:n_patches] * 255).round().astype(np.uint8)
        for at in (0, n_patches - 1):   # the first and the last, in either order of patches
            some += patches[at][:48].tobytes()
    stamps = [f"{int(s // 60):02d}:{int(s % 60):02d}" for s in about.timestamps]
    lines.append(f"{name} {sampled} {total} {about.fps:.12g} {about.width} {about.height} {rows} "
                 f"{columns} {','.join(map(str, about.frames_indices))} {','.join(stamps)} "
                 f"{some.hex()}")


def refuse(name, words, data=None):
    if data is not None:
        (OUT / name).write_bytes(data)
    lines.append(f"{name} refused {words}")


# ---- What is seen -------------------------------------------------------------------------

film("ten.mp4", "libx264", 10, 5)
look("ten.mp4", 4)
film("short.mp4", "libx264", 3, 5)
look("short.mp4", 32)
film("thirty-one.webm", "libvpx-vp9", 31, 10)
look("thirty-one.webm", 32)
look("thirty-one.webm", 7)
film("one.mp4", "libx264", 1, 24)
look("one.mp4", 32)
film("minutes.mkv", "libx264", 12, 1, times=[i * 11_000 for i in range(12)])
look("minutes.mkv", 5)
film("variable.mkv", "libx264", 8, 30, times=[0, 100, 150, 1000, 1040, 1100, 3000, 3200])
look("variable.mkv", 4)
film("hevc.mp4", "libx265", 8, 5)
look("hevc.mp4", 3)
film("vp8.webm", "libvpx", 31, 10)
look("vp8.webm", 4)
film("mpeg4.avi", "mpeg4", 6, 10)
look("mpeg4.avi", 3)
film("motion.mov", "mjpeg", 5, 5, pixels="yuvj420p")
look("motion.mov", 2)
film("av1.mp4", "libsvtav1", 6, 5)
look("av1.mp4", 3)
film("wide.mp4", "libx264", 4, 4, size=(320, 24))
look("wide.mp4", 2)

# Filmed sideways: the matrix of the track header says a quarter turn.
data = bytearray((OUT / "ten.mp4").read_bytes())
at = data.index(b"tkhd") + 4 + 40
data[at:at + 36] = struct.pack(">9i", 0, 1 << 16, 0, -(1 << 16), 0, 0, 0, 0, 1 << 30)
(OUT / "turned.mp4").write_bytes(data)
look("turned.mp4", 2)

# ---- What is cut or no video ----------------------------------------------------------------

film("whole.mp4", "libx264", 20, 5, movflags="faststart")
whole = (OUT / "whole.mp4").read_bytes()
(OUT / "whole.mp4").unlink()
start = whole.index(b"mdat") + 4
(OUT / "truncated.mp4").write_bytes(whole[:start + (len(whole) - start) // 2])
refuse("headless.mp4", "a damaged or truncated video: its", (OUT / "ten.mp4").read_bytes()[:900])
refuse("no-frame.mp4", "a damaged or truncated video", whole[:start + 4])
sound = io.BytesIO()
container = av.open(sound, "w", format="mp4")
stream = container.add_stream("aac", rate=16000)
stream.layout = "mono"
tone = (8000 * np.sin(np.arange(4096) / 9)).astype(np.int16)[None]
packed = av.AudioFrame.from_ndarray(tone, format="s16", layout="mono")
packed.sample_rate = 16000
for packet in [*stream.encode(packed), *stream.encode(None)]:
    container.mux(packet)
container.close()
refuse("sound.mp4", "a file without video: it holds sound (aac)", sound.getvalue())
film("ffv1.mkv", "ffv1", 2, 5, size=(16, 16))
refuse("ffv1.mkv", "a video in ffv1; H.264, HEVC, VP8, VP9, AV1, MPEG-4 and")
refuse("page.mp4", "an HTML page; MP4, QuickTime, Matroska, WebM and AVI are read",
       b"<html><body>sign in</body></html>\n")
refuse("picture.mp4", "a PNG picture, no video: give it with --image",
       (HERE / "pictures" / "one.png").read_bytes())
refuse("empty.mp4", "an empty file, no video", b"")
(HERE / "clips.txt").write_text("\n".join(lines) + "\n")
print(len(lines), "lines,", sum(p.stat().st_size for p in OUT.iterdir()), "bytes")
