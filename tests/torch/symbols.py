"""The dynamic symbols of a shared library: what it offers and what it asks of others.

Only what the loader itself reads: 64-bit little-endian ELF, as on x86-64.
"""

import struct

DYNAMIC_SYMBOLS = 11  # SHT_DYNSYM


def dynamic_symbols(file):
    """Names that a library defines, and names that it takes from other libraries; without their versions."""
    with open(file, "rb") as library:
        header = library.read(64)
        assert header[:6] == b"\x7fELF\x02\x01", f"{file} is no 64-bit library"
        [sections_at] = struct.unpack_from("<Q", header, 40)
        size, count = struct.unpack_from("<HH", header, 58)

        def part(at, length):
            library.seek(at)
            return library.read(length)

        sections = [struct.unpack("<IIQQQQIIQQ", part(sections_at + n * size, 64)) for n in range(count)]
        symbols = next(section for section in sections if section[1] == DYNAMIC_SYMBOLS)
        strings = sections[symbols[6]]
        names = part(strings[4], strings[5])
        defined, wanted = set(), set()
        for name, _, _, section, _, _ in struct.iter_unpack("<IBBHQQ", part(symbols[4], symbols[5])):
            text = names[name : names.index(b"\0", name)].decode()
            if text:
                (defined if section else wanted).add(text)
    return defined, wanted
