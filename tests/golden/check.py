#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""check.py FILE [RANKS] - judges a checkpoint by doc/checkpoint-format.md, without gradsync.

With RANKS the file has the state of state.c, written by so many: every array is looked at, too.
Exit status 77: h5py is not there.
"""
import struct
import sys

try:
    import h5py
    import numpy as np
except ImportError as error:
    print("skip: %s (Debian: python3-h5py)" % error)
    sys.exit(77)

TRAILER_BYTES = 4096
BLOCK_BYTES = 8 << 20
PAGE = 4096
UNITS = "nanoseconds since 1970-01-01 00:00:00 UTC"
FLOATS = {  # size, sign at, exponent at, its bits, mantissa at, its bits, bias
    "f16": (2, 15, 10, 5, 0, 10, 15),
    "bf16": (2, 15, 7, 8, 0, 7, 127),
    "f32": (4, 31, 23, 8, 0, 23, 127),
    "f64": (8, 63, 52, 11, 0, 52, 1023),
}
BITS_F16 = (0, 0x8000, 0x3c00, 0x7bff, 0x0001, 0x0400, 0x7c00, 0xfc00, 0x7e00)
BITS_BF16 = (0, 0x8000, 0x3f80, 0x7f7f, 0x0001, 0x0080, 0x7f80, 0xff80, 0x7fc0)


def require(condition, *text):
    if not condition:
        sys.exit("%s: %s" % (sys.argv[1], " ".join(str(word) for word in text)))


# ---- The trailer, without HDF5 ----

def make_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82f63b78 if value & 1 else 0)
        table.append(value)
    return table


TABLE = make_table()


def crc32c(data):
    crc, table = 0xffffffff, TABLE
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xff]
    return crc ^ 0xffffffff


def check_trailer(data):
    """The rows of the table of blocks, and the words of the trailer."""
    require(len(data) >= TRAILER_BYTES, "too short")
    words = struct.unpack("<512Q", data[-TRAILER_BYTES:])
    require(data[-TRAILER_BYTES:][:8] == b"GRDSCKP1", "no trailer")
    require(words[511] == crc32c(data[-TRAILER_BYTES:-8]), "checksum of the trailer")
    require(words[1] == 1, "version", words[1])
    require(words[2] == len(data), "length", words[2])
    require(not any(words[10:17] + words[20:511]), "words that are not in use are not zero")
    require(words[19] == crc32c(data[words[17]:words[17] + words[18]]), "checksum of the index")
    require(words[4] == crc32c(data[:words[3]]), "checksum of the beginning")
    table = data[words[5]:words[5] + 24 * words[6]]
    require(words[7] == crc32c(table), "checksum of the table")
    rows = [struct.unpack_from("<3Q", table, 24 * i) for i in range(words[6])]
    for offset, size, crc in rows:
        require(0 < size <= BLOCK_BYTES and offset >= words[3], "block at", offset)
        require(crc == crc32c(data[offset:offset + size]), "checksum of the block at", offset)
    return rows, words


def check_superblock(data):
    require(data[:8] == b"\x89HDF\r\n\x1a\n", "no HDF5 signature")
    require(data[8] == 2, "superblock of version", data[8])
    base, extension, end = struct.unpack_from("<3Q", data, 12)
    require(data[9] == 8 and data[10] == 8 and data[11] == 0, "sizes or flags of the superblock")
    require(base == 0 and extension == 2 ** 64 - 1, "base or extension of the superblock")
    require(end == len(data), "HDF5's end is", end)


# ---- Objects ----

def float_name(kind):
    for name, (size, sign, exponent_at, exponent, mantissa_at, mantissa, bias) in FLOATS.items():
        if (kind.get_size(), kind.get_ebias()) == (size, bias) and kind.get_fields() == (
                sign, exponent_at, exponent, mantissa_at, mantissa):
            require(kind.get_order() == h5py.h5t.ORDER_LE, name, "is not little endian")
            require(kind.get_precision() == 8 * size and not kind.get_offset(), name, "padded")
            require(kind.get_norm() == h5py.h5t.NORM_IMPLIED, name, "has its highest bit")
            return name
    return "unknown float"


def type_name(kind):
    """The name in the table of types of the document."""
    if isinstance(kind, h5py.h5t.TypeFloatID):
        return float_name(kind)
    if isinstance(kind, h5py.h5t.TypeIntegerID):
        bits = 8 * kind.get_size()
        require(kind.get_order() == h5py.h5t.ORDER_LE, "an integer is not little endian")
        require(kind.get_precision() == bits and kind.get_offset() == 0, "an integer is padded")
        return ("u" if kind.get_sign() == h5py.h5t.SGN_NONE else "i") + str(bits)
    members = [(kind.get_member_name(i), kind.get_member_offset(i),
                type_name(kind.get_member_type(i))) for i in range(kind.get_nmembers())]
    for name, part, size in (("c64", "f32", 4), ("c128", "f64", 8)):
        if members == [(b"r", 0, part), (b"i", size, part)] and kind.get_size() == 2 * size:
            return name
    return "unknown compound"


def text_of(data, name):
    """An attribute: one string in UTF-8 of exactly its length."""
    attribute = h5py.h5a.open(data.id, name.encode())
    kind = attribute.get_type()
    require(isinstance(kind, h5py.h5t.TypeStringID) and not kind.is_variable_str()
            and kind.get_cset() == h5py.h5t.CSET_UTF8
            and kind.get_strpad() == h5py.h5t.STR_NULLPAD, name, "is no text")
    require(attribute.shape == (), name, "is no scalar")
    text = data.attrs[name]
    text = bytes(text) if isinstance(text, bytes) else text.encode()
    require(len(text) == kind.get_size(), name, "has", kind.get_size(), "bytes")
    return text.decode()


def look(file):
    """name: (type, shape, offset, bytes, attributes)."""
    found = {}

    def visit(name, data):
        if not isinstance(data, h5py.Dataset):
            return
        kind, creation = data.id.get_type(), data.id.get_create_plist()
        require(creation.get_layout() == h5py.h5d.CONTIGUOUS, name, "is not contiguous")
        require(creation.get_nfilters() == 0 and creation.get_external_count() == 0, name)
        found["/" + name] = (type_name(kind), data.shape, data.id.get_offset(),
                             kind.get_size() * int(np.prod(data.shape, dtype=np.int64)),
                             {key: text_of(data, key) for key in data.attrs})

    file.visititems(visit)
    return found


def check_objects(found, rows, words, data):
    """That all is where the document says, and the table covers all data sets but two."""
    require({name.split("/")[1] for name in found} <= {"replicated", "sharded", "rank", "gs"},
            "other groups")
    own = {"/gs/step": ("i64", ()), "/gs/time": ("i64", ()), "/gs/ranks": ("i64", ()),
           "/gs/blocks": ("u64", (len(rows), 3)), "/gs/complete": ("u64", (512,))}
    if words[18]:  # since 0.1
        own["/gs/index"] = ("u8", (words[18],))
        require(found["/gs/index"][2] == words[17], "the place of the index")
    for name, kind in own.items():
        require(found[name][:2] == kind, name, "is", found[name][:2])
    require(found["/gs/time"][4] == {"units": UNITS}, "units of /gs/time")
    require(found["/gs/blocks"][2] == words[5], "the place of the table")
    require(found["/gs/complete"][2] == len(data) - TRAILER_BYTES, "the place of the trailer")
    cuts, covered = [], [(0, words[3])]
    for name, (_, shape, offset, size, texts) in found.items():
        if size:
            require(size < PAGE or offset % PAGE == 0, name, "is at", offset)
            covered.append((offset, size))
        if name not in ("/gs/blocks", "/gs/complete"):
            cuts += [(offset + at, min(BLOCK_BYTES, size - at))
                     for at in range(0, size, BLOCK_BYTES)]
        if name not in own:
            require(texts["gs_order"] in ("C", "Fortran"), name, "has no gs_order")
            require(("gs_bounds" in texts) == (texts["gs_order"] == "Fortran"), name, "gs_bounds")
        if name.startswith("/rank/"):
            require(shape[0] == words[9], name, "is of", shape[0], "ranks")
    require(sorted(cuts) == sorted(row[:2] for row in rows), "the table does not cover the data")
    require([row[0] for row in rows[-3:]] == [found["/gs/" + name][2] for name in
                                              ("step", "time", "ranks")], "the last rows")
    end = 0
    for offset, size in sorted(covered):
        require(offset >= end, "data sets overlap at", offset)
        require(not any(data[end:offset]), "there are data between data sets, at", end)
        end = offset + size


# ---- The state of state.c ----

def state(ranks):
    kinds = ["f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64",
             "c64", "c128"]
    arrays = [("/replicated/types/" + kind, kind, (3, 5)) for kind in kinds]
    return arrays + [
        ("/replicated/bits/f16", "f16", (9,)), ("/replicated/bits/bf16", "bf16", (9,)),
        ("/replicated/model/conv1/weight", "f32", (33, 32)), ("/replicated/step", "i64", ()),
        ("/replicated/empty", "f32", (0, 7)), ("/sharded/u", "f64", (6, 10)),
        ("/sharded/ocean/temp", "c64", (4, 3, 5)), ("/sharded/flags", "u8", (13,)),
        ("/rank/rng", "u64", (ranks, 4)), ("/rank/seed", "i32", (ranks,))]


def element(number, kind, i):
    small = (number * 37 + i * 11) % 101
    if kind[0] in "iu":
        every = 2 ** int(kind[1:])
        bits = (small + 1) * 0x0102030405060708 % every
        return bits - every if kind[0] == "i" and bits >= every // 2 else bits
    fine = {"f32": 2 ** -18, "c64": 2 ** -18, "f64": 2 ** -40, "c128": 2 ** -40}.get(kind, 0)
    real = (small - 50) / 4 + fine
    if kind[0] == "c":
        return complex(real, ((small + 11) % 101 - 50) / 4 - fine)
    return real


def check_bits(name, offset, data, values, bits):
    """Patterns of two bytes, as they are and as HDF5 understands them."""
    require(struct.unpack_from("<9H", data, offset) == bits, name, "has other bits")
    if name.endswith("bf16"):
        wide = np.array([pattern << 16 for pattern in bits], np.uint32).view(np.float32)
    else:
        wide = np.array(bits, np.uint16).view(np.float16).astype(np.float32)
    got = np.asarray(values, np.float32)
    require(np.array_equal(got, wide, equal_nan=True), name, "is read as", got)
    require(np.signbit(got[1]), name, "has no negative zero")


def check_state(file, found, data, ranks):
    texts = {"/sharded/u": {"gs_order": "Fortran", "gs_bounds": "(0:9, -2:3)", "units": "m s-1",
                            "long_name": "Str\u00f6mung"},
             "/rank/seed": {"gs_order": "Fortran", "gs_bounds": "()"}}
    arrays = state(ranks)
    require({name for name in found if not name.startswith("/gs/")} ==
            {name for name, _, _ in arrays}, "other arrays")
    for number, (name, kind, shape) in enumerate(arrays):
        require(found[name][:2] == (kind, shape), name, "is", found[name][:2])
        require(found[name][4] == texts.get(name, {"gs_order": "C"}), name, "has", found[name][4])
        values = file[name][()]
        if "/bits/" in name:
            bits = BITS_F16 if kind == "f16" else BITS_BF16
            check_bits(name, found[name][2], data, values, bits)
            continue
        if kind[0] == "c":
            require(values.dtype == {"c64": np.complex64, "c128": np.complex128}[kind], name)
        values = [value.item() for value in np.asarray(values).reshape(-1)]
        right = [element(number, kind, i) for i in range(len(values))]
        require(values == right, name, "is", values, "not", right)


def main():
    with open(sys.argv[1], "rb") as stream:
        data = stream.read()
    require(crc32c(b"123456789") == 0xe3069283, "this program's CRC32C is wrong")
    rows, words = check_trailer(data)
    check_superblock(data)
    with h5py.File(sys.argv[1], "r") as file:
        found = look(file)
        check_objects(found, rows, words, data)
        require(file["/gs/step"][()] == words[8], "/gs/step")
        require(file["/gs/ranks"][()] == words[9], "/gs/ranks")
        require(10 ** 18 < file["/gs/time"][()] < 10 ** 19, "/gs/time")
        if len(sys.argv) > 2:
            require(words[9] == int(sys.argv[2]), "written by", words[9], "ranks")
            check_state(file, found, data, words[9])
    print("%s: %d data sets, %d blocks" % (sys.argv[1], len(found), len(rows)))


if __name__ == "__main__":
    main()
