//! Slurm's notation of generic resources: `gpu:a100:4(S:0-1)` for the GPUs of a node, `gres/gpu:a100:2` or
//! `cpu=8,gres/gpu=2` for a request, and `gpu:a100:3(IDX:0-2)` for an allocation.

use super::hostlist::{numbers, split_outside};

/// GPUs of one node in an allocation.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// Number of GPUs.
    pub(super) count: usize,
    /// Indices of the GPUs on the node; empty if Slurm does not list them.
    pub(super) indices: Vec<usize>,
}

/// Entry of a resource list that describes GPUs.
struct Entry<'a> {
    /// Type, such as `a100`, if the entry names one.
    kind: Option<&'a str>,
    count: usize,
    /// Content of the parentheses.
    details: &'a str,
}

/// Returns the number of GPUs in a list of resources. If `gpu_type` is given, only GPUs of that type are counted.
///
/// # Errors
/// Returns a description of the invalid entry.
pub(super) fn total(text: &str, gpu_type: Option<&str>) -> Result<usize, String> {
    let entries = entries(text)?;
    // A request may contain the total in addition to the number of each type: gres/gpu=4,gres/gpu:a100=4.
    let of = |kind: Option<&str>| -> Option<usize> {
        let mut some = entries.iter().filter(|entry| entry.kind == kind).map(|entry| entry.count).peekable();
        some.peek().is_some().then_some(())?;
        Some(some.sum())
    };
    let is_typed = entries.iter().any(|entry| entry.kind.is_some());
    Ok(match gpu_type {
        Some(kind) if is_typed => of(Some(kind)).unwrap_or(0),
        _ => of(None).unwrap_or_else(|| entries.iter().map(|entry| entry.count).sum()),
    })
}

/// Returns the types of the GPUs in a list of resources. GPUs without a type are returned as `""`.
pub(super) fn types(text: &str) -> Vec<String> {
    let entries = entries(text).unwrap_or_default();
    let entries = entries.iter().filter(|entry| entry.count > 0);
    entries.map(|entry| entry.kind.unwrap_or_default().to_owned()).collect()
}

/// Returns the GPUs of one node in an allocation. If `gpu_type` is given, only GPUs of that type are returned.
///
/// # Errors
/// Returns a description of the invalid entry.
pub(super) fn held(text: &str, gpu_type: Option<&str>) -> Result<Held, String> {
    let mut held = Held::default();
    let mut is_listed = true;
    for entry in entries(text)? {
        let is_wanted = gpu_type.is_none() || entry.kind.is_none() || entry.kind == gpu_type;
        if entry.count == 0 || !is_wanted {
            continue;
        }
        held.count += entry.count;
        match entry.details.strip_prefix("IDX:").map(numbers) {
            Some(Ok(indices)) if indices.len() == entry.count => held.indices.extend(indices),
            Some(Ok(indices)) => {
                return Err(format!("is {text:?}: {} indices, expected {}", indices.len(), entry.count));
            }
            Some(Err(reason)) => return Err(format!("is {text:?}: {reason}")),
            None => is_listed = false,
        }
    }
    // If there are several types, the indices of the second type may begin at 0 again.
    let mut distinct = held.indices.clone();
    distinct.sort_unstable();
    distinct.dedup();
    if !is_listed || distinct.len() < held.indices.len() {
        held.indices.clear();
    }
    Ok(held)
}

/// Returns the entries of a resource list that describe GPUs.
fn entries(text: &str) -> Result<Vec<Entry<'_>>, String> {
    let mut entries = Vec::new();
    for part in split_outside(text, ['(', ')']).filter(|part| !part.is_empty()) {
        let part = part.strip_prefix("gres/").or_else(|| part.strip_prefix("gres:")).unwrap_or(part);
        let (name, details) = part.split_once('(').unwrap_or((part, ""));
        let mut words = name.split([':', '=']);
        if words.next() != Some("gpu") {
            continue;
        }
        let words: Vec<_> = words.collect();
        let number = |word: &str| word.parse().map_err(|_| format!("is {part:?}, expected a number of GPUs"));
        let (kind, count) = match words[..] {
            [] => (None, 1),
            [word] if word.starts_with(|letter: char| letter.is_ascii_digit()) => (None, number(word)?),
            [kind] => (Some(kind), 1),
            [kind, count] => (Some(kind), number(count)?),
            _ => return Err(format!("is {part:?}, expected gpu:TYPE:NUMBER")),
        };
        entries.push(Entry { kind, count, details: details.trim_end_matches(')') });
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_counted_by_type() {
        let count = |text: &str, kind: Option<&str>| total(text, kind).unwrap();
        for (text, all, a100) in [
            ("", 0, 0),
            ("gpu", 1, 1),
            ("gpu:4", 4, 4),
            ("gpu:a100:4(S:0-1)", 4, 4),
            ("gpu:a100:4(S:0-1),gpu:v100:2(S:1),nic:1", 6, 4),
            ("cpu=8,mem=1000M,node=2,billing=8,gres/gpu=4", 4, 4),
            ("cpu=8,gres/gpu=4,gres/gpu:a100=4", 4, 4),
            ("gres:gpu:v100:3", 3, 0),
            ("gpu:a100", 1, 1),
            ("gpu:a100:0(IDX:N/A)", 0, 0),
        ] {
            assert_eq!((count(text, None), count(text, Some("a100"))), (all, a100), "{text}");
        }
        assert_eq!(total("gpu:a100:x", None).unwrap_err(), "is \"gpu:a100:x\", expected a number of GPUs");
        assert_eq!(types("gpu:a100:4(S:0-1),gpu:v100:2"), ["a100", "v100"]);
    }

    #[test]
    fn indices_of_allocated_gpus_are_listed() {
        let indices = |text: &str| held(text, None).unwrap();
        assert_eq!(indices("gpu:a100:3(IDX:0-1,3)"), Held { count: 3, indices: vec![0, 1, 3] });
        assert_eq!(indices("gpu:2"), Held { count: 2, indices: Vec::new() });
        assert_eq!(indices("gpu:a100:0(IDX:N/A)"), Held::default());
        assert_eq!(indices("gpu:a100:1(IDX:0),gpu:v100:1(IDX:0)"), Held { count: 2, indices: Vec::new() });
        let error = held("gpu:a100:3(IDX:0-1)", None).unwrap_err();
        assert_eq!(error, "is \"gpu:a100:3(IDX:0-1)\": 2 indices, expected 3");
    }
}
