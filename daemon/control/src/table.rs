//! Renders JSON as the human-readable text that iswitchctl prints.

use std::fmt::Write;

use serde_json::{Map, Value};

/// Renders a value: an object as aligned lines, a list of objects as a table, and a nested value as indented text below
/// its name.
pub(crate) fn render(value: &Value) -> String {
    let mut text = String::new();
    put(&mut text, value, 0);
    text
}

fn put(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(object) => put_object(text, object, indent),
        Value::Array(items) if items.is_empty() => put_line(text, indent, "none"),
        Value::Array(items) if items.iter().all(is_flat_object) => put_table(text, items, indent),
        Value::Array(items) => {
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    text.push('\n');
                }
                put(text, item, indent);
            }
        }
        scalar => put_line(text, indent, &cell(scalar)),
    }
}

fn put_object(text: &mut String, object: &Map<String, Value>, indent: usize) {
    let (nested, scalars): (Vec<_>, Vec<_>) = object.iter().partition(|(_, value)| is_nested(value));
    let width = scalars.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
    for (key, value) in scalars {
        put_line(text, indent, &format!("{key:width$}  {}", cell(value)));
    }
    for (key, value) in nested {
        put_line(text, indent, key);
        put(text, value, indent + 2);
    }
}

fn put_table(text: &mut String, rows: &[Value], indent: usize) {
    let keys: Vec<&String> = rows[0].as_object().map(|row| row.keys().collect()).unwrap_or_default();
    let mut lines: Vec<Vec<String>> = vec![keys.iter().copied().cloned().collect()];
    lines.extend(rows.iter().map(|row| keys.iter().map(|key| cell(&row[key.as_str()])).collect()));
    let widths: Vec<usize> = (0..keys.len())
        .map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0))
        .collect();
    for line in lines {
        let mut padded = String::new();
        for (cell, width) in line.iter().zip(&widths) {
            let _ = write!(padded, "{cell:width$}  ");
        }
        put_line(text, indent, &padded);
    }
}

fn put_line(text: &mut String, indent: usize, line: &str) {
    let _ = writeln!(text, "{:indent$}{}", "", line.trim_end());
}

fn is_nested(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

fn is_flat_object(value: &Value) -> bool {
    value.as_object().is_some_and(|object| !object.values().any(is_nested))
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        // A line break would break the layout of the table, and an escape sequence could change the state of the
        // terminal.
        Value::String(text) if text.chars().any(char::is_control) => text.escape_debug().to_string(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_lists_and_tables_are_rendered() {
        let value = json!([
            { "job": 7, "formed": true, "members": [{ "id": 0, "is": "long one" }, { "id": 1, "is": null }] },
            { "job": 123, "formed": false, "members": [] },
        ]);
        let expected = "\
job     7
formed  yes
members
  id  is
  0   long one
  1   -

job     123
formed  no
members
  none
";
        assert_eq!(render(&value), expected);
        assert_eq!(render(&json!([])), "none\n");
        assert_eq!(render(&json!("a\u{1b}[31m\nb")), "a\\u{1b}[31m\\nb\n", "control characters are escaped");
    }
}
