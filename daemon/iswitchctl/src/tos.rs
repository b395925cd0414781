//! Parser for ToS values on the command line.

use iswitch_protocol::limits::TOS_MASK;

/// Parses a byte in decimal, or in hexadecimal with the prefix 0x. The two low-order bits, which belong to ECN, must be
/// zero.
pub(crate) fn parse_tos(text: &str) -> Result<u8, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16),
        None => text.parse(),
    };
    let is_tos = |tos: &u8| *tos != 0 && tos & TOS_MASK == *tos;
    parsed.ok().filter(is_tos).ok_or_else(|| "expected a multiple of 4 from 0x04 to 0xfc".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tos_values_must_not_set_ecn_bits() {
        assert_eq!([parse_tos("12"), parse_tos("0x1c")], [Ok(12), Ok(0x1c)]);
        for text in ["0", "0x1d", "256", "-4", ""] {
            assert!(parse_tos(text).is_err(), "{text}");
        }
    }
}
