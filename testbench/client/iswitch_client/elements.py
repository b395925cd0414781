"""Element types of data packets: rounding of binary32 numbers to 16 bits, and widening (SPEC.md, D-8)."""

import math
import struct
from enum import IntEnum


class ElementType(IntEnum):
    """Type of the elements of a data packet, with its code."""

    F32 = 0
    BF16 = 1
    F16 = 2

    @classmethod
    def of(cls, name: str) -> "ElementType":
        return cls[name.upper()]

    def __str__(self) -> str:
        return self.name.lower()

    @property
    def size(self) -> int:
        """Returns the number of bytes in an element."""
        return 4 if self == ElementType.F32 else 2

    def round(self, numbers: list[float]) -> list[float]:
        """Rounds numbers of binary32 to this type."""
        if self == ElementType.F32:
            return numbers
        shape = SHAPES[self]
        return [shape.nearest(number) for number in numbers]

    def pack(self, numbers: list[float]) -> bytes:
        """Encodes numbers of binary32, rounded to this type."""
        rounded = self.round(numbers)
        if self != ElementType.BF16:
            return struct.pack(f"<{len(rounded)}{FORMATS[self]}", *rounded)
        halves = struct.unpack(f"<{2 * len(rounded)}H", struct.pack(f"<{len(rounded)}f", *rounded))
        return struct.pack(f"<{len(rounded)}H", *halves[1::2])

    def unpack(self, data: bytes) -> list[float]:
        """Decodes numbers, which is exact."""
        count = len(data) // self.size
        if self != ElementType.BF16:
            return list(struct.unpack(f"<{count}{FORMATS[self]}", data))
        halves = [0] * (2 * count)
        halves[1::2] = struct.unpack(f"<{count}H", data)
        return list(struct.unpack(f"<{count}f", struct.pack(f"<{2 * count}H", *halves)))


class Shape:
    """Precision and range of a 16-bit type."""

    def __init__(self, precision: int, smallest: int, limit: int):
        """Takes the bits of a significand, and the exponents of the smallest positive number and of the first power of two out of range."""
        self.precision, self.smallest = precision, smallest
        self.limit = math.ldexp(1.0, limit)

    def nearest(self, number: float) -> float:
        """Returns the nearest number of the type, the even one of two, or an infinity if the number is out of range."""
        if not math.isfinite(number):
            # `struct` encodes math.nan as the NaN that SPEC.md requires.
            return math.nan if math.isnan(number) else number
        # Distance between the numbers of the type around this one. Divisions by powers of two are exact, and `round` chooses the even one.
        step = math.ldexp(1.0, max(math.frexp(number)[1] - self.precision, self.smallest))
        magnitude = round(abs(number) / step) * step
        return math.copysign(magnitude if magnitude < self.limit else math.inf, number)


FORMATS = {ElementType.F32: "f", ElementType.F16: "e"}
SHAPES = {ElementType.BF16: Shape(8, -133, 128), ElementType.F16: Shape(11, -24, 16)}
