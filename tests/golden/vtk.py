#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""vtk.py CHECKPOINT IMAGE ORIGIN SPACING FIELD... - judges what VTK is to show of a checkpoint.

CHECKPOINT is one file, or the index of one with a file for each node. IMAGE is that itself, or
a file of gs-ckpt vtk: VTKHDF, or XML if it ends in .vti.
ORIGIN and SPACING are numbers, x first: 0,0,0. FIELD is PATH for one at points, PATH:cells for
one in cells. The image has these and no others, in the layout of the VTKHDF specification
(ImageData, version 1.0) or of VTK's XML, with the numbers of the checkpoint. If VTK is there, it
reads it, too: every number at its place.

Exit status 77: h5py is not there.
"""
import re
import sys
import xml.etree.ElementTree as ElementTree

try:
    import h5py
    import numpy as np
except ImportError as error:
    print("skip: %s (Debian: python3-h5py)" % error)
    sys.exit(77)
try:
    from vtkmodules.util.numpy_support import vtk_to_numpy
    from vtkmodules.vtkCommonCore import reference, vtkVersion
    from vtkmodules.vtkIOHDF import vtkHDFReader
    from vtkmodules.vtkIOXML import vtkXMLImageDataReader
    VTK = (vtkVersion.GetVTKMajorVersion(), vtkVersion.GetVTKMinorVersion())
except ImportError:
    VTK = None

IDENTITY = (1, 0, 0, 0, 1, 0, 0, 0, 1)
XML_TYPES = {"Float32": "<f4", "Float64": "<f8", "Int8": "<i1", "Int16": "<i2", "Int32": "<i4",
             "Int64": "<i8", "UInt8": "<u1", "UInt16": "<u2", "UInt32": "<u4", "UInt64": "<u8"}


def require(condition, *text):
    if not condition:
        sys.exit("%s: %s" % (sys.argv[2], " ".join(str(word) for word in text)))


class Image:
    """What is expected: extent, x first, and by group and name the numbers, (z,) y, x (, c)."""

    def __init__(self, checkpoint, fields):
        self.values = {"PointData": {}, "CellData": {}}
        self.paths = {}
        shapes = []
        with h5py.File(checkpoint, "r") as file:
            for field in fields:
                path, _, cells = field.partition(":")
                name = path.split("/", 2)[2].replace("/", "_")
                self.values["CellData" if cells else "PointData"][name] = file[path][()]
                self.paths[name] = path
                shapes.append((file[path].shape, bool(cells)))
        self.dims = min(3, min(len(shape) for shape, _ in shapes))
        points = [n + shapes[0][1] for n in shapes[0][0][:self.dims]]
        for shape, cells in shapes:
            require([n + cells for n in shape[:self.dims]] == points, "other shapes:", shapes)
        self.points = points[::-1] + [1] * (3 - self.dims)

    def extent(self):
        return [number for n in self.points for number in (0, n - 1)]


# ---- VTKHDF, as its specification says ----

def check_attributes(group, image, origin, spacing):
    require(set(group.attrs) == {"Version", "Type", "WholeExtent", "Origin", "Spacing",
                                 "Direction"}, "attributes", list(group.attrs))
    kind = h5py.h5a.open(group.id, b"Type").get_type()
    require(isinstance(kind, h5py.h5t.TypeStringID) and not kind.is_variable_str()
            and kind.get_cset() == h5py.h5t.CSET_ASCII and kind.get_size() == 9,
            "Type is no string of fixed length in ASCII")
    require(bytes(group.attrs["Type"]) == b"ImageData", "Type", group.attrs["Type"])
    for name, right, whole in (("Version", (1, 0), True), ("WholeExtent", image.extent(), True),
                               ("Origin", origin, False), ("Spacing", spacing, False),
                               ("Direction", IDENTITY, False)):
        found = group.attrs[name]
        require(found.dtype.kind == ("i" if whole else "f") and found.dtype.itemsize == 8, name,
                "is of", found.dtype)
        require(list(found) == list(right), name, "is", list(found), "not", list(right))


def check_hdf(image, origin, spacing, linked):
    with h5py.File(sys.argv[2], "r") as file:
        group = file["VTKHDF"]
        check_attributes(group, image, origin, spacing)
        require({name for name, fields in image.values.items() if fields} == set(group), "groups",
                list(group))
        for place in group:
            fields = image.values[place]
            require(set(group[place]) == set(fields), place, "has", list(group[place]))
            for name, right in fields.items():
                data = group[place][name]
                require(data.shape == right.shape and data.dtype == right.dtype, name, "is",
                        data.shape, data.dtype)
                require(np.array_equal(data[()], right), name, "has other numbers")
                link = group[place].get(name, getlink=True)
                if linked:
                    require(isinstance(link, h5py.SoftLink), name, "is no link")
                    require(link.path == image.paths[name], name, "links to", link.path)
                    require(data == file[image.paths[name]], name, "is a copy")
                else:
                    require(isinstance(link, h5py.HardLink), name, "is a link")
    print("h5py: VTKHDF as specified")


# ---- VTK's XML, with data behind it ----

def check_xml(image, origin, spacing):
    with open(sys.argv[2], "rb") as stream:
        data = stream.read()
    match = re.search(rb'<AppendedData encoding="raw">\s*_', data)
    end = b"\n  </AppendedData>\n</VTKFile>\n"
    require(match and data.endswith(end), "no data behind it")
    root = ElementTree.fromstring(data[:match.end()] + end)
    require(root.attrib == {"type": "ImageData", "version": "1.0", "byte_order": "LittleEndian",
                            "header_type": "UInt64"}, root.attrib)
    grid, taken = root.find("ImageData"), []
    for name, right in (("WholeExtent", image.extent()), ("Origin", origin),
                        ("Spacing", spacing)):
        require([float(n) for n in grid.get(name).split()] == list(right), name, grid.get(name))
    piece = grid.find("Piece")
    require(piece.get("Extent") == grid.get("WholeExtent"), "Extent", piece.get("Extent"))
    for place, fields in image.values.items():
        arrays = {array.get("Name"): array for array in piece.find(place)}
        require(set(arrays) == set(fields), place, "has", list(arrays))
        for name, right in fields.items():
            array, kind = arrays[name], XML_TYPES[arrays[name].get("type")]
            begin = match.end() + int(array.get("offset"))
            size = int(np.frombuffer(data, "<u8", 1, begin)[0])
            taken.append((begin, begin + 8 + size))
            require(right.dtype == kind or (right.dtype == "<f2" and kind == "<f4"), name, kind)
            require(size == right.size * int(kind[2:]), name, "has", size, "bytes")
            require(int(array.get("NumberOfComponents")) == components(image, right), name)
            found = np.frombuffer(data, kind, right.size, begin + 8).reshape(right.shape)
            require(np.array_equal(found, right), name, "has other numbers")
    taken = [(0, match.end())] + sorted(taken) + [(len(data) - len(end), 0)]
    require(all(one[1] == next[0] for one, next in zip(taken, taken[1:])), "fields at", taken)
    print("XML as VTK's")


# ---- VTK itself ----

def components(image, values):
    return values.shape[image.dims] if values.ndim > image.dims else 1


def find(found, place, point, spacing):
    """VTK's number of a point, or of the cell that begins there."""
    if place == "PointData":
        number = found.FindPoint(point)
        require(np.allclose(found.GetPoint(number), point), "a point is at",
                found.GetPoint(number), "not", point)
        return number
    dims = [n > 1 for n in found.GetDimensions()]
    number = found.FindCell([p + s * d / 2 for p, s, d in zip(point, spacing, dims)], None, 0, 0,
                            reference(0), [0, 0, 0], [0] * 8)
    corner = found.GetCell(number).GetBounds()[::2]
    require(np.allclose(corner, point), "a cell begins at", corner, "not", point)
    return number


