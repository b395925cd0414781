//! Quantities that charts show, with their names and units.

/// Name and unit of the quantity that an axis or a colour scale shows. An axis cannot be created without a quantity.
///
/// ```compile_fail
/// let axis = iswitch_figure::Axis::linear(); // the quantity is missing
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantity {
    name: String,
    unit: Option<String>,
}

impl Quantity {
    /// Returns a quantity with a unit, such as a completion time in `s`.
    ///
    /// # Panics
    /// Panics if the name or the unit is empty.
    pub fn new(name: impl Into<String>, unit: impl Into<String>) -> Self {
        let (name, unit) = (name.into(), unit.into());
        assert!(!name.is_empty() && !unit.is_empty(), "a quantity has a name and a unit");
        Self { name, unit: Some(unit) }
    }

    /// Returns a quantity without a unit: a count, a ratio, a category, or a quantity whose tick labels include the
    /// units.
    ///
    /// # Panics
    /// Panics if the name is empty.
    pub fn plain(name: impl Into<String>) -> Self {
        let name = name.into();
        assert!(!name.is_empty(), "a quantity has a name");
        Self { name, unit: None }
    }

    /// Returns the title of an axis, such as `Completion time (s, log scale)`.
    pub(crate) fn title(&self, is_logarithmic: bool) -> String {
        let scale = is_logarithmic.then_some("log scale");
        let details: Vec<&str> = self.unit.as_deref().into_iter().chain(scale).collect();
        if details.is_empty() { self.name.clone() } else { format!("{} ({})", self.name, details.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_state_unit_and_scale() {
        assert_eq!(Quantity::new("Time", "s").title(false), "Time (s)");
        assert_eq!(Quantity::new("Time", "s").title(true), "Time (s, log scale)");
        assert_eq!(Quantity::plain("Workers").title(false), "Workers");
        assert_eq!(Quantity::plain("Workers").title(true), "Workers (log scale)");
    }

    #[test]
    #[should_panic(expected = "a quantity has a name")]
    fn an_empty_name_is_rejected() {
        Quantity::plain("");
    }

    #[test]
    #[should_panic(expected = "a quantity has a name and a unit")]
    fn an_empty_unit_is_rejected() {
        Quantity::new("Time", "");
    }
}
