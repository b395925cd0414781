//! Error messages.

use std::error::Error;

/// Returns the message of an error, followed by the messages of its causes, separated by colons. Omits a cause that the
/// text already contains, because many errors, including those of libraries, state their cause in their own message.
pub fn describe(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let message = cause.to_string();
        if !text.contains(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::io;

    use super::*;

    #[derive(Debug)]
    struct Wrapper(&'static str, io::Error);

    impl fmt::Display for Wrapper {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Wrapper {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.1)
        }
    }

    #[test]
    fn each_cause_is_stated_once() {
        let describe_with = |text| describe(&Wrapper(text, io::Error::other("disk full")));
        assert_eq!(describe_with("cannot write"), "cannot write: disk full");
        assert_eq!(describe_with("cannot write: disk full"), "cannot write: disk full");
        assert_eq!(describe_with("cannot write (disk full); free it"), "cannot write (disk full); free it");
        assert_eq!(describe(&io::Error::other("alone")), "alone");
    }
}
