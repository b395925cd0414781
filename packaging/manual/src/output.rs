//! What commands print.

use std::fmt;
use std::io::{self, Write};

/// Prints to the standard output. A reader that has closed its end of a pipe, such as `head`, is no error.
///
/// Returns whether the output still has a reader. `std::print!` panics where this returns false or an error.
///
/// # Errors
/// If the text cannot be written for another reason, such as a full disk.
pub fn print(text: fmt::Arguments<'_>) -> io::Result<bool> {
    let mut output = io::stdout().lock();
    has_reader(output.write_fmt(text).and_then(|()| output.flush()))
}

fn has_reader(outcome: io::Result<()>) -> io::Result<bool> {
    match outcome {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(io::Error::new(error.kind(), format!("writing to the standard output: {error}"))),
    }
}

/// Prints a line to the standard output by [`print()`]; the value is its result.
#[macro_export]
macro_rules! print_line {
    ($($argument:tt)*) => {
        $crate::output::print(format_args!("{}\n", format_args!($($argument)*)))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_closed_pipe_is_no_error() {
        assert!(has_reader(Ok(())).unwrap());
        assert!(!has_reader(Err(io::ErrorKind::BrokenPipe.into())).unwrap());
        let error = has_reader(Err(io::ErrorKind::StorageFull.into())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().starts_with("writing to the standard output: "), "{error}");
    }
}
