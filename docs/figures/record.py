#!/usr/bin/env python3
"""Records a command in a terminal and writes the recording as an animated SVG picture.

The picture needs neither scripts nor fonts from elsewhere. It follows the reader's choice of light or dark colours, and
shows only the last frame if the reader prefers reduced motion. Build the program before the recording; otherwise the
picture also shows the build:

    cargo build --release && docs/figures/record.py
"""

import argparse
import codecs
import itertools
import math
import os
import re
import shlex
import shutil
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

COMMAND = ["cargo", "run", "--release", "--", "train", "ppo", "--workers", "4", "--json"]
PROMPT = "$ "
# The progress line of `iswitch train` has up to 118 columns.
COLUMNS = 120

# Output that follows earlier output within this time belongs to the same frame.
SETTLE_SECONDS = 0.01
# Longest time without a change that is kept, in seconds of the run.
WAIT_SECONDS_MAX = 1.0
# The speed is the smallest integer with which the output of the command plays within this time.
PLAY_SECONDS_MAX = 15.0
KEY_SECONDS = 0.04
ENTER_SECONDS = 0.5
HOLD_SECONDS = 6.0
# Intervals between frames, in seconds of the animation. The first one with which the picture is small enough is used.
FRAME_INTERVALS_SECONDS = (0.1, 0.2, 0.4, 0.8)
PICTURE_BYTES_MAX = 150_000

# Lengths in the picture, in units of its view box.
FONT_SIZE = 12
CELL_WIDTH = 7.2
LINE_HEIGHT = 18
MARGIN = 20
CAPTION_HEIGHT = 26

# ANSI colours 0 to 15 on a light background and on a dark one.
LIGHT = ("#24292f #cf222e #116329 #7d4e00 #0072b2 #8250df #1b7c83 #57606a "
         "#57606a #a40e26 #1a7f37 #633c01 #0969da #6639ba #136061 #1f2328").split()
DARK = ("#8b949e #ff7b72 #3fb950 #e69f00 #56b4e9 #bc8cff #39c5cf #b1bac4 "
        "#9da7b1 #ffa198 #56d364 #e3b341 #79c0ff #d2a8ff #56d4dd #e6edf3").split()

# A control sequence with its parameters and its final byte, a control character, or text.
TOKEN = re.compile(r"\x1b\[([<-?]?)([0-9;]*)([@-~])|([\x00-\x1a\x1c-\x1f\x7f])|([^\x00-\x1f\x7f]+)")
INCOMPLETE = re.compile(r"\x1b(\[[0-?]*)?$")


class RecordError(Exception):
    """Reason why no picture is written."""


class Style(NamedTuple):
    """Appearance of a character. `colour` is an index into `LIGHT` and `DARK`."""

    colour: int | None = None
    bold: bool = False
    dim: bool = False

    def select(self, parameter: int) -> "Style":
        """Returns the style after one parameter of the sequence SGR (select graphic rendition)."""
        match parameter:
            case 0:
                return Style()
            case 1:
                return self._replace(bold=True)
            case 2:
                return self._replace(dim=True)
            case 22:
                return self._replace(bold=False, dim=False)
            case 39:
                return self._replace(colour=None)
            case _ if 30 <= parameter <= 37:
                return self._replace(colour=parameter - 30)
            case _ if 90 <= parameter <= 97:
                return self._replace(colour=parameter - 90 + 8)
        raise RecordError(f"the output selects the text style {parameter}, which is not supported; "
                          "expected one of the colours 0 to 15, bold or dim")

    def classes(self) -> str:
        """Returns the CSS classes of the style."""
        names = {f"c{self.colour}": self.colour is not None, "b": self.bold, "d": self.dim}
        return " ".join(name for name, applies in names.items() if applies)


class Run(NamedTuple):
    """Characters of one style in a line, from `column` on."""

    column: int
    text: str
    style: Style


Line = tuple[Run, ...]


class Recording(NamedTuple):
    """Output of a command with its times, the duration and the exit status of the command."""

    output: list[tuple[float, str]]
    seconds: float
    status: int


class Frame(NamedTuple):
    """Contents of the screen from a time on."""

    seconds: float
    lines: tuple[Line, ...]


class Span(NamedTuple):
    """Interval of the animation, without its end."""

    begin: float
    end: float


