//! Parsing of whole numbers in the forms `1000000`, `1_000_000` and `1e6`.

use serde_json::{Number, Value};

/// Number above which not every whole number can be represented in binary64.
const EXACT_END: f64 = 9_007_199_254_740_992.0;

/// Parses a whole number such as 1000000, 1_000_000 or 1e6.
///
/// # Errors
/// Returns an error that describes the expected forms.
pub fn whole<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    let expected = || "expected a whole number such as 1000000, 1_000_000 or 1e6".to_owned();
    let number = parse(text).and_then(|number| number.as_u64()).ok_or_else(expected)?;
    N::try_from(number).map_err(|_| format!("{number} is too large"))
}

/// Returns the value of a setting. The text may be JSON, or a number such as 1_000_000. Any other text is returned as a
/// string. A number without a fraction, such as 1e6, becomes a whole number.
pub fn value(text: &str) -> Value {
    let number = parse(text).map(Value::Number);
    number.or_else(|| serde_json::from_str(text).ok()).unwrap_or_else(|| Value::from(text))
}

fn parse(text: &str) -> Option<Number> {
    let number: Number = serde_json::from_str(&without_separators(text)?).ok()?;
    let is_whole = |x: &f64| x.fract() == 0.0 && (0.0..EXACT_END).contains(x);
    match number.as_f64().filter(|x| number.is_f64() && is_whole(x)) {
        Some(x) => Some(Number::from(x as u64)),
        None => Some(number),
    }
}

/// Removes underscores between digits. Returns `None` if there is an underscore elsewhere.
fn without_separators(text: &str) -> Option<String> {
    let is_digit =
        |at: Option<usize>| at.and_then(|at| text.as_bytes().get(at)).is_some_and(u8::is_ascii_digit);
    let mut underscores = text.match_indices('_').map(|(at, _)| at);
    underscores.all(|at| is_digit(at.checked_sub(1)) && is_digit(Some(at + 1))).then(|| text.replace('_', ""))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_numbers_may_have_separators_and_exponents() {
        for (text, number) in
            [("1000000", 1_000_000), ("1_000_000", 1_000_000), ("1e6", 1_000_000), ("2.5E3", 2_500)]
        {
            assert_eq!(whole::<u64>(text), Ok(number), "{text}");
        }
        assert_eq!(whole::<u64>(&u64::MAX.to_string()), Ok(u64::MAX));
        for text in ["", "-1", "1.5", "1e-3", "_1", "1_", "1__0", "1_e6", "one", "0x10", "1e300", "[1]"] {
            assert!(whole::<u64>(text).unwrap_err().starts_with("expected a whole number"), "{text}");
        }
        assert_eq!(whole::<u16>("1e5").unwrap_err(), "100000 is too large");
    }

    #[test]
    fn settings_are_numbers_json_or_text() {
        let cases = [
            ("1e6", json!(1_000_000)),
            ("10_000", json!(10_000)),
            ("3e-4", json!(3e-4)),
            ("-0.5", json!(-0.5)),
            ("-2.0", json!(-2.0)),
            ("[64,64]", json!([64, 64])),
            ("true", json!(true)),
            ("null", json!(null)),
            ("one_hot", json!("one_hot")),
        ];
        for (text, expected) in cases {
            assert_eq!(value(text), expected, "{text}");
        }
    }
}
