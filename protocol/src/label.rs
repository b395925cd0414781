//! Labels: short texts that members choose and that operators read, such as the name of a job.
//!
//! A label is safe to print: it contains no control characters and no characters that change how the surrounding text
//! is displayed (requirement N-2). Both sides use only the type [`Label`] for labels, so a text that has not been
//! checked never reaches a log, a metric or a terminal.

use core::fmt::{self, Write as _};
use core::ops::RangeInclusive;
use core::str::FromStr;

/// Invisible characters and characters that change the direction or the interpretation of the text around them.
const FORBIDDEN: [RangeInclusive<char>; 11] = [
    '\u{0}'..='\u{1f}',
    '\u{7f}'..='\u{9f}',
    '\u{ad}'..='\u{ad}',
    '\u{61c}'..='\u{61c}',
    '\u{180e}'..='\u{180e}',
    '\u{200b}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{feff}'..='\u{feff}',
    '\u{fff0}'..='\u{fffb}',
    '\u{e0000}'..='\u{e0fff}',
];
/// Characters that are printed without quotes, in addition to letters and digits.
const PLAIN: &str = "._-/:+@=";

/// Returns whether a label may contain a character (requirement N-2).
fn is_permitted(character: char) -> bool {
    FORBIDDEN.iter().all(|range| !range.contains(&character))
}

/// A text of at most `N` bytes of UTF-8 without control characters and without invisible characters (requirement N-2).
/// `N` is at most 255. The default is the empty label, which stands for an unknown text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Label<const N: usize> {
    len: u8,
    /// The text; the bytes after the first `len` are zero.
    bytes: [u8; N],
}

/// Reason why a text is not a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelError {
    /// The text is too long.
    TooLong {
        /// Length of the text, in bytes.
        len_bytes: usize,
        /// Maximum length, in bytes.
        max_len_bytes: usize,
    },
    /// The text contains a control character or an invisible character.
    Unprintable {
        /// Position of the character, in bytes from the start.
        at: usize,
        /// The character.
        character: char,
    },
    /// The bytes are not UTF-8.
    NotUtf8,
}

impl<const N: usize> Label<N> {
    /// The empty label.
    pub const EMPTY: Self = {
        assert!(N <= u8::MAX as usize, "the length of a label must fit into one byte");
        Self { len: 0, bytes: [0; N] }
    };

    /// Returns the label with this text.
    ///
    /// # Errors
    /// Fails if the text is longer than `N` bytes, or contains a control character or an invisible character.
    pub fn new(text: &str) -> Result<Self, LabelError> {
        if let Some((at, character)) = text.char_indices().find(|(_, character)| !is_permitted(*character)) {
            return Err(LabelError::Unprintable { at, character });
        }
        if text.len() > N {
            return Err(LabelError::TooLong { len_bytes: text.len(), max_len_bytes: N });
        }
        let mut label = Self { len: text.len() as u8, ..Self::EMPTY };
        label.bytes[..text.len()].copy_from_slice(text.as_bytes());
        Ok(label)
    }

    /// Returns the label with this text in UTF-8.
    ///
    /// # Errors
    /// Fails if the bytes are not UTF-8, and in the same cases as [`Self::new`].
    pub fn from_utf8(bytes: &[u8]) -> Result<Self, LabelError> {
        Self::new(core::str::from_utf8(bytes).map_err(|_| LabelError::NotUtf8)?)
    }

    /// Returns a label for a text from the environment, such as the name of the machine: every character that a label
    /// may not contain is replaced by `?`, and the text is truncated to the longest sequence of whole characters that
    /// fits in `N` bytes.
    pub fn lossy(text: &str) -> Self {
        let mut label = Self::EMPTY;
        for character in text.chars().map(|character| if is_permitted(character) { character } else { '?' }) {
            let len = usize::from(label.len);
            if len + character.len_utf8() > N {
                break;
            }
            label.len += character.encode_utf8(&mut label.bytes[len..]).len() as u8;
        }
        label
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }

