//! Output of commands.

use std::fmt;
use std::io::{self, Write};

/// Prints to standard output. It is not an error if the reader, such as `head`, has closed the pipe.
///
/// Returns whether the output still has a reader. In the cases in which this function returns `false` or an error,
/// `std::print!` panics.
///
/// # Errors
/// Fails if the text cannot be written for another reason, such as a full disk.
pub fn print(text: fmt::Arguments<'_>) -> io::Result<bool> {
    let mut output = io::stdout().lock();
    has_reader(output.write_fmt(text).and_then(|()| output.flush()))
}

fn has_reader(outcome: io::Result<()>) -> io::Result<bool> {
    match outcome {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(io::Error::new(error.kind(), format!("cannot write to standard output: {error}"))),
    }
}

/// Prints a line to standard output with [`print()`] and evaluates to the result of that function.
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
    fn only_a_closed_pipe_is_ignored() {
        assert!(has_reader(Ok(())).unwrap());
        assert!(!has_reader(Err(io::ErrorKind::BrokenPipe.into())).unwrap());
        let error = has_reader(Err(io::ErrorKind::StorageFull.into())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().starts_with("cannot write to standard output: "), "{error}");
    }
}
