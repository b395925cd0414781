//! Creation and reading of key files.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use iswitch_protocol::key_file::{self, KeyFileError};

#[test]
fn a_new_key_is_private_random_and_readable() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("job.key");
    key_file::create(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.trim_end().len(), 64);
    key_file::read(&path).unwrap();
    let again = key_file::create(&path).unwrap_err();
    assert!(matches!(again, KeyFileError::Io(error) if error.kind() == std::io::ErrorKind::AlreadyExists));
    assert_eq!(fs::read_to_string(&path).unwrap(), text, "an existing key should not be overwritten");
    let other = directory.path().join("other.key");
    key_file::create(&other).unwrap();
    assert_ne!(fs::read_to_string(&other).unwrap(), text);
}

#[test]
fn an_invalid_key_file_is_refused_without_showing_its_contents() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("job.key");
    let error = |text: &str, mode: u32| {
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        key_file::read(&path).unwrap_err().to_string()
    };
    let digits = "00".repeat(32);
    let expected = "expected no access for others; run chmod o= FILE";
    assert_eq!(error(&digits, 0o644), format!("the file has mode 0644, {expected}"));
    assert_eq!(error(&digits, 0o602), format!("the file has mode 0602, {expected}"));
    assert_eq!(error("1234", 0o600), "the key is 2 bytes long, expected 16 to 64");
    let no_digits = "the key is not valid, expected one line of hexadecimal digits, two per byte";
    assert_eq!(error("correct horse battery staple", 0o600), no_digits);
    assert_eq!(error(&" ".repeat(10_000), 0o600), no_digits);
    fs::write(&path, format!("{digits}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o440)).unwrap();
    key_file::read(&path).unwrap();
    let missing = key_file::read(&directory.path().join("none")).unwrap_err();
    assert!(missing.to_string().contains("No such file"), "{missing}");
}
