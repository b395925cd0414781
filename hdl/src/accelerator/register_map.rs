//! The C header and the table of the register map, generated from the list in the crate `iswitch-card`, which the host
//! program also uses.

use std::fmt::Write as _;

pub use iswitch_card::registers::{Access, REGISTERS, Register, offset};

use super::records::event;
use super::registers::{ID, VERSION};

/// Name of the file with the C header.
pub const HEADER_FILE_NAME: &str = "iswitch_accel.h";

/// Maximum length of a line of the C header.
const LINE_LEN: usize = 120;

/// Returns the register map as a table in Markdown, with a final line break.
pub fn markdown() -> String {
    let mut text = String::from("| offset | name | words | access | content |\n|---|---|---|---|---|\n");
    for Register { name, offset, words, access, content } in REGISTERS {
        let access = access.letters();
        _ = writeln!(text, "| 0x{offset:02X} | {name} | {words} | {access} | {content} |");
    }
    text
}

/// Returns the register map as a C header with the offsets in bytes and the indices of the counters.
pub fn c_header() -> String {
    let mut text = format!(
        "/* Register map of the iSwitch accelerator, version {VERSION}. Do not edit.\n   \
         Written by `cargo run --release -p hdl -- generate`. */\n\
         #ifndef ISWITCH_ACCEL_H\n#define ISWITCH_ACCEL_H\n\n\
         /* Values of the first two registers. */\n\
         #define ISWITCH_ACCEL_ID_VALUE 0x{ID:08X}\n#define ISWITCH_ACCEL_VERSION_VALUE {VERSION}\n\n\
         /* Offsets of the registers in bytes; r: read only, rw: read and write. IPv4 addresses, UDP ports and MAC\n   \
         addresses are in wire byte order, with the first byte in the lowest bits. */\n"
    );
    for Register { name, offset, words, access, content } in REGISTERS {
        let remark = format!("{}: {}", access.letters(), content.replace('`', ""));
        text.push_str(&comment(&remark));
        _ = writeln!(text, "#define ISWITCH_ACCEL_{name} 0x{offset:03X}");
        if *words > 1 {
            _ = writeln!(text, "#define ISWITCH_ACCEL_{name}_WORDS {words}");
        }
    }
    text.push_str("\n/* Indices of the counters. */\n");
    for (index, name) in event::NAMES.iter().enumerate() {
        _ = writeln!(text, "#define ISWITCH_ACCEL_COUNTER_{} {index}", name.to_uppercase());
    }
    text.push_str("\n#endif\n");
    text
}

/// Returns a C comment with line breaks, so that no line is longer than [`LINE_LEN`].
fn comment(remark: &str) -> String {
    let mut text = String::from("\n/*");
    let mut len = 2;
    for word in remark.split(' ') {
        // The last word is followed by the end of the comment.
        if len + word.len() + " ".len() + " */".len() > LINE_LEN {
            text.push_str("\n  ");
            len = 2;
        }
        _ = write!(text, " {word}");
        len += word.len() + " ".len();
    }
    text.push_str(" */\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_do_not_overlap() {
        for pair in REGISTERS.windows(2) {
            let end = pair[0].offset + 4 * pair[0].words;
            assert!(
                end <= pair[1].offset && pair[1].offset % 4 == 0,
                "{} and {}",
                pair[0].name,
                pair[1].name
            );
        }
    }

    #[test]
    fn the_list_has_the_size_of_the_hardware() {
        let register = |name| REGISTERS.iter().find(|register| register.name == name).unwrap();
        assert_eq!(usize::from(register("MEMBERS").words), 2 * super::super::records::MEMBERS);
        assert!(usize::from(register("COUNTERS").words) >= event::NAMES.len());
        let counters = register("COUNTERS").content;
        let places: Vec<_> = event::NAMES.iter().map(|name| counters.find(name)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{counters}");
        assert!(register("ID").content.contains(&format!("0x{ID:08X}")), "{}", register("ID").content);
        assert!(
            register("VERSION").content.ends_with(&format!(": {VERSION}")),
            "{}",
            register("VERSION").content
        );
    }

    #[test]
    fn lines_of_the_header_are_short_enough() {
        for line in c_header().lines() {
            assert!(line.len() <= LINE_LEN, "{line}");
        }
    }
}