    /// Returns whether the label is empty.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the label, or `other` if the label is empty.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        if self.is_empty() { other } else { self }
    }
}

impl<const N: usize> Default for Label<N> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<const N: usize> FromStr for Label<N> {
    type Err = LabelError;

    fn from_str(text: &str) -> Result<Self, LabelError> {
        Self::new(text)
    }
}

impl<const N: usize> fmt::Debug for Label<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// Writes the label within a sentence. A label that could be mistaken for part of the sentence, because it contains
/// characters other than letters, digits and `._-/:+@=`, is quoted and escaped.
impl<const N: usize> fmt::Display for Label<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |character: char| character.is_alphanumeric() || PLAIN.contains(character);
        if !self.is_empty() && self.as_str().chars().all(is_plain) {
            f.write_str(self.as_str())
        } else {
            write!(f, "{self:?}")
        }
    }
}

impl fmt::Display for LabelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { len_bytes, max_len_bytes } => {
                write!(f, "the text is {len_bytes} bytes long, expected at most {max_len_bytes}")
            }
            Self::Unprintable { at, character } => {
                f.write_str("the text contains the character '")?;
                character.escape_unicode().try_for_each(|part| f.write_char(part))?;
                write!(f, "' at byte {at}, expected no control characters and no invisible characters")
            }
            Self::NotUtf8 => f.write_str("the text is not UTF-8"),
        }
    }
}

impl core::error::Error for LabelError {}

#[cfg(test)]
mod tests {
    use std::format;
    use std::string::{String, ToString as _};

    use proptest::prelude::*;

    use super::*;

    type Short = Label<8>;

    #[test]
    fn a_label_keeps_its_text_and_an_error_names_the_limit_or_the_character() {
        assert_eq!(Short::new("ppo-1").unwrap().as_str(), "ppo-1");
        assert_eq!(Short::default().as_str(), "");
        let error = |text| Short::new(text).unwrap_err().to_string();
        assert_eq!(error("ppo-hopper"), "the text is 10 bytes long, expected at most 8");
        assert_eq!(
            error("a\x1b[31m"),
            "the text contains the character '\\u{1b}' at byte 1, expected no control characters and no invisible \
             characters"
        );
        assert_eq!(Short::from_utf8(&[0xff]), Err(LabelError::NotUtf8));
    }

    #[test]
    fn a_label_that_could_be_mistaken_for_the_sentence_is_quoted() {
        let shown = |text| Short::new(text).unwrap().to_string();
        assert_eq!(shown("ppo-1/a"), "ppo-1/a");
        assert_eq!(shown("实验"), "实验");
        assert_eq!(shown("a) left"), "\"a) left\"");
        assert_eq!(shown("a\"b\\"), "\"a\\\"b\\\\\"");
        assert_eq!(shown(""), "\"\"");
    }

    #[test]
    fn texts_of_the_environment_are_cut_off_at_a_character() {
        assert_eq!(Short::lossy("gpu07.example").as_str(), "gpu07.ex");
        assert_eq!(Short::lossy("实验室").as_str(), "实验");
        assert_eq!(Short::lossy("a\nb\u{202e}c").as_str(), "a?b?c");
    }

    proptest! {
        #[test]
        fn labels_are_exactly_the_short_printable_texts(text in "\\PC{0,4}|.{0,4}|[a-z\u{200b}\u{ad}\r]{0,12}") {
            let is_permitted =
                text.len() <= 8 && text.chars().all(|c| FORBIDDEN.iter().all(|range| !range.contains(&c)));
            let label = Short::new(&text);
            prop_assert_eq!(label.is_ok(), is_permitted);
            if let Ok(label) = label {
                prop_assert_eq!(label.as_str(), &text);
            }
            // The result of `lossy` is always a valid label, and printing it never produces a control character.
            let lossy = Short::lossy(&text);
            prop_assert_eq!(Short::new(lossy.as_str()), Ok(lossy));
            let shown: String = format!("{lossy}");
            prop_assert!(shown.chars().all(|c| !c.is_control()));
        }
    }
}
