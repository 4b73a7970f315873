#!/usr/bin/env python3
"""tests/golden/media/pictures.py -- Awkward pictures, and what Pillow and transformers make of
them. Needs pillow, numpy, torch, torchvision and transformers; writes this folder's pictures/
and pictures.txt:

    NAME BUDGET WIDTH HEIGHT CRC ROWS COLUMNS CRC PATCHES     what is seen
    NAME refused WORDS                                        what must be said

WIDTH, HEIGHT and the first CRC (zlib's) are of the decoded pixels: Pillow, turned as EXIF says,
transformers' convert_to_rgb. ROWS, COLUMNS (in soft tokens) and the second CRC are of the
patches of Gemma4ImageProcessor (torchvision's resize) as bytes, those of a soft token
beside each other. PATCHES holds the first 48 bytes of 6 of them, evenly spread, in hexadecimal."""
import io
import shutil
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps
from transformers.image_transforms import convert_to_rgb
from transformers.models.gemma4.image_processing_gemma4 import Gemma4ImageProcessor

HERE = Path(__file__).resolve().parent
OUT = HERE / "pictures"
shutil.rmtree(OUT, ignore_errors=True)
OUT.mkdir()
rng = np.random.default_rng(4)
lines = []


def scene(width, height):
    """Smooth colors with hard edges: compresses well, and shows every shift and swap."""
    y, x = np.mgrid[0:height, 0:width].astype(float)
    red = 255 * x / max(width - 1, 1)
    green = 255 * y / max(height - 1, 1)
    blue = 127 + 120 * np.sin(x / 5 + y / 9)
    image = np.stack([red, green, blue], -1)
    image[height // 3: height // 2, width // 4: width // 2] = (250, 240, 10)
    return image.round().astype(np.uint8)


def png(name, rows, color, bits, width, height, extra=b"", interlaced=False):
    """A PNG file of rows of bytes: what Pillow can't write."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(
            ">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, int(interlaced))
    (OUT / name).write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra +
                             chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def save(name, image, **how):
    image.save(OUT / name, **how)


def orientation(value, order="<"):
    tiff = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", 8)
    entry = struct.pack(order + "HHIHH", 0x0112, 3, 1, value, 0)
    return b"Exif\0\0" + tiff + struct.pack(order + "H", 1) + entry + struct.pack(order + "I", 0)


# ---- The pictures ------------------------------------------------------------------------

small = Image.fromarray(scene(60, 45))
save("one.png", Image.fromarray(scene(1, 1)))
save("tall.png", Image.fromarray(scene(3, 900)))
save("wide.png", Image.fromarray(scene(900, 3)))
save("thin.png", Image.fromarray(scene(4000, 2)))
save("long.png", Image.fromarray(scene(20000, 20) // 64 * 64), optimize=True)
save("line.png", Image.new("RGB", (20000, 1), (9, 99, 199)), optimize=True)
save("multiple.png", Image.fromarray(scene(96, 48)))
save("fits.png", Image.fromarray(scene(384, 384) // 32 * 32), optimize=True)
save("near.png", Image.fromarray(scene(95, 49)))
save("photo.jpg", Image.fromarray(scene(333, 250)), quality=85)
save("progressive.jpg", small, quality=85, progressive=True)
save("subsampled.jpg", Image.fromarray(scene(37, 29)), quality=80, subsampling=2)
save("grey.jpg", small.convert("L"), quality=80)
save("cmyk.jpg", small.convert("CMYK"), quality=90)
save("lossy.webp", small, quality=80)
alpha = np.dstack([scene(60, 45), np.tile(np.linspace(0, 255, 60).astype(np.uint8), (45, 1))])
save("alpha.png", Image.fromarray(alpha, "RGBA"))
save("alpha.webp", Image.fromarray(alpha, "RGBA"), lossless=True)
save("alpha-lossy.webp", Image.fromarray(alpha, "RGBA"), quality=70)
save("grey-alpha.png", Image.fromarray(alpha, "RGBA").convert("LA"))
save("palette.png", small.quantize(12))
save("palette-alpha.png", small.quantize(7), transparency=3)
save("one-bit.png", small.convert("1"))
save("grey-key.png", small.convert("L").point(lambda v: v // 16 * 16), transparency=64)
ramp = np.linspace(0, 65535, 64).astype(">u2")
png("grey16.png", b"".join(b"\0" + ramp.tobytes() for _ in range(9)), 0, 16, 64, 9)
deep = (scene(23, 17).astype(np.uint16) * 257 + 91) .astype(">u2")
png("rgb16.png", b"".join(b"\0" + row.tobytes() for row in deep), 2, 16, 23, 17)
deep4 = np.dstack([deep, np.tile(np.linspace(0, 65535, 23), (17, 1))]).astype(">u2")
png("rgba16.png", b"".join(b"\0" + row.tobytes() for row in deep4), 6, 16, 23, 17)
two = rng.integers(0, 256, (13, 5), dtype=np.uint8)
png("two-bit.png", b"".join(b"\0" + row.tobytes() for row in two), 0, 2, 19, 13)
passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
mixed = scene(21, 11)
adam = b"".join(b"\0" + mixed[y, x0::dx].tobytes() for x0, y0, dx, dy in passes
                for y in range(y0, 11, dy) if mixed[y, x0::dx].size)
png("interlaced.png", adam, 2, 8, 21, 11, interlaced=True)
sided = Image.fromarray(scene(24, 16))
for o in range(1, 9):
    save(f"exif-{o}.jpg", sided, quality=92, exif=orientation(o, "<>"[o % 2]))
save("exif-broken.jpg", sided, quality=92, exif=orientation(6)[:20])
png("exif.png", b"".join(b"\0" + row.tobytes() for row in scene(24, 16)), 2, 8, 24, 16,
    extra=chunk(b"eXIf", orientation(6)[6:]))
save("exif.webp", sided, lossless=True, exif=orientation(8))

seen = sorted(path.name for path in OUT.iterdir() if path.suffix in (".png", ".jpg", ".webp"))

png("large.png", b"\0" * 1251 * 10000, 0, 1, 10000, 10000)   # for its memory alone

# ---- Those that are refused ---------------------------------------------------------------

refused = {}


def refuse(name, data, words):
    (OUT / name).write_bytes(data)
    refused[name] = words


def bytes_of(image, **how):
    buffer = io.BytesIO()
    image.save(buffer, **how)
    return buffer.getvalue()


photo = bytes_of(Image.fromarray(scene(120, 90)), format="JPEG", quality=85)
refuse("truncated.jpg", photo[:len(photo) // 2], "a truncated JPEG picture")
webp = bytes_of(small, format="WEBP", quality=80)
refuse("truncated.webp", webp[:len(webp) // 2], "damaged")
whole = bytes_of(small, format="PNG")
refuse("truncated.png", whole[:len(whole) // 2], "a damaged or truncated PNG picture")
refuse("header.png", whole[:24], "a damaged or truncated PNG picture")
refuse("page.jpg", b"<!DOCTYPE html>\n<html><body>not found</body></html>\n", "an HTML page")
refuse("empty.png", b"", "an empty file")
refuse("picture.gif", bytes_of(small.quantize(4), format="GIF"), "a GIF picture")
refuse("text.png", b"no picture at all\n", "no picture; JPEG, PNG and WebP are read")
first = [Image.new("RGB", (8, 8), c) for c in ("red", "blue")]
refuse("animated.webp", bytes_of(first[0], format="WEBP", save_all=True, append_images=first[1:]),
       "an animated WebP")
png("bomb.png", b"\0" * 7501 * 40, 0, 1, 60000, 60000)
refused["bomb.png"] = "60000 x 60000 pixels; at most"
bomb = bytearray(bytes_of(Image.new("L", (8, 8)), format="JPEG"))
at = bomb.index(b"\xff\xc0")
bomb[at + 5:at + 9] = struct.pack(">HH", 60000, 60000)
refuse("bomb.jpg", bytes(bomb), "60000 x 60000 pixels; at most")

# ---- What is seen -------------------------------------------------------------------------


def packed(patches, positions):
    """Patches in their own order -> those of a soft token beside each other."""
    columns = int(positions[:, 0].max()) + 1
    key = [(y // 3 * (columns // 3) + x // 3) * 9 + y % 3 * 3 + x % 3 for x, y in positions]
    out = np.empty_like(patches)
    out[key] = patches
    return out


def look(name, budget):
    image = Image.open(OUT / name)
    if image.mode.startswith("I"):   # Pillow clips 16 bits of grey to white: the upper 8 are meant
        image = Image.fromarray((np.array(image).astype(np.uint32) >> 8).astype(np.uint8))
    rgb = convert_to_rgb(ImageOps.exif_transpose(image), return_numpy=True)
    result = Gemma4ImageProcessor(max_soft_tokens=budget)(
        Image.fromarray(rgb), return_tensors="np")
    n_soft = int(result["num_soft_tokens_per_image"][0])
    positions = result["image_position_ids"][0][:9 * n_soft]
    patches = result["pixel_values"][0][:9 * n_soft]
    patches = packed((patches * 255).round().astype(np.uint8), positions)
    columns, rows = (positions.max(0) + 1) // 3
    assert rows * columns == n_soft
    some = b"".join(patches[i * (len(patches) - 1) // 5][:48].tobytes() for i in range(6))
    lines.append(f"{name} {budget} {rgb.shape[1]} {rgb.shape[0]} {zlib.crc32(rgb.tobytes()):08x} "
                 f"{rows} {columns} {zlib.crc32(patches.tobytes()):08x} {some.hex()}")


for name in seen:
    look(name, 70)
for name in ("photo.jpg", "wide.png", "tall.png", "long.png"):
    look(name, 280)
look("thin.png", 1120)
look("exif-6.jpg", 140)
look("near.png", 560)
lines += [f"{name} refused {words}" for name, words in sorted(refused.items())]
(HERE / "pictures.txt").write_text("\n".join(lines) + "\n")
print(len(seen), "seen,", len(refused), "refused,",
      sum(path.stat().st_size for path in OUT.iterdir()), "bytes")
