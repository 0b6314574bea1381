#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_node.py FOLDER [RANKS] - judges a checkpoint with a file for each node, as check.py does.

With RANKS it has the state of state.c, written by so many. What h5py reads from index.h5 is what
the parts have by the map.
"""
import os
import struct
import sys

sys.dont_write_bytecode = True
import check  # noqa: E402
from check import BLOCK_BYTES, TRAILER_BYTES, crc32c, h5py, np, require  # noqa: E402


def fetch(data, offset, size, crc, what):
    require(offset + size <= len(data), what, "is not in the file")
    require(crc32c(data[offset:offset + size]) == crc, "checksum of", what)
    return data[offset:offset + size]


def rows_of(data, row):
    return [struct.unpack_from("<%dQ" % row, data, at) for at in range(0, len(data), 8 * row)]


def check_index(data):
    """Words of the trailer; rows of the tables of blocks, of parts, and of the map."""
    words = struct.unpack("<512Q", data[-TRAILER_BYTES:])
    require(data[-TRAILER_BYTES:][:8] == b"GRDSCKP1" and words[1] == 1, "no trailer")
    require(words[511] == crc32c(data[-TRAILER_BYTES:-8]), "checksum of the trailer")
    require(words[2] == len(data), "length", words[2])
    require(not any(words[20:511]), "words that are not in use are not zero")
    fetch(data, 0, words[3], words[4], "the beginning")
    fetch(data, words[17], words[18], words[19], "the index")
    blocks = rows_of(fetch(data, words[5], 24 * words[6], words[7], "the table"), 3)
    parts = rows_of(fetch(data, words[11], 24 * words[10], words[12], "the parts"), 3)
    row = 5 + 2 * words[14]
    regions = rows_of(fetch(data, words[15], 8 * row * words[13], words[16], "the map"), row)
    return words, blocks, parts, regions


def check_parts(folder, parts):
    """The parts' bytes."""
    files = []
    for number, (size, image, crc) in enumerate(parts):
        path = os.path.join(folder, "part-%04d.h5" % number)
        require(os.path.exists(path) == (size > 0), path, "is there, or not")
        data = b""
        if size:
            with open(path, "rb") as stream:
                data = stream.read()
            require(len(data) == size, path, "has", len(data), "bytes")
            check.check_superblock(data)
            fetch(data, 0, image, crc, "the beginning of " + path)
        files.append(data)
    return files


def check_blocks(blocks, regions, files, index):
    """Rows of the table: those of regions, in their order, and then of the index."""
    wanted = []
    for _, part, offset, size, first in (row[:5] for row in regions):
        require(first == len(wanted), "a region's first block is", first)
        wanted += [(offset + at, min(BLOCK_BYTES, size - at), files[part])
                   for at in range(0, size, BLOCK_BYTES)]
    for name in ["index"] * ("index" in index["/gs"]) + ["step", "time", "ranks", "parts", "map"]:
        data = index["/gs/" + name]
        wanted.append((data.id.get_offset(), data.nbytes, None))
    require(len(wanted) == len(blocks), len(blocks), "blocks, not", len(wanted))
    for (offset, size, crc), (at, length, data) in zip(blocks, wanted):
        require((offset, size) == (at, length), "block at", offset, "is not at", at)
        if data is not None:
            fetch(data, offset, size, crc, "the block at %d" % offset)


def box_of(name, shape, row, dims):
    """The region's offsets and extents in the data set's own dimensions."""
    offsets, extents = row[5:5 + dims], row[5 + dims:5 + 2 * dims]
    if name.startswith("/sharded/"):
        return offsets[:len(shape)], extents[:len(shape)]
    if name.startswith("/rank/"):
        return (offsets[0],) + (0,) * (len(shape) - 1), (1,) + tuple(shape[1:])
    return (0,) * len(shape), tuple(shape)


def assemble(name, data, mine, files, folder, dims):
    """The data set, put together from its regions, whose data sets are where the map says."""
    item = data.id.get_type().get_size()
    whole = np.zeros(data.shape + (item,), np.uint8)
    for number, row in enumerate(mine):
        offsets, extents = box_of(name, data.shape, row, dims)
        require(row[3] == item * int(np.prod(extents, dtype=np.int64)), name, "bytes of a region")
        raw = np.frombuffer(files[row[1]], np.uint8, row[3], row[2]).reshape(extents + (item,))
        box = tuple(slice(a, a + n) for a, n in zip(offsets, extents))
        whole[box] = raw
        path = name if name.startswith("/replicated/") else "%s/%d" % (name, number)
        with h5py.File(os.path.join(folder, "part-%04d.h5" % row[1]), "r") as part:
            require(part[path].id.get_offset() == row[2], path, "is elsewhere")
            require(part[path].shape == extents, path, "has the shape", part[path].shape)
            require(check.text_of(part[path], "gs_offsets") ==
                    "(" + ", ".join(map(str, offsets)) + ")", path, "has other offsets")
    return whole.tobytes()


def main():
    folder, ranks = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
    with open(os.path.join(folder, "index.h5"), "rb") as stream:
        data = stream.read()
    words, blocks, parts, regions = check_index(data)
    check.check_superblock(data)
    require(words[9] == ranks or not ranks, "written by", words[9], "ranks")
    files = check_parts(folder, parts)
    with h5py.File(os.path.join(folder, "index.h5"), "r") as index:
        check_blocks(blocks, regions, files, index)
        require(index["/gs/step"][()] == words[8], "/gs/step")
        names, found, blob = [], {}, b""
        index.visititems(lambda name, item: names.append("/" + name)
                         if isinstance(item, h5py.Dataset) else None)
        arrays = sorted((name for name in names if not name.startswith("/gs/")),
                        key=lambda name: name.encode())
        for number, name in enumerate(arrays):
            item = index[name]
            mine = [row for row in regions if row[0] == number]
            require(item.is_virtual == bool(mine), name, "is virtual, or not")
            whole = assemble(name, item, mine, files, folder, words[14])
            found[name] = (check.type_name(item.id.get_type()), item.shape, len(blob), len(whole),
                           {key: check.text_of(item, key) for key in item.attrs})
            blob += whole
            if found[name][0] in ("f16", "bf16"):
                continue  # h5py converts; check_state looks at bits
            require(item[()].tobytes() == whole, name, "is read with other values")
        if ranks:
            check.check_state(index, found, blob, ranks)
    print("%s: %d parts, %d regions" % (folder, len(parts), len(regions)))


main()