def check_vtk(image, origin, spacing):
    """Every number where index, origin and spacing say."""
    reader = vtkXMLImageDataReader() if sys.argv[2].endswith(".vti") else vtkHDFReader()
    require(reader.CanReadFile(sys.argv[2]), "VTK does not read it")
    reader.SetFileName(sys.argv[2])
    reader.Update()
    found = reader.GetOutputDataObject(0)
    require(found.GetClassName() == "vtkImageData", found.GetClassName())
    require(list(found.GetExtent()) == image.extent(), "extent", found.GetExtent())
    for place, fields in image.values.items():
        data = found.GetPointData() if place == "PointData" else found.GetCellData()
        require({data.GetArrayName(i) for i in range(data.GetNumberOfArrays())} == set(fields),
                place, "has other arrays")
        for name, right in fields.items():
            array = vtk_to_numpy(data.GetArray(name))
            count = components(image, right)
            right = right.reshape(-1, count)
            require(array.size == right.size, name, "has", array.size, "numbers")
            array = array.reshape(-1, count)
            extents = [n - (place == "CellData" and n > 1) for n in image.points]
            step = len(right) // 1000 + 1  # of many some
            for row in list(range(0, len(right), step)) + [len(right) - 1]:
                z, y, x = np.unravel_index(row, extents[::-1])
                number = find(found, place, [o + s * i for o, s, i in
                                             zip(origin, spacing, (x, y, z))], spacing)
                require(np.array_equal(array[number], right[row]), name, "at", (x, y, z),
                        "is", array[number], "not", right[row])
    print("VTK %d.%d reads the numbers at their places" % VTK)


def main():
    origin, spacing = ([float(n) for n in text.split(",")] for text in sys.argv[3:5])
    image = Image(sys.argv[1], sys.argv[5:])
    xml = sys.argv[2].endswith(".vti")
    print("%s: " % sys.argv[2].rsplit("/", 1)[-1], end="")
    if xml:
        check_xml(image, origin, spacing)
    else:
        check_hdf(image, origin, spacing, sys.argv[1] == sys.argv[2])
    if not VTK:
        print("not read by VTK: it is not there (Debian: python3-vtk9)")
    elif not xml and VTK < (9, 3) and (image.dims == 2 or image.values["CellData"]):
        # Earlier versions end in 2 dimensions, and give an error in cells.
        print("not read by VTK %d.%d, which does not know 2 dimensions or cells" % VTK)
    else:
        check_vtk(image, origin, spacing)


main()