class Screen:
    """Screen of a terminal. Each character takes one column, and the first column has the index 0."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns = columns
        self.blank = [(" ", Style())] * columns
        self.cells = [list(self.blank) for _ in range(rows)]
        self.row = 0
        # Equals `columns` after a character in the last column: only the next character wraps the line.
        self.column = 0
        self.style = Style()
        self.pending = ""

    def write(self, text: str) -> None:
        """Shows the output of a program. A sequence may be divided between two calls."""
        text = self.pending + text
        incomplete = INCOMPLETE.search(text)
        end = incomplete.start() if incomplete else len(text)
        self.pending = text[end:]
        position = 0
        while position < end:
            token = TOKEN.match(text, position, end)
            if token is None:
                raise RecordError(f"the output contains the escape sequence {text[position:position + 8]!r}, "
                                  "which is not supported")
            prefix, parameters, final, control, characters = token.groups()
            if final:
                self.control_sequence(prefix, parameters, final)
            elif control:
                self.control_character(control)
            else:
                self.put(characters)
            position = token.end()

    def put(self, characters: str) -> None:
        """Shows characters at the cursor and moves it behind them."""
        for character in characters:
            if self.column == self.columns:
                self.column = 0
                self.line_feed()
            self.cells[self.row][self.column] = (character, self.style)
            self.column += 1

    def control_character(self, control: str) -> None:
        """Executes a control character."""
        match control:
            case "\r":
                self.column = 0
            case "\n":
                self.line_feed()
            case _:
                raise RecordError(f"the output contains the control character {control!r}, which is not supported")

    def control_sequence(self, prefix: str, parameters: str, final: str) -> None:
        """Executes a control sequence."""
        numbers = [int(number or 0) for number in parameters.split(";")]
        match prefix + final:
            case "A":
                self.row = max(self.row - max(numbers[0], 1), 0)
            case "B":
                self.row = min(self.row + max(numbers[0], 1), len(self.cells) - 1)
            case "K":
                self.erase_in_line(numbers[0])
            case "m":
                for number in numbers:
                    self.style = self.style.select(number)
            case "?h" | "?l":
                # Modes of the terminal, such as the visibility of the cursor, which the picture does not show.
                pass
            case _:
                raise RecordError(f"the output contains the control sequence 'ESC [ {prefix}{parameters}{final}', "
                                  "which is not supported")

    def erase_in_line(self, part: int) -> None:
        """Erases the line from the cursor on (part 0), up to the cursor (part 1) or completely (part 2)."""
        begin = self.column if part == 0 else 0
        end = min(self.column + 1, self.columns) if part == 1 else self.columns
        self.cells[self.row][begin:end] = self.blank[begin:end]

    def line_feed(self) -> None:
        """Moves the cursor down by one line, and scrolls if it is in the last line."""
        if self.row == len(self.cells) - 1:
            del self.cells[0]
            self.cells.append(list(self.blank))
        else:
            self.row += 1

    def lines(self) -> tuple[Line, ...]:
        """Returns the contents of all lines."""
        return tuple(tuple(runs(cells)) for cells in self.cells)


def runs(cells: list[tuple[str, Style]]) -> Iterator[Run]:
    """Divides a line into runs. Characters beyond ASCII are separate, as they may come from a font of another width."""
    column = 0
    for (style, _), group in itertools.groupby(cells, key=lambda cell: (cell[1], cell[0].isascii())):
        text = "".join(character for character, _ in group)
        if text.strip():
            yield Run(column + len(text) - len(text.lstrip()), text.strip(), style)
        column += len(text)


def record(command: list[str], columns: int, rows: int) -> Recording:
    """Runs a command in a pseudo-terminal."""
    begin = time.monotonic()
    process, terminal = os.forkpty()
    if process == 0:
        termios.tcsetwinsize(0, (rows, columns))
        os.execvpe(command[0], command, os.environ | {"TERM": "xterm-256color"})
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    output = []
    while data := read(terminal):
        output.append((time.monotonic() - begin, decoder.decode(data)))
    os.close(terminal)
    _, status = os.waitpid(process, 0)
    return Recording(output, time.monotonic() - begin, os.waitstatus_to_exitcode(status))


def read(terminal: int) -> bytes:
    """Reads output from a pseudo-terminal. Returns nothing after all programs have closed it."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        # Linux reports the end as an I/O error.
        return b""


