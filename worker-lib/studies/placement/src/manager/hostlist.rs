//! Slurm's compressed notation for lists: `gpu[1-3,7],login` for nodes, and `1-3,7` for the tasks of a job array.

/// Maximum number of elements of a list, so that a short text cannot exhaust memory.
const ELEMENTS_MAX: usize = 1 << 17;

/// Returns the names in a list of nodes, such as `r[1-2]n[01-08]`, in order.
///
/// # Errors
/// Returns a description of the part that is not a valid list.
pub(super) fn expand(text: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for part in split_outside(text, ['[', ']']) {
        product(String::new(), part, &mut names)?;
    }
    Ok(names)
}

/// Returns the numbers in a list such as `1-3,7,10-20:5`, in order. A limit on simultaneous tasks (`%2`) is ignored.
///
/// # Errors
/// Returns a description of the part that is not a valid list.
pub(super) fn numbers(text: &str) -> Result<Vec<usize>, String> {
    let text = text.split('%').next().unwrap_or_default();
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let (range, step) = part.split_once(':').unwrap_or((part, "1"));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |digits: &str| {
            digits.parse::<usize>().map_err(|_| format!("{part:?} is not a number or a range of numbers"))
        };
        let (first, last, step) = (number(first)?, number(last)?, number(step)?);
        if step == 0 || last < first || (last - first) / step >= ELEMENTS_MAX - numbers.len() {
            return Err(format!("{part:?} is not a range of at most {ELEMENTS_MAX} ascending numbers"));
        }
        numbers.extend((first..=last).step_by(step));
    }
    Ok(numbers)
}

/// Splits a list at its commas, except for those between `open` and `close`.
pub(super) fn split_outside(text: &str, [open, close]: [char; 2]) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    text.split(move |letter: char| {
        depth += i32::from(letter == open) - i32::from(letter == close);
        letter == ',' && depth <= 0
    })
}

/// Appends to `names` all expansions of `rest`, each preceded by `prefix`. In an expansion, each pair of brackets is
/// replaced by one of the elements inside it.
fn product(prefix: String, rest: &str, names: &mut Vec<String>) -> Result<(), String> {
    let Some((before, after)) = rest.split_once('[') else {
        if rest.contains(']') {
            return Err(format!("{rest:?} has unpaired brackets"));
        }
        let name = prefix + rest;
        if name.is_empty() {
            return Err("a name is empty".to_owned());
        }
        if names.len() >= ELEMENTS_MAX {
            return Err(format!("there are more than {ELEMENTS_MAX} names"));
        }
        names.push(name);
        return Ok(());
    };
    let (inside, after) = after.split_once(']').ok_or_else(|| format!("{rest:?} has unpaired brackets"))?;
    for part in inside.split(',') {
        // Leading zeros belong to the names: n[08-10] is n08, n09, n10.
        let width = part.split('-').next().unwrap_or_default().len();
        for number in numbers(part)? {
            product(format!("{prefix}{before}{number:0width$}"), after, names)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_nodes_are_expanded_in_order() {
        let text = |list: &str| expand(list).unwrap().join(" ");
        assert_eq!(text("gpu1"), "gpu1");
        assert_eq!(text("gpu[1-3,7],login"), "gpu1 gpu2 gpu3 gpu7 login");
        assert_eq!(text("n[08-11]"), "n08 n09 n10 n11");
        assert_eq!(text("r[1-2]n[1,3]-ib"), "r1n1-ib r1n3-ib r2n1-ib r2n3-ib");
    }

    #[test]
    fn lists_of_tasks_are_expanded_in_order() {
        assert_eq!(numbers("1-3,7,10-20:5%2").unwrap(), [1, 2, 3, 7, 10, 15, 20]);
    }

    #[test]
    fn invalid_lists_are_refused_with_the_reason() {
        for list in ["gpu[1-3", "gpu1]", "gpu[[1]]", "gpu[3-1]", "gpu[a]", "a,,b", "n[1-9999999999]"] {
            assert!(expand(list).is_err(), "{list}");
        }
        assert_eq!(numbers("1-3,...").unwrap_err(), "\"...\" is not a number or a range of numbers");
        let large = "n[0-999][0-999]";
        assert_eq!(expand(large).unwrap_err(), format!("there are more than {ELEMENTS_MAX} names"));
    }
}