def typed(screen: Screen, command: list[str]) -> Iterator[Frame]:
    """Types the command at a prompt."""
    screen.write(PROMPT)
    yield Frame(0, screen.lines())
    for number, character in enumerate(shlex.join(command), 1):
        screen.write(character)
        yield Frame(ENTER_SECONDS + number * KEY_SECONDS, screen.lines())
    screen.write("\r\n")


def shown(screen: Screen, recording: Recording) -> Iterator[Frame]:
    """Shows the output of the command and then a prompt. Times count from the start of the command."""
    previous = screen.lines()
    writes = [*recording.output, (recording.seconds, PROMPT), (math.inf, "")]
    for (seconds, text), (following, _) in itertools.pairwise(writes):
        screen.write(text)
        lines = screen.lines()
        if following - seconds > SETTLE_SECONDS and lines != previous:
            yield Frame(seconds, lines)
            previous = lines


def shorten(frames: list[Frame]) -> list[Frame]:
    """Limits the time between two frames to `WAIT_SECONDS_MAX`."""
    times = itertools.pairwise([0.0, *(frame.seconds for frame in frames)])
    waits = (min(end - begin, WAIT_SECONDS_MAX) for begin, end in times)
    return [frame._replace(seconds=seconds) for frame, seconds in zip(frames, itertools.accumulate(waits))]


def thin(frames: list[Frame], interval: float) -> list[Frame]:
    """Keeps the last frame of each interval."""
    return list({int(frame.seconds / interval): frame for frame in frames}.values())


def spans(frames: list[Frame], end: float) -> dict[Span, list[tuple[int, Line]]]:
    """Returns the lines that are visible in each interval, with their rows."""
    visible: dict[Span, list[tuple[int, Line]]] = {}
    times = [*(frame.seconds for frame in frames), end]
    for row in range(len(frames[0].lines)):
        first = 0
        for line, group in itertools.groupby(frame.lines[row] for frame in frames):
            following = first + len(list(group))
            if line:
                visible.setdefault(Span(times[first], times[following]), []).append((row, line))
            first = following
    return visible


def draw_line(row: int, line: Line) -> str:
    """Returns the SVG elements of a line."""
    y = MARGIN + row * LINE_HEIGHT + FONT_SIZE
    elements = []
    for column, text, style in line:
        attributes = f' class="{style.classes()}"' if style.classes() else ""
        # The boxes of a progress bar must touch each other.
        attributes += "" if text.isascii() else ' lengthAdjust="spacingAndGlyphs"'
        elements.append(f'<text{attributes} x="{MARGIN + column * CELL_WIDTH:g}" y="{y}" '
                        f'textLength="{len(text) * CELL_WIDTH:g}">{escape(text)}</text>')
    return "".join(elements)


def draw_spans(visible: dict[Span, list[tuple[int, Line]]], end: float) -> tuple[str, str]:
    """Returns the CSS keyframes and the SVG groups of all intervals. Without animation the last frame is visible."""
    keyframes, groups = [], []
    for number, (span, lines) in enumerate(sorted(visible.items())):
        name = f"a{number}"
        steps = "0%{visibility:hidden}" if span.begin > 0 else ""
        steps += f"{100 * span.begin / end:.2f}%{{visibility:visible}}"
        steps += f"{100 * span.end / end:.2f}%{{visibility:hidden}}" if span.end < end else ""
        keyframes.append(f"@keyframes {name}{{{steps}}}")
        classes = "f" if span.end < end else "f last"
        elements = "".join(draw_line(row, line) for row, line in lines)
        groups.append(f'<g class="{classes}" style="animation-name:{name}">{elements}</g>')
    return "\n".join(keyframes), "\n".join(groups)


def colours(frames: list[Frame], palette: list[str]) -> str:
    """Returns the CSS rules of the colours that occur in the frames."""
    styles = {run.style for frame in frames for line in frame.lines for run in line}
    used = sorted({style.colour for style in styles if style.colour is not None})
    return "".join(f".c{colour}{{fill:{palette[colour]}}}" for colour in used)


def draw(frames: list[Frame], columns: int, title: str, caption: str) -> str:
    """Returns the SVG picture of an animation."""
    end = frames[-1].seconds + HOLD_SECONDS
    keyframes, groups = draw_spans(spans(frames, end), end)
    rows = max(row for frame in frames for row, line in enumerate(frame.lines, 1) if line)
    width = columns * CELL_WIDTH + 2 * MARGIN
    height = rows * LINE_HEIGHT + 2 * MARGIN - (LINE_HEIGHT - FONT_SIZE)
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height + CAPTION_HEIGHT}" role="img" \
aria-labelledby="title description" xml:space="preserve" \
font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace" \
font-size="{FONT_SIZE}">
<title id="title">{escape(title)}</title>
<desc id="description">A terminal shows the command and its output: {escape(caption)}.</desc>
<style>
.box{{fill:#f4f6f8;stroke:#57606a}}text{{fill:#1f2328}}.caption{{fill:#57606a;font-family:system-ui,sans-serif}}
.b{{font-weight:600}}.d{{opacity:.7}}{colours(frames, LIGHT)}
@media (prefers-color-scheme: dark){{.box{{fill:#161b22;stroke:#8b949e}}text{{fill:#e6edf3}}.caption{{fill:#9da7b1}}
{colours(frames, DARK)}}}
.f{{visibility:hidden;animation:{end:.2f}s step-end infinite}}.last{{visibility:visible}}
@media (prefers-reduced-motion: reduce){{.f{{animation:none!important}}}}
{keyframes}
</style>
<rect class="box" x="1" y="1" width="{width - 2:g}" height="{height - 2}" rx="8"/>
{groups}
<text class="caption" x="{width - 4:g}" y="{height + 17}" text-anchor="end">{escape(caption)}</text>
</svg>
"""


def check(command: list[str], recording: Recording) -> None:
    """Raises an error if the recording must not be published."""
    if recording.status != 0:
        raise RecordError(f"the command '{shlex.join(command)}' ended with exit status {recording.status}; expected 0. "
                          "Run the command without the script to see its output")
    text = "".join(text for _, text in recording.output)
    for directory in (Path.cwd(), Path.home()):
        if str(directory) in text:
            raise RecordError(f"the output contains '{directory}', a path of this machine. "
                              "If a line of the build contains it, build the program before the recording")


def animate(command: list[str], recording: Recording, columns: int, rows: int) -> str:
    """Returns the picture of a recording."""
    screen = Screen(columns, rows)
    typing = list(typed(screen, command))
    real = list(shown(screen, recording))
    short = shorten(real)
    speed = max(math.ceil(short[-1].seconds / PLAY_SECONDS_MAX), 1)
    caption = f"a real run of {recording.seconds:.0f} s, played at {speed}x"
    if short[-1].seconds < real[-1].seconds:
        caption += f", waits limited to {WAIT_SECONDS_MAX:g} s"
    start = typing[-1].seconds + ENTER_SECONDS
    frames = typing + [frame._replace(seconds=start + frame.seconds / speed) for frame in short]
    for interval in FRAME_INTERVALS_SECONDS:
        picture = draw(thin(frames, interval), columns, f"Recording of {shlex.join(command)}", caption)
        if len(picture.encode()) <= PICTURE_BYTES_MAX:
            return picture
    raise RecordError(f"the picture has {len(picture.encode())} bytes; expected at most {PICTURE_BYTES_MAX}. "
                      "Record a command with less output")


def size(text: str) -> int:
    """Parses a number of columns or rows."""
    if not text.isdecimal() or not 1 <= int(text) <= 500:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1 to 500, both included")
    return int(text)


def arguments() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).with_name("first-command.svg"), metavar="FILE",
                        help="SVG file to write (default: first-command.svg beside the script)")
    parser.add_argument("--columns", type=size, default=COLUMNS, help="width of the terminal (default: %(default)s)")
    parser.add_argument("--rows", type=size, default=24, help="height of the terminal (default: %(default)s)")
    parser.add_argument("command", nargs="*", default=COMMAND, metavar="COMMAND",
                        help="command to record, after -- (default: the README's first one)")
    return parser.parse_args()


def main() -> None:
    """Records the command and writes the picture."""
    options = arguments()
    if shutil.which(options.command[0]) is None:
        sys.exit(f"record.py: the program '{options.command[0]}' is not in PATH; install it or give its path")
    try:
        recording = record(options.command, options.columns, options.rows)
        check(options.command, recording)
        picture = animate(options.command, recording, options.columns, options.rows)
        options.output.write_text(picture, encoding="utf-8")
    except RecordError as error:
        sys.exit(f"record.py: {error}")
    except OSError as error:
        sys.exit(f"record.py: the script cannot write '{options.output}': {error.strerror}")


if __name__ == "__main__":
    main()
